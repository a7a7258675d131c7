// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_CHECKS_HPP
#define TESSERA_SPMM_SPMM_CHECKS_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/Tessera_DenseOperand.hpp"

/// \file
/// What C := alpha op(A) B + beta C requires of B and C: one message at compile time, exceptions with every extent at
/// run time.

namespace Tessera {
namespace Impl {

template <class Csr, class B, class C>
constexpr void check_dense() {
  static_assert(Compat::is_view_v<B> && Compat::is_view_v<C>, "Tessera::spmm: B and C must be Kokkos Views");
  static_assert(Compat::view_rank<B> == 2 && Compat::view_rank<C> == 2, "Tessera::spmm: B and C must have rank 2");
  static_assert(ScalarTraits<typename B::non_const_value_type>::supported &&
                    ScalarTraits<typename C::non_const_value_type>::supported,
                "Tessera::spmm: B and C must hold double, float, Tessera::half_t or Tessera::bhalf_t");
  static_assert(!std::is_const_v<typename C::value_type>,
                "Tessera::spmm: C is written, its elements must not be const");
  static_assert(Kokkos::SpaceAccessibility<typename Csr::execution_space, typename B::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<typename Csr::execution_space, typename C::memory_space>::accessible,
                "Tessera::spmm: B and C must be accessible from the matrix's execution space");
}

/// @throw DimensionMismatch, InvalidArgument
template <class Csr, class T, class U>
void check_dense_extents(const Csr& A, Op op, const Dense<T>& b, const Dense<U>& c) {
  const auto rows = static_cast<std::int64_t>(op == Op::NoTrans ? A.rows() : A.cols());
  const auto cols = static_cast<std::int64_t>(op == Op::NoTrans ? A.cols() : A.rows());
  require<DimensionMismatch>(b.rows == cols && c.rows == rows && b.columns == c.columns, [&] {
    const auto size = [](std::int64_t m, std::int64_t n) { return std::to_string(m) + " x " + std::to_string(n); };
    return "spmm: op(A) is " + size(rows, cols) + ", B is " + size(b.rows, b.columns) + ", C is " +
           size(c.rows, c.columns);
  });
  require_memory("spmm", "B", b.data, span_of(b) != 0);
  require_memory("spmm", "C", c.data, span_of(c) != 0);
  require<InvalidArgument>(!overlap(b, c), [] { return std::string("spmm: B and C must not overlap"); });
}

/// @throw NotSupported
template <class BT, class CT>
void check_dense_types(const char* algorithm, Precision precision) {
  check_backend_types<BT, CT>("spmm", algorithm, precision, "B", "C",
                              "SpmmAlgorithm::GeSpmm in the matrix's own precision");
}

}  // namespace Impl
}  // namespace Tessera

#endif
