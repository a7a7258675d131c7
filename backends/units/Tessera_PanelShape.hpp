// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_PANEL_SHAPE_HPP
#define TESSERA_UNITS_PANEL_SHAPE_HPP

#include "backends/units/Tessera_Atom.hpp"

namespace Tessera {

/// What of an instruction's layout panels use. Steps: instructions over the depth of a block.
template <class Atom_, int Steps>
struct PanelShape {
  using Atom = Atom_;
  using Operand = typename Atom::Operand;
  using Sum = typename Atom::Accumulator;
  static constexpr int rows = Atom::n;           ///< of a window
  static constexpr int depth = Atom::k * Steps;  ///< columns of a block
  static constexpr int steps = Steps;
  static constexpr int slots = rows * depth / Atom::lanes;  ///< of a lane in a block
  static constexpr int per_step = Atom::b_registers;        ///< of these, used by one instruction
  /// First column of the lanes that come next in a row.
  static constexpr int stride = Atom::b_coord(Atom::lanes == 32 ? 1 : Atom::n, 0).row;
  static constexpr int groups = Atom::m >= 16 && Atom::lanes == 32 ? 8 : Atom::m;  ///< lanes along the columns of B
  static constexpr int halves = Atom::m / groups;  ///< columns of B that a lane holds in an instruction
  static constexpr int width = 16 / static_cast<int>(sizeof(Operand));  ///< columns of a sixteen-byte load
  static constexpr int quads = Atom::lanes / rows;                      ///< lanes that share a row of the window

  /// Row of the window, and first of the block's columns, of a lane's slots.
  TESSERA_FUNCTION static constexpr int row_of(int lane) { return Atom::b_coord(lane, 0).col; }
  TESSERA_FUNCTION static constexpr int quad_of(int lane) { return Atom::b_coord(lane, 0).row / stride; }
  TESSERA_FUNCTION static constexpr int slot_of(int lane) { return quad_of(lane) * slots; }
  TESSERA_FUNCTION static constexpr int group_of(int lane) { return Atom::a_coord(lane, 0).row % groups; }

  /// The registers of a lane's left operand in terms of its own slots and columns; the same for all lanes.
  TESSERA_FUNCTION static constexpr int a_slot(int i) {
    for (int j = 0; j < per_step; ++j) {
      if (Atom::b_coord(0, j).row == Atom::a_coord(0, i).col) return j;
    }
    return -1;
  }
  TESSERA_FUNCTION static constexpr int a_half(int i) { return Atom::a_coord(0, i).row / groups; }

  /// Registers of the left operand that share a column of B and a 32-bit word.
  static constexpr int pairing = sizeof(Operand) == 2 ? 2 : 1;

  /// The register of C with the column `half` groups after, and the row of, register i (of the first half).
  TESSERA_FUNCTION static constexpr int c_register(int i, int half) {
    TESSERA_UNROLL
    for (int j = 0; j < Atom::c_registers; ++j) {
      if (Atom::c_coord(0, j).col == Atom::c_coord(0, i).col &&
          Atom::c_coord(0, j).row == Atom::c_coord(0, i).row + half * groups) {
        return j;
      }
    }
    return -1;
  }

  /// All lanes agree with lane 0 on the two maps above.
  static constexpr bool consistent() {
    TESSERA_UNROLL
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::a_registers; ++i) {
        const int j = a_slot(i);
        if (j < 0 || Atom::b_coord(lane, j).row != Atom::a_coord(lane, i).col) return false;
        if (Atom::a_coord(lane, i).row != group_of(lane) + a_half(i) * groups) return false;
        if (a_half(i) != a_half(i / pairing * pairing)) return false;
      }
      for (int j = 0; j < per_step; ++j) {
        if (Atom::b_coord(lane, j).col != row_of(lane)) return false;
      }
    }
    return true;
  }
};

}  // namespace Tessera

#endif
