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
#include "formats/packed/Tessera_PackedAhead.hpp"
#include "formats/packed/Tessera_PackedBlocks.hpp"
#include "formats/packed/Tessera_PackedEven.hpp"
#include "formats/packed/Tessera_PackedFill.hpp"
#include "formats/packed/Tessera_PackedHubs.hpp"
#include "formats/packed/Tessera_PackedRenumber.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
#include "formats/packed/Tessera_PackedStructure.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// CSR to packed slices on the execution space of the matrix. Bytes moved, ideally: row_map three times, columns twice
/// (once for the spans, once for the indices), values once, the format once; with value classes the values once more.

namespace Tessera {
namespace Impl {

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

/// Room for so many units of packets.
template <class Memory, class Exec>
void make_room_for_packets(const Exec& space, Experimental::PackedSlices<Memory>& p, std::int64_t units,
                           const KernelTable* backend) {
  require<NotSupported>(units < (std::int64_t{1} << 32), [&] {
    return "packed slices of " + std::to_string(units * packed_unit) +
           " bytes, fewer than 2^37 can be named; SpmvAlgorithm::Csr has no such limit";
  });
  p.packet_storage =
      Arena<Memory>::make(space, backend, "Tessera::packed::packets", Lifetime::Plan, [&](Arena<Memory>& arena) {
        p.packets = arena.template take<std::uint64_t>(static_cast<std::size_t>(units) * (packed_unit / 8));
      });
}

/// What packets of these sizes are.
inline void take_sizes(Experimental::PackedSummary& summary, const PackedSizes& sizes) {
  summary.units = sizes.units;
  summary.steps = sizes.steps;
  summary.stored = sizes.stored;
  summary.short_slices = sizes.short_slices;
  std::copy(std::begin(sizes.index_slots), std::end(sizes.index_slots), std::begin(summary.index_slots));
  summary.grouped_slots = sizes.grouped_slots;
  summary.id_rows = sizes.id_rows;
}

/// Places all packets anew for the class p has now, and makes room for them. One wait.
template <class Pattern, class Exec>
void place_packets(const Exec& space, Experimental::PackedSlices<typename Pattern::memory_space>& p,
                   const typename Arena<typename Pattern::memory_space>::template View<PackedSizes>& total,
                   const KernelTable* backend) {
  PackedPacketScan<Pattern> scan;
  scan.slices = p.slices;
  scan.total = total;
  scan.lanes = p.lanes;
  scan.value_bytes = p.value_bytes();
  Kokkos::parallel_scan("Tessera::convert[packed] packets", Kokkos::RangePolicy<Exec>(space, 0, p.slices.extent(0)),
                        scan);
  PackedSizes sizes{};
  fetch(space, backend, "Tessera::convert[packed] size of packets", sizes, total);
  take_sizes(p.summary, sizes);
  make_room_for_packets(space, p, sizes.units, backend);
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
                   const SpmvFeatures& features, const PackedOptions& options, const KernelTable* backend, Format& p,
                   const std::shared_ptr<PackedAhead<Memory>>& ahead)
      : space_(space), A_(A), numbers_(numbers), f_(features), o_(options), backend_(backend), p_(p), ahead_(ahead) {}

