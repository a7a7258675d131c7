// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The portable CSR kernel and the reference backend against plain loops.

#include <gtest/gtest.h>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, class Offset_>
struct CsrTypes {
  using Scalar = Scalar_;
  using Offset = Offset_;
};

template <class T>
class CsrSpmv : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Scalar = typename T::Scalar;
  using Matrix = HostMatrix<Scalar, typename T::Offset>;
  using Device = DeviceMatrix<Exec, Scalar, typename T::Offset>;
  using Plan = SpmvPlan<typename Device::Csr>;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

  static SpmvOptions options() {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Csr;
    return o;
  }
  template <class Form>
  static void expect(const Plan& plan, const Matrix& A, Data data, Scaling s = {}) {
    const auto x = numbers<Scalar>(A.cols, data, 21);
    const auto y = numbers<Scalar>(A.rows, data, 22);
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(plan, s, x, y), data == Data::Integers));
  }
  template <class LayoutX, class LayoutY>
  static void expect_columns(const Plan& plan, const Matrix& A, int k, Scaling s) {
    Kokkos::View<Scalar**, LayoutX, DeviceOf<Exec>> x("x", A.cols, k);
    Kokkos::View<Scalar**, LayoutY, DeviceOf<Exec>> y("y", A.rows, k);
    const auto hx = Kokkos::create_mirror_view(x);
    const auto hy = Kokkos::create_mirror_view(y);
    const auto xs = numbers<Scalar>(A.cols * k, Data::Integers, 31);
    const auto ys = numbers<Scalar>(A.rows * k, Data::Integers, 32);
    for (int j = 0; j < k; ++j) {
      for (int i = 0; i < A.cols; ++i) hx(i, j) = xs[static_cast<std::size_t>(j * A.cols + i)];
      for (int i = 0; i < A.rows; ++i) hy(i, j) = ys[static_cast<std::size_t>(j * A.rows + i)];
    }
    Kokkos::deep_copy(x, hx);
    Kokkos::deep_copy(y, hy);
    plan.apply(Exec(), Op::NoTrans, s.alpha, x, s.beta, y);
    const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    for (int j = 0; j < k; ++j) {
      const std::vector<Scalar> xj(xs.begin() + j * A.cols, xs.begin() + (j + 1) * A.cols);
      const std::vector<Scalar> yj(ys.begin() + j * A.rows, ys.begin() + (j + 1) * A.rows);
      std::vector<Scalar> column;
      for (int i = 0; i < A.rows; ++i) column.push_back(got(i, j));
      EXPECT_TRUE(agrees<Sum>(A, s, xj, yj, column, true)) << "column " << j << " of " << k;
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using AllCsrTypes =
    ::testing::Types<CsrTypes<double, std::int64_t>, CsrTypes<float, std::size_t>, CsrTypes<half_t, int>>;
#else
using AllCsrTypes =
    ::testing::Types<CsrTypes<double, int>, CsrTypes<double, std::int64_t>, CsrTypes<double, std::size_t>,
                     CsrTypes<float, int>, CsrTypes<float, std::int64_t>, CsrTypes<float, std::size_t>,
                     CsrTypes<half_t, int>, CsrTypes<half_t, std::int64_t>, CsrTypes<half_t, std::size_t>,
                     CsrTypes<bhalf_t, int>, CsrTypes<bhalf_t, std::int64_t>, CsrTypes<bhalf_t, std::size_t>>;
#endif
TYPED_TEST_SUITE(CsrSpmv, AllCsrTypes);

TYPED_TEST(CsrSpmv, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    for (const Data data : {Data::Integers, Data::Real, Data::Magnitudes}) {
      const auto A = make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(spec, data, 5);
      const typename TestFixture::Device device(A);
      const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
      this->template expect<Contiguous>(plan, A, data);
      this->template expect<Strided>(plan, A, data, {2.5, -1});
    }
  }
}

TYPED_TEST(CsrSpmv, EveryScaling) {
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto A = make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(all_classes(600, 100), data, 5);
    const typename TestFixture::Device device(A);
    const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
    for (const Scaling s : scalings()) {
      this->template expect<Contiguous>(plan, A, data, s);
      this->template expect<Strided>(plan, A, data, s);
    }
  }
}

