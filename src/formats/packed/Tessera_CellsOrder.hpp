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

/// What is known of each row of a row block, by its place: how many entries it has in each column block.
template <class Csr>
struct CellsRows : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  CellsShape shape;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Columns columns;
  View<std::uint32_t> row_groups;
  View<std::uint16_t> lengths;     // [column block][place of all]
  View<std::uint16_t> cut_first;   // [place of all]: the first of the row's further places
  View<std::uint32_t> cut_of;      // [row block][cut]: place, and which part << 16
  View<std::uint32_t> cut_places;  // [row block]: how many

  /// Entries that place v of a row block has in a column block.
  KOKKOS_INLINE_FUNCTION int length(int row_block, int block, int v) const {
    int before = 0, at = v;
    if (v >= shape.row_places()) {
      const std::uint32_t cut = cut_of(std::int64_t{row_block} * shape.cuts + v - shape.row_places());
      at = static_cast<int>(cut & 0xffffu);
      before = static_cast<int>(cut >> 16) * shape.max_steps;
    }
    const int all = lengths(block * shape.all_places() + std::int64_t{row_block} * shape.row_places() + at);
    const int left = all > before ? all - before : 0;
    return left < shape.max_steps ? left : shape.max_steps;
  }
};

/// 32 rows, for which a team of Kokkos is: their entries follow each other, so that its threads share them evenly.
template <class Csr>
struct CellsGroup : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  static constexpr int rows = CellsLayout::row_group, threads = 256, unrolled = 4;
  int level;  // of the scratch

  /// In scratch: where rows begin, and where column blocks begin in each row.
  struct Table {
    Scratch<std::uint32_t> words;
    int width;
    KOKKOS_INLINE_FUNCTION std::uint32_t& row(int r) const { return words(r); }
    KOKKOS_INLINE_FUNCTION std::uint32_t& block(int r, int b) const { return words(rows + 1 + r * width + b); }
    /// The row that entry i is of.
    KOKKOS_INLINE_FUNCTION int row_of(std::uint32_t i) const {
      int low = 0;
      for (int step = rows / 2; step > 0; step /= 2) {
        if (words(low + step) <= i) low += step;
      }
      return low;
    }
  };
  int words() const { return rows + 1 + rows * (this->shape.column_blocks + 2); }
  int scratch_bytes() const {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(words())));
  }
  KOKKOS_INLINE_FUNCTION int block_of(std::uint32_t column) const {
    return static_cast<int>(column / static_cast<std::uint32_t>(this->shape.block_columns));
  }

  /// The table of the team's rows. @param first  entry of theirs; @param count  how many. @return whether columns
  /// ascend
  KOKKOS_INLINE_FUNCTION Table make_table(const member& team, std::int64_t& first, std::int64_t& count,
                                          bool& ascend) const {
    const int width = this->shape.column_blocks + 2, blocks = this->shape.column_blocks;
    const Table table{Scratch<std::uint32_t>(team.team_scratch(level), rows + 1 + rows * width), width};
    const std::uint32_t group = this->row_groups(team.league_rank());
    const std::int64_t row = std::int64_t{group} * rows, all = this->shape.rows;
    const bool any = group != CellsLayout::none;
    first = any ? static_cast<std::int64_t>(this->row_map(row)) : 0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows + 1), [&](const int r) {
      const std::int64_t at = row + r < all ? row + r : all;
      table.row(r) = any ? static_cast<std::uint32_t>(static_cast<std::int64_t>(this->row_map(at)) - first) : 0;
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * width),
                         [&](const int i) { table.words(rows + 1 + i) = 0; });
    team.team_barrier();
    count = table.row(rows);
    each_entry(team, first, count, [&](std::uint32_t i, std::uint32_t column, std::uint32_t previous) {
      const int r = table.row_of(i);
      const std::uint32_t in_row = i - table.row(r), end = table.row(r + 1) - table.row(r);
      const int here = block_of(column), before = in_row > 0 ? block_of(previous) : -1;
      for (int b = before + 1; b <= here; ++b) table.block(r, b) = in_row;
      for (int b = here + 1; in_row + 1 == end && b <= blocks; ++b) table.block(r, b) = end;
      if (in_row > 0 && previous > column) ascend = false;
    });
    team.team_barrier();
    return table;
  }
  /// Calls f(i, column, column of the entry before) for all entries; a few loads are under way at once.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each_entry(const member& team, std::int64_t first, std::int64_t count, const F& f) const {
    const std::int64_t stride = team.team_size();
    for (std::int64_t i = team.team_rank(); i < count; i += unrolled * stride) {
      std::uint32_t column[unrolled], previous[unrolled];
      for (int u = 0; u < unrolled; ++u) {
        const std::int64_t at = i + u * stride < count ? i + u * stride : i;
        column[u] = static_cast<std::uint32_t>(this->columns(first + at));
        previous[u] = at > 0 ? static_cast<std::uint32_t>(this->columns(first + at - 1)) : 0;
      }
      for (int u = 0; u < unrolled; ++u) {
        if (i + u * stride < count) f(static_cast<std::uint32_t>(i + u * stride), column[u], previous[u]);
      }
    }
  }
};

