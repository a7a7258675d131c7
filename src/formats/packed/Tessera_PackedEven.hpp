// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_EVEN_HPP
#define TESSERA_FORMATS_PACKED_PACKED_EVEN_HPP

#include <algorithm>
#include <cstdint>

#include "core/Tessera_Arena.hpp"
#include "formats/packed/Tessera_PackedFill.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// Conversion to slices of one size: even slices, and those of matrices of few diagonals. Nobody has to be asked how
/// large they are, and a kernel knows a slice's packet and rows from its number.

namespace Tessera {
namespace Impl {

/// Even slices: records, a copy of the row map, and indices in one go; one thread per lane of a slice.
template <class Csr>
struct PackedEvenFunctor : PackedTypesOf<Csr> {
  typename PackedTypesOf<Csr>::Columns columns;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Map map;  // its copy
  typename PackedTypesOf<Csr>::template View<PackedSlice> slices;
  PackedSlice first;  // and by how much packets and rows of the next lie behind
  std::int64_t rows;
  int lanes, log_wave, value_bytes;
  unsigned char* packets;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::int64_t index = i >> log_wave, first_row = index * first.row, left = rows - first_row;
    const int lane = static_cast<int>(i & (lanes - 1));
    PackedSlice s = first;
    s.packet *= static_cast<std::uint32_t>(index);
    s.row = static_cast<std::int32_t>(first_row);
    if (left < s.rows()) s.packed -= static_cast<std::uint32_t>(s.rows() - left) << 21;
    const int log = s.log_lanes(), q = lane >> log;
    std::int64_t begin = 0, length = 0;
    if (q < s.rows()) {
      const std::int64_t row = first_row + q, end = static_cast<std::int64_t>(row_map(row + 1));
      begin = static_cast<std::int64_t>(row_map(row));
      length = end - begin;
      map.begin(row) = begin;  // by all lanes of the row
      if (row + 1 == rows) map.begin(rows) = end;
    }
    if (lane == 0) {
      if constexpr (Compat::is_host_v<typename PackedTypesOf<Csr>::exec>) s.set_full_steps(full_steps(s));
      slices(index) = s;
    }
    const PackedPacket packet(lanes, value_bytes);
    store_packed_indices(columns, begin, length, s, packet, lane,
                         packets + static_cast<std::size_t>(s.packet) * packed_unit,
                         [](std::uint32_t column) { return column; });
  }

  /// As PackedSpans::full_steps.
  KOKKOS_INLINE_FUNCTION int full_steps(const PackedSlice& s) const {
    if (s.rows() << s.log_lanes() < lanes) return 0;
    std::int64_t least = s.steps();
    for (int q = 0; q < s.rows(); ++q) {
      const auto length = static_cast<std::int64_t>(row_map(s.row + q + 1) - row_map(s.row + q)) >> s.log_lanes();
      least = length < least ? length : least;
    }
    return static_cast<int>(least);
  }
};

/// What a device finds out of a matrix that may have few diagonals; zero before.
struct PackedDiagonalsFound {
  std::int64_t pattern;   // of the row whose columns are the pattern: how many rows there are from it on; 0: none
  std::uint32_t misfits;  // not zero: some row has other columns
  std::int32_t offsets[packed_most_diagonals];
};

/// The first row of so many entries.
template <class Csr>
struct PackedPatternRowFunctor {
  typename Csr::row_map_type row_map;
  PackedDiagonalsFound* found;
  std::int64_t length, rows, from;  // the first row that is looked at

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const auto begin = static_cast<std::int64_t>(row_map(row));
    if (static_cast<std::int64_t>(row_map(row + 1)) - begin != length) return;
    // Behind a row of as many entries it is not the first; nearly all are, and atomics on one place queue.
    if (row > from && begin - static_cast<std::int64_t>(row_map(row - 1)) == length) return;
    const std::int64_t left = rows - row;
    if (*static_cast<volatile std::int64_t*>(&found->pattern) < left) Kokkos::atomic_fetch_max(&found->pattern, left);
  }
};

