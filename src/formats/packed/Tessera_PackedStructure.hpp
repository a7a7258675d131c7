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

/// Sums of teams go to several places, as atomics on one place queue. Apart by padding: memory of hosts begins at
/// multiples of 64 bytes only.
struct PackedSizesSpread {
  static constexpr int most = 32;
  PackedSizes sizes;
  char apart[128 - sizeof(PackedSizes)];
};

/// Sums over vector lanes.
template <class Memory>
class PackedSizesReducer {
 public:
  using reducer = PackedSizesReducer;
  using value_type = PackedSizesOf<std::uint32_t>;
  using result_view_type = Kokkos::View<value_type, Memory, Kokkos::MemoryUnmanaged>;

  KOKKOS_INLINE_FUNCTION explicit PackedSizesReducer(value_type& to) : to_(&to) {}
  KOKKOS_INLINE_FUNCTION void init(value_type& s) const { s = value_type{}; }
  KOKKOS_INLINE_FUNCTION void join(value_type& a, const value_type& b) const { value_type::add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile value_type& a, const volatile value_type& b) const {
    value_type::add(a, b);
  }
  KOKKOS_INLINE_FUNCTION value_type& reference() const { return *to_; }
  KOKKOS_INLINE_FUNCTION result_view_type view() const { return result_view_type(to_); }
  KOKKOS_INLINE_FUNCTION bool references_scalar() const { return true; }

 private:
  value_type* to_;
};

