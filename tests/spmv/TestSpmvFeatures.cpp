// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What the choice of an algorithm sees of a matrix, for matrices of which it can be said by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "features/Tessera_SpmvFeatures.hpp"
#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace Testing {

template <class Offset = std::int64_t>
SpmvFeatures features_of(const Pattern& p) {
  using Exec = Kokkos::DefaultExecutionSpace;
  const auto A = make_matrix<double, Offset>(p, Data::Integers, 1);
  const DeviceMatrix<Exec, double, Offset> device(A);
  const SpmvFeatures f = spmv_features(Exec(), device.view());
  EXPECT_EQ(f.rows, A.rows);
  EXPECT_EQ(f.cols, A.cols);
  EXPECT_EQ(f.nnz, A.nnz());
  return f;
}
/// Rows of the given columns.
Pattern rows_of(std::int64_t cols, const std::vector<std::vector<int>>& rows) {
  Pattern p;
  p.rows = static_cast<std::int64_t>(rows.size());
  p.cols = cols;
  p.row_map.push_back(0);
  for (const auto& row : rows) {
    p.entries.insert(p.entries.end(), row.begin(), row.end());
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
}

// Of 100 lines of 100 points, the first, second, last and next point of a line follow another length or pattern, and so
// do the first two lines: at least 94 % of the rows are those before, shifted.
TEST(SpmvFeatures, Stencil) {
  const SpmvFeatures f = features_of(generate("stencil2d:nx=100:ny=100"));
  EXPECT_GT(f.shift, 0.94);
  EXPECT_LT(f.shift, 1.0);
  EXPECT_EQ(f.same2, 0);
  EXPECT_EQ(f.same3, 0);
  EXPECT_EQ(f.longest, 5);
  EXPECT_EQ(f.empty_rows, 0);
  EXPECT_EQ(f.narrow, 1);
  EXPECT_LT(f.cv, 0.1);
}

TEST(SpmvFeatures, Diagonal) {
  const SpmvFeatures f = features_of(generate("diagonal:rows=1024:cols=1024"));
  EXPECT_DOUBLE_EQ(f.shift, 1023.0 / 1024);  // all rows but the first
  EXPECT_EQ(f.mean, 1);
  EXPECT_EQ(f.cv, 0);
  EXPECT_EQ(f.longest, 1);
  EXPECT_EQ(f.narrow, 1);
  EXPECT_DOUBLE_EQ(f.sectors, 0.25);  // windows of 32 rows use 8 sectors of four doubles
}

// Lines of a grid, each shorter than the one before by one point: neighbours along the line are shifted, and those in
// the lines before and behind lie at other distances in every line.
TEST(SpmvFeatures, Askew) {
  constexpr int lines = 60;
  std::vector<std::vector<int>> rows;
  for (int line = 0, at = 0; line < lines; ++line) {
    const int points = 2 * lines - line;
    for (int k = 0; k < points; ++k, ++at) {
      rows.push_back({at > points ? at - points - 1 : 2 * lines * lines, at + 1, at + 2, at + points});
      std::sort(rows.back().begin(), rows.back().end());
    }
  }
  const SpmvFeatures f = features_of(rows_of(2 * lines * lines + 1, rows));
  EXPECT_TRUE(f.askew);
  EXPECT_GT(f.shift, 0.9);
  EXPECT_EQ(f.usual(), f.longest);
  EXPECT_FALSE(features_of(generate("stencil2d:nx=100:ny=100")).askew);
  EXPECT_FALSE(features_of(generate("markov2d:nx=90:ny=80")).askew);
  EXPECT_FALSE(features_of(generate("empty")).askew);
}

TEST(SpmvFeatures, ThreeUnknownsAPoint) {
  const SpmvFeatures f = features_of(generate("fem:nx=6:ny=5:nz=4:cavities=0"));
  EXPECT_EQ(f.same3, 1);
  EXPECT_EQ(f.shift, 0);
}

// Aligned pairs, and the same rows moved by one: no pair is aligned any more.
TEST(SpmvFeatures, Pairs) {
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 300; ++i) rows.push_back({i / 2 * 3, i / 2 * 5 + 1, 999});
  const SpmvFeatures f = features_of(rows_of(1000, rows));
  EXPECT_EQ(f.same2, 1);
  EXPECT_EQ(f.same3, 0);
  rows.insert(rows.begin(), std::vector<int>{7});
  rows.pop_back();
  EXPECT_EQ(features_of(rows_of(1000, rows)).same2, 0);
}

