// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/kernels/spmm/Tessera_GeSpmmDispatch.hpp"
#include "backends/kernels/spmm/Tessera_SpreadRowsKernel.hpp"
#include "spmm/Tessera_SpmmRules.hpp"
#include "support/Tessera_TestSpmm.hpp"

/// \file
/// Which walk and tile GeSpmm gets, on a device of 132 multiprocessors and a last cache of 60 MB.

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
  GeSpmmArgs args;
  args.precision = sizeof(Value) == 8 ? Precision::FP64 : sizeof(Value) == 4 ? Precision::FP32 : Precision::FP16;
  args.rows = args.count = shape.rows;
  args.cols = shape.cols > 0 ? shape.cols : shape.rows;
  args.nnz = shape.nnz;
  args.table = shape.cut ? &some : nullptr;
  args.local = shape.local;
  args.cache_bytes = std::int64_t{60} << 20;
  args.reach = shape.reach;
  args.dense.columns = columns;
  std::string result;
  gespmm_dispatch<GeSpmmTypes<Value, SumOf<Value>>, HostWave<32>>(
      args, lanes, true, [&](auto kernel, const GeSpmmArgs& ready) {
        using Kernel = decltype(kernel);
        constexpr char plain = Kernel::words == 2 ? 'P' : Kernel::batch == 8 ? 'O' : 'Q';
        constexpr char letter = Kernel::shared ? 'S' : Kernel::dealt ? 'D' : Kernel::deep ? 'A' : plain;
        const std::int64_t tile = std::min<std::int64_t>(Kernel::tile_columns(ready), columns);
        result = letter + std::to_string(tile * static_cast<std::int64_t>(sizeof(Value)));
      });
  return result;
}

// Evidence for the thresholds: of these matrices every walk was measured on an H200, and what is taken was the fastest
// or within 4 % of it (perf_test/notes/spmm-rows.md).
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

  const Shape finan512{74752, 596992, 5000};  // eight entries per row
  EXPECT_EQ(choice_of<float>(finan512, 64), "O256");
  EXPECT_EQ(choice_of<float>(finan512, 128), "P512");
  EXPECT_EQ(choice_of<double>(finan512, 32), "O256");

  const Shape shell{219114, 11744484, 120000, true};  // six unknowns per node: neighbours share columns
  EXPECT_EQ(choice_of<float>(shell, 64), "O256");
  EXPECT_EQ(choice_of<float>(shell, 256), "P1024");
  EXPECT_EQ(choice_of<double>(shell, 32), "O256");

  const Shape chemistry{200000, 16920000, 150000, true, true}, feedback{18660, 1582500, 18600, false, true};
  EXPECT_EQ(choice_of<float>(chemistry, 64), "O256");
  EXPECT_EQ(choice_of<float>(chemistry, 128), "P512");
  EXPECT_EQ(choice_of<float>(feedback, 64), "A256");
  EXPECT_EQ(choice_of<float>(feedback, 256), "S128");
  EXPECT_EQ(choice_of<float>({2000, 4000000, 2000, true, true}, 128), "S128");

  const Shape bcsstk17{10974, 428650, 900, true}, conf5{49152, 1916928, 20000, true};
  EXPECT_EQ(choice_of<float>(bcsstk17, 64), "S256");   // too few rows for a device
  EXPECT_EQ(choice_of<float>(bcsstk17, 128), "A512");  // in three rounds
  EXPECT_EQ(choice_of<half_t>(conf5, 32), "O64");
}

