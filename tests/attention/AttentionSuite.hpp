// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_ATTENTION_SUITE_HPP
#define TESSERA_TEST_ATTENTION_SUITE_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Attention.hpp"
#include "attention/AttentionReference.hpp"
#include "sddmm/SddmmOperands.hpp"

/// \file
/// Attention of one element type by one algorithm against the reference, in any layout.

namespace Tessera {
namespace Testing {

/// Numbers in which a score of a row varies by about one.
enum class Scores { Small, Huge };

template <class Exec, class T, class Offset = int>
class AttentionSuite {
 public:
  using Element = T;
  using Matrix = DeviceMatrix<Exec, T, Offset>;
  using Plan = AttentionPlan<typename Matrix::Csr>;
  using Sum = typename Plan::sum_type;

  AttentionOptions options;
  WeightRounding rounding;

  explicit AttentionSuite(AttentionAlgorithm algorithm, AttentionValues values = AttentionValues::None) {
    options.algorithm = algorithm;
    options.values = values;
    options.prepare_backward = true;
    options.fallback = false;
  }

  /// For the kernels of a backend's units: weights of T, of TF32 those; FP32 in parts of TF32 keeps the bound of FP32
  /// arithmetic. Those of FP16 are multiples of 2^-24 where the largest one of
  /// the row is 2^7 or more; those of BF16 have the range of the sums. Backward FP16 has weights times 2^14, and
  /// gradients of scores as forward weights.
  void on_units(Backend backend, int window_height) {
    options.backend = backend;
    options.window_height = window_height;
    rounding.relative = sizeof(T) == 2 ? TypeFacts<T>::roundoff() : tf32() ? 0x1p-11 : 0;
    rounding.of_largest = std::is_same_v<T, half_t> ? std::ldexp(1.0, -25 - 7) : 0;
    rounding.of_one = std::is_same_v<T, half_t> ? std::ldexp(1.0, -25 - 14) : 0;
  }
  bool tf32() const { return options.compute == ComputeType::TF32; }
  /// Columns of Q with which units of all vendors take FP32, others as they are.
  int inner(int d) const { return sizeof(T) == 4 && !tf32() ? d + 32 : d; }
  /// Whether units go backward, too.
  bool backward_on_units(int d, int e) const {
    const int most = options.window_height == 2 ? 64 : 128;
    return sizeof(T) == 2 && rounding.relative > 0 && d > 0 && e > 0 && std::max(d, e) <= most;
  }

  /// A problem of several heads on one pattern, with numbers that T, or where that is asked for TF32, holds.
  struct Problem {
    Pattern pattern;
    int heads, d, e;
    double scale;
    std::vector<T> values, q, k, v, d_o;
  };
  Problem problem(const Pattern& p, int heads, int d, int e, Scores size = Scores::Small) const {
    const double scale = d > 0 ? (size == Scores::Huge ? 1e4 : 1) / std::sqrt(d) : 1;
    Problem all{p, heads, d, e, scale, {}, {}, {}, {}, {}};
    all.values = numbers<T>(static_cast<std::int64_t>(p.entries.size()), Data::Real, 41);
    all.q = numbers<T>(heads * p.rows * d, Data::Real, 42);
    all.k = numbers<T>(heads * p.cols * d, Data::Real, 43);
    all.v = numbers<T>(heads * p.cols * e, Data::Real, 44);
    all.d_o = numbers<T>(heads * p.rows * e, Data::Real, 45);
    if constexpr (std::is_same_v<T, float>) {
      for (auto* const of : {&all.q, &all.k, &all.v}) {
        for (float& x : *of) x = tf32() && rounding.operands == 0 ? round_to_tf32(x) : x;
      }
    }
    return all;
  }

