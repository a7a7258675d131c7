// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPMV_ARGS_HPP
#define TESSERA_INTERFACE_SPMV_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"

/// \file
/// What crosses from the Kokkos side to a backend for y := alpha A x + beta y: plain structs of pointers and sizes.

namespace Tessera {

/// The row classes of DASP [Lu & Liu, SC'23, section 3], in the order in which a launch handles them. A medium class
/// is named by the row-blocks one wave takes at once.
enum DaspClass : int {
  DaspLong,     // more than max_medium_length entries, cut into pieces of whole steps
  DaspMedium1,  // one row-block per wave
  DaspMedium2,  // two
  DaspMedium4,  // four
  DaspPairs13,  // a row of 1 and a row of 3 share four slots
  DaspPairs22,  // two rows of 2 share four slots
  DaspThree,    // rows of 3, padded to four slots
  DaspFour,     // rows of 4
  DaspSingle,   // rows of 1 that found no partner
  DaspEmpty,    // rows without entries: y = beta y
  DaspClasses   // number of classes
};

/// Shape of the tiles one matrix instruction eats, and where each of their slots lies. A *tile* is `rows` x `depth`
/// slots, one operand fragment of the wave; a *step* is four tiles, stored so that a lane reads its slots of all four
/// in 16-byte words. Tile b's column indices (and so the x gathered through them) are rotated by `rotation` * b rows
/// against its values: the four useful diagonals then land in different lanes, and every lane ends with exactly one
/// row's result. Filled from the atom by dasp_geometry<Atom>().
struct DaspGeometry {
  static constexpr int tiles = 4;
  static constexpr int max_slots = 256;

  int lanes = 0;
  int rows = 0;      ///< rows of a tile
  int depth = 0;     ///< slots of a row in a tile
  int elements = 0;  ///< slots of a lane in a tile
  int value_bytes = 0;
  int slices = 0;                         ///< groups of four slots in a tile's row: short rows share a tile's row
  const char* atom = "";                  ///< name of the instruction
  std::uint16_t value_slot[max_slots]{};  ///< [row * depth + k] -> lane * elements + e
  std::uint16_t index_slot[tiles][max_slots]{};
  std::uint8_t result_lane[tiles][16]{};  ///< [tile][row] -> lane that ends with the row's result
};

/// What one wave takes of the long or medium rows; sixteen bytes, one load.
struct alignas(16) DaspBlock {
  std::uint32_t first_step;
  std::uint32_t irregular_low;  ///< first irregular entry, low 32 bits
  std::uint32_t packed;         ///< steps : 12 | irregular entries (long) : 12 | irregular entry, high bits : 8
  std::int32_t row;             ///< medium: first row if the block's rows are consecutive, else -1; long: which row
};

/// y := alpha A x + beta y in the DASP format.
struct SpmvDaspArgs {
  Precision precision = Precision::FP64;
  // The matrix. Steps hold the regular slots of all classes; column -1 marks padding.
  const void* values = nullptr;
  const std::int32_t* columns = nullptr;
  const void* irregular_values = nullptr;
  const std::int32_t* irregular_columns = nullptr;
  const DaspBlock* blocks = nullptr;            ///< long pieces, then the medium classes
  const std::uint8_t* remainder = nullptr;      ///< irregular entries of each medium row
  const std::int32_t* row_order = nullptr;      ///< position -> row, longest class first
  const std::int32_t* runs = nullptr;           ///< two a short step: first row if consecutive, else -1
  const std::uint32_t* long_pieces = nullptr;   ///< first piece of each long row, and one past the end
  std::uint32_t first_wave[DaspClasses + 1]{};  ///< waves of class c: [first_wave[c], first_wave[c+1])
  std::uint32_t first_position[DaspClasses]{};  ///< of the class in row_order (pairs 1&3: of the rows of 3)
  std::uint32_t row_count[DaspClasses]{};       ///< rows (pairs 1&3: pairs)
  std::uint32_t first_step[DaspClasses]{};      ///< short classes
  std::uint32_t first_block[DaspClasses]{};     ///< medium classes
  std::uint32_t pair_ones_position = 0;         ///< of the rows of 1 in pairs 1&3
  std::uint32_t short_steps_per_wave = 1;
  std::uint64_t first_single = 0;  ///< of the single entries among the irregular ones
  bool streaming = true;           ///< load the matrix past the first-level cache
  // Scratch for rows of several pieces: one sum per piece, one counter per long row (zero between applies).
  void* partials = nullptr;
  std::uint32_t* arrivals = nullptr;
  // The vectors.
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t x_stride = 1, y_stride = 1;
  ElementType y_type = ElementType::Double;
  double alpha = 1, beta = 0;
};

}  // namespace Tessera

#endif