  void run(const DeviceFacts& device, bool updatable) {
    choose_shape(device);
    PackedEvenConversion<Pattern, Exec> even(space_, A_, numbers_, f_, backend_, p_, shape_);
    const bool diagonals =
        hubs_ == 0 && packed_may_be_diagonals(shape_, o_, f_) && even.make_diagonals(classes(), updatable);
    if (!diagonals && shape_.even_steps > 0 && !classes()) {
      even.make(updatable);
    } else if (!diagonals) {
      if (ahead_ && !ahead_->fits(shape_, hubs_ == 0 && !p_.renumbered, updatable)) ahead_.reset();
      make_room(device, updatable);
      if (classes()) numbers_.classify(class_found_);
      if (p_.blocks > 1) find_block_rows();
      if (!ahead_) order_rows(device);
      Reply<PackedTotals> reply(backend_);
      make_structure(reply.ask(answer_));
      const bool before = fill_before_answer();
      take_totals(reply.receive(space_, "Tessera::convert[packed] totals", answer_));
      if (before && p_.storage == PackedStorage::Full && p_.summary.units <= likely_) {
        const std::size_t words = static_cast<std::size_t>(p_.summary.units) * (packed_unit / 8);
        p_.packets = View<std::uint64_t>(p_.packets.data(), words);
      } else {
        make_room_for_packets(space_, p_, p_.summary.units, backend_);
        write_packets({});
      }
    }
    if (shape_.even_steps > 0) p_.even = shape_.even_slice(p_.cols);
    p_.variant = packed_variant(p_, f_);
    p_.pairs = packed_pairs(p_, o_, f_);
    p_.eight_waves = packed_eight_waves(p_, f_);
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
    const bool whole = p_.blocks == 1 && p_.nnz > 0;
    if (whole && packed_may_renumber(o_, f_, device, value_bytes)) {
      PackedColumnOrder<Pattern, Exec>{space_, A_, numbers_, o_, backend_}.find(p_, hub_place_, hub_scratch_);
    }
    const std::int64_t hubs = p_.renumbered || !whole ? 0 : std::min(packed_hubs(o_, f_, device, value_bytes), p_.cols);
    hubs_ = hubs > 0 && find_hubs(hubs) ? hubs : 0;
    shape_ = packed_shape(o_, f_, p_.lanes, value_bytes, p_.blocks, hubs_ > 0, p_.renumbered);
    if (p_.renumbered) hubs_ = p_.cols;
    require<NotSupported>(shape_.rows * shape_.blocks < (std::int64_t{1} << 31),
                          [] { return std::string("packed slices: rows times column blocks beyond 2^31"); });
    p_.group = shape_.group;
    p_.max_steps = shape_.max_steps;
    p_.split_steps = shape_.split_steps;
  }

  /// Whether numbers may be stored in fewer bytes.
  bool classes() const {
    return o_.value_classes && numbers_.precision() == p_.precision && p_.nnz > 0 && hubs_ == 0 && p_.blocks == 1;
  }

