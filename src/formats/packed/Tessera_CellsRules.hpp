// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_CELLS_RULES_HPP
#define TESSERA_FORMATS_PACKED_CELLS_RULES_HPP

#include <algorithm>
#include <cmath>

#include "formats/packed/Tessera_PackedCells.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"

/// \file
/// When packed slices are put into cells, and the shape of these (perf_test/notes/spmv-cells.md).

namespace Tessera {
namespace Impl {

/// Places of a row block are told apart by 16 bits, and so are the columns of a column block and the one behind them.
constexpr std::int64_t cells_most_places = 65535, cells_most_columns = 65472;
/// Set-up has tables of the column blocks of 32 rows in shared memory.
constexpr int cells_most_blocks = 224;
static_assert(CellsShape::setup_bytes(cells_most_blocks) <= CellsShape::most_setup_bytes, "a team has no room");

/// Where a device does not say: what all of capability 8.0 and above have.
constexpr std::size_t cells_least_shared = 99 << 10;

/// The shape with so many shares of the columns; no row blocks if none fits. @param blocks  column blocks at least
inline CellsShape cells_shape_of(const SpmvFeatures& f, const DeviceFacts& device, int value_bytes, int shares,
                                 std::int64_t blocks) {
  const int sum_bytes = value_bytes == 8 ? 8 : 4;
  const std::int64_t groups = (f.rows + CellsLayout::row_group - 1) / CellsLayout::row_group;
  const auto shared = static_cast<std::int64_t>(device.shared_bytes > 0 ? device.shared_bytes : cells_least_shared);
  const std::int64_t each = std::max<std::int64_t>(device.compute_units / shares, 1);
  CellsShape s;
  s.rows = f.rows;
  s.cols = f.cols;
  s.shares = shares;
  const std::int64_t widest = std::min(shared / value_bytes / 64 * 64, cells_most_columns);
  const std::int64_t fewest = std::max<std::int64_t>({blocks, shares, (f.cols + widest - 1) / widest});
  if (fewest > cells_most_blocks) return s;
  // As many thread blocks as multiprocessors, or twice, three times as many where the sums would not fit.
  for (std::int64_t times = 1; times * each < 2 * groups + each; ++times) {
    const std::int64_t row_blocks = std::min(times * each, groups);
    s.groups = static_cast<int>(std::min<std::int64_t>((groups + row_blocks - 1) / row_blocks, 1 << 16));
    s.cuts = static_cast<int>(std::min<std::int64_t>(f.nnz / (row_blocks * CellsLayout::longest) * 4 + 64, 2048));
    const std::int64_t sums = std::int64_t{s.sums()} * sum_bytes;
    if (s.places() > cells_most_places || sums > shared * 3 / 5) continue;
    for (std::int64_t least = fewest;; ++least) {
      const std::int64_t left = shared - sums - 16 - std::int64_t{CellsLayout::runs_bytes};
      const std::int64_t room = std::min(left / value_bytes / 64 * 64, cells_most_columns);
      if (room < 64) break;
      s.block_columns = ((f.cols + least - 1) / least + 63) / 64 * 64;
      if (s.block_columns > room) continue;
      s.column_blocks = static_cast<int>((f.cols + s.block_columns - 1) / s.block_columns);
      if (s.column_blocks > cells_most_blocks) break;  // fewer with fewer sums
      s.shares = std::min(s.shares, s.column_blocks);
      s.row_blocks = static_cast<int>(row_blocks);
      return s;
    }
  }
  return s;
}

/// What an apply takes, in microseconds, on an H200 (notes).
struct CellsCost {
  static constexpr double launches = 2.5;
  static constexpr double sums = 1.5e6;    ///< bytes of the sums of several shares, written and read
  static constexpr double table = 7.3e-6;  ///< per byte of x and cell of a thread block
  double stream;                           ///< bytes of the matrix
  /// A thread block's cell: x's latency and waves that wait for each other, longer where rows are uneven.
  double cell, uneven;
  static constexpr CellsCost of_values(int value_bytes) {
    return value_bytes == 8 ? CellsCost{4.0e6, 2, 1.1} : CellsCost{4.4e6, 1.7, 0.1};
  }
  /// Cells must be predicted to take less than this of the time of others: set-up takes one to five times as long.
  static constexpr double gain = 0.9;

  static double of(const CellsShape& s, const SpmvFeatures& f, const DeviceFacts& device, int value_bytes) {
    const CellsCost c = of_values(value_bytes);
    const double nnz = static_cast<double>(f.nnz), rows = static_cast<double>(f.rows), blocks = s.column_blocks;
    const double in_row = blocks * (1 - std::exp(f.mean * std::log1p(-1 / std::max(blocks, 1.001))));
    const double bytes = nnz * (value_bytes + 2) * 1.03 + rows * std::min(in_row, f.mean) * 2;
    const double sum_bytes = s.shares > 1 ? 2 * s.shares * rows * (value_bytes == 8 ? 8 : 4) : 0;
    // Of a multiprocessor, one thread block after the other.
    const double turns = std::ceil(static_cast<double>(s.row_blocks) * s.shares / std::max(device.compute_units, 1));
    const double cells = turns * std::ceil(blocks / s.shares);
    const double x_bytes = static_cast<double>(s.block_columns) * value_bytes;
    const double each = c.cell + c.uneven * std::min(f.cv, 1.0) + table * x_bytes;
    return launches + bytes / c.stream + sum_bytes / sums + cells * each;
  }
  /// Of what is not in cells. Of very skewed columns the first level, a table, or a copy of x has the most used ones.
  static double others(const SpmvFeatures& f, int value_bytes) {
    return PackedCost::plain(f, value_bytes) * (f.cv >= 4 && f.nnz >= 3000000 ? 0.7 : 1);
  }
};

/// Of all numbers of shares the one that is predicted to be fastest.
inline CellsShape cells_best_shape(const SpmvFeatures& f, const DeviceFacts& device, int value_bytes) {
  CellsShape best;
  for (int shares = 1; shares <= 3; ++shares) {  // four to eight were slower
    const CellsShape s = cells_shape_of(f, device, value_bytes, shares, 1);
    if (s.row_blocks == 0 || s.shares < shares) continue;
    const bool better =
        best.row_blocks == 0 || CellsCost::of(s, f, device, value_bytes) < CellsCost::of(best, f, device, value_bytes);
    if (better) best = s;
  }
  return best;
}

/// The cells worth having; no row blocks: none.
inline CellsShape cells_shape(const PackedOptions& o, const SpmvFeatures& f, const DeviceFacts& device,
                              int value_bytes) {
  if (o.cells == 0 || f.nnz == 0 || f.rows == 0 || f.cols == 0) return {};
  if (o.cells > 0) return cells_shape_of(f, device, value_bytes, o.cells, std::max(o.column_blocks, 1));
  if (!packed_may_be_cells(o, f, device, value_bytes)) return {};
  // A row is one thread block's per share, and the others wait for it.
  if (f.longest > f.nnz / std::max(device.compute_units, 1)) return {};
  const CellsShape s = cells_best_shape(f, device, value_bytes);
  // Set-up has four bytes per row and column block.
  if (s.row_blocks == 0 || s.column_blocks > 4 * f.mean) return {};
  const double others = CellsCost::others(f, value_bytes);
  return CellsCost::of(s, f, device, value_bytes) < CellsCost::gain * others ? s : CellsShape{};
}

}  // namespace Impl
}  // namespace Tessera

#endif
