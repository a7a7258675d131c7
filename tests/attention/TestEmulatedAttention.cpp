// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The fused attention kernel of the backends, lane by lane, on emulated waves and matrix units of both vendors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/UnitAttentionCases.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class Case>
class EmulatedAttention : public UnitAttentionTest<Exec, typename UnitAttentionCase<Case>::Element> {
 protected:
  using T = typename UnitAttentionCase<Case>::Element;
  using Suite = AttentionSuite<Exec, T>;
  static constexpr AttentionValues all_values[] = {AttentionValues::None, AttentionValues::Bias,
                                                   AttentionValues::Scale};
  void SetUp() override {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    if (beside_sanitized && std::is_same_v<Case, half_t> && test != "EveryWidth") {  // of which AMD has fewer there
      GTEST_SKIP() << "with sanitizers, and BF16 in the same text";
    }
  }
  /// f(suite) for both vendors and heights of windows.
  template <class F>
  static void each(AttentionValues values, const F& f) {
    for (const Backend backend : emulated_backends()) {
      for (const int height : {1, 2}) {
        SCOPED_TRACE(std::string(to_string(backend)) + ", windows of " + std::to_string(height) + ", values " +
                     std::to_string(static_cast<int>(values)));
        f(UnitAttentionTest<Exec, T>::template suite_of<Case>(values, backend, height));
      }
    }
  }
  template <class F>
  static void each(const F& f) {
    for (const auto values : all_values) each(values, f);
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using EmulatedAttentionCases = ::testing::Types<half_t>;
#else
using EmulatedAttentionCases = ::testing::Types<half_t, bhalf_t, float, Tf32>;
#endif
TYPED_TEST_SUITE(EmulatedAttention, EmulatedAttentionCases);

TYPED_TEST(EmulatedAttention, RunsOnTheUnit) {
  this->each([&](const auto& suite) { TestFixture::runs_on_the_unit(suite); });
}
// Both candidates are made and timed; whichever is kept is right.
TYPED_TEST(EmulatedAttention, Measured) {
  this->each(AttentionValues::Bias, [&](auto suite) {
    suite.options.algorithm = AttentionAlgorithm::Auto;
    suite.options.selection = Selection::Measure;
    const Pattern p = generate("random:rows=40:cols=50:lengths=uniform:mean=6");
    const Statistics s = TestFixture::statistics(suite, p);
    EXPECT_NE(s.why.find("measured"), std::string::npos) << s.why;
    suite.expect_right(suite.problem(p, 1, suite.inner(16), 16));
  });
}
TYPED_TEST(EmulatedAttention, EveryShape) {
  this->each([&](const auto& suite) { TestFixture::every_shape(suite); });
}
TYPED_TEST(EmulatedAttention, EveryWidth) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::every_width(suite); });
}
TYPED_TEST(EmulatedAttention, EveryDimension) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::every_dimension(suite); });
}
TYPED_TEST(EmulatedAttention, CopiesAreKept) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::copies_are_kept(suite); });
}
TYPED_TEST(EmulatedAttention, HeadsInEveryLayout) {
  for (int way = -1; way < 5; ++way) {
    SCOPED_TRACE(way);
    const auto check = [&](const auto& suite) {
      suite.expect_right(suite.problem(TestFixture::mixed(), 3, suite.inner(16), 8), way);
    };
    if (shorter_lists) {
      this->each(TestFixture::all_values[(way + 1) % 3], check);
    } else {
      this->each(check);
    }
  }
}
TYPED_TEST(EmulatedAttention, ColumnsThatDescendAndRepeat) {
  this->each([&](const auto& suite) {
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 2, suite.inner(16), 16));
  });
}
TYPED_TEST(EmulatedAttention, SplitWindows) {
  this->each([&](const auto& suite) {
    EXPECT_EQ(TestFixture::statistics(suite, TestFixture::hubs()).launches, 2) << "the test's own pattern";
    TestFixture::split_windows(suite);
  });
}
TYPED_TEST(EmulatedAttention, ManyPieces) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::many_pieces(suite); });
}
TYPED_TEST(EmulatedAttention, HugeScores) {
  this->each([&](const auto& suite) {
    suite.expect_right(suite.problem(TestFixture::mixed(), 1, suite.inner(16), 24, Scores::Huge));
  });
}
TYPED_TEST(EmulatedAttention, GrowingScores) {
  this->each(AttentionValues::Bias, [&](const auto& suite) { TestFixture::growing_scores(suite); });
}
TYPED_TEST(EmulatedAttention, FarGradients) {
  if (sizeof(typename TestFixture::T) == 4) GTEST_SKIP() << "gradients of FP32 go by rows, in its range";
  // The gradient of a bias is that of the score, which FP16 does not hold here.
  for (const auto values : {AttentionValues::None, AttentionValues::Scale}) {
    this->each(values, [&](const auto& suite) { TestFixture::far_gradients(suite); });
  }
}
// All scores exactly zero: zero is a score. Negative scales turn the order of scores.
TYPED_TEST(EmulatedAttention, ZeroAndNegativeScales) {
  for (const double scale : {0.0, -0.3}) {
    this->each([&](const auto& suite) {
      auto p = suite.problem(TestFixture::mixed(), 2, suite.inner(8), 8);
      p.scale = scale;
      suite.expect_right(p);
    });
  }
}
TYPED_TEST(EmulatedAttention, MaskedEntriesAndRows) {
  this->each(AttentionValues::Bias, [&](const auto& suite) {
    using T = typename TestFixture::T;
    auto p = suite.problem(TestFixture::mixed(), 2, suite.inner(8), 16);
    const T minus = as<T>(-std::numeric_limits<double>::infinity());
    for (std::size_t e = 0; e < p.values.size(); e += 3) p.values[e] = minus;
    for (std::int64_t i = 0; i < p.pattern.rows; i += 5) {
      for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) {
        p.values[static_cast<std::size_t>(e)] = minus;
      }
    }
    suite.expect_right(p);
  });
}
// A score of -inf masks by whatever it became so: gradients of such an entry are 0, not 0 times what is infinite.
TYPED_TEST(EmulatedAttention, MaskedByFactorsAndProducts) {
  this->each(AttentionValues::Scale, [&](const auto& suite) {
    using T = typename TestFixture::T;
    auto p = suite.problem(TestFixture::mixed(), 2, suite.inner(8), 16);
    for (auto* const of : {&p.q, &p.k}) {
      // Products are then positive, and numbers that TF32 holds stay such.
      for (T& x : *of) x = as<T>(wide(x) == 0 ? 0.0625 : std::abs(wide(x)));
    }
    for (std::size_t e = 0; e < p.values.size(); e += 3) {
      p.values[e] = as<T>(-std::numeric_limits<double>::infinity());
    }
    suite.expect_right(p);
  });
}

