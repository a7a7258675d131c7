// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_AttentionBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionShape attention_backward_shape<CudaDevice>(Precision) noexcept;
template Status attention_backward<CudaDevice>(const AttentionBackwardArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
