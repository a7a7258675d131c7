// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Who keeps a matrix's arrays alive: managed Views are, by the CsrView and by plans; what unmanaged Views point to is
// the caller's. And the call that brings a matrix of the host to where an execution space runs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "Tessera.hpp"
#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Device = Exec::device_type;
using Testing::copy_to;
using Testing::to_host;
template <class T>
using Array = Kokkos::View<T*, Device>;
using Matrix = CsrView<double, int, std::size_t, Device>;

/// [1 . 2; . 3 .] as a function's own Views, of which only the CsrView is left.
Matrix local_matrix() {
  const Array<std::size_t> row_map("row_map", 3);
  const Array<int> entries("entries", 3);
  const Array<double> values("values", 3);
  copy_to(std::vector<std::size_t>{0, 2, 3}, row_map);
  copy_to(std::vector<int>{0, 2, 1}, entries);
  copy_to(std::vector<double>{1, 2, 3}, values);
  return csr_view(2, 3, row_map, entries, values);
}

std::vector<double> times_123(const SpmvPlan<Matrix>& plan) {
  const Exec space;
  const Array<double> x("x", 3), y("y", 2);
  copy_to(std::vector<double>{1, 2, 3}, x);
  plan.apply(space, x, y);
  space.fence();
  return to_host(y);
}

TEST(Ownership, APlanOfLocalViewsIsRight) {
  const Exec space;
  for (const SpmvAlgorithm algorithm : {SpmvAlgorithm::Csr, SpmvAlgorithm::Csr5, SpmvAlgorithm::PackedSlices}) {
    SpmvOptions options;
    options.algorithm = algorithm;
    const SpmvPlan plan(space, local_matrix(), options);
    EXPECT_EQ(times_123(plan), (std::vector<double>{7, 6})) << to_string(algorithm);
  }
}

TEST(Ownership, ViewAndPlanCountAsOwners) {
  const Array<std::size_t> row_map("row_map", 1);
  const Array<int> entries("entries", 0);
  const Array<double> values("values", 0);
  EXPECT_EQ(row_map.use_count(), 1);
  {
    const auto A = csr_view(0, 0, row_map, entries, values);
    EXPECT_EQ(row_map.use_count(), 2);
    const Exec space;
    const SpmvPlan spmv(space, A);
    EXPECT_EQ(row_map.use_count(), 3);
#ifndef TESSERA_TEST_FEWER_TYPES  // which link no such plan of FP64
    const SpmmPlan spmm(space, A);
    EXPECT_EQ(row_map.use_count(), 4);
#endif
  }
  EXPECT_EQ(row_map.use_count(), 1) << "given back with them";
}

TEST(Ownership, UpdateValuesTakesTheNewViewAndGivesTheOldOneBack) {
  const Exec space;
  const auto A = local_matrix();
  SpmvOptions options;
  options.algorithm = SpmvAlgorithm::Csr;
  SpmvPlan plan(space, A, options);
  const auto old = A.values().use_count();
  {
    const Array<double> fresh("fresh", 3);
    copy_to(std::vector<double>{10, 20, 30}, fresh);
    plan.update_values(space, fresh);
  }
  EXPECT_EQ(A.values().use_count(), old - 1);
  EXPECT_EQ(times_123(plan), (std::vector<double>{70, 60})) << "the plan keeps the new numbers alive";
}

TEST(Ownership, UnmanagedViewsStayTheCallers) {
  const Array<std::size_t> row_map("row_map", 3);
  const Array<int> entries("entries", 3);
  const Array<double> values("values", 3);
  copy_to(std::vector<std::size_t>{0, 2, 3}, row_map);
  copy_to(std::vector<int>{0, 2, 1}, entries);
  copy_to(std::vector<double>{1, 2, 3}, values);
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const auto A = csr_view(2, 3, Kokkos::View<std::size_t*, Device, Unmanaged>(row_map.data(), 3),
                          Kokkos::View<int*, Device, Unmanaged>(entries.data(), 3),
                          Kokkos::View<double*, Device, Unmanaged>(values.data(), 3));
  EXPECT_EQ(row_map.use_count(), 1);
  EXPECT_EQ(times_123(SpmvPlan(Exec(), A)), (std::vector<double>{7, 6}));
}

TEST(Ownership, AStridedViewOfUnitStrideIsShared) {
  const Kokkos::View<double*, Kokkos::LayoutStride, Device> values("values", Kokkos::LayoutStride(3, 1));
  const Array<std::size_t> row_map("row_map", 3);
  const Array<int> entries("entries", 3);
  copy_to(std::vector<std::size_t>{0, 2, 3}, row_map);
  const auto A = csr_view(2, 3, row_map, entries, values);
  EXPECT_EQ(A.values().data(), values.data());
  EXPECT_EQ(values.use_count(), 2);
}

template <class Ordinal, class Offset>
io::HostCsr<double, Ordinal, Offset> host_matrix() {
  io::HostCsr<double, Ordinal, Offset> host;
  host.rows = 2;
  host.cols = 3;
  host.row_map = {0, 2, 3};
  host.entries = {0, 2, 1};
  host.values = {1, 2, 1.0 / 3};
  return host;
}

TEST(ToDevice, KeepsTypesAndNumbers) {
  const auto A = to_device(Exec(), host_matrix<int, std::size_t>());
  static_assert(std::is_same_v<std::decay_t<decltype(A)>, CsrView<double, int, std::size_t, Device>>);
  EXPECT_EQ(A.rows(), 2);
  EXPECT_EQ(A.cols(), 3);
  EXPECT_EQ(to_host(A.row_map()), (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(to_host(A.entries()), (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(to_host(A.values()), (std::vector<double>{1, 2, 1.0 / 3}));
}

TEST(ToDevice, RoundsOnceWhereAskedTo) {
  const auto A = to_device<half_t>(Exec(), host_matrix<int, int>());
  const std::vector<half_t> values = to_host(A.values());
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(static_cast<float>(values[1]), 2.0f);
  EXPECT_EQ(values[2].bits, half_t(1.0 / 3).bits);
}

TEST(ToDevice, AnEmptyMatrixIsOne) {
  io::HostCsr<float, int, int> host;
  host.row_map = {0};
  const auto A = to_device(Exec(), host);
  EXPECT_EQ(A.rows(), 0);
  EXPECT_EQ(A.nnz(), 0u);
}

TEST(ToDevice, RefusesArraysThatAreNoMatrix) {
  auto host = host_matrix<int, int>();
  host.values.pop_back();
  EXPECT_THROW(to_device(Exec(), host), DimensionMismatch);
  host = host_matrix<int, int>();
  host.row_map.pop_back();
  EXPECT_THROW(to_device(Exec(), host), DimensionMismatch);
  host = host_matrix<int, int>();
  host.rows = -1;
  EXPECT_THROW(to_device(Exec(), host), InvalidArgument);
}

#ifndef __SANITIZE_ADDRESS__
// 2^60 bytes, which no machine has: an exception of ours, not of Kokkos'.
TEST(Ownership, PlansSayWhatDoesNotFit) {
  const std::size_t bytes = std::size_t{1} << 60;
  try {
    Impl::allocate<Exec::memory_space>(Exec(), nullptr, "Tessera::test::packets", bytes, Impl::Lifetime::Plan);
    FAIL() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.required(), bytes);
    EXPECT_NE(std::string(e.what()).find("Tessera::test::packets needs 1152921504606846976 bytes"), std::string::npos)
        << e.what();
  }
}
#endif

}  // namespace
}  // namespace Tessera
