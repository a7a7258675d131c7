// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchVerify.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "backends/reference/Tessera_Reference.hpp"
#include "driver/Tessera_BenchOperands.hpp"

namespace Tessera {
namespace Bench {

void SpmvVerifier::set(const std::vector<std::int64_t>& row_map, const std::vector<int>& entries,
                       const std::vector<double>& values, double alpha, const std::vector<double>& x, double beta,
                       const std::vector<double>& y, ElementType operands, ElementType result) {
  operands_ = operands;
  result_ = result;
  expected_ = y;
  magnitude_.assign(y.size(), 0);
  length_.resize(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) length_[i] = static_cast<double>(row_map[i + 1] - row_map[i]);
  // Matrix units align products of subnormal FP16 operands as if they were the smallest normal number.
  const double operand_floor = operands == ElementType::Half ? std::ldexp(1.0, -14) : 0;
  Reference::spmv(static_cast<std::int64_t>(y.size()), row_map, entries, values, alpha, x, beta, expected_,
                  magnitude_.data(), operand_floor);
}

Verdict SpmvVerifier::check(const std::vector<double>& y) const {
  Verdict verdict;
  if (y.size() != expected_.size()) {
    verdict.fault = std::to_string(y.size()) + " values instead of " + std::to_string(expected_.size());
    return verdict;
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double ratio = row_error(y[i], i);
    if (!(ratio > verdict.error_over_bound)) continue;
    verdict.error_over_bound = ratio;
    if (ratio > 1) {
      char text[160];
      std::snprintf(text, sizeof(text), "row %zu is %.17g, the reference is %.17g +- %.2g", i, y[i], expected_[i],
                    bound(i));
      verdict.fault = text;
    }
  }
  return verdict;
}

double SpmvVerifier::bound(std::size_t row) const {
  const bool wide = operands_ == ElementType::Double;
  const double unit =
      (wide ? std::numeric_limits<double>::epsilon() : double{std::numeric_limits<float>::epsilon()}) / 2;
  const double tiny =
      wide ? std::numeric_limits<double>::denorm_min() : double{std::numeric_limits<float>::denorm_min()};
  // Unit roundoff of a 16-bit y, and its rounding error below its normal range.
  const bool half = result_ == ElementType::Half;
  const double v = bytes_of(result_) > 2 ? 0 : std::ldexp(1.0, half ? -11 : -8);
  const double store = half ? std::ldexp(1.0, -25) : 0;
  return Reference::spmv_bound(length_[row], unit, magnitude_[row], v, expected_[row], tiny) + store;
}

double SpmvVerifier::row_error(double y, std::size_t row) const {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  // What the exact result becomes in the type of y: infinite where it overflows, or where an operand was.
  const double stored = rounded(expected_[row], result_);
  if (std::isnan(stored)) return std::isnan(y) ? 0 : wrong;
  if (std::isinf(stored)) return y == stored ? 0 : wrong;
  if (!std::isfinite(y)) return wrong;
  const double error = std::fabs(y - expected_[row]);
  return error == 0 ? 0 : error / bound(row);
}

}  // namespace Bench
}  // namespace Tessera
