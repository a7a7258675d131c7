// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CONVERT_DASP_FILL_HPP
#define TESSERA_CONVERT_DASP_FILL_HPP

#include <cstdint>
#include <type_traits>

#include "convert/Tessera_DaspOrder.hpp"
#include "formats/Tessera_Dasp.hpp"

/// \file
/// Second half of the DASP conversion: sizes of the blocks, and the one kernel that writes every slot.

namespace Tessera {
namespace Impl {

KOKKOS_INLINE_FUNCTION constexpr int log2_of(int n) {
  int log = 0;
  while (n > 1) n /= 2, ++log;
  return log;
}

/// Where slot (tile, row, k) of a step lies, in values and in columns: two tables of one entry a slot, indexed by
/// tile, row, k as one number, in device memory (threads look up different entries). All extents are powers of two.
template <class MemorySpace>
struct DaspPlacement {
  typename Dasp<MemorySpace>::template View<std::uint16_t> value_at, column_at;
  int rows = 0, depth = 0, slices = 0, lanes = 0;
  int log_rows = 0, log_depth = 0, log_slots = 0;
  std::uint8_t result_lane[DaspGeometry::tiles][16] = {};

  KOKKOS_INLINE_FUNCTION int slots() const { return 1 << log_slots; }

  DaspPlacement() = default;
  explicit DaspPlacement(const DaspGeometry& g)
      : rows(g.rows),
        depth(g.depth),
        slices(g.slices),
        lanes(g.lanes),
        log_rows(log2_of(g.rows)),
        log_depth(log2_of(g.depth)),
        log_slots(log2_of(DaspGeometry::tiles * g.rows * g.depth)) {
    for (int tile = 0; tile < DaspGeometry::tiles; ++tile) {
      for (int row = 0; row < g.rows; ++row) result_lane[tile][row] = g.result_lane[tile][row];
    }
  }

  /// The tables on the host: a lane's slots of all tiles stand in 16-byte words, the lanes' words side by side.
  static void tables(const DaspGeometry& g, std::uint16_t* value, std::uint16_t* column) {
    const int slots = g.rows * g.depth;
    const auto place = [&](int tile, int slot, int per_word) {
      const int lane = slot / g.elements, q = tile * g.elements + slot % g.elements;
      return static_cast<std::uint16_t>(q / per_word * (g.lanes * per_word) + lane * per_word + q % per_word);
    };
    for (int i = 0; i < DaspGeometry::tiles * slots; ++i) {
      value[i] = place(i / slots, g.value_slot[i % slots], 16 / g.value_bytes);
      column[i] = place(i / slots, g.index_slot[i / slots][i % slots], 4);
    }
  }
};

/// A set of row-blocks that one wave takes, and how its rows share the four tiles of a step.
struct DaspSet {
  std::int64_t position;  // of its first row
  int valid;              // rows that exist
  int row_blocks, rows, depth;

  KOKKOS_INLINE_FUNCTION int size() const { return row_blocks * rows; }
  KOKKOS_INLINE_FUNCTION int phases() const { return DaspGeometry::tiles / row_blocks; }
  KOKKOS_INLINE_FUNCTION int width() const { return depth * phases(); }  // slots of a row in a step
};

struct DaspSizes {
  std::int64_t blocks, steps, irregular;
};

/// One index a long row, then one a medium set: counts blocks, steps and irregular entries, and in the final pass
/// writes the block records and the remainders.
template <class MemorySpace>
struct DaspBlockFunctor {
  using value_type = DaspSizes;
  template <class T>
  using View = typename Dasp<MemorySpace>::template View<T>;

  DaspPlacement<MemorySpace> place;
  std::int64_t long_rows, medium_position[3], medium_rows[3], medium_sets[3];  // one, two, four row-blocks
  std::int64_t first_step, first_irregular, total;
  int steps_per_piece;
  double least_real;  // threshold * slots of a step
  View<std::int32_t> row_order, row_length;
  View<DaspBlock> blocks;
  View<std::uint8_t> remainder;
  View<std::uint32_t> long_pieces;
  View<DaspSizes> sizes;

