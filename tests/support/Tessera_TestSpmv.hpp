// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPMV_HPP
#define TESSERA_TEST_SPMV_HPP

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SpMV plan must pass, whatever its algorithm and whoever executes it.

namespace Tessera {
namespace Testing {

inline bool has_class(const Statistics& s, const std::string& name) {
  return std::any_of(s.classes.begin(), s.classes.end(), [&](const ClassShare& c) { return c.name == name; });
}

/// The plans of one algorithm and backend for one type of matrix.
template <class Exec, class Scalar, class Offset = std::int64_t>
class SpmvSuite {
 public:
  using Matrix = HostMatrix<Scalar, Offset>;
  using Device = DeviceMatrix<Exec, Scalar, Offset>;
  using Plan = SpmvPlan<typename Device::Csr>;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

  SpmvSuite(SpmvAlgorithm algorithm, Backend backend) {
    options.algorithm = algorithm;
    options.backend = backend;
    options.fallback = false;
  }

  SpmvOptions options;
  double unit = TypeFacts<Sum>::roundoff();  ///< of the sums
  double operand_floor = 0;                  ///< see Reference::spmv

  static Matrix matrix(const Pattern& p, Data data, std::uint64_t seed) {
    return make_matrix<Scalar, Offset>(p, data, seed);
  }
  SpmvOptions with_transpose() const {
    SpmvOptions o = options;
    o.prepare_transpose = true;
    return o;
  }
  /// A plan that is what was asked for.
  Plan plan(const Device& A, const SpmvOptions& o) const {
    Plan made(Exec(), A.view(), o);
    EXPECT_EQ(made.statistics().algorithm, to_string(options.algorithm));
    EXPECT_FALSE(made.statistics().fallback_taken);
    return made;
  }
  Plan plan(const Device& A) const { return plan(A, options); }

