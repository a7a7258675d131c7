// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_PanelLaunch.hpp"

namespace Tessera {
namespace Launch {

template const PanelGeometry* panel_geometry<CudaDevice>(Precision, std::int64_t) noexcept;
template Status spmm_panels<CudaDevice>(const SpmmPanelArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
