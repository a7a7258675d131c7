// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPMM_ARGS_HPP
#define TESSERA_INTERFACE_SPMM_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// What crosses from the Kokkos side to a backend for C := alpha A B + beta C.

namespace Tessera {

/// The dense operands. Rows are contiguous; row i starts at element i * ld. Every row of B starts at a multiple of 16
/// bytes, and what lies between its end and the next multiple of 16 bytes may be read (it enters no sum). C may have
/// any alignment.
struct SpmmDense {
  const void* b = nullptr;
  void* c = nullptr;
  std::int64_t ldb = 0, ldc = 0;
  std::int64_t columns = 0;  ///< N, of B and C
  ElementType c_type = ElementType::Double;
  double alpha = 1, beta = 0;
  std::int64_t lower = 0;  ///< of a compact copy of B (CompactB), else unused
  bool plain = false;      ///< whether rows are stored in whole words, and C is not read: set by the backend
  bool passing = false;    ///< whether C is to leave the last cache first, so that B stays: set by the backend
};

/// A part: what one wave takes of a window that was split, blocks [first_block, first_block + blocks) of it. Windows
/// with no more blocks than the bound have one part and no partial sums.
struct alignas(16) SpmmPart {
  std::int32_t window;
  /// Panels: counted over the whole matrix. ME-BCRS, whose windows need not begin at whole blocks: counted inside the
  /// window, so that the part's column vectors begin at row_pointers[window] + first_block * depth.
  std::uint32_t first_block;
  std::int32_t blocks;
  std::int32_t partial;  ///< which partial sums it writes, or -1: it writes C itself
};

/// A window of several parts, or a row of several pieces, which is a window of one: partial sums [first, first + count)
/// make its rows, added in a fixed order.
struct SpmmSplit {
  std::int32_t window, first, count;
};

/// What both window formats share: parts, and scratch for the sums of split windows.
struct SpmmParts {
  const SpmmPart* parts = nullptr;    ///< null: window w is one part, its blocks are those of the format
  std::int64_t part_count = 0;        ///< = windows if parts is null
  std::int64_t windows_per_part = 1;  ///< panels without parts: neighbouring windows that a wave takes; by the backend
  const SpmmSplit* splits = nullptr;
  std::int64_t split_count = 0;
  void* partials = nullptr;     ///< [partial][row of the window][column], sums' type, leading dimension partial_ld
  std::int64_t partial_ld = 0;  ///< a multiple of 4
};

/// ME-BCRS (and padded SR-BCRS) [Shi et al., PPoPP'25, section 4.4]: windows of vector_length rows; the nonzero column
/// vectors of window w are row_pointers[w] .. row_pointers[w+1]; blocks of `depth` column vectors, each vector_length x
/// width row-major, width = depth but for the last block of a window (stored unpadded); block j of window w starts at
/// value (row_pointers[w] + j * depth) * vector_length.
struct SpmmFlashArgs {
  Precision precision = Precision::FP16;
  int vector_length = 8;  ///< 8, or 16 for the paper's comparison
  int depth = 8;          ///< column vectors of a block: the instruction's k
  bool coalesced = true;  ///< lane group g reads columns 2g and 2g + 1 of B in one load, else g and g + 8 in two
  std::int64_t rows = 0, windows = 0;
  const std::int32_t* row_order = nullptr;       ///< row of A and C at each place in the windows; null: the same
  const std::int32_t* row_pointers = nullptr;    ///< windows + 1
  const std::int32_t* column_indices = nullptr;  ///< of each column vector; -1: padding of SR-BCRS
  const void* values = nullptr;
  SpmmParts split;
  SpmmDense dense;
};

/// How the blocks of panels are laid out for one instruction: `rows` x `depth` slots, their bits and values row by row.
/// A block has a *packet* of whole 16 bytes: its columns (-1: padding), the bitmap of the slots that hold an entry (bit
/// row * depth + k of it in word / 32), a byte per row: how many entries of the block stand before it, then where its
/// values begin, and how many there are. Values of a block begin at a multiple of 16 bytes.
struct PanelGeometry {
  int rows = 0;         ///< of a window
  int depth = 0;        ///< columns of a block: 8, 16 or 32
  int value_bytes = 0;  ///< of a stored value
  const char* atom = "";
  /// Where instructions multiply in parts (SplitUnit): the columns of a block that the first one sums, a bit each, and
  /// how far behind them those of the next one stand. 0: they do not.
  std::uint32_t part_columns = 0;
  int part_step = 0;

