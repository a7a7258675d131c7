// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Permutations of vectors and matrices against plain loops, for every shape and for bad input.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "Tessera_Spmv.hpp"
#include "reorder/ReorderFixture.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;

/// P A P^T by plain loops: B(i,j) = A(p(i), p(j)), columns ascending, repeated ones in the order of A.
template <class Scalar, class Offset>
HostMatrix<Scalar, Offset> permuted(const HostMatrix<Scalar, Offset>& A, const std::vector<int>& p) {
  HostMatrix<Scalar, Offset> B;
  B.rows = B.cols = A.rows;
  B.row_map.assign(1, 0);
  std::vector<int> inverse(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) inverse[p[i]] = static_cast<int>(i);
  for (const int row : p) {
    std::vector<std::pair<int, Scalar>> list;
    for (auto k = A.row_map[row]; k < A.row_map[row + 1]; ++k) list.emplace_back(inverse[A.entries[k]], A.values[k]);
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& entry : list) {
      B.entries.push_back(entry.first);
      B.values.push_back(entry.second);
    }
    B.row_map.push_back(static_cast<Offset>(B.entries.size()));
  }
  return B;
}

template <class Scalar, class Offset, class Space = Exec>
void expect_permuted(const Pattern& pattern) {
  const auto A = make_matrix<Scalar, Offset>(pattern, Data::Real, 1),
             other = make_matrix<Scalar, Offset>(pattern, Data::Real, 2);
  const DeviceMatrix<Space, Scalar, Offset> device(A), device_other(other);
  const Space space;
  const std::vector<int> p = shuffled(A.rows, 5);
  const auto dp = to_device<Space>(p);
  const auto B = reorder::permute_symmetric(space, device.view(), dp);
  const auto expect_equal = [&](const HostMatrix<Scalar, Offset>& wanted) {
    EXPECT_EQ(B.rows, wanted.rows);
    EXPECT_EQ(to_host(B.row_map), wanted.row_map);
    EXPECT_EQ(to_host(B.entries), wanted.entries);
    EXPECT_TRUE(same_bits(to_host(B.values), wanted.values));
  };
  expect_equal(permuted(A, p));
  EXPECT_TRUE(validate(space, B.view()).valid);
  EXPECT_EQ(validate(space, B.view()).unsorted_rows, 0);
  reorder::update_permuted_values(space, B, device_other.view().values());
  space.fence();
  expect_equal(permuted(other, p));
  // The inverse brings back A but for the order inside its rows.
  const auto back = reorder::permute_symmetric(space, B.view(), reorder::inverse(space, dp));
  std::vector<int> same(p.size());
  std::iota(same.begin(), same.end(), 0);
  const auto sorted = permuted(other, same);
  EXPECT_EQ(to_host(back.row_map), sorted.row_map);
  EXPECT_EQ(to_host(back.entries), sorted.entries);
  EXPECT_TRUE(same_bits(to_host(back.values), sorted.values));
}

TEST(PermuteSymmetric, EverySquareShape) {
  int seen = 0;
  for (const std::string& spec : shapes()) {
    const Pattern pattern = generate(spec);
    if (pattern.rows != pattern.cols) continue;
    SCOPED_TRACE(spec);
    expect_permuted<double, std::int64_t>(pattern);
    ++seen;
  }
  EXPECT_GT(seen, 10);
}
TEST(PermuteSymmetric, TypesAndRepeatedColumns) {
  const Pattern p = generate("duplicates:rows=97:cols=97:longest=90");
  expect_permuted<float, int>(p);
#ifndef TESSERA_TEST_FEWER_TYPES
  expect_permuted<half_t, std::size_t>(p);
  expect_permuted<bhalf_t, std::int64_t, Kokkos::DefaultHostExecutionSpace>(p);
#endif
}
TEST(PermuteSymmetric, SizesAroundPowersOfTwo) {
  for (const int n : {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 65, 127, 129}) {
    SCOPED_TRACE(n);
    expect_permuted<double, int>(generate("dense:rows=" + std::to_string(n) + ":cols=" + std::to_string(n)));
  }
}

