// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REFERENCE_EMULATED_SPMM_HPP
#define TESSERA_REFERENCE_EMULATED_SPMM_HPP

#include "backends/interface/Tessera_KernelTable.hpp"

namespace Tessera {

const PanelGeometry* emulated_nvidia_panel_geometry(Precision precision, std::int64_t columns) noexcept;
const PanelGeometry* emulated_amd_panel_geometry(Precision precision, std::int64_t columns) noexcept;
Status emulated_nvidia_spmm_panels(const SpmmPanelArgs& args, Stream) noexcept;
Status emulated_amd_spmm_panels(const SpmmPanelArgs& args, Stream) noexcept;
Status emulated_nvidia_spmm_rows(const SpmmRowsArgs& args, Stream) noexcept;
Status emulated_amd_spmm_rows(const SpmmRowsArgs& args, Stream) noexcept;

}  // namespace Tessera

#endif
