// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SddmmPlan on hosts: Kokkos' kernel and plain loops in every combination of types, what Auto chooses, and statistics.

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// Kokkos' kernel with set-up and without, and plain loops.
template <class Suite>
class HostSddmm : public ::testing::Test {
 protected:
  static void each(void (*f)(Suite&)) {
    for (const Backend backend : {Backend::Kokkos, Backend::Reference}) {
      SCOPED_TRACE(to_string(backend));
      Suite suite{backend, backend == Backend::Kokkos ? SddmmAlgorithm::Rows : SddmmAlgorithm::Csr};
      f(suite);
    }
  }
  static Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using PlanSuites = ::testing::Types<SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t, float>>;
#else
using PlanSuites = ::testing::Types<SddmmSuite<Exec, double>, SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t>,
                                    SddmmSuite<Exec, half_t, float>, SddmmSuite<Exec, bhalf_t>>;
#endif
TYPED_TEST_SUITE(HostSddmm, PlanSuites);

TYPED_TEST(HostSddmm, EveryShape) { TESSERA_EACH(every_shape({5, 40})); }
TYPED_TEST(HostSddmm, EveryInner) { TESSERA_EACH(every_inner(TestFixture::mixed(), all_inner())); }
// Between the widths of vectors, beside those above.
TYPED_TEST(HostSddmm, PartsOfVectors) { TESSERA_EACH(every_inner(TestFixture::mixed(), {2, 4, 5, 6, 7, 9, 12, 23})); }
TYPED_TEST(HostSddmm, EveryScaling) { TESSERA_EACH(every_scaling(TestFixture::mixed(), 19)); }
TYPED_TEST(HostSddmm, UndefinedOperands) { TESSERA_EACH(undefined_operands(TestFixture::mixed(), 13)); }
TYPED_TEST(HostSddmm, BadRows) { TESSERA_EACH(bad_rows(TestFixture::mixed(), 33)); }
TYPED_TEST(HostSddmm, Heads) { TESSERA_EACH(heads(TestFixture::mixed(), 17, 3)); }
TYPED_TEST(HostSddmm, NewValues) { TESSERA_EACH(new_values(TestFixture::mixed(), 21)); }
TYPED_TEST(HostSddmm, Deterministic) { TESSERA_EACH(deterministic(TestFixture::mixed(), 40)); }
TYPED_TEST(HostSddmm, NoAllocation) { TESSERA_EACH(no_allocation(TestFixture::mixed(), 12)); }

// Shares of threads are cut inside long rows.
TEST(SddmmPlan, LongRowsAmongShortOnes) {
  SddmmSuite<Exec, UsualScalar> suite{Backend::Kokkos, SddmmAlgorithm::Rows};
  suite.every_inner(generate("dense_row:rows=30:cols=100000"), {3, 16});
}

#ifndef TESSERA_TEST_FEWER_TYPES
// A pattern of one type, operands of others: by rows every combination.
TEST(SddmmPlan, OtherTypes) {
  const auto A = make_matrix<float>("ramp", Data::Integers, 1);
  const DeviceMatrix<Exec, float> device(A);
  SddmmOptions scaled;
  scaled.scale_by_values = true;
  const SddmmPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), scaled);
  const auto rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> x("x", rows, 3), y("y", cols, 3);
  Kokkos::deep_copy(x, 2);
  Kokkos::deep_copy(y, 0.125);
  const DeviceVector<Exec, double> p("p", static_cast<std::size_t>(A.nnz()));
  plan.apply(Exec(), x, y, p);
  Exec().fence();
  for (std::size_t e = 0; e < p.extent(0); ++e) EXPECT_EQ(p(e), 0.75 * A.values[e]);
}
#endif

