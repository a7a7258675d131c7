// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPMM_HPP
#define TESSERA_TEST_SPMM_HPP

#include <algorithm>
#include <string>
#include <type_traits>

#include "Tessera_Spmm.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SpMM kernel must pass, whoever executes it and whatever the layouts of B and C. An emulated kernel for
/// compressed rows, without windows, reads rows of B where they lie, in words as narrow as their alignment asks for,
/// and columns as a copy in whole words (ge_spmm_packs); columns of C of short even rows are left to hosts' own.

namespace Tessera {
namespace Testing {

/// How a dense matrix lies in memory: contiguous, or as the middle of a larger one whose other elements are guards that
/// nobody may write, or read into a result.
template <class Layout, int before_, int after_>
struct Form {
  using layout = Layout;
  static constexpr int before = before_, after = after_;
};
using RowMajor = Form<Kokkos::LayoutRight, 0, 0>;
using ColumnMajor = Form<Kokkos::LayoutLeft, 0, 0>;
using RowMajorPart = Form<Kokkos::LayoutRight, 1, 2>;
using ColumnMajorPart = Form<Kokkos::LayoutLeft, 2, 1>;

template <class Exec, class T, class Form>
struct DenseOperand : Guarded<Exec, T, typename Form::layout> {
  DenseOperand(const std::vector<T>& data, std::int64_t rows, std::int64_t columns, double guard)
      : Guarded<Exec, T, typename Form::layout>(data, rows, columns,
                                                {Form::before, Form::after, Form::before, Form::after}, guard) {}
};

/// C := alpha op(A) B + beta C through a plan, compiled once per pair of layouts.
template <class GuardedB, class GuardedC, class Plan>
auto dense_product(const Plan& plan, Op op, Scaling s, const GuardedB& b, const GuardedC& c) {
  const typename Plan::execution_space space;
  plan.apply(space, op, s.alpha, b.view(), s.beta, c.view());
  space.fence();
  EXPECT_TRUE(c.intact()) << "something beside C was written";
  return c.read();
}
/// Rows of op(A) and columns of C as given.
template <class FormB = RowMajor, class FormC = RowMajor, class Plan, class BT, class CT>
std::vector<CT> dense_product(const Plan& plan, Op op, std::int64_t columns, Scaling s, const std::vector<BT>& b,
                              std::int64_t b_rows, const std::vector<CT>& c0, std::int64_t c_rows) {
  using Exec = typename Plan::execution_space;
  const DenseOperand<Exec, BT, FormB> db(b, b_rows, columns, std::nan(""));
  const DenseOperand<Exec, CT, FormC> dc(c0, c_rows, columns, 77);
  return dense_product<Guarded<Exec, BT, typename FormB::layout>, Guarded<Exec, CT, typename FormC::layout>>(plan, op,
                                                                                                             s, db, dc);
}

inline std::vector<int> all_widths() { return {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 128, 256}; }

/// One algorithm on one backend in one combination of element types.
template <class Exec, class AT, class BT = AT, class CT = AT>
class SpmmSuite {
 public:
  using AType = AT;
  using CType = CT;
  using Matrix = HostMatrix<AT>;
  using Device = DeviceMatrix<Exec, AT>;
  using Csr = typename Device::Csr;
  using Plan = SpmmPlan<Csr>;
  using Sum = SumOf<AT, BT, CT>;

  SpmmOptions options;
  /// Matrix units of devices cut sums, and align products by the exponents of their operands.
  bool matrix_unit = false;

  SpmmSuite(Backend backend, SpmmAlgorithm algorithm, ComputeType compute = ComputeType::Auto) {
    options.backend = backend;
    options.algorithm = algorithm;
    options.compute = compute;
    options.fallback = false;
    matrix_unit = windows() && !Compat::is_host_v<Exec>;
  }
  /// Whether Auto or the options lead to a format of windows.
  bool windows() const {
    if (options.algorithm != SpmmAlgorithm::Auto) {
      return options.algorithm == SpmmAlgorithm::Panels || options.algorithm == SpmmAlgorithm::FlashSparse;
    }
    return options.backend != Backend::Kokkos && options.backend != Backend::Reference &&
           (options.backend != Backend::Auto || !Compat::is_host_v<Exec> || options.compute == ComputeType::TF32);
  }

