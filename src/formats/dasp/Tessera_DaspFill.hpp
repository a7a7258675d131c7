// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_DASP_DASP_FILL_HPP
#define TESSERA_FORMATS_DASP_DASP_FILL_HPP

#include <cstdint>
#include <type_traits>

#include "formats/dasp/Tessera_Dasp.hpp"
#include "formats/dasp/Tessera_DaspOrder.hpp"

/// \file
/// Second half of the DASP conversion: sizes of the row-blocks, and the one kernel that writes every slot.

namespace Tessera {
namespace Impl {

KOKKOS_INLINE_FUNCTION constexpr int log2_of(int n) {
  int log = 0;
  while (n > 1) n /= 2, ++log;
  return log;
}

/// Where slot (tile, row, k) of a step lies, in values and in columns: two tables of one entry per slot, indexed by
/// tile, row, k as one number, in device memory (threads look up different entries). All extents are powers of two.
template <class MemorySpace>
struct DaspPlacement {
  typename Experimental::Dasp<MemorySpace>::template View<std::uint16_t> value_at, column_at;
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

/// One index a long row, then one a medium set: counts row-blocks, steps and irregular entries, and in the final pass
/// writes the row-blocks' records and the remainders.
template <class MemorySpace>
struct DaspBlockFunctor {
  using value_type = DaspSizes;
  template <class T>
  using View = typename Experimental::Dasp<MemorySpace>::template View<T>;

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

/// Everything the fill needs of a format. It lies in the format's own memory, since a kernel argument of this size
/// would cost a staging copy and a wait at every launch.
template <class MemorySpace>
struct DaspFillData {
  static constexpr int singles_per_unit = 256;  // single rows that a Kokkos team of the fill takes

  template <class T>
  using View = typename Experimental::Dasp<MemorySpace>::template View<T>;
  DaspBlockFunctor<MemorySpace> sets;
  SpmvDaspArgs a;
  View<std::int32_t> row_length;
  View<std::int64_t> row_begin;
  void *values, *irregular_values;
  std::int32_t *columns, *irregular_columns, *runs;
  std::int64_t block_units, short_units, long_blocks, short_first_unit[5];
};

/// Writes values (and, the first time, columns) of every stored slot. One Kokkos team per unit: a long piece, a medium
/// set, a short step, or 256 single rows. A thread writes four consecutive slots of a row at a time: four independent
/// loads.
template <class Exec, class Values, class Entries, class Stored>
struct DaspFillFunctor {
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Data = DaspFillData<typename Values::memory_space>;
  static constexpr int singles_per_unit = Data::singles_per_unit, quad = 4;

  Values csr_values;
  Entries csr_entries;  // empty when only values are refreshed
  const Data* data;
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

  /// Where quads go; held in registers, because the compiler must assume that stores change *data.
  struct Target {
    Stored* values;
    std::int32_t* columns;
    const std::uint16_t *value_at, *column_at;
    int log_slots;
  };
  KOKKOS_INLINE_FUNCTION Target target() const {
    const auto& place = data->sets.place;
    return {static_cast<Stored*>(data->values), data->columns, place.value_at.data(), place.column_at.data(),
            place.log_slots};
  }

  /// Slots [slot, slot + 4) of a step (tile, row, k as one number) from CSR entries `from`; -1: padding.
  KOKKOS_INLINE_FUNCTION void put_quad(const Target& t, std::int64_t step, int slot,
                                       const std::int64_t (&from)[quad]) const {
    Stored value[quad];
    std::int32_t column[quad];
    for (int j = 0; j < quad; ++j) {
      value[j] = from[j] >= 0 ? rounded(csr_values(from[j])) : Stored{};
      column[j] = with_columns && from[j] >= 0 ? static_cast<std::int32_t>(csr_entries(from[j])) : -1;
    }
    const std::int64_t base = step << t.log_slots;
    for (int j = 0; j < quad; ++j) {
      t.values[base + t.value_at[slot + j]] = value[j];
      if (with_columns) t.columns[base + t.column_at[slot + j]] = column[j];
    }
  }
  KOKKOS_INLINE_FUNCTION void put_irregular(std::int64_t at, std::int64_t from) const {
    static_cast<Stored*>(data->irregular_values)[at] = rounded(csr_values(from));
    if (with_columns) data->irregular_columns[at] = static_cast<std::int32_t>(csr_entries(from));
  }

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const std::int64_t unit = team.league_rank(), blocks = data->block_units, shorts = data->short_units;
    if (unit < data->long_blocks) return long_piece(team, unit);
    if (unit < blocks) return medium(team, unit);
    if (unit < blocks + shorts) return short_step(team, unit - blocks);
    singles(team, (unit - blocks - shorts) * singles_per_unit);
  }

  KOKKOS_INLINE_FUNCTION void long_piece(const member& team, std::int64_t unit) const {
    const auto& sets = data->sets;
    const Target t = target();
    const DaspBlock b = sets.blocks(unit);
    const int slots = 1 << t.log_slots;
    const int steps = static_cast<int>(b.packed & 0xfffu), loose = static_cast<int>((b.packed >> 12) & 0xfffu);
    const std::int64_t irregular = b.irregular_low | static_cast<std::int64_t>(b.packed >> 24) << 32;
    const std::int64_t first = data->row_begin(b.row) + (unit - sets.long_pieces(b.row)) * sets.steps_per_piece * slots;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, steps * slots / quad), [&](const int n) {
      const int i = n * quad;
      const std::int64_t from[quad] = {first + i, first + i + 1, first + i + 2, first + i + 3};
      put_quad(t, std::int64_t{b.first_step} + (i >> t.log_slots), i & (slots - 1), from);
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, loose),
                         [&](const int i) { put_irregular(irregular + i, first + steps * slots + i); });
  }

