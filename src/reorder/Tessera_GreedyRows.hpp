// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_GREEDY_ROWS_HPP
#define TESSERA_REORDER_GREEDY_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "Tessera_Error.hpp"
#include "core/Tessera_HostVector.hpp"
#include "core/Tessera_Pattern.hpp"

namespace Tessera {
namespace reorder {

/// Parameters of greedy_rows.
struct GreedyRowsOptions {
  int block = 16;                 ///< columns of a column block
  double least_similarity = 0.3;  ///< with which a row joins a cluster: 0 ... 1
};

/// What greedy_rows found.
struct GreedyRows {
  std::vector<std::int32_t> order;  ///< row at each place
  std::int64_t clusters = 0;        ///< of rows with entries
  double similarity = 1;            ///< mean, of the rows that joined a cluster with it
};

namespace Impl {

/// How rows are compared: by column blocks of this width, with this least similarity. @throw InvalidArgument
inline void check_comparison(const char* name, int block, double least_similarity) {
  Tessera::Impl::require<InvalidArgument>(block >= 1 && least_similarity >= 0 && least_similarity <= 1, [&] {
    return std::string(name) + ": column blocks must have at least one column, have " + std::to_string(block) +
           "; the least similarity must lie in [0, 1], is " + std::to_string(least_similarity);
  });
}

/// Entries of rows by column blocks.
struct BlockCounts {
  std::vector<std::int64_t> begin;  ///< of each row's blocks
  std::vector<std::int32_t> block;
  std::vector<double> count;

  template <class RowMap, class Columns>
  BlockCounts(const RowMap& row_map, const Columns& columns, int width) {
    begin.push_back(0);
    std::vector<std::int64_t> of;
    for (std::size_t r = 0; r + 1 < row_map.size(); ++r) {
      of.clear();
      for (auto p = row_map[r]; p < row_map[r + 1]; ++p) {
        of.push_back(static_cast<std::int64_t>(columns[static_cast<std::size_t>(p)]) / width);
      }
      std::sort(of.begin(), of.end());
      for (std::size_t i = 0; i < of.size(); ++i) {
        if (i == 0 || of[i] != of[i - 1]) {
          block.push_back(static_cast<std::int32_t>(of[i]));
          count.push_back(0);
        }
        count.back() += 1;
      }
      begin.push_back(static_cast<std::int64_t>(block.size()));
    }
  }

  /// nnz * blocks + sum over the blocks of (width - count): the order in which rows are looked at [BSMR-SDDMM].
  double dispersion(std::int64_t row, int width) const {
    double entries = 0, room = 0;
    for (auto i = begin[static_cast<std::size_t>(row)]; i < begin[static_cast<std::size_t>(row) + 1]; ++i) {
      entries += count[static_cast<std::size_t>(i)];
      room += width - count[static_cast<std::size_t>(i)];
    }
    return entries * static_cast<double>(blocks(row)) + room;
  }
  std::int64_t blocks(std::int64_t row) const {
    return begin[static_cast<std::size_t>(row) + 1] - begin[static_cast<std::size_t>(row)];
  }
};

/// The counts of a cluster's rows, added up.
class Representative {
 public:
  explicit Representative(std::int64_t blocks) : count_(static_cast<std::size_t>(blocks), 0) {}

  void clear() {
    for (const std::int32_t b : used_) count_[static_cast<std::size_t>(b)] = 0;
    used_.clear();
    sum_ = squares_ = 0;
  }
  void add(const BlockCounts& counts, std::int64_t row) {
    each(counts, row, [&](std::int32_t b, double n) {
      double& c = count_[static_cast<std::size_t>(b)];
      if (c == 0) used_.push_back(b);
      sum_ += n;
      squares_ += n * (2 * c + n);
      c += n;
    });
  }
  /// Weighted Jaccard similarity of the counts, each divided by its Euclidean norm:
  /// sum min(a_b / |a|, c_b / |c|) / sum max(a_b / |a|, c_b / |c|).
  double similarity(const BlockCounts& counts, std::int64_t row) const {
    double sum = 0, squares = 0, least = 0;
    each(counts, row, [&](std::int32_t, double n) { sum += n, squares += n * n; });
    const double own = 1 / std::sqrt(squares), other = 1 / std::sqrt(squares_);
    each(counts, row,
         [&](std::int32_t b, double n) { least += std::min(n * own, count_[static_cast<std::size_t>(b)] * other); });
    return least / (sum * own + sum_ * other - least);
  }

 private:
  template <class F>
  static void each(const BlockCounts& counts, std::int64_t row, F&& f) {
    for (auto i = counts.begin[static_cast<std::size_t>(row)]; i < counts.begin[static_cast<std::size_t>(row) + 1];
         ++i) {
      f(counts.block[static_cast<std::size_t>(i)], counts.count[static_cast<std::size_t>(i)]);
    }
  }
  std::vector<double> count_;
  std::vector<std::int32_t> used_;
  double sum_ = 0, squares_ = 0;
};

}  // namespace Impl

/// The greedy clustering of BSMR-SDDMM, exactly: rows are looked at by ascending dispersion (BlockCounts), ties by
/// number. The first row that no cluster has becomes the representative of one; each later free row whose weighted
/// Jaccard similarity to the representative, by counts of entries per column block, is above least_similarity joins,
/// and its counts are added to the representative's. Clusters stand one after the other, rows without entries last.
///
/// The reference for the quality of clustered_rows, on small matrices: one thread of the host, O(clusters entries)
/// work, which is rows^2 where rows are not alike. A may lie anywhere; waits. Deterministic.
/// @throw InvalidArgument  options out of range
template <class Csr>
GreedyRows greedy_rows(const Csr& A, const GreedyRowsOptions& options = {}) {
  Impl::check_comparison("greedy_rows", options.block, options.least_similarity);
  const auto row_map = Tessera::Impl::host_vector(A.row_map());
  const auto columns = Tessera::Impl::host_vector(A.entries());
  const auto rows = static_cast<std::int64_t>(A.rows());
  const Impl::BlockCounts counts(row_map, columns, options.block);

  GreedyRows result;
  std::vector<std::int32_t> free_rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (counts.blocks(r) > 0) free_rows.push_back(static_cast<std::int32_t>(r));
  }
  std::vector<double> dispersion(static_cast<std::size_t>(rows));
  for (const std::int32_t r : free_rows) dispersion[static_cast<std::size_t>(r)] = counts.dispersion(r, options.block);
  std::stable_sort(free_rows.begin(), free_rows.end(), [&](std::int32_t a, std::int32_t b) {
    return dispersion[static_cast<std::size_t>(a)] < dispersion[static_cast<std::size_t>(b)];
  });

  Impl::Representative representative(static_cast<std::int64_t>(A.cols()) / options.block + 1);
  double similarity = 0;
  std::int64_t joined = 0;
  while (!free_rows.empty()) {
    representative.clear();
    ++result.clusters;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < free_rows.size(); ++i) {
      const std::int32_t r = free_rows[i];
      const double s = i == 0 ? 1 : representative.similarity(counts, r);
      if (i > 0 && s <= options.least_similarity) {
        free_rows[kept++] = r;
        continue;
      }
      representative.add(counts, r);
      result.order.push_back(r);
      if (i > 0) similarity += s, ++joined;
    }
    free_rows.resize(kept);
  }
  if (joined > 0) result.similarity = similarity / static_cast<double>(joined);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (counts.blocks(r) == 0) result.order.push_back(static_cast<std::int32_t>(r));
  }
  return result;
}

}  // namespace reorder
}  // namespace Tessera

#endif
