// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPMV_FEATURES_HPP
#define TESSERA_FEATURES_SPMV_FEATURES_HPP

#include <cmath>
#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Borrowed.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_Reply.hpp"

/// \file
/// What the choice of an algorithm and the shape of its format are decided by: one pass over the row map, and a sample
/// of windows of rows.

namespace Tessera {

/// Shares are of entries. "Probed": compared at four places of a row, not at all. "Sampled": in 512 windows of 32 rows,
/// or in all where there are fewer.
struct SpmvFeatures {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t longest = 0, empty_rows = 0;
  double mean = 0;     ///< entries per row
  double cv = 0;       ///< standard deviation of the row lengths over their mean
  double same2 = 0;    ///< in aligned pairs of rows with equal columns (sampled, probed)
  double same3 = 0;    ///< in aligned triples of rows with equal columns (sampled, probed)
  double shift = 0;    ///< in rows whose columns are those of the row before plus one (sampled, probed)
  double narrow = 0;   ///< sampled windows of 32 rows whose columns span less than 2^16
  double sectors = 0;  ///< different 32-byte sectors of an x of doubles per entry inside sampled windows of 32 rows
  bool askew = false;  ///< some rows of `usual()` entries have other diagonals than others (sampled, probed)

  /// What a row has where all have about the same.
  KOKKOS_INLINE_FUNCTION std::int64_t usual() const { return rows > 0 ? (nnz + rows - 1) / rows : 0; }
};

namespace Impl {

/// What Kokkos teams add up: of all rows, and of the sampled windows.
struct FeatureFound {
  static constexpr int numbers = 13, maxima = 3;  // the first are maxima, the others sums
  std::uint64_t longest;
  std::uint64_t right, left;  // sums of diagonals: greatest, and least from above; 0: none
  std::uint64_t empty, squares;
  std::uint64_t windows, narrow, entries, sectors;
  std::uint64_t probed, same2, same3, shift;  // entries, too
  std::int32_t decided[4];                    // what the device decided by the rest

  /// What sums of diagonals begin with, so that they are positive.
  static constexpr std::int64_t middle = std::int64_t{1} << 40;

  KOKKOS_INLINE_FUNCTION std::uint64_t& number(int n) { return (&longest)[n]; }
};
static_assert(sizeof(FeatureFound) == FeatureFound::numbers * sizeof(std::uint64_t) + 4 * sizeof(std::int32_t),
              "each number has a place");
/// Teams add to several places, as atomics on one place queue. Zero before and after.
struct FeatureSpread {
  static constexpr int most = 16;
  FeatureFound found;
  char apart[128 - sizeof(FeatureFound)];
};

/// Nothing is decided on the device.
struct FeaturesDecideNothing {
  KOKKOS_INLINE_FUNCTION void operator()(FeatureFound&) const {}
};

/// Features as they follow from what was found.
KOKKOS_INLINE_FUNCTION void take_features(SpmvFeatures& f, const FeatureFound& seen) {
  f.longest = static_cast<std::int64_t>(seen.longest);
  f.empty_rows = static_cast<std::int64_t>(seen.empty);
  f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  if (f.nnz > 0) {
    const double variance = static_cast<double>(seen.squares) / static_cast<double>(f.rows) - f.mean * f.mean;
    f.cv = sqrt(variance > 0 ? variance : 0) / f.mean;
  }
  if (seen.probed > 0) {
    const double probed = static_cast<double>(seen.probed);
    f.same2 = static_cast<double>(seen.same2) / probed;
    f.same3 = static_cast<double>(seen.same3) / probed;
    f.shift = static_cast<double>(seen.shift) / probed;
  }
  if (seen.windows > 0) f.narrow = static_cast<double>(seen.narrow) / static_cast<double>(seen.windows);
  if (seen.entries > 0) f.sectors = static_cast<double>(seen.sectors) / static_cast<double>(seen.entries);
  f.askew = seen.right > 0 && seen.right + seen.left != 2 * static_cast<std::uint64_t>(FeatureFound::middle);
}

/// What one thread sees, and then its Kokkos team.
struct FeatureSeen {
  std::int64_t longest, empty;
  double squares;
  std::uint64_t probed, same2, same3, shift;
  std::uint64_t right, left;
  std::uint32_t sectors, lowest, highest;
};

/// Sums of what the threads of a Kokkos team saw.
template <class Memory>
class FeatureReducer {
 public:
  using reducer = FeatureReducer;
  using value_type = FeatureSeen;
  using result_view_type = Kokkos::View<value_type, Memory, Kokkos::MemoryUnmanaged>;

