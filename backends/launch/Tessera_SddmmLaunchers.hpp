// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SDDMM_LAUNCHERS_HPP
#define TESSERA_LAUNCH_SDDMM_LAUNCHERS_HPP

#include "backends/interface/Tessera_SddmmKernels.hpp"

/// \file
/// The launchers of SDDMM, as the table names them. A vendor's folder instantiates the definitions of
/// Tessera_SddmmRowsLaunch.hpp, Tessera_SddmmNarrowRowsLaunch.hpp and Tessera_SddmmWindowLaunch.hpp.

namespace Tessera {
namespace Launch {

template <class Device>
Status sddmm_rows(const SddmmRowsArgs& args, Stream stream) noexcept;
template <class Device>
Status sddmm_narrow_rows(const SddmmRowsArgs& args, Stream stream) noexcept;
template <class Device>
SddmmShape sddmm_shape(Precision precision) noexcept;
template <class Device>
Status sddmm_windows(const SddmmWindowArgs& args, Stream stream) noexcept;

template <class Device>
SddmmKernels sddmm_kernels() noexcept {
  SddmmKernels kernels;
  kernels.rows = sddmm_rows<Device>;
  kernels.narrow_rows = sddmm_narrow_rows<Device>;
  kernels.shape = sddmm_shape<Device>;
  kernels.windows = sddmm_windows<Device>;
  return kernels;
}

}  // namespace Launch
}  // namespace Tessera

#endif
