// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMM straight from CSR on the execution space, and the reference backend, against plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/Tessera_ColumnReads.hpp"
#include "spmm/Tessera_LengthOrder.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;

template <class Suite>
class GeSpmm : public ::testing::Test {
 protected:
  /// Plain CSR has the same kernel: once is enough.
  static void each(void (*f)(Suite&)) {
    for (const SpmmAlgorithm algorithm : {SpmmAlgorithm::GeSpmm, SpmmAlgorithm::Csr}) {
      if (algorithm == SpmmAlgorithm::Csr && !std::is_same_v<Suite, SpmmSuite<Exec, float>>) continue;
      SCOPED_TRACE(to_string(algorithm));
      Suite suite{Backend::Kokkos, algorithm};
      f(suite);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using GeSpmmSuites = ::testing::Types<SpmmSuite<Exec, float>, SpmmSuite<Exec, half_t, half_t, float>>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using GeSpmmSuites = ::testing::Types<SpmmSuite<Exec, double>, SpmmSuite<Exec, float>, SpmmSuite<Exec, half_t>,
                                      SpmmSuite<Exec, bhalf_t, bhalf_t, float>, SpmmSuite<Exec, half_t, float, bhalf_t>,
                                      SpmmSuite<Exec, float, bhalf_t, double>>;
#else
using GeSpmmSuites =
    ::testing::Types<SpmmSuite<Exec, double>, SpmmSuite<Exec, float>, SpmmSuite<Exec, half_t, half_t, float>,
                     SpmmSuite<Exec, half_t>, SpmmSuite<Exec, bhalf_t, bhalf_t, float>, SpmmSuite<Exec, bhalf_t>,
                     // Mixed types are compiled here: sums of float and of double from three different ones.
                     SpmmSuite<Exec, half_t, float, bhalf_t>, SpmmSuite<Exec, float, bhalf_t, double>>;
#endif
TYPED_TEST_SUITE(GeSpmm, GeSpmmSuites);

TYPED_TEST(GeSpmm, EveryShape) { TESSERA_EACH(every_shape({5, 33})); }
TYPED_TEST(GeSpmm, EveryWidth) { TESSERA_EACH(every_width(all_classes(150, 20), all_widths())); }
// Few columns, where most rows are short: in all_classes most are long.
TYPED_TEST(GeSpmm, FewColumnsOfShortRows) { TESSERA_EACH(every_width(all_classes(100, 100), {1, 2, 3})); }
TYPED_TEST(GeSpmm, EveryScaling) { TESSERA_EACH(every_scaling(all_classes(150, 20), 19)); }
TYPED_TEST(GeSpmm, UndefinedOperands) {
  this->each([](auto& suite) {
    for (const int columns : {1, 5, 32}) suite.undefined_operands(all_classes(100, 10), columns);
  });
}
TYPED_TEST(GeSpmm, BadRowsOfB) {
  this->each([](auto& suite) {
    for (const int columns : {1, 6, 37}) suite.bad_rows_of_b(all_classes(100, 10), columns);
  });
}
TYPED_TEST(GeSpmm, TransposedProductAndNewValues) {
  this->each([](auto& suite) {
    for (const char* spec : {"duplicates:rows=151:longest=400", "dense_column:others=1", "empty:rows=5:cols=0"}) {
      suite.transposed_product_and_new_values(generate(spec), 9);
    }
  });
}
TYPED_TEST(GeSpmm, Deterministic) { TESSERA_EACH(deterministic(all_classes(200, 20), 33)); }
TYPED_TEST(GeSpmm, NoAllocation) { TESSERA_EACH(no_allocation(all_classes(200, 20), 33)); }
TYPED_TEST(GeSpmm, ARowOfOnes) { TESSERA_EACH(ones(3)); }

// Every bound around the lengths that occur, with and without scratch of the caller's. Plain CSR never splits.
TYPED_TEST(GeSpmm, SplitRows) {
  const Pattern p = all_classes(70, 5);
  TypeParam suite{Backend::Kokkos, SpmmAlgorithm::GeSpmm};
  for (const int most : {1, 2, 7, 64, 69, 70, 71}) {
    SCOPED_TRACE("pieces of " + std::to_string(most));
    suite.options.gespmm.max_piece = most;
    suite.every_width(p, {1, 5, 16, 40});
  }
  suite.options.gespmm.max_piece = 7;
  suite.every_scaling(p, 11);
  suite.undefined_operands(p, 5);
  suite.bad_rows_of_b(p, 6);
  suite.transposed_product_and_new_values(generate("duplicates:rows=151:longest=400"), 9);
  suite.deterministic(p, 33);
  suite.no_allocation(p, 33);
  suite.workspace(p, 33);
  suite.ones(5);
  suite.every_shape({9});
}

// A plan of few columns, then one of more: scratch grows and what was there is still right.
TEST(GePlanScratch, Grows) {
  SpmmSuite<Exec, UsualScalar> suite(Backend::Kokkos, SpmmAlgorithm::GeSpmm);
  suite.options.gespmm.max_piece = 8;
  const auto A = suite.matrix(all_classes(70, 5), Data::Integers, 5);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const SpmmSuite<Exec, UsualScalar>::Plan plan(Exec(), device.view(), suite.options);
  for (const int columns : {1, 40, 3, 100, 40}) {
    suite.expect<ColumnMajor, ColumnMajor>(plan, A, columns, Data::Integers, {2.5, -1});
  }
}

// Backend::Reference runs the oracle itself, on hosts: one rounding of sums in long double.
TEST(ReferenceSpmm, AgreesWithPlainLoops) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  SpmmSuite<Exec, float> suite(Backend::Reference, SpmmAlgorithm::Auto);
  const auto A = suite.matrix(all_classes(200, 20), Data::Magnitudes, 5);
  const DeviceMatrix<Exec, float> device(A);
  const SpmmPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), suite.options);
  EXPECT_EQ(plan.options().backend, Backend::Reference);
  const int n = 7;
  const auto b = numbers<float>(A.cols * n, Data::Magnitudes, 6), c = numbers<float>(A.rows * n, Data::Magnitudes, 7);
  for (const Scaling s : scalings()) {
    EXPECT_TRUE(agrees_dense<float>(
        A, n, s, b, c, dense_product<ColumnMajor, RowMajorPart>(plan, Op::NoTrans, n, s, b, A.cols, c, A.rows), true));
  }
}