  KOKKOS_INLINE_FUNCTION void init(DaspSizes& s) const { s.blocks = s.steps = s.irregular = 0; }
  KOKKOS_INLINE_FUNCTION void join(DaspSizes& a, const DaspSizes& b) const {
    a.blocks += b.blocks, a.steps += b.steps, a.irregular += b.irregular;
  }
  KOKKOS_INLINE_FUNCTION void join(volatile DaspSizes& a, const volatile DaspSizes& b) const {
    a.blocks = a.blocks + b.blocks, a.steps = a.steps + b.steps, a.irregular = a.irregular + b.irregular;
  }

  KOKKOS_INLINE_FUNCTION DaspSet set(std::int64_t i) const {
    int c = 0;
    while (i >= medium_sets[c]) i -= medium_sets[c++];
    DaspSet s{0, 0, 1 << c, place.rows, place.depth};
    s.position = medium_position[c] + i * s.size();
    const std::int64_t left = medium_rows[c] - i * s.size();
    s.valid = left < s.size() ? static_cast<int>(left) : s.size();
    return s;
  }

  KOKKOS_INLINE_FUNCTION static DaspBlock block(std::int64_t step, int steps, std::int64_t irregular, int loose,
                                                std::int32_t row) {
    DaspBlock b;
    b.first_step = static_cast<std::uint32_t>(step);
    b.irregular_low = static_cast<std::uint32_t>(irregular);
    b.packed = static_cast<std::uint32_t>(steps) | static_cast<std::uint32_t>(loose) << 12 |
               static_cast<std::uint32_t>(irregular >> 32) << 24;
    b.row = row;
    return b;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, DaspSizes& sum, const bool final) const {
    if (i < long_rows) {
      long_row(i, sum, final);
    } else {
      medium_set(set(i - long_rows), sum, final);
    }
    if (final && i == total - 1) sizes(0) = sum;
  }

  KOKKOS_INLINE_FUNCTION void long_row(std::int64_t i, DaspSizes& sum, bool final) const {
    const std::int64_t slots = place.slots(), length = row_length(i), steps = length / slots;
    const std::int64_t pieces = steps <= steps_per_piece ? 1 : (steps + steps_per_piece - 1) / steps_per_piece;
    if (final) {
      long_pieces(i) = static_cast<std::uint32_t>(sum.blocks);
      if (i == long_rows - 1) long_pieces(long_rows) = static_cast<std::uint32_t>(sum.blocks + pieces);
      for (std::int64_t j = 0; j < pieces; ++j) {
        const std::int64_t begin = j * steps_per_piece;
        const std::int64_t count = steps - begin < steps_per_piece ? steps - begin : steps_per_piece;
        blocks(sum.blocks + j) =
            block(first_step + sum.steps + begin, static_cast<int>(count), first_irregular + sum.irregular,
                  j == pieces - 1 ? static_cast<int>(length % slots) : 0, static_cast<std::int32_t>(i));
      }
    }
    sum.blocks += pieces, sum.steps += steps, sum.irregular += length % slots;
  }

  KOKKOS_INLINE_FUNCTION void medium_set(const DaspSet& s, DaspSizes& sum, bool final) const {
    const int width = s.width();
    int steps = 0, longest = 0;
    for (int r = 0; r < s.valid; ++r)
      longest = row_length(s.position + r) > longest ? row_length(s.position + r) : longest;
    for (; steps * width < longest; ++steps) {
      int real = 0;
      for (int r = 0; r < s.valid; ++r) {
        const int left = row_length(s.position + r) - steps * width;
        real += left < 0 ? 0 : left < width ? left : width;
      }
      if (real < least_real) break;
    }
    std::int64_t loose = 0;
    bool consecutive = true;
    const std::int32_t first = row_order(s.position);
    for (int r = 0; r < s.valid; ++r) {
      const int left = row_length(s.position + r) - steps * width;
      if (left > 0) loose += left;
      if (final) {
        remainder(s.position + r - medium_position[0]) = static_cast<std::uint8_t>(left > 0 ? left : 0);
        consecutive = consecutive && row_order(s.position + r) == first + r;
      }
    }
    if (final) {
      blocks(sum.blocks) =
          block(first_step + sum.steps, steps, first_irregular + sum.irregular, 0, consecutive ? first : -1);
    }
    sum.blocks += 1, sum.steps += steps, sum.irregular += loose;
  }
};

/// Writes values (and, the first time, columns) of every stored slot. One team a unit: a long piece, a medium set, a
/// short step, or 256 single rows.
template <class Csr, class Stored>
struct DaspFillFunctor {
  using exec = typename Csr::execution_space;
  using member = typename Kokkos::TeamPolicy<exec>::member_type;
  template <class T>
  using View = typename Dasp<typename Csr::memory_space>::template View<T>;
  static constexpr int singles_per_unit = 256;

