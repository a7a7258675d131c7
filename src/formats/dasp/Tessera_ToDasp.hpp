// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_DASP_TO_DASP_HPP
#define TESSERA_FORMATS_DASP_TO_DASP_HPP

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "Tessera_Options.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"
#include "formats/dasp/Tessera_DaspFill.hpp"

/// \file
/// CSR to DASP on the execution space of the matrix, with two waits for sizes. Bytes moved, ideally: row_map twice,
/// 21 per row for the order, CSR once (12 per entry in FP64), the format once (12 per slot).

namespace Tessera {
namespace Impl {

inline void check(const DaspOptions& o) {
  require<InvalidArgument>(o.max_medium_length == 0 || (o.max_medium_length >= 4 && o.max_medium_length <= 255), [&] {
    return "DaspOptions::max_medium_length must be 0 (by size) or lie in [4, 255], is " +
           std::to_string(o.max_medium_length);
  });
  require<InvalidArgument>(o.threshold > 0 && o.threshold <= 1, [&] {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", o.threshold);
    return std::string("DaspOptions::threshold must lie in (0, 1], is ") + text;
  });
  require<InvalidArgument>(o.min_pairs >= 0 && o.entries_per_wave >= 0, [&] {
    return "DaspOptions::min_pairs and entries_per_wave must not be negative: " + std::to_string(o.min_pairs) + ", " +
           std::to_string(o.entries_per_wave);
  });
}

inline DaspBins dasp_bins(const DaspOptions& o, const DaspGeometry& g, std::int64_t rows, std::int64_t nnz) {
  DaspBins b;
  // A wave takes a row-block of eight whole rows: in small matrices too few waves would have too much to do.
  b.max_medium = o.max_medium_length > 0 ? o.max_medium_length : nnz < 5000000 ? 128 : 255;
  for (int global = 0; global < 2; ++global) {
    // Work of a wave: enough to cover its start, little enough to fill the device; more where rows of one length, and
    // so often of one neighbourhood, stand together and share what the first level holds of x. 16-bit entries are half
    // the bytes. Measured: perf_test/notes/spmv-dasp.md.
    const int automatic = nnz < 1000000 ? 256 : global == 1 && nnz >= 5000000 ? 2048 : 512;
    const std::int64_t wave_entries =
        std::int64_t{o.entries_per_wave > 0 ? o.entries_per_wave : automatic} * (g.value_bytes == 8 ? 1 : 2);
    const int four =
        o.adaptive_work ? static_cast<int>(std::clamp<std::int64_t>(wave_entries / 32, 4, b.max_medium)) : 4;
    const int two =
        o.adaptive_work ? static_cast<int>(std::clamp<std::int64_t>(wave_entries / 16, four, b.max_medium)) : 4;
    const int first[] = {0, 1, 256 - two, 256 - four, 252, 253, 254, 255, 256, 257};
    std::copy(std::begin(first), std::end(first), b.first_bin[global]);
  }
  b.sort = o.sort;
  b.sort_windows = (rows + DaspBins::sort_window - 1) / DaspBins::sort_window;
  return b;
}

/// Rows and entries of each class, and where in the row order it begins.
template <class MemorySpace>
void dasp_class_sizes(Experimental::Dasp<MemorySpace>& d, const DaspSummary& s, const DaspOptions& o) {
  const DaspGeometry& g = d.geometry;
  std::int64_t n[DaspBins::sections];
  for (int i = 0; i < DaspBins::sections; ++i) n[i] = s.section_begin[i + 1] - s.section_begin[i];
  const std::int64_t n4 = n[4], n3 = n[5], n2 = n[6], n1 = n[7], n0 = n[8];
  std::int64_t pairs = std::min(n1, n3);
  pairs = pairs >= std::max(o.min_pairs, 1) ? pairs - pairs % (g.rows * g.slices) : 0;

  const std::int64_t rows[DaspClasses] = {n[0], n[1], n[2], n[3], pairs, n2, n3 - pairs, n4, n1 - pairs, n0};
  const std::int64_t at[DaspClasses] = {s.section_begin[0],         s.section_begin[1], s.section_begin[2],
                                        s.section_begin[3],         s.section_begin[5], s.section_begin[6],
                                        s.section_begin[5] + pairs, s.section_begin[4], s.section_begin[7] + pairs,
                                        s.section_begin[8]};
  for (int c = 0; c < DaspClasses; ++c) {
    d.kernel_rows[c] = static_cast<std::uint32_t>(rows[c]);
    d.class_rows[c] = rows[c];
    d.first_position[c] = static_cast<std::uint32_t>(at[c]);
  }
  d.class_rows[DaspPairs13] = 2 * pairs;
  d.pair_ones_position = static_cast<std::uint32_t>(s.section_begin[7]);
  d.max_length = s.max_length;
  d.long_blocks = s.long_pieces;

  d.class_nnz[DaspLong] = s.long_nnz;
  d.class_nnz[DaspPairs13] = 4 * pairs;
  d.class_nnz[DaspPairs22] = 2 * n2;
  d.class_nnz[DaspThree] = 3 * (n3 - pairs);
  d.class_nnz[DaspFour] = 4 * n4;
  d.class_nnz[DaspSingle] = n1 - pairs;
  d.class_nnz[DaspMedium4] = d.nnz;
  for (const int c : {DaspLong, DaspPairs13, DaspPairs22, DaspThree, DaspFour, DaspSingle}) {
    d.class_nnz[DaspMedium4] -= d.class_nnz[c];
  }
  d.irregular = d.class_nnz[DaspSingle];
}

/// Steps of the short classes and waves of each class, in launch order: the long pieces first, they take longest.
template <class MemorySpace>
void dasp_waves(Experimental::Dasp<MemorySpace>& d, const DaspOptions& o) {
  const DaspGeometry& g = d.geometry;
  std::int64_t rows[DaspClasses];
  for (int c = 0; c < DaspClasses; ++c) rows[c] = d.kernel_rows[c];
  const std::int64_t units = d.slots_per_step() / 4;
  const std::int64_t short_steps[] = {(rows[DaspPairs13] + units - 1) / units,
                                      ((rows[DaspPairs22] + 1) / 2 + units - 1) / units,
                                      (rows[DaspThree] + units - 1) / units, (rows[DaspFour] + units - 1) / units};
  std::int64_t step = 0;
  for (int c = 0; c < 4; ++c) {
    d.first_step[DaspPairs13 + c] = static_cast<std::uint32_t>(step);
    step += short_steps[c];
  }
  d.steps = step;

  std::int64_t waves[DaspClasses], block = d.long_blocks;
  waves[DaspLong] = d.long_blocks;
  for (int c = DaspMedium1; c <= DaspMedium4; ++c) {
    const std::int64_t set = std::int64_t{g.rows} << (c - DaspMedium1);
    d.first_block[c] = static_cast<std::uint32_t>(block);
    d.medium_sets[c - DaspMedium1] = (rows[c] + set - 1) / set;
    block += d.medium_sets[c - DaspMedium1];
  }
  d.block_count = block;
  // Several units per wave, loaded ahead, once there are enough of them to fill every device; sets of one or two
  // row-blocks are work enough for a wave.
  const auto per_wave = [&](std::int64_t units) {
    return static_cast<std::uint32_t>(!o.adaptive_work || units < 8192 ? 1 : units < 16384 ? 2 : 4);
  };
  waves[DaspMedium1] = d.medium_sets[0];
  waves[DaspMedium2] = d.medium_sets[1];
  waves[DaspMedium4] = d.medium_sets[2];
  d.short_steps_per_wave = per_wave(step);
  for (int c = 0; c < 4; ++c) {
    waves[DaspPairs13 + c] = (short_steps[c] + d.short_steps_per_wave - 1) / d.short_steps_per_wave;
  }
  const std::int64_t loose = std::int64_t{g.lanes} * 4;
  waves[DaspSingle] = (rows[DaspSingle] + loose - 1) / loose;
  waves[DaspEmpty] = (rows[DaspEmpty] + loose - 1) / loose;
  std::int64_t wave = 0;
  for (int c = 0; c < DaspClasses; ++c) {
    d.first_wave[c] = static_cast<std::uint32_t>(wave);
    wave += waves[c];
  }
  d.first_wave[DaspClasses] = static_cast<std::uint32_t>(wave);
  require<NotSupported>(wave < (std::int64_t{1} << 31), [&] {
    return "DASP: " + std::to_string(wave) + " waves, fewer than 2^31 are supported: use PackedSlices or Csr";
  });
}

/// Sizes and places of the short classes and of everything that follows from the class sizes alone.
template <class MemorySpace>
void dasp_layout(Experimental::Dasp<MemorySpace>& d, const DaspSummary& s, const DaspOptions& o) {
  dasp_class_sizes(d, s, o);
  dasp_waves(d, o);
}

template <class MemorySpace>
DaspBlockFunctor<MemorySpace> dasp_sets(const Experimental::Dasp<MemorySpace>& d, const DaspOptions& o,
                                        std::int64_t first_step) {
  DaspBlockFunctor<MemorySpace> f;
  f.place = DaspPlacement<MemorySpace>(d.geometry);
  f.place.value_at = d.value_at;
  f.place.column_at = d.column_at;
  f.long_rows = d.class_rows[DaspLong];
  for (int c = 0; c < 3; ++c) {
    f.medium_position[c] = d.first_position[DaspMedium1 + c];
    f.medium_rows[c] = d.class_rows[DaspMedium1 + c];
    f.medium_sets[c] = d.medium_sets[c];
  }
  f.first_step = first_step;
  f.first_irregular = d.class_nnz[DaspSingle];
  f.total = f.long_rows + f.medium_sets[0] + f.medium_sets[1] + f.medium_sets[2];
  f.steps_per_piece = d.steps_per_piece;
  f.least_real = o.threshold * static_cast<double>(d.slots_per_step());
  f.row_order = d.row_order;
  f.row_length = d.row_length;
  f.blocks = d.blocks;
  f.remainder = d.remainder;
  f.long_pieces = d.long_pieces;
  return f;
}

/// Units of the fill: row-blocks, short steps, 256 single rows each.
template <class MemorySpace>
std::int64_t dasp_fill_units(const Experimental::Dasp<MemorySpace>& d) {
  constexpr std::int64_t singles = DaspFillData<MemorySpace>::singles_per_unit;
  return d.block_count + static_cast<std::int64_t>(d.runs.extent(0)) / 2 +
         (d.class_rows[DaspSingle] + singles - 1) / singles;
}

/// Writes the fill's description into the format's memory.
template <class Exec, class MemorySpace>
void dasp_describe_fill(const Exec& space, const Experimental::Dasp<MemorySpace>& d, const DaspOptions& o) {
  DaspFillData<MemorySpace> f{dasp_sets(d, o, 0),
                              d.arguments(),
                              d.row_length,
                              d.row_begin,
                              d.values.data(),
                              d.irregular_values.data(),
                              d.columns.data(),
                              d.irregular_columns.data(),
                              d.runs.data(),
                              d.block_count,
                              static_cast<std::int64_t>(d.runs.extent(0)) / 2,
                              d.long_blocks,
                              {}};
  for (int c = 0; c < 4; ++c) f.short_first_unit[c] = d.first_step[DaspPairs13 + c];
  f.short_first_unit[4] = f.short_units;
  std::uint64_t bytes[(sizeof(f) + 7) / 8] = {};
  std::memcpy(bytes, &f, sizeof(f));
  Kokkos::deep_copy(
      space, d.fill_data,
      Kokkos::View<std::uint64_t*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
          bytes, d.fill_data.extent(0)));
}

template <class Stored, class Exec, class Memory, class Values, class Entries>
void dasp_fill_as(const Exec& space, const Experimental::Dasp<Memory>& d, const Values& values,
                  const Entries& entries) {
  using Functor = DaspFillFunctor<Exec, Values, Entries, Stored>;
  const std::int64_t units = dasp_fill_units(d);
  if (units == 0) return;
  const Functor f{values, entries, reinterpret_cast<const typename Functor::Data*>(d.fill_data.data()),
                  entries.data() != nullptr};
  Kokkos::parallel_for("Tessera::convert[dasp] fill",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(units), Compat::team_size<Exec>(64)), f);
}

