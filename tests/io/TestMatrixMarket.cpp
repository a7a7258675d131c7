// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <cmath>
#include <limits>
#include <set>

#include "io/MatrixMarketFixture.hpp"

namespace {

using namespace MatrixMarketTests;

// ---------------------------------------------------------------------------------------------------------------------
// Formats, fields, symmetries

TEST_F(MatrixMarket, CoordinateRealGeneral) {
  expect_csr<double>(csr(coordinate_real + "% comment\n3 4 4\n3 1 -2.5e3\n1 4 .5\n1 2 +1\n2 2 7.\n"), 3, 4,
                     {0, 2, 3, 4}, {1, 3, 1, 0}, {1, 0.5, 7, -2500});
}

TEST_F(MatrixMarket, CoordinateIntegerGeneral) {
  const std::string text = "%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 -3\n2 1 9007199254740993\n";
  expect_csr<double>(csr(text + "2 2 +12\n"), 2, 2, {0, 1, 3}, {0, 0, 1}, {-3, 9007199254740992.0, 12});
  expect_csr<float>(csr<float>(text + "2 2 -9223372036854775808\n"), 2, 2, {0, 1, 3}, {0, 0, 1},
                    {-3, 9007199254740992.0f, -9223372036854775808.0f});
}

TEST_F(MatrixMarket, CoordinatePatternGeneral) {
  expect_csr<double>(csr("%%MatrixMarket matrix coordinate pattern general\n2 3 3\n2 3\n1 1\n2 1\n"), 2, 3, {0, 1, 3},
                     {0, 0, 2}, {1, 1, 1});
}

TEST_F(MatrixMarket, CoordinateComplexGeneral) {
  const std::string text = "%%MatrixMarket matrix coordinate complex general\n2 2 2\n2 1 1.5 -2\n1 2 0 1e-3\n";
  expect_csr<Complex>(csr<Complex>(text), 2, 2, {0, 1, 2}, {1, 0}, {{0, 1e-3}, {1.5, -2}});
  expect_csr<std::complex<float>>(csr<std::complex<float>>(text), 2, 2, {0, 1, 2}, {1, 0}, {{0, 1e-3f}, {1.5f, -2}});
}

TEST_F(MatrixMarket, CoordinateSymmetric) {
  for (const std::string field : {"real", "integer"}) {
    expect_csr<double>(
        csr("%%MatrixMarket matrix coordinate " + field + " symmetric\n3 3 4\n3 1 5\n1 1 1\n2 1 4\n3 3 6\n"), 3, 3,
        {0, 3, 4, 6}, {0, 1, 2, 0, 0, 2}, {1, 4, 5, 4, 5, 6});
  }
  expect_csr<double>(csr("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n"), 2, 2, {0, 1, 3},
                     {1, 0, 1}, {1, 1, 1});
  // Symmetric, not hermitian: nothing is conjugated.
  expect_csr<Complex>(csr<Complex>("%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n2 1 1 2\n1 1 3 4\n"), 2,
                      2, {0, 2, 3}, {0, 1, 0}, {{3, 4}, {1, 2}, {1, 2}});
}

TEST_F(MatrixMarket, CoordinateSkewSymmetric) {
  for (const std::string field : {"real", "integer"}) {
    // A diagonal entry may be stored as long as it is zero, and stays an entry.
    expect_csr<double>(
        csr("%%MatrixMarket matrix coordinate " + field + " skew-symmetric\n3 3 3\n2 1 4\n3 2 -5\n3 3 0\n"), 3, 3,
        {0, 1, 3, 5}, {1, 0, 2, 1, 2}, {-4, 4, 5, -5, 0});
  }
  expect_csr<double>(csr("%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n"), 2, 2, {0, 1, 2},
                     {1, 0}, {-1, 1});
  expect_csr<Complex>(csr<Complex>("%%MatrixMarket matrix coordinate complex skew-symmetric\n2 2 1\n2 1 1 2\n"), 2, 2,
                      {0, 1, 2}, {1, 0}, {{-1, -2}, {1, 2}});
}

TEST_F(MatrixMarket, CoordinateHermitian) {
  expect_csr<Complex>(csr<Complex>("%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 7 0\n2 1 1 2\n"), 2,
                      2, {0, 2, 3}, {0, 1, 0}, {{7, 0}, {1, -2}, {1, 2}});
  expect_csr<Complex>(csr<Complex>("%%MatrixMarket matrix coordinate pattern hermitian\n2 2 1\n2 1\n"), 2, 2, {0, 1, 2},
                      {1, 0}, {1, 1});
}

TEST_F(MatrixMarket, ArrayGeneralKeepsEveryElement) {
  for (const std::string field : {"real", "integer"}) {
    expect_csr<double>(csr("%%MatrixMarket matrix array " + field + " general\n2 3\n1\n2\n0\n4\n5\n6\n"), 2, 3,
                       {0, 3, 6}, {0, 1, 2, 0, 1, 2}, {1, 0, 5, 2, 4, 6});
  }
  expect_csr<Complex>(csr<Complex>("%%MatrixMarket matrix array complex general\n1 2\n1 2\n3 4\n"), 1, 2, {0, 2},
                      {0, 1}, {{1, 2}, {3, 4}});
}

TEST_F(MatrixMarket, ArrayWithSymmetry) {
  const std::string banner = "%%MatrixMarket matrix array ";
  expect_csr<double>(csr(banner + "real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"), 3, 3, {0, 3, 6, 9},
                     {0, 1, 2, 0, 1, 2, 0, 1, 2}, {1, 2, 3, 2, 4, 5, 3, 5, 6});
  expect_csr<double>(csr(banner + "integer skew-symmetric\n3 3\n1\n2\n3\n"), 3, 3, {0, 3, 6, 9},
                     {0, 1, 2, 0, 1, 2, 0, 1, 2}, {0, -1, -2, 1, 0, -3, 2, 3, 0});
  expect_csr<Complex>(csr<Complex>(banner + "complex hermitian\n2 2\n1 0\n2 3\n4 0\n"), 2, 2, {0, 2, 4}, {0, 1, 0, 1},
                      {{1, 0}, {2, -3}, {2, 3}, {4, 0}});
  expect_csr<double>(csr(banner + "real skew-symmetric\n1 1\n"), 1, 1, {0, 1}, {0}, {0});
}

TEST_F(MatrixMarket, Dense) {
  const std::string banner = "%%MatrixMarket matrix array ";
  auto dense = read_matrix_market_dense<double>(file(banner + "real general\n2 3\n1\n2\n3\n4\n5\n-0\n"));
  EXPECT_EQ(dense.rows, 2);
  EXPECT_EQ(dense.cols, 3);
  EXPECT_TRUE(same_bits(dense.values, std::vector<double>{1, 2, 3, 4, 5, -0.0}));
  dense = read_matrix_market_dense<double>(file(banner + "real symmetric\n2 2\n1\n2\n3\n"));
  EXPECT_EQ(dense.values, (std::vector<double>{1, 2, 2, 3}));
  dense = read_matrix_market_dense<double>(file(banner + "integer skew-symmetric\n3 3\n1\n2\n3\n"));
  EXPECT_EQ(dense.values, (std::vector<double>{0, 1, 2, -1, 0, 3, -2, -3, 0}));
  const auto complex = read_matrix_market_dense<Complex>(file(banner + "complex hermitian\n2 2\n1 0\n2 3\n4 0\n"));
  EXPECT_EQ(complex.values, (std::vector<Complex>{{1, 0}, {2, 3}, {2, -3}, {4, 0}}));
  // Coordinate vectors, both ways round, with a duplicate.
  dense = read_matrix_market_dense<double>(file(coordinate_real + "3 1 3\n3 1 2\n1 1 -0\n3 1 0.5\n"));
  EXPECT_TRUE(same_bits(dense.values, std::vector<double>{-0.0, 0, 2.5}));
  dense = read_matrix_market_dense<double>(file(coordinate_real + "1 2 1\n1 2 4\n"));
  EXPECT_EQ(dense.values, (std::vector<double>{0, 4}));
  expect_file_error(path("m.mtx"), 2, "2 x 2 is not read as a dense matrix",
                    [&] { read_matrix_market_dense<double>(file(coordinate_real + "2 2 1\n1 1 1\n")); });
  expect_file_error(path("m.mtx"), 1, "cannot be read into a real matrix",
                    [&] { read_matrix_market_dense<float>(file(banner + "complex general\n1 1\n1 0\n")); });
  MatrixMarketOptions separate;
  separate.sum_duplicates = false;
  EXPECT_THROW(read_matrix_market_dense<double>(path("m.mtx"), separate), Tessera::InvalidArgument);
}

TEST_F(MatrixMarket, HeaderOnly) {
  const auto header = read_matrix_market_header(
      file("%%MATRIXMARKET Matrix CoordinatE Complex Hermitian\n\n% comment\n 7  7\t3 \nnonsense\n"));
  EXPECT_EQ(header.object, MatrixMarketObject::Matrix);
  EXPECT_EQ(header.format, MatrixMarketFormat::Coordinate);
  EXPECT_EQ(header.field, MatrixMarketField::Complex);
  EXPECT_EQ(header.symmetry, MatrixMarketSymmetry::Hermitian);
  EXPECT_EQ(header.rows, 7);
  EXPECT_EQ(header.cols, 7);
  EXPECT_EQ(header.stored, 3);
  const std::string banner = "%%MatrixMarket matrix array ";
  EXPECT_EQ(read_matrix_market_header(file(banner + "real general\n4 5\n")).stored, 20);
  EXPECT_EQ(read_matrix_market_header(file(banner + "integer symmetric\n4 4\n")).stored, 10);
  const auto skew = read_matrix_market_header(file(banner + "real skew-symmetric\n4 4\n"));
  EXPECT_EQ(skew.stored, 6);
  EXPECT_EQ(skew.format, MatrixMarketFormat::Array);
  EXPECT_EQ(skew.field, MatrixMarketField::Real);
  EXPECT_EQ(skew.symmetry, MatrixMarketSymmetry::SkewSymmetric);
}

TEST_F(MatrixMarket, LooseLayout) {
  expect_csr<double>(csr("%%matrixmarket MATRIX coordinate REAL general \r\n% c\r\n\r\n2 2 2\r\n\n%\n \t1 \t 1  2 "
                         "\r\n  % between\r\n\r\n2 2 3\r\n%end\r\n \n\n"),
                     2, 2, {0, 1, 2}, {0, 1}, {2, 3});
  // No newline at the end, leading zeros.
  expect_csr<double>(csr(coordinate_real + "2 2 1\n00000000000000000000002 1 007"), 2, 2, {0, 0, 1}, {0}, {7});
}

TEST_F(MatrixMarket, DuplicatesAreSummedOrKept) {
  const std::string text = coordinate_real + "3 3 7\n2 3 1\n1 1 1e16\n2 3 2\n1 1 1\n1 1 -1e16\n2 1 5\n3 2 0\n";
  // In the order of the file: (1e16 + 1) - 1e16 is 0 in double.
  expect_csr<double>(csr(text), 3, 3, {0, 1, 3, 4}, {0, 0, 2, 1}, {0, 5, 3, 0});
  MatrixMarketOptions separate;
  separate.sum_duplicates = false;
  expect_csr<double>(csr(text, separate), 3, 3, {0, 3, 6, 7}, {0, 0, 0, 0, 2, 2, 1}, {1e16, 1, -1e16, 5, 1, 2, 0});
  expect_csr<double>(csr("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n2 1 1\n2 1 2\n1 1 4\n"), 2, 2,
                     {0, 2, 3}, {0, 1, 0}, {4, 3, 3});
  // A sum that vanishes stays an entry.
  expect_csr<double>(csr(coordinate_real + "1 1 2\n1 1 2\n1 1 -2\n"), 1, 1, {0, 1}, {0}, {0});
}

TEST_F(MatrixMarket, LongRowsAreSortedStably) {
  // Rows beyond the length for which insertion sort is used, with duplicates whose order matters.
  const int cols = 500, count = 4000;
  std::mt19937 random(7);
  std::string text = coordinate_real + "2 " + std::to_string(cols) + " " + std::to_string(count) + "\n";
  std::vector<std::vector<double>> expected(2 * cols);
  for (int k = 0; k < count; ++k) {
    const int row = static_cast<int>(random() % 2), col = static_cast<int>(random() % cols);
    expected[static_cast<std::size_t>(row * cols + col)].push_back(k);
    text += std::to_string(row + 1) + " " + std::to_string(col + 1) + " " + std::to_string(k) + "\n";
  }
  MatrixMarketOptions separate;
  separate.sum_duplicates = false;
  const auto kept = csr(text, separate);
  const auto summed = csr(text);
  std::size_t k = 0, s = 0;
  for (std::size_t place = 0; place < expected.size(); ++place) {
    double sum = 0;
    for (const double value : expected[place]) {
      ASSERT_EQ(kept.entries[k], static_cast<int>(place % cols));
      ASSERT_EQ(kept.values[k++], value);
      sum += value;
    }
    if (expected[place].empty()) continue;
    ASSERT_EQ(summed.entries[s], static_cast<int>(place % cols));
    ASSERT_EQ(summed.values[s++], sum);
  }
  EXPECT_EQ(k, static_cast<std::size_t>(count));
  EXPECT_EQ(s, summed.values.size());
  EXPECT_EQ(static_cast<std::size_t>(summed.row_map[2]), s);
}

TEST_F(MatrixMarket, EmptyMatrices) {
  expect_csr<double>(csr(coordinate_real + "0 0 0\n"), 0, 0, {0}, {}, {});
  expect_csr<double>(csr(coordinate_real + "17 33 0\n"), 17, 33, std::vector<Int64>(18, 0), {}, {});
  expect_csr<double>(csr(coordinate_real + "0 5 0"), 0, 5, {0}, {}, {});
  expect_csr<double>(csr("%%MatrixMarket matrix array real general\n0 3\n"), 0, 3, {0}, {}, {});
  EXPECT_TRUE(read_matrix_market_dense<float>(file("%%MatrixMarket matrix array real general\n3 0\n")).values.empty());
}

TEST_F(MatrixMarket, OrdinalAndOffsetTypes) {
  const std::string name = file(coordinate_real + "2 3 2\n2 3 4\n1 1 5\n");
  expect_csr<double>(read_matrix_market<double, int, int>(name), 2, 3, {0, 1, 2}, {0, 2}, {5, 4});
  expect_csr<float>(read_matrix_market<float, int, std::size_t>(name), 2, 3, {0, 1, 2}, {0, 2}, {5, 4});
  expect_csr<Complex>(read_matrix_market<Complex, Int64, int>(name), 2, 3, {0, 1, 2}, {0, 2}, {5, 4});
  expect_csr<double>(read_matrix_market<double, Int64, std::size_t>(name), 2, 3, {0, 1, 2}, {0, 2}, {5, 4});
  // Columns beyond 32 bits fit the wide ordinal and are refused by the narrow one.
  file(coordinate_real + "1 3000000000 1\n1 2999999999 4\n");
  const auto wide = read_matrix_market<double, Int64, Int64>(name);
  EXPECT_EQ(wide.cols, 3000000000);
  EXPECT_EQ(wide.entries, std::vector<Int64>{2999999998});
  expect_file_error(name, 2, "3000000000 columns do not fit the ordinal type (at most 2147483647)",
                    [&] { read_matrix_market<double>(name); });
  file(coordinate_real + "3 3 3000000000\n1 1 4\n");
  expect_file_error(name, 2, "3000000000 entries do not fit the offset type (at most 2147483647)",
                    [&] { read_matrix_market<double, int, int>(name); });
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers

TEST_F(MatrixMarket, NumbersAreRoundedOnce) {
  const auto values = [&](const std::string& number) { return csr(coordinate_real + "1 1 1\n1 1 " + number).values; };
  EXPECT_EQ(values("0.1")[0], 0.1);
  EXPECT_EQ(values("123456789012345678901234567890")[0], 123456789012345678901234567890.0);
  EXPECT_EQ(values("1.7976931348623157e308")[0], std::numeric_limits<double>::max());
  EXPECT_TRUE(same_bits(values("4.9e-324"), {std::numeric_limits<double>::denorm_min()}));
  EXPECT_TRUE(same_bits(values("1e-400"), {0.0}));
  EXPECT_TRUE(same_bits(values("-1e-400"), {-0.0}));
  EXPECT_TRUE(same_bits(values("-0.000" + std::string(400, '0') + "1"), {-0.0}));
  EXPECT_EQ(values("1" + std::string(400, '0') + "e-400")[0], 1.0);
  EXPECT_TRUE(same_bits(values("0e99999"), {0.0}));
  EXPECT_TRUE(same_bits(values("1e-99999999999999999999999"), {0.0}));
  EXPECT_EQ(values("Inf")[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(values("-infinity")[0], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(values("NaN")[0]));
}

TEST_F(MatrixMarket, FloatFollowsIeeeConversion) {
  const auto values = [&](const std::string& number) {
    return csr<float>(coordinate_real + "1 1 1\n1 1 " + number).values;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values("1e300")[0], infinity);
  EXPECT_EQ(values("-3.5e38")[0], -infinity);
  EXPECT_EQ(values("3.4028234663852886e38")[0], std::numeric_limits<float>::max());
  EXPECT_TRUE(same_bits(values("1e-300"), {0.0f}));
  EXPECT_TRUE(same_bits(values("-1e-400"), {-0.0f}));
  EXPECT_TRUE(same_bits(values("1e-40"), {1e-40f}));
  EXPECT_EQ(values("1.4e-45")[0], std::numeric_limits<float>::denorm_min());
  // Just above the middle of two floats, by less than a double resolves: rounding twice would go down.
  EXPECT_EQ(values("1.000000059604644775390626")[0], 1.00000011920928955078125f);
  expect_file_error(path("m.mtx"), 3, "too large for double precision", [&] { values("1e309"); });
}

TEST_F(MatrixMarket, PatternValues) {
  std::set<double> distinct, magnitudes;
  int negative = 0, small = 0, large = 0;
  for (int row = 0; row < 100; ++row) {
    for (int col = 0; col < 100; ++col) {
      const double value = pattern_value(3, row, col);
      EXPECT_EQ(value, pattern_value(3, row, col));
      EXPECT_GE(std::fabs(value), 1.0 / 64);
      EXPECT_LT(std::fabs(value), 64.0);
      int exponent = 0;
      const double scaled = std::frexp(value, &exponent) * 256;  // eight significant bits
      EXPECT_EQ(scaled, std::floor(scaled));
      distinct.insert(value);
      negative += value < 0;
      small += std::fabs(value) < 0.125;
      large += std::fabs(value) >= 8;
    }
  }
  EXPECT_GT(distinct.size(), 2500u);  // of 3072
  EXPECT_NEAR(negative, 5000, 300);
  EXPECT_NEAR(small, 2500, 300);
  EXPECT_NEAR(large, 2500, 300);
  // Fixed forever: results of tests and benchmarks refer to these.
  EXPECT_EQ(pattern_value(1, 0, 0), -0.69140625);
  EXPECT_EQ(pattern_value(1, 2, 1), -0.1796875);
  EXPECT_EQ(pattern_value(2, 123456789012, 7), 0.328125);
}

TEST_F(MatrixMarket, PatternValuesRespectSymmetry) {
  MatrixMarketOptions options;
  options.pattern_values_random = true;
  options.seed = 42;
  const std::string banner = "%%MatrixMarket matrix coordinate pattern ";
  const double v01 = pattern_value(42, 0, 1), v10 = pattern_value(42, 1, 0), v11 = pattern_value(42, 1, 1);
  ASSERT_NE(v01, v10);
  expect_csr<double>(csr(banner + "general\n2 2 3\n1 2\n2 1\n2 2\n", options), 2, 2, {0, 1, 3}, {1, 0, 1},
                     {v01, v10, v11});
  expect_csr<double>(csr(banner + "symmetric\n2 2 2\n2 1\n2 2\n", options), 2, 2, {0, 1, 3}, {1, 0, 1},
                     {v01, v01, v11});
  expect_csr<double>(csr(banner + "skew-symmetric\n2 2 1\n2 1\n", options), 2, 2, {0, 1, 2}, {1, 0}, {-v01, v01});
  expect_csr<Complex>(csr<Complex>(banner + "hermitian\n2 2 1\n2 1\n", options), 2, 2, {0, 1, 2}, {1, 0}, {v01, v01});
  options.seed = 43;
  EXPECT_NE(csr(banner + "general\n2 2 1\n1 2\n", options).values[0], v01);
  // Files with values are not affected.
  EXPECT_EQ(csr(coordinate_real + "1 1 1\n1 1 5\n", options).values[0], 5);
}

// ---------------------------------------------------------------------------------------------------------------------
// A folder of matrices

TEST_F(MatrixMarket, FolderOfMatrices) {
  const char* const folder = std::getenv("TESSERA_MATRICES");
  if (folder == nullptr) GTEST_SKIP() << "TESSERA_MATRICES is not set";
  const auto consistent = [](const auto& csr, const MatrixMarketHeader& header) {
    EXPECT_EQ(static_cast<Int64>(csr.rows), header.rows);
    EXPECT_EQ(static_cast<Int64>(csr.cols), header.cols);
    ASSERT_EQ(csr.row_map.size(), static_cast<std::size_t>(csr.rows) + 1);
    ASSERT_EQ(csr.entries.size(), static_cast<std::size_t>(csr.row_map.back()));
    ASSERT_EQ(csr.values.size(), csr.entries.size());
    const bool general = header.symmetry == MatrixMarketSymmetry::General;
    const auto entries = static_cast<Int64>(csr.entries.size());
    EXPECT_TRUE(general ? entries == header.stored : entries >= header.stored && entries <= 2 * header.stored);
    for (std::size_t row = 0; row + 1 < csr.row_map.size(); ++row) {
      for (auto k = csr.row_map[row]; k < csr.row_map[row + 1]; ++k) {
        const auto at = static_cast<std::size_t>(k);
        ASSERT_TRUE(csr.entries[at] >= 0 && csr.entries[at] < csr.cols);
        ASSERT_TRUE(k == csr.row_map[row] || csr.entries[at - 1] < csr.entries[at]);
      }
    }
  };
  int real = 0, complex = 0;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().string();
    if (name.size() < 7 || name.substr(name.size() - 7) != ".mtx.gz") continue;
    SCOPED_TRACE(name);
    const auto header = read_matrix_market_header(name);
    if (header.field == MatrixMarketField::Complex) {
      consistent(read_matrix_market<Complex>(name), header);
      expect_file_error(name, 1, "the file is complex and cannot be read into a real matrix",
                        [&] { read_matrix_market<double>(name); });
      ++complex;
    } else {
      consistent(read_matrix_market<double>(name), header);
      ++real;
    }
  }
  EXPECT_GT(real + complex, 0);
  std::printf("%d real and %d complex matrices\n", real, complex);
}

}  // namespace
