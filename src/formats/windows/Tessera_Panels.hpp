// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_PANELS_HPP
#define TESSERA_FORMATS_WINDOWS_PANELS_HPP

#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"

/// \file
/// Panels as plain Views.

namespace Tessera {
namespace Experimental {

/// Rows of a matrix in panels that the kernel for compressed rows multiplies, in plain FP32: where panels multiply in
/// parts (PanelGeometry::part_columns), those that might err by more than FP32 arithmetic (Impl::apart_from_panels).
/// Their numbers stand at the end of the panels' values, row by row; no block has an entry of them.
///
/// Bytes: 4 per row of the matrix, 4 per entry and 16 per row apart; nothing where there are none.
template <class MemorySpace>
struct RowsApart {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::shared_ptr<void> storage;
  std::int64_t first_value = 0;  ///< of their numbers among the panels'
  View<std::int32_t> row_at;     ///< place in the windows -> row, -1 for these
  View<std::int32_t> columns;    ///< of their entries
  View<SpmmRowPiece> pieces;     ///< where among these their entries are

  std::int64_t count() const { return static_cast<std::int64_t>(pieces.extent(0)); }
  std::int64_t entries() const { return static_cast<std::int64_t>(columns.extent(0)); }
  std::size_t bytes() const {
    return 4 * (row_at.extent(0) + columns.extent(0)) + sizeof(SpmmRowPiece) * pieces.extent(0);
  }
};

/// Windows of geometry.rows rows. The distinct columns of a window, ascending, stand in blocks of geometry.depth, the
/// last one padded with column -1. A block has a packet of its columns, a bitmap of the slots that hold an entry, row
/// by row, how many entries stand before each row, and where its values begin; only entries have a stored value, in the
/// order of their bits, from a multiple of 16 bytes on. A row that repeats a column makes the window repeat it.
///
/// Bytes: v nnz + blocks (4 packet_words + padding) + 4 windows, with v bytes per value and room for as much padding as
/// there may be at most, 16 - v bytes per block.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct Panels {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static constexpr bool marks_zeros = false;  ///< bits say what is an entry

  std::shared_ptr<void> structure_storage, value_storage;

  PanelGeometry geometry;
  Precision precision = Precision::FP16;
  std::int64_t rows = 0, cols = 0, nnz = 0, windows = 0;
  std::int64_t column_vectors = 0;  ///< distinct columns of the windows, summed: rows of B fetched per apply
  std::int64_t blocks = 0, partial_count = 0;
  View<std::uint32_t> block_ptr;   ///< windows + 1
  View<std::uint32_t> packets;     ///< [block][geometry.packet_words()]
  View<std::uint64_t> values;      ///< raw storage, 8-byte units; zeros where no entry is
  View<std::uint32_t> entry_slot;  ///< CSR entry -> place in values, for update_values (empty if not updatable)
  View<std::int32_t> row_order;    ///< place in the windows -> row; empty: the same
  View<SpmmPart> parts;            ///< empty: every window is one part
  View<SpmmSplit> splits;
  RowsApart<MemorySpace> apart;

  std::size_t format_bytes() const {
    return 4 * (block_ptr.extent(0) + packets.extent(0)) + 8 * values.extent(0) + 4 * row_order.extent(0) +
           sizeof(SpmmPart) * parts.extent(0) + sizeof(SpmmSplit) * splits.extent(0) + apart.bytes();
  }
  std::size_t map_bytes() const { return 4 * entry_slot.extent(0); }
  /// Partial sums of split windows for N columns.
  std::size_t workspace_bytes(std::int64_t n) const {
    const auto sum_bytes = static_cast<std::size_t>(sum_bytes_of(precision));
    return static_cast<std::size_t>(partial_count * geometry.rows * ((n + 3) / 4 * 4)) * sum_bytes;
  }

  /// The kernel's arguments; dense operands and scratch left open.
  SpmmPanelArgs arguments() const {
    SpmmPanelArgs a;
    a.precision = precision;
    a.depth = geometry.depth;
    a.rows = rows;
    a.windows = windows;
    a.blocks = blocks;
    a.row_order = apart.count() > 0 ? apart.row_at.data() : row_order.extent(0) > 0 ? row_order.data() : nullptr;
    a.block_ptr = block_ptr.data();
    a.packets = packets.data();
    a.values = values.data();
    a.split.parts = parts.extent(0) > 0 ? parts.data() : nullptr;
    a.split.part_count = parts.extent(0) > 0 ? static_cast<std::int64_t>(parts.extent(0)) : windows;
    a.split.splits = splits.data();
    a.split.split_count = static_cast<std::int64_t>(splits.extent(0));
    return a;
  }
  /// Those of the kernel for compressed rows, for the rows apart; dense operands left open.
  GeSpmmArgs arguments_apart() const {
    GeSpmmArgs a;
    a.precision = precision;
    a.rows = rows;
    a.cols = cols;
    a.nnz = apart.entries();
    a.columns = apart.columns.data();
    a.values = reinterpret_cast<const char*>(values.data()) + apart.first_value * geometry.value_bytes;
    a.table = apart.pieces.data();
    a.count = apart.count();
    a.most_pieces = 1;
    a.local = true;  // else there would be no panels
    return a;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
