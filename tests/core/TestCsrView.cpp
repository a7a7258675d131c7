// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Config.hpp"
#include "Tessera_CsrView.hpp"

#if defined(TESSERA_HAVE_KOKKOSKERNELS) && defined(__has_include)
#if __has_include(<KokkosSparse_CrsMatrix.hpp>)
#include <KokkosSparse_CrsMatrix.hpp>
#define TESSERA_TEST_CRS_MATRIX 1
#endif
#endif

namespace Tessera {
namespace {

using Host = Kokkos::DefaultHostExecutionSpace;
using Device = Host::device_type;
template <class T>
using Array = Kokkos::View<T*, Device>;

template <class T>
Array<T> array(const std::vector<T>& values) {
  Array<T> a("array", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) a(i) = values[i];
  return a;
}

/// What a call throws: the exception's text, checked for its class and for the numbers it must name.
template <class Exception, class F>
void expect_throw(F&& f, const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown; expected a message with '" << parts.front() << "'";
  } catch (const Exception& e) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "'" << e.what() << "' lacks '" << part << "'";
    }
  }
}

/// 3 x 4:  [1 . 2 .; . . . .; . 3 . 4]
template <class Scalar, class Ordinal, class Offset>
struct Sample {
  Array<Offset> row_map = array<Offset>({0, 2, 2, 4});
  Array<Ordinal> entries = array<Ordinal>({0, 2, 1, 3});
  Array<Scalar> values = array<Scalar>({Scalar(1.0f), Scalar(2.0f), Scalar(3.0f), Scalar(4.0f)});
  auto view() const { return csr_view(Ordinal(3), Ordinal(4), row_map, entries, values); }
};

template <class S, class O, class F>
struct Types {
  using Scalar = S;
  using Ordinal = O;
  using Offset = F;
};
template <class T>
class CsrViewTest : public testing::Test {};
using Combinations = testing::Types<Types<double, int, int>, Types<double, int, std::int64_t>,
                                    Types<double, int, std::size_t>, Types<float, std::int64_t, std::size_t>,
                                    Types<half_t, unsigned, unsigned>, Types<bhalf_t, short, long long>>;
TYPED_TEST_SUITE(CsrViewTest, Combinations);

TYPED_TEST(CsrViewTest, KeepsPointersTypesAndSizes) {
  using S = typename TypeParam::Scalar;
  using O = typename TypeParam::Ordinal;
  using F = typename TypeParam::Offset;
  const Sample<S, O, F> m;
  const int users = m.values.use_count();
  const auto A = m.view();
  static_assert(std::is_same_v<std::decay_t<decltype(A)>, CsrView<S, O, F, typename Array<S>::device_type>>,
                "types are taken over as they are");
  EXPECT_EQ(A.rows(), O(3));
  EXPECT_EQ(A.cols(), O(4));
  EXPECT_EQ(A.nnz(), 4u);
  EXPECT_EQ(A.row_map().data(), m.row_map.data());
  EXPECT_EQ(A.entries().data(), m.entries.data());
  EXPECT_EQ(A.values().data(), m.values.data());
  EXPECT_EQ(A.row_map().extent(0), 4u);
  EXPECT_EQ(A.values().extent(0), 4u);
  EXPECT_EQ(m.values.use_count(), users + 1) << "the view owns what its caller owns";
  const auto copy = A;
  EXPECT_EQ(copy.values().data(), m.values.data());
  EXPECT_TRUE(validate(Host(), A).valid) << validate(Host(), A).fault;
}

