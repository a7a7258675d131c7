// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_VECTOR_OPERAND_HPP
#define TESSERA_CORE_VECTOR_OPERAND_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_Pattern.hpp"

/// \file
/// What apply requires of its vectors: at compile time one message with all requirements, at run time exceptions with
/// every extent. And the forms in which engines and kernels get them.

namespace Tessera {
namespace Impl {

template <class Csr, class X, class Y>
constexpr void check_vectors() {
  static_assert(Compat::is_view_v<X> && Compat::is_view_v<Y>, "Tessera::spmv: x and y must be Kokkos Views");
  static_assert(
      (Compat::view_rank<X> == 1 || Compat::view_rank<X> == 2) && Compat::view_rank<X> == Compat::view_rank<Y>,
      "Tessera::spmv: x and y must both have rank 1 or both rank 2");
  static_assert(ScalarTraits<typename X::non_const_value_type>::supported &&
                    ScalarTraits<typename Y::non_const_value_type>::supported,
                "Tessera::spmv: x and y must hold double, float, Tessera::half_t or Tessera::bhalf_t");
  static_assert(!std::is_const_v<typename Y::value_type>,
                "Tessera::spmv: y is written, its elements must not be const");
  static_assert(Kokkos::SpaceAccessibility<typename Csr::execution_space, typename X::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<typename Csr::execution_space, typename Y::memory_space>::accessible,
                "Tessera::spmv: x and y must be accessible from the matrix's execution space");
}

/// Of a View of rank 1 or 2: a matrix whose columns are the vectors.
template <class V>
Dense<typename V::value_type> matrix_of(const V& v) {
  if constexpr (Compat::view_rank<V> == 2) {
    return dense_of(v);
  } else {
    const auto rows = static_cast<std::int64_t>(v.extent(0));
    return {v.data(), rows, 1, rows > 1 ? static_cast<std::int64_t>(v.stride(0)) : 1, 1};
  }
}

/// @throw DimensionMismatch, InvalidArgument
template <class Matrix, class X, class Y>
void check_extents(const Matrix& A, Op op, const X& x, const Y& y) {
  const auto rows = static_cast<std::size_t>(op == Op::NoTrans ? A.rows() : A.cols());
  const auto cols = static_cast<std::size_t>(op == Op::NoTrans ? A.cols() : A.rows());
  std::size_t x_columns = 1, y_columns = 1;
  if constexpr (Compat::view_rank<X> == 2) x_columns = x.extent(1), y_columns = y.extent(1);
  require<DimensionMismatch>(x.extent(0) == cols && y.extent(0) == rows && x_columns == y_columns, [&] {
    return "spmv: op(A) is " + std::to_string(rows) + " x " + std::to_string(cols) + ", x is " +
           std::to_string(x.extent(0)) + " x " + std::to_string(x_columns) + ", y is " + std::to_string(y.extent(0)) +
           " x " + std::to_string(y_columns);
  });
  require_memory("spmv", "x", x.data(), x.span() != 0);
  require_memory("spmv", "y", y.data(), y.span() != 0);
  require<InvalidArgument>(!overlap(matrix_of(x), matrix_of(y)),
                           [] { return std::string("spmv: x and y must not overlap"); });
}

inline void require_workspace(const Workspace& w, std::size_t need) {
  if (w.bytes == 0 && w.data == nullptr) return;
  if (w.bytes < need) throw WorkspaceTooSmall(need, w.bytes);
  require<InvalidArgument>(w.data != nullptr && reinterpret_cast<std::size_t>(w.data) % 16 == 0,
                           [] { return std::string("the workspace must be aligned to 16 bytes and not null"); });
}

/// One or several vectors as engines get them, whatever Views they came from.
template <class T>
struct Vectors {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 1;
  std::int64_t stride = 1, column_stride = 0;

  bool strided() const { return stride != 1; }
  T* column(std::int64_t j) const { return data + j * column_stride; }
};
template <class V>
Vectors<typename V::value_type> vectors_of(const V& v) {
  Vectors<typename V::value_type> result;
  result.data = v.data();
  result.rows = static_cast<std::int64_t>(v.extent(0));
  if (result.rows > 1) result.stride = static_cast<std::int64_t>(v.stride(0));
  if constexpr (Compat::view_rank<V> == 2) {
    result.columns = static_cast<std::int64_t>(v.extent(1));
    result.column_stride = static_cast<std::int64_t>(v.stride(1));
  }
  return result;
}

template <class T>
Dense<T> dense_of(const Vectors<T>& v) {
  return {v.data, v.rows, v.columns, v.stride, v.column_stride};
}

template <class T, bool Consecutive>
Vectors<T> vectors_of(const Elements<T, Consecutive>& v) {
  return {v.data(), v.size(), 1, v.stride(), 0};
}

/// product(x, y) with the Elements of each pair of columns: a kernel is compiled once per pair of element types for
/// consecutive elements and once for strides, not once per layout and memory trait.
template <class XT, class YT, class Product>
void for_each_column(const Vectors<const XT>& x, const Vectors<YT>& y, const Product& product) {
  for (std::int64_t j = 0; j < x.columns; ++j) {
    if (x.strided() || y.strided()) {
      product(Elements<const XT, false>(x.column(j), x.rows, x.stride),
              Elements<YT, false>(y.column(j), y.rows, y.stride));
    } else {
      product(Elements<const XT, true>(x.column(j), x.rows), Elements<YT, true>(y.column(j), y.rows));
    }
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
