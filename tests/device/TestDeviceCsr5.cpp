// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR5 through a plan on the device itself, whose tiles have other sizes than those of hosts and whose lanes are
// threads: all shapes, rows at the borders of tiles, scalings, several vectors, numbers that are none, new values. No
// matrix instruction is used, so the bound of Reference::spmv_bound holds with the unit roundoff of the sums' type.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_Csr5Cases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestShapes.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {

/// Rows of many tiles beside short ones.
constexpr const char* long_rows = "circuit:n=5003:long_every=1000:long_min=800:long_max=2500";

template <class Scalar>
class DeviceCsr5 : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Matrix = HostMatrix<Scalar>;
  using Device = DeviceMatrix<Exec, Scalar>;
  using Plan = SpmvPlan<typename Device::Csr>;
  using Vector = std::vector<Scalar>;

  static SpmvOptions options(int sigma = 0) {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Csr5;
    o.fallback = false;
    o.csr5.sigma = sigma;
    return o;
  }
  template <class Form = Contiguous>
  static void expect_with(const Plan& plan, const Matrix& A, const Vector& x, const Vector& y, bool exact,
                          Scaling s = {}) {
    EXPECT_TRUE(agrees<Scalar>(A, s, x, y, product<Form>(plan, s, x, y), exact));
  }
  /// One product against plain loops. With integers the result must be equal.
  template <class Form = Contiguous>
  static void expect(const Plan& plan, const Matrix& A, Data data, Scaling s = {}) {
    expect_with<Form>(plan, A, numbers<Scalar>(A.cols, data, 21), numbers<Scalar>(A.rows, data, 22),
                      data == Data::Integers, s);
  }
  static void expect_pattern(const Pattern& p, int sigma = 0) {
    for (const Data data : {Data::Integers, Data::Real, Data::Magnitudes}) {
      const auto A = make_matrix<Scalar>(p, data, 5);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(sigma));
      ASSERT_EQ(plan.options().algorithm, SpmvAlgorithm::Csr5);
      expect<Contiguous>(plan, A, data);
      expect<Strided>(plan, A, data, {2.5, -1});
    }
  }

 protected:
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  /// Columns 1..k of blocks of k + 2, guards beside them; each product must be bitwise that of the column alone.
  template <class LayoutX, class LayoutY>
  void expect_vectors(const Plan& plan, const Matrix& A, int k, Scaling s) const {
    Kokkos::View<Scalar**, LayoutX, DeviceOf<Exec>> x("x", A.cols, k + 2);
    Kokkos::View<Scalar**, LayoutY, DeviceOf<Exec>> y("y", A.rows, k + 2);
    const auto hx = Kokkos::create_mirror_view(x);
    const auto hy = Kokkos::create_mirror_view(y);
    std::vector<Vector> xs, ys;
    for (int j = 0; j < k + 2; ++j) {
      const bool guard = j == 0 || j == k + 1;
      xs.push_back(numbers<Scalar>(A.cols, Data::Real, 30 + j));
      ys.push_back(numbers<Scalar>(A.rows, Data::Real, 60 + j));
      if (guard) xs.back().assign(xs.back().size(), std::nan(""));
      if (s.beta == 0 && !guard) ys.back().assign(ys.back().size(), std::nan(""));
      for (int i = 0; i < A.cols; ++i) hx(i, j) = xs[j][i];
      for (int i = 0; i < A.rows; ++i) hy(i, j) = ys[j][i];
    }
    Kokkos::deep_copy(x, hx);
    Kokkos::deep_copy(y, hy);
    const auto inside = std::make_pair(1, k + 1);
    plan.apply(Exec(), Op::NoTrans, s.alpha, Kokkos::subview(x, Kokkos::ALL(), inside), s.beta,
               Kokkos::subview(y, Kokkos::ALL(), inside));
    const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    for (int j = 0; j < k + 2; ++j) {
      Vector column;
      for (int i = 0; i < A.rows; ++i) column.push_back(got(i, j));
      if (j == 0 || j == k + 1) {
        EXPECT_TRUE(same_bits(column, ys[j])) << "a vector beside those of the product was written";
      } else {
        EXPECT_TRUE(agrees<Scalar>(A, s, xs[j], ys[j], column, false)) << "vector " << j << " of " << k;
        EXPECT_TRUE(same_bits(column, product(plan, s, xs[j], ys[j]))) << "vector " << j << " of " << k;
      }
    }
  }
};
using Csr5Scalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(DeviceCsr5, Csr5Scalars);

