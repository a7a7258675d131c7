// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_CELLS_ORDER_HPP
#define TESSERA_FORMATS_PACKED_CELLS_ORDER_HPP

#include <cstdint>

#include "core/Tessera_Reply.hpp"
#include "core/Tessera_TeamRadixSort.hpp"
#include "formats/packed/Tessera_PackedCells.hpp"
#include "formats/packed/Tessera_PackedRenumber.hpp"

/// \file
/// First part of the conversion to cells: which rows a row block has, where pieces begin, and in which order they are.

namespace Tessera {
namespace Impl {

/// How heavy each group of 32 rows is; 64 is the mean.
template <class Csr>
struct CellsWeightFunctor : PackedTypesOf<Csr> {
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> weights;
  std::int64_t rows;
  double scale;  // 64 over the mean number of entries

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t g) const {
    const std::int64_t first = g * CellsLayout::row_group, end = first + CellsLayout::row_group;
    const auto entries = static_cast<std::int64_t>(row_map(end < rows ? end : rows) - row_map(first));
    const double weight = scale * static_cast<double>(entries) + 1;
    weights(g) = static_cast<std::uint32_t>(weight < 1e9 ? weight : 1e9);
  }
};

/// Deals the groups, the heaviest first, to the row blocks, forth and back.
template <class Csr>
struct CellsDealFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> weights, place, row_groups;
  View<ColumnUse> found;
  CellsShape shape;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t g) const {
    std::uint32_t at = place(g);
    for (int i = 0; i < ColumnUse::of(weights(g)); ++i) at += found(0).columns[i];
    const auto blocks = static_cast<std::uint32_t>(shape.row_blocks);
    const std::uint32_t round = at / blocks, turn = at % blocks;
    const std::uint32_t block = round % 2 == 0 ? turn : blocks - 1 - turn;
    row_groups(block * static_cast<std::uint32_t>(shape.groups) + round) = static_cast<std::uint32_t>(g);
  }
};

/// What is known of each row of a row block, by its place: the offset, in the row, at which each column block begins.
template <class Csr>
struct CellsRows : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  CellsShape shape;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Columns columns;
  View<std::uint32_t> row_groups;
  View<std::uint32_t> begin;          // [column block and the end][place of all]
  View<std::uint16_t> cut_first;      // [place of all]: the first of the row's further places
  View<std::uint32_t> cut_of;         // [row block][cut]: place, and which part << 16
  View<std::uint32_t> cut_places;     // [row block]: how many

  /// The row at a place; none: -1.
  KOKKOS_INLINE_FUNCTION std::int64_t row_at(std::int64_t place) const {
    const std::uint32_t group = row_groups(place / CellsLayout::row_group);
    const std::int64_t row = std::int64_t{group} * CellsLayout::row_group + place % CellsLayout::row_group;
    return group == CellsLayout::none || row >= shape.rows ? -1 : row;
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t begin_of(int block, std::int64_t place) const {
    return begin(block * shape.all_places() + place);
  }
  /// Entries that place v of a row block has in a column block.
  KOKKOS_INLINE_FUNCTION int length(int row_block, int block, int v) const {
    std::uint32_t part = 0, at = static_cast<std::uint32_t>(v);
    if (v >= shape.row_places()) {
      const std::uint32_t cut = cut_of(std::int64_t{row_block} * shape.cuts + v - shape.row_places());
      at = cut & 0xffffu;
      part = cut >> 16;
    }
    const std::int64_t place = std::int64_t{row_block} * shape.row_places() + at;
    const std::uint32_t first = begin_of(block, place), end = begin_of(block + 1, place);
    const std::uint32_t before = part * CellsLayout::max_steps, all = end > first ? end - first : 0;
    const std::uint32_t left = all > before ? all - before : 0;
    return static_cast<int>(left < CellsLayout::max_steps ? left : CellsLayout::max_steps);
  }
};

