// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPGEMM_LAUNCHERS_HPP
#define TESSERA_LAUNCH_SPGEMM_LAUNCHERS_HPP

#include "backends/interface/Tessera_SpgemmKernels.hpp"

/// \file
/// The launchers of SpGEMM, as the table names them. A vendor's folder instantiates the definitions of
/// Tessera_SpgemmLaunch.hpp.

namespace Tessera {
namespace Launch {

template <class Device>
void spgemm_deal(SpgemmArgs& args) noexcept;
template <class Device>
Status spgemm_look(const SpgemmArgs& args, Stream stream) noexcept;
template <class Device>
Status spgemm_columns(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream) noexcept;
template <class Device>
Status spgemm_windows(const SpgemmArgs& args, Stream stream) noexcept;
template <class Device>
Status spgemm_offsets(const SpgemmArgs& args, Stream stream) noexcept;
template <class Device>
Status spgemm_numbers(const SpgemmArgs& args, const SpgemmTotals& totals, Stream stream) noexcept;

template <class Device>
SpgemmKernels spgemm_kernels() noexcept {
  SpgemmKernels kernels;
  kernels.deal = spgemm_deal<Device>;
  kernels.look = spgemm_look<Device>;
  kernels.columns = spgemm_columns<Device>;
  kernels.windows = spgemm_windows<Device>;
  kernels.offsets = spgemm_offsets<Device>;
  kernels.numbers = spgemm_numbers<Device>;
  return kernels;
}

}  // namespace Launch
}  // namespace Tessera

#endif
