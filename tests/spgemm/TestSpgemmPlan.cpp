// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every method of SpGEMM against plain loops: shapes, compressions, orders of columns, undefined numbers, limits.

#include <gtest/gtest.h>

#include <algorithm>

#include "support/Tessera_TestAddressSpace.hpp"
#include "support/Tessera_TestSpgemm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class U>
class SpgemmMethods : public ::testing::Test,
                      protected SpgemmSuite<Exec, typename U::first_type, typename U::second_type> {
 protected:
  /// Large products in FP64 are in a sanitized build, in FP32 beside it.
  static constexpr bool large_elsewhere = beside_sanitized && std::is_same_v<typename U::first_type, double>;
};
#ifdef TESSERA_TEST_FEWER_TYPES
using SpgemmTypes = ::testing::Types<std::pair<double, int>>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using SpgemmTypes = ::testing::Types<std::pair<double, int>, std::pair<float, int>, std::pair<double, std::int64_t>>;
#else
using SpgemmTypes = ::testing::Types<std::pair<double, int>, std::pair<double, std::size_t>, std::pair<float, int>,
                                     std::pair<double, std::int64_t>>;
#endif
TYPED_TEST_SUITE(SpgemmMethods, SpgemmTypes);

TYPED_TEST(SpgemmMethods, EveryShape) { this->every_shape(); }
TYPED_TEST(SpgemmMethods, Rectangular) { this->rectangular(); }
TYPED_TEST(SpgemmMethods, WideRows) { this->wide_rows(); }
TYPED_TEST(SpgemmMethods, LargeRows) { this->large_rows(); }
TYPED_TEST(SpgemmMethods, FewLongRows) { this->few_long_rows(); }
TYPED_TEST(SpgemmMethods, FewVeryLongRows) { this->few_very_long_rows(); }
TYPED_TEST(SpgemmMethods, LongAndFarRows) { this->long_and_far_rows(); }
TYPED_TEST(SpgemmMethods, VeryLongRows) {
  if (TestFixture::large_elsewhere) GTEST_SKIP() << "FP64 with sanitizers";
  this->very_long_rows();
}
TYPED_TEST(SpgemmMethods, MemoryCap) {
  if (TestFixture::large_elsewhere) GTEST_SKIP() << "FP64 with sanitizers";
  this->memory_cap();
}
TYPED_TEST(SpgemmMethods, EveryNumberOfProducts) { this->every_number_of_products(); }
TYPED_TEST(SpgemmMethods, ShortRows) { this->short_rows(); }
TYPED_TEST(SpgemmMethods, UnsortedAndRepeatedColumns) { this->unsorted_and_repeated_columns(); }
TYPED_TEST(SpgemmMethods, UndefinedNumbers) { this->undefined_numbers(); }
TYPED_TEST(SpgemmMethods, DiagonalsWithHoles) { this->diagonals_with_holes(); }
TYPED_TEST(SpgemmMethods, ZerosAreEntries) { this->zeros_are_entries(); }
TYPED_TEST(SpgemmMethods, UndefinedNumbersBesideHoles) { this->undefined_numbers_beside_holes(); }

class SpgemmPlans : public ::testing::Test {
 protected:
  using Matrix = HostMatrix<double, int>;
  using Device = DeviceMatrix<Exec, double, int>;
  using Plan = SpgemmPlan<Device::Csr>;
  Matrix A = make_matrix<double, int>("fem:nx=5:ny=4:nz=3", Data::Real, 1);
  Device a{A};

  template <class Error>
  static void expect(const std::vector<std::string>& parts, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what() << " has no '" << part << "'";
      }
    }
  }
};

TEST_F(SpgemmPlans, TheChoiceExplainsItself) {
  Plan plan(Exec(), a.view(), a.view());
  const Statistics s = plan.statistics();
  EXPECT_EQ(s.operation, "spgemm");
  EXPECT_EQ(s.algorithm, to_string(plan.options().algorithm));
  EXPECT_NE(s.why.find("DIA work"), std::string::npos) << s.why;
  EXPECT_EQ(s.workspace_bytes, plan.workspace_bytes());
  EXPECT_GT(plan.products(), A.nnz());
}

