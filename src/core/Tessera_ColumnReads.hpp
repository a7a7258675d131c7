// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_COLUMN_READS_HPP
#define TESSERA_CORE_COLUMN_READS_HPP

#include <algorithm>
#include <array>
#include <cstdint>

/// \file
/// Whether hosts read several vectors where they lie, in columns, or copy them into rows first
/// (perf_test/notes/hosts.md, "In columns").

namespace Tessera {
namespace Impl {

/// How near each other consecutive entries of A find what they need of a column, by sixteen samples of 1,024 entries:
/// time and memory do not depend on A.
struct EntryNearness {
  double lines = 0;    ///< per entry, lines of eight numbers that a sample needs
  double numbers = 0;  ///< per entry, numbers that it needs

  EntryNearness() = default;
  template <class Csr>
  explicit EntryNearness(const Csr& A) {
    using Column = typename Csr::ordinal_type;
    constexpr std::int64_t samples = 16, most = 1024;
    const auto nnz = static_cast<std::int64_t>(A.nnz()), length = std::min(most, nnz);
    const auto* const entries = A.entries().data();
    std::array<Column, most> sample;
    std::int64_t needed_lines = 0, needed_numbers = 0;
    for (std::int64_t k = 0; k < samples && length > 0; ++k) {
      const std::int64_t first = (nnz - length) / samples * k + (nnz - length) / (2 * samples);
      const auto begin = sample.begin(), end = begin + length;
      std::copy(entries + first, entries + first + length, begin);
      std::sort(begin, end);
      for (auto at = begin; at != end; ++at) {
        needed_numbers += at == begin || at[0] != at[-1] ? 1 : 0;
        needed_lines += at == begin || at[0] / 8 != at[-1] / 8 ? 1 : 0;
      }
    }
    const double looked_at = static_cast<double>(std::max<std::int64_t>(samples * length, 1));
    lines = static_cast<double>(needed_lines) / looked_at;
    numbers = static_cast<double>(needed_numbers) / looked_at;
  }
};

/// A product of A with several vectors in columns, B. Costs count loads of a number; what both ways have in common is
/// left out. The factors are fitted.
struct ColumnReads {
  std::int64_t rows, nnz, b_rows, columns;
  std::int64_t element_bytes;  ///< of B
  bool c_in_columns;           ///< a product from rows then writes its sums to columns
  EntryNearness near{};        ///< needed where `asks_nearness`

  static constexpr std::int64_t cached = std::int64_t{1} << 20;
  /// Whether 16 bits are read one column after the other, by vectors, else as others: some columns at once.
  static bool one_after_other(std::int64_t rows, std::int64_t nnz, std::int64_t columns) {
    return columns == 2 || nnz >= 3 * rows;
  }
  bool narrow() const { return element_bytes < 4; }
  bool asks_nearness() const { return !narrow() && b_rows * columns * element_bytes > cached; }
  double in_place() const {
    const std::int64_t loads = nnz * columns;
    if (!narrow()) return static_cast<double>(loads) * (1 + near.lines * far());
    return static_cast<double>(one_after_other(rows, nnz, columns) ? loads + 3 * rows * columns : 2 * loads);
  }
  /// A number of the copy is written by one thread and read by others. In 16 bits rows of the copy are whole words of
  /// 16 bytes, and large copies, which are made in parts, cost less.
  double copied() const {
    if (narrow()) {
      const std::int64_t numbers = b_rows * ((columns + 7) / 8 * 8),
                         number = numbers * element_bytes < 4 * cached ? 3 : 1;
      return static_cast<double>(number * numbers) + 2.5 * static_cast<double>(nnz);
    }
    const std::int64_t number = element_bytes > 4 ? 12 : 8, stored = c_in_columns ? 2 * rows : 0;
    return static_cast<double>((number * b_rows + stored) * columns) +
           static_cast<double>(nnz) * (2.7 + near.numbers * far());
  }

 private:
  /// Cost of a line that is not in the second cache; 0 where that holds B.
  double far() const {
    const double megabytes = static_cast<double>(b_rows * columns * element_bytes) / static_cast<double>(cached);
    return std::clamp(3 * (megabytes - 1), 0.0, 10.0);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
