// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What the choice of a method for C = A B looks at, against plain loops over all entries.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "features/Tessera_SpgemmFeatures.hpp"
#include "support/Tessera_TestSpgemm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class Offset>
class SpgemmFeaturesOf : public ::testing::Test {
 protected:
  using Matrix = HostMatrix<double, Offset>;
  using Device = DeviceMatrix<Exec, double, Offset>;
  static constexpr int side = SpgemmImage::side;

  static std::int64_t diagonals(const Matrix& A) {
    std::set<std::int64_t> all;
    for (int i = 0; i < A.rows; ++i) {
      for (auto e = A.row_map[static_cast<std::size_t>(i)]; e < A.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
        all.insert(static_cast<std::int64_t>(A.entries[static_cast<std::size_t>(e)]) - i);
      }
    }
    return static_cast<std::int64_t>(all.size());
  }
  /// By its definition, cell by cell, or the row and column that a cell of fewer than 128 repeats.
  static std::vector<double> image(const Matrix& A) {
    const auto cell = [](std::int64_t at, std::int64_t of) { return std::min<std::int64_t>(of, side) * at / of; };
    std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
    std::vector<double> rows(side, 0), cols(side, 0), dense(static_cast<std::size_t>(side * side), 0);
    for (int i = 0; i < A.rows; ++i) ++rows[static_cast<std::size_t>(cell(i, A.rows))];
    for (int j = 0; j < A.cols; ++j) ++cols[static_cast<std::size_t>(cell(j, A.cols))];
    for (int i = 0; i < A.rows; ++i) {
      for (auto e = A.row_map[static_cast<std::size_t>(i)]; e < A.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
        ++entries[{cell(i, A.rows), cell(A.entries[static_cast<std::size_t>(e)], A.cols)}];
      }
    }
    for (std::int64_t r = 0; r < side; ++r) {
      for (std::int64_t c = 0; c < side; ++c) {
        const std::int64_t i = A.rows < side ? r * A.rows / side : r, j = A.cols < side ? c * A.cols / side : c;
        const auto found = entries.find({i, j});
        if (found == entries.end()) continue;
        dense[static_cast<std::size_t>(r * side + c)] =
            found->second / (rows[static_cast<std::size_t>(i)] * cols[static_cast<std::size_t>(j)]);
      }
    }
    return dense;
  }

  static void check(const Matrix& A) {
    const Device a(A);
    const SpgemmFeatures f = spgemm_features(Exec(), a.view());
    EXPECT_EQ(f.rows, A.rows);
    EXPECT_EQ(f.cols, A.cols);
    EXPECT_EQ(f.nnz, A.nnz());
    std::int64_t longest = 0, shortest = A.rows > 0 ? A.length(0) : 0;
    long double sum = 0, squares = 0;
    for (int i = 0; i < A.rows; ++i) {
      longest = std::max<std::int64_t>(longest, A.length(i));
      shortest = std::min<std::int64_t>(shortest, A.length(i));
      sum += A.length(i);
    }
    const long double mean = A.rows > 0 ? sum / A.rows : 0;
    for (int i = 0; i < A.rows; ++i) squares += (A.length(i) - mean) * (A.length(i) - mean);
    EXPECT_EQ(f.longest, longest);
    EXPECT_EQ(f.shortest, shortest);
    EXPECT_DOUBLE_EQ(f.mean, static_cast<double>(mean));
    // A difference of two numbers below (longest - shortest + 1)^2, each rounded a few times.
    const double range = static_cast<double>(longest - shortest) + 1;
    EXPECT_NEAR(f.variance, A.rows > 0 ? static_cast<double>(squares / A.rows) : 0, 1e-15 * range * range * 8);
    EXPECT_TRUE(std::isfinite(f.cv()) && std::isfinite(f.density()));
    if (f.all_diagonals) {
      EXPECT_EQ(f.diagonals, diagonals(A));
      if (f.nnz > 0) {
        EXPECT_LE(f.diagonal_ratio(), 1);
      }
    } else {
      EXPECT_EQ(f.diagonals, f.nnz);
      EXPECT_GT((f.rows + f.cols) / 64, f.nnz);
    }
    if (f.nnz > (1 << 17)) return;  // of a sample
    const auto found = spgemm_image(Exec(), a.view()).density;
    const auto wanted = image(A);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_FLOAT_EQ(found[i], static_cast<float>(wanted[i])) << i;
  }
  static void check(const Pattern& p) { check(make_matrix<double, Offset>(p, Data::Integers, 1)); }
};
using OffsetTypes = ::testing::Types<int, std::size_t>;
TYPED_TEST_SUITE(SpgemmFeaturesOf, OffsetTypes);

TYPED_TEST(SpgemmFeaturesOf, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    this->check(generate(spec));
  }
}

TYPED_TEST(SpgemmFeaturesOf, SingleRowsAndColumnsWideAndUnsorted) {
  for (const char* spec :
       {"empty:rows=0:cols=0", "empty:rows=0:cols=9", "empty:rows=9:cols=0", "dense:rows=1:cols=1000",
        "dense:rows=1000:cols=1", "uniform:rows=1:cols=90000:per_row=3", "uniform:rows=7:cols=100000:per_row=900",
        "random:rows=90000:cols=40000:mean=0.3:lengths=geometric", "dense:rows=127:cols=129",
        "diagonals:n=5000:count=7:reach=90:missing=0.3"}) {
    SCOPED_TRACE(spec);
    this->check(generate(spec));
  }
  this->check(with_unsorted_columns(generate("random:rows=150:cols=97:lengths=uniform:mean=6")));
}

