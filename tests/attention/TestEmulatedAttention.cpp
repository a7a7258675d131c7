// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The fused attention kernel of the backends, lane by lane, on emulated waves and matrix units of both vendors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "attention/AttentionSuite.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class T>
class EmulatedAttention : public ::testing::Test {
 protected:
  using Suite = AttentionSuite<Exec, T>;
  static constexpr AttentionValues all_values[] = {AttentionValues::None, AttentionValues::Bias,
                                                   AttentionValues::Scale};
  /// f(suite) for both vendors and heights of windows.
  template <class F>
  static void each(AttentionValues values, const F& f) {
    for (const Backend backend : {Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
      for (const int height : {1, 2}) {
        SCOPED_TRACE(std::string(to_string(backend)) + ", windows of " + std::to_string(height) + ", values " +
                     std::to_string(static_cast<int>(values)));
        Suite suite(AttentionAlgorithm::Fused, values);
        suite.on_units(backend, height);
        f(suite);
      }
    }
  }
  template <class F>
  static void each(const F& f) {
    for (const auto values : all_values) each(values, f);
  }
  static Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
  static Statistics statistics(const Suite& suite, const Pattern& pattern) {
    const auto p = suite.problem(pattern, 1, 8, 8);
    const DeviceMatrix<Exec, T, int> A(Suite::template matrix<int>(p));
    return typename Suite::Plan(Exec(), A.view(), suite.options).statistics();
  }
};
using EmulatedAttentionElements = ::testing::Types<half_t, bhalf_t>;
TYPED_TEST_SUITE(EmulatedAttention, EmulatedAttentionElements);

TYPED_TEST(EmulatedAttention, RunsOnTheUnit) {
  this->each([&](auto suite) {
    for (const auto algorithm : {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused}) {
      suite.options.algorithm = algorithm;
      const Statistics s = TestFixture::statistics(suite, TestFixture::mixed());
      EXPECT_EQ(s.algorithm, "fused");
      EXPECT_EQ(s.backend, to_string(suite.options.backend));
      EXPECT_EQ(s.matrix_unit_share, 1);
      EXPECT_EQ(s.launches, 1);
      EXPECT_FALSE(s.fallback_taken);
    }
  });
}
TYPED_TEST(EmulatedAttention, EveryShape) {
  for (const char* const shape : {"empty", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "dense:rows=1:cols=1",
                                  "dense:rows=301:cols=2", "dense_column", "ramp:n=61", "duplicates:rows=61:longest=50",
                                  "random:rows=61:cols=97:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(shape);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(generate(shape), 1, 16, 8)); });
  }
}
// Widths that the unit takes, whole classes of them and others, and some that go to the portable kernel.
TYPED_TEST(EmulatedAttention, EveryWidth) {
  const Pattern p = pattern_of_lengths({3, 0, 40, 1, 33, 2, 64, 5, 17}, 69);
  for (const auto& [d, e] : {std::pair<int, int>(8, 8),
                             {16, 16},
                             {24, 40},
                             {32, 32},
                             {40, 24},
                             {64, 64},
                             {72, 8},
                             {128, 128},
                             {8, 120},
                             {136, 136},
                             {256, 256},
                             {200, 256},
                             {264, 8},
                             {9, 16},
                             {16, 9},
                             {0, 8},
                             {8, 0}}) {
    SCOPED_TRACE(std::to_string(d) + ", " + std::to_string(e));
    this->each(AttentionValues::Bias, [&](const auto& suite) { suite.expect_right(suite.problem(p, 1, d, e)); });
  }
}
TYPED_TEST(EmulatedAttention, HeadsInEveryLayout) {
  for (int way = -1; way < 5; ++way) {
    SCOPED_TRACE(way);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 3, 16, 8), way); });
  }
}
TYPED_TEST(EmulatedAttention, ColumnsThatDescendAndRepeat) {
  this->each([&](const auto& suite) {
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 2, 16, 16));
  });
}
// Windows of more blocks than a part has, among short ones, with several heads.
TYPED_TEST(EmulatedAttention, SplitWindows) {
  const Pattern hubs = pattern_of_lengths({3, 900, 0, 1, 7, 0, 0, 2, 1, 1, 600, 0, 0, 0, 0, 0, 0, 4, 2}, 907);
  for (const Pattern& p : {generate("dense:rows=3:cols=701"), hubs}) {
    this->each([&](const auto& suite) {
      EXPECT_EQ(TestFixture::statistics(suite, p).launches, 2) << "the test's own pattern";
      suite.expect_right(suite.problem(p, 2, 16, 32));
      suite.expect_right(suite.problem(p, 1, 32, 136, Scores::Huge));
    });
  }
}
TYPED_TEST(EmulatedAttention, HugeScores) {
  this->each(
      [&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 1, 16, 24, Scores::Huge)); });
}
// Scores that grow along every row, by more than the range of weights from block to block, or by less.
TYPED_TEST(EmulatedAttention, GrowingScores) {
  for (const double step : {0.05, 0.7, 30.0}) {
    this->each(AttentionValues::Bias, [&](const auto& suite) {
      auto p = suite.problem(TestFixture::mixed(), 1, 8, 8);
      for (std::int64_t i = 0; i < p.pattern.rows; ++i) {
        for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) {
          p.values[static_cast<std::size_t>(e)] = as<TypeParam>(step * static_cast<double>(e - p.pattern.row_map[i]));
        }
      }
      suite.expect_right(p);
    });
  }
}
// All scores exactly zero: zero is a score. Negative scales turn the order of scores.
TYPED_TEST(EmulatedAttention, ZeroAndNegativeScales) {
  for (const double scale : {0.0, -0.3}) {
    this->each([&](const auto& suite) {
      auto p = suite.problem(TestFixture::mixed(), 2, 8, 8);
      p.scale = scale;
      suite.expect_right(p);
    });
  }
}
TYPED_TEST(EmulatedAttention, MaskedEntriesAndRows) {
  this->each(AttentionValues::Bias, [&](const auto& suite) {
    auto p = suite.problem(TestFixture::mixed(), 2, 8, 16);
    const TypeParam minus = as<TypeParam>(-std::numeric_limits<double>::infinity());
    for (std::size_t e = 0; e < p.values.size(); e += 3) p.values[e] = minus;
    for (std::int64_t i = 0; i < p.pattern.rows; i += 5) {
      for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) {
        p.values[static_cast<std::size_t>(e)] = minus;
      }
    }
    suite.expect_right(p);
  });
}

