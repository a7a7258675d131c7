// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_LAYOUT_COPY_HPP
#define TESSERA_CORE_LAYOUT_COPY_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Accumulator.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_RowCopies.hpp"

/// \file
/// Copies of dense operands that change their layout.

namespace Tessera {
namespace Impl {

/// `to` := `from` (beta == 0), or from + beta to, in another layout, by tiles that pass through fast memory, so that
/// both sides are read and written along their own contiguous direction. Columns of `to` beyond those of `from` become
/// 0.
template <class Exec, class From, class To, class Sum>
struct LayoutCopy {
  using Element = std::remove_const_t<From>;
  static constexpr int elements = 1024;  ///< of a tile
  Dense<const Element> from;
  Dense<To> to;
  Sum beta;
  std::int64_t column_tiles = 1;
  int log2_width = 5;  ///< of a tile: as many columns as `to` has, 32 at most

  LayoutCopy(const Dense<const Element>& source, const Dense<To>& target, Sum scale)
      : from(source), to(target), beta(scale) {
    while (log2_width > 1 && (std::int64_t{1} << (log2_width - 1)) >= to.columns) --log2_width;
    column_tiles = (to.columns + width() - 1) / width();
  }
  KOKKOS_INLINE_FUNCTION int width() const { return 1 << log2_width; }
  KOKKOS_INLINE_FUNCTION int height() const { return elements >> log2_width; }
  std::int64_t tiles() const { return (to.rows + height() - 1) / height() * column_tiles; }
  int scratch_bytes() const { return static_cast<int>(sizeof(Element)) * height() * (width() + 1); }

  struct Tile {
    std::int64_t row, column;
    int rows, columns;
  };
  KOKKOS_INLINE_FUNCTION Tile tile_of(std::int64_t t) const {
    Tile tile{t / column_tiles * height(), t % column_tiles * width(), 0, 0};
    tile.rows = static_cast<int>(to.rows - tile.row < height() ? to.rows - tile.row : height());
    tile.columns = static_cast<int>(to.columns - tile.column < width() ? to.columns - tile.column : width());
    return tile;
  }
  /// Row and column in a tile of its element n, consecutive along the side with the smaller stride.
  KOKKOS_INLINE_FUNCTION void place(int n, bool along_rows, int& i, int& j) const {
    i = along_rows ? n & (height() - 1) : n >> log2_width;
    j = along_rows ? n >> (10 - log2_width) : n & (width() - 1);
  }
  KOKKOS_INLINE_FUNCTION void load(const Tile& tile, Element* block, int n, bool along_rows) const {
    int i, j;
    place(n, along_rows, i, j);
    if (i >= tile.rows || j >= tile.columns) return;
    const bool there = tile.column + j < from.columns;
    block[i * (width() + 1) + j] = there ? *from.at(tile.row + i, tile.column + j) : Element(0.0f);
  }
  KOKKOS_INLINE_FUNCTION void store(const Tile& tile, const Element* block, int n, bool along_rows) const {
    int i, j;
    place(n, along_rows, i, j);
    if (i >= tile.rows || j >= tile.columns) return;
    put(block[i * (width() + 1) + j], to.at(tile.row + i, tile.column + j));
  }
  /// An element that stays what it is keeps its bits, those of a NaN too.
  KOKKOS_INLINE_FUNCTION void put(Element value, To* target) const {
    if constexpr (std::is_same_v<Element, To>) {
      if (beta == Sum(0)) {
        *target = value;
        return;
      }
    }
    store_scaled(target, Sum(1), widen<Sum>(value), beta);
  }
  /// Devices: one Kokkos team per tile.
  KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
    const Tile tile = tile_of(team.league_rank());
    const int bytes = static_cast<int>(sizeof(Element)) * height() * (width() + 1);
    Element* const fast = static_cast<Element*>(team.team_shmem().get_shmem(bytes));
    const bool from_rows = from.row_stride < from.column_stride, to_rows = to.row_stride < to.column_stride;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(elements)),
                         [&](const int n) { load(tile, fast, n, from_rows); });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(elements)),
                         [&](const int n) { store(tile, fast, n, to_rows); });
  }
  /// Hosts: one thread per tile. The tile of `to` stays in the first cache while columns or rows of `from` go by.
  void operator()(const std::int64_t t) const {
    const Tile tile = tile_of(t);
    const std::int64_t there = from.columns - tile.column;
    const int columns = there < tile.columns ? static_cast<int>(there > 0 ? there : 0) : tile.columns;
    const auto add = [&](int i, int j) {
      put(*from.at(tile.row + i, tile.column + j), to.at(tile.row + i, tile.column + j));
    };
    if (from.row_stride < from.column_stride) {
      for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < tile.rows; ++i) add(i, j);
      }
    } else {
      for (int i = 0; i < tile.rows; ++i) {
        for (int j = 0; j < columns; ++j) add(i, j);
      }
    }
    for (int j = columns; j < tile.columns; ++j) {
      for (int i = 0; i < tile.rows; ++i) *to.at(tile.row + i, tile.column + j) = To(0.0f);
    }
  }
};

/// Whether devices copy by RowCopies: from rows into rows of whole words that follow each other, as all copies are that
/// kernels of a backend read.
template <class From, class To, class Sum>
bool copies_rows(const Dense<From>& from, Sum beta, const Dense<To>& to) {
  return std::is_same_v<std::remove_const_t<From>, To> && beta == Sum(0) && from.column_stride == 1 && to.aligned() &&
         to.columns == to.row_stride && to.columns < std::int64_t{1} << 27;
}

/// to := from + beta to, element by element; to.columns >= from.columns. One launch.
template <class Sum, class Exec, class From, class To>
void copy_layout(const Exec& space, const char* label, const Dense<From>& from, Sum beta, const Dense<To>& to) {
  if (to.rows == 0 || to.columns == 0) return;
  const LayoutCopy<Exec, From, To, Sum> copy({from.data, from.rows, from.columns, from.row_stride, from.column_stride},
                                             to, beta);
  if constexpr (Compat::is_host_v<Exec>) {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, copy.tiles()),
                         copy);
  } else {
    if constexpr (std::is_same_v<std::remove_const_t<From>, To>) {
      if (copies_rows(from, beta, to)) {
        RowCopies<true, 1> rows;
        rows.add(DenseBatch<From>{from}, DenseBatch<To>{to}, 1);
        return rows.run(space, label);
      }
    }
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<Exec>(space, static_cast<int>(copy.tiles()), 256)
                             .set_scratch_size(0, Kokkos::PerTeam(copy.scratch_bytes())),
                         copy);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