  /// All memory but that of packets: slices, parts and chunks by bounds, so that nobody has to ask how many there are.
  void make_room(const DeviceFacts& device, bool updatable) {
    const std::int64_t most_parts = packed_most_parts(shape_, p_.nnz, f_.longest);
    const std::int64_t most_slices = packed_most_slices(shape_, p_.nnz, f_.longest) + most_parts;
    require<NotSupported>(most_slices < (std::int64_t{1} << 31), [&] {
      return "packed slices: " + std::to_string(most_slices) +
             " of them, fewer than 2^31 can be named; SpmvAlgorithm::Csr has no such limit";
    });
    const auto rows = static_cast<std::size_t>(shape_.rows * shape_.blocks);
    const auto slices = static_cast<std::size_t>(most_slices), parts = static_cast<std::size_t>(most_parts);
    const auto windows = static_cast<std::size_t>(shape_.sort_windows * shape_.blocks);
    map_.step = p_.blocks > 1 ? p_.rows : 1;
    // Up to two thousand teams on a device: enough of them though the bound is above what there is, few enough for what
    // a team does once.
    constexpr std::int64_t threads = team_threads;
    places_.chunk = Compat::is_host_v<Exec>
                        ? 64
                        : static_cast<int>(threads * std::min<std::int64_t>(most_slices / (threads * 2048) + 1, 32));
    const std::size_t chunks = slices / static_cast<std::size_t>(places_.chunk) + 1;
    const auto shares = static_cast<std::size_t>(p_.blocks > 1 ? std::max(p_.blocks, device.compute_units) : 0);
    const auto take_map = [&](Arena<Memory>& arena) {
      p_.row_map = arena.template take<std::int64_t>(rows + static_cast<std::size_t>(map_.step));
    };
    p_.structure_storage =
        Arena<Memory>::make(space_, backend_, "Tessera::packed::structure", Lifetime::Plan, [&](Arena<Memory>& arena) {
          p_.slices = arena.template take<PackedSlice>(slices);
          p_.parts = arena.template take<PackedPart>(parts);
          p_.dictionary = arena.template take<std::uint64_t>(classes() ? 256 : 0);
          p_.shares = arena.template take<PackedShare>(shares);
          if (updatable && !ahead_) take_map(arena);
        });
    take_scratch([&](Arena<Memory>& arena) {
      spread_ = arena.template take<PackedSizesSpread>(PackedSizesSpread::most);
      arrived_ = arena.template take<std::uint32_t>(2 + SortPlaces<Memory>::most_groups);
      zeroed_ = arena.bytes();
      arena.skip_to(borrowed_zero_bytes);
      class_found_ = arena.template take<PackedClassFound>(classes() ? 1 : 0);
      answer_ = arena.template take<PackedTotals>(1);
      slot_ = arena.template take<std::uint32_t>(slices);
      unit_ = arena.template take<std::uint8_t>(slices);
      places_.slices = arena.template take<std::uint32_t>(slices);
      places_.chunks = arena.template take<std::uint32_t>(chunks);
      if (ahead_) return;
      totals_ = arena.template take<PackedTotals>(1);
      same_ = arena.template take<std::uint8_t>(
          shape_.group > 1 ? (rows + static_cast<std::size_t>(shape_.group) - 1) / shape_.group : 0);
      order_ = arena.template take<std::uint32_t>(rows);
      pieces_ = arena.template take<std::uint32_t>(most_parts > 0 ? rows : 0);
      sort_windows_ = arena.template take<SortWindow>(windows);
      sort_counts_ = arena.template take<SortCount>(windows);
      sort_starts_.within = arena.template take<SortPlace>(windows);
      sort_starts_.groups = arena.template take<SortPlace>(SortPlaces<Memory>::most_groups);
      sort_starts_.split = arena.template take<std::uint32_t>(SortPlaces<Memory>::most_groups);
      if (!updatable && !ahead_) take_map(arena);
    });
    if (ahead_) take_ahead(windows);
    map_.begin = p_.row_map;
    sort_starts_.log_group = SortPlaces<Memory>::log_group_of(shape_.sort_windows * shape_.blocks);
    if (classes()) {
      Kokkos::deep_copy(space_, View<char>(reinterpret_cast<char*>(class_found_.data()), sizeof(PackedClassFound)),
                        char(0));
    }
  }
  void take_ahead(std::size_t windows) {
    totals_ = ahead_->totals;
    order_ = ahead_->order;
    pieces_ = ahead_->pieces;
    sort_windows_ = View<SortWindow>(ahead_->windows_found.data(), windows);
    sort_starts_ = ahead_->starts;
    sort_starts_.within = View<SortPlace>(ahead_->starts.within.data(), windows);
    p_.row_map = ahead_->map.begin;
    p_.map_storage = ahead_->map_storage;
  }
  /// Memory of the conversion alone: borrowed, or else allocated and its first part filled with zeros.
  template <class Layout>
  void take_scratch(const Layout& layout) {
    constexpr const char* label = "Tessera::packed::scratch";
    p_.borrowed = Borrowed::open<Memory>(space_, backend_, label, Arena<Memory>::bytes_of(layout));
    if (p_.borrowed) return Arena<Memory>::place(p_.borrowed->data(), layout);
    scratch_ = Arena<Memory>::make(space_, backend_, label, Lifetime::Temporary, layout);
    if (zeroed_ > 0) Kokkos::deep_copy(space_, View<char>(static_cast<char*>(scratch_.get()), zeroed_), char(0));
  }

