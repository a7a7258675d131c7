// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ROW_SOFTMAX_HPP
#define TESSERA_ROW_SOFTMAX_HPP

#include <cstdint>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "attention/Tessera_SoftmaxOfRows.hpp"

namespace Tessera {
namespace Impl {

template <class Csr, class First, class... Others>
constexpr void check_row_softmax() {
  static_assert(IsCsrView<Csr>::value, "Tessera::row_softmax: the pattern must be a Tessera::CsrView");
  static_assert(Compat::is_view_v<First> && (Compat::is_view_v<Others> && ...),
                "Tessera::row_softmax: numbers of entries must be Kokkos Views");
  static_assert((Compat::view_rank<First> == 1 || Compat::view_rank<First> == 2) &&
                    ((Compat::view_rank<Others> == Compat::view_rank<First>)&&...),
                "Tessera::row_softmax: numbers of entries must have rank 1, or all rank 2, heads first");
  static_assert(ScalarTraits<typename First::non_const_value_type>::supported &&
                    (ScalarTraits<typename Others::non_const_value_type>::supported && ...),
                "Tessera::row_softmax: numbers must be double, float, Tessera::half_t or Tessera::bhalf_t");
  static_assert(
      Kokkos::SpaceAccessibility<typename Csr::execution_space, typename First::memory_space>::accessible &&
          (Kokkos::SpaceAccessibility<typename Csr::execution_space, typename Others::memory_space>::accessible && ...),
      "Tessera::row_softmax: numbers of entries must be accessible from the pattern's space");
}
template <class V>
std::int64_t vector_heads(const V& v) {
  return Compat::view_rank<V> == 2 ? static_cast<std::int64_t>(v.extent(0)) : 1;
}

}  // namespace Impl

/// Softmax of the rows of a pattern: for the entries e of each row i of A,
///
///     y_e := e^(x_e - L_i),   L_i = log of the sum of e^x over the entries of row i
///
/// The largest x of a row is taken off first, so that x may be of any size. x of -inf gives 0; a row of nothing else
/// gives zeros; NaN and +inf make their row NaN. Attention of graph networks (GAT, AGNN), and the middle of
/// AttentionAlgorithm::Chain.
///
/// @param A  the pattern; its numbers are not read
/// @param x, y  a number per entry in A's order, x(nnz), y(nnz), or of several heads x(h, nnz), y(h, nnz); of any
///        element types, sums double as soon as one is double, else float. y may be x and else must not overlap it
/// @throw DimensionMismatch  other extents  @throw InvalidArgument  null pointer, overlap
///
/// Asynchronous on `space`, one launch, no allocation, no wait. Time O(nnz), bytes nnz (2 x + y) with those of an
/// element. Deterministic, whatever the number of threads.
template <class Exec, class Csr, class X, class Y>
void row_softmax(const Exec& space, const Csr& A, const X& x, const Y& y) {
  Impl::check_row_softmax<Csr, X, Y>();
  static_assert(!std::is_const_v<typename Y::value_type>, "Tessera::row_softmax: y is written, it must not be const");
  using Forward = Impl::SoftmaxForward<Csr, typename X::non_const_value_type, typename Y::value_type>;
  Forward f{Impl::attention_items(A),
            Impl::vector_heads(x),
            Impl::batch_vector_of(typename X::const_type(x)),
            Impl::batch_vector_of(y),
            nullptr,
            {},
            Impl::Shares(),
            16};
  const auto nnz = static_cast<std::int64_t>(A.nnz());
  constexpr const char* name = "row_softmax";
  Impl::require_size(name, "x", f.x, nnz, f.heads, f.heads);
  Impl::require_size(name, "y", f.y, nnz, Impl::vector_heads(y), f.heads);
  if (!Impl::same_vectors(f.x, f.y)) Impl::require_apart(name, "x and y, which are not the same,", f.x, f.y, f.heads);
  Impl::run_softmax("Tessera::row_softmax", space, f);
}

/// Its gradient: dx_e := y_e (dy_e - sum of y dy over the entries of e's row), with y the result of row_softmax.
/// @param dy, dx  as y; of one element type; dx may be dy and else overlaps nothing
/// @throw DimensionMismatch  other extents  @throw InvalidArgument  null pointer, overlap
///
/// Asynchronous on `space`, one launch, no allocation, no wait. Bytes nnz (2 y + 2 dy + dx).
template <class Exec, class Csr, class Y, class DY, class DX>
void row_softmax_backward(const Exec& space, const Csr& A, const Y& y, const DY& dy, const DX& dx) {
  Impl::check_row_softmax<Csr, Y, DY, DX>();
  static_assert(!std::is_const_v<typename DX::value_type>, "Tessera::row_softmax_backward: dx must not be const");
  static_assert(std::is_same_v<typename DY::non_const_value_type, typename DX::value_type>,
                "Tessera::row_softmax_backward: dy and dx must have elements of one type");
  using Backward = Impl::SoftmaxBackward<Csr, typename Y::non_const_value_type, typename DX::value_type>;
  Backward f{Impl::attention_items(A),
             Impl::vector_heads(y),
             Impl::batch_vector_of(typename Y::const_type(y)),
             Impl::batch_vector_of(typename DY::const_type(dy)),
             Impl::batch_vector_of(dx),
             Impl::Shares(),
             16};
  const auto nnz = static_cast<std::int64_t>(A.nnz());
  constexpr const char* name = "row_softmax_backward";
  Impl::require_size(name, "y", f.y, nnz, f.heads, f.heads);
  Impl::require_size(name, "dy", f.d_y, nnz, Impl::vector_heads(dy), f.heads);
  Impl::require_size(name, "dx", f.d_x, nnz, Impl::vector_heads(dx), f.heads);
  Impl::require_apart(name, "dx and y", f.d_x, f.y, f.heads);
  if (!Impl::same_vectors(f.d_y, f.d_x)) {
    Impl::require_apart(name, "dx and dy, which are not the same,", f.d_x, f.d_y, f.heads);
  }
  Impl::run_softmax("Tessera::row_softmax_backward", space, f);
}

}  // namespace Tessera

#endif
