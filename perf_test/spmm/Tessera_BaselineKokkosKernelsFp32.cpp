// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BaselineKokkosKernelsProduct.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
Tessera::Bench::System Tessera::Bench::kokkos_kernels_spmm_fp32(const SpmmOperands& o) {
  return kokkos_kernels_spmm<float, Kokkos::LayoutRight>(o);
}
#endif
