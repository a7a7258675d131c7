// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR_ROWS_SPMV_HPP
#define TESSERA_SPMV_CSR_ROWS_SPMV_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/host/Tessera_HostCsrRows.hpp"
#include "core/Tessera_ColumnReads.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_HostLanes.hpp"
#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_Shares.hpp"
#include "core/Tessera_VectorOperand.hpp"
#include "spmv/Tessera_CsrSpmv.hpp"

/// \file
/// y := alpha A x + beta y straight from CSR on CPUs, for several vectors: an entry is multiplied with a row of x, in
/// vectors of columns. Numbers of a row are neighbours (LayoutRight), or x is copied into rows first, or read where it
/// lies.
///
/// Bytes: nnz (v + 4) + rows (offset + y) + x once if it stays in cache, whatever the number of columns, and three
/// times x for a copy; one launch, two with a copy; deterministic.

namespace Tessera {
namespace Impl {

struct CsrRowsFunctor {
  HostCsrRowsArgs args;
  HostCsrRowsRun run;
  Shares shares;

  /// Work: the entries, and one more per row.
  std::int64_t work_before(std::int64_t row) const {
    return row + (args.offset_bytes == 4 ? static_cast<const std::uint32_t*>(args.row_map)[row]
                                         : static_cast<const std::int64_t*>(args.row_map)[row]);
  }
  std::int64_t begin_of(std::int64_t share) const {
    return shares.begin(share, [&](std::int64_t row) { return work_before(row); });
  }
  void operator()(const std::int64_t share) const { run(args, begin_of(share), begin_of(share + 1)); }
};

/// The kernel for a matrix of Value with vectors of X and Y, where `exists`.
template <class Value, class X, class Y>
struct CsrRowsKernel {
  static constexpr bool wider = std::is_same_v<Value, float> && std::is_same_v<X, double> && std::is_same_v<Y, double>;
  static constexpr bool own =
      std::is_same_v<Value, X> && (std::is_same_v<X, Y> || (sizeof(X) == 2 && std::is_same_v<Y, float>));
  static constexpr bool exists = wider || own;
  static HostCsrRowsRun run() {
    switch (ScalarTraits<Value>::precision) {
      case Precision::FP64:
        return host_csr_rows_fp64;
      case Precision::FP16:
        return host_csr_rows_fp16;
      case Precision::BF16:
        return host_csr_rows_bf16;
      default:
        return wider ? host_csr_rows_fp32_with_fp64 : host_csr_rows_fp32;
    }
  }
};

/// Columns that lie apart go this way from so many on, in FP64 and FP32; fewer are faster vector by vector, but for
/// three where rows are long.
constexpr std::int64_t csr_rows_least_columns = 4;
constexpr std::int64_t csr_rows_long = 512;
/// Of which so many are copied at a time: more would leave the second cache, and lines of y be written in parts.
constexpr std::int64_t csr_rows_copied_columns = 8;
/// With larger copies, packed slices are about as fast one vector after the other.
constexpr std::int64_t csr_rows_most_copied = std::int64_t{1} << 23;

/// Whether rows of x are used so often that a copy of x in rows may pay.
inline bool csr_rows_used_often(std::int64_t rows, std::int64_t x_rows, std::int64_t nnz, std::int64_t columns) {
  if (nnz < (columns < 8 ? 4 : 1) * x_rows) return false;
  return nnz >= 2 * x_rows || 4 * rows > x_rows;
}
/// Whether x is copied into rows first. Where the second cache holds x, both ways are compared.
inline bool csr_rows_copies(std::int64_t rows, std::int64_t x_rows, std::int64_t nnz, std::int64_t columns,
                            std::int64_t element_bytes) {
  const ColumnReads reads{nnz, x_rows, columns, element_bytes, rows};
  if (reads.far() == 0) return reads.copied({}) <= reads.in_place({});
  return csr_rows_used_often(rows, x_rows, nnz, columns);
}

/// Whether columns that lie apart go this way.
inline bool csr_rows_enough(std::int64_t rows, std::int64_t x_rows, std::int64_t nnz, std::int64_t columns) {
  if (columns != csr_rows_least_columns - 1) return columns >= csr_rows_least_columns;
  return nnz >= csr_rows_long * rows && csr_rows_used_often(rows, x_rows, nnz, columns);
}

template <class Exec>
void csr_rows_launch(const Exec& space, const HostCsrRowsArgs& args, HostCsrRowsRun run, std::int64_t rows,
                     std::int64_t work) {
  // Four columns take about as long as one.
  const std::int64_t alone = csr_spmv_alone * 4 / std::max<std::int64_t>(args.columns, 4);
  const Shares shares = Shares::of(space, rows, work, 64, 20000, 32, alone);
  static const std::string label("Tessera::spmv[csr, rows of x]");
  for_each_share(label, space, shares, CsrRowsFunctor{args, run, shares});
}

/// Some columns at a time, with a copy of theirs in rows. false: nothing was done.
template <class Sum, class Exec, class X>
bool csr_rows_copied(const Exec& space, HostCsrRowsArgs args, HostCsrRowsRun run, std::int64_t rows, std::int64_t work,
                     const Vectors<const X>& x, std::int64_t y_bytes) {
  constexpr std::int64_t some = csr_rows_copied_columns, most = some + some / 2;
  if (x.rows * some * static_cast<std::int64_t>(sizeof(X)) > csr_rows_most_copied) return false;
  const std::int64_t ld = Dense<X>::padded(host_whole_columns<Sum>(std::min(x.columns, most)));
  X* const copy = static_cast<X*>(host_csr_rows_room(static_cast<std::size_t>(x.rows * ld) * sizeof(X)));
  if (copy == nullptr) return false;
  args.x = copy;
  args.x_column_stride = 1;
  for (std::int64_t first = 0; first < x.columns; first += args.columns) {
    const std::int64_t left = x.columns - first;
    args.columns = left < most ? left : some;  // never fewer than four are left of more
    args.x_columns = host_whole_columns<Sum>(args.columns);
    args.x_stride = Dense<X>::padded(args.x_columns);
    const Dense<const X> from{x.column(first), x.rows, args.columns, x.stride, x.column_stride};
    copy_layout(space, "Tessera::spmv[x in rows]", from, Sum(0),
                Dense<X>{copy, x.rows, args.x_stride, args.x_stride, 1});
    csr_rows_launch(space, args, run, rows, work);
    args.y = static_cast<char*>(args.y) + args.columns * args.y_column_stride * y_bytes;
  }
  return true;
}

/// Whether the product was done: two vectors or more in rows or some more in columns, and types that have a kernel.
template <class Exec, class Csr, class X, class Y>
bool csr_rows_spmv(const Exec& space, double alpha, const Csr& A, const Vectors<const X>& x, double beta,
                   const Vectors<Y>& y) {
  using Kernel = CsrRowsKernel<typename Csr::value_type, X, Y>;
  constexpr int offset_bytes = static_cast<int>(sizeof(typename Csr::size_type));
  if constexpr (Kernel::exists && Compat::is_host_v<Exec> && sizeof(typename Csr::ordinal_type) == 4 &&
                (offset_bytes == 4 || offset_bytes == 8)) {
    if (x.columns < 2) return false;
    const bool apart = x.column_stride != 1;
    constexpr bool measured = std::is_same_v<X, Y> && std::is_same_v<X, typename Csr::value_type> && sizeof(X) >= 4;
    const std::int64_t rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
    if (apart && (!measured || !csr_rows_enough(rows, x.rows, nnz, x.columns))) return false;
    HostCsrRowsArgs args;
    args.row_map = A.row_map().data();
    args.offset_bytes = offset_bytes;
    args.entries = reinterpret_cast<const std::int32_t*>(A.entries().data());
    args.values = A.values().data();
    args.x = x.data;
    args.y = y.data;
    args.columns = x.columns;
    args.x_stride = x.stride;
    args.x_column_stride = x.column_stride;
    args.y_stride = y.stride;
    args.y_column_stride = y.column_stride;
    args.y_type = ScalarTraits<Y>::element;
    args.alpha = alpha;
    args.beta = beta;
    if (apart && csr_rows_copies(rows, x.rows, nnz, x.columns, sizeof(X))) {
      // Kernels have ended when parallel_for returns, so that the copy's memory can be given back.
      if constexpr (Compat::is_openmp_v<Exec> || Compat::is_serial_v<Exec>) {
        using Sum = AccumulatorOf<typename Csr::value_type, X, Y>;
        return csr_rows_copied<Sum>(space, args, Kernel::run(), rows, nnz + rows, x,
                                    static_cast<std::int64_t>(sizeof(Y)));
      }
      return false;
    }
    csr_rows_launch(space, args, Kernel::run(), rows, nnz + rows);
    return true;
  }
  return false;
}

}  // namespace Impl
}  // namespace Tessera

#endif
