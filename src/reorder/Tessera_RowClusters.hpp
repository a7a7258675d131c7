// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_ROW_CLUSTERS_HPP
#define TESSERA_REORDER_ROW_CLUSTERS_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_SegmentedSort.hpp"
#include "features/Tessera_SpmmFeatures.hpp"
#include "reorder/Tessera_GreedyRows.hpp"
#include "reorder/Tessera_LoneRows.hpp"
#include "reorder/Tessera_RowOrderRules.hpp"

/// \file
/// Orders of rows that bring rows of equal columns together, for formats that cut a matrix into windows of rows (panels
/// and ME-BCRS of SpMM): a window fetches a row of B once for all of its rows. Columns stay where they are and kernels
/// write the rows of C in their place, so that nobody sees the order (SpmmOptions::reordering).

namespace Tessera {
namespace Impl {

/// Two signatures and the first column of a row. Empty rows come last: columns are below 2^31.
struct RowClusterKey {
  std::uint32_t signature, second, first;
  KOKKOS_INLINE_FUNCTION bool operator<(const RowClusterKey& o) const {
    const std::uint64_t a = std::uint64_t{signature} << 32 | second, b = std::uint64_t{o.signature} << 32 | o.second;
    return a < b || (a == b && first < o.first);
  }
};

template <class Csr>
struct RowOrderFunctors {
  using Device = typename Csr::device_type;
  using Words = Kokkos::View<std::uint32_t*, Kokkos::LayoutLeft, Device>;
  using Ends = Kokkos::View<std::int64_t*, Kokkos::LayoutLeft, Device>;
  static constexpr std::uint32_t none = ~0u, seed = 0x3C6EF372u, second_seed = 0xA54FF53Au;
  static constexpr int share = 32;

  /// Minima of rows over shares of entries, however long rows are. Whoever comes first, a minimum is the same.
  struct Minima {
    Csr A;
    std::int64_t rows, nnz;
    Words first, signature, second;  ///< signatures empty: not wanted
    int block = 1;                   ///< columns that signatures count as one
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      std::int64_t p = i * share, row = segment_of(A.row_map(), rows, p);
      const std::int64_t end = p + share < nnz ? p + share : nnz;
      const bool clusters = signature.extent(0) > 0;
      while (p < end) {
        const auto row_end = static_cast<std::int64_t>(A.row_map()(row + 1)), stop = row_end < end ? row_end : end;
        std::uint32_t least = none, one = none, two = none;
        for (; p < stop; ++p) {
          const auto column = static_cast<std::uint32_t>(A.entries()(p));
          least = column < least ? column : least;
          if (!clusters) continue;
          const std::uint32_t what = column_block(column, block);
          const std::uint32_t a = ScatteredNumber::of(what, seed), b = ScatteredNumber::of(what, second_seed);
          one = a < one ? a : one;
          two = b < two ? b : two;
        }
        Kokkos::atomic_fetch_min(&first(row), least);
        if (clusters) {
          Kokkos::atomic_fetch_min(&signature(row), one);
          Kokkos::atomic_fetch_min(&second(row), two);
        }
        if (p >= end) break;
        // The next row mostly; there may be any number of empty ones between.
        ++row;
        if (static_cast<std::int64_t>(A.row_map()(row + 1)) <= p) row = segment_of(A.row_map(), rows, p);
      }
    }
  };

  template <class Sort>
  struct NearestKeys {
    Sort sort;
    Words first;
    Ends ends;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      if (row == 0) ends(0) = 0, ends(1) = rows;
      sort.segments(row) = 0;
      sort.payload(row) = static_cast<std::int32_t>(row);
      sort.keys(row) = first(row);
    }
  };
  template <class Sort>
  struct ClusterKeys {
    Sort sort;
    Words first, signature, second;
    Ends ends;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      if (row == 0) ends(0) = 0, ends(1) = rows;
      sort.segments(row) = 0;
      sort.payload(row) = static_cast<std::int32_t>(row);
      RowClusterKey key{none, none, none};
      if (first(row) != none) {
        // The column that has the least number rather than the number, so that clusters that are neighbours in the
        // order use neighbouring columns.
        key = {ScatteredNumber::back(signature(row), seed), ScatteredNumber::back(second(row), second_seed),
               first(row)};
      }
      sort.keys(row) = key;
    }
  };
};

