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
#ifdef TESSERA_TEST_FEWER_TYPES
using TileOffsets = ::testing::Types<int>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using TileOffsets = ::testing::Types<std::size_t>;
#else
using TileOffsets = ::testing::Types<int, std::size_t>;
#endif
TYPED_TEST_SUITE(SpgemmTilesOnHosts, TileOffsets);

TYPED_TEST(SpgemmTilesOnHosts, AgainstPlainLoops) { this->against_plain_loops(); }
TYPED_TEST(SpgemmTilesOnHosts, MemoryCap) { this->memory_cap(); }
TYPED_TEST(SpgemmTilesOnHosts, NotFinite) { this->not_finite(); }
TYPED_TEST(SpgemmTilesOnHosts, Choice) { this->choice(); }
TYPED_TEST(SpgemmTilesOnHosts, Repeatable) { this->repeatable(); }
#ifndef TESSERA_TEST_FEWER_TYPES
TYPED_TEST(SpgemmTilesOnHosts, Floats) { this->floats(); }
#endif

// Devices of which the instruction's rate is known to be low, and counts on both sides of the rule's.
TEST(SpgemmTilesRule, WhoLooks) {
  const auto looks = [](SpgemmTiles tiles, std::int64_t products, std::int64_t by_bits, double rate,
                        int windows = 1000) {
    DeviceFacts device;
    device.fp64_matrix_rate = rate;
    device.compute_units = 100;
    return Impl::spgemm_looks_for_windows(tiles, products, by_bits, 100, windows, device);
  };
  EXPECT_TRUE(looks(SpgemmTiles::Auto, 1'000'000, 50, 0));
  EXPECT_TRUE(looks(SpgemmTiles::Auto, 1'000'000, 50, 19.5e12));
  EXPECT_FALSE(looks(SpgemmTiles::Auto, 1'000'000, 50, 1.8e12));
  EXPECT_FALSE(looks(SpgemmTiles::Auto, 999'999, 50, 19.5e12));
  EXPECT_FALSE(looks(SpgemmTiles::Auto, 1'000'000, 49, 19.5e12));
  EXPECT_FALSE(looks(SpgemmTiles::Auto, 1'000'000, 50, 19.5e12, 999));
  EXPECT_TRUE(looks(SpgemmTiles::Always, 1, 1, 1.8e12, 1));
  EXPECT_FALSE(looks(SpgemmTiles::Always, 1, 0, 19.5e12));
  EXPECT_FALSE(looks(SpgemmTiles::Never, 1'000'000, 100, 19.5e12));
}

}  // namespace Testing
}  // namespace Tessera
