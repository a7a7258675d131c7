// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every method of SpGEMM against plain loops: shapes, compressions, orders of columns, undefined numbers, limits.

#include <gtest/gtest.h>

#include "support/Tessera_TestSpgemm.hpp"
#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class U>
class SpgemmMethods : public ::testing::Test {
 protected:
  using T = typename U::first_type;
  using Offset = typename U::second_type;
  using Matrix = HostMatrix<T, Offset>;

  static Matrix matrix(const Pattern& p, Data data, std::uint64_t seed) {
    return make_matrix<T, Offset>(p, data, seed);
  }

  /// All methods, which give the same bits.
  static void check(const Matrix& A, const Matrix& B, Data data, bool sorted = true) {
    std::vector<T> first;
    for (const SpgemmAlgorithm algorithm : spgemm_algorithms()) {
      if (algorithm == SpgemmAlgorithm::Heap && !sorted) continue;
      SCOPED_TRACE(to_string(algorithm));
      SpgemmOptions options;
      options.algorithm = algorithm;
      const auto C = multiply<Exec>(A, B, options);
      expect_product(A, B, C, data == Data::Integers);
      if (algorithm == SpgemmAlgorithm::Auto) first = C.values;
      // Integers are equal to the oracle's already; undefined numbers among them may have other bits.
      if (data == Data::Real) {
        EXPECT_TRUE(same_bits(first, C.values)) << "another order of sums";
      }
    }
  }
  static void check(const std::string& a, const std::string& b) {
    SCOPED_TRACE(a + " times " + b);
    for (const Data data : {Data::Integers, Data::Real}) {
      check(matrix(generate(a), data, 1), matrix(generate(b), data, 2), data);
    }
  }
};
using SpgemmTypes = ::testing::Types<std::pair<double, int>, std::pair<double, std::size_t>, std::pair<float, int>,
                                     std::pair<double, std::int64_t>>;
TYPED_TEST_SUITE(SpgemmMethods, SpgemmTypes);

// Compressions from 1 to 91, empty and dense rows, single rows and columns.
TYPED_TEST(SpgemmMethods, EveryShape) {
  for (const std::string& spec : shapes()) {
    const Pattern p = generate(spec);
    const auto A = TestFixture::matrix(p, Data::Integers, 1);
    const auto B = p.rows == p.cols ? TestFixture::matrix(p, Data::Integers, 2) : transposed(A);
    std::int64_t products = 0;
    for (const int k : A.entries) products += B.length(k);
    if (products > 60000) continue;  // the oracle takes its time
    SCOPED_TRACE(spec);
    TestFixture::check(A, B, Data::Integers);
  }
}

TYPED_TEST(SpgemmMethods, Rectangular) {
  this->check("uniform:rows=70:cols=300:per_row=7", "uniform:rows=300:cols=11:per_row=3");
  this->check("uniform:rows=3:cols=40:per_row=7", "uniform:rows=40:cols=20011:per_row=90");
  this->check("dense:rows=30:cols=4", "dense:rows=4:cols=50");
  for (const char* cols : {"959", "960", "961", "1000", "1024"}) {  // as many words of 64 as there are
    this->check("dense:rows=3:cols=4", "dense:rows=4:cols=" + std::string(cols));
  }
  this->check("empty:rows=5:cols=8", "uniform:rows=8:cols=6:per_row=2");
  this->check("empty:rows=5:cols=0", "empty:rows=0:cols=7");
  this->check("empty:rows=0:cols=5", "uniform:rows=5:cols=6:per_row=2");
  this->check("uniform:rows=5:cols=6:per_row=2", "empty:rows=6:cols=0");
}

// Columns that are far apart: more than one word of words, for rows of few and of many products.
TYPED_TEST(SpgemmMethods, WideRows) {
  const auto far = pattern_of_rows(40, 300000, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < 3 * (i % 9); ++k) to.push_back(static_cast<int>((k * 11003 + i * 97) % 300000));
    std::sort(to.end() - 3 * (i % 9), to.end());
  });
  const auto A = TestFixture::matrix(generate("uniform:rows=60:cols=40:per_row=5"), Data::Real, 3);
  TestFixture::check(A, TestFixture::matrix(far, Data::Real, 4), Data::Real);
}

// Rows of C that no table of a team holds: several parts, and more than one window of columns.
TYPED_TEST(SpgemmMethods, LargeRows) {
  const auto far = pattern_of_rows(40, 300000, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < 211; ++k) to.push_back(static_cast<int>((k * 11003 + i * 4097 + k * k) % 300000));
    std::sort(to.end() - 211, to.end());
    to.erase(std::unique(to.begin() + (to.size() - 211), to.end()), to.end());
  });
  const Pattern left = generate("dense:rows=3:cols=40");
  for (const Data data : {Data::Integers, Data::Real}) {
    const auto A = TestFixture::matrix(left, data, 3);
    TestFixture::check(A, TestFixture::matrix(far, data, 4), data);
    TestFixture::check(A, TestFixture::matrix(with_unsorted_columns(far), data, 4), data, false);
  }
}

