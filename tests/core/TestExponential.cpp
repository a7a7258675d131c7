// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// e^x of the library against the C library's in long double.

#include <gtest/gtest.h>

#include <cmath>

#include "core/Tessera_Exponential.hpp"

namespace Tessera {
namespace Testing {

using Impl::exponential;

/// Within two units in the last place from `least` to `most`, at evenly spaced numbers.
template <class T>
void two_units(double least, double most) {
  constexpr int steps = 200000;
  for (int i = 0; i <= steps; ++i) {
    const T x = static_cast<T>(least + (most - least) * i / steps);
    const long double wanted = std::exp(static_cast<long double>(x));
    const T near = static_cast<T>(wanted);
    const long double unit = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
    ASSERT_LE(std::abs(exponential(x) - wanted), 2 * unit) << x;
  }
}
TEST(Exponential, Fp32) {
  two_units<float>(-87.3, 88.3);
  two_units<float>(-1, 1);
}
TEST(Exponential, Fp64) {
  two_units<double>(-708.3, 709.4);
  two_units<double>(-1, 1);
}
template <class T>
void limits() {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  EXPECT_EQ(exponential(T(0)), T(1));
  EXPECT_EQ(exponential(-infinity), T(0));
  EXPECT_EQ(exponential(T(-1e30)), T(0));
  EXPECT_EQ(exponential(T(-720)), T(0));
  EXPECT_EQ(exponential(infinity), infinity);
  EXPECT_EQ(exponential(T(1e30)), infinity);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<T>::quiet_NaN())));
}
TEST(Exponential, Limits) {
  limits<float>();
  limits<double>();
}

}  // namespace Testing
}  // namespace Tessera