/// Of unmanaged Views; compiled once per type of numbers.
template <class Exec, class Memory, class Values, class Entries>
void dasp_fill_values(const Exec& space, const Experimental::Dasp<Memory>& d, const Values& values,
                      const Entries& entries) {
  if (d.precision == Precision::FP64) {
    dasp_fill_as<double>(space, d, values, entries);
  } else if (d.precision == Precision::FP16) {
    dasp_fill_as<half_t>(space, d, values, entries);
  } else {
    dasp_fill_as<bhalf_t>(space, d, values, entries);
  }
}

}  // namespace Impl

namespace Experimental {

/// Writes the values of `values` (nnz numbers in CSR order) into the format; `entries` as well if it is not empty.
/// One kernel, no allocation, no wait.
template <class Csr, class Exec>
void dasp_fill(const Exec& space, const Dasp<typename Csr::memory_space>& d, const typename Csr::values_type& values,
               const typename Csr::entries_type& entries) {
  Impl::dasp_fill_values(space, d, Impl::ValuesOf<Csr>(values), typename Impl::PatternOf<Csr>::entries_type(entries));
}

}  // namespace Experimental

namespace Impl {

/// The kernels of a conversion and what they share: everything but the numbers.
template <class Pattern, class Exec>
class DaspConversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Arena = Impl::Arena<Memory>;

