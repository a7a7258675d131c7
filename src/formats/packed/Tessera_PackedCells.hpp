// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_CELLS_HPP
#define TESSERA_FORMATS_PACKED_PACKED_CELLS_HPP

#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_CellsArgs.hpp"

/// \file
/// Packed slices in cells as plain Views; what lies where: backends/interface/Tessera_CellsArgs.hpp.

namespace Tessera {
namespace Impl {

/// How a matrix is cut into cells.
struct CellsShape {
  std::int64_t rows = 0, cols = 0, block_columns = 0;
  int row_blocks = 0;  ///< 0: it does not fit into shared memory
  int column_blocks = 0, shares = 1;
  int groups = 0;  ///< of 32 rows, of a row block
  int cuts = 0;    ///< room for further places of cut rows, of a row block

  KOKKOS_INLINE_FUNCTION int row_places() const { return groups * CellsLayout::row_group; }
  KOKKOS_INLINE_FUNCTION std::int64_t all_places() const { return std::int64_t{row_blocks} * row_places(); }
  /// Places of a row block that have pieces; what is no piece has the next one.
  KOKKOS_INLINE_FUNCTION int places() const { return row_places() + cuts; }
  KOKKOS_INLINE_FUNCTION int sums() const { return (places() + 32) / 32 * 32; }
  KOKKOS_INLINE_FUNCTION std::int64_t cells() const { return std::int64_t{row_blocks} * column_blocks; }
  /// Bytes that a team of the set-up, which has 32 rows, holds of column blocks.
  KOKKOS_INLINE_FUNCTION static constexpr int setup_bytes(int column_blocks) {
    return 4 * (CellsLayout::row_group * (column_blocks + 1) + 2 * column_blocks + 2) +
           2 * CellsLayout::row_group * column_blocks;
  }
  /// Entries of 32 rows, in the mean.
  std::int64_t mean_of_group(std::int64_t nnz) const { return nnz * CellsLayout::row_group / rows; }
  /// Entries that such a team holds beside: those of most, where they fit.
  int held_entries(std::int64_t nnz, int value_bytes) const {
    constexpr std::int64_t most = 3072;
    const std::int64_t mean = mean_of_group(nnz), held = (mean + mean / 4 + 127) / 64 * 64;
    const std::int64_t left = most_setup_bytes - setup_bytes(column_blocks);
    return static_cast<int>(held <= most && held * (4 + value_bytes) <= left ? held : 0);
  }
  static constexpr int most_setup_bytes = 47000;  ///< Kokkos gives a team 48 kB of shared memory

  /// Most slices of all cells: a piece of several slots has more than half as many entries as these hold.
  std::int64_t most_slices(std::int64_t nnz) const {
    const std::int64_t of_single_slots = places() / CellsLayout::slots + CellsLayout::widths;
    return cells() * of_single_slots + 2 * nnz / (CellsLayout::max_steps * CellsLayout::slots) + 1;
  }
};

/// What the host must know of the conversion.
struct CellsTotals {
  std::int64_t units = 0, slices = 0, pieces = 0, steps = 0;
  std::int32_t descends = 0, no_room = 0;  ///< then there are no cells
};

}  // namespace Impl

namespace Experimental {

/// Packed slices in cells. Experimental: its names may change between minor versions.
template <class MemorySpace>
struct PackedCells {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::shared_ptr<void> structure_storage, packet_storage, slot_storage;
  Impl::CellsShape shape;
  Impl::CellsTotals totals;
  Precision precision = Precision::FP64;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  bool made = false;  ///< false: these hold nothing
  View<std::uint64_t> packets;
  View<CellsRun> runs;
  View<std::uint32_t> units, row_groups, cut_counts, share_first;
  View<CellsCut> cuts;
  View<std::uint32_t> slots;  ///< for update_values: where each number lies; empty if not updatable

  std::int64_t stored() const { return totals.steps * CellsLayout::slots; }
  std::size_t format_bytes() const {
    return 8 * packets.extent(0) + sizeof(CellsRun) * runs.extent(0) + sizeof(CellsCut) * cuts.extent(0) +
           4 * (units.extent(0) + row_groups.extent(0) + cut_counts.extent(0) + share_first.extent(0));
  }
  /// What update_values needs besides.
  std::size_t map_bytes() const { return 4 * slots.extent(0); }
  std::size_t workspace_bytes() const {
    return shape.shares > 1 ? static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape.shares) *
                                  static_cast<std::size_t>(sum_bytes_of(precision))
                            : 0;
  }
  int launches() const { return shape.shares > 1 ? 2 : 1; }

  /// The kernel's arguments, vectors and scratch left open.
  SpmvCellsArgs arguments() const {
    SpmvCellsArgs a;
    a.precision = precision;
    a.packets = reinterpret_cast<const unsigned char*>(packets.data());
    a.runs = runs.data();
    a.units = units.data();
    a.row_groups = row_groups.data();
    a.cuts = cuts.data();
    a.cut_counts = cut_counts.data();
    a.share_first = share_first.data();
    a.row_blocks = static_cast<std::uint32_t>(shape.row_blocks);
    a.column_blocks = static_cast<std::uint32_t>(shape.column_blocks);
    a.shares = static_cast<std::uint32_t>(shape.shares);
    a.groups = static_cast<std::uint32_t>(shape.groups);
    a.most_cuts = static_cast<std::uint32_t>(shape.cuts);
    a.sums = static_cast<std::uint32_t>(shape.sums());
    a.block_columns = static_cast<std::uint32_t>(shape.block_columns);
    a.rows = rows;
    a.cols = cols;
    return a;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
