// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Reverse Cuthill-McKee: a permutation of every matrix, a small bandwidth where there is one, and fewer sectors of x.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "Tessera_Config.hpp"
#include "reorder/ReorderFixture.hpp"
#include "support/Tessera_TestCases.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultExecutionSpace;

std::vector<int> order_of(const HostMatrix<double>& A) {
  const DeviceMatrix<Exec, double> device(A);
  return to_host(reorder::rcm(Exec(), device.view()));
}
bool is_permutation(std::vector<int> p) {
  std::sort(p.begin(), p.end());
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] != static_cast<int>(i)) return false;
  }
  return true;
}
reorder::SectorStatistics sectors(const HostMatrix<double>& A, const reorder::SectorOptions& options = {}) {
  const DeviceMatrix<Exec, double> device(A);
  return reorder::sector_statistics(Exec(), device.view(), options);
}
/// The same by plain loops, over every window.
long long sectors_by_loops(const HostMatrix<double>& A, int window, int per_sector) {
  long long sum = 0;
  for (int row = 0; row < A.rows; row += window) {
    const auto begin = A.row_map[row], end = A.row_map[std::min(row + window, A.rows)];
    std::set<int> seen;
    for (auto k = begin; k < end; ++k) seen.insert(A.entries[k] / per_sector);
    sum += static_cast<long long>(seen.size());
  }
  return sum;
}

class Rcm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reorder::has_rcm()) GTEST_SKIP() << "built without Boost Graph";
  }
};

TEST(RcmAvailability, SaysWhyIfAbsent) {
#if defined(TESSERA_HAVE_BOOST)
  EXPECT_TRUE(reorder::has_rcm());
#else
  ASSERT_FALSE(reorder::has_rcm());
  try {
    order_of(make_matrix<double>("diagonal:rows=3:cols=3", Data::Real, 1));
    FAIL() << "no exception";
  } catch (const NotSupported& e) {
    EXPECT_NE(std::string(e.what()).find("libboost-dev"), std::string::npos) << e.what();
  }
#endif
}

TEST_F(Rcm, PermutesEverySquareShape) {
  for (const std::string& spec : shapes()) {
    const auto A = make_matrix<double>(spec, Data::Real, 1);
    if (A.rows != A.cols) continue;
    SCOPED_TRACE(spec);
    const std::vector<int> p = order_of(A);
    EXPECT_EQ(p.size(), static_cast<std::size_t>(A.rows));
    EXPECT_TRUE(is_permutation(p));
    EXPECT_EQ(p, order_of(A)) << "not repeatable";
  }
}

/// A path of n vertices under random names has bandwidth 1 in the right order.
TEST_F(Rcm, UnravelsAPath) {
  for (const int n : {1, 2, 3, 4, 17, 1000}) {
    HostMatrix<double> A;
    A.rows = A.cols = n;
    A.row_map.assign(1, 0);
    for (int i = 0; i < n; ++i) {
      for (const int j : {i - 1, i, i + 1}) {
        if (j >= 0 && j < n) A.entries.push_back(j), A.values.push_back(1);
      }
      A.row_map.push_back(A.nnz());
    }
    const DeviceMatrix<Exec, double> device(A);
    const auto mixed = reorder::permute_symmetric(Exec(), device.view(), to_device<Exec>(shuffled(n, 3)));
    const auto p = reorder::rcm(Exec(), mixed.view());
    const auto B = reorder::permute_symmetric(Exec(), mixed.view(), p);
    EXPECT_EQ(reorder::sector_statistics(Exec(), B.view()).bandwidth, n > 1 ? 1 : 0) << n;
  }
}

TEST_F(Rcm, NarrowsAShuffledGridAndSavesSectors) {
  const int nx = 60, ny = 50;
  const auto A = make_matrix<double>("stencil2d:nx=60:ny=50", Data::Real, 1);
  const DeviceMatrix<Exec, double> device(A);
  const auto mixed = reorder::permute_symmetric(Exec(), device.view(), to_device<Exec>(shuffled(A.rows, 3)));
  const auto B = reorder::permute_symmetric(Exec(), mixed.view(), reorder::rcm(Exec(), mixed.view()));
  const auto before = reorder::sector_statistics(Exec(), mixed.view()),
             after = reorder::sector_statistics(Exec(), B.view());
  EXPECT_GT(before.bandwidth, nx * ny / 2);
  // Levels of a grid are at most its shorter side wide; the best order has bandwidth 50.
  EXPECT_LE(after.bandwidth, 2 * ny);
  EXPECT_EQ(before.sampled_entries, A.nnz());
  EXPECT_EQ(after.sampled_entries, A.nnz());
  EXPECT_LT(after.sectors_per_entry(), 0.25 * before.sectors_per_entry());
  EXPECT_GT(after.bytes_per_entry(), 0);
}

/// An unsymmetric pattern and its transpose have one graph, that of A + A^T.
TEST_F(Rcm, SymmetrisesThePattern) {
  const auto A = make_matrix<double>("markov2d:nx=31:ny=37:gap=100", Data::Real, 1);
  const auto T = transposed(A);
  ASSERT_NE(A.entries, T.entries);
  EXPECT_EQ(order_of(A), order_of(T));
  const DeviceMatrix<Exec, double> device(A);
  const auto mixed = reorder::permute_symmetric(Exec(), device.view(), to_device<Exec>(shuffled(A.rows, 3)));
  const auto B = reorder::permute_symmetric(Exec(), mixed.view(), reorder::rcm(Exec(), mixed.view()));
  EXPECT_GT(reorder::sector_statistics(Exec(), mixed.view()).bandwidth, 31 * 37 / 2);
  EXPECT_LE(reorder::sector_statistics(Exec(), B.view()).bandwidth, 2 * 31);
}

