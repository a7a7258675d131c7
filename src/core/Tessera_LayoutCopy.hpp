// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_LAYOUT_COPY_HPP
#define TESSERA_CORE_LAYOUT_COPY_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Accumulator.hpp"
#include "core/Tessera_DenseOperand.hpp"

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

/// The same on devices where rows of both are contiguous: a thread per run of sixteen bytes of a row of `to`, all of
/// whose elements are asked for before the first is written. With an element per thread, too few bytes are under way.
template <class Exec, class From, class To, class Sum>
struct RowsToRows {
  using Copy = LayoutCopy<Exec, From, To, Sum>;
  using Element = typename Copy::Element;
  static constexpr int run = 16 / static_cast<int>(sizeof(To));
  struct alignas(16) Word {
    std::uint32_t w[4];
  };
  Copy copy;
  std::int64_t runs_per_row = 1;
  bool words = false;  ///< a run of `to` is written at once

  explicit RowsToRows(const Copy& c)
      : copy(c),
        runs_per_row((c.to.columns + run - 1) / run),
        words(std::is_same_v<Element, To> && c.beta == Sum(0) && c.to.aligned()) {}
  std::int64_t runs() const { return copy.to.rows * runs_per_row; }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
    const bool few = n < (std::int64_t{1} << 32) && runs_per_row < (std::int64_t{1} << 32);  // a short division
    const std::int64_t row =
        few ? static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(runs_per_row) : n / runs_per_row;
    const std::int64_t column = (n - row * runs_per_row) * run;
    const std::int64_t there = copy.from.columns - column, wanted = copy.to.columns - column;
    const auto* const from = copy.from.at(row, column);
    To* const to = copy.to.at(row, column);
    Element e[run];
    for (int u = 0; u < run; ++u) e[u] = Element(0.0f);
    if (there > 0) {  // what is not there is the last element read again: no branch between the loads
      const int last = there < run ? static_cast<int>(there) - 1 : run - 1;
      for (int u = 0; u < run; ++u) e[u] = from[u < last ? u : last];
      for (int u = 0; u < run; ++u) e[u] = u <= last ? e[u] : Element(0.0f);
    }
    if constexpr (std::is_same_v<Element, To>) {
      if (words && wanted >= run) {
        Word word;
        __builtin_memcpy(&word, e, sizeof(word));
        *reinterpret_cast<Word*>(to) = word;
        return;
      }
    }
    for (int u = 0; u < run; ++u) {
      if (u < wanted) copy.put(e[u], to + u);
    }
  }
};

/// to := from + beta to, element by element; to.columns >= from.columns. One launch.
template <class Sum, class Exec, class From, class To>
void copy_layout(const Exec& space, const char* label, const Dense<From>& from, Sum beta, const Dense<To>& to) {
  if (to.rows == 0 || to.columns == 0) return;
  const LayoutCopy<Exec, From, To, Sum> copy({from.data, from.rows, from.columns, from.row_stride, from.column_stride},
                                             to, beta);
  if constexpr (Compat::is_host_v<Exec>) {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, copy.tiles()),
                         copy);
  } else if (from.column_stride == 1 && to.column_stride == 1) {
    const RowsToRows<Exec, From, To, Sum> rows(copy);
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, rows.runs()),
                         rows);
  } else {
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<Exec>(space, static_cast<int>(copy.tiles()), 256)
                             .set_scratch_size(0, Kokkos::PerTeam(copy.scratch_bytes())),
                         copy);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
