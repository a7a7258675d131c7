// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The coordinate maps of every atom against the manuals: literal coordinates of selected lanes, and every lane against
// the manuals' own wording. NVIDIA: PTX ISA, sections "Matrix Fragments for mma.m8n8k4 with .f64 floating point type",
// "Matrix Fragments for mma.m16n8k4", "Matrix Fragments for mma.m16n8k8" (with .f64 as well) and "Matrix Fragments for
// mma.m16n8k16 with floating point type". AMD: "CDNA2 Instruction Set Architecture", matrix fused multiply-add, and
// what the AMD matrix instruction calculator prints for the instruction with --register-layout.

#include "units/AtomFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

/// All registers of one lane.
struct Line {
  int lane;
  std::vector<Coord> a, b, c;
};

template <class Atom>
struct Table;
template <>
struct Table<Sm80_M8N8K4_F64> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}}, {{0, 0}}, {{0, 0}, {0, 1}}},  {1, {{0, 1}}, {{1, 0}}, {{0, 2}, {0, 3}}},
        {6, {{1, 2}}, {{2, 1}}, {{1, 4}, {1, 5}}},  {17, {{4, 1}}, {{1, 4}}, {{4, 2}, {4, 3}}},
        {31, {{7, 3}}, {{3, 7}}, {{7, 6}, {7, 7}}},
    };
  }
};
template <>
struct Table<Sm80_M16N8K4_F32_TF32> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}, {8, 0}}, {{0, 0}}, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
        {1, {{0, 1}, {8, 1}}, {{1, 0}}, {{0, 2}, {0, 3}, {8, 2}, {8, 3}}},
        {6, {{1, 2}, {9, 2}}, {{2, 1}}, {{1, 4}, {1, 5}, {9, 4}, {9, 5}}},
        {17, {{4, 1}, {12, 1}}, {{1, 4}}, {{4, 2}, {4, 3}, {12, 2}, {12, 3}}},
        {31, {{7, 3}, {15, 3}}, {{3, 7}}, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
    };
  }
};
template <>
struct Table<Sm80_M16N8K8_F32_TF32> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}, {8, 0}, {0, 4}, {8, 4}}, {{0, 0}, {4, 0}}, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
        {1, {{0, 1}, {8, 1}, {0, 5}, {8, 5}}, {{1, 0}, {5, 0}}, {{0, 2}, {0, 3}, {8, 2}, {8, 3}}},
        {6, {{1, 2}, {9, 2}, {1, 6}, {9, 6}}, {{2, 1}, {6, 1}}, {{1, 4}, {1, 5}, {9, 4}, {9, 5}}},
        {17, {{4, 1}, {12, 1}, {4, 5}, {12, 5}}, {{1, 4}, {5, 4}}, {{4, 2}, {4, 3}, {12, 2}, {12, 3}}},
        {31, {{7, 3}, {15, 3}, {7, 7}, {15, 7}}, {{3, 7}, {7, 7}}, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
    };
  }
};
template <>
struct Table<Sm80_M16N8K8_F32_TF32Cut> : Table<Sm80_M16N8K8_F32_TF32> {};
template <>
struct Table<Sm90_M16N8K8_F64> : Table<Sm80_M16N8K8_F32_TF32> {};
template <>
struct Table<Sm80_M16N8K8_F32_F16> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}, {{0, 0}, {1, 0}}, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
        {1, {{0, 2}, {0, 3}, {8, 2}, {8, 3}}, {{2, 0}, {3, 0}}, {{0, 2}, {0, 3}, {8, 2}, {8, 3}}},
        {6, {{1, 4}, {1, 5}, {9, 4}, {9, 5}}, {{4, 1}, {5, 1}}, {{1, 4}, {1, 5}, {9, 4}, {9, 5}}},
        {17, {{4, 2}, {4, 3}, {12, 2}, {12, 3}}, {{2, 4}, {3, 4}}, {{4, 2}, {4, 3}, {12, 2}, {12, 3}}},
        {31, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}, {{6, 7}, {7, 7}}, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
    };
  }
};
template <>
struct Table<Sm80_M16N8K16_F32_F16> {
  static std::vector<Line> lines() {
    return {
        {0,
         {{0, 0}, {0, 1}, {8, 0}, {8, 1}, {0, 8}, {0, 9}, {8, 8}, {8, 9}},
         {{0, 0}, {1, 0}, {8, 0}, {9, 0}},
         {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
        {1,
         {{0, 2}, {0, 3}, {8, 2}, {8, 3}, {0, 10}, {0, 11}, {8, 10}, {8, 11}},
         {{2, 0}, {3, 0}, {10, 0}, {11, 0}},
         {{0, 2}, {0, 3}, {8, 2}, {8, 3}}},
        {6,
         {{1, 4}, {1, 5}, {9, 4}, {9, 5}, {1, 12}, {1, 13}, {9, 12}, {9, 13}},
         {{4, 1}, {5, 1}, {12, 1}, {13, 1}},
         {{1, 4}, {1, 5}, {9, 4}, {9, 5}}},
        {17,
         {{4, 2}, {4, 3}, {12, 2}, {12, 3}, {4, 10}, {4, 11}, {12, 10}, {12, 11}},
         {{2, 4}, {3, 4}, {10, 4}, {11, 4}},
         {{4, 2}, {4, 3}, {12, 2}, {12, 3}}},
        {31,
         {{7, 6}, {7, 7}, {15, 6}, {15, 7}, {7, 14}, {7, 15}, {15, 14}, {15, 15}},
         {{6, 7}, {7, 7}, {14, 7}, {15, 7}},
         {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
    };
  }
};
template <>
struct Table<Gfx90a_M16N16K4_F64> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}}, {{0, 0}}, {{0, 0}, {4, 0}, {8, 0}, {12, 0}}},
        {1, {{1, 0}}, {{0, 1}}, {{0, 1}, {4, 1}, {8, 1}, {12, 1}}},
        {18, {{2, 1}}, {{1, 2}}, {{1, 2}, {5, 2}, {9, 2}, {13, 2}}},
        {37, {{5, 2}}, {{2, 5}}, {{2, 5}, {6, 5}, {10, 5}, {14, 5}}},
        {63, {{15, 3}}, {{3, 15}}, {{3, 15}, {7, 15}, {11, 15}, {15, 15}}},
    };
  }
};
template <>
struct Table<Gfx90a_M16N16K4_F32> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}}, {{0, 0}}, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}},
        {1, {{1, 0}}, {{0, 1}}, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
        {18, {{2, 1}}, {{1, 2}}, {{4, 2}, {5, 2}, {6, 2}, {7, 2}}},
        {37, {{5, 2}}, {{2, 5}}, {{8, 5}, {9, 5}, {10, 5}, {11, 5}}},
        {63, {{15, 3}}, {{3, 15}}, {{12, 15}, {13, 15}, {14, 15}, {15, 15}}},
    };
  }
};
template <>
struct Table<Gfx90a_M16N16K16_F32_F16> {
  static std::vector<Line> lines() {
    return {
        {0, {{0, 0}, {0, 1}, {0, 2}, {0, 3}}, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}},
        {1, {{1, 0}, {1, 1}, {1, 2}, {1, 3}}, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
        {18, {{2, 4}, {2, 5}, {2, 6}, {2, 7}}, {{4, 2}, {5, 2}, {6, 2}, {7, 2}}, {{4, 2}, {5, 2}, {6, 2}, {7, 2}}},
        {37,
         {{5, 8}, {5, 9}, {5, 10}, {5, 11}},
         {{8, 5}, {9, 5}, {10, 5}, {11, 5}},
         {{8, 5}, {9, 5}, {10, 5}, {11, 5}}},
        {63,
         {{15, 12}, {15, 13}, {15, 14}, {15, 15}},
         {{12, 15}, {13, 15}, {14, 15}, {15, 15}},
         {{12, 15}, {13, 15}, {14, 15}, {15, 15}}},
    };
  }
};
// The same fragments with the other 16-bit type.
template <>
struct Table<Sm80_M16N8K8_F32_BF16> : Table<Sm80_M16N8K8_F32_F16> {};
template <>
struct Table<Sm80_M16N8K16_F32_BF16> : Table<Sm80_M16N8K16_F32_F16> {};
template <>
struct Table<Gfx90a_M16N16K16_F32_BF16> : Table<Gfx90a_M16N16K16_F32_F16> {};

