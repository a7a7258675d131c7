// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// How rows are put together for Bsmr: what its options change, and that results do not.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reorder/Tessera_GreedyRows.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using BsmrSuite = SddmmSuite<Exec, half_t>;

/// Families of 16 rows with six column blocks each, in every block four columns that differ from row to row; rows of
/// all families by turns. Rows of a family have few columns in common and all column blocks; 16 of them have four
/// entries per column.
Pattern families() {
  constexpr int count = 20;
  return pattern_of_rows(16 * count, 6 * count * 16, [](std::int64_t i, std::vector<int>& to) {
    const int family = static_cast<int>(i % count), member = static_cast<int>(i / count);
    for (int b = 0; b < 6; ++b) {
      const int first = member * (2 * b + 1) % 4;  // another of four columns in each block
      for (int k = 0; k < 4; ++k) to.push_back(16 * (count * b + family) + 4 * k + (first + k * (member / 4)) % 4);
    }
  });
}

class SddmmBsmrRows : public ::testing::TestWithParam<Backend> {
 protected:
  /// Of a plan with these options, whose products are right.
  Statistics of(const BsmrOptions& bsmr, const Pattern& pattern) const {
    BsmrSuite suite(GetParam(), SddmmAlgorithm::Bsmr);
    suite.options.bsmr = bsmr;
    const auto A = suite.matrix(pattern, Data::Integers);
    const BsmrSuite::Device device(A);
    const BsmrSuite::Plan plan(Exec(), device.view(), suite.options);
    suite.expect(plan, A, 20, Data::Integers);
    suite.expect<AcrossRows>(plan, A, 7, Data::Integers, {2.5, -1});
    return plan.statistics();
  }
  static BsmrOptions options(RowReordering order, int block = 0, double least = -1) {
    BsmrOptions o;
    o.reordering = order;
    o.dense_from = 4;
    o.column_block = block;
    o.least_similarity = least;
    return o;
  }
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

// Rows that have column blocks in common rather than columns meet if blocks are compared.
TEST_P(SddmmBsmrRows, ColumnBlocksBringTheseRowsTogether) {
  const Statistics none = of(options(RowReordering::None), families()),
                   columns = of(options(RowReordering::Clusters), families()),
                   blocks = of(options(RowReordering::Clusters, 16), families()),
                   greedy = of(options(RowReordering::Greedy), families()),
                   greedy_columns = of(options(RowReordering::Greedy, 1), families());
  EXPECT_LT(none.matrix_unit_share, 0.3);
  EXPECT_GT(blocks.matrix_unit_share, 0.9);
  EXPECT_GT(blocks.matrix_unit_share, columns.matrix_unit_share);
  EXPECT_EQ(greedy.matrix_unit_share, 1);  // blocks of 16 by default
  EXPECT_LT(greedy_columns.matrix_unit_share, 1);
  expect_part(columns.why, "; rows clustered, as asked for");
  expect_part(blocks.why, "; rows clustered, by blocks of 16 columns, as asked for");
  expect_part(greedy.why, "; rows in 20 greedy clusters, joined at a similarity of");
  expect_part(greedy_columns.why, ", by blocks of 1 columns, as asked for");
}

// The exact clusters are those of the library's function with the same parameters (TestGreedyRows has these).
TEST_P(SddmmBsmrRows, SimilarityReachesGreedyClusters) {
  const Pattern pattern = generate("rmat:scale=8:degree=6");
  const BsmrSuite::Device device(BsmrSuite(GetParam(), SddmmAlgorithm::Bsmr).matrix(pattern, Data::Integers));
  std::vector<std::int64_t> clusters;
  for (const double least : {0.0, 0.6, 1.0}) {
    for (const int block : {16, 40}) {
      const reorder::GreedyRows found = reorder::greedy_rows(device.view(), {block, least});
      expect_part(of(options(RowReordering::Greedy, block, least), pattern).why,
                  "rows in " + std::to_string(found.clusters) + " greedy clusters");
      if (block == 16) clusters.push_back(found.clusters);
    }
  }
  EXPECT_LT(clusters[0], clusters[1]);
  EXPECT_LT(clusters[1], clusters[2]);
  const reorder::GreedyRows usual = reorder::greedy_rows(device.view());
  expect_part(of(options(RowReordering::Greedy), pattern).why, "rows in " + std::to_string(usual.clusters) + " greedy");
}

// A row that is like none of its neighbours stands outside the clusters' windows.
TEST_P(SddmmBsmrRows, SimilarityKeepsLoneRowsOutOfClusters) {
  // Per family 32 equal rows of ten columns, one window or two; and 20 rows with one of these columns each.
  const Pattern pattern = pattern_of_rows(52 * 8, 3000, [](std::int64_t i, std::vector<int>& to) {
    const int family = static_cast<int>(i % 8), member = static_cast<int>(i / 8);
    if (member % 13 < 8) {
      for (int k = 0; k < 10; ++k) to.push_back(20 * family + 2 * k);
    } else {
      to.insert(to.end(),
                {20 * family + 2 * (member % 10), 200 + 6 * static_cast<int>(i), 203 + 6 * static_cast<int>(i)});
    }
  });
  const auto windows_with_dense = [&](double least) {
    const Statistics s = of(options(RowReordering::Clusters, 0, least), pattern);
    for (const ClassShare& c : s.classes) {
      if (c.name == "dense columns") return c.rows;
    }
    return decltype(ClassShare::rows){-1};
  };
  const auto mixed = windows_with_dense(0), apart = windows_with_dense(0.9);
  // Ten dense columns per window of equal rows: eight families, whole windows of each.
  const int height = GetParam() == Backend::EmulatedNvidia ? 16 : 32;
  EXPECT_EQ(apart, 8 * 10 * (32 / height));
  EXPECT_GT(mixed, apart);
  expect_part(of(options(RowReordering::Clusters, 4, 0.9), pattern).why,
              "; rows clustered, by blocks of 4 columns, from a similarity of 0.90 on, as asked for");
}

TEST_P(SddmmBsmrRows, RefuseWhatIsOutOfRange) {
  BsmrSuite suite(GetParam(), SddmmAlgorithm::Bsmr);
  const BsmrSuite::Device device(suite.matrix(generate("diagonal"), Data::Integers));
  for (const BsmrOptions& bad : {options(RowReordering::Greedy, -1), options(RowReordering::Clusters, 0, 1.5)}) {
    suite.options.bsmr = bad;
    EXPECT_THROW(BsmrSuite::Plan(Exec(), device.view(), suite.options), InvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Units, SddmmBsmrRows, ::testing::ValuesIn(emulated_backends()), [](const auto& info) {
  return std::string(info.param == Backend::EmulatedNvidia ? "nvidia" : "amd");
});

}  // namespace
}  // namespace Testing
}  // namespace Tessera
