// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchVerifySpmm.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

#include "Tessera_Compat.hpp"
#include "driver/Tessera_BenchUniform.hpp"

namespace Tessera {
namespace Bench {
namespace {

using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;

struct FillDense {
  DenseElements V;
  std::uint64_t seed;
  bool poisoned;
  double poison;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t idx) const {
    std::int64_t i = 0, j = 0;
    V.place(idx, i, j);
    V.set(i, j, poisoned ? poison : uniform_value(seed, i, j));
  }
};

/// See check_spmm().
struct SpmmCheck {
  using Reducer = Kokkos::MaxLoc<double, std::int64_t>;
  struct Element {
    double actual, expected, bound;
  };

  const void* row_map;
  bool wide;
  const int* entries;
  DenseElements values, B, C, first;
  double alpha, beta;
  std::uint64_t seed;
  SpmmRounding rounding;

  KOKKOS_INLINE_FUNCTION static double magnitude_of(double v) { return v < 0 ? -v : v; }
  KOKKOS_INLINE_FUNCTION double raised(double v) const {
    const double m = magnitude_of(v);
    return m < rounding.operand_floor ? rounding.operand_floor : m;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t offset(std::int64_t row) const {
    if (wide) return static_cast<std::int64_t>(static_cast<const WideOffset*>(row_map)[row]);
    return static_cast<const int*>(row_map)[row];
  }

  KOKKOS_INLINE_FUNCTION Element element(std::int64_t idx) const {
    std::int64_t i = 0, j = 0;
    C.place(idx, i, j);
    double sum = 0, size = 0;
    const std::int64_t begin = offset(i), end = offset(i + 1);
    for (std::int64_t k = begin; k < end; ++k) {
      const double a = values.get(0, k), b = B.get(entries[k], j);
      sum += a * b;
      if (a * b != 0) size += raised(a) * raised(b);
    }
    double expected = alpha * sum, magnitude = magnitude_of(alpha) * size;
    if (beta != 0) {
      const double old = beta * (first.data != nullptr ? first.get(i, j) : rounded(uniform_value(seed, i, j), C.type));
      expected += old;
      magnitude += magnitude_of(old);
    }
    const double terms = static_cast<double>(end - begin) + 4;
    return {C.get(i, j), expected,
            (2 * terms * rounding.sums + rounding.operands) * magnitude + rounding.store * magnitude_of(expected) +
                terms * rounding.tiny + rounding.store_tiny};
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t idx, Reducer::value_type& worst) const {
    const Element e = element(idx);
    const double r = error_ratio(e.actual, e.expected, e.bound, C.type);
    if (r > worst.val) {
      worst.val = r;
      worst.loc = idx;
    }
  }
};

struct Explain {
  SpmmCheck check;
  std::int64_t at;
  Kokkos::View<double*, Device> explained;  ///< actual, expected, bound
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t) const {
    const SpmmCheck::Element e = check.element(at);
    explained(0) = e.actual;
    explained(1) = e.expected;
    explained(2) = e.bound;
  }
};

std::string explain(const Exec& space, const SpmmCheck& check, std::int64_t at) {
  const Kokkos::View<double*, Device> explained("Tessera::bench explained", 3);
  Kokkos::parallel_for("Tessera::bench explain", Range(space, 0, 1), Explain{check, at, explained});
  const auto host = Kokkos::create_mirror_view(explained);
  Kokkos::deep_copy(space, host, explained);
  Compat::fence(space, "Tessera::bench explain");
  std::int64_t i = 0, j = 0;
  check.C.place(at, i, j);
  char text[200];
  std::snprintf(text, sizeof(text), "element (%lld, %lld) is %.17g, the reference is %.17g +- %.2g",
                static_cast<long long>(i), static_cast<long long>(j), host(0), host(1), host(2));
  return text;
}

}  // namespace

void fill_dense(const Exec& space, const DenseElements& V, std::uint64_t seed, bool poisoned) {
  Kokkos::parallel_for("Tessera::bench fill", Range(space, 0, V.rows * V.columns),
                       FillDense{V, seed, poisoned, std::numeric_limits<double>::quiet_NaN()});
}

std::vector<double> seeded_dense(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) values.push_back(uniform_value(seed, i, j));
  }
  return values;
}

SpmmRounding SpmmRounding::of(Precision precision, ElementType operand, ElementType result, const std::string& kernel) {
  const bool wide = operand == ElementType::Double, half = result == ElementType::Half;
  const auto epsilon = static_cast<double>(std::numeric_limits<float>::epsilon());
  SpmmRounding r;
  // Nobody says how B is brought to TF32: rounded to nearest (2^-11) or, by the unit itself, cut off (2^-10).
  if (precision == Precision::TF32) r.operands = std::ldexp(1.0, -11) + std::ldexp(1.0, -10) + std::ldexp(1.0, -20);
  if (kernel.find("3xTF32") != std::string::npos) r.operands = 5 * std::ldexp(1.0, -22);  // SplitUnit
  r.sums = ((wide ? std::numeric_limits<double>::epsilon() : epsilon) + std::numeric_limits<double>::epsilon()) / 2;
  r.tiny =
      wide ? std::numeric_limits<double>::denorm_min() : static_cast<double>(std::numeric_limits<float>::denorm_min());
  if (bytes_of(result) == 2) {
    r.store = std::ldexp(1.0, half ? -11 : -8);
    r.store_tiny = half ? std::ldexp(1.0, -25) : 0;
  }
  if (operand == ElementType::Half) r.operand_floor = std::ldexp(1.0, -14);
  return r;
}

Verdict check_spmm(const SpmmOperands& o, const DenseElements& first, std::uint64_t seed,
                   const SpmmRounding& rounding) {
  Verdict verdict;
  const DenseElements C = o.c_elements();
  if (C.rows * C.columns == 0) return verdict;
  const DenseElements values = {o.A.values.data<void>(), o.A.element, 1, o.A.nnz(), 0, 1};
  const SpmmCheck check = {o.A.row_map.data<void>(),
                           o.A.offset_bits == 64,
                           o.A.entries.data<int>(),
                           values,
                           o.b_elements(),
                           C,
                           first,
                           o.alpha,
                           o.beta,
                           seed,
                           rounding};
  SpmmCheck::Reducer::value_type worst;
  worst.val = 0;
  worst.loc = 0;
  Kokkos::parallel_reduce("Tessera::bench check", Range(o.A.space, 0, C.rows * C.columns), check,
                          SpmmCheck::Reducer(worst));
  Compat::fence(o.A.space, "Tessera::bench check");
  verdict.error_over_bound = worst.val > 0 ? worst.val : 0;
  if (verdict.error_over_bound > 1) verdict.fault = explain(o.A.space, check, worst.loc);
  return verdict;
}

}  // namespace Bench
}  // namespace Tessera
