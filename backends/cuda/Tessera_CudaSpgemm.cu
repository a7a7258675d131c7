// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaDevice.cuh"
#include "backends/launch/Tessera_SpgemmLaunch.hpp"

namespace Tessera {
namespace Launch {

template void spgemm_deal<CudaDevice>(SpgemmArgs&) noexcept;
template Status spgemm_look<CudaDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_columns<CudaDevice>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
template Status spgemm_windows<CudaDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_offsets<CudaDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_numbers<CudaDevice>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