  TESSERA_FUNCTION constexpr int bitmap_at() const { return depth; }
  TESSERA_FUNCTION constexpr int bitmap_words() const { return rows * depth / 32; }
  TESSERA_FUNCTION constexpr int prefix_at() const { return bitmap_at() + bitmap_words(); }
  TESSERA_FUNCTION constexpr int begin_at() const { return (prefix_at() + rows / 4 + 1) / 2 * 2; }
  TESSERA_FUNCTION constexpr int count_at() const { return begin_at() + 1; }
  /// 32-bit words of a packet.
  TESSERA_FUNCTION constexpr int packet_words() const { return (count_at() + 1 + 3) / 4 * 4; }
  /// Values of a block are stored as so many, the last ones of them unused.
  TESSERA_FUNCTION constexpr std::uint32_t stored_values(std::uint32_t entries) const {
    const auto unit = static_cast<std::uint32_t>(16 / value_bytes);
    return (entries + unit - 1) / unit * unit;
  }
};

/// Panels: windows of geometry.rows rows; the distinct columns of window w, ascending, fill blocks block_ptr[w] ..
/// block_ptr[w+1] of `depth` columns, the last one padded with column -1.
struct SpmmPanelArgs {
  Precision precision = Precision::FP16;
  int depth = 0;  ///< of the geometry
  std::int64_t rows = 0, windows = 0, blocks = 0;
  /// Row of A and C at each place in the windows, -1: none, nothing is stored for it; null: the same.
  const std::int32_t* row_order = nullptr;
  const std::uint32_t* block_ptr = nullptr;  ///< windows + 1
  const std::uint32_t* packets = nullptr;    ///< [block][packet_words]
  const void* values = nullptr;
  SpmmParts split;
  SpmmDense dense;
};

/// A row, or a piece of a long one; sixteen bytes, one load.
struct alignas(16) SpmmRowPiece {
  static constexpr int length_bits = 24;
  static constexpr std::int64_t most_entries = (std::int64_t{1} << length_bits) - 1;
  std::uint64_t packed;  ///< first entry, and in the low bits the number of entries
  std::int32_t row;
  std::int32_t partial;  ///< which partial sums it writes, or -1: it is the whole row
};

/// Items of rows that are spread over teams (SpreadRowsKernel): the table's are sorted by class, those of the last one
/// first. Class c: at most 2^c entries; the last class: pieces of rows that were cut, whose `row` is the place of the
/// row in `splits`.
struct SpmmSpread {
  static constexpr int classes = 13;
  static constexpr int log2_team = 3;  ///< of a team's lanes, at most: each has a word of a row of B
  /// Of columns, of which a lane has `word`.
  static constexpr std::int64_t tiles(std::int64_t columns, int word) {
    const std::int64_t tile = std::int64_t{word} << log2_team;
    return (columns + tile - 1) / tile;
  }
  std::int32_t counts[classes] = {};
  std::int32_t log2_piece = 0;  ///< of the entries that a piece has, rounded up
};

/// Compressed rows. TF32: floats, and B may be rounded.
struct GeSpmmArgs {
  Precision precision = Precision::FP32;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  const void* row_map = nullptr;  ///< rows + 1 offsets
  int offset_bytes = 8;           ///< 4 or 8; signed or not: none is negative
  const std::int32_t* columns = nullptr;
  const void* values = nullptr;
  const SpmmRowPiece* table = nullptr;            ///< null: piece p is row p
  std::int64_t count = 0;                         ///< of pieces
  const SpmmSplit* splits = nullptr;              ///< rows of several pieces
  std::int64_t split_count = 0, most_pieces = 0;  ///< split rows, and the most pieces that one has
  void* partials = nullptr;                       ///< [partial][column], sums' type
  std::int64_t partial_ld = 0;                    ///< a multiple of 4
  std::int64_t cache_bytes = 0;                   ///< of the last cache; 0: unknown
  std::int64_t reach = 0;    ///< rows of B from the first to the last that a row of A uses, mean; 0: unknown
  bool local = false;        ///< whether neighbouring rows of A share columns
  std::int64_t longest = 0;  ///< entries of a row; 0: unknown
  void* compact = nullptr;   ///< TF32: room for B at 20 bits per element (CompactB), aligned to 16; null: B as it is
  int word_bytes = 16;       ///< in which rows of B can be read: 16, 8 or an element
  bool in_columns = false;   ///< whether columns of B and C are contiguous, and ldb, ldc lie between them
  bool near = false;         ///< in columns: whether what neighbouring rows use of four stays in a first-level cache
  int shift = 0;             ///< log2 of the lanes of a team: set by the backend
  int log2_teams = 0;        ///< of those that share an item, where rows of B are read in narrow words: likewise
  const SpmmSpread* spread = nullptr;  ///< on the host, until the launch: how the table is sorted; null: it is not
  std::uint32_t* arrivals = nullptr;   ///< [split row][tile of columns], zero between applies; null: there are none
  std::int64_t arrival_tiles = 0;      ///< for so many tiles of columns there are counters
  SpmmDense dense;
};

}  // namespace Tessera

#endif