  KOKKOS_INLINE_FUNCTION explicit FeatureReducer(value_type& to) : to_(&to) {}
  KOKKOS_INLINE_FUNCTION void init(value_type& s) const {
    s = value_type{};
    s.lowest = ~0u;
  }
  template <class A, class B>
  KOKKOS_INLINE_FUNCTION static void add(A& a, const B& b) {
    a.longest = a.longest < b.longest ? b.longest : a.longest;
    a.empty = a.empty + b.empty, a.squares = a.squares + b.squares;
    a.probed = a.probed + b.probed, a.same2 = a.same2 + b.same2, a.same3 = a.same3 + b.same3;
    a.shift = a.shift + b.shift, a.sectors = a.sectors + b.sectors;
    a.lowest = a.lowest < b.lowest ? a.lowest : b.lowest;
    a.highest = a.highest < b.highest ? b.highest : a.highest;
    a.right = a.right < b.right ? b.right : a.right;
    a.left = a.left < b.left ? b.left : a.left;
  }
  KOKKOS_INLINE_FUNCTION void join(value_type& a, const value_type& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile value_type& a, const volatile value_type& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION value_type& reference() const { return *to_; }
  KOKKOS_INLINE_FUNCTION result_view_type view() const { return result_view_type(to_); }
  KOKKOS_INLINE_FUNCTION bool references_scalar() const { return true; }

 private:
  value_type* to_;
};

/// A Kokkos team measures its share of all rows, probes the rows of a window, and looks at the first `most` entries of
/// the window. Different sectors are counted with a hash table, whose contents do not depend on the order of the
/// insertions. The last team answers.
template <class Csr, class Decide = FeaturesDecideNothing>
struct FeatureFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Table = Kokkos::View<std::uint32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int window_rows = 32, most = 1024, slots = 2 * most, most_windows = 512;
  static constexpr std::int64_t other = -1;
  static constexpr std::uint32_t per_sector = 4, free = ~0u;
  Csr A;
  std::int64_t windows, sampled, usual;
  FeatureSpread* spread;   // most of them, zero
  std::uint32_t* arrived;  // zero
  ReplyPlace<FeatureFound> reply;
  Decide decide;

