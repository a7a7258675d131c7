// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_PACKED_HPP
#define TESSERA_TEST_PACKED_HPP

#include "support/Tessera_TestSpmv.hpp"

/// \file
/// What every kernel of packed slices must pass besides the list of formats: emulated waves, host threads and devices.
/// No matrix instruction is used, so the bound of Reference::spmv_bound holds with the unit roundoff of the sums' type
/// everywhere.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class PackedSuite : public SpmvSuite<Exec, Scalar> {
 public:
  using Base = SpmvSuite<Exec, Scalar>;
  using typename Base::Device;
  using typename Base::Matrix;
  using typename Base::Options;
  using typename Base::Plan;
  using typename Base::Sum;

  /// Waves of both vendors, and host threads.
  static std::vector<Backend> backends() {
    if (!Compat::is_host_v<Exec>) return {Backend::Auto};
    std::vector<Backend> all = emulated_backends();
    all.push_back(Backend::Kokkos);
    return all;
  }
  explicit PackedSuite(Backend backend) : Base(SpmvAlgorithm::PackedSlices, backend) {}
  /// Rows cut into parts as short as can be.
  static PackedOptions short_parts() {
    PackedOptions o;
    o.max_steps = o.split_steps = 2;
    return o;
  }
  static PackedOptions sharing() {
    PackedOptions o;
    o.least_shared = 0;
    o.even_slices = false;
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
  static PackedOptions cells(int shares, int count = 1) {
    PackedOptions o;
    o.cells = shares, o.column_blocks = count;
    return o;
  }
  static PackedOptions renumbered(PackedOptions o = {}) {
    o.renumber = 1;
    return o;
  }
  SpmvOptions with(const PackedOptions& packed) const {
    SpmvOptions o = this->options;
    o.packed = packed;
    return o;
  }
  std::vector<Named<SpmvOptions>> every_way() const override {
    std::vector<Named<SpmvOptions>> all;
    for (const Named<PackedOptions>& o : packed_option_sets()) all.push_back({o.name, with(o.options)});
    all.push_back({"cells", with(cells(1))});
    all.push_back({"cells, 3 shares of 7 column blocks", with(cells(3, 7))});
    return all;
  }
  Options ways() const override { return {with(sharing()), with(short_parts())}; }
  Options bad_ways() const override {
    PackedOptions wide = sharing();
    wide.narrow_indices = wide.index_free = wide.shared_patterns = false;
    return {with(sharing()),    with(short_parts()), with(wide),       with(hubs(40)),
            with(renumbered()), with(blocks(3)),     with(cells(2, 5))};
  }
  Options scratch_ways() const override {
    PackedOptions full = short_parts();
    full.value_classes = false;
    Options some;
    std::size_t turn = 0;
    for (const PackedOptions& o :
         {full, short_parts(), hubs(20, full), renumbered(full), blocks(5, short_parts()), cells(3, 4)}) {
      if (!in_other_size<Scalar>(turn++)) some.push_back(with(o));
    }
    return some;
  }
  /// All are cut.
  Pattern long_rows() const override { return generate("lp:rows=40:cols=30011:per_col=2:skew=0.7"); }
  /// Slices of every kind.
  std::vector<Pattern> patterns(int longest, int short_rows) const override {
    return {all_classes(longest, short_rows), generate(three_dof), stencil_with_gaps()};
  }
  /// Whether the plan stores its values so; on hosts all are in full.
  bool stored(const Plan& plan, PackedStorage storage) const {
    return has_class(plan.statistics(), name_of(classes() ? storage : PackedStorage::Full));
  }
  bool classes() const { return this->options.backend != Backend::Kokkos; }

  /// More than one of the largest windows, the last one short.
  void many_sort_windows() {
    PackedOptions o;
    o.window = 4092;
    const std::string spec = "random:rows=9000:cols=997:lengths=geometric:mean=5";
    this->each({with(o)}, [&] { this->expect_pattern(generate(spec), spec, {Data::Integers}); });
  }
  void several_vectors() override {
    const Pattern rows = all_classes(150, 8);
    std::size_t turn = 0;
    const auto check = [&](const Pattern& p, const PackedOptions& o, PackedStorage storage = PackedStorage::Full) {
      if (in_other_size<Scalar>(turn++)) return;
      Matrix A = make_matrix<Scalar>(p, Data::Real, 5);
      fill_class(A.values, storage, 5);
      const Device device(A);
      this->each({with(o)}, [&] {
        ASSERT_TRUE(stored(this->plan(device), storage));
        Base::several_vectors(A, shorter_lists ? std::vector<int>{0, 1, 2, 4, 5, 9}
                                               : std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
      });
    };
    check(rows, short_parts());
    check(generate("fem:nx=3:ny=2:nz=2:cavities=0"), sharing());
    check(stencil_with_gaps(), {});
    check(rows, {}, PackedStorage::Integer);
    check(rows, hubs(30));
    check(rows, blocks(3));
  }

  // ---- numbers that are none

  /// Also in every value class, which decode padding in ways of their own.
  void unused_columns() override {
    Base::unused_columns();
    for (const Pattern& p : this->patterns(longest_case, 100)) {
      Matrix A = make_matrix<Scalar>(on_odd_columns(p), Data::Integers, 5);
      each_class(A, [&](const Plan& plan, bool exact) { this->expect_no_bad_column(plan, A, exact); });
    }
  }
  /// x is bad at one column after the other of a stencil with gaps: only rows that have an entry there may notice,
  /// though the offsets of an index-free slice lead all its rows to some column.
  void masked_steps() {
    Matrix A = make_matrix<Scalar>(stencil_with_gaps(), Data::Integers, 5);
    each_class(A, [&](const Plan& plan, bool exact) {
      for (int shift = 0; shift < 5; ++shift) {
        auto x = numbers<Scalar>(A.cols, Data::Integers, 6);
        for (std::size_t j = static_cast<std::size_t>(shift); j < x.size(); j += 13) x[j] = as<Scalar>(bad_number(j));
        this->expect_with(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), exact);
      }
    });
  }

  /// Rows that take their columns from one list of offsets: with fewer and more diagonals than have code of their own,
  /// with gaps, in matrices that are wider than high. Bad numbers in x reach the rows that use them alone.
  void diagonals() {
    const auto band = [](int rows, int below, int above, int cols) {
      return pattern_of_rows(rows, cols, [=](std::int64_t i, std::vector<int>& columns) {
        for (std::int64_t c = i - below; c <= i + above; ++c) {
          if (c >= 0 && c < cols && (c + i) % 101 != 5) columns.push_back(static_cast<int>(c));
        }
      });
    };
    PackedOptions o;
    o.least_diagonals = o.least_pairs = 0;               // one slice per wave: packed_option_sets
    o.value_classes = !std::is_same_v<Scalar, bhalf_t>;  // 300 of its numbers fit a dictionary, which goes first
    std::size_t turn = 0;
    for (const Pattern& p : {generate("stencil2d:nx=41:ny=31"), stencil_with_gaps(), band(300, 0, 0, 300),
                             band(700, 4, 3, 705), band(901, 5, 5, 880), band(1100, 15, 16, 1100)}) {
      if (in_other_size<Scalar>(turn++)) continue;
      SCOPED_TRACE(p.rows);
      Matrix A = make_matrix<Scalar>(p, Data::Real, 5);
      const Device device(A);
      this->each({with(o)}, [&] {
        Plan plan = this->plan(device);
        if (this->options.backend == Backend::EmulatedNvidia) {
          ASSERT_TRUE(has_class(plan.statistics(), "diagonals"));
        }
        Base::several_vectors(A, {1, 3, 9});
        for (int shift = 0; shift < 5; ++shift) {
          auto x = numbers<Scalar>(A.cols, Data::Real, 6);
          for (std::size_t j = static_cast<std::size_t>(shift); j < x.size(); j += 13) x[j] = as<Scalar>(bad_number(j));
          this->expect_with(plan, A, x, numbers<Sum>(A.rows, Data::Real, 7), false, {2.5, -1});
        }
        A.values = numbers<Scalar>(A.nnz(), Data::Integers, 8);
        const Device fresh(A);
        plan.update_values(Exec(), fresh.view().values());
        this->expect(plan, A, Data::Integers);
      });
      A.values = make_matrix<Scalar>(p, Data::Real, 5).values;
    }
  }

  /// Rows without entries make slices of their own, of more rows than a wave has lanes: sort windows of nothing else,
  /// some of them beside others, numbers of a class that new ones end. Their y is scaled like any other.
  void empty_rows() {
    PackedOptions o = sharing();
    o.window = 4092;
    const char* const few = "random:rows=9000:cols=700:lengths=uniform:mean=0.1:seed=3";
    std::size_t turn = 0;
    for (const char* spec :
         {few, "dense_row:rows=5000:cols=300", "random:rows=4700:cols=90:lengths=geometric:mean=0.7"}) {
      for (const PackedOptions& some : {o, short_parts(), blocks(3, o), hubs(20, o), cells(2, 2)}) {
        if (in_other_size<Scalar>(turn++)) continue;
        this->each({with(some)}, [&] { this->expect_pattern(generate(spec), spec); });
      }
    }
    Matrix A = make_matrix<Scalar>(generate(few), Data::Real, 5);
    fill_class(A.values, PackedStorage::Integer, 5);
    const Device device(A);
    this->each({with(o)}, [&] {
      Plan plan = this->plan(device);
      ASSERT_TRUE(stored(plan, PackedStorage::Integer));
      Base::several_vectors(A, {1, 3, 9});
      Matrix B = A;
      fill_class(B.values, PackedStorage::Full, 6);
      const Device fresh(B);
      plan.update_values(Exec(), fresh.view().values());
      ASSERT_TRUE(stored(plan, PackedStorage::Full));
      this->expect(plan, B, Data::Real);
    });
  }

  // ---- value classes

  /// Bitwise the result of values in full, for every kind of slice.
  void classes_change_no_bit() {
    for (const Pattern& p : this->patterns(longest_case, 100)) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 5);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 6);
      const auto y = numbers<Sum>(A.rows, Data::Real, 7);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        SCOPED_TRACE(name_of(storage));
        fill_class(A.values, storage, 8);
        const Device device(A);
        for (PackedOptions o : {sharing(), short_parts()}) {
          const Plan narrow = this->plan(device, with(o));
          o.value_classes = false;
          const Plan full = this->plan(device, with(o));
          ASSERT_TRUE(stored(narrow, storage) && stored(full, PackedStorage::Full));
          if (storage != PackedStorage::Full) {
            EXPECT_EQ(narrow.format_bytes() < full.format_bytes(), classes());
          }
          const auto wanted = product(full, Scaling{2.5, -1}, x, y);
          EXPECT_TRUE(agrees<Sum>(A, {2.5, -1}, x, y, wanted, false));
          EXPECT_TRUE(same_bits(wanted, product(narrow, Scaling{2.5, -1}, x, y)));
        }
      }
    }
  }
  /// Numbers of the class keep it; others end it, and everything stays right. The transposed plan follows.
  void new_values() {
    const Exec space;
    std::size_t turn = 0;
    for (const Pattern& p : this->patterns(300, 60)) {
      Matrix A = make_matrix<Scalar>(p, Data::Real, 1);
      const auto x = numbers<Scalar>(A.cols, Data::Real, 3), xt = numbers<Scalar>(A.rows, Data::Real, 4);
      const std::vector<Sum> y(static_cast<std::size_t>(A.rows), 1), yt(static_cast<std::size_t>(A.cols), 1);
      for (const PackedStorage storage : value_classes<Scalar>()) {
        if (in_other_size<Scalar>(turn++)) continue;
        SCOPED_TRACE(name_of(storage));
        fill_class(A.values, storage, 4);
        const Device device(A);
        SpmvOptions o = with(sharing());
        o.prepare_transpose = true;
        Plan plan = this->plan(device, o);
        ASSERT_TRUE(stored(plan, storage));
        const auto update = [&](PackedStorage numbers_of, std::uint64_t seed, double odd, PackedStorage wanted) {
          fill_class(A.values, numbers_of, seed);
          if (odd != 0) A.values[A.values.size() / 3] = as<Scalar>(odd);
          const Device fresh_device(A);
          plan.update_values(space, fresh_device.view().values());
          space.fence();
          EXPECT_TRUE(stored(plan, wanted));
          const Plan fresh = this->plan(fresh_device, o);
          EXPECT_TRUE(same_bits(product(plan, Scaling{}, x, y), product(fresh, Scaling{}, x, y)));
          EXPECT_TRUE(same_bits(product(plan, Op::Trans, {}, xt, yt), product(fresh, Op::Trans, {}, xt, yt)));
          EXPECT_TRUE(agrees<Sum>(A, {}, x, y, product(plan, Scaling{}, x, y), false));
        };
        update(storage, 5, 0, storage);
        update(PackedStorage::Full, 6, 0, PackedStorage::Full);
        update(storage, 7, 0, PackedStorage::Full);  // the class does not come back
        fill_class(A.values, storage, 8);
        const Device again(A);
        plan = this->plan(again, o);
        update(storage, 9, HUGE_VAL, PackedStorage::Full);
      }
    }
  }

  // ---- hub columns, column blocks

  void hub_columns() {
    const auto ways = [this](int count) { return Options{with(hubs(count))}; };
    for (const char* spec : {"web:n=3001:longest=900", "rmat:scale=9:degree=8", "dense_column", "dense"}) {
      for (const int count : {1, 40, 65536}) {
        this->each(ways(count),
                   [&] { this->expect_pattern(generate(spec), spec + (", hubs " + std::to_string(count))); });
      }
    }
    // What stands beside the hubs in x, and padding, must not reach the others.
    const Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    const Plan plan = this->plan(device, with(hubs(50)));
    ASSERT_TRUE(has_class(plan.statistics(), "50 hub columns"));
    this->expect_no_bad_column(plan, A, true);
  }
  /// Blocks with and without entries, with one share and with several; of 100,000 columns, which fit no shared memory.
  void column_blocks() {
    std::size_t turn = 0;
    for (const char* spec : {"random:rows=900:cols=700:lengths=uniform:mean=40", "rmat:scale=9:degree=8",
                             "dense_column", "dense", "diagonal:rows=300:cols=300", "empty:rows=5:cols=9",
                             "random:rows=300:cols=200000:lengths=power:mean=6:tail=1.3"}) {
      for (const int count : {2, 5, 128}) {
        if (in_other_size<Scalar>(turn++)) continue;
        this->each({with(blocks(count, short_parts()))},
                   [&] { this->expect_pattern(generate(spec), spec + (", blocks " + std::to_string(count))); });
      }
    }
    // What a block of x lies beside, and padding, must not reach the rows; new values must.
    Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    Plan plan = this->plan(device, with(blocks(4)));
    ASSERT_TRUE(has_class(plan.statistics(), "4 column blocks"));
    for (const std::uint64_t seed : {5, 6}) {
      A.values = numbers<Scalar>(A.nnz(), Data::Integers, seed);
      copy_to(A.values, device.values);
      plan.update_values(Exec(), device.view().values());
      this->expect_no_bad_column(plan, A, true);
    }
  }

  /// Cells: pieces of every length and number of slots, and cut ones, rows and columns of less than a block, one share
  /// of x and several; of 200,000 columns, which fit no shared memory; matrices that cannot have any.
  void in_cells() {
    int turn = sizeof(Scalar) == 2;  // of shorter lists every second, others in 16 bits than in more
    for (const char* spec :
         {"random:rows=900:cols=700:lengths=uniform:mean=40", "rmat:scale=9:degree=8", "dense_column", "dense",
          "diagonal:rows=300:cols=300", "empty:rows=5:cols=9",
          "random:rows=3000:cols=200000:lengths=power:mean=6:tail=1.3", "lp:rows=40:cols=30011:per_col=2:skew=0.7",
          "web:n=3001:longest=900", "dense:rows=20:cols=2500", "random:rows=40:cols=5000:lengths=uniform:mean=900"}) {
      for (const auto& o : {cells(1), cells(1, 9), cells(2, 2), cells(3, 16), cells(64, 64)}) {
        if (shorter_lists && turn++ % 2 != 0) continue;
        this->each({with(o)}, [&] {
          this->expect_pattern(generate(spec), spec + (", shares " + std::to_string(o.cells)) + " of " +
                                                   std::to_string(o.column_blocks));
        });
      }
    }
    // What lies beside, and padding, must not reach the rows; new values must.
    Matrix A = make_matrix<Scalar>(on_odd_columns(generate("rmat:scale=9:degree=8")), Data::Integers, 5);
    const Device device(A);
    Plan plan = this->plan(device, with(cells(2, 4)));
    const bool made = has_class(plan.statistics(), "2 shares of x");
    const Backend backend = this->options.backend;
    EXPECT_EQ(made, backend != Backend::Kokkos && backend != Backend::EmulatedAmd);
    for (const std::uint64_t seed : {5, 6}) {
      A.values = numbers<Scalar>(A.nnz(), Data::Integers, seed);
      copy_to(A.values, device.values);
      plan.update_values(Exec(), device.view().values());
      this->expect_no_bad_column(plan, A, true);
    }
    // A column so often that no cell has room for the pieces: there are no cells, and the product is right all the
    // same.
    Pattern often;
    often.rows = 33, often.cols = 5;
    often.row_map.assign(34, 70000);
    often.row_map[0] = 0;
    often.entries.assign(70000, 2);
    this->each({with(cells(1))}, [&] {
      const Matrix B = make_matrix<Scalar>(often, Data::Integers, 7);
      EXPECT_FALSE(has_class(this->plan(Device(B)).statistics(), "pieces of rows"));
      this->expect_pattern(often, "one column", {Data::Integers});
    });
    // Columns that descend inside a row.
    Pattern turned = generate("random:rows=90:cols=700:lengths=uniform:mean=40");
    std::swap(turned.entries.front(), turned.entries[1]);
    this->each({with(cells(2, 4))}, [&] { this->expect_pattern(turned, "columns descend"); });
    // A row that several teams share, in order and not; its last entries are those of the last team.
    Pattern heavy = generate("dense_row:rows=4000:cols=4000:others=1");
    const auto longest = [&] {
      std::size_t row = 0;
      const auto length = [&](std::size_t r) { return heavy.row_map[r + 1] - heavy.row_map[r]; };
      for (std::size_t r = 0; r + 1 < heavy.row_map.size(); ++r) row = length(r) > length(row) ? r : row;
      return heavy.entries.begin() + static_cast<std::ptrdiff_t>(heavy.row_map[row + 1]);
    };
    this->each({with(cells(2, 4))}, [&] {
      const auto in_cells = [&] {
        const Matrix B = make_matrix<Scalar>(heavy, Data::Integers, 7);
        return has_class(this->plan(Device(B)).statistics(), "2 shares of x");
      };
      const auto end = longest();
      EXPECT_EQ(in_cells(), made);
      this->expect_pattern(heavy, "a heavy row");
      std::swap(end[-2], end[-1]);
      EXPECT_FALSE(in_cells());
      this->expect_pattern(heavy, "columns of a heavy row descend");
      std::swap(end[-2], end[-1]);
    });
  }

 private:
  /// Integers are exact in all classes; general numbers are not.
  template <class Check>
  void each_class(Matrix& A, const Check& check) {
    for (const PackedStorage storage : value_classes<Scalar>()) {
      SCOPED_TRACE(name_of(storage));
      fill_class(A.values, storage, 4);
      const Device device(A);
      this->each(this->ways(), [&] {
        const Plan plan = this->plan(device);
        EXPECT_TRUE(stored(plan, storage));
        check(plan, storage != PackedStorage::Full && storage != PackedStorage::Float);
      });
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
