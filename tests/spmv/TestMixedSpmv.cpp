// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Types that the library holds no compiled products or plans of: they are compiled here.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
constexpr SpmvAlgorithm portable_or_chosen[] = {SpmvAlgorithm::Csr, SpmvAlgorithm::Csr5, SpmvAlgorithm::Auto};

/// Element types that differ: the widest one decides the sums.
template <class A, class X, class Y>
void expect_mixed() {
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto matrix = make_matrix<A>(all_classes(600, 100), data, 5);
    const DeviceMatrix<Exec, A> device(matrix);
    for (const SpmvAlgorithm algorithm : portable_or_chosen) {
      SCOPED_TRACE(to_string(algorithm));
      SpmvOptions o;
      o.algorithm = algorithm;
      const SpmvPlan<typename DeviceMatrix<Exec, A>::Csr> plan(Exec(), device.view(), o);
      const auto x = numbers<X>(matrix.cols, data, 6);
      const auto y = numbers<Y>(matrix.rows, data, 7);
      for (const Scaling s : scalings()) {
        EXPECT_TRUE((agrees<SumOf<A, X, Y>>(matrix, s, x, y, product(plan, s, x, y), data == Data::Integers)));
      }
    }
  }
}
TEST(MixedSpmv, HalfDoubleDouble) { expect_mixed<half_t, double, double>(); }
TEST(MixedSpmv, FloatHalfBhalf) { expect_mixed<float, half_t, bhalf_t>(); }
TEST(MixedSpmv, BhalfFloatFloat) { expect_mixed<bhalf_t, float, float>(); }
TEST(MixedSpmv, FloatDoubleFloat) { expect_mixed<float, double, float>(); }
TEST(MixedSpmv, DoubleFloatFloat) { expect_mixed<double, float, float>(); }

/// Where Auto takes packed slices, hosts multiply wider vectors from these, too: right for every scaling, and the same
/// bits however many vectors in columns. Rows of 600 entries are in parts, but for column blocks.
template <class A, class X>
void expect_wide_vectors(int blocks) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  constexpr int columns = 3;
  const auto matrix = make_matrix<A>(all_classes(600, 100), Data::Real, 5);
  const DeviceMatrix<Host, A> device(matrix);
  SpmvOptions options;
  options.packed.column_blocks = blocks;
  const SpmvPlan<typename DeviceMatrix<Host, A>::Csr> plan(Host(), device.view(), options);
  ASSERT_EQ(plan.options().algorithm, SpmvAlgorithm::PackedSlices);
  ASSERT_EQ(has_class(plan.statistics(), std::to_string(blocks) + " column blocks"), blocks > 1);
  {
    const KokkosCounters counters;
    product(plan, Scaling{}, numbers<X>(matrix.cols, Data::Real, 6), std::vector<X>(std::size_t(matrix.rows)));
    EXPECT_TRUE(counters.last_kernel().find("spmv[packed]") != std::string::npos) << counters.last_kernel();
  }
  Kokkos::View<X**, Kokkos::LayoutLeft, Host> x("x", matrix.cols, columns), y("y", matrix.rows, columns);
  Kokkos::View<X**, Kokkos::LayoutRight, Host> other_x("x", matrix.cols, columns), other_y("y", matrix.rows, columns);
  for (const Scaling s : scalings()) {
    for (int j = 0; j < columns; ++j) {
      const auto from = numbers<X>(matrix.cols, Data::Real, 6 + j), to = numbers<X>(matrix.rows, Data::Real, 16 + j);
      for (std::size_t i = 0; i < from.size(); ++i) x(i, j) = other_x(i, j) = from[i];
      for (std::size_t i = 0; i < to.size(); ++i) y(i, j) = other_y(i, j) = to[i];
    }
    plan.apply(Host(), Op::NoTrans, s.alpha, x, s.beta, y);
    plan.apply(Host(), Op::NoTrans, s.alpha, other_x, s.beta, other_y);
    for (int j = 0; j < columns; ++j) {
      const auto from = numbers<X>(matrix.cols, Data::Real, 6 + j), to = numbers<X>(matrix.rows, Data::Real, 16 + j);
      std::vector<X> result(to.size()), other(to.size());
      for (std::size_t i = 0; i < to.size(); ++i) result[i] = y(i, j), other[i] = other_y(i, j);
      EXPECT_TRUE((agrees<X>(matrix, s, from, to, result, false)));
      const auto single = product(plan, s, from, to);
      EXPECT_EQ(std::memcmp(single.data(), result.data(), to.size() * sizeof(X)), 0) << "column " << j;
      EXPECT_TRUE((agrees<X>(matrix, s, from, to, other, false))) << "in rows, column " << j;
    }
  }
}
TEST(MixedSpmv, FloatWithDoubleVectorsOnHosts) {
  for (const int blocks : {0, 5}) {
    SCOPED_TRACE(std::to_string(blocks) + " column blocks");
    expect_wide_vectors<float, double>(blocks);
  }
}

