// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
// Tests of FP64 have NVIDIA's waves alone (backends/CMakeLists.txt).
template <>
const char* attention_rows_of<EmulatedNvidia, double>(const AttentionRowsArgs&, Stream) {
  return "emulation: FP64 is left out here";
}
template <>
const char* attention_rows_of<EmulatedAmd, double>(const AttentionRowsArgs&, Stream) {
  return "emulation: FP64 is left out here";
}
#endif

template AttentionRowsLimits attention_rows_limits<EmulatedNvidia>(Precision) noexcept;
template Status attention_rows_forward<EmulatedNvidia>(const AttentionRowsArgs&, Stream) noexcept;
template AttentionRowsLimits attention_rows_limits<EmulatedAmd>(Precision) noexcept;
template Status attention_rows_forward<EmulatedAmd>(const AttentionRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
