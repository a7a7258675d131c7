// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_SddmmWindowLaunch.hpp"

namespace Tessera {
namespace Launch {

template SddmmShape sddmm_shape<CudaDevice>(Precision) noexcept;
template Status sddmm_windows<CudaDevice>(const SddmmWindowArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
