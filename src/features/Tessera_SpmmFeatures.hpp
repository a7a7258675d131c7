// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPMM_FEATURES_HPP
#define TESSERA_FEATURES_SPMM_FEATURES_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_Pattern.hpp"

/// \file
/// What the choice of an algorithm for C := alpha A B + beta C is decided by: one pass over the row map, and a sample
/// of windows of rows.

namespace Tessera {

/// Row lengths of all rows; densities from 512 windows of 64 rows spread evenly, from all where there are fewer.
/// Windows of more than 1024 entries count a pseudo-random subset of their columns, in full.
struct SpmmFeatures {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  static constexpr int brief = 24;  ///< entries of a row from which on panels in parts may be as exact as FP32
  std::int64_t longest = 0, empty_rows = 0;
  std::int64_t brief_entries = 0;  ///< of rows of fewer than `brief`
  double mean = 0;                 ///< entries per row
  /// Entries a different column in aligned windows of 8, 16, 32 and 64 rows: one fetched row of B serves so many. At
  /// least 1, at most the rows of the window unless rows repeat columns; 0 for a matrix without entries.
  double g8 = 0, g16 = 0, g32 = 0, g64 = 0;
  /// Rows of B from the first to the last that a row uses, mean of the rows of the windows that are not empty: two
  /// planes of a mesh in its natural order, nearly all rows of B where there is no order. Of unsorted rows, by 16
  /// entries.
  double reach = 0;
};

namespace Impl {

struct SpmmFeatureFound {
  std::uint64_t longest, empty_rows, brief_entries;
  std::uint64_t entries;       // of counted columns
  std::uint64_t different[4];  // in windows of 8, 16, 32, 64 rows
  std::uint64_t reach, used;   // added up over rows that are not empty, and how many these are
};

/// A Kokkos team counts the rows of its share of the matrix, and the columns of a window of 64 rows. A hash table holds
/// of each column in which of the eight windows of 8 rows it occurs; its contents do not depend on the order of
/// insertions, except for places, which do not matter.
template <class Csr>
struct SpmmFeatureFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Table = Kokkos::View<std::uint32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int window_rows = 64, most_windows = 512, slots = 2048, most = 1024;
  static constexpr std::uint32_t free = ~0u;
  Csr A;
  std::int64_t windows, sampled;
  typename Arena<typename Csr::memory_space>::template View<SpmmFeatureFound> found;

