// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR5 through a plan on the device itself, whose tiles have other sizes than those of hosts and whose lanes are
// threads. No matrix instruction is used, so the bound of Reference::spmv_bound holds with the unit roundoff of the
// sums' type.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;

template <class Scalar>
class DeviceCsr5 : public ::testing::Test {
 protected:
  DeviceCsr5() { suite.data = {Data::Integers, Data::Real, Data::Magnitudes}; }
  void SetUp() override {
    const std::string reason = why_no_device();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  SpmvSuite<Exec, Scalar> suite{SpmvAlgorithm::Csr5, Backend::Auto};
};
using Csr5Scalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(DeviceCsr5, Csr5Scalars);

TYPED_TEST(DeviceCsr5, EveryShape) { this->suite.every_shape(); }
TYPED_TEST(DeviceCsr5, AwkwardSizes) { this->suite.awkward_sizes(); }
TYPED_TEST(DeviceCsr5, UnsortedColumns) { this->suite.unsorted_columns(); }
TYPED_TEST(DeviceCsr5, EveryScaling) { this->suite.every_scaling(); }
TYPED_TEST(DeviceCsr5, SeveralVectors) {
  this->suite.several_vectors(this->suite.matrix(this->suite.long_rows(), Data::Real, 5), {0, 1, 3, 9});
}
TYPED_TEST(DeviceCsr5, UndefinedVectors) { this->suite.undefined_vectors(); }
TYPED_TEST(DeviceCsr5, BadNeighbours) { this->suite.bad_neighbours(); }
TYPED_TEST(DeviceCsr5, TransposedProductsAndNewValues) {
  this->suite.transposed_products_and_new_values();
  this->suite.transposed_product_and_new_values(this->suite.long_rows());
}
TYPED_TEST(DeviceCsr5, Deterministic) {
  this->suite.deterministic();
  for (const char* spec : {"dense_row:others=1", "dense:rows=3:cols=40011"}) this->suite.deterministic(generate(spec));
}
TYPED_TEST(DeviceCsr5, NoAllocation) { this->suite.no_allocation(); }
TYPED_TEST(DeviceCsr5, OwnWorkspace) { this->suite.own_workspace(); }

TYPED_TEST(DeviceCsr5, RowsAtBorders) {
  for (const int sigma : {1, 4, 7, 32}) {
    this->suite.options.csr5.sigma = sigma;
    int index = 0;
    for (const Pattern& p : csr5_border_cases(Impl::csr5_omega<Exec>(), sigma)) {
      this->suite.expect_pattern(p, "sigma " + std::to_string(sigma) + ", case " + std::to_string(index++));
    }
  }
}
// A tail of every length up to two tiles, rows that drift against the lanes.
TYPED_TEST(DeviceCsr5, EveryTail) {
  const int sigma = 3, tile = Impl::csr5_omega<Exec>() * sigma;
  this->suite.options.csr5.sigma = sigma;
  for (int first = 0; first <= 2 * tile; ++first) {
    std::vector<int> lengths = {first, 0};
    for (int k = 0; k < 40; ++k) lengths.push_back((k * k + first) % (sigma + 3) * (k % 7 == 0 ? tile / 2 : 1));
    this->suite.expect_pattern(pattern_of_lengths(lengths, 97), "first row " + std::to_string(first), {Data::Integers});
  }
}
TYPED_TEST(DeviceCsr5, Launches) {
  const auto A = this->suite.matrix(this->suite.long_rows(), Data::Integers, 5);
  const DeviceMatrix<Exec, TypeParam> device(A);
  const auto plan = this->suite.plan(device);
  const DeviceVector<Exec, TypeParam> x("x", A.cols), y("y", A.rows);
  const KokkosCounters counters;
  plan.apply(Exec(), x, y);
  EXPECT_EQ(counters.kernels(), plan.statistics().launches);
}

}  // namespace Testing
}  // namespace Tessera