// Memory that belongs to somebody else stays theirs.
TYPED_TEST(CsrViewTest, UnmanagedArraysStayTheCallers) {
  using S = typename TypeParam::Scalar;
  using O = typename TypeParam::Ordinal;
  using F = typename TypeParam::Offset;
  const Sample<S, O, F> m;
  const int users = m.values.use_count();
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const Kokkos::View<const F*, Device, Unmanaged> row_map(m.row_map.data(), 4);
  const Kokkos::View<const O*, Device, Unmanaged> entries(m.entries.data(), 4);
  const Kokkos::View<const S*, Device, Unmanaged> values(m.values.data(), 4);
  const auto A = csr_view(O(3), O(4), row_map, entries, values);
  EXPECT_EQ(A.values().data(), m.values.data());
  EXPECT_EQ(m.values.use_count(), users);
  EXPECT_EQ(A.values().use_count(), 0);
}

TYPED_TEST(CsrViewTest, ConstArraysAreTakenToo) {
  using S = typename TypeParam::Scalar;
  using O = typename TypeParam::Ordinal;
  using F = typename TypeParam::Offset;
  const Sample<S, O, F> m;
  const Kokkos::View<const F*, Device> row_map = m.row_map;
  const Kokkos::View<const O*, Device> entries = m.entries;
  const Kokkos::View<const S*, Device> values = m.values;
  const auto A = csr_view(O(3), O(4), row_map, entries, values);
  static_assert(std::is_same_v<typename std::decay_t<decltype(A)>::value_type, S>, "without const");
  EXPECT_EQ(A.values().data(), m.values.data());
}

using Plain = CsrView<double, int, int, Device>;

TEST(CsrView, DefaultIsEmptyAndValid) {
  const Plain A;
  EXPECT_EQ(A.rows(), 0);
  EXPECT_EQ(A.cols(), 0);
  EXPECT_EQ(A.nnz(), 0u);
  EXPECT_TRUE(validate(Host(), A).valid);
}

TEST(CsrView, NoRowsWithOrWithoutRowMap) {
  const auto none = array<int>({}), zero = array<int>({0});
  const auto values = array<double>({});
  EXPECT_TRUE(validate(Host(), csr_view(0, 5, none, none, values)).valid);
  EXPECT_TRUE(validate(Host(), csr_view(0, 5, zero, none, values)).valid);
  EXPECT_EQ(csr_view(0, 5, zero, none, values).cols(), 5);
}

TEST(CsrView, ConstructorErrors) {
  const Sample<double, int, int> m;
  expect_throw<InvalidArgument>([&] { csr_view(-3, 4, m.row_map, m.entries, m.values); }, {"negative", "-3 x 4"});
  expect_throw<InvalidArgument>([&] { csr_view(3, -4, m.row_map, m.entries, m.values); }, {"negative", "3 x -4"});
  expect_throw<DimensionMismatch>([&] { csr_view(2, 4, m.row_map, m.entries, m.values); },
                                  {"row_map has 4 elements", "2 rows need 3"});
  expect_throw<DimensionMismatch>([&] { csr_view(4, 4, m.row_map, m.entries, m.values); },
                                  {"row_map has 4 elements", "4 rows need 5"});
  expect_throw<DimensionMismatch>([&] { csr_view(3, 4, array<int>({}), m.entries, m.values); },
                                  {"row_map has 0 elements", "3 rows need 4"});
  expect_throw<DimensionMismatch>(
      [&] {
        csr_view(3, 4, m.row_map, m.entries, array<double>({1, 2, 3}));
      },
      {"entries has 4 elements", "values has 3"});
  expect_throw<DimensionMismatch>([&] { csr_view(0, 4, m.row_map, m.entries, m.values); }, {"0 rows need 1"});
}

TEST(CsrView, SizesBeyondThirtyOneBits) {
  using Wide = CsrView<double, std::int64_t, std::int64_t, Device>;
  const Array<std::int64_t> none("none", 0);
  const Array<double> values("values", 0);
  const std::int64_t limit = 2147483647;
  const Wide widest(0, limit, Wide::row_map_type(none.data(), 0), Wide::entries_type(none.data(), 0),
                    Wide::values_type(values.data(), 0));
  EXPECT_EQ(widest.cols(), limit);
  expect_throw<InvalidArgument>([&] { csr_view(std::int64_t{0}, limit + 1, none, none, values); },
                                {"2^31 - 1", "0 x 2147483648"});
  expect_throw<InvalidArgument>([&] { csr_view(limit + 1, std::int64_t{1}, none, none, values); },
                                {"2^31 - 1", "2147483648 x 1"});
  const Array<unsigned> unsigned_none("none", 0);
  expect_throw<InvalidArgument>([&] { csr_view(0u, 4294967295u, none, unsigned_none, values); },
                                {"2^31 - 1", "0 x 4294967295"});
}

