// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What the benchmark says about all its matrices together.

#include <gtest/gtest.h>

#include <cmath>

#include "driver/Tessera_BenchSummary.hpp"

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

Record chosen(const char* algorithm, const char* matrix, double seconds) {
  Record r = record("tessera", algorithm, matrix, seconds);
  r.asked = "auto";
  return r;
}

const Comparison* find(const std::vector<Comparison>& all, const std::string& label, const std::string& against) {
  for (const Comparison& c : all) {
    if (c.label == label && c.against == against) return &c;
  }
  return nullptr;
}

TEST(BenchSummary, ComparesGeometricMeansAndWins) {
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

TEST(BenchSummary, AnotherVersionOfCusparseIsASystemOfItsOwn) {
  const auto all =
      compare({record("baseline", "cusparse-alg1", "a", 4), record("baseline", "cusparse-alg1@12.9", "a", 3),
               record("baseline", "cusparse-alg2@12.9", "a", 2), record("tessera", "dasp", "a", 1)});
  const Comparison *linked = find(all, "dasp", "cusparse"), *loaded = find(all, "dasp", "cusparse@12.9");
  ASSERT_NE(linked, nullptr);
  ASSERT_NE(loaded, nullptr);
  EXPECT_DOUBLE_EQ(linked->geometric_mean, 4);
  EXPECT_DOUBLE_EQ(loaded->geometric_mean, 2);
}

TEST(BenchSummary, CusparseIsItsCsrAlgorithmsAndNotItsOtherFormat) {
  const auto all = compare({record("baseline", "cusparse-alg1", "a", 4), record("baseline", "cusparse-sell", "a", 2),
                            record("tessera", "dasp", "a", 1), record("baseline", "cusparse-alg1", "b", 4),
                            record("tessera", "dasp", "b", 1)});
  const Comparison *csr = find(all, "dasp", "cusparse"), *sell = find(all, "dasp", "cusparse-sell");
  ASSERT_NE(csr, nullptr);
  ASSERT_NE(sell, nullptr);
  EXPECT_DOUBLE_EQ(csr->geometric_mean, 4);
  EXPECT_DOUBLE_EQ(sell->geometric_mean, 2);
  EXPECT_EQ(sell->matrices, 1);  // the format does not fit the other
}

TEST(BenchSummary, LeavesOutEmulatedAndWrongResults) {
  Record emulated = record("tessera", "dasp", "a", 1), wrong = record("tessera", "csr", "a", 1);
  emulated.emulated = true;
  wrong.verified = false;
  EXPECT_TRUE(compare({record("baseline", "kokkos-kernels", "a", 2), emulated, wrong}).empty());
}

TEST(BenchSummary, TheSameKernelIsATie) {
  Record other = chosen("packed", "b", 1), csr = record("tessera", "csr", "b", 2);
  other.kernel = "slices";
  const auto all = compare({record("tessera", "csr", "a", 2), chosen("csr", "a", 1), csr, other});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].matrices, 2);
  EXPECT_EQ(all[0].ties, 1);
  EXPECT_EQ(all[0].wins, 1);
}

TEST(BenchSummary, NeverMixesPrecisions) {
  Record half = record("tessera", "dasp", "a", 1);
  half.precision = "fp16";
  EXPECT_TRUE(compare({record("baseline", "kokkos-kernels", "a", 2), half}).empty());
}

TEST(BenchSummary, AutoIsOneSystemWhateverItTakes) {
  const auto all = compare({record("baseline", "kokkos-kernels", "a", 4), chosen("packed", "a", 1),
                            record("baseline", "kokkos-kernels", "b", 2), chosen("csr5", "b", 4)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].label, "auto");
  EXPECT_EQ(all[0].matrices, 2);
  EXPECT_DOUBLE_EQ(all[0].geometric_mean, std::sqrt(2.0));  // 4 and 1/2
  EXPECT_DOUBLE_EQ(all[0].minimum, 0.5);
  EXPECT_EQ(all[0].minimum_matrix, "b");
}

TEST(BenchSummary, RegretIsAgainstTheFastestOtherAlgorithm) {
  Record wrong = record("tessera", "dasp", "b", 1);
  wrong.verified = false;
  const std::vector<Regret> all =
      regrets({record("baseline", "kokkos-kernels", "a", 1), chosen("packed", "a", 8), record("tessera", "csr", "a", 9),
               record("tessera", "csr5", "a", 2), chosen("packed", "b", 3), record("tessera", "packed", "b", 3), wrong,
               record("tessera", "csr", "c", 1), chosen("csr", "d", 1)});
  ASSERT_EQ(all.size(), 2u);  // c has no auto, d nothing beside it
  EXPECT_EQ(all[0].matrix, "a");
  EXPECT_EQ(all[0].chosen, "packed");
  EXPECT_EQ(all[0].fastest, "csr5");
  EXPECT_DOUBLE_EQ(all[0].ratio(), 4);
  EXPECT_DOUBLE_EQ(all[1].ratio(), 1);
  const std::vector<RegretSummary> summary = summarize_regrets(all);
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_EQ(summary[0].precision, "fp64");
  EXPECT_DOUBLE_EQ(summary[0].geometric_mean, 2);
  EXPECT_DOUBLE_EQ(summary[0].worst, 4);
  EXPECT_EQ(summary[0].worst_matrix, "a");
  EXPECT_EQ(summary[0].matrices, 2);
}

