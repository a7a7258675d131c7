// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPMM_LAUNCHERS_HPP
#define TESSERA_LAUNCH_SPMM_LAUNCHERS_HPP

#include "backends/interface/Tessera_SpmmKernels.hpp"

/// \file
/// The launchers of SpMM, as the table names them. They are compiled in files of their own: a vendor's folder
/// instantiates the definitions of Tessera_FlashLaunch.hpp, Tessera_PanelLaunch.hpp, Tessera_GeSpmmLaunch.hpp and
/// Tessera_GeSpmmWordsLaunch.hpp.

namespace Tessera {
namespace Launch {

template <class Device>
int flash_depth(Precision precision, int vector_length) noexcept;
template <class Device>
Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept;
template <class Device>
const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept;
template <class Device>
Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept;
template <class Device>
Status spmm_gespmm(const GeSpmmArgs& args, Stream stream) noexcept;
/// The same where rows of B are not aligned to sixteen bytes; called by it, after its checks.
template <class Device>
Status spmm_gespmm_words(const GeSpmmArgs& args, Stream stream) noexcept;

template <class Device>
SpmmKernels spmm_kernels() noexcept {
  SpmmKernels kernels;
  kernels.flash_depth = flash_depth<Device>;
  kernels.flash = spmm_flash<Device>;
  kernels.panel_geometry = panel_geometry<Device>;
  kernels.panels = spmm_panels<Device>;
  kernels.gespmm = spmm_gespmm<Device>;
  return kernels;
}

}  // namespace Launch
}  // namespace Tessera

#endif
