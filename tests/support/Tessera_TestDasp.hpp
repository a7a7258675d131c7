// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_DASP_HPP
#define TESSERA_TEST_DASP_HPP

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/Tessera_KernelTables.hpp"
#include "io/Tessera_MatrixMarket.hpp"
#include "support/Tessera_TestSpmv.hpp"

/// \file
/// What every DASP kernel must pass besides the list of formats: emulated matrix units on the host and devices.

namespace Tessera {
namespace Testing {

template <class Exec, class Scalar>
class DaspSuite : public SpmvSuite<Exec, Scalar> {
 public:
  using Base = SpmvSuite<Exec, Scalar>;
  using typename Base::Device;
  using typename Base::Matrix;
  using typename Base::Options;
  using typename Base::Plan;
  using typename Base::Sum;

  static std::vector<Backend> backends() {
    if (Compat::is_host_v<Exec>) return emulated_backends();
    return {Backend::Auto};
  }
  explicit DaspSuite(Backend backend) : Base(SpmvAlgorithm::Dasp, backend) {
    // Tensor cores cut sums, and align products by the exponents of their operands; emulated units keep every bit.
    this->unit = unit_of<Sum, Exec>(!Compat::is_host_v<Exec>);
    if (std::is_same_v<Scalar, half_t> && !Compat::is_host_v<Exec>) this->operand_floor = 0x1p-14;
  }
  std::vector<Named<SpmvOptions>> every_way() const override {
    std::vector<Named<SpmvOptions>> all;
    for (const Named<DaspOptions>& o : dasp_option_sets()) all.push_back({o.name, with(o.options)});
    return all;
  }
  Options bad_ways() const override {
    Options all;
    for (const int longest : {4, 255}) {
      for (const int pairs : {1, 1000000}) {
        for (const int work : {1, 256, 4096}) {
          DaspOptions o;
          o.max_medium_length = longest, o.min_pairs = pairs, o.entries_per_wave = work;
          o.threshold = pairs == 1 ? 0.75 : 1e-6;  // little of the padding, and all of it
          all.push_back(with(o));
        }
      }
    }
    return all;
  }
  /// Pieces of long rows.
  Options scratch_ways() const override {
    DaspOptions pieces;
    pieces.entries_per_wave = 128;
    return {with(pieces)};
  }
  Pattern long_rows() const override { return generate("lp:rows=40:cols=30011:per_col=15:skew=0.7"); }

  void many_sort_windows() const { this->expect_pattern(dasp_many_sort_windows(), "many windows", {Data::Integers}); }
  void many_short_rows() const {
    const Device one(make_matrix<Scalar>("diagonal:rows=1:cols=1", Data::Integers, 1));
    const Backend backend = this->plan(one).options().backend;
    const DaspGeometry& g = *kernel_table(backend).spmv.dasp_geometry(Impl::ScalarTraits<Scalar>::precision);
    this->expect_pattern(dasp_many_short_rows(DaspGeometry::tiles * g.rows * g.slices), "short rows", {Data::Integers});
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
      p.rows = file.rows, p.cols = file.cols, p.row_map = file.row_map, p.entries = file.entries;
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
    if (folder == nullptr) GTEST_SKIP() << "TESSERA_MATRICES names no folder of matrices";
    files(folder, most);
  }

 private:
  SpmvOptions with(const DaspOptions& dasp) const {
    SpmvOptions o = this->options;
    o.dasp = dasp;
    return o;
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