template <class Key, template <class> class Keys, class Csr, class Exec, class... Arrays>
Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, typename Csr::device_type> sorted_rows(const Exec& space, const Csr& A,
                                                                                       const char* name, int block,
                                                                                       const Arrays&... words) {
  using F = RowOrderFunctors<Csr>;
  using Sort = SegmentedSort<typename Csr::device_type, Key, std::int32_t>;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
  Sort sort(space, rows, true);
  if (rows == 0) return sort.payload;
  const auto ends = Compat::allocate<typename F::Ends>(space, "Tessera::row order::ends", 2);
  (Kokkos::deep_copy(space, words, F::none), ...);
  const typename F::Words all[] = {words..., typename F::Words(), typename F::Words()};
  Kokkos::parallel_for(std::string("Tessera::reorder[") + name + "] minima",
                       Policy(space, 0, (nnz + F::share - 1) / F::share),
                       typename F::Minima{A, rows, nnz, all[0], all[1], all[2], block});
  Kokkos::parallel_for(std::string("Tessera::reorder[") + name + "] keys", Policy(space, 0, rows),
                       Keys<Sort>{sort, words..., ends, rows});
  sort.run(space, ends, rows);
  Compat::fence(space, std::string("Tessera::reorder[") + name + "]");  // what the sort kept is released here
  return sort.payload;
}

}  // namespace Impl

namespace reorder {

/// The order of rows by ascending first (smallest) column: p(i) is the row at place i. Rows of one first column stay in
/// their order, rows without entries come last in theirs [nearest-first-column order of GE-SpMM's report, Huang et
/// al.].
///
/// O(nnz + rows log^2 rows) work in ceil(log2(rows)) + 3 kernels, all entries and all rows at once; 24 bytes per row of
/// memory while it works. Waits. Deterministic. Columns of rows may be unsorted and may repeat. A is trusted: run
/// validate() on matrices from outside first.
/// @return  a permutation of 0 ... rows-1 in the memory of A; without elements if A has no rows
template <class Exec, class Csr>
Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, typename Csr::device_type> nearest_rows(const Exec& space,
                                                                                        const Csr& matrix) {
  const auto A = Tessera::Impl::pattern_of(matrix);
  using F = Tessera::Impl::RowOrderFunctors<Tessera::Impl::PatternOf<Csr>>;
  const Compat::ScopedRegion region("Tessera::reorder[nearest rows]");
  const auto words =
      Compat::allocate<typename F::Words>(space, "Tessera::row order::words", static_cast<std::size_t>(A.rows()));
  return Tessera::Impl::sorted_rows<std::uint32_t, F::template NearestKeys>(space, A, "nearest rows", 1, words);
}

/// An order of rows in which rows of similar columns stand together: p(i) is the row at place i.
///
/// With h_1, h_2 two fixed permutations of 32-bit numbers that scatter them, and K(r) the set of columns of row r, the
/// signatures of r are the columns
///
///     s_k(r) = argmin over c in K(r) of h_k(c),    k = 1, 2
///
/// and rows are sorted by (s_1, s_2, first column, row); rows without entries come last. Two rows r and q have the same
/// s_k with probability |K(r) and K(q)| / |K(r) or K(q)| (minhash: Broder, 1997), so that rows of equal columns always
/// meet, similar ones often and others seldom. Sorting by columns rather than by their hashes keeps the rows of a band
/// near each other. A third signature, or ranges of columns instead of columns, won as often as it lost on our
/// generators. A heuristic: a matrix that comes in a good order may lose (RowReordering::Auto looks).
///
/// With ClusteredRowsOptions::block > 1 signatures are those of column blocks, c / block instead of c, as greedy_rows
/// compares rows. With least_similarity > 0 a row stays where the order has it only if the row before or behind it
/// there is at least so similar; all others stand behind, in the same order, so that they share one window with
/// clusters at most. That similarity is |both| / |either| of the rows' column blocks, estimated as the share of 16
/// further signatures that are equal: in steps of 1/16, with a standard deviation of 1/8 at most.
///
/// O(nnz + rows log^2 rows) work in ceil(log2(rows)) + 5 kernels, all entries and all rows at once; 48 bytes per row of
/// memory while it works; with a least similarity three kernels and 76 bytes per row more. Waits. Deterministic: the
/// order depends on the pattern and the options alone. Columns of rows may be unsorted and may repeat. A is trusted:
/// run validate() on matrices from outside first.
/// @return  a permutation of 0 ... rows-1 in the memory of A; without elements if A has no rows
/// @throw InvalidArgument  options out of range
template <class Exec, class Csr>
Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, typename Csr::device_type> clustered_rows(
    const Exec& space, const Csr& matrix, const ClusteredRowsOptions& options = {}) {
  Impl::check_comparison("clustered_rows", options.block, options.least_similarity);
  const auto A = Tessera::Impl::pattern_of(matrix);
  using F = Tessera::Impl::RowOrderFunctors<Tessera::Impl::PatternOf<Csr>>;
  const Compat::ScopedRegion region("Tessera::reorder[clustered rows]");
  const auto make = [&] {
    return Compat::allocate<typename F::Words>(space, "Tessera::row order::words", static_cast<std::size_t>(A.rows()));
  };
  const typename F::Words first = make(), signature = make(), second = make();
  const auto order = Tessera::Impl::sorted_rows<Tessera::Impl::RowClusterKey, F::template ClusterKeys>(
      space, A, "clustered rows", options.block, first, signature, second);
  return options.least_similarity > 0 ? Tessera::Impl::lone_rows_last(space, A, order, options) : order;
}

}  // namespace reorder

