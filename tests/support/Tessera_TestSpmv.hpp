// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPMV_HPP
#define TESSERA_TEST_SPMV_HPP

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SpMV product must pass, whatever its algorithm and whoever executes it, and the list of tests of formats.

namespace Tessera {
namespace Testing {

inline bool has_class(const Statistics& s, const std::string& name) {
  return std::any_of(s.classes.begin(), s.classes.end(), [&](const ClassShare& c) { return c.name == name; });
}

/// The plans of one algorithm and backend for one type of matrix. Suites of formats say which options and patterns the
/// tests go through.
/// @tparam Made   what multiplies: a plan, or a format that no plan has, with the plan's members
/// @tparam First  type of the y that is consecutive in memory; that of the y with strides is Scalar
template <class Exec, class Scalar, class Offset = OffsetOf<Scalar>,
          class Made = SpmvPlan<typename DeviceMatrix<Exec, Scalar, Offset>::Csr>, class First = SumOf<Scalar>>
class SpmvSuite {
 public:
  using Matrix = HostMatrix<Scalar, Offset>;
  using Device = DeviceMatrix<Exec, Scalar, Offset>;
  using Plan = Made;
  using Sum = SumOf<Scalar>;
  using Options = std::vector<SpmvOptions>;

  SpmvSuite(SpmvAlgorithm algorithm, Backend backend) {
    options.algorithm = algorithm;
    options.backend = backend;
    options.fallback = false;
  }
  virtual ~SpmvSuite() = default;

  SpmvOptions options;
  double unit = TypeFacts<Sum>::roundoff();  ///< of the sums
  double operand_floor = 0;                  ///< see Reference::spmv
  std::vector<Data> data = {Data::Integers, Data::Real};

  /// Every option, with names.
  virtual std::vector<Named<SpmvOptions>> every_way() const { return {{"defaults", options}}; }
  /// What all other tests go through, those of bad numbers, and those of plans with scratch.
  virtual Options ways() const { return {options}; }
  virtual Options bad_ways() const { return ways(); }
  virtual Options scratch_ways() const { return ways(); }
  /// Rows for which the latter need it.
  virtual Pattern long_rows() const { return generate("circuit:n=5003:long_every=1000:long_min=800:long_max=2500"); }
  /// Rows of all classes, and what else a format stores in ways of its own.
  virtual std::vector<Pattern> patterns(int longest, int short_rows) const {
    return {all_classes(longest, short_rows)};
  }
  template <class F>
  void each(const Options& all, const F& f) {
    const SpmvOptions kept = options;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE("way " + std::to_string(i));
      options = all[i];
      f();
    }
    options = kept;
  }

  static Matrix matrix(const Pattern& p, Data numbers_of, std::uint64_t seed) {
    return make_matrix<Scalar, Offset>(p, numbers_of, seed);
  }
  SpmvOptions with_transpose() const {
    SpmvOptions o = options;
    o.prepare_transpose = true;
    return o;
  }
  /// A plan that is what was asked for.
  virtual Plan plan(const Device& A, const SpmvOptions& o) const {
    if constexpr (std::is_constructible_v<Plan, Exec, typename Device::Csr, SpmvOptions>) {
      Plan made(Exec(), A.view(), o);
      EXPECT_EQ(made.statistics().algorithm, to_string(options.algorithm));
      EXPECT_FALSE(made.statistics().fallback_taken);
      return made;
    } else {
      throw std::logic_error("a suite of something else than plans makes it itself");
    }
  }
  Plan plan(const Device& A) const { return plan(A, options); }

