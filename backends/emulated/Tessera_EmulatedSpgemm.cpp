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
Status launch_spgemm_numbers<EmulatedNvidia, float>(const SpgemmArgs&, const SpgemmTotals&, Stream) {
  return {"emulation: FP32 is left out here"};
}
#endif

#define TESSERA_KERNELS_OF(Device)                                                                 \
  template void spgemm_deal<Device>(SpgemmArgs&) noexcept;                                         \
  template Status spgemm_look<Device>(const SpgemmArgs&, Stream) noexcept;                         \
  template Status spgemm_columns<Device>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept; \
  template Status spgemm_windows<Device>(const SpgemmArgs&, Stream) noexcept;                      \
  template Status spgemm_offsets<Device>(const SpgemmArgs&, Stream) noexcept;                      \
  template Status spgemm_numbers<Device>(const SpgemmArgs&, const SpgemmTotals&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