namespace Impl {

/// Entries and different columns of windows of rows: a window fetches a row of B for each of its different columns.
struct FetchedRows {
  std::uint64_t entries, fetched;
  double share() const { return entries > 0 ? static_cast<double>(fetched) / static_cast<double>(entries) : 1; }
};

/// One Kokkos team per window. A hash table holds the columns; of heavy windows a pseudo-random subset, in full, which
/// stands for the others.
template <class Csr>
struct FetchedRowsFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using Features = SpmmFeatureFunctor<Csr>;
  using Table = typename Features::Table;
  static constexpr int most_windows = 1024;
  Csr A;
  int height;
  std::int64_t windows, sampled;
  Kokkos::View<const std::int32_t*, Kokkos::LayoutLeft, typename Csr::device_type> order;  // empty: natural
  typename Arena<typename Csr::memory_space>::template View<FetchedRows> found;

  static int scratch_bytes() { return static_cast<int>(Table::shmem_size(Features::slots)); }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    Table keys(team.team_scratch(0), Features::slots);
    const bool ordered = order.extent(0) > 0;
    const std::int64_t first = team.league_rank() * windows / sampled * height, rows = A.rows();
    const int here = static_cast<int>(rows - first < height ? rows - first : height);
    const auto row_at = [&](const int i) { return ordered ? static_cast<std::int64_t>(order(first + i)) : first + i; };
    std::int64_t entries = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, here),
        [&](const int i, std::int64_t& sum) {
          sum += static_cast<std::int64_t>(A.row_map()(row_at(i) + 1) - A.row_map()(row_at(i)));
        },
        entries);
    int shift = 0;
    while (entries >> shift > Features::most) ++shift;
    const std::uint32_t kept = (std::uint32_t{1} << shift) - 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, +Features::slots),
                         [&](const int i) { keys(i) = ~std::uint32_t{0}; });
    team.team_barrier();
    std::uint64_t counted = 0, dropped = 0;
    for (int i = 0; i < here; ++i) {
      const auto begin = static_cast<std::int64_t>(A.row_map()(row_at(i))),
                 end = static_cast<std::int64_t>(A.row_map()(row_at(i) + 1));
      // In passes, as indices of a Kokkos team's loops are ints.
      for (std::int64_t from = begin; from < end; from += 1 << 20) {
        const int n = static_cast<int>(end - from < (1 << 20) ? end - from : (1 << 20));
        std::uint64_t both = 0;  // entries of columns counted, and those for which there was no slot
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, n),
            [&](const int k, std::uint64_t& sum) {
              const auto column = static_cast<std::uint32_t>(A.entries()(from + k));
              const std::uint32_t h = Features::hash(column);
              if ((h & kept) != 0) return;
              sum += Features::insert(keys, column, h >> shift) >= 0 ? 1 : std::uint64_t{1} << 32;
            },
            both);
        counted += both & 0xffffffffu;
        dropped += both >> 32;
      }
    }
    team.team_barrier();
    if (dropped > 0) return;
    std::uint64_t different = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, +Features::slots),
        [&](const int i, std::uint64_t& sum) { sum += keys(i) != ~std::uint32_t{0}; }, different);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_add(&found(0).entries, counted << shift);
      Kokkos::atomic_add(&found(0).fetched, different << shift);
    });
  }
};

/// The order in which rows go into windows; without elements: their own.
template <class Csr>
struct RowOrder {
  Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, typename Csr::device_type> order;
  std::string note;  ///< what was done and why; empty if nobody asked
};

