// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The DASP kernels, lane by lane, on emulated matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include "support/Tessera_TestDasp.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, Backend backend_>
struct Unit {
  using Scalar = Scalar_;
  static constexpr Backend backend = backend_;
};

template <class U>
class EmulatedDasp : public ::testing::Test {
 protected:
  DaspSuite<Kokkos::DefaultHostExecutionSpace, typename U::Scalar> suite{U::backend};
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Units = ::testing::Types<Unit<double, Backend::EmulatedNvidia>, Unit<half_t, Backend::EmulatedNvidia>,
                               Unit<double, Backend::EmulatedAmd>, Unit<half_t, Backend::EmulatedAmd>>;
#else
using Units = ::testing::Types<Unit<double, Backend::EmulatedNvidia>, Unit<half_t, Backend::EmulatedNvidia>,
                               Unit<bhalf_t, Backend::EmulatedNvidia>, Unit<double, Backend::EmulatedAmd>,
                               Unit<half_t, Backend::EmulatedAmd>, Unit<bhalf_t, Backend::EmulatedAmd>>;
#endif
TYPED_TEST_SUITE(EmulatedDasp, Units);

TYPED_TEST(EmulatedDasp, EveryShape) { this->suite.every_shape(); }
TYPED_TEST(EmulatedDasp, EveryOption) { this->suite.every_option(); }
TYPED_TEST(EmulatedDasp, AwkwardSizes) { this->suite.awkward_sizes(); }
TYPED_TEST(EmulatedDasp, ManySortWindows) { this->suite.many_sort_windows(); }
TYPED_TEST(EmulatedDasp, ManyShortRows) { this->suite.many_short_rows(); }
TYPED_TEST(EmulatedDasp, UnsortedColumns) { this->suite.unsorted_columns(); }
TYPED_TEST(EmulatedDasp, EveryScaling) { this->suite.every_scaling(); }
TYPED_TEST(EmulatedDasp, SeveralVectors) { this->suite.several_vectors(); }
TYPED_TEST(EmulatedDasp, UnusedColumns) { this->suite.unused_columns(); }
TYPED_TEST(EmulatedDasp, BadNeighbours) { this->suite.bad_neighbours(); }
TYPED_TEST(EmulatedDasp, UndefinedVectors) { this->suite.undefined_vectors(); }
TYPED_TEST(EmulatedDasp, TransposedProductsAndNewValues) { this->suite.transposed_products_and_new_values(); }
TYPED_TEST(EmulatedDasp, Deterministic) { this->suite.deterministic(3); }
TYPED_TEST(EmulatedDasp, NoAllocation) { this->suite.no_allocation(); }
TYPED_TEST(EmulatedDasp, ExampleFiles) { this->suite.files(TESSERA_EXAMPLE_DATA, 1000000); }
TYPED_TEST(EmulatedDasp, SharedFiles) { this->suite.shared_files(1000000); }

}  // namespace Testing
}  // namespace Tessera
