// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_VERIFY_SPMM_HPP
#define TESSERA_BENCH_VERIFY_SPMM_HPP

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

#include "driver/Tessera_BaselineTypes.hpp"
#include "driver/Tessera_BenchUniform.hpp"
#include "spmv/Tessera_BenchVerify.hpp"

/// \file
/// Dense operands and the check of C, where the operands are: a case of 2 M rows and 256 columns has half a billion
/// elements. One thread an element of C, a plain loop over the row of A in double; nothing is shared with any kernel.

namespace Tessera {
namespace Bench {

/// Which operand a seed is for.
enum class DenseRole : std::uint64_t { B = 0x42, C = 0x43 };
inline std::uint64_t dense_seed(std::uint64_t seed, DenseRole role) {
  return seed ^ (static_cast<std::uint64_t>(role) << 56);
}

/// Place of the idx-th element in the order of memory, so that neighbouring threads touch neighbours.
template <class Layout>
KOKKOS_INLINE_FUNCTION void dense_place(std::int64_t idx, std::int64_t rows, std::int64_t columns, std::int64_t& row,
                                        std::int64_t& col) {
  constexpr bool right = std::is_same_v<Layout, Kokkos::LayoutRight>;
  const std::int64_t length = right ? columns : rows;
  const std::int64_t line = idx / length, at = idx - line * length;
  row = right ? line : at;
  col = right ? at : line;
}

/// V(i, j) := uniform_value(seed, i, j), or `poison` everywhere.
template <class View>
struct FillDense {
  using T = typename View::non_const_value_type;
  View V;
  std::uint64_t seed;
  bool poisoned;
  double poison;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t idx) const {
    std::int64_t i = 0, j = 0;
    dense_place<typename View::array_layout>(idx, static_cast<std::int64_t>(V.extent(0)),
                                             static_cast<std::int64_t>(V.extent(1)), i, j);
    V(i, j) = static_cast<T>(poisoned ? poison : uniform_value(seed, i, j));
  }
};

template <class Exec, class View>
void fill_dense(const Exec& space, const View& V, std::uint64_t seed, bool poisoned = false) {
  const auto size = static_cast<std::int64_t>(V.extent(0)) * static_cast<std::int64_t>(V.extent(1));
  Kokkos::parallel_for("Tessera::bench fill",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, size),
                       FillDense<View>{V, seed, poisoned, std::numeric_limits<double>::quiet_NaN()});
}

/// Unit roundoffs a result may show: of the rounding of operands inside a product, of the sums, of C.
struct SpmmRounding {
  double operands = 0;       ///< relative error of a product by rounding its operands
  double sums = 0;           ///< the kernel's and, as it sums in double, the reference's
  double tiny = 0;           ///< error of one rounding below the normal range of the sums
  double store = 0;          ///< of C where it is narrower than the sums
  double store_tiny = 0;     ///< the same below its normal range
  double operand_floor = 0;  ///< see Reference::spmv

  /// @tparam S  of A and B as stored   @tparam Y  of C   @param kernel  as the record names it
  template <class S, class Y>
  static SpmmRounding of(Precision precision, const std::string& kernel) {
    using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;
    SpmmRounding r;
    // Nobody says how B is brought to TF32: rounded to nearest (2^-11) or, by the unit itself, cut off (2^-10).
    if (precision == Precision::TF32) r.operands = std::ldexp(1.0, -11) + std::ldexp(1.0, -10) + std::ldexp(1.0, -20);
    if (kernel.find("3xTF32") != std::string::npos) r.operands = 5 * std::ldexp(1.0, -22);  // SplitUnit
    r.sums = (static_cast<double>(std::numeric_limits<Sum>::epsilon()) + std::numeric_limits<double>::epsilon()) / 2;
    r.tiny = static_cast<double>(std::numeric_limits<Sum>::denorm_min());
    if (sizeof(Y) == 2) {
      r.store = std::ldexp(1.0, std::is_same_v<Y, half_t> ? -11 : -8);
      r.store_tiny = std::is_same_v<Y, half_t> ? std::ldexp(1.0, -25) : 0;
    }
    if (std::is_same_v<S, half_t>) r.operand_floor = std::ldexp(1.0, -14);
    return r;
  }
};

/// The error of every element of C over its bound. With k entries in row i, magnitude m = |alpha| (|A||B|)_ij +
/// |beta C0_ij| and u the unit roundoffs of the kernel's sums and of double together (Reference::spmv_bound has the
/// derivation):
///
///     |C - ref| <= (2 (k + 4) u + operands) m + store |ref| + (k + 4) tiny + store_tiny
template <class Operands>
struct SpmmCheck {
  using Y = typename Operands::result_type;
  using Exec = typename Operands::execution_space;
  using Reducer = Kokkos::MaxLoc<double, std::int64_t>;
  struct Element {
    double actual, expected, bound;
  };

