// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_GeSpmmWordsLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
// No test multiplies in FP64 (backends/CMakeLists.txt).
template <>
const char* launch_words<EmulatedNvidia, double, double>(const GeSpmmArgs&, Stream) {
  return "emulation: FP64 is left out here";
}
#endif

#define TESSERA_KERNELS_OF(Device) template Status spmm_gespmm_words<Device>(const GeSpmmArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
