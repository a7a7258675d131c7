// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The SpMM wave kernels, lane by lane, on emulated waves and matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;
constexpr SpmmAlgorithm panels = SpmmAlgorithm::Panels, flash = SpmmAlgorithm::FlashSparse,
                        rows = SpmmAlgorithm::GeSpmm;

struct SpmmUnit {
  Backend backend;
  SpmmAlgorithm algorithm;
  ComputeType compute = ComputeType::Auto;
};
/// Pointer to numbers of an array that would begin `behind` of them earlier.
template <class T>
const T* earlier(const std::vector<T>& numbers, std::uint32_t behind) {
  return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(numbers.data()) - behind * sizeof(T));
}
Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
/// Rows at the limits of the classes of pieces, the longest first.
Pattern about_powers_of_two() {
  std::vector<int> lengths = {0, 0, 1, 3};
  for (int length = 2; length <= 256; length *= 2) {
    for (const int more : {-1, 0, 1, 4}) lengths.insert(lengths.begin(), length + more);
  }
  return pattern_of_lengths(lengths, 300);
}
Pattern heavy() { return generate(fewer_cases ? "dense_row:rows=300:cols=1500:others=1" : "dense_row:others=1"); }

/// One suite per combination of element types is compiled; units that multiply these are numbers at run time.
template <class Suite>
class EmulatedSpmm : public ::testing::Test {
 protected:
  // With sanitizers NVIDIA's in FP32 and FP16 alone; beside them what is not there.
  static std::vector<SpmmUnit> units(double, double) { return {{nvidia, panels}, {amd, panels}, {nvidia, rows}}; }
  static std::vector<SpmmUnit> units(float, float) {
    constexpr ComputeType tf32 = ComputeType::TF32;
    if (fewer_cases) return {{nvidia, panels}, {nvidia, flash, tf32}, {nvidia, rows}};
    if (beside_sanitized) return {{nvidia, panels, tf32}, {amd, panels}, {amd, rows}, {nvidia, rows, tf32}};
    return {{nvidia, panels}, {nvidia, panels, tf32}, {amd, panels},     {nvidia, flash, tf32},
            {amd, rows},      {nvidia, rows},         {amd, rows, tf32}, {nvidia, rows, tf32}};
  }
  static std::vector<SpmmUnit> units(half_t, half_t) {
    if (fewer_cases) return {{nvidia, panels}, {nvidia, flash}, {nvidia, rows}};
    if (beside_sanitized) return {{amd, panels}, {amd, flash}};
    return {{nvidia, panels}, {amd, panels}, {nvidia, flash}, {amd, flash}, {nvidia, rows}};
  }
  static std::vector<SpmmUnit> units(half_t, float) { return {{nvidia, panels}}; }
  static std::vector<SpmmUnit> units(bhalf_t, bhalf_t) { return {{nvidia, panels}, {amd, panels}, {amd, flash}}; }
  /// A test of rows that hosts' own kernel passes alone would test nothing here.
  static void run(void (*f)(Suite&), Suite& suite) {
    if (suite.options.algorithm != rows) return f(suite);
    const KokkosCounters counters;
    f(suite);
    EXPECT_GT(counters.backend_kernels(), 0) << "of a backend";
  }
  static void each(void (*f)(Suite&)) {
    for (const SpmmUnit& u : units(typename Suite::AType(), typename Suite::CType())) {
      SCOPED_TRACE(std::string(to_string(u.algorithm)) + " on " + to_string(u.backend) + ", compute " +
                   std::to_string(static_cast<int>(u.compute)));
      Suite suite{u.backend, u.algorithm, u.compute};
      suite.options.gespmm.tf32_copy = Tf32Copy::Always;
      suite.options.gespmm.spread = RowSpread::Never;
      run(f, suite);
    }
  }
  /// Rows that are spread over teams, on both vendors' waves.
  static void each_spread(void (*f)(Suite&)) {
    if (std::is_same_v<typename Suite::AType, bhalf_t>) return;  // differs from FP16 in the product alone
    for (const Backend backend : emulated_backends()) {
      for (const Tf32Copy copy : {Tf32Copy::Never, Tf32Copy::Always}) {
        const bool tf32 = copy == Tf32Copy::Always;
        if (tf32 && !std::is_same_v<typename Suite::AType, float>) continue;
        const bool sanitized = backend == nvidia && !tf32 && !std::is_same_v<typename Suite::AType, double>;
        if (shorter_lists && sanitized != fewer_cases) continue;
        SCOPED_TRACE(std::string(to_string(backend)) + (tf32 ? ", a copy of B in TF32" : ""));
        Suite suite{backend, rows, tf32 ? ComputeType::TF32 : ComputeType::Auto};
        suite.options.gespmm.tf32_copy = copy;
        suite.options.gespmm.spread = RowSpread::Always;
        run(f, suite);
      }
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Suites = ::testing::Types<SpmmSuite<Exec, float>, SpmmSuite<Exec, half_t>>;
#else
using Suites = ::testing::Types<SpmmSuite<Exec, double>, SpmmSuite<Exec, float>, SpmmSuite<Exec, half_t>,
                                SpmmSuite<Exec, half_t, half_t, float>, SpmmSuite<Exec, bhalf_t>>;
#endif
TYPED_TEST_SUITE(EmulatedSpmm, Suites);

std::vector<int> widths(const std::vector<int>& all, const std::vector<int>& some) {
  return shorter_lists ? some : all;
}

TYPED_TEST(EmulatedSpmm, EveryShape) {
  this->each([](auto& suite) {
    suite.every_shape(beside_sanitized ? std::vector<int>{40} : widths({5, 40}, {5}));  // that one has 5 columns
  });
}
TYPED_TEST(EmulatedSpmm, EveryWidth) { TESSERA_EACH(every_width(mixed(), {0, 1, 3, 8, 17, 31, 33, 64, 100, 130})); }
TYPED_TEST(EmulatedSpmm, EveryWidthOfNarrowBlocks) {
  this->each([](auto& suite) {
    suite.options.num_columns_hint = 32;
    suite.every_width(mixed(), {1, 16, 32, 65});
  });
}
TYPED_TEST(EmulatedSpmm, EveryScaling) { TESSERA_EACH(every_scaling(mixed(), 19)); }
TYPED_TEST(EmulatedSpmm, UndefinedOperands) { TESSERA_EACH(undefined_operands(mixed(), 13)); }
TYPED_TEST(EmulatedSpmm, BadRowsOfB) {
  this->each([](auto& suite) {
    for (const int columns : {9, 70}) suite.bad_rows_of_b(mixed(), columns);
  });
}
TYPED_TEST(EmulatedSpmm, SplitWindowsAndRows) {
  this->each([](auto& suite) {
    suite.options.panels.max_blocks = 1;
    suite.options.flash.max_blocks = 1;
    suite.options.gespmm.max_piece = 3;
    suite.every_width(mixed(), widths({1, 33, 70, 300}, {1, 33, 70}));
    suite.every_width(heavy(), widths({20, 70, 300}, {70}));
    suite.bad_rows_of_b(mixed(), 70);
  });
}
// Short, long and uneven rows in narrow and wide products: every walk of rows (RowsWalks has the rule).
TYPED_TEST(EmulatedSpmm, RowsOfEveryKind) {
  this->each([](auto& suite) {
    for (const char* spec : {"stencil2d:nx=31:ny=20", "random:rows=40:cols=300:mean=100", "rmat:scale=8"}) {
      suite.expect_pattern(generate(spec), spec, widths({8, 20, 40, 130, 300}, {8, 20, 130}));
    }
  });
}
// Rows of B of 8, 16, 24 or some bytes: read where they lie, by every walk of narrow words. Many columns of C, and
// where B is in rows, by way of rows.
TYPED_TEST(EmulatedSpmm, RowsOfBThatAreNotAligned) {
  this->each([](auto& suite) {
    if (suite.options.algorithm != rows) return;
    suite.options.gespmm.tf32_copy = Tf32Copy::Never;
    for (const char* spec : {"stencil2d:nx=31:ny=20", "random:rows=12:cols=300:mean=230", "rmat:scale=7"}) {
      suite.expect_pattern(generate(spec), spec,
                           widths({1, 2, 3, 4, 6, 9, 12, 13, 18, 25, 35, 61, 130}, {1, 6, 13, 25, 61}));
    }
    const auto A = suite.matrix(generate("random:rows=12:cols=300:mean=230"), Data::Integers, 3);
    const DeviceMatrix<Exec, typename std::decay_t<decltype(suite)>::AType> device(A);
    const typename std::decay_t<decltype(suite)>::Plan plan(Exec(), device.view(), suite.options);
    for (const int columns : {1, 2, 7, 33}) {
      suite.template expect<ColumnMajorPart, ColumnMajorPart>(plan, A, columns, Data::Integers, {2, -3});
      suite.template expect<RowMajor, ColumnMajor>(plan, A, columns, Data::Integers);
    }
  });
  this->each_spread([](auto& suite) {
    suite.expect_pattern(generate("every_length:longest=130:cols=200"), "spread",
                         widths({1, 2, 3, 6, 12, 13, 35}, {2, 6, 13}));
  });
}
/// Kokkos' kernels in a product of columns that lie one behind the other: 0 where it is made of them where they lie.
template <class Suite, class Matrix>
int kernels_of_columns(const typename Suite::Plan& plan, const Matrix& A, int columns) {
  const auto n = static_cast<std::size_t>(columns);
  const Kokkos::View<typename Suite::AType**, Kokkos::LayoutLeft, Exec> b("b", static_cast<std::size_t>(A.cols), n);
  const Kokkos::View<typename Suite::CType**, Kokkos::LayoutLeft, Exec> c("c", static_cast<std::size_t>(A.rows), n);
  const KokkosCounters counters;
  plan.apply(Exec(), b, c);
  EXPECT_EQ(counters.backend_kernels(), 1);
  return counters.kernels();
}
/// Whole Views and parts: right, one kernel, and no copy. Columns in one group and in several, of a wave and of others.
template <class Suite>
void expect_columns_in_place(const Suite& suite, const Pattern& p) {
  const auto A = suite.matrix(p, Data::Integers, 3);
  const DeviceMatrix<Exec, typename Suite::AType> device(A);
  const typename Suite::Plan plan(Exec(), device.view(), suite.options);
  for (const int columns : widths({2, 3, 4, 5, 8, 17}, {2, 7, 17})) {
    suite.template expect<ColumnMajor, ColumnMajor>(plan, A, columns, Data::Integers);
    suite.template expect<ColumnMajorPart, ColumnMajorPart>(plan, A, columns, Data::Real, {2.5, -1});
    EXPECT_EQ((kernels_of_columns<Suite>(plan, A, columns)), 0);
  }
}
// Columns of B and C where they lie. Teams alone and together, empty rows, odd columns.
TYPED_TEST(EmulatedSpmm, ColumnsInPlace) {
  this->each([](auto& suite) {
    if (suite.options.algorithm != rows) return;
    std::size_t turn = 0;
    std::vector<int> next_to_none(900, 1);
    next_to_none.insert(next_to_none.end(), {0, 400, 3});  // in pieces
    for (const Pattern& p : {generate("stencil2d:nx=31:ny=20"), generate("dense:rows=30:cols=260"),
                             pattern_of_lengths(next_to_none, 950), generate("random:rows=300:cols=200:mean=0.9")}) {
      SCOPED_TRACE(turn);
      if (!taken_elsewhere(turn++)) expect_columns_in_place(suite, p);
    }
  });
}
// The same of rows that differ much in length: teams that share a row, and rows of several pieces.
TYPED_TEST(EmulatedSpmm, ColumnsInPlaceOfSpreadRows) {
  this->each_spread([](auto& suite) {
    std::vector<int> lengths(150, 1);
    for (const int length : {0, 3, 17, 64, 130, 600, 1, 2100}) lengths.push_back(length);
    const Pattern p = pattern_of_lengths(lengths, 2200);
    expect_columns_in_place(suite, p);
    suite.workspace(p, 5);
    suite.no_allocation(p, 5);
  });
}
// Wide short rows that scatter: through copies of B and C in rows, by the backend's kernel.
TYPED_TEST(EmulatedSpmm, WideColumnsThroughRows) {
  if (!std::is_same_v<typename TypeParam::AType, double>) return;
  const TypeParam suite{nvidia, rows};
  const auto A = suite.matrix(generate("uniform:rows=4000:cols=9000:per_row=12:seed=5"), Data::Integers, 3);
  const DeviceMatrix<Exec, typename TypeParam::AType> device(A);
  const typename TypeParam::Plan plan(Exec(), device.view(), suite.options);
  suite.template expect<ColumnMajorPart, ColumnMajor>(plan, A, 100, Data::Integers, {2, -3});
  EXPECT_EQ((kernels_of_columns<TypeParam>(plan, A, 100)), 2);
}
// Auto takes panels, but columns from their places where these are few or launches are most of it.
TYPED_TEST(EmulatedSpmm, ColumnsInPlaceOfPanels) {
  if (std::is_same_v<typename TypeParam::AType, bhalf_t>) return;
  const bool tf32 = std::is_same_v<typename TypeParam::AType, float> && !fewer_cases;
  for (const ComputeType compute : {ComputeType::Auto, ComputeType::TF32}) {
    if (compute == ComputeType::TF32 && !tf32) continue;
    const TypeParam suite{nvidia, SpmmAlgorithm::Auto, compute};
    const Pattern p = generate("dense:rows=600:cols=90");
    const auto A = suite.matrix(p, Data::Integers, 3);
    const DeviceMatrix<Exec, typename TypeParam::AType> device(A);
    const typename TypeParam::Plan plan(Exec(), device.view(), suite.options);
    ASSERT_EQ(plan.options().algorithm, panels) << plan.statistics().why;
    for (const int columns : {1, 2, 5, 8, 19}) {
      suite.template expect<ColumnMajor, ColumnMajorPart>(plan, A, columns, Data::Integers, {2, -3});
      const int kernels = kernels_of_columns<TypeParam>(plan, A, columns);
      EXPECT_EQ(kernels == 0, columns > 1) << kernels << " beside the product";
    }
    if (std::is_same_v<typename TypeParam::AType, double>) {
      EXPECT_GT((kernels_of_columns<TypeParam>(plan, A, 350)), 0) << "copies take less time";
    }
    suite.template transposed_product_and_new_values<ColumnMajor, ColumnMajor>(p, 5);
  }
}
// One team per row up to a thread block's, items that end inside a wave and a thread block, rows of several pieces.
TYPED_TEST(EmulatedSpmm, SpreadRows) {
  this->each_spread([](auto& suite) {
    suite.every_width(mixed(), widths({1, 3, 8, 17, 33, 130}, {1, 33}));
    // Of shorter lists FP32 and FP16 beside sanitizers alone have all shapes and lengths.
    const bool some = fewer_cases || (beside_sanitized && std::is_same_v<typename TypeParam::AType, double>);
    if (!some) suite.every_shape({5});
    suite.expect_pattern(some ? about_powers_of_two() : generate("every_length:longest=260:cols=300"), "every length",
                         {20});
    suite.options.gespmm.max_piece = 3;
    suite.every_width(mixed(), widths({1, 70, 300}, {70}));
    suite.expect_pattern(heavy(), "a long row", widths({20, 300}, {70}));
    suite.bad_rows_of_b(mixed(), 70);
    suite.deterministic(heavy(), 16);
    suite.no_allocation(mixed(), 12);
    suite.transposed_product_and_new_values(mixed(), 21);
    // For one column a thread block takes up to 2,048 entries of a row, and more are pieces.
    suite.options.gespmm.max_piece = 0;
    suite.options.num_columns_hint = 1;
    const Pattern p = pattern_of_lengths({1, 0, 2048, 17, 5000, 300, 2049}, 5100);
    suite.expect_pattern(p, "a plan for one column", {1, 2, 9});
    suite.deterministic(p, 1);
  });
}
TYPED_TEST(EmulatedSpmm, TransposedProductAndNewValues) {
  TESSERA_EACH(transposed_product_and_new_values(mixed(), 21));
}
TYPED_TEST(EmulatedSpmm, Deterministic) { TESSERA_EACH(deterministic(heavy(), 16)); }
TYPED_TEST(EmulatedSpmm, NoAllocation) { TESSERA_EACH(no_allocation(mixed(), 12)); }
TYPED_TEST(EmulatedSpmm, Ones) { TESSERA_EACH(ones(8)); }

// The largest float, which rounding to TF32 makes infinite, and zeros beside it: in A and in B, rows of one window.
TEST(EmulatedSpmmNumbers, LargestStayFinite) {
  constexpr float largest = std::numeric_limits<float>::max();
  HostMatrix<float> A = make_matrix<float>("diagonal:rows=20:cols=20", Data::Integers, 1);
  std::fill(A.values.begin(), A.values.end(), 1.0f);
  A.values[3] = largest;
  std::vector<float> b(20 * 8, 1.0f);
  std::fill(b.begin() + 8 * 5, b.begin() + 8 * 6, -largest);
  const DeviceMatrix<Exec, float> device(A);
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec> from("b", 20, 8), to("c", 20, 8);
  std::copy(b.begin(), b.end(), from.data());
  for (const SpmmUnit& u : {SpmmUnit{nvidia, panels},
                            {nvidia, panels, ComputeType::TF32},
                            {amd, panels},
                            {nvidia, flash, ComputeType::TF32}}) {
    if (!emulates(u.backend)) continue;
    SCOPED_TRACE(std::string(to_string(u.algorithm)) + ", compute " + std::to_string(static_cast<int>(u.compute)));
    SpmmOptions options;
    options.backend = u.backend;
    options.algorithm = u.algorithm;
    options.compute = u.compute;
    SpmmPlan(Exec(), device.view(), options).apply(Exec(), from, to);
    for (int i = 0; i < 20; ++i) {
      for (int j = 0; j < 8; ++j) EXPECT_EQ(to(i, j), i == 3 ? largest : i == 5 ? -largest : 1.0f) << i << ", " << j;
    }
  }
}

// Long pieces first, then those of middle length; where B is large, those of cut rows first, if they are few. Each
// entry lies in one piece, and the partial sums of a row are numbered as its entries follow each other.
void expect_pieces(const char* spec, std::int64_t most, bool b_is_cached, bool ordered) {
  SCOPED_TRACE(spec);
  const auto A = make_matrix<UsualScalar>(generate(spec), Data::Integers, 1);
  const DeviceMatrix<Exec, UsualScalar> device(A);
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
    // Shorter ends of cut rows may stand among other rows: windows of pieces are sorted by length afterwards.
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
  // Long rows thousands of rows apart, so that sorting inside windows alone does not move them to the front.
  expect_pieces("circuit:n=20000:long_every=4000:long_min=200:long_max=400:medium=0:dense_cols=0", 64, false, true);
  expect_pieces("dense_row:rows=5000:cols=2000:others=1", 64, false, false);
}

// Items that are spread: each entry lies in one, those of a class follow each other, the longest first, rows in order,
// and pieces of a row are about as long as each other.
TEST(PiecesOfRows, SpreadOnesAreSorted) {
  const Impl::PieceBounds bounds{24, 48};
  for (const char* spec :
       {"rmat:scale=11", "dense_row:rows=5000:cols=2000:others=1", "stencil2d:nx=60:ny=60:points=9"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<UsualScalar>(generate(spec), Data::Integers, 1);
    const DeviceMatrix<Exec, UsualScalar> device(A);
    std::int64_t longest = 0, place = 0, covered = 0;
    for (int row = 0; row < A.rows; ++row) longest = std::max(longest, A.length(row));
    const auto table = Impl::spread_rows(Exec(), device.view(), bounds, longest, &kernel_table(nvidia));
    for (int c = SpmmSpread::classes - 1; c >= 0; --c) {
      std::int32_t last = -1;
      for (std::int32_t i = 0; i < table.items.counts[c]; ++i, ++place) {
        const SpmmRowPiece p = table.pieces(static_cast<std::size_t>(place));
        const bool cut = c == SpmmSpread::classes - 1;
        const auto length = static_cast<std::int64_t>(p.packed & SpmmRowPiece::most_entries);
        const auto first = static_cast<std::int64_t>(p.packed >> SpmmRowPiece::length_bits);
        ASSERT_EQ(p.partial >= 0, cut);
        const SpmmSplit split = cut ? table.splits(static_cast<std::size_t>(p.row)) : SpmmSplit{p.row, 0, 1};
        const std::int64_t begin = A.row_map[static_cast<std::size_t>(split.window)], entries = A.length(split.window);
        const std::int64_t which = cut ? p.partial - split.first : 0;
        EXPECT_EQ(first, begin + entries * which / split.count);
        EXPECT_EQ(first + length, begin + entries * (which + 1) / split.count);
        EXPECT_EQ(cut, entries > bounds.tolerated);
        if (!cut) {
          EXPECT_TRUE(length <= std::int64_t{1} << c && (c == 0 || 2 * length > std::int64_t{1} << c)) << length;
          EXPECT_GT(p.row, last);
        }
        last = p.row;
        covered += length;
      }
    }
    EXPECT_EQ(table.items.log2_piece, 5) << "of 24 entries";
    EXPECT_EQ(place, static_cast<std::int64_t>(table.pieces.extent(0)));
    EXPECT_EQ(covered, static_cast<std::int64_t>(A.values.size()));
    for (std::size_t i = 0; i < table.arrivals.extent(0); ++i) EXPECT_EQ(table.arrivals(i), 0u);
  }
}

// Counters of pieces that have arrived are for 32 tiles of a row of B's columns; beyond them a launch adds the pieces.
TEST(SpreadRows, LaunchesAreCounted) {
  using Suite = SpmmSuite<Exec, float>;
  const Suite::Matrix A = make_matrix<float>(heavy(), Data::Integers, 1);
  const Suite::Device device(A);
  const auto launches = [&](int columns, Tf32Copy copy, int max_piece) {
    Suite suite(nvidia, rows, ComputeType::TF32);
    suite.options.gespmm = {max_piece, copy, RowSpread::Always};
    suite.options.num_columns_hint = columns;
    return Suite::Plan(Exec(), device.view(), suite.options).statistics().launches;
  };
  EXPECT_EQ(launches(32 * 32, Tf32Copy::Never, 3), 1);
  EXPECT_EQ(launches(32 * 32 + 1, Tf32Copy::Never, 3), 2);
  EXPECT_EQ(launches(32 * 32 + 1, Tf32Copy::Never, 1000000), 1) << "no row is split";
  EXPECT_EQ(launches(64 * 32, Tf32Copy::Always, 3), 2) << "the copy, whose words have eight columns";
  EXPECT_EQ(launches(64 * 32 + 1, Tf32Copy::Always, 3), 3);
}

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of FP64
// Teams have tiles of 128 bytes. Of more columns than a grid has such tiles, whole waves take the same table.
TEST(SpreadRows, MoreColumnsThanTilesOfTeams) {
  const HostMatrix<double> A = make_matrix<double>(generate("dense_row:rows=3:cols=5:others=1"), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  SpmmOptions options;
  options.backend = nvidia;
  options.algorithm = rows;
  options.gespmm = {3, Tf32Copy::Auto, RowSpread::Always};
  const SpmmPlan<DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), options);
  const int columns = 65536 * 16;
  const Kokkos::View<double**, Kokkos::LayoutRight, Exec> b("b", A.cols, columns), c("c", A.rows, columns);
  for (int i = 0; i < A.cols; ++i) {
    for (int j = 0; j < columns; ++j) b(i, j) = (3 * i + j) % 8;
  }
  plan.apply(Exec(), b, c);
  Exec().fence();
  int wrong = 0;
  for (int i = 0; i < A.rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (auto e = static_cast<std::size_t>(A.row_map[i]); e < static_cast<std::size_t>(A.row_map[i + 1]); ++e) {
        sum += A.values[e] * b(A.entries[e], j);
      }
      wrong += c(i, j) != sum;
    }
  }
  EXPECT_EQ(wrong, 0);
}
#endif

// A row of ones by a B that TF32 does not hold: rounded with the copy, as it is without.
TEST(CopiesOfB, AreRounded) {
  using Suite = SpmmSuite<Exec, float>;
  const Suite::Matrix A = make_matrix<float>(generate("dense:rows=3:cols=7"), Data::Integers, 1);
  const Suite::Device device(A);
  double sum = 0;
  for (int j = 0; j < 7; ++j) sum += A.values[static_cast<std::size_t>(j)];
  ASSERT_NE(sum, 0);
  for (const Tf32Copy copy : {Tf32Copy::Auto, Tf32Copy::Always}) {
    Suite suite(nvidia, rows, ComputeType::TF32);
    suite.options.gespmm.tf32_copy = copy;
    const Suite::Plan plan(Exec(), device.view(), suite.options);
    const std::vector<float> b(7 * 20, 0x1.0008p0f), c(3 * 20, 0);
    const auto got = dense_product(plan, Op::NoTrans, 20, {1, 0}, b, 7, c, 3);
    EXPECT_EQ(got[0], static_cast<float>(sum * (copy == Tf32Copy::Always ? 1 : 0x1.0008p0)));
    EXPECT_EQ(plan.statistics().launches, copy == Tf32Copy::Always ? 2 : 1);
  }
}

// Unsigned offsets above 2^31: of arrays that begin so much earlier the kernel reads only what is there.
TEST(EmulatedSpmmOffsets, UnsignedBeyond31Bits) {
  const std::uint32_t behind = 3'000'000'000u;
  const std::vector<std::uint32_t> row_map{behind, behind + 2, behind + 2, behind + 3};
  const std::vector<std::int32_t> entries{0, 2, 1};
  const std::vector<UsualScalar> values{2, 3, 5}, b{1, 10, 100, 0, 2, 20, 200, 0, 3, 30, 300, 0};
  std::vector<UsualScalar> c(12, 7);
  GeSpmmArgs args;
  args.precision = Impl::ScalarTraits<UsualScalar>::precision;
  args.rows = args.cols = args.count = 3;
  args.nnz = std::int64_t{behind} + 3;
  args.row_map = row_map.data();
  args.offset_bytes = 4;
  args.columns = earlier(entries, behind);
  args.values = earlier(values, behind);
  args.dense.b = b.data();
  args.dense.ldb = 4;
  args.dense.c = c.data();
  args.dense.ldc = 4;
  args.dense.c_type = sizeof(UsualScalar) == 8 ? ElementType::Double : ElementType::Float;
  args.dense.columns = 3;  // of which the emulation has entries by 64-bit numbers, as devices where they are so many
  ASSERT_TRUE(kernel_table(nvidia).spmm.gespmm(args, Stream{}).ok());
  EXPECT_EQ(c, (std::vector<UsualScalar>{11, 110, 1100, 7, 0, 0, 0, 7, 10, 100, 1000, 7}));
}

#ifndef TESSERA_TEST_FEWER_TYPES
// Unsigned offsets of ordinary size: the bits that those of 64 bits give. They differ on hosts' own kernel, which
// compilers may contract to FMA in one plan and not in the other; so the backend must run.
TEST(EmulatedSpmmOffsets, Unsigned) {
  const auto A = make_matrix<double>(mixed(), Data::Real, 5);
  const DeviceMatrix<Exec, double> wide(A);
  const auto row_map = to_device<Exec>(std::vector<std::uint32_t>(A.row_map.begin(), A.row_map.end()));
  const auto narrow = csr_view(A.rows, A.cols, row_map, wide.entries, wide.values);
  for (const RowSpread spread : {RowSpread::Never, RowSpread::Always}) {
    SpmmOptions options;
    options.algorithm = rows;
    options.backend = nvidia;
    options.gespmm.spread = spread;
    const SpmmPlan<DeviceMatrix<Exec, double>::Csr> of_wide(Exec(), wide.view(), options);
    const SpmmPlan<std::decay_t<decltype(narrow)>> of_narrow(Exec(), narrow, options);
    for (const int columns : {6, 7}) {  // entries have 32-bit numbers, then 64-bit ones
      SCOPED_TRACE(std::to_string(columns) + " columns, " + (spread == RowSpread::Always ? "spread" : "not spread"));
      const auto b = numbers<double>(std::int64_t{columns} * A.cols, Data::Real, 6);
      const std::vector<double> c(static_cast<std::size_t>(A.rows * columns));
      const KokkosCounters counters;
      const auto wanted = dense_product<ColumnMajor>(of_wide, Op::NoTrans, columns, {}, b, A.cols, c, A.rows);
      const auto got = dense_product<ColumnMajor>(of_narrow, Op::NoTrans, columns, {}, b, A.cols, c, A.rows);
      EXPECT_EQ(counters.backend_kernels(), 2);
      EXPECT_TRUE(same_bits(got, wanted));
    }
  }
}
#endif

}  // namespace Testing
}  // namespace Tessera
