// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_TO_PACKED_HPP
#define TESSERA_FORMATS_PACKED_TO_PACKED_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "core/Tessera_Arena.hpp"
#include "formats/packed/Tessera_PackedBlocks.hpp"
#include "formats/packed/Tessera_PackedFill.hpp"
#include "formats/packed/Tessera_PackedHubs.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// CSR to packed slices on the execution space of the matrix. Bytes moved, ideally: row_map three times, columns twice
/// (once for the spans, once for the indices), values once, the format once; with value classes the values once more.

namespace Tessera {
namespace Impl {

inline void check(const PackedOptions& o) {
  require<InvalidArgument>(o.max_steps >= 0 && o.max_steps <= 63 && o.split_steps >= 0 && o.split_steps <= 63, [&] {
    return "PackedOptions::max_steps and split_steps must lie in [0, 63] (0: by size), are " +
           std::to_string(o.max_steps) + " and " + std::to_string(o.split_steps);
  });
  require<InvalidArgument>(o.window == 0 || (o.window >= 12 && o.window <= 4092), [&] {
    return "PackedOptions::window must be 0 (by size) or lie in [12, 4092], is " + std::to_string(o.window);
  });
  require<InvalidArgument>(o.natural_padding >= 0 && o.hubs >= -1 && o.hubs <= 65536, [&] {
    return "PackedOptions::natural_padding must not be negative, hubs must lie in [-1, 65536]: " +
           std::to_string(o.natural_padding) + ", " + std::to_string(o.hubs);
  });
  require<InvalidArgument>(o.column_blocks >= -1 && o.column_blocks <= packed_max_blocks, [&] {
    return "PackedOptions::column_blocks must lie in [-1, " + std::to_string(packed_max_blocks) + "], is " +
           std::to_string(o.column_blocks);
  });
}

template <class Exec, class Memory>
void upload_dictionary(const Exec& space, Experimental::PackedSlices<Memory>& p, const std::vector<std::uint64_t>& bits,
                       std::size_t value_bytes) {
  std::uint64_t host[256] = {};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(reinterpret_cast<char*>(host) + i * value_bytes, &bits[i], value_bytes);
  }
  p.dictionary_words = static_cast<int>(bits.size());
  using Host =
      Kokkos::View<std::uint64_t*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::deep_copy(space, p.dictionary, Host(host, p.dictionary.extent(0)));
  Compat::fence(space, "Tessera::convert[packed] dictionary");
}

/// Places all packets anew for the class p has now, and makes room for them. One wait.
template <class Pattern, class Exec>
void place_packets(const Exec& space, Experimental::PackedSlices<typename Pattern::memory_space>& p,
                   const typename Arena<typename Pattern::memory_space>::template View<PackedSizes>& total,
                   const KernelTable* backend) {
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  PackedPacketScan<Pattern> scan;
  scan.slices = p.slices;
  scan.total = total;
  scan.lanes = p.lanes;
  scan.value_bytes = p.value_bytes();
  Kokkos::parallel_scan("Tessera::convert[packed] packets", Kokkos::RangePolicy<Exec>(space, 0, p.slices.extent(0)),
                        scan);
  PackedSizes sizes{};
  fetch(space, backend, "Tessera::convert[packed] size of packets", sizes, total);
  Experimental::PackedSummary& summary = p.summary;
  summary.units = sizes.units;
  summary.steps = sizes.steps;
  summary.stored = sizes.stored;
  summary.short_slices = sizes.short_slices;
  std::copy(std::begin(sizes.index_slots), std::end(sizes.index_slots), std::begin(summary.index_slots));
  summary.grouped_slots = sizes.grouped_slots;
  summary.id_rows = sizes.id_rows;
  require<NotSupported>(summary.units < (std::int64_t{1} << 32),
                        [] { return std::string("packed slices: more than 2^37 bytes"); });
  p.packet_storage = Arena::make(space, backend, "Tessera::packed::packets", Lifetime::Plan, [&](Arena& arena) {
    p.packets = arena.template take<std::uint64_t>(static_cast<std::size_t>(summary.units) * (packed_unit / 8));
  });
}

/// The kernels of a conversion and what they share. The numbers come in through PackedNumbers.
template <class Pattern, class Exec>
class PackedConversion {
 public:
  using Memory = typename Pattern::memory_space;
  using Format = Experimental::PackedSlices<Memory>;
  template <class T>
  using View = typename Format::template View<T>;

