// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CONVERT_TO_PACKED_HPP
#define TESSERA_CONVERT_TO_PACKED_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "convert/Tessera_PackedFill.hpp"
#include "convert/Tessera_PackedHubs.hpp"
#include "convert/Tessera_PackedValues.hpp"
#include "impl/Tessera_Arena.hpp"
#include "select/Tessera_SpmvFeatures.hpp"

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
}

/// Neighbouring rows share x, so that keeping them together matters less than even lengths.
inline bool packed_is_local(const SpmvFeatures& f) { return f.sectors < 0.15; }

/// Steps of a slice: enough work for a wave to cover its start, few enough for the device to have waves to choose from.
/// Every number here is measured (perf_test/NOTES.md, "Packed slices").
inline void packed_steps(PackedShape& s, const SpmvFeatures& f, int value_bytes, bool stencil, bool hubs) {
  s.max_steps = s.split_steps = 16;
  if (stencil) {
    s.max_steps = s.split_steps = 32;  // one lane a row, whatever its length
  } else if (hubs) {
    s.max_steps = s.split_steps = f.nnz < 16000000 ? 16 : value_bytes == 2 ? 48 : 24;
  } else if (f.mean >= 300) {
    s.max_steps = s.split_steps = f.nnz < 1000000 ? 24 : f.nnz < 10000000 ? 32 : 63;
  } else if (s.group > 1 && (s.group == 3 ? f.same3 : f.same2) > 0.9) {  // a step of a group has two or three values
    s.max_steps = f.nnz < 2500000 ? 8 : f.nnz < 4000000 ? 12 : f.nnz < 10000000 ? 16 : value_bytes == 2 ? 32 : 12;
    s.split_steps = std::max(16, s.max_steps);
  } else if (f.nnz >= 10000000 && f.mean >= 80) {
    s.max_steps = s.split_steps = f.mean >= 150 ? 63 : 48;
  } else if (f.nnz < 1000000 || (f.nnz < 4000000 && f.mean < 40 && !packed_is_local(f))) {
    s.max_steps = 8;
  } else if (f.nnz < 10000000 && packed_is_local(f)) {
    s.max_steps = s.split_steps = 24;
  }
}

/// The shape of slices.
inline PackedShape packed_shape(const PackedOptions& o, const SpmvFeatures& f, int lanes, int value_bytes, bool hubs) {
  PackedShape s;
  s.lanes = lanes;
  for (s.log_wave = 0; (1 << s.log_wave) < lanes;) ++s.log_wave;
  // Sharing saves bytes and gathers but leaves fewer waves, which small matrices lack.
  if (o.shared_patterns && !hubs && f.mean >= 8 && f.nnz >= o.least_shared) {
    s.group = f.same3 >= 0.5 ? 3 : f.same2 >= 0.5 ? 2 : 1;
  }
  packed_steps(s, f, value_bytes, o.index_free && f.shift >= 0.5, hubs);
  if (o.max_steps > 0) s.max_steps = o.max_steps;
  s.split_steps = std::max(o.split_steps > 0 ? o.split_steps : s.split_steps, s.max_steps);
  // Small windows keep rows that share x together; of very short rows a small window leaves uneven slices.
  if (hubs) {
    s.window = 2052;
  } else if (f.nnz < 4000000 && f.mean < 40 && !packed_is_local(f)) {
    s.window = f.mean < 4 ? 1020 : 252;
  } else if (f.nnz >= 20000000 && f.sectors >= 0.4) {
    s.window = 516;
  }
  if (o.window > 0) s.window = o.window / 12 * 12;
  s.natural_padding = o.natural_padding;
  s.rows = f.rows;
  s.windows = (f.rows + s.window - 1) / s.window;
  return s;
}

/// Hub columns worth having: skewed, large, and x not local.
inline std::int64_t packed_hubs(const PackedOptions& o, const SpmvFeatures& f, const DeviceFacts& device,
                                int value_bytes) {
  if (o.hubs >= 0) return o.hubs;
  if (f.nnz < 5000000 || f.cv < 1 || f.narrow > 0.5 || f.sectors < 0.5 || device.shared_bytes < 65536) return 0;
  const auto room = static_cast<std::int64_t>(device.shared_bytes - 32768) / value_bytes;
  const bool large = f.nnz >= 16000000;
  const std::int64_t wanted = value_bytes == 8 ? (large ? 20480 : 8192) : value_bytes == 4 && large ? 32768 : 16384;
  return std::min(wanted, room);
}

