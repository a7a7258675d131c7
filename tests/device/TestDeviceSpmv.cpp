// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The DASP kernels on the device itself: the list of the emulated units, all shared matrices, and many repetitions
// where the order of arrival varies.

#include <gtest/gtest.h>

#include <limits>

#include "support/Tessera_TestDasp.hpp"
#include "support/Tessera_TestDevice.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar>
class DeviceDasp : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = why_no_matrix_unit();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  DaspSuite<Kokkos::DefaultExecutionSpace, Scalar> suite{Backend::Auto};
};
using Scalars = ::testing::Types<double, half_t, bhalf_t>;
TYPED_TEST_SUITE(DeviceDasp, Scalars);

TYPED_TEST(DeviceDasp, EveryShape) { this->suite.every_shape(); }
TYPED_TEST(DeviceDasp, EveryOption) { this->suite.every_option(); }
TYPED_TEST(DeviceDasp, AwkwardSizes) { this->suite.awkward_sizes(); }
TYPED_TEST(DeviceDasp, ManySortWindows) { this->suite.many_sort_windows(); }
TYPED_TEST(DeviceDasp, ManyShortRows) { this->suite.many_short_rows(); }
TYPED_TEST(DeviceDasp, UnsortedColumns) { this->suite.unsorted_columns(); }
TYPED_TEST(DeviceDasp, EveryScaling) { this->suite.every_scaling(); }
TYPED_TEST(DeviceDasp, SeveralVectors) { this->suite.several_vectors(); }
TYPED_TEST(DeviceDasp, UnusedColumns) { this->suite.unused_columns(); }
TYPED_TEST(DeviceDasp, BadNeighbours) { this->suite.bad_neighbours(); }
TYPED_TEST(DeviceDasp, UndefinedVectors) { this->suite.undefined_vectors(); }
TYPED_TEST(DeviceDasp, TransposedProductsAndNewValues) { this->suite.transposed_products_and_new_values(); }
TYPED_TEST(DeviceDasp, Deterministic) { this->suite.deterministic(20); }
TYPED_TEST(DeviceDasp, NoAllocation) { this->suite.no_allocation(); }
TYPED_TEST(DeviceDasp, ExampleFiles) {
  this->suite.files(TESSERA_EXAMPLE_DATA, std::numeric_limits<std::int64_t>::max());
}
TYPED_TEST(DeviceDasp, SharedFiles) { this->suite.shared_files(std::numeric_limits<std::int64_t>::max()); }

}  // namespace Testing
}  // namespace Tessera
