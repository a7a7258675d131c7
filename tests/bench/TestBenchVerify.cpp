// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark's check of results: what it must let pass and what it must not.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "spmv/Tessera_BenchVerify.hpp"

namespace {

using Tessera::bhalf_t;
using Tessera::half_t;
using Tessera::Bench::SpmvVerifier;
using Tessera::Bench::Verdict;

/// As the device stores it.
template <class T>
double stored(double value) {
  return static_cast<double>(static_cast<T>(value));
}

/// 3 x 3: a row of two, an empty row, a row whose sum cancels.
template <class S, class Y>
struct Small {
  std::vector<std::int64_t> row_map = {0, 2, 2, 4};
  std::vector<int> entries = {0, 2, 1, 2};
  std::vector<double> values = {1.5, 0.25, 1024.0, -1016.0};
  std::vector<double> x = {2.0, 1.0, 1.0};
  std::vector<double> right(double alpha, double beta, double y) const {
    return {stored<Y>(3.25 * alpha + beta * y), stored<Y>(beta * y), stored<Y>(8 * alpha + beta * y)};
  }
  SpmvVerifier verifier(double alpha, double beta, double y) const {
    using Tessera::Impl::ScalarTraits;
    SpmvVerifier v;
    v.set(row_map, entries, values, alpha, x, beta, std::vector<double>(3, y), ScalarTraits<S>::element,
          ScalarTraits<Y>::element);
    return v;
  }
};

TEST(BenchVerify, AcceptsTheRightAnswer) {
  EXPECT_EQ(
      (Small<double, double>().verifier(2, -1, 4).check(Small<double, double>().right(2, -1, 4)).error_over_bound), 0);
  EXPECT_TRUE((Small<float, float>().verifier(2, 0, 4).check(Small<float, float>().right(2, 0, 4)).verified()));
  EXPECT_TRUE((Small<half_t, float>().verifier(2, 0.5, 4).check(Small<half_t, float>().right(2, 0.5, 4)).verified()));
  EXPECT_TRUE((Small<bhalf_t, bhalf_t>().verifier(1, 0, 0).check(Small<bhalf_t, bhalf_t>().right(1, 0, 0)).verified()));
}

TEST(BenchVerify, RefusesWhatIsOutsideTheBound) {
  const Small<double, double> small;
  const auto verifier = small.verifier(1, 0, 0);
  std::vector<double> y = small.right(1, 0, 0);
  // Row of two: 2 (2 + 4) 2^-53 3.25.
  const double bound = 12 * std::ldexp(1.0, -53) * 3.25;
  y[0] = 3.25 + 0.9 * bound;
  EXPECT_TRUE(verifier.check(y).verified());
  y[0] = 3.25 + 1.2 * bound;
  const Verdict verdict = verifier.check(y);
  EXPECT_FALSE(verdict.verified());
  EXPECT_GT(verdict.error_over_bound, 1);
  EXPECT_NE(verdict.fault.find("row 0"), std::string::npos);
}

TEST(BenchVerify, BoundFollowsTheCancellation) {
  const Small<double, double> small;
  const auto verifier = small.verifier(1, 0, 0);
  std::vector<double> y = small.right(1, 0, 0);
  y[2] += 1e-12;  // the products are 1024 and -1016
  EXPECT_TRUE(verifier.check(y).verified());
  y[2] += 1e-11;
  EXPECT_FALSE(verifier.check(y).verified());
}

TEST(BenchVerify, RefusesNanUnwrittenRowsAndWrongSizes) {
  const Small<float, float> small;
  const auto verifier = small.verifier(1, 0, 0);
  for (std::size_t row = 0; row < 3; ++row) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 77.0}) {
      std::vector<double> y = small.right(1, 0, 0);
      y[row] = bad;
      EXPECT_FALSE(verifier.check(y).verified()) << "row " << row << " = " << bad;
    }
  }
  EXPECT_FALSE(verifier.check({3.25, 0.0}).verified());
}

TEST(BenchVerify, NarrowResultsMayBeRoundedOnce) {
  const Small<half_t, half_t> small;
  const auto verifier = small.verifier(1.0 / 3, 0, 0);
  std::vector<double> y = small.right(1.0 / 3, 0, 0);
  EXPECT_TRUE(verifier.check(y).verified());
  half_t wrong(y[0]);
  wrong.bits += 2;
  y[0] = static_cast<double>(wrong);
  EXPECT_FALSE(verifier.check(y).verified());
}

TEST(BenchVerify, ExpectsWhatOverflowsToBeInfinite) {
  const Small<half_t, half_t> small;
  const auto verifier = small.verifier(1e6, 0, 0);
  std::vector<double> y = small.right(1e6, 0, 0);
  EXPECT_TRUE(verifier.check(y).verified());
  y[0] = 65504;
  EXPECT_FALSE(verifier.check(y).verified());
  const Small<double, double> infinite = [] {
    Small<double, double> s;
    s.values[0] = std::numeric_limits<double>::infinity();
    return s;
  }();
  EXPECT_FALSE(infinite.verifier(1, 0, 0).check({3.25, 0, 8}).verified());
  EXPECT_TRUE(infinite.verifier(1, 0, 0).check({std::numeric_limits<double>::infinity(), 0, 8}).verified());
}

}  // namespace