TEST_F(SpgemmPlans, ForcedByTheEnvironment) {
  {
    const Environment e("TESSERA_FORCE_SPGEMM_ALGORITHM", "heap");
    EXPECT_EQ(Plan(Exec(), a.view(), a.view()).options().algorithm, SpgemmAlgorithm::Heap);
    SpgemmOptions options;
    options.algorithm = SpgemmAlgorithm::Coo;
    EXPECT_EQ(Plan(Exec(), a.view(), a.view(), options).options().algorithm, SpgemmAlgorithm::Coo) << "options win";
  }
  const Environment e("TESSERA_FORCE_SPGEMM_ALGORITHM", "dasp");
  expect<InvalidArgument>({"dasp", "SpGEMM algorithm", "hash"}, [&] { Plan(Exec(), a.view(), a.view()); });
}

// Binned has kernels of its own in a backend, for B with ascending columns.
TEST_F(SpgemmPlans, BinnedSaysWhoRunsIt) {
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Binned;
  EXPECT_EQ(Plan(Exec(), a.view(), a.view(), options).statistics().backend, "kokkos") << "on hosts unless asked for";
  options.backend = Backend::EmulatedNvidia;
  EXPECT_EQ(Plan(Exec(), a.view(), a.view(), options).statistics().backend, "emulated-nvidia");
  options.algorithm = SpgemmAlgorithm::Auto;
  EXPECT_EQ(Plan(Exec(), a.view(), a.view(), options).statistics().backend, "emulated-nvidia");
  const auto unsorted = make_matrix<double, int>(
      with_unsorted_columns(generate("random:rows=30:cols=30:lengths=equal:mean=5")), Data::Real, 1);
  const Device u(unsorted);
  const Statistics s = Plan(Exec(), u.view(), u.view(), options).statistics();
  EXPECT_EQ(s.backend, "kokkos");
  EXPECT_NE(s.why.find("descend"), std::string::npos) << s.why;

  options.algorithm = SpgemmAlgorithm::Spa;
  expect<NotSupported>({"spa", "emulated-nvidia", "Binned"}, [&] { Plan(Exec(), a.view(), a.view(), options); });
  options.algorithm = SpgemmAlgorithm::Binned;
  options.backend = Backend::Reference;
  expect<NotSupported>({"binned", "reference"}, [&] { Plan(Exec(), a.view(), a.view(), options); });
}

// Phases again, in any order that makes sense: columns that were found for the first are found again.
TEST_F(SpgemmPlans, PhasesAgain) {
  for (const SpgemmOptions& options : spgemm_variants<Exec>()) {
    SCOPED_TRACE(std::string(to_string(options.algorithm)) + ", " + to_string(options.backend));
    const auto wanted = multiply<Exec>(A, A, options);
    Plan plan(Exec(), a.view(), a.view(), options);
    const DeviceVector<Exec, int> rows("rows", static_cast<std::size_t>(A.rows) + 1);
    plan.symbolic(Exec(), rows);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), rows));
    for (int turn = 0; turn < 2; ++turn) {
      const DeviceVector<Exec, int> columns("columns", nnz);
      const DeviceVector<Exec, double> values("values", nnz);
      plan.numeric(Exec(), rows, columns, values);
      EXPECT_EQ(to_host(columns), wanted.columns);
      EXPECT_TRUE(same_bits(to_host(values), wanted.values));
    }
  }
}

// A and B of one pattern share what Dia and Ell make of it; their numbers may differ, from the start or later.
TEST_F(SpgemmPlans, OnePatternTwoMatrices) {
  auto other = A;
  other.values = numbers<double>(A.nnz(), Data::Real, 77);
  const Device::Csr left = a.view();
  const DeviceVector<Exec, double> values_b("values", a.values.extent(0));
  Kokkos::deep_copy(values_b, a.values);
  const auto right = csr_view(A.rows, A.cols, left.row_map(), left.entries(), values_b);
  for (const SpgemmOptions& options : spgemm_variants<Exec>()) {
    SCOPED_TRACE(std::string(to_string(options.algorithm)) + ", " + to_string(options.backend));
    ASSERT_EQ(refusal_of(A, A, options), "");
    Kokkos::deep_copy(values_b, a.values);
    Plan plan(Exec(), left, left, options);
    const DeviceVector<Exec, int> rows("rows", static_cast<std::size_t>(A.rows) + 1);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), rows));
    const DeviceVector<Exec, int> columns("columns", nnz);
    const DeviceVector<Exec, double> values("values", nnz);
    plan.numeric(Exec(), rows, columns, values);
    EXPECT_TRUE(same_bits(to_host(values), multiply<Exec>(A, A, SpgemmOptions()).values));
    for (std::size_t i = 0; i < other.values.size(); ++i) values_b(i) = other.values[i];
    plan.update_values(Exec(), left, right, rows, columns, values);
    EXPECT_TRUE(same_bits(to_host(values), multiply<Exec>(A, other, SpgemmOptions()).values));
    plan.update_values(Exec(), right, left, rows, columns, values);
    EXPECT_TRUE(same_bits(to_host(values), multiply<Exec>(other, A, SpgemmOptions()).values));
    plan.update_values(Exec(), right, right, rows, columns, values);
    EXPECT_TRUE(same_bits(to_host(values), multiply<Exec>(other, other, SpgemmOptions()).values));
  }
}

