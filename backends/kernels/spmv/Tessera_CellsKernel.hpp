// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CELLS_KERNEL_HPP
#define TESSERA_SPMV_CELLS_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_CellsArgs.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// What a wave does with the slices of a cell. x and the sums are in shared memory, so that all that comes from memory
/// is the matrix, in order: the loads of two items are always under way, also while the thread block fetches x.

namespace Tessera {

/// Where a wave is in a cell: it takes every `stride`th slice, a few steps at a time.
template <class Wave>
struct CellsCursor {
  const CellsRun* runs;
  std::uint32_t slice, first, end;  // of the run
  std::uint32_t unit;               // where the run begins
  std::uint32_t kind;               // steps and slots as in the run; zero: no further slice
  int step;

  TESSERA_INLINED_FUNCTION void start(const Wave& wave, const CellsRun* of_cell, std::uint32_t first_slice) {
    runs = of_cell;
    slice = first_slice;
    end = 0;
    step = 0;
    settle(wave);
  }
  TESSERA_INLINED_FUNCTION int steps() const { return CellsLayout::steps_of(kind); }
  /// Goes to the run that has the slice: as many are before it as end there, which lanes count. One after the other,
  /// each would wait for shared memory, and where pieces are of many lengths a cell has up to 64 runs.
  TESSERA_INLINED_FUNCTION void settle(const Wave& wave) {
    if (slice < end) return;
    static_assert(CellsLayout::keys % Wave::lanes == 0, "lanes look at one run each");
    typename Wave::template Varying<bool> before;
    int run = 0;
    TESSERA_UNROLL
    for (int from = 0; from < CellsLayout::keys; from += Wave::lanes) {
      wave.each([&](int lane) { before(lane) = CellsLayout::end_of(runs[from + lane].code) <= slice; });
      run += Wave::count(wave.ballot(before));
    }
    first = run > 0 ? CellsLayout::end_of(runs[run - 1].code) : 0;
    const CellsRun here = runs[run];
    end = CellsLayout::end_of(here.code);
    kind = here.code & 255u;
    unit = here.unit;
  }
  TESSERA_INLINED_FUNCTION int left() const { return steps() - step; }
  TESSERA_INLINED_FUNCTION std::size_t packet(int value_bytes) const {
    return std::size_t{unit + (slice - first) * CellsLayout::slice_units(steps(), value_bytes)} * CellsLayout::unit;
  }
  TESSERA_INLINED_FUNCTION void advance(const Wave& wave, int by, std::uint32_t stride) {
    step += by;
    if (step < steps() || kind == 0) return;
    step = 0;
    slice += stride;
    settle(wave);
  }
};

template <class Value, class Wave>
struct CellsKernel {
  using Sum = std::conditional_t<sizeof(Value) == 8, double, float>;
  static constexpr int each = CellsLayout::slots / Wave::lanes;  // slots of a lane, which lie side by side
  static constexpr int bytes = static_cast<int>(sizeof(Value));
  static constexpr int batch = bytes == 8 ? 2 : 4;  // steps of an item
  static constexpr int depth = 2;                   // items under way
  static constexpr int together = 2;                // steps whose x is asked for at once; those that are none add zeros
  static_assert(each == 2, "two slots have one word of places, and one of columns");

  struct Item {
    std::uint32_t places, columns[batch], values[batch][each * bytes / 4];
  };
  struct Lane {
    Item item[depth];
    Sum sum[each];
  };
  /// What a wave keeps from one cell to the next.
  struct State {
    CellsCursor<Wave> cursor;
    int left[depth];  // steps of the slice from the item on, and log2 of the slots of its pieces << 8
    typename Wave::template Varying<Lane> lanes;
  };

