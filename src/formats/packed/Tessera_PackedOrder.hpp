// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_ORDER_HPP
#define TESSERA_FORMATS_PACKED_PACKED_ORDER_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_LaneReduce.hpp"
#include "core/Tessera_Reply.hpp"
#include "core/Tessera_TeamRadixSort.hpp"
#include "formats/packed/Tessera_PackedSlices.hpp"

/// \file
/// First part of the conversion to packed slices: which rows make a slice. Sort windows keep their natural
/// order where that pads little, else they are sorted by length; a Kokkos team takes one.
///
/// With column blocks a row is what one column block has of it: row `block * rows + r` stands for the entries of row r
/// in that column block, and sort windows never straddle two.

namespace Tessera {
namespace Impl {

/// What decides the shape of slices.
struct PackedShape {
  static constexpr int sort_window_keys = 4096;  // of the largest sort window
  static constexpr int index_bits = 12;          // of a row in its sort window
  static constexpr int classes = 7;              // lanes per row: 64 ... 1
  static constexpr int empty_run = 2 * classes;  // behind those of grouped and of single rows: many without entries
  static constexpr int runs = empty_run + 1;
  static constexpr int log_empty_rows = 3;          // that a lane has of a slice of rows without entries
  static constexpr int key_bits = index_bits + 10;  // that tell keys apart: steps, lanes, grouped or split
  static constexpr std::uint32_t sorted_bits = (1u << key_bits) - (1u << index_bits);
  int lanes = 32, log_wave = 5, max_steps = 16, split_steps = 16, group = 1;
  int sort_window = 4092;  // rows; a multiple of 12, so that groups of 2 and 3 rows never straddle two
  double natural_padding = 0.02;
  std::int64_t rows = 0, sort_windows = 0;  // of a column block
  int blocks = 1;
  int even_steps = 0, even_log = 0;  // even slices: steps and log2 of the lanes per row of all; 0: not
  bool diagonals = false;            // even slices of a matrix of few diagonals

