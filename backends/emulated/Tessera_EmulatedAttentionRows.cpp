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
#endif

#define TESSERA_KERNELS_OF(Device)                                                \
  template AttentionRowsLimits attention_rows_limits<Device>(Precision) noexcept; \
  template Status attention_rows_forward<Device>(const AttentionRowsArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