// Among them no rows, no columns, empty rows, one row of everything, and matrices smaller than a tile.
TYPED_TEST(DeviceCsr5, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    this->expect_pattern(generate(spec));
  }
}

TYPED_TEST(DeviceCsr5, RowsAtBorders) {
  for (const int sigma : {1, 4, 7, 32}) {
    int index = 0;
    for (const Pattern& p : csr5_border_cases(Impl::csr5_omega<typename TestFixture::Exec>(), sigma)) {
      SCOPED_TRACE("sigma " + std::to_string(sigma) + ", case " + std::to_string(index++));
      this->expect_pattern(p, sigma);
    }
  }
}

// A tail of every length up to two tiles, rows that drift against the lanes.
TYPED_TEST(DeviceCsr5, EveryTail) {
  const int sigma = 3, tile = Impl::csr5_omega<typename TestFixture::Exec>() * sigma;
  for (int first = 0; first <= 2 * tile; ++first) {
    SCOPED_TRACE("first row of " + std::to_string(first));
    std::vector<int> lengths = {first, 0};
    for (int k = 0; k < 40; ++k) lengths.push_back((k * k + first) % (sigma + 3) * (k % 7 == 0 ? tile / 2 : 1));
    const auto A = make_matrix<TypeParam>(pattern_of_lengths(lengths, 97), Data::Integers, 5);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options(sigma));
    this->expect(plan, A, Data::Integers);
  }
}

TYPED_TEST(DeviceCsr5, EveryScaling) {
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto A = make_matrix<TypeParam>(all_classes(600, 100), data, 5);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
    for (const Scaling s : scalings()) {
      this->template expect<Contiguous>(plan, A, data, s);
      this->template expect<Strided>(plan, A, data, s);
    }
  }
}

// beta = 0 does not read y, alpha = 0 does not read x, and every element is written: those of empty rows too.
TYPED_TEST(DeviceCsr5, UndefinedVectors) {
  for (const std::string spec : {"", "empty", "dense_row:others=1", "web:n=3001:longest=900"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec.empty() ? all_classes(300, 50) : generate(spec), Data::Integers, 5);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
    const std::vector<TypeParam> bad_x(static_cast<std::size_t>(A.cols), std::nan("")),
        bad_y(static_cast<std::size_t>(A.rows), std::nan(""));
    const auto x = numbers<TypeParam>(A.cols, Data::Integers, 6), y = numbers<TypeParam>(A.rows, Data::Integers, 7);
    this->expect_with(plan, A, x, bad_y, true, {-1, 0});
    this->expect_with(plan, A, bad_x, y, true, {0, 2.5});
    this->expect_with(plan, A, bad_x, bad_y, true, {0, 0});
    this->template expect_with<Strided>(plan, A, x, bad_y, true, {2.5, 0});
  }
}

// Infinite and undefined entries stay in their rows.
TYPED_TEST(DeviceCsr5, BadNeighbours) {
  for (int shift = 0; shift < 7; ++shift) {
    auto A = make_matrix<TypeParam>(on_odd_columns(all_classes(100, 150)), Data::Integers, 5);
    add_bad_rows(A, shift);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
    this->expect_with(plan, A, bad_at_even_columns<TypeParam>(A.cols), numbers<TypeParam>(A.rows, Data::Integers, 7),
                      true, {-1, 2.5});
  }
}

