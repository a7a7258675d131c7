// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM on the device itself: every algorithm in every precision.

#include <gtest/gtest.h>

#include "Tessera_Spmm.hpp"
#include "sddmm/SddmmOperands.hpp"
#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, SddmmAlgorithm algorithm_, ComputeType compute_ = ComputeType::Auto, class P_ = Scalar_,
          int window_height_ = 1, Tf32Copy copy_ = Tf32Copy::Auto>
struct SddmmOnDevice {
  using Scalar = Scalar_;
  using P = P_;
  static constexpr int window_height = window_height_;
  static constexpr SddmmAlgorithm algorithm = algorithm_;
  static constexpr ComputeType compute = compute_;
  static constexpr Tf32Copy copy = copy_;
};

template <class U>
class DeviceSddmm : public ::testing::Test {
 protected:
  using Suite = SddmmSuite<Kokkos::DefaultExecutionSpace, typename U::Scalar, typename U::P>;
  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
    suite.options.window_height = U::window_height;
    suite.options.tf32_copy = U::copy;
    suite.options.bsmr = {RowReordering::Clusters, 2};
  }
  Suite suite{Backend::Auto, U::algorithm, U::compute};
  Pattern mixed = generate("every_length:longest=70:cols=90");
};

constexpr SddmmAlgorithm panels = SddmmAlgorithm::Panels, rows = SddmmAlgorithm::Rows, bsmr = SddmmAlgorithm::Bsmr,
                         flash = SddmmAlgorithm::FlashSparse, automatic = SddmmAlgorithm::Auto;
constexpr ComputeType natural = ComputeType::Auto, tf32 = ComputeType::TF32;
#ifdef TESSERA_TEST_DEVICES_SKIP
using SddmmCases = ::testing::Types<SddmmOnDevice<double, panels>, SddmmOnDevice<float, flash, tf32, float, 0>,
                                    SddmmOnDevice<half_t, bsmr, natural, float, 2>>;
#else
using SddmmCases = ::testing::Types<
    SddmmOnDevice<double, panels>, SddmmOnDevice<float, panels>, SddmmOnDevice<float, panels, tf32>,
    SddmmOnDevice<half_t, panels>, SddmmOnDevice<half_t, panels, natural, float>, SddmmOnDevice<bhalf_t, panels>,
    SddmmOnDevice<double, panels, natural, double, 2>, SddmmOnDevice<float, panels, natural, float, 2>,
    SddmmOnDevice<float, panels, tf32, float, 2>, SddmmOnDevice<half_t, panels, natural, half_t, 2>,
    SddmmOnDevice<double, bsmr>, SddmmOnDevice<float, bsmr, tf32, float, 2>,
    SddmmOnDevice<half_t, bsmr, natural, float, 2>, SddmmOnDevice<double, flash, natural, double, 0>,
    SddmmOnDevice<float, flash, tf32, float, 0>, SddmmOnDevice<half_t, flash, natural, float, 0>,
    SddmmOnDevice<float, flash, tf32, float, 0, Tf32Copy::Always>, SddmmOnDevice<bhalf_t, flash, natural, bhalf_t, 0>,
    SddmmOnDevice<double, rows>, SddmmOnDevice<float, rows>, SddmmOnDevice<half_t, rows>,
    SddmmOnDevice<float, panels, tf32, float, 1, Tf32Copy::Always>,
    SddmmOnDevice<float, panels, tf32, float, 2, Tf32Copy::Always>, SddmmOnDevice<float, rows, tf32>,
    SddmmOnDevice<bhalf_t, rows>, SddmmOnDevice<half_t, automatic>, SddmmOnDevice<float, automatic>>;
#endif
TYPED_TEST_SUITE(DeviceSddmm, SddmmCases);

