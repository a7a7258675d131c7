// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REFERENCE_REFERENCE_HPP
#define TESSERA_REFERENCE_REFERENCE_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

/// \file
/// Plain loops in a wider type than any kernel: the oracle of tests and benchmarks, and Backend::Reference. Nothing
/// here shares code with the kernels.

namespace Tessera {
namespace Reference {

/// |value|, at least `least`; NaN stays NaN.
inline double raised(double value, double least) {
  const double magnitude = std::fabs(value);
  return magnitude < least ? least : magnitude;
}

/// y := alpha A x + beta y and, for error bounds, magnitude_i := |alpha| (|A| |x|)_i + |beta y_i| (not if null). Sums
/// in long double. beta == 0 does not read y, alpha == 0 does not read x. `operand_floor` counts nonzero operands as at
/// least that large in the magnitude: a matrix unit aligns products by the exponents of their operands, and those of
/// subnormal FP16 numbers say 2^-14 whatever their size (measured on an H200: 6e-6 relative error in a sum of subnormal
/// products, without which FP16 sums keep FP32 accuracy).
template <class RowMap, class Entries, class Values, class X, class Y>
void spmv(std::int64_t rows, const RowMap& row_map, const Entries& entries, const Values& values, double alpha,
          const X& x, double beta, Y&& y, double* magnitude = nullptr, double operand_floor = 0) {
  using Wide = long double;
  for (std::int64_t i = 0; i < rows; ++i) {
    Wide sum = 0, size = 0;
    if (alpha != 0) {
      for (auto k = row_map[i]; k < row_map[i + 1]; ++k) {
        const Wide product =
            static_cast<Wide>(static_cast<double>(values[k])) * static_cast<Wide>(static_cast<double>(x[entries[k]]));
        sum += product;
        if (product != 0) {  // NaN as well
          size += raised(static_cast<double>(values[k]), operand_floor) *
                  raised(static_cast<double>(x[entries[k]]), operand_floor);
        }
      }
    }
    Wide result = static_cast<Wide>(alpha) * sum;
    Wide bound = std::fabs(alpha) * size;
    if (beta != 0) {
      const Wide old = static_cast<Wide>(beta) * static_cast<Wide>(static_cast<double>(y[i]));
      result += old;
      bound += old < 0 ? -old : old;
    }
    y[i] = static_cast<std::remove_reference_t<decltype(y[i])>>(static_cast<double>(result));
    if (magnitude != nullptr) magnitude[i] = static_cast<double>(bound);
  }
}

/// C := alpha A B + beta C with `columns` columns; b(k, j) and c(i, j) give references to elements. As spmv, column by
/// column; magnitude: [row * columns + column], not if null.
template <class RowMap, class Entries, class Values, class B, class C>
void spmm(std::int64_t rows, std::int64_t columns, const RowMap& row_map, const Entries& entries, const Values& values,
          double alpha, const B& b, double beta, const C& c, double* magnitude = nullptr, double operand_floor = 0) {
  using Wide = long double;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      Wide sum = 0, size = 0;
      if (alpha != 0) {
        for (auto k = row_map[i]; k < row_map[i + 1]; ++k) {
          const double left = static_cast<double>(values[k]), right = static_cast<double>(b(entries[k], j));
          const Wide product = static_cast<Wide>(left) * static_cast<Wide>(right);
          sum += product;
          if (product != 0) size += static_cast<Wide>(raised(left, operand_floor)) * raised(right, operand_floor);
        }
      }
      Wide result = static_cast<Wide>(alpha) * sum;
      Wide bound = std::fabs(alpha) * size;
      auto& target = c(i, j);
      if (beta != 0) {
        const Wide old = static_cast<Wide>(beta) * static_cast<Wide>(static_cast<double>(target));
        result += old;
        bound += old < 0 ? -old : old;
      }
      target = static_cast<std::remove_reference_t<decltype(target)>>(static_cast<double>(result));
      if (magnitude != nullptr) magnitude[i * columns + j] = static_cast<double>(bound);
    }
  }
}

/// P := alpha <X_i, Y_j> [* S_ij] + beta P for every entry (i, j) of the pattern; x(i, k) and y(j, k) give elements,
/// p(e) a reference to the number of entry e; scale: S in the order of entries, or null. magnitude_e := |alpha S_ij|
/// <|X_i|, |Y_j|> + |beta P_ij|, not if null. As spmv otherwise; its bound holds with K for the number of entries, and
/// one more where there is a scale.
template <class RowMap, class Entries, class Scale, class X, class Y, class P>
void sddmm(std::int64_t rows, std::int64_t inner, const RowMap& row_map, const Entries& entries, const Scale* scale,
           double alpha, const X& x, const Y& y, double beta, const P& p, double* magnitude = nullptr,
           double operand_floor = 0) {
  using Wide = long double;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (auto e = row_map[i]; e < row_map[i + 1]; ++e) {
      const auto j = entries[e];
      Wide sum = 0, size = 0;
      if (alpha != 0) {
        for (std::int64_t k = 0; k < inner; ++k) {
          const double left = static_cast<double>(x(i, k)), right = static_cast<double>(y(j, k));
          const Wide product = static_cast<Wide>(left) * static_cast<Wide>(right);
          sum += product;
          if (product != 0) size += static_cast<Wide>(raised(left, operand_floor)) * raised(right, operand_floor);
        }
        if (scale != nullptr) {
          const double factor = static_cast<double>(scale[e]);
          sum *= factor;
          size *= std::fabs(factor);
        }
      }
      Wide result = static_cast<Wide>(alpha) * sum;
      Wide bound = std::fabs(alpha) * size;
      auto& target = p(e);
      if (beta != 0) {
        const Wide old = static_cast<Wide>(beta) * static_cast<Wide>(static_cast<double>(target));
        result += old;
        bound += old < 0 ? -old : old;
      }
      target = static_cast<std::remove_reference_t<decltype(target)>>(static_cast<double>(result));
      if (magnitude != nullptr) magnitude[e] = static_cast<double>(bound);
    }
  }
}

/// Largest |y - y_ref| a kernel may show, componentwise: c (k + 4) u (|alpha| (|A||x|)_i + |beta y|_i) + v |y_ref|_i.
/// Derivation: a sum of k rounded products in any order errs by at most gamma_k = k u / (1 - k u) times the sum of the
/// magnitudes; scaling by alpha, the product beta y, their sum and the final store add four roundings; c = 2 covers
/// 1 / (1 - k u) for every k below 1 / (2 u), the padded slots (exact zeros) and second-order terms. u is the unit
/// roundoff of the accumulator, v that of the type of y where it is narrower (one more rounding). Below the normal
/// range a rounding errs by `tiny` at most instead.
inline double spmv_bound(double entries, double u, double magnitude, double v, double reference, double tiny) {
  return 2 * (entries + 4) * u * magnitude + v * std::fabs(reference) + (entries + 4) * tiny;
}

}  // namespace Reference
}  // namespace Tessera

#endif