/// How many entries 32 rows have in each column block.
template <class Csr>
struct CellsCountFunctor : CellsGroup<Csr> {
  using Base = CellsGroup<Csr>;
  using member = typename Base::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint16_t> parts;  // [place of all]: further parts of the longest piece
  View<CellsTotals> totals;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    constexpr int rows = Base::rows;
    const int blocks = this->shape.column_blocks;
    std::int64_t first = 0, count = 0;
    bool ascend = true;
    const auto table = this->make_table(team, first, count, ascend);
    if (!ascend) totals(0).descends = 1;
    const std::int64_t place = std::int64_t{team.league_rank()} * rows, all = this->shape.all_places();
    const auto length = [&](int r, int b) {
      const std::uint32_t from = table.block(r, b), to = table.block(r, b + 1);
      return to > from ? (to - from < 0xffffu ? to - from : 0xffffu) : 0u;
    };
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](const int r) {
      std::uint32_t most = 1;
      for (int b = 0; b < blocks; ++b) most = length(r, b) > most ? length(r, b) : most;
      if (most == 0xffffu) totals(0).too_many_cuts = 1;
      parts(place + r) = static_cast<std::uint16_t>((most - 1) / static_cast<std::uint32_t>(this->shape.max_steps));
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * blocks), [&](const int i) {
      this->lengths(i / rows * all + place + i % rows) = static_cast<std::uint16_t>(length(i % rows, i / rows));
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
  static constexpr int longest = CellsLayout::max_steps, unrolled = 4;
  View<std::uint16_t> position;  // [cell][place of the row block]; 0xffff: no piece
  View<std::uint32_t> runs, units, sizes, slice_at, counts, share_first;
  View<CellsTotals> totals;
  std::uint32_t* arrived;  // zero
  ReplyPlace<CellsTotals> reply;
  int value_bytes, lanes;

  static int words(int threads, int lanes) { return (longest + 1) * (threads / lanes) + 2 * (longest + 1); }
  static int scratch_bytes(int threads, int lanes) {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(words(threads, lanes))));
  }

  /// Calls f(v, length, whether there is such a place) for each place, and for as many more as make whole waves, whose
  /// lanes enter it together.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each_piece(const member& team, int block, int column_block, int count, const F& f) const {
    const int waves = team.team_size() / lanes, wave = team.team_rank() / lanes, lane = team.team_rank() % lanes;
    const int each = (count + waves * lanes - 1) / (waves * lanes) * lanes;
    const int end = (wave + 1) * each < count ? (wave + 1) * each : count;
    for (int v = wave * each + lane; v - lane < end; v += unrolled * lanes) {
      int length[unrolled];
      for (int u = 0; u < unrolled; ++u) {
        const int at = v + u * lanes;
        length[u] = at < end ? this->length(block, column_block, at) : 0;
      }
      for (int u = 0; u < unrolled; ++u) {
        if (v - lane + u * lanes < end) f(v + u * lanes, length[u], v + u * lanes < end);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t cell = team.league_rank();
    const int block = static_cast<int>(cell / this->shape.column_blocks);
    const int column_block = static_cast<int>(cell % this->shape.column_blocks);
    const int count = this->shape.row_places() + static_cast<int>(this->cut_places(block));
    const int waves = team.team_size() / lanes, wave = team.team_rank() / lanes;
    Scratch<std::uint32_t> scratch(team.team_scratch(0), (longest + 1) * waves + 2 * (longest + 1));
    std::uint32_t* const places = &scratch(0);  // [longest - length][wave]
    std::uint32_t* const first = places + (longest + 1) * waves;
    std::uint32_t* const unit = first + longest + 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (longest + 1) * waves), [&](const int i) { places[i] = 0; });
    team.team_barrier();
    each_piece(team, block, column_block, count,
               [&](int, int length, bool) { rank(places + (longest - length) * waves + wave, length); });
    team.team_barrier();
    add_up(team, places, longest * waves);
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&]() { describe(cell, places, waves, first, unit); });
    team.team_barrier();
    const int slices = static_cast<int>((counts(cell) + CellsLayout::pieces - 1) / CellsLayout::pieces);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slices), [&](const int s) {
      int length = longest;
      while (first[longest - length + 1] <= static_cast<std::uint32_t>(s)) --length;
      const std::uint32_t at = unit[longest - length] + (static_cast<std::uint32_t>(s) - first[longest - length]) *
                                                            CellsLayout::slice_units(length, value_bytes);
      slice_at(cell * this->shape.slices() + s) = at << 6 | static_cast<std::uint32_t>(length);
    });
    each_piece(team, block, column_block, count, [&](int v, int length, bool there) {
      const std::uint32_t at = rank(places + (longest - length) * waves + wave, length);
      if (there) {
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
  /// Runs of the cell; first[longest - l], unit[longest - l]: of those of length l.
  KOKKOS_INLINE_FUNCTION void describe(std::int64_t cell, const std::uint32_t* places, int waves, std::uint32_t* first,
                                       std::uint32_t* unit) const {
    constexpr std::uint32_t pieces = CellsLayout::pieces;
    std::uint32_t* const run = &runs(cell * CellsLayout::runs);
    std::uint32_t at = 0, slice = 0;
    std::int64_t steps = 0;
    int n = 0;
    for (int i = 0; i < longest; ++i) {
      first[i] = slice;
      unit[i] = at;
      const std::uint32_t end = (places[(i + 1) * waves] + pieces - 1) / pieces;
      if (end <= slice) continue;
      run[n++] = CellsLayout::run(end, longest - i);
      at += (end - slice) * CellsLayout::slice_units(longest - i, value_bytes);
      steps += std::int64_t{end - slice} * (longest - i);
      slice = end;
    }
    first[longest] = slice;
    run[n] = 0;
    sizes(cell) = at;
    counts(cell) = places[longest * waves];
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