// A float matrix with double vectors sums in double (Kokkos Kernels issue 101): one large entry and a thousand small
// ones, each of which a float sum would lose.
TEST(MixedPrecision, FloatMatrixDoubleVectorsSumInDouble) {
  constexpr int n = 1001;
  for (const SpmvAlgorithm algorithm : {SpmvAlgorithm::Csr, SpmvAlgorithm::Auto}) {
    HostMatrix<float> A = make_matrix<float>("dense:rows=1:cols=" + std::to_string(n), Data::Integers, 1);
    std::fill(A.values.begin(), A.values.end(), 1.0f);
    std::vector<double> x(n, std::ldexp(1.0, -30));
    x[0] = 1;
    const DeviceMatrix<Exec, float> device(A);
    SpmvOptions o;
    o.algorithm = algorithm;
    const SpmvPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), o);
    const auto y = product(plan, Scaling{}, x, std::vector<double>(1, 0.0));
    EXPECT_EQ(y[0], 1 + std::ldexp(1000.0, -30));
    EXPECT_NE(y[0], 1.0);
  }
}
// The same with the product itself: 2^-30 is lost as soon as x is rounded to float.
TEST(MixedPrecision, DoubleVectorsAreNotRounded) {
  HostMatrix<float> A = make_matrix<float>("diagonal:rows=1:cols=1", Data::Integers, 1);
  A.values[0] = 3;
  const DeviceMatrix<Exec, float> device(A);
  const SpmvPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), {});
  const std::vector<double> x(1, 1 + std::ldexp(1.0, -30));
  EXPECT_EQ(product(plan, Scaling{}, x, std::vector<double>(1, 0.0))[0], 3 + 3 * std::ldexp(1.0, -30));
}

// 16-bit numbers with 64-bit offsets, of a sign that no plan has.
TEST(OtherOffsets, SixteenBitNumbers) {
  for (const SpmvAlgorithm algorithm : {SpmvAlgorithm::Csr, SpmvAlgorithm::Csr5, SpmvAlgorithm::PackedSlices}) {
    SCOPED_TRACE(to_string(algorithm));
    const auto A = make_matrix<bhalf_t, std::int64_t>(all_classes(600, 100), Data::Integers, 5), T = transposed(A);
    const DeviceMatrix<Exec, bhalf_t, std::int64_t> device(A);
    SpmvOptions o;
    o.algorithm = algorithm;
    o.prepare_transpose = true;
    SpmvPlan<DeviceMatrix<Exec, bhalf_t, std::int64_t>::Csr> plan(Exec(), device.view(), o);
    plan.update_values(Exec(), device.view());
    const auto x = numbers<bhalf_t>(A.cols, Data::Integers, 6), y = numbers<bhalf_t>(A.rows, Data::Integers, 7);
    EXPECT_TRUE(agrees<float>(A, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), true));
    EXPECT_TRUE(agrees<float>(T, {2.5, -1}, y, x, product(plan, Op::Trans, {2.5, -1}, y, x), true));
  }
}

}  // namespace Testing
}  // namespace Tessera
