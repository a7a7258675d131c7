// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_TABLE_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_TABLE_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_Aligned.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmWave.hpp"

/// \file
/// Rows of C with few products: their columns in a table with open addressing per row, in memory of the wave. The table
/// is then made dense, and each column goes behind the smaller ones, which are counted. With Numbers the slots have
/// sums, too: rows of B follow one another, so that sums are added in the order of A's row without atomics. [Tables per
/// size of row: Nagasaka et al., ICPP'17; Parger et al., "spECK", PPoPP'20]

namespace Tessera {

template <class Wave, class Value, int Shift, int Slots, bool Numbers>
class SpgemmTableKernel {
 public:
  static constexpr int lanes = 1 << Shift;
  static constexpr int rows = Wave::lanes / lanes;  ///< of a wave
  static constexpr int row_bytes = Slots * static_cast<int>(sizeof(std::uint32_t) + (Numbers ? sizeof(Value) : 0));
  static constexpr int bytes = rows * row_bytes;

  /// Rows at [first, first + rows) of the order, as far as they are below `end`.
  TESSERA_FUNCTION static void run(const Wave& wave, const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                   char* memory) {
    Varying<Span> span;
    Varying<std::int32_t> row;
    wave.each([&](int lane) {
      const std::int64_t i = first + (lane >> Shift);
      row(lane) = i < end ? args.order[i] : -1;
      span(lane) = {0, 0};
      if (row(lane) >= 0) span(lane) = {args.A.row_map(row(lane)), args.A.row_map(row(lane) + 1)};
      const Table table = table_of(memory, lane);
      for (int s = own(lane); s < Slots; s += lanes) {
        table.column[s] = none;
        if (Numbers) table.sum[s] = 0;
      }
    });
    wave.converge();
    Products::each(wave, args, span, [&](int lane, std::int32_t column, Value a, Value b) {
      const Table table = table_of(memory, lane);
      const int slot = insert(table.column, static_cast<std::uint32_t>(column));
      if (Numbers) table.sum[slot] = Wave::add_product(a, b, table.sum[slot]);
    });
    Varying<int> used;
    make_dense(wave, memory, used);
    wave.each([&](int lane) {
      if (row(lane) >= 0 && own(lane) == 0) args.count[row(lane)] = used(lane);
      if (row(lane) >= 0 && args.found != nullptr)
        store(args, table_of(memory, lane), row(lane), used(lane), own(lane));
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Products = SpgemmTeamProducts<Wave, Value, Shift, Numbers, false>;
  using Span = typename Products::Span;
  static constexpr std::uint32_t none = 0xffffffffu;  ///< above every column
  struct Table {
    Value* sum;
    std::uint32_t* column;
  };
  TESSERA_FUNCTION static int own(int lane) { return Products::own(lane); }
  TESSERA_FUNCTION static Table table_of(char* memory, int lane) {
    char* const begin = memory + (lane >> Shift) * row_bytes;
    return {reinterpret_cast<Value*>(begin),
            reinterpret_cast<std::uint32_t*>(begin + (Numbers ? Slots * sizeof(Value) : 0))};
  }
  TESSERA_FUNCTION static constexpr int bits_of(int slots) { return slots == 1 ? 0 : 1 + bits_of(slots / 2); }
  TESSERA_FUNCTION static int insert(std::uint32_t* table, std::uint32_t column) {
    // Rows of meshes and webs have runs of columns at equal distances, which any simpler function puts side by side.
    constexpr int shift = 32 - bits_of(Slots);
    for (std::uint32_t s = (column * 0x9e3779b1u) >> shift;; ++s) {
      const int slot = static_cast<int>(s & (Slots - 1));
      std::uint32_t there = table[slot];
      if (there == none) there = Wave::claim(table + slot, none, column);
      if (there == none || there == column) return slot;
    }
  }
  /// Columns and sums to the front, and columns after them that are above all.
  TESSERA_FUNCTION static void make_dense(const Wave& wave, char* memory, Varying<int>& used) {
    using Mask = typename Wave::Mask;
    wave.each([&](int lane) { used(lane) = 0; });
    for (int s = 0; s < Slots; s += lanes) {
      Varying<std::uint32_t> column;
      Varying<Value> sum;
      Varying<bool> is;
      wave.each([&](int lane) {
        const Table table = table_of(memory, lane);
        column(lane) = table.column[s + own(lane)];
        sum(lane) = Numbers ? table.sum[s + own(lane)] : Value(0);
        is(lane) = column(lane) != none;
      });
      const Mask mask = wave.ballot(is);
      wave.converge();
      wave.each([&](int lane) {
        const Table table = table_of(memory, lane);
        const int base = lane & ~(lanes - 1);
        const Mask team = (mask >> base) & (~Mask{0} >> (8 * static_cast<int>(sizeof(Mask)) - lanes));
        const int to = used(lane) + Wave::rank(team, own(lane));
        if (is(lane)) table.column[to] = column(lane);
        if (is(lane) && Numbers) table.sum[to] = sum(lane);
        used(lane) += Wave::count(team);
      });
    }
    wave.converge();
    wave.each([&](int lane) {
      if (own(lane) < 4 && used(lane) + own(lane) < Slots) table_of(memory, lane).column[used(lane) + own(lane)] = none;
    });
    wave.converge();
  }
  TESSERA_FUNCTION static void store(const SpgemmArgs& args, const Table& table, std::int32_t row, int n, int own) {
    struct alignas(16) Four {
      std::uint32_t c[4];
    };
    const std::int64_t to = args.place(row);
    for (int i = own; i < n; i += lanes) {
      const std::uint32_t column = table.column[i];
      int smaller = 0;
      for (int j = 0; j < n; j += 4) {
        expect_aligned(table.column + j, sizeof(Four));
        const Four four = *reinterpret_cast<const Four*>(table.column + j);
        TESSERA_UNROLL
        for (int k = 0; k < 4; ++k) smaller += four.c[k] < column;
      }
      args.found[to + smaller] = static_cast<std::int32_t>(column);
      if (Numbers) static_cast<Value*>(args.found_values)[to + smaller] = table.sum[i];
    }
  }
};

/// Columns and numbers of rows that were summed in tables go to C: four lanes per row.
template <class Wave, class Value>
struct SpgemmCopyKernel {
  static constexpr int lanes = 4, rows = Wave::lanes / lanes, bytes = 0;
  TESSERA_FUNCTION static void run(const Wave& wave, const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                   char*) {
    wave.each([&](int lane) {
      const std::int64_t row = first + lane / lanes;
      if (row >= end || args.kind[row] >= SpgemmRowKinds::tables) return;
      const std::int64_t from = args.at[row], to = SpgemmOffsets{args.row_map, args.wide}(row);
      const std::int32_t n = args.count[row];
      TESSERA_UNROLL_4
      for (std::int32_t i = lane % lanes; i < n; i += lanes) {
        args.columns[to + i] = args.known[from + i];
        static_cast<Value*>(args.values)[to + i] = static_cast<const Value*>(args.found_values)[from + i];
      }
    });
  }
};

}  // namespace Tessera

#endif
