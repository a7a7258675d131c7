// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_INSTANCES_HPP
#define TESSERA_SPMM_INSTANCES_HPP

#include "spmm/Tessera_SpmmOperation.hpp"

/// \file
/// The plans that the library compiles once, for the default execution space (src/CMakeLists.txt). With
/// TESSERA_COMPILED_PLANS, which the target Tessera::tessera sets, programs link these; plans of other types, and products
/// with other operands, are compiled where they are used, as all are without it (target Tessera::core).

#define TESSERA_SPMM_BODY(Scalar, Offset) \
  PlanBody<SpmmOperation<CsrView<Scalar, int, Offset, Kokkos::DefaultExecutionSpace::device_type>>>
#define TESSERA_SPMM_APPLY(Extern, Scalar, Offset, X, Y)                                 \
  Extern template void TESSERA_SPMM_BODY(Scalar, Offset)::apply<DenseInput<X>, Dense<Y>>( \
      const Exec&, Op, double, const DenseInput<X>&, double, const Dense<Y>&) const;

// B and C of the matrix's type; 16-bit matrices also with C of float.
#define TESSERA_SPMM_double(Extern, Offset)                  \
  Extern template class TESSERA_SPMM_BODY(double, Offset);   \
  TESSERA_SPMM_APPLY(Extern, double, Offset, double, double)
#define TESSERA_SPMM_float(Extern, Offset)                   \
  Extern template class TESSERA_SPMM_BODY(float, Offset);    \
  TESSERA_SPMM_APPLY(Extern, float, Offset, float, float)
#define TESSERA_SPMM_half_t(Extern, Offset)                  \
  Extern template class TESSERA_SPMM_BODY(half_t, Offset);   \
  TESSERA_SPMM_APPLY(Extern, half_t, Offset, half_t, half_t) \
  TESSERA_SPMM_APPLY(Extern, half_t, Offset, half_t, float)
#define TESSERA_SPMM_bhalf_t(Extern, Offset)                   \
  Extern template class TESSERA_SPMM_BODY(bhalf_t, Offset);    \
  TESSERA_SPMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, bhalf_t) \
  TESSERA_SPMM_APPLY(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_PLANS
namespace Tessera {
namespace Impl {
TESSERA_SPMM_double(extern, int) TESSERA_SPMM_double(extern, std::size_t)
TESSERA_SPMM_float(extern, int) TESSERA_SPMM_float(extern, std::size_t)
TESSERA_SPMM_half_t(extern, int) TESSERA_SPMM_half_t(extern, std::size_t)
TESSERA_SPMM_bhalf_t(extern, int) TESSERA_SPMM_bhalf_t(extern, std::size_t)
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
