// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

template cudaError_t attention_forward_32_bits<CudaDevice>(const AttentionArgs&, Stream);

}  // namespace Launch
}  // namespace Tessera
