// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_AttentionRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionRowsLimits attention_rows_limits<CudaDevice>(Precision) noexcept;
template Status attention_rows_forward<CudaDevice>(const AttentionRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
