// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// AttentionPlan on hosts against plain loops in long double, forward and backward: shapes, widths, layouts, types,
// masks, huge scores.

#include <gtest/gtest.h>

#include <limits>

#include "attention/AttentionSuite.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class T>
class HostAttention : public AttentionTest<Exec, T> {};
#ifdef TESSERA_TEST_FEWER_TYPES
using Types = ::testing::Types<float, half_t>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using Types = ::testing::Types<double, bhalf_t>;  // FP32 and FP16, which is BF16's text, are there
#else
using Types = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(HostAttention, Types);

TYPED_TEST(HostAttention, EveryShape) {
  for (const char* const shape :
       {"empty", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "empty:rows=0:cols=0", "dense:rows=1:cols=1",
        "dense:rows=3:cols=701", "dense:rows=301:cols=2", "dense_column", "ramp:n=61", "duplicates:rows=61:longest=50",
        "random:rows=61:cols=97:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(shape);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(generate(shape), 1, 5, 9)); });
  }
}
TYPED_TEST(HostAttention, EveryWidth) {
  const Pattern p = pattern_of_lengths({3, 0, 40, 1, 33, 2, 64}, 29);
  for (const int d : {0, 1, 2, 3, 7, 8, 9, 16, 17, 23, 31, 33, 40, 64, 128, 257}) {
    SCOPED_TRACE(d);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(p, 1, d, d)); });
  }
}
// Q and V of different widths, and rows of more columns than a running sum has.
TYPED_TEST(HostAttention, OtherWidthOfV) {
  const Pattern p = pattern_of_lengths({3, 0, 40, 1}, 29);
  for (const auto& [d, e] :
       {std::pair<int, int>(16, 3), {3, 16}, {0, 5}, {5, 0}, {2, 1031}, {1031, 2}, {33, 7}, {7, 31}, {4, 513}}) {
    SCOPED_TRACE(std::to_string(d) + ", " + std::to_string(e));
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(p, 1, d, e)); });
  }
}
TYPED_TEST(HostAttention, HeadsInEveryLayout) {
  for (int way = -1; way < 5; ++way) {
    SCOPED_TRACE(way);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 3, 12, 8), way); });
  }
}
TYPED_TEST(HostAttention, ColumnsThatDescendAndRepeat) {
  this->each([&](const auto& suite) {
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 1, 16, 16));
  });
}
// Rows, and backward columns, of several pieces, one of which has no score; and such of more columns than a running
// sum.
TYPED_TEST(HostAttention, LongRowsAndColumns) {
  Pattern p;
  p.rows = 2100;
  p.cols = 4500;
  p.row_map = {0};
  for (int row = 0; row < p.rows; ++row) {
    for (int column = 0; column < (row == 5 ? p.cols : row == 9 ? 2049 : 1); ++column) p.entries.push_back(column);
    if (row != 5) p.entries.push_back(3000 + row % 7);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  this->each([&](const auto& suite) {
    auto problem = suite.problem(p, 2, 5, 9);
    suite.expect_right(problem);
    if (suite.options.values != AttentionValues::Bias) return;
    const auto mask = [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t e = first; e < end; ++e) {
        problem.values[static_cast<std::size_t>(e)] = as<TypeParam>(-std::numeric_limits<double>::infinity());
      }
    };
    mask(p.row_map[5] + 2048, p.row_map[5] + 4096);
    mask(p.row_map[9], p.row_map[10]);
    suite.expect_right(problem, 2);
  });
  for (const char* const spec : {"dense:rows=2:cols=2100", "dense:rows=2100:cols=2"}) {
    SCOPED_TRACE(spec);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(generate(spec), 1, 514, 513)); });
  }
}
// Scores around +-1e4: e^1e4 is beyond every type.
TYPED_TEST(HostAttention, HugeScores) {
  this->each(
      [&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 1, 16, 24, Scores::Huge)); });
}
// All scores exactly zero: zero is a score.
TYPED_TEST(HostAttention, ZeroScores) {
  this->each([&](const auto& suite) {
    auto p = suite.problem(TestFixture::mixed(), 2, 8, 8);
    p.scale = 0;
    suite.expect_right(p);
  });
}
// -inf as bias: some entries, and every entry of some rows.
TYPED_TEST(HostAttention, MaskedEntriesAndRows) { this->masked_entries_and_rows(); }

}  // namespace Testing
}  // namespace Tessera