  using Numbers = Kokkos::View<std::uint64_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static int scratch_bytes() {
    return static_cast<int>(Table::shmem_size(slots) + Numbers::shmem_size(FeatureFound::numbers));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t length(std::int64_t row) const {
    return static_cast<std::int64_t>(A.row_map()(row + 1) - A.row_map()(row));
  }
  /// By how much the row's columns lie behind those of the row before, as far as probes tell; `other` if not all by the
  /// same, or not by 0 or 1.
  KOKKOS_INLINE_FUNCTION std::int64_t shift(std::int64_t row, std::int64_t n) const {
    if (row == 0 || n == 0 || length(row - 1) != n) return other;
    const auto here = A.row_map()(row), before = A.row_map()(row - 1);
    std::int64_t by[4];
    for (int probe = 0; probe < 4; ++probe) {
      const std::int64_t k = probe * (n - 1) / 3;
      by[probe] = static_cast<std::int64_t>(A.entries()(here + k)) - static_cast<std::int64_t>(A.entries()(before + k));
    }
    const bool all = by[0] == by[1] && by[0] == by[2] && by[0] == by[3];
    return all && (by[0] == 0 || by[0] == 1) ? by[0] : other;
  }
  KOKKOS_INLINE_FUNCTION void probe(FeatureSeen& s, std::int64_t row) const {
    const std::int64_t n = length(row), by = shift(row, n);
    const auto entries = static_cast<std::uint64_t>(n);
    s.probed += entries;
    if (by == 0 && row % 2 == 1) s.same2 += 2 * entries;
    if (by == 0 && row % 3 == 2 && shift(row - 1, n) == 0) s.same3 += 3 * entries;
    if (by == 1) s.shift += entries;
    if (n == usual && n > 0) probe_diagonals(s, row, n);
  }
  /// Rows whose sums differ have different diagonals. Weights: those at both sides of the main one would cancel out.
  KOKKOS_INLINE_FUNCTION void probe_diagonals(FeatureSeen& s, std::int64_t row, std::int64_t n) const {
    std::int64_t sum = FeatureFound::middle;
    for (int probe = 0; probe < 4; ++probe) {
      const auto column = static_cast<std::int64_t>(A.entries()(A.row_map()(row) + probe * (n - 1) / 3));
      sum += (probe + 1) * (column - row);
    }
    const auto right = static_cast<std::uint64_t>(sum), left = 2 * FeatureFound::middle - right;
    s.right = s.right < right ? right : s.right;
    s.left = s.left < left ? left : s.left;
  }
  KOKKOS_INLINE_FUNCTION static void measure(FeatureSeen& s, std::int64_t n) {
    if (n > s.longest) s.longest = n;
    s.empty += n == 0;
    s.squares += static_cast<double>(n) * static_cast<double>(n);
  }

  KOKKOS_INLINE_FUNCTION static bool insert(const Table& table, std::uint32_t sector) {
    for (std::uint32_t place = sector * 2654435761u >> 21;; ++place) {
      std::uint32_t* const slot = &table(place % slots);
      const std::uint32_t there = Kokkos::atomic_compare_exchange(slot, free, sector);
      if (there == free) return true;
      if (there == sector) return false;
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Table table(team.team_scratch(0), slots);
    const std::int64_t rank = team.league_rank(), rows = A.rows(), threads = team.team_size();
    const std::int64_t window = rank * windows / sampled, first = window * window_rows;
    const std::int64_t last = first + window_rows < rows ? first + window_rows : rows;
    const std::int64_t begin = A.row_map()(first), left = static_cast<std::int64_t>(A.row_map()(last)) - begin;
    const std::int64_t count = left < most ? left : most;
    const std::int64_t share = rank * rows / sampled, share_end = (rank + 1) * rows / sampled;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slots), [&](const int i) { table(i) = free; });
    team.team_barrier();
    FeatureSeen seen{};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, static_cast<int>(threads)),
        [&](const int thread, FeatureSeen& s) {
          for (std::int64_t row = share + thread; row < share_end; row += threads) measure(s, length(row));
          for (std::int64_t row = first + thread; row < last; row += threads) probe(s, row);
          for (std::int64_t i = thread; i < count; i += threads) {
            const auto c = static_cast<std::uint32_t>(A.entries()(begin + i));
            s.sectors += insert(table, c / per_sector);
            s.lowest = c < s.lowest ? c : s.lowest;
            s.highest = c > s.highest ? c : s.highest;
          }
        },
        FeatureReducer<typename Csr::memory_space>(seen));
    Kokkos::single(Kokkos::PerTeam(team), [&]() { add(seen, static_cast<std::uint64_t>(count), rank); });
    if (!last_team(team, arrived, static_cast<std::uint32_t>(sampled))) return;
    Numbers numbers(team.team_scratch(0), FeatureFound::numbers);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, FeatureFound::numbers), [&](const int n) {
      std::uint64_t here[FeatureSpread::most], all = 0;  // all loads before the first of them is waited for
      for (int place = 0; place < FeatureSpread::most; ++place) here[place] = spread[place].found.number(n);
      for (int place = 0; place < FeatureSpread::most; ++place) spread[place].found.number(n) = 0;
      for (const std::uint64_t h : here) all = n >= FeatureFound::maxima ? all + h : all < h ? h : all;
      numbers(n) = all;
    });
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      FeatureFound all{};
      for (int n = 0; n < FeatureFound::numbers; ++n) all.number(n) = numbers(n);
      *arrived = 0;
      decide(all);
      reply.send(all);
    });
  }

  /// Sums of squares are whole numbers, so that their order does not matter; beyond 2^54 of a team they are cut off.
  KOKKOS_INLINE_FUNCTION void add(const FeatureSeen& s, std::uint64_t count, std::int64_t team) const {
    FeatureFound* const found = &spread[team % FeatureSpread::most].found;
    constexpr double largest = 18014398509481984.0;
    Kokkos::atomic_fetch_max(&found->longest, static_cast<std::uint64_t>(s.longest));
    Kokkos::atomic_add(&found->empty, static_cast<std::uint64_t>(s.empty));
    Kokkos::atomic_add(&found->squares, static_cast<std::uint64_t>(s.squares < largest ? s.squares : largest));
    Kokkos::atomic_add(&found->windows, std::uint64_t{1});
    Kokkos::atomic_add(&found->narrow, std::uint64_t{count == 0 || s.highest - s.lowest < 0xffffu});
    Kokkos::atomic_add(&found->entries, count);
    Kokkos::atomic_add(&found->sectors, std::uint64_t{s.sectors});
    Kokkos::atomic_add(&found->probed, s.probed);
    Kokkos::atomic_add(&found->same2, s.same2);
    Kokkos::atomic_add(&found->same3, s.same3);
    Kokkos::atomic_add(&found->shift, s.shift);
    Kokkos::atomic_fetch_max(&found->right, s.right);
    Kokkos::atomic_fetch_max(&found->left, s.left);
  }
};