/// P A P^T (P x) = P (A x). With integers the sums are exact in any order.
TEST(PermuteSymmetric, KeepsTheProduct) {
  const auto A = make_matrix<double>("stencil2d:nx=37:ny=29", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const Exec space;
  const auto p = to_device<Exec>(shuffled(A.rows, 9));
  const auto B = reorder::permute_symmetric(space, device.view(), p);
  const auto x = to_device<Exec>(numbers<double>(A.cols, Data::Integers, 3));
  const DeviceVector<Exec, double> y("y", A.rows), px("px", A.rows), py("py", A.rows), back("back", A.rows);
  SpmvPlan<decltype(device.view())>(space, device.view()).apply(space, x, y);
  reorder::permute_vector(space, p, x, px);
  SpmvPlan<decltype(B.view())>(space, B.view()).apply(space, px, py);
  reorder::unpermute_vector(space, p, py, back);
  space.fence();
  EXPECT_EQ(to_host(back), to_host(y));
}

TEST(PermuteVector, ForthAndBackInEveryLayout) {
  const Exec space;
  for (const int n : {0, 1, 2, 257}) {
    const std::vector<int> p = shuffled(n, 4);
    const auto dp = to_device<Exec>(p);
    const auto x = numbers<float>(n, Data::Real, 7);
    std::vector<float> wanted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = x[p[i]];
    const GuardedVector<Exec, float, Kokkos::LayoutRight> strided(x, 77);
    const GuardedVector<Exec, float, Kokkos::LayoutLeft> moved(std::vector<float>(x.size()), 77);
    const GuardedVector<Exec, float, Kokkos::LayoutRight> back(std::vector<float>(x.size()), 77);
    reorder::permute_vector(space, dp, strided.column(), moved.column());
    reorder::unpermute_vector(space, dp, moved.column(), back.column());
    space.fence();
    EXPECT_EQ(moved.read(), wanted);
    EXPECT_EQ(back.read(), x);
    EXPECT_TRUE(moved.intact() && back.intact());
  }
}
TEST(PermuteVector, SeveralColumns) {
  const Exec space;
  const int n = 33, columns = 3;
  const std::vector<int> p = shuffled(n, 4);
  Kokkos::View<double**, Kokkos::LayoutLeft, DeviceOf<Exec>> x("x", n, columns), y("y", n, columns);
  const auto host = Kokkos::create_mirror_view(x);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < columns; ++k) host(i, k) = 100 * i + k;
  }
  Kokkos::deep_copy(x, host);
  reorder::permute_vector(space, to_device<Exec>(p), x, y);
  space.fence();
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < columns; ++k) EXPECT_EQ(result(i, k), 100 * p[i] + k);
  }
}

TEST(Permutation, TellsWhatIsOne) {
  const Exec space;
  const auto is = [&](const auto& p) { return reorder::is_permutation(space, to_device<Exec>(p)); };
  EXPECT_TRUE(is(std::vector<int>{}));
  EXPECT_TRUE(is(std::vector<int>{0}));
  EXPECT_TRUE(is(std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_TRUE(is(std::vector<unsigned>{2, 0, 1}));
  EXPECT_FALSE(is(std::vector<int>{1}));
  EXPECT_FALSE(is(std::vector<int>{-1, 0}));
  EXPECT_FALSE(is(std::vector<int>{0, 0, 1}));
  EXPECT_FALSE(is(std::vector<unsigned>{0, 0, 1}));
  EXPECT_FALSE(is(std::vector<std::int64_t>{0, 1, std::int64_t(1) << 40}));
  // As many numbers as the type has: none is left over to mark a hole.
  std::vector<std::uint8_t> all(256);
  std::iota(all.begin(), all.end(), std::uint8_t(0));
  EXPECT_TRUE(is(all));
  std::swap(all[7], all[255]);
  EXPECT_TRUE(is(all));
  all[9] = 8;
  EXPECT_FALSE(is(all));
  EXPECT_THROW(reorder::inverse(space, to_device<Exec>(all)), InvalidArgument);
  EXPECT_EQ(to_host(reorder::inverse(space, to_device<Exec>(std::vector<int>{2, 0, 1}))), (std::vector<int>{1, 2, 0}));
  EXPECT_THROW(reorder::inverse(space, to_device<Exec>(std::vector<int>{2, 2, 1})), InvalidArgument);
}

TEST(Reorder, RefusesBadInput) {
  const Exec space;
  const DeviceMatrix<Exec, double> wide(make_matrix<double>("diagonal:rows=3:cols=4", Data::Real, 1)),
      square(make_matrix<double>("dense:rows=3:cols=3", Data::Real, 1));
  const auto three = to_device<Exec>(std::vector<int>{2, 0, 1}), four = to_device<Exec>(std::vector<int>{2, 0, 1, 3}),
             twice = to_device<Exec>(std::vector<int>{2, 0, 0});
  EXPECT_THROW(reorder::permute_symmetric(space, wide.view(), three), DimensionMismatch);
  EXPECT_THROW(reorder::permute_symmetric(space, square.view(), four), DimensionMismatch);
  EXPECT_THROW(reorder::permute_symmetric(space, square.view(), twice), InvalidArgument);
  auto broken = make_matrix<double>("dense:rows=3:cols=3", Data::Real, 1);
  broken.entries[4] = 3;
  EXPECT_THROW(reorder::permute_symmetric(space, DeviceMatrix<Exec, double>(broken).view(), three), InvalidArgument);
  EXPECT_THROW(reorder::sector_statistics(space, DeviceMatrix<Exec, double>(broken).view()), InvalidArgument);
  EXPECT_THROW(reorder::rcm(space, wide.view()), DimensionMismatch);
  if (reorder::has_rcm()) {
    EXPECT_THROW(reorder::rcm(space, DeviceMatrix<Exec, double>(broken).view()), InvalidArgument);
  }
  const DeviceVector<Exec, double> x("x", 3), y("y", 4);
  EXPECT_THROW(reorder::permute_vector(space, three, x, y), DimensionMismatch);
  EXPECT_THROW(reorder::unpermute_vector(space, four, x, y), DimensionMismatch);
  EXPECT_THROW(reorder::permute_vector(space, three, x, x), InvalidArgument);
  const auto B = reorder::permute_symmetric(space, square.view(), three);
  EXPECT_THROW(reorder::update_permuted_values(space, B, wide.view().values()), DimensionMismatch);
}

}  // namespace Testing
}  // namespace Tessera
