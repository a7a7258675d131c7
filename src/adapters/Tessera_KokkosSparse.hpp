// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_KOKKOS_SPARSE_HPP
#define TESSERA_ADAPTERS_KOKKOS_SPARSE_HPP

#include <string>
#include <type_traits>

#include "Tessera_Spmm.hpp"
#include "Tessera_Spmv.hpp"
#include "adapters/Tessera_KokkosSparseHandle.hpp"
#include "adapters/Tessera_KokkosSparseMatrix.hpp"

/// \file
/// Calls of Kokkos Kernels (tested: 3.4 and 4.6) with the namespace changed: `KokkosSparse::spmv` becomes
/// `Tessera::spmv`, `KokkosSparse::SPMVHandle` becomes `Tessera::SPMVHandle`.
/// example/manual/porting-from-kokkos-kernels.md has the differences. Not part of Tessera.hpp: it needs Kokkos Kernels'
/// headers (KokkosSparse_CrsMatrix.hpp).
///
///     spmv([space,] [handle,] mode, alpha, A, x, beta, y)      y := alpha op(A) x + beta y
///     spmm([space,] [handle,] mode, alpha, A, B, beta, C)      the same, rank 2 only
///
/// A          KokkosSparse::CrsMatrix, or a block matrix (BsrMatrix, 3.4's BlockCrsMatrix), which is multiplied as it
///            lies; for several columns it is written out first, at every call without a handle, once with one. Scalars
///            are double and float; C, which conjugates, is therefore N, and H is T.
/// mode       its first letter, as in Kokkos Kernels: N, T, C (conjugate, *not* transposed) or H; lower case too (which
///            Kokkos Kernels leaves to the vendor libraries behind it).
/// x, y       both of rank 1, or both of rank 2 (x(n, k), y(m, k), any layout), which is a product of matrices and goes
///            to SpMM unless k is 1. Lengths must fit exactly (Kokkos Kernels 3.4 let them be longer).
/// alpha,     anything that converts to double. beta == 0 overwrites y, NaN included; alpha == 0 reads neither A nor x.
/// beta
/// space      an instance of the matrix' execution space; left out: the default instance. Asynchronous there, but for T
///            and H without a handle (A is transposed first, which costs far more than the product) and for several
///            columns with a block matrix without a handle: these wait.
/// Errors     InvalidArgument (mode, null pointers, overlap of x and y), DimensionMismatch with every extent, StalePlan
///            (handle); always before y is touched.
///
/// Deterministic in every mode: bitwise the same result for the same inputs and device (Kokkos Kernels' transposed
/// products add with atomics). Precision: that of SpmvPlan and SpmmPlan.

