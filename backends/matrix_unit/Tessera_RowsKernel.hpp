// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_MATRIX_UNIT_ROWS_KERNEL_HPP
#define TESSERA_MATRIX_UNIT_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/common/Tessera_Half.hpp"
#include "backends/common/Tessera_KernelTable.hpp"
#include "backends/matrix_unit/Tessera_PackedKernel.hpp"
#include "backends/matrix_unit/Tessera_SpmmRun.hpp"
#include "backends/matrix_unit/Tessera_Wave.hpp"

/// \file
/// C := alpha A B + beta C from compressed rows, without matrix instructions: for matrices whose neighbouring rows
/// share few columns, where a row of B is fetched about once an entry however it is done [GE-SpMM, Huang et al.,
/// SC'20].
///
/// A *team* of 2^shift lanes takes an item, a row or a piece of a long one [RoDe, Pang et al., PPoPP'24], and reads
/// rows of B, sixteen bytes a lane: whole lines, no shuffles. Column and value of an entry reach the team in one
/// broadcast load each. Sums of pieces are added in order by a second launch.
///
/// `Together`: the teams of a wave share an item, each takes every other group of four entries, and their sums meet by
/// shuffles. For long rows, and for matrices of so few rows that teams of their own would leave the device idle.

namespace Tessera {

template <class Value_, class Sum_>
struct RowsTypes {
  using Value = Value_;
  using Sum = Sum_;
};

/// Lanes of a team: as many as `columns` of B need, at most a wave and at most `most` columns.
template <class Value>
int rows_shift(std::int64_t columns, int lanes, std::int64_t most) {
  constexpr int vector = 16 / static_cast<int>(sizeof(Value));
  int shift = 0;
  while ((1 << shift) < lanes && (std::int64_t{vector} << shift) < columns && (std::int64_t{vector} << shift) < most) {
    ++shift;
  }
  return shift;
}

/// Whether teams share items: where their own would be fewer than `lanes` lanes, and where rows are so long that
/// reading columns and values for one team at a time counts (perf_test/NOTES.md, "SpMM: rows").
inline bool rows_together(const SpmmRowsArgs& args, int wave, std::int64_t lanes) {
  const std::int64_t teams = wave >> args.shift;
  if (teams == 1) return false;
  return args.nnz >= 200 * args.count || (args.count << args.shift < lanes && args.nnz >= 4 * teams * args.count);
}

/// Whether 32 bits count the entries, a group of them beyond the last one included.
inline bool rows_narrow(const SpmmRowsArgs& args) { return args.nnz < (std::int64_t{1} << 31) - 1024; }

/// What no launcher can do: bytes between rows of B are 32-bit numbers, and a grid has 65,535 tiles of 128 columns.
inline Status rows_check(const SpmmRowsArgs& args) {
  constexpr std::int64_t most_apart = (std::int64_t{1} << 28) - 1, most_columns = std::int64_t{65535} * 128;
  if (args.dense.ldb > most_apart) return {"spmm[gespmm]: rows of B lie 2^28 elements apart or more"};
  if (args.dense.columns > most_columns) return {"spmm[gespmm]: more than 8,388,480 columns; use several products"};
  return {};
}

/// Index: of entries, 32 bits where they suffice. State of the loop is kept small on purpose: registers decide how many
/// waves hide the latency of gathers (perf_test/NOTES.md, "SpMM: rows").
template <class Types_, class Wave, class Index, bool Together>
struct RowsKernel {
  using Value = typename Types_::Value;
  using Sum = typename Types_::Sum;
  static constexpr int vector = 16 / static_cast<int>(sizeof(Value));
  static constexpr int batch = 4;  ///< entries whose rows of B are loaded at once

  template <class T>
  using Varying = typename Wave::template Varying<T>;

  struct Sums {
    Sum s[vector];
  };

  /// Items from first_item on (Together: this one), columns from first_column on.
  TESSERA_FUNCTION static void run(const Wave& wave, const SpmmRowsArgs& args, std::int64_t first_item,
                                   std::int32_t first_column) {
    if constexpr (Together) {
      run_together(wave, args, first_item, first_column);
    } else {
      wave.each([&](int lane) {
        const std::int64_t index = first_item + (lane >> args.shift);
        const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * vector;
        if (index >= args.count || column >= args.dense.columns) return;
        const Item item = item_at(args, index);
        Sums sums{};
        Index i = item.begin;
        for (; i + batch <= item.end; i += batch) add_entries<batch>(args, i, column, sums);
        for (; i < item.end; ++i) add_entries<1>(args, i, column, sums);
        store(args, item, column, sums);
      });
    }
  }

