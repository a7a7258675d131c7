// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_HOST_LAUNCH_HPP
#define TESSERA_SPMM_GE_SPMM_HOST_LAUNCH_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "spmm/Tessera_GeSpmmHost.hpp"

/// \file
/// Which of a CPU's loops a product takes, and its shares.

namespace Tessera {
namespace Impl {

template <class Csr, class BT, class CT, class Sum>
GeSpmmHostFunctor<Csr, BT, CT> ge_spmm_host_functor(double alpha, const Csr& A, const Dense<const BT>& b, double beta,
                                                    const Dense<CT>& c, const RowPieces<Sum>& pieces,
                                                    const Shares& shares, const std::int32_t* order = nullptr) {
  // No wider than a row, since a part of a vector is multiplied number by number.
  const int widest = host_vector_bytes();
  const std::int64_t least_long = b.columns == 1 ? 16 : 12;
  const bool long_rows = static_cast<std::int64_t>(A.nnz()) >= least_long * static_cast<std::int64_t>(A.rows());
  const int least = GeSpmmHostFunctor<Csr, BT, CT>::pairs && long_rows && widest > 16 ? 8 : 16;
  int bytes = widest;
  while (bytes > least && b.columns * static_cast<std::int64_t>(sizeof(Sum)) < bytes) bytes /= 2;
  // Three numbers of FP64 are faster one by one than in vectors that overlap, but in long rows.
  const bool ordered = order != nullptr && b.columns <= LengthOrder::most_columns;
  const bool few = sizeof(typename Csr::value_type) >= 4 && !long_rows && (ordered || b.columns == 3);
  const bool whole = !few && b.column_stride == 1 && b.columns * static_cast<std::int64_t>(sizeof(Sum)) >= bytes;
  return {A,           b,     c,         static_cast<Sum>(alpha), static_cast<Sum>(beta), pieces, shares, bytes,
          widest > 16, whole, long_rows, whole ? nullptr : order, A.row_map().data()};
}

template <class Exec>
Shares ge_spmm_shares(const Exec& space, std::int64_t items, std::int64_t work) {
  Shares shares = Shares::of(space, items, work, 64, 20000, 32);
  shares.count = std::min(shares.count, std::max<std::int64_t>(items, 1));
  return shares;
}

/// order: LengthOrder::data().
template <class Exec, class Csr, class BT, class CT, class Sum>
void ge_spmm_host(const Exec& space, double alpha, const Csr& A, const Dense<const BT>& b, double beta,
                  const Dense<CT>& c, const RowPieces<Sum>& pieces, const std::int32_t* order) {
  const Shares shares = ge_spmm_shares(space, pieces.count, static_cast<std::int64_t>(A.nnz()) + pieces.count);
  static const std::string label("Tessera::spmm[gespmm]");
  for_each_share(label, space, shares, ge_spmm_host_functor(alpha, A, b, beta, c, pieces, shares, order));
}

}  // namespace Impl
}  // namespace Tessera

#endif