  static int scratch_bytes() { return static_cast<int>(2 * Table::shmem_size(slots)); }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t row) const {
    return static_cast<std::int64_t>(A.row_map()(row));
  }
  /// Every bit of the result depends on every bit of the column, so that no regular pattern fools the sample.
  KOKKOS_INLINE_FUNCTION static std::uint32_t hash(std::uint32_t c) {
    c ^= c >> 16;
    c *= 0x7feb352du;
    c ^= c >> 15;
    c *= 0x846ca68bu;
    return c ^ c >> 16;
  }
  /// The column's slot; -1 if there is none left.
  KOKKOS_INLINE_FUNCTION static int insert(const Table& keys, std::uint32_t column, std::uint32_t place) {
    for (int probe = 0; probe < slots; ++probe, ++place) {
      const int at = static_cast<int>(place % slots);
      const std::uint32_t there = Kokkos::atomic_compare_exchange(&keys(at), free, column);
      if (there == free || there == column) return at;
    }
    return -1;
  }
  /// Which of 2, 4 or 8 neighbouring eighths occur, from the mask of the 8: bits at the first of each.
  KOKKOS_INLINE_FUNCTION static int count(std::uint32_t mask) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) ++n;
    return n;
  }

  KOKKOS_INLINE_FUNCTION void row_lengths(const member& team) const {
    const std::int64_t rows = A.rows(), share = (rows + sampled - 1) / sampled, first = share * team.league_rank();
    const std::int64_t left = rows - first, own = left < share ? left : share;
    std::uint64_t empty = 0, brief = 0, longest = 0;
    if (own <= 0) return;
    // In passes, as indices of a Kokkos team's loops are ints.
    for (std::int64_t from = 0; from < own; from += 1 << 20) {
      const int n = static_cast<int>(own - from < (1 << 20) ? own - from : (1 << 20));
      std::uint64_t some = 0, most_of_them = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, n),
          [&](const int i, std::uint64_t& sum) {
            const std::int64_t row = first + from + i;
            const auto length = static_cast<std::uint64_t>(begin(row + 1) - begin(row));
            sum += length == 0 ? std::uint64_t{1} << 32 : length < SpmmFeatures::brief ? length : 0;
          },
          some);
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, n),
          [&](const int i, std::uint64_t& greatest) {
            const std::int64_t row = first + from + i;
            const auto length = static_cast<std::uint64_t>(begin(row + 1) - begin(row));
            greatest = length > greatest ? length : greatest;
          },
          Kokkos::Max<std::uint64_t>(most_of_them));
      empty += some >> 32;
      brief += some & 0xffffffffu;
      longest = most_of_them > longest ? most_of_them : longest;
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&found(0).empty_rows, empty);
      Kokkos::atomic_add(&found(0).brief_entries, brief);
      Kokkos::atomic_fetch_max(&found(0).longest, longest);
    });
  }

  /// Rows of B from the first to the last that a row uses, added up over the window's rows: exact for sorted rows, else
  /// of 16 entries at most.
  KOKKOS_INLINE_FUNCTION void measure_reach(const member& team, std::int64_t first, std::int64_t last) const {
    std::uint64_t reach = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, static_cast<int>(last - first)),
        [&](const int i, std::uint64_t& sum) {
          const std::int64_t b = begin(first + i), gaps = begin(first + i + 1) - b - 1;
          if (gaps < 0) return;
          std::int64_t least = A.entries()(b), most = least;
          const std::int64_t taken = gaps < 15 ? gaps : 15;
          for (std::int64_t k = 1; k <= taken; ++k) {
            const std::int64_t column = A.entries()(b + gaps * k / taken);
            least = column < least ? column : least;
            most = column > most ? column : most;
          }
          sum += static_cast<std::uint64_t>(most - least + 1) | std::uint64_t{1} << 48;
        },
        reach);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&found(0).reach, reach & ((std::uint64_t{1} << 48) - 1));
      Kokkos::atomic_add(&found(0).used, reach >> 48);
    });
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Table keys(team.team_scratch(0), slots), eighths(team.team_scratch(0), slots);
    row_lengths(team);
    const std::int64_t first = team.league_rank() * windows / sampled * window_rows, rows = A.rows();
    const std::int64_t last = first + window_rows < rows ? first + window_rows : rows;
    const std::int64_t base = begin(first), entries = begin(last) - base;
    measure_reach(team, first, last);
    // One of 2^shift columns, so that as many entries are expected as half of the slots can hold.
    int shift = 0;
    while (entries >> shift > most) ++shift;
    const std::uint32_t kept = (std::uint32_t{1} << shift) - 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slots), [&](const int i) {
      keys(i) = free;
      eighths(i) = 0;
    });
    team.team_barrier();
    std::uint64_t counted = 0, dropped = 0;
    for (int eighth = 0; eighth < window_rows / 8; ++eighth) {
      const std::int64_t row = first + 8 * eighth;
      if (row >= last) break;
      const std::int64_t b = begin(row), e = begin(row + 8 < last ? row + 8 : last);
      for (std::int64_t from = b; from < e; from += 1 << 20) {
        const int n = static_cast<int>(e - from < (1 << 20) ? e - from : (1 << 20));
        std::uint64_t both = 0;  // entries of columns counted, and those for which there was no slot
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, n),
            [&](const int i, std::uint64_t& sum) {
              const auto column = static_cast<std::uint32_t>(A.entries()(from + i));
              const std::uint32_t h = hash(column);
              if ((h & kept) != 0) return;
              const int at = insert(keys, column, h >> shift);
              if (at >= 0) Kokkos::atomic_fetch_or(&eighths(at), std::uint32_t{1} << eighth);
              sum += at >= 0 ? 1 : std::uint64_t{1} << 32;
            },
            both);
        counted += both & 0xffffffffu;
        dropped += both >> 32;
      }
    }
    team.team_barrier();
    // Whether the table overflows does not depend on the order of insertions, what it then holds does.
    if (dropped > 0) return;
    std::uint64_t sums[2] = {0, 0};  // of 8 and 16 rows, of 32 and 64, in halves of words
    for (int half = 0; half < 2; ++half) {
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, slots),
          [&](const int i, std::uint64_t& sum) {
            const std::uint32_t by8 = eighths(i), by16 = (by8 | by8 >> 1) & 0x55u, by32 = (by16 | by16 >> 2) & 0x11u;
            const int low = half == 0 ? count(by8) : count(by32), high = half == 0 ? count(by16) : by8 != 0;
            sum += static_cast<std::uint64_t>(low) | static_cast<std::uint64_t>(high) << 32;
          },
          sums[half]);
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&found(0).entries, counted);
      for (int k = 0; k < 4; ++k) Kokkos::atomic_add(&found(0).different[k], sums[k / 2] >> k % 2 * 32 & 0xffffffffu);
    });
  }
};