  KOKKOS_INLINE_FUNCTION std::int64_t first_row(std::int64_t w) const {
    if (blocks == 1) return w * sort_window;  // a division of 64 bits takes a hundred instructions
    return w / sort_windows * rows + w % sort_windows * sort_window;
  }
  KOKKOS_INLINE_FUNCTION int rows_of(std::int64_t w) const {
    const std::int64_t left = rows - (blocks == 1 ? w : w % sort_windows) * sort_window;
    return static_cast<int>(left < sort_window ? left : sort_window);
  }
  /// Keys a sort window is sorted with: a power of two.
  KOKKOS_INLINE_FUNCTION int keys() const {
    int count = 256;
    while (count < sort_window) count *= 2;
    return count;
  }
  /// log2 of the fewest lanes with which a row takes at most max_steps.
  KOKKOS_INLINE_FUNCTION int log_lanes_of(std::int64_t length) const {
    int log = 0;
    while (log < log_wave && ((length + (std::int64_t{1} << log) - 1) >> log) > max_steps) ++log;
    return log;
  }
  /// Even slices count columns from the first of the matrix.
  KOKKOS_INLINE_FUNCTION static int even_index(std::int64_t cols) {
    return cols <= 0xffff ? PackedIndex16 : PackedIndex24;
  }
  /// PackedSlice::packed of a slice that is full of rows.
  std::uint32_t even_slice(std::int64_t cols) const {
    return PackedSlice::pack(even_steps, even_log, diagonals ? PackedDiagonals : even_index(cols), true, false, false,
                             1, lanes >> even_log);
  }
  KOKKOS_INLINE_FUNCTION static std::int64_t steps_of(std::int64_t length, int log) {
    return (length + (std::int64_t{1} << log) - 1) >> log;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t part_length() const { return std::int64_t{split_steps} * lanes; }
  KOKKOS_INLINE_FUNCTION std::int64_t pieces_of(std::int64_t length) const {
    return (length + part_length() - 1) / part_length();
  }
  KOKKOS_INLINE_FUNCTION bool is_split(std::int64_t length) const { return length > part_length(); }

  /// Ascending keys: rows to be split, then groups, then single rows, the longest first; then rows without entries.
  KOKKOS_INLINE_FUNCTION std::uint32_t key_of(std::int64_t length, bool grouped, int place) const {
    if (is_split(length)) return static_cast<std::uint32_t>(place);
    // Its digits are not all ones, which stand for no row.
    if (length == 0) return (1u + empty_run) << (6 + index_bits) | static_cast<std::uint32_t>(place);
    const auto most = static_cast<std::uint32_t>(max_steps), short_length = static_cast<std::uint32_t>(length);
    std::uint32_t steps = short_length;  // as log_lanes_of and steps_of, in 32 bits
    int log = 0;
    while (log < log_wave && steps > most) {
      ++log;
      steps = (short_length + (1u << log) - 1) >> log;
    }
    const std::uint32_t run = static_cast<std::uint32_t>((grouped ? 0 : classes) + (6 - log));
    return (1u + run) << (6 + index_bits) | (63u - steps) << index_bits | static_cast<std::uint32_t>(place);
  }
  KOKKOS_INLINE_FUNCTION static int run_of(std::uint32_t key) {  // -1: to be split
    return static_cast<int>(key >> (6 + index_bits)) - 1;
  }
  KOKKOS_INLINE_FUNCTION static int key_steps(std::uint32_t key) {
    return run_of(key) == empty_run ? 0 : 63 - static_cast<int>((key >> index_bits) & 63u);
  }
  /// log2 of the rows, or groups, of a slice of run `run`.
  KOKKOS_INLINE_FUNCTION int log_slice_rows(int run) const {
    if (run == empty_run) return log_wave + log_empty_rows;
    const int log = 6 - run % classes;
    return log < log_wave ? log_wave - log : 0;
  }
};

/// What a sort window counts, in one word: slices without parts (13 bits), rows to be split (13 bits), parts.
struct SortCount {
  std::uint64_t packed;

  KOKKOS_INLINE_FUNCTION static SortCount of(std::int64_t slices, std::int64_t split, std::int64_t parts) {
    return {static_cast<std::uint64_t>(slices) | static_cast<std::uint64_t>(split) << 13 |
            static_cast<std::uint64_t>(parts) << 26};
  }
  KOKKOS_INLINE_FUNCTION std::uint64_t slices() const { return packed & 0x1fffu; }
  KOKKOS_INLINE_FUNCTION std::int64_t split() const { return static_cast<std::int64_t>(packed >> 13 & 0x1fffu); }
  KOKKOS_INLINE_FUNCTION std::uint64_t parts() const { return packed >> 26; }
};

/// What became of a sort window.
struct SortWindow {
  std::int32_t natural;  // rows in their order, all with the same lanes
  std::int32_t log_lanes, grouped;
  std::int32_t split;    // rows to be split come first
  std::uint32_t filled;  // runs that have rows, a bit for each
  std::int32_t run[PackedShape::runs];
  std::int64_t slices, parts;  // how many; slices: parts not counted
};

/// Where the slices (parts not counted) and the parts of a sort window begin.
struct alignas(8) SortPlace {
  std::uint32_t slices, parts;
};

/// Places of all sort windows. These are counted in groups, so that no team adds up many: a window begins where its
/// group does, behind those of the group that come before it.
template <class MemorySpace>
struct SortPlaces {
  template <class T>
  using View = typename Experimental::PackedSlices<MemorySpace>::template View<T>;
  static constexpr int most_groups = 64;
  View<SortPlace> within, groups;
  View<std::uint32_t> split;  // rows to be split, of groups
  int log_group = 0;

