// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMM plans: what is chosen and why, empty matrices, the environment, workspaces, and what a plan promises about
// itself.

#include <gtest/gtest.h>

#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using SpmmPlanOf = SpmmPlan<typename DeviceMatrix<Exec, T>::Csr>;

SpmmOptions spmm_with(SpmmAlgorithm algorithm, Backend backend = Backend::Auto) {
  SpmmOptions o;
  o.algorithm = algorithm;
  o.backend = backend;
  return o;
}
std::vector<SpmmOptions> every_spmm() {
  std::vector<SpmmOptions> all = {spmm_with(SpmmAlgorithm::Auto),
                                  spmm_with(SpmmAlgorithm::Csr),
                                  spmm_with(SpmmAlgorithm::GeSpmm),
                                  spmm_with(SpmmAlgorithm::Auto, Backend::Reference),
                                  spmm_with(SpmmAlgorithm::FlashSparse),
                                  spmm_with(SpmmAlgorithm::Panels),
                                  spmm_with(SpmmAlgorithm::Auto, Backend::EmulatedNvidia)};
  if (emulates(Backend::EmulatedAmd)) {
    all.push_back(spmm_with(SpmmAlgorithm::FlashSparse, Backend::EmulatedAmd));
    all.push_back(spmm_with(SpmmAlgorithm::Panels, Backend::EmulatedAmd));
  }
  return all;
}
std::string name_of(const SpmmOptions& o) {
  return std::string(to_string(o.algorithm)) + " on " + to_string(o.backend);
}

TEST(SpmmPlan, EmptyMatricesScaleC) {
  for (const std::string spec : {"empty:rows=0:cols=0", "empty:rows=0:cols=7", "empty:rows=7:cols=0", "empty"}) {
    const auto A = make_matrix<half_t>(spec, Data::Integers, 1);
    const DeviceMatrix<Exec, half_t> device(A);
    for (SpmmOptions o : every_spmm()) {
      SCOPED_TRACE(spec + ", " + name_of(o));
      o.prepare_transpose = true;
      SpmmPlanOf<half_t> plan(Exec(), device.view(), o);
      plan.update_values(Exec(), device.view());
      for (const int n : {0, 3}) {
        const std::vector<half_t> b(static_cast<std::size_t>(A.cols * n), as<half_t>(std::nan("")));
        const std::vector<float> c(static_cast<std::size_t>(A.rows * n), 3), bad(c.size(), std::nanf(""));
        const auto run = [&](Scaling s, const std::vector<float>& to) {
          return dense_product<RowMajor, ColumnMajorPart>(plan, Op::NoTrans, n, s, b, A.cols, to, A.rows);
        };
        EXPECT_EQ(run({2, 5}, c), std::vector<float>(c.size(), 15));
        EXPECT_EQ(run({2, 0}, bad), std::vector<float>(c.size(), 0));
        const std::vector<half_t> bt(static_cast<std::size_t>(A.rows * n), as<half_t>(1));
        const std::vector<float> ct(static_cast<std::size_t>(A.cols * n), std::nanf(""));
        EXPECT_EQ(dense_product(plan, Op::Trans, n, {2, 0}, bt, A.rows, ct, A.cols), std::vector<float>(ct.size(), 0));
      }
      EXPECT_EQ(plan.statistics().nnz, 0);
    }
  }
  // No arrays at all.
  const CsrView<UsualScalar, int, OffsetOf<UsualScalar>, DeviceOf<Exec>> none;
  const SpmmPlanOf<UsualScalar> plan(Exec(), none);
  const std::vector<UsualScalar> nothing;
  EXPECT_TRUE(dense_product(plan, Op::NoTrans, 4, {}, nothing, 0, nothing, 0).empty());
}

// A 16-bit sum would stop at 2048 (half_t) or 256 (bhalf_t).
TEST(SpmmPlan, NarrowTypesSumInFloat) {
  for (const SpmmOptions& o : every_spmm()) {
    SCOPED_TRACE(name_of(o));
    SpmmSuite<Exec, half_t> half(Backend::Auto, SpmmAlgorithm::Auto);
    half.options = o;
    half.ones(5);
#ifndef TESSERA_TEST_FEWER_TYPES
    SpmmSuite<Exec, bhalf_t, bhalf_t, float> bhalf(Backend::Auto, SpmmAlgorithm::Auto);
    bhalf.options = o;
    bhalf.ones(5);
#endif
  }
}