// Numbers that are infinite or undefined, in any operand: results are not finite where those of the portable kernel are
// not, of the same kind, and rows that do not use them keep their bits. In windows of one part and of several.
TYPED_TEST(EmulatedAttention, BadNumbersStayInTheirRows) {
  using T = TypeParam;
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Pattern hubs = pattern_of_lengths({3, 900, 0, 1, 7, 0, 0, 2, 1, 1, 600, 0, 0, 0, 0, 0, 0, 4, 2}, 907);
  for (const Pattern& pattern : {TestFixture::mixed(), hubs}) {
    this->each(AttentionValues::Bias, [&](const auto& suite) {
      auto portable = suite;
      portable.options.backend = Backend::Kokkos;
      auto p = suite.problem(pattern, 1, 16, 16);
      // The column is masked in one of the rows that have it.
      const int column = pattern.entries[static_cast<std::size_t>(pattern.row_map[3])];
      p.values[static_cast<std::size_t>(pattern.row_map[3])] = as<T>(-inf);
      const auto good = suite.run(p);
      for (const char what : {'q', 'k', 'v', 'a'}) {
        for (const double number : {nan, inf, -inf}) {
          SCOPED_TRACE(std::string(1, what) + " " + std::to_string(number));
          auto bad = p;
          if (what == 'q') bad.q[static_cast<std::size_t>(pattern.rows - 1) * 16 + 3] = as<T>(number);
          if (what == 'k') bad.k[static_cast<std::size_t>(column) * 16 + 3] = as<T>(number);
          if (what == 'v') bad.v[static_cast<std::size_t>(column) * 16 + 3] = as<T>(number);
          if (what == 'a') bad.values.back() = as<T>(number);
          const auto got = suite.run(bad), wanted = portable.run(bad);
          std::int64_t kept = 0;
          for (std::int64_t i = 0; i < pattern.rows; ++i) {
            bool uses = false;
            for (std::int64_t e = pattern.row_map[i]; e < pattern.row_map[i + 1]; ++e) {
              uses = uses || pattern.entries[static_cast<std::size_t>(e)] == column;
            }
            const bool here = what == 'q' || what == 'a' ? i == pattern.rows - 1 : uses && i != 3;
            kept += !here;
            for (std::size_t at = static_cast<std::size_t>(i) * 16; at < static_cast<std::size_t>(i + 1) * 16; ++at) {
              const double own = wide(got.o[at]), other = wide(wanted.o[at]);
              EXPECT_EQ(std::isfinite(own), std::isfinite(other)) << i << ": " << own << ", " << other;
              EXPECT_EQ(std::isnan(own), std::isnan(other)) << i << ": " << own << ", " << other;
              EXPECT_TRUE(here || got.o[at].bits == good.o[at].bits) << i;
            }
          }
          EXPECT_TRUE(kept > 0 && kept < pattern.rows) << "the test's own pattern";
        }
      }
    });
  }
}
// A row whose columns nobody else uses, and padding of blocks: not even a NaN in row 0 of V shows.
TYPED_TEST(EmulatedAttention, UnusedRowsOfVAreNotSeen) {
  const Pattern p = pattern_of_rows(20, 30, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 5; ++k) to.push_back(static_cast<int>(1 + (i + 3 * k) % 29));
  });
  this->each(AttentionValues::None, [&](const auto& suite) {
    auto problem = suite.problem(p, 1, 16, 16);
    const auto good = suite.run(problem);
    for (std::size_t k = 0; k < 16; ++k) problem.v[k] = problem.k[k] = as<TypeParam>(std::nan(""));
    EXPECT_TRUE(same_bits(good.o, suite.run(problem).o));
  });
}