  /// Groups of 64 windows, or of more where these would be too many.
  static int log_group_of(std::int64_t windows) {
    int log = 6;
    while ((windows >> log) >= most_groups) ++log;
    return log;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t windows() const { return static_cast<std::int64_t>(within.extent(0)); }
  KOKKOS_INLINE_FUNCTION std::uint32_t slices(std::int64_t w) const {
    return groups(w >> log_group).slices + within(w).slices;
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t parts(std::int64_t w) const {
    return groups(w >> log_group).parts + within(w).parts;
  }
};

/// Where the entries of each row lie in the matrix: row r has [begin(r), begin(r + step)).
template <class MemorySpace>
struct PackedRowMap {
  typename Experimental::PackedSlices<MemorySpace>::template View<std::int64_t> begin;
  std::int64_t step = 1;  // with column blocks the number of rows: a block ends where the next one begins

  KOKKOS_INLINE_FUNCTION std::int64_t length(std::int64_t row) const { return begin(row + step) - begin(row); }
};

template <class Csr>
struct PackedTypesOf {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  template <class T>
  using View = typename Experimental::PackedSlices<typename Csr::memory_space>::template View<T>;
  template <class T>
  using Scratch = Kokkos::View<T*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Map = PackedRowMap<typename Csr::memory_space>;
  using Columns = typename Csr::entries_type;
};

/// same(g) = 1 where the rows of aligned group g have equal columns in equal order, and are short enough to share.
template <class Csr>
struct PackedGroupFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  typename PackedTypesOf<Csr>::Columns columns;
  typename Csr::row_map_type row_map;
  PackedShape shape;
  typename PackedTypesOf<Csr>::template View<std::uint8_t> same;
  static constexpr int vector = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 1 : 16;  // lanes of a thread

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t first = (std::int64_t{team.league_rank()} * team.team_size() + team.team_rank());
    const std::int64_t groups = static_cast<std::int64_t>(same.extent(0));
    if (first < groups) compare(team, first);
  }
  KOKKOS_INLINE_FUNCTION void compare(const member& team, std::int64_t g) const {
    const bool equal = shape.group == 3 ? all_equal<3>(team, g * 3) : all_equal<2>(team, g * 2);
    Kokkos::single(Kokkos::PerThread(team), [&]() { same(g) = equal; });
  }

  template <int Rows>
  KOKKOS_INLINE_FUNCTION bool all_equal(const member& team, std::int64_t row) const {
    if (row + Rows > shape.rows) return false;
    std::int64_t ends[Rows + 1];
    for (int r = 0; r <= Rows; ++r) ends[r] = static_cast<std::int64_t>(row_map(row + r));
    const std::int64_t begin = ends[0], length = ends[1] - begin;
    bool equal = length > 0 && !shape.is_split(length);
    for (int r = 1; r < Rows; ++r) equal &= ends[r + 1] - ends[r] == length;
    if (!equal) return false;
    // Rows of equal length follow each other: entry k of row r lies r * length behind that of the first.
    const auto* const first = columns.data() + begin;
    const auto count = static_cast<int>(length);  // at most that of a part
    const std::uint32_t different = LaneReduce<vector>::sum(team, vector, [&](const int lane) {
      constexpr int batch = 4;  // loads at once; beyond the row's end the first of them again
      std::uint32_t d = 0;
      for (int k = lane; k < count; k += batch * vector) {
        typename PackedTypesOf<Csr>::Columns::non_const_value_type column[batch][Rows];
        for (int n = 0; n < batch; ++n) {
          const int at = k + n * vector < count ? k + n * vector : k;
          for (int r = 0; r < Rows; ++r) column[n][r] = first[at + r * count];
        }
        for (int n = 0; n < batch; ++n) {
          for (int r = 1; r < Rows; ++r) d += column[n][r] != column[n][0];
        }
      }
      return d;
    });
    return different == 0;
  }
};

/// What the host must know of the conversion before it makes room for packets.
/// Int: 32 bits suffice for few slices.
template <class Int>
struct PackedSizesOf {
  static constexpr int numbers = 12;
  Int units, steps, stored, short_slices, index_slots[6], grouped_slots, id_rows;

