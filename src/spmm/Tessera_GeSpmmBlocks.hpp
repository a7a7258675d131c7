// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_BLOCKS_HPP
#define TESSERA_SPMM_GE_SPMM_BLOCKS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/Tessera_Shares.hpp"
#include "spmm/Tessera_GeSpmmHostLaunch.hpp"

/// \file
/// C := alpha A B + beta C on CPUs where rows of A use rows of B all over: a thread takes what its rows have in one
/// block of columns, then in the next, and finds the block's rows of B in the second cache. C is read and written once
/// per block.

namespace Tessera {
namespace Impl {

/// Where the entries of each row enter each block of columns: O(nnz), for the most blocks so far; fewer ones, by powers
/// of two, are read from the same table. Columns need not ascend: an entry behind one of a later block is in that, too.
template <class Csr>
class ColumnCuts {
 public:
  using offset = typename Csr::size_type;

  template <class Exec>
  ColumnCuts(const Exec& space, const Csr& A, int blocks)
      : blocks_(blocks), rows_(static_cast<std::int64_t>(A.rows())) {
    cuts_ = Compat::allocate_view<decltype(cuts_)>("Tessera::spmm::cuts of rows",
                                                   static_cast<std::size_t>((blocks + 1) * rows_));
    offset* const cuts = cuts_.data();
    const auto* const map = A.row_map().data();
    const auto* const entries = A.entries().data();
    const std::int64_t rows = rows_, cols = static_cast<std::int64_t>(A.cols());
    Kokkos::parallel_for("Tessera::spmm[cuts of rows]", Kokkos::RangePolicy<Exec>(space, 0, rows),
                         [=](const std::int64_t row) {
                           offset i = map[row];
                           const offset last = map[row + 1];
                           for (int k = 0; k < blocks; ++k) {
                             cuts[k * rows + row] = i;
                             const std::int64_t end = Shares::cut(cols, k + 1, blocks);
                             while (i < last && static_cast<std::int64_t>(entries[i]) < end) ++i;
                           }
                           cuts[blocks * rows + row] = last;
                         });
  }
  int blocks() const { return blocks_; }
  std::size_t bytes() const { return cuts_.extent(0) * sizeof(offset); }
  /// Of block k of `blocks`: row r has entries [at[r], at[r + distance(blocks)]).
  const offset* of_block(int k, int blocks) const { return cuts_.data() + k * distance(blocks); }
  std::int64_t distance(int blocks) const { return blocks_ / blocks * rows_; }

 private:
  int blocks_;
  std::int64_t rows_;
  Kokkos::View<offset*, Kokkos::LayoutLeft, typename Csr::device_type> cuts_;
};

/// A share of the rows, block by block.
template <class Matrix, class Csr, class BT, class CT>
struct GeSpmmBlocksFunctor {
  GeSpmmHostFunctor<Csr, BT, CT> host;
  const ColumnCuts<Matrix>* cuts;
  int blocks;

  void operator()(const std::int64_t share) const {
    const std::int64_t begin = host.begin_of(share), end = host.begin_of(share + 1);
    GeSpmmHostFunctor<Csr, BT, CT> block = host;
    block.next = cuts->distance(blocks);
    for (int k = 0; k < blocks; ++k) {
      block.map = cuts->of_block(k, blocks);
      block.multiply(begin, end);
      block.beta = 1;
      block.adds = true;
    }
  }
};

/// No row is split, and C has the type of the sums. A share per thread, which meets its rows of B again in each
/// product.
template <class Exec, class Matrix, class BT, class CT, class Sum>
void ge_spmm_blocks(const Exec& space, double alpha, const Matrix& matrix, const Dense<const BT>& b, double beta,
                    const Dense<CT>& c, const RowPieces<Sum>& pieces, const ColumnCuts<Matrix>& cuts, int blocks) {
  using Csr = CsrArrays<Matrix>;
  const Csr A(matrix);
  const std::int64_t rows = pieces.count, threads = std::max(1, static_cast<int>(space.concurrency()));
  const Shares shares{rows, static_cast<std::int64_t>(A.nnz()) + rows, std::min(threads, rows), true};
  static const std::string label("Tessera::spmm[gespmm, blocks of B]");
  for_each_share(label, space, shares,
                 GeSpmmBlocksFunctor<Matrix, Csr, BT, CT>{ge_spmm_host_functor(alpha, A, b, beta, c, pieces, shares),
                                                          &cuts, blocks});
}

}  // namespace Impl
}  // namespace Tessera

#endif
