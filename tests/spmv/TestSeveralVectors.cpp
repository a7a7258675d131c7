// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Several vectors, in rows and in columns, under Auto on hosts: one product of SpMM where that reads A less often.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

namespace {

using Host = Kokkos::DefaultHostExecutionSpace;

template <class A_, class X_, class Y_>
struct VectorTypes {
  using A = A_;
  using X = X_;
  using Y = Y_;
};
/// Whether the last product was SpMM's.
bool by_spmm(const KokkosCounters& counters) {
  return std::string(counters.last_kernel()).rfind("Tessera::spmm[gespmm", 0) == 0;
}

/// x and y with a number beside each row, or column, that must not be read or written.
template <class T>
class SeveralProduct {
 public:
  using A = typename T::A;
  using X = typename T::X;
  using Y = typename T::Y;
  using Sum = SumOf<A, X, Y>;

  SeveralProduct(const HostMatrix<A>& matrix, int columns, bool x_in_rows, bool y_in_rows, Data data)
      : A_(matrix), columns_(columns), x_in_rows_(x_in_rows), y_in_rows_(y_in_rows), data_(data) {
    x_.assign(static_cast<std::size_t>((A_.cols + 1) * (columns + 1)), as<X>(std::nan("")));
    y_.assign(static_cast<std::size_t>((A_.rows + 1) * (columns + 1)), as<Y>(77));
    for (int j = 0; j < columns; ++j) {
      const auto x = x_of(j);
      const auto y = y_of(j);
      for (int i = 0; i < A_.cols; ++i) x_[at(i, j, A_.cols, x_in_rows_)] = x[static_cast<std::size_t>(i)];
      for (int i = 0; i < A_.rows; ++i) y_[at(i, j, A_.rows, y_in_rows_)] = y[static_cast<std::size_t>(i)];
    }
  }
  std::vector<X> x_of(int j) const { return numbers<X>(A_.cols, data_, 6 + j); }
  std::vector<Y> y_of(int j) const { return numbers<Y>(A_.rows, data_, 60 + j); }

  template <class Plan>
  void multiply(const Plan& plan, Scaling s) {
    plan.apply(Host(), Op::NoTrans, s.alpha, view<const X>(x_.data(), A_.cols, x_in_rows_), s.beta,
               view<Y>(y_.data(), A_.rows, y_in_rows_));
    Host().fence();
  }
  void expect(Scaling s) const {
    for (int j = 0; j < columns_; ++j) {
      std::vector<Y> got;
      for (int i = 0; i < A_.rows; ++i) got.push_back(y_[at(i, j, A_.rows, y_in_rows_)]);
      EXPECT_TRUE((agrees<Sum>(A_, s, x_of(j), y_of(j), got, data_ == Data::Integers))) << "column " << j;
    }
    for (int i = 0; i < A_.rows; ++i) {
      EXPECT_EQ(static_cast<double>(y_[at(i, columns_, A_.rows, y_in_rows_)]), 77) << "beside row " << i;
    }
  }

 private:
  std::size_t at(int i, int j, int rows, bool in_rows) const {
    return static_cast<std::size_t>(in_rows ? i * (columns_ + 1) + j : j * (rows + 1) + i);
  }
  template <class Number>
  auto view(Number* data, int rows, bool in_rows) const {
    const auto n = static_cast<std::size_t>(rows), k = static_cast<std::size_t>(columns_);
    const Kokkos::LayoutStride layout(n, in_rows ? k + 1 : 1, k, in_rows ? 1 : n + 1);
    using View = Kokkos::View<Number**, Kokkos::LayoutStride, DeviceOf<Host>, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    return View(data, layout);
  }
  const HostMatrix<A>& A_;
  int columns_;
  bool x_in_rows_, y_in_rows_;
  Data data_;
  std::vector<X> x_;
  std::vector<Y> y_;
};

// Every width up to two vectors, then those about the ends of tiles.
constexpr int widths[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 39, 40, 63, 64, 65, 79, 80, 81, 130};

}  // namespace

template <class T>
class SeveralVectors : public ::testing::Test {};
using Double = VectorTypes<double, double, double>;
#ifdef TESSERA_TEST_FEWER_TYPES
using AllTypes = ::testing::Types<Double, VectorTypes<half_t, half_t, half_t>, VectorTypes<half_t, half_t, float>>;
#else
using AllTypes = ::testing::Types<Double, VectorTypes<float, float, float>, VectorTypes<float, double, double>,
                                  VectorTypes<half_t, half_t, half_t>, VectorTypes<half_t, half_t, float>,
                                  VectorTypes<bhalf_t, bhalf_t, bhalf_t>, VectorTypes<bhalf_t, bhalf_t, float>>;
#endif
TYPED_TEST_SUITE(SeveralVectors, AllTypes);