/// Fetched rows of B per entry of A with its rows in an order (without elements: their own), from at most 1024 windows
/// spread evenly. One kernel, one wait. Deterministic.
template <class Exec, class Csr>
double fetched_share(const Exec& space, const Csr& A, int height, const decltype(RowOrder<Csr>::order)& order,
                     const KernelTable* backend) {
  using Functor = FetchedRowsFunctor<Csr>;
  using Memory = typename Csr::memory_space;
  typename Arena<Memory>::template View<FetchedRows> device;
  const auto storage = Arena<Memory>::make(space, backend, "Tessera::fetched rows", Lifetime::Temporary,
                                           [&](auto& arena) { device = arena.template take<FetchedRows>(1); });
  using Bytes = typename Arena<Memory>::template View<char>;
  Kokkos::deep_copy(space, Bytes(reinterpret_cast<char*>(device.data()), sizeof(FetchedRows)), char(0));
  const std::int64_t windows = (static_cast<std::int64_t>(A.rows()) + height - 1) / height;
  const std::int64_t sampled = windows < Functor::most_windows ? windows : Functor::most_windows;
  Kokkos::parallel_for("Tessera::reorder fetched rows",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(sampled), Compat::team_size<Exec>(64))
                           .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
                       Functor{A, height, windows, sampled, order, device});
  FetchedRows found{};
  fetch(space, backend, "Tessera::fetched rows", found, device);
  return found.share();
}

/// How clusters compare rows; what a plan's options do not say is the method's own.
struct RowComparison {
  int block = 0;                 ///< columns that count as one; 0: the method's own
  double least_similarity = -1;  ///< with which rows are put together; negative: the method's own

  template <class Options>
  Options of() const {
    Options o;
    if (block > 0) o.block = block;
    if (least_similarity >= 0) o.least_similarity = least_similarity;
    return o;
  }
  /// What differs from the methods' own, as a note says it.
  std::string note() const {
    std::string text;
    if (block > 0) text += ", by blocks of " + std::to_string(block) + " columns";
    if (least_similarity < 0) return text;
    char number[60];
    std::snprintf(number, sizeof(number), ", from a similarity of %.2f on", least_similarity);
    return text + number;
  }
};

/// What SpmmOptions::reordering asks for, for windows of `height` rows.
template <class Exec, class Pattern>
RowOrder<Pattern> choose_row_order(const Exec& space, const Pattern& A, int height, RowReordering wanted,
                                   const KernelTable* backend, const RowComparison& comparison = {}) {
  RowOrder<Pattern> r;
  if (wanted == RowReordering::None) return r;
  if (wanted == RowReordering::Nearest) {
    r.order = reorder::nearest_rows(space, A);
    r.note = "rows by first column, as asked for";
    return r;
  }
  if (wanted == RowReordering::Clusters) {
    r.order = reorder::clustered_rows(space, A, comparison.of<reorder::ClusteredRowsOptions>());
    r.note = "rows clustered" + comparison.note() + ", as asked for";
    return r;
  }
  if (wanted == RowReordering::Greedy) {
    const auto greedy = reorder::greedy_rows(A, comparison.of<reorder::GreedyRowsOptions>());
    r.order = Compat::allocate<decltype(r.order)>(space, "Tessera::row order::greedy", greedy.order.size());
    using Host = Kokkos::View<const std::int32_t*, Kokkos::LayoutLeft, Kokkos::HostSpace,
                              Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(r.order, Host(greedy.order.data(), greedy.order.size()));
    char text[120];
    std::snprintf(text, sizeof(text), "rows in %lld greedy clusters, joined at a similarity of %.2f",
                  static_cast<long long>(greedy.clusters), greedy.similarity);
    r.note = text + comparison.note() + ", as asked for";
    return r;
  }
  if (A.nnz() == 0 || static_cast<std::int64_t>(A.rows()) <= height) {
    r.note = "rows in their own order, there is one window or no entry";
    return r;
  }
  const auto nearest = reorder::nearest_rows(space, A),
             clusters = reorder::clustered_rows(space, A, comparison.of<reorder::ClusteredRowsOptions>());
  const double natural = fetched_share(space, A, height, {}, backend),
               by_column = fetched_share(space, A, height, nearest, backend),
               clustered = fetched_share(space, A, height, clusters, backend);
  // Clusters have to be clearly better than first columns, which also bring neighbouring windows close to each other.
  const bool by_cluster = clustered <= (1 - least_row_order_saving) * by_column;
  const bool keep = std::min(clustered, by_column) <= (1 - least_row_order_saving) * natural;
  char text[200];
  std::snprintf(text, sizeof(text),
                "rows %s: %.3f fetched rows of B per entry in their own order, %.3f by first column, %.3f clustered",
                !keep        ? "in their own order"
                : by_cluster ? "clustered"
                             : "by first column",
                natural, by_column, clustered);
  r.note = text;
  if (keep) r.order = by_cluster ? clusters : nearest;
  return r;
}

}  // namespace Impl
}  // namespace Tessera

#endif
