// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_AHEAD_HPP
#define TESSERA_FORMATS_PACKED_PACKED_AHEAD_HPP

#include <cstdint>
#include <memory>

#include "core/Tessera_Arena.hpp"
#include "features/Tessera_SpmvFeatures.hpp"
#include "formats/packed/Tessera_PackedOrder.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
#include "formats/packed/Tessera_PackedStructure.hpp"

/// \file
/// The order of rows before the host knows the features: the kernel that measures them decides what shapes slices, and
/// kernels behind it go by that. The host comes to its own decision later, and uses the order where that is the same.

namespace Tessera {
namespace Impl {

/// What the features decide of the order; the rest is known before.
struct PackedDecided {
  std::int32_t sort_window, group, max_steps, split_steps;  // sort_window 0: nothing is to be done ahead

  bool operator==(const PackedDecided& other) const {
    return sort_window == other.sort_window && group == other.group && max_steps == other.max_steps &&
           split_steps == other.split_steps;
  }
};

/// What is known before the features.
struct PackedKnown {
  PackedOptions options;
  DeviceFacts device;
  std::int64_t rows, cols, nnz;
  int lanes, value_bytes;

  /// Whether to begin before the features are known. Not where slices may be even or name few diagonals, whose path
  /// needs no order and would wait for what is enqueued here (rows nearly all as long as the longest: sizes alone tell
  /// when that cannot be), nor where columns may be put in the order of their use.
  bool worthwhile() const {
    const bool open = options.column_blocks <= 1 && options.hubs <= 0 && options.renumber <= 0;
    if (!open || rows == 0 || nnz == 0 || (options.even_slices && nnz <= options.most_even)) return false;
    const std::int64_t longest = sizes().usual();
    const double slots = static_cast<double>(rows) * static_cast<double>(longest);
    if (options.diagonals && longest <= packed_most_diagonals && slots <= 1.01 * static_cast<double>(nnz)) return false;
    SpmvFeatures skewed = sizes();
    skewed.cv = skewed.sectors = 1;
    return !packed_may_renumber(options, skewed, device, value_bytes);
  }
  /// Features without what has to be looked at.
  KOKKOS_INLINE_FUNCTION SpmvFeatures sizes() const {
    SpmvFeatures f;
    f.rows = rows;
    f.cols = cols;
    f.nnz = nnz;
    f.mean = static_cast<double>(nnz) / static_cast<double>(rows);
    return f;
  }
  /// Column blocks may follow; also where they do not in the end.
  KOKKOS_INLINE_FUNCTION bool may_be_blocks(const SpmvFeatures& f) const {
    return device.shared_bytes >= 131072 &&
           ((f.sectors >= 0.5 && f.mean >= 40) || (f.nnz >= 20000000 && packed_is_scattered(f)));
  }
  KOKKOS_INLINE_FUNCTION PackedDecided decide(const SpmvFeatures& f) const {
    PackedDecided none{};
    if (may_be_blocks(f) || packed_may_be_cells(options, f, device, value_bytes) ||
        packed_may_renumber(options, f, device, value_bytes) || packed_hubs(options, f, device, value_bytes) > 0) {
      return none;
    }
    const PackedShape s = packed_shape(options, f, lanes, value_bytes, 1, false);
    if (s.even_steps > 0 || packed_may_be_diagonals(s, options, f)) return none;
    return {s.sort_window, s.group, s.max_steps, s.split_steps};
  }
};

/// Of the last Kokkos team of the features.
struct PackedDecide {
  PackedKnown known;
  PackedDecided* to;

  KOKKOS_INLINE_FUNCTION void operator()(FeatureFound& found) const {
    SpmvFeatures f = known.sizes();
    take_features(f, found);
    const PackedDecided d = known.decide(f);
    *to = d;
    found.decided[0] = d.sort_window, found.decided[1] = d.group;
    found.decided[2] = d.max_steps, found.decided[3] = d.split_steps;
  }
};

/// PackedGroupFunctor and SortWindowFunctor of a shape that the device decides.
template <class Csr>
struct PackedAheadGroups {
  using member = typename PackedTypesOf<Csr>::member;
  PackedGroupFunctor<Csr> group;
  const PackedDecided* decided;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const PackedDecided d = *decided;
    if (d.sort_window == 0 || d.group <= 1) return;
    PackedGroupFunctor<Csr> f = group;
    f.shape.group = d.group;
    f.shape.max_steps = d.max_steps;
    f.shape.split_steps = d.split_steps;
    const std::int64_t groups = (f.shape.rows + d.group - 1) / d.group;
    const std::int64_t all = std::int64_t{team.league_size()} * team.team_size();
    for (std::int64_t g = std::int64_t{team.league_rank()} * team.team_size() + team.team_rank(); g < groups;
         g += all) {
      f.compare(team, g);
    }
  }
};
template <class Csr>
struct PackedAheadOrder {
  using member = typename PackedTypesOf<Csr>::member;
  SortWindowFunctor<Csr> sort;
  const PackedDecided* decided;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const PackedDecided d = *decided;
    if (d.sort_window != sort.shape.sort_window) return;
    SortWindowFunctor<Csr> f = sort;
    f.shape.group = d.group;
    f.shape.max_steps = d.max_steps;
    f.shape.split_steps = d.split_steps;
    f(team);
  }
};

