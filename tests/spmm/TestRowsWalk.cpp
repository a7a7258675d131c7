// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/kernels/spmm/Tessera_RowsKernel.hpp"
#include "spmm/Tessera_SpmmRules.hpp"
#include "support/Tessera_TestSpmm.hpp"

/// \file
/// Which walk and tile a product by rows gets, on a device of 132 multiprocessors and a last cache of 60 MB.

namespace Tessera {
namespace Testing {
namespace {

struct Shape {
  std::int64_t rows, nnz, reach;
  bool local = false, cut = false;
  std::int64_t cols = 0;  ///< 0: rows
};

/// A letter for the walk, and the bytes of B in a tile.
template <class Value>
std::string choice_of(const Shape& shape, std::int64_t columns, std::int64_t lanes = 132 * 2048) {
  static const SpmmRowPiece some{};
  SpmmRowsArgs args;
  args.rows = args.count = shape.rows;
  args.cols = shape.cols > 0 ? shape.cols : shape.rows;
  args.nnz = shape.nnz;
  args.table = shape.cut ? &some : nullptr;
  args.local = shape.local;
  args.cache_bytes = std::int64_t{60} << 20;
  args.reach = shape.reach;
  args.dense.columns = columns;
  std::string result;
  using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  rows_dispatch<RowsTypes<Value, Sum>, HostWave<32>>(args, lanes, true, [&](auto kernel, const SpmmRowsArgs& ready) {
    using Kernel = decltype(kernel);
    constexpr char letter = Kernel::shared ? 'S' : Kernel::vectors == 2 ? 'P' : Kernel::batch == 8 ? 'O' : 'Q';
    const std::int64_t tile = std::min<std::int64_t>(Kernel::tile_columns(ready), columns);
    result = letter + std::to_string(tile * static_cast<std::int64_t>(sizeof(Value)));
  });
  return result;
}

// The fastest of those measured on an H200, or within 4 % of it (perf_test/NOTES.md, "Rows").
TEST(RowsWalks, FollowsTheMatrix) {
  const Shape seven_near{2097152, 14581760, 32832}, seven_far{1270432, 8814880, 43870};
  EXPECT_EQ(choice_of<float>(seven_near, 64), "P256");
  EXPECT_EQ(choice_of<float>(seven_near, 256), "P512");  // planes of 34 MB in tiles of 1,024 bytes
  EXPECT_EQ(choice_of<float>(seven_far, 64), "P256");
  EXPECT_EQ(choice_of<float>(seven_far, 128), "P256");
  EXPECT_EQ(choice_of<float>(seven_far, 256), "P256");
  EXPECT_EQ(choice_of<double>(seven_far, 64), "P256");

  const Shape five{1000000, 4996000, 2064}, five_random{1048576, 5242880, 1040000};
  EXPECT_EQ(choice_of<float>(five, 256), "P1024");
  EXPECT_EQ(choice_of<float>(five_random, 256), "P1024");  // no tile makes its rows of B wait

  const Shape sixteen_random{262144, 4194304, 262000}, sixteen_small{65536, 1048576, 65500};
  EXPECT_EQ(choice_of<float>(sixteen_random, 32), "O128");
  EXPECT_EQ(choice_of<float>(sixteen_random, 64), "O128");
  EXPECT_EQ(choice_of<float>(sixteen_random, 256), "O128");
  EXPECT_EQ(choice_of<double>(sixteen_random, 128), "O128");
  EXPECT_EQ(choice_of<float>(sixteen_small, 64), "P256");
  EXPECT_EQ(choice_of<float>(sixteen_small, 256), "O512");  // all of B is 34 MB

  const Shape stencil27{1000000, 26463592, 20300};
  EXPECT_EQ(choice_of<float>(stencil27, 32), "O128");
  EXPECT_EQ(choice_of<float>(stencil27, 64), "P256");
  EXPECT_EQ(choice_of<float>(stencil27, 128), "P512");
  EXPECT_EQ(choice_of<double>(stencil27, 32), "P256");

  const Shape finan512{74752, 596992, 5000};  // eight entries a row
  EXPECT_EQ(choice_of<float>(finan512, 64), "O256");
  EXPECT_EQ(choice_of<float>(finan512, 128), "P512");
  EXPECT_EQ(choice_of<double>(finan512, 32), "O256");

  const Shape shell{219114, 11744484, 120000, true};  // six unknowns a node: neighbours share columns
  EXPECT_EQ(choice_of<float>(shell, 64), "O256");
  EXPECT_EQ(choice_of<float>(shell, 256), "P1024");
  EXPECT_EQ(choice_of<double>(shell, 32), "O256");

  const Shape chemistry{200000, 16920000, 150000, true, true}, feedback{18660, 1582500, 18600, false, true};
  EXPECT_EQ(choice_of<float>(chemistry, 64), "O256");
  EXPECT_EQ(choice_of<float>(chemistry, 128), "P512");
  EXPECT_EQ(choice_of<float>(feedback, 64), "S128");
  EXPECT_EQ(choice_of<float>(feedback, 256), "S128");
  EXPECT_EQ(choice_of<float>({2000, 4000000, 2000, true, true}, 128), "S128");

  const Shape bcsstk17{10974, 428650, 900, true}, conf5{49152, 1916928, 20000, true};
  EXPECT_EQ(choice_of<float>(bcsstk17, 64), "S256");  // too few rows for a device
  EXPECT_EQ(choice_of<float>(bcsstk17, 128), "O512");
  EXPECT_EQ(choice_of<half_t>(conf5, 32), "O64");
}

// What a device with an unknown cache, or a matrix that nobody looked at, gets: no bound.
TEST(RowsWalks, UnknownReach) {
  EXPECT_EQ(choice_of<float>({1270432, 8814880, 0}, 256), "P1024");
  EXPECT_EQ(choice_of<float>({262144, 4194304, 0}, 256), "P1024");
}

// mycielskian14 (2.2 entries a fetched row of B) is the faster in tiles of 128 bytes, COLLAB_a (2.6) is not.
TEST(RowsWalks, PatternFromFeatures) {
  SpmmFeatures f;
  f.rows = f.cols = 1000;
  f.nnz = 30000;
  f.mean = 30;
  f.reach = 321;
  f.g8 = 2.4;
  const Impl::GeSpmmPattern of = Impl::ge_spmm_pattern(f, Precision::FP32, {});
  EXPECT_FALSE(of.local);
  EXPECT_EQ(of.reach, 321);
  EXPECT_EQ(of.compact_from, 0);
  f.g8 = 2.6;
  EXPECT_TRUE(Impl::ge_spmm_pattern(f, Precision::FP32, {}).local);
}

/// `count` rows (pieces, if cut) of `mean` entries, on a device of 1,000 lanes in waves of 32.
template <class Value>
RowsWalk walk_of(std::int64_t count, std::int64_t mean, std::int64_t columns, bool cut = false,
                 std::int64_t rows_of_b = 1000000) {
  static const SpmmRowPiece piece{};
  SpmmRowsArgs args;
  args.count = count;
  args.nnz = count * mean;
  args.cols = rows_of_b;
  args.table = cut ? &piece : nullptr;
  args.dense.columns = columns;
  return rows_walk<RowsOfB<Value>>(args, 32, 1000);
}

TEST(RowsWalks, FollowTheRows) {
  EXPECT_EQ(walk_of<float>(1000, 5, 64), RowsWalk::Pairs);    // short
  EXPECT_EQ(walk_of<half_t>(1000, 5, 64), RowsWalk::Pairs);   // 8 vectors: 8,000 of 3,000 wanted
  EXPECT_EQ(walk_of<half_t>(300, 5, 64), RowsWalk::Quads);    // too few of them
  EXPECT_EQ(walk_of<float>(1000, 40, 64), RowsWalk::Octets);  // long
  EXPECT_EQ(walk_of<float>(1000, 32, 64), RowsWalk::Pairs);   // 16 vectors a row
  EXPECT_EQ(walk_of<float>(1000, 33, 64), RowsWalk::Octets);
  EXPECT_EQ(walk_of<float>(1000, 40, 128), RowsWalk::Pairs);    // 32
  EXPECT_EQ(walk_of<half_t>(1000, 40, 256), RowsWalk::Octets);  // 16 bits: 64
  EXPECT_EQ(walk_of<half_t>(1000, 40, 512), RowsWalk::Pairs);
  EXPECT_EQ(walk_of<float>(1000, 129, 256), RowsWalk::Octets);  // longer than they pay for
  EXPECT_EQ(walk_of<float>(1000, 8, 64), RowsWalk::Octets);
  EXPECT_EQ(walk_of<double>(1000, 20, 64, true), RowsWalk::Octets);  // cut
  EXPECT_EQ(walk_of<double>(1000, 5, 64, true), RowsWalk::Pairs);    // cut, but most are short
  EXPECT_EQ(walk_of<half_t>(1000, 5, 64, true), RowsWalk::Octets);
  EXPECT_EQ(walk_of<double>(1000, 5, 8, true), RowsWalk::Octets);  // too narrow
  EXPECT_EQ(walk_of<float>(1000, 200, 64), RowsWalk::Shared);      // very long
  EXPECT_EQ(walk_of<float>(40, 100, 32), RowsWalk::Shared);        // few
  EXPECT_EQ(walk_of<float>(1000, 200, 128), RowsWalk::Octets);     // one team a wave: nothing to share
  // Rows of B that are used 16 times or more.
  EXPECT_EQ(walk_of<float>(1000, 200, 128, false, 12500), RowsWalk::Shared);
  EXPECT_EQ(walk_of<float>(1000, 200, 128, false, 12501), RowsWalk::Octets);
  EXPECT_EQ(walk_of<float>(1000, 150, 128, false, 1000), RowsWalk::Octets);
  EXPECT_EQ(walk_of<float>(1000, 64, 128, true, 4000), RowsWalk::Shared);
}
TEST(RowsWalks, TilesAndLimits) {
  using Wave = HostWave<32>;
  using Pairs = RowsKernel<RowsTypes<float, float>, Wave, std::int32_t, RowsWalk::Pairs>;
  SpmmRowsArgs args;
  args.dense.columns = 256;
  args.cols = 1000000;
  EXPECT_EQ(rows_shift<Pairs>(args), 5);  // 1,024 bytes a row of B
  args.cache_bytes = 64 << 20;            // 18.9 MB of it wait
  args.reach = 18000;
  EXPECT_EQ(rows_shift<Pairs>(args), 5);
  args.reach = 19000;
  EXPECT_EQ(rows_shift<Pairs>(args), 4);
  args.reach = 38000;
  EXPECT_EQ(rows_shift<Pairs>(args), 3);
  args.cols = 70000;  // all of B is 36 MB in tiles of 512
  EXPECT_EQ(rows_shift<Pairs>(args), 4);
  args.cols = 1000000;
  args.local = true;
  EXPECT_EQ(rows_shift<Pairs>(args), 5);
  args.local = false;
  args.reach = 76000;
  EXPECT_EQ(rows_shift<Pairs>(args), 5);  // not even 256 bytes would wait
  using Octets = RowsKernel<RowsTypes<float, float>, Wave, std::int32_t, RowsWalk::Octets>;
  EXPECT_EQ(rows_shift<Octets>(args), 3);
  args.dense.columns = 65537;  // more tiles than a grid may have, if the number grows further
  EXPECT_EQ(rows_shift<Octets>(args), 5);
  args.reach = 19000;
  EXPECT_EQ(rows_shift<Pairs>(args), 5);
  args.dense.columns = 65536;
  EXPECT_EQ(rows_shift<Pairs>(args), 4);
  args.dense.columns = 256;
  args.reach = 76000;
  using Compact = RowsKernel<RowsTypes<float, float, RowsOfCompactB>, Wave, std::int32_t, RowsWalk::Octets>;
  EXPECT_EQ(rows_shift<Compact>(args), 5);
  args.reach = 0;
  args.dense.columns = 9;
  EXPECT_EQ(rows_shift<Pairs>(args), 1);  // 16 columns
  using Shared = RowsKernel<RowsTypes<float, float>, Wave, std::int32_t, RowsWalk::Shared>;
  args.dense.columns = 64;
  args.count = 100;
  args.nnz = 20000;
  EXPECT_EQ(rows_shift<Shared>(args), 4);
  args.cols = 1000;
  EXPECT_EQ(rows_shift<Shared>(args), 3);  // 128 bytes
  args.precision = Precision::FP64;
  args.dense.columns = 65535 * 64;
  EXPECT_TRUE(rows_check(args).ok());
  ++args.dense.columns;
  EXPECT_FALSE(rows_check(args).ok());
  args.precision = Precision::FP32;
  EXPECT_TRUE(rows_check(args).ok());
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
