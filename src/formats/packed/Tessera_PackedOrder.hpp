// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_ORDER_HPP
#define TESSERA_FORMATS_PACKED_PACKED_ORDER_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_TeamSort.hpp"
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
  int lanes = 32, log_wave = 5, max_steps = 16, split_steps = 16, group = 1;
  int sort_window = 4092;  // rows; a multiple of 12, so that groups of 2 and 3 rows never straddle two
  double natural_padding = 0.02;
  std::int64_t rows = 0, sort_windows = 0;  // of a column block
  int blocks = 1;
  int even_steps = 0, even_log = 0;  // even slices: steps and log2 of the lanes per row of all; 0: not

  KOKKOS_INLINE_FUNCTION std::int64_t first_row(std::int64_t w) const {
    return w / sort_windows * rows + w % sort_windows * sort_window;
  }
  KOKKOS_INLINE_FUNCTION int rows_of(std::int64_t w) const {
    const std::int64_t left = rows - w % sort_windows * sort_window;
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
  KOKKOS_INLINE_FUNCTION static std::int64_t steps_of(std::int64_t length, int log) {
    return (length + (std::int64_t{1} << log) - 1) >> log;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t part_length() const { return std::int64_t{split_steps} * lanes; }
  KOKKOS_INLINE_FUNCTION bool is_split(std::int64_t length) const { return length > part_length(); }

  /// Ascending keys: rows to be split, then groups, then single rows; the longest first.
  KOKKOS_INLINE_FUNCTION std::uint32_t key_of(std::int64_t length, bool grouped, int place) const {
    if (is_split(length)) return static_cast<std::uint32_t>(place);
    const int log = log_lanes_of(length);
    const auto steps = static_cast<std::uint32_t>(steps_of(length, log));
    const std::uint32_t run = static_cast<std::uint32_t>((grouped ? 0 : classes) + (6 - log));
    return (1u + run) << (6 + index_bits) | (63u - steps) << index_bits | static_cast<std::uint32_t>(place);
  }
  KOKKOS_INLINE_FUNCTION static int run_of(std::uint32_t key) {  // -1: to be split
    return static_cast<int>(key >> (6 + index_bits)) - 1;
  }
  KOKKOS_INLINE_FUNCTION static int key_steps(std::uint32_t key) {
    return 63 - static_cast<int>((key >> index_bits) & 63u);
  }
};

/// What became of a sort window.
struct SortWindow {
  std::int32_t natural;  // rows in their order, all with the same lanes
  std::int32_t log_lanes, grouped;
  std::int32_t split;  // rows to be split come first
  std::int32_t run[2 * PackedShape::classes];
  std::int64_t slices, parts;  // then: first slice (parts not counted), first part
};

struct PackedCounts {
  std::int64_t slices, parts, split;
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
  typename PackedTypesOf<Csr>::Map map;
  PackedShape shape;
  typename PackedTypesOf<Csr>::template View<std::uint8_t> same;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t first = (std::int64_t{team.league_rank()} * team.team_size() + team.team_rank());
    const std::int64_t groups = static_cast<std::int64_t>(same.extent(0));
    if (first >= groups) return;
    const std::int64_t row = first * shape.group;
    const std::int64_t begin = map.begin(row), length = map.length(row);
    bool equal = row + shape.group <= shape.rows && length > 0 && !shape.is_split(length);
    for (int r = 1; equal && r < shape.group; ++r) equal = map.length(row + r) == length;
    if (equal) {
      int different = 0;
      // Rows of equal length follow each other: entry k of row r lies r * length behind that of the first.
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, static_cast<int>(length)),
          [&](const int k, int& d) {
            const auto column = columns(begin + k);
            for (int r = 1; r < shape.group; ++r) d += columns(begin + r * length + k) != column;
          },
          different);
      equal = different == 0;
    }
    Kokkos::single(Kokkos::PerThread(team), [&]() { same(first) = equal; });
  }
};

