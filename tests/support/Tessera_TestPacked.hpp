// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_PACKED_HPP
#define TESSERA_TEST_PACKED_HPP

#include <algorithm>
#include <type_traits>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_PackedCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every kernel of packed slices must pass, whoever executes it: emulated waves on hosts and devices run this one
/// list. No matrix instruction is used, so the bound of Reference::spmv_bound holds with the unit
/// roundoff of the sums' type everywhere.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class PackedSuite {
 public:
  using Matrix = HostMatrix<Scalar>;
  using Device = DeviceMatrix<Exec, Scalar>;
  using Plan = SpmvPlan<typename Device::Csr>;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

  explicit PackedSuite(Backend backend) : backend_(backend) {}

  SpmvOptions options(const PackedOptions& packed = {}) const {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::PackedSlices;
    o.backend = backend_;
    o.fallback = false;
    o.packed = packed;
    return o;
  }
  /// Rows cut into parts as short as can be.
  static PackedOptions short_parts() {
    PackedOptions o;
    o.max_steps = o.split_steps = 2;
    return o;
  }
  static PackedOptions sharing() {
    PackedOptions o;
    o.least_shared = 0;
    return o;
  }

  template <class Y, class Form>
  void expect_with(const Plan& plan, const Matrix& A, const std::vector<Scalar>& x, const std::vector<Y>& y, bool exact,
                   Scaling s = {}) const {
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(plan, s, x, y), exact));
  }
  /// One product against plain loops. With integers the result must be equal.
  template <class Y = Sum, class Form = Contiguous>
  void expect(const Plan& plan, const Matrix& A, Data data, Scaling s = {}) const {
    expect_with<Y, Form>(plan, A, numbers<Scalar>(A.cols, data, 21), numbers<Y>(A.rows, data, 22),
                         data == Data::Integers, s);
  }
  void expect_pattern(const Pattern& p, const std::string& what, const PackedOptions& packed = {}) const {
    SCOPED_TRACE(what);
    for (const Data data : {Data::Integers, Data::Real}) {
      const Matrix A = make_matrix<Scalar>(p, data, 11);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(packed));
      ASSERT_NE(plan.packed(), nullptr);
      expect(plan, A, data);
      expect<Scalar, Strided>(plan, A, data, {2.5, -1});
    }
  }

  void every_shape() const {
    for (const std::string& spec : shapes()) expect_pattern(generate(spec), spec);
  }
  void every_option() const {
    const std::vector<Pattern> patterns = {all_classes(600, 10), generate("fem:nx=3:ny=2:nz=2:cavities=0"),
                                           stencil_with_gaps()};
    for (const NamedPacked& o : packed_option_sets()) {
      for (const Pattern& p : patterns) expect_pattern(p, o.name, o.packed);
    }
  }
  /// Rows of one length in numbers around those of a chunk, a wave and a part.
  void awkward_sizes() const {
    for (const int length : {1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 65, 129, 513, 1025}) {
      for (const int rows : {1, 2, 3, 5, 7, 8, 9, 31, 33, 63, 64, 65}) {
        const std::vector<int> lengths(static_cast<std::size_t>(rows), length);
        expect_pattern(pattern_of_lengths(lengths, 1031), std::to_string(rows) + " rows of " + std::to_string(length));
      }
    }
  }
  /// More than one of the largest windows, the last one short.
  void many_windows() const {
    const Matrix A = make_matrix<Scalar>("random:rows=9000:cols=997:lengths=geometric:mean=5", Data::Integers, 11);
    const Device device(A);
    PackedOptions o;
    o.window = 4092;
    const Plan plan(Exec(), device.view(), options(o));
    expect(plan, A, Data::Integers);
  }
  void unsorted_columns() const {
    for (const Pattern& p : {all_classes(600, 100), generate(three_dof), generate(stencil)}) {
      expect_pattern(with_unsorted_columns(p), "descending and repeated columns", sharing());
    }
  }
  void every_scaling() const {
    for (const PackedOptions& o : {PackedOptions{}, short_parts()}) {
      const Matrix A = make_matrix<Scalar>(all_classes(300, 50), Data::Integers, 5);
      const Matrix B = make_matrix<Scalar>(all_classes(300, 50), Data::Magnitudes, 5);
      const Device a(A), b(B);
      const Plan exact(Exec(), a.view(), options(o)), rounded(Exec(), b.view(), options(o));
      for (const Scaling s : scalings()) {
        expect<Sum, Contiguous>(exact, A, Data::Integers, s);
        expect<Scalar, Contiguous>(exact, A, Data::Integers, s);
        expect<Sum, Strided>(rounded, B, Data::Magnitudes, s);
        expect<Scalar, Strided>(rounded, B, Data::Magnitudes, s);
      }
    }
  }

  // ---- several vectors

  void several_vectors() const {
    for (int k = 0; k <= 11; ++k) {
      SCOPED_TRACE(std::to_string(k) + " vectors");
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutLeft, Sum>(k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutRight, Scalar>(k);
    }
    for (const int k : {3, 9}) {
      vectors<Kokkos::LayoutLeft, Kokkos::LayoutRight, Scalar>(k);
      vectors<Kokkos::LayoutRight, Kokkos::LayoutLeft, Sum>(k);
    }
  }
  /// Columns 1..k of blocks of k + 2, guards beside them; the product of each must be bitwise that of the column alone:
  /// the order of sums does not depend on how many there are. beta = 0 meets NaN in y.
  template <class LayoutX, class LayoutY, class Y>
  void vectors(int k) const {
    struct Case {
      Pattern pattern;
      PackedOptions packed;
      PackedStorage storage;
    };
    PackedOptions hubs, blocks;
    hubs.hubs = 30;
    blocks.column_blocks = 3;
    for (const Case& c :
         {Case{all_classes(150, 8), short_parts(), PackedStorage::Full},
          Case{generate("fem:nx=3:ny=2:nz=2:cavities=0"), sharing(), PackedStorage::Full},
          Case{stencil_with_gaps(), {}, PackedStorage::Full}, Case{all_classes(150, 8), {}, PackedStorage::Integer},
          Case{all_classes(150, 8), hubs, PackedStorage::Full},
          Case{all_classes(150, 8), blocks, PackedStorage::Full}}) {
      Matrix A = make_matrix<Scalar>(c.pattern, Data::Real, 5);
      fill_class(A.values, c.storage, 5);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(c.packed));
      ASSERT_EQ(plan.packed()->storage, c.storage);
      Kokkos::View<Scalar**, LayoutX, DeviceOf<Exec>> x("x", A.cols, k + 2);
      Kokkos::View<Y**, LayoutY, DeviceOf<Exec>> y("y", A.rows, k + 2);
      const auto hx = Kokkos::create_mirror_view(x);
      const auto hy = Kokkos::create_mirror_view(y);
      for (int j = 0; j < k + 2; ++j) {
        const bool guard = j == 0 || j == k + 1;
        for (int i = 0; i < A.cols; ++i) hx(i, j) = as<Scalar>(guard ? std::nan("") : number(Data::Real, 30 + j, i));
      }
      const auto inside = std::make_pair(1, k + 1);
      for (const Scaling s : {Scaling{1, 0}, Scaling{2.5, -1}}) {
        for (int j = 0; j < k + 2; ++j) {
          const bool guard = j == 0 || j == k + 1;
          for (int i = 0; i < A.rows; ++i) hy(i, j) = old_element<Y>(s, guard, j, i);
        }
        Kokkos::deep_copy(x, hx);
        Kokkos::deep_copy(y, hy);
        plan.apply(Exec(), Op::NoTrans, s.alpha, Kokkos::subview(x, Kokkos::ALL(), inside), s.beta,
                   Kokkos::subview(y, Kokkos::ALL(), inside));
        const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
        for (int j = 0; j < k + 2; ++j) {
          std::vector<Scalar> xj;
          std::vector<Y> before, after;
          for (int i = 0; i < A.cols; ++i) xj.push_back(hx(i, j));
          for (int i = 0; i < A.rows; ++i) {
            before.push_back(old_element<Y>(s, j == 0 || j == k + 1, j, i));
            after.push_back(got(i, j));
          }
          if (j == 0 || j == k + 1) {
            EXPECT_TRUE(same_bits(before, after)) << "a vector beside those of the product was written";
            continue;
          }
          ASSERT_TRUE(agrees<Sum>(A, s, xj, before, after, false)) << "vector " << j << " of " << k;
          ASSERT_TRUE(same_bits(product(plan, s, xj, before), after)) << "vector " << j << " of " << k;
        }
      }
    }
  }

  // ---- numbers that are none

  /// No row uses the even columns of x, column 0 among them: nothing that stands there may reach a result, through
  /// padding or lanes without a row (masked steps: below).
  void unused_columns() const {
    for (const Pattern& p : {all_classes(600, 100), generate(three_dof), stencil_with_gaps()}) {
      Matrix A = make_matrix<Scalar>(on_odd_columns(p), Data::Integers, 5);
      const auto x = bad_at_even_columns<Scalar>(A.cols);
      each_class_and_option(A, [&](const Plan& plan, bool exact) {
        expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), exact);
        expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), exact, {-1, 2});
      });
    }
  }
  /// x is bad at one column after the other of a stencil with gaps: only rows that have an entry there may notice,
  /// though the offsets of an index-free slice lead all its rows to some column.
  void masked_steps() const {
    Matrix A = make_matrix<Scalar>(stencil_with_gaps(), Data::Integers, 5);
    each_class_and_option(A, [&](const Plan& plan, bool exact) {
      for (int shift = 0; shift < 5; ++shift) {
        auto x = numbers<Scalar>(A.cols, Data::Integers, 6);
        for (std::size_t j = static_cast<std::size_t>(shift); j < x.size(); j += 13) x[j] = as<Scalar>(bad_number(j));
        expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), exact);
      }
    });
  }
  /// Every seventh row has an infinite or undefined value, another seventh meets one in x. Rows that share a slice or a
  /// group with them must not notice.
  void bad_neighbours() const {
    for (const Pattern& p : {all_classes(300, 60), generate(three_dof), stencil_with_gaps()}) {
      for (int shift = 0; shift < 7; shift += 2) {
        Matrix A = make_matrix<Scalar>(on_odd_columns(p), Data::Integers, 5);
        add_bad_rows(A, shift);
        const auto x = bad_at_even_columns<Scalar>(A.cols);
        const Device device(A);
        for (const PackedOptions& o : {sharing(), short_parts()}) {
          const Plan plan(Exec(), device.view(), options(o));
          EXPECT_EQ(plan.packed()->storage, PackedStorage::Full);
          expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
        }
      }
    }
  }
  /// beta = 0 overwrites whatever y holds; alpha = 0 reads neither x nor A's values.
  void undefined_vectors() const {
    const double nan = std::nan("");
    for (const PackedOptions& o : {PackedOptions{}, short_parts()}) {
      const Matrix A = make_matrix<Scalar>(all_classes(600, 100), Data::Integers, 5);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(o));
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
  }

  // ---- value classes

  /// Bitwise the result of values in full, for every kind of slice.
  void classes_change_no_bit() const {
    for (const Pattern& p : {all_classes(600, 100), generate(three_dof), stencil_with_gaps()}) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 5);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
      const auto y = numbers<Sum>(A.rows, Data::Real, 7);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        fill_class(A.values, storage, 8);
        const Device device(A);
        for (PackedOptions o : {sharing(), short_parts()}) {
          const Plan narrow(Exec(), device.view(), options(o));
          o.value_classes = false;
          const Plan full(Exec(), device.view(), options(o));
          ASSERT_EQ(narrow.packed()->storage, storage);
          ASSERT_EQ(full.packed()->storage, PackedStorage::Full);
          if (storage != PackedStorage::Full) {
            EXPECT_LT(narrow.format_bytes(), full.format_bytes());
          }
          const auto wanted = product(full, Scaling{2.5, -1}, x, y);
          EXPECT_TRUE(agrees<Sum>(A, {2.5, -1}, x, y, wanted, false));
          EXPECT_TRUE(same_bits(wanted, product(narrow, Scaling{2.5, -1}, x, y)))
              << "class " << static_cast<int>(storage);
        }
      }
    }
  }
  /// Numbers of the class keep it; others end it, and everything stays right. The transposed plan follows.
  void new_values() const {
    const Exec space;
    for (const Pattern& p : {all_classes(300, 60), generate(three_dof), stencil_with_gaps()}) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 1);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 3), xt = numbers<Scalar>(A.rows, Data::Real, 4);
      const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1), yt(static_cast<std::size_t>(A.cols), 1);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        SCOPED_TRACE("class " + std::to_string(static_cast<int>(storage)));
        fill_class(A.values, storage, 4);
        const Device device(A);
        SpmvOptions o = options(sharing());
        o.prepare_transpose = true;
        Plan plan(space, device.view(), o);
        ASSERT_EQ(plan.packed()->storage, storage);
        const auto update = [&](PackedStorage numbers_of, std::uint64_t seed, double odd, PackedStorage wanted) {
          fill_class(A.values, numbers_of, seed);
          if (odd != 0) A.values[A.values.size() / 3] = as<Scalar>(odd);
          const Device fresh_device(A);
          plan.update_values(space, fresh_device.view().values());
          space.fence();
          EXPECT_EQ(plan.packed()->storage, wanted);
          const Plan fresh(space, fresh_device.view(), o);
          EXPECT_TRUE(same_bits(product(plan, Scaling{}, x, y), product(fresh, Scaling{}, x, y)));
          EXPECT_TRUE(same_bits(product(plan, Op::Trans, {}, xt, yt), product(fresh, Op::Trans, {}, xt, yt)));
          EXPECT_TRUE(agrees<Sum>(A, {}, x, y, product(plan, Scaling{}, x, y), false));
        };
        update(storage, 5, 0, storage);
        update(PackedStorage::Full, 6, 0, PackedStorage::Full);
        update(storage, 7, 0, PackedStorage::Full);  // the class does not come back
        fill_class(A.values, storage, 8);
        const Device again(A);
        Plan other(space, again.view(), o);
        plan = std::move(other);
        update(storage, 9, HUGE_VAL, PackedStorage::Full);
      }
    }
  }

  // ---- the rest

  void hub_columns() const {
    for (const char* spec : {"web:n=3001:longest=900", "rmat:scale=9:degree=8", "dense_column", "dense"}) {
      for (const int hubs : {1, 40, 65536}) {
        PackedOptions o;
        o.hubs = hubs;
        expect_pattern(generate(spec), std::string(spec) + ", hubs " + std::to_string(hubs), o);
      }
    }
    // What stands beside the hubs in x, and padding, must not reach the others.
    const Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    PackedOptions o;
    o.hubs = 50;
    const Plan plan(Exec(), device.view(), options(o));
    ASSERT_GT(plan.packed()->hub_share, 0.0);
    expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true, {2.5, -1});
    expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), true, {2.5, -1});
  }
  /// Blocks with and without entries, with one share and with several; of 100,000 columns, which fit no shared memory.
  void column_blocks() const {
    for (const char* spec : {"random:rows=900:cols=700:lengths=uniform:mean=40", "rmat:scale=9:degree=8",
                             "dense_column", "dense", "diagonal:rows=300:cols=300", "empty:rows=5:cols=9",
                             "random:rows=300:cols=200000:lengths=power:mean=6:tail=1.3"}) {
      for (const int blocks : {2, 5, 64}) {
        PackedOptions o = short_parts();
        o.column_blocks = blocks;
        expect_pattern(generate(spec), std::string(spec) + ", blocks " + std::to_string(blocks), o);
      }
    }
    // What a block of x lies beside, and padding, must not reach the rows; new values must.
    Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    PackedOptions o;
    o.column_blocks = 4;
    const Device device(A);
    Plan plan(Exec(), device.view(), options(o));
    ASSERT_EQ(plan.packed()->blocks, 4);
    for (const std::uint64_t seed : {5, 6}) {
      A.values = numbers<Scalar>(A.nnz(), Data::Integers, seed);
      const Device other(A);
      plan.update_values(Exec(), other.view().values());
      expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true, {2.5, -1});
      expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), true, {2.5, -1});
    }
  }
  void transposed_product() const {
    for (const char* spec :
         {"every_length:longest=300:cols=401", "lp:rows=51:cols=3001:slack=1", "dense_column:others=1",
          "duplicates:rows=151:longest=400", "empty:rows=5:cols=0", "empty:rows=0:cols=5", stencil}) {
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
  /// Rows of many parts, whose sums arrive in any order on a device.
  void deterministic(int runs) const {
    PackedOptions blocks = short_parts();
    blocks.column_blocks = 5;
    for (const PackedOptions& packed : {short_parts(), blocks}) {
      const Matrix A = make_matrix<Scalar>(long_rows, Data::Real, 5);
      const Device device(A);
      const Plan plan(Exec(), device.view(), options(packed));
      ASSERT_GT(plan.packed()->summary.parts, 2 * plan.packed()->summary.split_rows);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
      const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1);
      const auto first = product(plan, Scaling{}, x, y);
      EXPECT_TRUE(agrees<Sum>(A, {}, x, y, first, false));
      for (int run = 1; run < runs; ++run) {
        ASSERT_TRUE(same_bits(first, product(plan, Scaling{}, x, y))) << "run " << run;
      }
      const Plan again(Exec(), device.view(), options(packed));
      EXPECT_TRUE(same_bits(first, product(again, Scaling{}, x, y))) << "a second plan";
    }
  }

  /// apply does not allocate, nor does update_values with values in full; on devices apply does not wait either.
  void no_allocation() const {
    for (const bool classes : {false, true}) {
      const Matrix A = make_matrix<Scalar>(long_rows, Data::Integers, 5);
      const Device device(A);
      SpmvOptions o = options(short_parts());
      o.packed.value_classes = classes;
      o.prepare_transpose = true;
      const Exec space;
      Plan plan(space, device.view(), o);
      ASSERT_EQ(plan.packed()->storage, classes ? PackedStorage::Integer : PackedStorage::Full);
      ASSERT_GT(plan.workspace_bytes(), 0u);
      const DeviceVector<Exec, Scalar> x("x", A.cols), xt("xt", A.rows);
      const DeviceVector<Exec, Sum> y("y", A.rows), yt("yt", A.cols);
      const Kokkos::View<Scalar**, Kokkos::LayoutLeft, DeviceOf<Exec>> xs("xs", A.cols, 9);
      const Kokkos::View<Sum**, Kokkos::LayoutLeft, DeviceOf<Exec>> ys("ys", A.rows, 9);
      plan.apply(space, x, y);  // the first may note the instance
      space.fence();
      const KokkosCounters counters;
      plan.apply(space, x, y);
      plan.apply(space, Op::NoTrans, 2, x, 3, y);
      plan.apply(space, Op::Trans, 2, xt, 3, yt);
      plan.apply(space, Op::NoTrans, 2, xs, 3, ys);
      if (!Compat::is_host_v<Exec>) {
        EXPECT_EQ(counters.fences(), 0);
        EXPECT_EQ(counters.kernels(), 0) << "the backend launches its own";
      }
      EXPECT_EQ(counters.allocations(), 0) << "apply: " << counters.last_allocation();
      if (!classes) {
        plan.update_values(space, device.view().values());
        EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
        EXPECT_GT(counters.kernels(), 0) << "the counters do not count";
      }
      const DeviceVector<Exec, Scalar> one("one", 1);
      EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
    }
  }

  /// Exactly workspace_bytes(), whatever stands in it, in turn with another plan; one byte less is refused.
  void own_workspace() const {
    const Matrix A = make_matrix<Scalar>(long_rows, Data::Integers, 5);
    const Device device(A);
    PackedOptions hubs = short_parts(), blocks = short_parts();
    hubs.hubs = 20;
    blocks.column_blocks = 3;
    for (const PackedOptions& packed : {short_parts(), hubs, blocks}) {
      SpmvOptions o = options(packed);
      const std::size_t need = Plan(Exec(), device.view(), o).workspace_bytes();
      ASSERT_GT(need, 0u);
      const std::size_t extent = (need + 15) / 16 * 16 + 64;
      const DeviceVector<Exec, unsigned char> memory("memory", extent);
      Kokkos::deep_copy(memory, static_cast<unsigned char>(0xa5));
      o.workspace = {memory.data(), need};
      const Plan first(Exec(), device.view(), o), second(Exec(), device.view(), o);
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
  }

 private:
  static constexpr const char* long_rows = "lp:rows=40:cols=30011:per_col=2:skew=0.7";

  /// What stands in y before a product of several vectors.
  template <class Y>
  static Y old_element(Scaling s, bool guard, int j, int i) {
    if (guard) return as<Y>(77);
    return as<Y>(s.beta == 0 ? std::nan("") : number(Data::Real, 60 + j, i));
  }
  /// Integers are exact in all classes; general numbers are not.
  template <class Check>
  void each_class_and_option(Matrix& A, const Check& check) const {
    for (const PackedStorage storage : value_classes<Scalar>()) {
      fill_class(A.values, storage, 4);
      const Device device(A);
      for (const PackedOptions& o : {sharing(), short_parts()}) {
        SCOPED_TRACE("class " + std::to_string(static_cast<int>(storage)));
        const Plan plan(Exec(), device.view(), options(o));
        EXPECT_EQ(plan.packed()->storage, storage);
        check(plan, storage != PackedStorage::Full && storage != PackedStorage::Float);
      }
    }
  }

  Backend backend_;
};

}  // namespace Testing
}  // namespace Tessera

#endif
