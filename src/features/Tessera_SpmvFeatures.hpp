// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPMV_FEATURES_HPP
#define TESSERA_FEATURES_SPMV_FEATURES_HPP

#include <cmath>
#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"

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
};

namespace Impl {

struct FeatureSums {
  std::int64_t longest, empty;
  double squares;
};

struct FeatureSample {
  std::uint64_t windows, narrow, entries, sectors;
  std::uint64_t probed, same2, same3, shift;  // entries, too
};

struct FeatureFound {
  FeatureSums rows;
  FeatureSample sample;
};

/// Row lengths.
template <class Csr>
struct RowFeatureFunctor {
  using value_type = FeatureSums;
  typename Csr::row_map_type row_map;

  KOKKOS_INLINE_FUNCTION void init(FeatureSums& s) const { s = FeatureSums{}; }
  template <class T, class U>
  KOKKOS_INLINE_FUNCTION static void add(T& a, const U& b) {
    a.longest = a.longest < b.longest ? b.longest : a.longest;
    a.empty = a.empty + b.empty;
    a.squares = a.squares + b.squares;
  }
  KOKKOS_INLINE_FUNCTION void join(FeatureSums& a, const FeatureSums& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile FeatureSums& a, const volatile FeatureSums& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, FeatureSums& sum) const {
    const auto n = static_cast<std::int64_t>(row_map(row + 1) - row_map(row));
    if (n > sum.longest) sum.longest = n;
    sum.empty += n == 0;
    sum.squares += static_cast<double>(n) * static_cast<double>(n);
  }
};

/// A Kokkos team probes the rows of a window, and looks at its first `most` entries. Different sectors are counted with
/// a hash table, whose contents do not depend on the order of the insertions.
template <class Csr>
struct WindowFeatureFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Table = Kokkos::View<std::uint32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Counters = Kokkos::View<std::uint64_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int window_rows = 32, most = 1024, slots = 2 * most, most_windows = 512;
  static constexpr std::int64_t other = -1;
  static constexpr std::uint32_t per_sector = 4, free = ~0u;
  Csr A;
  std::int64_t windows, sampled;
  typename Arena<typename Csr::memory_space>::template View<FeatureFound> found;

  static int scratch_bytes() { return static_cast<int>(Table::shmem_size(slots) + Counters::shmem_size(4)); }
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
  KOKKOS_INLINE_FUNCTION void probe(const Counters& count, std::int64_t row) const {
    const std::int64_t n = length(row), by = shift(row, n);
    const auto entries = static_cast<std::uint64_t>(n);
    Kokkos::atomic_add(&count(0), entries);
    if (by == 0 && row % 2 == 1) Kokkos::atomic_add(&count(1), 2 * entries);
    if (by == 0 && row % 3 == 2 && shift(row - 1, n) == 0) Kokkos::atomic_add(&count(2), 3 * entries);
    if (by == 1) Kokkos::atomic_add(&count(3), entries);
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
    Counters count_of(team.team_scratch(0), 4);  // of the Kokkos team: fewer atomics on the same place
    Table table(team.team_scratch(0), slots);
    const std::int64_t window = team.league_rank() * windows / sampled, first = window * window_rows;
    const std::int64_t rows = A.rows(), last = first + window_rows < rows ? first + window_rows : rows;
    const std::int64_t begin = A.row_map()(first), left = static_cast<std::int64_t>(A.row_map()(last)) - begin;
    const int count = static_cast<int>(left < most ? left : most);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slots), [&](const int i) { table(i) = free; });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 4), [&](const int i) { count_of(i) = 0; });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(last - first)),
                         [&](const int i) { probe(count_of, first + i); });
    int sectors = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](const int i, int& n) {
          n += insert(table, static_cast<std::uint32_t>(A.entries()(begin + i)) / per_sector);
        },
        sectors);
    std::uint32_t lowest = 0, highest = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](const int i, std::uint32_t& least) {
          const auto c = static_cast<std::uint32_t>(A.entries()(begin + i));
          least = c < least ? c : least;
        },
        Kokkos::Min<std::uint32_t>(lowest));
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](const int i, std::uint32_t& greatest) {
          const auto c = static_cast<std::uint32_t>(A.entries()(begin + i));
          greatest = c > greatest ? c : greatest;
        },
        Kokkos::Max<std::uint32_t>(highest));
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      FeatureSample& to = found(0).sample;
      Kokkos::atomic_add(&to.windows, std::uint64_t{1});
      Kokkos::atomic_add(&to.narrow, std::uint64_t{count == 0 || highest - lowest < 0xffffu});
      Kokkos::atomic_add(&to.entries, static_cast<std::uint64_t>(count));
      Kokkos::atomic_add(&to.sectors, static_cast<std::uint64_t>(sectors));
      Kokkos::atomic_add(&to.probed, count_of(0));
      Kokkos::atomic_add(&to.same2, count_of(1));
      Kokkos::atomic_add(&to.same3, count_of(2));
      Kokkos::atomic_add(&to.shift, count_of(3));
    });
  }
};

