// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Rows of any width in vectors, by the instructions of every CPU that this one has: right sums, each column once, and
// nothing outside of a row is used or written.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/Tessera_HostRows.hpp"

namespace Tessera {
namespace Testing {
namespace RowsOnHosts {

constexpr int guard = 20, most_rows = 5;
const std::vector<int>& widths() {
  static const std::vector<int> all = [] {
    std::vector<int> list;
    for (int n = 0; n <= 70; ++n) list.push_back(n);
    for (const int n : {127, 128, 129, 255, 511, 512}) list.push_back(n);
    return list;
  }();
  return all;
}
template <class T>
T undefined() {
  return T(std::numeric_limits<float>::quiet_NaN());
}

/// Rows of multiples of 1/8 of at most 1 in size, whose products and sums are exact in every type of sum; NaN around
/// each. The memory ends with the last guard.
template <class T>
struct Rows {
  int n;
  std::vector<T> numbers;
  explicit Rows(int columns, unsigned seed)
      : n(columns), numbers(static_cast<std::size_t>(most_rows * (columns + guard) + guard), undefined<T>()) {
    for (int r = 0; r < most_rows; ++r) {
      for (int k = 0; k < n; ++k) {
        seed = seed * 1664525u + 1013904223u;
        row(r)[k] = T(static_cast<float>(static_cast<int>(seed >> 16) % 17 - 8) / 8);
      }
    }
  }
  T* row(int r) { return numbers.data() + guard + r * (n + guard); }
  double at(int r, int k) { return static_cast<double>(Impl::widen<double>(row(r)[k])); }
};

template <class T, int Bytes, int Count, int Isa>
KOKKOS_FORCEINLINE_FUNCTION void expect_dots(int n) {
  using Sum = Impl::AccumulatorOf<T, T, T>;
  Rows<T> x(n, 1), y(n, 2);
  const T* rows[Count];
  for (int c = 0; c < Count; ++c) rows[c] = y.row(c);
  Sum sums[Count];
  Impl::host_dots<Bytes, Count, Isa>(x.row(0), 1, rows, 1, n, sums);
  for (int c = 0; c < Count; ++c) {
    double wanted = 0;
    for (int k = 0; k < n; ++k) wanted += x.at(0, k) * y.at(c, k);
    ASSERT_EQ(sums[c], wanted) << "row " << c << " of " << Count;
  }
  // Each column is used, and used once: an infinite number stays one, where infinite minus infinite and infinite times
  // 0 were NaN.
  const T infinity(std::numeric_limits<float>::infinity()), factor(-0.5f);
  const int step = n <= 70 ? 1 : 9;
  for (const bool in_x : {false, true}) {
    for (int k = 0; k < n; k += step) {
      Rows<T> own = x, other = y;
      own.row(0)[k] = in_x ? infinity : factor;
      for (int c = 0; c < Count; ++c) {
        rows[c] = other.row(c);
        other.row(c)[k] = in_x ? factor : infinity;
      }
      Impl::host_dots<Bytes, Count, Isa>(own.row(0), 1, rows, 1, n, sums);
      for (int c = 0; c < Count; ++c) {
        ASSERT_EQ(sums[c], -std::numeric_limits<Sum>::infinity()) << "column " << k << (in_x ? " of x" : " of y");
      }
    }
  }
}

/// The sum of `most_rows` scaled rows, twice, then stored; the store leaves the guards alone.
template <class T, int Bytes, int Isa>
KOKKOS_FORCEINLINE_FUNCTION void expect_added(int n) {
  using Sum = Impl::AccumulatorOf<T, T, T>;
  Rows<T> y(n, 3), out(n, 4);
  const std::vector<T> before = out.numbers;
  const T* rows[most_rows];
  const Sum a[most_rows] = {1, -2, Sum(0.5), 3, Sum(-0.25)};
  for (int c = 0; c < most_rows; ++c) rows[c] = y.row(c);
  if (n > 0) y.row(1)[n / 2] = undefined<T>();
  Sum sums[512];
  for (Sum& sum : sums) sum = undefined<Sum>();
  Impl::host_clear_row<Bytes>(sums, n);
  Impl::host_add_rows<Bytes, Isa>(sums, a, rows, most_rows, n);
  Impl::host_scale_row<Bytes>(sums, Sum(0.5), n);
  Impl::host_add_rows<Bytes, Isa>(sums, a, rows, most_rows, n);
  Impl::host_store_row<Bytes, Isa>(out.row(2), Sum(2), sums, n);
  for (int k = 0; k < n; ++k) {
    double wanted = 0;
    for (int c = 0; c < most_rows; ++c) wanted += static_cast<double>(a[c]) * y.at(c, k);
    const double got = out.at(2, k);
    if (k == n / 2) {
      ASSERT_TRUE(std::isnan(got)) << "column " << k;
    } else {
      ASSERT_EQ(got, Impl::widen<double>(T(static_cast<Sum>(3 * wanted)))) << "column " << k;
    }
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto first = static_cast<std::size_t>(out.row(2) - out.numbers.data());
    if (i >= first && i < first + static_cast<std::size_t>(n)) continue;
    ASSERT_EQ(std::memcmp(&before[i], &out.numbers[i], sizeof(T)), 0) << "beside the row, " << i << " - " << first;
  }
}

template <class T, int Bytes, int Isa = Bytes>
KOKKOS_FORCEINLINE_FUNCTION void expect_rows() {
  for (const int n : widths()) {
    SCOPED_TRACE(std::to_string(n) + " columns, " + std::to_string(Bytes) + " bytes of " + std::to_string(Isa));
    expect_dots<T, Bytes, 1, Isa>(n);
    expect_dots<T, Bytes, 2, Isa>(n);
    expect_dots<T, Bytes, 4, Isa>(n);
    expect_added<T, Bytes, Isa>(n);
  }
}

#ifdef TESSERA_HOST_HAS_TARGETS
template <class T>
TESSERA_HOST_TARGET("avx2,fma")
void expect_rows_by_32() {
  expect_rows<T, 32>();
}
template <class T>
TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
void expect_rows_by_64() {
  expect_rows<T, 64>();
}
#endif

template <class T>
class HostRows : public ::testing::Test {};
#ifdef TESSERA_TEST_FEWER_TYPES
using Types = ::testing::Types<float, half_t>;
#else
using Types = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(HostRows, Types);

TYPED_TEST(HostRows, EveryWidth) {
  expect_rows<TypeParam, 16>();
#ifdef TESSERA_HOST_HAS_TARGETS
  if (Impl::host_vector_bytes() >= 32) expect_rows_by_32<TypeParam>();
  if (Impl::host_vector_bytes() >= 64) expect_rows_by_64<TypeParam>();
#endif
}

#ifdef TESSERA_HOST_TOTALS
/// Four totals at once are those of each vector, bit by bit.
template <class Sum, int Bytes>
KOKKOS_FORCEINLINE_FUNCTION void expect_totals() {
  using Lanes = Impl::HostLanes<Sum, Bytes>;
  typename Lanes::type v[4];
  for (int c = 0; c < 4; ++c) {
    Sum lanes[Lanes::count];
    for (int j = 0; j < Lanes::count; ++j) lanes[j] = Sum(1) / Sum(3 + 7 * c + j * j);
    Lanes::load(v[c], lanes);
  }
  Sum sums[4];
  Impl::host_totals<4, Sum, Bytes>(v, sums);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(sums[c], Lanes::total(v[c])) << Bytes << " bytes, vector " << c;
}
TESSERA_HOST_TARGET("avx2,fma") void expect_totals_by_32() {
  expect_totals<float, 32>();
  expect_totals<double, 32>();
}
TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma") void expect_totals_by_64() {
  expect_totals<float, 64>();
  expect_totals<double, 64>();
}
TEST(HostTotals, OfFourVectors) {
  expect_totals<float, 16>();
  expect_totals<double, 16>();
  if (Impl::host_vector_bytes() >= 32) expect_totals_by_32();
  if (Impl::host_vector_bytes() >= 64) expect_totals_by_64();
}
#endif

}  // namespace RowsOnHosts
}  // namespace Testing
}  // namespace Tessera
