// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The kernels of packed slices on the device itself: the lists of formats and of the emulated waves, many repetitions
// where the order of arrival varies, hub columns in shared memory and beyond its size, streams, and capture in a CUDA
// graph (which also proves that apply neither allocates nor waits: both end a capture). With a Kokkos of hosts alone
// the lists would be tests/spmv once more.

#include <Kokkos_Macros.hpp>
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)

#include <gtest/gtest.h>

#include "support/Tessera_TestPacked.hpp"
#if defined(KOKKOS_ENABLE_CUDA)
#include "device/OwnStream.hpp"
#endif

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using PackedSuites = ::testing::Types<PackedSuite<Exec, double>, PackedSuite<Exec, float>, PackedSuite<Exec, half_t>,
                                      PackedSuite<Exec, bhalf_t>>;
INSTANTIATE_TYPED_TEST_SUITE_P(DevicePacked, FormatSpmv, PackedSuites);

template <class Suite>
class DevicePacked : public FormatSpmv<Suite> {};
TYPED_TEST_SUITE(DevicePacked, PackedSuites);
TYPED_TEST(DevicePacked, MaskedSteps) { TESSERA_EACH(masked_steps()); }
TYPED_TEST(DevicePacked, Diagonals) { TESSERA_EACH(diagonals()); }
TYPED_TEST(DevicePacked, ClassesChangeNoBit) { TESSERA_EACH(classes_change_no_bit()); }
TYPED_TEST(DevicePacked, NewValues) { TESSERA_EACH(new_values()); }
TYPED_TEST(DevicePacked, HubColumns) { TESSERA_EACH(hub_columns()); }
TYPED_TEST(DevicePacked, ColumnBlocks) { TESSERA_EACH(column_blocks()); }
// So many hubs that shared memory cannot hold them, in a matrix that has as many columns.
TYPED_TEST(DevicePacked, ManyHubs) {
  this->each([](auto& suite) {
    for (const int hubs : {8192, 20480, 32768, 65536}) {
      suite.options.packed.hubs = hubs;
      suite.expect_pattern(generate("rmat:scale=17:degree=8"), "hubs " + std::to_string(hubs));
    }
  });
}

#if defined(KOKKOS_ENABLE_CUDA)

template <class Scalar>
class PackedStreams : public ::testing::Test {
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
  /// Rows of many parts, and so scratch; in a value class or not, with hubs or not.
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
using StreamedScalars = ::testing::Types<double, float, half_t, bhalf_t>;
TYPED_TEST_SUITE(PackedStreams, StreamedScalars);

TYPED_TEST(PackedStreams, SetUpAndProductOnAnotherStream) {
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
    EXPECT_TRUE(has_class(plan.statistics(), name_of(PackedStorage::Full)));
    EXPECT_TRUE(agrees<typename TestFixture::Sum>(transposed(B), {}, this->x, this->y, to_host(dt), true));
  }
}

// No fence between the products: the plan itself must keep the second stream off the scratch of the first.
TYPED_TEST(PackedStreams, OnePlanOnTwoStreams) {
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
TYPED_TEST(PackedStreams, TwoPlansAtOnce) {
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

TYPED_TEST(PackedStreams, CapturedInAGraph) {
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

#endif

}  // namespace Testing
}  // namespace Tessera

#endif
