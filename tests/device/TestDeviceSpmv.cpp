// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The DASP kernels on the device itself: the list of formats and all shared matrices. With a Kokkos of hosts alone
// these would be tests/spmv once more.

#include <Kokkos_Macros.hpp>
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)

#include <gtest/gtest.h>

#include <limits>

#include "support/Tessera_TestDasp.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using DaspSuites = ::testing::Types<DaspSuite<Exec, double>, DaspSuite<Exec, half_t>, DaspSuite<Exec, bhalf_t>>;
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceDasp, FormatSpmv, DaspSuites);

template <class Suite>
class DeviceDasp : public FormatSpmv<Suite> {
 protected:
  static constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
};
TYPED_TEST_SUITE(DeviceDasp, DaspSuites);
TYPED_TEST(DeviceDasp, ManyShortRows) { TESSERA_EACH(many_short_rows()); }
TYPED_TEST(DeviceDasp, ExampleFiles) { TESSERA_EACH(files(TESSERA_EXAMPLE_DATA, TestFixture::any)); }
TYPED_TEST(DeviceDasp, SharedFiles) { TESSERA_EACH(shared_files(TestFixture::any)); }

}  // namespace Testing
}  // namespace Tessera

#else

#include <gtest/gtest.h>

// Other files of this program include the list.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FormatSpmv);

#endif
