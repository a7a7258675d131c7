// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_MATRIX_UNIT_SPMM_PARTIALS_HPP
#define TESSERA_MATRIX_UNIT_SPMM_PARTIALS_HPP

#include <cstdint>

#include "backends/matrix_unit/Tessera_SpmmStore.hpp"
#include "backends/matrix_unit/Tessera_Wave.hpp"

/// \file
/// The second launch of SpMM where rows, or windows of them, were split: their partial sums become C.

namespace Tessera {

/// C(row, :) := alpha (partial sums, added) + beta C(row, :). A wave takes a tile of columns; a team of 2^shift lanes
/// reads a partial sum's piece of it, sixteen bytes a lane, so that several partial sums are under way at once in a
/// wave and eight in a lane: a hub of a graph has thousands, and one after another each would cost a wait for memory.
/// Which are added to which first depends on their number, the shift and the number of lanes alone.
template <class Value, class Sum, class Wave>
struct SpmmPartials {
  static constexpr int vector = 16 / static_cast<int>(sizeof(Sum));

  /// log2 of the lanes of a team: whatever the number of columns, so that a column has the same bits in any product.
  /// lengthy: few rows, some of very many partial sums, need many teams a wave.
  static constexpr int shift(bool lengthy) { return lengthy ? 1 : 3; }
  TESSERA_FUNCTION static std::int64_t tile_columns(int shift) { return std::int64_t{vector} << shift; }
  static std::int64_t tiles(const SpmmDense& dense, int shift) {
    return (dense.columns + tile_columns(shift) - 1) / tile_columns(shift);
  }

  /// A row of a window, split_row = split * window_rows + row of the window; columns from first_column on. Args: rows,
  /// row_order.
  template <class Args>
  TESSERA_FUNCTION static void window_row(const Wave& wave, const Args& args, int window_rows, int shift,
                                          std::int64_t split_row, std::int64_t first_column) {
    const SpmmParts& split = args.split;
    const SpmmSplit s = split.splits[split_row / window_rows];
    const int local = static_cast<int>(split_row % window_rows);
    const std::int64_t row = spmm_row(args, s.window, window_rows, local), stride = window_rows * split.partial_ld;
    if (row < 0) return;
    const Sum* first = static_cast<const Sum*>(split.partials) + s.first * stride + local * split.partial_ld;
    add(wave, args.dense, first, stride, s.count, row, shift, first_column);
  }

  /// first: partial sums of the row, count of them, `stride` elements apart, all at multiples of sixteen bytes.
  TESSERA_FUNCTION static void add(const Wave& wave, const SpmmDense& dense, const Sum* first, std::int64_t stride,
                                   std::int32_t count, std::int64_t row, int shift, std::int64_t first_column) {
    typename Wave::template Varying<Sums> sums;
    const int teams = Wave::lanes >> shift;
    const auto column_of = [=](int lane) { return first_column + (lane & ((1 << shift) - 1)) * vector; };
    wave.each([&](int lane) {
      Sums& own = sums(lane);
      own = Sums{};
      const std::int64_t column = column_of(lane), step = teams * stride;
      if (column >= dense.columns) return;
      std::int32_t i = lane >> shift;
      const Sum* from = first + column + i * stride;
      for (; i + 7 * teams < count; i += 8 * teams, from += 8 * step) own.template add<8>(from, step);
      if (i + 3 * teams < count) {
        own.template add<4>(from, step);
        i += 4 * teams;
        from += 4 * step;
      }
      if (i + teams < count) {
        own.template add<2>(from, step);
        i += 2 * teams;
        from += 2 * step;
      }
      if (i < count) own.template add<1>(from, step);
    });
    for (int distance = 1 << shift; distance < Wave::lanes; distance *= 2) {
      TESSERA_UNROLL
      for (int v = 0; v < vector; ++v) {
        typename Wave::template Varying<Sum> own, other;
        wave.each([&](int lane) { own(lane) = sums(lane).s[v]; });
        wave.shuffle(other, own, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { sums(lane).s[v] += other(lane); });
      }
    }
    wave.each([&](int lane) {
      const std::int64_t column = column_of(lane);
      if (lane >> shift != 0 || column >= dense.columns) return;
      spmm_to_c<Value, Sum>(dense, [&](const auto& target) { target.store(row, column, sums(lane).s); });
    });
  }

 private:
  struct Sums {
    Sum s[vector];
    /// By halves: the first addition needs a load of the second half, so that no compiler can save registers by waiting
    /// for each load before the next.
    template <int N>
    TESSERA_FUNCTION void add(const Sum* from, std::int64_t stride) {
      Sum x[N][vector];
      TESSERA_UNROLL
      for (int u = 0; u < N; ++u) {
        const Word w = Wave::load_written(reinterpret_cast<const Word*>(from + u * stride));
        __builtin_memcpy(x[u], w.w, 16);
      }
      if constexpr (N >= 8) fold<4>(x);
      if constexpr (N >= 4) fold<2>(x);
      if constexpr (N >= 2) fold<1>(x);
      TESSERA_UNROLL
      for (int v = 0; v < vector; ++v) s[v] += x[0][v];
    }
    template <int Half, int N>
    TESSERA_FUNCTION static void fold(Sum (&x)[N][vector]) {
      TESSERA_UNROLL
      for (int u = 0; u < Half; ++u) {
        TESSERA_UNROLL
        for (int v = 0; v < vector; ++v) x[u][v] += x[u + Half][v];
      }
    }
  };
};

}  // namespace Tessera

#endif