/// Slices of few diagonals: which of the pattern's offsets each row has, in their order, as a word per step that says
/// which lanes have an entry; records; a copy of the row map. Devices: one thread per lane of a slice, hosts: one per
/// slice. Nothing more is looked at once a row has other columns.
template <class Csr>
struct PackedDiagonalsFunctor : PackedTypesOf<Csr> {
  static constexpr bool host = Compat::is_host_v<typename PackedTypesOf<Csr>::exec>;
  typename PackedTypesOf<Csr>::Columns columns;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Map map;  // its copy
  typename PackedTypesOf<Csr>::template View<PackedSlice> slices;
  PackedSlice first;  // and by how much packets and rows of the next lie behind
  std::int64_t rows;
  int lanes, value_bytes;
  unsigned char* packets;
  PackedDiagonalsFound* found;

  /// Items of parallel_for: whole words of 32 threads on devices.
  std::int64_t items() const {
    const auto count = static_cast<std::int64_t>(slices.extent(0));
    return host ? count : (count * lanes + 31) / 32 * 32;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::int64_t unit = rows - found->pattern;
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    const bool stop = unit >= rows || *static_cast<volatile std::uint32_t*>(&found->misfits) != 0;
    if (vote(stop) != 0) {
      if (i == 0) found->misfits = 1;
      return;
    }
    const int lane = static_cast<int>(i & (lanes - 1)), steps = first.steps();
    const std::int64_t index = i / static_cast<unsigned>(lanes), row = index * lanes + lane;
    const std::uint32_t mask = row < rows ? mask_of(row, unit) : 0;
    const auto here = static_cast<int>(i & 31) - lane;  // of the slice's first lane among the 32 threads
    const bool exists = index < static_cast<std::int64_t>(slices.extent(0));
    for (int from = 0; from < steps; from += lanes) {
      std::uint32_t mine = 0;  // the word of step from + lane
      for (int n = 0; n < lanes && from + n < steps; ++n) {
        const std::uint32_t word = vote((mask >> (from + n) & 1u) != 0) >> here;
        mine = n == lane ? word : mine;
      }
      if (exists && from + lane < steps) put(index, from + lane, lanes < 32 ? mine & ((1u << lanes) - 1) : mine);
    }
    if (exists && lane == 0) put_record(index);
#else
    if (unit >= rows || *static_cast<volatile std::uint32_t*>(&found->misfits) != 0) {
      found->misfits = 1;
      return;
    }
    std::uint32_t words[packed_most_diagonals] = {};
    const int steps = first.steps();
    for (int lane = 0; lane < lanes && i * lanes + lane < rows; ++lane) {
      const std::uint32_t mask = mask_of(i * lanes + lane, unit);
      for (int step = 0; step < steps; ++step) words[step] |= (mask >> step & 1u) << lane;
    }
    for (int step = 0; step < steps; ++step) put(i, step, words[step]);
    put_record(i);
#endif
  }

  /// Of a row, whose part of the row map is copied.
  KOKKOS_INLINE_FUNCTION std::uint32_t mask_of(std::int64_t row, std::int64_t unit) const {
    const auto begin = static_cast<std::int64_t>(row_map(row)), end = static_cast<std::int64_t>(row_map(row + 1));
    const auto pattern = static_cast<std::int64_t>(row_map(unit));
    const int length = static_cast<int>(end - begin), steps = first.steps();
    map.begin(row) = begin;
    if (row + 1 == rows) map.begin(rows) = end;
    std::uint32_t mask = 0;
    int k = 0;
    if (length == steps) {      // all or none: no step waits for the one before
      constexpr int batch = 4;  // loads at once; beyond the last step the first of them again
      int others = 0;
      for (int from = 0; from < steps; from += batch) {
        for (int n = 0; n < batch; ++n) {
          const int step = from + n < steps ? from + n : from;
          const std::int64_t wanted = static_cast<std::int64_t>(columns(pattern + step)) + (row - unit);
          others += static_cast<std::int64_t>(columns(begin + step)) != wanted;
        }
      }
      mask = steps < 32 ? (1u << steps) - 1 : ~0u;
      if (others == 0) k = length;
    }
    for (int step = 0; length < steps && step < steps && k < length; ++step) {
      const std::int64_t wanted = static_cast<std::int64_t>(columns(pattern + step)) + (row - unit);
      if (static_cast<std::int64_t>(columns(begin + k)) != wanted) continue;
      mask |= 1u << step;
      ++k;
    }
    if (k != length) found->misfits = 1;
    for (int step = 0; row == unit && step < steps; ++step) {
      found->offsets[step] = static_cast<std::int32_t>(static_cast<std::int64_t>(columns(begin + step)) - row);
    }
    return mask;
  }
  KOKKOS_INLINE_FUNCTION PackedSlice record(std::int64_t index) const {
    PackedSlice s = first;
    const std::int64_t first_row = index * first.row, left = rows - first_row;
    s.packet *= static_cast<std::uint32_t>(index);
    s.row = static_cast<std::int32_t>(first_row);
    if (left < s.rows()) s.packed -= static_cast<std::uint32_t>(s.rows() - left) << 21;
    return s;
  }
  KOKKOS_INLINE_FUNCTION void put_record(std::int64_t index) const { slices(index) = record(index); }
  KOKKOS_INLINE_FUNCTION void put(std::int64_t index, int step, std::uint32_t word) const {
    const PackedSlice s = record(index);
    unsigned char* const base = packets + static_cast<std::size_t>(s.packet) * packed_unit;
    reinterpret_cast<std::uint32_t*>(base + PackedPacket(lanes, value_bytes).indices(s))[step] = word;
  }
};

