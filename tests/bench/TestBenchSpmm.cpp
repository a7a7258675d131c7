// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark of SpMM: what is run, its operands, its check of results.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchUniform.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace {

using namespace Tessera;
using namespace Tessera::Bench;

/// 3 x 4 with 5 columns: rows of three entries, of none, of two (one column twice).
struct SmallSpmm {
  static constexpr std::uint64_t b_seed = 1, c_seed = 2;
  SpmmOperands o;
  const std::vector<std::int64_t> row_map = {0, 3, 3, 5};
  const std::vector<int> entries = {0, 2, 3, 1, 1};
  const std::vector<double> values = {1.5, -0.25, 0.75, 2, -0.5};

  SmallSpmm(ElementType operand, ElementType result, bool layout_left, double alpha, double beta,
            int offset_bits = 32) {
    o.A.rows = 3;
    o.A.cols = 4;
    o.A.offset_bits = offset_bits;
    o.A.element = operand;
    o.A.row_map = upload_offsets(o.A.space, row_map, offset_bits);
    o.A.entries = upload(o.A.space, "entries", entries);
    o.A.values = upload(o.A.space, "values", values, operand);
    o.c_type = result;
    o.columns = 5;
    o.layout_left = layout_left;
    o.alpha = alpha;
    o.beta = beta;
    o.B = DeviceArray("B", 4 * 5, bytes_of(operand));
    fill_dense(o.A.space, o.b_elements(), b_seed);
  }
  /// Sums in double, rounded once to the type of C.
  double right(int i, int j) const {
    double sum = 0;
    for (auto k = row_map[i]; k < row_map[i + 1]; ++k) {
      sum += values[k] * rounded(uniform_value(b_seed, entries[k], j), o.A.element);
    }
    return o.alpha * sum + o.beta * rounded(uniform_value(c_seed, i, j), o.c_type);
  }
  /// C holds the right answer but for one element, `factor` times that, plus `more`.
  Verdict check(int row, int col, double factor, double more, Precision precision) {
    std::vector<double> c;
    for (int at = 0; at < 15; ++at) {
      const int i = o.layout_left ? at % 3 : at / 5, j = o.layout_left ? at / 3 : at % 5;
      c.push_back(i == row && j == col ? right(i, j) * factor + more : right(i, j));
    }
    o.C = upload(o.A.space, "C", c, o.c_type);
    return check_spmm(o, {}, c_seed, SpmmRounding::of(precision, o.A.element, o.c_type, ""));
  }
  Verdict check(Precision precision) { return check(-1, -1, 1, 0, precision); }
};

constexpr ElementType d = ElementType::Double, f = ElementType::Float, h = ElementType::Half, b = ElementType::BHalf;

TEST(BenchSpmm, AcceptsTheRightAnswer) {
  EXPECT_TRUE((SmallSpmm(d, d, false, 2, -0.5).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSpmm(d, d, true, 2, -0.5, 64).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSpmm(f, f, false, 1, 0).check(Precision::FP32).verified()));
  EXPECT_TRUE((SmallSpmm(f, f, false, 1, 0).check(Precision::TF32).verified()));
  EXPECT_TRUE((SmallSpmm(h, f, true, 1, 0.5).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSpmm(h, h, false, 1, 0).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSpmm(b, b, false, -3, 1).check(Precision::BF16).verified()));
}

TEST(BenchSpmm, RefusesWhatIsOutsideTheBound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SmallSpmm right(d, d, false, 1, 0);
  const Verdict v = right.check(2, 3, 1 + 1e-12, 0, Precision::FP64);
  EXPECT_FALSE(v.verified());
  EXPECT_NE(v.fault.find("element (2, 3)"), std::string::npos) << v.fault;
  EXPECT_FALSE(right.check(1, 0, 1, 1e-300, Precision::FP64).verified());  // the empty row is exactly 0
  EXPECT_FALSE(right.check(0, 4, nan, 0, Precision::FP64).verified());     // not written
  EXPECT_FALSE(right.check(0, 4, 1, HUGE_VAL, Precision::FP64).verified());
  SmallSpmm left(d, d, true, 1, 0);
  EXPECT_NE(left.check(0, 1, 1, 1e-9, Precision::FP64).fault.find("element (0, 1)"), std::string::npos);
  SmallSpmm half(h, h, false, 1, 0);
  EXPECT_FALSE(half.check(0, 0, 1 + 4.0 / 1024, 0, Precision::FP16).verified());
}

TEST(BenchSpmm, OnlyTf32MayRoundItsOperands) {
  SmallSpmm small(f, f, false, 1, 0);
  EXPECT_TRUE(small.check(0, 0, 1 + 1.0 / 2048, 0, Precision::TF32).verified());
  EXPECT_FALSE(small.check(0, 0, 1 + 1.0 / 2048, 0, Precision::FP32).verified());
}