TYPED_TEST(EmulatedAttention, SameBitsAgainAndNewValues) {
  this->each(AttentionValues::Scale, [&](const auto& suite) {
    using Suite = typename TestFixture::Suite;
    const auto p = suite.problem(TestFixture::mixed(), 2, 40, 24);
    auto other = p;
    other.values = numbers<TypeParam>(static_cast<std::int64_t>(p.values.size()), Data::Real, 99);
    const DeviceMatrix<Exec, TypeParam, int> A(Suite::template matrix<int>(p)), B(Suite::template matrix<int>(other));
    typename Suite::Plan plan(Exec(), A.view(), suite.options);
    const auto first = suite.run(plan, p, 3);
    suite.run(plan, suite.problem(TestFixture::mixed(), 3, 16, 8));  // scratch is used for something else
    const auto again = suite.run(plan, p, 3);
    EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse));
    plan.update_values(Exec(), B.view().values());
    suite.check(other, suite.run(plan, other));
  });
}
TYPED_TEST(EmulatedAttention, Workspace) {
  this->each(AttentionValues::None, [&](auto suite) {
    using Suite = typename TestFixture::Suite;
    const auto p = suite.problem(generate("dense:rows=3:cols=701"), 1, 24, 24);
    const DeviceMatrix<Exec, TypeParam, int> A(Suite::template matrix<int>(p));
    const std::size_t need = typename Suite::Plan(Exec(), A.view(), suite.options).workspace_bytes(24);
    const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
    Kokkos::deep_copy(memory, ~std::uint64_t{0});
    suite.options.workspace = {memory.data(), need};
    suite.expect_right(p, 4);  // by columns
    for (std::size_t i = (need + 7) / 8; i < memory.extent(0); ++i) EXPECT_EQ(memory(i), ~std::uint64_t{0}) << i;
    suite.options.workspace = {memory.data(), 64};
    EXPECT_THROW(suite.run(p, 4), WorkspaceTooSmall);
  });
}

// What is not of 16 bits has no such kernel.
TEST(EmulatedAttentionTypes, OthersFallBack) {
  AttentionSuite<Exec, float> suite(AttentionAlgorithm::Fused);
  suite.options.backend = Backend::EmulatedNvidia;
  const auto p = suite.problem(generate("stencil2d:nx=5:ny=5:points=5"), 1, 8, 8);
  EXPECT_THROW(suite.run(p), NotSupported);
  suite.options.fallback = true;
  suite.expect_right(p);
}

}  // namespace Testing
}  // namespace Tessera