/// What the manuals say of register i of a lane, in their words: PTX' groupID = %laneid >> 2 and threadID_in_group =
/// %laneid % 4; AMD's sixteen lanes of a row or column and the four sixteens.
template <class Atom>
Coord documented(char operand, int lane, int i) {
  if (Atom::lanes == 32) {
    const int group = lane >> 2, thread = lane % 4;
    if (operand == 'C') {  // row groupID for c0, c1 and groupID + 8 for c2, c3; column threadID_in_group * 2 + (i & 1)
      return {i < 2 ? group : group + 8, thread * 2 + (i & 0x1)};
    }
    if (sizeof(typename Atom::Operand) == 2) {
      const int along = thread * 2 + (i & 0x1);
      if (operand == 'B') return {i < 2 ? along : along + 8, group};
      const bool upper = (0 <= i && i < 2) || (4 <= i && i < 6);
      return {upper ? group : group + 8, i < 4 ? along : along + 8};
    }
    if (operand == 'B') return {i == 0 ? thread : thread + 4, group};
    return {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
  }
  const int sixteenth = lane & 15, quarter = lane >> 4;
  if (operand == 'C') {
    // Doubles: consecutive registers skip four rows, sets of lanes cover consecutive rows; floats the other way.
    if (sizeof(typename Atom::Accumulator) == 8) return {quarter + (i << 2), sixteenth};
    return {(quarter << 2) + i, sixteenth};
  }
  const int along = sizeof(typename Atom::Operand) == 2 ? (quarter << 2) + i : quarter;
  return operand == 'A' ? Coord{sixteenth, along} : Coord{along, sixteenth};
}

void expect_equal(Coord actual, Coord wanted, const char* operand, int lane, int i) {
  EXPECT_TRUE(actual.row == wanted.row && actual.col == wanted.col)
      << operand << ", lane " << lane << ", register " << i << ": (" << actual.row << ", " << actual.col
      << ") instead of (" << wanted.row << ", " << wanted.col << ")";
}

template <class Atom>
class AtomLayout : public testing::Test {};
TYPED_TEST_SUITE(AtomLayout, AllAtoms, AtomName);

TYPED_TEST(AtomLayout, LiteralLinesOfTheTables) {
  using Atom = TypeParam;
  const auto lines = Table<Atom>::lines();
  ASSERT_EQ(lines.size(), 5u);
  for (const Line& line : lines) {
    ASSERT_EQ(line.a.size(), static_cast<std::size_t>(Atom::a_registers));
    ASSERT_EQ(line.b.size(), static_cast<std::size_t>(Atom::b_registers));
    ASSERT_EQ(line.c.size(), static_cast<std::size_t>(Atom::c_registers));
    for (int i = 0; i < Atom::a_registers; ++i) expect_equal(Atom::a_coord(line.lane, i), line.a[i], "A", line.lane, i);
    for (int i = 0; i < Atom::b_registers; ++i) expect_equal(Atom::b_coord(line.lane, i), line.b[i], "B", line.lane, i);
    for (int i = 0; i < Atom::c_registers; ++i) expect_equal(Atom::c_coord(line.lane, i), line.c[i], "C", line.lane, i);
  }
}

TYPED_TEST(AtomLayout, EveryLaneAsDocumented) {
  using Atom = TypeParam;
  for (int lane = 0; lane < Atom::lanes; ++lane) {
    for (int i = 0; i < Atom::a_registers; ++i)
      expect_equal(Atom::a_coord(lane, i), documented<Atom>('A', lane, i), "A", lane, i);
    for (int i = 0; i < Atom::b_registers; ++i)
      expect_equal(Atom::b_coord(lane, i), documented<Atom>('B', lane, i), "B", lane, i);
    for (int i = 0; i < Atom::c_registers; ++i)
      expect_equal(Atom::c_coord(lane, i), documented<Atom>('C', lane, i), "C", lane, i);
  }
}

/// Coverage again, counted with vectors at run time.
template <class F>
bool each_once(int rows, int cols, int lanes, int registers, F coord) {
  std::vector<int> count(static_cast<std::size_t>(rows * cols), 0);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < registers; ++i) {
      const Coord c = coord(lane, i);
      if (c.row < 0 || c.row >= rows || c.col < 0 || c.col >= cols) return false;
      ++count[static_cast<std::size_t>(c.row * cols + c.col)];
    }
  }
  for (const int n : count) {
    if (n != 1) return false;
  }
  return true;
}

