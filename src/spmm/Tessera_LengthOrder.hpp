// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_LENGTH_ORDER_HPP
#define TESSERA_SPMM_LENGTH_ORDER_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "Tessera_Compat.hpp"

/// \file
/// Hosts, up to three columns: the end of a short row is a branch that the CPU guesses, and a wrong guess costs as much
/// as the row. Rows in the order of their lengths, some at a time, end where the row before did
/// (perf_test/notes/hosts.md).

namespace Tessera {
namespace Impl {

/// Of a row, up to 255: longer rows are few, and their ends cost little beside them.
template <class Offset>
int counted_length(const Offset* map, std::int64_t row) {
  return static_cast<int>(std::min<std::int64_t>(static_cast<std::int64_t>(map[row + 1] - map[row]), 255));
}

/// Share of rows whose length the four before them do not tell, by eight samples of 1,024 rows: as a CPU guesses, by
/// what followed the same lengths last.
template <class Csr>
double unforeseen_lengths(const Csr& A) {
  constexpr std::int64_t samples = 8, each = 1024;
  const auto rows = static_cast<std::int64_t>(A.rows()), length = std::min(each, rows);
  const auto* const map = A.row_map().data();
  std::int64_t wrong = 0;
  std::array<std::uint8_t, 4096> guesses{};
  std::uint32_t before = 0;  // the last four lengths, eight bits of each
  for (std::int64_t k = 0; k < samples; ++k) {
    const std::int64_t first = (rows - length) / samples * k;
    for (std::int64_t row = first; row < first + length; ++row) {
      const auto entries = static_cast<std::uint8_t>(counted_length(map, row));
      std::uint8_t& guess = guesses[before * 2654435761u >> 20];
      wrong += guess == entries ? 0 : 1;
      guess = entries;
      before = before << 8 | entries;
    }
  }
  return static_cast<double>(wrong) / static_cast<double>(std::max<std::int64_t>(samples * length, 1));
}

/// A permutation of the rows of A, in windows of consecutive ones, which keep their caches; empty where CPUs foresee
/// the lengths of rows, or would have learned them by heart.
class LengthOrder {
 public:
  static constexpr std::int64_t window = 1024, least_rows = 16384, most_columns = 3;

  /// Whether a product with so many columns gains: with more, and with longer rows, numbers of B take the time.
  static bool suits(std::int64_t rows, std::int64_t nnz, std::int64_t columns) {
    return columns <= most_columns && rows >= least_rows && nnz < 12 * rows && nnz * columns < 24 * rows &&
           rows <= std::numeric_limits<std::int32_t>::max();
  }

  template <class Exec, class Csr>
  LengthOrder(const Exec& space, const Csr& A) {
    if (unforeseen_lengths(A) < 0.3) return;
    const auto rows = static_cast<std::int64_t>(A.rows());
    rows_.resize(static_cast<std::size_t>(rows));
    std::int32_t* const order = rows_.data();
    const auto* const map = A.row_map().data();
    Kokkos::parallel_for("Tessera::spmm[order of rows]",
                         Kokkos::RangePolicy<Exec>(space, 0, (rows + window - 1) / window), [=](const std::int64_t w) {
                           const std::int64_t first = w * window, last = std::min(rows, first + window);
                           std::array<std::int32_t, 257> places{};  // of the next row of each length
                           for (std::int64_t row = first; row < last; ++row) ++places[counted_length(map, row) + 1];
                           std::partial_sum(places.begin(), places.end(), places.begin());
                           for (std::int64_t row = first; row < last; ++row) {
                             order[first + places[counted_length(map, row)]++] = static_cast<std::int32_t>(row);
                           }
                         });
  }

  std::size_t bytes() const { return rows_.size() * sizeof(std::int32_t); }
  /// Null: rows as they are.
  const std::int32_t* data() const { return rows_.empty() ? nullptr : rows_.data(); }

 private:
  std::vector<std::int32_t> rows_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
