// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_PanelLaunch.hpp"

namespace Tessera {
namespace Launch {

template const PanelGeometry* panel_geometry<HipDevice>(Precision, std::int64_t) noexcept;
template Status spmm_panels<HipDevice>(const SpmmPanelArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