/// Orders a sort window and counts its slices.
template <class Csr>
struct SortWindowFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  using Keys = typename PackedTypesOf<Csr>::template Scratch<std::uint32_t>;

  typename PackedTypesOf<Csr>::Map map;
  PackedShape shape;
  View<std::uint8_t> same;    // empty without groups
  View<std::uint32_t> order;  // keys, where rows are sorted
  View<SortWindow> sort_windows;

  std::size_t scratch_bytes() const { return Keys::shmem_size(shape.keys()) + Keys::shmem_size(32); }

  KOKKOS_INLINE_FUNCTION std::int64_t length_of(std::int64_t row) const { return map.length(row); }
  KOKKOS_INLINE_FUNCTION bool grouped(std::int64_t row) const {
    return shape.group > 1 && same(row / shape.group) != 0;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int W = shape.sort_window;
    Keys keys(team.team_scratch(0), shape.keys()), begin(team.team_scratch(0), 32);
    const std::int64_t w = team.league_rank(), base = shape.first_row(w);
    const int count = shape.rows_of(w);

    // Lengths are read once. One sum of three: entries above, rows to be split, rows in groups.
    constexpr int split_bit = 13, entries_bit = 26;
    std::uint64_t sums = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](const int i, std::uint64_t& sum) {
          const std::int64_t length = length_of(base + i);
          keys(i) = static_cast<std::uint32_t>(length);
          sum += static_cast<std::uint64_t>(length) << entries_bit |
                 static_cast<std::uint64_t>(shape.is_split(length)) << split_bit |
                 static_cast<std::uint64_t>(grouped(base + i));
        },
        sums);
    team.team_barrier();
    const int in_groups = static_cast<int>(sums & ((1u << split_bit) - 1));
    const int to_split = static_cast<int>(sums >> split_bit & ((1u << split_bit) - 1));
    const auto entries = static_cast<std::int64_t>(sums >> entries_bit);

    SortWindow found{};
    found.natural = shape.even_steps > 0;
    if (found.natural) {
      found.log_lanes = shape.even_log;
      found.slices = (count + (shape.lanes >> shape.even_log) - 1) / (shape.lanes >> shape.even_log);
    } else if (to_split == 0 && (in_groups == 0 || in_groups == count)) {
      found.grouped = in_groups > 0;
      const int g = found.grouped ? shape.group : 1, units = count / g;
      found.log_lanes = shape.log_lanes_of((entries + count - 1) / count);
      const int a_slice = shape.lanes >> found.log_lanes;
      found.slices = (units + a_slice - 1) / a_slice;
      std::int64_t padded = 0, ideal = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, static_cast<int>(found.slices)),
          [&](const int s, std::int64_t& sum) {
            std::int64_t most = 0;
            for (int i = s * a_slice; i < (s + 1) * a_slice && i < units; ++i) {
              const std::int64_t steps = PackedShape::steps_of(keys(i * g), found.log_lanes);
              most = steps > most ? steps : most;
            }
            sum += most > 511 ? std::int64_t{1} << 40 : most * shape.lanes;
          },
          padded);
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, units),
          [&](const int i, std::int64_t& sum) {
            sum += PackedShape::steps_of(keys(i * g), found.log_lanes) << found.log_lanes;
          },
          ideal);
      // The last slice of the matrix may be partly empty whatever the order.
      found.natural = static_cast<double>(padded) <=
                      static_cast<double>(ideal) * (1 + shape.natural_padding) + (count < W ? shape.lanes * 16 : 0);
    }
    if (!found.natural) {
      found.slices = 0;
      sort_rows(team, keys, begin, base, count, found);
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() { sort_windows(w) = found; });
  }

  KOKKOS_INLINE_FUNCTION void sort_rows(const member& team, const Keys& keys, const Keys& begin, std::int64_t base,
                                        int count, SortWindow& found) const {
    const int places = shape.keys();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, places), [&](const int i) {
      std::uint32_t key = ~0u;
      if (i < count && !(grouped(base + i) && (base + i) % shape.group != 0)) {
        key = shape.key_of(keys(i), grouped(base + i), i);
      }
      keys(i) = key;
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 32), [&](const int i) { begin(i) = 0; });
    team.team_barrier();
    team_sort(team, keys, places);
    constexpr int runs = 2 * PackedShape::classes;
    // begin(1 + run): keys up to the end of the run; integer atomics, so their order does not matter.
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, places), [&](const int i) {
      const std::uint32_t key = keys(i);
      if (key == ~0u) return;
      const int run = PackedShape::run_of(key);
      if (i + 1 == places || keys(i + 1) == ~0u || PackedShape::run_of(keys(i + 1)) != run) {
        begin(run + 1) = static_cast<std::uint32_t>(i + 1);
      }
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int i) { order(base + i) = keys(i); });
    std::uint32_t done = begin(0);
    found.split = static_cast<std::int32_t>(done);
    for (int run = 0; run < runs; ++run) {
      const std::uint32_t end = begin(run + 1);
      found.run[run] = end > done ? static_cast<std::int32_t>(end - done) : 0;
      done = end > done ? end : done;
      const int a_slice = slice_rows(run);
      found.slices += (found.run[run] + a_slice - 1) / a_slice;
    }
    std::int64_t parts = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, found.split),
        [&](const int i, std::int64_t& n) {
          const std::int64_t length = length_of(base + (keys(i) & (PackedShape::sort_window_keys - 1)));
          n += (length + shape.part_length() - 1) / shape.part_length();
        },
        parts);
    found.parts = parts;
  }
  KOKKOS_INLINE_FUNCTION int slice_rows(int run) const {
    const int log = 6 - run % PackedShape::classes;
    return log > shape.log_wave ? 1 : shape.lanes >> log;
  }
};

/// Counts of the sort windows to places: exclusive scan; the totals go to `total`.
template <class Csr>
struct SortWindowScan : PackedTypesOf<Csr> {
  using value_type = PackedCounts;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<SortWindow> sort_windows;
  View<Experimental::PackedSummary> total;