// By hand: 130 rows are 192 slots of a diagonal (an odd number of words of 64), with 5 words of bits and an offset; 64
// slots before and behind all; 24 bytes per pair of diagonals.
TEST(SpgemmBytes, OfDiagonalsAndPaddedRows) {
  const std::size_t a = 3 * (192 * 8 + 5 * 8 + 8) + 128 * 8 + 8, b = 2 * (64 * 8 + 3 * 8 + 8) + 128 * 8 + 8;
  EXPECT_EQ(Impl::spgemm_dia_bytes(130, 3, 60, 2, 8), a + b + 3 * 2 * 24);
  EXPECT_EQ(Impl::spgemm_ell_bytes(130, 3, 60, 4, 1000, 4, 4), 130u * 3 * 8 + 60 * 4 * 8 + 130 * 12 * 4);
  EXPECT_EQ(Impl::spgemm_ell_bytes(130, 3, 60, 4, 5, 8, 4), 130u * 3 * 12 + 60 * 4 * 12 + 130 * 5 * 4) << "5 columns";
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(Impl::spgemm_ell_bytes(2147483647, 2147483647, 2147483647, 1, 9, 8, 4), most) << "no overflow";
  EXPECT_EQ(Impl::spgemm_format_room(100, 0), std::size_t{1} << 26);
  EXPECT_EQ(Impl::spgemm_format_room(1 << 26, 0), std::size_t{1} << 28);
  EXPECT_EQ(Impl::spgemm_format_room(1 << 26, 7), 7u);
}

// By vectors of either width, against a count one by one; nothing behind the room that is asked for is written.
TEST(SpgemmRanks, AreHowManyAreSmaller) {
  for (const int bytes : {16, Impl::host_vector_bytes()}) {
    for (int n = 0; n <= Impl::spgemm_short_products; ++n) {
      const auto room = static_cast<std::size_t>(n + Impl::spgemm_rank_lanes);
      std::vector<std::int32_t> column(room, 5), rank(room + 1, -7);
      for (int i = 0; i < n; ++i) column[static_cast<std::size_t>(i)] = i % 3 == 0 ? 2147483647 - i : i * 389 % 1031;
      Impl::spgemm_ranks(bytes, column.data(), n, rank.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const auto smaller = std::count_if(column.begin(), column.begin() + n, [&](int c) { return c < column[i]; });
        ASSERT_EQ(rank[i], smaller) << i << " of " << n << ", vectors of " << bytes << " bytes";
      }
      EXPECT_EQ(rank[room], -7) << n;
    }
  }
}

