// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_SPMM_PARTIALS_HPP
#define TESSERA_KERNELS_SPMM_SPMM_PARTIALS_HPP

#include <cstdint>

#include "backends/kernels/spmm/Tessera_SpmmStore.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The second launch of SpMM where rows, or windows of them, were split: their partial sums become C.

namespace Tessera {

/// Rows of C that were split: `count` of them, those of a window for each split.
struct SpmmPartialRows {
  const SpmmSplit* splits = nullptr;
  const void* partials = nullptr;  ///< [partial][row of the window][column], sums' type
  std::int64_t partial_ld = 0;     ///< a multiple of 4
  std::int64_t count = 0, rows = 0;
  const std::int32_t* row_order = nullptr;
  int window_shift = 0;  ///< log2 of a window's rows
  int shift = 3;         ///< log2 of the lanes of a team
  SpmmDense dense;
  bool in_columns = false;  ///< whether columns of C are contiguous
};

/// Those of Panels and FlashSparse, whose windows have 8 or 16 rows. Args: split, rows, row_order, dense.
template <class Args>
SpmmPartialRows spmm_partial_rows(const Args& args, int window_rows) {
  const SpmmParts& s = args.split;
  return {s.splits,
          s.partials,
          s.partial_ld,
          s.split_count * window_rows,
          args.rows,
          args.row_order,
          window_rows == 16 ? 4 : 3,
          3,
          args.dense};
}
/// Those of GeSpmm. A row of many pieces is what the launch waits for, unless there are many rows: then many teams of
/// two lanes share it.
TESSERA_FUNCTION SpmmPartialRows spmm_partial_rows(const GeSpmmArgs& args) {
  const bool lengthy = args.most_pieces >= 64 && args.split_count <= 8192;
  return {args.splits, args.partials,   args.partial_ld, args.split_count, args.rows, nullptr,
          0,           lengthy ? 1 : 3, args.dense,      args.in_columns};
}

/// C(row, :) := alpha (partial sums, added) + beta C(row, :). A wave takes a tile of columns; a team of 2^shift lanes
/// reads a partial sum's piece of it, sixteen bytes per lane, so that several partial sums are under way at once in a
/// wave and eight in a lane: a hub of a graph has thousands, and one after another each would cost a wait for memory.
/// Which are added to which first depends on their number, the shift and the number of lanes alone: a column has the
/// same bits in products of any width.
template <class Value, class Sum, class Wave>
struct SpmmPartials {
  static constexpr int width = 16 / static_cast<int>(sizeof(Sum));
  static constexpr int log2_lanes = Wave::lanes == 64 ? 6 : 5;

  TESSERA_FUNCTION static std::int64_t tile_columns(const SpmmPartialRows& p) { return std::int64_t{width} << p.shift; }
  static std::int64_t tiles(const SpmmPartialRows& p) {
    return (p.dense.columns + tile_columns(p) - 1) / tile_columns(p);
  }

  /// Row `index` of p.count, columns of tile first_tile and of every tile_step-th after it.
  TESSERA_FUNCTION static void run(const Wave& wave, const SpmmPartialRows& p, std::int64_t index,
                                   std::int64_t first_tile, std::int64_t tile_step) {
    const SpmmSplit split = p.splits[index >> p.window_shift];
    const int window_rows = 1 << p.window_shift, local = static_cast<int>(index & (window_rows - 1));
    const std::int64_t row = spmm_row(p, split.window, window_rows, local), stride = window_rows * p.partial_ld;
    if (row < 0) return;
    const Sum* first = static_cast<const Sum*>(p.partials) + split.first * stride + local * p.partial_ld;
    // Few partial sums: the whole wave is one team, for the tiles of as many waves.
    const int shift = split.count <= 8 ? log2_lanes : p.shift, others = (1 << (shift - p.shift)) - 1;
    for (std::int64_t tile = first_tile; tile * tile_columns(p) < p.dense.columns; tile += tile_step) {
      if ((tile & others) != 0) continue;
      add(wave, p, first, stride, split.count, row, shift, tile * tile_columns(p), p.dense.columns);
    }
  }

