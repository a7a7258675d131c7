// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_ACCUMULATOR_HPP
#define TESSERA_CORE_ACCUMULATOR_HPP

#include <type_traits>

#include "Tessera_Compat.hpp"
#include "Tessera_Types.hpp"

/// \file
/// In which type portable kernels add.

namespace Tessera {
namespace Impl {

/// double as soon as one operand is double, else float: float A with double x sums in double.
template <class A, class X, class Y>
using AccumulatorOf =
    std::conditional_t<std::is_same_v<A, double> || std::is_same_v<X, double> || std::is_same_v<Y, double>, double,
                       float>;

/// Value of any supported element as the accumulator type.
template <class Sum, class T>
KOKKOS_INLINE_FUNCTION Sum widen(const T& v) {
  if constexpr (std::is_same_v<T, half_t> || std::is_same_v<T, bhalf_t>) {
    return static_cast<Sum>(static_cast<float>(v));
  } else {
    return static_cast<Sum>(v);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
