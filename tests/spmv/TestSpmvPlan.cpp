// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Plans: cases that once went wrong somewhere, the environment, workspaces, and what a plan promises about itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

#include "Tessera_Config.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestAddressSpace.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using PlanOf = SpmvPlan<typename DeviceMatrix<Exec, T>::Csr>;

SpmvOptions with(SpmvAlgorithm algorithm, Backend backend) {
  SpmvOptions o;
  o.algorithm = algorithm;
  o.backend = backend;
  return o;
}
std::vector<SpmvOptions> every_way() {
  std::vector<SpmvOptions> all = {
      with(SpmvAlgorithm::Csr, Backend::Auto), with(SpmvAlgorithm::Auto, Backend::Reference),
      with(SpmvAlgorithm::PackedSlices, Backend::Auto), with(SpmvAlgorithm::Csr5, Backend::Auto)};
  for (const Backend backend : emulated_backends()) {
    all.push_back(with(SpmvAlgorithm::Dasp, backend));
    all.push_back(with(SpmvAlgorithm::PackedSlices, backend));
  }
  return all;
}

// A 16-bit sum would stop at 2048 (half_t) or 256 (bhalf_t).
template <class Scalar>
void expect_4096_ones() {
  HostMatrix<Scalar> A = make_matrix<Scalar>("dense:rows=1:cols=4096", Data::Integers, 1);
  std::fill(A.values.begin(), A.values.end(), as<Scalar>(1));
  const DeviceMatrix<Exec, Scalar> device(A);
  const std::vector<Scalar> x(4096, as<Scalar>(1));
  for (const SpmvOptions& o : every_way()) {
    const PlanOf<Scalar> plan(Exec(), device.view(), o);
    EXPECT_EQ(product(plan, Scaling{}, x, std::vector<float>(1, 0.0f))[0], 4096.0f) << to_string(o.backend);
    EXPECT_EQ(wide(product(plan, Scaling{}, x, std::vector<Scalar>(1, as<Scalar>(0)))[0]), 4096.0);
  }
}
TEST(NarrowTypes, SumInFloat) {
  expect_4096_ones<half_t>();
#ifndef TESSERA_TEST_FEWER_TYPES  // which link plans of FP64 and FP16 alone
  expect_4096_ones<bhalf_t>();
#endif
}