// What Dia and Ell predict is what they keep at most; one byte less is refused with the number.
TEST_F(SpgemmPlans, FormatsPredictTheirMemory) {
  const auto B = make_matrix<double, int>("uniform:rows=60:cols=100:per_row=3", Data::Real, 2);
  const auto left = make_matrix<double, int>("stencil2d:nx=6:ny=10", Data::Real, 3);
  const Device l(left), b(B);
  for (const auto algorithm : {SpgemmAlgorithm::Dia, SpgemmAlgorithm::Ell}) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    const std::size_t needed = predicted_bytes(left, B, algorithm);
    options.max_workspace_bytes = needed;
    const Plan plan(Exec(), l.view(), b.view(), options);
    EXPECT_LE(plan.workspace_bytes(), needed);
    EXPECT_GT(plan.workspace_bytes(), needed / 2);
    EXPECT_GE(plan.statistics().format_bytes, plan.workspace_bytes());
    options.max_workspace_bytes = needed - 1;
    expect<NotSupported>({to_string(algorithm) == std::string("dia") ? "Dia" : "Ell", std::to_string(needed),
                          std::to_string(needed - 1), "max_workspace_bytes"},
                         [&] { Plan(Exec(), l.view(), b.view(), options); });
  }
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Dia;
  const auto scattered = make_matrix<double, int>("uniform:rows=20000:cols=20000:per_row=3", Data::Real, 2);
  const Device s(scattered);
  expect<NotSupported>({std::to_string(diagonals_of(scattered)) + " diagonals",
                        std::to_string(predicted_bytes(scattered, scattered, SpgemmAlgorithm::Dia)), "67108864"},
                       [&] { Plan(Exec(), s.view(), s.view(), options); });
}