  struct Results {
    std::vector<T> o, d_q, d_k, d_v, d_values;
    std::vector<Sum> lse;
  };
  /// How the operands lie: number of batch_steps; -1: contiguous.
  Results run(const Problem& p, int way = -1) const {
    const Matrix A(matrix<Offset>(p));
    return run(Plan(Exec(), A.view(), options), p, way);
  }
  Results run(const Plan& plan, const Problem& p, int way = -1) const {
    const std::int64_t m = p.pattern.rows, n = p.pattern.cols,
                       nnz = static_cast<std::int64_t>(p.pattern.entries.size());
    const auto steps = [&](std::int64_t rows, std::int64_t columns, int shift) -> Steps {
      if (way < 0) return {0, rows * columns, columns, 1};
      auto ways = batch_steps<T>(p.heads, rows, columns);
      const std::int64_t row = (columns + 3) / 4 * 4 + 4;
      ways.push_back({4, rows * row, row, 1});  // rows that begin at multiples of four elements
      return ways[static_cast<std::size_t>(way + shift) % ways.size()];
    };
    const auto dense = [&](const std::vector<T>& data, std::int64_t rows, std::int64_t columns, int shift) {
      return Scattered<Exec, T>(data, p.heads, rows, columns, steps(rows, columns, shift), 77);
    };
    const auto unset = [&](std::int64_t rows, std::int64_t columns) {
      return std::vector<T>(static_cast<std::size_t>(p.heads * rows * columns), as<T>(55));
    };
    const auto vector_steps = [&](std::int64_t size) {
      return way < 0 ? Steps{0, size, 0, 1} : Steps{1, 2 * size + 3, 0, way % 2 + 1};
    };
    const auto q = dense(p.q, m, p.d, 0), k = dense(p.k, n, p.d, 1), v = dense(p.v, n, p.e, 2);
    const auto d_o = dense(p.d_o, m, p.e, 3), o = dense(unset(m, p.e), m, p.e, 4);
    const auto d_q = dense(unset(m, p.d), m, p.d, 3), d_k = dense(unset(n, p.d), n, p.d, 2);
    const auto d_v = dense(unset(n, p.e), n, p.e, 1);
    const Scattered<Exec, T> d_values(unset(1, nnz), p.heads, 1, nnz, vector_steps(nnz), 77);
    const Scattered<Exec, Sum> lse(std::vector<Sum>(static_cast<std::size_t>(p.heads * m), Sum(55)), p.heads, 1, m,
                                   vector_steps(m), 77);
    const Exec space;
    plan.apply(space, p.scale, q.batch(), k.batch(), v.batch(), o.batch(), lse.vectors());
    const auto backward = [&](const auto&... more) {
      plan.backward(space, p.scale, q.batch(), k.batch(), v.batch(), o.batch(), lse.vectors(), d_o.batch(), d_q.batch(),
                    d_k.batch(), d_v.batch(), more...);
    };
    if (options.values == AttentionValues::None) {
      backward();
    } else {
      backward(d_values.vectors());
    }
    space.fence();
    EXPECT_TRUE(o.intact() && lse.intact() && d_q.intact() && d_k.intact() && d_v.intact() && d_values.intact())
        << "something beside the results was written";
    return {o.read(), d_q.read(), d_k.read(), d_v.read(), d_values.read(), lse.read()};
  }