  /// Exact sizes in place of bounds, and room for the packets.
  void take_totals(const PackedTotals& totals) {
    Experimental::PackedSummary& summary = p_.summary;
    require<NotSupported>(totals.slices <= static_cast<std::int64_t>(p_.slices.extent(0)) &&
                              totals.parts <= static_cast<std::int64_t>(p_.parts.extent(0)),
                          [&] {
                            return "packed slices: " + std::to_string(totals.slices) + " slices and " +
                                   std::to_string(totals.parts) + " parts, room was made for " +
                                   std::to_string(p_.slices.extent(0)) + " and " + std::to_string(p_.parts.extent(0)) +
                                   "; has the matrix changed meanwhile?";
                          });
    summary.slices = totals.slices;
    summary.parts = totals.parts;
    summary.split_rows = totals.split;
    p_.slices = View<PackedSlice>(p_.slices.data(), static_cast<std::size_t>(totals.slices));
    p_.parts = View<PackedPart>(p_.parts.data(), static_cast<std::size_t>(totals.parts));
    p_.storage = totals.storage;
    if (p_.storage == PackedStorage::Constant || p_.storage == PackedStorage::Dictionary) {
      PackedClassFound found{};
      fetch(space_, backend_, "Tessera::convert[packed] value class", found, class_found_);
      upload_dictionary(space_, p_, dictionary_of(found), numbers_.bytes());
    } else {
      p_.dictionary = {};
    }
    take_sizes(summary, totals.sizes);
  }

  /// Where packets are small and values may be in full: room by estimate, and all kernels are enqueued before sizes are
  /// known; if the room is too small, or values are not in full, these do nothing.
  bool fill_before_answer() {
    constexpr std::int64_t most_bytes = std::int64_t{256} << 20;
    const int value_bytes = bytes_of(p_.precision);
    likely_ = packed_likely_units(shape_, p_.nnz, f_.longest, p_.cols, value_bytes, o_.narrow_indices && hubs_ == 0);
    if (likely_ * packed_unit > most_bytes) return false;
    make_room_for_packets(space_, p_, likely_, backend_);
    const auto most = static_cast<std::int64_t>(p_.slices.extent(0));
    const PackedGate gate{totals_.data(), likely_, std::min(packed_likely_slices(shape_, p_.nnz), most)};
    write_packets(gate);
    return true;
  }

  template <class P>
  void fill_in(PackedSpans<P>& f) const {
    f.shape = shape_;
    f.slices = p_.slices;
    f.parts = p_.parts;
    f.order = order_;
    f.slot = slot_;
    f.columns = typename PackedSpans<P>::Columns(A_.entries().data(), A_.entries().extent(0));
    f.map = map_;
    f.index_free = o_.index_free && p_.blocks == 1 && f_.shift >= 0.3;
    f.narrow = o_.narrow_indices;
    f.index_free_padding = 1.4;
    f.hubs = hubs_;
    f.cols = p_.cols;
    f.pattern = unit_;
  }

  /// Records and the sizes of packets.
  void make_structure(const ReplyPlace<PackedTotals>& reply) {
    PackedStructureFunctor<Pattern> f;
    fill_in(f);
    f.sort_windows = sort_windows_;
    f.starts = sort_starts_;
    f.pieces = pieces_;
    f.places = places_;
    f.found = classes() ? class_found_.data() : nullptr;
    f.natural_bytes = static_cast<int>(numbers_.bytes());
    f.stored_bytes = bytes_of(p_.precision);
    f.arrived = arrived_.data() + 1 + SortPlaces<Memory>::most_groups;
    f.totals = totals_.data();
    f.spread = spread_.data();
    f.reply = reply;
    constexpr int threads = Compat::is_host_v<Exec> ? 1 : team_threads;
    const auto chunks = static_cast<int>((p_.slices.extent(0) + places_.chunk - 1) / places_.chunk);
    Kokkos::parallel_for(
        "Tessera::convert[packed] slices",
        Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<256, 4>>(space_, chunks, threads, f.vector)
            .set_scratch_size(0, Kokkos::PerTeam(f.scratch_bytes())),
        f);
  }