template <class Pattern, class Exec>
SpmmFeatures spmm_pattern_features(const Exec& space, const Pattern& A, const KernelTable* backend) {
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  using Functor = SpmmFeatureFunctor<Pattern>;
  SpmmFeatures f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  if (f.rows == 0) return f;
  f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  f.empty_rows = f.rows;
  if (f.nnz == 0) return f;
  typename Arena::template View<SpmmFeatureFound> device;
  const auto storage = Arena::make(space, backend, "Tessera::spmm features", Lifetime::Temporary,
                                   [&](Arena& arena) { device = arena.template take<SpmmFeatureFound>(1); });
  using Bytes = typename Arena::template View<char>;
  Kokkos::deep_copy(space, Bytes(reinterpret_cast<char*>(device.data()), sizeof(SpmmFeatureFound)), char(0));
  const std::int64_t windows = (f.rows + Functor::window_rows - 1) / Functor::window_rows;
  const std::int64_t sampled = windows < Functor::most_windows ? windows : Functor::most_windows;
  Kokkos::parallel_for("Tessera::spmm features",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(sampled), Compat::team_size<Exec>(256))
                           .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
                       Functor{A, windows, sampled, device});
  SpmmFeatureFound all{};
  fetch(space, backend, "Tessera::spmm features", all, device);
  f.longest = static_cast<std::int64_t>(all.longest);
  f.empty_rows = static_cast<std::int64_t>(all.empty_rows);
  f.brief_entries = static_cast<std::int64_t>(all.brief_entries);
  double* const densities[] = {&f.g8, &f.g16, &f.g32, &f.g64};
  for (int k = 0; k < 4; ++k) {
    // Nothing was sampled where all sampled windows are empty: then there is nothing to share.
    *densities[k] = all.different[k] > 0 ? static_cast<double>(all.entries) / static_cast<double>(all.different[k]) : 1;
  }
  if (all.used > 0) f.reach = static_cast<double>(all.reach) / static_cast<double>(all.used);
  return f;
}

}  // namespace Impl

/// Reads row_map once and the columns of the sample; columns of rows may be unsorted. One kernel, one wait.
/// Deterministic.
template <class Csr, class Exec>
SpmmFeatures spmm_features(const Exec& space, const Csr& A, const KernelTable* backend = nullptr) {
  return Impl::spmm_pattern_features(space, Impl::pattern_of(A), backend);
}

}  // namespace Tessera

#endif