// A dense array of all columns is out of proportion to a few entries in millions of them.
TEST_F(SpgemmPlans, AutoKeepsMemoryInProportion) {
  const int wide = 20'000'000;
  const auto left = make_matrix<double, int>("uniform:rows=30:cols=20:per_row=3", Data::Integers, 1);
  const auto p = pattern_of_rows(20, wide, [&](std::int64_t i, std::vector<int>& to) {
    for (int k = 0; k < 4; ++k) to.push_back(static_cast<int>(i * 999'983 + k * 101) % wide);
  });
  const auto right = make_matrix<double, int>(p, Data::Integers, 2);
  const Device l(left), r(right);
  const Plan plan(Exec(), l.view(), r.view());
  EXPECT_EQ(plan.options().algorithm, SpgemmAlgorithm::Hash);
  EXPECT_LT(plan.workspace_bytes(), std::size_t{1} << 20);
  expect_product(left, right, multiply<Exec>(left, right, SpgemmOptions{}), true);
}

TEST_F(SpgemmPlans, ACapIsKeptOrRefused) {
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Hash;
  const std::size_t all = Plan(Exec(), a.view(), a.view(), options).workspace_bytes();
  ASSERT_GT(all, 0u);
  options.max_workspace_bytes = all;
  expect_product(A, A, multiply<Exec>(A, A, options), false);
  const auto threads = static_cast<std::size_t>(Exec().concurrency());
  options.max_workspace_bytes = all / threads;
  EXPECT_LE(Plan(Exec(), a.view(), a.view(), options).workspace_bytes(), all / threads);
}

// Whatever the sizes: pieces are not short, and what they have as results is in proportion to the products.
TEST(SpgemmLongRowsRule, PiecesAreBounded) {
  int cut[2] = {};
  for (const std::int64_t rows : {0, 1, 2, 25, 36, 582, 1024, 1025}) {
    for (const std::int64_t mean : {0, 255, 256, 700, 18000, 2000000}) {
      for (const std::int64_t cols : {0, 1, 36, 582, 40000, 2000000000}) {
        for (const std::int64_t of_b : {0, 1, 7, 31, 32, 400}) {
          const std::int64_t entries = rows * mean, products = entries * of_b;
          const std::int64_t piece = Impl::spgemm_piece(rows, entries, cols, products);
          if (piece == 0) continue;
          ++cut[of_b >= 32];
          EXPECT_LE(rows, 1024);
          const bool of_long = of_b >= 32;
          EXPECT_GE(mean, of_long ? 512 : 256);
          EXPECT_GE(piece, 128);
          const std::int64_t pieces = Impl::spgemm_pieces(rows, entries, piece);
          EXPECT_GE(pieces, rows);
          EXPECT_LE(pieces, rows + (of_long ? 4096 : 2048));
          EXPECT_LE(pieces * cols, products / (of_long ? 8 : 2));
          EXPECT_LE(pieces * cols, std::int64_t{1} << 27);
        }
      }
    }
  }
  EXPECT_GT(cut[0], 20);
  EXPECT_GT(cut[1], 20);
}

// What the longest row takes must be more than a second product, whatever else there is to do.
TEST(SpgemmLongRowsRule, OfFewVeryLongRows) {
  const auto piece = [](int length, std::int64_t entries, std::int64_t products, std::int64_t cols = 60000,
                        std::int64_t rows = 2000) {
    SpgemmTotals look{};
    look.entries = entries;
    look.products = products;
    if (length >= 0) look.very_long[length] = 1;
    return Impl::spgemm_piece_of_long_rows(look, rows, 3000000, cols);
  };
  EXPECT_EQ(SpgemmTotals::length(0), 2048);
  EXPECT_EQ(SpgemmTotals::length(2), 8192);
  EXPECT_EQ(SpgemmTotals::length(6), 131072);
  EXPECT_EQ(piece(-1, 10, 10), 0);
  EXPECT_EQ(piece(2, 145000, 390000), 512);
  EXPECT_EQ(piece(2, 1200000, 1500000), 0) << "262 us against 320";
  EXPECT_EQ(piece(3, 1200000, 1500000), 512) << "524 us against 320";
  EXPECT_EQ(piece(3, 13090000, 16150000), 0);
  EXPECT_EQ(piece(6, 13090000, 16150000), 512);
  EXPECT_EQ(piece(6, 13090000, (std::int64_t{1} << 27) + 1), 0) << "results of pieces";
  EXPECT_EQ(piece(6, 13090000, 16150000, 60000, 2147480000), 0) << "more pieces than columns are counted";
  // Narrow C.
  EXPECT_EQ(piece(0, 10, 10, 1000), 0) << "184 us against 200";
  EXPECT_EQ(piece(1, 1000000, 1200000, 1000), 512) << "369 us against 298";
  EXPECT_EQ(piece(1, 1000000, 1200000, 16385), 0) << "131 us against 298";
}

// Parts are as many as rows have room for, never more than memory is taken for, and cover the row.
TEST(SpgemmLargeRows, PartsAreBounded) {
  EXPECT_EQ(Impl::spgemm_small_part(0), 1024);
  EXPECT_EQ(Impl::spgemm_small_part(5021410), 2451);
  EXPECT_EQ(Impl::spgemm_small_part(std::int64_t{1} << 40), SpgemmRowSizes::part_products);
  std::int64_t smaller = 0;
  for (const std::int64_t entries : {1, 31, 32, 512, 513, 2332, 100000}) {
    for (const std::int64_t each : {1, 2, 29, 1000}) {
      for (const std::int64_t of_a : {1, 40, 1107, 30000}) {
        const std::int64_t products = entries * each;
        if (of_a > products) continue;
        const std::int64_t usual = SpgemmRowSizes::each_part(entries, products, of_a, SpgemmRowSizes::part_products);
        for (const std::int64_t small : {1024, 2451, 8191, 8192}) {
          const std::int64_t part = SpgemmRowSizes::each_part(entries, products, of_a, small);
          ASSERT_GE(part, 1);
          EXPECT_LE(part, 512);
          EXPECT_LE(part, usual);
          const std::int64_t parts = (entries + part - 1) / part;
          EXPECT_LE(parts, SpgemmRowSizes::most_parts(entries, products, 1, small));
          smaller += part < usual;
          EXPECT_TRUE(part == usual || parts * of_a <= products) << "more looks than products";
        }
      }
    }
  }
  EXPECT_GT(smaller, 0);
}

// By hand: of 60 rows of 3 among 100 columns, a row of C has 9 products. Arrays are whole 256 bytes. Spa: 800 of sums,
// and three small ones; Hash: 32 slots; Heap: 3 rows of B; Coo: keys and products. With one byte less than that it is
// said how much is needed.
TEST_F(SpgemmPlans, RefusalsSayHowMuchIsNeeded) {
  const Device l(make_matrix<double, int>("uniform:rows=60:cols=60:per_row=3", Data::Real, 2)),
      b(make_matrix<double, int>("uniform:rows=60:cols=100:per_row=3", Data::Real, 3));
  const std::pair<SpgemmAlgorithm, std::size_t> wanted[] = {{SpgemmAlgorithm::Spa, 1024 + 3 * 256},
                                                            {SpgemmAlgorithm::Hash, 3 * 256},
                                                            {SpgemmAlgorithm::Heap, 2 * 256},
                                                            {SpgemmAlgorithm::Coo, 2 * 256}};
  for (const auto& [algorithm, bytes] : wanted) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    options.max_workspace_bytes = bytes - 1;
    expect<NotSupported>({std::string(to_string(algorithm)) + " needs " + std::to_string(bytes) + " bytes of scratch",
                          "max_workspace_bytes is " + std::to_string(bytes - 1)},
                         [&] { Plan(Exec(), l.view(), b.view(), options); });
    options.max_workspace_bytes = bytes;
    EXPECT_EQ(Plan(Exec(), l.view(), b.view(), options).workspace_bytes(), bytes);
  }
}

TEST_F(SpgemmPlans, Refusals) {
  const auto narrow = make_matrix<double, int>("diagonal:rows=7:cols=7", Data::Real, 1);
  const Device n(narrow);
  expect<DimensionMismatch>({"7 x 7"}, [&] { Plan(Exec(), a.view(), n.view()); });
  const auto unsorted = make_matrix<double, int>(
      with_unsorted_columns(generate("random:rows=30:cols=30:lengths=equal:mean=5")), Data::Real, 1);
  const Device u(unsorted);
  SpgemmOptions heap;
  heap.algorithm = SpgemmAlgorithm::Heap;
  expect<NotSupported>({"descend", "Spa", "heap needs 512 bytes of scratch"},
                       [&] { Plan(Exec(), u.view(), u.view(), heap); });

  Plan plan(Exec(), n.view(), n.view());
  const DeviceVector<Exec, int> rows("rows", 8), columns("columns", 7), few("few", 6);
  const DeviceVector<Exec, double> values("values", 7);
  expect<StalePlan>({"symbolic"}, [&] { plan.numeric(Exec(), rows, columns, values); });
  expect<DimensionMismatch>({"row_map has 7", "needs 8"}, [&] { plan.symbolic(Exec(), columns); });
  EXPECT_EQ(plan.symbolic(Exec(), rows), 7);
  expect<DimensionMismatch>({"entries has 6", "needs 7"}, [&] { plan.numeric(Exec(), rows, few, values); });
  plan.numeric(Exec(), rows, columns, values);
  const Device elsewhere(narrow);
  expect<StalePlan>({"other pattern arrays"},
                    [&] { plan.update_values(Exec(), elsewhere.view(), n.view(), rows, columns, values); });
  EXPECT_EQ(values(3), narrow.values[3] * narrow.values[3]);
}

// Arrays of C that are null, or part of what a phase reads or writes besides: nothing is written.
TEST_F(SpgemmPlans, RefusedArrays) {
  const auto M = make_matrix<double, int>("diagonal:rows=7:cols=7", Data::Real, 1);
  const Device device(M);
  Plan plan(Exec(), device.view(), device.view());
  const DeviceVector<Exec, int> rows("rows", 8), columns("columns", 7), both("both", 14);
  const DeviceVector<Exec, double> values("values", 7);
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const Kokkos::View<int*, DeviceOf<Exec>, Unmanaged> no_rows(nullptr, 8), no_columns(nullptr, 7),
      of_values(reinterpret_cast<int*>(values.data()), 7);
  const Kokkos::View<double*, DeviceOf<Exec>, Unmanaged> no_values(nullptr, 7);
  expect<InvalidArgument>({"row_map", "null"}, [&] { plan.symbolic(Exec(), no_rows); });
  expect<InvalidArgument>({"row_map overlaps an array of A or B"}, [&] { plan.symbolic(Exec(), device.row_map); });
  plan.symbolic(Exec(), rows);
  const auto numeric = [&](const auto& map, const auto& entries, const auto& numbers) {
    return [&, map, entries, numbers] { plan.numeric(Exec(), map, entries, numbers); };
  };
  expect<InvalidArgument>({"entries", "null"}, numeric(rows, no_columns, values));
  expect<InvalidArgument>({"values", "null"}, numeric(rows, columns, no_values));
  expect<InvalidArgument>({"entries overlaps an array of A or B"}, numeric(rows, device.entries, values));
  expect<InvalidArgument>({"values overlaps an array of A or B"}, numeric(rows, columns, device.values));
  expect<InvalidArgument>({"values overlaps row_map or entries"}, numeric(rows, of_values, values));
  const auto first = Kokkos::subview(both, std::make_pair(0, 8)), last = Kokkos::subview(both, std::make_pair(7, 14));
  Kokkos::deep_copy(first, rows);
  expect<InvalidArgument>({"entries overlaps row_map"}, numeric(first, last, values));
  EXPECT_EQ(to_host(device.values), M.values);
  plan.numeric(Exec(), rows, columns, values);
  expect<InvalidArgument>({"values overlaps an array of A or B"}, [&] {
    plan.update_values(Exec(), device.view(), device.view(), rows, columns, device.values);
  });
  EXPECT_EQ(to_host(device.values), M.values);
}

// No phase takes more than the plan says, also of two matrices that share a pattern and no numbers.
TEST_F(SpgemmPlans, FormatsOfOnePatternWithOtherNumbers) {
  const auto M = make_matrix<double, int>("stencil2d:nx=6:ny=10", Data::Integers, 3);
  const Device device(M);
  const DeviceVector<Exec, double> other("other", M.values.size());
  Kokkos::deep_copy(other, 2.0);
  const auto view = device.view();
  const auto twos = csr_view(view.rows(), view.cols(), view.row_map(), view.entries(), other);
  for (const auto algorithm : {SpgemmAlgorithm::Dia, SpgemmAlgorithm::Ell}) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    const std::size_t of_one = Plan(Exec(), view, view, options).workspace_bytes();
    Plan plan(Exec(), view, twos, options);
    const std::size_t bytes = plan.workspace_bytes();
    EXPECT_GT(bytes, of_one);
    const DeviceVector<Exec, int> rows("rows", static_cast<std::size_t>(M.rows) + 1);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), rows));
    const DeviceVector<Exec, int> columns("columns", nnz);
    const DeviceVector<Exec, double> values("values", nnz);
    plan.numeric(Exec(), rows, columns, values);
    plan.update_values(Exec(), twos, view, rows, columns, values);
    EXPECT_EQ(plan.workspace_bytes(), bytes);
  }
}

