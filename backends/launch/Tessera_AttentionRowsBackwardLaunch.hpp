// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_ROWS_BACKWARD_LAUNCH_HPP
#define TESSERA_LAUNCH_ATTENTION_ROWS_BACKWARD_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/attention/Tessera_AttentionRowsBackwardKernel.hpp"
#include "backends/launch/Tessera_AttentionRowsLaunch.hpp"

/// \file
/// Launchers of attention's gradients by rows, and by rows of the transposed pattern.

namespace Tessera {
namespace Launch {

template <class Device, class Value, bool ByColumns>
typename Device::Error attention_rows_pass(const AttentionRowsBackwardArgs& args, Stream stream) {
  using Wave = typename Device::Wave;
  using Merge = AttentionRowsBackwardMerge<Value, Wave, ByColumns>;
  constexpr int width = 16 / static_cast<int>(sizeof(Value));
  const AttentionDense& dense = args.pattern.dense;
  return attention_rows_backward_dispatch(dense.d / width, dense.e / width, [&](auto shape) {
    using Kernel = AttentionRowsBackwardKernel<Wave, decltype(shape), Value, ByColumns>;
    return launch_attention_rows<Device, Kernel, Merge>(args.pattern, args, stream);
  });
}
template <class Device, class Value>
typename Device::Error attention_rows_backward_of(const AttentionRowsBackwardArgs& args, Stream stream) {
  return args.by_columns ? attention_rows_pass<Device, Value, true>(args, stream)
                         : attention_rows_pass<Device, Value, false>(args, stream);
}

template <class Device>
Status attention_rows_backward(const AttentionRowsBackwardArgs& args, Stream stream) noexcept {
  const Precision precision = args.pattern.precision;
  const Status status = attention_rows_check(args.pattern, attention_rows_limits<Device>(precision));
  if (!status.ok()) return status;
  const std::int64_t apart = precision == Precision::FP64 ? std::int64_t{1} << 29 : std::int64_t{1} << 30;
  if (std::max(args.ld_d_o, args.pattern.dense.ldo) >= apart) {
    return {"attention[rows]: rows of O or dO lie 2^30 or more elements apart (FP64: 2^29)"};
  }
  if (args.pattern.share_count == 0 || args.pattern.dense.heads == 0) return status;
  const auto error = precision == Precision::FP64 ? attention_rows_backward_of<Device, double>(args, stream)
                                                  : attention_rows_backward_of<Device, float>(args, stream);
  return Device::status(error, args.by_columns ? "Tessera::attention[rows dK, dV]" : "Tessera::attention[rows dQ]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
