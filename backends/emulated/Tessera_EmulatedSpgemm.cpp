// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_SpgemmLaunch.hpp"

namespace Tessera {
namespace Launch {

#ifdef TESSERA_EMULATED_FEWER_TYPES
template <>
void launch_spgemm_tables<EmulatedNvidia, float, true>(SpgemmLists<EmulatedNvidia>&) {}
template <>
void launch_spgemm_tables<EmulatedAmd, float, true>(SpgemmLists<EmulatedAmd>&) {}
template <>
Status launch_spgemm_numbers<EmulatedNvidia, float>(const SpgemmArgs&, const SpgemmTotals&, Stream) {
  return {"emulation: FP32 is left out here"};
}
template <>
Status launch_spgemm_numbers<EmulatedAmd, float>(const SpgemmArgs&, const SpgemmTotals&, Stream) {
  return {"emulation: FP32 is left out here"};
}
#endif

template void spgemm_deal<EmulatedNvidia>(SpgemmArgs&) noexcept;
template Status spgemm_look<EmulatedNvidia>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_columns<EmulatedNvidia>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
template Status spgemm_windows<EmulatedNvidia>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_offsets<EmulatedNvidia>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_numbers<EmulatedNvidia>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
template void spgemm_deal<EmulatedAmd>(SpgemmArgs&) noexcept;
template Status spgemm_look<EmulatedAmd>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_columns<EmulatedAmd>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
template Status spgemm_windows<EmulatedAmd>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_offsets<EmulatedAmd>(const SpgemmArgs&, Stream) noexcept;
template Status spgemm_numbers<EmulatedAmd>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
