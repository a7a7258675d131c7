// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

extern template cudaError_t attention_forward_32_bits<CudaDevice>(const AttentionArgs&, Stream);

template AttentionShape attention_shape<CudaDevice>(Precision) noexcept;
template Status attention_forward<CudaDevice>(const AttentionArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
