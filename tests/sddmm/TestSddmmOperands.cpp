// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Operands of SDDMM in every way to lie in memory and with numbers of every kind, through every kernel that hosts have.

#include <gtest/gtest.h>

#include "sddmm/SddmmOperands.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

struct SddmmHostCase {
  Backend backend;
  SddmmAlgorithm algorithm;
  ComputeType compute = ComputeType::Auto;
};
Pattern uneven() { return pattern_of_lengths({3, 0, 7, 1, 40, 2, 2, 2, 5, 9, 1}, 29); }

/// Of Bsmr: entries of these patterns go to matrix units and to CUDA cores, in another order of rows than theirs.
const BsmrOptions both_kernels{RowReordering::Clusters, 2};

/// One suite per combination of element types is compiled; kernels are numbers at run time.
template <class Suite>
class SddmmOperands : public ::testing::Test {
 protected:
  static std::vector<SddmmHostCase> cases() {
    std::vector<SddmmHostCase> all = {{Backend::Kokkos, SddmmAlgorithm::Rows},
                                      {Backend::Reference, SddmmAlgorithm::Csr},
                                      {Backend::EmulatedNvidia, SddmmAlgorithm::Rows},
                                      {Backend::EmulatedNvidia, SddmmAlgorithm::Panels},
                                      {Backend::EmulatedAmd, SddmmAlgorithm::Rows},
                                      {Backend::EmulatedAmd, SddmmAlgorithm::Panels},
                                      {Backend::EmulatedNvidia, SddmmAlgorithm::Bsmr},
                                      {Backend::EmulatedAmd, SddmmAlgorithm::Bsmr},
                                      {Backend::EmulatedNvidia, SddmmAlgorithm::FlashSparse}};
    if (std::is_same_v<typename Suite::Element, float>) {
      all.push_back({Backend::EmulatedNvidia, SddmmAlgorithm::Panels, ComputeType::TF32});
      all.push_back({Backend::EmulatedNvidia, SddmmAlgorithm::Bsmr, ComputeType::TF32});
    }
    return all;
  }
  template <class F>
  static void each(const F& f) {
    for (const SddmmHostCase& c : cases()) {
      if (!emulates(c.backend)) continue;
      SCOPED_TRACE(std::string(to_string(c.algorithm)) + " on " + to_string(c.backend) + ", compute " +
                   std::to_string(static_cast<int>(c.compute)));
      Suite suite{c.backend, c.algorithm, c.compute};
      suite.options.bsmr = both_kernels;
      f(suite);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using OperandSuites = ::testing::Types<SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t, float>>;
#else
using OperandSuites = ::testing::Types<SddmmSuite<Exec, double>, SddmmSuite<Exec, float>,
                                       SddmmSuite<Exec, half_t, float>, SddmmSuite<Exec, bhalf_t, float>>;
#endif
TYPED_TEST_SUITE(SddmmOperands, OperandSuites);

TYPED_TEST(SddmmOperands, LieInAnyWay) {
  this->each([](const auto& suite) { every_layout(suite, uneven(), {1, 13, 16, 64}); });
}
TYPED_TEST(SddmmOperands, HeadsLieInAnyWay) {
  this->each([](const auto& suite) {
    every_batch_layout(suite, uneven(), 16, 3);
    every_batch_layout(suite, uneven(), 5, 2);
  });
}
TYPED_TEST(SddmmOperands, XIsY) { TESSERA_EACH(one_factor(generate("stencil2d:nx=11:ny=7:points=9"), 16)); }
TYPED_TEST(SddmmOperands, UnsortedColumnsThatRepeat) {
  TESSERA_EACH(every_inner(with_unsorted_columns(uneven()), {3, 32}));
}
TYPED_TEST(SddmmOperands, BadNumbersStayWithTheirRows) {
  this->each([](const auto& suite) {
    bad_numbers(suite, uneven(), 16);
    bad_numbers(suite, uneven(), 13);
  });
}
TYPED_TEST(SddmmOperands, BadNumbersOfSStayWithTheirEntries) {
  this->each([](const auto& suite) { bad_scale(suite, uneven(), 16); });
}
TYPED_TEST(SddmmOperands, NumbersOfManyMagnitudes) {
  this->each([](auto& suite) {
    for (const bool scaled : {false, true}) {
      suite.options.scale_by_values = scaled;
      const auto A = suite.matrix(uneven(), Data::Magnitudes);
      const typename TypeParam::Device device(A);
      const typename TypeParam::Plan plan(Exec(), device.view(), suite.options);
      for (const int inner : {7, 100}) suite.expect(plan, A, inner, Data::Magnitudes, {-0.5, 1});
    }
  });
}
TYPED_TEST(SddmmOperands, NarrowTypesSumInFloat) {
  this->each([](const auto& suite) { ones(suite); });
}

// What the cases of Bsmr above are worth.
TEST(SddmmBsmr, BothKernelsHaveEntries) {
  for (const Backend backend : emulated_backends()) {
    SCOPED_TRACE(to_string(backend));
    SddmmSuite<Exec, UsualScalar> suite(backend, SddmmAlgorithm::Bsmr);
    suite.options.bsmr = both_kernels;
    for (const Pattern& pattern :
         {uneven(), with_unsorted_columns(uneven()), generate("stencil2d:nx=11:ny=7:points=9")}) {
      const DeviceMatrix<Exec, UsualScalar> device(suite.matrix(pattern, Data::Integers));
      const Statistics s = SddmmSuite<Exec, UsualScalar>::Plan(Exec(), device.view(), suite.options).statistics();
      EXPECT_TRUE(s.matrix_unit_share > 0.05 && s.matrix_unit_share < 0.99) << s.matrix_unit_share;
      EXPECT_EQ(s.launches, 2);
    }
  }
}

// A row of 100,000 entries: waves take it in turns, windows have it in thousands of units. (SddmmPlan has threads.)
TEST(SddmmLongRows, OnEmulatedUnits) {
  for (const Backend backend : emulated_backends()) {
    // NVIDIA's units with sanitizers, AMD's beside them.
    if (beside_sanitized && backend == Backend::EmulatedNvidia) continue;
    for (const SddmmAlgorithm algorithm :
         {SddmmAlgorithm::Rows, SddmmAlgorithm::Panels, SddmmAlgorithm::FlashSparse, SddmmAlgorithm::Bsmr}) {
      SCOPED_TRACE(std::string(to_string(algorithm)) + " on " + to_string(backend));
      SddmmSuite<Exec, UsualScalar> suite(backend, algorithm);
      suite.options.bsmr = both_kernels;
      // A full row among short ones: windows share 20 of its columns; and two full rows, which share all.
      const Pattern among_short = pattern_of_rows(30, 100000, [](std::int64_t i, std::vector<int>& to) {
        for (int j = 0; j < (i == 15 ? 100000 : 20); ++j) to.push_back(i == 15 ? j : 4999 * j + static_cast<int>(i));
      });
      for (const Pattern& pattern :
           {generate("dense_row:rows=30:cols=100000"), among_short, generate("dense:rows=2:cols=100000")}) {
        // With sanitizers all of them for Bsmr alone.
        if (fewer_cases && algorithm != SddmmAlgorithm::Bsmr && pattern.entries != among_short.entries) continue;
        const auto A = suite.matrix(pattern, Data::Integers);
        SCOPED_TRACE(std::to_string(A.rows) + " rows, " + std::to_string(A.nnz()) + " entries");
        const DeviceMatrix<Exec, UsualScalar> device(A);
        const SddmmSuite<Exec, UsualScalar>::Plan plan(Exec(), device.view(), suite.options);
        suite.expect(plan, A, 8, Data::Integers);
        if (algorithm != SddmmAlgorithm::Bsmr) continue;
        const Statistics s = plan.statistics();
        EXPECT_EQ(s.launches, A.nnz() == among_short.row_map.back() ? 2 : 1);
        EXPECT_EQ(s.matrix_unit_share == 1, A.rows == 2) << s.matrix_unit_share;
      }
    }
  }
}

TEST(SddmmBatch, OfNoHeads) {
  const auto A = make_matrix<UsualScalar>("ramp", Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
  const auto rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
  const Kokkos::View<UsualScalar***, Kokkos::LayoutRight, DeviceOf<Exec>> x("x", 0, rows, 4), y("y", 0, cols, 4);
  const Kokkos::View<UsualScalar**, Kokkos::LayoutRight, DeviceOf<Exec>> p("p", 0, static_cast<std::size_t>(A.nnz()));
  for (const Backend backend : {Backend::Kokkos, Backend::Reference, Backend::EmulatedNvidia}) {
    SddmmOptions o;
    o.backend = backend;
    const SddmmPlan<DeviceMatrix<Exec, UsualScalar>::Csr> plan(Exec(), device.view(), o);
    EXPECT_NO_THROW(plan.apply(Exec(), x, y, p)) << to_string(backend);
  }
}

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of FP64
// What lies in rows of whole words is multiplied where it lies, and by rows what is aligned to eight bytes alone: each
// copy is a launch, and nothing else is.
TEST(SddmmCopies, OnlyWhereRowsAreNoWholeWords) {
  const SddmmSuite<Exec, double> suite(Backend::EmulatedNvidia, SddmmAlgorithm::Panels);
  const auto A = suite.matrix(uneven(), Data::Integers);
  const DeviceMatrix<Exec, double> device(A);
  constexpr int inner = 16;
  const auto o = suite.operands(A, inner, Data::Integers);
  const Steps whole{0, 0, inner + 2, 1}, shifted{1, 0, inner + 2, 1};
  for (const SddmmAlgorithm algorithm :
       {SddmmAlgorithm::Panels, SddmmAlgorithm::Rows, SddmmAlgorithm::FlashSparse, SddmmAlgorithm::Bsmr}) {
    SddmmOptions options = suite.options;
    options.algorithm = algorithm;
    options.bsmr = both_kernels;
    const SddmmSuite<Exec, double>::Plan plan(Exec(), device.view(), options);
    for (int copies = 0; copies < 8; ++copies) {
      SCOPED_TRACE(std::string(to_string(algorithm)) + ", case " + std::to_string(copies));
      const bool of_x = (copies & 1) != 0, of_y = (copies & 2) != 0, of_p = (copies & 4) != 0;
      const Scattered<Exec, double> x(o.x, 1, A.rows, inner, of_x ? shifted : whole, std::nan(""));
      const Scattered<Exec, double> y(o.y, 1, A.cols, inner, of_y ? shifted : whole, std::nan(""));
      const Scattered<Exec, double> p(o.p, 1, 1, A.nnz(), {0, 0, 0, of_p ? 2 : 1}, 77);
      plan.apply(Exec(), x.matrix(), y.matrix(), p.vector());  // scratch is allocated here
      Exec().fence();
      const KokkosCounters counters;
      plan.apply(Exec(), x.matrix(), y.matrix(), p.vector());
      Exec().fence();
      const bool in_place = algorithm == SddmmAlgorithm::Rows;
      EXPECT_EQ(counters.kernels(), (of_x && !in_place ? 1 : 0) + (of_y && !in_place ? 1 : 0) + (of_p ? 1 : 0));
      EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
      suite.check(A, inner, {}, o, p.read(), true);
    }
  }
}
#endif

}  // namespace Testing
}  // namespace Tessera
