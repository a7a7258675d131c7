// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_IMPL_SPMV_VECTORS_HPP
#define TESSERA_IMPL_SPMV_VECTORS_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "backends/reference/Tessera_Reference.hpp"

/// \file
/// What apply requires of its vectors: at compile time one message with all requirements, at run time exceptions with
/// every extent. And the two forms in which kernels get them, whatever Views they came from: a kernel is compiled once
/// a pair of element types for consecutive elements and once for strides, not once a layout and memory trait.

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

/// Whether a vector has elements of other vectors between its own.
template <class V>
bool strided(const V& v) {
  return v.extent(0) > 1 && v.stride(0) != 1;
}

template <class Csr, class X, class Y>
void check_extents(const Csr& A, const X& x, const Y& y) {
  const auto rows = static_cast<std::size_t>(A.rows()), cols = static_cast<std::size_t>(A.cols());
  std::size_t x_columns = 1, y_columns = 1;
  if constexpr (Compat::view_rank<X> == 2) x_columns = x.extent(1), y_columns = y.extent(1);
  require<DimensionMismatch>(x.extent(0) == cols && y.extent(0) == rows && x_columns == y_columns, [&] {
    return "spmv: A is " + std::to_string(rows) + " x " + std::to_string(cols) + ", x is " +
           std::to_string(x.extent(0)) + " x " + std::to_string(x_columns) + ", y is " + std::to_string(y.extent(0)) +
           " x " + std::to_string(y_columns);
  });
  const auto begin_x = reinterpret_cast<std::uintptr_t>(x.data()), begin_y = reinterpret_cast<std::uintptr_t>(y.data());
  const auto end_x = begin_x + x.span() * sizeof(typename X::value_type);
  const auto end_y = begin_y + y.span() * sizeof(typename Y::value_type);
  // Interleaved columns of one row-major matrix share a range without sharing an element; equal starts always clash.
  const bool separate = end_x <= begin_y || end_y <= begin_x || (begin_x != begin_y && strided(x) && strided(y));
  require<InvalidArgument>(separate || x.span() == 0 || y.span() == 0,
                           [] { return std::string("spmv: x and y must not overlap"); });
}

/// Whether the kernels of the backends take these vectors.
template <class X, class Y>
bool fits_backend(Precision precision) {
  using XT = typename X::non_const_value_type;
  using YT = typename Y::non_const_value_type;
  if (precision == Precision::FP64 || precision == Precision::FP32) {
    return ScalarTraits<XT>::precision == precision && std::is_same_v<XT, YT>;
  }
  return ScalarTraits<XT>::precision == precision &&
         (std::is_same_v<YT, float> || ScalarTraits<YT>::precision == precision);
}

template <class X, class Y>
void check_backend_types(const char* algorithm, Precision precision) {
  require<NotSupported>(fits_backend<X, Y>(precision), [&] {
    const bool wide = precision == Precision::FP64 || precision == Precision::FP32;
    const std::string operand = precision == Precision::FP64   ? "double"
                                : precision == Precision::FP32 ? "float"
                                : precision == Precision::FP16 ? "half_t"
                                                               : "bhalf_t";
    return "spmv[" + std::string(algorithm) + "] in " + to_string(precision) + " takes x of " + operand + " and y of " +
           (wide ? operand : "float or " + operand) + ", not x of " +
           to_string(ScalarTraits<typename X::non_const_value_type>::element) + " and y of " +
           to_string(ScalarTraits<typename Y::non_const_value_type>::element) +
           "; SpmvAlgorithm::Csr takes every combination";
  });
}

inline void require_workspace(const Workspace& w, std::size_t need) {
  if (w.bytes == 0 && w.data == nullptr) return;
  if (w.bytes < need) throw WorkspaceTooSmall(need, w.bytes);
  require<InvalidArgument>(w.data != nullptr && reinterpret_cast<std::size_t>(w.data) % 16 == 0,
                           [] { return std::string("the workspace must be aligned to 16 bytes and not null"); });
}

/// Column j of a rank-2 View, or a rank-1 View, as a View of one of two types: with consecutive elements or with a
/// stride.
template <bool Consecutive, class MemorySpace, class V>
auto vector_of(const V& v, std::size_t j) {
  using Element = typename V::value_type;
  using Layout = std::conditional_t<Consecutive, Kokkos::LayoutLeft, Kokkos::LayoutStride>;
  using Vector = Kokkos::View<Element*, Layout, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Element* data = v.data();
  if constexpr (Compat::view_rank<V> == 2) data += j * static_cast<std::size_t>(v.stride(1));
  if constexpr (Consecutive) {
    return Vector(data, v.extent(0));
  } else {
    return Vector(data, Kokkos::LayoutStride(v.extent(0), static_cast<std::size_t>(v.stride(0))));
  }
}

/// Backend::Reference: plain loops on the host.
template <class Exec, class Csr, class X, class Y>
void reference_apply(const Exec& space, const Csr& A, double alpha, const X& x, double beta, const Y& y) {
  if constexpr (Compat::is_host_v<Exec>) {
    Compat::fence(space, "Tessera::spmv[reference]");
    struct Strided {
      typename Y::non_const_value_type* data;
      std::size_t stride;
      typename Y::non_const_value_type& operator[](std::int64_t i) const { return data[i * stride]; }
    };
    struct ConstStrided {
      const typename X::non_const_value_type* data;
      std::size_t stride;
      const typename X::non_const_value_type& operator[](std::int64_t i) const { return data[i * stride]; }
    };
    Reference::spmv(A.rows(), A.row_map().data(), A.entries().data(), A.values().data(), alpha,
                    ConstStrided{x.data(), static_cast<std::size_t>(x.stride(0))}, beta,
                    Strided{y.data(), static_cast<std::size_t>(y.stride(0))});
  } else {
    throw NotSupported("Backend::Reference runs on host execution spaces; mirror the matrix first");
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
