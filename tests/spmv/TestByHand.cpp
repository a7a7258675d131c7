// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The oracle itself, and every kernel, on matrices small enough to be multiplied by hand. Nothing here is computed by
// the library twice: the answers stand in the test, and no tolerance is allowed.

#include <gtest/gtest.h>

#include "Tessera_Spmv.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

/// A matrix, a vector and A x, A^T z with z = (1, 2, 3, ...), written out.
struct ByHand {
  std::string name;
  int rows, cols;
  std::vector<std::int64_t> row_map;
  std::vector<int> entries;
  std::vector<double> values, x, Ax, Atz;
};

std::vector<ByHand> by_hand() {
  return {
      {"one entry", 1, 1, {0, 1}, {0}, {3}, {-2}, {-6}, {3}},
      // [1 2; 3 4] (5, 6) = (17, 39);  [1 3; 2 4] (1, 2) = (7, 10)
      {"two by two", 2, 2, {0, 2, 4}, {0, 1, 0, 1}, {1, 2, 3, 4}, {5, 6}, {17, 39}, {7, 10}},
      {"an empty row and an empty column",
       3,
       3,
       {0, 1, 1, 3},
       {2, 0, 2},
       {7, -1, 2},
       {4, 100, 0.5},
       {3.5, 0, -3},
       {-3, 0, 13}},
      // Row 0: 2*1 + 8*1 (column 1 twice, out of order) + 1*3.
      {"repeated and unsorted columns", 1, 3, {0, 3}, {1, 0, 1}, {2, 3, 8}, {1, 1, 9}, {13}, {3, 10, 0}},
      {"a wide row", 1, 5, {0, 5}, {0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, -1, 1, -1, 1}, {3}, {1, 2, 3, 4, 5}},
      {"a tall column", 4, 1, {0, 1, 2, 3, 4}, {0, 0, 0, 0}, {1, 2, 3, 4}, {2}, {2, 4, 6, 8}, {30}},
      // Rows of 1, 2, 3 and 4 entries: every short class of DASP.
      {"short rows",
       4,
       4,
       {0, 1, 3, 6, 10},
       {3, 0, 2, 1, 2, 3, 0, 1, 2, 3},
       {5, 1, 1, 2, 2, 2, 1, 1, 1, 1},
       {1, 2, 3, 4},
       {20, 4, 18, 10},
       {6, 10, 12, 15}},
  };
}

template <class Scalar>
HostMatrix<Scalar> matrix_of(const ByHand& c) {
  HostMatrix<Scalar> A;
  A.rows = c.rows;
  A.cols = c.cols;
  A.row_map.assign(c.row_map.begin(), c.row_map.end());
  A.entries = c.entries;
  for (const double v : c.values) A.values.push_back(as<Scalar>(v));
  return A;
}
template <class T>
std::vector<T> rounded(const std::vector<double>& v) {
  std::vector<T> r;
  for (const double d : v) r.push_back(as<T>(d));
  return r;
}
std::vector<double> counted(int n) {
  std::vector<double> z;
  for (int i = 1; i <= n; ++i) z.push_back(i);
  return z;
}

