// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_STRUCTURE_HPP
#define TESSERA_FORMATS_PACKED_PACKED_STRUCTURE_HPP

#include <cstdint>

#include "formats/packed/Tessera_PackedFill.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// The records of all slices, complete but for the place of the packet, and what the packets add up to: one kernel.

namespace Tessera {
namespace Impl {

/// Sums of teams go to several places, as atomics on one place queue.
struct alignas(128) PackedSizesSpread {
  static constexpr int most = 32;
  PackedSizes sizes;
};

/// Sums over vector lanes.
template <class Memory>
class PackedSizesReducer {
 public:
  using reducer = PackedSizesReducer;
  using value_type = PackedSizes;
  using result_view_type = Kokkos::View<value_type, Memory, Kokkos::MemoryUnmanaged>;

  KOKKOS_INLINE_FUNCTION explicit PackedSizesReducer(value_type& to) : to_(&to) {}
  KOKKOS_INLINE_FUNCTION void init(value_type& s) const { s = value_type{}; }
  KOKKOS_INLINE_FUNCTION void join(value_type& a, const value_type& b) const { PackedSizes::add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile value_type& a, const volatile value_type& b) const {
    PackedSizes::add(a, b);
  }
  KOKKOS_INLINE_FUNCTION value_type& reference() const { return *to_; }
  KOKKOS_INLINE_FUNCTION result_view_type view() const { return result_view_type(to_); }
  KOKKOS_INLINE_FUNCTION bool references_scalar() const { return true; }

 private:
  value_type* to_;
};

/// Slices that there are at most, parts not counted. A window in its own order has one number of lanes, a sorted one
/// as many as its rows ask for, and each leaves one slice partly empty. A row of n entries gets one lane, or if n is
/// above max_steps fewer than 2 n / max_steps + 1; in its own order a window goes by its mean, rounded up.
inline std::int64_t packed_most_slices(const PackedShape& s, std::int64_t nnz, std::int64_t longest) {
  const std::int64_t rows = s.rows * s.blocks, windows = s.sort_windows * s.blocks;
  if (s.even_steps > 0) return windows * ((s.sort_window << s.even_log) / s.lanes + 1);
  const std::int64_t whole = longest < s.part_length() ? longest : s.part_length();
  const std::int64_t classes = (s.log_lanes_of(whole) + 1) * (s.group > 1 ? 2 : 1);
  const std::int64_t more = longest > s.max_steps ? 2 * (nnz + rows) / (std::int64_t{s.max_steps} * s.lanes) : 0;
  return rows / s.lanes + more + windows * classes + 2;
}
/// Parts that there are at most: those of a row are fewer than twice its entries over the length of a part.
inline std::int64_t packed_most_parts(const PackedShape& s, std::int64_t nnz, std::int64_t longest) {
  return s.is_split(longest) ? 2 * nnz / s.part_length() + 1 : 0;
}

/// Room for packets, in packed_unit bytes, that nearly always suffices: a row is rounded up to its lanes, a slice to
/// its longest row, and of the rows of a window with the same lanes one slice is half empty.
inline std::int64_t packed_likely_units(const PackedShape& s, std::int64_t nnz, std::int64_t longest, std::int64_t cols,
                                        int value_bytes, bool narrow) {
  const int index = !narrow ? 4 : cols < 0xff ? 1 : cols < 0xffff ? 2 : cols < 0xffffff ? 3 : 4;
  const std::int64_t whole = longest < s.part_length() ? longest : s.part_length();
  const std::int64_t classes = (s.log_lanes_of(whole) + 1) * (s.group > 1 ? 2 : 1), windows = s.sort_windows * s.blocks;
  const std::int64_t full = std::int64_t{s.max_steps} * s.lanes,
                     slices = windows * classes + s.rows / s.lanes + nnz / full;
  const double slots = 1.2 * static_cast<double>(nnz) + 0.6 * static_cast<double>(windows * classes * full);
  const double bytes = slots * (value_bytes + index) + static_cast<double>(slices) * (3 * s.lanes);
  return static_cast<std::int64_t>(bytes / packed_unit) + 1;
}

/// A Kokkos team makes the records of `chunk` consecutive slices, a thread with its vector lanes one at a time. The
/// last team turns the sizes of the chunks into places, and answers.
template <class Csr>
struct PackedStructureFunctor : PackedSpans<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  static constexpr int most_threads = 32;