TEST(SpmmPlan, FormatsHoldAllTheyNeed) {
  const auto A = make_matrix<half_t>(all_classes(100, 10), Data::Integers, 1);
  for (const SpmmAlgorithm algorithm : {SpmmAlgorithm::FlashSparse, SpmmAlgorithm::Panels}) {
    const DeviceMatrix<Exec, half_t> device(A);
    SpmmPlanOf<half_t> made(Exec(), device.view(), spmm_with(algorithm, Backend::EmulatedNvidia));
    if (made.statistics().fallback_taken) continue;
    Exec().fence();
    Kokkos::deep_copy(device.values, as<half_t>(std::nan("")));
    Kokkos::deep_copy(device.entries, -1);
    Kokkos::deep_copy(device.row_map, -1);
    const SpmmPlanOf<half_t> plan = std::move(made);
    const SpmmSuite<Exec, half_t, half_t, float> suite(Backend::EmulatedNvidia, algorithm);
    suite.expect(plan, A, 9, Data::Integers);
    EXPECT_EQ(plan.statistics().algorithm, to_string(algorithm));
  }
}

TEST(SpmmSelection, IsExplained) {
  const auto A = make_matrix<float>(all_classes(100, 10), Data::Integers, 1);
  const DeviceMatrix<Exec, float> device(A);
  const auto made = [&](const SpmmOptions& o) { return SpmmPlanOf<float>(Exec(), device.view(), o).statistics(); };
  const auto expect = [&](const SpmmOptions& o, const std::string& algorithm, const std::string& backend, bool fallback,
                          const std::string& why) {
    const Statistics s = made(o);
    EXPECT_EQ(s.operation, "spmm");
    EXPECT_EQ(s.algorithm, algorithm) << s.why;
    EXPECT_EQ(s.backend, backend) << s.why;
    EXPECT_EQ(s.fallback_taken, fallback) << s.why;
    EXPECT_NE(s.why.find(why), std::string::npos) << s.why;
  };
  expect({}, "gespmm", "kokkos", false, "no matrix units");
  expect(spmm_with(SpmmAlgorithm::Csr), "csr", "kokkos", false, "asked for");
  expect(spmm_with(SpmmAlgorithm::GeSpmm), "gespmm", "kokkos", false, "asked for");
  expect(spmm_with(SpmmAlgorithm::FlashSparse), "gespmm", "kokkos", true, "fp32");
  expect(spmm_with(SpmmAlgorithm::Panels, Backend::Kokkos), "gespmm", "kokkos", true, "Kokkos");
  expect(spmm_with(SpmmAlgorithm::Panels, Backend::Reference), "csr", "reference", true, "plain loops");
  SpmmOptions once;
  once.reuse = Reuse::Once;
  expect(once, "csr", "kokkos", false, "Reuse::Once");
  SpmmOptions tf32 = spmm_with(SpmmAlgorithm::FlashSparse, Backend::EmulatedNvidia);
  tf32.compute = ComputeType::TF32;
  expect(tf32, "flash", "emulated-nvidia", false, "asked for");
  EXPECT_EQ(made(tf32).compute, "tf32");
}

TEST(SpmmEnvironment, ChoosesWhatTheOptionsLeaveOpen) {
  const auto A = make_matrix<half_t>(all_classes(100, 10), Data::Integers, 1);
  const DeviceMatrix<Exec, half_t> device(A);
  const auto chosen = [&](const SpmmOptions& o) { return SpmmPlanOf<half_t>(Exec(), device.view(), o).options(); };
  EXPECT_EQ(chosen({}).algorithm, SpmmAlgorithm::GeSpmm);
  {
    const Environment spmv("TESSERA_FORCE_ALGORITHM", "dasp");  // SpMV's
    EXPECT_EQ(chosen({}).algorithm, SpmmAlgorithm::GeSpmm);
    const Environment e("TESSERA_FORCE_SPMM_ALGORITHM", "flash");
    EXPECT_EQ(chosen({}).algorithm, SpmmAlgorithm::FlashSparse);
    EXPECT_EQ(chosen({}).backend, Backend::EmulatedNvidia);
    EXPECT_EQ(chosen(spmm_with(SpmmAlgorithm::Csr)).algorithm, SpmmAlgorithm::Csr);
    const Environment both("TESSERA_FORCE_BACKEND", to_string(emulated_backends().back()));
    EXPECT_EQ(chosen({}).backend, emulated_backends().back());
  }
  const Environment e("TESSERA_FORCE_BACKEND", "reference");
  EXPECT_EQ(chosen({}).backend, Backend::Reference);
}

// Auto on matrix units multiplies what its format has no kernel for straight from CSR.
TEST(SpmmAuto, TakesMixedTypes) {
  const auto A = make_matrix<half_t>(all_classes(100, 10), Data::Integers, 1);
  const DeviceMatrix<Exec, half_t> device(A);
  const SpmmPlanOf<half_t> plan(Exec(), device.view(), spmm_with(SpmmAlgorithm::Auto, Backend::EmulatedNvidia));
#ifndef TESSERA_TEST_FEWER_TYPES
  const SpmmSuite<Exec, half_t, double, double> wide_operands(Backend::EmulatedNvidia, SpmmAlgorithm::Auto);
  wide_operands.expect(plan, A, 9, Data::Integers, {2.5, -1});
  wide_operands.expect<ColumnMajorPart, ColumnMajor>(plan, A, 9, Data::Integers, {2.5, -1});
#endif
  const SpmmSuite<Exec, half_t, half_t, float> own(Backend::EmulatedNvidia, SpmmAlgorithm::Auto);
  own.expect(plan, A, 9, Data::Integers, {2.5, -1});
}