  PackedConversion(const Exec& space, const Pattern& A, const PackedNumbers<Memory>& numbers,
                   const SpmvFeatures& features, const PackedOptions& options, const KernelTable* backend, Format& p)
      : space_(space), A_(A), numbers_(numbers), f_(features), o_(options), backend_(backend), p_(p) {}

  void run(const DeviceFacts& device, bool updatable) {
    choose_shape(device);
    View<PackedSizes> sizes;
    const std::shared_ptr<void> scratch = order_and_classify(updatable, sizes);
    write_structure(device, sizes);
    if (shape_.even_steps > 0) {
      p_.even = PackedSlice::pack(shape_.even_steps, shape_.even_log, PackedShape::even_index(p_.cols), true, false,
                                  false, 1, p_.lanes >> shape_.even_log);
    }
    p_.variant = packed_variant(p_, f_);
    numbers_.fill(p_, map_);
    if (p_.blocks > 1) share_out();
    if (!updatable) p_.row_map = {};
  }

 private:
  /// Column blocks, hub columns, and what follows from them.
  void choose_shape(const DeviceFacts& device) {
    const int value_bytes = p_.value_bytes();
    p_.blocks = packed_blocks(o_, f_, device, value_bytes);
    if (p_.blocks > 1 && !columns_ascend()) p_.blocks = 1;
    // Column blocks begin at words of x.
    p_.block_columns = (p_.cols + p_.blocks - 1) / p_.blocks;
    if (p_.blocks > 1 && p_.block_columns >= 64) p_.block_columns = (p_.block_columns + 7) / 8 * 8;
    if (p_.blocks > 1) p_.blocks = static_cast<int>((p_.cols + p_.block_columns - 1) / p_.block_columns);
    const std::int64_t hubs =
        p_.blocks > 1 || p_.nnz == 0 ? 0 : std::min(packed_hubs(o_, f_, device, value_bytes), p_.cols);
    hubs_ = hubs > 0 && find_hubs(hubs) ? hubs : 0;
    shape_ = packed_shape(o_, f_, p_.lanes, value_bytes, p_.blocks, hubs_ > 0);
    require<NotSupported>(shape_.rows * shape_.blocks < (std::int64_t{1} << 31),
                          [] { return std::string("packed slices: rows times column blocks beyond 2^31"); });
    p_.group = shape_.group;
    p_.max_steps = shape_.max_steps;
    p_.split_steps = shape_.split_steps;
  }

