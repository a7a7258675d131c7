// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMV on streams: set-up and product away from the default stream, one plan with scratch on two streams in turn, and
// capture in a CUDA graph (which also proves that apply neither allocates nor waits: both end a capture).

#include <gtest/gtest.h>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestDevice.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "device/OwnStream.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar>
class DeviceStreams : public ::testing::Test {
 public:
  using Exec = Kokkos::Cuda;
  using Matrix = HostMatrix<Scalar>;
  using Device = DeviceMatrix<Exec, Scalar>;
  using Plan = SpmvPlan<typename Device::Csr>;
  using Sum = SumOf<Scalar>;

 protected:
  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
    // Rows of many pieces beside all other classes.
    A = make_matrix<Scalar>("web:n=20011:tail=1.2:longest=15000", Data::Integers, 5);
    device = Device(A);
    x = numbers<Scalar>(A.cols, Data::Integers, 6);
    y = numbers<Sum>(A.rows, Data::Integers, 7);
    dx = to_device<Exec>(x);
    Exec().fence();
  }
  static SpmvOptions options() {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Dasp;
    o.backend = Backend::Cuda;
    o.dasp.entries_per_wave = 128;
    return o;
  }
  void expect_product(const DeviceVector<Exec, Sum>& got, Scaling s) const {
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, to_host(got), true));
  }

  Matrix A;
  Device device;
  std::vector<Scalar> x;
  std::vector<Sum> y;
  DeviceVector<Exec, Scalar> dx;
};
using StreamScalars = ::testing::Types<double, half_t, bhalf_t>;
TYPED_TEST_SUITE(DeviceStreams, StreamScalars);

TYPED_TEST(DeviceStreams, SetUpAndProductOnAnotherStream) {
  const OwnStream own;
  SpmvOptions o = this->options();
  o.prepare_transpose = true;
  typename TestFixture::Plan plan(own.space(), this->device.view(), o);
  const auto dy = to_device<Kokkos::Cuda>(this->y);
  Kokkos::Cuda().fence();
  plan.apply(own.space(), Op::NoTrans, 2.5, this->dx, -1, dy);
  own.space().fence();
  this->expect_product(dy, {2.5, -1});
  // New values there too, and both operators after them.
  const auto B = make_matrix<TypeParam>("web:n=20011:tail=1.2:longest=15000", Data::Integers, 8);
  const auto fresh = to_device<Kokkos::Cuda>(B.values);
  const auto dt = to_device<Kokkos::Cuda>(this->y);
  Kokkos::Cuda().fence();
  plan.update_values(own.space(), fresh);
  plan.apply(own.space(), Op::Trans, 1, this->dx, 0, dt);
  own.space().fence();
  EXPECT_TRUE(agrees<typename TestFixture::Sum>(transposed(B), {}, this->x, this->y, to_host(dt), true));
}

// No fence between the products: the plan itself must keep the second stream off the scratch of the first.
TYPED_TEST(DeviceStreams, OnePlanOnTwoStreams) {
  const OwnStream first, second;
  const typename TestFixture::Plan plan(first.space(), this->device.view(), this->options());
  ASSERT_GT(plan.workspace_bytes(), 0u);
  first.space().fence();
  std::vector<DeviceVector<Kokkos::Cuda, typename TestFixture::Sum>> results;
  for (int i = 0; i < 40; ++i) results.push_back(to_device<Kokkos::Cuda>(this->y));
  Kokkos::Cuda().fence();
  for (int i = 0; i < 40; ++i) {
    plan.apply(i % 2 ? second.space() : first.space(), Op::NoTrans, 1, this->dx, i % 3, results[i]);
  }
  first.space().fence();
  second.space().fence();
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    this->expect_product(results[i], {1, static_cast<double>(i % 3)});
  }
}

// Two plans with scratch of their own need no order.
TYPED_TEST(DeviceStreams, TwoPlansAtOnce) {
  const OwnStream first, second;
  const typename TestFixture::Plan a(first.space(), this->device.view(), this->options());
  const typename TestFixture::Plan b(second.space(), this->device.view(), this->options());
  const auto ya = to_device<Kokkos::Cuda>(this->y), yb = to_device<Kokkos::Cuda>(this->y);
  Kokkos::Cuda().fence();
  for (int i = 0; i < 20; ++i) {
    a.apply(first.space(), Op::NoTrans, 2, this->dx, 0, ya);
    b.apply(second.space(), Op::NoTrans, -1, this->dx, 0, yb);
  }
  first.space().fence();
  second.space().fence();
  this->expect_product(ya, {2, 0});
  this->expect_product(yb, {-1, 0});
}

TYPED_TEST(DeviceStreams, CapturedInAGraph) {
  using Sum = typename TestFixture::Sum;
  const OwnStream own;
  const typename TestFixture::Plan plan(own.space(), this->device.view(), this->options());
  const auto dy = to_device<Kokkos::Cuda>(this->y);
  Kokkos::Cuda().fence();
  plan.apply(own.space(), this->dx, dy);
  own.space().fence();
  const auto wanted = to_host(dy);
  this->expect_product(dy, {1, 0});

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(own.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  plan.apply(own.space(), this->dx, dy);
  ASSERT_EQ(cudaStreamEndCapture(own.stream(), &graph), cudaSuccess);
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 1u) << "an apply is one launch";
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  for (int replay = 0; replay < 3; ++replay) {
    Kokkos::deep_copy(dy, as<Sum>(std::nan("")));
    Kokkos::Cuda().fence();
    ASSERT_EQ(cudaGraphLaunch(executable, own.stream()), cudaSuccess);
    own.space().fence();
    EXPECT_TRUE(same_bits(wanted, to_host(dy))) << "replay " << replay;
  }
  // Other numbers under the same graph: it names the plan's arrays, not their contents.
  const auto other = numbers<TypeParam>(this->A.cols, Data::Integers, 60);
  copy_to(other, this->dx);
  Kokkos::Cuda().fence();
  ASSERT_EQ(cudaGraphLaunch(executable, own.stream()), cudaSuccess);
  own.space().fence();
  EXPECT_TRUE(agrees<Sum>(this->A, {}, other, this->y, to_host(dy), true));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace Testing
}  // namespace Tessera

#else

TEST(DeviceStreams, NeedKokkosCuda) { GTEST_SKIP() << "Kokkos has no CUDA here"; }

#endif
