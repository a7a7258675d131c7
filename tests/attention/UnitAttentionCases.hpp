// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_UNIT_ATTENTION_CASES_HPP
#define TESSERA_TEST_UNIT_ATTENTION_CASES_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "attention/AttentionSuite.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What tests of the backends' fused attention kernels share, on emulated units and on those of devices.

namespace Tessera {
namespace Testing {

/// Operands of float multiplied in TF32, as a type of tests.
struct Tf32 {};
template <class Case>
struct UnitAttentionCase {
  using Element = Case;
  static constexpr ComputeType compute = ComputeType::Auto;
};
template <>
struct UnitAttentionCase<Tf32> {
  using Element = float;
  static constexpr ComputeType compute = ComputeType::TF32;
};

template <class Exec, class T>
class UnitAttentionTest : public ::testing::Test {
 protected:
  using Suite = AttentionSuite<Exec, T>;
  /// The fused kernel of the backend, in a precision.
  template <class Case>
  static Suite suite_of(AttentionValues values, Backend backend, int height) {
    Suite suite(AttentionAlgorithm::Fused, values);
    suite.options.compute = UnitAttentionCase<Case>::compute;
    suite.on_units(backend, height);
    return suite;
  }
  /// The kernel by rows of the backend.
  static Suite rows_of(AttentionValues values, Backend backend) {
    Suite suite(AttentionAlgorithm::Rows, values);
    suite.options.backend = backend;
    return suite;
  }
  static Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
  /// Windows of more blocks than a part has, among short ones.
  static Pattern hubs() {
    return pattern_of_lengths({3, 900, 0, 1, 7, 0, 0, 2, 1, 1, 600, 0, 0, 0, 0, 0, 0, 4, 2}, 907);
  }
  static Statistics statistics(const Suite& suite, const Pattern& pattern) {
    const auto p = suite.problem(pattern, 1, 8, 8);
    const DeviceMatrix<Exec, T, int> A(Suite::template matrix<int>(p));
    return typename Suite::Plan(Exec(), A.view(), suite.options).statistics();
  }