// In windows of one part and of several.
TYPED_TEST(EmulatedAttention, BadNumbersStayInTheirRows) {
  this->each(AttentionValues::Bias, [&](const auto& suite) {
    TestFixture::bad_numbers(suite, TestFixture::mixed());
    TestFixture::bad_numbers(suite, TestFixture::hubs());
  });
}
TYPED_TEST(EmulatedAttention, UnusedRowsAreNotSeen) {
  this->each(AttentionValues::None, [&](const auto& suite) { TestFixture::unused_rows(suite); });
}
TYPED_TEST(EmulatedAttention, SameBitsAgainAndNewValues) {
  this->each(AttentionValues::Scale, [&](const auto& suite) { TestFixture::same_bits_and_new_values(suite); });
}
TYPED_TEST(EmulatedAttention, Workspace) {
  this->each(AttentionValues::None, [&](const auto& suite) {
    for (const int width : {suite.inner(24), suite.inner(21)}) TestFixture::own_workspace(suite, width);
  });
}
// Calls that go to the portable kernel have the scratch of the others.
TYPED_TEST(EmulatedAttention, OneScratch) {
  this->each(AttentionValues::None, [&](const auto& suite) {
    using Suite = typename TestFixture::Suite;
    using Dense = Kokkos::View<typename TestFixture::T***, Kokkos::LayoutLeft, DeviceOf<Exec>>;
    const auto p = suite.problem(generate("dense:rows=30:cols=40"), 1, 8, 8);
    const DeviceMatrix<Exec, typename TestFixture::T, int> A(Suite::template matrix<int>(p));
    const typename Suite::Plan plan(Exec(), A.view(), suite.options);
    const KokkosMemory memory([](const std::string& label) { return label == "Tessera::scratch"; });
    const auto apply = [&](std::size_t heads, std::size_t d) {
      const Dense q("q", heads, 30, d), k("k", heads, 40, d), o("o", heads, 30, d);
      plan.apply(Exec(), 1, q, k, k, o);
    };
    apply(5, 64);
    const std::size_t of_units = memory.peak();
    EXPECT_GT(of_units, 0u);
    apply(1, 264);
    EXPECT_EQ(memory.peak(), of_units);
  });
}