  DaspConversion(const Exec& space, const Pattern& A, const DaspOptions& options, bool updatable,
                 const KernelTable* backend, Experimental::Dasp<Memory>& format)
      : space_(space), A_(A), o_(options), updatable_(updatable), backend_(backend), d_(format) {}

  /// Returns scratch that must live until the numbers are filled in: it holds the map of a format without updates.
  std::shared_ptr<void> run() {
    order_rows();
    place_blocks();
    count_slots();
    make_slots();
    return scratch_;
  }

 private:
  template <class T>
  using View = typename Arena::template View<T>;
  template <class T>
  using Host = Kokkos::View<T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::size_t rows() const { return static_cast<std::size_t>(d_.rows); }
  void take_map(Arena& arena) {
    d_.row_begin = arena.template take<std::int64_t>(rows());
    d_.row_length = arena.template take<std::int32_t>(rows());
  }

  /// Sorts rows by length; one wait for the sizes of the classes.
  void order_rows() {
    const DaspBins bins = dasp_bins(o_, d_.geometry, d_.rows, d_.nnz);
    const auto cells = static_cast<std::size_t>(bins.sort_windows) * DaspBins::count;
    View<DaspSummary> summary;
    View<std::uint32_t> counts;
    scratch_ = Arena::make(space_, backend_, "Tessera::dasp::scratch", Lifetime::Temporary, [&](Arena& arena) {
      summary = arena.template take<DaspSummary>(1);
      sizes_ = arena.template take<DaspSizes>(1);
      order_ = arena.template take<std::uint32_t>(rows());
      counts = arena.template take<std::uint32_t>(cells);
      offsets_ = arena.template take<std::uint32_t>(cells);
      if (!updatable_) take_map(arena);
    });
    // summary and sizes
    Kokkos::deep_copy(space_, View<std::uint64_t>(static_cast<std::uint64_t*>(scratch_.get()), 64), std::uint64_t{0});
    using Sort = DaspSortFunctor<Pattern>;
    Kokkos::parallel_for(
        "Tessera::convert[dasp] sort",
        Kokkos::TeamPolicy<Exec>(space_, static_cast<int>(bins.sort_windows), Compat::team_size<Exec>(256))
            .set_scratch_size(0, Kokkos::PerTeam(Sort::scratch_bytes())),
        Sort{A_, bins, d_.slots_per_step(), d_.steps_per_piece, order_, counts, summary});
    Kokkos::parallel_scan("Tessera::convert[dasp] scan",
                          Kokkos::RangePolicy<Exec>(space_, 0, static_cast<std::int64_t>(cells)),
                          DaspScanFunctor<Pattern>{bins, counts, offsets_, summary});
    DaspSummary found{};
    Kokkos::deep_copy(space_, Host<DaspSummary>(&found, 1), summary);
    Compat::fence(space_, "Tessera::convert[dasp] class sizes");
    found.section_begin[DaspBins::sections] = d_.rows;
    d_.global_sort = found.sorts_globally(bins);
    dasp_layout(d_, found, o_);
    short_steps_ = d_.steps;
  }