/// Slices that there are at most, parts not counted. A window in its own order has one number of lanes, a sorted one
/// as many as its rows ask for and one of rows without entries, and each leaves one slice partly empty. A row of n
/// entries gets one lane, or if n is above max_steps fewer than 2 n / max_steps + 1; in its own order a window goes by
/// its mean, rounded up.
inline std::int64_t packed_most_slices(const PackedShape& s, std::int64_t nnz, std::int64_t longest) {
  const std::int64_t rows = s.rows * s.blocks, windows = s.sort_windows * s.blocks;
  if (s.even_steps > 0) return windows * ((s.sort_window << s.even_log) / s.lanes + 1);
  const std::int64_t whole = longest < s.part_length() ? longest : s.part_length();
  const std::int64_t classes = (s.log_lanes_of(whole) + 1) * (s.group > 1 ? 2 : 1);
  const std::int64_t more = longest > s.max_steps ? 2 * (nnz + rows) / (std::int64_t{s.max_steps} * s.lanes) : 0;
  return rows / s.lanes + more + windows * (classes + 1) + 2;
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

/// Slices that there are about, for kernels that can do with fewer threads.
inline std::int64_t packed_likely_slices(const PackedShape& s, std::int64_t nnz) {
  return s.rows * s.blocks / s.lanes + nnz / (2 * std::int64_t{s.max_steps} * s.lanes) + s.sort_windows * s.blocks + 1;
}

/// A Kokkos team makes the records of `chunk` consecutive slices. What sort windows tell of them, each lane finds for
/// one slice; what their rows tell, a thread with its vector lanes for one at a time. The last team turns the sizes of
/// the chunks into places, and answers. What this takes is instructions (perf_test/notes/conversion.md).
template <class Csr>
struct PackedStructureFunctor : PackedSpans<Csr> {
  using member = typename PackedTypesOf<Csr>::member;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  template <class T>
  using Scratch = typename PackedTypesOf<Csr>::template Scratch<T>;
  using Lanes = typename PackedSpans<Csr>::Lanes;
  static constexpr int vector = PackedSpans<Csr>::vector, most_threads = 32;

  View<SortWindow> sort_windows;
  SortPlaces<typename Csr::memory_space> starts;
  View<std::uint32_t> pieces;
  PackedPlaces<Csr> places;
  const PackedClassFound* found;    // null: numbers are stored in full
  int natural_bytes, stored_bytes;  // of a number of the matrix, and of one that is stored in full
  std::uint32_t* arrived;           // zero
  PackedTotals* totals;
  PackedSizesSpread* spread;  // most of them, zero
  ReplyPlace<PackedTotals> reply;

  std::size_t scratch_bytes() const {
    const auto chunk = static_cast<std::size_t>(places.chunk);
    return Scratch<PackedSlice>::shmem_size(chunk) + Scratch<std::uint32_t>::shmem_size(chunk) +
           Scratch<std::uint32_t>::shmem_size(most_threads);
  }

  /// The last sort window whose slices (parts) begin at or before `at`; by all vector lanes of a thread, which look at
  /// one window each.
  KOKKOS_INLINE_FUNCTION std::int64_t window_of(const member& team, std::int64_t at, bool parts) const {
    constexpr int ways = Compat::is_host_v<typename PackedTypesOf<Csr>::exec> ? 2 : 32;
    std::int64_t low = 0, high = starts.windows();
    while (high - low > 1) {
      const std::int64_t step = (high - low + ways - 1) / ways;
      const std::uint32_t before = Lanes::sum(team, ways, [&](const int n) {
        const std::int64_t w = low + n * step;
        const bool begun = n > 0 && w < high && std::int64_t{parts ? starts.parts(w) : starts.slices(w)} <= at;
        return static_cast<std::uint32_t>(begun);
      });
      low += std::int64_t{before} * step;
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
  KOKKOS_INLINE_FUNCTION static PackedSlice empty_slice(std::int64_t row, bool contiguous, int rows) {
    PackedSlice s;
    s.packet = 0;
    s.row = static_cast<std::int32_t>(row);
    s.column = static_cast<std::uint32_t>(rows);
    s.packed = PackedSlice::pack(0, 0, PackedEmpty, contiguous, false, false, 1, 1);
    return s;
  }

  KOKKOS_INLINE_FUNCTION PackedSlice part(const member& team, std::int64_t i) const {
    const std::int64_t w = window_of(team, i, true), base = this->shape.first_row(w);
    const std::int64_t before = starts.parts(w), k = i - before;
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

  /// Slice s of sort window w without what its rows tell: how many steps they take in their own order, whether they
  /// follow each other if they are sorted. @param place  in `order` of the first row, if sorted
  KOKKOS_INLINE_FUNCTION PackedSlice outline(std::int64_t w, std::int64_t s, std::uint32_t& place) const {
    const SortWindow& window = sort_windows(w);
    const std::int64_t base = this->shape.first_row(w);
    if (window.natural) {
      const int g = window.grouped ? this->shape.group : 1, units = this->shape.rows_of(w) / g;
      const int a_slice = this->shape.lanes >> window.log_lanes, begin = static_cast<int>(s) * a_slice;
      place = 0;
      return slice_of(base + std::int64_t{begin} * g, 0, window.log_lanes, true, false, g,
                      units - begin < a_slice ? units - begin : a_slice);
    }
    int item = window.split, left = static_cast<int>(s), of_run = 0, run = -1;  // left: slices before it in its run
    for (std::uint32_t rest = window.filled; rest != 0; rest &= rest - 1) {
      const int r = bits_set((rest & (~rest + 1)) - 1), rows = window.run[r], shift = this->shape.log_slice_rows(r);
      const int here = (rows + (1 << shift) - 1) >> shift;
      run = r, of_run = rows;
      if (left < here) break;
      left -= here, item += rows;
    }
    const int shift = this->shape.log_slice_rows(run), begin = left << shift, rest = of_run - begin;
    place = static_cast<std::uint32_t>(base + item + begin);
    const int rows = rest < 1 << shift ? rest : 1 << shift;
    if (run == PackedShape::empty_run) return empty_slice(base, false, rows);
    // Lanes that would have no row, of the last slice of a run, take their share of the others.
    int steps = PackedShape::key_steps(this->order(place)), log = this->shape.log_wave - shift;
    for (; steps > 1 && 2 * (rows << log) <= this->shape.lanes; ++log) steps = (steps + 1) / 2;
    return slice_of(base, steps, log, false, false, run < PackedShape::classes ? this->shape.group : 1, rows);
  }
  /// Completes an outline, but for its index; by all vector lanes of a thread.
  KOKKOS_INLINE_FUNCTION void complete(const member& team, PackedSlice& s, std::int64_t place) const {
    const int log = s.log_lanes(), g = s.group(), rows = s.rows();
    if (s.contiguous()) {
      const std::int64_t first = s.row;
      const auto most = static_cast<int>(Lanes::greatest(team, rows, [&](const int q) {
        return static_cast<std::uint32_t>(PackedShape::steps_of(this->map.length(first + q * g), log));
      }));
      s = slice_of(first, most < this->shape.even_steps ? this->shape.even_steps : most, log, true, false, g, rows);
      return;
    }
    const std::int64_t first = row_at(s.row, place);
    const std::uint32_t apart = Lanes::sum(team, rows, [&](const int q) {
      return static_cast<std::uint32_t>(row_at(s.row, place + q) != first + std::int64_t{q} * g);
    });
    if (apart > 0) return;
    s = s.index() == PackedEmpty ? empty_slice(first, true, rows)
                                 : slice_of(first, s.steps(), log, true, false, g, rows);
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
    Scratch<std::uint32_t> where(team.team_scratch(0), static_cast<std::size_t>(places.chunk));
    Scratch<std::uint32_t> sums(team.team_scratch(0), most_threads);
    const int here = static_cast<int>(all - first < places.chunk ? all - first : places.chunk);
    make_records(team, records, where, first, here, all_parts);
    team.team_barrier();
    const PackedStorage storage =
        found == nullptr ? PackedStorage::Full : packed_class_of(found->misfit, natural_bytes);
    if (team.team_rank() == 0) add_up(team, records, chunk, here, storage);
    const auto chunks = static_cast<std::uint32_t>((all + places.chunk - 1) / places.chunk);
    if (!last_team(team, arrived, chunks)) return;
    place_chunks(team, sums, static_cast<int>(chunks));
    add_sizes(team);
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      *arrived = 0;
      totals->storage = storage;
      reply.send(*totals);
    });
  }

  /// The records of slices [first, first + here).
  KOKKOS_INLINE_FUNCTION void make_records(const member& team, const Scratch<PackedSlice>& records,
                                           const Scratch<std::uint32_t>& where, std::int64_t first, int here,
                                           std::int64_t all_parts) const {
    const int parts = all_parts <= first ? 0 : all_parts - first < here ? static_cast<int>(all_parts - first) : here;
    const std::int64_t before = first + parts - all_parts, windows = starts.windows();
    const int share = vector > 1 ? vector : here;  // of a thread that makes outlines
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, (here - parts + share - 1) / share), [&](const int t) {
      const int begin = t * share, count = here - parts - begin < share ? here - parts - begin : share;
      const std::int64_t from = window_of(team, before + begin, false);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](const int j) {
        const auto at = static_cast<std::uint32_t>(before + begin + j);
        std::int64_t w = from;
        while (w + 1 < windows && starts.slices(w + 1) <= at) ++w;
        const int n = parts + begin + j;
        std::uint32_t place;
        records(n) = outline(w, at - starts.slices(w), place);
        where(n) = place;
        this->slot(first + n) = place;
      });
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, here), [&](const int j) {
      PackedSlice s;
      std::int64_t place = 0;
      if (j < parts) {
        s = part(team, first + j);
      } else {
        s = records(j);
        place = where(j);
        complete(team, s, place);
      }
      if (s.index() != PackedEmpty) this->choose_index(team, first + j, s, place);
      Kokkos::single(Kokkos::PerThread(team), [&]() { records(j) = this->slices(first + j) = s; });
    });
  }

  /// Places inside a chunk, and its sums; by one thread with its vector lanes.
  KOKKOS_INLINE_FUNCTION void add_up(const member& team, const Scratch<PackedSlice>& records, std::int64_t chunk,
                                     int here, PackedStorage storage) const {
    const PackedPacket packet(this->shape.lanes, bytes_of_stored(storage, stored_bytes));
    Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, here),
                          [&](const int j, std::uint32_t& sum, const bool final) {
                            if (final) places.slices(chunk * places.chunk + j) = sum;
                            sum += static_cast<std::uint32_t>(packet.bytes(records(j)) / packed_unit);
                          });
    using Sizes = PackedSizesOf<std::uint32_t>;
    Sizes sizes = Lanes::template sums<PackedSizesReducer<typename Csr::memory_space>>(
        team, here, [&](const int j, Sizes& s) { s.count(packet, records(j)); });
    PackedSizes& to = spread[chunk % PackedSizesSpread::most].sizes;
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      places.chunks(chunk) = sizes.units;
      for (int n = 0; n < Sizes::numbers; ++n) {
        if (sizes.number(n) > 0) Kokkos::atomic_add(&to.number(n), std::int64_t{sizes.number(n)});
      }
    });
  }

  /// Sums of all teams to `totals`; a number per thread with its vector lanes.
  KOKKOS_INLINE_FUNCTION void add_sizes(const member& team) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, PackedSizes::numbers), [&](const int n) {
      std::int64_t all = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, PackedSizesSpread::most),
          [&](const int place, std::int64_t& sum) {
            sum += spread[place].sizes.number(n);
            spread[place].sizes.number(n) = 0;
          },
          all);
      Kokkos::single(Kokkos::PerThread(team), [&]() { totals->sizes.number(n) = all; });
    });
  }

  /// Sizes of chunks to places; a lane takes consecutive ones. Fewer than 2^32 units, or the host refuses them.
  KOKKOS_INLINE_FUNCTION void place_chunks(const member& team, const Scratch<std::uint32_t>& sums, int chunks) const {
    constexpr int batch = vector > 1 ? 8 : 1;  // loads before the first store
    const int threads = team.team_size(), share = (chunks + threads * vector - 1) / (threads * vector);
    // f(chunk, its size) for those of lane `lane` of all.
    const auto each = [&](int lane, const auto& f) {
      const int last = (lane + 1) * share < chunks ? (lane + 1) * share : chunks;
      for (int first = lane * share; first < last; first += batch) {
        std::uint32_t size[batch];
        for (int n = 0; n < batch; ++n) size[n] = places.chunks(first + n < last ? first + n : first);
        for (int n = 0; n < batch && first + n < last; ++n) f(first + n, size[n]);
      }
    };
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, threads), [&](const int t) {
      const std::uint32_t sum = Lanes::sum(team, vector, [&](const int lane) {
        std::uint32_t own = 0;
        each(t * vector + lane, [&](int, std::uint32_t size) { own += size; });
        return own;
      });
      Kokkos::single(Kokkos::PerThread(team), [&]() { sums(t) = sum; });
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, threads), [&](const int t) {
      std::uint32_t before = 0;
      for (int other = 0; other < t; ++other) before += sums(other);
      Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, vector),
                            [&](const int lane, std::uint32_t& sum, const bool final) {
                              each(t * vector + lane, [&](int chunk, std::uint32_t size) {
                                if (final) places.chunks(chunk) = before + sum;
                                sum += size;
                              });
                            });
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
