// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_BINNED_HPP
#define TESSERA_SPGEMM_SPGEMM_BINNED_HPP

#include <algorithm>
#include <cstdint>

#include "spgemm/Tessera_SpgemmRules.hpp"
#include "spgemm/Tessera_SpgemmTeams.hpp"

/// \file
/// SpgemmAlgorithm::Binned without a backend's kernels (Tessera_SpgemmNative.hpp): rows by size, on any execution
/// space, in any order of B's columns. Rows of up to 96 (384) entries find their columns in tables in the scratch of a
/// team and are put in order there; longer ones take windows of 196,608 columns. Nothing of global memory but lists of
/// rows is needed. [Tables per size of row: Nagasaka et al., ICPP'17; Parger et al., "spECK", PPoPP'20]

namespace Tessera {
namespace Impl {

template <class Csr>
class SpgemmBinned {
 public:
  using Exec = typename Csr::execution_space;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;

  /// Public for nvcc.
  struct Clear {
    std::int32_t* count;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const { count[row] = 0; }
  };

  SpgemmBinned() = default;
  static constexpr int words_per_row = SpgemmBins<Exec>::lists;
  /// @param unique  no row of B has a column twice  @param sorted  columns of B's rows ascend
  /// @param scratch  words_per_row per row of C, as long as this lives  @param pool  see SpgemmBins::sort()
  SpgemmBinned(const Csr& B, bool unique, bool sorted, std::int32_t* scratch, const KernelTable* pool)
      : bins_(scratch), pool_(pool), sorted_(sorted) {
    const std::int64_t rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(B.rows()));
    const std::int64_t mean = static_cast<std::int64_t>(B.nnz()) / rows;
    while (unique && !Compat::is_host_v<Exec> && lanes_ < 32 && lanes_ < mean) lanes_ *= 2;
    if (unique && !Compat::is_host_v<Exec>) lanes_ = std::max(lanes_, 4);
  }

