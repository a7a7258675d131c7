// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The sparse matrix-vector product with numbers that fit on a sheet of paper: the place to begin reading.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "Tessera_Spmv.hpp"

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
template <class T>
using Vector = Kokkos::View<T*, Device>;
using Numbers = std::vector<double>;

template <class T>
Vector<T> vector_of(const std::vector<T>& numbers) {
  Vector<T> v("numbers", numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) v(i) = numbers[i];
  return v;
}
template <class T>
std::vector<T> numbers_of(const Vector<T>& v) {
  return std::vector<T>(v.data(), v.data() + v.extent(0));
}

//     [ 1  .  2  . ]
// A = [ .  3  .  . ]    in compressed rows: where each row begins, the column of each entry, its value
//     [ 4  .  5  6 ]
/// The matrix, and a plan of it by the algorithm and backend at hand.
class SpmvPlain : public ::testing::TestWithParam<std::pair<Tessera::SpmvAlgorithm, Tessera::Backend>> {
 protected:
  using Matrix = Tessera::CsrView<double, int, int, Device>;

  Tessera::SpmvOptions options() const {
    Tessera::SpmvOptions o;
    o.algorithm = GetParam().first;
    o.backend = GetParam().second;
    o.prepare_transpose = true;  // for y = A^T x
    return o;
  }

  Vector<int> row_map = vector_of<int>({0, 2, 3, 6}), entries = vector_of<int>({0, 2, 1, 0, 2, 3});
  Vector<double> values = vector_of<double>({1, 2, 3, 4, 5, 6});
  Matrix A = Tessera::csr_view(3, 4, row_map, entries, values);
  Tessera::SpmvPlan<Matrix> plan{Exec(), A, options()};
  Vector<double> x = vector_of<double>({1, 2, 3, 4});
};

TEST_P(SpmvPlain, Product) {
  const Vector<double> y("y", 3);
  plan.apply(Exec(), x, y);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{7, 6, 43}));
}

// y = 2 A x - y.
TEST_P(SpmvPlain, AlphaAndBeta) {
  const Vector<double> y = vector_of<double>({100, 200, 300});
  plan.apply(Exec(), Tessera::Op::NoTrans, 2, x, -1, y);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{-86, -188, -214}));
}

// beta = 0 overwrites y, whatever it holds.
TEST_P(SpmvPlain, BetaZeroDoesNotReadY) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Vector<double> y = vector_of<double>({nan, nan, nan});
  plan.apply(Exec(), Tessera::Op::NoTrans, 1, x, 0, y);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{7, 6, 43}));
}

TEST_P(SpmvPlain, Transpose) {
  const Vector<double> z = vector_of<double>({1, 2, 3}), y("y", 4);
  plan.apply(Exec(), Tessera::Op::Trans, 1, z, 0, y);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{13, 6, 17, 18}));
}

// Other numbers at the same places.
TEST_P(SpmvPlain, UpdateValues) {
  const Vector<double> tens = vector_of<double>({10, 20, 30, 40, 50, 60}), z = vector_of<double>({1, 2, 3});
  const Vector<double> y("y", 3), t("t", 4);
  plan.update_values(Exec(), tens);
  plan.apply(Exec(), x, y);
  plan.apply(Exec(), Tessera::Op::Trans, 1, z, 0, t);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{70, 60, 430}));
  EXPECT_EQ(numbers_of(t), (Numbers{130, 60, 170, 180}));
}

using Tessera::Backend;
using Tessera::SpmvAlgorithm;
INSTANTIATE_TEST_SUITE_P(Hosts, SpmvPlain,
                         ::testing::Values(std::make_pair(SpmvAlgorithm::Auto, Backend::Auto),
                                           std::make_pair(SpmvAlgorithm::Csr, Backend::Auto),
                                           std::make_pair(SpmvAlgorithm::Csr, Backend::Reference),
                                           std::make_pair(SpmvAlgorithm::Csr5, Backend::Auto),
                                           std::make_pair(SpmvAlgorithm::PackedSlices, Backend::Auto),
                                           std::make_pair(SpmvAlgorithm::PackedSlices, Backend::EmulatedNvidia),
                                           std::make_pair(SpmvAlgorithm::PackedSlices, Backend::EmulatedAmd),
                                           std::make_pair(SpmvAlgorithm::Dasp, Backend::EmulatedNvidia),
                                           std::make_pair(SpmvAlgorithm::Dasp, Backend::EmulatedAmd)),
                         [](const auto& way) {
                           std::string name =
                               std::string(to_string(way.param.first)) + "_" + to_string(way.param.second);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// Without a plan, in one call, and with numbers of other types: sums are formed in the widest.
TEST(SpmvPlainOneCall, FloatMatrixDoubleVectors) {
  const auto row_map = vector_of<int>({0, 2, 3, 6}), entries = vector_of<int>({0, 2, 1, 0, 2, 3});
  const auto values = vector_of<float>({1, 2, 3, 4, 5, 6});
  const auto x = vector_of<double>({1, 2, 3, 4});
  const Vector<double> y("y", 3);
  spmv(Exec(), "N", 1, Tessera::csr_view(3, 4, row_map, entries, values), x, 0, y);
  Exec().fence();
  EXPECT_EQ(numbers_of(y), (Numbers{7, 6, 43}));
}

}  // namespace