// The one-shot call, straight from CSR, in every mode.
TEST(OneShotSpmm, EveryMode) {
  const auto A = make_matrix<UsualScalar>("duplicates:rows=151:longest=400", Data::Integers, 5), T = transposed(A);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const int n = 6;
  for (const std::string mode : {"N", "n", "T", "t", "C", "c", "H", "h"}) {
    SCOPED_TRACE(mode);
    const HostMatrix<UsualScalar>& op = std::string("NnCc").find(mode) != std::string::npos ? A : T;
    const auto b = numbers<UsualScalar>(op.cols * n, Data::Integers, 6),
               c = numbers<UsualScalar>(op.rows * n, Data::Integers, 7);
    const DenseOperand<Exec, UsualScalar, RowMajor> db(b, op.cols, n, 0);
    const DenseOperand<Exec, UsualScalar, ColumnMajor> dc(c, op.rows, n, 0);
    spmm(Exec(), mode.c_str(), 2.5, device.view(), db.view(), -1, dc.view());
    EXPECT_TRUE(agrees_dense<UsualScalar>(op, n, {2.5, -1}, b, c, dc.read(), true));
  }
}

/// Rows of 3 + 2 beside entries near the diagonal, and 10,000 rows of none.
HostMatrix<UsualScalar> band_of(int size, int beside) {
  Pattern band;
  band.rows = band.cols = size;
  band.row_map.push_back(0);
  const auto add = [&](int column) {
    if (column >= 0 && column < size) band.entries.push_back(column);
  };
  for (int i = 0; i < size; ++i) {
    if (i < 3000 || i >= 13000) {
      add(i - 200);
      for (int d = -beside; d <= beside; ++d) add(i + d);
      add(i + 200);
    }
    band.row_map.push_back(static_cast<std::int64_t>(band.entries.size()));
  }
  return make_matrix<UsualScalar>(band, Data::Real, 1);
}
/// 2.5 A B on hosts, B and C in columns: right, in so many kernels, the last of which has this label, and, if asked,
/// with the bits of B and C in rows.
void expect_product_in_columns(const HostMatrix<UsualScalar>& A, int n, int kernels, const std::string& label,
                               bool same_bits_as_rows) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const DeviceMatrix<Host, UsualScalar> device(A);
  SpmmOptions o;
  o.algorithm = SpmmAlgorithm::GeSpmm;
  o.backend = Backend::Kokkos;
  const SpmmPlan<DeviceMatrix<Host, UsualScalar>::Csr> plan(Host(), device.view(), o);
  const auto numbers_of_b = numbers<UsualScalar>(std::int64_t{A.cols} * n, Data::Real, 2);
  Kokkos::View<UsualScalar**, Kokkos::LayoutLeft, Host> b("b", A.cols, n), c("c", A.rows, n);
  for (int i = 0; i < A.cols; ++i) {
    for (int j = 0; j < n; ++j) b(i, j) = numbers_of_b[static_cast<std::size_t>(i * n + j)];
  }
  Kokkos::View<UsualScalar**, Kokkos::LayoutRight, Host> rows_of_b("b", A.cols, n), rows_of_c("c", A.rows, n);
  Kokkos::deep_copy(rows_of_b, b);
  for (const double beta : {0.0, -2.0}) {
    Kokkos::deep_copy(c, beta == 0 ? NAN : 3);
    Kokkos::deep_copy(rows_of_c, c);
    plan.apply(Host(), Op::NoTrans, 2.5, rows_of_b, beta, rows_of_c);
    {
      const KokkosCounters counters;
      plan.apply(Host(), Op::NoTrans, 2.5, b, beta, c);
      EXPECT_EQ(counters.last_kernel(), label);
      if (beta != 0) {
        EXPECT_EQ(counters.kernels(), kernels);  // the first product may look at A
      }
    }
    std::vector<UsualScalar> result;
    int others = 0;
    for (int i = 0; i < A.rows; ++i) {
      for (int j = 0; j < n; ++j) result.push_back(c(i, j)), others += c(i, j) == rows_of_c(i, j) ? 0 : 1;
    }
    if (same_bits_as_rows) {
      EXPECT_EQ(others, 0);
    }
    const std::vector<UsualScalar> old(result.size(), 3);
    EXPECT_TRUE(agrees_dense<UsualScalar>(A, n, {2.5, beta}, numbers_of_b, old, result, false));
  }
}
// Hosts, B in columns and above 4 MiB: where rows of A are long and use neighbouring rows of B, parts of it are copied.
// The same bits as with B in rows; an empty block of rows, a last one that is not full, and rows of the copy that are
// filled up.
TEST(HostSpmm, CopiesPartsOfB) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  constexpr int n = 88 / sizeof(UsualScalar);
  const HostMatrix<UsualScalar> A = band_of(51000, 14);
  const DeviceMatrix<Host, UsualScalar> device(A);
  const Impl::ColumnReach reach(Host(), device.view());
  std::int64_t room = 0;
  EXPECT_GT(reach.ranges_of_block(A.rows, 96, room), 0) << "another copy would be tested";
  expect_product_in_columns(A, n, 1, "Tessera::spmm[gespmm, parts of B]", true);
}
// Less than 4 MiB are copied as a whole.
TEST(HostSpmm, CopiesB) {
  expect_product_in_columns(band_of(26000, 20), 88 / sizeof(UsualScalar), 2, "Tessera::spmm[gespmm]", true);
}
// Columns of B are read where they lie where rows are short, whether B fits the caches or rows find what they need of
// it near each other; in groups of nine at most.
TEST(HostSpmm, ColumnsWhereTheyLie) {
  for (const int size : {13500, 70000}) {
    const HostMatrix<UsualScalar> A = band_of(size, 1);
    for (const int n : {2, 3, 4, 5, 8, 9, 10, 21}) {
      SCOPED_TRACE(std::to_string(size) + " rows, " + std::to_string(n) + " columns");
      expect_product_in_columns(A, n, 1, "Tessera::spmm[gespmm]", false);
    }
  }
}

