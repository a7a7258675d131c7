// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_CELLS_ARGS_HPP
#define TESSERA_INTERFACE_CELLS_ARGS_HPP

#include <cstddef>
#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// Packed slices in cells. A *cell* is what a row block has in a column block; a thread block has the sums of a row
/// block and x of one column block after the other in shared memory. A *piece* is what a row has in a cell. A slice has
/// 64 slots per step; a piece takes the fewest (1, 2, 4 ... 64) with which it is no longer than max_steps, so that no
/// wave has a slice which takes much longer than those of others. Pieces are sorted by slots and length, and those with
/// the same number of slots fill slices, each as long as its longest piece; slices of one length follow each other, a
/// *run*, so that where a slice lies follows from its number and no record is read.
///
/// A slice lies at a multiple of 16 bytes: 64 places (16 bits: which sum of the row block), then for each step 64
/// columns (16 bits, from the column block's first), then for each step 64 values; entries of a piece go through its
/// slots first. What is no entry has the column behind the last, at which x is zero, and the value zero; pieces that
/// are none add their zeros to one place behind the others, lanes at the same time, which nobody reads.

namespace Tessera {

struct CellsLayout {
  static constexpr int slots = 64;                           ///< of a slice, per step
  static constexpr int widths = 7;                           ///< numbers of slots that a piece may take: 1, 2 ... 64
  static constexpr int max_steps = 16;                       ///< of a slice; even
  static constexpr int longest = max_steps * slots;          ///< piece; longer ones are cut
  static constexpr int keys = (widths + 1) * max_steps / 2;  ///< of pieces: see key_of
  static constexpr int runs = keys + 1;                      ///< room for those of a cell, the end included
  static constexpr int runs_bytes = 2 * runs * 8;            ///< of a thread block: this cell's, and the next one's
  static constexpr int row_group = 32;                       ///< consecutive rows that a row block has together
  static constexpr int unit = 16;                            ///< bytes
  static constexpr std::uint32_t none = ~0u;                 ///< no row group
  static constexpr std::uint32_t no_run = 0xffffff00u;       ///< behind the last run: no slice is that far

  TESSERA_INLINED_FUNCTION static constexpr std::uint32_t slice_units(int steps, int value_bytes) {
    return static_cast<std::uint32_t>(slots * (2 + steps * (2 + value_bytes)) / unit);
  }
  /// Shared memory of a thread block: sums, x of a column block with a zero behind it at a unit of its own, and runs.
  TESSERA_INLINED_FUNCTION static constexpr std::size_t shared_bytes(std::size_t sums, std::size_t block_columns,
                                                                     std::size_t value_bytes) {
    return sums * (value_bytes == 8 ? 8 : 4) + block_columns * value_bytes + unit + runs_bytes;
  }
  /// Of a run: it ends before slice `end`; its slices have `steps` steps, their pieces 2^log slots.
  TESSERA_INLINED_FUNCTION static constexpr std::uint32_t run(std::uint32_t end, int log, int steps) {
    return end << 8 | static_cast<std::uint32_t>(log << 5 | steps);
  }
  TESSERA_INLINED_FUNCTION static constexpr std::uint32_t end_of(std::uint32_t run) { return run >> 8; }
  TESSERA_INLINED_FUNCTION static constexpr int log_of(std::uint32_t run) { return static_cast<int>(run >> 5 & 7u); }
  TESSERA_INLINED_FUNCTION static constexpr int steps_of(std::uint32_t run) { return static_cast<int>(run & 31u); }

  /// log2 of the slots of a piece of so many entries.
  TESSERA_INLINED_FUNCTION static constexpr int log_slots(int length) {
    int log = 0;
    while ((length - 1) >> log >= max_steps) ++log;
    return log;
  }
  TESSERA_INLINED_FUNCTION static constexpr int steps_of(int length, int log) {
    return (length + (1 << log) - 1) >> log;
  }
  /// Pieces are sorted by ascending keys: those of most slots first, then the longest. Only pieces of one slot have
  /// half of max_steps or less. No entries: the last key, which is none of a piece.
  TESSERA_INLINED_FUNCTION static constexpr int key_of(int length) {
    if (length <= 0) return keys;
    const int log = log_slots(length);
    return first_key(log) + max_steps - steps_of(length, log);
  }
  TESSERA_INLINED_FUNCTION static constexpr int first_key(int log) { return (widths - 1 - log) * (max_steps / 2); }
  TESSERA_INLINED_FUNCTION static constexpr int log_of_key(int key) {
    const int before = key / (max_steps / 2);
    return before < widths ? widths - 1 - before : 0;
  }
  TESSERA_INLINED_FUNCTION static constexpr int steps_of_key(int key) {
    return max_steps - (key - first_key(log_of_key(key)));
  }
};

/// Slices of one length and one number of slots.
struct alignas(8) CellsRun {
  std::uint32_t word;  ///< CellsLayout::run, or no_run
  std::uint32_t unit;  ///< where its first slice lies, from the cell's first
};
static_assert(CellsLayout::runs_bytes == 2 * CellsLayout::runs * sizeof(CellsRun));

/// A row whose pieces are cut: its sum is that of place `place` and of `count` places from `first` on.
struct CellsCut {
  std::uint32_t place, first, count;
};

/// y := alpha A x + beta y from packed slices in cells. Two launches where there is more than one share of the columns.
struct SpmvCellsArgs {
  Precision precision = Precision::FP64;
  const unsigned char* packets = nullptr;
  const CellsRun* runs = nullptr;              ///< [row block][column block][CellsLayout::runs], then no_run
  const std::uint32_t* units = nullptr;        ///< [row block][column block]: where the first slice lies
  const std::uint32_t* row_groups = nullptr;   ///< [row block][groups]: which 32 rows, or none
  const CellsCut* cuts = nullptr;              ///< [row block][most_cuts]
  const std::uint32_t* cut_counts = nullptr;   ///< [row block]
  const std::uint32_t* share_first = nullptr;  ///< first column block of each share, and the end
  std::uint32_t row_blocks = 0, column_blocks = 0, shares = 0;
  std::uint32_t groups = 0, most_cuts = 0;  ///< of a row block
  std::uint32_t sums = 0;                   ///< of a row block, cut rows' and one for padding included
  std::uint32_t block_columns = 0;          ///< of every column block but the last; a multiple of 64
  std::int64_t rows = 0, cols = 0;
  void* partials = nullptr;  ///< [share][row]
  // The vectors.
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t x_stride = 1, y_stride = 1;
  ElementType y_type = ElementType::Double;
  double alpha = 1, beta = 0;
};

}  // namespace Tessera

#endif
