// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM on streams of the caller: capture in a CUDA graph (which also proves that apply neither allocates nor waits:
// both end a capture), and two plans at once.

#include <gtest/gtest.h>

#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestSddmm.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "device/OwnStream.hpp"

namespace Tessera {
namespace Testing {

class SddmmStreams : public ::testing::TestWithParam<SddmmAlgorithm> {
 protected:
  using Suite = SddmmSuite<Kokkos::Cuda, float>;
  using Factor = Kokkos::View<float**, Kokkos::LayoutRight, DeviceOf<Kokkos::Cuda>>;
  static constexpr int inner = 32;

  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
    suite.options.bsmr.dense_from = 2;
  }
  static Factor upload_factor(const std::vector<float>& from, int rows) {
    const Factor to("factor", static_cast<std::size_t>(rows), inner);
    upload<Kokkos::Cuda::memory_space>(to.data(), from.data(), from.size() * sizeof(float));
    return to;
  }

  Suite suite{Backend::Auto, GetParam()};
  Suite::Matrix A = suite.matrix(generate("rmat:scale=11:degree=9"), Data::Integers);
};

TEST_P(SddmmStreams, CapturedInAGraph) {
  const Suite::Device device(A);
  const OwnStream own;
  const Suite::Plan plan(own.space(), device.view(), suite.options);
  const Suite::Operands o = suite.operands(A, inner, Data::Integers);
  const Factor x = upload_factor(o.x, A.rows), y = upload_factor(o.y, A.cols);
  const auto p = to_device<Kokkos::Cuda>(o.p);
  Kokkos::Cuda().fence();
  plan.apply(own.space(), x, y, p);
  own.space().fence();
  suite.check(A, inner, {}, o, to_host(p), true);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(own.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  plan.apply(own.space(), x, y, p);
  ASSERT_EQ(cudaStreamEndCapture(own.stream(), &graph), cudaSuccess);
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, static_cast<std::size_t>(plan.statistics().launches));
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  // Other numbers under the same graph: it names the arrays, not their contents.
  for (int replay = 0; replay < 3; ++replay) {
    Suite::Operands other = o;
    other.x = numbers<float>(static_cast<std::int64_t>(o.x.size()), Data::Integers, 60 + replay);
    upload<Kokkos::Cuda::memory_space>(x.data(), other.x.data(), other.x.size() * sizeof(float));
    Kokkos::deep_copy(p, std::nanf(""));
    Kokkos::Cuda().fence();
    ASSERT_EQ(cudaGraphLaunch(executable, own.stream()), cudaSuccess);
    own.space().fence();
    suite.check(A, inner, {}, other, to_host(p), true);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

// Two plans need no order between them.
TEST_P(SddmmStreams, TwoPlansAtOnce) {
  const Suite::Device device(A);
  const OwnStream first, second;
  const Suite::Plan a(first.space(), device.view(), suite.options), b(second.space(), device.view(), suite.options);
  const Suite::Operands o = suite.operands(A, inner, Data::Integers);
  const Factor x = upload_factor(o.x, A.rows), y = upload_factor(o.y, A.cols);
  const auto pa = to_device<Kokkos::Cuda>(o.p), pb = to_device<Kokkos::Cuda>(o.p);
  Kokkos::Cuda().fence();
  for (int i = 0; i < 20; ++i) {
    a.apply(first.space(), Op::NoTrans, 2, x, y, 0, pa);
    b.apply(second.space(), Op::NoTrans, -1, x, y, 0, pb);
  }
  first.space().fence();
  second.space().fence();
  suite.check(A, inner, {2, 0}, o, to_host(pa), true);
  suite.check(A, inner, {-1, 0}, o, to_host(pb), true);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SddmmStreams,
                         ::testing::Values(SddmmAlgorithm::Rows, SddmmAlgorithm::Panels, SddmmAlgorithm::Bsmr),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace Testing
}  // namespace Tessera

#else

TEST(SddmmStreams, NeedKokkosCuda) { GTEST_SKIP() << "Kokkos has no CUDA here"; }

#endif