TYPED_TEST(DeviceSddmm, EveryShape) { this->suite.every_shape({5, 32, 128}); }
TYPED_TEST(DeviceSddmm, EveryInner) { this->suite.every_inner(this->mixed, all_inner()); }
TYPED_TEST(DeviceSddmm, MultiplesOfWords) {
  this->suite.every_inner(this->mixed, {4, 16, 32, 64, 96, 128, 192, 256, 512});
}
/// Rows alone has kernels of their own for many numbers of words.
TYPED_TEST(DeviceSddmm, EveryNumberOfWords) {
  if (TypeParam::algorithm != rows) return;
  this->suite.every_inner(this->mixed, inner_around_words<typename TypeParam::Scalar>());
}
TYPED_TEST(DeviceSddmm, EveryScaling) { this->suite.every_scaling(this->mixed, 19); }
TYPED_TEST(DeviceSddmm, UndefinedOperands) { this->suite.undefined_operands(this->mixed, 13); }
TYPED_TEST(DeviceSddmm, BadRows) { this->suite.bad_rows(this->mixed, 32); }
TYPED_TEST(DeviceSddmm, Heads) {
  this->suite.heads(this->mixed, 16, 3);
  this->suite.heads(this->mixed, 7, 2);
}
TYPED_TEST(DeviceSddmm, OneFactor) { this->suite.one_factor(generate("stencil2d:nx=23:ny=31:points=9"), 16); }
TYPED_TEST(DeviceSddmm, UnsortedColumns) { this->suite.every_inner(with_unsorted_columns(this->mixed), {1, 32, 50}); }
TYPED_TEST(DeviceSddmm, OperandsLieInAnyWay) { every_layout(this->suite, this->mixed, {13, 24, 50, 64, 100}); }
TYPED_TEST(DeviceSddmm, HeadsLieInAnyWay) {
  every_batch_layout(this->suite, this->mixed, 16, 3);
  every_batch_layout(this->suite, this->mixed, 5, 2);
}
TYPED_TEST(DeviceSddmm, BadNumbersStayWithTheirRows) {
  bad_numbers(this->suite, this->mixed, 32);
  bad_numbers(this->suite, this->mixed, 13);
}
TYPED_TEST(DeviceSddmm, LongRow) {
  const auto A = this->suite.matrix(generate("dense:rows=2:cols=100000"), Data::Integers);
  const typename TestFixture::Suite::Device device(A);
  const typename TestFixture::Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), this->suite.options);
  this->suite.expect(plan, A, 64, Data::Integers);
}
TYPED_TEST(DeviceSddmm, ManyRows) {  // several passes of a wave
  for (const char* spec : {"stencil2d:nx=330:ny=330", "rmat:scale=14"}) {
    const auto A = this->suite.matrix(generate(spec), Data::Integers);
    const typename TestFixture::Suite::Device device(A);
    const typename TestFixture::Suite::Plan plan(Kokkos::DefaultExecutionSpace(), device.view(), this->suite.options);
    this->suite.expect(plan, A, 32, Data::Integers);
    this->suite.expect(plan, A, 128, Data::Integers);
  }
}

// 64 bits per offset in every algorithm.
TEST(DeviceSddmmOffsets, Of64Bits) {
  using Exec = Kokkos::DefaultExecutionSpace;
  const std::string reason = why_no_matrix_unit();
  if (!reason.empty()) GTEST_SKIP() << reason;
  for (const SddmmAlgorithm algorithm : {automatic, panels, rows, flash, bsmr, SddmmAlgorithm::Csr}) {
    for (const char* spec : {"every_length:longest=70:cols=90", "rmat:scale=12:degree=9"}) {
      SCOPED_TRACE(std::string(to_string(algorithm)) + ", " + spec);
      const Pattern pattern = generate(spec);
      SddmmOptions options;
      options.algorithm = algorithm;
      options.fallback = false;
      options.bsmr = {RowReordering::Clusters, 2};
      for (const int inner : {13, 24, 32, 50}) {
        offsets_of_type<Exec, double, std::size_t>(options, pattern, inner);
        offsets_of_type<Exec, float, std::size_t>(options, pattern, inner);
      }
      options.compute = tf32;
      if (algorithm != SddmmAlgorithm::Csr) offsets_of_type<Exec, float, std::size_t>(options, pattern, 32);
    }
  }
}

/// On the windows of an SpMM plan, and straight into its numbers.
template <class T>
class DeviceSddmmShared : public ::testing::Test {};
#ifdef TESSERA_TEST_DEVICES_SKIP
using SharedTypes = ::testing::Types<half_t>;
#else
using SharedTypes = ::testing::Types<float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(DeviceSddmmShared, SharedTypes);

TYPED_TEST(DeviceSddmmShared, WindowsOfSpmm) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using Suite = SddmmSuite<Exec, TypeParam>;
  const std::string reason = why_no_matrix_unit();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const Suite suite(Backend::Auto, SddmmAlgorithm::FlashSparse, sizeof(TypeParam) == 4 ? tf32 : natural);
  for (const char* spec : {"every_length:longest=70:cols=90", "stencil2d:nx=330:ny=330", "rmat:scale=14"}) {
    for (const RowReordering order : {RowReordering::None, RowReordering::Clusters}) {
      for (const int length : {8, 16}) {
        SCOPED_TRACE(std::string(spec) + ", windows of " + std::to_string(length));
        const auto A = suite.matrix(generate(spec), Data::Integers);
        const typename Suite::Device device(A);
        SpmmOptions spmm;
        spmm.algorithm = SpmmAlgorithm::FlashSparse;
        spmm.compute = suite.options.compute;
        spmm.flash.vector_length = length;
        spmm.reordering = order;
        const SpmmPlan<typename Suite::Csr> product(Exec(), device.view(), spmm);
        const typename Suite::Plan plan(Exec(), device.view(), product, suite.options);
        // Every K on the small matrix.
        std::vector<int> inner{13, 32, 128};
        if (A.rows < 1000) inner = all_inner();
        for (const int k : inner) suite.expect(plan, A, k, Data::Integers, {2.5, -1});
        if (A.rows < 1000) {
          for (const int k : inner) suite.template expect<AcrossRows>(plan, A, k, Data::Integers, {-0.5, 1});
        }
      }
    }
  }
}

TYPED_TEST(DeviceSddmm, NewValues) { this->suite.new_values(this->mixed, 21); }
TYPED_TEST(DeviceSddmm, Deterministic) { this->suite.deterministic(this->mixed, 12); }
TYPED_TEST(DeviceSddmm, NoAllocation) { this->suite.no_allocation(this->mixed, 12); }

}  // namespace Testing
}  // namespace Tessera