  KOKKOS_INLINE_FUNCTION void init(PackedCounts& s) const { s.slices = s.parts = s.split = 0; }
  KOKKOS_INLINE_FUNCTION void join(PackedCounts& a, const PackedCounts& b) const {
    a.slices += b.slices, a.parts += b.parts, a.split += b.split;
  }
  KOKKOS_INLINE_FUNCTION void join(volatile PackedCounts& a, const volatile PackedCounts& b) const {
    a.slices = a.slices + b.slices, a.parts = a.parts + b.parts, a.split = a.split + b.split;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w, PackedCounts& sum, const bool final) const {
    const std::int64_t slices = sort_windows(w).slices, parts = sort_windows(w).parts;
    const std::int64_t split = sort_windows(w).natural ? 0 : sort_windows(w).split;
    if (final) {
      sort_windows(w).slices = sum.slices;
      sort_windows(w).parts = sum.parts;
    }
    sum.slices += slices, sum.parts += parts, sum.split += split;
    if (final && w + 1 == static_cast<std::int64_t>(sort_windows.extent(0))) {
      total(0).slices = sum.slices + sum.parts;
      total(0).parts = sum.parts;
      total(0).split_rows = sum.split;
    }
  }
};

/// Writes the records of a sort window's slices; packets and indices are still open.
template <class Csr>
struct PackedSliceFunctor : PackedTypesOf<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;

  typename PackedTypesOf<Csr>::Map map;
  PackedShape shape;
  std::int64_t all_parts;
  View<std::uint32_t> order;
  View<SortWindow> sort_windows;
  View<PackedSlice> slices;
  View<PackedPart> parts;
  View<std::uint32_t> slot;  // of a slice with row ids: its place in `order`

  KOKKOS_INLINE_FUNCTION std::int64_t length_of(std::int64_t row) const { return map.length(row); }
  KOKKOS_INLINE_FUNCTION void write(std::int64_t at, std::int64_t row, int steps, int log, bool contiguous, bool part,
                                    int group, int rows, std::int64_t place) const {
    PackedSlice s;
    s.packet = 0;
    s.row = static_cast<std::int32_t>(row);
    s.column = 0;
    s.packed = PackedSlice::pack(steps, log, PackedIndex32, contiguous, part, false, group, rows);
    slices(at) = s;
    slot(at) = static_cast<std::uint32_t>(place);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t w = team.league_rank(), base = shape.first_row(w);
    const int count = shape.rows_of(w);
    const SortWindow found = sort_windows(w);
    const std::int64_t first = all_parts + found.slices;
    if (found.natural) {
      const int g = found.grouped ? shape.group : 1, units = count / g, a_slice = shape.lanes >> found.log_lanes;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (units + a_slice - 1) / a_slice), [&](const int s) {
        const int begin = s * a_slice, rows = units - begin < a_slice ? units - begin : a_slice;
        std::int64_t most = shape.even_steps;
        for (int i = begin; i < begin + rows; ++i) {
          const std::int64_t steps = PackedShape::steps_of(length_of(base + i * g), found.log_lanes);
          most = steps > most ? steps : most;
        }
        write(first + s, base + std::int64_t{begin} * g, static_cast<int>(most), found.log_lanes, true, false, g, rows,
              base);
      });
      return;
    }
    constexpr std::uint32_t place = PackedShape::sort_window_keys - 1;
    Kokkos::parallel_scan(
        Kokkos::TeamThreadRange(team, found.split), [&](const int i, std::int64_t& sum, const bool final) {
          const std::int64_t row = base + (order(base + i) & place), length = length_of(row);
          const std::int64_t pieces = (length + shape.part_length() - 1) / shape.part_length();
          if (final) {
            for (std::int64_t k = 0; k < pieces; ++k) {
              const std::int64_t at = found.parts + sum + k, left = length - k * shape.part_length();
              const std::int64_t here = left < shape.part_length() ? left : shape.part_length();
              parts(at) = PackedPart{static_cast<std::int32_t>(row), static_cast<std::uint32_t>(found.parts + sum),
                                     static_cast<std::uint32_t>(pieces), static_cast<std::uint32_t>(k)};
              write(at, at, static_cast<int>(PackedShape::steps_of(here, shape.log_wave)), shape.log_wave, false, true,
                    1, 1, 0);
            }
          }
          sum += pieces;
        });
    std::int64_t item = found.split, at = first;
    for (int run = 0; run < 2 * PackedShape::classes; ++run) {
      const int items = found.run[run];
      if (items == 0) continue;
      const int log = 6 - run % PackedShape::classes, g = run < PackedShape::classes ? shape.group : 1;
      const int a_slice = shape.lanes >> log, here = (items + a_slice - 1) / a_slice;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, here), [&](const int s) {
        const std::int64_t begin = base + item + std::int64_t{s} * a_slice;
        const int left = items - s * a_slice, rows = left < a_slice ? left : a_slice;
        const std::uint32_t first_row = order(begin) & place;
        bool consecutive = true;
        for (int i = 1; i < rows; ++i) {
          consecutive = consecutive && (order(begin + i) & place) == first_row + static_cast<std::uint32_t>(i * g);
        }
        write(at + s, consecutive ? base + first_row : base, PackedShape::key_steps(order(begin)), log, consecutive,
              false, g, rows, begin);
      });
      item += items;
      at += here;
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
