// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BaselineKokkosKernelsProduct.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
Tessera::Bench::System Tessera::Bench::kokkos_kernels_spmm_fp64(const SpmmOperands& o) {
  // Kokkos Kernels is built for column-major doubles: nothing is compiled for those here.
  return o.layout_left ? kokkos_kernels_spmm<double, Kokkos::LayoutLeft>(o)
                       : kokkos_kernels_spmm<double, Kokkos::LayoutRight>(o);
}
#endif
