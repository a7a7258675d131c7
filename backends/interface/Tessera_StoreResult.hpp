// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_STORE_RESULT_HPP
#define TESSERA_INTERFACE_STORE_RESULT_HPP

#include <cstdint>

#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_SpmvArgs.hpp"

namespace Tessera {

/// y[at] := alpha sum + beta y[at] in the type y has; beta == 0 does not read y. Args: y, y_type, alpha, beta.
/// Value: the operands' type, which a 16-bit y shares.
template <class Value, class Args, class Sum>
TESSERA_FUNCTION void store_result(const Args& args, std::int64_t at, Sum sum) {
  const Sum alpha = static_cast<Sum>(args.alpha), beta = static_cast<Sum>(args.beta);
  if constexpr (sizeof(Sum) == 8) {
    double* y = static_cast<double*>(args.y) + at;
    *y = beta == Sum(0) ? alpha * sum : alpha * sum + beta * *y;
  } else if (sizeof(Value) == 4 || args.y_type == ElementType::Float) {
    float* y = static_cast<float*>(args.y) + at;
    *y = beta == Sum(0) ? alpha * sum : alpha * sum + beta * *y;
  } else {
    Value* y = static_cast<Value*>(args.y) + at;
    const Sum result = beta == Sum(0) ? alpha * sum : alpha * sum + beta * static_cast<Sum>(*y);
    *y = Value(result);
  }
}

}  // namespace Tessera

#endif