// Unsigned offsets above 2^31: the kernel gets arrays that begin so much earlier, of which it reads only what is there.
TEST(HostSpmm, UnsignedOffsetsBeyond31Bits) {
  using Device = Kokkos::DefaultHostExecutionSpace::device_type;
  using Csr = CsrView<double, int, std::uint32_t, Device>;
  const std::uint32_t behind = 3'000'000'000u;
  const std::vector<std::uint32_t> row_map{0, behind, behind + 2, behind + 2, behind + 3};
  const std::vector<int> entries{0, 2, 1};
  const std::vector<double> values{2, 3, 5};
  const auto earlier = [&](const auto& numbers) {
    using T = typename std::decay_t<decltype(numbers)>::value_type;
    return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(numbers.data()) - behind * sizeof(T));
  };
  const std::size_t nnz = std::size_t{behind} + entries.size();
  const Csr A(4, 3, Csr::row_map_type(row_map.data(), row_map.size()), Csr::entries_type(earlier(entries), nnz),
              Csr::values_type(earlier(values), nnz));
  for (const std::int64_t n : {1, 2, 8}) {
    std::vector<double> b(static_cast<std::size_t>(3 * n)), c(static_cast<std::size_t>(4 * n), 7.0);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i + 1);
    const auto at = [&](std::int64_t i, std::int64_t j) { return b[static_cast<std::size_t>(i * n + j)]; };
    const Impl::Dense<const double> in{b.data(), 3, n, n, 1};
    const Impl::Dense<double> out{c.data(), 4, n, n, 1};
    const auto functor = Impl::ge_spmm_host_functor(1.0, Impl::CsrArrays<Csr>(A), in, 0.0, out,
                                                    Impl::whole_rows<double>(4), Impl::Shares());
    functor.multiply(1, 4);
    for (std::int64_t j = 0; j < n; ++j) {
      const auto got = [&](std::int64_t i) { return c[static_cast<std::size_t>(i * n + j)]; };
      EXPECT_EQ(got(0), 7);
      EXPECT_EQ(got(1), 2 * at(0, j) + 3 * at(2, j));
      EXPECT_EQ(got(2), 0);
      EXPECT_EQ(got(3), 5 * at(1, j));
    }
  }
}

