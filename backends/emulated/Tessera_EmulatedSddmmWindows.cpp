// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_SddmmWindowLaunch.hpp"

namespace Tessera {
namespace Launch {

#define TESSERA_KERNELS_OF(Device)                             \
  template SddmmShape sddmm_shape<Device>(Precision) noexcept; \
  template Status sddmm_windows<Device>(const SddmmWindowArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
