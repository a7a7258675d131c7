// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// How DASP lays a tile over an atom: the tables a format builder uses, and the rotation that puts the results of four
// tiles into different lanes.

#include <random>
#include <set>
#include <utility>

#include "backends/kernels/spmv/Tessera_DaspTile.hpp"
#include "units/AtomFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

/// The shapes in numbers, as the documentation of the format has them.
struct Shape {
  int lanes, rows, depth, elements, value_bytes, slices, rotation;
};
template <class Atom>
constexpr Shape shape();
template <>
constexpr Shape shape<Sm80_M8N8K4_F64>() {
  return {32, 8, 4, 1, 8, 1, 2};
}
template <>
constexpr Shape shape<Sm80_M16N8K8_F32_F16>() {
  return {32, 8, 8, 2, 2, 2, 2};
}
template <>
constexpr Shape shape<Sm80_M16N8K8_F32_BF16>() {
  return {32, 8, 8, 2, 2, 2, 2};
}
template <>
constexpr Shape shape<Sm80_M16N8K16_F32_F16>() {
  return {32, 8, 16, 4, 2, 4, 2};
}
template <>
constexpr Shape shape<Gfx90a_M16N16K4_F64>() {
  return {64, 16, 4, 1, 8, 1, 1};
}
template <>
constexpr Shape shape<Gfx90a_M16N16K16_F32_F16>() {
  return {64, 16, 16, 4, 2, 4, 4};
}
template <>
constexpr Shape shape<Gfx90a_M16N16K16_F32_BF16>() {
  return {64, 16, 16, 4, 2, 4, 4};
}

using DaspAtoms = testing::Types<Sm80_M8N8K4_F64, Sm80_M16N8K8_F32_F16, Sm80_M16N8K8_F32_BF16, Sm80_M16N8K16_F32_F16,
                                 Gfx90a_M16N16K4_F64, Gfx90a_M16N16K16_F32_F16, Gfx90a_M16N16K16_F32_BF16>;

template <class Atom>
class DaspTileTest : public testing::Test {};
TYPED_TEST_SUITE(DaspTileTest, DaspAtoms, AtomName);

TYPED_TEST(DaspTileTest, ShapeInNumbers) {
  const DaspGeometry g = dasp_geometry<TypeParam>();
  constexpr Shape s = shape<TypeParam>();
  EXPECT_EQ(g.lanes, s.lanes);
  EXPECT_EQ(g.rows, s.rows);
  EXPECT_EQ(g.depth, s.depth);
  EXPECT_EQ(g.elements, s.elements);
  EXPECT_EQ(g.value_bytes, s.value_bytes);
  EXPECT_EQ(g.slices, s.slices);
  EXPECT_EQ(DaspTile<TypeParam>::rotation, s.rotation);
  EXPECT_STREQ(g.atom, TypeParam::name);
  EXPECT_TRUE(DaspTile<TypeParam>::is_consistent());
}

TYPED_TEST(DaspTileTest, ValueSlotsAreABijection) {
  constexpr Shape s = shape<TypeParam>();
  const DaspGeometry g = dasp_geometry<TypeParam>();
  std::set<int> slots;
  for (int i = 0; i < s.rows * s.depth; ++i) {
    EXPECT_LT(g.value_slot[i], s.rows * s.depth);
    slots.insert(g.value_slot[i]);
  }
  EXPECT_EQ(slots.size(), static_cast<std::size_t>(s.rows * s.depth));
}

TYPED_TEST(DaspTileTest, ValueSlotIsTheRegisterThatHoldsTheElementOfA) {
  using Atom = TypeParam;
  constexpr Shape s = shape<Atom>();
  const DaspGeometry g = dasp_geometry<Atom>();
  for (int row = 0; row < s.rows; ++row) {
    for (int k = 0; k < s.depth; ++k) {
      const int slot = g.value_slot[row * s.depth + k], lane = slot / s.elements, e = slot % s.elements;
      int in_tile = 0;  // slots count the registers that lie in the tile's rows, in their own order
      for (int i = 0; i < Atom::a_registers; ++i) {
        const Coord a = Atom::a_coord(lane, i);
        if (a.row >= s.rows) continue;
        if (in_tile++ == e) {
          EXPECT_TRUE(a.row == row && a.col == k) << row << ", " << k;
        }
      }
      EXPECT_LT(e, in_tile);
    }
  }
}