// What samples of A's entries say of how near each other these find their columns.
TEST(HostSpmm, NearnessOfEntries) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const auto near = [](const HostMatrix<UsualScalar>& A) {
    const DeviceMatrix<Host, UsualScalar> device(A);
    return Impl::EntryNearness(device.view());
  };
  const auto band = near(band_of(70000, 14));  // 33 rows per sample: three runs of columns in some 14 lines
  EXPECT_GT(band.lines, 10 / 1024.0);
  EXPECT_LT(band.lines, 20 / 1024.0);
  EXPECT_GT(band.numbers, 100 / 1024.0);
  EXPECT_LT(band.numbers, 140 / 1024.0);
  const auto apart = near(make_matrix<UsualScalar>("diagonals:n=5000:count=1", Data::Real, 1));
  EXPECT_EQ(apart.numbers, 1.0);
  EXPECT_NEAR(apart.lines, 0.125, 0.01);
  const auto short_one = near(make_matrix<UsualScalar>("dense:rows=1:cols=16", Data::Real, 1));
  EXPECT_EQ(short_one.numbers, 1.0);
  EXPECT_EQ(short_one.lines, 0.125);
  Pattern empty;
  empty.rows = empty.cols = 3;
  empty.row_map = {0, 0, 0, 0};
  const auto none = near(make_matrix<UsualScalar>(empty, Data::Real, 1));
  EXPECT_EQ(none.lines, 0.0);
  EXPECT_EQ(none.numbers, 0.0);
}

/// Rows of as many entries as `length` says.
template <class F>
HostMatrix<UsualScalar> rows_of_lengths(int rows, F&& length) {
  Pattern p;
  p.rows = rows, p.cols = 700;
  p.row_map.push_back(0);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < length(i); ++k) p.entries.push_back((i + 90 * k) % 700);
    std::sort(p.entries.begin() + p.row_map.back(), p.entries.end());
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return make_matrix<UsualScalar>(p, Data::Real, 1);
}
/// 0 to 7, without a pattern.
int some_length(int row) {
  auto hash = static_cast<std::uint32_t>(row) * 2654435761u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  return static_cast<int>((hash ^ hash >> 13) % 8);
}

