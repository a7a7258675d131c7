// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_DASP_TILE_HPP
#define TESSERA_KERNELS_SPMV_DASP_TILE_HPP

#include "backends/interface/Tessera_SpmvArgs.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"

/// \file
/// How DASP uses an atom. A tile is min(m,n) rows by k slots: row r of A holds matrix row r, column c of B holds the
/// x entries of one matrix row, and only the accumulator entries where the two belong together are wanted. In the paper
/// that is the diagonal, which leaves a quarter of the lanes with two results each and the others with none. Here the
/// columns of tile b are rotated by `rotation * b`, so that the wanted entries of four tiles lie in different lanes,
/// one each, and need no shuffles.

namespace Tessera {

template <class Atom>
struct DaspTile {
  static constexpr int tiles = DaspGeometry::tiles;
  static constexpr int lanes = Atom::lanes;
  static constexpr int rows = Atom::m < Atom::n ? Atom::m : Atom::n;
  static constexpr int depth = Atom::k;
  static constexpr int elements = rows * depth / lanes;
  static constexpr int slices = depth / 4;
  static constexpr int rotation = Atom::layout == AccumulatorLayout::NvidiaPairs      ? 2
                                  : Atom::layout == AccumulatorLayout::AmdInterleaved ? 1
                                                                                      : 4;
  /// Registers of the accumulator that can hold a result.
  static constexpr int result_registers = Atom::layout == AccumulatorLayout::NvidiaPairs ? 2 : 4;

  /// The e-th register of A that lies in the first `rows` rows; the others stay zero.
  TESSERA_FUNCTION static constexpr int a_register(int e) {
    int found = 0;
    for (int i = 0; i < Atom::a_registers; ++i) {
      if (Atom::a_coord(0, i).row < rows && found++ == e) return i;
    }
    return -1;
  }

  /// Which row, of which tile, ends in this lane, and in which accumulator register.
  TESSERA_FUNCTION static constexpr int result_row(int lane) {
    if constexpr (Atom::layout == AccumulatorLayout::NvidiaPairs) return lane / 4;
    if constexpr (Atom::layout == AccumulatorLayout::AmdInterleaved) {
      return 4 * (((lane % 16 - lane / 16) & 15) / 4) + lane / 16;
    }
    return 4 * (lane / 16) + lane % 4;
  }
  TESSERA_FUNCTION static constexpr int result_tile(int lane) {
    if constexpr (Atom::layout == AccumulatorLayout::NvidiaPairs) return (lane % 4 - lane / 8) & 3;
    if constexpr (Atom::layout == AccumulatorLayout::AmdInterleaved) return (lane % 16 - lane / 16) & 3;
    return ((lane % 16) / 4 - lane / 16) & 3;
  }
  TESSERA_FUNCTION static constexpr int result_register(int lane) {
    if constexpr (Atom::layout == AccumulatorLayout::NvidiaPairs) return (lane / 4) & 1;
    if constexpr (Atom::layout == AccumulatorLayout::AmdInterleaved) return ((lane % 16 - lane / 16) & 15) / 4;
    return lane % 4;
  }
  TESSERA_FUNCTION static constexpr int result_lane(int row, int tile) {
    if constexpr (Atom::layout == AccumulatorLayout::NvidiaPairs) return 4 * row + ((row / 2 + tile) & 3);
    if constexpr (Atom::layout == AccumulatorLayout::AmdInterleaved) return 16 * (row % 4) + ((row + tile) & 15);
    return 16 * (row / 4) + ((row + 4 * tile) & 15);
  }

  /// The closed forms above against the atom's own maps.
  static constexpr bool is_consistent() {
    if (rows * depth > DaspGeometry::max_slots || rows * depth != elements * lanes || lanes != tiles * rows)
      return false;
    for (int lane = 0; lane < lanes; ++lane) {
      int in_tile = 0;
      for (int i = 0; i < Atom::a_registers; ++i) in_tile += Atom::a_coord(lane, i).row < rows;
      if (in_tile != elements || Atom::b_registers != elements) return false;
      for (int e = 0; e < elements; ++e) {
        // The lane that holds slot (row, k) of A holds entry (k, row) of an unrotated B.
        const Coord a = Atom::a_coord(lane, a_register(e)), b = Atom::b_coord(lane, e);
        if (a.row >= rows || a.row != b.col || a.col != b.row) return false;
      }
      const int row = result_row(lane), tile = result_tile(lane), i = result_register(lane);
      const Coord c = Atom::c_coord(lane, i);
      if (i >= result_registers || c.row != row || c.col != (row + rotation * tile) % rows) return false;
      if (result_lane(row, tile) != lane) return false;
    }
    return true;
  }
  static_assert(rows * depth == elements * lanes, "a tile fills the lanes evenly");
};

static_assert(DaspTile<Sm80_M8N8K4_F64>::is_consistent(), "");
static_assert(DaspTile<Sm80_M16N8K8_F32_F16>::is_consistent(), "");
static_assert(DaspTile<Sm80_M16N8K8_F32_BF16>::is_consistent(), "");
static_assert(DaspTile<Sm80_M16N8K16_F32_F16>::is_consistent(), "");
static_assert(DaspTile<Gfx90a_M16N16K4_F64>::is_consistent(), "");
static_assert(DaspTile<Gfx90a_M16N16K16_F32_F16>::is_consistent(), "");
static_assert(DaspTile<Gfx90a_M16N16K16_F32_BF16>::is_consistent(), "");

/// The facts a format builder needs, as data.
template <class Atom>
DaspGeometry dasp_geometry() {
  using Tile = DaspTile<Atom>;
  DaspGeometry g;
  g.lanes = Tile::lanes;
  g.rows = Tile::rows;
  g.depth = Tile::depth;
  g.elements = Tile::elements;
  g.value_bytes = static_cast<int>(sizeof(typename Atom::Operand));
  g.slices = Tile::slices;
  g.atom = Atom::name;
  for (int lane = 0; lane < Tile::lanes; ++lane) {
    for (int e = 0; e < Tile::elements; ++e) {
      const auto slot = static_cast<std::uint16_t>(lane * Tile::elements + e);
      const Coord a = Atom::a_coord(lane, Tile::a_register(e)), b = Atom::b_coord(lane, e);
      g.value_slot[a.row * Tile::depth + a.col] = slot;
      for (int tile = 0; tile < Tile::tiles; ++tile) {
        const int row = (b.col + Tile::rows * Tile::rotation - Tile::rotation * tile) % Tile::rows;
        g.index_slot[tile][row * Tile::depth + b.row] = slot;
      }
    }
  }
  for (int tile = 0; tile < Tile::tiles; ++tile) {
    for (int row = 0; row < Tile::rows; ++row) {
      g.result_lane[tile][row] = static_cast<std::uint8_t>(Tile::result_lane(row, tile));
    }
  }
  return g;
}

}  // namespace Tessera

#endif
