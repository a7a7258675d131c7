// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The kernels of packed slices, lane by lane, on emulated waves of both vendors in every precision.

#include <gtest/gtest.h>

#include "support/Tessera_TestPacked.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, Backend backend_>
struct Wave {
  using Scalar = Scalar_;
  static constexpr Backend backend = backend_;
};

template <class W>
class EmulatedPacked : public ::testing::Test {
 protected:
  PackedSuite<Kokkos::DefaultHostExecutionSpace, typename W::Scalar> suite{W::backend};
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Waves = ::testing::Types<Wave<double, Backend::EmulatedNvidia>, Wave<float, Backend::EmulatedNvidia>,
                               Wave<half_t, Backend::EmulatedNvidia>, Wave<double, Backend::EmulatedAmd>,
                               Wave<float, Backend::EmulatedAmd>, Wave<half_t, Backend::EmulatedAmd>>;
#else
using Waves = ::testing::Types<Wave<double, Backend::EmulatedNvidia>, Wave<float, Backend::EmulatedNvidia>,
                               Wave<half_t, Backend::EmulatedNvidia>, Wave<bhalf_t, Backend::EmulatedNvidia>,
                               Wave<double, Backend::EmulatedAmd>, Wave<float, Backend::EmulatedAmd>,
                               Wave<half_t, Backend::EmulatedAmd>, Wave<bhalf_t, Backend::EmulatedAmd>>;
#endif
TYPED_TEST_SUITE(EmulatedPacked, Waves);

TYPED_TEST(EmulatedPacked, EveryShape) { this->suite.every_shape(); }
TYPED_TEST(EmulatedPacked, EveryOption) { this->suite.every_option(); }
TYPED_TEST(EmulatedPacked, AwkwardSizes) { this->suite.awkward_sizes(); }
TYPED_TEST(EmulatedPacked, ManySortWindows) { this->suite.many_sort_windows(); }
TYPED_TEST(EmulatedPacked, UnsortedColumns) { this->suite.unsorted_columns(); }
TYPED_TEST(EmulatedPacked, EveryScaling) { this->suite.every_scaling(); }
TYPED_TEST(EmulatedPacked, SeveralVectors) { this->suite.several_vectors(); }
TYPED_TEST(EmulatedPacked, UnusedColumns) { this->suite.unused_columns(); }
TYPED_TEST(EmulatedPacked, MaskedSteps) { this->suite.masked_steps(); }
TYPED_TEST(EmulatedPacked, BadNeighbours) { this->suite.bad_neighbours(); }
TYPED_TEST(EmulatedPacked, UndefinedVectors) { this->suite.undefined_vectors(); }
TYPED_TEST(EmulatedPacked, ClassesChangeNoBit) { this->suite.classes_change_no_bit(); }
TYPED_TEST(EmulatedPacked, NewValues) { this->suite.new_values(); }
TYPED_TEST(EmulatedPacked, HubColumns) { this->suite.hub_columns(); }
TYPED_TEST(EmulatedPacked, ColumnBlocks) { this->suite.column_blocks(); }
TYPED_TEST(EmulatedPacked, TransposedProductsAndNewValues) { this->suite.transposed_products_and_new_values(); }
TYPED_TEST(EmulatedPacked, Deterministic) { this->suite.deterministic(3); }
TYPED_TEST(EmulatedPacked, NoAllocation) { this->suite.no_allocation(); }
TYPED_TEST(EmulatedPacked, OwnWorkspace) { this->suite.own_workspace(); }

}  // namespace Testing
}  // namespace Tessera
