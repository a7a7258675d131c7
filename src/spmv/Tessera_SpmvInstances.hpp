// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_INSTANCES_HPP
#define TESSERA_SPMV_INSTANCES_HPP

#include "spmv/Tessera_SpmvOperation.hpp"

/// \file
/// The plans that the library compiles once, for the default execution space (src/CMakeLists.txt). With
/// TESSERA_COMPILED_PLANS, which the target Tessera::tessera sets, programs link these; plans of other types, and products
/// with other vectors, are compiled where they are used, as all are without it (target Tessera::core).

#define TESSERA_SPMV_BODY(Scalar, Offset) \
  PlanBody<SpmvOperation<CsrView<Scalar, int, Offset, Kokkos::DefaultExecutionSpace::device_type>>>
#define TESSERA_SPMV_APPLY(Extern, Scalar, Offset, X, Y)                                 \
  Extern template void TESSERA_SPMV_BODY(Scalar, Offset)::apply<Vectors<const X>, Vectors<Y>>( \
      const Exec&, Op, double, const Vectors<const X>&, double, const Vectors<Y>&) const;

// Vectors of the matrix's type; 16-bit matrices also with y of float, narrow ones also with vectors of double.
#define TESSERA_SPMV_double(Extern, Offset)                  \
  Extern template class TESSERA_SPMV_BODY(double, Offset);   \
  TESSERA_SPMV_APPLY(Extern, double, Offset, double, double)
#define TESSERA_SPMV_float(Extern, Offset)                   \
  Extern template class TESSERA_SPMV_BODY(float, Offset);    \
  TESSERA_SPMV_APPLY(Extern, float, Offset, float, float)    \
  TESSERA_SPMV_APPLY(Extern, float, Offset, double, double)
#define TESSERA_SPMV_half_t(Extern, Offset)                  \
  Extern template class TESSERA_SPMV_BODY(half_t, Offset);   \
  TESSERA_SPMV_APPLY(Extern, half_t, Offset, half_t, half_t) \
  TESSERA_SPMV_APPLY(Extern, half_t, Offset, half_t, float)
#define TESSERA_SPMV_bhalf_t(Extern, Offset)                   \
  Extern template class TESSERA_SPMV_BODY(bhalf_t, Offset);    \
  TESSERA_SPMV_APPLY(Extern, bhalf_t, Offset, bhalf_t, bhalf_t) \
  TESSERA_SPMV_APPLY(Extern, bhalf_t, Offset, bhalf_t, float)

#ifdef TESSERA_COMPILED_PLANS
namespace Tessera {
namespace Impl {
TESSERA_SPMV_double(extern, int) TESSERA_SPMV_double(extern, std::size_t)
TESSERA_SPMV_float(extern, int) TESSERA_SPMV_float(extern, std::size_t)
TESSERA_SPMV_half_t(extern, int) TESSERA_SPMV_half_t(extern, std::size_t)
TESSERA_SPMV_bhalf_t(extern, int) TESSERA_SPMV_bhalf_t(extern, std::size_t)
}  // namespace Impl
}  // namespace Tessera
#endif

#endif
