// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The portable CSR kernel and the reference backend against plain loops.

#include <gtest/gtest.h>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, class Offset_>
struct CsrTypes {
  using Scalar = Scalar_;
  using Offset = Offset_;
};

template <class T>
class CsrSpmv : public ::testing::Test {
 protected:
  SpmvSuite<Kokkos::DefaultExecutionSpace, typename T::Scalar, typename T::Offset> suite{SpmvAlgorithm::Csr,
                                                                                         Backend::Auto};
};
// Every scalar and every offset: the kernel reads an offset before it meets a number.
using AllCsrTypes =
    ::testing::Types<CsrTypes<double, int>, CsrTypes<double, std::size_t>, CsrTypes<float, std::int64_t>,
                     CsrTypes<half_t, int>, CsrTypes<bhalf_t, std::size_t>>;
TYPED_TEST_SUITE(CsrSpmv, AllCsrTypes);

TYPED_TEST(CsrSpmv, EveryShape) { this->suite.every_shape({Data::Integers, Data::Real, Data::Magnitudes}); }
TYPED_TEST(CsrSpmv, EveryScaling) { this->suite.every_scaling(all_classes(600, 100)); }
TYPED_TEST(CsrSpmv, SeveralVectors) {
  this->suite.several_vectors(this->suite.matrix(all_classes(300, 50), Data::Real, 5), {0, 1, 3});
}
TYPED_TEST(CsrSpmv, UndefinedVectors) { this->suite.undefined_vectors(all_classes(300, 50)); }
TYPED_TEST(CsrSpmv, TransposedProductsAndNewValues) { this->suite.transposed_products_and_new_values(); }

/// Element types that differ: the widest one decides the sums.
template <class A_, class X_, class Y_>
struct Mixed {
  using A = A_;
  using X = X_;
  using Y = Y_;
};
template <class T>
class MixedSpmv : public ::testing::Test {};
using AllMixed =
    ::testing::Types<Mixed<half_t, double, double>, Mixed<bhalf_t, float, float>, Mixed<float, double, float>,
                     Mixed<double, float, float>, Mixed<float, half_t, bhalf_t>>;
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
