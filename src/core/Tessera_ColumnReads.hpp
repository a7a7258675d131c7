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
/// left out. The factors are fitted. In 16 bits columns are read one after the other, else all at once.
struct ColumnReads {
  std::int64_t rows, nnz, b_rows, columns;
  std::int64_t element_bytes;  ///< of B
  bool c_in_columns;           ///< a product from rows then writes its sums to columns
  EntryNearness near{};        ///< needed where B takes more than `cached`

  static constexpr std::int64_t cached = std::int64_t{1} << 20;
  bool narrow() const { return element_bytes < 4; }
  /// Bytes that a pass in place reads again and again.
  std::int64_t read_again() const { return b_rows * element_bytes * (narrow() ? 1 : columns); }
  /// Cost of a line that is not in the second cache, if so many bytes shall be there.
  static double far(std::int64_t bytes) {
    return std::clamp(3 * (static_cast<double>(bytes) / static_cast<double>(cached) - 1), 0.0, 10.0);
  }
  double in_place() const {
    const std::int64_t row_ends = narrow() ? 3 * rows * columns : 0;
    return static_cast<double>(row_ends) + static_cast<double>(nnz * columns) * (1 + near.lines * far(read_again()));
  }
  /// A number of the copy, whose rows are whole words of 16 bytes in 16 bits, is written by one thread and read by
  /// others.
  double copied() const {
    const std::int64_t wide = narrow() ? (columns + 7) / 8 * 8 : columns;
    const std::int64_t number = narrow() ? 4 : element_bytes > 4 ? 12 : 8, stored = c_in_columns ? 2 * rows : 0;
    return static_cast<double>(number * b_rows * wide + stored * columns) +
           static_cast<double>(nnz) * ((narrow() ? 2.0 : 2.7) + near.numbers * far(b_rows * columns * element_bytes));
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
