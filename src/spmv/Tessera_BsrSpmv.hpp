// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_BSR_SPMV_HPP
#define TESSERA_SPMV_BSR_SPMV_HPP

#include <cstdint>
#include <string>

#include "backends/host/Tessera_HostBsr.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Accumulator.hpp"
#include "core/Tessera_Blocks.hpp"
#include "core/Tessera_Shares.hpp"
#include "core/Tessera_VectorOperand.hpp"

/// \file
/// y := alpha A x + beta y straight from blocks, without a backend's kernel: on hosts by threads with equal shares of
/// the blocks (backends/host), and anywhere for types and sides that no other kernel takes, one thread per row.

namespace Tessera {
namespace Impl {

/// A share of the block rows. Work: numbers, and one more per row.
struct BsrHostFunctor {
  SpmvBsrArgs args;
  Shares shares;

  static std::int64_t work_before(const SpmvBsrArgs& a, std::int64_t block_row) {
    return a.offset(block_row) * a.block * a.block + block_row * a.block;
  }
  std::int64_t begin_of(std::int64_t share) const {
    return shares.begin(share, [&](std::int64_t row) { return work_before(args, row); });
  }
  void operator()(const std::int64_t share) const { host_bsr(args, begin_of(share), begin_of(share + 1)); }
};

template <class Exec>
void bsr_spmv_host(const Exec& space, const SpmvBsrArgs& args) {
  const std::int64_t work = BsrHostFunctor::work_before(args, args.block_rows);
  const Shares shares = Shares::of(space, args.block_rows, work, 256, 100000);
  static const std::string label("Tessera::spmv[bsr]");
  for_each_share(label, space, shares, BsrHostFunctor{args, shares});
}

/// One thread per row.
template <class Bsr, class XT, class YT>
struct BsrRowFunctor {
  using Sum = AccumulatorOf<typename Bsr::value_type, XT, YT>;

  BsrArrays<Bsr> A;
  const XT* x;
  YT* y;
  std::int64_t x_stride, y_stride;
  Sum alpha, beta;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const std::int64_t b = A.block, block_row = row / b, i = row % b;
    const std::int64_t first = A.first(block_row), last = A.first(block_row + 1);
    const BsrSteps steps = A.steps(block_row);
    const auto* a = A.values + first * b * b + i * steps.row;
    Sum sum = 0;
    for (std::int64_t k = first; k < last; ++k, a += steps.block) {
      const XT* const from = x + static_cast<std::int64_t>(A.entries[k]) * b * x_stride;
      for (std::int64_t j = 0; j < b; ++j) sum += widen<Sum>(a[j * steps.column]) * widen<Sum>(from[j * x_stride]);
    }
    store_scaled(y + row * y_stride, alpha, sum, beta);
  }
};

template <class Exec, class Bsr, class XT, class YT>
void bsr_spmv_rows(const Exec& space, double alpha, const Bsr& A, const Vectors<const XT>& x, double beta,
                   const Vectors<YT>& y) {
  using Functor = BsrRowFunctor<Bsr, XT, YT>;
  using Sum = typename Functor::Sum;
  for (std::int64_t j = 0; j < x.columns; ++j) {
    const Functor f{BsrArrays<Bsr>(A),       x.column(j),           y.column(j), x.stride, y.stride,
                    static_cast<Sum>(alpha), static_cast<Sum>(beta)};
    Kokkos::parallel_for("Tessera::spmv[bsr] rows",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, A.rows()), f);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
