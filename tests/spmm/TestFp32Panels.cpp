// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// FP32 in parts of TF32 errs by no more than FP32 arithmetic: rows that it might err more on are not multiplied so.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_PanelLaunch.hpp"
#include "support/Tessera_TestFp32.hpp"
#include "support/Tessera_TestSpmm.hpp"
#include "units/CuttingUnit.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;
constexpr SpmmAlgorithm panels = SpmmAlgorithm::Panels, rows = SpmmAlgorithm::GeSpmm;
using Device = DeviceMatrix<Exec, float>;
using Plan = SpmmPlan<Device::Csr>;

SpmmOptions options_of(Backend backend, SpmmAlgorithm algorithm) {
  SpmmOptions o;
  o.backend = backend;
  o.algorithm = algorithm;
  o.compute = ComputeType::FP32;
  o.fallback = false;
  return o;
}

TEST(Fp32Panels, KeepTheBoundOfFp32Arithmetic) {
  for (const auto& unit :
       {std::make_pair(nvidia, panels), {nvidia, SpmmAlgorithm::Auto}, {amd, panels}, {nvidia, rows}}) {
    if (!emulates(unit.first)) continue;
    for (const int max_blocks : {0, 1}) {
      SCOPED_TRACE(std::string(to_string(unit.second)) + " on " + to_string(unit.first));
      SpmmOptions options = options_of(unit.first, unit.second);
      options.panels.max_blocks = max_blocks;
      for (const int columns : {9, 40}) {
        expect_fp32_bound(rows_for_parts(), columns, [&](const auto& A, const std::vector<float>& b, int n) {
          const Device device(A);
          const std::vector<float> c(static_cast<std::size_t>(A.rows * n), 0);
          return dense_product(Plan(Exec(), device.view(), options), Op::NoTrans, n, {}, b, A.cols, c, A.rows);
        });
      }
    }
  }
}

// Units may cut what emulated ones round. Here they cut as much as any is known to.
struct CuttingDevice : EmulatedNvidia {
  template <class Atom>
  using Unit = CuttingUnit<Atom>;
};
Status cutting_panels(const SpmmPanelArgs& args, Stream stream) noexcept {
  return Launch::PanelLauncher<CuttingDevice>{args, stream}.run<Sm80_M16N8K8_F32_3xTF32, 2, 1, 16>();
}
TEST(Fp32Panels, KeepItOnUnitsThatCut) {
  KernelTable table = kernel_table(nvidia);
  table.spmm.panels = cutting_panels;
  const SpmmOptions options = options_of(nvidia, panels);
  expect_fp32_bound(rows_for_parts(), 9, [&](const auto& A, const std::vector<float>& b, int n) {
    const Device device(A);
    const Impl::PanelEngine<Device::Csr> engine(Exec(), device.view(), Precision::FP32, options, table);
    std::vector<float> padded(static_cast<std::size_t>(A.cols) * 12), c(static_cast<std::size_t>(A.rows * n));
    for (int i = 0; i < A.cols; ++i) std::copy_n(b.begin() + i * n, n, padded.begin() + i * 12);
    const Impl::Dense<const float> from{padded.data(), A.cols, n, 12, 1};
    const Impl::Dense<float> to{c.data(), A.rows, n, n, 1};
    engine.apply(Exec(), 1.0, from, padded.size(), 0.0, to);
    return c;
  });
}

// Not all rows are taken apart, none where units multiply FP32, and none in another precision.
TEST(Fp32Panels, TakeApartOnlyWhatTheyMust) {
  const auto A = make_matrix<float>(rows_for_parts(), Data::Integers, 1);
  const Device device(A);
  const auto apart = [&](Backend backend, ComputeType compute) {
    SpmmOptions options = options_of(backend, panels);
    options.compute = compute;
    options.panels.max_blocks = 1000;  // no window is split
    const Statistics s = Plan(Exec(), device.view(), options).statistics();
    long long entries = 0;
    for (const auto& share : s.classes) entries += share.name == "rows apart" ? share.nnz : 0;
    EXPECT_EQ(s.launches, (entries > 0 ? 2 : 1));
    EXPECT_DOUBLE_EQ(s.matrix_unit_share, 1 - static_cast<double>(entries) / static_cast<double>(A.nnz()));
    return entries;
  };
  const long long entries = apart(nvidia, ComputeType::FP32);
  EXPECT_GT(entries, A.nnz() / 10);
  EXPECT_LT(entries, A.nnz() * 9 / 10);
  EXPECT_EQ(apart(nvidia, ComputeType::TF32), 0);
  if (emulates(amd)) {
    EXPECT_EQ(apart(amd, ComputeType::FP32), 0);
  }
}

// Rows of a window beside rows apart: everything that a plan can do.
TEST(Fp32Panels, RowsApartAreRowsLikeOthers) {
  for (const RowReordering order : {RowReordering::None, RowReordering::Clusters}) {
    SpmmSuite<Exec, float> suite(nvidia, panels, ComputeType::FP32);
    suite.options.reordering = order;
    suite.expect_pattern(rows_for_parts(), "mixed", {5, 40});
    suite.expect_pattern(with_unsorted_columns(rows_for_parts()), "unsorted", {5});
    suite.every_scaling(rows_for_parts(), 7);
    suite.transposed_product_and_new_values(rows_for_parts(), 9);
    suite.bad_rows_of_b(rows_for_parts(), 9);
    suite.undefined_operands(rows_for_parts(), 9);
    suite.no_allocation(rows_for_parts(), 9);
    suite.deterministic(rows_for_parts(), 9);
    suite.workspace(rows_for_parts(), 9);
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
