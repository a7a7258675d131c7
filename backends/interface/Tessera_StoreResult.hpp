// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_STORE_RESULT_HPP
#define TESSERA_INTERFACE_STORE_RESULT_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// How a product ends: y := alpha sum + beta y.

namespace Tessera {

/// alpha sum + beta old(), in the type of the sum. beta == 0 does not call old: what y holds is then not read.
template <class Sum, class Old>
TESSERA_FUNCTION Sum scaled_sum(Sum alpha, Sum sum, Sum beta, Old&& old) {
  return beta == Sum(0) ? alpha * sum : alpha * sum + beta * old();
}

/// y[at] := alpha sum + beta y[at] in the type y has. Args: y, y_type, alpha, beta.
/// Value: the operands' type, which a 16-bit y shares.
template <class Value, class Args, class Sum>
TESSERA_FUNCTION void store_result(const Args& args, std::int64_t at, Sum sum) {
  const auto store = [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    y += at;
    *y = Y(scaled_sum(static_cast<Sum>(args.alpha), sum, static_cast<Sum>(args.beta),
                      [y] { return static_cast<Sum>(*y); }));
  };
  if constexpr (sizeof(Sum) == 8) {
    store(static_cast<double*>(args.y));
  } else if (sizeof(Value) == 4 || args.y_type == ElementType::Float) {
    store(static_cast<float*>(args.y));
  } else {
    store(static_cast<Value*>(args.y));
  }
}

}  // namespace Tessera

#endif