  /// The order of the rows and the class of the numbers. One wait. Returns scratch that later kernels need.
  std::shared_ptr<void> order_and_classify(bool updatable, View<PackedSizes>& sizes) {
    const bool classes =
        o_.value_classes && numbers_.precision() == p_.precision && p_.nnz > 0 && hubs_ == 0 && p_.blocks == 1;
    const auto rows = static_cast<std::size_t>(shape_.rows * shape_.blocks);
    const auto groups = shape_.group > 1 ? (rows + shape_.group - 1) / shape_.group : 0;
    View<Experimental::PackedSummary> total;
    View<PackedClassFound> class_found;
    std::size_t zeroed = 0;
    const auto scratch = Arena<Memory>::make(
        space_, backend_, "Tessera::packed::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
          total = arena.template take<Experimental::PackedSummary>(1);
          sizes = arena.template take<PackedSizes>(1);
          class_found = arena.template take<PackedClassFound>(classes ? 1 : 0);
          zeroed = arena.bytes();
          same_ = arena.template take<std::uint8_t>(groups);
          order_ = arena.template take<std::uint32_t>(rows);
          sort_windows_ =
              arena.template take<SortWindow>(static_cast<std::size_t>(shape_.sort_windows * shape_.blocks));
        });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(scratch.get()), zeroed), char(0));
    make_map(updatable);
    if (classes) numbers_.classify(class_found);
    order_rows(total);
    fetch(space_, backend_, "Tessera::convert[packed] number of slices", p_.summary, total);
    if (classes) {
      PackedClassFound found{};
      fetch(space_, backend_, "Tessera::convert[packed] value class", found, class_found);
      p_.storage = numbers_.storage(found, dictionary_);
    }
    require<NotSupported>(p_.summary.slices < (std::int64_t{1} << 31),
                          [] { return std::string("packed slices: more than 2^31 slices"); });
    return scratch;
  }

  /// Records, indices, and room for the packets. One wait.
  void write_structure(const DeviceFacts& device, const View<PackedSizes>& sizes) {
    const Experimental::PackedSummary& summary = p_.summary;
    const auto slices = static_cast<std::size_t>(summary.slices);
    const auto shares = static_cast<std::size_t>(p_.blocks > 1 ? std::max(p_.blocks, device.compute_units) : 0);
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.slices = arena.template take<PackedSlice>(slices);
          p_.parts = arena.template take<PackedPart>(static_cast<std::size_t>(summary.parts));
          p_.dictionary = arena.template take<std::uint64_t>(dictionary_.empty() ? 0 : 256);
          p_.shares = arena.template take<PackedShare>(shares);
        });
    PackedSpanFunctor<Pattern> span;
    const auto records = Arena<Memory>::make(space_, backend_, "Tessera::packed::records", Lifetime::Temporary,
                                             [&](Arena<Memory>& arena) {
                                               span.slot = arena.template take<std::uint32_t>(slices);
                                               span.pattern = arena.template take<std::uint8_t>(slices);
                                             });
    if (!dictionary_.empty()) upload_dictionary(space_, p_, dictionary_, numbers_.bytes());
    write_slices(summary, span.slot);
    span.shape = shape_;
    span.slices = p_.slices;
    span.parts = p_.parts;
    span.order = order_;
    span.columns = A_.entries();
    span.map = map_;
    span.index_free = o_.index_free && p_.blocks == 1 && f_.shift >= 0.3;
    span.narrow = o_.narrow_indices;
    span.index_free_padding = 1.4;
    span.hubs = hubs_;
    span.cols = p_.cols;
    span.hub_place = hub_place_;
    choose_indices(span);
    place_packets<Pattern>(space_, p_, sizes, backend_);
    Kokkos::parallel_for(
        "Tessera::convert[packed] indices", Kokkos::RangePolicy<Exec>(space_, 0, summary.slices * p_.lanes),
        PackedIndexFunctor<Pattern>(span, reinterpret_cast<unsigned char*>(p_.packets.data()), p_.value_bytes()));
  }

  bool columns_ascend() {
    View<std::int64_t> descents;
    const auto scratch =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::scratch", Lifetime::Temporary,
                            [&](Arena<Memory>& arena) { descents = arena.template take<std::int64_t>(1); });
    DescentFunctor<Pattern> f;
    f.row_map = A_.row_map();
    f.columns = A_.entries();
    f.nnz = p_.nnz;
    using Result = Kokkos::View<std::int64_t, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::parallel_reduce("Tessera::convert[packed] ascending columns",
                            Kokkos::RangePolicy<Exec>(space_, 0, p_.nnz + p_.rows), f, Result(descents.data()));
    std::int64_t found = 0;
    fetch(space_, backend_, "Tessera::convert[packed] ascending columns", found, descents);
    return found == 0;
  }

  /// The most used columns; false if so few entries use them that the table would not pay. One wait.
  bool find_hubs(std::int64_t hubs) {
    const auto cols = static_cast<std::size_t>(p_.cols);
    p_.hub_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::hubs", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.hub_columns = arena.template take<std::uint32_t>(static_cast<std::size_t>(hubs));
        });
    View<HubFound> found;
    View<std::uint32_t> uses, bins;
    std::size_t zeroed = 0;
    hub_scratch_ = Arena<Memory>::make(space_, backend_, "Tessera::packed::scratch", Lifetime::Temporary,
                                       [&](Arena<Memory>& arena) {
                                         found = arena.template take<HubFound>(1);
                                         bins = arena.template take<std::uint32_t>(HubBin::count);
                                         uses = arena.template take<std::uint32_t>(cols);
                                         zeroed = arena.bytes();
                                         hub_place_ = arena.template take<std::uint32_t>(cols);
                                       });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(hub_scratch_.get()), zeroed), char(0));
    Kokkos::deep_copy(space_, p_.hub_columns, 0u);
    const auto least =
        static_cast<std::uint32_t>(std::min<std::int64_t>(p_.nnz / std::max<std::int64_t>(p_.cols, 1), 1 << 30));
    HubCountFunctor<Pattern> count;
    count.entries = A_.entries();
    count.uses = uses;
    Kokkos::parallel_for("Tessera::convert[packed] column uses", Kokkos::RangePolicy<Exec>(space_, 0, p_.nnz), count);
    HubBinFunctor<Pattern> bin;
    bin.uses = uses;
    bin.bins = bins;
    bin.least = least;
    Kokkos::parallel_for("Tessera::convert[packed] hub bins", Kokkos::RangePolicy<Exec>(space_, 0, p_.cols), bin);
    HubThresholdFunctor<Pattern> threshold;
    threshold.bins = bins;
    threshold.found = found;
    threshold.hubs = hubs;
    Kokkos::parallel_scan("Tessera::convert[packed] hub threshold", Kokkos::RangePolicy<Exec>(space_, 0, HubBin::count),
                          threshold);
    HubPlaceFunctor<Pattern> place;
    place.uses = uses;
    place.hub_columns = p_.hub_columns;
    place.place = hub_place_;
    place.found = found;
    place.hubs = hubs;
    place.least = least;
    Kokkos::parallel_scan("Tessera::convert[packed] hub places", Kokkos::RangePolicy<Exec>(space_, 0, p_.cols), place);
    HubFound host{};
    fetch(space_, backend_, "Tessera::convert[packed] entries in hub columns", host, found);
    p_.hub_share = static_cast<double>(host.entries) / static_cast<double>(p_.nnz);
    if (o_.hubs >= 0 || p_.hub_share >= 0.5) return true;
    p_.hub_columns = {};
    p_.hub_storage.reset();
    return false;
  }

  /// Where rows begin, in 64 bits and by column block: for the kernels below, and kept for update_values.
  void make_map(bool updatable) {
    const std::int64_t rows = p_.rows, blocks = p_.blocks;
    map_.step = blocks > 1 ? rows : 1;
    p_.map_storage = Arena<Memory>::make(
        space_, backend_, "Tessera::packed::map", updatable ? Lifetime::Plan : Lifetime::Temporary,
        [&](Arena<Memory>& arena) {
          p_.row_map = arena.template take<std::int64_t>(static_cast<std::size_t>(rows * blocks + map_.step));
        });
    map_.begin = p_.row_map;
    RowMapFunctor<Pattern> f;
    f.row_map = A_.row_map();
    f.columns = A_.entries();
    f.begin = p_.row_map;
    f.rows = blocks > 1 ? rows : 0;
    f.block_columns = p_.block_columns;
    Kokkos::parallel_for("Tessera::convert[packed] row map", Kokkos::RangePolicy<Exec>(space_, 0, map_.begin.extent(0)),
                         f);
  }

  void share_out() {
    PackedShareFunctor<Pattern> f;
    f.shape = shape_;
    f.sort_windows = sort_windows_;
    f.slices = p_.slices;
    f.shares = p_.shares;
    f.all_parts = p_.summary.parts;
    f.units = p_.summary.units;
    f.cols = p_.cols;
    f.block_columns = p_.block_columns;
    Kokkos::parallel_for("Tessera::convert[packed] shares", Kokkos::RangePolicy<Exec>(space_, 0, 1), f);
  }

  void order_rows(const View<Experimental::PackedSummary>& total) {
    if (shape_.group > 1) {
      PackedGroupFunctor<Pattern> group;
      group.columns = A_.entries();
      group.map = map_;
      group.shape = shape_;
      group.same = same_;
      constexpr int threads = Compat::is_host_v<Exec> ? 1 : 16, vector = Compat::is_host_v<Exec> ? 1 : 16;
      const auto teams = static_cast<int>((same_.extent(0) + threads - 1) / threads);
      Kokkos::parallel_for("Tessera::convert[packed] equal rows",
                           Kokkos::TeamPolicy<Exec>(space_, teams, threads, vector), group);
    }
    SortWindowFunctor<Pattern> sort;
    sort.map = map_;
    sort.shape = shape_;
    sort.same = same_;
    sort.order = order_;
    sort.sort_windows = sort_windows_;
    const auto sort_windows = static_cast<int>(shape_.sort_windows * shape_.blocks);
    Kokkos::parallel_for(
        "Tessera::convert[packed] order",
        Kokkos::TeamPolicy<Exec>(space_, sort_windows, Compat::team_size<Exec>(shape_.sort_window < 512 ? 128 : 512))
            .set_scratch_size(0, Kokkos::PerTeam(sort.scratch_bytes())),
        sort);
    SortWindowScan<Pattern> scan;
    scan.sort_windows = sort_windows_;
    scan.total = total;
    Kokkos::parallel_scan("Tessera::convert[packed] sort windows", Kokkos::RangePolicy<Exec>(space_, 0, sort_windows),
                          scan);
  }

  void write_slices(const Experimental::PackedSummary& summary, const View<std::uint32_t>& slot) {
    PackedSliceFunctor<Pattern> slice;
    slice.map = map_;
    slice.shape = shape_;
    slice.all_parts = summary.parts;
    slice.order = order_;
    slice.sort_windows = sort_windows_;
    slice.slices = p_.slices;
    slice.parts = p_.parts;
    slice.slot = slot;
    Kokkos::parallel_for("Tessera::convert[packed] slices",
                         Kokkos::TeamPolicy<Exec>(space_, static_cast<int>(shape_.sort_windows * shape_.blocks),
                                                  Compat::team_size<Exec>(shape_.sort_window < 512 ? 32 : 128)),
                         slice);
  }

  void choose_indices(const PackedSpanFunctor<Pattern>& span) {
    constexpr int threads = Compat::is_host_v<Exec> ? 1 : 4, vector = Compat::is_host_v<Exec> ? 1 : 32;
    const auto teams = static_cast<int>((p_.slices.extent(0) + threads - 1) / threads);
    if (teams == 0) return;
    Kokkos::parallel_for("Tessera::convert[packed] spans", Kokkos::TeamPolicy<Exec>(space_, teams, threads, vector),
                         span);
  }

  const Exec& space_;
  const Pattern& A_;
  const PackedNumbers<Memory>& numbers_;
  const SpmvFeatures& f_;
  const PackedOptions& o_;
  const KernelTable* backend_;
  Format& p_;
  std::int64_t hubs_ = 0;
  std::vector<std::uint64_t> dictionary_;
  PackedShape shape_;
  PackedRowMap<Memory> map_;
  typename Format::Storage hub_scratch_;
  View<std::uint8_t> same_;
  View<std::uint32_t> order_, hub_place_;
  View<SortWindow> sort_windows_;
};