TYPED_TEST(CsrSpmv, SeveralVectors) {
  const auto A =
      make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(all_classes(300, 50), Data::Integers, 5);
  const typename TestFixture::Device device(A);
  const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
  for (const int k : {0, 1, 3}) {
    this->template expect_columns<Kokkos::LayoutLeft, Kokkos::LayoutLeft>(plan, A, k, {1, 0});
    this->template expect_columns<Kokkos::LayoutRight, Kokkos::LayoutRight>(plan, A, k, {2.5, -1});
    this->template expect_columns<Kokkos::LayoutRight, Kokkos::LayoutLeft>(plan, A, k, {-1, 2.5});
  }
}

// beta = 0 does not read y, alpha = 0 reads neither x nor A.
TYPED_TEST(CsrSpmv, UndefinedVectors) {
  using Scalar = typename TypeParam::Scalar;
  const auto A = make_matrix<Scalar, typename TypeParam::Offset>(all_classes(300, 50), Data::Integers, 5);
  const typename TestFixture::Device device(A);
  const typename TestFixture::Plan plan(typename TestFixture::Exec(), device.view(), this->options());
  using Sum = typename TestFixture::Sum;
  const std::vector<Scalar> bad_x(static_cast<std::size_t>(A.cols), as<Scalar>(std::nan("")));
  const std::vector<Scalar> bad_y(static_cast<std::size_t>(A.rows), as<Scalar>(std::nan("")));
  const auto x = numbers<Scalar>(A.cols, Data::Integers, 6), y = numbers<Scalar>(A.rows, Data::Integers, 7);
  EXPECT_TRUE(agrees<Sum>(A, {-1, 0}, x, bad_y, product(plan, Scaling{-1, 0}, x, bad_y), true));
  EXPECT_TRUE(agrees<Sum>(A, {0, 2.5}, bad_x, y, product(plan, Scaling{0, 2.5}, bad_x, y), true));
  EXPECT_TRUE(agrees<Sum>(A, {0, 0}, bad_x, bad_y, product(plan, Scaling{0, 0}, bad_x, bad_y), true));
}

TYPED_TEST(CsrSpmv, TransposedProductAndNewValues) {
  using Scalar = typename TypeParam::Scalar;
  using Sum = typename TestFixture::Sum;
  const Pattern p = generate("duplicates:rows=151:longest=400");
  const auto A = make_matrix<Scalar, typename TypeParam::Offset>(p, Data::Integers, 5);
  const auto B = make_matrix<Scalar, typename TypeParam::Offset>(p, Data::Integers, 6);
  const typename TestFixture::Device a(A), b(B);
  SpmvOptions o = this->options();
  o.prepare_transpose = true;
  const typename TestFixture::Exec space;
  typename TestFixture::Plan plan(space, a.view(), o);
  const auto x = numbers<Scalar>(A.rows, Data::Integers, 7), y = numbers<Scalar>(A.cols, Data::Integers, 8);
  const auto expect_transposed = [&](const typename TestFixture::Matrix& wanted) {
    for (const Op op : {Op::Trans, Op::ConjTrans}) {
      const auto got = product<Strided>(plan, op, {2.5, -1}, x, y);
      EXPECT_TRUE(agrees<Sum>(transposed(wanted), {2.5, -1}, x, y, got, true));
    }
    this->template expect<Contiguous>(plan, wanted, Data::Integers);
  };
  expect_transposed(A);
  plan.update_values(space, b.view().values());
  expect_transposed(B);
}

/// Element types that differ: the widest one decides the sums.
template <class A_, class X_, class Y_>
struct Mixed {
  using A = A_;
  using X = X_;
  using Y = Y_;
};
template <class T>
class MixedSpmv : public ::testing::Test {};
#ifdef TESSERA_TEST_FEWER_TYPES
using AllMixed =
    ::testing::Types<Mixed<half_t, double, double>, Mixed<double, float, float>, Mixed<float, half_t, bhalf_t>>;