// Hosts, up to three columns: short rows whose lengths CPUs do not foresee are multiplied in another order.
TEST(HostSpmm, RowsInTheOrderOfTheirLengths) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Lengths = std::function<int(int)>;
  const std::vector<std::pair<Lengths, bool>> kinds = {
      {some_length, true}, {[](int) { return 5; }, false}, {[](int row) { return 3 + row % 3; }, false}};
  for (const auto& [length, reorders] : kinds) {
    const HostMatrix<UsualScalar> A = rows_of_lengths(17000, length);
    const DeviceMatrix<Host, UsualScalar> device(A);
    EXPECT_EQ(Impl::unforeseen_lengths(device.view()) >= 0.3, reorders);
    SpmmOptions o;
    o.algorithm = SpmmAlgorithm::GeSpmm;
    o.backend = Backend::Kokkos;
    const SpmmPlan<DeviceMatrix<Host, UsualScalar>::Csr> plan(Host(), device.view(), o);
    {
      const Kokkos::View<UsualScalar**, Kokkos::LayoutRight, Host> b("b", A.cols, 2), c("c", A.rows, 2);
      const std::size_t before = plan.format_bytes();
      plan.apply(Host(), Op::NoTrans, 1, b, 0, c);
      EXPECT_EQ(plan.format_bytes() - before, reorders ? 4 * 17000u : 0u);
    }
    for (const int n : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(n) + " columns, row 1 has " + std::to_string(length(1)));
      const auto b = numbers<UsualScalar>(std::int64_t{A.cols} * n, Data::Real, 2),
                 c = numbers<UsualScalar>(std::int64_t{A.rows} * n, Data::Real, 3);
      for (const double beta : {0.0, -2.0}) {
        const Scaling scaling{2.5, beta};
        EXPECT_TRUE(agrees_dense<UsualScalar>(
            A, n, scaling, b, c,
            (dense_product<RowMajor, RowMajorPart>(plan, Op::NoTrans, n, scaling, b, A.cols, c, A.rows)), false));
        EXPECT_TRUE(agrees_dense<UsualScalar>(
            A, n, scaling, b, c,
            (dense_product<ColumnMajorPart, ColumnMajor>(plan, Op::NoTrans, n, scaling, b, A.cols, c, A.rows)), false));
        EXPECT_TRUE(agrees_dense<UsualScalar>(
            A, n, scaling, b, c,
            (dense_product<RowMajor, ColumnMajor>(plan, Op::NoTrans, n, scaling, b, A.cols, c, A.rows)), false));
      }
    }
  }
}
TEST(HostSpmm, UnforeseenLengths) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const auto unforeseen = [](int rows, auto&& length) {
    const HostMatrix<UsualScalar> A = rows_of_lengths(rows, length);
    const DeviceMatrix<Host, UsualScalar> device(A);
    return Impl::unforeseen_lengths(device.view());
  };
  EXPECT_EQ(unforeseen(0, some_length), 0.0);
  EXPECT_GT(unforeseen(9000, some_length), 0.75);
  EXPECT_LT(unforeseen(9000, [](int) { return 2; }), 0.01);
  EXPECT_LT(unforeseen(9000, [](int row) { return row % 5; }), 0.01);
  EXPECT_LT(unforeseen(9000, [](int row) { return row / 1100; }), 0.02);
}