  template <class Y = First, class Form = Contiguous>
  void expect_with(const Plan& plan, const Matrix& A, const std::vector<Scalar>& x, const std::vector<Y>& y, bool exact,
                   Scaling s = {}) const {
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(plan, s, x, y), exact, unit, operand_floor));
  }
  /// One product against plain loops. With integers the result must be equal.
  template <class Y = First, class Form = Contiguous>
  void expect(const Plan& plan, const Matrix& A, Data numbers_of, Scaling s = {}) const {
    expect_with<Y, Form>(plan, A, numbers<Scalar>(A.cols, numbers_of, 21), numbers<Y>(A.rows, numbers_of, 22),
                         numbers_of == Data::Integers, s);
  }
  /// Into both types of y, one of them with strides.
  void expect_both(const Plan& plan, const Matrix& A, Data numbers_of, Scaling first, Scaling second) const {
    expect<First, Contiguous>(plan, A, numbers_of, first);
    expect<Scalar, Strided>(plan, A, numbers_of, second);
  }
  void expect_pattern(const Pattern& p, const std::string& what, const std::vector<Data>& all) const {
    SCOPED_TRACE(what);
    const bool both = !shorter_lists || all.size() == 1;  // else each kind of numbers meets one y of two
    for (const Data numbers_of : all) {
      const Matrix A = matrix(p, numbers_of, 11);
      const Device device(A);
      const Plan made = plan(device);
      if (both || numbers_of == all.front()) expect<First, Contiguous>(made, A, numbers_of);
      if (both || numbers_of != all.front()) expect<Scalar, Strided>(made, A, numbers_of, {2.5, -1});
    }
  }
  void expect_pattern(const Pattern& p, const std::string& what) const { expect_pattern(p, what, data); }

  void every_shape() {
    for (const std::string& spec : shapes()) expect_pattern(generate(spec), spec);
  }
  /// Of shorter lists every second pair of options and pattern: one half in 16 bits, the other in more.
  void every_option() {
    const SpmvOptions kept = options;
    const std::vector<Pattern> all = patterns(longest_case, 60);
    std::size_t turn = sizeof(Scalar) == 2;
    for (const Named<SpmvOptions>& way : every_way()) {
      options = way.options;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!shorter_lists || (turn + i) % 2 == 0) expect_pattern(all[i], way.name);
      }
      ++turn;
    }
    options = kept;
  }
  /// Rows of one length in numbers around those of a wave, a tile and a part.
  void awkward_sizes() {
    const std::vector<int> lengths =
        shorter_lists ? std::vector<int>{1, 4, 5, 31, 64, 65, 129, 257, 1025}
                      : std::vector<int>{1, 2, 3, 4, 5, 7, 8, 9, 30, 31, 33, 63, 64, 65, 127, 129, 255, 257, 513, 1025};
    const std::vector<int> numbers_of_rows =
        shorter_lists ? std::vector<int>{1, 3, 8, 17, 33, 65}
                      : std::vector<int>{1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129, 257};
    for (const int length : lengths) {
      for (const int n : numbers_of_rows) {
        expect_pattern(pattern_of_lengths(std::vector<int>(static_cast<std::size_t>(n), length), 1031),
                       std::to_string(n) + " rows of " + std::to_string(length));
      }
    }
  }
  void unsorted_columns() {
    each(ways(), [&] {
      for (const Pattern& p : patterns(longest_case, 100))
        expect_pattern(with_unsorted_columns(p), "unsorted and repeated");
    });
  }
  void every_scaling() {
    const Pattern p = all_classes(longest_case, 100);
    each(ways(), [&] {
      for (const Data numbers_of : {Data::Integers, Data::Magnitudes}) {
        const Matrix A = matrix(p, numbers_of, 5);
        const Device device(A);
        const Plan made = plan(device);
        for (const Scaling s : scalings()) {
          expect_both(made, A, numbers_of, s, s);
          if (!std::is_same_v<First, Scalar>) expect<Scalar, Contiguous>(made, A, numbers_of, s);
        }
      }
    });
  }
  /// Columns k >= 0 in one call, with guards beside them. The product of each must be bitwise
  /// that of the column alone: the order of sums does not depend on how many there are. beta = 0 meets NaN in y.
  void several_vectors(const Matrix& A, const std::vector<int>& widths) const {
    const Device device(A);
    const Plan made = plan(device);
    for (const int k : widths) {
      SCOPED_TRACE(std::to_string(k) + " vectors");
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutLeft, First>(made, A, k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutRight, Scalar>(made, A, k);
      if (k % 6 != 3) continue;  // both layouts in one call
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutRight, Scalar>(made, A, k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutLeft, First>(made, A, k);
    }
  }
  virtual void several_vectors() {
    each(ways(), [&] { several_vectors(matrix(all_classes(300, 50), Data::Real, 5), {0, 1, 3, 9}); });
  }
  /// beta = 0 overwrites whatever y holds, empty rows too; alpha = 0 reads neither x nor A's values.
  void undefined_vectors() {
    each(ways(), [&] {
      for (const std::string spec : {"", "empty", "dense_row:others=1", "web:n=3001:longest=900"}) {
        SCOPED_TRACE(spec);
        const Matrix A = matrix(spec.empty() ? all_classes(600, 100) : generate(spec), Data::Integers, 5);
        const Device device(A);
        const Plan made = plan(device);
        const auto x = numbers<Scalar>(A.cols, Data::Integers, 6);
        const std::vector<Scalar> bad_x(static_cast<std::size_t>(A.cols), as<Scalar>(std::nan("")));
        const std::vector<Scalar> narrow(static_cast<std::size_t>(A.rows), as<Scalar>(std::nan("")));
        const std::vector<First> bad_y(static_cast<std::size_t>(A.rows), as<First>(std::nan("")));
        expect_with(made, A, x, bad_y, true, {-1, 0});
        expect_with<Scalar, Strided>(made, A, x, narrow, true, {-1, 0});
        for (const double beta : {1.0, 2.5, -1.0}) {
          expect_with(made, A, bad_x, numbers<First>(A.rows, Data::Integers, 7), true, {0, beta});
        }
        expect_with(made, A, bad_x, bad_y, true, {0, 0});
      }
    });
  }
  /// No row uses the even columns of x, column 0 among them: nothing that stands there may reach a result, through
  /// padding or lanes without a row.
  virtual void unused_columns() {
    for (const Pattern& p : patterns(longest_case, 100)) {
      const Matrix A = matrix(on_odd_columns(p), Data::Integers, 5);
      const Device device(A);
      each(bad_ways(), [&] { expect_no_bad_column(plan(device), A, true); });
    }
  }
  void expect_no_bad_column(const Plan& plan, const Matrix& A, bool exact) const {
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    expect_with(plan, A, x, numbers<First>(A.rows, Data::Integers, 7), exact);
    expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), exact, {-1, 2.5});
  }
  /// Every seventh row has an infinite or undefined value, another seventh meets one in x. Rows that share a block, a
  /// slice or a group with them, or one of DASP's tile rows (pairs of 1 & 3, pairs of 2), must not notice.
  void bad_neighbours() {
    int first = 0;  // of shorter lists each pattern meets one of the seven
    for (const Pattern& p : patterns(300, 100)) {
      first = (first + 3) % 7;
      for (int shift = shorter_lists ? first : 0; shift < 7; shift += shorter_lists ? 7 : 1) {
        Matrix A = matrix(on_odd_columns(p), Data::Integers, 5);
        add_bad_rows(A, shift);
        const Device device(A);
        each(bad_ways(), [&] { expect_no_bad_column(plan(device), A, true); });
      }
    }
  }
  /// Both operators, before and after new values: bitwise what a fresh plan gives.
  void transposed_product_and_new_values(const Pattern& p) const {
    const Matrix A = matrix(p, Data::Integers, 5), B = matrix(p, Data::Real, 6);
    const Device a(A), b(B);
    Plan made = plan(a, with_transpose());
    EXPECT_TRUE(made.statistics().transpose_prepared);
    const auto x = numbers<Scalar>(A.rows, Data::Integers, 6);
    const auto y = numbers<First>(A.cols, Data::Integers, 7);
    for (const Op op : {Op::Trans, Op::ConjTrans}) {
      EXPECT_TRUE(agrees<Sum>(transposed(A), {2.5, -1}, x, y, product(made, op, {2.5, -1}, x, y), true));
    }
    expect(made, A, Data::Integers);  // and A itself is still there
    made.update_values(Exec(), b.view().values());
    const Plan fresh = plan(b, with_transpose());
    const auto xb = numbers<Scalar>(B.cols, Data::Real, 3);
    const auto yb = numbers<First>(B.rows, Data::Real, 4);
    EXPECT_TRUE(same_bits(product(made, Scaling{}, xb, yb), product(fresh, Scaling{}, xb, yb)));
    EXPECT_TRUE(same_bits(product(made, Op::Trans, {}, x, y), product(fresh, Op::Trans, {}, x, y)));
    expect(made, B, Data::Real);
  }
  void transposed_products_and_new_values() {
    for (const char* spec :
         {"every_length:longest=300:cols=401", "lp:rows=51:cols=3001:slack=1", "dense_column:others=1",
          "duplicates:rows=151:longest=400", "empty:rows=5:cols=0", "empty:rows=0:cols=5", "stencil2d:nx=37:ny=29"}) {
      SCOPED_TRACE(spec);
      transposed_product_and_new_values(generate(spec));
    }
  }

  // ---- plans with scratch: rows whose sums arrive in any order on a device

  /// The same bits in every run and from a second plan.
  void deterministic() { deterministic(long_rows()); }
  void deterministic(const Pattern& p) {
    each(scratch_ways(), [&] {
      const Matrix A = matrix(p, Data::Real, 5);
      const Device device(A);
      const Plan made = plan(device);
      ASSERT_GT(made.workspace_bytes(), 0u) << "the matrix does not say much";
      const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
      const std::vector<First> y(static_cast<std::size_t>(A.rows), as<First>(1));
      const auto first = product(made, Scaling{2.5, -1}, x, y);
      EXPECT_TRUE(agrees<Sum>(A, {2.5, -1}, x, y, first, false, unit, operand_floor));
      for (int run = 1; run < (Compat::is_host_v<Exec> ? 3 : 20); ++run) {
        ASSERT_TRUE(same_bits(first, product(made, Scaling{2.5, -1}, x, y))) << "run " << run;
      }
      EXPECT_TRUE(same_bits(first, product<Strided>(made, Scaling{2.5, -1}, x, y))) << "with strides";
      EXPECT_TRUE(same_bits(first, product(plan(device), Scaling{2.5, -1}, x, y))) << "a second plan";
    });
  }
  /// Neither apply nor update_values allocates (but where a value class looks at new numbers first); on devices apply
  /// does not wait either.
  void no_allocation() {
    each(scratch_ways(), [&] {
      const Matrix A = matrix(long_rows(), Data::Integers, 5);
      const Device device(A);
      const Exec space;
      Plan made = plan(device, with_transpose());
      ASSERT_GT(made.workspace_bytes(), 0u) << "the matrix does not say much";
      const DeviceVector<Exec, Scalar> x("x", A.cols), xt("xt", A.rows);
      const DeviceVector<Exec, First> y("y", A.rows), yt("yt", A.cols);
      const Kokkos::View<Scalar**, Kokkos::LayoutLeft, DeviceOf<Exec>> xs("xs", A.cols, 9);
      const Kokkos::View<First**, Kokkos::LayoutLeft, DeviceOf<Exec>> ys("ys", A.rows, 9);
      made.apply(space, x, y);  // the first may note the instance
      space.fence();
      const KokkosCounters counters;
      made.apply(space, x, y);
      made.apply(space, Op::NoTrans, 2, x, 3, y);
      made.apply(space, Op::Trans, 2, xt, 3, yt);
      made.apply(space, Op::NoTrans, 2, xs, 3, ys);
      if (!Compat::is_host_v<Exec>) {
        EXPECT_EQ(counters.fences(), 0) << "apply waited";
      }
      const bool portable = made.statistics().backend == "kokkos";
      EXPECT_EQ(counters.kernels() > 0, portable);
      EXPECT_EQ(counters.backend_kernels() > 0, !portable);
      EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
      if (options.algorithm != SpmvAlgorithm::PackedSlices || !options.packed.value_classes) {
        made.update_values(space, device.view().values());
        EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
        EXPECT_GT(counters.kernels(), 0) << "the counters do not count";
      }
      const DeviceVector<Exec, Scalar> one("one", 1);
      EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
    });
  }
  /// Exactly workspace_bytes(), whatever stands in it, in turn with another plan; one byte less is refused.
  void own_workspace() {
    each(scratch_ways(), [&] {
      const Matrix A = matrix(long_rows(), Data::Integers, 5);
      const Device device(A);
      const std::size_t need = plan(device).workspace_bytes(), extent = (need + 15) / 16 * 16 + 64;
      ASSERT_GT(need, 0u);
      const auto memory = to_device<Exec>(std::vector<unsigned char>(extent, 0xa5));
      SpmvOptions o = options;
      o.workspace = {memory.data(), need};
      const Plan first = plan(device, o), second = plan(device, o);
      for (int turn = 0; turn < 3; ++turn) {
        expect(first, A, Data::Integers);
        expect(second, A, Data::Integers, {2.5, -1});
      }
      const auto after = to_host(memory);
      for (std::size_t i = need; i < extent; ++i) ASSERT_EQ(after[i], 0xa5) << "byte " << i << " of " << need;
      o.workspace.bytes = need - 1;
      try {
        Plan(Exec(), device.view(), o);
        ADD_FAILURE() << "a workspace of " << need - 1 << " bytes was accepted";
      } catch (const WorkspaceTooSmall& e) {
        EXPECT_EQ(e.required(), need);
        EXPECT_EQ(e.given(), need - 1);
      }
    });
  }

 private:
  template <class LayoutX, class LayoutY, class Y>
  void vectors(const Plan& made, const Matrix& A, int k) const {
    const auto column_of = [k](const auto& all, int j) {
      std::decay_t<decltype(all)> one;
      for (std::size_t i = static_cast<std::size_t>(j); i < all.size(); i += static_cast<std::size_t>(k)) {
        one.push_back(all[i]);
      }
      return one;
    };
    const auto x = numbers<Scalar>(std::int64_t{A.cols} * k, Data::Real, 31);
    for (const Scaling s : {Scaling{1, 0}, Scaling{2.5, -1}}) {
      auto y = numbers<Y>(std::int64_t{A.rows} * k, Data::Real, 32);
      if (s.beta == 0) std::fill(y.begin(), y.end(), as<Y>(std::nan("")));
      const Guarded<Exec, Scalar, LayoutX> dx(x, A.cols, k, {0, 0, 1, 1}, std::nan(""));
      const Guarded<Exec, Y, LayoutY> dy(y, A.rows, k, {0, 0, 1, 1}, 77);
      const Exec space;
      made.apply(space, Op::NoTrans, s.alpha, dx.view(), s.beta, dy.view());
      space.fence();
      EXPECT_TRUE(dy.intact()) << "a vector beside those of the product was written";
      const auto all = dy.read();
      for (int j = 0; j < k; ++j) {
        const auto xj = column_of(x, j);
        const auto before = column_of(y, j), after = column_of(all, j);
        ASSERT_TRUE(agrees<Sum>(A, s, xj, before, after, false, unit, operand_floor)) << "vector " << j << " of " << k;
        ASSERT_TRUE(same_bits(product(made, s, xj, before), after)) << "vector " << j << " of " << k;
      }
    }
  }
};

