// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Several vectors, in rows and in columns, times compressed rows on hosts: the kernels by themselves, then under Auto.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/host/Tessera_HostCsrRows.hpp"
#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

namespace {

template <class A_, class X_, class Y_>
struct RowTypes {
  using A = A_;
  using X = X_;
  using Y = Y_;
};
template <class A, class X>
HostCsrRowsRun run_of() {
  if (std::is_same_v<A, double>) return host_csr_rows_fp64;
  if (std::is_same_v<A, half_t>) return host_csr_rows_fp16;
  if (std::is_same_v<A, bhalf_t>) return host_csr_rows_bf16;
  return std::is_same_v<X, double> ? host_csr_rows_fp32_with_fp64 : host_csr_rows_fp32;
}

/// x and y with a number beside each row, or column, that must not be read or written. Where x is in rows and y in
/// columns, zeros may fill up rows of x to whole vectors.
template <class Types>
class Product {
 public:
  using A = typename Types::A;
  using X = typename Types::X;
  using Y = typename Types::Y;
  using Sum = SumOf<A, X, Y>;

  Product(const HostMatrix<A>& matrix, int columns, bool x_in_rows, bool y_in_rows, bool filled, Data data)
      : A_(matrix), columns_(columns), x_in_rows_(x_in_rows), y_in_rows_(y_in_rows), data_(data) {
    read_ = filled ? static_cast<int>(Impl::host_whole_columns<Sum>(columns)) : columns;
    x_.assign(static_cast<std::size_t>((A_.cols + 1) * (read_ + 1)), as<X>(std::nan("")));
    y_.assign(static_cast<std::size_t>((A_.rows + 1) * (columns + 1)), as<Y>(77));
    for (int j = 0; j < read_; ++j) {
      const auto x = x_of(j);
      for (int i = 0; i < A_.cols; ++i) x_[x_at(i, j)] = j < columns ? x[static_cast<std::size_t>(i)] : as<X>(0);
    }
    for (int j = 0; j < columns; ++j) {
      const auto y = y_of(j);
      for (int i = 0; i < A_.rows; ++i) y_[at(i, j)] = y[static_cast<std::size_t>(i)];
    }
  }
  std::vector<X> x_of(int j) const { return numbers<X>(A_.cols, data_, 6 + j); }
  std::vector<Y> y_of(int j) const { return numbers<Y>(A_.rows, data_, 60 + j); }

  /// Rows [begin, end), with offsets of so many bytes.
  void multiply(Scaling s, int offset_bytes, int begin, int end) {
    const std::vector<std::int32_t> narrow(A_.row_map.begin(), A_.row_map.end());
    const std::vector<std::int64_t> wide(A_.row_map.begin(), A_.row_map.end());
    HostCsrRowsArgs args;
    args.row_map = offset_bytes == 4 ? static_cast<const void*>(narrow.data()) : wide.data();
    args.offset_bytes = offset_bytes;
    args.entries = A_.entries.data();
    args.values = A_.values.data();
    args.x = x_.data();
    args.y = y_.data();
    args.columns = columns_;
    args.x_columns = read_;
    args.x_stride = x_in_rows_ ? read_ + 1 : 1;
    args.x_column_stride = x_in_rows_ ? 1 : A_.cols + 1;
    args.y_stride = y_in_rows_ ? columns_ + 1 : 1;
    args.y_column_stride = y_in_rows_ ? 1 : A_.rows + 1;
    args.y_type = Impl::ScalarTraits<Y>::element;
    args.alpha = s.alpha, args.beta = s.beta;
    run_of<A, X>()(args, begin, end);
  }
  void expect(Scaling s) const {
    for (int j = 0; j < columns_; ++j) {
      std::vector<Y> got;
      for (int i = 0; i < A_.rows; ++i) got.push_back(y_[at(i, j)]);
      EXPECT_TRUE((agrees<Sum>(A_, s, x_of(j), y_of(j), got, data_ == Data::Integers))) << "column " << j;
    }
    for (int i = 0; i < A_.rows; ++i) EXPECT_EQ(static_cast<double>(y_[at(i, columns_)]), 77) << "beside row " << i;
  }

 private:
  std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(y_in_rows_ ? i * (columns_ + 1) + j : j * (A_.rows + 1) + i);
  }
  std::size_t x_at(int i, int j) const {
    return static_cast<std::size_t>(x_in_rows_ ? i * (read_ + 1) + j : j * (A_.cols + 1) + i);
  }
  const HostMatrix<A>& A_;
  int columns_, read_;
  bool x_in_rows_, y_in_rows_;
  Data data_;
  std::vector<X> x_;
  std::vector<Y> y_;
};

// Every width up to two vectors, then those about the ends of tiles.
constexpr int widths[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 39, 40, 63, 64, 65, 79, 80, 81, 130};

}  // namespace

