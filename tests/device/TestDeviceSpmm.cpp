// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMM on the device itself: every algorithm in every precision, the list of the emulated units and real matrices.

#include <gtest/gtest.h>

#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestSpmm.hpp"

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

constexpr SpmmAlgorithm panels = SpmmAlgorithm::Panels, flash = SpmmAlgorithm::FlashSparse,
                        ge_spmm = SpmmAlgorithm::GeSpmm, automatic = SpmmAlgorithm::Auto;
using SpmmCases = ::testing::Types<
    SpmmOnDevice<double, panels>, SpmmOnDevice<float, panels>, SpmmOnDevice<float, panels, ComputeType::TF32>,
    SpmmOnDevice<half_t, panels>, SpmmOnDevice<half_t, panels, ComputeType::Auto, float>, SpmmOnDevice<bhalf_t, panels>,
    SpmmOnDevice<float, flash, ComputeType::TF32>, SpmmOnDevice<half_t, flash>, SpmmOnDevice<double, ge_spmm>,
    SpmmOnDevice<float, ge_spmm>, SpmmOnDevice<half_t, ge_spmm>, SpmmOnDevice<float, ge_spmm, ComputeType::TF32>,
    SpmmOnDevice<bhalf_t, ge_spmm>, SpmmOnDevice<half_t, automatic>, SpmmOnDevice<float, automatic>>;
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
TYPED_TEST(DeviceSpmm, ManyRows) {  // several windows a wave
  const auto A = this->suite.matrix(generate("stencil2d:nx=330:ny=330"), Data::Integers, 3);
  const typename TestFixture::Suite::Device device(A);
  const typename TestFixture::Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), this->suite.options);
  this->suite.expect(plan, A, 130, Data::Integers);
}
TYPED_TEST(DeviceSpmm, ManyUnevenRows) {
  const std::string spec = "rmat:scale=12";
  this->suite.expect_pattern(generate(spec), spec, {40});
}
TYPED_TEST(DeviceSpmm, TransposedProductAndNewValues) {
  this->suite.transposed_product_and_new_values(this->mixed, 21);
}
TYPED_TEST(DeviceSpmm, Deterministic) { this->suite.deterministic(this->heavy, 12); }
TYPED_TEST(DeviceSpmm, NoAllocation) { this->suite.no_allocation(this->mixed, 12); }
TYPED_TEST(DeviceSpmm, Ones) { this->suite.ones(5); }

}  // namespace Testing
}  // namespace Tessera
