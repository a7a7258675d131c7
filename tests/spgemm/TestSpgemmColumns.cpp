// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Columns of other types than int, whose plans are compiled here. Unsigned ones have no negative number to say "none".

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "Tessera_Spgemm.hpp"

namespace Tessera {
namespace Testing {
namespace SpgemmOfColumns {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;

constexpr int size = 70;

/// Rows of 0, 1, ... 4 entries with columns that ascend: row i has columns i, i + 7, ... modulo `size`.
std::vector<int> columns_of(int row) {
  std::vector<int> columns;
  for (int k = 0; k < row % 5; ++k) columns.push_back((row + 7 * k) % size);
  std::sort(columns.begin(), columns.end());
  return columns;
}
double value_of(int row, int column) { return (3 * row + column) % 11 - 5; }

template <class Columns, class Offset>
auto matrix() {
  std::vector<Offset> row_map{0};
  std::vector<Columns> entries;
  std::vector<double> values;
  for (int row = 0; row < size; ++row) {
    for (const int column : columns_of(row)) {
      entries.push_back(static_cast<Columns>(column));
      values.push_back(value_of(row, column));
    }
    row_map.push_back(static_cast<Offset>(entries.size()));
  }
  const auto view = [](const auto& numbers) {
    Kokkos::View<typename std::decay_t<decltype(numbers)>::value_type*, Device> v("numbers", numbers.size());
    std::copy(numbers.begin(), numbers.end(), v.data());
    return v;
  };
  return Tessera::csr_view(Columns(size), Columns(size), view(row_map), view(entries), view(values));
}

template <class Types>
class SpgemmColumns : public ::testing::Test {};
using ColumnTypes = ::testing::Types<std::pair<unsigned, int>, std::pair<std::uint64_t, std::uint32_t>>;
TYPED_TEST_SUITE(SpgemmColumns, ColumnTypes);

/// Whole numbers: exact, whatever the order of sums.
TYPED_TEST(SpgemmColumns, EveryMethod) {
  const auto A = matrix<typename TypeParam::first_type, typename TypeParam::second_type>();
  for (const auto algorithm :
       {SpgemmAlgorithm::Auto, SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash, SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo,
        SpgemmAlgorithm::Binned, SpgemmAlgorithm::Dia, SpgemmAlgorithm::Ell}) {
    SCOPED_TRACE(to_string(algorithm));
    Tessera::SpgemmOptions options;
    options.algorithm = algorithm;
    const auto C = Tessera::spgemm(Exec(), A, A, options);
    ASSERT_EQ(C.row_map().extent(0), std::size_t(size + 1));
    for (int row = 0; row < size; ++row) {
      double wanted[size] = {}, found[size] = {};
      bool has[size] = {};
      for (const int k : columns_of(row)) {
        for (const int column : columns_of(k)) {
          wanted[column] += value_of(row, k) * value_of(k, column);
          has[column] = true;
        }
      }
      const auto first = static_cast<std::size_t>(C.row_map()(row)),
                 end = static_cast<std::size_t>(C.row_map()(row + 1));
      ASSERT_EQ(static_cast<std::ptrdiff_t>(end - first), std::count(has, has + size, true)) << "row " << row;
      for (std::size_t e = first; e < end; ++e) {
        ASSERT_LT(C.entries()(e), static_cast<typename TypeParam::first_type>(size));
        found[C.entries()(e)] = C.values()(e);
      }
      for (int column = 0; column < size; ++column) EXPECT_EQ(found[column], wanted[column]) << row << ", " << column;
    }
  }
}

// Unsigned offsets of 32 bits: as many entries as signed ones count, since backends write no others.
TEST(SpgemmOffsets, TooManyEntriesForUnsignedOnes) {
  constexpr std::uint32_t side = 46342;  // squared: just above 2^31
  using Matrix = CsrView<double, std::uint64_t, std::uint32_t, Device>;
  const Kokkos::View<std::uint32_t*, Device> ascending("ascending", side + 1), two("two", 2), row_map("C", side + 1);
  const Kokkos::View<std::uint64_t*, Device> zeros("zeros", side), columns("columns", side);
  const Kokkos::View<double*, Device> values("values", side);
  for (std::uint32_t i = 0; i <= side; ++i) ascending(i) = i;
  for (std::uint32_t i = 0; i < side; ++i) columns(i) = i;
  two(1) = side;
  Kokkos::deep_copy(row_map, 5u);
  SpgemmPlan<Matrix> plan(Exec(), Matrix(side, 1, ascending, zeros, values), Matrix(1, side, two, columns, values));
  EXPECT_THROW(plan.symbolic(Exec(), row_map), NotSupported);
  EXPECT_EQ(row_map(0), 5u);
  // What backends read of A and B.
  const std::uint32_t offsets[] = {0, 3'000'000'000u};
  EXPECT_EQ((Tessera::SpgemmOffsets{offsets, false}(1)), 3'000'000'000);
}

}  // namespace SpgemmOfColumns
}  // namespace Testing
}  // namespace Tessera
