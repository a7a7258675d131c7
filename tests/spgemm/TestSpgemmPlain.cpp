// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The sparse matrix product with numbers that fit on a sheet of paper: the place to begin reading.

#include <gtest/gtest.h>

#include <vector>

#include "Tessera_Spgemm.hpp"

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
using Matrix = Tessera::CsrView<double, int, int, Device>;
template <class T>
using Vector = Kokkos::View<T*, Device>;

template <class T>
Vector<T> vector_of(const std::vector<T>& numbers) {
  Vector<T> v("numbers", numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) v(i) = numbers[i];
  return v;
}
template <class View>
auto numbers_of(const View& v) {
  return std::vector<typename View::non_const_value_type>(v.data(), v.data() + v.extent(0));
}
Matrix matrix(int rows, int cols, const std::vector<int>& row_map, const std::vector<int>& entries,
              const std::vector<double>& values) {
  return Tessera::csr_view(rows, cols, vector_of(row_map), vector_of(entries), vector_of(values));
}

//     [ 1  .  2 ]        [ .  1  .  . ]         [ 6  1  .  . ]
// A = [ .  .  . ]    B = [ 5  .  .  7 ]   A B = [ .  .  .  . ]
//     [ .  3  4 ]        [ 3  .  .  . ]         [27  .  . 21 ]
Matrix A() { return matrix(3, 3, {0, 2, 2, 4}, {0, 2, 1, 2}, {1, 2, 3, 4}); }
Matrix B() { return matrix(3, 4, {0, 1, 3, 4}, {1, 0, 3, 0}, {1, 5, 7, 3}); }

class SpgemmPlain : public ::testing::TestWithParam<Tessera::SpgemmAlgorithm> {
 protected:
  static Tessera::SpgemmOptions options() {
    Tessera::SpgemmOptions o;
    o.algorithm = GetParam();
    return o;
  }
};

TEST_P(SpgemmPlain, InOneCall) {
  const Matrix C = Tessera::spgemm(Exec(), A(), B(), options());
  EXPECT_EQ(C.rows(), 3);
  EXPECT_EQ(C.cols(), 4);
  EXPECT_EQ(numbers_of(C.row_map()), (std::vector<int>{0, 2, 2, 4}));
  EXPECT_EQ(numbers_of(C.entries()), (std::vector<int>{0, 1, 0, 3}));
  EXPECT_EQ(numbers_of(C.values()), (std::vector<double>{6, 1, 27, 21}));
}

TEST_P(SpgemmPlain, InTwoPhases) {
  Tessera::SpgemmPlan<Matrix> plan(Exec(), A(), B(), options());
  EXPECT_EQ(plan.products(), 5);
  const Vector<int> row_map("row_map", 4);
  ASSERT_EQ(plan.symbolic(Exec(), row_map), 4);
  const Vector<int> entries("entries", 4);
  const Vector<double> values("values", 4);
  plan.numeric(Exec(), row_map, entries, values);
  EXPECT_EQ(numbers_of(entries), (std::vector<int>{0, 1, 0, 3}));
  EXPECT_EQ(numbers_of(values), (std::vector<double>{6, 1, 27, 21}));
}

TEST_P(SpgemmPlain, NewNumbersInTheSamePattern) {
  const auto a = vector_of<double>({1, 2, 3, 4});
  const Matrix old = A(), left = Tessera::csr_view(3, 3, old.row_map(), old.entries(), a), right = B();
  Tessera::SpgemmPlan<Matrix> plan(Exec(), left, right, options());
  const Vector<int> row_map("row_map", 4), entries("entries", 4);
  const Vector<double> values("values", 4);
  plan.symbolic(Exec(), row_map);
  plan.numeric(Exec(), row_map, entries, values);
  for (std::size_t i = 0; i < 4; ++i) a(i) *= 10;
  plan.update_values(Exec(), left, right, row_map, entries, values);
  EXPECT_EQ(numbers_of(values), (std::vector<double>{60, 10, 270, 210}));
}

TEST_P(SpgemmPlain, WhatCancelsStays) {
  const Matrix one = matrix(1, 2, {0, 2}, {0, 1}, {1, -1}), two = matrix(2, 1, {0, 1, 2}, {0, 0}, {3, 3});
  const Matrix C = Tessera::spgemm(Exec(), one, two, options());
  EXPECT_EQ(numbers_of(C.entries()), std::vector<int>{0});
  EXPECT_EQ(numbers_of(C.values()), std::vector<double>{0});
}

TEST_P(SpgemmPlain, RepeatedColumnsAddUp) {
  const Matrix twice = matrix(1, 3, {0, 3}, {2, 0, 2}, {1, 1, 1});  // the same as [1 . 2]
  if (GetParam() == Tessera::SpgemmAlgorithm::Dia) {                // which has one number per place
    EXPECT_THROW(Tessera::spgemm(Exec(), twice, B(), options()), Tessera::NotSupported);
    return;
  }
  const Matrix C = Tessera::spgemm(Exec(), twice, B(), options());
  EXPECT_EQ(numbers_of(C.entries()), (std::vector<int>{0, 1}));
  EXPECT_EQ(numbers_of(C.values()), (std::vector<double>{6, 1}));
}

using Tessera::SpgemmAlgorithm;
INSTANTIATE_TEST_SUITE_P(EveryMethod, SpgemmPlain,
                         ::testing::Values(SpgemmAlgorithm::Auto, SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash,
                                           SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo, SpgemmAlgorithm::Dia,
                                           SpgemmAlgorithm::Ell),
                         [](const auto& info) { return Tessera::to_string(info.param); });

}  // namespace
