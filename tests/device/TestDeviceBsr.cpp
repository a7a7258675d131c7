// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Products with block matrices on the device itself.

#include <Kokkos_Macros.hpp>
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)

#include <gtest/gtest.h>

#include "support/Tessera_TestBsr.hpp"
#include "support/Tessera_TestDevice.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;

template <class Scalar>
class DeviceBsr : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_matrix_unit(); !why.empty()) GTEST_SKIP() << why;
  }
  BsrSuite<Exec, Scalar> suite{Compat::is_cuda_v<Exec> ? Backend::Cuda : Backend::Hip};
};
using BsrScalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(DeviceBsr, BsrScalars);

TYPED_TEST(DeviceBsr, EverySide) { this->suite.every_side({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 31, 32}); }
TYPED_TEST(DeviceBsr, ManyRows) { this->suite.many_rows(5003); }
// As of a matrix larger than the cache.
TYPED_TEST(DeviceBsr, LongRows) {
  this->suite.options.packed.bypass = CacheBypass::Always;
  this->suite.long_rows(5003, {3, 4, 5, 6, 7, 8});
}
TYPED_TEST(DeviceBsr, CornerCases) { this->suite.corner_cases(); }
TYPED_TEST(DeviceBsr, BadNumbers) { this->suite.bad_numbers(); }
TYPED_TEST(DeviceBsr, NewValues) { this->suite.new_values(); }
TYPED_TEST(DeviceBsr, SeveralVectors) { this->suite.several_vectors(); }
// Without the backend's kernel.
TYPED_TEST(DeviceBsr, PortableRows) {
  this->suite.options.backend = Backend::Kokkos;
  this->suite.every_side({3, 33});
}

}  // namespace Testing
}  // namespace Tessera

#endif
