// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The SDDMM wave kernels, lane by lane, on emulated waves and matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include <algorithm>

#include "sddmm/SddmmOperands.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr SddmmAlgorithm panels = SddmmAlgorithm::Panels, bsmr = SddmmAlgorithm::Bsmr, rows = SddmmAlgorithm::Rows,
                         flash = SddmmAlgorithm::FlashSparse;

struct SddmmCase {
  Backend backend;
  SddmmAlgorithm algorithm;
  int window_height = 1;
  ComputeType compute = ComputeType::Auto;
  Tf32Copy copy = Tf32Copy::Auto;
};
Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
Pattern few_lengths() { return pattern_of_lengths({3, 0, 7, 1, 40, 2, 2, 2, 5, 9, 1}, 29); }
/// Columns that repeat and descend.
Pattern unsorted() {
  return pattern_of_rows(61, 47, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 23; ++k) to.push_back(static_cast<int>((7 * (i + 40 - k) + k / 3 * 11) % 47));
    if (i % 3 == 0) to.insert(to.end(), {5, 5, 2});
  });
}

/// One suite per combination of element types is compiled; who multiplies these is decided at run time.
template <class Suite>
class EmulatedSddmm : public ::testing::Test {
 protected:
  static std::vector<SddmmCase> cases() {
    std::vector<SddmmCase> all = {{nvidia, panels, 1}, {nvidia, panels, 2}, {amd, panels, 1}, {amd, panels, 2},
                                  {nvidia, bsmr, 1},   {nvidia, bsmr, 2},   {amd, bsmr, 2},   {nvidia, rows},
                                  {amd, rows},         {nvidia, flash, 0},  {amd, flash, 0}};
    if (fewer_cases && std::is_same_v<typename Suite::Element, float>) {
      all = {{nvidia, panels, 1}, {nvidia, panels, 2}, {nvidia, bsmr, 2}, {nvidia, rows}, {nvidia, flash, 0}};
      for (const SddmmCase& c : {SddmmCase{nvidia, panels, 1, ComputeType::TF32, Tf32Copy::Always},
                                 {nvidia, panels, 2, ComputeType::TF32, Tf32Copy::Always},
                                 {nvidia, rows, 1, ComputeType::TF32}}) {
        all.push_back(c);
      }
    } else if (std::is_same_v<typename Suite::Element, float>) {
      for (const SddmmCase& c : {SddmmCase{nvidia, panels, 1, ComputeType::TF32},
                                 {nvidia, bsmr, 2, ComputeType::TF32},
                                 {amd, panels, 2, ComputeType::TF32},
                                 {nvidia, panels, 1, ComputeType::TF32, Tf32Copy::Always},
                                 {nvidia, panels, 2, ComputeType::TF32, Tf32Copy::Always},
                                 {amd, panels, 1, ComputeType::TF32, Tf32Copy::Always},
                                 {nvidia, flash, 0, ComputeType::TF32, Tf32Copy::Always},
                                 {nvidia, rows, 1, ComputeType::TF32}}) {
        all.push_back(c);
      }
    }
    const auto missing = [](const SddmmCase& c) { return !emulates(c.backend); };
    all.erase(std::remove_if(all.begin(), all.end(), missing), all.end());
    return all;
  }
  /// Those of FP32 and FP16 that a sanitized build leaves out.
  static std::vector<SddmmCase> cases_beside_sanitized() {
    if (std::is_same_v<Suite, SddmmSuite<Exec, half_t, float>>) {  // which rounds otherwise, but multiplies the same
      return {{nvidia, panels, 1}, {nvidia, flash, 0}, {amd, bsmr, 2}, {amd, rows}};
    }
    using T = typename Suite::Element;
    if (std::is_same_v<T, double> || std::is_same_v<T, bhalf_t>) return cases();
    std::vector<SddmmCase> all = {{amd, panels, 1}, {amd, panels, 2}, {amd, bsmr, 2}, {amd, rows}, {amd, flash, 0}};
    if (std::is_same_v<Suite, SddmmSuite<Exec, half_t>>) return all;
    for (const SddmmCase& c : {SddmmCase{nvidia, bsmr, 1},
                               {nvidia, panels, 1, ComputeType::TF32},
                               {nvidia, bsmr, 2, ComputeType::TF32},
                               {amd, panels, 2, ComputeType::TF32},
                               {amd, panels, 1, ComputeType::TF32, Tf32Copy::Always},
                               {nvidia, flash, 0, ComputeType::TF32, Tf32Copy::Always}}) {
      all.push_back(c);
    }
    return all;
  }
  /// FP64 is beside sanitizers alone.
  static bool elsewhere(Backend backend) {
    return !std::is_same_v<typename Suite::Element, double> && taken_elsewhere(backend == amd);
  }
  static void each(void (*f)(Suite&)) { each_of(cases(), f); }
  static void each_of(const std::vector<SddmmCase>& all, void (*f)(Suite&)) {
    for (const SddmmCase& c : all) {
      SCOPED_TRACE(std::string(to_string(c.algorithm)) + " on " + to_string(c.backend) + ", windows of " +
                   std::to_string(c.window_height) + ", compute " + std::to_string(static_cast<int>(c.compute)) +
                   ", copy " + std::to_string(static_cast<int>(c.copy)));
      Suite suite{c.backend, c.algorithm, c.compute};
      suite.options.window_height = c.window_height;
      suite.options.tf32_copy = c.copy;
      suite.options.bsmr = {RowReordering::Clusters, c.window_height + 1};
      f(suite);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Suites = ::testing::Types<SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t>>;
#else
using Suites = ::testing::Types<SddmmSuite<Exec, double>, SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t>,
                                SddmmSuite<Exec, half_t, float>, SddmmSuite<Exec, bhalf_t>>;
#endif
TYPED_TEST_SUITE(EmulatedSddmm, Suites);

TYPED_TEST(EmulatedSddmm, EveryShape) {
  this->each_of(beside_sanitized ? this->cases_beside_sanitized() : this->cases(),
                [](auto& suite) { suite.every_shape({9}); });
}
TYPED_TEST(EmulatedSddmm, EveryInner) { TESSERA_EACH(every_inner(mixed(), all_inner())); }
/// Rows has kernels of their own for most numbers of words: NaN beside rows must not reach a sum, nor what lies in
/// another row.
TYPED_TEST(EmulatedSddmm, RowsOfEveryNumberOfWords) {
  const Pattern pattern = generate("every_length:longest=30:cols=41");
  std::vector<int> inner = inner_around_words<typename TypeParam::Element>(), few;
  for (std::size_t i = 0; i < inner.size(); i += 7) few.push_back(inner[i]);
  using T = typename TypeParam::Element;
  const bool as_others = sizeof(T) == 2 && !std::is_same_v<TypeParam, SddmmSuite<Exec, half_t>>;  // in all but rounding
  if (shorter_lists || as_others) inner = few;
  for (const Backend backend : emulated_backends()) {
    if (TestFixture::elsewhere(backend)) continue;
    SCOPED_TRACE(to_string(backend));
    const TypeParam suite{backend, rows};
    suite.every_inner(pattern, inner);
    every_layout(suite, pattern, few);
  }
}
/// Contiguous rows that are whole words of eight bytes, or in 32 bits of four, are read where they lie, without
/// scratch; by columns they are copied, and so are others, and those of which many entries share a row.
TYPED_TEST(EmulatedSddmm, RowsReadWhereTheyLie) {
  using Element = typename TypeParam::Element;
  constexpr int width = 16 / static_cast<int>(sizeof(Element));
  const DeviceVector<Exec, std::uint64_t> memory("workspace", 1);
  for (const Backend backend : emulated_backends()) {
    if (TestFixture::elsewhere(backend)) continue;
    SCOPED_TRACE(to_string(backend));
    TypeParam suite{backend, rows};
    suite.options.workspace = {memory.data(), 8};
    const auto A = suite.matrix(mixed(), Data::Integers);
    const typename TypeParam::Device device(A);
    const typename TypeParam::Plan plan(Exec(), device.view(), suite.options);
    for (int less = 1; less < width; ++less) {
      for (const int words : {1, 7, 26, 70}) {
        const int inner = words * width - less;
        if (width < 8) {
          suite.expect(plan, A, inner, Data::Integers, {2.5, -1});
        } else {
          EXPECT_THROW(suite.expect(plan, A, inner, Data::Integers), WorkspaceTooSmall) << inner;
        }
        if (width < 8 || less == 4) suite.template expect<InFours>(plan, A, inner, Data::Integers);
        EXPECT_THROW(suite.template expect<AcrossRows>(plan, A, inner, Data::Integers), WorkspaceTooSmall) << inner;
      }
    }
    const auto full = suite.matrix(generate("dense:rows=150:cols=150"), Data::Integers);
    const typename TypeParam::Device full_device(full);
    const typename TypeParam::Plan many(Exec(), full_device.view(), suite.options);
    EXPECT_THROW(suite.expect(many, full, 8191, Data::Integers), WorkspaceTooSmall);
  }
}
TYPED_TEST(EmulatedSddmm, RowsWithBadNumbers) {
  constexpr int width = 16 / static_cast<int>(sizeof(typename TypeParam::Element));
  for (const Backend backend : emulated_backends()) {
    if (TestFixture::elsewhere(backend)) continue;
    SCOPED_TRACE(to_string(backend));
    for (const int words : {1, 3, 6, 11, 13, 18, 25, 40}) {
      for (const int less : {0, 1}) {
        if (words * width - less > 0) bad_numbers(TypeParam{backend, rows}, few_lengths(), words * width - less);
      }
    }
  }
}
TYPED_TEST(EmulatedSddmm, UnsortedColumns) { TESSERA_EACH(every_inner(unsorted(), {1, 32, 50})); }
TYPED_TEST(EmulatedSddmm, EveryScaling) { TESSERA_EACH(every_scaling(mixed(), 19)); }
TYPED_TEST(EmulatedSddmm, UndefinedOperands) { TESSERA_EACH(undefined_operands(mixed(), 13)); }
TYPED_TEST(EmulatedSddmm, BadRows) { TESSERA_EACH(bad_rows(mixed(), 32)); }
TYPED_TEST(EmulatedSddmm, OneFactor) { TESSERA_EACH(one_factor(generate("stencil2d:nx=23:ny=31:points=9"), 16)); }
TYPED_TEST(EmulatedSddmm, Heads) {
  this->each([](auto& suite) {
    suite.heads(mixed(), 16, 3);
    suite.heads(mixed(), 7, 2);
  });
}
TYPED_TEST(EmulatedSddmm, NewValues) { TESSERA_EACH(new_values(mixed(), 21)); }
TYPED_TEST(EmulatedSddmm, Deterministic) { TESSERA_EACH(deterministic(mixed(), 12)); }
TYPED_TEST(EmulatedSddmm, NoAllocation) { TESSERA_EACH(no_allocation(mixed(), 12)); }
TYPED_TEST(EmulatedSddmm, OwnWorkspace) { TESSERA_EACH(workspace(mixed(), 21)); }

// Blocks of eight neighbouring windows take turns, each stands in the list once, and a row's entries follow each other.
TEST(WindowBlocks, TakeTurns) {
  const auto A = make_matrix<UsualScalar>("rmat:scale=9:degree=8", Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const SddmmShape shape{8, 16, "test"};
  for (const int height : {1, 2}) {
    SCOPED_TRACE(height);
    const auto f =
        Impl::window_blocks(Exec(), Impl::pattern_of(device.view()), shape, height, Precision::FP16, nullptr);
    const auto rows = static_cast<std::size_t>(height * 8);
    std::vector<bool> seen(static_cast<std::size_t>(f.blocks));
    std::vector<int> turn(static_cast<std::size_t>(f.windows));
    std::uint64_t entries = 0;
    std::pair<std::uint32_t, int> last{0, 0};
    for (std::size_t b = 0; b < seen.size(); ++b) {
      const SddmmBlock block = f.block(b);
      ASSERT_EQ(block.first % 16, 0u);
      ASSERT_LT(block.first / 16, seen.size());
      ASSERT_FALSE(seen[block.first / 16]);
      seen[block.first / 16] = true;
      const std::uint32_t group = block.window_index() / SddmmBlock::side_by_side;
      const std::pair<std::uint32_t, int> now{group, turn[block.window_index()]++};
      EXPECT_LE(last, now) << "block " << b;
      last = now;
      for (std::size_t r = 0; r < rows; ++r) {
        const SddmmBlockRow row = f.block_rows(b * rows + r);
        const auto count = static_cast<std::uint32_t>(__builtin_popcount(row.bits));
        entries += count;
        EXPECT_EQ(row.bits >> block.count(), 0u);
        std::uint32_t e = row.begin;
        for (int v = 0; v < block.count(); ++v) {
          if ((row.bits >> v & 1) == 0) continue;
          ASSERT_LT(e, A.entries.size());
          EXPECT_EQ(A.entries[e], f.columns(block.first + static_cast<std::size_t>(v)));
          ++e;
        }
      }
    }
    EXPECT_EQ(entries, static_cast<std::uint64_t>(A.nnz()));
  }
}

}  // namespace Testing
}  // namespace Tessera