template <class Types>
class CsrRows : public ::testing::Test {};
using Double = RowTypes<double, double, double>;
#ifdef TESSERA_TEST_FEWER_TYPES
using AllRowTypes = ::testing::Types<Double, RowTypes<half_t, half_t, half_t>, RowTypes<bhalf_t, bhalf_t, float>>;
#else
using AllRowTypes = ::testing::Types<Double, RowTypes<float, float, float>, RowTypes<float, double, double>,
                                     RowTypes<half_t, half_t, half_t>, RowTypes<half_t, half_t, float>,
                                     RowTypes<bhalf_t, bhalf_t, bhalf_t>, RowTypes<bhalf_t, bhalf_t, float>>;
#endif
TYPED_TEST_SUITE(CsrRows, AllRowTypes);

TYPED_TEST(CsrRows, EveryWidth) {
  using A = typename TypeParam::A;
  constexpr bool x_may_lie_apart =
      sizeof(A) >= 4 && std::is_same_v<A, typename TypeParam::X> && std::is_same_v<A, typename TypeParam::Y>;
  for (const Data data : {Data::Integers, Data::Real}) {
    const auto matrix = make_matrix<A>(all_classes(60, 9), data, 5);
    int turn = 0;
    for (const int columns : widths) {
      const Scaling s = turn % 3 == 0 ? Scaling{1, 0} : turn % 3 == 1 ? Scaling{-1, 2.5} : Scaling{2.5, 1};
      for (int layout = 0; layout < (x_may_lie_apart ? 4 : 2); ++layout) {
        const bool x_in_rows = layout < 2, y_in_rows = layout % 2 == 0;
        SCOPED_TRACE(std::to_string(columns) + (x_in_rows ? " columns" : " columns, x in columns") +
                     (y_in_rows ? "" : ", y in columns"));
        Product<TypeParam> p(matrix, columns, x_in_rows, y_in_rows, layout == 1 && turn % 2 == 0, data);
        const int cut = matrix.rows / 3;
        p.multiply(s, 4, 0, cut);
        p.multiply(s, 8, cut, matrix.rows);
        p.expect(s);
      }
      ++turn;
    }
  }
}

// Unsigned offsets above 2^31: the kernel gets arrays that begin so much earlier, of which it reads only what is there.
TEST(CsrRowsOffsets, UnsignedBeyond31Bits) {
  const std::uint32_t behind = 3'000'000'000u;
  const std::vector<std::uint32_t> row_map{0, behind, behind + 2, behind + 2, behind + 3};
  const std::vector<std::int32_t> entries{0, 2, 1};
  const std::vector<double> values{2, 3, 5};
  const auto earlier = [&](const auto& numbers) {
    using T = typename std::decay_t<decltype(numbers)>::value_type;
    return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(numbers.data()) - behind * sizeof(T));
  };
  const std::vector<double> x{1, 10, 2, 20, 3, 30};
  std::vector<double> y(8, 7);
  HostCsrRowsArgs args;
  args.row_map = row_map.data();
  args.offset_bytes = 4;
  args.entries = earlier(entries);
  args.values = earlier(values);
  args.x = x.data();
  args.y = y.data();
  host_csr_rows_fp64(args, 1, 4);
  EXPECT_EQ(y, (std::vector<double>{7, 7, 11, 110, 0, 0, 10, 100}));
  const Impl::CsrRowsFunctor shares{args, host_csr_rows_fp64, {}};
  EXPECT_EQ(shares.work_before(1), 1 + std::int64_t{behind});
}

#ifndef TESSERA_TEST_FEWER_TYPES
// Unsigned offsets of ordinary size: the bits that those of 64 bits give.
TEST(CsrRowsAuto, UnsignedOffsets) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  constexpr int columns = 3;
  const auto A = make_matrix<double>(all_classes(60, 9), Data::Real, 5);
  const DeviceMatrix<Exec, double> wide(A);
  const auto row_map = to_device<Exec>(std::vector<std::uint32_t>(A.row_map.begin(), A.row_map.end()));
  const auto narrow = csr_view(A.rows, A.cols, row_map, wide.entries, wide.values);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> x("x", A.cols, columns), y("y", A.rows, columns),
      wanted("wanted", A.rows, columns);
  for (int i = 0; i < A.cols; ++i) {
    for (int j = 0; j < columns; ++j) x(i, j) = number(Data::Real, 6 + j, i);
  }
  SpmvPlan<typename DeviceMatrix<Exec, double>::Csr>(Exec(), wide.view(), {}).apply(Exec(), x, wanted);
  SpmvPlan<std::decay_t<decltype(narrow)>>(Exec(), narrow, {}).apply(Exec(), x, y);
  Exec().fence();
  EXPECT_EQ(std::memcmp(y.data(), wanted.data(), sizeof(double) * y.size()), 0);
}
#endif

