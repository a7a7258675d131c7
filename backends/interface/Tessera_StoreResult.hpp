// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_STORE_RESULT_HPP
#define TESSERA_INTERFACE_STORE_RESULT_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// How a product ends: y := alpha sum + beta y. One text, which the reference alone does not use.

namespace Tessera {

/// alpha sum + beta old, in the type of the sum.
template <class Sum, class Old>
TESSERA_INLINED_FUNCTION Sum scaled_sum(Sum alpha, Sum sum, Sum beta, const Old& old) {
  return alpha * sum + beta * static_cast<Sum>(old);
}

/// *y := alpha sum + beta *y, rounded once to the type y has; beta == 0 does not read *y.
template <class Y, class Sum>
TESSERA_INLINED_FUNCTION void store_scaled(Y* y, Sum alpha, Sum sum, Sum beta) {
  *y = static_cast<Y>(beta == Sum(0) ? alpha * sum : scaled_sum(alpha, sum, beta, *y));
}

/// y[at] := alpha sum + beta y[at] in the type y has. Args: y, y_type, alpha, beta.
/// Value: the operands' type, which a 16-bit y shares.
template <class Value, class Args, class Sum>
TESSERA_FUNCTION void store_result(const Args& args, std::int64_t at, Sum sum) {
  const Sum alpha = static_cast<Sum>(args.alpha), beta = static_cast<Sum>(args.beta);
  if constexpr (sizeof(Sum) == 8) {
    store_scaled(static_cast<double*>(args.y) + at, alpha, sum, beta);
  } else if (sizeof(Value) == 4 || args.y_type == ElementType::Float) {
    store_scaled(static_cast<float*>(args.y) + at, alpha, sum, beta);
  } else {
    store_scaled(static_cast<Value*>(args.y) + at, alpha, sum, beta);
  }
}

}  // namespace Tessera

#endif
