// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A^T against plain loops: same order inside rows, same values, and new values through the map.

#include <gtest/gtest.h>

#include "core/Tessera_Transpose.hpp"
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
  expect_transpose<half_t, std::size_t, Kokkos::DefaultExecutionSpace>(p);
  expect_transpose<bhalf_t, std::int64_t, Kokkos::DefaultHostExecutionSpace>(p);
}

}  // namespace Testing
}  // namespace Tessera
