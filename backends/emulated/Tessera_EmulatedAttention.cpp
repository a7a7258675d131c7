// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
template <>
const char* attention_forward_32_bits<EmulatedNvidia>(const AttentionArgs&, Stream) {
  return "emulation: FP32 and TF32 are left out here";
}
#endif

#define TESSERA_KERNELS_OF(Device)                                     \
  template AttentionShape attention_shape<Device>(Precision) noexcept; \
  template Status attention_forward<Device>(const AttentionArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
