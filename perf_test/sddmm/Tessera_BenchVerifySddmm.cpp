// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cstdio>

#include "Tessera_Compat.hpp"
#include "driver/Tessera_BenchUniform.hpp"
#include "sddmm/Tessera_BenchSddmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace Tessera {
namespace Bench {
namespace {

/// One thread per entry, a plain loop over K in double; nothing is shared with any kernel. See SpmmCheck.
struct SddmmCheck {
  using Reducer = Kokkos::MaxLoc<double, std::int64_t>;
  struct Number {
    double actual, expected, bound;
  };

  const void* row_map;
  bool wide;
  std::int64_t rows;
  const int* entries;
  DenseElements X, Y, P, first;
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
  KOKKOS_INLINE_FUNCTION std::int64_t row_of(std::int64_t entry) const {
    std::int64_t low = 0, high = rows;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (offset(middle) <= entry) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  KOKKOS_INLINE_FUNCTION Number number(std::int64_t e) const {
    const std::int64_t i = row_of(e), j = entries[e];
    double sum = 0, size = 0;
    for (std::int64_t k = 0; k < X.columns; ++k) {
      const double a = X.get(i, k), b = Y.get(j, k);
      sum += a * b;
      if (a * b != 0) size += raised(a) * raised(b);
    }
    double expected = alpha * sum, magnitude = magnitude_of(alpha) * size;
    if (beta != 0) {
      const double old = beta * (first.data != nullptr ? first.get(0, e) : rounded(uniform_value(seed, 0, e), P.type));
      expected += old;
      magnitude += magnitude_of(old);
    }
    const double terms = static_cast<double>(X.columns) + 4;
    return {P.get(0, e), expected,
            (2 * terms * rounding.sums + rounding.operands) * magnitude + rounding.store * magnitude_of(expected) +
                terms * rounding.tiny + rounding.store_tiny};
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t e, Reducer::value_type& worst) const {
    const Number n = number(e);
    const double r = error_ratio(n.actual, n.expected, n.bound, P.type);
    if (r > worst.val) {
      worst.val = r;
      worst.loc = e;
    }
  }
};

struct Explain {
  SddmmCheck check;
  std::int64_t at;
  Kokkos::View<double*, Device> explained;  ///< actual, expected, bound
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t) const {
    const SddmmCheck::Number n = check.number(at);
    explained(0) = n.actual;
    explained(1) = n.expected;
    explained(2) = n.bound;
  }
};

}  // namespace

Verdict check_sddmm(const SddmmOperands& o, const DenseElements& first, std::uint64_t seed, Precision precision,
                    const std::string& kernel) {
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Verdict verdict;
  if (o.S.nnz() == 0) return verdict;
  const SddmmCheck check = {o.S.row_map.data<void>(),
                            o.S.offset_bits == 64,
                            o.S.rows,
                            o.S.entries.data<int>(),
                            o.x_elements(),
                            o.y_elements(),
                            o.p_elements(o.P),
                            first,
                            o.alpha,
                            o.beta,
                            seed,
                            SpmmRounding::of(precision, o.S.element, o.p_type, kernel)};
  SddmmCheck::Reducer::value_type worst;
  worst.val = 0;
  worst.loc = 0;
  Kokkos::parallel_reduce("Tessera::bench check", Range(o.S.space, 0, o.S.nnz()), check, SddmmCheck::Reducer(worst));
  Compat::fence(o.S.space, "Tessera::bench check");
  verdict.error_over_bound = worst.val > 0 ? worst.val : 0;
  if (verdict.error_over_bound <= 1) return verdict;
  const Kokkos::View<double*, Device> explained("Tessera::bench explained", 3);
  Kokkos::parallel_for("Tessera::bench explain", Range(o.S.space, 0, 1), Explain{check, worst.loc, explained});
  const auto host = Kokkos::create_mirror_view(explained);
  Kokkos::deep_copy(o.S.space, host, explained);
  Compat::fence(o.S.space, "Tessera::bench explain");
  char text[160];
  std::snprintf(text, sizeof(text), "entry %lld is %.17g, the reference is %.17g +- %.2g",
                static_cast<long long>(worst.loc), host(0), host(1), host(2));
  verdict.fault = text;
  return verdict;
}

}  // namespace Bench
}  // namespace Tessera
