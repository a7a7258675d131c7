// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The SpMM wave kernels, lane by lane, on emulated waves and matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, Backend backend_, SpmmAlgorithm algorithm_, ComputeType compute_ = ComputeType::Auto,
          class C_ = Scalar_>
struct SpmmUnit {
  using Scalar = Scalar_;
  using C = C_;
  static constexpr Backend backend = backend_;
  static constexpr SpmmAlgorithm algorithm = algorithm_;
  static constexpr ComputeType compute = compute_;
};

template <class U>
class EmulatedSpmm : public ::testing::Test {
 protected:
  EmulatedSpmm() { suite.options.gespmm.tf32_copy = Tf32Copy::Always; }
  SpmmSuite<Kokkos::DefaultHostExecutionSpace, typename U::Scalar, typename U::Scalar, typename U::C> suite{
      U::backend, U::algorithm, U::compute};
  Pattern mixed = generate("every_length:longest=70:cols=90");
  Pattern heavy = generate("dense_row:others=1");
};

constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;
constexpr SpmmAlgorithm panels = SpmmAlgorithm::Panels, flash = SpmmAlgorithm::FlashSparse,
                        ge_spmm = SpmmAlgorithm::GeSpmm;
#ifdef TESSERA_TEST_FEWER_TYPES
using SpmmUnits = ::testing::Types<SpmmUnit<half_t, nvidia, panels>, SpmmUnit<float, nvidia, panels>,
                                   SpmmUnit<float, nvidia, panels, ComputeType::TF32>, SpmmUnit<double, amd, panels>,
                                   SpmmUnit<half_t, amd, flash>, SpmmUnit<float, nvidia, ge_spmm>,
                                   SpmmUnit<float, nvidia, ge_spmm, ComputeType::TF32>>;
#else
using SpmmUnits =
    ::testing::Types<SpmmUnit<double, nvidia, panels>, SpmmUnit<float, nvidia, panels, ComputeType::TF32>,
                     SpmmUnit<float, nvidia, panels>, SpmmUnit<half_t, nvidia, panels>,
                     SpmmUnit<half_t, nvidia, panels, ComputeType::Auto, float>, SpmmUnit<bhalf_t, nvidia, panels>,
                     SpmmUnit<double, amd, panels>, SpmmUnit<float, amd, panels>, SpmmUnit<half_t, amd, panels>,
                     SpmmUnit<bhalf_t, amd, panels>, SpmmUnit<float, nvidia, flash, ComputeType::TF32>,
                     SpmmUnit<half_t, nvidia, flash>, SpmmUnit<bhalf_t, amd, flash>, SpmmUnit<double, nvidia, ge_spmm>,
                     SpmmUnit<float, amd, ge_spmm>, SpmmUnit<half_t, nvidia, ge_spmm>,
                     SpmmUnit<float, nvidia, ge_spmm, ComputeType::TF32>,
                     SpmmUnit<float, amd, ge_spmm, ComputeType::TF32>>;
#endif
TYPED_TEST_SUITE(EmulatedSpmm, SpmmUnits);

TYPED_TEST(EmulatedSpmm, EveryShape) { this->suite.every_shape({5, 40}); }
TYPED_TEST(EmulatedSpmm, EveryWidth) { this->suite.every_width(this->mixed, {0, 1, 3, 8, 17, 31, 33, 64, 100, 130}); }
TYPED_TEST(EmulatedSpmm, EveryWidthOfNarrowBlocks) {
  this->suite.options.num_columns_hint = 32;
  this->suite.every_width(this->mixed, {1, 16, 32, 65});
}
TYPED_TEST(EmulatedSpmm, EveryScaling) { this->suite.every_scaling(this->mixed, 19); }
TYPED_TEST(EmulatedSpmm, UndefinedOperands) { this->suite.undefined_operands(this->mixed, 13); }
TYPED_TEST(EmulatedSpmm, BadRowsOfB) { this->suite.bad_rows_of_b(this->mixed, 9); }
TYPED_TEST(EmulatedSpmm, SplitWindowsAndRows) {
  this->suite.options.panels.max_blocks = 1;
  this->suite.options.flash.max_blocks = 1;
  this->suite.options.gespmm.max_piece = 3;
  this->suite.every_width(this->mixed, {1, 33, 70, 300});
  this->suite.every_width(this->heavy, {20, 70, 300});
}
// Short, long and uneven rows in narrow and wide products: every walk of GeSpmm (RowsWalks has the rule).
TYPED_TEST(EmulatedSpmm, RowsOfEveryKind) {
  for (const char* spec : {"stencil2d:nx=31:ny=20", "random:rows=40:cols=300:mean=100", "rmat:scale=8"}) {
    this->suite.expect_pattern(generate(spec), spec, {8, 40, 130, 300});
  }
}
TYPED_TEST(EmulatedSpmm, TransposedProductAndNewValues) {
  this->suite.transposed_product_and_new_values(this->mixed, 21);
}
TYPED_TEST(EmulatedSpmm, Deterministic) { this->suite.deterministic(this->heavy, 12); }
TYPED_TEST(EmulatedSpmm, NoAllocation) { this->suite.no_allocation(this->mixed, 12); }
TYPED_TEST(EmulatedSpmm, Ones) { this->suite.ones(5); }

