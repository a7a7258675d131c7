// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_WINDOWS_HPP
#define TESSERA_TEST_WINDOWS_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "formats/windows/Tessera_FromWindows.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Window formats by their definition, with maps on the host: no idea of the conversion's is used.

namespace Tessera {
namespace Testing {

/// Patterns on which windows may go wrong.
inline std::vector<std::pair<std::string, Pattern>> window_cases() {
  std::vector<std::pair<std::string, Pattern>> all;
  for (const std::string spec : {"empty",
                                 "empty:rows=0:cols=5",
                                 "empty:rows=5:cols=0",
                                 "empty:rows=0:cols=0",
                                 "empty:rows=3000:cols=1",
                                 "diagonal:rows=100:cols=37",
                                 "diagonal:rows=37:cols=100",
                                 "dense:rows=1:cols=1",
                                 "dense:rows=1:cols=301",
                                 "dense:rows=301:cols=1",
                                 "dense:rows=43:cols=67",
                                 "dense_row:rows=3:cols=5003",
                                 "dense_row",
                                 "dense_column",
                                 "ramp:n=101",
                                 "every_length:longest=100:cols=131",
                                 "duplicates:rows=151:longest=90",
                                 "duplicates:rows=1003:longest=5:cols=11",
                                 "random:rows=501:cols=997:lengths=uniform:mean=4",
                                 "random:rows=701:cols=599:lengths=power:mean=6:tail=1.3",
                                 "community:n=999:edges=4001",
                                 "web:n=1001:longest=300",
                                 "stencil2d:nx=23:ny=31:points=9",
                                 "fem:nx=3:ny=3:nz=3:cavities=1"}) {
    all.emplace_back(spec, generate(spec));
  }
  std::vector<int> lengths(101, 0);  // empty windows at both ends and between
  lengths[40] = 3;
  lengths[41] = 17;
  lengths[77] = 1;
  all.emplace_back("empty windows", pattern_of_lengths(lengths, 53));
  all.emplace_back("one column", pattern_of_lengths({9, 1, 0, 4, 5, 5, 2, 8, 3, 0, 1, 1}, 1));
  all.emplace_back("repeated and unsorted", pattern_of_lengths({20, 7, 0, 33, 5, 12, 9, 8, 40, 6, 31}, 7));
  return all;
}

/// The same rows with their entries in another order.
inline Pattern shuffled(Pattern p) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const auto begin = p.row_map[static_cast<std::size_t>(r)], n = p.row_map[static_cast<std::size_t>(r) + 1] - begin;
    for (std::int64_t k = n - 1; k > 0; --k) {
      const auto other = static_cast<std::int64_t>((number(Data::Real, 3, static_cast<std::uint64_t>(begin + k)) + 1) /
                                                   2 * static_cast<double>(k + 1));
      std::swap(p.entries[static_cast<std::size_t>(begin + k)],
                p.entries[static_cast<std::size_t>(begin + std::min(other, k))]);
    }
  }
  return p;
}
/// A permutation of rows.
inline std::vector<std::int32_t> some_order(int rows) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [](std::int32_t a, std::int32_t b) {
    return number(Data::Real, 9, static_cast<std::uint64_t>(a)) < number(Data::Real, 9, static_cast<std::uint64_t>(b));
  });
  return order;
}

/// A value as it is stored.
template <class Scalar>
std::uint64_t stored_bits(Precision p, Scalar value) {
  std::uint64_t bits = 0;
  const auto keep = [&bits](auto v) { std::memcpy(&bits, &v, sizeof(v)); };
  if (p == Precision::FP64) keep(wide(value));
  if (p == Precision::FP32 || p == Precision::TF32) keep(static_cast<float>(wide(value)));
  if (p == Precision::FP16) keep(half_t(wide(value)));
  if (p == Precision::BF16) keep(bhalf_t(wide(value)));
  return bits;
}
/// Of an array of 8-byte words, the `i`-th value.
inline std::uint64_t value_at(const std::vector<std::uint64_t>& words, std::size_t i, int bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const char*>(words.data()) + i * static_cast<std::size_t>(bytes),
              static_cast<std::size_t>(bytes));
  return bits;
}

/// The column vectors of one window: (column, copy) -> (row of the window -> entry of the CSR matrix).
using PlainWindow = std::map<std::pair<int, int>, std::map<int, std::int64_t>>;

template <class Matrix>
std::vector<PlainWindow> plain_windows(const Matrix& A, int height, const std::vector<std::int32_t>& order) {
  std::vector<PlainWindow> all(static_cast<std::size_t>((A.rows + height - 1) / height));
  for (int place = 0; place < A.rows; ++place) {
    const int row = order.empty() ? place : order[static_cast<std::size_t>(place)];
    std::map<int, int> copies;
    const auto begin = static_cast<std::int64_t>(A.row_map[static_cast<std::size_t>(row)]);
    for (std::int64_t i = begin; i < begin + A.length(row); ++i) {
      const int column = A.entries[static_cast<std::size_t>(i)];
      all[static_cast<std::size_t>(place / height)][{column, copies[column]++}][place % height] = i;
    }
  }
  return all;
}

