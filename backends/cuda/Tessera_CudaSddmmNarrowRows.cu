// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_SddmmNarrowRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status sddmm_narrow_rows<CudaDevice>(const SddmmRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