// Lengths 0 and 4 in turn: mean 2, deviation 2. Four entries in one sector.
TEST(SpmvFeatures, Lengths) {
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 64; ++i) {
    rows.push_back(i % 2 ? std::vector<int>{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3} : std::vector<int>{});
  }
  const SpmvFeatures f = features_of<int>(rows_of(256, rows));
  EXPECT_EQ(f.empty_rows, 32);
  EXPECT_EQ(f.longest, 4);
  EXPECT_DOUBLE_EQ(f.mean, 2);
  EXPECT_DOUBLE_EQ(f.cv, 1);
  EXPECT_EQ(f.shift, 0) << "the row before is empty";
  EXPECT_DOUBLE_EQ(f.sectors, 0.25);
}

TEST(SpmvFeatures, Uniform) {
  const SpmvFeatures f = features_of(generate("uniform:rows=2000:cols=1000000:per_row=16"));
  EXPECT_EQ(f.mean, 16);
  EXPECT_EQ(f.cv, 0);
  EXPECT_EQ(f.longest, 16);
  EXPECT_EQ(f.shift, 0);
  EXPECT_EQ(f.same2, 0);
  EXPECT_EQ(f.narrow, 0) << "512 random columns of a million span more than 2^16";
  EXPECT_GT(f.sectors, 0.9) << "512 of 250000 sectors seldom meet";
}

// Windows at the limit of 16-bit indices, one of which is padding.
TEST(SpmvFeatures, Spans) {
  EXPECT_EQ(features_of(rows_of(70000, {{0, 65534}})).narrow, 1);
  EXPECT_EQ(features_of(rows_of(70000, {{0, 65535}})).narrow, 0);
  std::vector<std::vector<int>> rows(64, std::vector<int>{5});
  rows[40] = {5, 69000};
  EXPECT_EQ(features_of(rows_of(70000, rows)).narrow, 0.5);
}

TEST(SpmvFeatures, OneLongRow) {
  const SpmvFeatures f = features_of(generate("dense:rows=1:cols=100000"));
  EXPECT_EQ(f.longest, 100000);
  EXPECT_EQ(f.mean, 100000);
  EXPECT_EQ(f.cv, 0);
  std::vector<std::vector<int>> rows(100, std::vector<int>{3});
  rows[50].resize(9901, 3);
  // Squares: 99 + 9901^2 over 100 rows, mean 100.
  const SpmvFeatures g = features_of<std::size_t>(rows_of(10, rows));
  EXPECT_DOUBLE_EQ(g.mean, 100);
  EXPECT_NEAR(g.cv, std::sqrt((99 + 9901.0 * 9901.0) / 100 - 10000) / 100, 1e-12);
  EXPECT_EQ(g.longest, 9901);
}

TEST(SpmvFeatures, Empty) {
  for (const char* spec : {"empty:rows=0:cols=0", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "empty"}) {
    SCOPED_TRACE(spec);
    const SpmvFeatures f = features_of(generate(spec));
    EXPECT_EQ(f.empty_rows, f.rows);
    EXPECT_EQ(f.longest, 0);
    for (const double share : {f.mean, f.cv, f.same2, f.same3, f.shift, f.sectors}) EXPECT_EQ(share, 0);
  }
}

TEST(SpmvFeatures, Deterministic) {
  const Pattern p = generate("web:n=20011:longest=900");
  const SpmvFeatures a = features_of(p), b = features_of(p);
  EXPECT_EQ(a.cv, b.cv);
  EXPECT_EQ(a.narrow, b.narrow);
  EXPECT_EQ(a.sectors, b.sectors);
  EXPECT_EQ(a.shift, b.shift);
}

}  // namespace Testing
}  // namespace Tessera
