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

/// Which of the pattern's offsets each row has, in their order; nothing more once a row has others.
template <class Csr>
struct PackedDiagonalsFunctor : PackedTypesOf<Csr> {
  typename PackedTypesOf<Csr>::Columns columns;
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> masks;
  PackedDiagonalsFound* found;
  std::int64_t rows;
  int steps;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const std::int64_t unit = rows - found->pattern;
    if (*static_cast<volatile std::uint32_t*>(&found->misfits) != 0) return;
    if (unit >= rows) {
      found->misfits = 1;
      return;
    }
    const auto begin = static_cast<std::int64_t>(row_map(row)), pattern = static_cast<std::int64_t>(row_map(unit));
    const std::int64_t length = static_cast<std::int64_t>(row_map(row + 1)) - begin;
    std::uint32_t mask = 0;
    std::int64_t k = 0;
    for (int step = 0; step < steps && k < length; ++step) {
      const std::int64_t wanted = static_cast<std::int64_t>(columns(pattern + step)) + (row - unit);
      if (static_cast<std::int64_t>(columns(begin + k)) != wanted) continue;
      mask |= 1u << step;
      ++k;
    }
    if (k != length) found->misfits = 1;
    masks(row) = mask;
    for (int step = 0; row == unit && step < steps; ++step) {
      found->offsets[step] = static_cast<std::int32_t>(static_cast<std::int64_t>(columns(begin + step)) - row);
    }
  }
};

/// Slices of few diagonals: records, a copy of the row map, and which lanes have an entry in each step; one thread per
/// step of a slice.
template <class Csr>
struct PackedDiagonalSlicesFunctor : PackedTypesOf<Csr> {
  typename Csr::row_map_type row_map;
  typename PackedTypesOf<Csr>::Map map;  // its copy
  typename PackedTypesOf<Csr>::template View<PackedSlice> slices;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> masks;
  PackedSlice first;  // and by how much packets and rows of the next lie behind
  std::int64_t rows;
  int lanes, value_bytes;
  unsigned char* packets;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const int steps = first.steps(), step = static_cast<int>(i % steps);
    const std::int64_t index = i / steps, first_row = index * first.row, left = rows - first_row;
    PackedSlice s = first;
    s.packet *= static_cast<std::uint32_t>(index);
    s.row = static_cast<std::int32_t>(first_row);
    if (left < s.rows()) s.packed -= static_cast<std::uint32_t>(s.rows() - left) << 21;
    std::uint32_t word = 0;
    for (int q = 0; q < s.rows(); ++q) word |= (masks(first_row + q) >> step & 1u) << q;
    unsigned char* const base = packets + static_cast<std::size_t>(s.packet) * packed_unit;
    reinterpret_cast<std::uint32_t*>(base + PackedPacket(lanes, value_bytes).indices(s))[step] = word;
    for (int q = step; q < s.rows(); q += steps) {
      map.begin(first_row + q) = static_cast<std::int64_t>(row_map(first_row + q));
    }
    if (step != 0) return;
    slices(index) = s;
    if (left <= first.row) map.begin(rows) = static_cast<std::int64_t>(row_map(rows));
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

  /// Makes the shape that of few diagonals if all rows take their columns from those of the first of the longest in the
  /// second half, shifted, in their order. One wait.
  /// @param classes  numbers may be stored in fewer bytes; if they can be, they are, and the shape stays as it is
  void find_diagonals(bool classes) {
    View<PackedDiagonalsFound> found;
    View<PackedClassFound> class_found;
    std::size_t zeroed = 0;
    mask_scratch_ =
        Arena<Memory>::make(space_, backend_, scratch_label, Lifetime::Temporary, [&](Arena<Memory>& arena) {
          found = arena.template take<PackedDiagonalsFound>(1);
          class_found = arena.template take<PackedClassFound>(classes ? 1 : 0);
          zeroed = arena.bytes();
          masks_ = arena.template take<std::uint32_t>(static_cast<std::size_t>(p_.rows));
        });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(mask_scratch_.get()), zeroed), char(0));
    if (classes) numbers_.classify(class_found);
    const int steps = static_cast<int>(f_.longest);
    const std::int64_t from = p_.rows / 2, to = std::min<std::int64_t>(p_.rows, from + 65536);
    Kokkos::parallel_for("Tessera::convert[packed] pattern of diagonals",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, from, to),
                         PackedPatternRowFunctor<Pattern>{A_.row_map(), found.data(), steps, p_.rows, from});
    PackedDiagonalsFunctor<Pattern> f;
    f.columns = A_.entries();
    f.row_map = A_.row_map();
    f.masks = masks_;
    f.found = found.data();
    f.rows = p_.rows;
    f.steps = steps;
    Kokkos::parallel_for("Tessera::convert[packed] diagonals",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, 0, p_.rows), f);
    PackedDiagonalsFound host{};
    fetch(space_, backend_, "Tessera::convert[packed] diagonals", host, found);
    if (host.misfits != 0) return;
    if (classes) {
      PackedClassFound numbers{};
      fetch(space_, backend_, "Tessera::convert[packed] value class", numbers, class_found);
      if (packed_class_of(numbers.misfit, static_cast<int>(numbers_.bytes())) != PackedStorage::Full) return;
    }
    std::copy(std::begin(host.offsets), std::end(host.offsets), std::begin(p_.offsets));
    shape_.diagonals = true;
    shape_.even_steps = p_.max_steps = p_.split_steps = steps;
    shape_.even_log = 0;
  }

  /// Without a wait.
  void make(bool updatable) {
    const PackedSlice slice = make_room(updatable);
    if (shape_.diagonals) {
      PackedDiagonalSlicesFunctor<Pattern> f;
      f.masks = masks_;
      fill_in(f, slice);
      Kokkos::parallel_for("Tessera::convert[packed] slices of diagonals",
                           Kokkos::RangePolicy<Exec, Compat::LightWeight>(
                               space_, 0, static_cast<std::int64_t>(p_.slices.extent(0)) * slice.steps()),
                           f);
    } else {
      PackedEvenFunctor<Pattern> f;
      f.columns = A_.entries();
      f.log_wave = shape_.log_wave;
      fill_in(f, slice);
      Kokkos::parallel_for("Tessera::convert[packed] even slices",
                           Kokkos::RangePolicy<Exec, Compat::LightWeight>(
                               space_, 0, static_cast<std::int64_t>(p_.slices.extent(0)) * p_.lanes),
                           f);
    }
    numbers_.fill(p_, map_, {});
  }

 private:
  static constexpr const char* scratch_label = "Tessera::packed::scratch";

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
  typename Format::Storage scratch_, mask_scratch_;
  View<std::uint32_t> masks_;  // of rows: which diagonals they have
};

}  // namespace Impl
}  // namespace Tessera

#endif