/// Where column blocks begin in 32 rows, for which a team of Kokkos has a table.
template <class Csr>
struct CellsCountFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  static constexpr int rows = CellsLayout::row_group;
  View<std::uint16_t> parts;     // [place of all]: further parts of the longest piece
  View<CellsTotals> totals;
  int level;  // of the scratch

  int stride() const { return this->shape.column_blocks + 2; }
  int scratch_bytes() const {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(rows * stride())));
  }
  KOKKOS_INLINE_FUNCTION int block_of(std::int64_t k) const {
    return static_cast<int>(static_cast<std::uint32_t>(this->columns(k)) /
                            static_cast<std::uint32_t>(this->shape.block_columns));
  }
  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int blocks = this->shape.column_blocks, width = blocks + 2;
    Scratch<std::uint32_t> table(team.team_scratch(level), rows * width);
    const std::int64_t first = std::int64_t{team.league_rank()} * rows;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows * width), [&](const int i) { table(i) = 0; });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](const int r) {
      const std::int64_t row = this->row_at(first + r);
      if (row < 0) return;
      const auto base = static_cast<std::int64_t>(this->row_map(row));
      const auto count = static_cast<int>(this->row_map(row + 1) - this->row_map(row));
      std::uint32_t* const mine = &table(r * width);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](const int i) {
        const int here = block_of(base + i), before = i > 0 ? block_of(base + i - 1) : -1;
        for (int b = before + 1; b <= here; ++b) mine[b] = static_cast<std::uint32_t>(i);
        if (i + 1 == count) {
          for (int b = here + 1; b <= blocks; ++b) mine[b] = static_cast<std::uint32_t>(count);
        }
        if (i > 0 && this->columns(base + i - 1) > this->columns(base + i)) totals(0).descends = 1;
      });
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](const int r) {
      std::uint32_t most = 1;
      for (int b = 0; b < blocks; ++b) {
        const std::uint32_t from = table(r * width + b), to = table(r * width + b + 1);
        if (to > from + most) most = to - from;
      }
      const std::uint32_t more = (most - 1) / CellsLayout::max_steps;
      parts(first + r) = static_cast<std::uint16_t>(more < 0xffffu ? more : 0xffffu);
    });
    const std::int64_t all = this->shape.all_places();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows * (blocks + 1)), [&](const int i) {
      this->begin(i / rows * all + first + i % rows) = table(i % rows * width + i / rows);
    });
  }
};

/// Further places for rows with pieces above max_steps; a team of Kokkos per row block.
template <class Csr>
struct CellsCutFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint16_t> parts;
  View<CellsCut> cuts;
  View<std::uint32_t> cut_counts;
  View<CellsTotals> totals;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int places = this->shape.row_places(), room = this->shape.cuts, threads = team.team_size();
    const int each = (places + threads - 1) / threads, from = each * team.team_rank();
    const int to = from + each < places ? from + each : places;
    const std::int64_t block = team.league_rank(), first = block * places;
    std::int64_t found = 0;  // further places, and rows that have some << 32
    for (int i = from; i < to; ++i) {
      const std::int64_t more = parts(first + i);
      found += more + (more > 0 ? std::int64_t{1} << 32 : 0);
    }
    const std::int64_t before = team.team_scan(found);
    const auto sum = static_cast<std::int64_t>((before + found) & 0xffffffff);
    if (sum > room) totals(0).too_many_cuts = 1;
    if (team.team_rank() + 1 == threads) {
      this->cut_places(block) = static_cast<std::uint32_t>(sum < room ? sum : room);
      cut_counts(block) = static_cast<std::uint32_t>((before + found) >> 32);
      if (sum > room) cut_counts(block) = 0;
    }
    auto at = static_cast<std::int64_t>(before & 0xffffffff), row = before >> 32;
    for (int i = from; i < to; ++i) {
      const std::uint32_t more = parts(first + i);
      this->cut_first(first + i) = static_cast<std::uint16_t>(places + at < 0xffff ? places + at : 0xffff);
      for (std::uint32_t part = 1; part <= more && at + part <= room; ++part) {
        this->cut_of(block * room + at + part - 1) = static_cast<std::uint32_t>(i) | part << 16;
      }
      if (more > 0 && row < room) {
        cuts(block * room + row) = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(places + at), more};
      }
      at += more;
      row += more > 0;
    }
  }
};

