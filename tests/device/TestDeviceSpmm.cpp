// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMM on the device itself: every algorithm in every precision, the list of the emulated units and real matrices.

#include <gtest/gtest.h>

#include <utility>

#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestFp32.hpp"
#include "support/Tessera_TestSpmm.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "device/OwnStream.hpp"
#endif

namespace Tessera {
namespace Testing {

template <class Scalar_, SpmmAlgorithm algorithm_, ComputeType compute_ = ComputeType::Auto, class C_ = Scalar_>
struct SpmmOnDevice {
  using Scalar = Scalar_;
  using C = C_;
  static constexpr SpmmAlgorithm algorithm = algorithm_;
  static constexpr ComputeType compute = compute_;
};

template <class U>
class DeviceSpmm : public ::testing::Test {
 protected:
  using Suite = SpmmSuite<Kokkos::DefaultExecutionSpace, typename U::Scalar, typename U::Scalar, typename U::C>;
  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  DeviceSpmm() { suite.options.gespmm.tf32_copy = Tf32Copy::Always; }
  Suite suite{Backend::Auto, U::algorithm, U::compute};
  Pattern mixed = generate("every_length:longest=70:cols=90");
  Pattern heavy = generate("dense_row:others=1");
};

constexpr SpmmAlgorithm spmm_panels = SpmmAlgorithm::Panels, spmm_flash = SpmmAlgorithm::FlashSparse,
                        spmm_rows = SpmmAlgorithm::GeSpmm, spmm_automatic = SpmmAlgorithm::Auto;
#ifdef TESSERA_TEST_DEVICES_SKIP
using SpmmCases = ::testing::Types<SpmmOnDevice<double, spmm_panels>, SpmmOnDevice<float, spmm_rows, ComputeType::TF32>,
                                   SpmmOnDevice<half_t, spmm_panels, ComputeType::Auto, float>>;
#else
using SpmmCases =
    ::testing::Types<SpmmOnDevice<double, spmm_panels>, SpmmOnDevice<float, spmm_panels>,
                     SpmmOnDevice<float, spmm_panels, ComputeType::TF32>, SpmmOnDevice<half_t, spmm_panels>,
                     SpmmOnDevice<half_t, spmm_panels, ComputeType::Auto, float>, SpmmOnDevice<bhalf_t, spmm_panels>,
                     SpmmOnDevice<float, spmm_flash, ComputeType::TF32>, SpmmOnDevice<half_t, spmm_flash>,
                     SpmmOnDevice<double, spmm_rows>, SpmmOnDevice<float, spmm_rows>, SpmmOnDevice<half_t, spmm_rows>,
                     SpmmOnDevice<float, spmm_rows, ComputeType::TF32>, SpmmOnDevice<bhalf_t, spmm_rows>,
                     SpmmOnDevice<half_t, spmm_automatic>, SpmmOnDevice<float, spmm_automatic>>;
#endif
TYPED_TEST_SUITE(DeviceSpmm, SpmmCases);

TYPED_TEST(DeviceSpmm, EveryShape) { this->suite.every_shape({5, 40, 130}); }
TYPED_TEST(DeviceSpmm, EveryWidth) { this->suite.every_width(this->mixed, all_widths()); }
TYPED_TEST(DeviceSpmm, EveryWidthOfNarrowBlocks) {
  this->suite.options.num_columns_hint = 32;
  this->suite.every_width(this->mixed, {1, 16, 32, 65});
}
TYPED_TEST(DeviceSpmm, EveryScaling) { this->suite.every_scaling(this->mixed, 19); }
TYPED_TEST(DeviceSpmm, UndefinedOperands) { this->suite.undefined_operands(this->mixed, 13); }
TYPED_TEST(DeviceSpmm, BadRowsOfB) {
  for (const int columns : {9, 70, 128}) this->suite.bad_rows_of_b(this->mixed, columns);
}
TYPED_TEST(DeviceSpmm, SplitWindowsAndRows) {
  this->suite.options.panels.max_blocks = 1;
  this->suite.options.flash.max_blocks = 1;
  this->suite.options.gespmm.max_piece = 3;
  this->suite.every_width(this->mixed, {1, 33, 70, 300});
  this->suite.every_width(this->heavy, {20, 300});
  this->suite.bad_rows_of_b(this->mixed, 70);
}
TYPED_TEST(DeviceSpmm, FewLongRows) {  // which waves share
  const std::string spec = "random:rows=300:cols=2000:mean=200";
  this->suite.expect_pattern(generate(spec), spec, {8, 32, 64});
}
TYPED_TEST(DeviceSpmm, ManyRows) {  // several windows per wave
  const auto A = this->suite.matrix(generate("stencil2d:nx=330:ny=330"), Data::Integers, 3);
  const typename TestFixture::Suite::Device device(A);
  const typename TestFixture::Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), this->suite.options);
  this->suite.expect(plan, A, 130, Data::Integers);
}
// Rows of B that are read in narrow words, by every walk; C in columns by way of rows.
TYPED_TEST(DeviceSpmm, RowsOfBThatAreNotAligned) {
  for (const char* spec : {"stencil2d:nx=130:ny=100:points=9", "random:rows=300:cols=2000:mean=200", "rmat:scale=12",
                           "uniform:rows=20000:cols=9000:per_row=30", "dense_row:rows=300:cols=50000:others=1"}) {
    this->suite.expect_pattern(generate(spec), spec, {1, 2, 6, 7, 12, 13, 18, 25, 33, 50, 121});
  }
  const auto A = this->suite.matrix(generate("dense_row:rows=300:cols=50000:others=1"), Data::Integers, 3);
  const typename TestFixture::Suite::Device device(A);
  const typename TestFixture::Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), this->suite.options);
  for (const int columns : {1, 2, 7, 33}) {
    this->suite.template expect<ColumnMajorPart, ColumnMajorPart>(plan, A, columns, Data::Integers, {2, -3});
    this->suite.template expect<RowMajor, ColumnMajor>(plan, A, columns, Data::Integers);
  }
}
TYPED_TEST(DeviceSpmm, ManyUnevenRows) {
  const std::string spec = "rmat:scale=12";
  this->suite.expect_pattern(generate(spec), spec, {40});
}
/// Rows by the backend: f with each row spread over teams, then not.
template <class Suite, class F>
void with_and_without_spread(Suite& suite, const F& f) {
  if (suite.options.algorithm != spmm_rows) return;
  for (const RowSpread spread : {RowSpread::Always, RowSpread::Never}) {
    SCOPED_TRACE(spread == RowSpread::Always ? "spread" : "not spread");
    suite.options.gespmm.spread = spread;
    f();
  }
}
// Rows of a team, of a wave, of a thread block, and of several of these: the last one to arrive finishes them.
TYPED_TEST(DeviceSpmm, SpreadRows) {
  with_and_without_spread(this->suite, [&] {
    this->suite.every_width(this->mixed, {1, 8, 33, 130});
    for (const char* spec : {"every_length:longest=260:cols=300", "rmat:scale=12", "lp:rows=40:cols=9000:per_col=9"}) {
      this->suite.expect_pattern(generate(spec), spec, {8, 32, 130});
    }
    this->suite.bad_rows_of_b(this->mixed, 70);
    this->suite.options.gespmm.max_piece = 3;
    this->suite.every_width(this->mixed, {1, 33, 70, 300});
    this->suite.deterministic(generate("dense_row:rows=300:cols=50000:others=1"), 32);
    this->suite.no_allocation(this->heavy, 12);
    this->suite.options.gespmm.max_piece = 0;
    // A plan for one column has longer pieces, and rows of up to a thread block.
    const int usual = std::exchange(this->suite.options.num_columns_hint, 1);
    this->suite.expect_pattern(pattern_of_lengths({1, 0, 2048, 17, 5000, 300, 2049}, 5100), "one column", {1, 2, 4, 9});
    this->suite.options.num_columns_hint = usual;
  });
}
#if defined(KOKKOS_ENABLE_CUDA)
// One launch up to 32 tiles of columns, another for the pieces of a row beyond them: as statistics say.
using DeviceSpmmRows = DeviceSpmm<SpmmOnDevice<double, spmm_rows>>;
TEST_F(DeviceSpmmRows, LaunchesAreCounted) {
  const Suite::Matrix A = suite.matrix(heavy, Data::Integers, 5);
  const Suite::Device device(A);
  suite.options.gespmm = {3, Tf32Copy::Never, RowSpread::Always};
  for (const int columns : {16 * 32, 16 * 32 + 2}) {
    suite.options.num_columns_hint = columns;
    const OwnStream own;
    const Suite::Plan plan(own.space(), device.view(), suite.options);
    const auto n = static_cast<std::size_t>(columns);
    const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::CudaSpace> b("b", device.view().cols(), n),
        c("c", device.view().rows(), n);
    Kokkos::Cuda().fence();
    plan.apply(own.space(), b, c);
    own.space().fence();
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(own.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    plan.apply(own.space(), b, c);
    ASSERT_EQ(cudaStreamEndCapture(own.stream(), &graph), cudaSuccess);
    std::size_t nodes = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, columns == 16 * 32 ? 1u : 2u);
    EXPECT_EQ(nodes, static_cast<std::size_t>(plan.statistics().launches));
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}
#endif
TYPED_TEST(DeviceSpmm, TransposedProductAndNewValues) {
  this->suite.transposed_product_and_new_values(this->mixed, 21);
}
TYPED_TEST(DeviceSpmm, Deterministic) { this->suite.deterministic(this->heavy, 12); }
TYPED_TEST(DeviceSpmm, NoAllocation) { this->suite.no_allocation(this->mixed, 12); }
TYPED_TEST(DeviceSpmm, Ones) { this->suite.ones(5); }

// FP32 in parts of TF32 errs by no more than FP32 arithmetic: rows that it might err more on are not multiplied so.
using DeviceSpmmFp32 = DeviceSpmm<SpmmOnDevice<float, spmm_panels, ComputeType::FP32>>;
TEST_F(DeviceSpmmFp32, KeepsTheBoundOfFp32Arithmetic) {
  using Suite = DeviceSpmmFp32::Suite;
  for (const SpmmAlgorithm algorithm : {spmm_panels, spmm_rows, spmm_automatic}) {
    SCOPED_TRACE(to_string(algorithm));
    SpmmOptions options;
    options.algorithm = algorithm;
    options.compute = ComputeType::FP32;
    for (const int columns : {9, 40, 130}) {
      expect_fp32_bound(rows_for_parts(), columns, [&](const auto& A, const std::vector<float>& b, int n) {
        const Suite::Device device(A);
        const Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), options);
        const std::vector<float> c(static_cast<std::size_t>(A.rows * n), 0);
        return dense_product(plan, Op::NoTrans, n, {}, b, A.cols, c, A.rows);
      });
    }
  }
}
TEST_F(DeviceSpmmFp32, RowsApartAreRowsLikeOthers) {
  suite.expect_pattern(rows_for_parts(), "mixed", {5, 40, 130});
  suite.every_scaling(rows_for_parts(), 7);
  suite.transposed_product_and_new_values(rows_for_parts(), 9);
  for (const int columns : {9, 70}) suite.bad_rows_of_b(rows_for_parts(), columns);
  suite.undefined_operands(rows_for_parts(), 9);
  suite.no_allocation(rows_for_parts(), 9);
  suite.deterministic(rows_for_parts(), 9);
}

}  // namespace Testing
}  // namespace Tessera