  KOKKOS_INLINE_FUNCTION void medium(const member& team, std::int64_t unit) const {
    const auto& sets = data->sets;
    const auto& g = sets.place;
    const Target t = target();
    const DaspBlock b = sets.blocks(unit);
    const DaspSet s = sets.set(unit - data->long_blocks);
    const int slots = 1 << t.log_slots, width = s.width(), log_width = log2_of(width);
    const int log_rows = g.log_rows, log_depth = g.log_depth, log_blocks = log2_of(s.row_blocks);
    const int steps = static_cast<int>(b.packed & 0xfffu);
    const std::int64_t* const begin = data->row_begin.data() + s.position;
    const std::int32_t* const length = data->row_length.data() + s.position;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, steps * slots / quad), [&](const int n) {
      const int i = n * quad, q = i & (slots - 1), r = q >> log_width, kk = q & (width - 1), step = i >> t.log_slots;
      const int tile = ((kk >> log_depth) << log_blocks) + (r >> log_rows);
      const int slot =
          (((tile << log_rows) + (r & ((1 << log_rows) - 1))) << log_depth) + (kk & ((1 << log_depth) - 1));
      const int element = step * width + kk, left = r < s.valid ? length[r] - element : 0;
      const std::int64_t at = r < s.valid ? begin[r] + element : 0;
      std::int64_t from[quad];
      for (int j = 0; j < quad; ++j) from[j] = j < left ? at + j : -1;
      put_quad(t, std::int64_t{b.first_step} + step, slot, from);
    });
    // Round j holds, in lane order and without gaps, entry j * phases + phase of every lane that has one.
    const std::uint8_t* const remainder = sets.remainder.data() + (s.position - sets.medium_position[0]);
    const int lanes = g.lanes, phases = s.phases(), row_mask = (1 << log_rows) - 1;
    const auto row_of = [&](int u) { return (((u >> log_rows) & (s.row_blocks - 1)) << log_rows) + (u & row_mask); };
    const std::int64_t irregular = b.irregular_low | static_cast<std::int64_t>(b.packed >> 24) << 32;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes), [&](const int u) {
      const int r = row_of(u), phase = (u >> log_rows) >> log_blocks, lane = g.result_lane[u >> log_rows][u & row_mask];
      const int left = r < s.valid ? remainder[r] : 0;
      std::int64_t round_begin = irregular;
      for (int e = phase; e < left; e += phases) {
        int all = 0, below = 0;  // lanes of this round, and those before this one
        for (int v = 0; v < lanes; ++v) {
          const int o = row_of(v);
          const bool has = o < s.valid && e - phase + ((v >> log_rows) >> log_blocks) < remainder[o];
          all += has;
          below += has && g.result_lane[v >> log_rows][v & row_mask] < lane;
        }
        put_irregular(round_begin + below, begin[r] + length[r] - left + e);
        round_begin += all;
      }
    });
  }

  KOKKOS_INLINE_FUNCTION void short_step(const member& team, std::int64_t unit) const {
    int c = 0;
    while (unit >= data->short_first_unit[c + 1]) ++c;
    const int cls = DaspPairs13 + c;
    const SpmvDaspArgs& a = data->a;
    const Target t = target();
    const std::int64_t local = unit - data->short_first_unit[c], step = a.first_step[cls] + local;
    const int units = (1 << t.log_slots) / quad;
    const std::int64_t first = a.first_position[cls], count = a.row_count[cls], ones = a.pair_ones_position;
    const std::int64_t* const begin = data->row_begin.data();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, units), [&](const int n) {
      const std::int64_t i = local * units + n;
      std::int64_t from[quad] = {-1, -1, -1, -1};
      if (cls == DaspPairs22) {
        for (int half = 0; half < 2; ++half) {
          if (2 * i + half >= count) continue;
          from[2 * half] = begin[first + 2 * i + half];
          from[2 * half + 1] = from[2 * half] + 1;
        }
      } else if (i < count) {
        const std::int64_t at = begin[first + i];
        if (cls == DaspPairs13) {
          from[0] = begin[ones + i];
          for (int j = 0; j < 3; ++j) from[1 + j] = at + j;
        } else {
          for (int j = 0; j < (cls == DaspThree ? 3 : 4); ++j) from[j] = at + j;
        }
      }
      put_quad(t, step, n * quad, from);
    });
    if (!with_columns) return;
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      std::int32_t* const runs = data->runs + 2 * (step - a.first_step[DaspPairs13]);
      const int wide = cls == DaspPairs22 ? 2 : 1;
      const std::int64_t at = local * units * wide;
      const std::int64_t n = count - at < units * wide ? count - at : units * wide;
      runs[0] = runs[1] = run(first + at, n);
      if (cls == DaspPairs13) runs[0] = run(ones + at, n);
    });
  }
  /// Rows of one length stand in ascending order inside a sort window, so the ends tell; a step over its edge in a
  /// global sort is ascending too.
  KOKKOS_INLINE_FUNCTION std::int32_t run(std::int64_t position, std::int64_t n) const {
    const std::int32_t begin = data->a.row_order[position], end = data->a.row_order[position + n - 1];
    return end - begin == n - 1 ? begin : -1;
  }

  KOKKOS_INLINE_FUNCTION void singles(const member& team, std::int64_t begin) const {
    const SpmvDaspArgs& a = data->a;
    const std::int64_t count = a.row_count[DaspSingle], first = a.first_position[DaspSingle];
    const std::int64_t end = begin + singles_per_unit < count ? begin + singles_per_unit : count;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(end - begin)), [&](const int i) {
      put_irregular(static_cast<std::int64_t>(a.first_single) + begin + i, data->row_begin(first + begin + i));
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
