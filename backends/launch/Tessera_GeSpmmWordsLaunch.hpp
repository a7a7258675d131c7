// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_GESPMM_WORDS_LAUNCH_HPP
#define TESSERA_LAUNCH_GESPMM_WORDS_LAUNCH_HPP

#include "backends/launch/Tessera_GeSpmmLaunch.hpp"

/// \file
/// SpMM from compressed rows where rows of B are aligned to eight bytes or to an element alone.

namespace Tessera {
namespace Launch {

template <class Device, class Value, class Sum>
typename Device::Error launch_words(const GeSpmmArgs& args, Stream stream) {
  constexpr int element = static_cast<int>(sizeof(Value));
  if constexpr (element < 8) {
    if (args.word_bytes == 8) return launch_gespmm<Device, GeSpmmTypes<Value, Sum, RowsOfB<Value, 8>>>(args, stream);
  }
  return launch_gespmm<Device, GeSpmmTypes<Value, Sum, RowsOfB<Value, element>>>(args, stream);
}

template <class Device>
Status spmm_gespmm_words(const GeSpmmArgs& args, Stream stream) noexcept {
  const auto answer = [](typename Device::Error error) { return Device::status(error, "Tessera::spmm[gespmm]"); };
  switch (args.precision) {
    case Precision::FP64:
      return answer(launch_words<Device, double, double>(args, stream));
    case Precision::FP32:
    case Precision::TF32:
      return answer(launch_words<Device, float, float>(args, stream));
    case Precision::FP16:
      return answer(launch_words<Device, half_t, float>(args, stream));
    case Precision::BF16:
#if defined(TESSERA_DEVICE_FEWER_WIDTHS) || defined(TESSERA_EMULATED_FEWER_TYPES)
      return {"spmm[gespmm]: this build leaves out BF16 where rows of B are not aligned"};
#else
      return answer(launch_words<Device, bhalf_t, float>(args, stream));
#endif
  }
  return {"spmm[gespmm]: unknown precision"};
}

}  // namespace Launch
}  // namespace Tessera

#endif
