// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_KOKKOS_KERNELS_PRODUCT_HPP
#define TESSERA_BASELINE_KOKKOS_KERNELS_PRODUCT_HPP

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "driver/Tessera_BaselineKokkosKernels.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>
#if defined(TESSERA_BENCH_SPMV_HANDLE)
#include <KokkosSparse_spmv_handle.hpp>
#endif
#include <memory>

namespace Tessera {
namespace Bench {

/// y := alpha A x + beta y for Views x and y of rank 1 or 2.
template <class Scalar, class Offset, class X, class Y>
System kokkos_kernels_product(const CsrOperand& o, double alpha, const X& x, double beta, const Y& y, bool merge) {
  using Matrix = KokkosSparse::CrsMatrix<Scalar, int, Device, void, Offset>;
  const Matrix A("A", o.rows, o.cols, static_cast<Offset>(o.nnz()), o.values.view<Scalar>(), o.row_map.view<Offset>(),
                 o.entries.view<int>());
  const auto a = static_cast<Scalar>(alpha), b = static_cast<Scalar>(beta);
  System system;
  system.backend = "kokkos";
  system.why = Compat::view_rank<X> == 1 ? "KokkosSparse::spmv" : "KokkosSparse::spmv on multivectors";
#if defined(TESSERA_BENCH_SPMV_HANDLE)
  using Handle = KokkosSparse::SPMVHandle<Exec, Matrix, X, Y>;
  const auto algorithm = merge ? KokkosSparse::SPMV_MERGE_PATH : KokkosSparse::SPMV_DEFAULT;
  const auto handle = std::make_shared<Handle>(algorithm);
  system.kernel = KokkosSparse::get_spmv_algorithm_name(algorithm);
  system.why += " with a handle kept";
  system.apply = [handle, A, space = o.space, a, x, b, y] {
    KokkosSparse::spmv(space, handle.get(), "N", a, A, x, b, y);
  };
#else
  (void)merge;
  // Older ones run on the default instance of the execution space, which is the one of the operands.
  system.kernel = "default";
  system.apply = [A, a, x, b, y] { KokkosSparse::spmv("N", a, A, x, b, y); };
#endif
  return system;
}

/// Nothing is compiled for devices: cuSPARSE stands for it there.
template <class Scalar, class Layout, class Space = Exec>
System kokkos_kernels_spmm(const SpmmOperands& o) {
  if constexpr (Compat::is_host_v<Space>) {
    return kokkos_kernels_product<Scalar, int>(o.A, o.alpha, o.view<Scalar, Layout>(o.B, o.A.cols, o.columns), o.beta,
                                               o.view<Scalar, Layout>(o.C, o.A.rows, o.columns), false);
  } else {
    throw NotSupported("Kokkos Kernels' product with several vectors is measured on hosts only");
  }
}

}  // namespace Bench
}  // namespace Tessera
#endif

#endif
