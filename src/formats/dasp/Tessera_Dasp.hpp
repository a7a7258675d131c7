// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_DASP_DASP_HPP
#define TESSERA_FORMATS_DASP_DASP_HPP

#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_SpmvArgs.hpp"

/// \file
/// The DASP format [Lu & Liu, "DASP: Specific Dense Matrix Multiply-Accumulate Units Accelerated General Sparse
/// Matrix-Vector Multiplication", SC'23, section 3] as plain Views.

namespace Tessera {
namespace Experimental {

/// Rows fall into classes by their number of entries L:
/// - long (L > max_medium_length): cut into pieces of whole steps, what is left of the row follows as irregular
/// entries;
/// - medium (5 <= L <= max_medium_length): sorted by length, row-blocks of `rows` rows; steps are taken while at least
///   `threshold` of their slots are real, the rest of each row is irregular; one, two or four row-blocks make the set
///   of a wave, so that all waves have about the same work;
/// - short: 1&3 and 2&2 pairs share four slots, rows of 3 (padded) and 4 fill them; single rows of 1; empty rows.
///
/// A step is four tiles (operand fragments) of the matrix unit; see DaspGeometry for the place of each slot.
///
/// `positions` number the rows in the order longest class first; row_order maps them back to the user's rows.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct Dasp {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Storage = std::shared_ptr<void>;

  // Two allocations own everything: device allocations are slow, and a plan's set-up should not wait for twenty.
  Storage structure_storage, slot_storage;

  DaspGeometry geometry;
  Precision precision = Precision::FP64;

  // What the kernel reads.
  View<std::uint64_t> values, irregular_values;  ///< raw storage of the precision's values, 8-byte units
  View<std::int32_t> columns, irregular_columns;
  View<DaspBlock> blocks;
  View<std::uint8_t> remainder;
  View<std::int32_t> row_order, runs;
  View<std::uint32_t> long_pieces;

  View<std::uint16_t> value_at, column_at;  ///< of the conversion: place of each slot in a step
  View<std::uint64_t> fill_data;            // of the conversion: an Impl::DaspFillData

  // What update_values reads: first CSR entry and length of the row at each position (empty if not updatable).
  View<std::int64_t> row_begin;
  View<std::int32_t> row_length;

  // Sizes.
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t class_rows[DaspClasses] = {};  ///< rows of each class (pairs 1&3: both rows counted)
  std::int64_t class_nnz[DaspClasses] = {};   ///< their entries; the medium classes' sum stands in DaspMedium4
  std::int64_t steps = 0, irregular = 0, block_count = 0, long_blocks = 0, max_length = 0;
  std::uint32_t first_wave[DaspClasses + 1] = {};
  std::uint32_t first_position[DaspClasses] = {};
  std::uint32_t kernel_rows[DaspClasses] = {};  ///< rows as the kernel counts them (pairs 1&3: pairs)
  std::uint32_t first_step[DaspClasses] = {};
  std::uint32_t first_block[DaspClasses] = {};
  std::int64_t medium_sets[3] = {};  ///< of one, two and four row-blocks
  std::uint32_t pair_ones_position = 0, short_steps_per_wave = 1;
  std::uint64_t first_single = 0;
  int steps_per_piece = 0;
  bool global_sort = false;

  std::int64_t slots_per_step() const { return std::int64_t{DaspGeometry::tiles} * geometry.rows * geometry.depth; }
  /// Slots stored, padding included.
  std::int64_t stored() const { return steps * slots_per_step() + irregular; }
  std::size_t format_bytes() const {
    return 8 * (values.extent(0) + irregular_values.extent(0)) +
           4 * (columns.extent(0) + irregular_columns.extent(0) + row_order.extent(0) + runs.extent(0) +
                long_pieces.extent(0)) +
           sizeof(DaspBlock) * blocks.extent(0) + remainder.extent(0);
  }
  std::size_t map_bytes() const { return 8 * row_begin.extent(0) + 4 * row_length.extent(0); }
  /// One sum per piece and one counter per long row, only if some row has several pieces.
  std::size_t partial_bytes() const { return 8 * static_cast<std::size_t>(long_blocks); }
  std::size_t workspace_bytes() const {
    const auto long_rows = static_cast<std::size_t>(class_rows[DaspLong]);
    return static_cast<std::size_t>(long_blocks) > long_rows ? partial_bytes() + 4 * long_rows : 0;
  }

  /// The kernel's arguments, vectors and scratch left open.
  SpmvDaspArgs arguments() const {
    SpmvDaspArgs a;
    a.precision = precision;
    a.values = values.data();
    a.columns = columns.data();
    a.irregular_values = irregular_values.data();
    a.irregular_columns = irregular_columns.data();
    a.blocks = blocks.data();
    a.remainder = remainder.data();
    a.row_order = row_order.data();
    a.runs = runs.data();
    a.long_pieces = long_pieces.data();
    for (int c = 0; c < DaspClasses; ++c) {
      a.first_wave[c] = first_wave[c];
      a.first_position[c] = first_position[c];
      a.row_count[c] = kernel_rows[c];
      a.first_step[c] = first_step[c];
      a.first_block[c] = first_block[c];
    }
    a.first_wave[DaspClasses] = first_wave[DaspClasses];
    a.pair_ones_position = pair_ones_position;
    a.short_steps_per_wave = short_steps_per_wave;
    a.first_single = first_single;
    return a;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