TEST(BenchSpmm, UniformValuesFillTheirRange) {
  double sum = 0, least = 1, largest = -1;
  constexpr int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double v = uniform_value(3, i / 100, i % 100);
    sum += v;
    least = std::fmin(least, v);
    largest = std::fmax(largest, v);
  }
  EXPECT_GE(least, -1);
  EXPECT_LT(least, -0.999);
  EXPECT_LT(largest, 1);
  EXPECT_GT(largest, 0.999);
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NE(uniform_value(3, 1, 2), uniform_value(3, 2, 1));
  EXPECT_NE(uniform_value(dense_seed(3, DenseRole::B), 1, 2), uniform_value(dense_seed(3, DenseRole::C), 1, 2));
}

BenchMatrix generated(const std::string& spec) { return load_matrix("gen:" + spec, 1); }

TEST(BenchSpmm, TellsMeshesFromGraphs) {
  EXPECT_EQ(pattern_class(generated("stencil2d:nx=40:ny=40")), "mesh");
  EXPECT_EQ(pattern_class(generated("rmat:scale=10:degree=8")), "graph");
  EXPECT_EQ(pattern_class(generated("uniform:rows=4000:cols=4000:per_row=8")), "graph");
  EXPECT_EQ(pattern_class(generated("uniform:rows=400:cols=40:per_row=8")), "graph");  // not square
  EXPECT_EQ(pattern_class(BenchMatrix{}), "");
}

TEST(BenchSpmm, LeavesTheValuesOfFilesAlone) {
  BenchMatrix matrix = generated("stencil2d:nx=20:ny=20");
  const std::vector<double> seeded = matrix.csr.values;
  matrix.seeded_values = false;
  make_values_uniform(matrix, 1);
  EXPECT_EQ(matrix.csr.values, seeded);
  matrix.seeded_values = true;
  make_values_uniform(matrix, 1);
  EXPECT_NE(matrix.csr.values, seeded);
  for (const double v : matrix.csr.values) EXPECT_TRUE(v >= -1 && v < 1);
}

std::vector<std::string> names(const BenchOptions& options, Precision precision) {
  std::vector<std::string> result;
  for (const SpmmVariant& v : spmm_variants(options, precision)) {
    result.push_back(to_string(v.algorithm) + (v.name.empty() ? std::string() : "-" + v.name));
  }
  return result;
}

TEST(BenchSpmm, AblationStandsBesideThePublishedChoice) {
  BenchOptions options;
  options.op = "spmm";
  options.algorithms = {"flash", "auto", "csr"};
  EXPECT_EQ(names(options, Precision::FP16), (std::vector<std::string>{"csr", "flash", "auto"}));
  options.ablation = true;
  EXPECT_EQ(names(options, Precision::FP16),
            (std::vector<std::string>{"csr", "flash", "flash-16x1", "flash-direct", "flash-sr", "auto"}));
  const std::vector<SpmmVariant> all = spmm_variants(options, Precision::FP16);
  EXPECT_EQ(all[1].flash.vector_length, 8);
  EXPECT_EQ(all[2].flash.vector_length, 16);
  EXPECT_EQ(all[3].flash.mapping, FlashMapping::Direct);
  EXPECT_TRUE(all[4].flash.padded);
}

TEST(BenchSpmm, AllAsksForWhatThePrecisionHas) {
  BenchOptions options;
  options.backend = Backend::EmulatedNvidia;
  EXPECT_EQ(names(options, Precision::FP64), (std::vector<std::string>{"panels"}));
  EXPECT_EQ(names(options, Precision::TF32), (std::vector<std::string>{"flash", "panels"}));
  options.backend = Backend::Kokkos;
  EXPECT_EQ(names(options, Precision::FP32), (std::vector<std::string>{"csr", "gespmm"}));
  EXPECT_FALSE(spmm_variants(options, Precision::FP32)[0].named);
  options.algorithms = {"all", "csr"};
  EXPECT_TRUE(spmm_variants(options, Precision::FP32)[0].named);
  EXPECT_FALSE(spmm_variants(options, Precision::FP32)[1].named);
  options.regret = true;
  EXPECT_EQ(names(options, Precision::FP32).back(), "auto");
}

TEST(BenchSpmm, LeavesOutWhatDoesNotFit) {
  EXPECT_EQ(too_large(1e9, 2e9, 10e9, true), "");
  EXPECT_NE(too_large(1e9, 4e9, 10e9, true).find("60 %"), std::string::npos);
  EXPECT_EQ(too_large(1e9, 2e9, 10e9, false), "");
  EXPECT_NE(too_large(1e9, 4e9, 10e9, false), "");
  EXPECT_EQ(too_large(1e9, 4e9, 0, true), "");
  // 2 M rows and 256 columns in FP64 on a GPU of 139 GiB.
  EXPECT_EQ(too_large(1.3e9, 2 * 8.0 * 256 * 2e6, 139 * 1073741824.0, false), "");
}

}  // namespace