// Numbers of 16 bits are widened four at a time, and what is left of a row reads those before it again: rows of 0 to 17
// entries, every other one infinite throughout, do not reach their neighbours.
template <class T>
void rows_keep_to_themselves(int columns, int infinite) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  constexpr int rows = 40;
  HostMatrix<T> A;
  A.rows = rows;
  A.row_map.push_back(0);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < i % 18; ++k, ++A.cols) {
      A.entries.push_back(A.cols);
      A.values.push_back(T(i % 2 == infinite ? INFINITY : static_cast<float>(1 + k % 3)));
    }
    A.row_map.push_back(static_cast<int>(A.entries.size()));
  }
  const DeviceMatrix<Host, T> device(A);
  const SpmmPlan<typename DeviceMatrix<Host, T>::Csr> plan(Host(), device.view());
  Kokkos::View<T**, Kokkos::LayoutRight, Host> b("b", A.cols, columns), c("c", rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int k = A.row_map[i]; k < A.row_map[i + 1]; ++k) {
      for (int j = 0; j < columns; ++j) b(k, j) = T(i % 2 == infinite ? INFINITY : static_cast<float>(k % 5 - j));
    }
  }
  for (const bool adds : {false, true}) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) c(i, j) = T(adds ? 6.0f : NAN);
    }
    plan.apply(Host(), Op::NoTrans, 2.0, b, adds ? 0.5 : 0.0, c);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        float sum = 0;  // of small whole numbers: exact in any order
        for (int k = A.row_map[i]; k < A.row_map[i + 1]; ++k) {
          sum += static_cast<float>(A.values[k]) * static_cast<float>(b(k, j));
        }
        EXPECT_EQ(c(i, j).bits, T(2 * sum + (adds ? 3.0f : 0.0f)).bits) << "row " << i << ", column " << j;
      }
    }
  }
}
TEST(HostSpmm, RowsOf16BitsKeepToThemselves) {
  for (const int columns : {1, 2, 3, 4, 7, 8, 16}) {
    for (const int infinite : {0, 1, 2}) {  // 2: none
      SCOPED_TRACE(std::to_string(columns) + " columns, infinite " + std::to_string(infinite));
      rows_keep_to_themselves<half_t>(columns, infinite);
#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of BF16
      rows_keep_to_themselves<bhalf_t>(columns, infinite);
#endif
    }
  }
}

#ifndef TESSERA_TEST_FEWER_TYPES  // as in TestMixedSpmv
// A float matrix with double operands sums in double.
TEST(MixedSpmm, FloatMatrixDoubleOperandsSumInDouble) {
  constexpr int n = 1001;
  HostMatrix<float> A = make_matrix<float>("dense:rows=1:cols=" + std::to_string(n), Data::Integers, 1);
  std::fill(A.values.begin(), A.values.end(), 1.0f);
  std::vector<double> b(2 * n, std::ldexp(1.0, -30));
  b[0] = b[1] = 1;
  const DeviceMatrix<Exec, float> device(A);
  const SpmmPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view());
  const auto c = dense_product(plan, Op::NoTrans, 2, {}, b, n, std::vector<double>(2, 0.0), 1);
  EXPECT_EQ(c[0], 1 + std::ldexp(1000.0, -30));
  EXPECT_EQ(c[1], 1 + std::ldexp(1000.0, -30));
}

// A double matrix in 16 bits: rounded once, at set-up and at every update.
template <class Narrow>
void expect_matrix_rounded_once(ComputeType compute) {
  const Pattern p = all_classes(100, 10);
  const auto A = make_matrix<double>(p, Data::Magnitudes, 1), first = make_matrix<double>(p, Data::Real, 9);
  const auto rounded = make_matrix<Narrow>(p, Data::Magnitudes, 1);
  const DeviceMatrix<Exec, double> device(first);
  SpmmOptions o;
  o.backend = Backend::Kokkos;
  o.compute = compute;
  SpmmPlan<DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), o);
  copy_to(A.values, device.values);
  plan.update_values(Exec(), device.view());
  const int n = 9;
  const auto b = numbers<Narrow>(A.cols * n, Data::Magnitudes, 2);
  const auto c = numbers<float>(A.rows * n, Data::Magnitudes, 3);
  const auto got = dense_product(plan, Op::NoTrans, n, {2.5, -1}, b, A.cols, c, A.rows);
  EXPECT_TRUE(agrees_dense<float>(rounded, n, {2.5, -1}, b, c, got, false));
}
TEST(NarrowComputeSpmm, RoundsTheMatrixOnce) {
  expect_matrix_rounded_once<half_t>(ComputeType::FP16_FP32);
  expect_matrix_rounded_once<bhalf_t>(ComputeType::BF16_FP32);
}
#endif

}  // namespace Testing
}  // namespace Tessera