 private:
  struct Item {
    Index begin, end;
    std::int32_t row, partial;
  };
  TESSERA_FUNCTION static Item item_at(const SpmmRowsArgs& args, std::int64_t index) {
    if (args.table != nullptr) {
      const SpmmRowPiece p = args.table[index];
      const auto begin = static_cast<Index>(p.packed >> SpmmRowPiece::length_bits);
      return {begin, begin + static_cast<Index>(p.packed & SpmmRowPiece::most_entries), p.row, p.partial};
    }
    const auto row = static_cast<std::int32_t>(index);
    if (args.offset_bytes == 8) {
      const auto* offsets = static_cast<const std::int64_t*>(args.row_map) + index;
      return {static_cast<Index>(offsets[0]), static_cast<Index>(offsets[1]), row, -1};
    }
    const auto* offsets = static_cast<const std::int32_t*>(args.row_map) + index;
    return {offsets[0], offsets[1], row, -1};
  }

  /// Entries i .. i + N - 1.
  template <int N>
  TESSERA_FUNCTION static void add_entries(const SpmmRowsArgs& args, Index i, std::int32_t column, Sums& sums) {
    const char* b = reinterpret_cast<const char*>(static_cast<const Value*>(args.dense.b) + column);
    const auto ldb_bytes = static_cast<std::int32_t>(args.dense.ldb) * static_cast<std::int32_t>(sizeof(Value));
    std::int32_t row[N];
    Value a[N];
    Packed<Value, vector> x[N];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) row[u] = args.columns[i + u];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) a[u] = static_cast<const Value*>(args.values)[i + u];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) {
      const Word w = Wave::template load<false>(reinterpret_cast<const Word*>(b + std::int64_t{row[u]} * ldb_bytes));
      TESSERA_UNROLL
      for (int j = 0; j < 4; ++j) x[u].w[j] = w.w[j];
    }
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) {
      TESSERA_UNROLL
      for (int v = 0; v < vector; ++v) sums.s[v] += static_cast<Sum>(a[u]) * static_cast<Sum>(x[u].get(v));
    }
  }

  TESSERA_FUNCTION static void run_together(const Wave& wave, const SpmmRowsArgs& args, std::int64_t index,
                                            std::int32_t first_column) {
    if (index >= args.count) return;
    const Item item = item_at(args, index);
    Varying<Sums> sums;
    wave.each([&](int lane) {
      sums(lane) = Sums{};
      const int team = lane >> args.shift, teams = Wave::lanes >> args.shift;
      const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * vector;
      if (column >= args.dense.columns) return;
      Index i = item.begin + batch * team;
      for (; i + batch <= item.end; i += batch * teams) add_entries<batch>(args, i, column, sums(lane));
      // What is left of the last group of four.
      i = item.begin + (item.end - item.begin) / batch * batch + team;
      for (; i < item.end; i += teams) add_entries<1>(args, i, column, sums(lane));
    });
    for (int distance = Wave::lanes / 2; distance >= 1 << args.shift; distance /= 2) {
      TESSERA_UNROLL
      for (int v = 0; v < vector; ++v) {
        Varying<Sum> own, other;
        wave.each([&](int lane) { own(lane) = sums(lane).s[v]; });
        wave.shuffle(other, own, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { sums(lane).s[v] += other(lane); });
      }
    }
    wave.each([&](int lane) {
      const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * vector;
      if (lane >> args.shift == 0 && column < args.dense.columns) store(args, item, column, sums(lane));
    });
  }

  TESSERA_FUNCTION static void store(const SpmmRowsArgs& args, const Item& item, std::int32_t column,
                                     const Sums& sums) {
    if (item.partial >= 0) {
      const SpmmTarget<Sum, Sum> target{static_cast<Sum*>(args.partials), args.partial_ld, args.dense.columns, Sum(1),
                                        Sum(0)};
      spmm_store_run(target, item.partial, column, sums.s);
    } else {
      spmm_to_c<Value, Sum>(args.dense, [&](const auto& target) { spmm_store_run(target, item.row, column, sums.s); });
    }
  }
};

/// Adds the pieces of a row in their order: one column of it.
template <class Value, class Sum>
TESSERA_FUNCTION void rows_add_pieces(const SpmmRowsArgs& args, const SpmmSplitRow& split, std::int64_t column) {
  const Sum* partial = static_cast<const Sum*>(args.partials) + split.first * args.partial_ld + column;
  Sum sum = Sum(0);
  for (std::int32_t i = 0; i < split.count; ++i) sum += partial[i * args.partial_ld];
  const Sum sums[1] = {sum};
  spmm_to_c<Value, Sum>(args.dense, [&](const auto& target) { target.store(split.row, column, sums); });
}

}  // namespace Tessera

#endif
