// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_CHECK_HPP
#define TESSERA_TEST_CHECK_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "Tessera_Options.hpp"
#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Comparison of a product with plain loops in long double, componentwise, within the bound that Tessera_Reference.hpp
/// derives, or exactly.

namespace Tessera {
namespace Testing {

/// Facts about an element type: unit roundoff, largest error of a rounding below the normal range, largest number.
template <class T>
struct TypeFacts {
  static double roundoff() { return std::numeric_limits<T>::epsilon() / 2; }
  static double tiny() { return static_cast<double>(std::numeric_limits<T>::denorm_min()); }
  static double largest() { return static_cast<double>(std::numeric_limits<T>::max()); }
};
template <>
struct TypeFacts<half_t> {
  static double roundoff() { return std::ldexp(1.0, -11); }
  static double tiny() { return std::ldexp(1.0, -24); }
  static double largest() { return 65504; }
};
template <>
struct TypeFacts<bhalf_t> {
  static double roundoff() { return std::ldexp(1.0, -8); }
  static double tiny() { return std::ldexp(1.0, -133); }
  static double largest() { return std::ldexp(1.9921875, 127); }
};

/// What sums of products of these types are taken in.
template <class... T>
using SumOf = std::conditional_t<(std::is_same_v<T, double> || ...), double, float>;

struct Scaling {
  double alpha = 1, beta = 0;
};
/// What every kernel is asked for: the special values and one that is neither.
inline std::vector<Scaling> scalings() {
#if defined(TESSERA_TEST_FEWER_TYPES) || defined(TESSERA_TEST_BESIDE_SANITIZED)
  return {{1, 0}, {0, 0}, {0, 2.5}, {-1, 1}, {2.5, -1}};
#else
  std::vector<Scaling> all;
  for (const double alpha : {1.0, 0.0, -1.0, 2.5}) {
    for (const double beta : {0.0, 1.0, -1.0, 2.5}) all.push_back({alpha, beta});
  }
  return all;
#endif
}

/// Tensor cores cut sums where IEEE arithmetic rounds them, so there a float accumulator's unit is twice as large.
template <class Sum, class Exec>
double unit_of(bool matrix_unit_of_a_device) {
  return TypeFacts<Sum>::roundoff() * (matrix_unit_of_a_device && sizeof(Sum) == 4 ? 2 : 1);
}

/// A product and what is known of its numbers, without their types.
struct WantedProduct {
  HostMatrix<double> A;
  Scaling s;
  bool exact;
  double unit, operand_floor;
  double largest;           ///< of the sums and of y: nothing is promised beyond
  double y_roundoff;        ///< of the store, 0 where y is not narrower than the sums
  double tiny;              ///< largest error of a rounding below the normal range
  double (*store)(double);  ///< rounds to the type of y
};
::testing::AssertionResult agrees(const WantedProduct& product, const std::vector<double>& x,
                                  const std::vector<double>& y0, const std::vector<double>& y);
/// C row by row.
::testing::AssertionResult agrees(const WantedProduct& product, std::int64_t columns, const std::vector<double>& b,
                                  const std::vector<double>& c0, const std::vector<double>& c);

template <class T>
std::vector<double> wide(const std::vector<T>& numbers) {
  if constexpr (std::is_same_v<T, double>) {
    return numbers;
  } else {
    std::vector<double> all(numbers.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = wide(numbers[i]);
    return all;
  }
}
template <class Sum, class Y, class Scalar, class Offset>
WantedProduct product_of(const HostMatrix<Scalar, Offset>& A, Scaling s, bool exact, double unit,
                         double operand_floor) {
  WantedProduct p{{}, s, exact, unit, operand_floor, 0, 0, 0, [](double value) { return wide(as<Y>(value)); }};
  p.A.rows = A.rows;
  p.A.cols = A.cols;
  p.A.row_map.assign(A.row_map.begin(), A.row_map.end());
  p.A.entries = A.entries;
  p.A.values = wide(A.values);
  p.largest = std::min(TypeFacts<Sum>::largest(), TypeFacts<Y>::largest());
  p.y_roundoff = TypeFacts<Y>::roundoff() > TypeFacts<Sum>::roundoff() ? TypeFacts<Y>::roundoff() : 0;
  p.tiny = std::max(TypeFacts<Y>::tiny(), TypeFacts<Sum>::tiny());
  return p;
}

/// y against alpha A x + beta y0. `unit` is the accumulator's unit roundoff, `operand_floor` as in Reference::spmv,
/// `exact` asks for the one result of a single rounding to Y. Rows whose finite inputs overflow the accumulator or Y
/// are passed over: nothing is promised there.
template <class Sum, class Scalar, class Offset, class X, class Y>
::testing::AssertionResult agrees(const HostMatrix<Scalar, Offset>& A, Scaling s, const std::vector<X>& x,
                                  const std::vector<Y>& y0, const std::vector<Y>& y, bool exact,
                                  double unit = TypeFacts<Sum>::roundoff(), double operand_floor = 0) {
  return agrees(product_of<Sum, Y>(A, s, exact, unit, operand_floor), wide(x), wide(y0), wide(y));
}
/// C against plain loops, column by column: see agrees() of vectors.
template <class Sum, class Scalar, class Offset, class BT, class CT>
::testing::AssertionResult agrees_dense(const HostMatrix<Scalar, Offset>& A, std::int64_t columns, Scaling s,
                                        const std::vector<BT>& b, const std::vector<CT>& c0, const std::vector<CT>& c,
                                        bool exact, double unit = TypeFacts<Sum>::roundoff(), double floor = 0) {
  return agrees(product_of<Sum, CT>(A, s, exact, unit, floor), columns, wide(b), wide(c0), wide(c));
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// How the vectors of a product lie in memory.
struct Contiguous {
  using layout = Kokkos::LayoutLeft;
};
struct Strided {
  using layout = Kokkos::LayoutRight;
};

/// y := alpha op(A) x + beta y through a plan, with guards around both vectors.
template <class Form = Contiguous, class Plan, class X, class Y>
std::vector<Y> product(const Plan& plan, Op op, Scaling s, const std::vector<X>& x, const std::vector<Y>& y0) {
  using Exec = typename Plan::execution_space;
  const GuardedVector<Exec, X, typename Form::layout> dx(x, std::nan(""));
  const GuardedVector<Exec, Y, typename Form::layout> dy(y0, 77);
  const Exec space;
  plan.apply(space, op, s.alpha, dx.column(), s.beta, dy.column());
  space.fence();
  EXPECT_TRUE(dy.intact()) << "something beside y was written";
  return dy.read();
}
template <class Form = Contiguous, class Plan, class X, class Y>
std::vector<Y> product(const Plan& plan, Scaling s, const std::vector<X>& x, const std::vector<Y>& y0) {
  return product<Form>(plan, Op::NoTrans, s, x, y0);
}

/// In a typed test: a member of every suite that the fixture's each() makes.
#define TESSERA_EACH(member) this->each([](auto& suite) { suite.member; })

/// Sets an environment variable for the life of the object.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    setenv(name, value, 1);
  }
  ~Environment() {
    if (had_) {
      setenv(name_.c_str(), old_.c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_, old_;
  bool had_ = false;
};

}  // namespace Testing
}  // namespace Tessera

#endif
