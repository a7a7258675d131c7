// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_DASP_DASP_ORDER_HPP
#define TESSERA_FORMATS_DASP_DASP_ORDER_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_TeamSort.hpp"
#include "formats/dasp/Tessera_Dasp.hpp"

/// \file
/// First half of the DASP conversion: the order of the rows. A stable sort by falling length, either over the whole
/// matrix or inside sort windows, as one sort of each in a Kokkos team's scratch, one scan of bin counts, one scatter.

namespace Tessera {
namespace Impl {

/// A *bin* is a row length, longest first: bin 0 holds the long rows, bin 256 - L the rows of L <= 255 entries.
struct DaspBins {
  static constexpr int count = 257;
  static constexpr int sort_window = 2048;  // rows sorted in the scratch of one Kokkos team: 8 kB of keys
  static constexpr int index_bits = 11;     // of a row in its sort window
  static constexpr int sections = 9;        // long, medium 1/2/4, rows of 4, 3, 2, 1, 0
  int max_medium;                           // longer rows are long
  int first_bin[2][sections + 1];           // sections are ranges of bins: inside sort windows, global
  SortRange sort;
  std::int64_t sort_windows;

  KOKKOS_INLINE_FUNCTION int bin_of(std::int64_t length) const {
    return length > max_medium ? 0 : 256 - static_cast<int>(length);
  }
  /// Which (bin, sort window) comes r-th in the order of the positions.
  KOKKOS_INLINE_FUNCTION void bin_and_sort_window(std::int64_t r, bool global, int& bin, std::int64_t& w) const {
    if (global) {
      bin = static_cast<int>(r / sort_windows);
      w = r % sort_windows;
      return;
    }
    const int* const first = first_bin[0];
    int s = 0;
    while (r >= first[s + 1] * sort_windows) ++s;
    const std::int64_t local = r - first[s] * sort_windows, wide = first[s + 1] - first[s];
    w = local / wide;
    bin = first[s] + static_cast<int>(local % wide);
  }
};

/// What the host must know before it can allocate; filled on the device, copied once.
struct DaspSummary {
  std::int64_t section_begin[DaspBins::sections + 1];
  std::int64_t long_pieces, long_nnz, max_length;
  std::int64_t rows, nnz, squares;  // of the rows that are not long: count, sum and sum of squares of the lengths

  /// Windows keep the locality of x and y, but leave row-blocks of uneven rows where lengths vary: then, or where there
  /// are few sort windows to fill row-blocks from, sort globally. The thresholds are measured
  /// (perf_test/notes/spmv-dasp.md).
  KOKKOS_INLINE_FUNCTION bool sorts_globally(const DaspBins& bins) const {
    if (bins.sort != SortRange::Auto) return bins.sort == SortRange::Global;
    if (bins.sort_windows <= 32) return true;
    const double n = static_cast<double>(rows), sum = static_cast<double>(nnz);
    return n * static_cast<double>(squares) > 1.25 * sum * sum;  // coefficient of variation above 0.5
  }
};

template <class Csr>
struct DaspSortFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  using scratch = Kokkos::View<std::uint32_t*, typename exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  template <class T>
  using View = typename Experimental::Dasp<typename Csr::memory_space>::template View<T>;

  Csr A;
  DaspBins bins;
  std::int64_t slots_per_step;
  int steps_per_piece;
  View<std::uint32_t> order;   // per sort window: index there | rank in bin << 11 | bin << 22
  View<std::uint32_t> counts;  // [sort window * 257 + bin]
  View<DaspSummary> summary;

