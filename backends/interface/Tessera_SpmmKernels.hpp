// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPMM_KERNELS_HPP
#define TESSERA_INTERFACE_SPMM_KERNELS_HPP

#include <cstdint>

#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "backends/interface/Tessera_Status.hpp"

namespace Tessera {

/// What a backend offers for C := alpha A B + beta C.
struct SpmmKernels {
  /// Shape of FlashSparse's instruction: column vectors of a block for a precision and vector length; 0 where not
  /// offered.
  int (*flash_depth)(Precision, int vector_length) noexcept = nullptr;
  /// Enqueues C := alpha A B + beta C from ME-BCRS; one launch, two where windows are split.
  Status (*flash)(const SpmmFlashArgs&, Stream) noexcept = nullptr;
  /// Block geometry of panels for a precision and the columns that B will mostly have; null where not offered.
  const PanelGeometry* (*panel_geometry)(Precision, std::int64_t columns) noexcept = nullptr;
  /// The same from panels.
  Status (*panels)(const SpmmPanelArgs&, Stream) noexcept = nullptr;
  /// The same from compressed rows; null: the Kokkos kernel is as good. Operands of the precision's type.
  Status (*gespmm)(const GeSpmmArgs&, Stream) noexcept = nullptr;
};

}  // namespace Tessera

#endif
