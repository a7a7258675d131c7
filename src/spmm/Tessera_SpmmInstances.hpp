// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_INSTANCES_HPP
#define TESSERA_SPMM_SPMM_INSTANCES_HPP

#include "core/Tessera_Compiled.hpp"
#include "spmm/Tessera_GeSpmmInstances.hpp"
#include "spmm/Tessera_SpmmOperation.hpp"

/// \file
/// What of SpMM is compiled once (core/Tessera_Compiled.hpp).

// What depends on the type of offsets alone: features, orders of rows, conversions of patterns.
#define TESSERA_SPMM_PATTERN(Extern, Offset)                                                                      \
  Extern template SpmmFeatures spmm_pattern_features(const Compiled::Exec&, const Compiled::Pattern<Offset>&,     \
                                                     const KernelTable*);                                         \
  Extern template RowOrder<Compiled::Pattern<Offset>> choose_row_order(                                           \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, int, RowReordering, const KernelTable*,            \
      const RowComparison&);                                                                                      \
  Extern template PanelPattern<Compiled::Pattern<Offset>> panel_pattern(                                          \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, const PanelGeometry&, Precision, int, bool,        \
      const KernelTable*, const WindowFunctors<Compiled::Pattern<Offset>>::Order&);                               \
  Extern template MeBcrsPattern<Compiled::Pattern<Offset>> me_bcrs_pattern(                                       \
      const Compiled::Exec&, const Compiled::Pattern<Offset>&, Experimental::MeBcrs<Compiled::Memory>, int, bool, \
      const KernelTable*, const WindowFunctors<Compiled::Pattern<Offset>>::Order&);

#define TESSERA_SPMM_BODY(Scalar, Offset) PlanBody<SpmmOperation<Compiled::Matrix<Scalar, Offset>>>
#define TESSERA_SPMM_APPLY(Extern, Scalar, Offset, B, C)                                                               \
  Extern template void TESSERA_SPMM_BODY(Scalar, Offset)::apply(const Exec&, Op, double, const DenseInput<B>&, double, \
                                                                const Dense<C>&) const;

// Plans, with B and C of the matrix's type; 16-bit matrices also with C of float (in files of their own,
// since hosts convert these numbers in long inlined code).
#define TESSERA_SPMM_double(Extern, Offset)                \
  Extern template class TESSERA_SPMM_BODY(double, Offset); \
  TESSERA_SPMM_APPLY(Extern, double, Offset, double, double)
#define TESSERA_SPMM_float(Extern, Offset)                \
  Extern template class TESSERA_SPMM_BODY(float, Offset); \
  TESSERA_SPMM_APPLY(Extern, float, Offset, float, float)
#define TESSERA_SPMM_half_t(Extern, Offset)                \
  Extern template class TESSERA_SPMM_BODY(half_t, Offset); \
  TESSERA_SPMM_APPLY(Extern, half_t, Offset, half_t, half_t)
#define TESSERA_SPMM_half_t_float(Extern, Offset) TESSERA_SPMM_APPLY(Extern, half_t, Offset, half_t, float)
#define TESSERA_SPMM_bhalf_t(Extern, Offset)                \
  Extern template class TESSERA_SPMM_BODY(bhalf_t, Offset); \
  TESSERA_SPMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, bhalf_t)
#define TESSERA_SPMM_bhalf_t_float(Extern, Offset) TESSERA_SPMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_SPMM
namespace Tessera {
namespace Impl {
// clang-format off
TESSERA_SPMM_PATTERN(extern, int)
TESSERA_SPMM_PATTERN(extern, std::size_t)
TESSERA_SPMM_double(extern, int)
TESSERA_SPMM_double(extern, std::size_t)
TESSERA_SPMM_float(extern, int)
TESSERA_SPMM_float(extern, std::size_t)
TESSERA_SPMM_half_t(extern, int)
TESSERA_SPMM_half_t_float(extern, int)
TESSERA_SPMM_bhalf_t(extern, int)
TESSERA_SPMM_bhalf_t_float(extern, int)
// clang-format on
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
