// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// validate(): every kind of fault, in which row, and the two properties that are legal but worth knowing.

#include <gtest/gtest.h>

#include <limits>

#include "Tessera_CsrView.hpp"
#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace Testing {

template <class Types>
class Validate : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Ordinal = typename Types::first_type;
  using Offset = typename Types::second_type;

  static CsrReport report(Ordinal rows, Ordinal cols, const std::vector<long long>& row_map,
                          const std::vector<long long>& entries) {
    const auto maps = to_device<Exec>(std::vector<Offset>(row_map.begin(), row_map.end()));
    const auto columns = to_device<Exec>(std::vector<Ordinal>(entries.begin(), entries.end()));
    const auto values = to_device<Exec>(std::vector<double>(entries.size(), 1.0));
    return validate(Exec(), csr_view(rows, cols, maps, columns, values));
  }
  static void expect_fault(const CsrReport& r, const std::string& kind, const std::string& place) {
    EXPECT_FALSE(r.valid);
    EXPECT_NE(r.fault.find(kind), std::string::npos) << r.fault;
    EXPECT_NE(r.fault.find(place), std::string::npos) << r.fault;
  }
};
using IndexTypes = ::testing::Types<std::pair<int, int>, std::pair<int, std::int64_t>, std::pair<int, std::size_t>,
                                    std::pair<std::int64_t, std::int64_t>, std::pair<unsigned, unsigned>>;
TYPED_TEST_SUITE(Validate, IndexTypes);

TYPED_TEST(Validate, SoundMatrices) {
  for (const CsrReport& r : {this->report(3, 4, {0, 2, 2, 4}, {0, 3, 1, 2}), this->report(0, 4, {0}, {}),
                             this->report(0, 0, {}, {}), this->report(2, 0, {0, 0, 0}, {})}) {
    EXPECT_TRUE(r.valid) << r.fault;
    EXPECT_TRUE(r.fault.empty());
    EXPECT_EQ(r.duplicate_rows, 0);
    EXPECT_EQ(r.unsorted_rows, 0);
  }
}
TYPED_TEST(Validate, RowMap) {
  this->expect_fault(this->report(3, 4, {0, 3, 2, 4}, {0, 1, 2, 3}), "row_map", "row 1");  // descends
  this->expect_fault(this->report(3, 4, {1, 2, 3, 4}, {0, 1, 2, 3}), "row_map", "row 0");  // does not start at 0
  this->expect_fault(this->report(3, 4, {0, 2, 9, 4}, {0, 1, 2, 3}), "row_map", "row 1");  // leaves the entries
  this->expect_fault(this->report(3, 4, {0, 1, 2, 3}, {0, 1, 2, 3}), "ends at 3", "4 entries");
  this->expect_fault(this->report(0, 4, {0}, {1}), "no rows", "1 entries");
  this->expect_fault(this->report(3, 4, {0, -1, 2, 4}, {0, 1, 2, 3}), "row_map", "row 0");           // negative or huge
  this->expect_fault(this->report(3, 4, {0, -1000000000, 2, 4}, {0, 1, 2, 3}), "row_map", "row 0");  // far from arrays
}
TYPED_TEST(Validate, Columns) {
  this->expect_fault(this->report(3, 4, {0, 2, 3, 4}, {0, 1, 4, 3}), "[0, 4)", "row 1");
  this->expect_fault(this->report(3, 4, {0, 2, 3, 4}, {0, 1, 2, -1}), "[0, 4)", "row 2");
  this->expect_fault(this->report(2, 0, {0, 0, 1}, {0}), "[0, 0)", "row 1");
  const long long largest = static_cast<long long>(std::numeric_limits<int>::max());
  this->expect_fault(this->report(1, 4, {0, 1}, {largest}), "[0, 4)", "row 0");
}
TYPED_TEST(Validate, ReportsTheFirstRow) {
  this->expect_fault(this->report(4, 2, {0, 1, 2, 3, 4}, {0, 7, 0, 9}), "column", "row 1");
}
TYPED_TEST(Validate, DuplicatesAndOrder) {
  const CsrReport r = this->report(5, 9, {0, 3, 6, 8, 8, 11}, {1, 1, 2, 5, 4, 4, 7, 8, 8, 3, 8});
  EXPECT_TRUE(r.valid) << r.fault;
  EXPECT_EQ(r.duplicate_rows, 2);  // rows 0 and 1; row 4 repeats a column that is not its neighbour
  EXPECT_EQ(r.unsorted_rows, 2);   // rows 1 and 4
}

}  // namespace Testing
}  // namespace Tessera
