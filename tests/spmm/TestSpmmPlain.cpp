// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The sparse matrix-matrix product with numbers that fit on a sheet of paper: the place to begin reading.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Spmm.hpp"

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
template <class T>
using Vector = Kokkos::View<T*, Device>;
using Rows = std::vector<std::vector<double>>;
using RowMajor = Kokkos::View<double**, Kokkos::LayoutRight, Device>;
using ColumnMajor = Kokkos::View<double**, Kokkos::LayoutLeft, Device>;

template <class T>
Vector<T> vector_of(const std::vector<T>& numbers) {
  Vector<T> v("numbers", numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) v(i) = numbers[i];
  return v;
}
template <class Dense = RowMajor>
Dense dense_of(const Rows& rows) {
  Dense d("dense", rows.size(), rows[0].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) d(i, j) = rows[i][j];
  }
  return d;
}
template <class Dense>
Rows rows_of(const Dense& d) {
  Rows rows(d.extent(0), std::vector<double>(d.extent(1)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) rows[i][j] = d(i, j);
  }
  return rows;
}

//     [ 1  .  2  . ]
// A = [ .  3  .  . ]    in compressed rows: where each row begins, the column of each entry, its value
//     [ 4  .  5  6 ]
const Rows B = {{1, 10}, {2, 20}, {3, 30}, {4, 40}};
const Rows AB = {{7, 70}, {6, 60}, {43, 430}};

/// The matrix, and a plan of it by the algorithm and backend at hand.
class SpmmPlain : public ::testing::TestWithParam<std::pair<Tessera::SpmmAlgorithm, Tessera::Backend>> {
 protected:
  using Matrix = Tessera::CsrView<double, int, int, Device>;

  Tessera::SpmmOptions options() const {
    Tessera::SpmmOptions o;
    o.algorithm = GetParam().first;
    o.backend = GetParam().second;
    o.prepare_transpose = true;  // for C = A^T B
    return o;
  }

  Vector<int> row_map = vector_of<int>({0, 2, 3, 6}), entries = vector_of<int>({0, 2, 1, 0, 2, 3});
  Vector<double> values = vector_of<double>({1, 2, 3, 4, 5, 6});
  Matrix A = Tessera::csr_view(3, 4, row_map, entries, values);
  Tessera::SpmmPlan<Matrix> plan{Exec(), A, options()};
  RowMajor b = dense_of(B);
};

TEST_P(SpmmPlain, Product) {
  const RowMajor C("C", 3, 2);
  plan.apply(Exec(), b, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), AB);
}

TEST_P(SpmmPlain, LayoutLeft) {
  const ColumnMajor left = dense_of<ColumnMajor>(B), C("C", 3, 2);
  plan.apply(Exec(), left, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), AB);
}

// Into the middle columns of a larger matrix; those beside them stay.
TEST_P(SpmmPlain, SubViews) {
  const RowMajor from = dense_of({{-1, 1, 10, -1}, {-1, 2, 20, -1}, {-1, 3, 30, -1}, {-1, 4, 40, -1}});
  const RowMajor to = dense_of({{5, 5, 5, 5}, {5, 5, 5, 5}, {5, 5, 5, 5}});
  const auto middle = std::make_pair(1, 3);
  plan.apply(Exec(), Kokkos::subview(from, Kokkos::ALL(), middle), Kokkos::subview(to, Kokkos::ALL(), middle));
  Exec().fence();
  EXPECT_EQ(rows_of(to), (Rows{{5, 7, 70, 5}, {5, 6, 60, 5}, {5, 43, 430, 5}}));
}

// C = 2 A B - C.
TEST_P(SpmmPlain, AlphaAndBeta) {
  const RowMajor C = dense_of({{100, 1}, {200, 2}, {300, 3}});
  plan.apply(Exec(), Tessera::Op::NoTrans, 2, b, -1, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), (Rows{{-86, 139}, {-188, 118}, {-214, 857}}));
}

// beta = 0 overwrites C, whatever it holds.
TEST_P(SpmmPlain, BetaZeroDoesNotReadC) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RowMajor C = dense_of({{nan, nan}, {nan, nan}, {nan, nan}});
  plan.apply(Exec(), Tessera::Op::NoTrans, 1, b, 0, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), AB);
}

TEST_P(SpmmPlain, Transpose) {
  const RowMajor z = dense_of({{1, 10}, {2, 20}, {3, 30}}), C("C", 4, 2);
  plan.apply(Exec(), Tessera::Op::Trans, 1, z, 0, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), (Rows{{13, 130}, {6, 60}, {17, 170}, {18, 180}}));
}

// Other numbers at the same places.
TEST_P(SpmmPlain, UpdateValues) {
  const Vector<double> negative = vector_of<double>({-1, -2, -3, -4, -5, -6});
  const RowMajor C("C", 3, 2);
  plan.update_values(Exec(), negative);
  plan.apply(Exec(), b, C);
  Exec().fence();
  EXPECT_EQ(rows_of(C), (Rows{{-7, -70}, {-6, -60}, {-43, -430}}));
}

using Tessera::Backend;
using Tessera::SpmmAlgorithm;
INSTANTIATE_TEST_SUITE_P(Hosts, SpmmPlain,
                         ::testing::Values(std::make_pair(SpmmAlgorithm::Auto, Backend::Auto),
                                           std::make_pair(SpmmAlgorithm::Auto, Backend::Reference),
                                           std::make_pair(SpmmAlgorithm::Csr, Backend::Auto),
                                           std::make_pair(SpmmAlgorithm::GeSpmm, Backend::Auto),
                                           std::make_pair(SpmmAlgorithm::GeSpmm, Backend::EmulatedNvidia),
                                           std::make_pair(SpmmAlgorithm::GeSpmm, Backend::EmulatedAmd),
                                           std::make_pair(SpmmAlgorithm::Panels, Backend::EmulatedNvidia),
                                           std::make_pair(SpmmAlgorithm::Panels, Backend::EmulatedAmd)),
                         [](const auto& way) {
                           std::string name =
                               std::string(to_string(way.param.first)) + "_" + to_string(way.param.second);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