class SpgemmSamples : public ::testing::Test {
 protected:
  using Matrix = HostMatrix<double, int>;
  using Device = DeviceMatrix<Exec, double, int>;
  static SpgemmFeatures sampled(const Pattern& p) {
    const Device a(make_matrix<double, int>(p, Data::Integers, 1));
    return spgemm_features(Exec(), a.view(), DiagonalsCounted::Few);
  }
  static double compression(const std::string& a, const std::string& b) {
    const Device A(make_matrix<double, int>(a, Data::Integers, 1)), B(make_matrix<double, int>(b, Data::Integers, 1));
    return spgemm_compression(Exec(), A.view(), B.view());
  }
};

// Where a sample lies on few diagonals all entries are looked at, so that what DIA would cost is not underestimated.
TEST_F(SpgemmSamples, FewDiagonalsAreCountedInFull) {
  const SpgemmFeatures stencil = sampled(generate("stencil2d:nx=150:ny=150"));
  EXPECT_TRUE(stencil.all_diagonals);
  EXPECT_EQ(stencil.diagonals, 5);
  auto hidden = generate("diagonals:n=60000:count=3:reach=1");
  hidden.entries.front() = 77;  // no diagonal of the others
  const SpgemmFeatures one = sampled(hidden);
  EXPECT_TRUE(one.all_diagonals);
  EXPECT_EQ(one.diagonals, 4);
  const Device a(make_matrix<double, int>(generate("stencil2d:nx=150:ny=150"), Data::Integers, 1));
  const SpgemmFeatures few = spgemm_features(Exec(), a.view(), DiagonalsCounted::Sample);
  EXPECT_FALSE(few.all_diagonals);
  EXPECT_EQ(few.diagonals, 5);
}

// A sample has the same entries by threads of devices, which take few each, as by those of hosts.
TEST_F(SpgemmSamples, TheSameEntriesForAllThreads) {
  const Device a(make_matrix<double, int>(generate("lp:rows=40:cols=20000"), Data::Integers, 1));
  const auto A = Impl::pattern_of(a.view());
  for (const std::int64_t most :
       {std::int64_t{512}, std::int64_t{1} << 14, std::int64_t{1} << 17, std::int64_t{1} << 40}) {
    using Entries = std::vector<std::pair<std::int64_t, std::int64_t>>;
    const auto seen = [&](std::int64_t each) {
      const Impl::SpgemmPieces<std::decay_t<decltype(A)>> pieces(A, most, each);
      Entries entries;
      for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
        pieces.each(piece, [&](std::int64_t row, std::int64_t column) { entries.emplace_back(row, column); });
      }
      EXPECT_EQ(static_cast<std::int64_t>(entries.size()), pieces.entries());
      return entries;
    };
    const Entries by_host = seen(8192);
    EXPECT_GT(by_host.size(), static_cast<std::size_t>(std::min<std::int64_t>(most, A.nnz()) / 2));
    EXPECT_EQ(seen(32), by_host) << most;
    EXPECT_EQ(seen(128), by_host) << most;
  }
}

TEST_F(SpgemmSamples, ManyDiagonalsAreNot) {
  const SpgemmFeatures f = sampled(generate("uniform:rows=20000:cols=20000:per_row=9"));
  EXPECT_FALSE(f.all_diagonals);
  EXPECT_GT(f.diagonals, 5000);
  EXPECT_LT(f.dia_fill(), 1.0 / 16);
}

TEST_F(SpgemmSamples, Compression) {
  EXPECT_EQ(compression("empty:rows=5:cols=8", "uniform:rows=8:cols=6:per_row=2"), 1);
  EXPECT_EQ(compression("empty:rows=0:cols=8", "uniform:rows=8:cols=6:per_row=2"), 1);
  EXPECT_EQ(compression("uniform:rows=100:cols=5000:per_row=1", "uniform:rows=5000:cols=5000:per_row=7"), 1);
  EXPECT_EQ(compression("dense:rows=6:cols=30", "dense:rows=30:cols=30"), 30);
  // Every row of C has the same 800 columns with 40 products each, more than are counted: a hash picks a 32nd of the
  // columns, all products of each.
  EXPECT_DOUBLE_EQ(compression("dense:rows=90:cols=40", "dense:rows=40:cols=800"), 40);
  // Short rows are counted in full: 64 of them, at equal distances.
  const auto A = make_matrix<double, int>("stencil2d:nx=100:ny=100", Data::Integers, 1);
  std::size_t products = 0, columns = 0;
  const auto row_of = [&](std::size_t i) {
    return std::vector<int>(A.entries.begin() + A.row_map[i], A.entries.begin() + A.row_map[i + 1]);
  };
  for (std::size_t k = 0; k < 64; ++k) {
    std::set<int> different;
    for (const int j : row_of(k * 10000 / 64)) {
      const std::vector<int> row = row_of(static_cast<std::size_t>(j));
      products += row.size();
      different.insert(row.begin(), row.end());
    }
    columns += different.size();
  }
  EXPECT_EQ(compression("stencil2d:nx=100:ny=100", "stencil2d:nx=100:ny=100"),
            static_cast<double>(products) / static_cast<double>(columns));
}

TEST_F(SpgemmSamples, LargeImagesAddUp) {
  const Device a(make_matrix<double, int>(generate("uniform:rows=30000:cols=30000:per_row=9"), Data::Integers, 1));
  double sum = 0;
  for (const float d : spgemm_image(Exec(), a.view()).density) sum += static_cast<double>(d);
  // The mean of the cells is the matrix' density, but for their sizes (234 or 235 rows each) and a sample's rounding.
  EXPECT_NEAR(sum / (128 * 128), 9.0 / 30000, 0.01 * 9 / 30000);
}

}  // namespace Testing
}  // namespace Tessera