  static std::size_t scratch_bytes() {
    return scratch::shmem_size(DaspBins::sort_window) + 2 * scratch::shmem_size(260);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    constexpr int W = DaspBins::sort_window;
    scratch keys(team.team_scratch(0), W), start(team.team_scratch(0), 260), stop(team.team_scratch(0), 260);
    const std::int64_t w = team.league_rank(), base = w * W, rows = A.rows();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, DaspBins::count), [&](const int b) { start(b) = stop(b) = 0; });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, W), [&](const int i) {
      std::uint32_t key = ~0u;
      if (base + i < rows) {
        const auto length = static_cast<std::int64_t>(A.row_map()(base + i + 1) - A.row_map()(base + i));
        const int bin = bins.bin_of(length);
        key = static_cast<std::uint32_t>(bin) << DaspBins::index_bits | static_cast<std::uint32_t>(i);
        if (bin == 0) {  // few
          const std::int64_t steps = length / slots_per_step;
          const std::int64_t pieces = steps <= steps_per_piece ? 1 : (steps + steps_per_piece - 1) / steps_per_piece;
          Kokkos::atomic_add(&summary(0).long_pieces, pieces);
          Kokkos::atomic_add(&summary(0).long_nnz, length);
        }
      }
      keys(i) = key;
    });
    team.team_barrier();
    summarise(team, base);
    team_sort(team, keys, W);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, W), [&](const int i) {
      const std::uint32_t key = keys(i);
      if (key == ~0u) return;
      const std::uint32_t bin = key >> DaspBins::index_bits;
      if (i == 0 || keys(i - 1) >> DaspBins::index_bits != bin) start(bin) = i;
      if (i == W - 1 || keys(i + 1) >> DaspBins::index_bits != bin) stop(bin) = i + 1;
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, W), [&](const int i) {
      const std::uint32_t key = keys(i);
      if (key == ~0u) return;
      const std::uint32_t bin = key >> DaspBins::index_bits, row = key & (W - 1);
      order(base + i) = row | (static_cast<std::uint32_t>(i) - start(bin)) << 11 | bin << 22;
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, DaspBins::count),
                         [&](const int b) { counts(w * DaspBins::count + b) = stop(b) - start(b); });
  }

  /// Integer sums, so that their order does not matter; one atomic a Kokkos team.
  KOKKOS_INLINE_FUNCTION void summarise(const member& team, std::int64_t base) const {
    const std::int64_t rows = A.rows();
    std::int64_t longest = 0, packed = 0;  // squares : 28 | sum : 20 | rows : 12
    const auto length_of = [&](const int i) {
      return base + i < rows ? static_cast<std::int64_t>(A.row_map()(base + i + 1) - A.row_map()(base + i)) : -1;
    };
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, DaspBins::sort_window),
        [&](const int i, std::int64_t& m) { m = length_of(i) > m ? length_of(i) : m; },
        Kokkos::Max<std::int64_t>(longest));
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, DaspBins::sort_window),
        [&](const int i, std::int64_t& sum) {
          const std::int64_t n = length_of(i);
          if (n >= 0 && n <= bins.max_medium) sum += n * n | n << 28 | std::int64_t{1} << 48;
        },
        packed);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      Kokkos::atomic_fetch_max(&summary(0).max_length, longest);
      Kokkos::atomic_add(&summary(0).squares, packed & ((std::int64_t{1} << 28) - 1));
      Kokkos::atomic_add(&summary(0).nnz, (packed >> 28) & ((std::int64_t{1} << 20) - 1));
      Kokkos::atomic_add(&summary(0).rows, packed >> 48);
    });
  }
};

/// Exclusive scan of the counts in the order of the positions.
template <class Csr>
struct DaspScanFunctor {
  using value_type = std::int64_t;
  template <class T>
  using View = typename Experimental::Dasp<typename Csr::memory_space>::template View<T>;
  DaspBins bins;
  View<std::uint32_t> counts, offsets;
  View<DaspSummary> summary;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r, std::int64_t& sum, const bool final) const {
    int bin;
    std::int64_t w;
    const bool global = summary(0).sorts_globally(bins);
    bins.bin_and_sort_window(r, global, bin, w);
    const std::int64_t at = w * DaspBins::count + bin;
    if (final) {
      offsets(at) = static_cast<std::uint32_t>(sum);
      for (int s = 0; s < DaspBins::sections; ++s) {
        if (r == bins.first_bin[global][s] * bins.sort_windows) summary(0).section_begin[s] = sum;
      }
    }
    sum += counts(at);
  }
};

/// Rows to their positions, with what the fill needs of each.
template <class Csr>
struct DaspScatterFunctor {
  template <class T>
  using View = typename Experimental::Dasp<typename Csr::memory_space>::template View<T>;
  Csr A;
  View<std::uint32_t> order, offsets;
  View<std::int32_t> row_order, row_length;
  View<std::int64_t> row_begin;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::uint32_t packed = order(i);
    const std::int64_t w = i / DaspBins::sort_window,
                       row = w * DaspBins::sort_window + (packed & (DaspBins::sort_window - 1));
    const std::int64_t position =
        offsets(w * DaspBins::count + (packed >> 22)) + ((packed >> 11) & (DaspBins::sort_window - 1));
    row_order(position) = static_cast<std::int32_t>(row);
    const auto begin = A.row_map()(row);
    row_begin(position) = static_cast<std::int64_t>(begin);
    row_length(position) = static_cast<std::int32_t>(A.row_map()(row + 1) - begin);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
