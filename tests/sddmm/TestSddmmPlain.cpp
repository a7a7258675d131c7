// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The sampled dense-dense product with numbers that fit on a sheet of paper: the place to begin reading.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "Tessera_Sddmm.hpp"

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
std::vector<double> numbers_of(const Vector<double>& v) { return {v.data(), v.data() + v.extent(0)}; }

//     [ 1  .  2  . ]        [ 1  1 ]        [ 1  0 ]
// S = [ .  3  .  . ]    X = [ 2  0 ]    Y = [ 5  5 ]    <X_0, Y_0> = 1, <X_0, Y_2> = 2, <X_1, Y_1> = 10, ...
//     [ 4  .  5  6 ]        [ 0 10 ]        [ 0  2 ]
//                                           [ 7  1 ]
/// The plan of S by the algorithm and backend at hand.
class SddmmPlain : public ::testing::TestWithParam<std::pair<Tessera::SddmmAlgorithm, Tessera::Backend>> {
 protected:
  using Matrix = Tessera::CsrView<double, int, int, Device>;

  Tessera::SddmmPlan<Matrix> plan(bool scale_by_values = false) const {
    Tessera::SddmmOptions o;
    o.algorithm = GetParam().first;
    o.backend = GetParam().second;
    o.scale_by_values = scale_by_values;
    return Tessera::SddmmPlan<Matrix>(Exec(), S, o);
  }

  Vector<int> row_map = vector_of<int>({0, 2, 3, 6}), entries = vector_of<int>({0, 2, 1, 0, 2, 3});
  Vector<double> values = vector_of<double>({1, 2, 3, 4, 5, 6});
  Matrix S = Tessera::csr_view(3, 4, row_map, entries, values);
  Dense X = dense_of({{1, 1}, {2, 0}, {0, 10}}), Y = dense_of({{1, 0}, {5, 5}, {0, 2}, {7, 1}});
  Vector<double> P = vector_of<double>({9, 9, 9, 9, 9, 9});
};

TEST_P(SddmmPlain, AProductPerEntry) {
  plan().apply(Exec(), X, Y, P);
  Exec().fence();
  EXPECT_EQ(numbers_of(P), (std::vector<double>{1, 2, 10, 0, 20, 10}));
}

TEST_P(SddmmPlain, TimesTheNumbersOfTheMatrix) {
  plan(true).apply(Exec(), X, Y, P);
  Exec().fence();
  EXPECT_EQ(numbers_of(P), (std::vector<double>{1, 4, 30, 0, 100, 60}));
}

TEST_P(SddmmPlain, ScaledAndAdded) {
  plan().apply(Exec(), Tessera::Op::NoTrans, 10, X, Y, -1, P);
  Exec().fence();
  EXPECT_EQ(numbers_of(P), (std::vector<double>{1, 11, 91, -9, 191, 91}));
}

TEST_P(SddmmPlain, YAsSecondFactorOfAProduct) {
  const Dense Z = dense_of({{1, 5, 0, 7}, {0, 5, 2, 1}});  // X Z has the inner products of rows of X and columns of Z
  plan().apply(Exec(), Tessera::Op::Trans, 1, X, Z, 0, P);
  Exec().fence();
  EXPECT_EQ(numbers_of(P), (std::vector<double>{1, 2, 10, 0, 20, 10}));
}

TEST_P(SddmmPlain, TheResultIsAMatrix) {
  plan().apply(Exec(), X, Y, P);
  const Matrix result = Tessera::csr_view(3, 4, row_map, entries, P);  // S's pattern with the new numbers
  Exec().fence();
  EXPECT_EQ(result.values()(4), 20);
}

using Tessera::Backend;
using Tessera::SddmmAlgorithm;
INSTANTIATE_TEST_SUITE_P(Everywhere, SddmmPlain,
                         ::testing::Values(std::make_pair(SddmmAlgorithm::Auto, Backend::Auto),
                                           std::make_pair(SddmmAlgorithm::Csr, Backend::Reference),
                                           std::make_pair(SddmmAlgorithm::Rows, Backend::Kokkos),
                                           std::make_pair(SddmmAlgorithm::Rows, Backend::EmulatedNvidia),
                                           std::make_pair(SddmmAlgorithm::Panels, Backend::EmulatedNvidia),
                                           std::make_pair(SddmmAlgorithm::Panels, Backend::EmulatedAmd)));

}  // namespace