  View<SortWindow> sort_windows;
  View<std::uint32_t> pieces;
  PackedPlaces<Csr> places;
  const PackedClassFound* found;    // null: numbers are stored in full
  int natural_bytes, stored_bytes;  // of a number of the matrix, and of one that is stored in full
  std::uint32_t* arrived;           // zero
  PackedTotals* totals;
  PackedSizesSpread* spread;  // most of them, zero
  ReplyPlace<PackedTotals> reply;

  std::size_t scratch_bytes() const {
    return Scratch<PackedSlice>::shmem_size(static_cast<std::size_t>(places.chunk)) +
           Scratch<std::int64_t>::shmem_size(most_threads);
  }

  /// The last sort window whose slices (parts) begin at or before `at`; by all vector lanes of a thread, which look at
  /// one window each.
  template <class Member>
  KOKKOS_INLINE_FUNCTION std::int64_t window_of(const member& team, std::int64_t at, Member SortWindow::*begin) const {
    constexpr int ways = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 2 : 32;
    std::int64_t low = 0, high = static_cast<std::int64_t>(sort_windows.extent(0));
    while (high - low > 1) {
      const std::int64_t step = (high - low + ways - 1) / ways;
      int before = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, ways),
          [&](const int n, int& sum) {
            const std::int64_t w = low + n * step;
            sum += n > 0 && w < high && sort_windows(w).*begin <= at;
          },
          before);
      low += before * step;
      high = low + step < high ? low + step : high;
    }
    return low;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t row_at(std::int64_t base, std::int64_t place) const {
    return base + (this->order(place) & (PackedShape::sort_window_keys - 1));
  }
  KOKKOS_INLINE_FUNCTION static PackedSlice slice_of(std::int64_t row, std::int64_t steps, int log, bool contiguous,
                                                     bool part, int group, int rows) {
    PackedSlice s;
    s.packet = 0;
    s.row = static_cast<std::int32_t>(row);
    s.column = 0;
    s.packed = PackedSlice::pack(static_cast<int>(steps), log, PackedIndex32, contiguous, part, false, group, rows);
    return s;
  }