  /// Of `numbers`, in their order.
  KOKKOS_INLINE_FUNCTION Int& number(int n) { return (&units)[n]; }

  KOKKOS_INLINE_FUNCTION void count(const PackedPacket& packet, const PackedSlice& s) {
    const Int slots = static_cast<Int>(s.steps()) * packet.lanes * s.group();
    units += static_cast<Int>(packet.bytes(s) / packed_unit);
    steps += s.steps();
    stored += slots;
    short_slices += s.steps() <= 5;
    for (int i = 0; i < 6; ++i) index_slots[i] += s.index() == i ? slots : 0;
    grouped_slots += s.group() > 1 ? slots : 0;
    id_rows += s.has_ids() ? s.rows() : 0;
  }
  template <class A, class B>
  KOKKOS_INLINE_FUNCTION static void add(A& a, const B& b) {
    a.units = a.units + b.units, a.steps = a.steps + b.steps, a.stored = a.stored + b.stored;
    a.short_slices = a.short_slices + b.short_slices;
    for (int i = 0; i < 6; ++i) a.index_slots[i] = a.index_slots[i] + b.index_slots[i];
    a.grouped_slots = a.grouped_slots + b.grouped_slots, a.id_rows = a.id_rows + b.id_rows;
  }
};
using PackedSizes = PackedSizesOf<std::int64_t>;
static_assert(sizeof(PackedSizes) == PackedSizes::numbers * sizeof(std::int64_t), "each number has a place");
struct PackedTotals {
  std::int64_t slices, parts, split;  // slices: parts among them
  PackedSizes sizes;
  PackedStorage storage;
};

/// Orders a sort window and counts its slices; the last teams turn counts into places.
template <class Csr>
struct SortWindowFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  using Keys = typename PackedTypesOf<Csr>::template Scratch<std::uint32_t>;
  using Sort = TeamRadixSort<Keys>;

  typename Csr::row_map_type row_map;  // where there are no column blocks: `map` is its copy, and made here
  typename PackedTypesOf<Csr>::Map map;
  PackedShape shape;
  View<std::uint8_t> same;    // empty without groups
  View<std::uint32_t> order;  // keys, where rows are sorted
  /// Of rows to be split, in their order: parts in the sort window before. Empty where no row is that long.
  View<std::uint32_t> pieces;
  View<SortWindow> sort_windows;
  View<SortCount> counts;  // of these
  SortPlaces<typename Csr::memory_space> starts;
  std::uint32_t* arrived;  // zero: of groups, and one for each group
  PackedTotals* totals;
  static constexpr int split_bit = 13, entries_bit = 26;

  static constexpr int scratch_level = Compat::large_scratch_level<typename PackedTypesOf<Csr>::exec>;
  std::size_t scratch_bytes() const { return Keys::shmem_size(Sort::words(shape.keys())) + Keys::shmem_size(32); }

  KOKKOS_INLINE_FUNCTION std::int64_t length_of(std::int64_t row) const {
    return shape.blocks > 1 ? map.length(row) : static_cast<std::int64_t>(row_map(row + 1) - row_map(row));
  }
  /// Row i of the sort window at `base`; windows are a multiple of 12, so that groups begin where these do.
  KOKKOS_INLINE_FUNCTION bool grouped(std::int64_t base, int i) const {
    if (shape.group == 1) return false;
    return shape.group == 2 ? same((base >> 1) + (i >> 1)) != 0 : same(base / 3 + i / 3) != 0;
  }
  KOKKOS_INLINE_FUNCTION bool begins_group(int i) const { return shape.group == 2 ? (i & 1) == 0 : i % 3 == 0; }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int level = scratch_level;  // Kokkos takes a reference, and devices have no static members
    const auto& scratch = team.team_scratch(level);
    Keys keys(scratch, Sort::words(shape.keys())), begin(scratch, 32);
    const std::int64_t w = team.league_rank(), base = shape.first_row(w);
    const int count = shape.rows_of(w);
    const std::uint64_t sums = read_lengths(team, keys, w, base, count);
    team.team_barrier();
    const int in_groups = static_cast<int>(sums & ((1u << split_bit) - 1));
    const int to_split = static_cast<int>(sums >> split_bit & ((1u << split_bit) - 1));
    const auto entries = static_cast<std::int64_t>(sums >> entries_bit);

