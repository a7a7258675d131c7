// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_CELLS_ORDER_HPP
#define TESSERA_FORMATS_PACKED_CELLS_ORDER_HPP

#include <cstdint>
#include <cstring>

#include "core/Tessera_Reply.hpp"
#include "core/Tessera_TeamRadixSort.hpp"
#include "formats/packed/Tessera_CellsSlots.hpp"
#include "formats/packed/Tessera_PackedCells.hpp"
#include "formats/packed/Tessera_PackedHubs.hpp"

/// \file
/// First part of the conversion to cells: which rows a row block has, where pieces begin, and in which order they are.

namespace Tessera {
namespace Impl {

/// How heavy each group of 32 rows is; 64 is the mean. Work units of very heavy ones.
template <class Csr>
struct CellsWeightFunctor : PackedTypesOf<Csr> {
  typename Csr::row_map_type row_map;
  CellsHeavy<typename Csr::memory_space> heavy;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> weights;
  std::int64_t rows;
  double scale;  // 64 over the mean number of entries

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t g) const {
    const std::int64_t first = g * CellsLayout::row_group, end = first + CellsLayout::row_group;
    const auto entries = static_cast<std::int64_t>(row_map(end < rows ? end : rows) - row_map(first));
    const double weight = scale * static_cast<double>(entries) + 1;
    weights(g) = static_cast<std::uint32_t>(weight < 1e9 ? weight : 1e9);
    if (heavy.has(entries)) heavy.add(g, entries);
  }
};

/// Stable counting sort of a team's places by a key: each wave has consecutive places, and a counter per key.
template <class Member>
struct CellsWaves {
  static constexpr int unrolled = 4;
  const Member& team;
  int lanes, waves, wave, lane;

  KOKKOS_INLINE_FUNCTION CellsWaves(const Member& t, int lanes_of_wave)
      : team(t),
        lanes(lanes_of_wave),
        waves(t.team_size() / lanes_of_wave),
        wave(t.team_rank() / lanes_of_wave),
        lane(t.team_rank() % lanes_of_wave) {}

  /// Calls f(v, key(v), whether there is such a place) for each place, and for as many more as make whole waves, whose
  /// lanes enter it together. @param last  key of those: the last, so that they are behind all places
  template <class Key, class F>
  KOKKOS_INLINE_FUNCTION void each(int count, int last, const Key& key, const F& f) const {
    const int share = (count + waves * lanes - 1) / (waves * lanes) * lanes;
    const int end = (wave + 1) * share < count ? (wave + 1) * share : count;
    for (int v = wave * share + lane; v - lane < end; v += unrolled * lanes) {
      int here[unrolled];
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        const int at = v + u * lanes;
        here[u] = at < end ? key(at) : last;
      }
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        if (v - lane + u * lanes < end) f(v + u * lanes, here[u], v + u * lanes < end);
      }
    }
  }
  /// Takes a number from *counter, in the order of the lanes that have the same key.
  KOKKOS_INLINE_FUNCTION static std::uint32_t rank(std::uint32_t* counter, int key) {
#if defined(__CUDA_ARCH__)
    const unsigned same = __match_any_sync(~0u, key), before = same & ((1u << (threadIdx.y & 31)) - 1);
    const std::uint32_t base = *counter;
    __syncwarp();
    if (before == 0) *counter = base + static_cast<std::uint32_t>(__popc(same));
    __syncwarp();
    return base + static_cast<std::uint32_t>(__popc(before));
#else
    (void)key;
    return Kokkos::atomic_fetch_add(counter, 1u);
#endif
  }
  /// Exclusive prefix sums of n words, and behind them the sum.
  KOKKOS_INLINE_FUNCTION void add_up(std::uint32_t* words, int n) const {
    const int threads = team.team_size(), share = (n + threads - 1) / threads, from = share * team.team_rank();
    const int to = from + share < n ? from + share : n;
    std::int64_t sum = 0;
    for (int i = from; i < to; ++i) sum += words[i];
    std::int64_t before = team.team_scan(sum);
    for (int i = from; i < to; ++i) {
      const std::uint32_t here = words[i];
      words[i] = static_cast<std::uint32_t>(before);
      before += here;
    }
    if (team.team_rank() + 1 == threads) words[n] = static_cast<std::uint32_t>(before);
  }
};

