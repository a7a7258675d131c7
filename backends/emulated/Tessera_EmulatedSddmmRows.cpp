// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_SddmmRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
// No test multiplies in these (backends/CMakeLists.txt).
template <>
const char* launch_sddmm_rows<EmulatedNvidia, double, double>(const SddmmRowsArgs&, Stream) {
  return "emulation: FP64 is left out here";
}
template <>
const char* launch_sddmm_rows<EmulatedNvidia, bhalf_t, float>(const SddmmRowsArgs&, Stream) {
  return "emulation: BF16 is left out here";
}
#endif

#define TESSERA_KERNELS_OF(Device) template Status sddmm_rows<Device>(const SddmmRowsArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
