// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_WINDOW_FIXTURE_HPP
#define TESSERA_TEST_WINDOW_FIXTURE_HPP

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
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Window formats by their definition, with maps on the host: no idea of the conversion's is used. And what every
/// window format must do: a typed suite over structs, which say of a format
///
///     Case, cases(), name(case), precision(case)   its shapes
///     marks_zeros                       whether an entry that is zero is stored as -0
///     convert(view, case, max_blocks, updatable, order), decode(f), update(f, A, values)
///     expect_arrays(A, case, order, f)  everything against a plain construction; returns the blocks of each window
///     parts_inside                      whether parts count blocks from their window on
///     arrays(f)                         all bytes, as a tuple

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
std::uint64_t stored_bits(Precision p, Scalar value, bool mark_zeros) {
  std::uint64_t bits = 0;
  const auto keep = [&bits](auto v) { std::memcpy(&bits, &v, sizeof(v)); };
  if (p == Precision::FP64) keep(wide(value));
  if (p == Precision::FP32 || p == Precision::TF32) keep(static_cast<float>(wide(value)));
  if (p == Precision::FP16) keep(half_t(wide(value)));
  if (p == Precision::BF16) keep(bhalf_t(wide(value)));
  return mark_zeros && bits == 0 ? std::uint64_t{1} << (8 * bytes_of(p) - 1) : bits;
}
/// Of an array of 8-byte words, the `i`-th value.
inline std::uint64_t value_at(const std::vector<std::uint64_t>& words, std::size_t i, int bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const char*>(words.data()) + i * static_cast<std::size_t>(bytes),
              static_cast<std::size_t>(bytes));
  return bits;
}

/// The first values of an array of 8-byte words; what stands behind, up to `stored`, is zero.
inline void expect_values(const std::vector<std::uint64_t>& words, Precision p,
                          const std::vector<std::uint64_t>& wanted, std::size_t stored) {
  ASSERT_GE(stored, wanted.size());
  ASSERT_GE(8 * words.size(), stored * static_cast<std::size_t>(bytes_of(p)));
  for (std::size_t i = 0; i < stored; ++i) {
    ASSERT_EQ(value_at(words, i, bytes_of(p)), i < wanted.size() ? wanted[i] : 0) << "slot " << i;
  }
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

/// What decoding must give: rows sorted, equal columns in their order, values as they are stored.
template <class Matrix>
void expect_decoded(const Experimental::WindowCsr& got, const Matrix& A, Precision p, bool mark_zeros) {
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
      entries.push_back(A.entries[static_cast<std::size_t>(i)]);
      bits.push_back(stored_bits(p, A.values[static_cast<std::size_t>(i)], mark_zeros));
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
  static std::size_t offset[2] = {0, std::size_t{1} << 32};
  using Csr = CsrView<double, int, std::size_t, DeviceOf<Exec>>;
  const std::size_t nnz = std::size_t{1} << 32;
  return Csr(1, 1, typename Csr::row_map_type(offset, 2), typename Csr::entries_type(&column, nnz),
             typename Csr::values_type(&value, nnz));
}

using Exec = Kokkos::DefaultExecutionSpace;
using Order = std::vector<std::int32_t>;

template <class Format>
class WindowFormats : public ::testing::Test {
 public:
  using Case = typename Format::Case;

  template <class Matrix, class Made>
  static void expect_format(const Matrix& A, const Case& c, const Order& order, int max_blocks, const Made& f) {
    EXPECT_EQ(f.rows, A.rows);
    EXPECT_EQ(f.cols, A.cols);
    EXPECT_EQ(f.nnz, A.nnz());
    EXPECT_EQ(to_host(f.row_order), order);
    const std::vector<std::int64_t> blocks = Format::expect_arrays(A, c, order, f);
    EXPECT_EQ(f.windows, static_cast<std::int64_t>(blocks.size()));
    EXPECT_EQ(f.blocks, std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}));
    expect_parts(blocks, max_blocks > 0 ? max_blocks : default_bound(f.blocks, f.windows), Format::parts_inside,
                 to_host(f.parts), to_host(f.splits), f.partial_count);
  }
  /// Every pattern in every shape of blocks.
  template <class Check>
  static void each_case(const Check& check) {
    std::size_t shift = 0;
    for (const auto& named : window_cases()) {
      SCOPED_TRACE(named.first);
      std::size_t turn = shift++;
      for (const Case& c : Format::cases()) {
        if (!taken_elsewhere(turn++)) check(named.second, c);
      }
    }
  }
  /// Format, way back, and both again with other values.
  template <class Scalar, class Offset = OffsetOf<Scalar>>
  static void expect_conversion(const Pattern& p, const Case& c, bool reordered, int max_blocks = 0) {
    SCOPED_TRACE(std::string(to_string(Format::precision(c))) + ", " + Format::name(c) +
                 (reordered ? ", reordered" : ""));
    const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 1), B = make_matrix<Scalar, Offset>(p, Data::Integers, 2);
    const DeviceMatrix<Exec, Scalar, Offset> device(A), other(B);
    const Order order = reordered ? some_order(A.rows) : Order();
    const auto f = Format::convert(device.view(), c, max_blocks, true, to_device<Exec>(order));
    Exec().fence();
    expect_format(A, c, order, max_blocks, f);
    expect_decoded(Format::decode(f), A, Format::precision(c), Format::marks_zeros);
    Format::update(f, other.view(), other.values);
    Exec().fence();
    expect_format(B, c, order, max_blocks, f);
    expect_decoded(Format::decode(f), B, Format::precision(c), Format::marks_zeros);
    // The matrix is as it was.
    EXPECT_TRUE(same_bits(to_host(device.values), A.values));
    EXPECT_EQ(to_host(device.entries), A.entries);
    EXPECT_EQ(to_host(device.row_map), A.row_map);
  }
};
TYPED_TEST_SUITE_P(WindowFormats);

