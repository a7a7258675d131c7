// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A^T against plain loops: same order inside rows, same values, and new values through the map.

#include <gtest/gtest.h>

#include <numeric>

#include "Tessera_BsrView.hpp"
#include "core/Tessera_Blocks.hpp"
#include "core/Tessera_Transpose.hpp"
#include "support/Tessera_TestAddressSpace.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar, class Offset, class Exec>
void expect_transpose(const Pattern& p) {
  const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 1), B = make_matrix<Scalar, Offset>(p, Data::Real, 2);
  const DeviceMatrix<Exec, Scalar, Offset> device(A), other(B);
  const Exec space;
  const auto t = transpose(space, device.view());
  const auto expect_equal = [&](const HostMatrix<Scalar, Offset>& wanted) {
    EXPECT_EQ(t.rows, wanted.rows);
    EXPECT_EQ(t.cols, wanted.cols);
    EXPECT_EQ(to_host(t.view().row_map()), wanted.row_map);
    EXPECT_EQ(to_host(t.view().entries()), wanted.entries);
    EXPECT_TRUE(same_bits(to_host(t.values), wanted.values));
  };
  expect_equal(transposed(A));
  update_transposed_values(space, t, other.view().values());
  space.fence();
  expect_equal(transposed(B));
}

TEST(Transpose, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    expect_transpose<double, std::int64_t, Kokkos::DefaultExecutionSpace>(generate(spec));
  }
}
TEST(Transpose, Types) {
  const Pattern p = generate("duplicates:rows=151:cols=97:longest=90");
  expect_transpose<float, int, Kokkos::DefaultExecutionSpace>(p);
#ifndef TESSERA_TEST_FEWER_TYPES
  expect_transpose<half_t, std::size_t, Kokkos::DefaultExecutionSpace>(p);
  expect_transpose<bhalf_t, std::int64_t, Kokkos::DefaultHostExecutionSpace>(p);
#endif
}

#ifdef TESSERA_TEST_LIMITS_ADDRESS_SPACE
// Offsets of rows, sources, columns, places (8 MB each) and numbers (16 MB): one after the other has no room.
TEST(Transpose, WithoutRoom) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  constexpr int n = 2000000;
  const DeviceVector<Exec, int> row_map("row_map", n + 1), entries("entries", n);
  const DeviceVector<Exec, double> values("values", n);
  std::iota(row_map.data(), row_map.data() + n + 1, 0);
  std::iota(entries.data(), entries.data() + n, 0);
  const auto A = csr_view(n, n, row_map, entries, values);
  for (const rlim_t room : {4, 12, 20, 28, 34}) {  // MB
    SCOPED_TRACE(room);
    const LimitedAddressSpace little(LimitedAddressSpace::used() + (room << 20));
    EXPECT_THROW(transpose(Exec(), A), OutOfMemory);
  }
}
#endif

}  // namespace Testing
}  // namespace Tessera
