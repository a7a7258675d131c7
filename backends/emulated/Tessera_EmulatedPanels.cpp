// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_PanelLaunch.hpp"

namespace Tessera {
namespace Launch {

template const PanelGeometry* panel_geometry<EmulatedNvidia>(Precision, std::int64_t) noexcept;
template const PanelGeometry* panel_geometry<EmulatedAmd>(Precision, std::int64_t) noexcept;
template Status spmm_panels<EmulatedNvidia>(const SpmmPanelArgs&, Stream) noexcept;
template Status spmm_panels<EmulatedAmd>(const SpmmPanelArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
