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
template <>
const char* attention_forward_32_bits<EmulatedAmd>(const AttentionArgs&, Stream) {
  return "emulation: FP32 is left out here";
}
#endif

template AttentionShape attention_shape<EmulatedNvidia>(Precision) noexcept;
template Status attention_forward<EmulatedNvidia>(const AttentionArgs&, Stream) noexcept;
template AttentionShape attention_shape<EmulatedAmd>(Precision) noexcept;
template Status attention_forward<EmulatedAmd>(const AttentionArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