TYPED_TEST_P(WindowFormats, FollowTheirDefinition) {
  this->each_case([&](const Pattern& p, const auto& c) {
    this->template expect_conversion<double, OffsetOf<UsualScalar>>(p, c, false);
  });
}
TYPED_TEST_P(WindowFormats, UnsortedRows) {
  this->each_case(
      [&](const Pattern& p, const auto& c) { this->template expect_conversion<float>(shuffled(p), c, false); });
}
TYPED_TEST_P(WindowFormats, RowOrder) {
  this->each_case([&](const Pattern& p, const auto& c) {
    this->template expect_conversion<float>(p, c, true);
    if (TypeParam::precision(c) == Precision::TF32) this->template expect_conversion<float>(shuffled(p), c, true);
  });
}
TYPED_TEST_P(WindowFormats, Types) {
  for (const std::string spec : {"duplicates:rows=151:longest=90", "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    const Pattern p = shuffled(generate(spec));
    for (const auto& c : TypeParam::cases()) {
      this->template expect_conversion<double, OffsetOf<UsualScalar>>(p, c, true);
      this->template expect_conversion<half_t>(p, c, true);
      this->template expect_conversion<bhalf_t>(p, c, false);
    }
  }
}
TYPED_TEST_P(WindowFormats, Parts) {
  for (const std::string spec : {"dense_row:rows=30:cols=5003", "ramp:n=101", "web:n=1001:longest=300",
                                 "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    std::size_t shift = 0;
    for (const int max_blocks : {0, 1, 2, 3, 7, 100000}) {
      SCOPED_TRACE("max_blocks " + std::to_string(max_blocks));
      std::size_t turn = shift++;
      for (const auto& c : TypeParam::cases()) {
        if (!taken_elsewhere(turn++)) this->template expect_conversion<float>(generate(spec), c, false, max_blocks);
      }
    }
  }
}
// The same bytes each time, whatever order threads come in.
TYPED_TEST_P(WindowFormats, Deterministic) {
  const DeviceMatrix<Exec, float> device(
      make_matrix<float>(shuffled(generate("web:n=3001:longest=900")), Data::Real, 1));
  const auto made = [&] { return TypeParam::convert(device.view(), TypeParam::cases()[0], 0, true, {}); };
  const auto first = made();
  Exec().fence();
  for (int run = 0; run < 3; ++run) {
    const auto f = made();
    Exec().fence();
    EXPECT_TRUE(TypeParam::arrays(f) == TypeParam::arrays(first)) << "run " << run;
  }
}
TYPED_TEST_P(WindowFormats, BadCalls) {
  const auto& c = TypeParam::cases()[0];
  using Offset = OffsetOf<UsualScalar>;
  const DeviceMatrix<Exec, double, Offset> device(make_matrix<double, Offset>("diagonal", Data::Real, 1));
  const auto A = device.view();
  EXPECT_THROW(TypeParam::convert(A, c, -1, true, {}), InvalidArgument);
  EXPECT_THROW(TypeParam::convert(A, c, 0, true, to_device<Exec>(Order{0, 1})), DimensionMismatch);
#ifndef TESSERA_TEST_FEWER_TYPES  // which link 64-bit offsets of SpMV alone
  EXPECT_THROW(TypeParam::convert(matrix_too_large<Exec>(), c, 0, true, {}), NotSupported);
#endif
  const auto f = TypeParam::convert(A, c, 0, true, {});
  EXPECT_THROW(TypeParam::update(f, A, to_device<Exec>(std::vector<double>(3))), DimensionMismatch);
  const DeviceMatrix<Exec, double, Offset> other(make_matrix<double, Offset>("dense:rows=3:cols=3", Data::Real, 1));
  EXPECT_THROW(TypeParam::update(f, other.view(), device.values), DimensionMismatch);
  const auto fixed = TypeParam::convert(A, c, 0, false, {});
  EXPECT_EQ(fixed.map_bytes(), 0u);
  EXPECT_THROW(TypeParam::update(fixed, A, device.values), NotSupported);
}
REGISTER_TYPED_TEST_SUITE_P(WindowFormats, FollowTheirDefinition, UnsortedRows, RowOrder, Types, Parts, Deterministic,
                            BadCalls);

}  // namespace Testing
}  // namespace Tessera

#endif