/// Deals the groups, the heaviest first, to the row blocks, forth and back. One team of Kokkos.
template <class Csr>
struct CellsDealFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<std::uint32_t>;
  View<std::uint32_t> weights, row_groups;
  CellsShape shape;
  int lanes;

  static int words(int threads, int lanes) { return ColumnUse::classes * (threads / lanes) + 1; }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const CellsWaves<member> waves(team, lanes);
    const int classes = ColumnUse::classes, all = classes * waves.waves, groups = static_cast<int>(weights.extent(0));
    Scratch counters(team.team_scratch(0), static_cast<std::size_t>(all + 1));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, all), [&](const int i) { counters(i) = 0; });
    team.team_barrier();
    const auto key = [&](int g) { return ColumnUse::of(weights(g)); };
    const auto counter = [&](int kind) { return &counters(kind * waves.waves + waves.wave); };
    waves.each(groups, classes - 1, key, [&](int, int kind, bool) { waves.rank(counter(kind), kind); });
    team.team_barrier();
    waves.add_up(&counters(0), all);
    team.team_barrier();
    const auto blocks = static_cast<std::uint32_t>(shape.row_blocks);
    waves.each(groups, classes - 1, key, [&](int g, int kind, bool there) {
      const std::uint32_t at = waves.rank(counter(kind), kind), round = at / blocks, turn = at % blocks;
      const std::uint32_t block = round % 2 == 0 ? turn : blocks - 1 - turn;
      if (there) row_groups(block * static_cast<std::uint32_t>(shape.groups) + round) = static_cast<std::uint32_t>(g);
    });
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

  /// The pieces of a cell.
  struct Cell {
    const std::uint16_t* lengths;  // of rows
    const std::uint32_t* cuts;
    int rows;
    /// Entries of place v.
    KOKKOS_INLINE_FUNCTION int length(int v) const {
      int before = 0;
      if (v >= rows) {
        const std::uint32_t cut = cuts[v - rows];
        v = static_cast<int>(cut & 0xffffu);
        before = static_cast<int>(cut >> 16) * CellsLayout::longest;
      }
      const int left = static_cast<int>(lengths[v]) - before;
      return left < 0 ? 0 : left < CellsLayout::longest ? left : CellsLayout::longest;
    }
  };
  KOKKOS_INLINE_FUNCTION Cell cell(std::int64_t row_block, std::int64_t block) const {
    return {lengths.data() + block * shape.all_places() + row_block * shape.row_places(),
            cut_of.data() + row_block * shape.cuts, shape.row_places()};
  }
};