/// Threads of a team of the order.
template <class Exec>
int packed_order_team(const DeviceFacts& device, int sort_window, std::int64_t sort_windows) {
  int team = sort_window < 512 ? 128 : 512;
  // Teams of 1,024 threads in all are under way per multiprocessor. Where there are more windows than that, a fourth
  // of the threads takes less than four times as long.
  const bool small = !Compat::is_host_v<Exec> && sort_window < 2048 && team / 4 >= device.wave &&
                     sort_windows > std::int64_t{1024 / team} * device.compute_units;
  return Compat::team_size<Exec>(small ? team / 4 : team);
}
/// @param f  sort, or what waits for the decision before it
template <class F, class Exec, class Sort>
void packed_enqueue_order(const Exec& space, const F& f, const Sort& sort, std::int64_t sort_windows, int team) {
  using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<512, 2>>;
  Policy policy(space, static_cast<int>(sort_windows), team);
  policy.set_scratch_size(sort.scratch_level, Kokkos::PerTeam(sort.scratch_bytes()));
  Kokkos::parallel_for("Tessera::convert[packed] order", policy, f);
}

/// Memory of an order, and what has been enqueued of it.
template <class Memory>
class PackedAhead {
 public:
  using Decide = PackedDecide;
  static constexpr std::size_t bytes = sizeof(PackedDecided);
  template <class T>
  using View = typename Arena<Memory>::template View<T>;

  PackedAhead(const PackedKnown& known, bool updatable) : known_(known), updatable_(updatable) {}

  PackedDecide decide(void* to) const { return {known_, static_cast<PackedDecided*>(to)}; }

  template <class Exec, class Pattern>
  void enqueue(const Exec& space, const Pattern& A, const KernelTable* backend,
               const std::shared_ptr<Borrowed>& features, void* told) {
    if (!features) return;
    const auto* const decided = reinterpret_cast<const PackedDecided*>(told);
    int windows[2] = {};
    const int shapes = sort_windows(windows);
    const auto rows = static_cast<std::size_t>(known_.rows);
    const int least = shapes == 2 && windows[1] < windows[0] ? windows[1] : windows[0];
    const auto most = static_cast<std::size_t>((known_.rows + least - 1) / least);
    const auto take_map = [&](Arena<Memory>& arena) { map.begin = arena.template take<std::int64_t>(rows + 1); };
    const auto layout = [&](Arena<Memory>& arena) {
      arrived = arena.template take<std::uint32_t>(1 + SortPlaces<Memory>::most_groups);
      arena.skip_to(borrowed_zero_bytes);
      totals = arena.template take<PackedTotals>(1);
      same = arena.template take<std::uint8_t>(grouped() ? rows / 2 + 1 : 0);
      order = arena.template take<std::uint32_t>(rows);
      pieces = arena.template take<std::uint32_t>(rows);
      windows_found = arena.template take<SortWindow>(most);
      counts = arena.template take<SortCount>(most);
      starts.within = arena.template take<SortPlace>(most);
      starts.groups = arena.template take<SortPlace>(SortPlaces<Memory>::most_groups);
      starts.split = arena.template take<std::uint32_t>(SortPlaces<Memory>::most_groups);
      if (!updatable_) take_map(arena);
    };
    borrowed_ = Borrowed::open<Memory>(space, backend, "Tessera::packed::scratch", Arena<Memory>::bytes_of(layout));
    if (!borrowed_) return;
    features_ = features;
    Arena<Memory>::place(borrowed_->data(), layout);
    if (updatable_) {
      map_storage = Arena<Memory>::make(space, backend, "Tessera::packed::structure", Lifetime::Plan, take_map);
    }
    if (grouped()) enqueue_groups(space, A, decided);
    for (int n = 0; n < shapes; ++n) enqueue_order(space, A, decided, windows[n]);
  }
  void decided(const FeatureFound& found) {
    if (!borrowed_) return;
    decided_ = {found.decided[0], found.decided[1], found.decided[2], found.decided[3]};
  }
  /// Whether the order of rows of these slices is on its way.
  bool fits(const PackedShape& s, bool plain, bool updatable) const {
    return borrowed_ && decided_.sort_window > 0 && plain && updatable == updatable_ && s.lanes == known_.lanes &&
           s.blocks == 1 && s.even_steps == 0 && s.rows == known_.rows &&
           s.natural_padding == known_.options.natural_padding &&
           decided_ == PackedDecided{s.sort_window, s.group, s.max_steps, s.split_steps};
  }
  /// After a wait.
  void done() {
    if (borrowed_) borrowed_->done();
    if (features_) features_->done();
  }