TEST(SpmmStatistics, AddUp) {
  const auto A = make_matrix<half_t>(all_classes(100, 10), Data::Integers, 1);
  const DeviceMatrix<Exec, half_t> device(A);
  for (const SpmmOptions& o : every_spmm()) {
    SCOPED_TRACE(name_of(o));
    const SpmmPlanOf<half_t> plan(Exec(), device.view(), o);
    const Statistics s = plan.statistics();
    EXPECT_EQ(s.rows, A.rows);
    EXPECT_EQ(s.cols, A.cols);
    EXPECT_EQ(s.nnz, A.nnz());
    EXPECT_GE(s.stored, s.nnz);
    EXPECT_NEAR(s.padding_ratio, static_cast<double>(s.stored) / static_cast<double>(s.nnz) - 1, 1e-12);
    EXPECT_FALSE(s.why.empty());
    EXPECT_EQ(s.workspace_bytes, plan.workspace_bytes(o.num_columns_hint));
    EXPECT_GT(s.format_bytes, 0u);
    EXPECT_EQ(s.matrix_unit_share > 0, s.algorithm == "flash" || s.algorithm == "panels");
    EXPECT_FALSE(to_json(s).empty());
  }
}

TEST(SpmmUpdates, WithoutTheMap) {
  const auto A = make_matrix<half_t>(all_classes(100, 10), Data::Integers, 1);
  const DeviceMatrix<Exec, half_t> device(A);
  SpmmOptions o = spmm_with(SpmmAlgorithm::FlashSparse, Backend::EmulatedNvidia);
  const SpmmPlanOf<half_t> full(Exec(), device.view(), o);
  o.updatable = false;
  const SpmmPlanOf<half_t> fixed(Exec(), device.view(), o);
  EXPECT_EQ(full.format_bytes() - fixed.format_bytes(), 8u * static_cast<std::size_t>(A.nnz()));
  const SpmmSuite<Exec, half_t, half_t, float> suite(Backend::EmulatedNvidia, SpmmAlgorithm::FlashSparse);
  suite.expect(fixed, A, 9, Data::Integers);
}

TEST(SpmmDeterminism, EveryAlgorithm) {
  for (const SpmmOptions& o : every_spmm()) {
    SCOPED_TRACE(name_of(o));
    SpmmSuite<Exec, half_t, half_t, float> suite(Backend::Auto, SpmmAlgorithm::Auto);
    suite.options = o;
    suite.deterministic(all_classes(60, 5), 17);
  }
}

// A batch of small matrices as one block-diagonal one.
TEST(SpmmBatches, AreBlockDiagonal) {
  const auto A = make_matrix<UsualScalar>("batch:graphs=61", Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const SpmmSuite<Exec, UsualScalar> suite(Backend::Auto, SpmmAlgorithm::Auto);
  suite.expect(SpmmPlanOf<UsualScalar>(Exec(), device.view()), A, 16, Data::Integers);
}

// Columns or rows of one parent may be B and C: they share a range of memory, but no element.
TEST(SpmmOperands, MayBeInterleaved) {
  const auto A = make_matrix<UsualScalar>("dense:rows=6:cols=6", Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const SpmmPlanOf<UsualScalar> plan(Exec(), device.view());
  const Kokkos::View<UsualScalar**, Kokkos::LayoutRight, DeviceOf<Exec>> parent("parent", 12, 8);
  Kokkos::deep_copy(parent, 1.0);
  const auto part = [&](int row, int column, int columns) {
    return Kokkos::subview(parent, std::make_pair(row, row + 6), std::make_pair(column, column + columns));
  };
  UsualScalar sum = 0;
  for (int k = 0; k < 6; ++k) sum += A.values[static_cast<std::size_t>(k)];
  plan.apply(Exec(), part(0, 0, 3), part(0, 3, 3));
  plan.apply(Exec(), part(0, 6, 2), part(6, 5, 2));
  Exec().fence();
  EXPECT_EQ(parent(0, 0), 1);
  EXPECT_EQ(parent(0, 3), sum);
  EXPECT_EQ(parent(0, 5), sum);
  EXPECT_EQ(parent(6, 5), sum);
  EXPECT_EQ(parent(0, 6), 1);
  EXPECT_THROW(plan.apply(Exec(), part(0, 0, 3), part(0, 2, 3)), InvalidArgument);
  EXPECT_THROW(plan.apply(Exec(), part(0, 0, 3), part(3, 0, 3)), InvalidArgument);
}

}  // namespace Testing
}  // namespace Tessera