/// How many entries 32 rows have in each column block. Their entries follow each other, so that the threads of a team
/// of Kokkos share them evenly. Of heavy ones column blocks are searched for, and other teams see whether columns
/// ascend.
template <class Csr>
struct CellsCountFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  static constexpr int rows = CellsLayout::row_group, unrolled = 4;
  View<std::uint16_t> parts;  // [place of all]: further parts of the longest piece
  View<std::int64_t> firsts;
  View<std::uint32_t> offsets;  // see CellsPieces
  View<CellsTotals> totals;
  CellsHeavy<typename Csr::memory_space> heavy;
  CellsDivider block_of;
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
    KOKKOS_INLINE_FUNCTION std::uint32_t length(int r, int b) const {
      const std::uint32_t from = block(r, b), to = block(r, b + 1);
      return to > from ? (to - from < 0xffffu ? to - from : 0xffffu) : 0u;
    }
  };
  /// Of a row's words; odd, so that rows lie in different banks.
  KOKKOS_INLINE_FUNCTION int width() const { return (this->shape.column_blocks + 1) | 1; }
  int scratch_bytes() const {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(rows + 1 + rows * width())));
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int rank = team.league_rank() - heavy.teams;
    if (rank >= 0) return count(team, rank);
    heavy.each(team.league_rank(), [&](std::int64_t g, std::int64_t first) { look_at_order(team, g, first); });
  }

  /// @param at  place of the group
  KOKKOS_INLINE_FUNCTION void count(const member& team, std::int64_t at) const {
    const int blocks = this->shape.column_blocks;
    const Table table{Scratch<std::uint32_t>(team.team_scratch(level), rows + 1 + rows * width()), width()};
    const std::uint32_t group = this->row_groups(at);
    const bool any = group != CellsLayout::none;
    const std::int64_t row = std::int64_t{group} * rows, all = this->shape.rows;
    const std::int64_t first = any ? static_cast<std::int64_t>(this->row_map(row)) : 0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows + 1), [&](const int r) {
      const std::int64_t here = row + r < all ? row + r : all, next = here < all ? here + 1 : all;
      const std::int64_t begin = any ? static_cast<std::int64_t>(this->row_map(here)) - first : 0;
      const std::int64_t end = any ? static_cast<std::int64_t>(this->row_map(next)) - first : 0;
      table.row(r) = static_cast<std::uint32_t>(begin);
      offsets(at * (rows + 1) + r) = static_cast<std::uint32_t>(begin);
      for (int b = 0; r < rows && begin == end && b <= blocks; ++b) table.block(r, b) = 0;
    });
    team.team_barrier();
    if (team.team_rank() == 0) firsts(at) = first;
    if (heavy.has(table.row(rows))) {
      if (team.team_rank() == 0) heavy.place_of(group) = static_cast<std::uint32_t>(at);
      search_blocks(team, table, first);
    } else {
      find_blocks(team, table, first, table.row(rows));
    }
    team.team_barrier();
    const std::int64_t place = at * rows, places = this->shape.all_places();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](const int r) {
      std::uint32_t most = 1;
      for (int b = 0; b < blocks; ++b) most = table.length(r, b) > most ? table.length(r, b) : most;
      if (most == 0xffffu) totals(0).no_room = 1;
      parts(place + r) = static_cast<std::uint16_t>((most - 1) / std::uint32_t{CellsLayout::longest});
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * blocks), [&](const int i) {
      this->lengths(i / rows * places + place + i % rows) =
          static_cast<std::uint16_t>(table.length(i % rows, i / rows));
    });
  }

  /// Fills in the table by a search for each column block of each row; columns may descend, and it is of no use then.
  KOKKOS_INLINE_FUNCTION void search_blocks(const member& team, const Table& table, std::int64_t first) const {
    const int blocks = this->shape.column_blocks;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * (blocks + 1)), [&](const int i) {
      const int r = i % rows, b = i / rows;
      const std::int64_t row = first + table.row(r), from = b * this->shape.block_columns;
      std::uint32_t low = 0, high = b < blocks ? table.row(r + 1) - table.row(r) : 0;
      if (b == blocks) low = table.row(r + 1) - table.row(r);
      while (low < high) {
        const std::uint32_t middle = (low + high) / 2;
        if (static_cast<std::int64_t>(this->columns(row + middle)) < from) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      table.block(r, b) = low;
    });
  }
  /// Whether columns ascend in a work unit of a heavy group.
  KOKKOS_INLINE_FUNCTION void look_at_order(const member& team, std::int64_t group, std::int64_t from) const {
    const std::int64_t row = group * rows, all = this->shape.rows, end = row + rows < all ? row + rows : all;
    const auto first = static_cast<std::int64_t>(this->row_map(row));
    const std::int64_t last = static_cast<std::int64_t>(this->row_map(end)), to = first + from + heavy.entries;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, first + (from > 0 ? from : 1), to < last ? to : last),
                         [&](const std::int64_t i) {
                           if (this->columns(i - 1) <= this->columns(i)) return;
                           std::int64_t r = row;  // the last that begins at or before i
                           for (int step = rows / 2; step > 0; step /= 2) {
                             if (r + step < end && static_cast<std::int64_t>(this->row_map(r + step)) <= i) r += step;
                           }
                           if (static_cast<std::int64_t>(this->row_map(r)) != i) totals(0).descends = 1;
                         });
  }

  /// Fills in the table where rows have entries; a few loads are under way at once.
  KOKKOS_INLINE_FUNCTION void find_blocks(const member& team, const Table& table, std::int64_t first,
                                          std::int64_t count) const {
    const std::int64_t stride = team.team_size();
    bool ascend = true;
    for (std::int64_t i = team.team_rank(); i < count; i += unrolled * stride) {
      std::uint32_t column[unrolled], previous[unrolled];
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        const std::int64_t at = i + u * stride < count ? i + u * stride : i;
        column[u] = static_cast<std::uint32_t>(this->columns(first + at));
        previous[u] = at > 0 ? static_cast<std::uint32_t>(this->columns(first + at - 1)) : 0;
      }
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        if (i + u * stride >= count) continue;
        const auto at = static_cast<std::uint32_t>(i + u * stride);
        const int r = table.row_of(at), here = block_of(column[u]);
        const std::uint32_t in_row = at - table.row(r);
        const int before = in_row > 0 ? block_of(previous[u]) : -1;
        for (int b = before + 1; b <= here; ++b) table.block(r, b) = in_row;
        if (at + 1 == table.row(r + 1)) {
          for (int b = here + 1; b <= this->shape.column_blocks; ++b) table.block(r, b) = in_row + 1;
        }
        if (in_row > 0 && previous[u] > column[u]) ascend = false;
      }
    }
    if (!ascend) totals(0).descends = 1;
  }
};