  typename Csr::values_type csr_values;
  typename Csr::entries_type csr_entries;  // empty when only values are refreshed
  DaspBlockFunctor<typename Csr::memory_space> sets;
  SpmvDaspArgs a;
  View<std::int32_t> row_length;
  View<std::int64_t> row_begin;
  Stored* values;
  std::int32_t* columns;
  Stored* irregular_values;
  std::int32_t* irregular_columns;
  std::int32_t* runs;
  std::int64_t block_units, short_units, long_blocks, short_first_unit[5];
  bool with_columns;

  template <class T>
  KOKKOS_INLINE_FUNCTION static Stored rounded(const T& v) {
    if constexpr (std::is_same_v<T, Stored>) {
      return v;
    } else if constexpr (std::is_same_v<T, double>) {
      return Stored(v);
    } else {
      return Stored(static_cast<float>(v));
    }
  }
  KOKKOS_INLINE_FUNCTION void put(std::int64_t value_at, std::int64_t column_at, std::int64_t position,
                                  std::int64_t element, bool real) const {
    const std::int64_t from = real ? row_begin(position) + element : 0;
    values[value_at] = real ? rounded(csr_values(from)) : Stored{};
    if (with_columns) columns[column_at] = real ? static_cast<std::int32_t>(csr_entries(from)) : -1;
  }
  KOKKOS_INLINE_FUNCTION void put_irregular(std::int64_t at, std::int64_t from) const {
    irregular_values[at] = rounded(csr_values(from));
    if (with_columns) irregular_columns[at] = static_cast<std::int32_t>(csr_entries(from));
  }
  /// slot: tile, row and k as one number.
  KOKKOS_INLINE_FUNCTION void put_slot(std::int64_t step, int slot, std::int64_t position, std::int64_t element,
                                       bool real) const {
    const std::int64_t base = step << sets.place.log_slots;
    put(base + sets.place.value_at(slot), base + sets.place.column_at(slot), position, element, real);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t unit = team.league_rank();
    if (unit < long_blocks) return long_piece(team, unit);
    if (unit < block_units) return medium(team, unit);
    if (unit < block_units + short_units) return short_step(team, unit - block_units);
    singles(team, (unit - block_units - short_units) * singles_per_unit);
  }

  KOKKOS_INLINE_FUNCTION void long_piece(const member& team, std::int64_t unit) const {
    const DaspBlock b = sets.blocks(unit);
    const int slots = sets.place.slots();
    const int steps = static_cast<int>(b.packed & 0xfffu), loose = static_cast<int>((b.packed >> 12) & 0xfffu);
    const std::int64_t irregular = b.irregular_low | static_cast<std::int64_t>(b.packed >> 24) << 32;
    const std::int64_t first = (unit - sets.long_pieces(b.row)) * sets.steps_per_piece * slots;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, steps * slots), [&](const int i) {
      put_slot(std::int64_t{b.first_step} + (i >> sets.place.log_slots), i & (slots - 1), b.row, first + i, true);
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, loose), [&](const int i) {
      put_irregular(irregular + i, row_begin(b.row) + first + steps * slots + i);
    });
  }