TEST(Oracle, ByHand) {
  for (const ByHand& c : by_hand()) {
    SCOPED_TRACE(c.name);
    std::vector<double> y(c.Ax.size(), std::nan(""));
    Reference::spmv(c.rows, c.row_map, c.entries, c.values, 1, c.x, 0, y);
    EXPECT_EQ(y, c.Ax);
    Reference::spmv(c.rows, c.row_map, c.entries, c.values, -2, c.x, 3, y);  // -2 A x + 3 A x
    EXPECT_EQ(y, c.Ax);
    const HostMatrix<double> t = transposed(matrix_of<double>(c));
    std::vector<double> w(c.Atz.size(), std::nan(""));
    Reference::spmv(t.rows, t.row_map, t.entries, t.values, 1, counted(c.rows), 0, w);
    EXPECT_EQ(w, c.Atz);
  }
}
TEST(Oracle, MagnitudesAndUnreadVectors) {
  const std::vector<int> row_map = {0, 2}, entries = {0, 1};
  const std::vector<double> values = {3, -4}, x = {2, 5}, nothing = {std::nan(""), std::nan("")};
  std::vector<double> y = {10};
  double magnitude = 0;
  Reference::spmv(1, row_map, entries, values, -0.5, x, 2, y, &magnitude);
  EXPECT_EQ(y[0], 27);       // -0.5 (6 - 20) + 20
  EXPECT_EQ(magnitude, 33);  // 0.5 (6 + 20) + 20
  Reference::spmv(1, row_map, entries, values, 0, nothing, 2, y, &magnitude);
  EXPECT_EQ(y[0], 54);
  EXPECT_EQ(magnitude, 54);
  y[0] = std::nan("");
  Reference::spmv(1, row_map, entries, values, 1, x, 0, y, &magnitude);
  EXPECT_EQ(y[0], -14);
}
TEST(Oracle, SumsInLongDouble) {
  // 2^60 + 1 - 2^60: lost in double, kept in 64 bits of significand.
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is no wider than double here";
  const std::vector<int> row_map = {0, 3}, entries = {0, 0, 0};
  const std::vector<double> values = {std::ldexp(1, 60), 1, -std::ldexp(1, 60)}, x = {1};
  std::vector<double> y = {0};
  Reference::spmv(1, row_map, entries, values, 1, x, 0, y);
  EXPECT_EQ(y[0], 1);
}
TEST(Oracle, Bound) {
  // 2 (3 + 4) u 10 + v 5 + (3 + 4) t
  EXPECT_EQ(Reference::spmv_bound(3, 0.25, 10, 0.5, -5, 2), 2 * 7 * 0.25 * 10 + 0.5 * 5 + 7 * 2);
  EXPECT_EQ(Reference::spmv_bound(0, 0, 0, 0, 0, 0), 0);
}

template <class Scalar>
void expect_by_hand(SpmvAlgorithm algorithm, Backend backend) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  for (const ByHand& c : by_hand()) {
    SCOPED_TRACE(c.name + std::string(" on ") + to_string(backend));
    const auto A = matrix_of<Scalar>(c);
    const DeviceMatrix<Exec, Scalar> device(A);
    SpmvOptions o;
    o.algorithm = algorithm;
    o.backend = backend;
    o.prepare_transpose = true;
    o.dasp.min_pairs = 0;
    const SpmvPlan<typename DeviceMatrix<Exec, Scalar>::Csr> plan(Exec(), device.view(), o);
    const auto y = product(plan, Scaling{}, rounded<Scalar>(c.x), rounded<Scalar>(c.Ax));
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(wide(y[i]), c.Ax[i]) << "row " << i;
    const auto t = product(plan, Op::Trans, {}, rounded<Scalar>(counted(c.rows)), rounded<Scalar>(c.Atz));
    for (std::size_t i = 0; i < t.size(); ++i) EXPECT_EQ(wide(t[i]), c.Atz[i]) << "column " << i;
    const auto u = product(plan, Scaling{-2, 3}, rounded<Scalar>(c.x), rounded<Scalar>(c.Ax));
    for (std::size_t i = 0; i < u.size(); ++i) EXPECT_EQ(wide(u[i]), c.Ax[i]) << "row " << i;
  }
}
TEST(ByHand, Csr) {
  expect_by_hand<double>(SpmvAlgorithm::Csr, Backend::Auto);
  expect_by_hand<half_t>(SpmvAlgorithm::Csr, Backend::Auto);
#ifndef TESSERA_TEST_FEWER_TYPES  // which link plans of FP64 and FP16 alone
  expect_by_hand<float>(SpmvAlgorithm::Csr, Backend::Auto);
  expect_by_hand<bhalf_t>(SpmvAlgorithm::Csr, Backend::Auto);
#endif
}
TEST(ByHand, Reference) {
  expect_by_hand<double>(SpmvAlgorithm::Auto, Backend::Reference);
  expect_by_hand<half_t>(SpmvAlgorithm::Auto, Backend::Reference);
}
TEST(ByHand, Dasp) {
  for (const Backend backend : emulated_backends()) {
    expect_by_hand<double>(SpmvAlgorithm::Dasp, backend);
    expect_by_hand<half_t>(SpmvAlgorithm::Dasp, backend);
#ifndef TESSERA_TEST_FEWER_TYPES
    expect_by_hand<bhalf_t>(SpmvAlgorithm::Dasp, backend);
#endif
  }
}

}  // namespace Testing
}  // namespace Tessera