template <class MemorySpace>
PackedVariant packed_variant(const PackedSlices<MemorySpace>& p, const SpmvFeatures& f) {
  const PackedSummary& s = p.summary;
  if (s.grouped_slots > 0 || p.hub_columns.extent(0) > 0) return PackedVariant::General;
  const bool free = s.index_slots[PackedIndexFree] * 2 > s.stored, brief = s.short_slices * 4 > s.slices * 3;
  if (brief && (free || (s.steps <= 3 * s.slices && f.nnz >= 1000000))) return PackedVariant::ShortSlices;
  if (free && s.steps <= 8 * s.slices) return PackedVariant::IndexFree;
  const bool scattered = f.nnz >= 20000000 && f.sectors >= 0.4, small = f.nnz < 1000000 && p.value_bytes() < 8;
  return scattered || small ? PackedVariant::WideBlocks : PackedVariant::General;
}

template <class Value, class F>
decltype(auto) dispatch_storage(PackedStorage storage, F&& f) {
  switch (storage) {
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) return f(PackedTypes<Value, PackedStorage::Float>{});
      break;
    case PackedStorage::Integer:
      return f(PackedTypes<Value, PackedStorage::Integer>{});
    case PackedStorage::Dictionary:
      return f(PackedTypes<Value, PackedStorage::Dictionary>{});
    default:
      break;
  }
  return f(PackedTypes<Value, PackedStorage::Full>{});
}

template <class Value, class Csr, class Exec>
void packed_fill_as(const Exec& space, const PackedSlices<typename Csr::memory_space>& p,
                    const typename Csr::values_type& values,
                    const typename PackedSlices<typename Csr::memory_space>::template View<std::int64_t>& row_map) {
  const std::int64_t slots = static_cast<std::int64_t>(p.slices.extent(0)) * p.lanes;
  if (p.storage == PackedStorage::Constant || slots == 0) return;
  dispatch_storage<Value>(p.storage, [&](auto types) {
    using Types = decltype(types);
    PackedValueFunctor<Csr, Types> f;
    f.values = values;
    f.row_map = row_map;
    f.slices = p.slices;
    f.parts = p.parts;
    f.packets = reinterpret_cast<unsigned char*>(p.packets.data());
    f.encode = {reinterpret_cast<const Value*>(p.dictionary.data()), p.dictionary_words};
    f.lanes = p.lanes;
    f.part_length = std::int64_t{p.split_steps} * p.lanes;
    Kokkos::parallel_for("Tessera::convert[packed] values", Kokkos::RangePolicy<Exec>(space, 0, slots), f);
  });
}

}  // namespace Impl

/// Writes `values` (nnz numbers in CSR order) into the packets, in the class these have. One kernel, no wait.
template <class Csr, class Exec>
void packed_fill(const Exec& space, const PackedSlices<typename Csr::memory_space>& p,
                 const typename Csr::values_type& values) {
  switch (p.precision) {
    case Precision::FP64:
      return Impl::packed_fill_as<double, Csr>(space, p, values, p.row_map);
    case Precision::FP16:
      return Impl::packed_fill_as<half_t, Csr>(space, p, values, p.row_map);
    case Precision::BF16:
      return Impl::packed_fill_as<bhalf_t, Csr>(space, p, values, p.row_map);
    default:
      return Impl::packed_fill_as<float, Csr>(space, p, values, p.row_map);
  }
}