  View<std::uint32_t> arrived, order, pieces;
  View<PackedTotals> totals;
  View<std::uint8_t> same;
  View<SortWindow> windows_found;
  View<SortCount> counts;
  SortPlaces<Memory> starts;
  PackedRowMap<Memory> map;
  std::shared_ptr<void> map_storage;

 private:
  /// The sizes that sort windows may have.
  int sort_windows(int* windows) const {
    PackedOptions o = known_.options;
    o.even_slices = false;
    int count = 0;
    for (const double sectors : {0.0, 0.2, 0.45}) {
      SpmvFeatures f = known_.sizes();
      f.sectors = sectors;
      const int here = packed_shape(o, f, known_.lanes, known_.value_bytes, 1, false).sort_window;
      bool seen = false;
      for (int n = 0; n < count; ++n) seen |= windows[n] == here;
      if (!seen && count < 2) windows[count++] = here;
    }
    return count;
  }
  bool grouped() const {
    return known_.options.shared_patterns && known_.nnz >= 8 * known_.rows && known_.nnz >= known_.options.least_shared;
  }
  PackedShape shape(int sort_window) const {
    PackedShape s;
    s.lanes = known_.lanes;
    for (s.log_wave = 0; (1 << s.log_wave) < s.lanes;) ++s.log_wave;
    s.sort_window = sort_window;
    s.natural_padding = known_.options.natural_padding;
    s.rows = known_.rows;
    s.sort_windows = (s.rows + sort_window - 1) / sort_window;
    return s;
  }
  template <class Exec, class Pattern>
  void enqueue_groups(const Exec& space, const Pattern& A, const PackedDecided* decided) const {
    PackedAheadGroups<Pattern> f;
    f.decided = decided;
    f.group.columns = A.entries();
    f.group.row_map = A.row_map();
    f.group.shape = shape(12);
    f.group.same = same;
    constexpr int threads = Compat::is_host_v<Exec> ? 1 : 16;
    const std::int64_t wanted = (known_.rows / 2 + threads - 1) / threads, most = 8 * known_.device.compute_units + 1;
    const auto teams = static_cast<int>(wanted < most ? wanted + 1 : most);
    Kokkos::parallel_for("Tessera::convert[packed] equal rows",
                         Kokkos::TeamPolicy<Exec, Compat::LightWeight>(space, teams, threads, f.group.vector), f);
  }
  template <class Exec, class Pattern>
  void enqueue_order(const Exec& space, const Pattern& A, const PackedDecided* decided, int sort_window) const {
    PackedAheadOrder<Pattern> f;
    f.decided = decided;
    SortWindowFunctor<Pattern>& sort = f.sort;
    sort.row_map = A.row_map();
    sort.map = map;
    sort.shape = shape(sort_window);
    sort.same = same;
    sort.order = order;
    sort.pieces = pieces;
    sort.sort_windows = windows_found;
    sort.counts = counts;
    sort.starts = starts;
    sort.starts.log_group = SortPlaces<Memory>::log_group_of(sort.shape.sort_windows);
    sort.totals = totals.data();
    sort.arrived = arrived.data();
    const std::int64_t count = sort.shape.sort_windows;
    packed_enqueue_order(space, f, sort, count, packed_order_team<Exec>(known_.device, sort_window, count));
  }

  PackedKnown known_;
  bool updatable_;
  PackedDecided decided_{};
  std::shared_ptr<Borrowed> borrowed_, features_;
};

/// Features, and the order of rows enqueued behind them. One wait. Compiled once per type of offsets.
template <class Pattern, class Exec>
SpmvFeatures packed_features_ahead(const Exec& space, const Pattern& A, const KernelTable* backend,
                                   PackedAhead<typename Pattern::memory_space>& ahead) {
  return spmv_features_and(space, A, backend, ahead);
}

}  // namespace Impl
}  // namespace Tessera

#endif