  KOKKOS_INLINE_FUNCTION PackedSlice part(const member& team, std::int64_t i) const {
    const std::int64_t w = window_of(team, i, &SortWindow::parts), base = this->shape.first_row(w);
    const std::int64_t before = sort_windows(w).parts, k = i - before;
    std::int64_t low = 0, high = sort_windows(w).split;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      if (pieces(base + middle) <= k) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const std::int64_t row = row_at(base, base + low), length = this->map.length(row);
    const std::int64_t which = k - pieces(base + low), left = length - which * this->shape.part_length();
    const std::int64_t here = left < this->shape.part_length() ? left : this->shape.part_length();
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      this->parts(i) =
          PackedPart{static_cast<std::int32_t>(row), static_cast<std::uint32_t>(before + pieces(base + low)),
                     static_cast<std::uint32_t>(this->shape.pieces_of(length)), static_cast<std::uint32_t>(which)};
    });
    const int log = this->shape.log_wave;
    return slice_of(i, PackedShape::steps_of(here, log), log, false, true, 1, 1);
  }

  KOKKOS_INLINE_FUNCTION PackedSlice natural(const member& team, const SortWindow& w, std::int64_t base, int count,
                                             int s) const {
    const int g = w.grouped ? this->shape.group : 1, units = count / g, a_slice = this->shape.lanes >> w.log_lanes;
    const int begin = s * a_slice, rows = units - begin < a_slice ? units - begin : a_slice;
    const std::int64_t first = base + std::int64_t{begin} * g;
    std::int64_t most = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, rows),
        [&](const int q, std::int64_t& m) {
          const std::int64_t steps = PackedShape::steps_of(this->map.length(first + q * g), w.log_lanes);
          m = steps > m ? steps : m;
        },
        Kokkos::Max<std::int64_t>(most));
    if (most < this->shape.even_steps) most = this->shape.even_steps;
    return slice_of(first, most, w.log_lanes, true, false, g, rows);
  }

  KOKKOS_INLINE_FUNCTION PackedSlice sorted(const member& team, const SortWindow& w, std::int64_t base, std::int64_t i,
                                            std::int64_t s) const {
    std::int64_t item = w.split;
    int run = 0, a_slice = 1, log = 0;
    for (; run < 2 * PackedShape::classes; ++run) {
      log = 6 - run % PackedShape::classes;
      if (w.run[run] == 0) continue;
      a_slice = this->shape.lanes >> log;
      const int here = (w.run[run] + a_slice - 1) / a_slice;
      if (s < here) break;
      s -= here;
      item += w.run[run];
    }
    const std::int64_t begin = base + item + s * a_slice, left = w.run[run] - s * a_slice;
    const int g = run < PackedShape::classes ? this->shape.group : 1;
    const int rows = static_cast<int>(left < a_slice ? left : a_slice);
    const std::int64_t first = row_at(base, begin);
    int apart = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, rows),
        [&](const int q, int& n) { n += row_at(base, begin + q) != first + std::int64_t{q} * g; }, apart);
    Kokkos::single(Kokkos::PerThread(team), [&]() { this->slot(i) = static_cast<std::uint32_t>(begin); });
    // Lanes that would have no row, of the last slice of a run, take their share of the others.
    int steps = PackedShape::key_steps(this->order(begin));
    for (; steps > 1 && 2 * (rows << log) <= this->shape.lanes; ++log) steps = (steps + 1) / 2;
    return slice_of(apart == 0 ? first : base, steps, log, apart == 0, false, g, rows);
  }

  KOKKOS_INLINE_FUNCTION PackedSlice record(const member& team, std::int64_t i, std::int64_t all_parts) const {
    if (i < all_parts) return part(team, i);
    const std::int64_t at = i - all_parts, w = window_of(team, at, &SortWindow::slices),
                       base = this->shape.first_row(w);
    const SortWindow window = sort_windows(w);
    if (window.natural) {
      return natural(team, window, base, this->shape.rows_of(w), static_cast<int>(at - window.slices));
    }
    return sorted(team, window, base, i, at - window.slices);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t all = totals->slices, all_parts = totals->parts, room = this->slices.extent(0);
    const std::int64_t chunk = team.league_rank(), first = chunk * places.chunk;
    if (first >= all || all > room) {
      // Never more than the bound; should it be wrong, the host sees it.
      if (all > room && chunk == 0) {
        Kokkos::single(Kokkos::PerTeam(team), [&]() {
          totals->sizes.units = std::int64_t{1} << 62;  // closes the gate of later kernels
          reply.send(*totals);
        });
      }
      return;
    }
    Scratch<PackedSlice> records(team.team_scratch(0), static_cast<std::size_t>(places.chunk));
    Scratch<std::int64_t> sums(team.team_scratch(0), most_threads);
    const int here = static_cast<int>(all - first < places.chunk ? all - first : places.chunk);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, here), [&](const int j) {
      PackedSlice s = record(team, first + j, all_parts);
      this->choose_index(team, first + j, s);
      Kokkos::single(Kokkos::PerThread(team), [&]() { records(j) = this->slices(first + j) = s; });
    });
    team.team_barrier();
    const PackedStorage storage =
        found == nullptr ? PackedStorage::Full : packed_class_of(found->misfit, natural_bytes);
    if (team.team_rank() == 0) add_up(team, records, chunk, here, storage);
    const auto chunks = static_cast<std::uint32_t>((all + places.chunk - 1) / places.chunk);
    if (!last_team(team, arrived, chunks)) return;
    place_chunks(team, sums, static_cast<int>(chunks));
    if (team.team_rank() != 0) return;
    PackedSizes sizes{};
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, PackedSizesSpread::most),
        [&](const int n, PackedSizes& sum) { PackedSizes::add(sum, spread[n].sizes); },
        PackedSizesReducer<typename Csr::memory_space>(sizes));
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, PackedSizesSpread::most),
                         [&](const int n) { spread[n].sizes = PackedSizes{}; });
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      *arrived = 0;
      totals->sizes = sizes;
      totals->storage = storage;
      reply.send(*totals);
    });
  }

  /// Places inside a chunk, and its sums; by one thread with its vector lanes.
  KOKKOS_INLINE_FUNCTION void add_up(const member& team, const Scratch<PackedSlice>& records, std::int64_t chunk,
                                     int here, PackedStorage storage) const {
    const PackedPacket packet(this->shape.lanes, bytes_of_stored(storage, stored_bytes));
    Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, here), [&](const int j, std::int64_t& sum, const bool final) {
      if (final) places.slices(chunk * places.chunk + j) = static_cast<std::uint32_t>(sum);
      sum += static_cast<std::int64_t>(packet.bytes(records(j)) / packed_unit);
    });
    PackedSizes sizes{};
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, here), [&](const int j, PackedSizes& s) { s.count(packet, records(j)); },
        PackedSizesReducer<typename Csr::memory_space>(sizes));
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      places.chunks(chunk) = static_cast<std::uint32_t>(sizes.units);
      PackedSizes& to = spread[chunk % PackedSizesSpread::most].sizes;
      Kokkos::atomic_add(&to.units, sizes.units);
      Kokkos::atomic_add(&to.steps, sizes.steps);
      Kokkos::atomic_add(&to.stored, sizes.stored);
      if (sizes.short_slices > 0) Kokkos::atomic_add(&to.short_slices, sizes.short_slices);
      for (int k = 0; k < 6; ++k) {
        if (sizes.index_slots[k] > 0) Kokkos::atomic_add(&to.index_slots[k], sizes.index_slots[k]);
      }
      if (sizes.grouped_slots > 0) Kokkos::atomic_add(&to.grouped_slots, sizes.grouped_slots);
      if (sizes.id_rows > 0) Kokkos::atomic_add(&to.id_rows, sizes.id_rows);
    });
  }

  /// Sizes of chunks to places: each thread with its vector lanes takes consecutive ones.
  KOKKOS_INLINE_FUNCTION void place_chunks(const member& team, const Scratch<std::int64_t>& sums, int chunks) const {
    const int threads = team.team_size(), share = (chunks + threads - 1) / threads;
    const auto count = [&](int t) {
      const int left = chunks - t * share;
      return left < 0 ? 0 : left < share ? left : share;
    };
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, threads), [&](const int t) {
      std::int64_t sum = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, count(t)),
          [&](const int c, std::int64_t& n) { n += places.chunks(t * share + c); }, sum);
      Kokkos::single(Kokkos::PerThread(team), [&]() { sums(t) = sum; });
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, threads), [&](const int t) {
      std::int64_t before = 0;
      for (int other = 0; other < t; ++other) before += sums(other);
      Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, count(t)),
                            [&](const int c, std::int64_t& sum, const bool final) {
                              const std::int64_t units = places.chunks(t * share + c);
                              if (final) places.chunks(t * share + c) = static_cast<std::uint32_t>(before + sum);
                              sum += units;
                            });
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