#else
using AllMixed =
    ::testing::Types<Mixed<float, double, double>, Mixed<half_t, double, double>, Mixed<bhalf_t, double, double>,
                     Mixed<half_t, float, float>, Mixed<float, double, float>, Mixed<double, float, float>,
                     Mixed<float, half_t, bhalf_t>>;
#endif
TYPED_TEST_SUITE(MixedSpmv, AllMixed);

TYPED_TEST(MixedSpmv, AgreesWithPlainLoops) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using A = typename TypeParam::A;
  using X = typename TypeParam::X;
  using Y = typename TypeParam::Y;
  constexpr bool wide_sums = std::is_same_v<A, double> || std::is_same_v<X, double> || std::is_same_v<Y, double>;
  using Sum = std::conditional_t<wide_sums, double, float>;
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto matrix = make_matrix<A>(all_classes(600, 100), data, 5);
    const DeviceMatrix<Exec, A> device(matrix);
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Csr;
    const SpmvPlan<typename DeviceMatrix<Exec, A>::Csr> plan(Exec(), device.view(), o);
    const auto x = numbers<X>(matrix.cols, data, 6);
    const auto y = numbers<Y>(matrix.rows, data, 7);
    for (const Scaling s : scalings()) {
      EXPECT_TRUE(agrees<Sum>(matrix, s, x, y, product(plan, s, x, y), data == Data::Integers));
    }
  }
}

// A float matrix with double vectors sums in double (Kokkos Kernels issue 101): one large entry and a thousand small
// ones, each of which a float sum would lose.
TEST(MixedPrecision, FloatMatrixDoubleVectorsSumInDouble) {
  using Exec = Kokkos::DefaultExecutionSpace;
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
  using Exec = Kokkos::DefaultExecutionSpace;
  HostMatrix<float> A = make_matrix<float>("diagonal:rows=1:cols=1", Data::Integers, 1);
  A.values[0] = 3;
  const DeviceMatrix<Exec, float> device(A);
  const SpmvPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), {});
  const std::vector<double> x(1, 1 + std::ldexp(1.0, -30));
  EXPECT_EQ(product(plan, Scaling{}, x, std::vector<double>(1, 0.0))[0], 3 + 3 * std::ldexp(1.0, -30));
}

// Backend::Reference runs the oracle itself, on hosts.
TEST(ReferenceBackend, AgreesWithPlainLoops) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const auto A = make_matrix<float>(all_classes(600, 100), Data::Magnitudes, 5);
  const DeviceMatrix<Exec, float> device(A);
  SpmvOptions o;
  o.backend = Backend::Reference;
  const SpmvPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), o);
  EXPECT_EQ(plan.options().backend, Backend::Reference);
  const auto x = numbers<float>(A.cols, Data::Magnitudes, 6), y = numbers<float>(A.rows, Data::Magnitudes, 7);
  for (const Scaling s : scalings()) {
    EXPECT_TRUE(agrees<float>(A, s, x, y, product(plan, s, x, y), true));
    EXPECT_TRUE(agrees<float>(A, s, x, y, product<Strided>(plan, s, x, y), true));
  }
}

// The one-shot call, straight from CSR, in every mode.
TEST(OneShot, EveryMode) {
  using Exec = Kokkos::DefaultExecutionSpace;
  const auto A = make_matrix<double>("duplicates:rows=151:longest=400", Data::Integers, 5), T = transposed(A);
  const DeviceMatrix<Exec, double> device(A);
  for (const std::string mode : {"N", "n", "T", "t", "C", "c", "H", "h"}) {
    SCOPED_TRACE(mode);
    const HostMatrix<double>& op = std::string("NnCc").find(mode) != std::string::npos ? A : T;
    const auto x = numbers<double>(op.cols, Data::Integers, 6), y = numbers<double>(op.rows, Data::Integers, 7);
    const auto dx = to_device<Exec>(x), dy = to_device<Exec>(y);
    spmv(Exec(), mode.c_str(), 2.5, device.view(), dx, -1, dy);
    EXPECT_TRUE(agrees<double>(op, {2.5, -1}, x, y, to_host(dy), true));
  }
}

}  // namespace Testing
}  // namespace Tessera