/// Whether all rows fitted: to the host, and to the kernel of the values. Leaves `found` zero.
struct PackedDiagonalsAnswer {
  PackedDiagonalsFound* found;
  PackedTotals* totals;
  std::int64_t slices;
  ReplyPlace<PackedDiagonalsFound> reply;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t) const {
    const PackedDiagonalsFound all = *found;
    *found = PackedDiagonalsFound{};
    *totals = PackedTotals{};
    totals->slices = all.misfits == 0 ? slices : 0;
    totals->storage = PackedStorage::Full;
    reply.send(all);
  }
};

/// The conversion of a matrix whose slices are of one size, as `shape` says.
template <class Pattern, class Exec>
class PackedEvenConversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Format = Experimental::PackedSlices<Memory>;
  template <class T>
  using View = typename Format::template View<T>;

  PackedEvenConversion(const Exec& space, const Pattern& A, const PackedNumbers<Memory>& numbers,
                       const SpmvFeatures& features, const KernelTable* backend, Format& p, PackedShape& shape)
      : space_(space), A_(A), numbers_(numbers), f_(features), backend_(backend), p_(p), shape_(shape) {}

  /// Slices of few diagonals, if all rows take their columns from those of the first of the longest in the second half,
  /// shifted, in their order; if some do not, everything is as it was. All kernels are enqueued before it is known. One
  /// wait.
  /// @param classes  numbers may be stored in fewer bytes; if they can be, they are, and there are no diagonals
  bool make_diagonals(bool classes, bool updatable) {
    if (classes && !packed_stays_full(space_, backend_, numbers_)) return false;
    const PackedShape shape = shape_;
    const int max_steps = p_.max_steps, split_steps = p_.split_steps, steps = static_cast<int>(f_.longest);
    shape_.diagonals = true;
    shape_.even_steps = p_.max_steps = p_.split_steps = steps;
    shape_.even_log = 0;
    take_scratch();
    const std::int64_t from = p_.rows / 2, to = std::min<std::int64_t>(p_.rows, from + 65536);
    Kokkos::parallel_for("Tessera::convert[packed] pattern of diagonals",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, from, to),
                         PackedPatternRowFunctor<Pattern>{A_.row_map(), found_.data(), steps, p_.rows, from});
    PackedDiagonalsFunctor<Pattern> f;
    fill_in(f, make_room(updatable));
    f.columns = A_.entries();
    f.found = found_.data();
    Kokkos::parallel_for("Tessera::convert[packed] diagonals",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, 0, f.items()), f);
    Reply<PackedDiagonalsFound> reply(backend_);
    const auto slices = static_cast<std::int64_t>(p_.slices.extent(0));
    Kokkos::parallel_for("Tessera::convert[packed] answer",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, 0, 1),
                         PackedDiagonalsAnswer{found_.data(), totals_.data(), slices, reply.ask(answer_)});
    numbers_.fill(p_, map_, {totals_.data(), 0, slices});
    const PackedDiagonalsFound found = reply.receive(space_, "Tessera::convert[packed] diagonals", answer_);
    if (found.misfits == 0) {
      std::copy(std::begin(found.offsets), std::end(found.offsets), std::begin(p_.offsets));
      return true;
    }
    // What the kernels borrowed is theirs until they end; a conversion with other slices borrows anew.
    Compat::fence(space_, "Tessera::convert[packed] no diagonals");
    p_.done();
    shape_ = shape;
    p_.max_steps = max_steps, p_.split_steps = split_steps;
    p_.summary = {};
    p_.slices = {}, p_.packets = {}, p_.row_map = {};
    p_.structure_storage.reset();
    return false;
  }

  /// Without a wait.
  void make(bool updatable) {
    PackedEvenFunctor<Pattern> f;
    f.columns = A_.entries();
    f.log_wave = shape_.log_wave;
    fill_in(f, make_room(updatable));
    Kokkos::parallel_for("Tessera::convert[packed] even slices",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(
                             space_, 0, static_cast<std::int64_t>(p_.slices.extent(0)) * p_.lanes),
                         f);
    numbers_.fill(p_, map_, {});
  }

 private:
  static constexpr const char* scratch_label = "Tessera::packed::scratch";

  /// Memory of the search for diagonals: borrowed, or else allocated and its first part filled with zeros.
  void take_scratch() {
    const auto layout = [&](Arena<Memory>& arena) {
      found_ = arena.template take<PackedDiagonalsFound>(1);
      arena.skip_to(borrowed_zero_bytes);
      totals_ = arena.template take<PackedTotals>(1);
      answer_ = arena.template take<PackedDiagonalsFound>(1);
    };
    p_.borrowed = Borrowed::open<Memory>(space_, backend_, scratch_label, Arena<Memory>::bytes_of(layout));
    if (p_.borrowed) return Arena<Memory>::place(p_.borrowed->data(), layout);
    found_scratch_ = Arena<Memory>::make(space_, backend_, scratch_label, Lifetime::Temporary, layout);
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(found_scratch_.get()), sizeof(PackedDiagonalsFound)),
                      char(0));
  }
  /// @return the first slice, and by how much packets and rows of the next lie behind
  PackedSlice make_room(bool updatable) {
    PackedSlice slice{};
    slice.packed = shape_.even_slice(p_.cols);
    slice.row = slice.rows();
    const PackedPacket packet(p_.lanes, p_.value_bytes());
    slice.packet = static_cast<std::uint32_t>(packet.bytes(slice) / packed_unit);
    const std::int64_t slices = (p_.rows + slice.rows() - 1) / slice.rows();
    Experimental::PackedSummary& summary = p_.summary;
    summary.slices = slices;
    summary.units = slices * slice.packet;
    summary.steps = slices * slice.steps();
    summary.stored = summary.steps * p_.lanes;
    summary.short_slices = slice.steps() <= 5 ? slices : 0;
    summary.index_slots[slice.index()] = summary.stored;
    require<NotSupported>(summary.units < (std::int64_t{1} << 32), [&] {
      return "packed slices of " + std::to_string(static_cast<std::int64_t>(summary.units) * packed_unit) +
             " bytes, fewer than 2^37 can be named; SpmvAlgorithm::Csr has no such limit";
    });
    const auto take_map = [&](Arena<Memory>& arena) {
      p_.row_map = arena.template take<std::int64_t>(static_cast<std::size_t>(p_.rows) + 1);
    };
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.slices = arena.template take<PackedSlice>(static_cast<std::size_t>(slices));
          p_.packets = arena.template take<std::uint64_t>(static_cast<std::size_t>(summary.units) * (packed_unit / 8));
          if (updatable) take_map(arena);
        });
    if (!updatable) scratch_ = Arena<Memory>::make(space_, backend_, scratch_label, Lifetime::Temporary, take_map);
    map_.begin = p_.row_map;
    return slice;
  }
  template <class Functor>
  void fill_in(Functor& f, const PackedSlice& slice) const {
    f.row_map = A_.row_map();
    f.map = map_;
    f.slices = p_.slices;
    f.first = slice;
    f.rows = p_.rows;
    f.lanes = p_.lanes;
    f.value_bytes = p_.value_bytes();
    f.packets = reinterpret_cast<unsigned char*>(p_.packets.data());
  }

  const Exec& space_;
  const Pattern& A_;
  const PackedNumbers<Memory>& numbers_;
  const SpmvFeatures& f_;
  const KernelTable* backend_;
  Format& p_;
  PackedShape& shape_;
  PackedRowMap<Memory> map_;
  typename Format::Storage scratch_, found_scratch_;
  View<PackedDiagonalsFound> found_, answer_;
  View<PackedTotals> totals_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