  /// Entries of each row of C; returns those of all. @param before  products of all rows before each
  std::int64_t count(const Exec& space, const Csr& A, const Csr& B, const std::int64_t* before, std::int32_t* counts) {
    const auto rows = static_cast<std::int64_t>(A.rows());
    Kokkos::parallel_for("Tessera::spgemm symbolic",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, rows), Clear{counts});
    bins_.sort(space, rows, {before, nullptr, static_cast<std::int64_t>(B.cols())}, false, pool_);
    columns(space, A, B, before, counts, nullptr, nullptr);
    bins_.sort(space, rows, {nullptr, counts, static_cast<std::int64_t>(B.cols())}, true, pool_);
    return bins_.entries();
  }
  /// Columns of C in order. After count().
  void fill(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, Ordinal* entries) {
    columns(space, A, B, nullptr, nullptr, row_map, entries);
  }
  /// Numbers of C. After count().
  void update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, const Ordinal* entries,
              Scalar* values) const {
    using Rows = SpgemmValueRows<Exec, Csr>;
    Rows run(base(A, B));
    run.sorted = sorted_;
    run.row_map = row_map;
    run.columns = entries;
    run.values = values;
    for (int bin = 0; bin <= Bins::large; ++bin) {
      const bool parts = bin == Bins::large;
      run.row = parts ? nullptr : bins_.list(bin);
      run.part = parts ? bins_.parts() : nullptr;
      run.rows = parts ? bins_.count_of_parts() : bins_.count(bin);
      run.holds = static_cast<int>(parts ? Bins::part_entries : SpgemmTables::holds(bin));
      run.lanes = lanes_of(bin);
      launch("Tessera::spgemm numbers", space, Rows::bytes(run.holds, run.lanes), run);
    }
  }
  std::size_t bytes() const { return bins_.parts_bytes(); }
  /// What lists of rows, counts and parts never exceed, before anything was counted.
  std::size_t most_bytes(std::int64_t rows, std::int64_t products) const {
    const std::int64_t large = std::min(rows, products / (SpgemmTables::holds(SpgemmTables::count - 1) + 1));
    return 4 * (1 + words_per_row) * static_cast<std::size_t>(rows) +
           sizeof(SpgemmPart) * static_cast<std::size_t>(products / Bins::part_entries + large);
  }
  int lanes() const { return lanes_; }

 private:
  using Bins = SpgemmBins<Exec>;

  static SpgemmTeam<Exec, Csr> base(const Csr& A, const Csr& B) { return {CsrArrays<Csr>(A), CsrArrays<Csr>(B)}; }

  /// counts: rows are counted; else their columns are written.
  void columns(const Exec& space, const Csr& A, const Csr& B, const std::int64_t* before, std::int32_t* counts,
               const Offset* row_map, Ordinal* entries) const {
    using Tables = SpgemmTableRows<Exec, Csr>;
    Tables run(base(A, B));
    run.before = before;
    run.count = counts;
    run.row_map = row_map;
    run.columns = entries;
    const int tables =
        static_cast<std::int64_t>(B.cols()) <= spgemm_few_windows * 32 * SpgemmWindowRows<Exec, Csr>::most_words
            ? SpgemmTables::count - 1
            : SpgemmTables::count;
    for (int bin = 0; bin < tables; ++bin) {
      run.row = bins_.list(bin);
      run.rows = bins_.count(bin);
      run.room = SpgemmTables::slots(bin);
      run.lanes = lanes_of(bin);
      launch("Tessera::spgemm columns", space, Tables::bytes(run.room, run.lanes), run);
    }
    SpgemmWindowRows<Exec, Csr> windows(base(A, B));
    windows.cols = static_cast<std::int64_t>(B.cols());
    windows.words = static_cast<int>(std::min<std::int64_t>(windows.most_words, (windows.cols + 31) / 32));
    windows.sorted = sorted_;
    windows.count = counts;
    windows.row_map = row_map;
    windows.columns = entries;
    for (int bin = tables; bin <= Bins::large; ++bin) {
      windows.row = bins_.list(bin);
      launch_windows(space, bins_.count(bin), bin == Bins::large ? 8 : 4, windows);
    }
  }
  void launch_windows(const Exec& space, std::int64_t rows, int threads,
                      const SpgemmWindowRows<Exec, Csr>& windows) const {
    if (rows == 0) return;
    constexpr int lanes = Compat::is_host_v<Exec> ? 1 : 32;
    Kokkos::TeamPolicy<Exec> policy(space, static_cast<int>(rows), Compat::team_size<Exec>(threads), lanes);
    const std::size_t bytes = static_cast<std::size_t>(windows.words) * sizeof(std::uint32_t) + windows.sums_bytes;
    policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(bytes + slack)));
    Kokkos::parallel_for("Tessera::spgemm windows", policy, windows);
  }

  /// Putting columns in order takes more lanes for longer rows, however short those of B are.
  int lanes_of(int bin) const {
    constexpr int least[] = {4, 16, 32, 32};
    return lanes_ == 1 ? 1 : std::max(lanes_, least[bin]);
  }
  /// Teams of as many rows as their scratch has room for.
  template <class Rows>
  void launch(const char* label, const Exec& space, std::size_t row_bytes, Rows& run) const {
    if (run.rows == 0) return;
    run.row_bytes = static_cast<int>((row_bytes + 7) / 8 * 8);
    run.per_team = std::min(static_cast<int>(std::max<std::size_t>(1, spgemm_team_bytes / row_bytes)), 128 / run.lanes);
    const std::int64_t teams = (run.rows + run.per_team - 1) / run.per_team;
    Kokkos::TeamPolicy<Exec> policy(space, static_cast<int>(teams), Compat::team_size<Exec>(run.per_team), run.lanes);
    policy.set_scratch_size(0, Kokkos::PerTeam(run.row_bytes * run.per_team + static_cast<int>(slack)));
    Kokkos::parallel_for(label, policy, run);
  }

  static constexpr std::size_t slack = 64;  ///< arrays in scratch are aligned
  SpgemmBins<Exec> bins_;
  const KernelTable* pool_ = nullptr;
  int lanes_ = 1;  ///< of a thread: with several, each row of B has a column once
  bool sorted_ = true;
};

}  // namespace Impl
}  // namespace Tessera

#endif