TEST(CsrView, NullArrays) {
  const Sample<double, int, int> m;
  const Plain::row_map_type row_map(m.row_map.data(), 4);
  const Plain::entries_type entries(m.entries.data(), 4);
  const Plain::values_type values(m.values.data(), 4);
  expect_throw<InvalidArgument>([&] { Plain(3, 4, Plain::row_map_type(nullptr, 4), entries, values); }, {"null"});
  expect_throw<InvalidArgument>([&] { Plain(3, 4, row_map, Plain::entries_type(nullptr, 4), values); }, {"null"});
  expect_throw<InvalidArgument>([&] { Plain(3, 4, row_map, entries, Plain::values_type(nullptr, 4)); }, {"null"});
}

TEST(CsrView, MoreEntriesThanTheOffsetTypeCounts) {
  // Never read: only the extents count. The offset type is 32 bits, the entries are 2^31.
  const Sample<double, int, int> m;
  const std::size_t many = std::size_t{1} << 31;
  expect_throw<InvalidArgument>(
      [&] {
        Plain(3, 4, Plain::row_map_type(m.row_map.data(), 4), Plain::entries_type(m.entries.data(), many),
              Plain::values_type(m.values.data(), many));
      },
      {"2147483648 entries do not fit"});
}

/// The members a CrsMatrix of any library has.
struct LookAlike {
  struct Graph {
    Kokkos::View<const std::size_t*, Device> row_map;
    Kokkos::View<int*, Device> entries;
  } graph;
  Kokkos::View<double*, Device> values;
  int numRows() const { return 3; }
  int numCols() const { return 4; }
};

TEST(CsrView, FromAnythingThatLooksLikeACrsMatrix) {
  const Sample<double, int, std::size_t> m;
  const LookAlike matrix{{m.row_map, m.entries}, m.values};
  const auto A = csr_view(matrix);
  static_assert(std::is_same_v<std::decay_t<decltype(A)>::size_type, std::size_t>, "the graph's own offset type");
  EXPECT_EQ(A.rows(), 3);
  EXPECT_EQ(A.cols(), 4);
  EXPECT_EQ(A.row_map().data(), m.row_map.data());
  EXPECT_EQ(A.entries().data(), m.entries.data());
  EXPECT_EQ(A.values().data(), m.values.data());
}

#ifdef TESSERA_TEST_CRS_MATRIX
TEST(CsrView, FromKokkosSparseCrsMatrix) {
  using Matrix = KokkosSparse::CrsMatrix<double, int, Device, void, int>;
  Array<int> row_map = array<int>({0, 2, 2, 4});
  Array<int> entries = array<int>({0, 2, 1, 3});
  Array<double> values = array<double>({1, 2, 3, 4});
  const Matrix matrix("A", 3, 4, 4, values, row_map, entries);
  const auto A = csr_view(matrix);
  EXPECT_EQ(A.rows(), 3);
  EXPECT_EQ(A.cols(), 4);
  EXPECT_EQ(A.nnz(), 4u);
  EXPECT_EQ(static_cast<const void*>(A.values().data()), static_cast<const void*>(matrix.values.data()));
  EXPECT_EQ(static_cast<const void*>(A.row_map().data()), static_cast<const void*>(matrix.graph.row_map.data()));
  EXPECT_EQ(static_cast<const void*>(A.entries().data()), static_cast<const void*>(matrix.graph.entries.data()));
  EXPECT_TRUE(validate(Host(), A).valid);
}
#endif

