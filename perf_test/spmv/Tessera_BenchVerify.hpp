// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_VERIFY_HPP
#define TESSERA_BENCH_VERIFY_HPP

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Types.hpp"
#include "backends/reference/Tessera_Reference.hpp"

namespace Tessera {
namespace Bench {

/// How far a result is from the reference, in units of the bound; above 1 is wrong.
struct Verdict {
  double error_over_bound = 0;
  std::string fault;  ///< the worst row, if it is wrong
  bool verified() const { return fault.empty() && error_over_bound <= 1; }
};

/// The right answer for one matrix in one precision: long double sums over the very operands the kernels get.
/// @tparam S  of the matrix and x   @tparam Y  of y
template <class S, class Y>
class SpmvVerifier {
 public:
  static constexpr bool narrow_y = sizeof(Y) == 2;

  template <class RowMap>
  SpmvVerifier(std::int64_t rows, const RowMap& row_map, const std::vector<int>& entries, const std::vector<S>& values,
               double alpha, const std::vector<S>& x, double beta, const std::vector<Y>& y)
      : expected_(static_cast<std::size_t>(rows)), magnitude_(expected_.size()), length_(expected_.size()) {
    for (std::int64_t i = 0; i < rows; ++i) {
      expected_[i] = static_cast<double>(y[i]);
      length_[i] = static_cast<double>(row_map[i + 1] - row_map[i]);
    }
    // Matrix units align products of subnormal FP16 operands as if they were the smallest normal number.
    const double operand_floor = std::is_same_v<S, half_t> ? std::ldexp(1.0, -14) : 0;
    Reference::spmv(rows, row_map, entries, values, alpha, x, beta, expected_, magnitude_.data(), operand_floor);
  }

  Verdict check(const std::vector<Y>& y) const {
    Verdict verdict;
    if (y.size() != expected_.size()) {
      verdict.fault = std::to_string(y.size()) + " values instead of " + std::to_string(expected_.size());
      return verdict;
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double ratio = row_error(static_cast<double>(y[i]), i);
      if (ratio > verdict.error_over_bound) {
        verdict.error_over_bound = ratio;
        if (ratio > 1) {
          char text[160];
          std::snprintf(text, sizeof(text), "row %zu is %.17g, the reference is %.17g +- %.2g", i,
                        static_cast<double>(y[i]), expected_[i], bound(i));
          verdict.fault = text;
        }
      }
    }
    return verdict;
  }

 private:
  using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;
  static constexpr double unit = std::numeric_limits<Sum>::epsilon() / 2;

  double bound(std::size_t i) const {
    // Unit roundoff of a 16-bit y, and its rounding error below its normal range.
    const double v = !narrow_y ? 0 : std::is_same_v<Y, half_t> ? std::ldexp(1.0, -11) : std::ldexp(1.0, -8);
    const double store = std::is_same_v<Y, half_t> ? std::ldexp(1.0, -25) : 0;
    const double tiny = static_cast<double>(std::numeric_limits<Sum>::denorm_min());
    return Reference::spmv_bound(length_[i], unit, magnitude_[i], v, expected_[i], tiny) + store;
  }

  double row_error(double y, std::size_t i) const {
    constexpr double wrong = std::numeric_limits<double>::infinity();
    // What the exact result becomes in the type of y: infinite where it overflows, or where an operand was.
    const double stored = static_cast<double>(static_cast<Y>(expected_[i]));
    if (std::isnan(stored)) return std::isnan(y) ? 0 : wrong;
    if (std::isinf(stored)) return y == stored ? 0 : wrong;
    if (!std::isfinite(y)) return wrong;
    const double error = std::fabs(y - expected_[i]);
    return error == 0 ? 0 : error / bound(i);
  }

  std::vector<double> expected_, magnitude_, length_;
};

}  // namespace Bench
}  // namespace Tessera

#endif