// Long pieces first, then those of middle length; where B is large, those of cut rows first, if they are few. Each
// entry lies in one piece, and the partial sums of a row are numbered as its entries follow each other.
void expect_pieces(const char* spec, std::int64_t most, bool b_is_cached, bool ordered) {
  SCOPED_TRACE(spec);
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const auto A = make_matrix<double>(generate(spec), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const auto table = Impl::cut_rows(Exec(), device.view(), most, most, &kernel_table(nvidia), b_is_cached);
  std::vector<std::int64_t> covered(static_cast<std::size_t>(A.rows), 0);
  std::vector<int> written(static_cast<std::size_t>(table.partial_count), 0);
  int last = 0;
  bool in_order = true;
  for (std::size_t i = 0; i < table.pieces.extent(0); ++i) {
    const SpmmRowPiece p = table.pieces(i);
    const auto length = static_cast<std::int64_t>(p.packed & SpmmRowPiece::most_entries);
    const auto first = static_cast<std::int64_t>(p.packed >> SpmmRowPiece::length_bits);
    const auto row = static_cast<std::size_t>(p.row);
    // Shorter ends of cut rows may stand among other rows: sort windows of pieces follow afterwards.
    const int rank = b_is_cached ? (2 * length > most ? 0 : 8 * length > most ? 1 : 2) : length == most ? 0 : 1;
    in_order = in_order && rank >= last;
    last = rank;
    ASSERT_GE(first, A.row_map[row]);
    ASSERT_LE(first + length, A.row_map[row + 1]);
    covered[row] += length;
    if (p.partial < 0) continue;
    ++written[static_cast<std::size_t>(p.partial)];
    for (std::size_t s = 0; s < table.splits.extent(0); ++s) {
      if (table.splits(s).window == p.row) {
        EXPECT_EQ(p.partial, table.splits(s).first + (first - A.row_map[row]) / most);
      }
    }
  }
  EXPECT_EQ(in_order, ordered);
  EXPECT_EQ(std::count(written.begin(), written.end(), 1), table.partial_count);
  std::int64_t longest = 0;
  for (int row = 0; row < A.rows; ++row) {
    EXPECT_EQ(covered[static_cast<std::size_t>(row)], A.length(row));
    longest = std::max(longest, A.length(row));
  }
  EXPECT_EQ(table.most_pieces, (longest + most - 1) / most);
}
TEST(PiecesOfRows, LongOnesComeFirst) {
  expect_pieces("rmat:scale=11", 24, true, true);
  expect_pieces("rmat:scale=11", 24, false, false);  // most entries lie in cut rows
  expect_pieces("stencil2d:nx=60:ny=60:points=9", 8, false, false);
  // Long rows thousands of rows apart, so that sorting inside sort windows alone does not move them to the front.
  expect_pieces("circuit:n=20000:long_every=4000:long_min=200:long_max=400:medium=0:dense_cols=0", 64, false, true);
  expect_pieces("dense_row:rows=5000:cols=2000:others=1", 64, false, false);
}

// A row of ones by a B that TF32 does not hold: rounded with the copy, as it is without.
TEST(CopiesOfB, AreRounded) {
  using Suite = SpmmSuite<Kokkos::DefaultHostExecutionSpace, float>;
  const Suite::Matrix A = make_matrix<float>(generate("dense:rows=3:cols=7"), Data::Integers, 1);
  const Suite::Device device(A);
  double sum = 0;
  for (int j = 0; j < 7; ++j) sum += A.values[static_cast<std::size_t>(j)];
  ASSERT_NE(sum, 0);
  for (const Tf32Copy copy : {Tf32Copy::Auto, Tf32Copy::Always}) {
    Suite suite(nvidia, ge_spmm, ComputeType::TF32);
    suite.options.gespmm.tf32_copy = copy;
    const Suite::Plan plan(Kokkos::DefaultHostExecutionSpace(), device.view(), suite.options);
    const std::vector<float> b(7 * 20, 0x1.0008p0f), c(3 * 20, 0);
    const auto got = dense_product(plan, Op::NoTrans, 20, {1, 0}, b, 7, c, 3);
    EXPECT_EQ(got[0], static_cast<float>(sum * (copy == Tf32Copy::Always ? 1 : 0x1.0008p0)));
    EXPECT_EQ(plan.statistics().launches, copy == Tf32Copy::Always ? 2 : 1);
  }
}

}  // namespace Testing
}  // namespace Tessera
