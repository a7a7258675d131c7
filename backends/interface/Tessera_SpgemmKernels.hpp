// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPGEMM_KERNELS_HPP
#define TESSERA_INTERFACE_SPGEMM_KERNELS_HPP

#include "backends/interface/Tessera_SpgemmArgs.hpp"
#include "backends/interface/Tessera_Status.hpp"

namespace Tessera {

/// What a backend offers for C := A B where columns ascend in every row of B, without copies.
struct SpgemmKernels {
  /// Thread blocks that look at rows and at B's entries, and rows of each; rows of a window.
  void (*deal)(SpgemmArgs&) noexcept = nullptr;
  /// Kinds of rows, bounds, their order and `at`; totals. Two launches.
  Status (*look)(const SpgemmArgs&, Stream) noexcept = nullptr;
  /// Entries of each row; their columns, if `found` is there, and if `once` the numbers of rows in tables. A launch per
  /// kind of row. @param totals  of look(), on the host
  Status (*columns)(const SpgemmArgs&, const SpgemmTotals& totals, Stream) noexcept = nullptr;
  /// Which windows of rows go to FP64 matrix units, after columns(). A launch.
  Status (*windows)(const SpgemmArgs&, Stream) noexcept = nullptr;
  /// Row map of C unless its offsets are too few, rows by size; totals. Two launches.
  Status (*offsets)(const SpgemmArgs&, Stream) noexcept = nullptr;
  /// Columns of C, if `known`, and its numbers. A launch per size of row. @param totals  of offsets(), on the host
  Status (*numbers)(const SpgemmArgs&, const SpgemmTotals& totals, Stream) noexcept = nullptr;
};

}  // namespace Tessera

#endif