    SortWindow found{};
    found.natural = shape.even_steps > 0;
    if (found.natural) {
      found.log_lanes = shape.even_log;
      found.slices = (count + (shape.lanes >> shape.even_log) - 1) / (shape.lanes >> shape.even_log);
    } else if (entries > 0 && to_split == 0 && (in_groups == 0 || in_groups == count)) {
      found.grouped = in_groups > 0;
      try_natural(team, keys, count, entries, found);
    }
    if (!found.natural) {
      found.slices = 0;
      sort_rows(team, keys, begin, base, count, found);
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      sort_windows(w) = found;
      counts(w) = SortCount::of(found.slices, found.natural ? 0 : found.split, found.parts);
    });
    give_places(team, w);
  }

  /// Lengths to `keys`, and the window's part of the row map's copy. @return one sum of three: entries above, rows to
  /// be split, rows in groups
  KOKKOS_INLINE_FUNCTION std::uint64_t read_lengths(const member& team, const Keys& keys, std::int64_t w,
                                                    std::int64_t base, int count) const {
    constexpr int batch = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 1 : 4;  // rows whose loads come first
    const int threads = team.team_size();
    const bool copies = shape.blocks == 1;
    std::uint64_t sums = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, threads),
        [&](const int t, std::uint64_t& sum) {
          for (int at = t; at < count; at += batch * threads) {
            std::int64_t begin[batch], end[batch];
            for (int n = 0; n < batch; ++n) {
              const std::int64_t row = base + (at + n * threads < count ? at + n * threads : at);
              begin[n] = static_cast<std::int64_t>(copies ? row_map(row) : map.begin(row));
              end[n] = static_cast<std::int64_t>(copies ? row_map(row + 1) : map.begin(row + map.step));
            }
            for (int n = 0; n < batch && at + n * threads < count; ++n) {
              const int i = at + n * threads;
              const std::int64_t length = end[n] - begin[n];
              keys(i) = static_cast<std::uint32_t>(length);
              if (copies) map.begin(base + i) = begin[n];
              if (copies && i + 1 == count && w + 1 == shape.sort_windows) map.begin(base + count) = end[n];
              sum += static_cast<std::uint64_t>(length) << entries_bit |
                     static_cast<std::uint64_t>(shape.is_split(length)) << split_bit |
                     static_cast<std::uint64_t>(grouped(base, i));
            }
          }
        },
        sums);
    return sums;
  }

  KOKKOS_INLINE_FUNCTION static std::uint32_t steps_of(std::uint32_t length, int log) {
    return (length + (1u << log) - 1) >> log;
  }

  /// Whether the rows pad little in their order, all with the same lanes.
  KOKKOS_INLINE_FUNCTION void try_natural(const member& team, const Keys& lengths, int count, std::int64_t entries,
                                          SortWindow& found) const {
    const int g = found.grouped ? shape.group : 1, units = count / g;
    found.log_lanes = shape.log_lanes_of((entries + count - 1) / count);
    const int a_slice = shape.lanes >> found.log_lanes;
    found.slices = (units + a_slice - 1) / a_slice;
    // Slots of all slices and lanes of all rows in one sum: rows that are not split have at most 63 * 64 entries, so
    // that the latter stay below 2^24.
    constexpr int padded_bit = 24;
    constexpr std::uint32_t too_many = (1u << 28) - 1;  // of a slice; more than all slices have together
    const int threads = team.team_size();
    std::uint64_t sums = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, threads),
        [&](const int t, std::uint64_t& sum) {
          for (int s = t; s < static_cast<int>(found.slices); s += threads) {
            std::uint32_t most = 0;
            for (int n = 0; n < a_slice; ++n) {
              const int i = s * a_slice + ((n + s) & (a_slice - 1));  // threads read different banks
              if (i >= units) continue;
              const std::uint32_t steps = steps_of(lengths(i * g), found.log_lanes);
              most = steps > most ? steps : most;
            }
            const std::uint32_t slots = most > 511 ? too_many : most * static_cast<std::uint32_t>(shape.lanes);
            sum += static_cast<std::uint64_t>(slots) << padded_bit;
          }
          for (int i = t; i < units; i += threads) {
            sum += steps_of(lengths(i * g), found.log_lanes) << found.log_lanes;
          }
        },
        sums);
    const std::uint64_t padded = sums >> padded_bit, ideal = sums & ((1u << padded_bit) - 1);
    // The last slice of the matrix may be partly empty whatever the order.
    found.natural =
        padded < too_many && static_cast<double>(padded) <= static_cast<double>(ideal) * (1 + shape.natural_padding) +
                                                                (count < shape.sort_window ? shape.lanes * 16 : 0);
  }

  /// Counts of the sort windows to places: the last team of a group those of the group, the last of these teams those
  /// of the groups.
  KOKKOS_INLINE_FUNCTION void give_places(const member& team, std::int64_t w) const {
    const auto all = static_cast<int>(shape.sort_windows * shape.blocks), log = starts.log_group;
    const int group = static_cast<int>(w >> log), first = group << log, left = all - first;
    const int count = left < 1 << log ? left : 1 << log, groups = ((all - 1) >> log) + 1;
    if (!last_team(team, arrived + 1 + group, static_cast<std::uint32_t>(count))) return;
    // Slices and parts in one sum; both are bounded by the host to 31 bits.
    scan_places(
        team, count, [&](const int i) { return counts(first + i).slices() << 32 | counts(first + i).parts(); },
        [&](const int i, const SortPlace& place) { starts.within(first + i) = place; },
        [&](const SortPlace& sum) { starts.groups(group) = sum, arrived[1 + group] = 0; });
    const bool splits = pieces.extent(0) > 0;
    if (splits) {
      std::int64_t split = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, count),
          [&](const int i, std::int64_t& sum) { sum += counts(first + i).split(); }, split);
      Kokkos::single(Kokkos::PerTeam(team), [&]() { starts.split(group) = static_cast<std::uint32_t>(split); });
    }
    if (!last_team(team, arrived, static_cast<std::uint32_t>(groups))) return;
    std::int64_t split = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, splits ? groups : 0),
        [&](const int g, std::int64_t& sum) { sum += starts.split(g); }, split);
    scan_places(
        team, groups,
        [&](const int g) { return static_cast<std::uint64_t>(starts.groups(g).slices) << 32 | starts.groups(g).parts; },
        [&](const int g, const SortPlace& place) { starts.groups(g) = place; },
        [&](const SortPlace& sum) {
          totals->parts = sum.parts;
          totals->slices = std::int64_t{sum.slices} + sum.parts;
          totals->split = split;
          *arrived = 0;
        });
  }
  /// put(i, sum of what comes before i), total(sum of all); a thread takes consecutive ones.
  template <class Count, class Put, class Total>
  KOKKOS_INLINE_FUNCTION void scan_places(const member& team, int all, const Count& count, const Put& put,
                                          const Total& total) const {
    constexpr int batch = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 1 : 8;  // loads before the first store
    const int threads = team.team_size(), share = (all + threads - 1) / threads;
    const auto place = [](std::uint64_t sum) {
      return SortPlace{static_cast<std::uint32_t>(sum >> 32), static_cast<std::uint32_t>(sum & 0xffffffffu)};
    };
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, threads),
                          [&](const int t, std::uint64_t& sum, const bool final) {
                            const int last = (t + 1) * share < all ? (t + 1) * share : all;
                            for (int first = t * share; first < last; first += batch) {
                              std::uint64_t here[batch];
                              for (int n = 0; n < batch; ++n) here[n] = count(first + n < last ? first + n : first);
                              for (int n = 0; n < batch && first + n < last; ++n) {
                                if (final) put(first + n, place(sum));
                                sum += here[n];
                              }
                            }
                            if (final && t + 1 == threads) total(place(sum));
                          });
  }

  KOKKOS_INLINE_FUNCTION void sort_rows(const member& team, const Keys& keys, const Keys& begin, std::int64_t base,
                                        int count, SortWindow& found) const {
    int places = shape.keys();
    while (places > 256 && places / 2 >= count) places /= 2;
    constexpr std::uint32_t place = PackedShape::sort_window_keys - 1;
    std::uint64_t bits = 0;  // set in some key, and above: not set in some key
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, places),
        [&](const int i, std::uint64_t& found_bits) {
          std::uint32_t key = ~0u;
          if (i < count) {
            const bool in_group = grouped(base, i);
            if (!in_group || begins_group(i)) key = shape.key_of(keys(i), in_group, i);
          }
          keys(i) = key;
          found_bits |= static_cast<std::uint64_t>(~key) << 32 | key;
        },
        Kokkos::BOr<std::uint64_t>(bits));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 32), [&](const int i) { begin(i) = 0; });
    team.team_barrier();
    // Keys without a row have ones in all digits, and stay behind the others.
    const auto differ = static_cast<std::uint32_t>(bits >> 32) & static_cast<std::uint32_t>(bits);
    const int sorted = Sort(keys, places).run_where(team, differ & PackedShape::sorted_bits);
    // begin(1 + run): keys up to the end of the run.
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, places), [&](const int i) {
      const std::uint32_t key = keys(sorted + i);
      if (i < count) order(base + i) = key;
      if (key == ~0u) return;
      const int run = PackedShape::run_of(key);
      const std::uint32_t next = i + 1 < places ? keys(sorted + i + 1) : ~0u;
      if (next == ~0u || PackedShape::run_of(next) != run) begin(run + 1) = static_cast<std::uint32_t>(i + 1);
    });
    team.team_barrier();
    std::uint32_t done = begin(0);
    found.split = static_cast<std::int32_t>(done);
    for (int run = 0; run < PackedShape::runs; ++run) {
      const std::uint32_t end = begin(run + 1);
      found.run[run] = end > done ? static_cast<std::int32_t>(end - done) : 0;
      done = end > done ? end : done;
    }
    // A few rows without entries stay behind those of one lane, whose last slice mostly has room for them.
    if (found.run[PackedShape::empty_run] < shape.lanes) {
      found.run[PackedShape::empty_run - 1] += found.run[PackedShape::empty_run];
      found.run[PackedShape::empty_run] = 0;
    }
    for (int run = 0; run < PackedShape::runs; ++run) {
      const int log = shape.log_slice_rows(run);
      found.slices += (found.run[run] + (1 << log) - 1) >> log;
      found.filled |= static_cast<std::uint32_t>(found.run[run] > 0) << run;
    }
    if (found.split == 0) return;
    const auto pieces_at = [&](int i) { return shape.pieces_of(length_of(base + (keys(sorted + i) & place))); };
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, found.split),
                          [&](const int i, std::int64_t& sum, const bool final) {
                            if (final) pieces(base + i) = static_cast<std::uint32_t>(sum);
                            sum += pieces_at(i);
                          });
    std::int64_t parts = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, found.split), [&](const int i, std::int64_t& n) { n += pieces_at(i); }, parts);
    found.parts = parts;
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