  void place_blocks() {
    const std::size_t medium =
        d_.first_position[DaspMedium4] + d_.kernel_rows[DaspMedium4] - d_.first_position[DaspMedium1];
    d_.structure_storage = Arena::make(space_, backend_, "Tessera::dasp::structure", Lifetime::Plan, [&](Arena& arena) {
      d_.row_order = arena.template take<std::int32_t>(rows());
      d_.blocks = arena.template take<DaspBlock>(static_cast<std::size_t>(d_.block_count));
      d_.remainder = arena.template take<std::uint8_t>(medium);
      d_.long_pieces = arena.template take<std::uint32_t>(static_cast<std::size_t>(d_.class_rows[DaspLong]) + 1);
      d_.runs = arena.template take<std::int32_t>(2 * static_cast<std::size_t>(short_steps_));
      d_.value_at = arena.template take<std::uint16_t>(static_cast<std::size_t>(d_.slots_per_step()));
      d_.column_at = arena.template take<std::uint16_t>(static_cast<std::size_t>(d_.slots_per_step()));
      d_.fill_data = arena.template take<std::uint64_t>((sizeof(DaspFillData<Memory>) + 7) / 8);
      if (updatable_) take_map(arena);
    });
    std::uint16_t tables[2][DaspGeometry::tiles * DaspGeometry::max_slots];
    DaspPlacement<Memory>::tables(d_.geometry, tables[0], tables[1]);
    Kokkos::deep_copy(space_, d_.value_at, Host<std::uint16_t>(tables[0], d_.value_at.extent(0)));
    Kokkos::deep_copy(space_, d_.column_at, Host<std::uint16_t>(tables[1], d_.column_at.extent(0)));
    Kokkos::parallel_for("Tessera::convert[dasp] scatter", Kokkos::RangePolicy<Exec>(space_, 0, d_.rows),
                         DaspScatterFunctor<Pattern>{A_, order_, offsets_, d_.row_order, d_.row_length, d_.row_begin});
  }