  Kokkos::View<const typename Operands::offset_type*, typename Operands::device_type> row_map;
  Kokkos::View<const int*, typename Operands::device_type> entries;
  Kokkos::View<const typename Operands::value_type*, typename Operands::device_type> values;
  typename Operands::b_type B;
  typename Operands::c_type C;
  double alpha, beta;
  std::uint64_t c_seed;
  SpmmRounding rounding;
  std::int64_t rows, columns;
  Kokkos::View<double*, typename Operands::device_type> explained;  ///< actual, expected, bound of one element
  std::int64_t explain = 0;

  SpmmCheck(const Operands& o, std::uint64_t seed, const SpmmRounding& r)
      : row_map(o.row_map),
        entries(o.entries),
        values(o.values),
        B(o.B),
        C(o.C),
        alpha(o.alpha),
        beta(o.beta),
        c_seed(seed),
        rounding(r),
        rows(o.rows),
        columns(o.columns) {}

  KOKKOS_INLINE_FUNCTION static double magnitude_of(double v) { return v < 0 ? -v : v; }
  KOKKOS_INLINE_FUNCTION static bool finite(double v) { return v - v == 0; }
  KOKKOS_INLINE_FUNCTION double raised(double v) const {
    const double m = magnitude_of(v);
    return m < rounding.operand_floor ? rounding.operand_floor : m;
  }

  KOKKOS_INLINE_FUNCTION Element element(std::int64_t idx) const {
    std::int64_t i = 0, j = 0;
    dense_place<typename Operands::layout>(idx, rows, columns, i, j);
    double sum = 0, size = 0;
    const auto end = row_map(i + 1);
    for (auto k = row_map(i); k < end; ++k) {
      const auto a = static_cast<double>(values(k)), b = static_cast<double>(B(entries(k), j));
      sum += a * b;
      if (a * b != 0) size += raised(a) * raised(b);
    }
    double expected = alpha * sum, magnitude = magnitude_of(alpha) * size;
    if (beta != 0) {
      const double old = beta * static_cast<double>(static_cast<Y>(uniform_value(c_seed, i, j)));
      expected += old;
      magnitude += magnitude_of(old);
    }
    const double terms = static_cast<double>(end - row_map(i)) + 4;
    return {static_cast<double>(C(i, j)), expected,
            (2 * terms * rounding.sums + rounding.operands) * magnitude + rounding.store * magnitude_of(expected) +
                terms * rounding.tiny + rounding.store_tiny};
  }

  /// @return infinity for what no bound allows
  KOKKOS_INLINE_FUNCTION static double ratio(const Element& e) {
    if (e.expected != e.expected) return e.actual != e.actual ? 0 : HUGE_VAL;
    if (e.actual != e.actual) return HUGE_VAL;
    if (!finite(e.expected)) return e.actual == e.expected ? 0 : HUGE_VAL;
    if (!finite(e.actual)) {
      // Right where something inside the bound overflows in the type of C.
      const double largest = e.actual > 0 ? e.expected + e.bound : e.expected - e.bound;
      return static_cast<double>(static_cast<Y>(largest)) == e.actual ? 0 : HUGE_VAL;
    }
    const double error = magnitude_of(e.actual - e.expected);
    return error == 0 ? 0 : error / e.bound;
  }

  struct Worst {
    SpmmCheck check;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t idx, typename Reducer::value_type& worst) const {
      const double r = ratio(check.element(idx));
      if (r > worst.val) {
        worst.val = r;
        worst.loc = idx;
      }
    }
  };
  struct Explain {
    SpmmCheck check;
    KOKKOS_INLINE_FUNCTION void operator()(const int) const {
      const Element e = check.element(check.explain);
      check.explained(0) = e.actual;
      check.explained(1) = e.expected;
      check.explained(2) = e.bound;
    }
  };

  /// Waits.
  Verdict run(const Exec& space) {
    Verdict verdict;
    if (rows * columns == 0) return verdict;
    typename Reducer::value_type worst;
    worst.val = 0;
    worst.loc = 0;
    Kokkos::parallel_reduce("Tessera::bench check",
                            Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, rows * columns),
                            Worst{*this}, Reducer(worst));
    Compat::fence(space, "Tessera::bench check");
    verdict.error_over_bound = worst.val > 0 ? worst.val : 0;
    if (verdict.error_over_bound <= 1) return verdict;
    explain = worst.loc;
    explained = decltype(explained)("Tessera::bench explained", 3);
    Kokkos::parallel_for("Tessera::bench explain", Kokkos::RangePolicy<Exec>(space, 0, 1), Explain{*this});
    const auto host = Kokkos::create_mirror_view(explained);
    Kokkos::deep_copy(space, host, explained);
    Compat::fence(space, "Tessera::bench explain");
    std::int64_t i = 0, j = 0;
    dense_place<typename Operands::layout>(explain, rows, columns, i, j);
    char text[200];
    std::snprintf(text, sizeof(text), "element (%lld, %lld) is %.17g, the reference is %.17g +- %.2g",
                  static_cast<long long>(i), static_cast<long long>(j), host(0), host(1), host(2));
    verdict.fault = text;
    return verdict;
  }
};

}  // namespace Bench
}  // namespace Tessera

#endif
