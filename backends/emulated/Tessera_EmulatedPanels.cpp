// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_PanelLaunch.hpp"

namespace Tessera {
namespace Launch {

#define TESSERA_KERNELS_OF(Device)                                                        \
  template const PanelGeometry* panel_geometry<Device>(Precision, std::int64_t) noexcept; \
  template Status spmm_panels<Device>(const SpmmPanelArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
