// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SELECT_SPMV_FEATURES_HPP
#define TESSERA_SELECT_SPMV_FEATURES_HPP

#include <cmath>
#include <cstdint>
#include <cstring>

#include "Tessera_CsrView.hpp"
#include "convert/Tessera_TeamSort.hpp"
#include "impl/Tessera_Arena.hpp"

/// \file
/// What the choice of an algorithm and the shape of its format are decided by: one pass over the row map, a few probes
/// a row, and a sample of blocks of rows.

namespace Tessera {

/// Shares are of entries. "Probed": compared at four places of a row, not at all.
struct SpmvFeatures {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t longest = 0, empty_rows = 0;
  double mean = 0;     ///< entries a row
  double cv = 0;       ///< standard deviation of the row lengths over their mean
  double same2 = 0;    ///< in aligned pairs of rows with equal columns (probed)
  double same3 = 0;    ///< in aligned triples of rows with equal columns (probed)
  double shift = 0;    ///< in rows whose columns are those of the row before plus one (probed)
  double narrow = 0;   ///< sampled blocks of 32 rows whose columns span less than 2^16
  double sectors = 0;  ///< different 32-byte sectors of an x of doubles an entry inside sampled blocks of 32 rows
};

namespace Impl {

struct FeatureSums {
  std::int64_t longest, empty, same2, same3, shift;
  double squares;
};

struct FeatureSample {
  std::uint64_t blocks, narrow, entries, sectors;
};

template <class Csr>
struct RowFeatureFunctor {
  using value_type = FeatureSums;
  Csr A;

  KOKKOS_INLINE_FUNCTION void init(FeatureSums& s) const { s = FeatureSums{}; }
  template <class T, class U>
  KOKKOS_INLINE_FUNCTION static void add(T& a, const U& b) {
    a.longest = a.longest < b.longest ? b.longest : a.longest;
    a.empty = a.empty + b.empty;
    a.same2 = a.same2 + b.same2;
    a.same3 = a.same3 + b.same3;
    a.shift = a.shift + b.shift;
    a.squares = a.squares + b.squares;
  }
  KOKKOS_INLINE_FUNCTION void join(FeatureSums& a, const FeatureSums& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile FeatureSums& a, const volatile FeatureSums& b) const { add(a, b); }

  KOKKOS_INLINE_FUNCTION std::int64_t length(std::int64_t row) const {
    return static_cast<std::int64_t>(A.row_map()(row + 1) - A.row_map()(row));
  }
  /// Whether the row has the columns of the row before, plus `shift`, as far as probes tell.
  KOKKOS_INLINE_FUNCTION bool follows(std::int64_t row, std::int64_t n, int shift) const {
    if (row == 0 || n == 0 || length(row - 1) != n) return false;
    const auto here = A.row_map()(row), before = A.row_map()(row - 1);
    for (int probe = 0; probe < 4; ++probe) {
      const std::int64_t k = probe * (n - 1) / 3;
      if (static_cast<std::int64_t>(A.entries()(here + k)) !=
          static_cast<std::int64_t>(A.entries()(before + k)) + shift)
        return false;
    }
    return true;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, FeatureSums& sum) const {
    const std::int64_t n = length(row);
    if (n > sum.longest) sum.longest = n;
    sum.empty += n == 0;
    sum.squares += static_cast<double>(n) * static_cast<double>(n);
    if (follows(row, n, 0)) {
      if (row % 2 == 1) sum.same2 += 2 * n;
      if (row % 3 == 2 && follows(row - 1, n, 0)) sum.same3 += 3 * n;
    } else if (follows(row, n, 1)) {
      sum.shift += n;
    }
  }
};

/// A team looks at the first `most` entries of a block of rows.
template <class Csr>
struct BlockFeatureFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Keys = Kokkos::View<std::uint32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int rows_per_block = 32, most = 1024;
  Csr A;
  std::int64_t blocks, sampled;
  typename Arena<typename Csr::memory_space>::template View<FeatureSample> sample;

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Keys keys(team.team_scratch(0), most);
    const std::int64_t block = team.league_rank() * blocks / sampled, first = block * rows_per_block;
    const std::int64_t rows = A.rows(), last = first + rows_per_block < rows ? first + rows_per_block : rows;
    const std::int64_t begin = A.row_map()(first), left = static_cast<std::int64_t>(A.row_map()(last)) - begin;
    const int count = static_cast<int>(left < most ? left : most);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, most), [&](const int i) {
      keys(i) = i < count ? static_cast<std::uint32_t>(A.entries()(begin + i)) : ~0u;
    });
    team.team_barrier();
    team_sort(team, keys, most);
    int sectors = 0;
    constexpr std::uint32_t per_sector = 4;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](const int i, int& n) { n += i == 0 || keys(i) / per_sector != keys(i - 1) / per_sector; }, sectors);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&sample(0).blocks, std::uint64_t{1});
      Kokkos::atomic_add(&sample(0).narrow, std::uint64_t{count == 0 || keys(count - 1) - keys(0) < 0xffffu});
      Kokkos::atomic_add(&sample(0).entries, static_cast<std::uint64_t>(count));
      Kokkos::atomic_add(&sample(0).sectors, static_cast<std::uint64_t>(sectors));
    });
  }
};

}  // namespace Impl

