// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_FlashLaunch.hpp"

namespace Tessera {
namespace Launch {

#define TESSERA_KERNELS_OF(Device)                           \
  template int flash_depth<Device>(Precision, int) noexcept; \
  template Status spmm_flash<Device>(const SpmmFlashArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
