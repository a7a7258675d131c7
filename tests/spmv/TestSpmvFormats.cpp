// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Formats of SpMV in every precision, wherever a host runs them: DASP on emulated matrix units, packed slices on
// emulated waves of both vendors and on host threads.

#include <gtest/gtest.h>

#include "support/Tessera_TestDasp.hpp"
#include "support/Tessera_TestPacked.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
#ifdef TESSERA_TEST_FEWER_TYPES
using DaspSuites = ::testing::Types<DaspSuite<Exec, double>, DaspSuite<Exec, half_t>>;
using LargeDaspSuites = ::testing::Types<DaspSuite<Exec, double>>;
using PackedSuites = ::testing::Types<PackedSuite<Exec, double>, PackedSuite<Exec, half_t>>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
// FP64 and FP16 are there on NVIDIA's waves. Files are here alone.
template <class Suite>
struct OnAmd : Suite {
  using Suite::Suite;
  static std::vector<Backend> backends() { return {Backend::EmulatedAmd}; }
};
using DaspSuites =
    ::testing::Types<OnAmd<DaspSuite<Exec, double>>, OnAmd<DaspSuite<Exec, half_t>>, DaspSuite<Exec, bhalf_t>>;
using LargeDaspSuites = ::testing::Types<DaspSuite<Exec, double>, DaspSuite<Exec, bhalf_t>>;
using PackedSuites = ::testing::Types<OnAmd<PackedSuite<Exec, double>>, PackedSuite<Exec, float>,
                                      OnAmd<PackedSuite<Exec, half_t>>, PackedSuite<Exec, bhalf_t>>;
#else
using DaspSuites = ::testing::Types<DaspSuite<Exec, double>, DaspSuite<Exec, half_t>, DaspSuite<Exec, bhalf_t>>;
using LargeDaspSuites = DaspSuites;
using PackedSuites = ::testing::Types<PackedSuite<Exec, double>, PackedSuite<Exec, float>, PackedSuite<Exec, half_t>,
                                      PackedSuite<Exec, bhalf_t>>;
#endif
INSTANTIATE_TYPED_TEST_SUITE_P(Dasp, FormatSpmv, DaspSuites);
INSTANTIATE_TYPED_TEST_SUITE_P(Packed, FormatSpmv, PackedSuites);

template <class Suite>
class DaspSpmv : public FormatSpmv<Suite> {};
TYPED_TEST_SUITE(DaspSpmv, LargeDaspSuites);
TYPED_TEST(DaspSpmv, ManyShortRows) { TESSERA_EACH(many_short_rows()); }
TYPED_TEST(DaspSpmv, ExampleFiles) { TESSERA_EACH(files(TESSERA_EXAMPLE_DATA, 1000000)); }
TYPED_TEST(DaspSpmv, SharedFiles) {
  if (beside_sanitized && !std::is_same_v<TypeParam, DaspSuite<Exec, double>>) GTEST_SKIP() << "FP64 here alone";
  TESSERA_EACH(shared_files(beside_sanitized ? 300000 : 1000000));
}

template <class Suite>
class PackedSpmv : public FormatSpmv<Suite> {};
TYPED_TEST_SUITE(PackedSpmv, PackedSuites);
TYPED_TEST(PackedSpmv, MaskedSteps) { TESSERA_EACH(masked_steps()); }
TYPED_TEST(PackedSpmv, Diagonals) { TESSERA_EACH(diagonals()); }
TYPED_TEST(PackedSpmv, RowsWithoutEntries) { TESSERA_EACH(empty_rows()); }
TYPED_TEST(PackedSpmv, ClassesChangeNoBit) { TESSERA_EACH(classes_change_no_bit()); }
TYPED_TEST(PackedSpmv, NewValues) { TESSERA_EACH(new_values()); }
TYPED_TEST(PackedSpmv, HubColumns) { TESSERA_EACH(hub_columns()); }
TYPED_TEST(PackedSpmv, ColumnBlocks) { TESSERA_EACH(column_blocks()); }
TYPED_TEST(PackedSpmv, Cells) { TESSERA_EACH(in_cells()); }

}  // namespace Testing
}  // namespace Tessera
