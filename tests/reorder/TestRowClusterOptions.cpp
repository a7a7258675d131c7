// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Clusters of rows by blocks of columns, and with a least similarity, against the similarity itself, counted with sets.
// (TestRowClusters has the signatures.)

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "reorder/ReorderFixture.hpp"
#include "reorder/Tessera_RowClusters.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using reorder::ClusteredRowsOptions;

std::vector<int> with_options(const Pattern& p, const ClusteredRowsOptions& options = {}) {
  const DeviceMatrix<Exec, UsualScalar> device(make_matrix<UsualScalar>(p, Data::Integers, 1));
  return to_host(reorder::clustered_rows(Exec(), device.view(), options));
}
std::set<int> blocks_of(const Pattern& p, int row, int width) {
  std::set<int> blocks;
  for (auto e = p.row_map[row]; e < p.row_map[row + 1]; ++e) blocks.insert(p.entries[e] / width);
  return blocks;
}
/// Of sets: |both| / |either|.
double similarity(const std::set<int>& a, const std::set<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  const std::size_t either = a.size() + b.size() - both.size();
  return either > 0 ? static_cast<double>(both.size()) / static_cast<double>(either) : 0;
}
/// Of the row at each place and the more similar of its neighbours.
std::vector<double> similarities(const Pattern& p, const std::vector<int>& order, int width) {
  std::vector<double> found(order.size(), 0);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const double s = similarity(blocks_of(p, order[i - 1], width), blocks_of(p, order[i], width));
    found[i - 1] = std::max(found[i - 1], s);
    found[i] = std::max(found[i], s);
  }
  return found;
}

/// Rows with a column in each of 12 blocks of `width`. Two rows have the same blocks, or none in common: every fifth
/// row has those of no other row, all others those of family i % 7. Where in a block depends on the row.
Pattern families_and_strangers(int rows, int width) {
  return pattern_of_rows(rows, (rows + 7) * 12 * width, [&](std::int64_t i, std::vector<int>& to) {
    const std::int64_t set = i % 5 == 3 ? 7 + i : i % 7;
    for (int k = 0; k < 12; ++k) {
      to.push_back(static_cast<int>((set + (rows + 7) * k) * width + (5 * i + 3 * k) % width));
    }
  });
}
/// Rows of family i % 23 have the same four blocks of 16 columns, every 23rd one, and in each a column of their own.
Pattern families_of_blocks(int rows) {
  return pattern_of_rows(rows, 4 * 23 * 16, [](std::int64_t i, std::vector<int>& to) {
    for (int k = 0; k < 4; ++k) {
      to.push_back(static_cast<int>((i % 23 + 23 * k) * 16 + (i * 7 + 5 * k + i / 23 * 3) % 16));
    }
  });
}

// What blocks are for: rows that share blocks of columns and few columns. One by one, columns divide each family.
TEST(RowClusterOptions, BlocksBringFamiliesTogether) {
  const Pattern p = families_of_blocks(23 * 20);
  const auto pieces = [&](int width) {
    const std::vector<int> order = with_options(p, {width, 0});
    int found = 1;
    for (std::size_t i = 1; i < order.size(); ++i) found += order[i] % 23 != order[i - 1] % 23;
    return found;
  };
  EXPECT_EQ(pieces(16), 23);
  EXPECT_GE(pieces(1), 2 * 23);
}

// Where rows are equal or have nothing in common, signatures are exact.
TEST(RowClusterOptions, LoneRowsStandBehind) {
  for (const int width : {1, 32}) {
    const Pattern p = families_and_strangers(211, width);
    const std::vector<int> order = with_options(p, {width, 0});
    const std::vector<double> alike = similarities(p, order, width);
    std::vector<int> expected;
    for (const bool stays : {true, false}) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        ASSERT_TRUE(alike[i] == 0 || alike[i] == 1);
        if ((alike[i] == 1) == stays) expected.push_back(order[i]);
      }
    }
    ASSERT_NE(expected, order) << "the test's own pattern";
    for (const double least : {0.01, 0.5, 1.0}) EXPECT_EQ(with_options(p, {width, least}), expected) << least;
  }
}

/// How many rows stay; `order` must be divided into those that stay and the others, each part in the order of `from`.
std::size_t staying(const std::vector<int>& from, const std::vector<int>& order, std::vector<std::size_t>& place) {
  std::vector<std::size_t> at(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) at[static_cast<std::size_t>(from[i])] = i;
  place.clear();
  for (const int row : order) place.push_back(at[static_cast<std::size_t>(row)]);
  const auto split = std::is_sorted_until(place.begin(), place.end());
  EXPECT_TRUE(std::is_sorted(split, place.end()));
  return static_cast<std::size_t>(split - place.begin());
}

// Similarities between: signatures are equal with the probability of the similarity, each by itself. Fewer than 8 of 16
// are with a probability of 10^-5 from 0.9 on, and 8 or more with 6 10^-5 up to 0.1.
TEST(RowClusterOptions, LeastSimilarityDivides) {
  const Pattern p = pattern_of_rows(900, 40000, [](std::int64_t i, std::vector<int>& to) {
    // Families of three rows of 40 columns. The first two have all but up to four in common, the third one four of
    // them.
    const std::int64_t family = i / 3;
    const int different = static_cast<int>(family % 9) / 2;
    for (int k = 0; k < 40; ++k) {
      const bool own = i % 3 == 2 ? k % 10 != 0 : i % 3 == 1 && k < different;
      to.push_back(static_cast<int>(family * 120 + 3 * k + (own ? i % 3 : 0)));
    }
  });
  const std::vector<int> order = with_options(p);
  const std::vector<double> alike = similarities(p, order, 1);
  std::vector<std::size_t> place;
  const std::vector<int> divided = with_options(p, {1, 0.5});
  const std::size_t stay = staying(order, divided, place);
  std::set<std::size_t> behind(place.begin() + static_cast<std::ptrdiff_t>(stay), place.end());
  int high = 0, low = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (alike[i] >= 0.9) {
      ++high;
      EXPECT_EQ(behind.count(i), 0u) << "place " << i << ", similarity " << alike[i];
    } else if (alike[i] <= 0.1) {
      ++low;
      EXPECT_EQ(behind.count(i), 1u) << "place " << i << ", similarity " << alike[i];
    }
  }
  EXPECT_GT(high, 200);
  EXPECT_GT(low, 100);
  // More is asked for: fewer stay.
  const std::size_t easy = staying(order, with_options(p, {1, 0.1}), place),
                    hard = staying(order, with_options(p, {1, 0.95}), place);
  EXPECT_LT(hard, stay);
  EXPECT_LE(stay, easy);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