TEST(SddmmPlan, OneShot) {
  const auto A = make_matrix<UsualScalar>("ramp", Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const auto rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
  const Kokkos::View<UsualScalar**, Kokkos::LayoutLeft, DeviceOf<Exec>> x("x", rows, 4), y("y", cols, 4);
  Kokkos::deep_copy(x, 3);
  Kokkos::deep_copy(y, 0.5);
  const DeviceVector<Exec, UsualScalar> p("p", static_cast<std::size_t>(A.nnz()));
  Kokkos::deep_copy(p, 10);
  sddmm(Exec(), 2, x, y, device.view(), -1, p);
  Exec().fence();
  for (std::size_t e = 0; e < p.extent(0); ++e) EXPECT_EQ(p(e), 2);
  sddmm(Exec(), 1, x, y, device.view(), 0, p, true);
  Exec().fence();
  for (std::size_t e = 0; e < p.extent(0); ++e) EXPECT_EQ(p(e), 6 * A.values[e]);
}

class SddmmChoices : public ::testing::Test {
 protected:
  using Csr = DeviceMatrix<Exec, float>::Csr;
  static Statistics of(const SddmmOptions& options) {
    const DeviceMatrix<Exec, float> device(make_matrix<float>("stencil2d:nx=23:ny=31:points=9", Data::Integers, 1));
    return SddmmPlan<Csr>(Exec(), device.view(), options).statistics();
  }
  ~SddmmChoices() override { unsetenv("TESSERA_FORCE_SDDMM_ALGORITHM"); }
};

TEST_F(SddmmChoices, HostsGoByRows) {
  const Statistics s = of({});
  EXPECT_STREQ(s.operation.c_str(), "sddmm");
  EXPECT_EQ(s.algorithm, "rows");
  EXPECT_EQ(s.backend, "kokkos");
  EXPECT_FALSE(s.why.empty());
  EXPECT_FALSE(s.fallback_taken);
}
TEST_F(SddmmChoices, OnceNeedsNoSetUp) {
  SddmmOptions once;
  once.reuse = Reuse::Once;
  EXPECT_EQ(of(once).algorithm, "csr");
}
TEST_F(SddmmChoices, Tf32OnHostsIsEmulated) {
  SddmmOptions tf32;
  tf32.compute = ComputeType::TF32;
  const Statistics s = of(tf32);
  EXPECT_EQ(s.algorithm, "panels");
  EXPECT_EQ(s.compute, "tf32");
  EXPECT_GT(s.format_bytes, 0u);
}
TEST_F(SddmmChoices, EnvironmentAsksOptionsAreStronger) {
  SddmmOptions options;
  options.backend = Backend::EmulatedNvidia;
  setenv("TESSERA_FORCE_SDDMM_ALGORITHM", "rows", 1);
  EXPECT_EQ(of(options).algorithm, "rows");
  options.algorithm = SddmmAlgorithm::Panels;
  EXPECT_EQ(of(options).algorithm, "panels");
  setenv("TESSERA_FORCE_SDDMM_ALGORITHM", "nonsense", 1);
  EXPECT_THROW(of({}), InvalidArgument);
}
TEST_F(SddmmChoices, PanelsFallBackToRowsWithoutMatrixUnits) {
  SddmmOptions options;
  options.algorithm = SddmmAlgorithm::Panels;
  options.backend = Backend::Kokkos;
  const Statistics s = of(options);
  EXPECT_EQ(s.algorithm, "rows");
  EXPECT_TRUE(s.fallback_taken);
}
// More entries than units can count go by rows, whatever they share.
TEST(SddmmRules, HugePatternsGoByRows) {
  SpmmFeatures f;
  f.rows = f.cols = 1000000;
  f.nnz = std::int64_t{5} << 30;
  f.g8 = 8;
  Impl::SddmmChoice choice;
  choice.precision = Precision::FP16;
  Impl::predict_sddmm(choice, f, {});
  EXPECT_EQ(choice.algorithm, SddmmAlgorithm::Rows);
  EXPECT_EQ(choice.candidates.size(), 1u);
}
// Where FP32 is multiplied in parts, panels are for sums of at least least_inner_in_parts products.
TEST(SddmmRules, FewProductsDoNotGoInParts) {
  for (const int inner : {8, 29, 30, 64}) {
    for (const bool in_parts : {false, true}) {
      SpmmFeatures f;
      f.rows = f.cols = 100000;
      f.nnz = 10000000;
      f.g8 = 8;
      Impl::SddmmChoice choice;
      choice.precision = Precision::FP32;
      SddmmOptions options;
      options.inner_hint = inner;
      Impl::predict_sddmm(choice, f, options, {8, 16, "test", in_parts});
      const bool rows = in_parts && inner < 30;
      EXPECT_EQ(choice.algorithm, rows ? SddmmAlgorithm::Rows : SddmmAlgorithm::Panels) << inner;
      EXPECT_EQ(choice.candidates.size(), rows ? 1u : 2u);
    }
  }
  EXPECT_TRUE(kernel_table(Backend::EmulatedNvidia).sddmm.shape(Precision::FP32).in_parts);
  EXPECT_FALSE(kernel_table(Backend::EmulatedNvidia).sddmm.shape(Precision::TF32).in_parts);
  if (!emulates(Backend::EmulatedAmd)) return;
  EXPECT_FALSE(kernel_table(Backend::EmulatedAmd).sddmm.shape(Precision::FP32).in_parts);
}
// More sharing of columns never turns Panels into Rows.
TEST(SddmmRules, MoreSharingMeansPanels) {
  for (const Precision precision : {Precision::FP64, Precision::FP32, Precision::TF32, Precision::FP16}) {
    for (const int inner : {8, 32, 128, 512}) {
      bool panels = false;
      for (double g8 = 1; g8 <= 8; g8 += 0.25) {
        SpmmFeatures f;
        f.rows = f.cols = 1000;
        f.nnz = 10000;
        f.g8 = g8;
        Impl::SddmmChoice choice;
        choice.precision = precision;
        SddmmOptions options;
        options.inner_hint = inner;
        Impl::predict_sddmm(choice, f, options);
        ASSERT_EQ(choice.candidates.size(), 2u);
        EXPECT_LE(choice.candidates[0].cost, choice.candidates[1].cost);
        EXPECT_EQ(choice.algorithm, choice.candidates[0].algorithm);
        const bool now = choice.algorithm == SddmmAlgorithm::Panels;
        EXPECT_GE(now, panels) << "g8 = " << g8;
        panels = now;
      }
      EXPECT_TRUE(panels) << "windows that share all columns";
    }
  }
}

}  // namespace Testing
}  // namespace Tessera