TYPED_TEST(SeveralVectors, EveryWidth) {
  using A = typename TypeParam::A;
  for (const Data data : {Data::Integers, Data::Real}) {
    const auto matrix = make_matrix<A>(all_classes(60, 9), data, 5);
    const DeviceMatrix<Host, A> device(matrix);
    const SpmvPlan<typename DeviceMatrix<Host, A>::Csr> plan(Host(), device.view(), {});
    int turn = 0;
    for (const int columns : widths) {
      const Scaling s = turn % 3 == 0 ? Scaling{1, 0} : turn % 3 == 1 ? Scaling{-1, 2.5} : Scaling{2.5, 1};
      for (int layout = 0; layout < 4; ++layout) {
        const bool x_in_rows = layout < 2, y_in_rows = layout % 2 == 0;
        SCOPED_TRACE(std::to_string(columns) + (x_in_rows ? " columns" : " columns, x in columns") +
                     (y_in_rows ? "" : ", y in columns"));
        SeveralProduct<TypeParam> p(matrix, columns, x_in_rows, y_in_rows, data);
        const KokkosCounters counters;
        p.multiply(plan, s);
        const bool sure = x_in_rows || (sizeof(A) >= 4 && columns >= 4);
        EXPECT_TRUE(by_spmm(counters) || !sure);
        p.expect(s);
      }
      ++turn;
    }
  }
}

#ifndef TESSERA_TEST_FEWER_TYPES
// Unsigned offsets of ordinary size: the bits that those of 64 bits give.
TEST(SeveralVectorsAuto, UnsignedOffsets) {
  constexpr int columns = 3;
  const auto A = make_matrix<double>(all_classes(60, 9), Data::Real, 5);
  const DeviceMatrix<Host, double> wide(A);
  const auto row_map = to_device<Host>(std::vector<std::uint32_t>(A.row_map.begin(), A.row_map.end()));
  const auto narrow = csr_view(A.rows, A.cols, row_map, wide.entries, wide.values);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Host>> x("x", A.cols, columns), y("y", A.rows, columns),
      wanted("wanted", A.rows, columns);
  for (int i = 0; i < A.cols; ++i) {
    for (int j = 0; j < columns; ++j) x(i, j) = number(Data::Real, 6 + j, i);
  }
  SpmvPlan<typename DeviceMatrix<Host, double>::Csr>(Host(), wide.view(), {}).apply(Host(), x, wanted);
  SpmvPlan<std::decay_t<decltype(narrow)>>(Host(), narrow, {}).apply(Host(), x, y);
  Host().fence();
  EXPECT_EQ(std::memcmp(y.data(), wanted.data(), sizeof(double) * y.size()), 0);
}
#endif

// Auto takes these kernels from two vectors on: numbers that no row uses reach no result, beta = 0 overwrites whatever
// y holds, and new values are those that are multiplied.
TEST(SeveralVectorsAuto, UnusedNumbersAndNewValues) {
  constexpr int columns = 5;
  const Pattern pattern = on_odd_columns(all_classes(600, 100));
  auto A = make_matrix<double>(pattern, Data::Real, 5);
  const DeviceMatrix<Host, double> device(A);
  SpmvPlan<typename DeviceMatrix<Host, double>::Csr> plan(Host(), device.view(), {});
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Host>> x("x", A.cols, columns), y("y", A.rows, columns);
  Kokkos::deep_copy(y, std::nan(""));
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < A.cols; ++i) {
      x(i, j) = i % 2 == 0 ? std::numeric_limits<double>::infinity() : number(Data::Real, 6 + j, i);
    }
  }
  const auto expect = [&] {
    plan.apply(Host(), x, y);
    Host().fence();
    for (int j = 0; j < columns; ++j) {
      std::vector<double> from, got;
      for (int i = 0; i < A.cols; ++i) from.push_back(i % 2 == 0 ? 0 : x(i, j));
      for (int i = 0; i < A.rows; ++i) got.push_back(y(i, j));
      EXPECT_TRUE((agrees<double>(A, Scaling{1, 0}, from, std::vector<double>(got.size()), got, false))) << j;
    }
  };
  expect();
  for (double& value : A.values) value *= 3;
  const DeviceMatrix<Host, double> other(A);
  plan.update_values(Host(), other.view().values());
  expect();
}

/// x, y in LayoutLeft, or one of them in LayoutRight. Returns whether SpMM made them.
template <class XLayout, class YLayout>
bool expect_in_columns(const HostMatrix<double>& A, int columns, int blocks = -1) {
  SCOPED_TRACE(std::to_string(A.rows) + " x " + std::to_string(A.cols) + ", " + std::to_string(columns) + " columns");
  const DeviceMatrix<Host, double> device(A);
  SpmvOptions options;
  options.packed.column_blocks = blocks;
  const SpmvPlan<typename DeviceMatrix<Host, double>::Csr> plan(Host(), device.view(), options);
  const Kokkos::View<double**, XLayout, DeviceOf<Host>> x("x", A.cols, columns);
  const Kokkos::View<double**, YLayout, DeviceOf<Host>> y("y", A.rows, columns);
  const auto y_of = [&](int j) { return numbers<double>(A.rows, Data::Integers, 60 + j); };
  for (int j = 0; j < columns; ++j) {
    const auto from = numbers<double>(A.cols, Data::Integers, 6 + j), to = y_of(j);
    for (int i = 0; i < A.cols; ++i) x(i, j) = from[static_cast<std::size_t>(i)];
    for (int i = 0; i < A.rows; ++i) y(i, j) = to[static_cast<std::size_t>(i)];
  }
  const KokkosCounters counters;
  plan.apply(Host(), Op::NoTrans, 2.5, x, -1.0, y);
  Host().fence();
  for (int j = 0; j < columns; ++j) {
    std::vector<double> got;
    for (int i = 0; i < A.rows; ++i) got.push_back(y(i, j));
    EXPECT_TRUE((agrees<double>(A, {2.5, -1}, numbers<double>(A.cols, Data::Integers, 6 + j), y_of(j), got, true)))
        << j;
  }
  return by_spmm(counters);
}
/// As many entries per row as said, from some column on that differs from row to row.
HostMatrix<double> rows_of(int rows, int cols, int entries) {
  Pattern p;
  p.rows = rows, p.cols = cols;
  for (int i = 0; i <= rows; ++i) p.row_map.push_back(std::int64_t{entries} * i);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < entries; ++k)
      p.entries.push_back(k + static_cast<int>(std::int64_t{i} * 7919 % (cols - entries + 1)));
  }
  return make_matrix<double>(p, Data::Integers, 5);
}