  /// The first items of a cell.
  TESSERA_FUNCTION static void start(const Wave& wave, const SpmvCellsArgs& p, State& s, const CellsRun* runs,
                                     unsigned index, unsigned waves) {
    s.cursor.start(wave, runs, index);
    TESSERA_UNROLL
    for (int d = 0; d < depth; ++d) load(wave, p, s, d, waves);
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int r = 0; r < each; ++r) s.lanes(lane).sum[r] = Sum(0);
    });
  }

  /// All slices of the wave. @param x  of the column block, and a zero
  TESSERA_FUNCTION static void multiply(const Wave& wave, const SpmvCellsArgs& p, State& s, const Value* x, Sum* sums,
                                        unsigned waves) {
    for (bool more = true; more;) {
      TESSERA_UNROLL
      for (int d = 0; d < depth; ++d) {
        const int left = s.left[d] & 255;
        if (left == 0) {
          more = false;
          break;
        }
        wave.each([&](int lane) { add(s.lanes(lane), d, left, x); });
        if (left <= batch) finish(wave, s, d, sums);
        load(wave, p, s, d, waves);
      }
    }
  }

 private:
  TESSERA_FUNCTION static void load(const Wave& wave, const SpmvCellsArgs& p, State& s, int d, unsigned waves) {
    const CellsCursor<Wave>& c = s.cursor;
    const int left = c.left();
    s.left[d] = left | CellsLayout::log_of(c.kind) << 8;
    const unsigned char* const packet = p.packets + c.packet(bytes);
    const unsigned char* const columns = packet + CellsLayout::slots * 2 * (1 + c.step);
    const unsigned char* const values = packet + CellsLayout::slots * (2 * (1 + c.steps()) + c.step * bytes);
    const std::uint32_t zero = p.block_columns | p.block_columns << 16;  // x is zero there
    wave.each([&](int lane) {
      Item& item = s.lanes(lane).item[d];
      // Kept, so that steps are constants in loads and not sums of 64 bits.
      const unsigned char* const own_columns = Wave::keep(columns + lane * each * 2);
      const unsigned char* const own_values = Wave::keep(values + lane * each * bytes);
      Wave::template load_if<true, 2 * each>(packet + lane * each * 2, left > 0 && left <= batch, 0u, &item.places);
      TESSERA_UNROLL
      for (int i = 0; i < batch; ++i) {
        Wave::template load_if<true, 2 * each>(own_columns + i * (CellsLayout::slots * 2), i < left, zero,
                                               &item.columns[i]);
        Wave::template load_if<true, each * bytes>(own_values + i * (CellsLayout::slots * bytes), i < left, 0u,
                                                   item.values[i]);
      }
    });
    s.cursor.advance(wave, batch, waves);
  }

  TESSERA_FUNCTION static Value value_of(const std::uint32_t (&words)[each * bytes / 4], int r) {
    Value value;
    if constexpr (bytes == 2) {
      const auto half = static_cast<std::uint16_t>(words[0] >> (16 * r));
      __builtin_memcpy(&value, &half, 2);
    } else {
      __builtin_memcpy(&value, words + r * (bytes / 4), bytes);
    }
    return value;
  }

  TESSERA_FUNCTION static void add(Lane& lane, int d, int left, const Value* x) {
    const Item& item = lane.item[d];
    TESSERA_UNROLL
    for (int first = 0; first < batch; first += together) {
      if (first >= left) break;
      Value at[together][each];
      TESSERA_UNROLL
      for (int i = 0; i < together; ++i) {
        TESSERA_UNROLL
        for (int r = 0; r < each; ++r) at[i][r] = x[item.columns[first + i] >> (16 * r) & 0xffffu];
      }
      TESSERA_UNROLL
      for (int i = 0; i < together; ++i) {
        TESSERA_UNROLL
        for (int r = 0; r < each; ++r) {
          const Sum value = static_cast<Sum>(value_of(item.values[first + i], r));
          lane.sum[r] = Wave::add_product(value, static_cast<Sum>(at[i][r]), lane.sum[r]);
        }
      }
    }
  }

  /// The sums of a slice's pieces to those of their rows.
  TESSERA_FUNCTION static void finish(const Wave& wave, State& s, int d, Sum* sums) {
    const int log = s.left[d] >> 8;
    if (log == 0) {
      wave.each([&](int lane) {
        Lane& own = s.lanes(lane);
        TESSERA_UNROLL
        for (int r = 0; r < each; ++r) {
          sums[own.item[d].places >> (16 * r) & 0xffffu] += own.sum[r];
          own.sum[r] = Sum(0);
        }
      });
      return;
    }
    const int lanes = 1 << (log - 1);  // of a piece
    typename Wave::template Varying<Sum> total, other;
    wave.each([&](int lane) {
      Lane& own = s.lanes(lane);
      total(lane) = own.sum[0] + own.sum[1];
      own.sum[0] = own.sum[1] = Sum(0);
    });
    for (int distance = 1; distance < lanes; distance *= 2) {
      wave.shuffle(other, total, [=](int lane) { return lane ^ distance; });
      wave.each([&](int lane) { total(lane) += other(lane); });
    }
    wave.each([&](int lane) {
      if ((lane & (lanes - 1)) == 0) sums[s.lanes(lane).item[d].places & 0xffffu] += total(lane);
    });
  }
};

}  // namespace Tessera

#endif