  /// One wait, where there are row-blocks.
  void count_slots() {
    auto sets = dasp_sets(d_, o_, short_steps_);
    if (sets.total > 0) {
      sets.sizes = sizes_;
      Kokkos::parallel_scan("Tessera::convert[dasp] row-blocks", Kokkos::RangePolicy<Exec>(space_, 0, sets.total),
                            sets);
      DaspSizes total{};
      Kokkos::deep_copy(space_, Host<DaspSizes>(&total, 1), sizes_);
      Compat::fence(space_, "Tessera::convert[dasp] row-block sizes");
      d_.steps += total.steps;
      d_.irregular += total.irregular;
    }
    require<NotSupported>(d_.steps < (std::int64_t{1} << 32), [&] {
      return "DASP: " + std::to_string(d_.steps) + " steps, fewer than 2^32 are supported: use PackedSlices or Csr";
    });
  }

  void make_slots() {
    const auto slots = static_cast<std::size_t>(d_.steps * d_.slots_per_step());
    const auto loose = static_cast<std::size_t>(d_.irregular);
    const auto per_word = static_cast<std::size_t>(8 / d_.geometry.value_bytes);
    d_.slot_storage = Arena::make(space_, backend_, "Tessera::dasp::slots", Lifetime::Plan, [&](Arena& arena) {
      d_.values = arena.template take<std::uint64_t>(slots / per_word);
      d_.columns = arena.template take<std::int32_t>(slots);
      d_.irregular_values = arena.template take<std::uint64_t>((loose + per_word - 1) / per_word);
      d_.irregular_columns = arena.template take<std::int32_t>(loose);
    });
    dasp_describe_fill(space_, d_, o_);
  }