// ---- validate

CsrReport report(int rows, int cols, const std::vector<int>& row_map, const std::vector<int>& entries) {
  const auto r = array<int>(row_map), e = array<int>(entries);
  const Array<double> values("values", entries.size());
  return validate(Host(), csr_view(rows, cols, r, e, values));
}
void expect_fault(const CsrReport& r, const std::vector<std::string>& parts) {
  EXPECT_FALSE(r.valid);
  for (const std::string& part : parts) {
    EXPECT_NE(r.fault.find(part), std::string::npos) << "'" << r.fault << "' lacks '" << part << "'";
  }
}

TEST(Validate, GoodMatrix) {
  const CsrReport r = report(3, 4, {0, 2, 2, 4}, {0, 2, 1, 3});
  EXPECT_TRUE(r.valid);
  EXPECT_EQ(r.fault, "");
  EXPECT_EQ(r.duplicate_rows, 0);
  EXPECT_EQ(r.unsorted_rows, 0);
}

TEST(Validate, RepeatedAndUnsortedColumnsAreLegalAndCounted) {
  const CsrReport r = report(4, 4, {0, 3, 5, 7, 9}, {0, 0, 0, 3, 1, 2, 2, 1, 2});
  EXPECT_TRUE(r.valid);
  EXPECT_EQ(r.duplicate_rows, 2);
  EXPECT_EQ(r.unsorted_rows, 1);
  // Only neighbours count, wherever in the row they stand.
  const CsrReport apart = report(3, 4, {0, 3, 6, 9}, {1, 2, 1, 0, 3, 3, 0, 2, 2});
  EXPECT_EQ(apart.duplicate_rows, 2);
  EXPECT_EQ(apart.unsorted_rows, 1);
}

TEST(Validate, RowMapFaults) {
  expect_fault(report(2, 4, {1, 2, 2}, {0, 1}), {"row_map is not ascending", "row 0"});
  expect_fault(report(3, 4, {0, 2, 1, 2}, {0, 1}), {"row_map is not ascending", "row 1"});
  expect_fault(report(2, 4, {0, 5, 2}, {0, 1}), {"within 2 entries", "row 0"});
  expect_fault(report(2, 4, {0, -1, 2}, {0, 1}), {"row_map is not ascending", "row 0"});
  expect_fault(report(2, 4, {0, 1, 1}, {0, 1}), {"row_map ends at 1", "2 entries"});
  expect_fault(report(0, 4, {0}, {0, 1}), {"no rows", "2 entries"});
}

TEST(Validate, ColumnFaults) {
  expect_fault(report(3, 4, {0, 1, 2, 3}, {0, 3, 4}), {"outside [0, 4)", "row 2"});
  expect_fault(report(3, 4, {0, 1, 2, 3}, {0, -1, 0}), {"outside [0, 4)", "row 1"});
  expect_fault(report(2, 4, {0, 1, 2}, {2147483647, -2147483647 - 1}), {"outside [0, 4)", "row 0"});
  expect_fault(report(1, 0, {0, 1}, {0}), {"outside [0, 0)", "row 0"});
}

TEST(Validate, FirstOfSeveralFaultsIsNamed) {
  std::vector<int> row_map(1001), entries(1000, 0);
  for (int i = 0; i <= 1000; ++i) row_map[i] = i;
  entries[900] = entries[437] = entries[438] = 77;
  expect_fault(report(1000, 10, row_map, entries), {"row 437"});
}

TEST(Validate, UnsignedColumns) {
  const Array<std::size_t> row_map = array<std::size_t>({0, 2});
  const Array<unsigned> entries = array<unsigned>({1u, 4294967295u});
  const Array<double> values("values", 2);
  expect_fault(validate(Host(), csr_view(1u, 4u, row_map, entries, values)), {"outside [0, 4)", "row 0"});
}

}  // namespace
}  // namespace Tessera
