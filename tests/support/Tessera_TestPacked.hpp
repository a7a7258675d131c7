// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_PACKED_HPP
#define TESSERA_TEST_PACKED_HPP

#include "support/Tessera_PackedCases.hpp"
#include "support/Tessera_TestSpmv.hpp"

/// \file
/// What every kernel of packed slices must pass, whoever executes it: emulated waves on hosts and devices run this one
/// list. No matrix instruction is used, so the bound of Reference::spmv_bound holds with the unit roundoff of the sums'
/// type everywhere.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class PackedSuite : public SpmvSuite<Exec, Scalar> {
 public:
  using Base = SpmvSuite<Exec, Scalar>;
  using typename Base::Device;
  using typename Base::Matrix;
  using typename Base::Plan;
  using typename Base::Sum;

  explicit PackedSuite(Backend backend) : Base(SpmvAlgorithm::PackedSlices, backend) {}
  PackedSuite with(const PackedOptions& packed) const {
    PackedSuite other = *this;
    other.options.packed = packed;
    return other;
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
  static PackedOptions hubs(int count, PackedOptions o = {}) {
    o.hubs = count;
    return o;
  }
  static PackedOptions blocks(int count, PackedOptions o = {}) {
    o.column_blocks = count;
    return o;
  }
  /// All rows are cut.
  static Pattern long_rows() { return generate("lp:rows=40:cols=30011:per_col=2:skew=0.7"); }
  /// Slices of every kind.
  static std::vector<Pattern> kinds(int longest, int short_rows) {
    return {all_classes(longest, short_rows), generate(three_dof), stencil_with_gaps()};
  }
  static bool stored(const Plan& plan, PackedStorage storage) { return has_class(plan.statistics(), name_of(storage)); }

  void every_option() const {
    const std::vector<Pattern> patterns = {all_classes(600, 10), generate("fem:nx=3:ny=2:nz=2:cavities=0"),
                                           stencil_with_gaps()};
    for (const NamedPacked& o : packed_option_sets()) {
      for (const Pattern& p : patterns) with(o.packed).expect_pattern(p, o.name);
    }
  }
  void awkward_sizes() const {
    Base::awkward_sizes({1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 65, 129, 513, 1025},
                        {1, 2, 3, 5, 7, 8, 9, 31, 33, 63, 64, 65});
  }
  /// More than one of the largest sort windows, the last one short.
  void many_sort_windows() const {
    PackedOptions o;
    o.window = 4092;
    const std::string spec = "random:rows=9000:cols=997:lengths=geometric:mean=5";
    with(o).expect_pattern(generate(spec), spec, {Data::Integers});
  }
  void unsorted_columns() const {
    for (const Pattern& p : {all_classes(600, 100), generate(three_dof), generate(stencil)}) {
      with(sharing()).expect_pattern(with_unsorted_columns(p), "descending and repeated columns");
    }
  }
  void every_scaling() const {
    for (const PackedOptions& o : {PackedOptions{}, short_parts()}) with(o).Base::every_scaling(all_classes(300, 50));
  }
  void undefined_vectors() const {
    for (const PackedOptions& o : {PackedOptions{}, short_parts()}) {
      with(o).Base::undefined_vectors(all_classes(600, 100));
    }
  }
  void several_vectors() const {
    struct Case {
      Pattern pattern;
      PackedOptions packed;
      PackedStorage storage;
    };
    const Pattern classes = all_classes(150, 8);
    for (const Case& c :
         {Case{classes, short_parts(), PackedStorage::Full},
          Case{generate("fem:nx=3:ny=2:nz=2:cavities=0"), sharing(), PackedStorage::Full},
          Case{stencil_with_gaps(), {}, PackedStorage::Full}, Case{classes, {}, PackedStorage::Integer},
          Case{classes, hubs(30), PackedStorage::Full}, Case{classes, blocks(3), PackedStorage::Full}}) {
      Matrix A = make_matrix<Scalar>(c.pattern, Data::Real, 5);
      fill_class(A.values, c.storage, 5);
      const PackedSuite suite = with(c.packed);
      const Device device(A);
      ASSERT_TRUE(stored(suite.plan(device), c.storage));
      suite.Base::several_vectors(A, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    }
  }

  // ---- numbers that are none

  /// No row uses the even columns of x, column 0 among them: nothing that stands there may reach a result, through
  /// padding or lanes without a row (masked steps: below).
  void unused_columns() const {
    for (const Pattern& p : kinds(600, 100)) {
      Matrix A = make_matrix<Scalar>(on_odd_columns(p), Data::Integers, 5);
      each_class_and_option(A, [&](const Plan& plan, bool exact) { expect_no_bad_column(plan, A, exact); });
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
        this->template expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), exact);
      }
    });
  }
  /// Every seventh row has an infinite or undefined value, another seventh meets one in x. Rows that share a slice or a
  /// group with them must not notice.
  void bad_neighbours() const {
    for (const Pattern& p : kinds(300, 60)) {
      for (int shift = 0; shift < 7; shift += 2) {
        Matrix A = make_matrix<Scalar>(on_odd_columns(p), Data::Integers, 5);
        add_bad_rows(A, shift);
        const auto x = bad_at_even_columns<Scalar>(A.cols);
        const Device device(A);
        for (const PackedOptions& o : {sharing(), short_parts()}) {
          const Plan plan = with(o).plan(device);
          EXPECT_TRUE(stored(plan, PackedStorage::Full));
          this->template expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
        }
      }
    }
  }

  // ---- value classes

  /// Bitwise the result of values in full, for every kind of slice.
  void classes_change_no_bit() const {
    for (const Pattern& p : kinds(600, 100)) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 5);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
      const auto y = numbers<Sum>(A.rows, Data::Real, 7);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        SCOPED_TRACE(name_of(storage));
        fill_class(A.values, storage, 8);
        const Device device(A);
        for (PackedOptions o : {sharing(), short_parts()}) {
          const Plan narrow = with(o).plan(device);
          o.value_classes = false;
          const Plan full = with(o).plan(device);
          ASSERT_TRUE(stored(narrow, storage) && stored(full, PackedStorage::Full));
          if (storage != PackedStorage::Full) {
            EXPECT_LT(narrow.format_bytes(), full.format_bytes());
          }
          const auto wanted = product(full, Scaling{2.5, -1}, x, y);
          EXPECT_TRUE(agrees<Sum>(A, {2.5, -1}, x, y, wanted, false));
          EXPECT_TRUE(same_bits(wanted, product(narrow, Scaling{2.5, -1}, x, y)));
        }
      }
    }
  }
  /// Numbers of the class keep it; others end it, and everything stays right. The transposed plan follows.
  void new_values() const {
    const Exec space;
    for (const Pattern& p : kinds(300, 60)) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 1);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 3), xt = numbers<Scalar>(A.rows, Data::Real, 4);
      const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1), yt(static_cast<std::size_t>(A.cols), 1);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        SCOPED_TRACE(name_of(storage));
        fill_class(A.values, storage, 4);
        const Device device(A);
        const PackedSuite suite = with(sharing());
        const SpmvOptions o = suite.with_transpose();
        Plan plan = suite.plan(device, o);
        ASSERT_TRUE(stored(plan, storage));
        const auto update = [&](PackedStorage numbers_of, std::uint64_t seed, double odd, PackedStorage wanted) {
          fill_class(A.values, numbers_of, seed);
          if (odd != 0) A.values[A.values.size() / 3] = as<Scalar>(odd);
          const Device fresh_device(A);
          plan.update_values(space, fresh_device.view().values());
          space.fence();
          EXPECT_TRUE(stored(plan, wanted));
          const Plan fresh = suite.plan(fresh_device, o);
          EXPECT_TRUE(same_bits(product(plan, Scaling{}, x, y), product(fresh, Scaling{}, x, y)));
          EXPECT_TRUE(same_bits(product(plan, Op::Trans, {}, xt, yt), product(fresh, Op::Trans, {}, xt, yt)));
          EXPECT_TRUE(agrees<Sum>(A, {}, x, y, product(plan, Scaling{}, x, y), false));
        };
        update(storage, 5, 0, storage);
        update(PackedStorage::Full, 6, 0, PackedStorage::Full);
        update(storage, 7, 0, PackedStorage::Full);  // the class does not come back
        fill_class(A.values, storage, 8);
        const Device again(A);
        plan = suite.plan(again, o);
        update(storage, 9, HUGE_VAL, PackedStorage::Full);
      }
    }
  }

  // ---- hub columns, column blocks

  void hub_columns() const {
    for (const char* spec : {"web:n=3001:longest=900", "rmat:scale=9:degree=8", "dense_column", "dense"}) {
      for (const int count : {1, 40, 65536}) {
        with(hubs(count)).expect_pattern(generate(spec), std::string(spec) + ", hubs " + std::to_string(count));
      }
    }
    // What stands beside the hubs in x, and padding, must not reach the others.
    const Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    const Plan plan = with(hubs(50)).plan(device);
    ASSERT_TRUE(has_class(plan.statistics(), "50 hub columns"));
    expect_no_bad_column(plan, A, true);
  }
  /// Column blocks with and without entries, with one share and with several; of 100,000 columns, which fit no shared
  /// memory.
  void column_blocks() const {
    for (const char* spec : {"random:rows=900:cols=700:lengths=uniform:mean=40", "rmat:scale=9:degree=8",
                             "dense_column", "dense", "diagonal:rows=300:cols=300", "empty:rows=5:cols=9",
                             "random:rows=300:cols=200000:lengths=power:mean=6:tail=1.3"}) {
      for (const int count : {2, 5, 64}) {
        with(blocks(count, short_parts()))
            .expect_pattern(generate(spec), std::string(spec) + ", column blocks " + std::to_string(count));
      }
    }
    // What the x of a column block lies beside, and padding, must not reach the rows; new values must.
    Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    Plan plan = with(blocks(4)).plan(device);
    ASSERT_TRUE(has_class(plan.statistics(), "4 column blocks"));
    for (const std::uint64_t seed : {5, 6}) {
      A.values = numbers<Scalar>(A.nnz(), Data::Integers, seed);
      copy_to(A.values, device.values);
      plan.update_values(Exec(), device.view().values());
      expect_no_bad_column(plan, A, true);
    }
  }

  // ---- scratch

  void deterministic(int runs) const {
    for (const PackedOptions& o : {short_parts(), blocks(5, short_parts())}) {
      with(o).Base::deterministic(long_rows(), runs);
    }
  }
  void no_allocation() const {
    for (const bool classes : {false, true}) {  // a value class looks at new numbers first
      PackedOptions o = short_parts();
      o.value_classes = classes;
      with(o).Base::no_allocation(long_rows(), !classes);
    }
  }
  void own_workspace() const {
    for (const PackedOptions& o : {short_parts(), hubs(20, short_parts()), blocks(3, short_parts())}) {
      with(o).Base::own_workspace(long_rows());
    }
  }

 private:
  void expect_no_bad_column(const Plan& plan, const Matrix& A, bool exact) const {
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    this->template expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), exact);
    this->template expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), exact, {-1, 2});
  }
  /// Integers are exact in all classes; general numbers are not.
  template <class Check>
  void each_class_and_option(Matrix& A, const Check& check) const {
    for (const PackedStorage storage : value_classes<Scalar>()) {
      SCOPED_TRACE(name_of(storage));
      fill_class(A.values, storage, 4);
      const Device device(A);
      for (const PackedOptions& o : {sharing(), short_parts()}) {
        const Plan plan = with(o).plan(device);
        EXPECT_TRUE(stored(plan, storage));
        check(plan, storage != PackedStorage::Full && storage != PackedStorage::Float);
      }
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
