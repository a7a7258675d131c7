// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention on the device itself, forward and backward, by both algorithms, and by the backend's fused kernel.

#include <gtest/gtest.h>

#include "attention/UnitAttentionCases.hpp"
#include "support/Tessera_TestDevice.hpp"

namespace Tessera {
namespace Testing {

using DeviceExec = Kokkos::DefaultExecutionSpace;

template <class T>
class DeviceAttention : public AttentionTest<DeviceExec, T> {
 protected:
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};
#ifdef TESSERA_TEST_DEVICES_SKIP
using DeviceAttentionTypes = ::testing::Types<half_t>;
#else
using DeviceAttentionTypes = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(DeviceAttention, DeviceAttentionTypes);

TYPED_TEST(DeviceAttention, EveryShape) {
  for (const char* const shape : {"empty", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "dense:rows=1:cols=1",
                                  "dense:rows=3:cols=701", "dense_column", "ramp:n=61", "duplicates:rows=61:longest=50",
                                  "random:rows=61:cols=97:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(shape);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(generate(shape), 1, 5, 9)); });
  }
}
TYPED_TEST(DeviceAttention, EveryWidth) {
  const Pattern p = pattern_of_lengths({3, 0, 40, 1, 33, 2, 64}, 29);
  for (const int d : {0, 1, 7, 8, 16, 40, 64, 128, 257, 1031}) {
    SCOPED_TRACE(d);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(p, 1, d, d)); });
  }
}
TYPED_TEST(DeviceAttention, HeadsInEveryLayout) {
  for (int way = -1; way < 5; ++way) {
    SCOPED_TRACE(way);
    this->each([&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 3, 12, 8), way); });
  }
}
TYPED_TEST(DeviceAttention, HugeScores) {
  this->each(
      [&](const auto& suite) { suite.expect_right(suite.problem(TestFixture::mixed(), 1, 16, 24, Scores::Huge)); });
}
TYPED_TEST(DeviceAttention, MaskedEntriesAndRows) { this->masked_entries_and_rows(); }
// Who comes first must not show, forward and backward.
TYPED_TEST(DeviceAttention, Repeatable) {
  this->each([&](const auto& suite) {
    const auto p = suite.problem(generate("rmat:scale=10:degree=9"), 2, 32, 24);
    const auto first = suite.run(p);
    for (int turn = 0; turn < 5; ++turn) {
      const auto again = suite.run(p);
      EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse));
      EXPECT_TRUE(same_bits(first.d_q, again.d_q) && same_bits(first.d_k, again.d_k));
      EXPECT_TRUE(same_bits(first.d_v, again.d_v) && same_bits(first.d_values, again.d_values));
    }
  });
}

template <class Case>
class DeviceUnitAttention : public UnitAttentionTest<DeviceExec, typename UnitAttentionCase<Case>::Element> {
 protected:
  using T = typename UnitAttentionCase<Case>::Element;
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  template <class F>
  static void each(const F& f) {
    for (const auto values : {AttentionValues::None, AttentionValues::Bias, AttentionValues::Scale}) {
      for (const int height : {1, 2}) {
        SCOPED_TRACE("windows of " + std::to_string(height) + ", values " + std::to_string(static_cast<int>(values)));
        f(UnitAttentionTest<DeviceExec, T>::template suite_of<Case>(values, Impl::natural_backend<DeviceExec>(),
                                                                    height));
      }
    }
  }
};
#ifdef TESSERA_TEST_DEVICES_SKIP
using DeviceUnitAttentionCases = ::testing::Types<half_t, Tf32>;
#else
using DeviceUnitAttentionCases = ::testing::Types<half_t, bhalf_t, float, Tf32>;
#endif
TYPED_TEST_SUITE(DeviceUnitAttention, DeviceUnitAttentionCases);