// More entries than 32-bit offsets count: said after counting, and the caller's array is as it was. (Columns of ones,
// so that counting is quick.)
TEST_F(SpgemmPlans, TooManyEntriesForTheOffsets) {
  const int side = 46342;  // squared: just above 2^31
  const auto column = make_matrix<double, int>("dense:rows=46342:cols=1", Data::Integers, 1);
  const auto row = make_matrix<double, int>("dense:rows=1:cols=46342", Data::Integers, 1);
  const Device c(column), r(row);
  Plan plan(Exec(), c.view(), r.view());
  EXPECT_EQ(plan.products(), std::int64_t{side} * side);
  const DeviceVector<Exec, int> rows("rows", static_cast<std::size_t>(side) + 1);
  Kokkos::deep_copy(rows, 5);
  expect<NotSupported>({"2147580964", "64-bit offsets"}, [&] { plan.symbolic(Exec(), rows); });
  EXPECT_EQ(rows(0), 5);
  EXPECT_EQ(plan.nnz(), -1);
}

#ifdef TESSERA_TEST_LIMITS_ADDRESS_SPACE
// With an address space that has no room for C.
TEST_F(SpgemmPlans, TooLargeForTheMemory) {
  const auto column = make_matrix<double, std::size_t>("dense:rows=60000:cols=1", Data::Integers, 1);
  const auto row = make_matrix<double, std::size_t>("dense:rows=1:cols=60000", Data::Integers, 2);
  const DeviceMatrix<Exec, double, std::size_t> c(column), r(row);
  const std::size_t entries = std::size_t{60000} * 60000;
  try {
    const LimitedAddressSpace little(rlim_t{10} << 30);
    spgemm(Exec(), c.view(), r.view());
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.required(), 4 * entries);
    EXPECT_NE(std::string(e.what()).find("C entries needs 14400000000 bytes"), std::string::npos) << e.what();
  }
  EXPECT_EQ(to_host(c.values), column.values);
}
// With an address space that has room for C and not for an entry per product: entries are counted first.
TEST_F(SpgemmPlans, NoRoomForEveryProduct) {
  const auto left = make_matrix<double, int>("dense:rows=2000:cols=100", Data::Integers, 1);
  const auto right = make_matrix<double, int>("dense:rows=100:cols=100", Data::Integers, 2);
  const Device l(left), r(right);
  const auto wanted = spgemm(Exec(), l.view(), r.view());  // of 240 MB, 2.4 are written
  const auto found = [&] {
    const LimitedAddressSpace little(LimitedAddressSpace::used() + (rlim_t{64} << 20));
    return spgemm(Exec(), l.view(), r.view());
  }();
  EXPECT_EQ(found.nnz(), 200'000);
  EXPECT_EQ(to_host(found.row_map()), to_host(wanted.row_map()));
  EXPECT_EQ(to_host(found.entries()), to_host(wanted.entries()));
  EXPECT_TRUE(same_bits(to_host(found.values()), to_host(wanted.values())));
}
// Nor for the columns that a backend finds before C is there: they are found again, in C.
TEST_F(SpgemmPlans, NoRoomForColumnsThatAreFound) {
  const auto left = make_matrix<double, int>("dense:rows=1000:cols=1", Data::Integers, 1);
  const auto right = make_matrix<double, int>("dense:rows=1:cols=4000", Data::Integers, 2);
  const Device l(left), r(right);
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Binned;
  options.backend = Backend::EmulatedNvidia;
  Plan plan(Exec(), l.view(), r.view(), options);
  const DeviceVector<Exec, int> rows("rows", 1001), columns("columns", 4'000'000);
  const DeviceVector<Exec, double> values("values", 4'000'000);
  {
    const LimitedAddressSpace little(LimitedAddressSpace::used() + (rlim_t{4} << 20));
    EXPECT_EQ(plan.symbolic(Exec(), rows), 4'000'000);
  }
  plan.numeric(Exec(), rows, columns, values);
  for (std::size_t at = 0; at < 4'000'000; at += 3989) {
    ASSERT_EQ(columns(at), static_cast<int>(at % 4000));
    ASSERT_EQ(values(at), left.values[at / 4000] * right.values[at % 4000]);
  }
}
// An update that throws leaves a plan of the new matrices, which it keeps alive.
TEST_F(SpgemmPlans, NoRoomForAnUpdate) {
  const auto M = make_matrix<double, int>(pattern_of_rows(60000, 60000,
                                                          [](std::int64_t i, std::vector<int>& to) {
                                                            to.push_back(static_cast<int>(i));
                                                            if (i < 120)
                                                              to.push_back(static_cast<int>(i + 7 * (i + 1)));
                                                          }),
                                          Data::Integers, 1);
  const Device device(M);
  const auto view = device.view();
  SpgemmOptions options;
  options.algorithm = SpgemmAlgorithm::Dia;
  options.max_workspace_bytes = std::size_t{1} << 30;
  Plan plan(Exec(), view, view, options);
  const DeviceVector<Exec, int> rows("rows", 60001);
  const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), rows));
  const DeviceVector<Exec, int> columns("columns", nnz);
  const DeviceVector<Exec, double> values("values", nnz);
  plan.numeric(Exec(), rows, columns, values);
  const auto once = to_host(values);
  DeviceVector<Exec, double> twice("twice", M.values.size());
  for (std::size_t i = 0; i < M.values.size(); ++i) twice(i) = 2 * M.values[i];
  {
    const LimitedAddressSpace little(LimitedAddressSpace::used() + (rlim_t{16} << 20));
    const auto doubled = csr_view(view.rows(), view.cols(), view.row_map(), view.entries(), twice);
    EXPECT_THROW(plan.update_values(Exec(), view, doubled, rows, columns, values), OutOfMemory);
  }
  EXPECT_EQ(twice.use_count(), 2);
  twice = {};
  plan.numeric(Exec(), rows, columns, values);
  for (std::size_t i = 0; i < nnz; ++i) ASSERT_EQ(values(i), 2 * once[i]) << i;
}
#endif

// Threads share the rows; who takes which must not show.
TEST_F(SpgemmPlans, Repeatable) {
  const auto B = make_matrix<double, int>(fewer_cases     ? "rmat:scale=9:degree=9"
                                          : shorter_lists ? "rmat:scale=10:degree=9"
                                                          : "rmat:scale=12:degree=9",
                                          Data::Real, 3);
  for (const SpgemmOptions& options : spgemm_variants<Exec>()) {
    if (!refusal_of(B, B, options).empty()) continue;
    const auto first = multiply<Exec>(B, B, options), again = multiply<Exec>(B, B, options);
    EXPECT_TRUE(same_bits(first.values, again.values));
    EXPECT_EQ(first.columns, again.columns);
  }
}

}  // namespace Testing
}  // namespace Tessera