/// Reads row_map once, a few columns a row, and a sample. One wait. Deterministic.
template <class Csr, class Exec>
SpmvFeatures spmv_features(const Exec& space, const Csr& A, const KernelTable* backend = nullptr) {
  using Memory = typename Csr::memory_space;
  SpmvFeatures f;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  if (f.rows == 0) return f;
  using Block = Impl::BlockFeatureFunctor<Csr>;
  typename Impl::Arena<Memory>::template View<Impl::FeatureSums> sums;
  typename Impl::Arena<Memory>::template View<Impl::FeatureSample> sample;
  typename Impl::Arena<Memory>::template View<std::uint64_t> raw;
  const auto storage = Impl::Arena<Memory>::make(space, backend, "Tessera::features", Impl::Lifetime::Temporary,
                                                 [&](Impl::Arena<Memory>& arena) {
                                                   sums = arena.template take<Impl::FeatureSums>(1);
                                                   sample = arena.template take<Impl::FeatureSample>(1);
                                                 });
  raw = typename Impl::Arena<Memory>::template View<std::uint64_t>(static_cast<std::uint64_t*>(storage.get()), 64);
  Kokkos::deep_copy(space, raw, std::uint64_t{0});
  using Result = Kokkos::View<Impl::FeatureSums, Kokkos::LayoutLeft, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::parallel_reduce("Tessera::features rows", Kokkos::RangePolicy<Exec>(space, 0, f.rows),
                          Impl::RowFeatureFunctor<Csr>{A}, Result(sums.data()));
  const std::int64_t blocks = (f.rows + Block::rows_per_block - 1) / Block::rows_per_block;
  const std::int64_t sampled = blocks < 256 ? blocks : 256;
  Kokkos::parallel_for("Tessera::features blocks",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(sampled), Compat::team_size<Exec>(256))
                           .set_scratch_size(0, Kokkos::PerTeam(Block::Keys::shmem_size(Block::most))),
                       Block{A, blocks, sampled, sample});
  std::uint64_t host[64] = {};
  Kokkos::deep_copy(
      space,
      Kokkos::View<std::uint64_t*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(host,
                                                                                                                   64),
      raw);
  Compat::fence(space, "Tessera::features");
  Impl::FeatureSums found;
  Impl::FeatureSample seen;
  std::memcpy(&found, host, sizeof(found));
  std::memcpy(&seen, host + 32, sizeof(seen));
  f.longest = found.longest;
  f.empty_rows = found.empty;
  f.mean = static_cast<double>(f.nnz) / static_cast<double>(f.rows);
  if (f.nnz > 0) {
    const double entries = static_cast<double>(f.nnz);
    const double variance = found.squares / static_cast<double>(f.rows) - f.mean * f.mean;
    f.cv = std::sqrt(variance > 0 ? variance : 0) / f.mean;
    f.same2 = static_cast<double>(found.same2) / entries;
    f.same3 = static_cast<double>(found.same3) / entries;
    f.shift = static_cast<double>(found.shift) / entries;
  }
  if (seen.blocks > 0) f.narrow = static_cast<double>(seen.narrow) / static_cast<double>(seen.blocks);
  if (seen.entries > 0) f.sectors = static_cast<double>(seen.sectors) / static_cast<double>(seen.entries);
  return f;
}

}  // namespace Tessera

#endif
