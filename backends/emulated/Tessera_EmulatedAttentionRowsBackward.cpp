// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
// Tests of FP64 have NVIDIA's waves alone (backends/CMakeLists.txt).
template <>
const char* attention_rows_backward_of<EmulatedNvidia, double>(const AttentionRowsBackwardArgs&, Stream) {
  return "emulation: FP64 is left out here";
}
#endif

#define TESSERA_KERNELS_OF(Device) \
  template Status attention_rows_backward<Device>(const AttentionRowsBackwardArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
