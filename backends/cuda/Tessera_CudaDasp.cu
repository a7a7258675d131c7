// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_DaspLaunch.hpp"

namespace Tessera {
namespace Launch {

template const DaspGeometry* dasp_geometry<CudaDevice>(Precision) noexcept;
template Status spmv_dasp<CudaDevice>(const SpmvDaspArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
