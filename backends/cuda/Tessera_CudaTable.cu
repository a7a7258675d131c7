// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_KernelTableOf.hpp"

namespace Tessera {

const KernelTable* cuda_table() noexcept { return Launch::kernel_table_of<CudaDevice>(); }

}  // namespace Tessera
