// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention on a sparse pattern with numbers that fit on a sheet of paper: the place to begin reading.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "Tessera_Attention.hpp"

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
template <class T>
using Vector = Kokkos::View<T*, Device>;
using Dense = Kokkos::View<double**, Kokkos::LayoutRight, Device>;
using Rows = std::vector<std::vector<double>>;

template <class T>
Vector<T> vector_of(const std::vector<T>& numbers) {
  Vector<T> v("numbers", numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) v(i) = numbers[i];
  return v;
}
Dense dense_of(const Rows& rows) {
  Dense d("dense", rows.size(), rows[0].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) d(i, j) = rows[i][j];
  }
  return d;
}
/// Softmax makes numbers that are not exact. With u = 2^-53: a score less its row's maximum, below ln 4 here, errs by 5
/// u ln 4 < 7 u (number of A, scale, product, sum, difference), its exponential by 4 u of itself more, and by as much
/// once more where the maximum grew meanwhile; the sum of three by 2 u, quotient and sum with V by 4 u. That is less
/// than 64 u of a sum of positive numbers, and 128 u of the sizes in a gradient, where two of these are subtracted.
constexpr double softmax_error = 64.0 / (std::int64_t{1} << 53), gradient_error = 2 * softmax_error;
void expect_rows(const Rows& wanted, const Dense& got) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t j = 0; j < wanted[i].size(); ++j) {
      EXPECT_NEAR(got(i, j), wanted[i][j], softmax_error * wanted[i][j]) << i << ", " << j;
    }
  }
}

//     [ x  .  x  . ]        [ 0 ]        [ 0 ]        [  10  1 ]
// A = [ .  x  .  . ]    Q = [ 1 ]    K = [ 5 ]    V = [  20  2 ]
//     [ .  .  .  . ]        [ 2 ]        [ 3 ]        [  30  3 ]
//     [ x  .  x  x ]        [ 1 ]        [ 0 ]        [ 100  4 ]
// Scores: row 0 has 0 and 0, row 1 has 5, row 3 has 0, 3 and 0. Values of A: 0, ln 3, 7, 0, -inf, ln 2.
class AttentionPlain : public ::testing::TestWithParam<Tessera::AttentionAlgorithm> {
 protected:
  using Matrix = Tessera::CsrView<double, int, int, Device>;

  Tessera::AttentionPlan<Matrix> plan(Tessera::AttentionValues values) const {
    Tessera::AttentionOptions options;
    options.algorithm = GetParam();
    options.values = values;
    options.prepare_backward = true;
    return {Exec(), A, options};
  }

  Vector<int> row_map = vector_of<int>({0, 2, 3, 3, 6}), entries = vector_of<int>({0, 2, 1, 0, 2, 3});
  Vector<double> values = vector_of<double>({0, std::log(3), 7, 0, -INFINITY, std::log(2)});
  Matrix A = Tessera::csr_view(4, 4, row_map, entries, values);
  Dense Q = dense_of({{0}, {1}, {2}, {1}}), K = dense_of({{0}, {5}, {3}, {0}});
  Dense V = dense_of({{10, 1}, {20, 2}, {30, 3}, {100, 4}});
  Dense O = dense_of({{9, 9}, {9, 9}, {9, 9}, {9, 9}});
  Vector<double> lse = vector_of<double>({9, 9, 9, 9});
};

TEST_P(AttentionPlain, EqualScoresAverage) {
  plan(Tessera::AttentionValues::None).apply(Exec(), 0, Q, K, V, O);  // scale 0: all scores are 0
  Exec().fence();
  expect_rows({{20, 2}, {20, 2}, {0, 0}, {140.0 / 3, 8.0 / 3}}, O);
}

TEST_P(AttentionPlain, LargerScoresWeighMore) {
  plan(Tessera::AttentionValues::None).apply(Exec(), std::log(2) / 3, Q, K, V, O, lse);  // row 3: weights 1, 2, 1
  Exec().fence();
  expect_rows({{20, 2}, {20, 2}, {0, 0}, {42.5, 2.75}}, O);
  EXPECT_NEAR(lse(3), std::log(4), softmax_error * std::log(4));
  EXPECT_EQ(lse(2), -INFINITY);
}

TEST_P(AttentionPlain, ABiasAddsAndMasks) {
  plan(Tessera::AttentionValues::Bias).apply(Exec(), 1, Q, K, V, O);  // weights 1 : 3, 1, and 1 : masked : 2
  Exec().fence();
  expect_rows({{25, 2.5}, {20, 2}, {0, 0}, {70, 3}}, O);
}

TEST_P(AttentionPlain, AScaleMultiplies) {
  const Vector<double> half = vector_of<double>({1, 1, 1, 1, 0.5, 1});
  Tessera::AttentionPlan<Matrix> scaled = plan(Tessera::AttentionValues::Scale);
  scaled.update_values(Exec(), half);
  scaled.apply(Exec(), 2 * std::log(2) / 3, Q, K, V, O);  // row 3: weights 1, 2, 1
  Exec().fence();
  expect_rows({{20, 2}, {20, 2}, {0, 0}, {42.5, 2.75}}, O);
}

// dO of 1 in row 0, column 0: dV gets the weights 1/4 and 3/4, dS = P (V - O) = 1/4 (10 - 25) and 3/4 (30 - 25).
TEST_P(AttentionPlain, Gradients) {
  const auto attention = plan(Tessera::AttentionValues::Bias);
  attention.apply(Exec(), 2, Q, K, V, O, lse);
  const Dense dO = dense_of({{1, 0}, {0, 0}, {0, 0}, {0, 0}});
  const Dense dQ = dense_of({{9}, {9}, {9}, {9}}), dK = dense_of({{9}, {9}, {9}, {9}});
  const Dense dV = dense_of({{9, 9}, {9, 9}, {9, 9}, {9, 9}});
  const Vector<double> dA = vector_of<double>({9, 9, 9, 9, 9, 9});
  attention.backward(Exec(), 2, Q, K, V, O, lse, dO, dQ, dK, dV, dA);
  Exec().fence();
  expect_rows({{0.25, 0}, {0, 0}, {0.75, 0}, {0, 0}}, dV);
  // Scale times the sum of dS K, of sizes 2 * 3/4 (30 + 25) * 3.
  EXPECT_NEAR(dQ(0, 0), 2 * 3.75 * 3, gradient_error * 247.5);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(dQ(i, 0), 0) << i;
  expect_rows({{0}, {0}, {0}, {0}}, dK);  // Q_0 is 0
  const std::vector<double> by_bias = {-3.75, 3.75, 0, 0, 0, 0};
  const std::vector<double> sizes = {0.25 * (10 + 25), 0.75 * (30 + 25), 0, 0, 0, 0};
  for (std::size_t e = 0; e < 6; ++e) EXPECT_NEAR(dA(e), by_bias[e], gradient_error * sizes[e]) << e;
}

INSTANTIATE_TEST_SUITE_P(Everywhere, AttentionPlain,
                         ::testing::Values(Tessera::AttentionAlgorithm::Auto, Tessera::AttentionAlgorithm::Fused,
                                           Tessera::AttentionAlgorithm::Chain));

}  // namespace
