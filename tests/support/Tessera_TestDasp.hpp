// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_DASP_HPP
#define TESSERA_TEST_DASP_HPP

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <type_traits>

#include "core/Tessera_KernelTables.hpp"
#include "io/Tessera_MatrixMarket.hpp"
#include "support/Tessera_DaspCases.hpp"
#include "support/Tessera_TestSpmv.hpp"

/// \file
/// What every DASP kernel must pass, whoever executes it: emulated matrix units on the host and devices run this one
/// list.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class DaspSuite : public SpmvSuite<Exec, Scalar> {
 public:
  using Base = SpmvSuite<Exec, Scalar>;
  using typename Base::Device;
  using typename Base::Matrix;
  using typename Base::Plan;
  using typename Base::Sum;
  static constexpr const char* long_rows = "lp:rows=40:cols=30011:per_col=15:skew=0.7";

  explicit DaspSuite(Backend backend) : Base(SpmvAlgorithm::Dasp, backend) {
    // Tensor cores cut sums, and align products by the exponents of their operands; emulated units keep every bit.
    this->unit = unit_of<Sum, Exec>(!Compat::is_host_v<Exec>);
    if (std::is_same_v<Scalar, half_t> && !Compat::is_host_v<Exec>) this->operand_floor = 0x1p-14;
  }
  DaspSuite with(const DaspOptions& dasp) const {
    DaspSuite other = *this;
    other.options.dasp = dasp;
    return other;
  }
  /// Pieces of long rows.
  DaspSuite with_pieces() const {
    DaspOptions pieces;
    pieces.entries_per_wave = 128;
    return with(pieces);
  }

  void every_option() const {
    const Pattern p = all_classes(600, 200);
    for (const NamedOptions& o : option_sets()) with(o.dasp).expect_pattern(p, o.name);
  }
  void awkward_sizes() const {
    Base::awkward_sizes({1, 2, 3, 4, 5, 7, 30, 65, 255, 257, 1025},
                        {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 129, 257});
  }
  void many_sort_windows() const {
    this->expect_pattern(dasp_many_sort_windows(), "many sort windows", {Data::Integers});
  }
  void many_short_rows() const {
    const Device one(make_matrix<Scalar>("diagonal:rows=1:cols=1", Data::Integers, 1));
    const Backend backend = this->plan(one).options().backend;
    const DaspGeometry& g = *kernel_table(backend).spmv.dasp_geometry(Impl::ScalarTraits<Scalar>::precision);
    this->expect_pattern(dasp_many_short_rows(DaspGeometry::tiles * g.rows * g.slices), "short rows", {Data::Integers});
  }
  void unsorted_columns() const {
    this->expect_pattern(with_unsorted_columns(all_classes(600, 200)), "descending and repeated columns");
  }
  void several_vectors() const { Base::several_vectors(this->matrix(all_classes(300, 100), Data::Real, 5), {0, 1, 3}); }
  void every_scaling() const { Base::every_scaling(all_classes(600, 200)); }
  void undefined_vectors() const { Base::undefined_vectors(all_classes(600, 200)); }
  void deterministic(int runs) const { with_pieces().Base::deterministic(generate(long_rows), runs); }
  void no_allocation() const { with_pieces().Base::no_allocation(generate(long_rows), true); }

  /// No row uses the even columns of x, column 0 among them: nothing that stands there may reach a result.
  void unused_columns() const {
    const Matrix A = make_matrix<Scalar>(on_odd_columns(all_classes(600, 200)), Data::Integers, 5);
    const auto x = bad_at_even_columns<Scalar>(A.cols);
    each_option(A, [&](const Plan& plan) {
      this->template expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
      this->template expect_with<Scalar, Strided>(plan, A, x, numbers<Scalar>(A.rows, Data::Integers, 7), true,
                                                  {-1, 2.5});
    });
  }
  /// Every seventh row has an infinite or undefined value, another seventh meets one in x. Rows that share a block, a
  /// tile's row or four slots of it with them (pairs of 1 & 3, pairs of 2) must not notice.
  void bad_neighbours() const {
    for (int shift = 0; shift < 7; ++shift) {
      Matrix A = make_matrix<Scalar>(on_odd_columns(all_classes(400, 150)), Data::Integers, 5);
      add_bad_rows(A, shift);
      const auto x = bad_at_even_columns<Scalar>(A.cols);
      each_option(A, [&](const Plan& plan) {
        this->template expect_with<Sum, Contiguous>(plan, A, x, numbers<Sum>(A.rows, Data::Integers, 7), true);
      });
    }
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
      Plan plan = this->plan(device);
      this->expect_both(plan, A, Data::Integers, {1, 0}, {2.5, -1});
      for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<Scalar>(file.values[i]);
      copy_to(A.values, device.values);
      plan.update_values(Exec(), device.view().values());
      this->expect(plan, A, Data::Magnitudes);
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
  template <class Check>
  void each_option(const Matrix& A, const Check& check) const {
    const Device device(A);
    for (const int longest : {4, 255}) {
      for (const int pairs : {1, 1000000}) {
        for (const int work : {1, 256, 4096}) {
          SpmvOptions o = this->options;
          o.dasp.max_medium_length = longest;
          o.dasp.min_pairs = pairs;
          o.dasp.entries_per_wave = work;
          o.dasp.threshold = pairs == 1 ? 0.75 : 1e-6;  // little of the padding, and all of it
          check(this->plan(device, o));
        }
      }
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