TYPED_TEST(DaspTileTest, IndexSlotsAreTheValueSlotsRotated) {
  constexpr Shape s = shape<TypeParam>();
  const DaspGeometry g = dasp_geometry<TypeParam>();
  for (int tile = 0; tile < 4; ++tile) {
    for (int row = 0; row < s.rows; ++row) {
      for (int k = 0; k < s.depth; ++k) {
        const int rotated = (row + s.rotation * tile) % s.rows;
        EXPECT_EQ(g.index_slot[tile][row * s.depth + k], g.value_slot[rotated * s.depth + k])
            << "tile " << tile << " row " << row << " slot " << k;
      }
    }
  }
}

TYPED_TEST(DaspTileTest, EveryLaneEndsWithOneResult) {
  using Atom = TypeParam;
  using Tile = DaspTile<Atom>;
  constexpr Shape s = shape<Atom>();
  const DaspGeometry g = dasp_geometry<Atom>();
  std::set<int> lanes;
  for (int tile = 0; tile < 4; ++tile) {
    for (int row = 0; row < s.rows; ++row) {
      // By search in the atom's own map: the lane that holds the accumulator of (row, rotated column).
      std::pair<int, int> found{-1, -1};
      for (int lane = 0; lane < Atom::lanes; ++lane) {
        for (int i = 0; i < Atom::c_registers; ++i) {
          const Coord c = Atom::c_coord(lane, i);
          if (c.row == row && c.col == (row + s.rotation * tile) % s.rows) found = {lane, i};
        }
      }
      EXPECT_EQ(g.result_lane[tile][row], found.first);
      EXPECT_EQ(Tile::result_lane(row, tile), found.first);
      EXPECT_EQ(Tile::result_row(found.first), row);
      EXPECT_EQ(Tile::result_tile(found.first), tile);
      EXPECT_EQ(Tile::result_register(found.first), found.second);
      lanes.insert(found.first);
    }
  }
  EXPECT_EQ(lanes.size(), static_cast<std::size_t>(Atom::lanes));
}

/// Four tiles with different rows, laid out by the tables alone, multiplied by the emulated instruction: every lane
/// holds the product of its one row. Rows meet all the wrong x as well; those land in registers nobody reads.
TYPED_TEST(DaspTileTest, FourTilesGiveEveryLaneItsRow) {
  using Atom = TypeParam;
  using Tile = DaspTile<Atom>;
  using Operand = typename Atom::Operand;
  constexpr Shape s = shape<Atom>();
  const DaspGeometry g = dasp_geometry<Atom>();
  const HostWave<Atom::lanes> wave;
  std::mt19937 engine(5);
  std::uniform_int_distribution<int> integer(-9, 9);
  std::vector<int> results(static_cast<std::size_t>(Atom::lanes), 0);
  for (int tile = 0; tile < 4; ++tile) {
    std::vector<Operand> value(static_cast<std::size_t>(s.rows * s.depth)), x(value.size());
    std::vector<int> wanted(static_cast<std::size_t>(s.rows), 0);
    for (int row = 0; row < s.rows; ++row) {
      for (int k = 0; k < s.depth; ++k) {
        const int v = integer(engine), w = integer(engine);
        wanted[row] += v * w;
        value[g.value_slot[row * s.depth + k]] = Operand(static_cast<float>(v));
        x[g.index_slot[tile][row * s.depth + k]] = Operand(static_cast<float>(w));
      }
    }
    typename HostWave<Atom::lanes>::template Varying<AFragment<Atom>> a;
    typename HostWave<Atom::lanes>::template Varying<BFragment<Atom>> b;
    typename HostWave<Atom::lanes>::template Varying<CFragment<Atom>> c;
    wave.each([&](int lane) {
      for (int i = 0; i < Atom::a_registers; ++i) a(lane).r[i] = Operand(0.0f);
      for (int i = 0; i < Atom::c_registers; ++i) c(lane).r[i] = 0;
      for (int e = 0; e < s.elements; ++e) {
        a(lane).r[Tile::a_register(e)] = value[lane * s.elements + e];
        b(lane).r[e] = x[lane * s.elements + e];
      }
    });
    Emulated<Atom>::mma(wave, c, a, b);
    wave.each([&](int lane) {
      if (Tile::result_tile(lane) != tile) return;
      EXPECT_EQ(c(lane).r[Tile::result_register(lane)], wanted[Tile::result_row(lane)]) << "lane " << lane;
      ++results[lane];
    });
  }
  for (int lane = 0; lane < Atom::lanes; ++lane) EXPECT_EQ(results[lane], 1) << "lane " << lane;
}

