// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_ME_BCRS_HPP
#define TESSERA_FORMATS_WINDOWS_ME_BCRS_HPP

#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"

/// \file
/// ME-BCRS and SR-BCRS [Shi et al., "FlashSparse: Minimizing Computation Redundancy for Fast Sparse Matrix
/// Multiplications on Tensor Cores", PPoPP'25, section 4.4] as plain Views.

namespace Tessera {
namespace Experimental {

/// Windows of vector_length rows; of each window only the column vectors with an entry, ascending by column; values in
/// blocks of `depth` of them, each row-major, the last block of a window as narrow as it is (`padded`: filled up, with
/// column -1). A row that repeats a column gets as many column vectors of it.
///
/// A slot without entry holds +0, an entry that is zero -0: infinite and undefined numbers of B meet entries alone.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct MeBcrs {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static constexpr bool marks_zeros = true;

  std::shared_ptr<void> structure_storage, value_storage;

  Precision precision = Precision::FP16;
  int vector_length = 8, depth = 8;
  bool padded = false;
  bool sorted = true;  ///< in CSR the columns of every row ascend
  std::int64_t rows = 0, cols = 0, nnz = 0, windows = 0;
  std::int64_t column_vectors = 0;  ///< stored, padding of SR-BCRS included
  std::int64_t blocks = 0;          ///< one matrix instruction each, for 16 columns of B
  std::int64_t partial_count = 0;   ///< parts of split windows
  View<std::int32_t> row_pointers;  ///< windows + 1
  View<std::int32_t> column_indices;
  View<std::uint64_t> values;      ///< raw storage of the precision's values, 8-byte units
  View<std::uint64_t> entry_slot;  ///< CSR entry -> slot of values, for update_values (empty if not updatable)
  View<std::int32_t> row_order;    ///< place in the windows -> row; empty: the same
  View<SpmmPart> parts;            ///< empty: every window is one part
  View<SpmmSplit> splits;

  int value_bytes() const { return bytes_of(precision); }
  std::int64_t stored() const { return column_vectors * vector_length; }
  std::size_t format_bytes() const {
    return 4 * (row_pointers.extent(0) + column_indices.extent(0)) +
           static_cast<std::size_t>(stored()) * static_cast<std::size_t>(value_bytes()) + 4 * row_order.extent(0) +
           sizeof(SpmmPart) * parts.extent(0) + sizeof(SpmmSplit) * splits.extent(0);
  }
  std::size_t map_bytes() const { return 8 * entry_slot.extent(0); }
  /// Partial sums of split windows for N columns.
  std::size_t workspace_bytes(std::int64_t columns) const {
    const auto sum_bytes = static_cast<std::size_t>(sum_bytes_of(precision));
    return static_cast<std::size_t>(partial_count * vector_length * ((columns + 3) / 4 * 4)) * sum_bytes;
  }

  /// The kernel's arguments; mapping, dense operands and scratch left open.
  SpmmFlashArgs arguments() const {
    SpmmFlashArgs a;
    a.precision = precision;
    a.vector_length = vector_length;
    a.depth = depth;
    a.rows = rows;
    a.windows = windows;
    a.row_order = row_order.extent(0) > 0 ? row_order.data() : nullptr;
    a.row_pointers = row_pointers.data();
    a.column_indices = column_indices.data();
    a.values = values.data();
    a.split.parts = parts.extent(0) > 0 ? parts.data() : nullptr;
    a.split.part_count = parts.extent(0) > 0 ? static_cast<std::int64_t>(parts.extent(0)) : windows;
    a.split.splits = splits.data();
    a.split.split_count = static_cast<std::int64_t>(splits.extent(0));
    return a;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
