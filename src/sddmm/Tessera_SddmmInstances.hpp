// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_INSTANCES_HPP
#define TESSERA_SDDMM_SDDMM_INSTANCES_HPP

#include "core/Tessera_Compiled.hpp"
#include "sddmm/Tessera_SddmmOperation.hpp"

/// \file
/// What of SDDMM is compiled once (core/Tessera_Compiled.hpp).

#define TESSERA_SDDMM_PATTERN(Extern, Offset)                                                                          \
  Extern template Experimental::WindowBlocks<Compiled::Memory> window_blocks(                                          \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, const SddmmShape&, int, Precision, const KernelTable*); \
  Extern template DenseColumns<Compiled::Pattern<Offset>> divide_by_columns(                                           \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, int, int,                                               \
      const WindowFunctors<Compiled::Pattern<Offset>>::Order&, const KernelTable*);                                    \
  Extern template SddmmGroups<Compiled::Memory> sddmm_groups(const Compiled::Exec&, const Compiled::Pattern<Offset>&,  \
                                                             const KernelTable*);

#define TESSERA_SDDMM_BODY(Scalar, Offset) PlanBody<SddmmOperation<Compiled::Matrix<Scalar, Offset>>>
#define TESSERA_SDDMM_APPLY(Extern, Scalar, Offset, T, P)                                                       \
  Extern template void TESSERA_SDDMM_BODY(Scalar, Offset)::apply(const Exec&, Op, double, const SddmmInput<T>&, \
                                                                 double, const SddmmOutput<P>&) const;

// Plans, with X, Y and P of the pattern's type; 16-bit patterns also with P of float.
#define TESSERA_SDDMM_double(Extern, Offset)                \
  Extern template class TESSERA_SDDMM_BODY(double, Offset); \
  TESSERA_SDDMM_APPLY(Extern, double, Offset, double, double)
#define TESSERA_SDDMM_float(Extern, Offset)                \
  Extern template class TESSERA_SDDMM_BODY(float, Offset); \
  TESSERA_SDDMM_APPLY(Extern, float, Offset, float, float)
#define TESSERA_SDDMM_half_t(Extern, Offset)                  \
  Extern template class TESSERA_SDDMM_BODY(half_t, Offset);   \
  TESSERA_SDDMM_APPLY(Extern, half_t, Offset, half_t, half_t) \
  TESSERA_SDDMM_APPLY(Extern, half_t, Offset, half_t, float)
#define TESSERA_SDDMM_bhalf_t(Extern, Offset)                    \
  Extern template class TESSERA_SDDMM_BODY(bhalf_t, Offset);     \
  TESSERA_SDDMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, bhalf_t) \
  TESSERA_SDDMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_SDDMM
namespace Tessera {
namespace Impl {
// SpMM's.
extern template RowOrder<Compiled::Pattern<int>> choose_row_order(const Compiled::Exec&, const Compiled::Pattern<int>&,
                                                                  int, RowReordering, const KernelTable*,
                                                                  const RowComparison&);
extern template RowOrder<Compiled::Pattern<std::size_t>> choose_row_order(const Compiled::Exec&,
                                                                          const Compiled::Pattern<std::size_t>&, int,
                                                                          RowReordering, const KernelTable*,
                                                                          const RowComparison&);
// clang-format off
TESSERA_SDDMM_PATTERN(extern, int)
TESSERA_SDDMM_PATTERN(extern, std::size_t)
TESSERA_SDDMM_double(extern, int)
TESSERA_SDDMM_double(extern, std::size_t)
TESSERA_SDDMM_float(extern, int)
TESSERA_SDDMM_float(extern, std::size_t)
TESSERA_SDDMM_half_t(extern, int)
TESSERA_SDDMM_bhalf_t(extern, int)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