  double unit() const { return unit_of<Sum, Exec>(matrix_unit); }
  double floor() const { return std::is_same_v<BT, half_t> && matrix_unit ? 0x1p-14 : 0; }
  /// TF32: numbers that it holds, so that products are exact and the bound is that of the sums.
  template <class T>
  std::vector<T> operand(std::vector<T> v) const {
    if constexpr (std::is_same_v<T, float>) {
      if (options.compute == ComputeType::TF32) std::transform(v.begin(), v.end(), v.begin(), round_to_tf32);
    }
    return v;
  }
  Matrix matrix(const Pattern& p, Data data, std::uint64_t seed) const {
    Matrix A = make_matrix<AT>(p, data, seed);
    A.values = operand(A.values);
    return A;
  }
  std::vector<BT> b_of(std::int64_t rows, std::int64_t columns, Data data) const {
    return operand(numbers<BT>(rows * columns, data, 21));
  }

  template <class FormB = RowMajor, class FormC = RowMajor>
  void expect(const Plan& plan, const Matrix& A, int columns, Data data, Scaling s = {}) const {
    SCOPED_TRACE(std::to_string(columns) + " columns");
    const auto b = b_of(A.cols, columns, data);
    const auto c = numbers<CT>(static_cast<std::int64_t>(A.rows) * columns, data, 22);
    expect_with<FormB, FormC>(plan, A, columns, b, c, data == Data::Integers, s);
  }
  template <class FormB = RowMajor, class FormC = RowMajor>
  void expect_with(const Plan& plan, const Matrix& A, int columns, const std::vector<BT>& b, const std::vector<CT>& c,
                   bool exact, Scaling s) const {
    const auto got = dense_product<FormB, FormC>(plan, Op::NoTrans, columns, s, b, A.cols, c, A.rows);
    EXPECT_TRUE(agrees_dense<Sum>(A, columns, s, b, c, got, exact, unit(), floor()));
  }
  void expect_pattern(const Pattern& p, const std::string& what, const std::vector<int>& widths,
                      const std::vector<Data>& kinds = {Data::Integers, Data::Real}) const {
    SCOPED_TRACE(what);
    for (const Data data : kinds) {
      const Matrix A = matrix(p, data, 11);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options);
      const bool real = data == Data::Real;  // of shorter lists each meets one layout of two
      for (const int columns : widths) {
        if (!shorter_lists || !real) expect(plan, A, columns, data);
        if (!shorter_lists || real) expect<ColumnMajorPart, RowMajorPart>(plan, A, columns, data, {2.5, -1});
      }
    }
  }

