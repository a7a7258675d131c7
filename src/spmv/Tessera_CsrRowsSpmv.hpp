// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR_ROWS_SPMV_HPP
#define TESSERA_SPMV_CSR_ROWS_SPMV_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/host/Tessera_HostCsrRows.hpp"
#include "core/Tessera_Shares.hpp"
#include "core/Tessera_VectorOperand.hpp"
#include "spmv/Tessera_CsrSpmv.hpp"

/// \file
/// y := alpha A x + beta y straight from CSR on CPUs, for several vectors whose numbers of a row are neighbours
/// (LayoutRight): an entry is multiplied with a row of x, in vectors of columns.
///
/// Bytes: nnz (v + 4) + rows (offset + y) + x once if it stays in cache, whatever the number of columns; one launch;
/// deterministic.

namespace Tessera {
namespace Impl {

struct CsrRowsFunctor {
  HostCsrRowsArgs args;
  HostCsrRowsRun run;
  Shares shares;

  /// Work: the entries, and one more per row.
  std::int64_t work_before(std::int64_t row) const {
    return row + (args.offset_bytes == 4 ? static_cast<const std::int32_t*>(args.row_map)[row]
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

/// Whether the product was done: two vectors or more, whose numbers of a row are neighbours, and types that have a
/// kernel.
template <class Exec, class Csr, class X, class Y>
bool csr_rows_spmv(const Exec& space, double alpha, const Csr& A, const Vectors<const X>& x, double beta,
                   const Vectors<Y>& y) {
  using Kernel = CsrRowsKernel<typename Csr::value_type, X, Y>;
  constexpr int offset_bytes = static_cast<int>(sizeof(typename Csr::size_type));
  if constexpr (Kernel::exists && Compat::is_host_v<Exec> && sizeof(typename Csr::ordinal_type) == 4 &&
                (offset_bytes == 4 || offset_bytes == 8)) {
    if (x.columns < 2 || x.column_stride != 1) return false;
    HostCsrRowsArgs args;
    args.row_map = A.row_map().data();
    args.offset_bytes = offset_bytes;
    args.entries = reinterpret_cast<const std::int32_t*>(A.entries().data());
    args.values = A.values().data();
    args.x = x.data;
    args.y = y.data;
    args.columns = x.columns;
    args.x_stride = x.stride;
    args.y_stride = y.stride;
    args.y_column_stride = y.column_stride;
    args.y_type = ScalarTraits<Y>::element;
    args.alpha = alpha;
    args.beta = beta;
    const std::int64_t rows = static_cast<std::int64_t>(A.rows()), work = static_cast<std::int64_t>(A.nnz()) + rows;
    // Four columns take about as long as one.
    const std::int64_t alone = csr_spmv_alone * 4 / std::max<std::int64_t>(x.columns, 4);
    const Shares shares = Shares::of(space, rows, work, 64, 20000, 32, alone);
    static const std::string label("Tessera::spmv[csr, rows of x]");
    for_each_share(label, space, shares, CsrRowsFunctor{args, Kernel::run(), shares});
    return true;
  }
  return false;
}

}  // namespace Impl
}  // namespace Tessera

#endif
