// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_CUT_ROWS_HPP
#define TESSERA_ATTENTION_ATTENTION_CUT_ROWS_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_Compat.hpp"
#include "core/Tessera_Shares.hpp"

/// \file
/// Long rows of attention on CPUs, which several threads share: a virtual node or a hub of a graph has a row that is
/// more work than one thread's share. It is cut into pieces of as many entries, whatever the number of threads, so that
/// this number does not show in any bit; what a piece has added up goes to memory, and a second kernel adds the pieces
/// of a row in their order. Cut rows alone are listed: SpMM's table (PieceTable), sixteen bytes for every row, is cut
/// by the number of threads on hosts.

namespace Tessera {
namespace Impl {

/// Rows that are cut, as kernels see them, and the room for what their pieces add up. count == 0: no row is cut.
template <class Sum>
struct AttentionCutRows {
  static constexpr std::int64_t entries = 2048;  ///< of a piece; rows of more are cut

  const std::int64_t *rows = nullptr, *first = nullptr;  ///< ascending; pieces of those before, and of all
  std::int64_t count = 0;
  Sum* sums = nullptr;     ///< [head][piece][number]
  std::int64_t width = 0;  ///< numbers of a piece

  std::int64_t pieces(std::int64_t length) const {
    return count > 0 && length > entries ? (length + entries - 1) / entries : 1;
  }
  /// Of piece `piece` of cut row `index`.
  Sum* of(std::int64_t head, std::int64_t index, std::int64_t piece) const {
    return sums + (head * first[count] + first[index] + piece) * width;
  }
  /// All pieces of a cut row of so many entries, in those of the first.
  Sum* added_up(std::int64_t head, std::int64_t index, std::int64_t length) const {
    Sum* const sums = of(head, index, 0);
    for (std::int64_t p = 1; p < pieces(length); ++p) {
      const Sum* const piece = of(head, index, p);
      for (std::int64_t k = 0; k < width; ++k) sums[k] += piece[k];
    }
    return sums;
  }
  std::int64_t index_of(std::int64_t row) const { return std::lower_bound(rows, rows + count, row) - rows; }
};

/// Which rows of a pattern are cut.
class AttentionLongRows {
 public:
  AttentionLongRows() = default;
  /// O(rows): looks at all lengths, one thread at the rows of patterns that have a long one.
  template <class Exec, class Csr>
  AttentionLongRows(const Exec& space, const Csr& A) {
    constexpr std::int64_t most = AttentionCutRows<float>::entries;
    const auto count = static_cast<std::int64_t>(A.rows());
    if (static_cast<std::int64_t>(A.nnz()) <= most) return;
    const auto* const map = A.row_map().data();
    const auto length = [=](std::int64_t row) { return static_cast<std::int64_t>(map[row + 1] - map[row]); };
    std::int64_t longest = 0;
    Kokkos::parallel_reduce(
        "Tessera::attention[longest row]", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, count),
        [=](const std::int64_t row, std::int64_t& n) { n = std::max(n, length(row)); },
        Kokkos::Max<std::int64_t>(longest));
    if (longest <= most) return;
    first_.push_back(0);
    for (std::int64_t row = 0; row < count; ++row) {
      if (length(row) <= most) continue;
      rows_.push_back(row);
      first_.push_back(first_.back() + (length(row) + most - 1) / most);
    }
  }

  std::size_t bytes() const { return (rows_.size() + first_.size()) * sizeof(std::int64_t); }
  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Numbers of a head's pieces.
  std::int64_t numbers(std::int64_t width) const { return rows_.empty() ? 0 : first_.back() * width; }
  /// sums: numbers(width) of each head; null: rows stay whole.
  template <class Sum>
  AttentionCutRows<Sum> cut(Sum* sums, std::int64_t width) const {
    if (rows_.empty() || sums == nullptr) return {};
    return {rows_.data(), first_.data(), count(), sums, width};
  }

 private:
  std::vector<std::int64_t> rows_, first_;
};

/// f(head, index of the row among those cut) for all of them.
template <class Exec, class Sum, class F>
void for_each_cut_row(const std::string& label, const Exec& space, std::int64_t heads, const AttentionCutRows<Sum>& cut,
                      const F& f) {
  if (cut.count == 0) return;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, heads * cut.count),
                       [=](const std::int64_t i) { f(i / cut.count, i % cut.count); });
}

}  // namespace Impl
}  // namespace Tessera

#endif
