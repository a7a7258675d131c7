// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_BLOCKS_HPP
#define TESSERA_FORMATS_PACKED_PACKED_BLOCKS_HPP

#include <cstdint>

#include "formats/packed/Tessera_PackedOrder.hpp"

/// \file
/// Column blocks: a matrix whose long rows use all of x is multiplied column block by column block, so that the
/// x of one fits into shared memory. Nothing is sorted: columns ascend inside rows, so that a row's entries in a column
/// block are consecutive, and column blocks are a matter of the row map alone.

namespace Tessera {
namespace Impl {

/// Pairs of neighbouring columns that descend inside rows: all such pairs less those from one row to the next. By
/// entries and not by rows, of which one may hold most of the matrix; each Kokkos team takes a share, the last answers.
template <class Csr>
struct DescentFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  static constexpr std::int64_t share = 8192;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Columns columns;
  std::int64_t nnz, rows;
  std::int64_t* found;     // zero
  std::uint32_t* arrived;  // zero
  ReplyPlace<std::int64_t> reply;

  KOKKOS_INLINE_FUNCTION int teams() const { return static_cast<int>((nnz + rows + share - 1) / share); }
  KOKKOS_INLINE_FUNCTION std::int64_t descends(std::int64_t k) const { return k > 0 && columns(k - 1) > columns(k); }
  KOKKOS_INLINE_FUNCTION std::int64_t at(std::int64_t i) const {
    if (i < nnz) return descends(i);
    const auto row = i - nnz, begin = static_cast<std::int64_t>(row_map(row));
    return begin < static_cast<std::int64_t>(row_map(row + 1)) ? -descends(begin) : 0;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t first = team.league_rank() * share, left = nnz + rows - first;
    std::int64_t here = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, static_cast<int>(left < share ? left : share)),
        [&](const int i, std::int64_t& sum) { sum += at(first + i); }, here);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      if (here != 0) Kokkos::atomic_add(found, here);
    });
    if (!last_team(team, arrived, static_cast<std::uint32_t>(teams()))) return;
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      const std::int64_t all = *found;
      *found = 0;
      *arrived = 0;
      reply.send(all);
    });
  }
};

/// begin(block * rows + row): the row's first entry at or beyond the column block's first column, of the last block and
/// one more. Devices search for each; hosts go through each row once, whatever the number of column blocks.
template <class Csr>
struct RowMapFunctor : PackedTypesOf<Csr> {
  static constexpr bool by_rows = Compat::is_host_v<typename PackedTypesOf<Csr>::exec>;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Columns columns;
  typename PackedTypesOf<Csr>::template View<std::int64_t> begin;
  std::int64_t rows, block_columns;
  int blocks;

  std::int64_t items() const { return by_rows ? rows : rows * (blocks + 1); }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    if constexpr (by_rows) {
      go_through(i);
    } else {
      begin(i) = first_from(i % rows, i / rows * block_columns);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t first_from(std::int64_t row, std::int64_t column) const {
    std::int64_t low = static_cast<std::int64_t>(row_map(row)), high = static_cast<std::int64_t>(row_map(row + 1));
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (static_cast<std::int64_t>(columns(middle)) < column) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  KOKKOS_INLINE_FUNCTION void go_through(std::int64_t row) const {
    const auto end = static_cast<std::int64_t>(row_map(row + 1));
    auto at = static_cast<std::int64_t>(row_map(row));
    for (int block = 0; block <= blocks; ++block) {
      while (at < end && static_cast<std::int64_t>(columns(at)) < block * block_columns) ++at;
      begin(block * rows + row) = at;
    }
  }
};

/// Divides the thread blocks among the column blocks, by bytes; one thread does it all.
template <class Csr>
struct PackedShareFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  PackedShape shape;
  SortPlaces<typename Csr::memory_space> starts;
  View<PackedSlice> slices;
  View<PackedShare> shares;
  std::int64_t all_parts, units, cols, block_columns;

  KOKKOS_INLINE_FUNCTION std::int64_t packet(std::int64_t slice) const {
    return slice < static_cast<std::int64_t>(slices.extent(0)) ? std::int64_t{slices(slice).packet} : units;
  }
  KOKKOS_INLINE_FUNCTION PackedShare share_of(int block) const {
    const std::int64_t w = block * shape.sort_windows;
    const bool last = block + 1 == shape.blocks;
    PackedShare s{};
    s.column = static_cast<std::uint32_t>(block * block_columns);
    s.columns = static_cast<std::uint32_t>(last ? cols - block * block_columns : block_columns);
    s.part_first = starts.parts(w);
    s.part_last = last ? static_cast<std::uint32_t>(all_parts) : starts.parts(w + shape.sort_windows);
    s.first = static_cast<std::uint32_t>(all_parts + starts.slices(w));
    s.last = static_cast<std::uint32_t>(last ? slices.extent(0) : all_parts + starts.slices(w + shape.sort_windows));
    return s;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t) const {
    double work[packed_max_blocks];
    int count[packed_max_blocks];
    for (int b = 0; b < shape.blocks; ++b) {
      const PackedShare s = share_of(b);
      work[b] = static_cast<double>(packet(s.last) - packet(s.first) + packet(s.part_last) - packet(s.part_first));
      count[b] = 1;
    }
    // One more for the column block whose shares are largest, again and again.
    for (std::int64_t given = shape.blocks; given < static_cast<std::int64_t>(shares.extent(0)); ++given) {
      int most = 0;
      for (int b = 1; b < shape.blocks; ++b) {
        if (work[b] * count[most] > work[most] * count[b]) most = b;
      }
      ++count[most];
    }
    std::int64_t at = 0;
    for (int b = 0; b < shape.blocks; ++b) {
      PackedShare s = share_of(b);
      s.ranks = static_cast<std::uint32_t>(count[b]);
      for (s.rank = 0; s.rank < s.ranks; ++s.rank) shares(at++) = s;
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
