// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_FlashLaunch.hpp"

namespace Tessera {
namespace Launch {

template int flash_depth<CudaDevice>(Precision, int) noexcept;
template Status spmm_flash<CudaDevice>(const SpmmFlashArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