TYPED_TEST(DeviceUnitAttention, AsOnEmulatedUnits) {
  this->each([&](const auto& suite) {
    TestFixture::runs_on_the_unit(suite);
    TestFixture::every_shape(suite);
    TestFixture::every_width(suite);
    if (suite.options.values == AttentionValues::Bias) TestFixture::every_dimension(suite);
    TestFixture::split_windows(suite);
    TestFixture::many_pieces(suite);
    TestFixture::unused_rows(suite);
    const bool far = sizeof(typename TestFixture::T) == 2 && suite.options.values != AttentionValues::Bias;
    if (far) TestFixture::far_gradients(suite);
    const int d = suite.inner(16);
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 2, d, 16));
    suite.expect_right(suite.problem(TestFixture::mixed(), 1, d, 24, Scores::Huge));
    if (suite.options.values != AttentionValues::None) TestFixture::same_bits_and_new_values(suite);
    if (suite.options.values != AttentionValues::Bias) return;
    TestFixture::growing_scores(suite);
    TestFixture::bad_numbers(suite, TestFixture::mixed());
    TestFixture::bad_numbers(suite, TestFixture::hubs());
  });
}
// Of any number of columns that its kernels take Auto leaves nothing to portable kernels, nor of more in 16 bits.
TYPED_TEST(DeviceUnitAttention, AutoKnowsTheColumns) {
  auto suite = TestFixture::template suite_of<TypeParam>(AttentionValues::None, Backend::Auto, 0);
  suite.options.algorithm = AttentionAlgorithm::Auto;
  const bool narrow = sizeof(typename TestFixture::T) == 2;
  for (const int d : {1, 20, 37, 100, 200, 255, 300}) {
    SCOPED_TRACE(d);
    suite.options.dimension_hint = d;
    const Statistics s = TestFixture::statistics(suite, TestFixture::mixed());
    EXPECT_TRUE(!narrow || s.algorithm == (d <= 256 ? "fused" : "chain")) << s.algorithm;
    EXPECT_TRUE(s.algorithm == "chain" || s.backend == to_string(Impl::natural_backend<DeviceExec>())) << s.backend;
  }
}
template <class T>
class DeviceAttentionRows : public UnitAttentionTest<DeviceExec, T> {
 protected:
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};
#ifdef TESSERA_TEST_DEVICES_SKIP
using DeviceAttentionRowsTypes = ::testing::Types<float>;
#else
using DeviceAttentionRowsTypes = ::testing::Types<double, float>;
#endif
TYPED_TEST_SUITE(DeviceAttentionRows, DeviceAttentionRowsTypes);

TYPED_TEST(DeviceAttentionRows, AsOnEmulatedWaves) {
  for (const auto values : {AttentionValues::None, AttentionValues::Bias, AttentionValues::Scale}) {
    SCOPED_TRACE(static_cast<int>(values));
    const auto suite = TestFixture::rows_of(values, Impl::natural_backend<DeviceExec>());
    TestFixture::by_rows(suite);
    TestFixture::many_pieces(suite);
    TestFixture::every_shape(suite);
    TestFixture::every_width(suite);
    TestFixture::unused_rows(suite);
    suite.expect_right(suite.problem(with_unsorted_columns(TestFixture::mixed()), 2, 16, 16));
    for (int way = -1; way < 5; ++way) suite.expect_right(suite.problem(TestFixture::mixed(), 3, 12, 8), way);
    if (values != AttentionValues::None) TestFixture::same_bits_and_new_values(suite);
    if (values != AttentionValues::Bias) continue;
    TestFixture::every_dimension(suite);
    TestFixture::growing_scores(suite);
    TestFixture::bad_numbers(suite, TestFixture::mixed());
    TestFixture::bad_numbers(suite, TestFixture::hubs());
  }
}
TYPED_TEST(DeviceAttentionRows, Repeatable) {
  const auto suite = TestFixture::rows_of(AttentionValues::Scale, Impl::natural_backend<DeviceExec>());
  const auto p = suite.problem(generate("rmat:scale=11:degree=19"), 3, 64, 64);
  const auto first = suite.run(p);
  for (int turn = 0; turn < 5; ++turn) {
    const auto again = suite.run(p);
    EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse));
    EXPECT_TRUE(same_bits(first.d_q, again.d_q) && same_bits(first.d_k, again.d_k));
    EXPECT_TRUE(same_bits(first.d_v, again.d_v) && same_bits(first.d_values, again.d_values));
  }
}

TYPED_TEST(DeviceUnitAttention, Repeatable) {
  this->each([&](const auto& suite) {
    const auto p = suite.problem(generate("rmat:scale=11:degree=19"), 3, 64, 64);
    const auto first = suite.run(p);
    for (int turn = 0; turn < 5; ++turn) {
      const auto again = suite.run(p);
      EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse));
      EXPECT_TRUE(same_bits(first.d_q, again.d_q) && same_bits(first.d_k, again.d_k));
      EXPECT_TRUE(same_bits(first.d_v, again.d_v) && same_bits(first.d_values, again.d_values));
    }
  });
}

}  // namespace Testing
}  // namespace Tessera