/// A few lanes in literal numbers: row, tile and register of the result.
struct ResultLine {
  int lane, row, tile, reg;
};
template <class Atom>
void expect_results(const std::vector<ResultLine>& lines) {
  for (const ResultLine& l : lines) {
    EXPECT_EQ(DaspTile<Atom>::result_row(l.lane), l.row) << Atom::name << " lane " << l.lane;
    EXPECT_EQ(DaspTile<Atom>::result_tile(l.lane), l.tile) << Atom::name << " lane " << l.lane;
    EXPECT_EQ(DaspTile<Atom>::result_register(l.lane), l.reg) << Atom::name << " lane " << l.lane;
  }
}
TEST(DaspTileLiterals, ResultLanes) {
  const std::vector<ResultLine> nvidia = {{0, 0, 0, 0}, {1, 0, 1, 0}, {3, 0, 3, 0},  {4, 1, 0, 1},
                                          {8, 2, 3, 0}, {9, 2, 0, 0}, {14, 3, 1, 1}, {31, 7, 0, 1}};
  expect_results<Sm80_M8N8K4_F64>(nvidia);
  expect_results<Sm80_M16N8K8_F32_F16>(nvidia);
  expect_results<Sm80_M16N8K16_F32_F16>(nvidia);
  expect_results<Gfx90a_M16N16K4_F64>(
      {{0, 0, 0, 0}, {3, 0, 3, 0}, {4, 4, 0, 1}, {17, 1, 0, 0}, {16, 13, 3, 3}, {63, 15, 0, 3}});
  expect_results<Gfx90a_M16N16K16_F32_F16>(
      {{0, 0, 0, 0}, {1, 1, 0, 1}, {4, 0, 1, 0}, {15, 3, 3, 3}, {20, 4, 0, 0}, {16, 4, 3, 0}, {63, 15, 0, 3}});
}

/// An atom with two exchanged accumulator lanes or registers no longer fits the closed forms.
struct LanesExchanged : Sm80_M8N8K4_F64 {
  static constexpr Coord c_coord(int lane, int i) { return Sm80_M8N8K4_F64::c_coord(lane ^ 1, i); }
};
struct RegistersExchanged : Gfx90a_M16N16K4_F64 {
  static constexpr Coord c_coord(int lane, int i) { return Gfx90a_M16N16K4_F64::c_coord(lane, i ^ 1); }
};
struct OperandTransposed : Sm80_M8N8K4_F64 {
  static constexpr Coord b_coord(int lane, int) { return {lane / 8, lane % 8}; }
};
static_assert(is_bijection<LanesExchanged>() && is_bijection<RegistersExchanged>() && is_bijection<OperandTransposed>(),
              "these faults keep the coverage");
static_assert(!DaspTile<LanesExchanged>::is_consistent() && !DaspTile<RegistersExchanged>::is_consistent() &&
                  !DaspTile<OperandTransposed>::is_consistent(),
              "but not the tile's closed forms");

}  // namespace
}  // namespace Testing
}  // namespace Tessera