  /// Of numbers that are stored as they are, indices and values at once.
  void write_packets(const PackedGate& gate) {
    const bool known = gate.totals == nullptr;
    if constexpr (std::is_same_v<typename Pattern::ordinal_type, int>) {
      if (numbers_.precision() == p_.precision && !(known && p_.storage != PackedStorage::Full)) {
        PackedIndexFunctor<PackedPlainPattern<Memory>> f;
        prepare_indices(f, gate);
        return numbers_.fill_slots(p_, f);
      }
    }
    PackedIndexFunctor<Pattern> f;
    prepare_indices(f, gate);
    const auto slices = known ? static_cast<std::int64_t>(p_.slices.extent(0)) : gate.threads;
    Kokkos::parallel_for("Tessera::convert[packed] indices",
                         Kokkos::RangePolicy<Exec, Compat::LightWeight>(space_, 0, slices * p_.lanes), f);
    numbers_.fill(p_, map_, gate);
  }
  template <class P>
  void prepare_indices(PackedIndexFunctor<P>& f, const PackedGate& gate) const {
    fill_in(f);
    f.places.chunks = places_.chunks;
    f.places.slices = places_.slices;
    f.places.chunk = places_.chunk;
    f.hub_place = hub_place_;
    f.packets = reinterpret_cast<unsigned char*>(p_.packets.data());
    f.value_bytes = p_.value_bytes();
    f.gate = gate;
  }

