// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMV on streams: set-up and product away from the default stream, one plan with scratch on two streams in turn, and
// capture in a CUDA graph (which also proves that apply neither allocates nor waits: both end a capture).

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "support/Tessera_TestPacked.hpp"

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
  static constexpr const char* spec = "web:n=20011:tail=1.2:longest=15000";
  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
    A = make_matrix<Scalar>(spec, Data::Integers, 5);
    device = Device(A);
    x = numbers<Scalar>(A.cols, Data::Integers, 6);
    y = numbers<Sum>(A.rows, Data::Integers, 7);
    dx = to_device<Exec>(x);
    Exec().fence();
  }
  /// Rows of many parts, and so scratch; packed slices in a value class or not, with hubs or column blocks or not, and
  /// DASP, which has no FP32.
  static std::vector<SpmvOptions> ways() {
    std::vector<SpmvOptions> all;
    for (const bool classes : {false, true}) {
      SpmvOptions o;
      o.algorithm = SpmvAlgorithm::PackedSlices;
      o.backend = Backend::Cuda;
      o.packed.max_steps = o.packed.split_steps = 4;
      o.packed.value_classes = classes;
      all.push_back(o);
    }
    all.resize(4, all[0]);
    all[2].packed.hubs = 500;
    all[3].packed.column_blocks = 3;
    if constexpr (!std::is_same_v<Scalar, float>) {
      SpmvOptions o;
      o.algorithm = SpmvAlgorithm::Dasp;
      o.backend = Backend::Cuda;
      o.dasp.entries_per_wave = 128;
      all.push_back(o);
    }
    return all;
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
using StreamScalars = ::testing::Types<double, float, half_t, bhalf_t>;
TYPED_TEST_SUITE(DeviceStreams, StreamScalars);

TYPED_TEST(DeviceStreams, SetUpAndProductOnAnotherStream) {
  for (SpmvOptions o : this->ways()) {
    const OwnStream own;
    o.prepare_transpose = true;
    typename TestFixture::Plan plan(own.space(), this->device.view(), o);
    const auto dy = to_device<Kokkos::Cuda>(this->y);
    Kokkos::Cuda().fence();
    plan.apply(own.space(), Op::NoTrans, 2.5, this->dx, -1, dy);
    own.space().fence();
    this->expect_product(dy, {2.5, -1});
    // New values there too, which leave the class if there is one, and both operators after them.
    auto B = this->A;
    for (std::size_t i = 0; i < B.values.size(); ++i) {
      B.values[i] = as<TypeParam>(number(Data::Integers, 8, i) + (i % 7 == 0 ? 0.5 : 0) + 200.0 * (i % 301 == 0));
    }
    const auto fresh = to_device<Kokkos::Cuda>(B.values);
    const auto dt = to_device<Kokkos::Cuda>(this->y);
    Kokkos::Cuda().fence();
    plan.update_values(own.space(), fresh);
    plan.apply(own.space(), Op::Trans, 1, this->dx, 0, dt);
    own.space().fence();
    EXPECT_EQ(has_class(plan.statistics(), name_of(PackedStorage::Full)), o.algorithm != SpmvAlgorithm::Dasp);
    EXPECT_TRUE(agrees<typename TestFixture::Sum>(transposed(B), {}, this->x, this->y, to_host(dt), true));
  }
}

// No fence between the products: the plan itself must keep the second stream off the scratch of the first.
TYPED_TEST(DeviceStreams, OnePlanOnTwoStreams) {
  for (const SpmvOptions& o : this->ways()) {
    const OwnStream first, second;
    const typename TestFixture::Plan plan(first.space(), this->device.view(), o);
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
}

// Two plans with scratch of their own need no order.
TYPED_TEST(DeviceStreams, TwoPlansAtOnce) {
  for (const SpmvOptions& o : this->ways()) {
    const OwnStream first, second;
    const typename TestFixture::Plan a(first.space(), this->device.view(), o),
        b(second.space(), this->device.view(), o);
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
}

TYPED_TEST(DeviceStreams, CapturedInAGraph) {
  using Sum = typename TestFixture::Sum;
  for (const SpmvOptions& o : this->ways()) {
    const OwnStream own;
    const typename TestFixture::Plan plan(own.space(), this->device.view(), o);
    copy_to(this->x, this->dx);
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
    EXPECT_EQ(nodes, static_cast<std::size_t>(plan.statistics().launches));
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
}

}  // namespace Testing
}  // namespace Tessera

#else

TEST(DeviceStreams, NeedKokkosCuda) { GTEST_SKIP() << "Kokkos has no CUDA here"; }

#endif
