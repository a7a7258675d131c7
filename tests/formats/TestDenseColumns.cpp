// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A pattern in two, by how many entries a column has in a window of rows: against plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/windows/Tessera_DenseColumns.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Key = std::pair<int, int>;  ///< a column, and how many entries of its row repeat it before

/// One entry: where it stands in CSR, and its key.
struct PlainEntry {
  std::size_t at;
  Key key;
};

/// Rows as they stand in the windows, columns ascending.
std::vector<std::vector<PlainEntry>> plain_rows(const HostMatrix<UsualScalar>& A,
                                                const std::vector<std::int32_t>& order) {
  std::vector<std::vector<PlainEntry>> rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(A.rows); ++i) {
    const std::size_t r = order.empty() ? i : static_cast<std::size_t>(order[i]);
    std::vector<PlainEntry> row;
    for (auto e = static_cast<std::size_t>(A.row_map[r]); e < static_cast<std::size_t>(A.row_map[r + 1]); ++e) {
      const int before = static_cast<int>(
          std::count_if(row.begin(), row.end(), [&](const PlainEntry& o) { return o.key.first == A.entries[e]; }));
      row.push_back({e, {A.entries[e], before}});
    }
    std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    rows.push_back(row);
  }
  return rows;
}

void expect_divided(const HostMatrix<UsualScalar>& A, const std::vector<std::int32_t>& order, int height, int least) {
  SCOPED_TRACE("windows of " + std::to_string(height) + ", dense from " + std::to_string(least));
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const auto pattern = Impl::pattern_of(device.view());
  using Pattern = std::decay_t<decltype(pattern)>;
  const Impl::WindowFunctors<Pattern>::Order given(order.data(), order.size());
  const auto got = Impl::divide_by_columns(Exec(), pattern, height, least, given, nullptr);
  const auto rows = plain_rows(A, order);

  std::size_t dense = 0, other = 0;
  std::int64_t dense_columns = 0;
  double shared = 0, both = 0;
  const auto check = [](const auto& share, std::size_t& place, const PlainEntry& entry) {
    ASSERT_LT(place, share.columns.extent(0));
    EXPECT_EQ(share.columns(place), entry.key.first);
    EXPECT_EQ(share.entry_at(place), entry.at);
    ++place;
  };
  for (std::size_t first = 0; first < rows.size(); first += static_cast<std::size_t>(height)) {
    const std::size_t last = std::min(rows.size(), first + static_cast<std::size_t>(height));
    std::map<Key, int> count;
    for (std::size_t r = first; r < last; ++r) {
      for (const PlainEntry& e : rows[r]) ++count[e.key];
    }
    for (const auto& [key, n] : count) dense_columns += n >= least;
    for (std::size_t r = first; r < last; ++r) {
      EXPECT_EQ(got.dense.row_map(r), dense) << "row " << r;
      EXPECT_EQ(got.other.row_map(r), other) << "row " << r;
      for (const PlainEntry& e : rows[r]) {
        if (count[e.key] >= least) {
          check(got.dense, dense, e);
        } else {
          check(got.other, other, e);
        }
      }
      if (r == first) continue;
      both += static_cast<double>(rows[r].size() + rows[r - 1].size());
      for (const PlainEntry& e : rows[r]) {
        shared += std::any_of(rows[r - 1].begin(), rows[r - 1].end(),
                              [&](const PlainEntry& o) { return o.key.first == e.key.first; });
      }
    }
  }
  EXPECT_EQ(got.dense.row_map(rows.size()), dense);
  EXPECT_EQ(got.other.row_map(rows.size()), other);
  EXPECT_EQ(got.dense.columns.extent(0), dense);
  EXPECT_EQ(got.other.columns.extent(0), other);
  EXPECT_EQ(got.dense_columns, dense_columns);
  EXPECT_DOUBLE_EQ(got.similarity, both > shared ? shared / (both - shared) : 1);
}

TEST(DenseColumns, AgainstPlainLoops) {
  const Pattern unsorted = pattern_of_rows(61, 47, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 23; ++k) to.push_back(static_cast<int>((7 * (i + 40 - k) + k / 3 * 11) % 47));
  });
  for (const Pattern& p : {generate("rmat:scale=8:degree=9"), generate("every_length:longest=40:cols=60"), unsorted,
                           generate("dense:rows=3:cols=70"), generate("stencil2d:nx=19:ny=11")}) {
    const auto A = make_matrix<UsualScalar>(p, Data::Integers, 1);
    std::vector<std::int32_t> odd_first;
    for (int r = 1; r < A.rows; r += 2) odd_first.push_back(r);
    for (int r = (A.rows - 1) / 2 * 2; r >= 0; r -= 2) odd_first.push_back(r);
    for (const int height : {8, 16, 32}) {
      for (const int least : {1, 2, 3, 9, 100}) {
        expect_divided(A, {}, height, least);
        expect_divided(A, odd_first, height, least);
      }
    }
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