namespace Impl {

/// Copies one object from the device; the caller waits.
template <class Exec, class T, class View>
void fetch_later(const Exec& space, T& host, const View& device) {
  Kokkos::deep_copy(
      space, Kokkos::View<T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(&host, 1),
      device);
}

/// Starts the search for a value class; `found` must be zero.
template <class Csr, class Exec>
void classify(const Exec& space, const typename Csr::values_type& values,
              const typename Arena<typename Csr::memory_space>::template View<PackedClassFound>& found) {
  using Functor = PackedClassFunctor<Csr>;
  Functor f;
  f.values = values;
  f.found = found;
  f.count = static_cast<std::int64_t>(values.extent(0));
  f.items = (f.count + Functor::per_item - 1) / Functor::per_item;
  if (f.count > 0) {
    Kokkos::parallel_for("Tessera::convert[packed] value class", Kokkos::RangePolicy<Exec>(space, 0, f.items), f);
  }
}

template <class Exec, class Memory>
void upload_dictionary(const Exec& space, PackedSlices<Memory>& p, const std::vector<std::uint64_t>& bits,
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
template <class Csr, class Exec>
void place_packets(const Exec& space, PackedSlices<typename Csr::memory_space>& p,
                   const typename Arena<typename Csr::memory_space>::template View<PackedSummary>& total,
                   const KernelTable* backend) {
  using Arena = Impl::Arena<typename Csr::memory_space>;
  const auto slices = static_cast<std::int64_t>(p.slices.extent(0));
  PackedPacketScan<Csr> scan;
  scan.slices = p.slices;
  scan.total = total;
  scan.lanes = p.lanes;
  scan.value_bytes = p.value_bytes();
  Kokkos::parallel_scan("Tessera::convert[packed] packets", Kokkos::RangePolicy<Exec>(space, 0, slices), scan);
  PackedStatsFunctor<Csr> stats;
  stats.slices = p.slices;
  stats.lanes = p.lanes;
  PackedStatsSum sums{};
  PackedSummary sizes;
  fetch_later(space, sizes, total);
  Kokkos::parallel_reduce("Tessera::convert[packed] statistics", Kokkos::RangePolicy<Exec>(space, 0, slices), stats,
                          sums);  // waits for its result, and so for the sizes
  PackedSummary& summary = p.summary;
  summary.units = slices > 0 ? sizes.units : 0;
  summary.steps = sums.steps;
  summary.stored = sums.stored;
  summary.short_slices = sums.short_slices;
  std::copy(std::begin(sums.index_slots), std::end(sums.index_slots), std::begin(summary.index_slots));
  summary.grouped_slots = sums.grouped_slots;
  summary.id_rows = sums.id_rows;
  require<NotSupported>(summary.units < (std::int64_t{1} << 32),
                        [] { return std::string("packed slices: more than 2^37 bytes"); });
  p.packet_storage = Arena::make(space, backend, "Tessera::packed::packets", Lifetime::Plan, [&](Arena& arena) {
    p.packets = arena.template take<std::uint64_t>(static_cast<std::size_t>(summary.units) * (packed_unit / 8));
  });
}

/// The steps of a conversion and what they share.
template <class Csr, class Exec>
class PackedConversion {
 public:
  using Memory = typename Csr::memory_space;
  using Format = PackedSlices<Memory>;
  template <class T>
  using View = typename Format::template View<T>;
  using Natural = typename Csr::value_type;

  PackedConversion(const Exec& space, const Csr& A, const SpmvFeatures& features, const PackedOptions& options,
                   const KernelTable* backend, Format& p)
      : space_(space), A_(A), f_(features), o_(options), backend_(backend), p_(p) {}

  void run(std::int64_t hubs, bool updatable) {
    shape_ = packed_shape(o_, f_, p_.lanes, p_.value_bytes(), hubs > 0);
    p_.group = shape_.group;
    p_.max_steps = shape_.max_steps;
    p_.split_steps = shape_.split_steps;
    const bool classes =
        o_.value_classes && ScalarTraits<Natural>::precision == p_.precision && p_.nnz > 0 && hubs == 0;
    const auto rows = static_cast<std::size_t>(p_.rows);
    const auto groups = shape_.group > 1 ? (rows + shape_.group - 1) / shape_.group : 0;
    View<PackedSummary> total;
    View<PackedClassFound> class_found;
    View<HubFound> hub_found;
    View<std::uint32_t> uses, bins;
    const auto scratch = Arena<Memory>::make(
        space_, backend_, "Tessera::packed::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
          total = arena.template take<PackedSummary>(1);
          hub_found = arena.template take<HubFound>(1);
          class_found = arena.template take<PackedClassFound>(1);
          bins = arena.template take<std::uint32_t>(hubs > 0 ? HubBin::count : 0);
          uses = arena.template take<std::uint32_t>(hubs > 0 ? static_cast<std::size_t>(p_.cols) : 0);
          zeroed_ = arena.bytes();
          same_ = arena.template take<std::uint8_t>(groups);
          order_ = arena.template take<std::uint32_t>(rows);
          window_ = arena.template take<PackedWindow>(static_cast<std::size_t>(shape_.windows));
        });
    Kokkos::deep_copy(space_, View<char>(static_cast<char*>(scratch.get()), zeroed_), char(0));
    if (classes) classify<Csr>(space_, A_.values(), class_found);
    if (hubs > 0) find_hubs(hubs, uses, bins, hub_found);
    order_rows(total);
    PackedSummary& summary = p_.summary;
    PackedClassFound classes_found{};
    HubFound hubs_found{};
    fetch_later(space_, summary, total);
    if (classes) fetch_later(space_, classes_found, class_found);
    if (hubs > 0) fetch_later(space_, hubs_found, hub_found);
    Compat::fence(space_, "Tessera::convert[packed] number of slices");
    std::vector<std::uint64_t> dictionary;
    if (classes) p_.storage = packed_class<Natural>(classes_found, dictionary);
    p_.hub_share = p_.nnz > 0 ? static_cast<double>(hubs_found.entries) / static_cast<double>(p_.nnz) : 0;
    if (hubs > 0 && o_.hubs < 0 && p_.hub_share < 0.5) hubs = 0;
    require<NotSupported>(summary.slices < (std::int64_t{1} << 31),
                          [] { return std::string("packed slices: more than 2^31 slices"); });
    if (hubs == 0) p_.hub_columns = {}, p_.hub_place = {}, p_.hub_storage.reset();

    const auto slices = static_cast<std::size_t>(summary.slices);
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.slices = arena.template take<PackedSlice>(slices);
          p_.parts = arena.template take<PackedPart>(static_cast<std::size_t>(summary.parts));
          p_.dictionary = arena.template take<std::uint64_t>(dictionary.empty() ? 0 : 256);
          if (updatable) p_.row_map = arena.template take<std::int64_t>(rows + 1);
        });
    View<std::int64_t> row_map = p_.row_map;
    View<std::uint32_t> slot;
    View<std::uint8_t> pattern;
    const auto records = Arena<Memory>::make(space_, backend_, "Tessera::packed::records", Lifetime::Temporary,
                                             [&](Arena<Memory>& arena) {
                                               slot = arena.template take<std::uint32_t>(slices);
                                               pattern = arena.template take<std::uint8_t>(slices);
                                               if (!updatable) row_map = arena.template take<std::int64_t>(rows + 1);
                                             });
    if (!dictionary.empty()) upload_dictionary(space_, p_, dictionary, sizeof(Natural));
    Kokkos::parallel_for("Tessera::convert[packed] row map", Kokkos::RangePolicy<Exec>(space_, 0, p_.rows + 1),
                         CopyRowMap{A_.row_map(), row_map});
    write_slices(summary, slot);
    PackedRows<Csr> base;
    base.shape = shape_;
    base.slices = p_.slices;
    base.parts = p_.parts;
    base.order = order_;
    base.slot = slot;
    PackedSpanFunctor<Csr> span(base, A_);
    span.index_free = o_.index_free && f_.shift >= 0.3;
    span.narrow = o_.narrow_indices;
    span.index_free_padding = 1.4;
    span.hubs = hubs;
    span.hub_place = p_.hub_place;
    span.pattern = pattern;
    choose_indices(span);
    place_packets<Csr>(space_, p_, total, backend_);
    const std::int64_t lanes = summary.slices * p_.lanes;
    Kokkos::parallel_for(
        "Tessera::convert[packed] indices", Kokkos::RangePolicy<Exec>(space_, 0, lanes),
        PackedIndexFunctor<Csr>(span, reinterpret_cast<unsigned char*>(p_.packets.data()), p_.value_bytes()));
    p_.variant = packed_variant(p_, f_);
    Format filled = p_;
    filled.row_map = row_map;
    packed_fill<Csr>(space_, filled, A_.values());
    if (!updatable) Compat::fence(space_, "Tessera::convert[packed] the map is released");
  }

  struct CopyRowMap {
    typename Csr::row_map_type from;
    View<std::int64_t> to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = static_cast<std::int64_t>(from(i)); }
  };

 private:
  void find_hubs(std::int64_t hubs, const View<std::uint32_t>& uses, const View<std::uint32_t>& bins,
                 const View<HubFound>& found) {
    const auto cols = static_cast<std::size_t>(p_.cols);
    p_.hub_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::hubs", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.hub_columns = arena.template take<std::uint32_t>(static_cast<std::size_t>(hubs));
          p_.hub_place = arena.template take<std::uint32_t>(cols);
        });
    Kokkos::deep_copy(space_, p_.hub_columns, 0u);
    const auto least =
        static_cast<std::uint32_t>(std::min<std::int64_t>(p_.nnz / std::max<std::int64_t>(p_.cols, 1), 1 << 30));
    HubCountFunctor<Csr> count;
    count.entries = A_.entries();
    count.uses = uses;
    Kokkos::parallel_for("Tessera::convert[packed] column uses", Kokkos::RangePolicy<Exec>(space_, 0, p_.nnz), count);
    HubBinFunctor<Csr> bin;
    bin.uses = uses;
    bin.bins = bins;
    bin.least = least;
    Kokkos::parallel_for("Tessera::convert[packed] hub bins", Kokkos::RangePolicy<Exec>(space_, 0, p_.cols), bin);
    HubThresholdFunctor<Csr> threshold;
    threshold.bins = bins;
    threshold.found = found;
    threshold.hubs = hubs;
    Kokkos::parallel_scan("Tessera::convert[packed] hub threshold", Kokkos::RangePolicy<Exec>(space_, 0, HubBin::count),
                          threshold);
    HubPlaceFunctor<Csr> place;
    place.uses = uses;
    place.hub_columns = p_.hub_columns;
    place.place = p_.hub_place;
    place.found = found;
    place.hubs = hubs;
    place.least = least;
    Kokkos::parallel_scan("Tessera::convert[packed] hub places", Kokkos::RangePolicy<Exec>(space_, 0, p_.cols), place);
  }

  void order_rows(const View<PackedSummary>& total) {
    if (shape_.group > 1) {
      PackedGroupFunctor<Csr> group;
      group.A = A_;
      group.shape = shape_;
      group.same = same_;
      constexpr int threads = Compat::is_host_v<Exec> ? 1 : 16, vector = Compat::is_host_v<Exec> ? 1 : 16;
      const auto teams = static_cast<int>((same_.extent(0) + threads - 1) / threads);
      Kokkos::parallel_for("Tessera::convert[packed] equal rows",
                           Kokkos::TeamPolicy<Exec>(space_, teams, threads, vector), group);
    }
    PackedWindowFunctor<Csr> window;
    window.A = A_;
    window.shape = shape_;
    window.same = same_;
    window.order = order_;
    window.window = window_;
    const auto windows = static_cast<int>(shape_.windows);
    Kokkos::parallel_for(
        "Tessera::convert[packed] order",
        Kokkos::TeamPolicy<Exec>(space_, windows, Compat::team_size<Exec>(shape_.window < 512 ? 128 : 512))
            .set_scratch_size(0, Kokkos::PerTeam(window.scratch_bytes())),
        window);
    PackedWindowScan<Csr> scan;
    scan.window = window_;
    scan.total = total;
    Kokkos::parallel_scan("Tessera::convert[packed] windows", Kokkos::RangePolicy<Exec>(space_, 0, shape_.windows),
                          scan);
  }

  void write_slices(const PackedSummary& summary, const View<std::uint32_t>& slot) {
    PackedSliceFunctor<Csr> slice;
    slice.A = A_;
    slice.shape = shape_;
    slice.all_parts = summary.parts;
    slice.order = order_;
    slice.window = window_;
    slice.slices = p_.slices;
    slice.parts = p_.parts;
    slice.slot = slot;
    Kokkos::parallel_for("Tessera::convert[packed] slices",
                         Kokkos::TeamPolicy<Exec>(space_, static_cast<int>(shape_.windows),
                                                  Compat::team_size<Exec>(shape_.window < 512 ? 32 : 128)),
                         slice);
  }

  void choose_indices(const PackedSpanFunctor<Csr>& span) {
    constexpr int threads = Compat::is_host_v<Exec> ? 1 : 4, vector = Compat::is_host_v<Exec> ? 1 : 32;
    const auto teams = static_cast<int>((p_.slices.extent(0) + threads - 1) / threads);
    if (teams == 0) return;
    Kokkos::parallel_for("Tessera::convert[packed] spans", Kokkos::TeamPolicy<Exec>(space_, teams, threads, vector),
                         span);
  }

  const Exec& space_;
  const Csr& A_;
  const SpmvFeatures& f_;
  const PackedOptions& o_;
  const KernelTable* backend_;
  Format& p_;
  PackedShape shape_;
  std::size_t zeroed_ = 0;
  View<std::uint8_t> same_;
  View<std::uint32_t> order_;
  View<PackedWindow> window_;
};

}  // namespace Impl

/// Converts A for waves of `lanes` lanes. Deterministic; columns keep their order inside a row. Two waits for sizes.
/// Peak extra memory: 4 bytes a row, 5 a slice, and 8 a row if not updatable; with hub columns 4 a column.
/// @param updatable  keep what packed_update needs: 8 bytes a row
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
/// @throw InvalidArgument  options out of range
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
  const std::int64_t hubs = p.cols > 0 ? std::min(Impl::packed_hubs(o, features, device, p.value_bytes()), p.cols) : 0;
  Impl::PackedConversion<Csr, Exec>(space, A, features, o, backend, p).run(hubs, updatable);
  p.copies_hubs = p.hub_bytes() <= 65536 || p.hub_bytes() > device.shared_bytes;
  return p;
}

}  // namespace Tessera

#endif