// Sanitized builds have no attention of FP32 on emulated units, nor of FP64 by rows.
#ifndef TESSERA_TEST_FEWER_TYPES
// Numbers that TF32 does not hold are rounded as they are multiplied (on AMD's units they are not).
TEST(EmulatedAttentionTypes, Tf32RoundsOperands) {
  for (const Backend backend : emulated_backends()) {
    using Fixture = AttentionSuite<Exec, float>;
    Fixture suite(AttentionAlgorithm::Fused, AttentionValues::Scale), exact = suite;
    suite.options.compute = ComputeType::TF32;
    suite.on_units(backend, 1);
    suite.rounding.operands = 0x1p-11;
    exact.on_units(backend, 1);
    const auto p = suite.problem(generate("random:rows=40:cols=50:lengths=uniform:mean=6"), 2, 40, 24);
    const auto got = suite.run(p);
    suite.check(p, got);
    EXPECT_EQ(same_bits(got.o, exact.run(p).o), backend == Backend::EmulatedAmd);
  }
}
// Products of few columns err by more in parts of TF32 than FP32 arithmetic does: the portable kernel makes them.
TEST(EmulatedAttentionTypes, FewColumnsInPartsArePortable) {
  AttentionSuite<Exec, float> suite(AttentionAlgorithm::Fused), portable = suite;
  suite.on_units(Backend::EmulatedNvidia, 1);
  portable.options.backend = Backend::Kokkos;
  const Pattern pattern = generate("stencil2d:nx=5:ny=5:points=5");
  EXPECT_TRUE(
      same_bits(suite.run(suite.problem(pattern, 1, 24, 8)).o, portable.run(suite.problem(pattern, 1, 24, 8)).o));
  EXPECT_FALSE(
      same_bits(suite.run(suite.problem(pattern, 1, 32, 8)).o, portable.run(suite.problem(pattern, 1, 32, 8)).o));
}
#endif
// All rows share all columns: windows are of 16 rows, but not for more than 128 columns.
TEST(EmulatedAttentionTypes, OneShotKnowsTheColumns) {
  const Environment forced("TESSERA_FORCE_BACKEND", "emulated-nvidia");
  using Dense = Kokkos::View<half_t**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  using Suite = AttentionSuite<Exec, half_t>;
  const auto p = Suite(AttentionAlgorithm::Fused).problem(generate("dense:rows=30:cols=40"), 1, 8, 8);
  const DeviceMatrix<Exec, half_t, int> A(Suite::matrix<int>(p));
  for (const std::size_t columns : {8, 200}) {
    const Dense q("q", 30, columns), k("k", 40, columns), o("o", 30, columns);
    const KokkosCounters counters;
    attention(Exec(), 1, q, k, k, A.view(), o);
    EXPECT_EQ(counters.backend_kernels(), 1) << columns;
  }
}
TEST(EmulatedAttentionTypes, Tf32WantsUnits) {
  AttentionSuite<Exec, float> suite(AttentionAlgorithm::Auto);
  suite.options.compute = ComputeType::TF32;
  const auto p = suite.problem(generate("stencil2d:nx=5:ny=5:points=5"), 1, 8, 8);
  for (const Backend backend : {Backend::Auto, Backend::Kokkos, Backend::Reference}) {
    suite.options.backend = backend;
    EXPECT_THROW(suite.run(p), NotSupported) << to_string(backend);
  }
}
#ifndef TESSERA_TEST_FEWER_TYPES
// What is of 64 bits has no such kernel.
TEST(EmulatedAttentionTypes, OthersFallBack) {
  AttentionSuite<Exec, double> suite(AttentionAlgorithm::Fused);
  suite.options.backend = Backend::EmulatedNvidia;
  const auto p = suite.problem(generate("stencil2d:nx=5:ny=5:points=5"), 1, 8, 8);
  EXPECT_THROW(suite.run(p), NotSupported);
  suite.options.fallback = true;
  suite.expect_right(p);
}
#endif

}  // namespace Testing
}  // namespace Tessera
