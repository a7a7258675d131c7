// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The kernels of packed slices on the device itself: the lists of formats and of the emulated waves, many repetitions
// where the order of arrival varies, hub columns in shared memory and beyond its size. Streams are in
// TestDeviceSpmvStreams.cpp. With a Kokkos of hosts alone the lists would be tests/spmv once more.

#include <Kokkos_Macros.hpp>
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)

#include <gtest/gtest.h>

#include "support/Tessera_TestPacked.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using PackedSuites = ::testing::Types<PackedSuite<Exec, double>, PackedSuite<Exec, float>, PackedSuite<Exec, half_t>,
                                      PackedSuite<Exec, bhalf_t>>;
INSTANTIATE_TYPED_TEST_SUITE_P(DevicePacked, FormatSpmv, PackedSuites);

template <class Suite>
class DevicePacked : public FormatSpmv<Suite> {};
TYPED_TEST_SUITE(DevicePacked, PackedSuites);
TYPED_TEST(DevicePacked, MaskedSteps) { TESSERA_EACH(masked_steps()); }
TYPED_TEST(DevicePacked, Diagonals) { TESSERA_EACH(diagonals()); }
TYPED_TEST(DevicePacked, RowsWithoutEntries) { TESSERA_EACH(empty_rows()); }
TYPED_TEST(DevicePacked, ClassesChangeNoBit) { TESSERA_EACH(classes_change_no_bit()); }
TYPED_TEST(DevicePacked, NewValues) { TESSERA_EACH(new_values()); }
TYPED_TEST(DevicePacked, HubColumns) { TESSERA_EACH(hub_columns()); }
TYPED_TEST(DevicePacked, ColumnBlocks) { TESSERA_EACH(column_blocks()); }
TYPED_TEST(DevicePacked, Cells) { TESSERA_EACH(in_cells()); }
// Rows that are all as short go two slices per wave, but for a few without entries or with fewer; in each width of
// index, the last wave with one slice.
TYPED_TEST(DevicePacked, TwoSlicesPerWave) {
  this->each([](auto& suite) {
    for (const char* spec :
         {"uniform:rows=500007:cols=200:per_row=1", "uniform:rows=600033:cols=60000:per_row=2",
          "uniform:rows=500030:cols=900000:per_row=2", "uniform:rows=700001:cols=20000000:per_row=1",
          "uniform:rows=600000:cols=40:per_row=3:exact=0", "uniform:rows=500001:cols=100:per_row=4"}) {
      suite.expect_pattern(generate(spec), spec);
    }
  });
}
// So many hubs that shared memory cannot hold them, in a matrix that has as many columns.
TYPED_TEST(DevicePacked, ManyHubs) {
  this->each([](auto& suite) {
    for (const int hubs : {8192, 20480, 32768, 65536}) {
      suite.options.packed.hubs = hubs;
      suite.expect_pattern(generate("rmat:scale=17:degree=8"), "hubs " + std::to_string(hubs));
    }
  });
}

}  // namespace Testing
}  // namespace Tessera

#endif