/// What decoding must give: rows sorted, equal columns in their order; zeros left out if `nonzero`.
template <class Matrix>
void expect_decoded(const Experimental::WindowCsr& got, const Matrix& A, Precision p, bool nonzero) {
  std::vector<std::int64_t> row_map = {0};
  std::vector<std::int32_t> entries;
  std::vector<std::uint64_t> bits;
  for (int r = 0; r < A.rows; ++r) {
    std::vector<std::int64_t> places(static_cast<std::size_t>(A.length(r)));
    std::iota(places.begin(), places.end(), static_cast<std::int64_t>(A.row_map[static_cast<std::size_t>(r)]));
    std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
      return A.entries[static_cast<std::size_t>(a)] < A.entries[static_cast<std::size_t>(b)];
    });
    for (const std::int64_t i : places) {
      const std::uint64_t value = stored_bits(p, A.values[static_cast<std::size_t>(i)]);
      if (nonzero && value == 0) continue;
      entries.push_back(A.entries[static_cast<std::size_t>(i)]);
      bits.push_back(value);
    }
    row_map.push_back(static_cast<std::int64_t>(entries.size()));
  }
  EXPECT_EQ(got.rows, A.rows);
  EXPECT_EQ(got.cols, A.cols);
  EXPECT_EQ(got.row_map, row_map);
  EXPECT_EQ(got.entries, entries);
  EXPECT_EQ(got.bits, bits);
}

/// Parts and splits of windows with these numbers of blocks, none of more than `bound`.
inline void expect_parts(const std::vector<std::int64_t>& blocks, std::int64_t bound, bool inside,
                         const std::vector<SpmmPart>& parts, const std::vector<SpmmSplit>& splits,
                         std::int64_t partial_count) {
  const bool any = std::any_of(blocks.begin(), blocks.end(), [&](std::int64_t b) { return b > bound; });
  if (!any) {
    EXPECT_TRUE(parts.empty());
    EXPECT_TRUE(splits.empty());
    EXPECT_EQ(partial_count, 0);
    return;
  }
  std::size_t part = 0, split = 0;
  std::int64_t partial = 0, before = 0;
  for (std::size_t w = 0; w < blocks.size(); ++w) {
    const std::int64_t n = std::max<std::int64_t>((blocks[w] + bound - 1) / bound, 1), first = partial;
    std::int64_t covered = 0, least = bound, most = 0;
    for (std::int64_t j = 0; j < n; ++j, ++part) {
      ASSERT_LT(part, parts.size());
      EXPECT_EQ(parts[part].window, static_cast<std::int32_t>(w));
      EXPECT_EQ(parts[part].first_block, covered + (inside ? 0 : before));
      EXPECT_EQ(parts[part].partial, n > 1 ? partial++ : -1);
      covered += parts[part].blocks;
      least = std::min<std::int64_t>(least, parts[part].blocks);
      most = std::max<std::int64_t>(most, parts[part].blocks);
    }
    EXPECT_EQ(covered, blocks[w]);
    EXPECT_LE(most, bound);
    EXPECT_LE(most - least, 1);
    before += blocks[w];
    if (n == 1) continue;
    ASSERT_LT(split, splits.size());
    EXPECT_EQ(splits[split].window, static_cast<std::int32_t>(w));
    EXPECT_EQ(splits[split].first, first);
    EXPECT_EQ(splits[split].count, n);
    ++split;
  }
  EXPECT_EQ(part, parts.size());
  EXPECT_EQ(split, splits.size());
  EXPECT_EQ(partial, partial_count);
}
/// The rule for bounds by size, for 64 multiprocessors.
inline std::int64_t default_bound(std::int64_t blocks, std::int64_t windows) {
  const std::int64_t share = blocks / 1024, even = windows > 0 ? 4 * blocks / windows : 0;
  const std::int64_t bound =
      windows >= 1024 ? even : std::max<std::int64_t>(std::min(even, share), windows < 256 ? 16 : 24);
  return std::min<std::int64_t>(std::max<std::int64_t>(bound, 16), 256);
}

/// A matrix of 2^32 entries in name only: whoever reads it crashes.
template <class Exec>
auto matrix_too_large() {
  static double value = 0;
  static int column = 0;
  static std::int64_t offset[2] = {0, std::int64_t{1} << 32};
  using Csr = CsrView<double, int, std::int64_t, DeviceOf<Exec>>;
  const std::size_t nnz = std::size_t{1} << 32;
  return Csr(1, 1, typename Csr::row_map_type(offset, 2), typename Csr::entries_type(&column, nnz),
             typename Csr::values_type(&value, nnz));
}

}  // namespace Testing
}  // namespace Tessera

#endif