  bool columns_ascend() {
    View<std::int64_t> found, answer;
    View<std::uint32_t> arrived;
    const auto layout = [&](Arena<Memory>& arena) {
      found = arena.template take<std::int64_t>(1);
      arrived = arena.template take<std::uint32_t>(1);
      arena.skip_to(borrowed_zero_bytes);
      answer = arena.template take<std::int64_t>(1);
    };
    zeroed_ = borrowed_zero_bytes;
    take_scratch(layout);
    Reply<std::int64_t> reply(backend_);
    const DescentFunctor<Pattern> f{{},      A_.row_map(), A_.entries(),   p_.nnz,
                                    p_.rows, found.data(), arrived.data(), reply.ask(answer)};
    Kokkos::parallel_for("Tessera::convert[packed] ascending columns",
                         Kokkos::TeamPolicy<Exec, Compat::LightWeight>(space_, f.teams(), Compat::team_size<Exec>(256)),
                         f);
    const std::int64_t descents = reply.receive(space_, "Tessera::convert[packed] ascending columns", answer);
    p_.done();  // the answer is the kernel's last write
    scratch_.reset();
    return descents == 0;
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
    count_column_uses(space_, A_, uses);
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

  /// Where each row begins in each column block.
  void find_block_rows() {
    RowMapFunctor<Pattern> f;
    f.row_map = A_.row_map();
    f.columns = A_.entries();
    f.begin = p_.row_map;
    f.rows = p_.rows;
    f.block_columns = p_.block_columns;
    f.blocks = p_.blocks;
    Kokkos::parallel_for("Tessera::convert[packed] row map", Kokkos::RangePolicy<Exec>(space_, 0, f.items()), f);
  }

  void share_out() {
    PackedShareFunctor<Pattern> f;
    f.shape = shape_;
    f.starts = sort_starts_;
    f.slices = p_.slices;
    f.shares = p_.shares;
    f.all_parts = p_.summary.parts;
    f.units = p_.summary.units;
    f.cols = p_.cols;
    f.block_columns = p_.block_columns;
    Kokkos::parallel_for("Tessera::convert[packed] shares", Kokkos::RangePolicy<Exec>(space_, 0, 1), f);
  }

  void order_rows(const DeviceFacts& device) {
    if (shape_.group > 1) {
      PackedGroupFunctor<Pattern> group;
      group.columns = A_.entries();
      group.row_map = A_.row_map();
      group.shape = shape_;
      group.same = same_;
      constexpr int threads = Compat::is_host_v<Exec> ? 1 : 16;
      const auto teams = static_cast<int>((same_.extent(0) + threads - 1) / threads);
      Kokkos::parallel_for("Tessera::convert[packed] equal rows",
                           Kokkos::TeamPolicy<Exec, Compat::LightWeight>(space_, teams, threads, group.vector), group);
    }
    SortWindowFunctor<Pattern> sort;
    sort.row_map = A_.row_map();
    sort.map = map_;
    sort.shape = shape_;
    sort.same = same_;
    sort.order = order_;
    sort.pieces = pieces_;
    sort.sort_windows = sort_windows_;
    sort.counts = sort_counts_;
    sort.starts = sort_starts_;
    sort.totals = totals_.data();
    sort.arrived = arrived_.data();
    const std::int64_t count = shape_.sort_windows * shape_.blocks;
    packed_enqueue_order(space_, sort, sort, count, packed_order_team<Exec>(device, shape_.sort_window, count));
  }

  static constexpr int team_threads = 8;

  const Exec& space_;
  const Pattern& A_;
  const PackedNumbers<Memory>& numbers_;
  const SpmvFeatures& f_;
  const PackedOptions& o_;
  const KernelTable* backend_;
  Format& p_;
  std::shared_ptr<PackedAhead<Memory>> ahead_;
  std::int64_t hubs_ = 0, likely_ = 0;
  std::size_t zeroed_ = 0;
  PackedShape shape_;
  PackedRowMap<Memory> map_;
  typename Format::Storage hub_scratch_, scratch_;
  View<PackedTotals> totals_, answer_;
  View<PackedSizesSpread> spread_;
  View<std::uint32_t> arrived_;
  View<PackedClassFound> class_found_;
  View<std::uint8_t> same_, unit_;
  View<std::uint32_t> order_, pieces_, slot_, hub_place_;
  View<SortWindow> sort_windows_;
  View<SortCount> sort_counts_;
  SortPlaces<Memory> sort_starts_;
  PackedPlaces<Pattern> places_;
};

/// Compiled once per type of offsets.
template <class Pattern, class Exec>
void packed_pattern(const Exec& space, const Pattern& A, const PackedNumbers<typename Pattern::memory_space>& numbers,
                    const SpmvFeatures& features, const PackedOptions& o, bool updatable, const KernelTable* backend,
                    const DeviceFacts& device, Experimental::PackedSlices<typename Pattern::memory_space>& p,
                    const std::shared_ptr<PackedAhead<typename Pattern::memory_space>>& ahead) {
  PackedConversion<Pattern, Exec>(space, A, numbers, features, o, backend, p, ahead).run(device, updatable);
}

}  // namespace Impl

namespace Experimental {

/// Converts A for waves of `lanes` lanes. Deterministic; columns keep their order inside a row. Even slices in full:
/// no wait. Otherwise one, for sizes, and one more where hub columns or column blocks are considered, or numbers go to
/// a dictionary. Room for slices and parts is by bounds, 1 to 5 % of the format are not used; room for packets below
/// 256 MB by estimate, 15 to 70 % more than is used (perf_test/notes/conversion.md). Peak extra memory besides the
/// format: 4 bytes per row, 9 per slice, 8 per row if not updatable (rows times column blocks), with hub columns 8 per
/// column.
/// @param updatable  keep what packed_update needs: 8 bytes per row (times column blocks)
/// @param backend  whose memory pool to use, if it has one; null: Kokkos allocations
/// @param ahead  the order of rows, enqueued behind the features; null, or of another shape: none. Call its done()
/// where the format's is called.
/// @throw InvalidArgument  options out of range
/// @throw NotSupported  sizes beyond what a record can name
template <class Csr, class Exec>
PackedSlices<typename Csr::memory_space> to_packed(
    const Exec& space, const Csr& A, int lanes, Precision precision, const SpmvFeatures& features,
    const PackedOptions& o = {}, bool updatable = true, const KernelTable* backend = nullptr,
    const DeviceFacts& device = {},
    const std::shared_ptr<Impl::PackedAhead<typename Csr::memory_space>>& ahead = nullptr) {
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
  Impl::packed_pattern(space, Impl::pattern_of(A), numbers, features, o, updatable, backend, device, p, ahead);
  p.copies_hubs = p.renumbered || p.hub_bytes() <= 65536 || p.hub_bytes() > device.shared_bytes;
  return p;
}

}  // namespace Experimental
}  // namespace Tessera

#endif