// Auto takes these kernels from two vectors on: numbers that no row uses reach no result, beta = 0 overwrites whatever
// y holds, and new values are those that are multiplied.
TEST(CsrRowsAuto, UnusedNumbersAndNewValues) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  constexpr int columns = 5;
  const Pattern pattern = on_odd_columns(all_classes(600, 100));
  auto A = make_matrix<double>(pattern, Data::Real, 5);
  const DeviceMatrix<Exec, double> device(A);
  SpmvPlan<typename DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), {});
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> x("x", A.cols, columns), y("y", A.rows, columns);
  Kokkos::deep_copy(y, std::nan(""));
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < A.cols; ++i) {
      x(i, j) = i % 2 == 0 ? std::numeric_limits<double>::infinity() : number(Data::Real, 6 + j, i);
    }
  }
  const auto expect = [&] {
    plan.apply(Exec(), x, y);
    Exec().fence();
    for (int j = 0; j < columns; ++j) {
      std::vector<double> from, got;
      for (int i = 0; i < A.cols; ++i) from.push_back(i % 2 == 0 ? 0 : x(i, j));
      for (int i = 0; i < A.rows; ++i) got.push_back(y(i, j));
      EXPECT_TRUE((agrees<double>(A, Scaling{1, 0}, from, std::vector<double>(got.size()), got, false))) << j;
    }
  };
  expect();
  for (double& value : A.values) value *= 3;
  const DeviceMatrix<Exec, double> other(A);
  plan.update_values(Exec(), other.view().values());
  expect();
}

/// x, y in LayoutLeft, or one of them in LayoutRight.
template <class XLayout, class YLayout>
void expect_in_columns(const HostMatrix<double>& A, int columns) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  SCOPED_TRACE(std::to_string(A.rows) + " x " + std::to_string(A.cols) + ", " + std::to_string(columns) + " columns");
  const DeviceMatrix<Exec, double> device(A);
  const SpmvPlan<typename DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), {});
  const Kokkos::View<double**, XLayout, DeviceOf<Exec>> x("x", A.cols, columns);
  const Kokkos::View<double**, YLayout, DeviceOf<Exec>> y("y", A.rows, columns);
  const auto y_of = [&](int j) { return numbers<double>(A.rows, Data::Integers, 60 + j); };
  for (int j = 0; j < columns; ++j) {
    const auto from = numbers<double>(A.cols, Data::Integers, 6 + j), to = y_of(j);
    for (int i = 0; i < A.cols; ++i) x(i, j) = from[static_cast<std::size_t>(i)];
    for (int i = 0; i < A.rows; ++i) y(i, j) = to[static_cast<std::size_t>(i)];
  }
  plan.apply(Exec(), Op::NoTrans, 2.5, x, -1.0, y);
  Exec().fence();
  for (int j = 0; j < columns; ++j) {
    std::vector<double> got;
    for (int i = 0; i < A.rows; ++i) got.push_back(y(i, j));
    EXPECT_TRUE((agrees<double>(A, {2.5, -1}, numbers<double>(A.cols, Data::Integers, 6 + j), y_of(j), got, true)))
        << j;
  }
}

// Auto, vectors in columns: x copied in rows, all of it or some columns at a time; read where it lies, where A has few
// entries per row of x; few columns, and all of a large x, one by one.
TEST(CsrRowsAuto, VectorsInColumns) {
  using Left = Kokkos::LayoutLeft;
  using Right = Kokkos::LayoutRight;
  const auto dense = make_matrix<double>(all_classes(600, 100), Data::Integers, 5);
  for (const int columns : {0, 1, 3, 4, 5, 9, 11, 12, 33}) expect_in_columns<Left, Left>(dense, columns);
  expect_in_columns<Left, Right>(dense, 7);
  expect_in_columns<Right, Left>(dense, 7);
  Pattern wide;
  wide.rows = 200, wide.cols = 5000;
  for (int i = 0; i <= wide.rows; ++i) wide.row_map.push_back(std::int64_t{3} * i);
  for (int i = 0; i < 3 * wide.rows; ++i) wide.entries.push_back(i % 3 * 1500 + i);
  for (const int columns : {4, 19})
    expect_in_columns<Left, Left>(make_matrix<double>(wide, Data::Integers, 5), columns);
  Pattern few;  // long rows: three columns, too
  few.rows = 5, few.cols = 700;
  for (int i = 0; i <= few.rows; ++i) few.row_map.push_back(std::int64_t{600} * i);
  for (int i = 0; i < 600 * few.rows; ++i) few.entries.push_back(i % 600 + i / 600 * 20);
  ASSERT_TRUE(Impl::csr_rows_enough(few.rows, few.cols, 600 * few.rows, 3));
  for (const int columns : {2, 3}) expect_in_columns<Left, Left>(make_matrix<double>(few, Data::Integers, 5), columns);
  Pattern large;
  large.rows = large.cols = 300000;
  for (int i = 0; i <= large.rows; ++i) large.row_map.push_back(i);
  for (int i = 0; i < large.rows; ++i) large.entries.push_back(large.rows - 1 - i);
  static_assert(Impl::csr_rows_most_copied < 300000 * Impl::csr_rows_copied_columns * 8, "x would be copied");
  expect_in_columns<Left, Left>(make_matrix<double>(large, Data::Integers, 5), 8);
}

}  // namespace Testing
}  // namespace Tessera