  /// The same for columns [first_column, end_column) of a row that is a window of one.
  TESSERA_FUNCTION static void run_columns(const Wave& wave, const SpmmPartialRows& p, std::int64_t index,
                                           std::int64_t first_column, std::int64_t end_column) {
    const SpmmSplit split = p.splits[index];
    const Sum* first = static_cast<const Sum*>(p.partials) + split.first * p.partial_ld;
    const int shift = split.count <= 8 ? log2_lanes : p.shift;
    const std::int64_t end = end_column < p.dense.columns ? end_column : p.dense.columns;
    for (std::int64_t column = first_column; column < end; column += std::int64_t{width} << shift) {
      add(wave, p, first, p.partial_ld, split.count, split.window, shift, column, end);
    }
  }

 private:
  struct Sums {
    Sum s[width];
    /// The first `left` of eight partial sums. By halves: the first addition needs a load of the second half, so that
    /// no compiler can save registers by waiting for each load before the next.
    TESSERA_FUNCTION void add(const Sum* from, std::int64_t stride, std::int32_t left) {
      Sum x[8][width] = {};
      TESSERA_UNROLL
      for (int u = 0; u < 8; ++u) {
        if (u >= left) continue;
        const Word w = Wave::load_written(reinterpret_cast<const Word*>(from + u * stride));
        __builtin_memcpy(x[u], w.w, 16);
      }
      fold<4>(x);
      fold<2>(x);
      fold<1>(x);
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) s[v] += x[0][v];
    }
    template <int Half>
    TESSERA_FUNCTION static void fold(Sum (&x)[8][width]) {
      TESSERA_UNROLL
      for (int u = 0; u < Half; ++u) {
        TESSERA_UNROLL
        for (int v = 0; v < width; ++v) x[u][v] += x[u + Half][v];
      }
    }
  };

  /// first: partial sums of the row, count of them, `stride` elements apart, all at multiples of sixteen bytes.
  /// end_column: a multiple of a lane's columns, or all of them.
  TESSERA_FUNCTION static void add(const Wave& wave, const SpmmPartialRows& p, const Sum* first, std::int64_t stride,
                                   std::int32_t count, std::int64_t row, int shift, std::int64_t first_column,
                                   std::int64_t end_column) {
    typename Wave::template Varying<Sums> sums;
    const int teams = Wave::lanes >> shift;
    const auto column_of = [=](int lane) { return first_column + (lane & ((1 << shift) - 1)) * width; };
    wave.each([&](int lane) {
      Sums& own = sums(lane);
      own = Sums{};
      const std::int64_t column = column_of(lane), step = teams * stride;
      if (column >= end_column) return;
      std::int32_t i = lane >> shift;
      const Sum* from = first + column + i * stride;
      for (; i < count; i += 8 * teams, from += 8 * step)
        own.add(from, step, (count - i + teams - 1) >> (log2_lanes - shift));
    });
    for (int distance = 1 << shift; distance < Wave::lanes; distance *= 2) {
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) {
        typename Wave::template Varying<Sum> own, other;
        wave.each([&](int lane) { own(lane) = sums(lane).s[v]; });
        wave.shuffle(other, own, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { sums(lane).s[v] += other(lane); });
      }
    }
    wave.each([&](int lane) {
      const std::int64_t column = column_of(lane);
      if (lane >> shift != 0 || column >= end_column) return;
      if (p.in_columns) return spmm_store_in_columns<Value>(p.dense, p.rows, row, column, sums(lane).s);
      spmm_to_c<Value, Sum>(p.dense, [&](const auto& target) { target.store(row, column, sums(lane).s); });
    });
  }
};

}  // namespace Tessera

#endif
