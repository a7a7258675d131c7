// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_SpgemmLaunch.hpp"

namespace Tessera {
namespace Launch {

template void spgemm_deal<HipDevice>(SpgemmArgs&) noexcept;
template Status spgemm_look<HipDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_columns<HipDevice>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
template Status spgemm_windows<HipDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_offsets<HipDevice>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_numbers<HipDevice>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