namespace Tessera {
namespace Impl {

/// KokkosKernels::Experimental::Controls (3.x and early 4.x), told by its members.
template <class T, class = void>
struct IsControls : std::false_type {};
template <class T>
struct IsControls<T, std::void_t<decltype(std::declval<const T&>().isParameter(std::string())),
                                 decltype(std::declval<const T&>().getParameter(std::string()))>> : std::true_type {};

/// Without a handle: straight from compressed rows.
template <class Exec, class Matrix, class X, class Y>
void kokkos_sparse_once(const Exec& space, Op op, double alpha, const Matrix& A, const X& x, double beta, const Y& y) {
  static_assert(std::is_same_v<Exec, typename MatrixTypes<Matrix>::device::execution_space>,
                "Tessera::spmv: the execution space must be the matrix' own");
  check_product(op, A, x, y);
  if constexpr (IsBlockMatrix<Matrix>::value) {
    bool one = true;
    if constexpr (Compat::view_rank<X> == 2) one = x.extent(1) == 1;
    if (one) return Tessera::spmv(space, op == Op::NoTrans ? "N" : "T", alpha, bsr_view(A), x, beta, y);
    const auto crs = to_crs_matrix(space, A);
    kokkos_sparse_once(space, op, alpha, crs, x, beta, y);
    Compat::fence(space, "Tessera::spmv: the written-out blocks are released");
  } else {
    const char* const mode = op == Op::NoTrans ? "N" : "T";
    if constexpr (Compat::view_rank<X> == 2) {
      if (x.extent(1) != 1) return Tessera::spmm(space, mode, alpha, csr_view(A), x, beta, y);
    }
    Tessera::spmv(space, mode, alpha, csr_view(A), x, beta, y);
  }
}

template <class Sparse>
using MatrixSpace = typename MatrixTypes<Sparse>::device::execution_space;

}  // namespace Impl

// Matrices are parameters of the form Sparse<P...>, which makes these overloads more specialised than those of
// Tessera_Spmv.hpp and Tessera_Spmm.hpp for any matrix.

/// y := alpha op(A) x + beta y once, for a matrix of Kokkos Kernels; mode as there: "N", "T", "C", "H". In the default
/// instance of the matrix's execution space; when it waits: at the head of this file.
/// @throw InvalidArgument (mode, null pointer, overlap), DimensionMismatch, NotSupported, OutOfMemory, DeviceError
template <template <class...> class Sparse, class... P, class X, class Y,
          std::enable_if_t<Impl::is_kokkos_sparse_v<Sparse<P...>>, int> = 0>
void spmv(const char mode[], double alpha, const Sparse<P...>& A, const X& x, double beta, const Y& y) {
  Impl::kokkos_sparse_once(Impl::MatrixSpace<Sparse<P...>>(), Impl::parse_letter(mode), alpha, A, x, beta, y);
}

/// The same; `first`: an execution space instance, on which the product is enqueued, or the Controls of Kokkos Kernels
/// 3.x (which are not looked at: there is no vendor library to choose). Throws the same.
template <class First, template <class...> class Sparse, class... P, class X, class Y,
          std::enable_if_t<Impl::is_kokkos_sparse_v<Sparse<P...>> &&
                               (Kokkos::is_execution_space<First>::value || Impl::IsControls<First>::value),
                           int> = 0>
void spmv(const First& first, const char mode[], double alpha, const Sparse<P...>& A, const X& x, double beta,
          const Y& y) {
  if constexpr (Impl::IsControls<First>::value) {
    Tessera::spmv(mode, alpha, A, x, beta, y);
  } else {
    Impl::kokkos_sparse_once(first, Impl::parse_letter(mode), alpha, A, x, beta, y);
  }
}

/// Through plans that the handle makes at first use, which waits, and keeps; later calls are asynchronous on `space`.
/// @throw StalePlan  A is not the handle's matrix any more: SpmvHandle::apply
/// @throw InvalidArgument (mode, null pointer or handle, overlap), DimensionMismatch, NotSupported, OutOfMemory,
///        DeviceError
template <class Exec, class HandleMatrix, class Matrix, class X, class Y,
          std::enable_if_t<Kokkos::is_execution_space<Exec>::value, int> = 0>
void spmv(const Exec& space, SpmvHandle<HandleMatrix>* handle, const char mode[], double alpha, const Matrix& A,
          const X& x, double beta, const Y& y) {
  static_assert(std::is_same_v<HandleMatrix, Matrix>, "Tessera::spmv: the handle was declared for another matrix type");
  static_assert(std::is_same_v<Exec, typename SpmvHandle<Matrix>::execution_space>,
                "Tessera::spmv: the execution space must be the matrix' own");
  Impl::require<InvalidArgument>(handle != nullptr, [] { return std::string("spmv: the handle is a null pointer"); });
  handle->apply(space, Impl::parse_letter(mode), alpha, A, x, beta, y);
}
/// The same in the default instance of the matrix's execution space; throws the same.
template <class HandleMatrix, class Matrix, class X, class Y>
void spmv(SpmvHandle<HandleMatrix>* handle, const char mode[], double alpha, const Matrix& A, const X& x, double beta,
          const Y& y) {
  Tessera::spmv(typename SpmvHandle<HandleMatrix>::execution_space(), handle, mode, alpha, A, x, beta, y);
}

/// C := alpha op(A) B + beta C once: spmv with views of rank 2, which waits and throws as that.
template <template <class...> class Sparse, class... P, class B, class C,
          std::enable_if_t<Impl::is_kokkos_sparse_v<Sparse<P...>>, int> = 0>
void spmm(const char mode[], double alpha, const Sparse<P...>& A, const B& b, double beta, const C& c) {
  static_assert(Compat::view_rank<B> == 2 && Compat::view_rank<C> == 2, "Tessera::spmm: B and C must have rank 2");
  Tessera::spmv(mode, alpha, A, b, beta, c);
}
/// The same in an execution space instance; throws the same.
template <class Exec, template <class...> class Sparse, class... P, class B, class C,
          std::enable_if_t<Impl::is_kokkos_sparse_v<Sparse<P...>> && Kokkos::is_execution_space<Exec>::value, int> = 0>
void spmm(const Exec& space, const char mode[], double alpha, const Sparse<P...>& A, const B& b, double beta,
          const C& c) {
  static_assert(Compat::view_rank<B> == 2 && Compat::view_rank<C> == 2, "Tessera::spmm: B and C must have rank 2");
  Tessera::spmv(space, mode, alpha, A, b, beta, c);
}
/// Through plans that the handle keeps: spmv(space, handle, ...) with views of rank 2; waits and throws as that.
template <class Exec, class HandleMatrix, class Matrix, class B, class C,
          std::enable_if_t<Kokkos::is_execution_space<Exec>::value, int> = 0>
void spmm(const Exec& space, SpmvHandle<HandleMatrix>* handle, const char mode[], double alpha, const Matrix& A,
          const B& b, double beta, const C& c) {
  static_assert(Compat::view_rank<B> == 2 && Compat::view_rank<C> == 2, "Tessera::spmm: B and C must have rank 2");
  Tessera::spmv(space, handle, mode, alpha, A, b, beta, c);
}
/// The same in the default instance of the matrix's execution space; throws the same.
template <class HandleMatrix, class Matrix, class B, class C>
void spmm(SpmvHandle<HandleMatrix>* handle, const char mode[], double alpha, const Matrix& A, const B& b, double beta,
          const C& c) {
  Tessera::spmm(typename SpmvHandle<HandleMatrix>::execution_space(), handle, mode, alpha, A, b, beta, c);
}

}  // namespace Tessera

#endif