  /// Head by head against plain loops.
  void check(const Problem& p, const Results& r) const {
    const double u = TypeFacts<Sum>::roundoff(), w = sizeof(T) == 2 ? TypeFacts<T>::roundoff() : u;
    const double tiny = std::max(TypeFacts<T>::tiny(), 1e-30);
    const std::size_t m = static_cast<std::size_t>(p.pattern.rows), n = static_cast<std::size_t>(p.pattern.cols);
    const std::size_t d = static_cast<std::size_t>(p.d), e = static_cast<std::size_t>(p.e), nnz = p.values.size();
    for (std::size_t h = 0; h < static_cast<std::size_t>(p.heads); ++h) {
      SCOPED_TRACE("head " + std::to_string(h));
      AttentionProblem one;
      one.A = make_matrix<double, int>(p.pattern, Data::Real, 1);
      one.A.values = wide(p.values);
      one.kind = options.values;
      one.scale = static_cast<double>(static_cast<Sum>(p.scale));
      one.d = p.d;
      one.e = p.e;
      one.q = wide(part(p.q, h, m * d));
      one.k = wide(part(p.k, h, n * d));
      one.v = wide(part(p.v, h, n * e));
      one.d_o = wide(part(p.d_o, h, m * e));
      AttentionReference wanted(one, u, w, tiny, rounding);
      wanted.backward(backward_on_units(p.d, p.e) ? rounding : WeightRounding());
      expect("O", wanted.o, part(r.o, h, m * e));
      expect("log-sum-exp", wanted.lse, part(r.lse, h, m));
      expect("dQ", wanted.d_q, part(r.d_q, h, m * d));
      expect("dK", wanted.d_k, part(r.d_k, h, n * d));
      expect("dV", wanted.d_v, part(r.d_v, h, n * e));
      if (options.values != AttentionValues::None) expect("dA", wanted.d_values, part(r.d_values, h, nnz));
    }
  }
  void expect_right(const Problem& p, int way = -1) const { check(p, run(p, way)); }

  template <class O>
  static HostMatrix<T, O> matrix(const Problem& p) {
    HostMatrix<T, O> A = make_matrix<T, O>(p.pattern, Data::Real, 1);
    A.values = p.values;
    return A;
  }

 private:
  template <class V>
  static V part(const V& all, std::size_t h, std::size_t n) {
    return V(all.begin() + static_cast<std::ptrdiff_t>(h * n), all.begin() + static_cast<std::ptrdiff_t>((h + 1) * n));
  }
  template <class U>
  static void expect(const char* name, const AttentionWanted& wanted, const std::vector<U>& got) {
    ASSERT_EQ(wanted.value.size(), got.size()) << name;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Wide value = wanted.value[i], off = std::abs(Wide(wide(got[i])) - value);
      const bool same = wide(got[i]) == static_cast<double>(value);  // infinities
      ASSERT_TRUE(same || off <= wanted.bound[i])
          << name << ", number " << i << ": " << wide(got[i]) << ", must be " << static_cast<double>(value)
          << " within " << static_cast<double>(wanted.bound[i]);
    }
  }
};

/// What the typed tests of hosts and of devices share.
template <class Exec, class T>
class AttentionTest : public ::testing::Test {
 protected:
  using Suite = AttentionSuite<Exec, T>;
  /// f(suite) for both algorithms and every use of the values.
  template <class F>
  static void each(const F& f) {
    for (const auto algorithm : {AttentionAlgorithm::Fused, AttentionAlgorithm::Chain}) {
      for (const auto values : {AttentionValues::None, AttentionValues::Bias, AttentionValues::Scale}) {
        SCOPED_TRACE(std::string(to_string(algorithm)) + ", values " + std::to_string(static_cast<int>(values)));
        f(suite_of(algorithm, values));
      }
    }
  }
  /// On devices Fused is the backend's kernel where it takes the type (UnitAttentionCases.hpp); here the portable one.
  static Suite suite_of(AttentionAlgorithm algorithm, AttentionValues values) {
    Suite suite(algorithm, values);
    if (algorithm == AttentionAlgorithm::Fused) suite.options.backend = Backend::Kokkos;
    return suite;
  }
  /// Rows of every length up to 70: none, less than a block of entries, some blocks.
  static Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
  /// -inf as bias: some entries, and every entry of some rows.
  static void masked_entries_and_rows() {
    for (const auto algorithm : {AttentionAlgorithm::Fused, AttentionAlgorithm::Chain}) {
      const Suite suite = suite_of(algorithm, AttentionValues::Bias);
      auto p = suite.problem(mixed(), 2, 8, 16);
      const T minus = as<T>(-std::numeric_limits<double>::infinity());
      for (std::size_t e = 0; e < p.values.size(); e += 3) p.values[e] = minus;
      for (std::int64_t i = 0; i < p.pattern.rows; i += 5) {
        for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) p.values[e] = minus;
      }
      suite.expect_right(p);
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
