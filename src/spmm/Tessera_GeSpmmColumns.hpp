// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_COLUMNS_HPP
#define TESSERA_SPMM_GE_SPMM_COLUMNS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_Profile.hpp"

/// \file
/// What a backend's kernel for compressed rows is given of A, B and C, and which products are made where columns of B
/// and C lie (LayoutLeft), from the arrays of A alone (perf_test/notes/spmm-rows.md, "B and C in columns").

namespace Tessera {
namespace Impl {

/// What a backend's rows are told about A (SpmmFeatures).
struct GeSpmmPattern {
  std::int64_t compact_from = 0;  ///< columns from which on B is copied in TF32 (CompactB); 0: never
  double reach = 0;               ///< rows of B from the first to the last that a row of A uses, mean; 0: unknown
  bool local = false;             ///< whether neighbouring rows share columns
  bool spread = false;            ///< whether rows are spread over teams
  std::int64_t longest = 0;       ///< entries of a row; 0: unknown
  bool uneven = false;            ///< whether rows differ so much in length that a wave waits for its longest
  double scatter = -1;            ///< rows of B over which entries of neighbouring rows scatter; 0: they are near each
                                  ///< other; -1: unknown
};

/// Whether what neighbouring rows use of the columns that a wave takes at once, up to four, stays in a first-level
/// cache: of 256 kB, part of which A needs.
inline bool columns_stay_near(const GeSpmmPattern& pattern, std::int64_t n, std::size_t element_bytes) {
  const double bytes = static_cast<double>(std::min<std::int64_t>(n, 4)) * static_cast<double>(element_bytes);
  return pattern.scatter >= 0 && pattern.scatter * bytes <= 147456;
}

/// A, B and C; pieces of rows and copies of B are left out.
template <class Csr, class BT, class CT>
GeSpmmArgs ge_spmm_arguments(const Csr& A, Precision precision, const GeSpmmPattern& pattern, double alpha,
                             const Dense<const BT>& b, double beta, const Dense<CT>& c) {
  GeSpmmArgs args;
  args.in_columns = c.column_stride != 1;
  args.near = args.in_columns && columns_stay_near(pattern, c.columns, sizeof(BT));
  args.precision = precision;
  args.rows = c.rows;
  args.cols = static_cast<std::int64_t>(A.cols());
  args.nnz = static_cast<std::int64_t>(A.nnz());
  args.row_map = A.row_map().data();
  args.offset_bytes = static_cast<int>(sizeof(typename Csr::size_type));
  args.columns = reinterpret_cast<const std::int32_t*>(A.entries().data());
  args.values = A.values().data();
  args.count = c.rows;
  args.reach = static_cast<std::int64_t>(pattern.reach);
  args.local = pattern.local;
  args.longest = pattern.longest;
  args.dense.b = b.data;
  args.dense.ldb = args.in_columns ? b.column_stride : b.row_stride;
  args.dense.c = c.data;
  args.dense.ldc = args.in_columns ? c.column_stride : c.row_stride;
  args.dense.columns = c.columns;
  args.dense.c_type = ScalarTraits<CT>::element;
  args.dense.alpha = alpha;
  args.dense.beta = beta;
  return args;
}

/// Seconds that a product of n columns from their places takes longer than one of rows. Near: elements come from the
/// first-level cache, at a rate that was measured. Else an entry reads a sector per column instead of those of a row,
/// of which a device's second-level cache gives 166 per ns (perf_test/notes/ceilings.md).
inline double seconds_of_columns(std::int64_t nnz, std::int64_t n, std::int64_t element_bytes, bool near) {
  const std::int64_t in_rows = (n * element_bytes + 31) / 32;
  if (near) return static_cast<double>(nnz * n) / (element_bytes == 8 ? 1.5e12 : 2.5e12);
  return static_cast<double>(nnz * (n - in_rows)) / 166e9;
}
/// Seconds for copies of B into rows and of C back: two launches, and both are read and written once.
inline double seconds_of_copies(std::int64_t rows, std::int64_t cols, std::int64_t n, std::int64_t element_bytes) {
  return 10e-6 + static_cast<double>(2 * (rows + cols) * n * element_bytes) / 3.5e12;
}

/// Whether the backend's kernel is to read and write columns where they lie: up to eight where neighbouring rows find
/// them near, any number if these rows are short, those of rows with next to no entries, and others where copies would
/// take longer.
template <class Csr, class BT, class CT>
bool ge_spmm_serves_in_columns(const Csr& A, const GeSpmmPattern& pattern, const Dense<const BT>& b,
                               const Dense<CT>& c) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(BT));
  constexpr std::int64_t most_columns = 65535;  // tiles of a grid
  const std::int64_t nnz = static_cast<std::int64_t>(A.nnz()), n = b.columns;
  const bool columns = b.row_stride == 1 && c.row_stride == 1 && n > 1 && n <= most_columns;
  if (!columns || pattern.scatter < 0 || nnz >= (std::int64_t{1} << 31) - 1024) return false;
  const bool near = columns_stay_near(pattern, n, sizeof(BT));
  const bool brief = nnz < 2 * c.rows && (n <= 8 || size > 2 || pattern.uneven);
  if (brief || (near && (n <= 8 || nnz < 12 * c.rows))) return true;
  return seconds_of_columns(nnz, n, size, near) <= seconds_of_copies(c.rows, b.rows, n, size);
}

/// Whether the same product takes less time than by panels, beside copies of B and C: of up to four columns, or
/// where launches are most of it (FP32 takes three products by panels); of more than eight seconds_of_columns tells.
inline bool columns_beat_panels(std::int64_t nnz, std::int64_t n, Precision precision) {
  const bool single = precision == Precision::FP32 || precision == Precision::TF32;
  return n <= 4 || n > 8 || nnz <= (single ? 6000000 : 2000000);
}

}  // namespace Impl
}  // namespace Tessera

#endif
