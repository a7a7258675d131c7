// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark of SpMM: what is run, its operands, its check of results.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "driver/Tessera_BenchCase.hpp"
#include "driver/Tessera_BenchMatrix.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"
#include "spmm/Tessera_BenchVerifySpmm.hpp"

namespace {

using namespace Tessera;
using namespace Tessera::Bench;
using Exec = Kokkos::DefaultExecutionSpace;

/// 3 x 4 with 5 columns: rows of three entries, of none, of two (one column twice).
template <class S, class Y, class Layout>
struct SmallSpmm {
  using Operands = SpmmOperands<Exec, S, Y, int, Layout>;
  using Device = typename Operands::device_type;
  static constexpr std::uint64_t b_seed = 1, c_seed = 2;
  Operands o;
  const std::vector<int> row_map = {0, 3, 3, 5}, entries = {0, 2, 3, 1, 1};
  const std::vector<double> values = {1.5, -0.25, 0.75, 2, -0.5};

  SmallSpmm(double alpha, double beta) {
    o.rows = 3;
    o.cols = 4;
    o.columns = 5;
    o.alpha = alpha;
    o.beta = beta;
    o.row_map = upload<int, Device>(o.space, "row_map", row_map);
    o.entries = upload<int, Device>(o.space, "entries", entries);
    o.values = upload<S, Device>(o.space, "values", values);
    o.B = typename Operands::b_type("B", 4, 5);
    o.C = typename Operands::c_type("C", 3, 5);
    fill_dense(o.space, o.B, b_seed);
  }
  /// Sums in double, rounded once to Y.
  double right(int i, int j) const {
    double sum = 0;
    for (int k = row_map[i]; k < row_map[i + 1]; ++k) {
      sum += values[k] * static_cast<double>(static_cast<S>(uniform_value(b_seed, entries[k], j)));
    }
    return o.alpha * sum + o.beta * static_cast<double>(static_cast<Y>(uniform_value(c_seed, i, j)));
  }
  /// C holds the right answer but for one element, `factor` times that, plus `more`.
  Verdict check(int row, int col, double factor, double more, Precision precision) {
    const auto host = Kokkos::create_mirror_view(o.C);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 5; ++j) {
        const bool changed = i == row && j == col;
        host(i, j) = static_cast<Y>(changed ? right(i, j) * factor + more : right(i, j));
      }
    }
    Kokkos::deep_copy(o.C, host);
    return SpmmCheck<Operands>(o, c_seed, SpmmRounding::of<S, Y>(precision, "")).run(o.space);
  }
  Verdict check(Precision precision) { return check(-1, -1, 1, 0, precision); }
};

TEST(BenchSpmm, AcceptsTheRightAnswer) {
  EXPECT_TRUE((SmallSpmm<double, double, Kokkos::LayoutRight>(2, -0.5).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSpmm<double, double, Kokkos::LayoutLeft>(2, -0.5).check(Precision::FP64).verified()));
  EXPECT_TRUE((SmallSpmm<float, float, Kokkos::LayoutRight>(1, 0).check(Precision::FP32).verified()));
  EXPECT_TRUE((SmallSpmm<float, float, Kokkos::LayoutRight>(1, 0).check(Precision::TF32).verified()));
  EXPECT_TRUE((SmallSpmm<half_t, float, Kokkos::LayoutLeft>(1, 0.5).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSpmm<half_t, half_t, Kokkos::LayoutRight>(1, 0).check(Precision::FP16).verified()));
  EXPECT_TRUE((SmallSpmm<bhalf_t, bhalf_t, Kokkos::LayoutRight>(-3, 1).check(Precision::BF16).verified()));
}

TEST(BenchSpmm, RefusesWhatIsOutsideTheBound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SmallSpmm<double, double, Kokkos::LayoutRight> right(1, 0);
  const Verdict v = right.check(2, 3, 1 + 1e-12, 0, Precision::FP64);
  EXPECT_FALSE(v.verified());
  EXPECT_NE(v.fault.find("element (2, 3)"), std::string::npos) << v.fault;
  EXPECT_FALSE(right.check(1, 0, 1, 1e-300, Precision::FP64).verified());  // the empty row is exactly 0
  EXPECT_FALSE(right.check(0, 4, nan, 0, Precision::FP64).verified());     // not written
  EXPECT_FALSE(right.check(0, 4, 1, HUGE_VAL, Precision::FP64).verified());
  SmallSpmm<double, double, Kokkos::LayoutLeft> left(1, 0);
  EXPECT_NE(left.check(0, 1, 1, 1e-9, Precision::FP64).fault.find("element (0, 1)"), std::string::npos);
  SmallSpmm<half_t, half_t, Kokkos::LayoutRight> half(1, 0);
  EXPECT_FALSE(half.check(0, 0, 1 + 4.0 / 1024, 0, Precision::FP16).verified());
}

TEST(BenchSpmm, OnlyTf32MayRoundItsOperands) {
  SmallSpmm<float, float, Kokkos::LayoutRight> small(1, 0);
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
