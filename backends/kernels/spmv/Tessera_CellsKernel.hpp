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
struct CellsCursor {
  const std::uint32_t* run;
  std::uint32_t slice, first, end;  // of the run
  std::uint32_t unit;               // where the run begins
  std::uint32_t kind;               // steps and slots as in the run; zero: no further slice
  int step;

  TESSERA_INLINED_FUNCTION void start(const std::uint32_t* runs, std::uint32_t first_unit, std::uint32_t first_slice,
                                      int value_bytes) {
    run = runs;
    slice = first_slice;
    first = 0;
    unit = first_unit;
    step = 0;
    read();
    settle(value_bytes);
  }
  TESSERA_INLINED_FUNCTION void read() {
    kind = *run & 255u;
    end = kind != 0 ? CellsLayout::end_of(*run) : ~0u;
  }
  TESSERA_INLINED_FUNCTION int steps() const { return CellsLayout::steps_of(kind); }
  /// Goes to the run that has the slice.
  TESSERA_INLINED_FUNCTION void settle(int value_bytes) {
    while (slice >= end) {
      unit += (end - first) * CellsLayout::slice_units(steps(), value_bytes);
      first = end;
      ++run;
      read();
    }
  }
  TESSERA_INLINED_FUNCTION int left() const { return steps() - step; }
  TESSERA_INLINED_FUNCTION std::size_t packet(int value_bytes) const {
    return std::size_t{unit + (slice - first) * CellsLayout::slice_units(steps(), value_bytes)} * CellsLayout::unit;
  }
  TESSERA_INLINED_FUNCTION void advance(int by, std::uint32_t stride, int value_bytes) {
    step += by;
    if (step < steps() || kind == 0) return;
    step = 0;
    slice += stride;
    settle(value_bytes);
  }
};

template <class Value, class Wave>
struct CellsKernel {
  using Sum = std::conditional_t<sizeof(Value) == 8, double, float>;
  static constexpr int each = CellsLayout::slots / Wave::lanes;  // slots of a lane, which lie side by side
  static constexpr int bytes = static_cast<int>(sizeof(Value));
  static constexpr int batch = bytes == 8 ? 2 : 4;  // steps of an item
  static constexpr int depth = 2;                   // items under way
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
    CellsCursor cursor;
    int left[depth];  // steps of the slice from the item on, and log2 of the slots of its pieces << 8
    typename Wave::template Varying<Lane> lanes;
  };

  /// The first items of a cell.
  TESSERA_FUNCTION static void start(const Wave& wave, const SpmvCellsArgs& p, State& s, const std::uint32_t* runs,
                                     std::uint32_t unit, unsigned index, unsigned waves) {
    s.cursor.start(runs, unit, index, bytes);
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
    const CellsCursor& c = s.cursor;
    const int left = c.left();
    s.left[d] = left | CellsLayout::log_of(c.kind) << 8;
    const unsigned char* const packet = p.packets + c.packet(bytes);
    const int columns = CellsLayout::slots * 2 * (1 + c.step);
    const int values = CellsLayout::slots * (2 * (1 + c.steps()) + c.step * bytes);
    wave.each([&](int lane) {
      Item& item = s.lanes(lane).item[d];
      const int at = lane * each;
      Wave::template load_if<true, 2 * each>(packet + at * 2, left > 0 && left <= batch, 0u, &item.places);
      TESSERA_UNROLL
      for (int i = 0; i < batch; ++i) {
        Wave::template load_if<true, 2 * each>(packet + columns + (i * CellsLayout::slots + at) * 2, i < left, 0u,
                                               &item.columns[i]);
        Wave::template load_if<true, each * bytes>(packet + values + (i * CellsLayout::slots + at) * bytes, i < left,
                                                   0u, item.values[i]);
      }
    });
    s.cursor.advance(batch, waves, bytes);
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
    for (int i = 0; i < batch; ++i) {
      if (i >= left) break;
      TESSERA_UNROLL
      for (int r = 0; r < each; ++r) {
        const Value at = x[item.columns[i] >> (16 * r) & 0xffffu];
        lane.sum[r] =
            Wave::add_product(static_cast<Sum>(value_of(item.values[i], r)), static_cast<Sum>(at), lane.sum[r]);
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
