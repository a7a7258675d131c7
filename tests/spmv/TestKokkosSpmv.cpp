// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What runs on Kokkos alone against plain loops, through plans: compressed rows, CSR5, and the reference backend.

#include <gtest/gtest.h>

#include <algorithm>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
constexpr SpmvAlgorithm portable[] = {SpmvAlgorithm::Csr, SpmvAlgorithm::Csr5};

template <class Scalar_, class Offset_>
struct KokkosTypes {
  using Scalar = Scalar_;
  using Offset = Offset_;
};
template <class T>
class KokkosSpmv : public ::testing::Test {
 protected:
  using Suite = SpmvSuite<Exec, typename T::Scalar, typename T::Offset>;
  static void each(void (*f)(Suite&)) {
    for (const SpmvAlgorithm algorithm : portable) {
      SCOPED_TRACE(to_string(algorithm));
      Suite suite{algorithm, Backend::Auto};
      suite.data = {Data::Integers, Data::Real, Data::Magnitudes};
      f(suite);
    }
  }
};
// Every scalar and every width of offsets: the kernels read an offset before they meet a number. int64_t is std::size_t
// to plans (PlanMatrix).
#ifdef TESSERA_TEST_FEWER_TYPES
using AllKokkosTypes = ::testing::Types<KokkosTypes<double, std::size_t>, KokkosTypes<half_t, int>>;
#else
using AllKokkosTypes = ::testing::Types<KokkosTypes<double, std::size_t>, KokkosTypes<float, std::int64_t>,
                                        KokkosTypes<half_t, int>, KokkosTypes<bhalf_t, int>>;
#endif
TYPED_TEST_SUITE(KokkosSpmv, AllKokkosTypes);

TYPED_TEST(KokkosSpmv, EveryShape) { TESSERA_EACH(every_shape()); }
TYPED_TEST(KokkosSpmv, AwkwardSizes) { TESSERA_EACH(awkward_sizes()); }
TYPED_TEST(KokkosSpmv, UnsortedColumns) { TESSERA_EACH(unsorted_columns()); }
TYPED_TEST(KokkosSpmv, EveryScaling) { TESSERA_EACH(every_scaling()); }
TYPED_TEST(KokkosSpmv, SeveralVectors) { TESSERA_EACH(several_vectors()); }
TYPED_TEST(KokkosSpmv, UndefinedVectors) { TESSERA_EACH(undefined_vectors()); }
TYPED_TEST(KokkosSpmv, BadNeighbours) { TESSERA_EACH(bad_neighbours()); }
TYPED_TEST(KokkosSpmv, TransposedProductsAndNewValues) { TESSERA_EACH(transposed_products_and_new_values()); }
// One entry per row in the mean, or more: 64 rows at a time, of which some or all have an entry, and some are long.
TYPED_TEST(KokkosSpmv, FewEntries) {
  typename TestFixture::Suite suite{SpmvAlgorithm::Csr, Backend::Auto};
  for (const int rows : {63, 64, 65, 300, 2000}) {
    std::vector<int> lengths(static_cast<std::size_t>(rows), 1);
    for (int i = 64; i < rows; ++i) {
      const int block = i / 64 % 4, k = i % 64;
      lengths[static_cast<std::size_t>(i)] = block == 1   ? (k < 32 ? 2 : 0)
                                             : block == 2 ? (k == 9 ? 31 + i % 3 : k % 3)
                                                          : 1;
    }
    if (rows == 300) {  // as many entries as rows in a block, but all in one
      std::fill_n(lengths.begin() + 64, 64, 0);
      lengths[70] = 64;
    }
    const Pattern p = pattern_of_lengths(lengths, 301);
    ASSERT_LT(p.entries.size(), 2 * lengths.size());
    ASSERT_GE(p.entries.size(), lengths.size());
    suite.expect_pattern(p, std::to_string(rows) + " rows", {Data::Integers, Data::Real});
    const auto A = suite.matrix(p, Data::Integers, 11);
    const DeviceMatrix<Exec, typename TypeParam::Scalar, typename TypeParam::Offset> device(A);
    suite.template expect<typename TypeParam::Scalar, Strided>(suite.plan(device), A, Data::Integers, {-2, 0});
  }
}
// Rows through several tiles: of the two only CSR5 has scratch.
TYPED_TEST(KokkosSpmv, Csr5Scratch) {
  typename TestFixture::Suite suite{SpmvAlgorithm::Csr5, Backend::Auto};
  suite.deterministic();
  suite.no_allocation();
  suite.own_workspace();
}

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of FP32
// Backend::Reference runs the oracle itself, on hosts.
TEST(ReferenceBackend, AgreesWithPlainLoops) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const auto A = make_matrix<float>(all_classes(600, 100), Data::Magnitudes, 5);
  const DeviceMatrix<Exec, float> device(A);
  SpmvOptions o;
  o.backend = Backend::Reference;
  const SpmvPlan<DeviceMatrix<Exec, float>::Csr> plan(Exec(), device.view(), o);
  EXPECT_EQ(plan.options().backend, Backend::Reference);
  const auto x = numbers<float>(A.cols, Data::Magnitudes, 6), y = numbers<float>(A.rows, Data::Magnitudes, 7);
  for (const Scaling s : scalings()) {
    EXPECT_TRUE(agrees<float>(A, s, x, y, product(plan, s, x, y), true));
    EXPECT_TRUE(agrees<float>(A, s, x, y, product<Strided>(plan, s, x, y), true));
  }
}
#endif

// The one-shot call, straight from CSR, in every mode.
TEST(OneShot, EveryMode) {
  const auto A = make_matrix<double>("duplicates:rows=151:longest=400", Data::Integers, 5), T = transposed(A);
  const DeviceMatrix<Exec, double> device(A);
  for (const std::string mode : {"N", "n", "T", "t", "C", "c", "H", "h"}) {
    SCOPED_TRACE(mode);
    const HostMatrix<double>& op = std::string("NnCc").find(mode) != std::string::npos ? A : T;
    const auto x = numbers<double>(op.cols, Data::Integers, 6), y = numbers<double>(op.rows, Data::Integers, 7);
    const auto dx = to_device<Exec>(x), dy = to_device<Exec>(y);
    spmv(Exec(), mode.c_str(), 2.5, device.view(), dx, -1, dy);
    EXPECT_TRUE(agrees<double>(op, {2.5, -1}, x, y, to_host(dy), true));
  }
}

}  // namespace Testing
}  // namespace Tessera