// Vectors in columns: from four on, in many column blocks from six; three, where rows are short or thousands of entries
// long.
TEST(SeveralVectorsAuto, VectorsInColumns) {
  using Left = Kokkos::LayoutLeft;
  using Right = Kokkos::LayoutRight;
  const auto dense = make_matrix<double>(all_classes(600, 100), Data::Integers, 5);
  for (const int columns : {0, 1, 2}) EXPECT_FALSE((expect_in_columns<Left, Left>(dense, columns)));
  for (const int columns : {4, 5, 9, 11, 12, 33}) EXPECT_TRUE((expect_in_columns<Left, Left>(dense, columns)));
  EXPECT_TRUE((expect_in_columns<Left, Right>(dense, 7)));
  EXPECT_TRUE((expect_in_columns<Right, Left>(dense, 7)));
  EXPECT_TRUE((expect_in_columns<Left, Left>(rows_of(2000, 5000, 5), 3)));
  EXPECT_FALSE((expect_in_columns<Left, Left>(rows_of(20000, 5000, 5), 3))) << "rows in the order of their lengths";
  EXPECT_TRUE((expect_in_columns<Left, Left>(rows_of(20000, 50000, 5), 3))) << "x is not in the second cache";
  EXPECT_FALSE((expect_in_columns<Left, Left>(rows_of(200, 5000, 100), 3)));
  EXPECT_TRUE((expect_in_columns<Left, Left>(rows_of(5, 700, 600), 3)));
  EXPECT_TRUE((expect_in_columns<Left, Left>(rows_of(300000, 300000, 1), 8)));
  // Slices in column blocks find x in a near cache.
  const auto few = rows_of(2000, 5000, 5);
  EXPECT_FALSE((expect_in_columns<Left, Left>(few, 3, 2)));
  EXPECT_TRUE((expect_in_columns<Left, Left>(few, 4, 2)));
  for (const int columns : {3, 4, 5}) EXPECT_FALSE((expect_in_columns<Left, Left>(few, columns, 16)));
  EXPECT_TRUE((expect_in_columns<Left, Left>(few, 6, 16)));
  EXPECT_TRUE((expect_in_columns<Right, Left>(few, 2, 16)));
}

#ifndef TESSERA_TEST_FEWER_TYPES
// 16 bits in columns: where rows are long, of eight vectors, not of two.
TEST(SeveralVectorsAuto, NarrowVectorsInColumns) {
  const auto A = make_matrix<bhalf_t>(all_classes(600, 100), Data::Integers, 5);
  const DeviceMatrix<Host, bhalf_t> device(A);
  const SpmvPlan<typename DeviceMatrix<Host, bhalf_t>::Csr> plan(Host(), device.view(), {});
  for (const int columns : {2, 8}) {
    SeveralProduct<VectorTypes<bhalf_t, bhalf_t, float>> p(A, columns, false, false, Data::Integers);
    const KokkosCounters counters;
    p.multiply(plan, {2.5, -1});
    EXPECT_EQ(by_spmm(counters), columns == 8);
    p.expect({2.5, -1});
  }
}
#endif

// What the plan keeps for several vectors serves one product at a time.
TEST(SeveralVectorsAuto, TwoHostThreads) {
  if (!Compat::is_serial_v<Host>) GTEST_SKIP() << "Kokkos' threads are not two host threads'";
  const auto A = make_matrix<double>(all_classes(600, 100), Data::Integers, 5);
  const DeviceMatrix<Host, double> device(A);
  const SpmvPlan<typename DeviceMatrix<Host, double>::Csr> plan(Host(), device.view(), {});
  const auto repeat = [&](int columns) {
    for (int i = 0; i < 20; ++i) {
      SeveralProduct<Double> p(A, columns, false, false, Data::Integers);
      p.multiply(plan, {1, 2});
      p.expect({1, 2});
    }
  };
  std::thread other(repeat, 9);
  repeat(13);
  other.join();
}

}  // namespace Testing
}  // namespace Tessera