  KOKKOS_INLINE_FUNCTION void medium(const member& team, std::int64_t unit) const {
    const DaspBlock b = sets.blocks(unit);
    const DaspSet s = sets.set(unit - long_blocks);
    const auto& g = sets.place;
    const int slots = g.slots(), width = s.width(), phases = s.phases(), log_width = log2_of(width);
    const int steps = static_cast<int>(b.packed & 0xfffu);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, steps * slots), [&](const int i) {
      const int q = i & (slots - 1), r = q >> log_width, kk = q & (width - 1), step = i >> g.log_slots;
      const std::int64_t element = step * width + kk;
      const int tile = (kk >> g.log_depth) * s.row_blocks + (r >> g.log_rows);
      const int slot = (((tile << g.log_rows) + (r & (g.rows - 1))) << g.log_depth) + (kk & (g.depth - 1));
      const bool real = r < s.valid && element < row_length(s.position + r);
      put_slot(std::int64_t{b.first_step} + step, slot, s.position + r, element, real);
    });
    // Round j holds, in lane order and without gaps, entry j * phases + phase of every lane that has one.
    const std::int64_t irregular = b.irregular_low | static_cast<std::int64_t>(b.packed >> 24) << 32;
    const std::int64_t medium0 = sets.medium_position[0];
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, g.lanes), [&](const int t) {
      const int tile = t / g.rows, r = tile % s.row_blocks * g.rows + t % g.rows, phase = tile / s.row_blocks;
      const int lane = g.result_lane[tile][t % g.rows];
      if (r >= s.valid) return;
      const int left = sets.remainder(s.position + r - medium0);
      for (int e = phase; e < left; e += phases) {
        const int round = e - phase;
        std::int64_t at = irregular;
        for (int o = 0; o < s.valid; ++o) {  // earlier rounds
          const int other = sets.remainder(s.position + o - medium0);
          at += other < round ? other : round;
        }
        for (int u = 0; u < g.lanes; ++u) {  // lower lanes of this round
          const int other_tile = u / g.rows, o = other_tile % s.row_blocks * g.rows + u % g.rows;
          if (o >= s.valid || g.result_lane[other_tile][u % g.rows] >= lane) continue;
          at += round + other_tile / s.row_blocks < sets.remainder(s.position + o - medium0);
        }
        put_irregular(at, row_begin(s.position + r) + row_length(s.position + r) - left + e);
      }
    });
  }

  KOKKOS_INLINE_FUNCTION void short_step(const member& team, std::int64_t unit) const {
    int c = 0;
    while (unit >= short_first_unit[c + 1]) ++c;
    const int cls = DaspPairs13 + c;
    const std::int64_t local = unit - short_first_unit[c];
    const int slots = sets.place.slots(), units = slots / 4;
    const std::int64_t first = a.first_position[cls], count = a.row_count[cls], ones = a.pair_ones_position;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slots), [&](const int q) {
      const int k = q % 4;
      const std::int64_t i = local * units + q / 4;
      std::int64_t position = first + i;
      int element = k;
      bool real = i < count;
      if (cls == DaspPairs13) {
        if (k == 0) position = ones + i;
        element = k == 0 ? 0 : k - 1;
      } else if (cls == DaspPairs22) {
        position = first + 2 * i + k / 2;
        element = k % 2;
        real = 2 * i + k / 2 < count;
      } else if (cls == DaspThree) {
        real = real && k < 3;
      }
      put_slot(a.first_step[cls] + local, q, position, element, real);
    });
    if (!with_columns) return;
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      const std::int64_t at = 2 * (a.first_step[cls] + local - a.first_step[DaspPairs13]);
      const int wide = cls == DaspPairs22 ? 2 : 1;
      const std::int64_t begin = local * units * wide;
      const std::int64_t n = count - begin < units * wide ? count - begin : units * wide;
      runs[at] = runs[at + 1] = run(first + begin, n);
      if (cls == DaspPairs13) runs[at] = run(ones + begin, n);
    });
  }
  /// Rows of one length stand in ascending order inside a window, so the ends tell; a step over a window's edge in a
  /// global sort is ascending too.
  KOKKOS_INLINE_FUNCTION std::int32_t run(std::int64_t position, std::int64_t n) const {
    const std::int32_t begin = a.row_order[position], end = a.row_order[position + n - 1];
    return end - begin == n - 1 ? begin : -1;
  }

  KOKKOS_INLINE_FUNCTION void singles(const member& team, std::int64_t begin) const {
    const std::int64_t count = a.row_count[DaspSingle], first = a.first_position[DaspSingle];
    const std::int64_t end = begin + singles_per_unit < count ? begin + singles_per_unit : count;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(end - begin)), [&](const int i) {
      put_irregular(static_cast<std::int64_t>(a.first_single) + begin + i, row_begin(first + begin + i));
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