TYPED_TEST(AtomLayout, EveryElementIsHeldOnce) {
  using Atom = TypeParam;
  static_assert(is_bijection<Atom>(), "the atom's own proof");
  EXPECT_TRUE(each_once(Atom::m, Atom::k, Atom::lanes, Atom::a_registers, &Atom::a_coord));
  EXPECT_TRUE(each_once(Atom::k, Atom::n, Atom::lanes, Atom::b_registers, &Atom::b_coord));
  EXPECT_TRUE(each_once(Atom::m, Atom::n, Atom::lanes, Atom::c_registers, &Atom::c_coord));
}

/// An atom whose two lanes hold the same element, and one with an element out of range: the proof must refuse them.
struct RepeatedElement : Sm80_M8N8K4_F64 {
  static constexpr Coord a_coord(int lane, int i) { return Sm80_M8N8K4_F64::a_coord(lane == 3 ? 2 : lane, i); }
};
struct OutOfRange : Sm80_M8N8K4_F64 {
  static constexpr Coord c_coord(int lane, int i) { return {lane / 4 + 1, 2 * (lane % 4) + i}; }
};
struct OneRegisterTooFew : Sm80_M8N8K4_F64 {
  static constexpr int c_registers = 1;
};
static_assert(!is_bijection<RepeatedElement>() && !is_bijection<OutOfRange>() && !is_bijection<OneRegisterTooFew>(),
              "the proof can fail");

TYPED_TEST(AtomLayout, ShapeFollowsItsName) {
  using Atom = TypeParam;
  const std::string name = Atom::name;
  EXPECT_NE(
      name.find("_M" + std::to_string(Atom::m) + "N" + std::to_string(Atom::n) + "K" + std::to_string(Atom::k) + "_"),
      std::string::npos);
  EXPECT_EQ(name.find("TF32") != std::string::npos, Atom::rounding != OperandRounding::None);
  EXPECT_EQ(name.find("Cut") != std::string::npos, Atom::rounding == OperandRounding::Tf32Cut);
  EXPECT_EQ((std::is_same_v<typename Atom::Operand, bhalf_t>), name.find("BF16") != std::string::npos);
  EXPECT_EQ((std::is_same_v<typename Atom::Operand, half_t>), name.find("_F16") != std::string::npos);
  EXPECT_EQ((std::is_same_v<typename Atom::Accumulator, double>), name.find("F64") != std::string::npos);
  EXPECT_EQ(Atom::lanes, name.substr(0, 2) == "Sm" ? 32 : 64);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
