// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM on streams of the caller: capture in a CUDA graph (which also proves that apply neither allocates nor waits:
// both end a capture), and two plans at once.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestSddmm.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "device/OwnStream.hpp"

namespace Tessera {
namespace Testing {

struct SddmmStreamCase {
  const char* name;
  SddmmAlgorithm algorithm;
  ComputeType compute = ComputeType::Auto;
  Tf32Copy copy = Tf32Copy::Auto;
  bool apart = false;  ///< X and Y by columns, every third number of P: a copy each
};
std::ostream& operator<<(std::ostream& to, const SddmmStreamCase& c) { return to << c.name; }

class SddmmStreams : public ::testing::TestWithParam<SddmmStreamCase> {
 protected:
  using Suite = SddmmSuite<Kokkos::Cuda, float>;
  template <class Layout>
  using Factor = Kokkos::View<float**, Layout, DeviceOf<Kokkos::Cuda>>;
  static constexpr int inner = 32;

  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
    suite.options.bsmr.dense_from = 2;
    suite.options.inner_hint = inner;  // of which statistics count the launches
    suite.options.tf32_copy = GetParam().copy;
  }
  template <class Layout>
  static void fill(const Factor<Layout>& to, const std::vector<float>& rows) {
    std::vector<float> data = rows;
    const std::size_t n = to.extent(0);
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutLeft>) {
      for (std::size_t i = 0; i < rows.size(); ++i) data[i % inner * n + i / inner] = rows[i];
    }
    upload<Kokkos::Cuda::memory_space>(to.data(), data.data(), data.size() * sizeof(float));
  }
  template <class Layout>
  static Factor<Layout> factor(const std::vector<float>& rows) {
    const Factor<Layout> to("factor", rows.size() / inner, inner);
    fill<Layout>(to, rows);
    return to;
  }

  /// copies: launches beside those that statistics count.
  template <class Layout, class POrder>
  void capture(std::size_t copies) {
    const Suite::Device device(A);
    const OwnStream own;
    const Suite::Plan plan(own.space(), device.view(), suite.options);
    const Suite::Operands o = suite.operands(A, inner, Data::Integers);
    const Factor<Layout> x = factor<Layout>(o.x), y = factor<Layout>(o.y);
    const GuardedVector<Kokkos::Cuda, float, POrder> p(o.p, 77);
    Kokkos::Cuda().fence();
    plan.apply(own.space(), x, y, p.column());
    own.space().fence();
    suite.check(A, inner, {}, o, p.read(), true);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(own.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    plan.apply(own.space(), x, y, p.column());
    ASSERT_EQ(cudaStreamEndCapture(own.stream(), &graph), cudaSuccess);
    std::size_t nodes = 0;
    ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, static_cast<std::size_t>(plan.statistics().launches) + copies);
    ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    // Other numbers under the same graph: it names the arrays, not their contents.
    for (int replay = 0; replay < 3; ++replay) {
      Suite::Operands other = o;
      other.x = numbers<float>(static_cast<std::int64_t>(o.x.size()), Data::Integers, 60 + replay);
      other.y = numbers<float>(static_cast<std::int64_t>(o.y.size()), Data::Integers, 70 + replay);
      fill<Layout>(x, other.x);
      fill<Layout>(y, other.y);
      Kokkos::deep_copy(p.column(), std::nanf(""));
      Kokkos::Cuda().fence();
      ASSERT_EQ(cudaGraphLaunch(executable, own.stream()), cudaSuccess);
      own.space().fence();
      suite.check(A, inner, {}, other, p.read(), true);
    }
    EXPECT_TRUE(p.intact()) << "something beside P was written";
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }

  Suite suite{Backend::Auto, GetParam().algorithm, GetParam().compute};
  Suite::Matrix A = suite.matrix(generate("rmat:scale=11:degree=9"), Data::Integers);
};

TEST_P(SddmmStreams, CapturedInAGraph) {
  if (GetParam().apart) return capture<Kokkos::LayoutLeft, Kokkos::LayoutRight>(3);
  capture<Kokkos::LayoutRight, Kokkos::LayoutLeft>(0);
}

// Two plans need no order between them.
TEST_P(SddmmStreams, TwoPlansAtOnce) {
  const Suite::Device device(A);
  const OwnStream first, second;
  const Suite::Plan a(first.space(), device.view(), suite.options), b(second.space(), device.view(), suite.options);
  const Suite::Operands o = suite.operands(A, inner, Data::Integers);
  const auto x = factor<Kokkos::LayoutRight>(o.x), y = factor<Kokkos::LayoutRight>(o.y);
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

constexpr ComputeType natural = ComputeType::Auto, tf32 = ComputeType::TF32;
constexpr Tf32Copy always = Tf32Copy::Always, never = Tf32Copy::Never;
const SddmmStreamCase stream_cases[] = {{"auto", SddmmAlgorithm::Auto},
                                        {"rows", SddmmAlgorithm::Rows},
                                        {"panels", SddmmAlgorithm::Panels},
                                        {"flash", SddmmAlgorithm::FlashSparse},
                                        {"bsmr", SddmmAlgorithm::Bsmr},
                                        {"auto_tf32", SddmmAlgorithm::Auto, tf32},
                                        {"panels_tf32_copied", SddmmAlgorithm::Panels, tf32, always},
                                        {"flash_tf32_copied", SddmmAlgorithm::FlashSparse, tf32, always},
                                        {"auto_apart", SddmmAlgorithm::Auto, natural, never, true},
                                        {"rows_apart", SddmmAlgorithm::Rows, natural, never, true},
                                        {"flash_apart", SddmmAlgorithm::FlashSparse, natural, never, true},
                                        {"bsmr_apart", SddmmAlgorithm::Bsmr, natural, never, true},
                                        {"panels_tf32_copied_apart", SddmmAlgorithm::Panels, tf32, always, true}};
INSTANTIATE_TEST_SUITE_P(Cases, SddmmStreams, ::testing::ValuesIn(stream_cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace Testing
}  // namespace Tessera

#else

TEST(SddmmStreams, NeedKokkosCuda) { GTEST_SKIP() << "Kokkos has no CUDA here"; }

#endif