  static void runs_on_the_unit(Suite suite) {
    for (const auto algorithm : {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused}) {
      suite.options.algorithm = algorithm;
      const Statistics s = statistics(suite, mixed());
      EXPECT_EQ(s.compute, to_string(suite.tf32() ? Precision::TF32 : Impl::ScalarTraits<T>::precision));
      if (sizeof(T) == 4 && s.algorithm != "fused") {  // as the rule predicts
        EXPECT_EQ(algorithm, AttentionAlgorithm::Auto);
        continue;
      }
      EXPECT_EQ(s.algorithm, "fused");
      EXPECT_EQ(s.backend, to_string(suite.options.backend));
      EXPECT_EQ(s.matrix_unit_share, 1);
      EXPECT_EQ(s.launches, 1);
      EXPECT_FALSE(s.fallback_taken);
      const bool backward = std::any_of(s.classes.begin(), s.classes.end(), [](const ClassShare& c) {
        return c.name == "windows of columns" && c.rows > 0;
      });
      EXPECT_EQ(backward, sizeof(T) == 2) << "gradients of 16 bits go to units";
    }
  }
  /// That a plan goes by rows, and says so; rows of one entry, of about a batch and a piece, and of many pieces.
  static void by_rows(const Suite& suite) {
    const Pattern lengths = pattern_of_lengths({0, 1, 31, 33, 2, 3, 4, 5, 64, 65, 1003, 0, 0, 270, 7}, 1007);
    const Statistics s = statistics(suite, lengths);
    EXPECT_EQ(s.algorithm, "rows");
    EXPECT_EQ(s.backend, to_string(suite.options.backend));
    EXPECT_EQ(s.launches, 2) << "rows of many pieces";
    EXPECT_FALSE(s.fallback_taken);
    EXPECT_TRUE(std::any_of(s.classes.begin(), s.classes.end(), [](const ClassShare& c) {
      return c.name == "pieces of cut columns";
    })) << "gradients go by rows";
    suite.expect_right(suite.problem(lengths, 2, 16, 32));
    suite.expect_right(suite.problem(lengths, 1, 64, 64, Scores::Huge));
    // Columns that many rows use: the transposed pattern has long rows.
    suite.expect_right(suite.problem(generate("dense:rows=701:cols=3"), 1, 32, 32));
    const std::pair<int, int> widths[] = {{4, 12}, {20, 4}, {32, 32}, {64, 64}, {128, 128}, {300, 8}, {12, 512}};
    for (const auto& [d, e] : widths) suite.expect_right(suite.problem(generate("ramp:n=41"), 1, d, e));
  }
  /// A row or a column that all others see: of so many pieces that several waves add up what they left.
  static void many_pieces(const Suite& suite) {
    for (const char* const shape :
         {"dense_row:rows=5:cols=17000:row=3:others=1", "dense_column:rows=17000:cols=5:others=1"}) {
      SCOPED_TRACE(shape);
      const auto classes = statistics(suite, generate(shape)).classes;
      EXPECT_TRUE(std::any_of(classes.begin(), classes.end(), [](const ClassShare& c) {
        return (c.name.find("parts of") == 0 || c.name.find("pieces of") == 0) && c.rows >= 64;
      })) << "the test's own pattern";
      suite.expect_right(suite.problem(generate(shape), 1, suite.inner(16), 40));
    }
    suite.expect_right(suite.problem(generate("dense:rows=2:cols=17000"), 1, 32, 32, Scores::Huge));
  }
  static void every_shape(const Suite& suite) {
    for (const char* const shape : {"empty", "empty:rows=0:cols=5", "empty:rows=5:cols=0", "dense:rows=1:cols=1",
                                    "dense:rows=301:cols=2", "dense_column", "ramp:n=61",
                                    "duplicates:rows=61:longest=50", "random:rows=61:cols=97:lengths=uniform:mean=4"}) {
      SCOPED_TRACE(shape);
      suite.expect_right(suite.problem(generate(shape), 1, suite.inner(16), 8));
    }
  }
  /// Widths that kernels have, whole classes of them and others, those of copies, and some of the portable kernel.
  static void every_width(const Suite& suite) {
    const Pattern p = pattern_of_lengths({3, 0, 40, 1, 33, 2, 64, 5, 17}, 69);
    const std::pair<int, int> widths[] = {{8, 8},   {16, 16}, {24, 40},   {32, 32},   {40, 24},   {64, 64},
                                          {72, 8},  {8, 120}, {128, 128}, {136, 136}, {256, 256}, {200, 256},
                                          {264, 8}, {9, 16},  {16, 9},    {0, 8},     {8, 0}};
    for (const auto& [d, e] : widths) {
      SCOPED_TRACE(std::to_string(d) + ", " + std::to_string(e));
      suite.expect_right(suite.problem(p, 1, d, e));
    }
  }
  /// Events of a backend's kernels in a pass forward and one backward.
  static int backend_kernels(const Suite& suite, int d, int e) {
    const int widest = std::max(d, e);
    if (suite.options.algorithm == AttentionAlgorithm::Rows) return widest <= (sizeof(T) == 8 ? 256 : 512) ? 3 : 0;
    const bool two = suite.options.window_height == 2, parts = sizeof(T) == 4 && !suite.tf32();
    const bool nvidia = suite.options.backend == Backend::EmulatedNvidia || suite.options.backend == Backend::Cuda;
    const bool forward = widest <= (!two ? 256 : sizeof(T) == 4 ? 64 : 128) && (!parts || !nvidia || d >= 30);
    const bool backward = sizeof(T) == 4 ? widest <= 512 : suite.backward_on_units(d, e);
    return (forward ? 1 : 0) + (backward ? 2 : 0);
  }
  /// Whatever number of columns: what a backend's kernels take goes to them, in every layout, with one head and three.
  static void every_dimension(const Suite& suite) {
    const Pattern p = pattern_of_lengths({3, 0, 40, 1, 18, 2, 5}, 43);
    std::vector<int> dimensions;
    for (int d = 1; d <= 40; ++d) dimensions.push_back(d);
    for (const int near : {48, 64, 96, 100, 128}) dimensions.insert(dimensions.end(), {near - 1, near, near + 1});
    dimensions.insert(dimensions.end(), {30, 200, 256, 257, 300});
    const int step = shorter_lists ? 3 : 1;
    for (int i = suite.options.window_height % step; i < static_cast<int>(dimensions.size()); i += step) {
      const int d = dimensions[static_cast<std::size_t>(i)], e = i % 2 == 0 ? d : 1 + d * 7 % 61;
      const int heads = i % 4 < 2 ? 1 : 3, way = i % 7 - 1;
      SCOPED_TRACE(std::to_string(d) + ", " + std::to_string(e) + ", way " + std::to_string(way));
      const auto problem = suite.problem(p, heads, d, e);
      const KokkosCounters counters;
      const auto got = suite.run(problem, way);
      EXPECT_EQ(counters.backend_kernels(), backend_kernels(suite, d, e));
      suite.check(problem, got);
    }
  }
  /// In a workspace of workspace_bytes(), and not one byte beyond; a smaller one is refused.
  static void own_workspace(Suite suite, int width) {
    suite.options.workspace = {};
    const auto p = suite.problem(generate("dense:rows=3:cols=701"), 1, width, width);
    const DeviceMatrix<Exec, T, int> A(Suite::template matrix<int>(p));
    const std::size_t need = typename Suite::Plan(Exec(), A.view(), suite.options).workspace_bytes(width);
    const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
    Kokkos::deep_copy(memory, ~std::uint64_t{0});
    suite.options.workspace = {memory.data(), need};
    suite.expect_right(p, 4);  // by columns
    suite.expect_right(p);
    const auto after = to_host(memory);
    for (std::size_t i = (need + 7) / 8; i < after.size(); ++i) EXPECT_EQ(after[i], ~std::uint64_t{0}) << i;
    suite.options.workspace = {memory.data(), 64};
    EXPECT_THROW(suite.run(p, 4), WorkspaceTooSmall);
  }
  /// Copies of operands with other columns stay in the plan's scratch.
  static void copies_are_kept(const Suite& suite) {
    using Dense = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;
    const auto p = suite.problem(mixed(), 1, 37, 37);
    const DeviceMatrix<Exec, T, int> A(Suite::template matrix<int>(p));
    const typename Suite::Plan plan(Exec(), A.view(), suite.options);
    const auto m = static_cast<std::size_t>(p.pattern.rows), n = static_cast<std::size_t>(p.pattern.cols);
    const Dense q("q", m, 37), k("k", n, 37), v("v", n, 37), o("o", m, 37), d_q("d_q", m, 37), d_k("d_k", n, 37),
        d_v("d_v", n, 37);
    const DeviceVector<Exec, typename Suite::Sum> lse("lse", m);
    const auto all = [&] {
      plan.apply(Exec(), 1, q, k, v, o, lse);
      plan.backward(Exec(), 1, q, k, v, o, lse, o, d_q, d_k, d_v);
    };
    all();
    const KokkosCounters counters;
    all();
    EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
    EXPECT_EQ(counters.kernels(), 4) << "a launch for all copies of a pass before it, and one after it";
    EXPECT_EQ(counters.backend_kernels(), 3);
  }
  static void split_windows(const Suite& suite) {
    // Of shorter lists a pattern meets one of both problems, in windows of the other height the other one.
    bool turn = suite.options.window_height == 2;
    for (const Pattern& p : {generate("dense:rows=3:cols=701"), hubs()}) {
      turn = !turn;
      if (!shorter_lists || turn) suite.expect_right(suite.problem(p, 2, suite.inner(16), 32));
      if (shorter_lists && turn) continue;
      suite.expect_right(
          suite.problem(p, 1, 32, suite.options.window_height == 2 && sizeof(T) == 4 ? 64 : 136, Scores::Huge));
    }
  }
  /// Scores that grow along every row, by more than the range of weights from block to block, or by less.
  static void growing_scores(const Suite& suite) {
    for (const double step : {0.05, 0.7, 30.0}) {
      auto p = suite.problem(mixed(), 1, suite.inner(8), 8);
      for (std::int64_t i = 0; i < p.pattern.rows; ++i) {
        for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) {
          p.values[static_cast<std::size_t>(e)] = as<T>(step * static_cast<double>(e - p.pattern.row_map[i]));
        }
      }
      suite.expect_right(p);
    }
  }
  /// Gradients of O so large that scores have gradients beyond the range of FP16, or so small that they are below it,
  /// or both in one row.
  static void far_gradients(const Suite& suite) {
    for (const auto& [least, most] : {std::pair<double, double>{3e3, 3e3}, {1e-6, 1e-6}, {1e-6, 3e3}}) {
      SCOPED_TRACE(std::to_string(least) + " to " + std::to_string(most));
      auto p = suite.problem(mixed(), 1, 8, 16);
      for (std::size_t at = 0; at < p.d_o.size(); ++at) {
        p.d_o[at] = as<T>(wide(p.d_o[at]) * (at / 16 % 2 == 0 ? least : most));
      }
      for (std::size_t at = 0; at < p.v.size(); ++at) {
        p.v[at] = as<T>(wide(p.v[at]) * (at / 16 % 3 == 0 ? 300 : 1));
      }
      for (std::size_t at = 0; at < p.k.size(); ++at) p.k[at] = as<T>(wide(p.k[at]) * 1e-3);
      for (std::size_t at = 0; at < p.q.size(); ++at) p.q[at] = as<T>(wide(p.q[at]) * 1e-3);
      suite.expect_right(p);
    }
  }
  /// Numbers that are infinite or undefined, in any operand: results are not finite where those of the portable kernel
  /// are not, of the same kind, and rows that do not use them keep their bits. Of FP32 the largest numbers, too, which
  /// parts of TF32 do not hold. Values: Bias.
  static void bad_numbers(const Suite& suite, const Pattern& pattern) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    Suite portable = suite;
    portable.options.algorithm = AttentionAlgorithm::Fused;
    portable.options.backend = Backend::Kokkos;
    portable.options.compute = ComputeType::Auto;
    const auto d = static_cast<std::size_t>(suite.inner(16));
    auto p = suite.problem(pattern, 1, suite.inner(16), 16);
    // Row 3's first column, which is masked in this row.
    const int column = pattern.entries[static_cast<std::size_t>(pattern.row_map[3])];
    p.values[static_cast<std::size_t>(pattern.row_map[3])] = as<T>(-inf);
    const auto good = suite.run(p);
    for (const char what : {'q', 'k', 'v', 'a'}) {
      for (const double number : {nan, inf, -inf, 3.4e38}) {
        if (number == 3.4e38 && (sizeof(T) == 2 || what == 'a')) continue;
        if (shorter_lists && number == inf) continue;
        // Of shorter lists each operand meets one of these: in 16 bits and in windows of another height the other one.
        const bool first = what == 'q' || what == 'v', other = (sizeof(T) == 2) != (suite.options.window_height == 2);
        if (shorter_lists && !std::isfinite(number) && std::isnan(number) != (first != other)) continue;
        SCOPED_TRACE(std::string(1, what) + " " + std::to_string(number));
        auto bad = p;
        if (what == 'q') bad.q[static_cast<std::size_t>(pattern.rows - 1) * d + 3] = as<T>(number);
        if (what == 'k') bad.k[static_cast<std::size_t>(column) * d + 3] = as<T>(number);
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
            EXPECT_TRUE(here || same_number(got.o[at], good.o[at])) << i;
          }
        }
        EXPECT_TRUE(kept > 0 && kept < pattern.rows) << "the test's own pattern";
        // Scores of 1e38 are as far apart as their rounding, which is all that gradients see of them.
        if (number == 3.4e38 && what != 'v') continue;
        // Of rows that have the number, of columns that these use, of entries of such rows.
        const auto& entries = pattern.entries;
        std::vector<bool> rows(static_cast<std::size_t>(pattern.rows)), columns(static_cast<std::size_t>(pattern.cols)),
            values(entries.size());
        if (what == 'k' || what == 'v') columns[static_cast<std::size_t>(column)] = true;
        for (std::int64_t i = 0; i < pattern.rows; ++i) {
          const auto begin = static_cast<std::size_t>(pattern.row_map[i]),
                     end = static_cast<std::size_t>(pattern.row_map[i + 1]);
          const bool uses = std::find(entries.begin() + pattern.row_map[i], entries.begin() + pattern.row_map[i + 1],
                                      column) != entries.begin() + pattern.row_map[i + 1];
          if (what == 'q' || what == 'a' ? i != pattern.rows - 1 : !uses || i == 3) continue;
          rows[static_cast<std::size_t>(i)] = true;
          for (std::size_t e = begin; e < end; ++e) values[e] = columns[static_cast<std::size_t>(entries[e])] = true;
        }
        same_gradients_spoilt("dQ", got.d_q, wanted.d_q, good.d_q, rows, d);
        same_gradients_spoilt("dK", got.d_k, wanted.d_k, good.d_k, columns, d);
        same_gradients_spoilt("dV", got.d_v, wanted.d_v, good.d_v, columns, 16);
        same_gradients_spoilt("dA", got.d_values, wanted.d_values, good.d_values, values, 1);
        const bool keeps = std::find(columns.begin(), columns.end(), false) != columns.end();
        EXPECT_TRUE(keeps || what == 'k' || what == 'v') << "the test's own pattern";
      }
    }
  }
  static bool same_number(T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }
  /// Gradients are finite where those of the portable kernel are; rows of `width` numbers that are not `spoilt` keep
  /// their bits.
  static void same_gradients_spoilt(const char* name, const std::vector<T>& got, const std::vector<T>& portable,
                                    const std::vector<T>& good, const std::vector<bool>& spoilt, std::size_t width) {
    for (std::size_t at = 0; at < got.size(); ++at) {
      ASSERT_EQ(std::isfinite(wide(got[at])), std::isfinite(wide(portable[at]))) << name << ", number " << at;
      ASSERT_TRUE(spoilt[at / width] || same_number(got[at], good[at])) << name << ", number " << at;
    }
  }
  /// Not even a NaN in rows of K and V that no row uses shows, the first one, which padding might read, among them.
  static void unused_rows(const Suite& suite) {
    const Pattern p = pattern_of_rows(20, 30, [](std::int64_t i, std::vector<int>& to) {
      for (std::int64_t k = 0; k < i % 5; ++k) to.push_back(static_cast<int>(1 + (i + 3 * k) % 29));
    });
    auto problem = suite.problem(p, 1, suite.inner(16), 16);
    const auto good = suite.run(problem);
    for (int k = 0; k < problem.d; ++k) problem.k[static_cast<std::size_t>(k)] = as<T>(std::nan(""));
    for (std::size_t k = 0; k < 16; ++k) problem.v[k] = as<T>(std::nan(""));
    const auto again = suite.run(problem);
    EXPECT_TRUE(same_bits(good.o, again.o));
    EXPECT_TRUE(same_bits(good.d_q, again.d_q) && same_bits(good.d_v, again.d_v));
    EXPECT_TRUE(same_bits(good.d_k, again.d_k) && same_bits(good.d_values, again.d_values));
  }
  static void same_bits_and_new_values(const Suite& suite) {
    const auto p = suite.problem(mixed(), 2, 40, 24);
    auto other = p;
    other.values = numbers<T>(static_cast<std::int64_t>(p.values.size()), Data::Real, 99);
    const DeviceMatrix<Exec, T, int> A(Suite::template matrix<int>(p)), B(Suite::template matrix<int>(other));
    typename Suite::Plan plan(Exec(), A.view(), suite.options);
    const auto first = suite.run(plan, p, 3);
    suite.run(plan, suite.problem(mixed(), 3, suite.inner(16), 8));  // scratch is used for something else
    const auto again = suite.run(plan, p, 3);
    EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse));
    EXPECT_TRUE(same_bits(first.d_q, again.d_q) && same_bits(first.d_k, again.d_k));
    EXPECT_TRUE(same_bits(first.d_v, again.d_v) && same_bits(first.d_values, again.d_values));
    plan.update_values(Exec(), B.view().values());
    suite.check(other, suite.run(plan, other));
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
