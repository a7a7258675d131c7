// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BaselineKokkosKernelsProduct.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
namespace Tessera {
namespace Bench {
namespace {

template <class Scalar, class Offset>
System product(const SpmvOperands& o, bool merge) {
  return kokkos_kernels_product<Scalar, Offset>(o.A, o.alpha, o.x.view<Scalar>(), o.beta, o.y.view<Scalar>(), merge);
}

}  // namespace

System kokkos_kernels_spmv(const SpmvOperands& o, bool merge) {
  const bool wide = o.A.offset_bits == 64;
  if (o.A.element == ElementType::Double)
    return wide ? product<double, WideOffset>(o, merge) : product<double, int>(o, merge);
  return wide ? product<float, WideOffset>(o, merge) : product<float, int>(o, merge);
}

}  // namespace Bench
}  // namespace Tessera
#endif