/// Sorts the pieces of a cell by length, the longest first, stable: a team of Kokkos counts them by length and by wave,
/// of which each has consecutive places. The last team says where cells lie, and shares them out.
template <class Csr>
struct CellsSortFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  static constexpr int lengths = CellsLayout::max_steps;
  View<std::uint16_t> position;  // [cell][place of the row block]; 0xffff: no piece
  View<std::uint32_t> runs, units, sizes, slice_at, counts, share_first;
  View<CellsTotals> totals;
  std::uint32_t* arrived;  // zero
  ReplyPlace<CellsTotals> reply;
  int value_bytes, lanes;

  static int words(int threads, int lanes) { return (lengths + 1) * (threads / lanes) + 2 * (lengths + 1); }
  static int scratch_bytes(int threads, int lanes) {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(words(threads, lanes))));
  }

  /// Calls f(v, length) for each place, and for as many more as make whole waves, whose lanes enter it together.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each_piece(const member& team, int block, int column_block, int count,
                                         const F& f) const {
    const int waves = team.team_size() / lanes, wave = team.team_rank() / lanes, lane = team.team_rank() % lanes;
    const int each = (count + waves * lanes - 1) / (waves * lanes) * lanes;
    const int end = (wave + 1) * each < count ? (wave + 1) * each : count;
    for (int v = wave * each + lane; v - lane < end; v += lanes) {
      f(v, v < end ? this->length(block, column_block, v) : 0);
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t cell = team.league_rank();
    const int block = static_cast<int>(cell / this->shape.column_blocks);
    const int column_block = static_cast<int>(cell % this->shape.column_blocks);
    const int count = this->shape.row_places() + static_cast<int>(this->cut_places(block));
    const int waves = team.team_size() / lanes, wave = team.team_rank() / lanes;
    Scratch<std::uint32_t> scratch(team.team_scratch(0), (lengths + 1) * waves + 2 * (lengths + 1));
    std::uint32_t* const places = &scratch(0);  // [lengths - length][wave]
    std::uint32_t* const first = places + (lengths + 1) * waves;
    std::uint32_t* const unit = first + lengths + 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (lengths + 1) * waves), [&](const int i) { places[i] = 0; });
    team.team_barrier();
    each_piece(team, block, column_block, count, [&](int, int length) {
      rank(places + (lengths - length) * waves + wave, length);
    });
    team.team_barrier();
    add_up(team, places, lengths * waves);
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&]() { describe(cell, places, waves, first, unit); });
    team.team_barrier();
    const int slices = static_cast<int>((counts(cell) + CellsLayout::pieces - 1) / CellsLayout::pieces);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slices), [&](const int s) {
      int length = lengths;
      while (first[lengths - length + 1] <= static_cast<std::uint32_t>(s)) --length;
      const std::uint32_t at = unit[lengths - length] + (static_cast<std::uint32_t>(s) - first[lengths - length]) *
                                                            CellsLayout::slice_units(length, value_bytes);
      slice_at(cell * this->shape.slices() + s) = at << 6 | static_cast<std::uint32_t>(length);
    });
    each_piece(team, block, column_block, count, [&](int v, int length) {
      const std::uint32_t at = rank(places + (lengths - length) * waves + wave, length);
      if (v < count) {
        position(cell * this->shape.places() + v) = static_cast<std::uint16_t>(length > 0 ? at : 0xffffu);
      }
    });
    if (!last_team(team, arrived, static_cast<std::uint32_t>(this->shape.cells()))) return;
    place_cells(team);
  }

 private:
  /// Takes a number from *counter, in the order of the lanes.
  KOKKOS_INLINE_FUNCTION static std::uint32_t rank(std::uint32_t* counter, int length) {
#if defined(__CUDA_ARCH__)
    const unsigned same = __match_any_sync(~0u, length), before = same & ((1u << (threadIdx.y & 31)) - 1);
    const std::uint32_t base = *counter;
    __syncwarp();
    if (before == 0) *counter = base + static_cast<std::uint32_t>(__popc(same));
    __syncwarp();
    return base + static_cast<std::uint32_t>(__popc(before));
#else
    (void)length;
    return Kokkos::atomic_fetch_add(counter, 1u);
#endif
  }
  /// Exclusive prefix sums of n words, and behind them the sum.
  template <class Word>
  KOKKOS_INLINE_FUNCTION static void add_up(const member& team, Word* words, int n) {
    const int threads = team.team_size(), each = (n + threads - 1) / threads, from = each * team.team_rank();
    const int to = from + each < n ? from + each : n;
    std::int64_t sum = 0;
    for (int i = from; i < to; ++i) sum += words[i];
    std::int64_t before = team.team_scan(sum);
    for (int i = from; i < to; ++i) {
      const Word here = words[i];
      words[i] = static_cast<Word>(before);
      before += here;
    }
    if (team.team_rank() + 1 == threads) words[n] = static_cast<Word>(before);
  }
  /// Runs of the cell; first[lengths - l], unit[lengths - l]: of those of length l.
  KOKKOS_INLINE_FUNCTION void describe(std::int64_t cell, const std::uint32_t* places, int waves, std::uint32_t* first,
                                       std::uint32_t* unit) const {
    constexpr std::uint32_t pieces = CellsLayout::pieces;
    std::uint32_t* const run = &runs(cell * CellsLayout::runs);
    std::uint32_t at = 0, slice = 0;
    std::int64_t steps = 0;
    int n = 0;
    for (int i = 0; i < lengths; ++i) {
      first[i] = slice;
      unit[i] = at;
      const std::uint32_t end = (places[(i + 1) * waves] + pieces - 1) / pieces;
      if (end <= slice) continue;
      run[n++] = CellsLayout::run(end, lengths - i);
      at += (end - slice) * CellsLayout::slice_units(lengths - i, value_bytes);
      steps += std::int64_t{end - slice} * (lengths - i);
      slice = end;
    }
    first[lengths] = slice;
    run[n] = 0;
    sizes(cell) = at;
    counts(cell) = places[lengths * waves];
    Kokkos::atomic_add(&totals(0).slices, std::int64_t{slice});
    Kokkos::atomic_add(&totals(0).steps, steps);
    Kokkos::atomic_add(&totals(0).pieces, static_cast<std::int64_t>(counts(cell)));
  }
  KOKKOS_INLINE_FUNCTION void place_cells(const member& team) const {
    const int threads = team.team_size();
    const std::int64_t cells = this->shape.cells(), each = (cells + threads - 1) / threads;
    const std::int64_t from = each * team.team_rank(), to = from + each < cells ? from + each : cells;
    std::int64_t sum = 0;
    for (std::int64_t i = from; i < to; ++i) sum += sizes(i);
    const std::int64_t mine = sum;
    std::int64_t before = team.team_scan(sum);
    const std::int64_t end = before + mine;
    for (std::int64_t i = from; i < to; ++i) {
      units(i) = static_cast<std::uint32_t>(before);
      before += sizes(i);
    }
    const View<std::uint32_t>& weights = counts;  // of column blocks, behind those of cells
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, this->shape.column_blocks), [&](const int b) {
      std::uint32_t weight = 0;
      for (int r = 0; r < this->shape.row_blocks; ++r) {
        weight += sizes(std::int64_t{r} * this->shape.column_blocks + b) / 16 + 64;
      }
      weights(cells + b) = weight;
    });
    team.team_barrier();
    if (team.team_rank() + 1 != threads) return;
    share_out(cells);
    CellsTotals all = totals(0);
    all.units = end;
    reply.send(all);
  }
  /// Consecutive column blocks of about the same weight, none without one, none with more than most_cells.
  KOKKOS_INLINE_FUNCTION void share_out(std::int64_t cells) const {
    const int blocks = this->shape.column_blocks, shares = this->shape.shares, most = this->shape.most_cells;
    double left = 0, share = 0;
    for (int b = 0; b < blocks; ++b) left += counts(cells + b);
    share_first(0) = 0;
    for (int b = 0, s = 0, first = 0; b < blocks; ++b) {
      const double weight = counts(cells + b);
      const int later = shares - s - 1;
      const bool enough = share + weight / 2 > left / (later + 1) || b - first >= most;
      const bool must = blocks - b <= later, fits = blocks - b <= later * most;
      if (b > first && later > 0 && fits && (enough || must)) {
        share_first(++s) = static_cast<std::uint32_t>(b);
        first = b;
        left -= share;
        share = 0;
      }
      share += weight;
    }
    share_first(shares) = static_cast<std::uint32_t>(blocks);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
