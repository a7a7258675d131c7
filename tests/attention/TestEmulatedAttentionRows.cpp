// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention by rows, forward and backward, lane by lane, on emulated waves of both vendors.

#include <gtest/gtest.h>

#include <limits>

#include "attention/UnitAttentionCases.hpp"
#include "backends/launch/Tessera_AttentionMergeLaunch.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class T>
class EmulatedAttentionRows : public UnitAttentionTest<Exec, T> {
 protected:
  /// f(suite) for both vendors.
  template <class F>
  static void each(AttentionValues values, const F& f) {
    for (const Backend backend : emulated_backends()) {
      SCOPED_TRACE(std::string(to_string(backend)) + ", values " + std::to_string(static_cast<int>(values)));
      f(UnitAttentionTest<Exec, T>::rows_of(values, backend));
    }
  }
  template <class F>
  static void each(const F& f) {
    for (const auto values : {AttentionValues::None, AttentionValues::Bias, AttentionValues::Scale}) each(values, f);
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using EmulatedAttentionRowsTypes = ::testing::Types<float>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using EmulatedAttentionRowsTypes = ::testing::Types<double>;
#else
using EmulatedAttentionRowsTypes = ::testing::Types<float, double>;
#endif
TYPED_TEST_SUITE(EmulatedAttentionRows, EmulatedAttentionRowsTypes);

TYPED_TEST(EmulatedAttentionRows, ShortAndLongRows) {
  this->each([&](const auto& suite) { TestFixture::by_rows(suite); });
}
TYPED_TEST(EmulatedAttentionRows, ManyPieces) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::many_pieces(suite); });
}
// Words are dealt to several waves where rows have many pieces and waves are few.
TEST(AttentionMergeTiles, Rule) {
  using Wave = HostWave<32>;
  const auto tiles = [](int words, std::int64_t rows, std::int64_t pieces) {
    const AttentionMergeTiles t = Launch::attention_merge_tiles<Wave>(words, rows, pieces);
    EXPECT_GE(t.tiles << t.shift, words);
    EXPECT_LT((t.tiles - 1) << t.shift, words);
    return t.tiles;
  };
  EXPECT_EQ(tiles(16, 8, 16), 1) << "two teams of eight each";
  EXPECT_EQ(tiles(16, 8, 17), 2);
  EXPECT_EQ(tiles(16, 8, 64), 4);
  EXPECT_EQ(tiles(16, 8, 5000), 8);
  EXPECT_EQ(tiles(10, 8, 5000), 5);
  EXPECT_EQ(tiles(1, 8, 5000), 1);
  EXPECT_EQ(tiles(128, 8, 2), 4) << "more words than lanes";
  EXPECT_EQ(tiles(16, 8192, 5000), 4);
  EXPECT_EQ(tiles(16, 100000, 5000), 1);
}
TYPED_TEST(EmulatedAttentionRows, EveryShape) {
  this->each([&](const auto& suite) { TestFixture::every_shape(suite); });
}
TYPED_TEST(EmulatedAttentionRows, EveryWidth) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::every_width(suite); });
}
TYPED_TEST(EmulatedAttentionRows, EveryDimension) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::every_dimension(suite); });
}
TYPED_TEST(EmulatedAttentionRows, CopiesAreKept) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::copies_are_kept(suite); });
}
TYPED_TEST(EmulatedAttentionRows, HeadsInEveryLayout) {
  for (int way = -1; way < 5; ++way) {
    SCOPED_TRACE(way);
    this->each(AttentionValues::Bias,
               [&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 3, 12, 8), way); });
  }
}
TYPED_TEST(EmulatedAttentionRows, ColumnsThatDescendAndRepeat) {
  this->each([&](const auto& suite) {
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 2, 16, 16));
    suite.expect_right(suite.problem(generate("duplicates:rows=61:longest=50"), 1, 16, 16));
  });
}
TYPED_TEST(EmulatedAttentionRows, GrowingScores) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::growing_scores(suite); });
}
// All scores exactly zero: zero is a score. Negative scales turn the order of scores.
TYPED_TEST(EmulatedAttentionRows, ZeroAndNegativeScales) {
  for (const double scale : {0.0, -0.3}) {
    this->each([&](const auto& suite) {
      auto p = suite.problem(TestFixture::mixed(), 2, 8, 8);
      p.scale = scale;
      suite.expect_right(p);
    });
  }
}
TYPED_TEST(EmulatedAttentionRows, MaskedEntriesAndRows) {
  this->each(AttentionValues::Bias, [&](const auto& suite) {
    auto p = suite.problem(TestFixture::mixed(), 2, 8, 16);
    for (std::size_t e = 0; e < p.values.size(); ++e) {
      if (e % 3 == 0) p.values[e] = -std::numeric_limits<TypeParam>::infinity();
    }
    for (std::int64_t i = 0; i < p.pattern.rows; i += 5) {
      for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e)
        p.values[static_cast<std::size_t>(e)] = -std::numeric_limits<TypeParam>::infinity();
    }
    suite.expect_right(p);
  });
}
TYPED_TEST(EmulatedAttentionRows, BadNumbersStayInTheirRows) {
  this->each(AttentionValues::Bias, [&](const auto& suite) {
    TestFixture::bad_numbers(suite, TestFixture::mixed());
    TestFixture::bad_numbers(suite, TestFixture::hubs());
  });
}
TYPED_TEST(EmulatedAttentionRows, UnusedRowsAreNotSeen) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::unused_rows(suite); });
}
TYPED_TEST(EmulatedAttentionRows, SameBitsAgainAndNewValues) {
  this->each(AttentionValues::Scale, [&](const auto& suite) { TestFixture::same_bits_and_new_values(suite); });
}
TYPED_TEST(EmulatedAttentionRows, Workspace) {
  this->each(AttentionValues::None, [&](const auto& suite) {
    for (const int width : {24, 21}) TestFixture::own_workspace(suite, width);
  });
}

#ifdef TESSERA_TEST_BESIDE_SANITIZED
// FP32 is tested with sanitizers, which have NVIDIA's waves alone.
using AttentionRowsOfFp32 = UnitAttentionTest<Exec, float>;
TEST_F(AttentionRowsOfFp32, OnAmd) {
  const auto suite = rows_of(AttentionValues::Bias, Backend::EmulatedAmd);
  by_rows(suite);
  every_width(suite);
}
#endif

// TF32 asked for is FP32 here; 16 bits and hosts have no such kernel.
TEST(EmulatedAttentionRowsTypes, OthersFallBack) {
  const Pattern pattern = generate("stencil2d:nx=5:ny=5:points=5");
  AttentionSuite<Exec, float> exact(AttentionAlgorithm::Rows);
  exact.options.backend = Backend::EmulatedNvidia;
  auto rounded = exact;
  rounded.options.compute = ComputeType::TF32;
  const auto p = exact.problem(pattern, 1, 32, 8);
  EXPECT_TRUE(same_bits(exact.run(p).o, rounded.run(p).o));
  exact.options.backend = Backend::Auto;
  EXPECT_THROW(exact.run(p), NotSupported);
  exact.options.fallback = true;
  exact.expect_right(p);
#ifndef TESSERA_TEST_FEWER_TYPES
  AttentionSuite<Exec, half_t> narrow(AttentionAlgorithm::Rows);
  narrow.options.backend = Backend::EmulatedNvidia;
  EXPECT_THROW(narrow.run(narrow.problem(pattern, 1, 8, 8)), NotSupported);
#endif
}

}  // namespace Testing
}  // namespace Tessera