/// Four numbers of 16 bits, which lie at a multiple of 8 bytes. (Hosts' compilers take it for one load, too.)
KOKKOS_INLINE_FUNCTION std::uint64_t four_numbers(const std::uint16_t* from) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return *reinterpret_cast<const std::uint64_t*>(from);
#else
  std::uint64_t four;
  std::memcpy(&four, from, sizeof(four));
  return four;
#endif
}

/// Further places for rows with pieces above the longest; a team of Kokkos per row block.
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
    constexpr int word = 4;  // places of a word; groups of rows are words
    const int each = (places / word + threads - 1) / threads * word, from = each * team.team_rank();
    const int to = from + each < places ? from + each : places;
    const std::int64_t block = team.league_rank(), first = block * places;
    std::int64_t found = 0;  // further places, and rows that have some << 32
    for (int i = from; i < to; i += word) {
      for (std::uint64_t four = four_numbers(parts.data() + first + i); four != 0; four >>= 16) {
        const auto more = static_cast<std::int64_t>(four & 0xffffu);
        found += more + (more > 0 ? std::int64_t{1} << 32 : 0);
      }
    }
    const std::int64_t before = team.team_scan(found);
    const auto sum = static_cast<std::int64_t>((before + found) & 0xffffffff);
    if (sum > room) totals(0).no_room = 1;
    if (team.team_rank() + 1 == threads) {
      this->cut_places(block) = static_cast<std::uint32_t>(sum < room ? sum : room);
      cut_counts(block) = static_cast<std::uint32_t>((before + found) >> 32);
      if (sum > room) cut_counts(block) = 0;
    }
    auto at = static_cast<std::int64_t>(before & 0xffffffff), row = before >> 32;
    if (found == 0) return;
    for (int i = from; i < to; ++i) {
      const std::uint32_t more = parts(first + i);
      if (more == 0) continue;
      this->cut_first(first + i) = static_cast<std::uint16_t>(places + at < 0xffff ? places + at : 0xffff);
      for (std::uint32_t part = 1; part <= more && at + part <= room; ++part) {
        this->cut_of(block * room + at + part - 1) = static_cast<std::uint32_t>(i) | part << 16;
      }
      if (row < room) {
        cuts(block * room + row) = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(places + at), more};
      }
      at += more;
      ++row;
    }
  }
};