// Few products per row, from none to more than are sorted at once.
TYPED_TEST(SpgemmMethods, EveryNumberOfProducts) {
  const auto lengths = pattern_of_rows(200, 50, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 7; ++k) to.push_back(static_cast<int>((i + 7 * k) % 50));
    std::sort(to.end() - i % 7, to.end());
  });
  const Pattern right = generate("random:rows=50:cols=60:lengths=uniform:mean=3");
  TestFixture::check(TestFixture::matrix(lengths, Data::Integers, 5), TestFixture::matrix(right, Data::Integers, 6),
                     Data::Integers);
}

TYPED_TEST(SpgemmMethods, UnsortedAndRepeatedColumns) {
  const Pattern a = with_unsorted_columns(generate("random:rows=150:cols=97:lengths=uniform:mean=6")),
                b = with_unsorted_columns(generate("random:rows=97:cols=120:lengths=geometric:mean=7"));
  for (const Data data : {Data::Integers, Data::Real}) {
    TestFixture::check(TestFixture::matrix(a, data, 7), TestFixture::matrix(b, data, 8), data, false);
  }
  const auto copies = pattern_of_rows(60, 60, [](std::int64_t i, std::vector<int>& to) {
    for (int j = 0; j < 60; j += 1 + static_cast<int>(i % 11))
      to.insert(to.end(), static_cast<std::size_t>(1 + j % 3), j);
  });
  TestFixture::check(TestFixture::matrix(copies, Data::Integers, 9), TestFixture::matrix(copies, Data::Integers, 10),
                     Data::Integers);
}

// They reach the entries that have a product of them, and no others.
TYPED_TEST(SpgemmMethods, UndefinedNumbers) {
  auto A = TestFixture::matrix(generate("random:rows=80:cols=70:lengths=uniform:mean=5"), Data::Integers, 11);
  auto B = TestFixture::matrix(generate("random:rows=70:cols=90:lengths=uniform:mean=5"), Data::Integers, 12);
  for (std::size_t i = 3; i < A.values.size(); i += 41) A.values[i] = as<typename TestFixture::T>(std::nan(""));
  for (std::size_t i = 5; i < B.values.size(); i += 57) B.values[i] = as<typename TestFixture::T>(std::nan(""));
  TestFixture::check(A, B, Data::Integers);
}

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
  EXPECT_EQ(plan.options().algorithm, SpgemmAlgorithm::Spa);
  const Statistics s = plan.statistics();
  EXPECT_EQ(s.operation, "spgemm");
  EXPECT_EQ(s.algorithm, "spa");
  EXPECT_NE(s.why.find("dense arrays"), std::string::npos) << s.why;
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
  options.max_workspace_bytes = 100;
  expect<NotSupported>({"bytes of scratch", "100"}, [&] { Plan(Exec(), a.view(), a.view(), options); });
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
  expect<NotSupported>({"descend", "Spa"}, [&] { Plan(Exec(), u.view(), u.view(), heap); });

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

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
// With an address space that has no room for C.
TEST_F(SpgemmPlans, TooLargeForTheMemory) {
  const auto column = make_matrix<double, std::size_t>("dense:rows=60000:cols=1", Data::Integers, 1);
  const auto row = make_matrix<double, std::size_t>("dense:rows=1:cols=60000", Data::Integers, 2);
  const DeviceMatrix<Exec, double, std::size_t> c(column), r(row);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit low = before;
  low.rlim_cur = rlim_t{10} << 30;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &low), 0);
  const std::size_t entries = std::size_t{60000} * 60000;
  try {
    spgemm(Exec(), c.view(), r.view());
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.required(), 4 * entries);
    EXPECT_NE(std::string(e.what()).find("C entries needs 14400000000 bytes"), std::string::npos) << e.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(to_host(c.values), column.values);
}
#endif

// Threads share the rows; who takes which must not show.
TEST_F(SpgemmPlans, Repeatable) {
  const auto B = make_matrix<double, int>("rmat:scale=12:degree=9", Data::Real, 3);
  for (const SpgemmAlgorithm algorithm : spgemm_algorithms()) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    const auto first = multiply<Exec>(B, B, options), again = multiply<Exec>(B, B, options);
    EXPECT_TRUE(same_bits(first.values, again.values));
    EXPECT_EQ(first.columns, again.columns);
  }
}

}  // namespace Testing
}  // namespace Tessera