// As above, on an H100: eight rows of B under way, entries dealt out, and narrow tiles of a B that does not stay.
TEST(RowsWalks, FollowsMatricesWithLongRows) {
  const Shape feedback{18660, 1582500, 18600, false, true};
  EXPECT_EQ(choice_of<double>(feedback, 32), "A256");
  EXPECT_EQ(choice_of<double>(feedback, 64), "A256");
  EXPECT_EQ(choice_of<double>(feedback, 128), "S128");
  EXPECT_EQ(choice_of<float>(feedback, 32), "S128");
  EXPECT_EQ(choice_of<half_t>(feedback, 128), "A256");

  const Shape rail582{3600, 402290, 50000, false, true, 56097};
  EXPECT_EQ(choice_of<double>(rail582, 128), "S128");  // B has 57 MB
  EXPECT_EQ(choice_of<float>(rail582, 128), "A512");

  const Shape caida{27500, 106762, 20000, false, true}, radixnet{1024, 32768, 900}, maros{3136, 144848, 900};
  EXPECT_EQ(choice_of<float>(caida, 128), "O512");
  EXPECT_EQ(choice_of<double>(caida, 32), "A256");
  EXPECT_EQ(choice_of<float>(radixnet, 128), "A512");
  EXPECT_EQ(choice_of<float>(maros, 128), "A512");
  EXPECT_EQ(choice_of<double>(maros, 128), "O512");  // would take two rounds

  const Shape citations{172000, 1245286, 81400, false, true}, circuit{745000, 3365293, 41500, false, true};
  EXPECT_EQ(choice_of<half_t>(citations, 32), "D64");
  EXPECT_EQ(choice_of<half_t>(citations, 64), "O128");
  EXPECT_EQ(choice_of<float>(citations, 32), "O128");
  EXPECT_EQ(choice_of<half_t>(circuit, 32), "O64");
}

// Rows that have four entries for each team of a wave: teams that each took a row would read A a line at a time. In 16
// bits only of rows that differ in length.
TEST(RowsWalks, TeamsThatWouldReadApart) {
  const Shape community{60000, 3674994, 30000}, chemistry{35000, 3900000, 9000, true}, stencil{180000, 4700000, 4000};
  EXPECT_EQ(choice_of<double>(community, 8), "S64");
  EXPECT_EQ(choice_of<float>(community, 8), "S32");
  EXPECT_EQ(choice_of<float>(community, 16), "S64");
  EXPECT_EQ(choice_of<float>(community, 64), "O256");
  EXPECT_EQ(choice_of<half_t>(community, 16), "A32");
  EXPECT_EQ(choice_of<double>(chemistry, 16), "S128");
  EXPECT_EQ(choice_of<float>(chemistry, 32), "S128");
  EXPECT_EQ(choice_of<half_t>(chemistry, 8), "A16");
  EXPECT_EQ(choice_of<float>(stencil, 16), "O64");
  EXPECT_EQ(choice_of<float>({200000, 14100000, 3000, true}, 16), "O64") << "neighbours read the same rows of B";
  GeSpmmArgs args;
  args.count = args.rows = args.cols = 35000;
  args.nnz = 4238954;
  EXPECT_FALSE(teams_read_apart<RowsOfB<half_t>>(args, 32));
  args.longest = 480;
  EXPECT_TRUE(teams_read_apart<RowsOfB<half_t>>(args, 32));
  EXPECT_FALSE(teams_read_apart<RowsOfB<half_t>>(args, 64)) << "of AMD's waves";
}

// One word per row of B: in words of eight bytes, of which several teams take a row's entries in turns.
TEST(RowsWalks, TurnsForOneWord) {
  GeSpmmArgs args;
  args.count = args.rows = args.cols = 100000;
  const auto turns = [&](Precision precision, std::int64_t columns, std::int64_t mean) {
    args.precision = precision;
    args.dense.columns = columns;
    args.nnz = mean * args.count;
    return rows_take_turns(args);
  };
  EXPECT_TRUE(turns(Precision::FP64, 2, 27));
  EXPECT_FALSE(turns(Precision::FP64, 2, 9));
  EXPECT_FALSE(turns(Precision::FP64, 4, 27)) << "two words";
  EXPECT_TRUE(turns(Precision::FP32, 4, 30));
  EXPECT_FALSE(turns(Precision::FP32, 4, 27));
  EXPECT_FALSE(turns(Precision::FP16, 8, 100));
  args.word_bytes = 8;
  EXPECT_FALSE(turns(Precision::FP64, 2, 27)) << "read in narrow words anyhow";
}

// What a device with an unknown cache, or a matrix that nobody looked at, gets: no bound.
TEST(RowsWalks, UnknownReach) {
  EXPECT_EQ(choice_of<float>({1270432, 8814880, 0}, 256), "P1024");
  EXPECT_EQ(choice_of<float>({262144, 4194304, 0}, 256), "P1024");
}

