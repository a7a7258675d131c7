// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_COLUMN_REUSE_HPP
#define TESSERA_SPMM_COLUMN_REUSE_HPP

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "Tessera_Compat.hpp"

/// \file
/// Hosts: how often rows of B are used again before a cache has lost them (perf_test/notes/hosts.md, "B in blocks").

namespace Tessera {
namespace Impl {

/// How many different columns consecutive entries use, by how many entries these are: the mean of eight stretches of A
/// for 1, 2, 4, ... entries from their starts, then of one, two, four and all of these stretches. O(nnz).
class ColumnReuse {
 public:
  template <class Exec, class Csr>
  ColumnReuse(const Exec& space, const Csr& A) {
    const auto nnz = static_cast<std::int64_t>(A.nnz()), cols = static_cast<std::int64_t>(A.cols());
    const std::int64_t each = nnz / stretches, words = cols / 64 + 1;
    if (each == 0) return;
    look_for_diagonals(A);
    if (along_diagonals()) return;
    int powers = 0;
    while ((std::int64_t{1} << powers) < each) ++powers;
    std::vector<std::uint64_t> used(static_cast<std::size_t>(stretches * words));  // a bit per stretch and column
    std::vector<std::int64_t> counts(static_cast<std::size_t>(stretches * (powers + 1)));
    std::uint64_t* const bits = used.data();
    std::int64_t* const found = counts.data();
    const auto* const entries = A.entries().data();
    Kokkos::parallel_for("Tessera::spmm[reuse]", Kokkos::RangePolicy<Exec>(space, 0, stretches),
                         [=](const std::int64_t k) {
                           std::uint64_t* const own = bits + k * words;
                           std::int64_t different = 0, *at = found + k * (powers + 1);
                           for (std::int64_t i = 0; i < each; ++i) {
                             const auto column = static_cast<std::uint64_t>(entries[k * each + i]);
                             const std::uint64_t bit = std::uint64_t{1} << column % 64;
                             different += (own[column / 64] & bit) == 0 ? 1 : 0;
                             own[column / 64] |= bit;
                             if (((i + 1) & i) == 0) *at++ = different;
                           }
                           found[k * (powers + 1) + powers] = different;
                         });
    for (int p = 0; p <= powers; ++p) {
      double sum = 0;
      for (std::int64_t k = 0; k < stretches; ++k) sum += static_cast<double>(counts[k * (powers + 1) + p]);
      points_.push_back({static_cast<double>(std::min(std::int64_t{1} << p, each)), sum / stretches});
    }
    for (std::int64_t width = 1; width < stretches; width *= 2) join(used, words, width, each);
  }

  /// Whether most entries of samples follow one of the row before, by a column: prefetchers follow diagonals, and what
  /// they fetch in time nobody waits for. The rest is then not looked at.
  bool along_diagonals() const { return along_diagonals_; }
  /// Different columns of so many consecutive entries, mean.
  double columns_of(double entries) const {
    Point before;
    for (const Point& p : points_) {
      if (entries <= p.entries) return before.columns + (entries - before.entries) * slope(before, p);
      before = p;
    }
    return before.columns;
  }
  /// Share of entries whose column a cache that holds `held` columns has lost, or never had: what another entry adds
  /// once so many different columns are met (Denning's working set).
  double misses(double held) const {
    Point before;
    for (const Point& p : points_) {
      if (p.columns >= held) return slope(before, p);
      before = p;
    }
    return before.entries > 0 ? before.columns / before.entries : 0;  // all fit
  }

 private:
  static constexpr std::int64_t stretches = 8;
  struct Point {
    double entries = 0, columns = 0;
  };
  static double slope(const Point& a, const Point& b) {
    return b.entries > a.entries ? (b.columns - a.columns) / (b.entries - a.entries) : 0;
  }
  /// 16 samples of 32 rows; long rows have no diagonals.
  template <class Csr>
  void look_for_diagonals(const Csr& A) {
    constexpr std::int64_t samples = 16, each = 32, longest = 256;
    using Column = typename Csr::ordinal_type;
    const auto rows = static_cast<std::int64_t>(A.rows());
    const auto* const map = A.row_map().data();
    std::vector<Column> before;
    std::int64_t entries = 0, follow = 0;
    for (std::int64_t k = 0; k < samples; ++k) {
      const std::int64_t first = std::max<std::int64_t>(rows - each, 0) / samples * k;
      before.clear();
      for (std::int64_t row = first; row < std::min(first + each, rows); ++row) {
        const auto* const begin = A.entries().data() + map[row];
        const auto* const end = A.entries().data() + map[row + 1];
        entries += row == first ? 0 : end - begin;
        if (end - begin > longest) {
          before.clear();
          continue;
        }
        for (const auto* at = begin; at != end; ++at) {
          follow += *at > 0 && std::binary_search(before.begin(), before.end(), *at - 1) ? 1 : 0;
        }
        before.assign(begin, end);
        std::sort(before.begin(), before.end());
      }
    }
    along_diagonals_ = 2 * follow > entries;
  }
  /// Joins stretches of `width` two by two, in the places of the first ones.
  void join(std::vector<std::uint64_t>& used, std::int64_t words, std::int64_t width, std::int64_t each) {
    std::int64_t different = 0;
    for (std::int64_t k = 0; k < stretches; k += 2 * width) {
      std::uint64_t *const to = used.data() + k * words, *const from = to + width * words;
      for (std::int64_t w = 0; w < words; ++w) {
        to[w] |= from[w];
        different += static_cast<std::int64_t>(std::bitset<64>(to[w]).count());
      }
    }
    const double joined = static_cast<double>(stretches / (2 * width));
    points_.push_back({static_cast<double>(2 * width * each), static_cast<double>(different) / joined});
  }

  std::vector<Point> points_;
  bool along_diagonals_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
