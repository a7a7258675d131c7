// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark of SDDMM: its check of results. What is run is a matter of the command line (RunBench.cmake).

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "driver/Tessera_BenchUniform.hpp"
#include "sddmm/Tessera_BenchSddmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

// With a name, since files of a program may be compiled together (Tessera_TEST_TOGETHER).
namespace BenchSddmmTests {
namespace {

using namespace Tessera;
using namespace Tessera::Bench;

/// 4 x 3 with K = 5: rows of two entries, of none (twice), of three (one column twice).
struct SmallSddmm {
  static constexpr std::uint64_t x_seed = 1, y_seed = 2, p_seed = 3;
  static constexpr int inner = 5;
  SddmmOperands o;
  const std::vector<std::int64_t> row_map = {0, 2, 2, 2, 5};
  const std::vector<int> rows = {0, 0, 3, 3, 3}, entries = {0, 2, 1, 1, 2};

  SmallSddmm(ElementType operand, ElementType result, double alpha, double beta, int offset_bits = 32) {
    o.S.rows = 4;
    o.S.cols = 3;
    o.S.offset_bits = offset_bits;
    o.S.element = operand;
    o.S.row_map = upload_offsets(o.S.space, row_map, offset_bits);
    o.S.entries = upload(o.S.space, "entries", entries);
    // The numbers of S are no part of the product.
    o.S.values = upload(o.S.space, "values", std::vector<double>(5, 7.0), operand);
    o.p_type = result;
    o.inner = inner;
    o.alpha = alpha;
    o.beta = beta;
    o.X = DeviceArray("X", 4 * inner, bytes_of(operand));
    o.Y = DeviceArray("Y", 3 * inner, bytes_of(operand));
    fill_dense(o.S.space, o.x_elements(), x_seed);
    fill_dense(o.S.space, o.y_elements(), y_seed);
  }
  /// Sums in double.
  double right(int e) const {
    double sum = 0;
    for (int k = 0; k < inner; ++k) {
      sum += rounded(uniform_value(x_seed, rows[e], k), o.S.element) *
             rounded(uniform_value(y_seed, entries[e], k), o.S.element);
    }
    return o.alpha * sum + o.beta * rounded(uniform_value(p_seed, 0, e), o.p_type);
  }
  /// P holds the right answer but for one entry, `factor` times that, plus `more`.
  Verdict check(int entry, double factor, double more, Precision precision, const std::string& kernel = "") {
    std::vector<double> p;
    for (int e = 0; e < 5; ++e) p.push_back(e == entry ? right(e) * factor + more : right(e));
    o.P = upload(o.S.space, "P", p, o.p_type);
    return check_sddmm(o, {}, p_seed, precision, kernel);
  }
  Verdict check(Precision precision) { return check(-1, 1, 0, precision); }
};

constexpr ElementType d = ElementType::Double, f = ElementType::Float, h = ElementType::Half, b = ElementType::BHalf;

TEST(BenchSddmm, AcceptsTheRightAnswer) {
  EXPECT_TRUE((SmallSddmm(d, d, 2, -0.5).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSddmm(d, d, 2, -0.5, 64).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSddmm(f, f, 1, 0).check(Precision::FP32).verified()));
  EXPECT_TRUE((SmallSddmm(f, f, 1, 0).check(Precision::TF32).verified()));
  EXPECT_TRUE((SmallSddmm(h, f, 1, 0.5).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSddmm(h, h, 1, 0).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSddmm(b, b, -3, 1).check(Precision::BF16).verified()));
}

TEST(BenchSddmm, RefusesWhatIsOutsideTheBound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SmallSddmm small(d, d, 1, 0);
  const Verdict v = small.check(3, 1 + 1e-12, 0, Precision::FP64);
  EXPECT_FALSE(v.verified());
  EXPECT_NE(v.fault.find("entry 3"), std::string::npos) << v.fault;
  EXPECT_FALSE(small.check(0, nan, 0, Precision::FP64).verified());  // not written
  EXPECT_FALSE(small.check(4, 1, HUGE_VAL, Precision::FP64).verified());
  EXPECT_FALSE((SmallSddmm(d, d, 1, 0, 64).check(2, 1, 1e-9, Precision::FP64).verified()));
  EXPECT_FALSE((SmallSddmm(h, h, 1, 0).check(0, 1 + 4.0 / 1024, 0, Precision::FP16).verified()));
}

TEST(BenchSddmm, OnlyTf32MayRoundItsOperands) {
  SmallSddmm small(f, f, 1, 0);
  EXPECT_TRUE(small.check(0, 1 + 1.0 / 2048, 0, Precision::TF32).verified());
  EXPECT_FALSE(small.check(0, 1 + 1.0 / 2048, 0, Precision::FP32).verified());
  // Two parts of TF32 lose a little, and only a little.
  EXPECT_FALSE(small.check(0, 1 + 1.0 / 2048, 0, Precision::FP32, "3xTF32").verified());
}

TEST(BenchSddmm, EmptyPatternsAreRight) {
  SmallSddmm small(d, d, 1, 0);
  small.o.S.row_map = upload_offsets(small.o.S.space, {0, 0, 0, 0, 0}, 32);
  small.o.S.entries = upload(small.o.S.space, "entries", std::vector<int>());
  small.o.P = DeviceArray("P", 0, 8);
  EXPECT_TRUE(check_sddmm(small.o, {}, SmallSddmm::p_seed, Precision::FP64, "").verified());
}

}  // namespace
}  // namespace BenchSddmmTests