/// Sorts the pieces of a cell by slots and length, stable: a team of Kokkos counts them by key and by wave, of which
/// each has consecutive places. The last team says where cells lie, and shares them out.
template <class Csr>
struct CellsSortFunctor : CellsRows<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  static constexpr int keys = CellsLayout::keys, widths = CellsLayout::widths;
  View<std::uint16_t> position;  // [cell][place of the row block]: among pieces of as many slots; 0xffff: no piece
  View<CellsRun> runs;
  View<std::uint32_t> units, sizes, share_first;
  View<std::uint32_t> first_slice, counts;  // [cell][log2 of slots]: place in slice_at, and how many pieces
  View<std::uint32_t> slice_at;             // units from the cell's first << 5, and steps
  View<CellsTotals> totals;
  std::uint32_t* arrived;  // zero, as is the next: places taken of slice_at
  ReplyPlace<CellsTotals> reply;
  int value_bytes, lanes;

  KOKKOS_INLINE_FUNCTION int words(int waves) const {
    const int all = (keys + 1) * waves + 2 * keys + 2 * widths + 1;
    return all > this->shape.column_blocks ? all : this->shape.column_blocks;
  }
  int scratch_bytes(int threads) const {
    return static_cast<int>(Scratch<std::uint32_t>::shmem_size(static_cast<std::size_t>(words(threads / lanes))));
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t cell = team.league_rank();
    const int block = static_cast<int>(cell / this->shape.column_blocks);
    const int column_block = static_cast<int>(cell % this->shape.column_blocks);
    const int count = this->shape.row_places() + static_cast<int>(this->cut_places(block));
    const CellsWaves<member> waves(team, lanes);
    Scratch<std::uint32_t> scratch(team.team_scratch(0), static_cast<std::size_t>(words(waves.waves)));
    const Ranks ranks(&scratch(0), waves.waves);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (keys + 1) * waves.waves),
                         [&](const int i) { ranks.places[i] = 0; });
    team.team_barrier();
    const typename CellsRows<Csr>::Cell rows = CellsRows<Csr>::cell(block, column_block);
    const auto key = [&](int v) { return CellsLayout::key_of(rows.length(v)); };
    const auto counter = [&](int k) { return ranks.places + k * ranks.waves + waves.wave; };
    waves.each(count, keys, key, [&](int, int k, bool) { waves.rank(counter(k), k); });
    team.team_barrier();
    waves.add_up(ranks.places, keys * ranks.waves);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, widths), [&](const int log) {
      std::uint32_t slices = 0;
      for (int l = widths - 1; l > log; --l) slices += ranks.slices(ranks.pieces(l), l);
      ranks.base[log] = slices;
      ranks.start[log] = ranks.before(CellsLayout::first_key(log));
      counts(cell * widths + log) = ranks.pieces(log);
    });
    team.team_barrier();
    describe(team, cell, ranks);
    team.team_barrier();
    name_slices(team, cell, ranks);
    team.team_barrier();
    const std::int64_t places = cell * this->shape.places();
    waves.each(count, keys, key, [&](int v, int k, bool there) {
      const std::uint32_t at = waves.rank(counter(k), k);
      if (!there) return;
      const std::uint32_t in_width = k < keys ? at - ranks.start[CellsLayout::log_of_key(k)] : 0xffffu;
      position(places + v) = static_cast<std::uint16_t>(in_width);
    });
    if (!last_team(team, arrived, static_cast<std::uint32_t>(this->shape.cells()))) return;
    place_cells(team, ranks.places);
  }

 private:
  /// In scratch.
  struct Ranks {
    std::uint32_t* places;        // [key][wave]: how many pieces are before
    std::uint32_t *first, *unit;  // [key]: of slices
    std::uint32_t *base, *start;  // [log2 of slots]: slices and pieces before those of as many slots
    std::uint32_t* room;          // where the cell's slices are named
    int waves;

    KOKKOS_INLINE_FUNCTION Ranks(std::uint32_t* words, int waves_of_team)
        : places(words),
          first(words + (keys + 1) * waves_of_team),
          unit(first + keys),
          base(unit + keys),
          start(base + widths),
          room(start + widths),
          waves(waves_of_team) {}
    KOKKOS_INLINE_FUNCTION std::uint32_t before(int key) const { return places[key * waves]; }
    KOKKOS_INLINE_FUNCTION std::uint32_t pieces(int log) const {
      return before(log > 0 ? CellsLayout::first_key(log - 1) : keys) - before(CellsLayout::first_key(log));
    }
    KOKKOS_INLINE_FUNCTION static std::uint32_t slices(std::uint32_t pieces, int log) {
      const auto of_slice = std::uint32_t{CellsLayout::slots} >> log;
      return (pieces + of_slice - 1) / of_slice;
    }
    /// Where slices of that key end; those of the next begin there.
    KOKKOS_INLINE_FUNCTION std::uint32_t end(int key) const {
      const int log = CellsLayout::log_of_key(key);
      return base[log] + slices(before(key + 1) - start[log], log);
    }
  };
  /// Runs of the cell, and where slices of each key begin.
  KOKKOS_INLINE_FUNCTION void describe(const member& team, std::int64_t cell, const Ranks& ranks) const {
    const int threads = team.team_size(), each = (keys + threads - 1) / threads, from = each * team.team_rank();
    const int to = from + each < keys ? from + each : keys;
    const auto slices = [&](int i) { return ranks.end(i) - (i > 0 ? ranks.end(i - 1) : 0u); };
    // Units, steps << 32 and runs << 56: a cell has fewer than 2^26 units, and fewer steps.
    const auto sizes_of = [&](int i) {
      const int steps = CellsLayout::steps_of_key(i);
      const std::int64_t here = slices(i), units_here = CellsLayout::slice_units(steps, value_bytes);
      return here * units_here + (here * steps << 32) + (std::int64_t{here > 0} << 56);
    };
    std::int64_t sum = 0;
    for (int i = from; i < to; ++i) sum += sizes_of(i);
    std::int64_t before = team.team_scan(sum);
    CellsRun* const run = &runs(cell * CellsLayout::runs);
    for (int i = from; i < to; ++i) {
      ranks.first[i] = i > 0 ? ranks.end(i - 1) : 0u;
      ranks.unit[i] = static_cast<std::uint32_t>(before);
      if (slices(i) > 0) {
        run[before >> 56] = {CellsLayout::run(ranks.end(i), CellsLayout::log_of_key(i), CellsLayout::steps_of_key(i)),
                             ranks.unit[i]};
      }
      before += sizes_of(i);
    }
    if (team.team_rank() + 1 != threads) return;
    for (auto i = static_cast<int>(before >> 56); i < CellsLayout::runs; ++i) run[i] = {CellsLayout::no_run, 0};
    sizes(cell) = static_cast<std::uint32_t>(before);
    const std::uint32_t all = ranks.end(keys - 1);
    *ranks.room = Kokkos::atomic_fetch_add(arrived + 1, all);
    Kokkos::atomic_add(&totals(0).slices, static_cast<std::int64_t>(all));
    Kokkos::atomic_add(&totals(0).steps, before >> 32 & 0xffffff);
    Kokkos::atomic_add(&totals(0).pieces, static_cast<std::int64_t>(ranks.before(keys)));
  }
  /// Where each slice of the cell lies.
  KOKKOS_INLINE_FUNCTION void name_slices(const member& team, std::int64_t cell, const Ranks& ranks) const {
    const std::uint32_t room = *ranks.room, all = ranks.end(keys - 1);
    if (std::size_t{room} + all > slice_at.extent(0)) {  // never, by the bound
      totals(0).no_room = 1;
      return;
    }
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, widths),
                         [&](const int log) { first_slice(cell * widths + log) = room + ranks.base[log]; });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(all)), [&](const int s) {
      int key = 0, high = keys - 1;  // the first whose slices end behind s
      while (key < high) {
        const int middle = (key + high) / 2;
        if (ranks.end(middle) > static_cast<std::uint32_t>(s)) {
          high = middle;
        } else {
          key = middle + 1;
        }
      }
      const int steps = CellsLayout::steps_of_key(key);
      const std::uint32_t before = static_cast<std::uint32_t>(s) - ranks.first[key];
      const std::uint32_t at = ranks.unit[key] + before * CellsLayout::slice_units(steps, value_bytes);
      slice_at(room + static_cast<std::uint32_t>(s)) = at << 5 | static_cast<std::uint32_t>(steps);
    });
  }
  KOKKOS_INLINE_FUNCTION void place_cells(const member& team, std::uint32_t* weights) const {
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
    // Of column blocks.
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, this->shape.column_blocks),
                         [&](const int b) { weights[b] = 0; });
    team.team_barrier();
    for (std::int64_t i = from; i < to; ++i) {
      Kokkos::atomic_add(&weights[i % this->shape.column_blocks], sizes(i) / 16 + 64);
    }
    team.team_barrier();
    if (team.team_rank() + 1 != threads) return;
    share_out(weights);
    CellsTotals all = totals(0);
    all.units = end;
    reply.send(all);
  }
  /// Consecutive column blocks of about the same weight, none without one.
  KOKKOS_INLINE_FUNCTION void share_out(const std::uint32_t* weights) const {
    const int blocks = this->shape.column_blocks, shares = this->shape.shares;
    double left = 0, share = 0;
    for (int b = 0; b < blocks; ++b) left += weights[b];
    share_first(0) = 0;
    for (int b = 0, s = 0, first = 0; b < blocks; ++b) {
      const double weight = weights[b];
      const int later = shares - s - 1;
      const bool enough = share + weight / 2 > left / (later + 1), must = blocks - b <= later;
      if (b > first && later > 0 && (enough || must)) {
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
