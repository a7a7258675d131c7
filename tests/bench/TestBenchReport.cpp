// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark's operands and its summary.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "Tessera_BenchMatrix.hpp"
#include "Tessera_BenchReport.hpp"

namespace {

using namespace Tessera;
using namespace Tessera::Bench;

Record record(const char* role, const char* algorithm, const char* matrix, double seconds) {
  Record r;
  r.role = role;
  r.algorithm = algorithm;
  r.matrix = matrix;
  r.precision = "fp64";
  r.seconds_median = seconds;
  r.verified = true;
  return r;
}

const Comparison* find(const std::vector<Comparison>& all, const std::string& label, const std::string& against) {
  for (const Comparison& c : all) {
    if (c.label == label && c.against == against) return &c;
  }
  return nullptr;
}

TEST(BenchReport, ComparesGeometricMeansAndWins) {
  const auto all = compare({record("baseline", "cusparse-alg1", "a", 4), record("baseline", "cusparse-alg2", "a", 9),
                            record("baseline", "kokkos-kernels", "a", 2), record("tessera", "dasp", "a", 1),
                            record("baseline", "cusparse-alg1", "b", 9), record("baseline", "cusparse-alg2", "b", 1),
                            record("baseline", "kokkos-kernels", "b", 8), record("tessera", "dasp", "b", 4)});
  const Comparison* cusparse = find(all, "dasp", "cusparse");
  ASSERT_NE(cusparse, nullptr);
  EXPECT_DOUBLE_EQ(cusparse->geometric_mean, 1);  // 4 and 1/4
  EXPECT_EQ(cusparse->wins, 1);
  EXPECT_EQ(cusparse->matrices, 2);
  const Comparison* kernels = find(all, "dasp", "kokkos-kernels");
  ASSERT_NE(kernels, nullptr);
  EXPECT_DOUBLE_EQ(kernels->geometric_mean, 2);
  EXPECT_EQ(kernels->wins, 2);
  const Comparison* best = find(all, "dasp", "best baseline");
  ASSERT_NE(best, nullptr);
  EXPECT_DOUBLE_EQ(best->geometric_mean, std::sqrt(0.5));  // 2 and 1/4
}

TEST(BenchReport, LeavesOutEmulatedAndWrongResults) {
  Record emulated = record("tessera", "dasp", "a", 1), wrong = record("tessera", "csr", "a", 1);
  emulated.emulated = true;
  wrong.verified = false;
  EXPECT_TRUE(compare({record("baseline", "kokkos-kernels", "a", 2), emulated, wrong}).empty());
}

TEST(BenchReport, NeverMixesPrecisions) {
  Record half = record("tessera", "dasp", "a", 1);
  half.precision = "fp16";
  EXPECT_TRUE(compare({record("baseline", "kokkos-kernels", "a", 2), half}).empty());
}

TEST(BenchReport, FormatsSeconds) {
  EXPECT_EQ(format_seconds(1.2345e-6), "1.234 us");
  EXPECT_EQ(format_seconds(0.01234), "12.34 ms");
  EXPECT_EQ(format_seconds(Record::unknown), "-");
}

TEST(BenchMatrix, SeededVectorsAreExactInEveryPrecision) {
  const auto x = load_vector("", 5000, 1, VectorRole::X), y = load_vector("", 5000, 1, VectorRole::Y);
  EXPECT_NE(x, y);
  EXPECT_EQ(x, load_vector("", 5000, 1, VectorRole::X));
  EXPECT_NE(x, load_vector("", 5000, 2, VectorRole::X));
  std::set<int> octaves;
  int negative = 0;
  for (const double v : x) {
    EXPECT_EQ(static_cast<double>(half_t(v)), v);
    EXPECT_EQ(static_cast<double>(bhalf_t(v)), v);
    octaves.insert(std::ilogb(v));
    negative += v < 0;
  }
  EXPECT_EQ(octaves, (std::set<int>{-3, -2, -1, 0, 1, 2}));
  EXPECT_NEAR(negative, 2500, 250);
}

TEST(BenchMatrix, ScalesOnlyWhatDoesNotFit) {
  EXPECT_EQ(fitting_scale({1, -65504}, Precision::FP16), 1);
  EXPECT_EQ(fitting_scale({}, Precision::FP16), 1);
  EXPECT_EQ(fitting_scale({1, 1e10}, Precision::FP64), 1);
  EXPECT_EQ(fitting_scale({0, 1e10}, Precision::BF16), 1);
  const double down = fitting_scale({1, -1e10}, Precision::FP16), up = fitting_scale({1e-9, 0}, Precision::FP16);
  EXPECT_LE(1e10 * down, 65504);
  EXPECT_GT(1e10 * down, 1024);
  EXPECT_EQ(std::exp2(std::ilogb(down)), down);
  EXPECT_GE(1e-9 * up, 1);
  EXPECT_EQ(fitting_scale({1, std::numeric_limits<double>::infinity()}, Precision::FP16), 1);
}

TEST(BenchMatrix, SuffixesStandBeforeTheEnding) {
  EXPECT_EQ(with_suffix("y.mtx", ""), "y.mtx");
  EXPECT_EQ(with_suffix("y.mtx", "dasp"), "y_dasp.mtx");
  EXPECT_EQ(with_suffix("out.d/y.mtx.gz", "gen:a=1"), "out.d/y_gen_a_1.mtx.gz");
  EXPECT_EQ(with_suffix("out.d/y", "csr"), "out.d/y_csr");
  EXPECT_EQ(matrix_name("some/where/a.b.mtx.gz"), "a.b");
}

TEST(BenchMatrix, ReportsBadSpecsAndFilesApart) {
  const auto status = [](const std::string& spec) {
    try {
      load_matrix(spec, 1);
    } catch (const BenchError& e) {
      return e.status();
    }
    return ExitVerified;
  };
  EXPECT_EQ(status("gen:no_such_generator"), ExitUsage);
  EXPECT_EQ(status("no/such/file.mtx"), ExitInput);
  EXPECT_EQ(status("gen:stencil2d:nx=3:ny=3"), ExitVerified);
}

}  // namespace