/// The list of tests of formats: each suite on every backend that it names.
template <class Suite>
class FormatSpmv : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Compat::is_host_v<typename Suite::Plan::execution_space>) return;
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static void each(void (*f)(Suite&)) {
    for (const Backend backend : Suite::backends()) {
      SCOPED_TRACE(to_string(backend));
      Suite suite(backend);
      f(suite);
    }
  }
};
TYPED_TEST_SUITE_P(FormatSpmv);
TYPED_TEST_P(FormatSpmv, EveryShape) { TESSERA_EACH(every_shape()); }
TYPED_TEST_P(FormatSpmv, EveryOption) { TESSERA_EACH(every_option()); }
TYPED_TEST_P(FormatSpmv, AwkwardSizes) { TESSERA_EACH(awkward_sizes()); }
TYPED_TEST_P(FormatSpmv, ManySortWindows) { TESSERA_EACH(many_sort_windows()); }
TYPED_TEST_P(FormatSpmv, UnsortedColumns) { TESSERA_EACH(unsorted_columns()); }
TYPED_TEST_P(FormatSpmv, EveryScaling) { TESSERA_EACH(every_scaling()); }
TYPED_TEST_P(FormatSpmv, SeveralVectors) { TESSERA_EACH(several_vectors()); }
TYPED_TEST_P(FormatSpmv, UnusedColumns) { TESSERA_EACH(unused_columns()); }
TYPED_TEST_P(FormatSpmv, BadNeighbours) { TESSERA_EACH(bad_neighbours()); }
TYPED_TEST_P(FormatSpmv, UndefinedVectors) { TESSERA_EACH(undefined_vectors()); }
TYPED_TEST_P(FormatSpmv, TransposedProductsAndNewValues) { TESSERA_EACH(transposed_products_and_new_values()); }
TYPED_TEST_P(FormatSpmv, Deterministic) { TESSERA_EACH(deterministic()); }
TYPED_TEST_P(FormatSpmv, NoAllocation) { TESSERA_EACH(no_allocation()); }
TYPED_TEST_P(FormatSpmv, OwnWorkspace) { TESSERA_EACH(own_workspace()); }
REGISTER_TYPED_TEST_SUITE_P(FormatSpmv, EveryShape, EveryOption, AwkwardSizes, ManySortWindows, UnsortedColumns,
                            EveryScaling, SeveralVectors, UnusedColumns, BadNeighbours, UndefinedVectors,
                            TransposedProductsAndNewValues, Deterministic, NoAllocation, OwnWorkspace);

}  // namespace Testing
}  // namespace Tessera

#endif