TYPED_TEST(DeviceCsr5, SeveralVectors) {
  using Left = Kokkos::LayoutLeft;
  using Right = Kokkos::LayoutRight;
  const auto A = make_matrix<TypeParam>(long_rows, Data::Real, 5);
  const typename TestFixture::Device device(A);
  const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
  for (const int k : {0, 1, 3, 9}) {
    for (const Scaling s : {Scaling{1, 0}, Scaling{2.5, -1}}) {
      this->template expect_vectors<Left, Left>(plan, A, k, s);
      this->template expect_vectors<Right, Right>(plan, A, k, s);
      this->template expect_vectors<Left, Right>(plan, A, k, s);
    }
  }
}

// Rows through several tiles have their sums finished in a fixed order.
TYPED_TEST(DeviceCsr5, Deterministic) {
  for (const std::string spec : {long_rows, "dense_row:others=1", "dense:rows=3:cols=40011"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec, Data::Real, 5);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
    ASSERT_GT(plan.workspace_bytes(), 0u);
    const auto x = numbers<TypeParam>(A.cols, Data::Real, 6), y = numbers<TypeParam>(A.rows, Data::Real, 7);
    const auto first = product(plan, Scaling{2.5, -1}, x, y);
    EXPECT_TRUE(agrees<TypeParam>(A, {2.5, -1}, x, y, first, false));
    for (int run = 1; run < 20; ++run) {
      ASSERT_TRUE(same_bits(first, product(plan, Scaling{2.5, -1}, x, y))) << "run " << run;
    }
    EXPECT_TRUE(same_bits(first, product<Strided>(plan, Scaling{2.5, -1}, x, y)));
    const typename TestFixture::Plan again(typename TestFixture::Exec(), device.view(), this->options());
    EXPECT_TRUE(same_bits(first, product(again, Scaling{2.5, -1}, x, y))) << "a second plan";
  }
}

// Bitwise what a new plan computes, for A and its transpose.
TYPED_TEST(DeviceCsr5, NewValues) {
  const typename TestFixture::Exec space;
  SpmvOptions o = this->options();
  o.prepare_transpose = true;
  for (const std::string spec : {long_rows, "duplicates:rows=151:longest=400", "lp:rows=51:cols=3001:slack=1"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<TypeParam>(spec, Data::Real, 5), B = make_matrix<TypeParam>(spec, Data::Real, 6);
    const typename TestFixture::Device a(A), b(B);
    typename TestFixture::Plan plan(space, a.view(), o);
    const typename TestFixture::Plan fresh(space, b.view(), o);
    this->expect(plan, A, Data::Real);
    plan.update_values(space, b.view().values());
    this->expect(plan, B, Data::Real);
    const auto x = numbers<TypeParam>(A.cols, Data::Real, 8), y = numbers<TypeParam>(A.rows, Data::Real, 9);
    EXPECT_TRUE(same_bits(product(plan, Scaling{}, x, y), product(fresh, Scaling{}, x, y)));
    const auto transpose = product(plan, Op::Trans, {2.5, -1}, y, x);
    EXPECT_TRUE(agrees<TypeParam>(transposed(B), {2.5, -1}, y, x, transpose, false));
    EXPECT_TRUE(same_bits(transpose, product(fresh, Op::Trans, {2.5, -1}, y, x)));
  }
}

TYPED_TEST(DeviceCsr5, NoAllocation) {
  using Exec = typename TestFixture::Exec;
  const auto A = make_matrix<TypeParam>(long_rows, Data::Integers, 5);
  const typename TestFixture::Device device(A);
  const Exec space;
  typename TestFixture::Plan plan(space, device.view(), this->options());
  const DeviceVector<Exec, TypeParam> x("x", A.cols), y("y", A.rows);
  plan.apply(space, x, y);  // the first may note the instance
  space.fence();
  const KokkosCounters counters;
  plan.apply(space, x, y);
  plan.apply(space, Op::NoTrans, 2, x, 3, y);
  EXPECT_EQ(counters.kernels(), 2 * plan.statistics().launches);
  EXPECT_LE(counters.fences(), 2 * counters.kernels()) << "Kokkos waits before and after a kernel while tools listen";
  plan.update_values(space, device.view().values());
  EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
}

}  // namespace Testing
}  // namespace Tessera
