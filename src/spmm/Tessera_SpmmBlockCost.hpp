// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_BLOCK_COST_HPP
#define TESSERA_SPMM_SPMM_BLOCK_COST_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "spmm/Tessera_ColumnReuse.hpp"

/// \file
/// Hosts: whether columns of A, and so rows of B, are taken in blocks, and in how many (perf_test/notes/hosts.md, "B in
/// blocks").

namespace Tessera {
namespace Impl {

/// What a product takes, in ns per entry and thread. The factors are fitted.
struct SpmmBlockCost {
  std::int64_t rows, nnz, b_rows;
  std::int64_t b_row_bytes, c_row_bytes;
  std::int64_t threads;  ///< each has rows of its own, and all of their blocks

  static constexpr std::int64_t least_bytes = std::int64_t{1} << 21;  ///< of B: less stays in the caches
  static constexpr double gain = 0.85;  ///< of the time without blocks, what blocks must not take
  static constexpr int most_blocks = 256;

  /// Whether to look at the columns of A: rows of B are whole lines, leave the second cache, and are used several
  /// times.
  bool may_pay() const {
    return b_row_bytes >= line_bytes && b_rows * b_row_bytes >= least_bytes && nnz >= 2 * b_rows && nnz >= 8 * rows;
  }
  double whole(const ColumnReuse& reuse) const { return entry() + b_lines() * reuse.misses(held()) * far(b_bytes()); }
  /// Each thread has to fetch each row of B once; what it loses of a block it fetches again, from nearer. A piece of a
  /// row ends with a branch that is guessed wrong, and its row of C is read and written once more. Shares are one per
  /// thread, which wait for the last of them.
  double in_blocks(const ColumnReuse& reuse, int blocks) const {
    const double entries = static_cast<double>(nnz) / static_cast<double>(threads);
    const double once = reuse.columns_of(entries) / entries;
    const double again = std::max(reuse.misses(held() * blocks) - once, 0.0);
    const double pieces = static_cast<double>(rows) * blocks / static_cast<double>(nnz);
    const double b = b_lines() * (once * far(b_bytes()) + again * far(b_bytes() / blocks));
    return (1 + 0.02 * static_cast<double>(threads)) * (entry() + b + pieces * (20 + c()));
  }
  /// In how many blocks: a power of two, 1 where they do not pay.
  int best(const ColumnReuse& reuse) const {
    int best = 1;
    if (reuse.along_diagonals()) return best;
    double least = gain * whole(reuse);
    for (int blocks = 2; blocks <= most_blocks; blocks *= 2) {
      const double cost = in_blocks(reuse, blocks);
      if (cost < least) least = cost, best = blocks;
    }
    return best;
  }

 private:
  static constexpr std::int64_t line_bytes = 64, cache_bytes = std::int64_t{1} << 20, held_bytes = cache_bytes / 8 * 7;

  double b_lines() const { return static_cast<double>(b_row_bytes) / line_bytes; }
  double b_bytes() const { return static_cast<double>(b_rows) * static_cast<double>(b_row_bytes); }
  double entry() const { return 0.64 + 0.35 * b_lines(); }
  /// A row of C read and written once more. Columns are taken in tiles of eight vectors.
  double c() const {
    const double lines = static_cast<double>(c_row_bytes) / line_bytes;
    return 1.7 * (lines + 5.6 * std::max(lines - 8, 0.0));
  }
  /// Rows of B that the second cache holds.
  double held() const { return static_cast<double>(held_bytes) / static_cast<double>(b_row_bytes); }
  /// A line from behind the second cache, of so many bytes that are read from all over.
  static double far(double bytes) {
    constexpr double cost[] = {0.57, 1.3, 2.8, 2.95};  // of 1, 4, 16, 64 MiB
    const double at = std::clamp(std::log2(bytes / cache_bytes) / 2, 0.0, 3.0);
    const int below = std::min(static_cast<int>(at), 2);
    return cost[below] + (cost[below + 1] - cost[below]) * (at - below);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
