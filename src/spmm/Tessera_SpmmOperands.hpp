// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_OPERANDS_HPP
#define TESSERA_SPMM_SPMM_OPERANDS_HPP

#include <type_traits>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_PlanScratch.hpp"
#include "core/Tessera_Profile.hpp"

/// \file
/// B and C as the kernels of backends want them (SpmmDense): B where it lies if it can be, else a contiguous copy of
/// it; C where it lies if its rows are contiguous, else sums in contiguous rows that a kernel adds into C.

namespace Tessera {
namespace Impl {

/// What a product of n columns needs at most for copies, whatever the layouts.
inline std::size_t operand_bytes(Precision precision, std::int64_t rows, std::int64_t cols, std::int64_t n) {
  const std::int64_t b = bytes_of(precision), sum = sum_bytes_of(precision);
  const auto padded = [n](std::int64_t size) { return (n * size + 15) / 16 * 16; };
  return ScratchLayout::rounded(static_cast<std::size_t>(cols * padded(b))) +
         ScratchLayout::rounded(static_cast<std::size_t>(rows * padded(sum)));
}

/// Enqueues the copies and launch(dense, partials), which enqueues the backend's kernels.
/// @param span  elements of B that may be read from its first one on
/// @param partial_bytes  scratch for sums of split windows
/// @throw WorkspaceTooSmall, DeviceError
template <class Exec, class Memory, class BT, class CT, class Launch>
void launch_spmm(const Exec& space, const PlanScratch<Exec, Memory>& scratch, const KernelName& name, double alpha,
                 const Dense<const BT>& b, std::size_t span, double beta, const Dense<CT>& c, std::size_t partial_bytes,
                 const Launch& launch) {
  using Sum = std::conditional_t<std::is_same_v<BT, double>, double, float>;
  const bool pack_b = !serves_in_place(b, span), through_sums = c.column_stride != 1;
  const std::int64_t ldb = Dense<BT>::padded(b.columns), lds = Dense<Sum>::padded(c.columns);
  Dense<BT> packed{nullptr, b.rows, ldb, ldb, 1};
  Dense<Sum> sums{nullptr, c.rows, c.columns, lds, 1};
  char* partials = nullptr;
  const auto lay_out = [&](ScratchLayout layout) {
    partials = layout.take<char>(static_cast<std::int64_t>(partial_bytes));
    packed.data = layout.take<BT>(pack_b ? b.rows * ldb : 0);
    sums.data = layout.take<Sum>(through_sums ? c.rows * lds : 0);
    return layout.bytes();
  };
  const std::size_t bytes = lay_out(ScratchLayout());
  lay_out(ScratchLayout(scratch.reserve(space, bytes)));

  if (pack_b) copy_layout(space, "Tessera::spmm[pack B]", b, Sum(0), packed);
  SpmmDense dense;
  dense.b = pack_b ? packed.data : b.data;
  dense.ldb = pack_b ? ldb : b.row_stride;
  dense.c = through_sums ? static_cast<void*>(sums.data) : static_cast<void*>(c.data);
  dense.ldc = through_sums ? lds : c.row_stride;
  dense.columns = c.columns;
  dense.c_type = through_sums ? ScalarTraits<Sum>::element : ScalarTraits<CT>::element;
  dense.alpha = alpha;
  dense.beta = through_sums ? 0 : beta;
  run_on_backend(space, name, [&](Stream stream) { return launch(dense, static_cast<void*>(partials), stream); });
  if (through_sums) {
    const Dense<const Sum> from{sums.data, sums.rows, sums.columns, lds, 1};
    copy_layout(space, "Tessera::spmm[add to C]", from, static_cast<Sum>(beta), c);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