// C leaves the cache first where B stays there and both do not, or hardly: delaunay_n16 on 60 MB.
TEST(RowsWalks, CPassesWhereBStays) {
  GeSpmmArgs args;
  args.precision = Precision::FP32;
  args.rows = args.cols = 65536;
  args.nnz = 393150;
  args.cache_bytes = std::int64_t{60} << 20;
  args.dense.c_type = ElementType::Float;
  args.dense.columns = 128;
  EXPECT_TRUE(rows_let_c_pass(args));  // 34 MB each
  args.dense.columns = 32;
  EXPECT_FALSE(rows_let_c_pass(args));  // both stay
  args.dense.columns = 256;
  EXPECT_FALSE(rows_let_c_pass(args));  // B does not
  args.dense.columns = 64;
  EXPECT_TRUE(rows_let_c_pass(args));  // 17 MB each
  args.precision = Precision::FP16;
  args.dense.c_type = ElementType::Half;
  EXPECT_FALSE(rows_let_c_pass(args));  // 8 MB each
  args.rows = 262144;
  EXPECT_TRUE(rows_let_c_pass(args));  // 8 and 34 MB
  args.dense.columns = 128;
  args.dense.c_type = ElementType::Float;
  args.cache_bytes = 0;
  EXPECT_FALSE(rows_let_c_pass(args));  // unknown
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

/// f(args, wave, lanes) for products of every kind.
template <class F>
void each_product(const F& f) {
  static const SpmmRowPiece piece{};
  for (const std::int64_t count : {10, 300, 1000, 100000}) {
    for (const std::int64_t mean : {1, 5, 7, 8, 20, 33, 100, 129, 200, 3000}) {
      for (const std::int64_t columns : {1, 3, 8, 16, 17, 32, 64, 100, 128, 256, 512, 1000}) {
        for (const int kind : {0, 1, 2, 3}) {
          for (const std::int64_t reach : {0, 1000, 19000, 500000}) {
            GeSpmmArgs args;
            args.count = args.rows = count;
            args.nnz = count * mean;
            args.cols = 1000000;
            args.table = kind % 2 ? &piece : nullptr;
            args.local = kind / 2;
            args.cache_bytes = std::int64_t{60} << 20;
            args.reach = static_cast<double>(reach);
            args.dense.columns = columns;
            SCOPED_TRACE(std::to_string(count) + " rows of " + std::to_string(mean) + ", " + std::to_string(columns) +
                         " columns, kind " + std::to_string(kind) + ", reach " + std::to_string(reach));
            f(args);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}
/// The walk and the columns of a tile.
template <class Value>
struct Walk {
  RowsWalk walk;
  int shift, vectors, batch;
  std::int64_t tile;

  static Walk of(const GeSpmmArgs& args, std::int64_t lanes = 132 * 2048) {
    Walk w{};
    w.walk = rows_walk<RowsOfB<Value>>(args, 32, lanes);
    gespmm_dispatch<GeSpmmTypes<Value, SumOf<Value>>, HostWave<32>>(args, lanes, true,
                                                                    [&](auto kernel, const GeSpmmArgs& ready) {
                                                                      using Kernel = decltype(kernel);
                                                                      w.shift = ready.shift;
                                                                      w.vectors = Kernel::words;
                                                                      w.batch = Kernel::batch;
                                                                      w.tile = Kernel::tile_columns(ready);
                                                                    });
    return w;
  }
};

template <class Value>
class RowsWalkOf : public ::testing::Test {};
using WalkTypes = ::testing::Types<double, float, half_t>;
TYPED_TEST_SUITE(RowsWalkOf, WalkTypes);

// 64 registers of 32 bits for sums and what is under way of B: as much again for addresses and the loop leaves half of
// a device's waves.
TYPED_TEST(RowsWalkOf, FitsIntoRegisters) {
  constexpr int vector = RowsOfB<TypeParam>::columns;
  each_product([&](const GeSpmmArgs& args) {
    const auto w = Walk<TypeParam>::of(args);
    const int sums = w.vectors * vector * static_cast<int>(sizeof(SumOf<TypeParam>)) / 4;
    EXPECT_LE(sums + w.vectors * w.batch * 4, 64);
  });
}
// A team is no wider than a wave, and not twice as wide as B; two teams share a row only where a wave has two.
TYPED_TEST(RowsWalkOf, TeamsFitTheWaveAndB) {
  each_product([&](const GeSpmmArgs& args) {
    const auto w = Walk<TypeParam>::of(args);
    EXPECT_LE(1 << w.shift, 32);
    EXPECT_GE(w.shift, 0);
    if (w.shift > 0) {
      EXPECT_LT(w.tile / 2, args.dense.columns);
    }
    if (w.walk == RowsWalk::Shared) {
      EXPECT_LT(1 << w.shift, 32);
    }
  });
}
// Wider B never gets a narrower tile where nothing is known of its reach and the walk stays.
TYPED_TEST(RowsWalkOf, TilesGrowWithB) {
  each_product([&](const GeSpmmArgs& args) {
    GeSpmmArgs wider = args;
    wider.reach = 0;
    const auto narrow = Walk<TypeParam>::of(wider);
    wider.dense.columns *= 2;
    const auto wide = Walk<TypeParam>::of(wider);
    if (narrow.walk == wide.walk) {
      EXPECT_LE(std::min(narrow.tile, args.dense.columns), wide.tile);
    }
  });
}
// Narrower tiles are taken only where rows of B then wait in the cache, or for long rows; with no bound there is none.
TYPED_TEST(RowsWalkOf, NarrowTilesHaveAReason) {
  each_product([&](const GeSpmmArgs& args) {
    GeSpmmArgs unknown = args;
    unknown.reach = 0;
    const auto w = Walk<TypeParam>::of(args), free = Walk<TypeParam>::of(unknown);
    if (w.walk == free.walk && w.tile < free.tile) {
      EXPECT_TRUE(rows_reach_beyond(args, RowsOfB<TypeParam>::bytes(std::min(free.tile, args.dense.columns))));
    }
    if (rows_in_narrow_tiles(args)) {
      EXPECT_TRUE(w.walk == RowsWalk::Shared || w.walk == RowsWalk::Ahead);
      EXPECT_LE(w.tile * static_cast<std::int64_t>(sizeof(TypeParam)), 256);
    }
  });
}
// Sharing an item costs shuffles: more waves' worth of rows never bring it about, longer rows never end it but where
// they are the long ones.
TYPED_TEST(RowsWalkOf, SharedIsForFewOrLongRows) {
  each_product([&](const GeSpmmArgs& args) {
    GeSpmmArgs more = args;
    more.count *= 16, more.rows *= 16, more.nnz *= 16, more.cols *= 16, more.cache_bytes *= 16;
    const auto shared = [](const GeSpmmArgs& of) {
      return rows_in_narrow_tiles(of) || Walk<TypeParam>::of(of).walk == RowsWalk::Shared;
    };
    EXPECT_TRUE(shared(args) || !shared(more));
    GeSpmmArgs longer = args;
    longer.nnz *= 16;
    EXPECT_TRUE(!shared(args) || shared(longer));
  });
}
// Four entries of one vector under way: only for short rows that would leave the device idle.
TYPED_TEST(RowsWalkOf, QuadsAreForIdleDevices) {
  each_product([&](const GeSpmmArgs& args) {
    if (Walk<TypeParam>::of(args).walk != RowsWalk::Quads) return;
    EXPECT_LE(args.nnz, 8 * args.count);
    GeSpmmArgs more = args;
    more.count *= 1000000, more.nnz *= 1000000;
    EXPECT_NE(Walk<TypeParam>::of(more).walk, RowsWalk::Quads);
  });
}

// Long even rows in teams of sixteen lanes: not where they fill a device once and leave a small rest.
TEST(RowsWalks, NoSmallRestOfWholeRows) {
  const auto walk = [](std::int64_t rows, std::int64_t columns, const SpmmRowPiece* table = nullptr) {
    GeSpmmArgs args;
    args.precision = Precision::FP64;
    args.count = args.rows = args.cols = rows;
    args.nnz = 1000 * rows;
    args.table = table;
    args.dense.columns = columns;
    return Walk<double>::of(args).walk;
  };
  EXPECT_EQ(walk(8000, 32), RowsWalk::Ahead);  // a device has 8,448 at once
  EXPECT_EQ(walk(10000, 32), RowsWalk::Shared);
  EXPECT_EQ(walk(14000, 32), RowsWalk::Ahead);
  EXPECT_EQ(walk(5000, 64), RowsWalk::Shared) << "two tiles";
  EXPECT_EQ(walk(8000, 64), RowsWalk::Ahead);
  const SpmmRowPiece piece{};
  EXPECT_EQ(walk(10000, 32, &piece), RowsWalk::Ahead) << "pieces end one by one";
}

/// Where rows of B are read in words of so many bytes: a letter for the walk, X where teams take entries in turns, and
/// the columns of a tile.
template <class Value, int Bytes>
std::string choice_in_words(const Shape& shape, std::int64_t columns) {
  static const SpmmRowPiece some{};
  GeSpmmArgs args;
  args.rows = args.count = args.cols = shape.rows;
  args.nnz = shape.nnz;
  args.table = shape.cut ? &some : nullptr;
  args.dense.columns = columns;
  std::string result;
  gespmm_dispatch<GeSpmmTypes<Value, SumOf<Value>, RowsOfB<Value, Bytes>>, HostWave<32>>(
      args, 132 * 2048, true, [&](auto kernel, const GeSpmmArgs& ready) {
        using Kernel = decltype(kernel);
        constexpr char letter = Kernel::split ? 'X' : Kernel::shared ? 'S' : Kernel::words > 1 ? 'P' : 'O';
        result = letter + std::to_string(Kernel::tile_columns(ready));
        if (Kernel::split) result += ", " + std::to_string(1 << ready.log2_teams) + " teams";
      });
  return result;
}
// Of these matrices every walk was measured on an H200, too (perf_test/notes/spmm-rows.md, "Rows of B that are not
// aligned").
TEST(RowsWalks, InNarrowWords) {
  const Shape nine_points{334887, 3006739, 0}, community{250000, 5995098, 0}, uniform{60000, 2400000, 0},
      few{20000, 1202246, 0}, pieces{4400, 238954, 0, false, true}, long_rows{4000, 800000, 0};
  EXPECT_EQ((choice_in_words<float, 4>(nine_points, 1)), "O1");
  EXPECT_EQ((choice_in_words<float, 4>(nine_points, 7)), "P8");
  EXPECT_EQ((choice_in_words<float, 4>(nine_points, 17)), "P32");
  EXPECT_EQ((choice_in_words<float, 8>(nine_points, 50)), "P64");
  EXPECT_EQ((choice_in_words<float, 4>(nine_points, 121)), "P128");
  EXPECT_EQ((choice_in_words<double, 8>(community, 1)), "X1, 4 teams");
  EXPECT_EQ((choice_in_words<float, 8>(community, 2)), "X2, 4 teams");
  EXPECT_EQ((choice_in_words<double, 8>(community, 7)), "O8");
  EXPECT_EQ((choice_in_words<double, 8>({60000, 3674994, 0}, 3)), "S4");  // 61 per row
  EXPECT_EQ((choice_in_words<double, 8>({60000, 3674994, 0}, 7)), "S8");
  EXPECT_EQ((choice_in_words<half_t, 2>({60000, 3674994, 0}, 7)), "O8");
  EXPECT_EQ((choice_in_words<float, 4>(uniform, 7)), "O8") << "40 per row: too few for four teams";
  EXPECT_EQ((choice_in_words<half_t, 2>(uniform, 7)), "O8");
  EXPECT_EQ((choice_in_words<half_t, 8>(uniform, 100)), "P128");
  EXPECT_EQ((choice_in_words<float, 4>(few, 7)), "S8");
  EXPECT_EQ((choice_in_words<float, 4>(few, 17)), "O32");
  EXPECT_EQ((choice_in_words<double, 8>(pieces, 33)), "O32");
  EXPECT_EQ((choice_in_words<float, 4>(long_rows, 1)), "X1, 32 teams");
  EXPECT_EQ((choice_in_words<float, 4>(long_rows, 121)), "P128");
}
// Whatever the words, a grid has room for the tiles of as many columns as are not refused.
TYPED_TEST(RowsWalkOf, NarrowWordsKeepToTheGrid) {
  for (const std::int64_t rows : {1, 50, 5000, 1000000}) {
    for (const std::int64_t mean : {1, 9, 60, 300}) {
      for (const bool narrow : {true, false}) {
        GeSpmmArgs args;
        args.precision = Precision::FP64;
        args.count = args.rows = args.cols = rows;
        args.nnz = rows * mean;
        for (args.dense.columns = 1; args.dense.columns < 65535 * 64; args.dense.columns *= 3) {
          ASSERT_TRUE(gespmm_check(args).ok());
          using Types = GeSpmmTypes<TypeParam, SumOf<TypeParam>, RowsOfB<TypeParam, sizeof(TypeParam)>>;
          gespmm_dispatch<Types, HostWave<32>>(args, 132 * 2048, narrow, [&](auto kernel, const GeSpmmArgs& ready) {
            const std::int64_t tile = decltype(kernel)::tile_columns(ready);
            EXPECT_LE((args.dense.columns + tile - 1) / tile, 65535) << args.dense.columns << " of " << rows;
            EXPECT_GE(decltype(kernel)::items(ready), 1);
          });
        }
      }
    }
  }
}

// What no grid and no 32-bit distance can hold is refused, and only that.
TEST(RowsWalks, Limits) {
  GeSpmmArgs args;
  args.precision = Precision::FP64;
  args.dense.columns = 65535 * 64;
  EXPECT_TRUE(gespmm_check(args).ok());
  ++args.dense.columns;
  EXPECT_FALSE(gespmm_check(args).ok());
  args.precision = Precision::FP32;
  EXPECT_TRUE(gespmm_check(args).ok());
  // Tiles are not so narrow that there are more than a grid may have.
  args.cols = args.count = args.rows = 1000000;
  args.nnz = 20000000;
  args.cache_bytes = std::int64_t{60} << 20;
  args.reach = 500000;
  for (const std::int64_t columns : {65536, 65537, 1000000}) {
    args.dense.columns = columns;
    const auto w = Walk<float>::of(args);
    EXPECT_LE((columns + w.tile - 1) / w.tile, 65535);
  }
}

// The teams of an item lie side by side from a multiple of their number on; pieces have as many as their length asks
// for, but no fewer than the kernel needs to add them.
TEST(SpreadRows, TeamsOfItems) {
  for (const int log2_piece : {0, 2, 9, 11}) {
    for (const int most : {5, 8}) {
      SpmmSpread items;
      items.log2_piece = log2_piece;
      items.counts[0] = 5;
      items.counts[4] = 3;
      items.counts[8] = 2;
      items.counts[11] = 1;
      items.counts[SpmmSpread::classes - 1] = 4;
      const int least = most - 2;
      const SpreadLevels levels = spread_levels(items, 4, least, most);
      std::vector<int> teams(15, 0);
      for (std::int32_t team = 0; team < levels.teams; ++team) {
        const SpreadLevels::Place place = levels.at(team);
        ASSERT_GE(place.item, 0);
        ASSERT_LT(place.item, 15);
        EXPECT_EQ(place.rank, teams[static_cast<std::size_t>(place.item)]++);
        EXPECT_EQ((team - place.rank) % (1 << place.level), 0);
        EXPECT_LT(place.rank, 1 << place.level);
      }
      const int pieces = std::clamp(log2_piece - 3, least, most);
      const std::vector<int> expected = {pieces, pieces, pieces, pieces, std::min(7, most), 4, 4, 0, 0, 0, 0,
                                         0,      0,      0,      0};
      for (std::size_t i = 0; i < teams.size(); ++i) {
        // Items of a level follow each other, those of the highest first.
        const int lower = static_cast<int>(
            std::count_if(expected.begin(), expected.end(), [&](int level) { return level > expected[i]; }));
        const int same =
            static_cast<int>(std::count(expected.begin(), expected.begin() + static_cast<int>(i), expected[i]));
        EXPECT_EQ(teams[static_cast<std::size_t>(lower + same)], 1 << expected[i]);
      }
    }
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
