// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "reorder/Tessera_BlockDiagonal.hpp"
#include "support/Tessera_TestMatrix.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

const std::vector<std::string>& specs() {
  static const std::vector<std::string> all = {"empty:rows=0:cols=0",
                                               "empty:rows=5:cols=0",
                                               "dense:rows=3:cols=7",
                                               "empty:rows=0:cols=5",
                                               "diagonal:rows=9:cols=4",
                                               "empty:rows=6:cols=3",
                                               "ramp:n=31",
                                               "duplicates:rows=19:longest=12:cols=11",
                                               "dense:rows=1:cols=1",
                                               "uniform:rows=40:cols=23:per_row=5",
                                               "empty:rows=2:cols=0",
                                               "empty:rows=0:cols=9"};
  return all;
}

template <class Scalar, class Offset>
struct Batch {
  using Device = DeviceMatrix<Exec, Scalar, Offset>;
  std::vector<HostMatrix<Scalar, Offset>> host;
  std::vector<Device> device;
  std::vector<typename Device::Csr> views;

  explicit Batch(const std::vector<std::string>& of) {
    for (const std::string& spec : of) {
      host.push_back(make_matrix<Scalar, Offset>(spec, Data::Integers, host.size() + 1));
      device.emplace_back(host.back());
      views.push_back(device.back().view());
    }
  }
  /// By plain loops.
  HostMatrix<Scalar, Offset> whole() const {
    HostMatrix<Scalar, Offset> A;
    A.row_map.push_back(0);
    for (const auto& b : host) {
      for (int row = 0; row < b.rows; ++row) {
        A.row_map.push_back(static_cast<Offset>(A.row_map.back() + static_cast<Offset>(b.length(row))));
      }
      for (const int column : b.entries) A.entries.push_back(column + A.cols);
      A.values.insert(A.values.end(), b.values.begin(), b.values.end());
      A.rows += b.rows;
      A.cols += b.cols;
    }
    return A;
  }
};

template <class T>
class BlockDiagonalTest : public ::testing::Test {};
template <class Scalar_, class Offset_>
struct Types {
  using Scalar = Scalar_;
  using Offset = Offset_;
};
using AllTypes = ::testing::Types<Types<double, std::int64_t>, Types<half_t, int>>;
TYPED_TEST_SUITE(BlockDiagonalTest, AllTypes);

TYPED_TEST(BlockDiagonalTest, EqualsHostConstruction) {
  using Scalar = typename TypeParam::Scalar;
  std::vector<std::vector<std::string>> lists = {{}, specs(), {specs().rbegin(), specs().rend()}};
  for (const std::string& spec : specs()) lists.push_back({spec});
  for (const auto& list : lists) {
    const Batch<Scalar, typename TypeParam::Offset> batch(list);
    const auto expected = batch.whole();
    const auto A = block_diagonal(Exec(), batch.views);
    EXPECT_EQ(A.rows, expected.rows);
    EXPECT_EQ(A.cols, expected.cols);
    EXPECT_EQ(to_host(A.row_map), expected.row_map);
    EXPECT_EQ(to_host(A.entries), expected.entries);
    EXPECT_TRUE(same_bits(to_host(A.values), expected.values));
    EXPECT_TRUE(validate(Exec(), A.view()).valid);
    ASSERT_EQ(A.first_row.size(), list.size() + 1);
    EXPECT_EQ(A.first_row.back(), A.rows);
    EXPECT_EQ(A.first_col.back(), A.cols);
    EXPECT_EQ(A.first_entry.back(), expected.nnz());
    for (std::size_t k = 0; k < list.size(); ++k) {
      EXPECT_EQ(A.first_row[k + 1] - A.first_row[k], batch.host[k].rows);
      EXPECT_EQ(A.first_col[k + 1] - A.first_col[k], batch.host[k].cols);
      EXPECT_EQ(A.first_entry[k + 1] - A.first_entry[k], batch.host[k].nnz());
    }
  }
}

TEST(BlockDiagonal, OneProductEqualsTheSingleOnes) {
  const Batch<UsualScalar, OffsetOf<UsualScalar>> batch(specs());
  const auto A = block_diagonal(Exec(), batch.views);
  const std::size_t n = 13;
  using Dense = Kokkos::View<UsualScalar**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  const Dense b("b", static_cast<std::size_t>(A.cols), n), c("c", static_cast<std::size_t>(A.rows), n),
      single("single", static_cast<std::size_t>(A.rows), n);
  for (std::size_t i = 0; i < b.extent(0); ++i) {
    for (std::size_t j = 0; j < n; ++j) b(i, j) = as<UsualScalar>(number(Data::Integers, 9, i * n + j));
  }
  const Exec space;
  SpmmPlan(space, A.view()).apply(space, b, c);
  const auto part = [](const Dense& v, std::int64_t begin, std::int64_t end) {
    return Kokkos::subview(v, std::make_pair(begin, end), Kokkos::ALL());
  };
  for (std::size_t k = 0; k < batch.views.size(); ++k) {
    SpmmPlan(space, batch.views[k])
        .apply(space, part(b, A.first_col[k], A.first_col[k + 1]), part(single, A.first_row[k], A.first_row[k + 1]));
  }
  space.fence();
  for (std::size_t i = 0; i < c.extent(0); ++i) {
    for (std::size_t j = 0; j < n; ++j) EXPECT_EQ(c(i, j), single(i, j)) << i << ", " << j;
  }
}

TEST(BlockDiagonal, RefusesWhatTheTypesDoNotHold) {
  // No entries, so that columns cost nothing.
  const auto message = [](const auto& blocks) -> std::string {
    try {
      block_diagonal(Exec(), blocks);
    } catch (const NotSupported& e) {
      return e.what();
    }
    return "was accepted";
  };
  using Csr = DeviceMatrix<Exec, double>::Csr;
  const Csr wide(0, std::numeric_limits<int>::max(), {}, {}, {});
  EXPECT_NE(message(std::vector<Csr>{wide, wide}).find("4294967294 columns"), std::string::npos);
  using Small = CsrView<double, short, std::int64_t, DeviceOf<Exec>>;
  const Small little(0, 30000, {}, {}, {});
  EXPECT_NE(message(std::vector<Small>{little, little}).find("32767"), std::string::npos);
  EXPECT_EQ(block_diagonal(Exec(), std::vector<Small>{little}).cols, 30000);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