template <class Pattern, class Exec>
SpmvFeatures spmv_pattern_features(const Exec& space, const Pattern& A, const KernelTable* backend) {
  using Memory = typename Pattern::memory_space;
  SpmvFeatures f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  if (f.rows == 0) return f;
  using Functor = WindowFeatureFunctor<Pattern>;
  typename Arena<Memory>::template View<FeatureFound> device;
  const auto storage = Arena<Memory>::make(space, backend, "Tessera::features", Lifetime::Temporary,
                                           [&](auto& arena) { device = arena.template take<FeatureFound>(1); });
  using Bytes = typename Arena<Memory>::template View<char>;
  Kokkos::deep_copy(space, Bytes(reinterpret_cast<char*>(device.data()), sizeof(FeatureFound)), char(0));
  using Result = Kokkos::View<FeatureSums, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::parallel_reduce("Tessera::features rows", Kokkos::RangePolicy<Exec>(space, 0, f.rows),
                          RowFeatureFunctor<Pattern>{A.row_map()}, Result(&device.data()->rows));
  const std::int64_t windows = (f.rows + Functor::window_rows - 1) / Functor::window_rows;
  const std::int64_t sampled = windows < Functor::most_windows ? windows : Functor::most_windows;
  Kokkos::parallel_for("Tessera::features windows",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(sampled), Compat::team_size<Exec>(256))
                           .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
                       Functor{A, windows, sampled, device});
  FeatureFound all{};
  fetch(space, backend, "Tessera::features", all, device);
  const FeatureSums& found = all.rows;
  const FeatureSample& seen = all.sample;
  f.longest = found.longest;
  f.empty_rows = found.empty;
  f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  if (f.nnz > 0) {
    const double variance = found.squares / static_cast<double>(f.rows) - f.mean * f.mean;
    f.cv = std::sqrt(variance > 0 ? variance : 0) / f.mean;
  }
  if (seen.probed > 0) {
    const double probed = static_cast<double>(seen.probed);
    f.same2 = static_cast<double>(seen.same2) / probed;
    f.same3 = static_cast<double>(seen.same3) / probed;
    f.shift = static_cast<double>(seen.shift) / probed;
  }
  if (seen.windows > 0) f.narrow = static_cast<double>(seen.narrow) / static_cast<double>(seen.windows);
  if (seen.entries > 0) f.sectors = static_cast<double>(seen.sectors) / static_cast<double>(seen.entries);
  return f;
}

}  // namespace Impl

/// Reads row_map once, and a sample of columns. One wait. Deterministic.
template <class Csr, class Exec>
SpmvFeatures spmv_features(const Exec& space, const Csr& A, const KernelTable* backend = nullptr) {
  return Impl::spmv_pattern_features(space, Impl::pattern_of(A), backend);
}

}  // namespace Tessera

#endif