  void every_shape(const std::vector<int>& widths) const {
    std::size_t turn = 0;  // of shorter lists a shape meets one kind of numbers, the next one the other
    for (const std::string& spec : shapes<shorter_lists>()) {
      std::vector<Data> kinds;
      for (const Data data : {Data::Integers, Data::Real}) {
        if (!taken_elsewhere(turn++)) kinds.push_back(data);
      }
      ++turn;
      expect_pattern(generate(spec), spec, widths, kinds);
    }
  }
  void every_width(const Pattern& p, const std::vector<int>& widths) const {
    const Matrix A = matrix(p, Data::Integers, 11), R = matrix(p, Data::Real, 12);
    const Device device(A), real(R);
    const Plan plan(Exec(), device.view(), options), real_plan(Exec(), real.view(), options);
    int turn = 0;  // of shorter lists a width meets every second combination of layouts, the next one the others
    for (const int columns : widths) {
      const bool first = !shorter_lists || turn % 2 == 0, second = !shorter_lists || turn % 2 == 1;
      ++turn;
      if (first) {
        expect<RowMajor, RowMajor>(plan, A, columns, Data::Integers);
        expect<ColumnMajorPart, ColumnMajorPart>(plan, A, columns, Data::Integers, {1, -0.5});
        expect<RowMajor, ColumnMajor>(plan, A, columns, Data::Integers, {-0.5, 0});
        expect<ColumnMajor, ColumnMajorPart>(real_plan, R, columns, Data::Real, {2.5, -1});
      }
      if (second) {
        expect<ColumnMajor, ColumnMajor>(plan, A, columns, Data::Integers, {1, 1});
        expect<RowMajorPart, RowMajorPart>(plan, A, columns, Data::Integers, {-0.5, 1});
        expect<ColumnMajor, RowMajor>(plan, A, columns, Data::Integers, {-0.5, -0.5});
        expect<RowMajor, RowMajorPart>(real_plan, R, columns, Data::Real);
      }
    }
  }
  void every_scaling(const Pattern& p, int columns) const {
    for (const Data data : {Data::Integers, Data::Magnitudes}) {
      const Matrix A = matrix(p, data, 5);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options);
      for (const double alpha : {0.0, 1.0, -0.5}) {
        for (const double beta : {0.0, 1.0, -0.5}) {
          expect(plan, A, columns, data, {alpha, beta});
          expect<ColumnMajorPart, ColumnMajorPart>(plan, A, columns, data, {alpha, beta});
          if (!windows()) expect<ColumnMajorPart, RowMajorPart>(plan, A, columns, data, {alpha, beta});
        }
      }
    }
  }
  /// beta = 0 does not read C, alpha = 0 reads neither B nor A.
  void undefined_operands(const Pattern& p, int columns) const {
    const Matrix A = matrix(p, Data::Integers, 5);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    const auto size = [columns](std::int64_t rows) { return static_cast<std::size_t>(rows * columns); };
    const std::vector<BT> bad_b(size(A.cols), as<BT>(std::nan("")));
    const std::vector<CT> bad_c(size(A.rows), as<CT>(std::nan("")));
    const auto b = b_of(A.cols, columns, Data::Integers);
    const auto c = numbers<CT>(static_cast<std::int64_t>(A.rows) * columns, Data::Integers, 7);
    const auto check = [&](Scaling s, const std::vector<BT>& from, const std::vector<CT>& to) {
      expect_with<RowMajor, RowMajor>(plan, A, columns, from, to, true, s);
      expect_with<ColumnMajorPart, ColumnMajor>(plan, A, columns, from, to, true, s);
      if (!windows()) expect_with<ColumnMajorPart, RowMajor>(plan, A, columns, from, to, true, s);
    };
    check({-1, 0}, b, bad_c);
    check({0, 2.5}, bad_b, c);
    check({0, 0}, bad_b, bad_c);
  }
  /// Infinite and undefined numbers in rows of B that A has no entry for, and in some that it has, also under an entry
  /// that is zero, and in A: each element of C is finite, infinite or undefined as that of plain loops.
  void bad_rows_of_b(const Pattern& p, int columns) const {
    Matrix A = matrix(on_odd_columns(p), Data::Integers, 5);
    const auto column = bad_at_even_columns<BT>(A.cols);
    std::vector<BT> b;
    for (const BT& number : column) b.insert(b.end(), static_cast<std::size_t>(columns), number);
    const std::vector<CT> c(static_cast<std::size_t>(static_cast<std::int64_t>(A.rows) * columns), as<CT>(3));
    for (const bool meet : {false, true}) {
      if (meet) add_bad_rows(A, 0);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options);
      expect_with(plan, A, columns, b, c, true, {1, 2});
      if (!windows()) expect_with<ColumnMajor, RowMajor>(plan, A, columns, b, c, true, {1, 2});
    }
  }
  template <class FormB = RowMajor, class FormC = RowMajor>
  void transposed_product_and_new_values(const Pattern& p, int columns) const {
    const Matrix A = matrix(p, Data::Integers, 5), other = matrix(p, Data::Integers, 6);
    const Device a(A), o(other);
    SpmmOptions both = options;
    both.prepare_transpose = true;
    Plan plan(Exec(), a.view(), both);
    EXPECT_TRUE(plan.statistics().transpose_prepared);
    const auto b = b_of(A.rows, columns, Data::Integers);
    const auto c = numbers<CT>(static_cast<std::int64_t>(A.cols) * columns, Data::Integers, 8);
    const auto check = [&](const Matrix& wanted) {
      for (const Op op : {Op::Trans, Op::ConjTrans}) {
        const auto got = dense_product<ColumnMajor, FormC>(plan, op, columns, {2.5, -1}, b, A.rows, c, A.cols);
        EXPECT_TRUE(agrees_dense<Sum>(transposed(wanted), columns, {2.5, -1}, b, c, got, true));
      }
      expect<FormB, FormC>(plan, wanted, columns, Data::Integers);
    };
    check(A);
    plan.update_values(Exec(), o.view().values());
    check(other);
    plan.update_values(
        Exec(), Csr(a.view().rows(), a.view().cols(), a.view().row_map(), a.view().entries(), a.view().values()));
    check(A);
  }
  /// The same bits twice, from a second plan, and after scratch was used for something else.
  void deterministic(const Pattern& p, int columns) const {
    const Matrix A = matrix(p, Data::Real, 5);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options), again(Exec(), device.view(), options);
    const auto b = b_of(A.cols, columns, Data::Real);
    const auto c = numbers<CT>(static_cast<std::int64_t>(A.rows) * columns, Data::Real, 7);
    const auto run = [&](const Plan& of) {
      auto both = dense_product<ColumnMajor, ColumnMajor>(of, Op::NoTrans, columns, {2.5, -1}, b, A.cols, c, A.rows);
      if (windows()) return both;
      const auto more = dense_product<RowMajor, RowMajor>(of, Op::NoTrans, columns, {2.5, -1}, b, A.cols, c, A.rows);
      both.insert(both.end(), more.begin(), more.end());
      return both;
    };
    const auto first = run(plan);
    expect(plan, A, 2 * columns + 1, Data::Real);
    EXPECT_TRUE(same_bits(first, run(plan)));
    EXPECT_TRUE(same_bits(first, run(again)));
  }
  /// After a first apply of the same shapes and layouts, neither apply nor update_values allocates; on devices apply
  /// does not wait either.
  void no_allocation(const Pattern& p, int columns) const {
    const Matrix A = matrix(p, Data::Integers, 5);
    const Device device(A);
    SpmmOptions both = options;
    both.prepare_transpose = true;
    const Exec space;
    Plan plan(space, device.view(), both);
    const auto n = static_cast<std::size_t>(columns);
    const auto rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
    const Kokkos::View<BT**, Kokkos::LayoutLeft, DeviceOf<Exec>> b("b", cols, n), bt("bt", rows, n);
    const Kokkos::View<CT**, Kokkos::LayoutLeft, DeviceOf<Exec>> c("c", rows, n), ct("ct", cols, n);
    const Kokkos::View<CT**, Kokkos::LayoutRight, DeviceOf<Exec>> by_rows("c by rows", rows, n);
    const auto apply_all = [&] {
      plan.apply(space, b, c);
      plan.apply(space, b, by_rows);
      plan.apply(space, Op::NoTrans, 2, b, 3, c);
      plan.apply(space, Op::Trans, 2, bt, 3, ct);
    };
    apply_all();
    space.fence();
    const KokkosCounters counters;
    apply_all();
    if (!Compat::is_host_v<Exec>) {
      EXPECT_EQ(counters.fences(), 0) << "apply waited";
    }
    EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
    plan.update_values(space, device.view().values());
    EXPECT_EQ(counters.allocations(), 0) << "update_values: " << counters.last_allocation();
    const DeviceVector<Exec, BT> one("one", 1);
    EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
  }
  /// A 16-bit sum would stop at 2048 (half_t) or 256 (bhalf_t).
  void ones(int columns) const {
    Matrix A = make_matrix<AT>("dense:rows=1:cols=4096", Data::Integers, 1);
    std::fill(A.values.begin(), A.values.end(), as<AT>(1));
    const Device device(A);
    const Plan plan(Exec(), device.view(), options);
    const std::vector<BT> b(static_cast<std::size_t>(4096 * columns), as<BT>(1));
    const std::vector<CT> c(static_cast<std::size_t>(columns), as<CT>(0));
    for (const CT& sum : dense_product(plan, Op::NoTrans, columns, {}, b, 4096, c, 1)) EXPECT_EQ(wide(sum), 4096);
  }
  /// A workspace of workspace_bytes(n), and not one byte beyond.
  void workspace(const Pattern& p, int columns) const {
    const Matrix A = matrix(p, Data::Integers, 5);
    const Device device(A);
    const std::size_t need = Plan(Exec(), device.view(), options).workspace_bytes(columns);
    ASSERT_GT(need, 0u);
    const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
    Kokkos::deep_copy(memory, ~std::uint64_t{0});
    SpmmOptions given = options;
    given.workspace = {memory.data(), need};
    const Plan plan(Exec(), device.view(), given);
    expect<ColumnMajor, ColumnMajor>(plan, A, columns, Data::Integers, {2.5, -1});
    expect<ColumnMajorPart, RowMajorPart>(plan, A, columns, Data::Integers);
    const auto after = to_host(memory);
    for (std::size_t i = (need + 7) / 8; i < after.size(); ++i) EXPECT_EQ(after[i], ~std::uint64_t{0}) << i;
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
