// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The benchmark's operands and how it writes numbers and names.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchReport.hpp"
#include "driver/Tessera_BenchReportFiles.hpp"

namespace {

using namespace Tessera;
using namespace Tessera::Bench;

TEST(BenchReport, FormatsSeconds) {
  EXPECT_EQ(format_seconds(1.2345e-6), "1.234 us");
  EXPECT_EQ(format_seconds(0.01234), "12.34 ms");
  EXPECT_EQ(format_seconds(Record::unknown), "-");
}

// As /dev/stdout is, whose link would be replaced by a file.
TEST(BenchReport, WritesThroughLinks) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "tessera_bench_links";
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::create_symlink("target.csv", folder / "link.csv");
  for (int turn = 0; turn < 2; ++turn) {  // the target is made, then written again
    write_csv((folder / "link.csv").string(), {Record()});
    EXPECT_TRUE(fs::is_symlink(folder / "link.csv"));
    EXPECT_GT(fs::file_size(folder / "target.csv"), 0u);
  }
  EXPECT_THROW(write_csv(folder.string(), {}), std::runtime_error);
  fs::remove_all(folder);
}

TEST(BenchReport, NamesWhatAutoTook) {
  Record r;
  r.asked = r.algorithm = "dasp";
  r.variant = "adaptive=1";
  EXPECT_EQ(r.label(), "dasp[adaptive=1]");
  EXPECT_EQ(r.system(), "dasp[adaptive=1]");
  r.asked = "auto";
  r.algorithm = "packed";
  r.variant.clear();
  EXPECT_EQ(r.label(), "auto->packed");
  EXPECT_EQ(r.system(), "auto");
}

TEST(BenchReport, NamesAblationsOfSpmm) {
  Record r;
  r.columns = true;
  r.asked = r.algorithm = "flash";
  EXPECT_EQ(r.label(), "flash");
  r.variant = "16x1";
  EXPECT_EQ(r.label(), "flash-16x1");
  r.setup_seconds = 3;
  r.seconds_median = 2;
  EXPECT_DOUBLE_EQ(r.setup_applies(), 1.5);
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
