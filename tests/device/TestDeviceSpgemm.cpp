// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpGEMM on the device itself.

#include <gtest/gtest.h>

#include "support/Tessera_TestDevice.hpp"
#include "support/Tessera_TestSpgemm.hpp"
#include "support/Tessera_TestSpgemmMemory.hpp"
#include "support/Tessera_TestSpgemmTiles.hpp"
#if defined(KOKKOS_ENABLE_CUDA)
#include <thread>

#include "device/OwnStream.hpp"
#endif

namespace Tessera {
namespace Testing {

using DeviceExec = Kokkos::DefaultExecutionSpace;

/// A suite on the device, if there is one.
struct NoSpgemmSuite {};
template <class Suite = NoSpgemmSuite>
class SpgemmOnDevice : public ::testing::Test, protected Suite {
 protected:
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

template <class U>
class DeviceSpgemm : public SpgemmOnDevice<SpgemmSuite<DeviceExec, typename U::first_type, typename U::second_type>> {};
using DeviceSpgemmTypes = ::testing::Types<std::pair<double, int>, std::pair<float, std::size_t>>;
TYPED_TEST_SUITE(DeviceSpgemm, DeviceSpgemmTypes);

TYPED_TEST(DeviceSpgemm, EveryShape) { this->every_shape(); }
TYPED_TEST(DeviceSpgemm, Rectangular) { this->rectangular(); }
TYPED_TEST(DeviceSpgemm, WideRows) { this->wide_rows(); }
TYPED_TEST(DeviceSpgemm, LargeRows) { this->large_rows(); }
TYPED_TEST(DeviceSpgemm, FewLongRows) { this->few_long_rows(); }
TYPED_TEST(DeviceSpgemm, FewVeryLongRows) { this->few_very_long_rows(); }
TYPED_TEST(DeviceSpgemm, LongAndFarRows) { this->long_and_far_rows(); }
TYPED_TEST(DeviceSpgemm, VeryLongRows) { this->very_long_rows(); }
TYPED_TEST(DeviceSpgemm, MemoryCap) { this->memory_cap(); }
TYPED_TEST(DeviceSpgemm, EveryNumberOfProducts) { this->every_number_of_products(); }
TYPED_TEST(DeviceSpgemm, UnsortedAndRepeatedColumns) { this->unsorted_and_repeated_columns(); }
TYPED_TEST(DeviceSpgemm, UndefinedNumbers) { this->undefined_numbers(); }
TYPED_TEST(DeviceSpgemm, DiagonalsWithHoles) { this->diagonals_with_holes(); }
TYPED_TEST(DeviceSpgemm, ZerosAreEntries) { this->zeros_are_entries(); }
TYPED_TEST(DeviceSpgemm, UndefinedNumbersBesideHoles) { this->undefined_numbers_beside_holes(); }

class DeviceSpgemmMemory : public SpgemmOnDevice<SpgemmMemorySuite<DeviceExec>> {};
TEST_F(DeviceSpgemmMemory, KnownBeforehand) { known_beforehand(); }
TEST_F(DeviceSpgemmMemory, OneCallKeepsTheCap) { one_call_keeps_the_cap(); }
TEST_F(DeviceSpgemmMemory, UsedAgain) { used_again(); }
TEST_F(DeviceSpgemmMemory, Held) { held(); }
TEST_F(DeviceSpgemmMemory, Powers) { powers(); }
TEST_F(DeviceSpgemmMemory, GivenBack) { given_back(); }
TEST_F(DeviceSpgemmMemory, OtherSizes) { other_sizes(); }
TEST_F(DeviceSpgemmMemory, AfterExceptions) { after_exceptions(); }

class DeviceSpgemmTiles : public SpgemmOnDevice<SpgemmTilesSuite<DeviceExec, int>> {};
TEST_F(DeviceSpgemmTiles, AgainstPlainLoops) { against_plain_loops(); }
TEST_F(DeviceSpgemmTiles, MemoryCap) { memory_cap(); }
TEST_F(DeviceSpgemmTiles, NotFinite) { not_finite(); }
TEST_F(DeviceSpgemmTiles, Choice) { choice(); }
TEST_F(DeviceSpgemmTiles, Floats) { floats(); }
TEST_F(DeviceSpgemmTiles, Repeatable) { repeatable(); }

class DeviceSpgemmPlans : public SpgemmOnDevice<> {};

// Who comes first must not show.
TEST_F(DeviceSpgemmPlans, Repeatable) {
  const auto B = make_matrix<double, int>("rmat:scale=13:degree=9", Data::Real, 3);
  const auto first = multiply<DeviceExec>(B, B, SpgemmOptions());
  for (int turn = 0; turn < 5; ++turn) {
    const auto again = multiply<DeviceExec>(B, B, SpgemmOptions());
    EXPECT_TRUE(same_bits(first.values, again.values));
    EXPECT_EQ(first.columns, again.columns);
  }
}

// What the choice looks at, counted by other threads in another order.
TEST_F(DeviceSpgemmPlans, FeaturesAsOnHosts) {
  using HostExec = Kokkos::DefaultHostExecutionSpace;
  for (const char* spec : {"empty:rows=5:cols=8", "stencil2d:nx=90:ny=80", "rmat:scale=12:degree=9",
                           "diagonals:n=9000:count=7:reach=500:missing=0.3", "lp:rows=40:cols=20000"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<double, int>(spec, Data::Integers, 1), B = transposed(A);
    const DeviceMatrix<DeviceExec, double, int> a(A), b(B);
    const DeviceMatrix<HostExec, double, int> host_a(A), host_b(B);
    const SpgemmFeatures f = spgemm_features(DeviceExec(), a.view()), g = spgemm_features(HostExec(), host_a.view());
    EXPECT_EQ(f.longest, g.longest);
    EXPECT_EQ(f.shortest, g.shortest);
    EXPECT_EQ(f.diagonals, g.diagonals);
    EXPECT_EQ(f.variance, g.variance);  // sums of whole numbers
    EXPECT_EQ(spgemm_image(DeviceExec(), a.view()).density, spgemm_image(HostExec(), host_a.view()).density);
    EXPECT_EQ(spgemm_compression(DeviceExec(), a.view(), b.view()),
              spgemm_compression(HostExec(), host_a.view(), host_b.view()));
  }
}

#if defined(KOKKOS_ENABLE_CUDA)
// Phases on different streams, one of which is gone before the plan is; other work follows at once, in memory that the
// plan gave back.
TEST_F(DeviceSpgemmPlans, PhasesOnOtherStreams) {
  const auto B = make_matrix<double, int>("rmat:scale=12:degree=9", Data::Real, 3);
  const auto wanted = multiply<DeviceExec>(B, B, SpgemmOptions());
  const DeviceMatrix<DeviceExec, double, int> b(B);
  using Plan = SpgemmPlan<decltype(b.view())>;
  const OwnStream second;
  for (int turn = 0; turn < 5; ++turn) {
    std::unique_ptr<Plan> plan, unused;
    const DeviceVector<DeviceExec, int> rows("rows", static_cast<std::size_t>(B.rows) + 1);
    {
      const OwnStream first;
      plan = std::make_unique<Plan>(first.space(), b.view(), b.view());
      unused = std::make_unique<Plan>(first.space(), b.view(), b.view());
      plan->symbolic(first.space(), rows);
      unused->symbolic(first.space(), rows);
    }
    const auto nnz = static_cast<std::size_t>(plan->nnz());
    const DeviceVector<DeviceExec, int> columns("columns", nnz);
    const DeviceVector<DeviceExec, double> values("values", nnz);
    plan->numeric(second.space(), rows, columns, values);
    unused.reset();
    spgemm(second.space(), b.view(), b.view());
    EXPECT_EQ(to_host(columns), wanted.columns);
    EXPECT_TRUE(same_bits(to_host(values), wanted.values));
  }
}

/// Some milliseconds of one thread. Public for nvcc.
struct Slowly {
  double* out;
  KOKKOS_INLINE_FUNCTION void operator()(int) const {
    double v = *out;
    for (int i = 0; i < 400000; ++i) v = v * 0.999 + 1e-3;
    *out = v;
  }
};

// C is let go while a copy of it waits on another stream: the next product takes its arrays, but not before.
TEST_F(DeviceSpgemmMemory, UsedOnAnotherStream) {
  const Matrix A = matrix("rmat:scale=12:degree=9", 3), B = matrix("rmat:scale=12:degree=9", 4);
  const auto first = multiply<DeviceExec>(A, A, options(false)), second = multiply<DeviceExec>(B, B, options(false));
  const Device a(A), b(B);
  const OwnStream one, other;
  const DeviceVector<DeviceExec, double> copy("copy", first.values.size()), out("out", 1);
  release_kept_memory();
  for (int turn = 0; turn < 3; ++turn) {
    Csr C = spgemm(one.space(), a.view(), a.view(), options(true));
    const double* const values = C.values().data();
    Kokkos::parallel_for("slowly", Kokkos::RangePolicy<DeviceExec>(one.space(), 0, 1), Slowly{out.data()});
    Kokkos::deep_copy(one.space(), copy, C.values());
    C = {};
    const Csr D = spgemm(other.space(), b.view(), b.view(), options(true));
    EXPECT_EQ(D.values().data(), values);
    one.space().fence();
    EXPECT_TRUE(same_bits(to_host(copy), first.values)) << "written to before it was read";
    expect_equal(D, second);
  }
}

// Threads that let go of each other's arrays at any time.
TEST_F(DeviceSpgemmMemory, ThreadsWithStreams) {
  const Matrix A = matrix("rmat:scale=11:degree=7", 3), B = matrix("rmat:scale=11:degree=7", 4);
  const auto first = multiply<DeviceExec>(A, A, options(false)), second = multiply<DeviceExec>(B, B, options(false));
  const Device a(A), b(B);
  const OwnStream streams[2];
  const auto work = [&](const OwnStream& stream, const Device& m, const SpgemmResult<double, int>& wanted) {
    Csr before;
    for (int turn = 0; turn < 40; ++turn) {
      const Csr C = spgemm(stream.space(), m.view(), m.view(), options(true));
      if (turn % 3 == 0) before = C;
      if (turn % 8 != 7) continue;
      expect_equal(C, wanted);
      expect_equal(before, wanted);
    }
  };
  std::thread other([&] { work(streams[1], b, second); });
  work(streams[0], a, first);
  other.join();
}
#endif

TEST_F(DeviceSpgemmPlans, MethodsOfHostsAreRefused) {
  const DeviceMatrix<DeviceExec, double, int> a(make_matrix<double, int>("stencil2d:nx=5:ny=4", Data::Real, 1));
  // Whole 256 bytes per array: 160 of sums and three small ones; 64 slots; 5 rows of B; 24 products.
  const std::pair<SpgemmAlgorithm, std::size_t> wanted[] = {{SpgemmAlgorithm::Spa, 4 * 256},
                                                            {SpgemmAlgorithm::Hash, 256 + 512 + 256},
                                                            {SpgemmAlgorithm::Heap, 2 * 256},
                                                            {SpgemmAlgorithm::Coo, 2 * 256}};
  for (const auto& [algorithm, bytes] : wanted) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    try {
      spgemm(DeviceExec(), a.view(), a.view(), options);
      ADD_FAILURE() << to_string(algorithm);
    } catch (const NotSupported& e) {
      const std::string needs = std::string(to_string(algorithm)) + " needs " + std::to_string(bytes) + " bytes";
      EXPECT_NE(std::string(e.what()).find(needs), std::string::npos) << e.what();
    }
  }
}

// A result beyond the offsets, and one beyond the memory, which says how much was needed; A is as it was.
TEST_F(DeviceSpgemmPlans, TooLarge) {
  const auto column = make_matrix<double, int>("dense:rows=46342:cols=1", Data::Integers, 1);
  const auto row = make_matrix<double, int>("dense:rows=1:cols=46342", Data::Integers, 1);
  const DeviceMatrix<DeviceExec, double, int> c(column), r(row);
  EXPECT_THROW(spgemm(DeviceExec(), c.view(), r.view()), NotSupported);
  const auto tall = make_matrix<double, std::size_t>("dense:rows=200000:cols=1", Data::Integers, 1);
  const auto wide = make_matrix<double, std::size_t>("dense:rows=1:cols=200000", Data::Integers, 1);
  const DeviceMatrix<DeviceExec, double, std::size_t> t(tall), w(wide);
  try {
    spgemm(DeviceExec(), t.view(), w.view());
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_GE(e.required(), std::size_t{4} * 200000 * 200000);
  }
  EXPECT_EQ(to_host(t.values), tall.values);
}

}  // namespace Testing
}  // namespace Tessera