TEST(EmptyMatrices, ScaleY) {
  for (const std::string spec : {"empty:rows=0:cols=0", "empty:rows=0:cols=7", "empty:rows=7:cols=0", "empty"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<double>(spec, Data::Integers, 1);
    const DeviceMatrix<Exec, double> device(A);
    for (SpmvOptions o : every_way()) {
      o.prepare_transpose = o.backend != Backend::Reference;
      PlanOf<double> plan(Exec(), device.view(), o);
      plan.update_values(Exec(), device.view());
      const std::vector<double> x(static_cast<std::size_t>(A.cols), std::nan(""));
      const std::vector<double> y(static_cast<std::size_t>(A.rows), 3), bad(y.size(), std::nan(""));
      EXPECT_EQ(product(plan, Scaling{2, 5}, x, y), std::vector<double>(y.size(), 15));
      EXPECT_EQ(product(plan, Scaling{2, 0}, x, bad), std::vector<double>(y.size(), 0));
      if (o.prepare_transpose) {
        EXPECT_EQ(product(plan, Op::Trans, {2, 0}, y, x), std::vector<double>(x.size(), 0));
      }
      EXPECT_EQ(plan.statistics().nnz, 0);
    }
  }
  // No arrays at all.
  const CsrView<double, int, std::size_t, DeviceOf<Exec>> none;
  EXPECT_TRUE(validate(Exec(), none).valid);
  const SpmvPlan<CsrView<double, int, std::size_t, DeviceOf<Exec>>> plan(Exec(), none);
  EXPECT_TRUE(product(plan, Scaling{}, std::vector<double>(), std::vector<double>()).empty());
}

// A plan of Dasp holds all it needs: the caller's values may go.
TEST(DaspPlan, DoesNotReadTheMatrixAgain) {
  const auto A = make_matrix<double>(all_classes(600, 50), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const PlanOf<double> plan(Exec(), device.view(), with(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia));
  Exec().fence();
  Kokkos::deep_copy(device.values, std::nan(""));
  Kokkos::deep_copy(device.entries, -1);
  Kokkos::deep_copy(device.row_map, -1);
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  EXPECT_TRUE(agrees<double>(A, {}, x, y, product(plan, Scaling{}, x, y), true));
}

TEST(DaspPlan, CanBeMoved) {
  const auto A = make_matrix<double>(all_classes(2000, 50, 2001), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  PlanOf<double> plan(Exec(), device.view(), with(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia));
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  const auto before = product(plan, Scaling{}, x, y);
  const PlanOf<double> moved = std::move(plan);
  EXPECT_TRUE(same_bits(before, product(moved, Scaling{}, x, y)));
}

// A format without its update map is smaller and multiplies all the same.
TEST(DaspPlan, WithoutUpdates) {
  const auto A = make_matrix<double>(all_classes(600, 50), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  SpmvOptions o = with(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia);
  const PlanOf<double> full(Exec(), device.view(), o);
  o.updatable = false;
  const PlanOf<double> fixed(Exec(), device.view(), o);
  EXPECT_EQ(full.format_bytes() - fixed.format_bytes(), 12u * static_cast<unsigned>(A.rows));
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  EXPECT_TRUE(agrees<double>(A, {}, x, y, product(fixed, Scaling{}, x, y), true));
}

#ifdef TESSERA_TEST_LIMITS_ADDRESS_SPACE
// New numbers that packets of the old class do not hold, and no memory for others: the plan has its old numbers.
TEST(PackedPlan, KeepsItsNumbersWithoutRoom) {
  auto A = make_matrix<double>(generate("random:rows=50000:cols=3000:mean=100"), Data::Integers, 1);
  std::fill(A.values.begin(), A.values.end(), 3.0);
  const DeviceMatrix<Exec, double> device(A);
  auto B = A;
  for (std::size_t i = 0; i < B.values.size(); ++i) B.values[i] = 1.0 / static_cast<double>(i + 1);
  const DeviceMatrix<Exec, double> fresh(B);
  PlanOf<double> plan(Exec(), device.view(), with(SpmvAlgorithm::PackedSlices, Backend::EmulatedNvidia));
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  const auto before = product(plan, Scaling{}, x, y);
  ASSERT_LT(plan.statistics().format_bytes, 8 * A.values.size()) << "the numbers are in no class";
  {
    const LimitedAddressSpace little(LimitedAddressSpace::used() + (rlim_t{8} << 20));
    EXPECT_THROW(plan.update_values(Exec(), fresh.view().values()), OutOfMemory);  // of 40 MB
  }
  EXPECT_EQ(Impl::PlanAccess::matrix(plan).values().data(), device.view().values().data());
  EXPECT_TRUE(same_bits(before, product(plan, Scaling{}, x, y)));
  plan.update_values(Exec(), fresh.view().values());
  EXPECT_TRUE(agrees<double>(B, {}, x, y, product(plan, Scaling{}, x, y), false));
}
#endif

class WorkspacePlan : public ::testing::TestWithParam<Backend> {};
// Exactly workspace_bytes(), whatever stands in it, and not one byte beyond; two plans may share it in turn.
TEST_P(WorkspacePlan, OfTheExactSize) {
  const auto A = make_matrix<double>(all_classes(2000, 50, 2001), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  SpmvOptions o = with(SpmvAlgorithm::Dasp, GetParam());
  const std::size_t need = PlanOf<double>(Exec(), device.view(), o).workspace_bytes();
  ASSERT_GT(need, 0u);
  struct alignas(16) Unit {
    unsigned char bytes[16];
  };
  std::vector<Unit> memory((need + 15) / 16 + 4);
  unsigned char* begin = memory[0].bytes;
  std::memset(begin, 0xa5, 16 * memory.size());
  o.workspace = {begin, need};
  const PlanOf<double> first(Exec(), device.view(), o), second(Exec(), device.view(), o);
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(agrees<double>(A, {}, x, y, product(first, Scaling{}, x, y), true));
    EXPECT_TRUE(agrees<double>(A, {2.5, -1}, x, y, product(second, Scaling{2.5, -1}, x, y), true));
  }
  for (std::size_t i = need; i < 16 * memory.size(); ++i) ASSERT_EQ(begin[i], 0xa5) << "byte " << i << " of " << need;
}
INSTANTIATE_TEST_SUITE_P(Units, WorkspacePlan, ::testing::ValuesIn(emulated_backends()));

TEST(Environment, ChoosesWhatTheOptionsLeaveOpen) {
  const auto A = make_matrix<double>(all_classes(600, 50), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const auto chosen = [&](const SpmvOptions& o) { return PlanOf<double>(Exec(), device.view(), o).options(); };
  EXPECT_EQ(chosen({}).algorithm, SpmvAlgorithm::PackedSlices);
  EXPECT_EQ(chosen({}).backend, Backend::Kokkos);
  {
    const Environment e("TESSERA_FORCE_BACKEND", to_string(emulated_backends().back()));
    EXPECT_EQ(chosen({}).backend, emulated_backends().back());
    EXPECT_EQ(chosen({}).algorithm, SpmvAlgorithm::PackedSlices);
    EXPECT_EQ(chosen(with(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia)).backend, Backend::EmulatedNvidia);
    const Environment both("TESSERA_FORCE_ALGORITHM", "csr");
    EXPECT_EQ(chosen({}).algorithm, SpmvAlgorithm::Csr);
    EXPECT_EQ(chosen(with(SpmvAlgorithm::Dasp, Backend::Auto)).algorithm, SpmvAlgorithm::Dasp);
  }
  {
    const Environment e("TESSERA_FORCE_ALGORITHM", "dasp");
    EXPECT_EQ(chosen({}).algorithm, SpmvAlgorithm::Dasp);
    EXPECT_EQ(chosen({}).backend, Backend::EmulatedNvidia);
  }
  {
    const Environment e("TESSERA_FORCE_BACKEND", "reference");
    EXPECT_EQ(chosen({}).backend, Backend::Reference);
  }
  EXPECT_EQ(chosen({}).algorithm, SpmvAlgorithm::PackedSlices);
}

#ifndef TESSERA_TEST_FEWER_TYPES
// What cannot run on matrix units runs as CSR and says so, unless that is forbidden (see the table of bad calls).
TEST(Fallback, IsTakenAndReported) {
  const auto A = make_matrix<float>(all_classes(600, 50), Data::Integers, 1);
  const DeviceMatrix<Exec, float> device(A);
  const PlanOf<float> plan(Exec(), device.view(), with(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia));
  const Statistics s = plan.statistics();
  EXPECT_TRUE(s.fallback_taken);
  EXPECT_EQ(s.algorithm, "csr");
  EXPECT_NE(s.why.find("fp32"), std::string::npos) << s.why;
  const auto x = numbers<float>(A.cols, Data::Integers, 2), y = numbers<float>(A.rows, Data::Integers, 3);
  EXPECT_TRUE(agrees<float>(A, {}, x, y, product(plan, Scaling{}, x, y), true));
}
#endif

// A double matrix in 16-bit arithmetic: rounded once, at set-up and at every update.
template <class Narrow>
void expect_rounded_once(ComputeType compute, Backend backend) {
  const Pattern p = all_classes(600, 100);
  for (const std::uint64_t seed : {1, 2}) {
    const auto A = make_matrix<double>(p, Data::Magnitudes, seed), first = make_matrix<double>(p, Data::Real, 9);
    HostMatrix<Narrow> rounded = make_matrix<Narrow>(p, Data::Magnitudes, seed);
    const DeviceMatrix<Exec, double> device(first);
    SpmvOptions o = with(SpmvAlgorithm::Dasp, backend);
    o.compute = compute;
    PlanOf<double> plan(Exec(), device.view(), o);
    copy_to(A.values, device.values);
    plan.update_values(Exec(), device.view());
    const auto x = numbers<Narrow>(A.cols, Data::Magnitudes, 2);
    const auto y = numbers<float>(A.rows, Data::Magnitudes, 3);
    EXPECT_TRUE(agrees<float>(rounded, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), false));
  }
}
TEST(NarrowCompute, RoundsTheMatrixOnce) {
  for (const Backend backend : emulated_backends()) {
    expect_rounded_once<half_t>(ComputeType::FP16_FP32, backend);
#ifndef TESSERA_TEST_FEWER_TYPES
    expect_rounded_once<bhalf_t>(ComputeType::BF16_FP32, backend);
#endif
  }
}

// A plan of a function's local Views, which are gone when it multiplies.
TEST(PlanOfLocalViews, KeepsThemAlive) {
  const auto A = make_matrix<double>(all_classes(100, 10), Data::Integers, 1);
  const auto x = numbers<double>(A.cols, Data::Integers, 2), y = numbers<double>(A.rows, Data::Integers, 3);
  for (const SpmvOptions& o : every_way()) {
    SCOPED_TRACE(std::string(to_string(o.algorithm)) + " on " + to_string(o.backend));
    const auto made = [&] {
      const DeviceMatrix<Exec, double> local(A);
      return PlanOf<double>(Exec(), local.view(), o);
    };
    PlanOf<double> plan = made();
    EXPECT_TRUE(agrees<double>(A, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), true));
    plan.update_values(Exec(), to_device<Exec>(A.values));
    EXPECT_TRUE(agrees<double>(A, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), true));
  }
}

// Columns of one parent, in rows or one after the other, may be x and y: they share a range, but no element.
TEST(Vectors, MayBeInterleaved) {
  const auto A = make_matrix<double>("dense:rows=4:cols=4", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const PlanOf<double> plan(Exec(), device.view());
  double sum = 0;
  for (int k = 0; k < 4; ++k) sum += A.values[static_cast<std::size_t>(k)];
  using Strided = Kokkos::View<double**, Kokkos::LayoutStride, DeviceOf<Exec>>;
  const auto expect_apart = [&](std::size_t row_stride, std::size_t column_stride, std::size_t shift) {
    const Kokkos::View<double*, DeviceOf<Exec>> parent("parent", 32);
    Kokkos::deep_copy(parent, 1.0);
    const Kokkos::LayoutStride layout(4, row_stride, 2, column_stride);
    const Strided x(parent.data(), layout), y(parent.data() + shift, layout);
    plan.apply(Exec(), x, y);
    Exec().fence();
    EXPECT_EQ(x(0, 0), 1);
    EXPECT_EQ(y(0, 0), sum);
    EXPECT_EQ(y(0, 1), sum);
    EXPECT_EQ(x(3, 1), 1);
  };
  expect_apart(4, 1, 2);  // columns 0, 1 and 2, 3 in rows of four
  expect_apart(4, 2, 1);  // columns 0, 2 and 1, 3
  expect_apart(1, 8, 4);  // ... one after the other
}

TEST(Statistics, AddUp) {
  const auto A = make_matrix<double>(all_classes(600, 300), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  for (const SpmvOptions& o : every_way()) {
    const PlanOf<double> plan(Exec(), device.view(), o);
    const Statistics s = plan.statistics();
    EXPECT_EQ(s.rows, A.rows);
    EXPECT_EQ(s.cols, A.cols);
    EXPECT_EQ(s.nnz, A.nnz());
    EXPECT_GE(s.stored, s.nnz);
    EXPECT_NEAR(s.padding_ratio, static_cast<double>(s.stored) / static_cast<double>(s.nnz) - 1, 1e-12);
    EXPECT_FALSE(s.why.empty());
    EXPECT_FALSE(s.fallback_taken);
    EXPECT_EQ(s.workspace_bytes, plan.workspace_bytes());
    if (s.algorithm != "dasp") continue;
    long long rows = 0, nnz = 0;
    for (const ClassShare& c : s.classes) rows += c.rows, nnz += c.nnz;
    EXPECT_EQ(rows, s.rows);
    EXPECT_EQ(nnz, s.nnz);
    EXPECT_EQ(s.row_max, 600);
    EXPECT_GT(s.matrix_unit_share, 0.5);
  }
}

TEST(Determinism, ThreeAppliesGiveTheSameBits) {
  const auto A = make_matrix<double>(all_classes(2000, 50, 2001), Data::Real, 1);
  const DeviceMatrix<Exec, double> device(A);
  const auto x = numbers<double>(A.cols, Data::Real, 2), y = numbers<double>(A.rows, Data::Real, 3);
  for (const SpmvOptions& o : every_way()) {
    SCOPED_TRACE(std::string(to_string(o.algorithm)) + " on " + to_string(o.backend));
    const PlanOf<double> plan(Exec(), device.view(), o);
    const auto first = product(plan, Scaling{2.5, -1}, x, y);
    EXPECT_TRUE(same_bits(first, product(plan, Scaling{2.5, -1}, x, y)));
    EXPECT_TRUE(same_bits(first, product<Strided>(plan, Scaling{2.5, -1}, x, y)));
  }
}

TEST(Backends, AreAllListed) {
  bool emulated = false;
  for (const BackendInfo& info : available_backends()) {
    EXPECT_EQ(info.name, to_string(info.backend));
    EXPECT_EQ(info.usable, info.reason.empty()) << info.name;
    EXPECT_TRUE(info.compiled || !info.usable);
    emulated = emulated || (info.backend == emulated_backends().back() && info.usable);
  }
  EXPECT_TRUE(emulated);
}

}  // namespace Testing
}  // namespace Tessera