/// Compiled once per type of offsets.
template <class Pattern, class Exec>
void packed_pattern(const Exec& space, const Pattern& A, const PackedNumbers<typename Pattern::memory_space>& numbers,
                    const SpmvFeatures& features, const PackedOptions& o, bool updatable, const KernelTable* backend,
                    const DeviceFacts& device, Experimental::PackedSlices<typename Pattern::memory_space>& p) {
  PackedConversion<Pattern, Exec>(space, A, numbers, features, o, backend, p).run(device, updatable);
}

}  // namespace Impl

namespace Experimental {

/// Converts A for waves of `lanes` lanes. Deterministic; columns keep their order inside a row. Two waits for sizes,
/// and one more where hub columns or column blocks are considered. Peak extra memory besides the format: 4 bytes per
/// row, 5 per slice, 8 per row if not updatable (rows times column blocks), with hub columns 8 per column.
/// @param updatable  keep what packed_update needs: 8 bytes per row (times column blocks)
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
/// @throw InvalidArgument  options out of range
/// @throw NotSupported  sizes beyond what a record can name
template <class Csr, class Exec>
PackedSlices<typename Csr::memory_space> to_packed(const Exec& space, const Csr& A, int lanes, Precision precision,
                                                   const SpmvFeatures& features, const PackedOptions& o = {},
                                                   bool updatable = true, const KernelTable* backend = nullptr,
                                                   const DeviceFacts& device = {}) {
  const Compat::ScopedRegion region("Tessera::convert[packed]");
  Impl::check(o);
  PackedSlices<typename Csr::memory_space> p;
  p.lanes = lanes;
  p.precision = precision;
  p.rows = static_cast<std::int64_t>(A.rows());
  p.cols = static_cast<std::int64_t>(A.cols());
  p.nnz = static_cast<std::int64_t>(A.nnz());
  p.updatable = updatable;
  if (p.rows == 0) return p;
  const Impl::PackedNumbersOf<Exec, Impl::ValuesOf<Csr>> numbers(space, A.values());
  Impl::packed_pattern(space, Impl::pattern_of(A), numbers, features, o, updatable, backend, device, p);
  if (!updatable) p.map_storage.reset();
  p.copies_hubs = p.hub_bytes() <= 65536 || p.hub_bytes() > device.shared_bytes;
  return p;
}

}  // namespace Experimental
}  // namespace Tessera

#endif