  const Exec& space_;
  const Pattern& A_;
  const DaspOptions& o_;
  bool updatable_;
  const KernelTable* backend_;
  Experimental::Dasp<Memory>& d_;
  std::int64_t short_steps_ = 0;
  View<DaspSizes> sizes_;
  View<std::uint32_t> order_, offsets_;
  std::shared_ptr<void> scratch_;
};

/// Everything of the conversion but the numbers. Returns what must live until these are filled in.
template <class Pattern, class Exec>
std::shared_ptr<void> dasp_pattern(const Exec& space, const Pattern& A, const DaspOptions& o, bool updatable,
                                   const KernelTable* backend, Experimental::Dasp<typename Pattern::memory_space>& d) {
  return DaspConversion<Pattern, Exec>(space, A, o, updatable, backend, d).run();
}

}  // namespace Impl

namespace Experimental {

/// Converts A for the tile geometry of a backend. Deterministic; columns keep their order inside a row. Three
/// allocations, of which one is released again; two waits.
/// @param updatable  keep what dasp_fill needs for other values
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
/// @throw InvalidArgument  options out of range
template <class Csr, class Exec>
Dasp<typename Csr::memory_space> to_dasp(const Exec& space, const Csr& A, const DaspGeometry& geometry,
                                         Precision precision, const DaspOptions& o = {}, bool updatable = true,
                                         const KernelTable* backend = nullptr) {
  const Compat::ScopedRegion region("Tessera::convert[dasp]");
  Impl::check(o);
  Dasp<typename Csr::memory_space> d;
  d.geometry = geometry;
  d.precision = precision;
  d.rows = static_cast<std::int64_t>(A.rows());
  d.cols = static_cast<std::int64_t>(A.cols());
  d.nnz = static_cast<std::int64_t>(A.nnz());
  const std::int64_t piece = d.nnz < 1000000 ? 512 : d.nnz < 20000000 ? 1024 : 2048;
  const std::int64_t piece_entries =
      (o.entries_per_wave > 0 ? o.entries_per_wave : piece) * (geometry.value_bytes == 8 ? 1 : 2);
  d.steps_per_piece = static_cast<int>(std::clamp<std::int64_t>(piece_entries / d.slots_per_step(), 1, 4095));
  if (d.rows == 0) return d;
  const auto scratch = Impl::dasp_pattern(space, Impl::pattern_of(A), o, updatable, backend, d);
  dasp_fill<Csr>(space, d, A.values(), A.entries());
  if (!updatable) {
    Compat::fence(space, "Tessera::convert[dasp] the map is released");
    d.row_begin = {};
    d.row_length = {};
  }
  return d;
}

}  // namespace Experimental
}  // namespace Tessera

#endif
