// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SDDMM_NARROW_ROWS_LAUNCH_HPP
#define TESSERA_LAUNCH_SDDMM_NARROW_ROWS_LAUNCH_HPP

#include <type_traits>

#include "backends/launch/Tessera_SddmmRowsLaunch.hpp"

/// \file
/// SDDMM entry by entry where rows of X or Y do not lie at multiples of sixteen bytes: the same kernels, in words of
/// eight bytes, or of four in FP32. Sixteen bits one or two at a time are slower than a copy.

namespace Tessera {
namespace Launch {

template <class Device, class Value, class Sum>
typename Device::Error launch_sddmm_narrow_rows(const SddmmRowsArgs& args, Stream stream) {
  const auto in_words = [&](auto bytes) {
    using Head = SddmmHead<Value, Sum>;
    constexpr bool every = Device::template every_length<Value>;
    return sddmm_narrow_rows_dispatch<Head, typename Device::Wave, every, decltype(bytes)::value>(
        args.dense.words,
        [&](auto kernel) { return launch_sddmm_rows_kernel<Device, decltype(kernel)>(args, stream); });
  };
  if constexpr (std::is_same_v<Value, float>) {
    if (args.dense.word_bytes == 4) return in_words(std::integral_constant<int, 4>());
  }
  return in_words(std::integral_constant<int, 8>());
}

template <class Device>
Status sddmm_narrow_rows(const SddmmRowsArgs& args, Stream stream) noexcept {
  if (args.nnz == 0 || args.dense.heads == 0) return {};
  if (args.dense.word_bytes != 8 && !(args.dense.word_bytes == 4 && bytes_of(args.precision) == 4)) {
    return {"sddmm[rows]: words of eight bytes, or in FP32 of four, are wanted"};
  }
  const auto answer = [](typename Device::Error error) { return Device::status(error, "Tessera::sddmm[rows]"); };
  switch (args.precision) {
    case Precision::FP64:
      return answer(launch_sddmm_narrow_rows<Device, double, double>(args, stream));
    case Precision::FP32:
    case Precision::TF32:
      return answer(launch_sddmm_narrow_rows<Device, float, float>(args, stream));
    case Precision::FP16:
      return answer(launch_sddmm_narrow_rows<Device, half_t, float>(args, stream));
    case Precision::BF16:
#if defined(TESSERA_DEVICE_FEWER_WIDTHS) || defined(TESSERA_EMULATED_FEWER_TYPES)
      return {"sddmm[rows]: this build leaves out BF16 where rows of X or Y are not aligned"};
#else
      return answer(launch_sddmm_narrow_rows<Device, bhalf_t, float>(args, stream));
#endif
  }
  return {"sddmm[rows]: unknown precision"};
}

}  // namespace Launch
}  // namespace Tessera

#endif