  template <class Y, class Form>
  void expect_with(const Plan& plan, const Matrix& A, const std::vector<Scalar>& x, const std::vector<Y>& y, bool exact,
                   Scaling s = {}) const {
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(plan, s, x, y), exact, unit, operand_floor));
  }
  /// One product against plain loops. With integers the result must be equal.
  template <class Y = Sum, class Form = Contiguous>
  void expect(const Plan& plan, const Matrix& A, Data data, Scaling s = {}) const {
    expect_with<Y, Form>(plan, A, numbers<Scalar>(A.cols, data, 21), numbers<Y>(A.rows, data, 22),
                         data == Data::Integers, s);
  }
  /// Into both types of y, one of them with strides.
  void expect_both(const Plan& plan, const Matrix& A, Data data, Scaling first, Scaling second) const {
    expect<Sum, Contiguous>(plan, A, data, first);
    expect<Scalar, Strided>(plan, A, data, second);
  }
  void expect_pattern(const Pattern& p, const std::string& what, const std::vector<Data>& all) const {
    SCOPED_TRACE(what);
    for (const Data data : all) {
      const Matrix A = matrix(p, data, 11);
      const Device device(A);
      expect_both(plan(device), A, data, {}, {2.5, -1});
    }
  }
  void expect_pattern(const Pattern& p, const std::string& what) const {
    expect_pattern(p, what, {Data::Integers, Data::Real});
  }
  void every_shape(const std::vector<Data>& all = {Data::Integers, Data::Real}) const {
    for (const std::string& spec : shapes()) expect_pattern(generate(spec), spec, all);
  }
  /// Rows of one length in numbers around those of a wave, a tile and a part.
  void awkward_sizes(const std::vector<int>& lengths, const std::vector<int>& rows) const {
    for (const int length : lengths) {
      for (const int n : rows) {
        expect_pattern(pattern_of_lengths(std::vector<int>(static_cast<std::size_t>(n), length), 1031),
                       std::to_string(n) + " rows of " + std::to_string(length));
      }
    }
  }
  void every_scaling(const Pattern& p) const {
    for (const Data data : {Data::Integers, Data::Magnitudes}) {
      const Matrix A = matrix(p, data, 5);
      const Device device(A);
      const Plan made = plan(device);
      for (const Scaling s : scalings()) {
        expect_both(made, A, data, s, s);
        expect<Scalar, Contiguous>(made, A, data, s);
      }
    }
  }
  /// Columns k >= 0 in one call, with guards beside them. The product of each must be bitwise
  /// that of the column alone: the order of sums does not depend on how many there are. beta = 0 meets NaN in y.
  void several_vectors(const Matrix& A, const std::vector<int>& widths) const {
    const Device device(A);
    const Plan made = plan(device);
    for (const int k : widths) {
      SCOPED_TRACE(std::to_string(k) + " vectors");
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutLeft, Sum>(made, A, k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutRight, Scalar>(made, A, k);
      if (k % 6 != 3) continue;  // both layouts in one call
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutRight, Scalar>(made, A, k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutLeft, Sum>(made, A, k);
    }
  }
  /// beta = 0 overwrites whatever y holds; alpha = 0 reads neither x nor A's values.
  void undefined_vectors(const Pattern& p) const {
    const Matrix A = matrix(p, Data::Integers, 5);
    const Device device(A);
    const Plan made = plan(device);
    const auto x = numbers<Scalar>(A.cols, Data::Integers, 6);
    const std::vector<Scalar> bad_x(static_cast<std::size_t>(A.cols), as<Scalar>(std::nan("")));
    const std::vector<Scalar> narrow(static_cast<std::size_t>(A.rows), as<Scalar>(std::nan("")));
    const std::vector<Sum> bad_y(static_cast<std::size_t>(A.rows), as<Sum>(std::nan("")));
    expect_with<Sum, Contiguous>(made, A, x, bad_y, true, {-1, 0});
    expect_with<Scalar, Strided>(made, A, x, narrow, true, {-1, 0});
    for (const double beta : {1.0, 2.5, -1.0}) {
      expect_with<Sum, Contiguous>(made, A, bad_x, numbers<Sum>(A.rows, Data::Integers, 7), true, {0, beta});
    }
    expect_with<Sum, Contiguous>(made, A, bad_x, bad_y, true, {0, 0});
  }
  /// Both operators, before and after new values: bitwise what a fresh plan gives.
  void transposed_product_and_new_values(const Pattern& p) const {
    const Matrix A = matrix(p, Data::Integers, 5), B = matrix(p, Data::Real, 6);
    const Device a(A), b(B);
    Plan made = plan(a, with_transpose());
    EXPECT_TRUE(made.statistics().transpose_prepared);
    const auto x = numbers<Scalar>(A.rows, Data::Integers, 6);
    const auto y = numbers<Sum>(A.cols, Data::Integers, 7);
    for (const Op op : {Op::Trans, Op::ConjTrans}) {
      EXPECT_TRUE(agrees<Sum>(transposed(A), {2.5, -1}, x, y, product(made, op, {2.5, -1}, x, y), true));
    }
    expect(made, A, Data::Integers);  // and A itself is still there
    made.update_values(Exec(), b.view().values());
    const Plan fresh = plan(b, with_transpose());
    const auto xb = numbers<Scalar>(B.cols, Data::Real, 3);
    const auto yb = numbers<Sum>(B.rows, Data::Real, 4);
    EXPECT_TRUE(same_bits(product(made, Scaling{}, xb, yb), product(fresh, Scaling{}, xb, yb)));
    EXPECT_TRUE(same_bits(product(made, Op::Trans, {}, x, y), product(fresh, Op::Trans, {}, x, y)));
    expect(made, B, Data::Real);
  }
  void transposed_products_and_new_values() const {
    for (const char* spec :
         {"every_length:longest=300:cols=401", "lp:rows=51:cols=3001:slack=1", "dense_column:others=1",
          "duplicates:rows=151:longest=400", "empty:rows=5:cols=0", "empty:rows=0:cols=5", "stencil2d:nx=37:ny=29"}) {
      SCOPED_TRACE(spec);
      transposed_product_and_new_values(generate(spec));
    }
  }
  /// The same bits in every run and from a second plan. A: rows whose sums arrive in any order on a device.
  void deterministic(const Pattern& p, int runs) const {
    const Matrix A = matrix(p, Data::Real, 5);
    const Device device(A);
    const Plan made = plan(device);
    ASSERT_GT(made.workspace_bytes(), 0u) << "the matrix does not say much";
    const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
    const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1);
    const auto first = product(made, Scaling{}, x, y);
    EXPECT_TRUE(agrees<Sum>(A, {}, x, y, first, false, unit, operand_floor));
    for (int run = 1; run < runs; ++run) {
      ASSERT_TRUE(same_bits(first, product(made, Scaling{}, x, y))) << "run " << run;
    }
    EXPECT_TRUE(same_bits(first, product(plan(device), Scaling{}, x, y))) << "a second plan";
  }
  /// Neither apply nor, if asked, update_values allocates; on devices apply does not wait either.
  void no_allocation(const Pattern& p, bool updates) const {
    const Matrix A = matrix(p, Data::Integers, 5);
    const Device device(A);
    const Exec space;
    Plan made = plan(device, with_transpose());
    ASSERT_GT(made.workspace_bytes(), 0u) << "the matrix does not say much";
    const DeviceVector<Exec, Scalar> x("x", A.cols), xt("xt", A.rows);
    const DeviceVector<Exec, Sum> y("y", A.rows), yt("yt", A.cols);
    const Kokkos::View<Scalar**, Kokkos::LayoutLeft, DeviceOf<Exec>> xs("xs", A.cols, 9);
    const Kokkos::View<Sum**, Kokkos::LayoutLeft, DeviceOf<Exec>> ys("ys", A.rows, 9);
    made.apply(space, x, y);  // the first may note the instance
    space.fence();
    const KokkosCounters counters;
    made.apply(space, x, y);
    made.apply(space, Op::NoTrans, 2, x, 3, y);
    made.apply(space, Op::Trans, 2, xt, 3, yt);
    made.apply(space, Op::NoTrans, 2, xs, 3, ys);
    if (!Compat::is_host_v<Exec>) {
      EXPECT_EQ(counters.fences(), 0);
    }
    EXPECT_EQ(counters.kernels(), 0) << "the backend launches its own";
    EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
    if (updates) {
      made.update_values(space, device.view().values());
      EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
      EXPECT_GT(counters.kernels(), 0) << "the counters do not count";
    }
    const DeviceVector<Exec, Scalar> one("one", 1);
    EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
  }
  /// Exactly workspace_bytes(), whatever stands in it, in turn with another plan; one byte less is refused.
  void own_workspace(const Pattern& p) const {
    const Matrix A = matrix(p, Data::Integers, 5);
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
      const GuardedColumns<Exec, Scalar, LayoutX> dx(x, A.cols, k, std::nan(""));
      const GuardedColumns<Exec, Y, LayoutY> dy(y, A.rows, k, 77);
      const Exec space;
      made.apply(space, Op::NoTrans, s.alpha, dx.columns(), s.beta, dy.columns());
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

}  // namespace Testing
}  // namespace Tessera

#endif