/// Components stay together, in the order of their lowest rows.
TEST_F(Rcm, KeepsComponentsTogether) {
  // Row i is joined with row i + 3 modulo 9 only: three rings, {0,3,6}, {1,4,7}, {2,5,8}.
  HostMatrix<double> A;
  A.rows = A.cols = 9;
  A.row_map.assign(1, 0);
  for (int i = 0; i < 9; ++i) {
    A.entries.push_back((i + 3) % 9);
    A.values.push_back(1);
    A.row_map.push_back(A.nnz());
  }
  const std::vector<int> p = order_of(A);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(p[i] % 3, i / 3) << i;
  std::vector<int> same(5000);
  std::iota(same.begin(), same.end(), 0);
  EXPECT_EQ(order_of(make_matrix<double>("diagonal:rows=5000:cols=5000", Data::Real, 1)), same);
}

/// Hundreds of thousands of components must not cost their square.
TEST_F(Rcm, TakesManyComponentsInLinearTime) {
  HostMatrix<double> A;
  A.rows = A.cols = 400000;
  A.row_map.assign(1, 0);
  for (int i = 0; i < A.rows; ++i) {
    A.entries.push_back(i % 2 == 0 ? i + 1 : i - 1);
    A.values.push_back(1);
    A.row_map.push_back(A.nnz());
  }
  EXPECT_TRUE(is_permutation(order_of(A)));
}

TEST_F(Rcm, TakesOtherIntegerTypes) {
  const auto A = make_matrix<double>("stencil2d:nx=13:ny=11", Data::Real, 1);
  const std::vector<int> wanted = order_of(A);
  const std::vector<unsigned> entries(A.entries.begin(), A.entries.end());
  const std::vector<std::size_t> row_map(A.row_map.begin(), A.row_map.end());
  const auto drow_map = to_device<Exec>(row_map);
  const auto dentries = to_device<Exec>(entries);
  const auto dvalues = to_device<Exec>(A.values);
  const auto view = csr_view(static_cast<unsigned>(A.rows), static_cast<unsigned>(A.cols), drow_map, dentries, dvalues);
  const auto p = reorder::rcm(Exec(), view);
  const auto got = to_host(p);
  EXPECT_EQ(std::vector<int>(got.begin(), got.end()), wanted);
  EXPECT_EQ(reorder::sector_statistics(Exec(), reorder::permute_symmetric(Exec(), view, p).view()).sampled_entries,
            A.nnz());
}

TEST(SectorStatistics, CountsAsPlainLoops) {
  for (const std::string& spec : shapes()) {
    const auto A = make_matrix<double>(spec, Data::Real, 1);
    SCOPED_TRACE(spec);
    for (const int window : {1, 7, 256}) {
      for (const int bytes : {2, 8, 32}) {
        reorder::SectorOptions options;
        options.window_rows = window;
        options.windows = 1000000;
        options.element_bytes = bytes;
        const auto s = sectors(A, options);
        EXPECT_EQ(s.sampled_windows, s.windows);
        EXPECT_EQ(s.sampled_entries, A.nnz());
        EXPECT_EQ(s.sampled_sectors, sectors_by_loops(A, window, 32 / bytes)) << window << " rows, " << bytes;
      }
    }
  }
}
TEST(SectorStatistics, SamplesEvenlyAndNearTheTruth) {
  const auto A = make_matrix<double>("uniform:rows=20000:cols=20000:per_row=8", Data::Real, 1);
  reorder::SectorOptions options;
  options.window_rows = 64;
  options.windows = 37;
  const auto sampled = sectors(A, options);
  EXPECT_EQ(sampled.sampled_windows, 37);
  EXPECT_EQ(sampled.windows, 313);
  EXPECT_NEAR(static_cast<double>(sampled.sampled_entries), 37 * 64 * 8, 64 * 8);
  options.windows = 313;
  // An entry needs a sector of its own or not: the mean of 18,944 has a standard deviation of at most 0.5 / sqrt(18944)
  // = 0.0036, of which 0.02 is more than five.
  EXPECT_NEAR(sampled.sectors_per_entry(), sectors(A, options).sectors_per_entry(), 0.02);
}
TEST(SectorStatistics, BandwidthAndBadOptions) {
  EXPECT_EQ(sectors(make_matrix<double>("diagonal:rows=100:cols=37", Data::Real, 1)).bandwidth, 0);
  EXPECT_EQ(sectors(make_matrix<double>("dense:rows=1:cols=3001", Data::Real, 1)).bandwidth, 3000);
  EXPECT_EQ(sectors(make_matrix<double>("dense:rows=3001:cols=1", Data::Real, 1)).bandwidth, 3000);
  const auto empty = sectors(make_matrix<double>("empty:rows=5:cols=0", Data::Real, 1));
  EXPECT_EQ(empty.bandwidth, 0);
  EXPECT_EQ(empty.sectors_per_entry(), 0);
  const auto A = make_matrix<double>("diagonal:rows=9:cols=9", Data::Real, 1);
  for (int k = 0; k < 4; ++k) {
    reorder::SectorOptions options;
    if (k == 0) options.window_rows = 0;
    if (k == 1) options.windows = 0;
    if (k == 2) options.element_bytes = 3;
    if (k == 3) options.element_bytes = 64;
    EXPECT_THROW(sectors(A, options), InvalidArgument) << k;
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