TEST(BenchSummary, AutoMeetsTheBestBaselineOfEachMatrix) {
  Record a = chosen("packed", "a", 1), b = chosen("csr", "b", 2), c = chosen("packed", "c", 1);
  a.setup_seconds = 10;
  b.setup_seconds = 80;
  c.setup_seconds = 20;
  a.bytes = c.bytes = 4e9;
  b.bytes = 8e9;
  Record half = c;
  half.precision = "fp16";
  const std::vector<AutoSummary> all = summarize_auto(
      {record("baseline", "cusparse-alg1", "a", 8), record("baseline", "kokkos-kernels", "a", 9), a,
       record("baseline", "cusparse-alg1", "b", 3), record("baseline", "kokkos-kernels", "b", 1), b, c, half});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].precision, "fp64");
  EXPECT_EQ(all[0].matrices, 3);
  EXPECT_EQ(all[0].compared, 2);
  EXPECT_DOUBLE_EQ(all[0].speedup_geometric_mean, 2);  // 8 and 1/2
  EXPECT_DOUBLE_EQ(all[0].speedup_minimum, 0.5);
  EXPECT_EQ(all[0].minimum_matrix, "b");
  EXPECT_EQ(all[0].minimum_baseline, "kokkos-kernels");
  EXPECT_DOUBLE_EQ(all[0].gbytes_per_second, 4);
  EXPECT_DOUBLE_EQ(all[0].setup_applies, 20);  // 10, 40, 20
  EXPECT_DOUBLE_EQ(all[0].setup_applies_largest, 40);
  EXPECT_EQ(all[0].setup_matrix, "b");
  EXPECT_EQ(all[1].compared, 0);
  EXPECT_TRUE(std::isnan(all[1].speedup_minimum));
}

Record spmm(Record r, std::int64_t n, const char* pattern) {
  r.op = "spmm";
  r.n = n;
  r.pattern = pattern;
  return r;
}

TEST(BenchSummary, NeverMixesNumbersOfColumns) {
  const std::vector<Record> records = {spmm(record("baseline", "cusparse-alg2", "a", 8), 32, "mesh"),
                                       spmm(record("baseline", "cusparse-alg-default", "a", 4), 32, "mesh"),
                                       spmm(chosen("panels", "a", 2), 32, "mesh"),
                                       spmm(record("tessera", "gespmm", "a", 1), 32, "mesh"),
                                       spmm(record("baseline", "cusparse-alg2", "a", 2), 64, "mesh"),
                                       spmm(chosen("flash", "a", 4), 64, "mesh"),
                                       spmm(record("baseline", "cusparse-alg3", "b", 9), 32, "graph"),
                                       spmm(chosen("flash", "b", 3), 32, "graph")};
  const auto all = compare(records);
  ASSERT_EQ(all.size(), 3u);  // auto and gespmm for 32, auto for 64
  EXPECT_EQ(all[0].against, "cusparse");
  EXPECT_EQ(all[0].n, 32);
  EXPECT_DOUBLE_EQ(all[0].geometric_mean, std::sqrt(6.0));  // 4 over 2, 9 over 3
  EXPECT_EQ(all[0].wins, 2);
  EXPECT_EQ(all[2].n, 64);
  EXPECT_DOUBLE_EQ(all[2].geometric_mean, 0.5);
  const std::vector<Regret> each = regrets(records);
  ASSERT_EQ(each.size(), 1u);
  EXPECT_EQ(each[0].n, 32);
  EXPECT_DOUBLE_EQ(each[0].ratio(), 2);
  EXPECT_EQ(summarize_regrets(each)[0].n, 32);
}

TEST(BenchSummary, AutoIsSummedUpForEachNumberOfColumnsAndClass) {
  const std::vector<Record> records = {
      spmm(record("baseline", "cusparse-alg1", "a", 8), 32, "mesh"),  spmm(chosen("panels", "a", 2), 32, "mesh"),
      spmm(record("baseline", "cusparse-alg1", "b", 1), 32, "graph"), spmm(chosen("flash", "b", 1), 32, "graph"),
      spmm(record("baseline", "cusparse-alg1", "a", 3), 64, "mesh"),  spmm(chosen("panels", "a", 1), 64, "mesh")};
  const std::vector<AutoSummary> all = summarize_auto(records);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].n, 32);
  EXPECT_EQ(all[0].matrices, 2);
  EXPECT_EQ(all[0].wins, 1);
  EXPECT_DOUBLE_EQ(all[0].speedup_geometric_mean, 2);  // 4 and 1
  EXPECT_DOUBLE_EQ(all[0].speedup_minimum, 1);
  EXPECT_EQ(all[1].n, 64);
  EXPECT_EQ(patterns_of(records), (std::vector<std::string>{"mesh", "graph"}));
  const std::vector<AutoSummary> meshes = summarize_auto(records, "mesh"), graphs = summarize_auto(records, "graph");
  ASSERT_EQ(meshes.size(), 2u);
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(meshes[0].pattern, "mesh");
  EXPECT_DOUBLE_EQ(meshes[0].speedup_geometric_mean, 4);
  EXPECT_DOUBLE_EQ(graphs[0].speedup_geometric_mean, 1);
  EXPECT_EQ(graphs[0].wins, 0);
}

}  // namespace
