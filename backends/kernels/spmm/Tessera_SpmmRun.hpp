// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_SPMM_RUN_HPP
#define TESSERA_KERNELS_SPMM_SPMM_RUN_HPP

#include "backends/kernels/spmm/Tessera_SpmmStore.hpp"

namespace Tessera {

/// N neighbouring sums from `column` on, in accesses of at most sixteen bytes.
template <class Element, class Sum, int N>
TESSERA_FUNCTION void spmm_store_run(const SpmmTarget<Element, Sum>& target, std::int64_t row, std::int64_t column,
                                     const Sum (&sums)[N]) {
  constexpr int width = 16 / static_cast<int>(sizeof(Element)) < N ? 16 / static_cast<int>(sizeof(Element)) : N;
  TESSERA_UNROLL
  for (int i = 0; i < N; i += width) {
    Sum piece[width];
    TESSERA_UNROLL
    for (int j = 0; j < width; ++j) piece[j] = sums[i + j];
    if (column + i < target.columns) target.template store<width>(row, column + i, piece);
  }
}

}  // namespace Tessera

#endif