/// Where nothing follows on the device.
struct NothingBehindFeatures {
  using Decide = FeaturesDecideNothing;
  static constexpr std::size_t bytes = 8;
  Decide decide(void*) const { return {}; }
  template <class... Args>
  void enqueue(const Args&...) {}
  void decided(const FeatureFound&) {}
};

/// @param behind  what is decided by the features on the device, and enqueued before these are known
template <class Pattern, class Exec, class Behind>
SpmvFeatures spmv_features_and(const Exec& space, const Pattern& A, const KernelTable* backend, Behind& behind) {
  using Memory = typename Pattern::memory_space;
  SpmvFeatures f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  if (f.rows == 0) return f;
  using Functor = FeatureFunctor<Pattern, typename Behind::Decide>;
  typename Arena<Memory>::template View<FeatureSpread> spread;
  typename Arena<Memory>::template View<FeatureFound> answer;
  typename Arena<Memory>::template View<std::uint32_t> arrived;
  typename Arena<Memory>::template View<char> told;
  const auto layout = [&](Arena<Memory>& arena) {
    spread = arena.template take<FeatureSpread>(FeatureSpread::most);
    arrived = arena.template take<std::uint32_t>(1);
    arena.skip_to(borrowed_zero_bytes);
    answer = arena.template take<FeatureFound>(1);
    told = arena.template take<char>(Behind::bytes);
  };
  const std::shared_ptr<Borrowed> borrowed =
      Borrowed::open<Memory>(space, backend, "Tessera::features", Arena<Memory>::bytes_of(layout));
  std::shared_ptr<void> storage;
  if (borrowed) {
    Arena<Memory>::place(borrowed->data(), layout);
  } else {
    storage = Arena<Memory>::make(space, backend, "Tessera::features", Lifetime::Temporary, layout);
    using Bytes = typename Arena<Memory>::template View<char>;
    char* const base = reinterpret_cast<char*>(spread.data());
    Kokkos::deep_copy(space, Bytes(base, static_cast<std::size_t>(reinterpret_cast<char*>(answer.data()) - base)),
                      char(0));
  }
  Reply<FeatureFound> reply(backend);
  const std::int64_t windows = (f.rows + Functor::window_rows - 1) / Functor::window_rows;
  const std::int64_t sampled = windows < Functor::most_windows ? windows : Functor::most_windows;
  Kokkos::parallel_for("Tessera::features",
                       Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<256, 4>>(
                           space, static_cast<int>(sampled), Compat::team_size<Exec>(256))
                           .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
                       Functor{A, windows, sampled, f.usual(), spread.data(), arrived.data(), reply.ask(answer),
                               behind.decide(told.data())});
  behind.enqueue(space, A, backend, borrowed, told.data());
  const FeatureFound seen = reply.receive(space, "Tessera::features", answer);
  behind.decided(seen);
  if (borrowed.use_count() == 1) borrowed->done();  // the answer is the kernel's last write
  take_features(f, seen);
  return f;
}

template <class Pattern, class Exec>
SpmvFeatures spmv_pattern_features(const Exec& space, const Pattern& A, const KernelTable* backend) {
  NothingBehindFeatures nothing;
  return spmv_features_and(space, A, backend, nothing);
}

}  // namespace Impl

/// Reads row_map once, and a sample of columns. One wait. Deterministic.
template <class Csr, class Exec>
SpmvFeatures spmv_features(const Exec& space, const Csr& A, const KernelTable* backend = nullptr) {
  return Impl::spmv_pattern_features(space, Impl::pattern_of(A), backend);
}

}  // namespace Tessera

#endif
