// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Windows of rows of C on emulated FP64 matrix units of both vendors.

#include <gtest/gtest.h>

#include "support/Tessera_TestSpgemmTiles.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class Offset>
class SpgemmTilesOnHosts : public ::testing::Test, protected SpgemmTilesSuite<Exec, Offset> {};
using OffsetTypes = ::testing::Types<int, std::size_t>;
TYPED_TEST_SUITE(SpgemmTilesOnHosts, OffsetTypes);

TYPED_TEST(SpgemmTilesOnHosts, AgainstPlainLoops) { this->against_plain_loops(); }
TYPED_TEST(SpgemmTilesOnHosts, MemoryCap) { this->memory_cap(); }
TYPED_TEST(SpgemmTilesOnHosts, NotFinite) { this->not_finite(); }
TYPED_TEST(SpgemmTilesOnHosts, Choice) { this->choice(); }
TYPED_TEST(SpgemmTilesOnHosts, Repeatable) { this->repeatable(); }
TYPED_TEST(SpgemmTilesOnHosts, Floats) { this->floats(); }

}  // namespace Testing
}  // namespace Tessera
