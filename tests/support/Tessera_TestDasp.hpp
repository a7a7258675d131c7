// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_DASP_HPP
#define TESSERA_TEST_DASP_HPP

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <type_traits>

#include "Tessera_Spmv.hpp"
#include "io/Tessera_MatrixMarket.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every DASP kernel must pass, whoever executes it: emulated matrix units on the host and devices run this one
/// list.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class DaspSuite {
 public:
  using Matrix = HostMatrix<Scalar>;
  using Device = DeviceMatrix<Exec, Scalar>;
  using Csr = typename Device::Csr;
  using Plan = SpmvPlan<Csr>;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

  explicit DaspSuite(Backend backend) : backend_(backend) {}

  SpmvOptions options(const DaspOptions& dasp = {}) const {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Dasp;
    o.backend = backend_;
    o.fallback = false;
    o.dasp = dasp;
    return o;
  }

  /// One product against plain loops. With integers the result must be equal.
  template <class Y = Sum, class Form = Contiguous>
  void expect(const Plan& plan, const Matrix& A, Data data, Scaling s = {}) const {
    const auto x = numbers<Scalar>(A.cols, data, 21);
    const auto y = numbers<Y>(A.rows, data, 22);
    expect_with<Y, Form>(plan, A, x, y, data == Data::Integers, s);
  }
  template <class Y, class Form>
  void expect_with(const Plan& plan, const Matrix& A, const std::vector<Scalar>& x, const std::vector<Y>& y, bool exact,
                   Scaling s = {}) const {
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(plan, s, x, y), exact, unit(), floor()));
  }
  void expect_pattern(const Pattern& p, const std::string& what, const DaspOptions& dasp = {}) const {
    SCOPED_TRACE(what);
    for (const Data data : {Data::Integers, Data::Real}) {
      const Matrix A = make_matrix<Scalar>(p, data, 11);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(dasp));
      ASSERT_NE(plan.dasp(), nullptr);
      expect(plan, A, data);
      expect<Scalar, Strided>(plan, A, data, {2.5, -1});
    }
  }

  void every_shape() const {
    for (const std::string& spec : shapes()) expect_pattern(generate(spec), spec);
  }
  void every_option() const {
    const Pattern p = all_classes(600, 200);
    for (const NamedOptions& o : option_sets()) expect_pattern(p, o.name, o.dasp);
  }
  /// Rows of one length in numbers around those of a tile, a block and a wave.
  void awkward_sizes() const {
    for (const int length : {1, 2, 3, 4, 5, 7, 30, 65, 255, 257, 1025}) {
      for (const int rows : {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 129, 257}) {
        const std::vector<int> lengths(static_cast<std::size_t>(rows), length);
        expect_pattern(pattern_of_lengths(lengths, 1031), std::to_string(rows) + " rows of " + std::to_string(length));
      }
    }
  }
  /// Sorted inside windows, as large matrices of even rows are.
  void many_windows() const {
    const std::int64_t rows = 34 * 2048;
    const Matrix A = make_matrix<Scalar>(rows_of({{5, rows + 3}, {6, 1001}}), Data::Integers, 11);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options());
    EXPECT_FALSE(plan.dasp()->global_sort);
    expect(plan, A, Data::Integers);
  }
  /// So many short steps that a wave takes several, and the last wave of a class fewer.
  void many_short_rows() const {
    const DaspGeometry g = geometry();
    const std::int64_t slices = DaspGeometry::tiles * g.rows * g.slices;
    const std::int64_t each = slices * (slices > 64 ? 3300 : 6600) + 7;  // 2.5 / slices steps a row, of each length
    const Matrix A = make_matrix<Scalar>(rows_of({{1, each}, {2, each}, {3, each}, {4, each}}), Data::Integers, 11);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options());
    EXPECT_GT(plan.dasp()->short_steps_per_wave, 1u) << "the matrix is too small for this test";
    expect(plan, A, Data::Integers);
  }
  /// Columns that descend, and columns that repeat.
  void unsorted_columns() const {
    Pattern p = all_classes(600, 200);
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const auto begin = p.entries.begin() + p.row_map[i], end = p.entries.begin() + p.row_map[i + 1];
      std::reverse(begin, end);
      for (auto k = begin; k < end; ++k) {
        if ((k - begin) % 3 == 1) *k = *begin;
      }
    }
    expect_pattern(p, "descending and repeated columns");
  }
  void every_scaling() const {
    const Matrix A = make_matrix<Scalar>(all_classes(600, 200), Data::Integers, 5);
    const Matrix B = make_matrix<Scalar>(all_classes(600, 200), Data::Magnitudes, 5);
    const Device a(A), b(B);
    const Plan exact(Exec(), a.view(), options()), rounded(Exec(), b.view(), options());
    for (const Scaling s : scalings()) {
      expect<Sum, Contiguous>(exact, A, Data::Integers, s);
      expect<Scalar, Contiguous>(exact, A, Data::Integers, s);
      expect<Sum, Strided>(rounded, B, Data::Magnitudes, s);
      expect<Scalar, Strided>(rounded, B, Data::Magnitudes, s);
    }
  }
  /// Columns k > 1 in one call, k = 0 in none.
  void several_vectors() const {
    const Matrix A = make_matrix<Scalar>(all_classes(300, 100), Data::Integers, 5);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options());
    for (const int k : {0, 1, 3}) {
      Kokkos::View<Scalar**, Kokkos::LayoutRight, DeviceOf<Exec>> x("x", A.cols, k);
      Kokkos::View<Sum**, Kokkos::LayoutLeft, DeviceOf<Exec>> y("y", A.rows, k);
      const auto hx = Kokkos::create_mirror_view(x);
      for (int i = 0; i < A.cols; ++i) {
        for (int j = 0; j < k; ++j) hx(i, j) = as<Scalar>(number(Data::Integers, 30 + j, i));
      }
      Kokkos::deep_copy(x, hx);
      plan.apply(Exec(), x, y);
      const auto hy = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
      for (int j = 0; j < k; ++j) {
        std::vector<Scalar> xj;
        std::vector<Sum> yj, zero(static_cast<std::size_t>(A.rows), Sum(0));
        for (int i = 0; i < A.cols; ++i) xj.push_back(as<Scalar>(number(Data::Integers, 30 + j, i)));
        for (int i = 0; i < A.rows; ++i) yj.push_back(hy(i, j));
        EXPECT_TRUE(agrees<Sum>(A, {}, xj, zero, yj, true)) << "column " << j;
      }
    }
  }

  /// No row uses the even columns of x, column 0 among them: nothing that stands there may reach a result.
  void unused_columns() const {
    const Matrix A = make_matrix<Scalar>(on_odd_columns(all_classes(600, 200)), Data::Integers, 5);
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    each_option(A, [&](const Plan& plan) {
      expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
      expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), true, {-1, 2.5});
    });
  }
  /// Every seventh row has an infinite or undefined value, another seventh meets one in x. Rows that share a block, a
  /// tile's row or a slice with them (pairs of 1 & 3, pairs of 2) must not notice.
  void bad_neighbours() const {
    for (int shift = 0; shift < 7; ++shift) {
      Matrix A = make_matrix<Scalar>(on_odd_columns(all_classes(400, 150)), Data::Integers, 5);
      add_bad_rows(A, shift);
      const auto x = bad_at_even_columns<Scalar>(A.cols);
      each_option(A, [&](const Plan& plan) {
        expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
      });
    }
  }
  /// beta = 0 overwrites whatever y holds; alpha = 0 reads neither x nor A's values.
  void undefined_vectors() const {
    const Matrix A = make_matrix<Scalar>(all_classes(600, 200), Data::Integers, 5);
    const Device device(A);
    const Plan plan(Exec(), device.view(), options());
    const double nan = std::nan("");
    const std::vector<Sum> y(static_cast<std::size_t>(A.rows), as<Sum>(nan));
    const std::vector<Scalar> narrow(static_cast<std::size_t>(A.rows), as<Scalar>(nan));
    expect_with<Sum, Contiguous>(plan, A, numbers<Scalar>(A.cols, Data::Integers, 6), y, true, {-1, 0});
    expect_with<Scalar, Strided>(plan, A, numbers<Scalar>(A.cols, Data::Integers, 6), narrow, true, {-1, 0});
    const std::vector<Scalar> x(static_cast<std::size_t>(A.cols), as<Scalar>(nan));
    for (const double beta : {1.0, 2.5, -1.0}) {
      expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true, {0, beta});
    }
    expect_with<Sum, Contiguous>(plan, A, x, y, true, {0, 0});
  }
  void new_values() const {
    const Pattern p = all_classes(600, 200);
    const Matrix A = make_matrix<Scalar>(p, Data::Real, 1), B = make_matrix<Scalar>(p, Data::Real, 2);
    const Device a(A), b(B);
    SpmvOptions o = options();
    o.prepare_transpose = true;
    const Exec space;
    Plan plan(space, a.view(), o);
    const Plan fresh(space, b.view(), o);
    plan.update_values(space, b.view().values());
    const auto x = numbers<Scalar>(A.cols, Data::Real, 3), xt = numbers<Scalar>(A.rows, Data::Real, 4);
    const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1), yt(static_cast<std::size_t>(A.cols), 1);
    EXPECT_TRUE(same_bits(product(plan, Scaling{}, x, y), product(fresh, Scaling{}, x, y)));
    EXPECT_TRUE(same_bits(product(plan, Op::Trans, {}, xt, yt), product(fresh, Op::Trans, {}, xt, yt)));
    EXPECT_TRUE(agrees<Sum>(B, {}, x, y, product(plan, Scaling{}, x, y), false, unit(), floor()));
  }
  void transposed_product() const {
    for (const char* spec :
         {"every_length:longest=600:cols=701", "lp:rows=51:cols=3001:slack=1", "dense_column:others=1",
          "duplicates:rows=151:longest=400", "empty:rows=5:cols=0", "empty:rows=0:cols=5"}) {
      SCOPED_TRACE(spec);
      const Matrix A = make_matrix<Scalar>(spec, Data::Integers, 5), T = transposed(A);
      const Device device(A);
      SpmvOptions o = options();
      o.prepare_transpose = true;
      const Plan plan(Exec(), device.view(), o);
      const auto x = numbers<Scalar>(A.rows, Data::Integers, 6);
      const auto y = numbers<Sum>(A.cols, Data::Integers, 7);
      for (const Op op : {Op::Trans, Op::ConjTrans}) {
        EXPECT_TRUE(agrees<Sum>(T, {2.5, -1}, x, y, product(plan, op, {2.5, -1}, x, y), true));
      }
      expect(plan, A, Data::Integers);  // and A itself is still there
    }
  }
  /// Many pieces of long rows, whose sums arrive in any order on a device.
  void deterministic(int runs) const {
    const Matrix A = make_matrix<Scalar>(long_rows, Data::Real, 5);
    const Device device(A);
    DaspOptions dasp;
    dasp.entries_per_wave = 128;
    const Plan plan(Exec(), device.view(), options(dasp));
    ASSERT_GT(plan.workspace_bytes(), 0u);
    const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
    const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1);
    const auto first = product(plan, Scaling{}, x, y);
    EXPECT_TRUE(agrees<Sum>(A, {}, x, y, first, false, unit(), floor()));
    for (int run = 1; run < runs; ++run) {
      ASSERT_TRUE(same_bits(first, product(plan, Scaling{}, x, y))) << "run " << run;
    }
    const Plan again(Exec(), device.view(), options(dasp));
    EXPECT_TRUE(same_bits(first, product(again, Scaling{}, x, y))) << "a second plan";
  }

  /// Neither apply nor update_values allocates; on devices apply does not wait either.
  void no_allocation() const {
    const Matrix A = make_matrix<Scalar>(long_rows, Data::Integers, 5);
    const Device device(A);
    SpmvOptions o = options();
    o.dasp.entries_per_wave = 128;
    o.prepare_transpose = true;
    const Exec space;
    Plan plan(space, device.view(), o);
    ASSERT_GT(plan.workspace_bytes(), 0u);
    const DeviceVector<Exec, Scalar> x("x", A.cols), xt("xt", A.rows);
    const DeviceVector<Exec, Sum> y("y", A.rows), yt("yt", A.cols);
    space.fence();
    const KokkosCounters counters;
    plan.apply(space, x, y);
    plan.apply(space, Op::NoTrans, 2, x, 3, y);
    plan.apply(space, Op::Trans, 2, xt, 3, yt);
    if (!Compat::is_host_v<Exec>) {
      EXPECT_EQ(counters.fences(), 0);
    }
    EXPECT_EQ(counters.kernels(), 0) << "the backend launches its own";
    EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
    plan.update_values(space, device.view().values());
    EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
    EXPECT_GT(counters.kernels(), 0) << "the counters do not count";
    const DeviceVector<Exec, Scalar> one("one", 1);
    EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
  }

  /// Every Matrix Market file of a folder below `most` stored entries: its pattern with integers, then its values.
  void files(const std::string& folder, std::int64_t most) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().string();
      if (name.find(".mtx") != std::string::npos) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const auto header = io::read_matrix_market_header(name);
      if (header.field == io::MatrixMarketField::Complex) {
        std::cout << "[ NOTE     ] complex, left out: " << name << "\n";
        continue;
      }
      if (header.stored >= most) continue;
      io::MatrixMarketOptions reading;
      reading.pattern_values_random = true;
      const auto file = io::read_matrix_market<double>(name, reading);
      if (static_cast<std::int64_t>(file.entries.size()) >= most) continue;
      Pattern p;
      p.rows = file.rows;
      p.cols = file.cols;
      p.row_map = file.row_map;
      p.entries = file.entries;
      Matrix A = make_matrix<Scalar>(p, Data::Integers, 5);
      const Device device(A);
      Plan plan(Exec(), device.view(), options());
      expect<Sum, Contiguous>(plan, A, Data::Integers, {1, 0});
      expect<Scalar, Contiguous>(plan, A, Data::Integers, {2.5, -1});
      for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<Scalar>(file.values[i]);
      copy_to(A.values, device.values);
      plan.update_values(Exec(), device.view().values());
      expect<Sum, Contiguous>(plan, A, Data::Magnitudes, {1, 0});
    }
  }
  /// TESSERA_MATRICES names a folder of further matrices.
  void shared_files(std::int64_t most) const {
    const char* folder = std::getenv("TESSERA_MATRICES");
    if (folder == nullptr) {
      GTEST_SKIP() << "TESSERA_MATRICES names no folder of matrices";
    }
    files(folder, most);
  }

 private:
  static constexpr const char* long_rows = "lp:rows=40:cols=30011:per_col=15:skew=0.7";

  double unit() const { return unit_of<Sum, Exec>(!Compat::is_host_v<Exec>); }
  /// Smallest normal FP16 number: see Reference::spmv. Emulated units keep every bit.
  double floor() const { return std::is_same_v<Scalar, half_t> && !Compat::is_host_v<Exec> ? 0x1p-14 : 0; }
  DaspGeometry geometry() const {
    const Matrix A = make_matrix<Scalar>("diagonal:rows=1:cols=1", Data::Integers, 1);
    const Device device(A);
    return Plan(Exec(), device.view(), options()).dasp()->geometry;
  }
  static Pattern rows_of(const std::vector<std::pair<int, std::int64_t>>& lengths) {
    Pattern p;
    p.cols = 3001;
    p.row_map.push_back(0);
    for (const auto& length : lengths) {
      for (std::int64_t i = 0; i < length.second; ++i, ++p.rows) {
        for (int k = 0; k < length.first; ++k) p.entries.push_back(static_cast<int>((i * 7 + k * 61) % p.cols));
        p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
      }
    }
    return p;
  }
  template <class Check>
  void each_option(const Matrix& A, const Check& check) const {
    const Device device(A);
    for (const int longest : {4, 255}) {
      for (const int pairs : {1, 1000000}) {
        for (const int work : {1, 256, 4096}) {
          DaspOptions dasp;
          dasp.max_medium_length = longest;
          dasp.min_pairs = pairs;
          dasp.entries_per_wave = work;
          dasp.threshold = pairs == 1 ? 0.75 : 1e-6;  // little of the padding, and all of it
          const Plan plan(Exec(), device.view(), options(dasp));
          check(plan);
        }
      }
    }
  }

  Backend backend_;
};

}  // namespace Testing
}  // namespace Tessera

#endif
