// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_MATRIX_UNIT_DASP_KERNEL_HPP
#define TESSERA_MATRIX_UNIT_DASP_KERNEL_HPP

#include <cstdint>
#include <cstring>

#include "backends/common/Tessera_KernelArgs.hpp"
#include "backends/matrix_unit/Tessera_DaspTile.hpp"
#include "backends/matrix_unit/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y in the DASP format [Lu & Liu, SC'23, sections 3.2-3.4], one wave at a time. The same text
/// runs on devices (one lane a thread) and on hosts (emulated lanes and matrix unit).
///
/// Differences to the paper, all to move fewer bytes or to wait less: y is stored in the user's row order; the
/// irregular entries of a row-block are stored compacted in lane order and so are read coalesced by all lanes; rows cut
/// into several pieces are finished by the last piece to arrive, in the order of the pieces, within the one launch.
///
/// Bytes a launch must move: 12 (FP64) or 6 (16-bit) a slot, x and y once, 4 a row for the row order (none where the
/// rows of a wave are consecutive), 1 a medium row, 16 a wave.

namespace Tessera {

/// Stream: matrix loads pass the first-level cache by. UnitStride: x is contiguous.
template <class Unit, class Wave, bool Stream, bool UnitStride>
class DaspKernel {
 public:
  using Atom = typename Unit::Atom;
  using Tile = DaspTile<Atom>;
  using Value = typename Atom::Operand;
  using Sum = typename Atom::Accumulator;

  /// Does wave `index` of the launch; `args.first_wave[DaspClasses]` waves make up an apply.
  TESSERA_FUNCTION static void run(const Wave& w, const SpmvDaspArgs& args, std::uint32_t index) {
    const DaspKernel kernel(w, args);
    if (index < args.first_wave[DaspMedium1]) return kernel.long_piece(index);
    if (index < args.first_wave[DaspMedium2]) return kernel.medium(DaspMedium1, index, 1);
    if (index < args.first_wave[DaspMedium4]) return kernel.medium(DaspMedium2, index, 2);
    if (index < args.first_wave[DaspPairs13]) return kernel.medium(DaspMedium4, index, 4);
    if (index < args.first_wave[DaspPairs22]) return kernel.template short_steps<DaspPairs13>(index);
    if (index < args.first_wave[DaspThree]) return kernel.template short_steps<DaspPairs22>(index);
    if (index < args.first_wave[DaspFour]) return kernel.template short_steps<DaspThree>(index);
    if (index < args.first_wave[DaspSingle]) return kernel.template short_steps<DaspFour>(index);
    if (index < args.first_wave[DaspEmpty]) return kernel.single(index);
    kernel.empty(index);
  }

  /// Rows a wave takes of the classes without matrix products.
  static constexpr int rows_per_lane = 4;

 private:
  static constexpr int tiles = Tile::tiles, lanes = Tile::lanes, elements = Tile::elements;
  static constexpr int slots_per_lane = tiles * elements;
  static constexpr int values_per_word = 16 / static_cast<int>(sizeof(Value));
  static constexpr int value_words = slots_per_lane / values_per_word, index_words = slots_per_lane / 4;
  /// Irregular entries a lane has in flight.
  static constexpr int irregular_unroll = sizeof(Value) == 8 ? 2 : 4;
  static_assert(value_words > 0 && index_words > 0, "a lane reads whole 16-byte words");

  template <class T>
  using Varying = typename Wave::template Varying<T>;

  struct Step {
    Value value[slots_per_lane];
    std::int32_t column[slots_per_lane];
  };
  struct Gathered {
    Value x[slots_per_lane];
  };
  struct Irregular {
    Value value[irregular_unroll];
    std::int32_t column[irregular_unroll];
  };
  using C = CFragment<Atom>;

  TESSERA_FUNCTION DaspKernel(const Wave& w, const SpmvDaspArgs& args) : w_(w), p_(args) {}

  // ---- memory

  TESSERA_FUNCTION void load_step(std::size_t step, int lane, bool wanted, Step& s) const {
    Word words[value_words + index_words];
    if (wanted) {
      const Word* v = static_cast<const Word*>(p_.values) + step * (value_words * lanes) + lane;
      const Word* c = reinterpret_cast<const Word*>(p_.columns) + step * (index_words * lanes) + lane;
      TESSERA_UNROLL
      for (int i = 0; i < value_words; ++i) words[i] = Wave::template load<Stream>(v + i * lanes);
      TESSERA_UNROLL
      for (int i = 0; i < index_words; ++i) words[value_words + i] = Wave::template load<Stream>(c + i * lanes);
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < value_words; ++i) words[i] = Word{{0u, 0u, 0u, 0u}};
      TESSERA_UNROLL
      for (int i = 0; i < index_words; ++i) words[value_words + i] = Word{{~0u, ~0u, ~0u, ~0u}};
    }
    std::memcpy(s.value, words, sizeof(s.value));
    std::memcpy(s.column, words + value_words, sizeof(s.column));
  }

  /// x where there is an entry; padding reads nothing, so that an infinite x cannot reach a row that does not use it.
  TESSERA_FUNCTION Value gather(std::int32_t column) const {
    Value value{};
    if (column >= 0) {
      value = static_cast<const Value*>(p_.x)[UnitStride ? std::int64_t{column} : column * p_.x_stride];
    }
    return value;
  }

  TESSERA_FUNCTION void gather_step(const Step& s, Gathered& g) const {
    TESSERA_UNROLL
    for (int i = 0; i < slots_per_lane; ++i) g.x[i] = gather(s.column[i]);
  }

  TESSERA_FUNCTION void store(std::int64_t row, Sum sum) const {
    const std::int64_t at = row * p_.y_stride;
    const Sum alpha = static_cast<Sum>(p_.alpha), beta = static_cast<Sum>(p_.beta);
    if constexpr (sizeof(Sum) == 8) {
      double* y = static_cast<double*>(p_.y) + at;
      *y = beta == Sum(0) ? alpha * sum : alpha * sum + beta * *y;
    } else if (p_.y_type == ElementType::Float) {
      float* y = static_cast<float*>(p_.y) + at;
      *y = beta == Sum(0) ? alpha * sum : alpha * sum + beta * *y;
    } else {
      Value* y = static_cast<Value*>(p_.y) + at;
      const Sum result = beta == Sum(0) ? alpha * sum : alpha * sum + beta * static_cast<Sum>(*y);
      *y = Value(result);
    }
  }

  // ---- matrix products

  TESSERA_FUNCTION void clear(Varying<C> (&acc)[tiles]) const {
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int b = 0; b < tiles; ++b) TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) acc[b](lane).r[i] = Sum(0);
    });
  }

  /// One product a tile. `keep(e)` says whether slot e of the lane takes part.
  template <class Keep>
  TESSERA_FUNCTION void multiply(Varying<C> (&acc)[tiles], Varying<Step>& s, Varying<Gathered>& g, Keep keep) const {
    TESSERA_UNROLL
    for (int b = 0; b < tiles; ++b) {
      Varying<AFragment<Atom>> left;
      Varying<BFragment<Atom>> right;
      w_.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::a_registers; ++i) left(lane).r[i] = Value{};
        TESSERA_UNROLL
        for (int e = 0; e < elements; ++e) {
          const bool kept = keep(lane, e);
          left(lane).r[Tile::a_register(e)] = kept ? s(lane).value[b * elements + e] : Value{};
          right(lane).r[e] = kept ? g(lane).x[b * elements + e] : Value{};
        }
      });
      Unit::mma(w_, acc[b], left, right);
    }
  }
  TESSERA_FUNCTION void multiply(Varying<C> (&acc)[tiles], Varying<Step>& s, Varying<Gathered>& g) const {
    multiply(acc, s, g, [](int, int) { return true; });
  }

  /// The one result that lies in this lane.
  TESSERA_FUNCTION Sum own_result(Varying<C> (&acc)[tiles], int lane) const {
    const int tile = Tile::result_tile(lane), reg = Tile::result_register(lane);
    Sum result = Sum(0);
    TESSERA_UNROLL
    for (int b = 0; b < tiles; ++b) TESSERA_UNROLL
    for (int i = 0; i < Tile::result_registers; ++i)
      if (b == tile && i == reg) result = acc[b](lane).r[i];
    return result;
  }

  /// Steps [first, first + count): the next step's loads are under way while this one's x is gathered.
  TESSERA_FUNCTION void steps(Varying<C> (&acc)[tiles], Varying<Step>& s, std::size_t first, int count) const {
    for (int i = 0; i < count; ++i) {
      Varying<Step> next;
      Varying<Gathered> g;
      w_.each([&](int lane) {
        load_step(first + i + 1, lane, i + 1 < count, next(lane));
        gather_step(s(lane), g(lane));
      });
      multiply(acc, s, g);
      w_.each([&](int lane) { s(lane) = next(lane); });
    }
  }

  TESSERA_FUNCTION void add(Sum& sum, Value value, Value x) const {
    sum += static_cast<Sum>(value) * static_cast<Sum>(x);
  }

  // ---- the classes

  TESSERA_FUNCTION static int steps_of(const DaspBlock& b) { return static_cast<int>(b.packed & 0xfffu); }
  TESSERA_FUNCTION static int irregular_of(const DaspBlock& b) { return static_cast<int>((b.packed >> 12) & 0xfffu); }
  TESSERA_FUNCTION static std::size_t first_irregular_of(const DaspBlock& b) {
    return b.irregular_low | (static_cast<std::size_t>(b.packed >> 24) << 32);
  }
  TESSERA_FUNCTION DaspBlock load_block(std::uint32_t index) const {
    const Word word = Wave::template load<Stream>(reinterpret_cast<const Word*>(p_.blocks) + index);
    DaspBlock block;
    std::memcpy(&block, &word, sizeof(block));
    return block;
  }

  TESSERA_FUNCTION void long_piece(std::uint32_t piece) const {
    const DaspBlock block = load_block(piece);
    const int count = steps_of(block), loose = irregular_of(block);
    const std::size_t first_irregular = first_irregular_of(block);
    const Value* values = static_cast<const Value*>(p_.irregular_values);
    Varying<C> acc[tiles];
    Varying<Step> s;
    Varying<Sum> sum;
    clear(acc);
    w_.each([&](int lane) { load_step(block.first_step, lane, count > 0, s(lane)); });
    steps(acc, s, block.first_step, count);
    w_.each([&](int lane) {
      sum(lane) = own_result(acc, lane);
      for (int j = lane; j < loose; j += lanes) {  // what is left of the row, in its own order
        const std::size_t at = first_irregular + j;
        add(sum(lane), Wave::template load<Stream>(values + at),
            gather(Wave::template load<Stream>(p_.irregular_columns + at)));
      }
    });
    const Sum total = w_.sum(sum);

    const std::uint32_t begin = p_.long_pieces[block.row], end = p_.long_pieces[block.row + 1];
    const std::int64_t row = p_.row_order[p_.first_position[DaspLong] + block.row];
    if (end - begin == 1) {
      w_.each([&](int lane) {
        if (lane == 0) store(row, total);
      });
      return;
    }
    Sum* partials = static_cast<Sum*>(p_.partials);
    w_.publish(partials + piece, total);
    if (!w_.last_to_arrive(p_.arrivals + block.row, end - begin)) return;
    Varying<Sum> part;
    w_.each([&](int lane) {
      part(lane) = Sum(0);
      for (std::uint32_t i = begin + lane; i < end; i += lanes) part(lane) += Wave::read_published(partials + i);
    });
    const Sum whole = w_.sum(part);
    w_.each([&](int lane) {
      if (lane == 0) store(row, whole);
    });
  }

  /// A row-block set of `row_blocks` x rows rows; the four tiles of a step are row_blocks x phases, where the phases
  /// of a row follow each other in the row.
  TESSERA_FUNCTION void medium(DaspClass cls, std::uint32_t index, int row_blocks) const {
    const int phases = tiles / row_blocks;
    const std::uint32_t local = index - p_.first_wave[cls];
    const std::uint32_t first_row = local * static_cast<std::uint32_t>(row_blocks * Tile::rows);
    const std::uint32_t position = p_.first_position[cls] + first_row;
    const DaspBlock block = load_block(p_.first_block[cls] + local);
    const int count = steps_of(block);
    std::size_t at = first_irregular_of(block);

    Varying<int> row, phase, left;  // row in the block set, phase, irregular entries of the row
    w_.each([&](int lane) {
      const int tile = Tile::result_tile(lane);
      row(lane) = (tile & (row_blocks - 1)) * Tile::rows + Tile::result_row(lane);
      phase(lane) = tile / row_blocks;
      left(lane) = 0;
      if (first_row + row(lane) < p_.row_count[cls]) {
        left(lane) =
            Wave::template load<Stream>(p_.remainder + (position - p_.first_position[DaspMedium1]) + row(lane));
      }
    });

    // First everything that can be asked for at once: a step, the first irregular entries, then the x of both.
    Varying<C> acc[tiles];
    Varying<Step> s;
    Varying<Irregular> loose;
    Varying<Sum> sum;
    clear(acc);
    w_.each([&](int lane) {
      load_step(block.first_step, lane, count > 0, s(lane));
      sum(lane) = Sum(0);
    });
    int taken = 0;
    typename Wave::Mask more = load_irregular(loose, left, phase, phases, taken, at);
    if (count > 0) {
      Varying<Gathered> g;
      Varying<Step> next;
      w_.each([&](int lane) {
        load_step(block.first_step + std::size_t{1}, lane, count > 1, next(lane));
        gather_step(s(lane), g(lane));
        add_irregular(sum(lane), loose(lane));
      });
      multiply(acc, s, g);
      w_.each([&](int lane) { s(lane) = next(lane); });
      steps(acc, s, block.first_step + std::size_t{1}, count - 1);
    } else {
      w_.each([&](int lane) { add_irregular(sum(lane), loose(lane)); });
    }
    while (more != 0) {
      more = load_irregular(loose, left, phase, phases, taken, at);
      w_.each([&](int lane) { add_irregular(sum(lane), loose(lane)); });
    }

    w_.each([&](int lane) { sum(lane) += own_result(acc, lane); });
    for (int distance = 2; distance >= row_blocks; distance /= 2) {  // over the phases of a row
      Varying<Sum> other;
      w_.shuffle(other, sum, [&](int lane) {
        return Tile::result_lane(Tile::result_row(lane), Tile::result_tile(lane) ^ distance);
      });
      w_.each([&](int lane) { sum(lane) += other(lane); });
    }
    w_.each([&](int lane) {
      if (phase(lane) == 0 && first_row + row(lane) < p_.row_count[cls]) {
        const std::int64_t target =
            block.row >= 0 ? std::int64_t{block.row} + row(lane) : std::int64_t{p_.row_order[position + row(lane)]};
        store(target, sum(lane));
      }
    });
  }

  /// Takes up to irregular_unroll further entries a lane. Round j of a row-block holds, in lane order and without gaps,
  /// entry j * phases + phase of every lane whose row has that many. Returns the lanes with entries beyond.
  TESSERA_FUNCTION typename Wave::Mask load_irregular(Varying<Irregular>& loose, Varying<int>& left,
                                                      Varying<int>& phase, int phases, int& taken,
                                                      std::size_t& at) const {
    const Value* values = static_cast<const Value*>(p_.irregular_values);
    Varying<bool> has;
    typename Wave::Mask mask[irregular_unroll + 1];
    TESSERA_UNROLL
    for (int u = 0; u <= irregular_unroll; ++u) {
      w_.each([&](int lane) { has(lane) = taken * phases + phase(lane) < left(lane); });
      mask[u] = w_.ballot(has);
      if (u < irregular_unroll) ++taken;
    }
    w_.each([&](int lane) {
      std::size_t base = at;
      TESSERA_UNROLL
      for (int u = 0; u < irregular_unroll; ++u) {
        loose(lane).value[u] = Value{};
        loose(lane).column[u] = -1;
        if ((mask[u] >> lane) & 1u) {
          const std::size_t i = base + Wave::rank(mask[u], lane);
          loose(lane).value[u] = Wave::template load<Stream>(values + i);
          loose(lane).column[u] = Wave::template load<Stream>(p_.irregular_columns + i);
        }
        base += Wave::count(mask[u]);
      }
    });
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) at += Wave::count(mask[u]);
    return mask[irregular_unroll];
  }

  TESSERA_FUNCTION void add_irregular(Sum& sum, const Irregular& loose) const {
    Value x[irregular_unroll];
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) x[u] = gather(loose.column[u]);
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) add(sum, loose.value[u], x[u]);
  }

  /// Which of the rows that share a slice of four slots owns slot k.
  template <DaspClass Class>
  TESSERA_FUNCTION static constexpr int piece_of(int k) {
    return Class == DaspPairs13 ? (k > 0) : Class == DaspPairs22 ? k / 2 : 0;
  }

  template <DaspClass Class>
  TESSERA_FUNCTION void short_steps(std::uint32_t index) const {
    const std::uint32_t per_wave = p_.short_steps_per_wave;
    const std::uint32_t end = p_.row_count[Class];
    constexpr std::uint32_t units = tiles * Tile::rows * Tile::slices;  // slices of a step
    constexpr bool twos = Class == DaspPairs22;
    std::uint32_t local = (index - p_.first_wave[Class]) * per_wave;
    Varying<Step> s;
    w_.each([&](int lane) { load_step(std::size_t{p_.first_step[Class]} + local, lane, true, s(lane)); });
    for (std::uint32_t n = 0; n < per_wave; ++n, ++local) {
      if (static_cast<std::uint64_t>(local) * units * (twos ? 2 : 1) >= end) return;
      const bool again = n + 1 < per_wave && static_cast<std::uint64_t>(local + 1) * units * (twos ? 2 : 1) < end;
      Varying<Gathered> g;
      Varying<Step> next;
      w_.each([&](int lane) {
        load_step(std::size_t{p_.first_step[Class]} + local + 1, lane, again, next(lane));
        gather_step(s(lane), g(lane));
      });
      short_results<Class>(s, g, local, end);
      w_.each([&](int lane) { s(lane) = next(lane); });
    }
  }

  template <DaspClass Class>
  TESSERA_FUNCTION void short_results(Varying<Step>& s, Varying<Gathered>& g, std::uint32_t local,
                                      std::uint32_t end) const {
    constexpr int pieces = Class == DaspPairs13 || Class == DaspPairs22 ? 2 : 1;
    constexpr std::uint32_t units = tiles * Tile::rows * Tile::slices;
    TESSERA_UNROLL
    for (int slice = 0; slice < Tile::slices; ++slice) {
      TESSERA_UNROLL
      for (int piece = 0; piece < pieces; ++piece) {
        Varying<C> acc[tiles];
        clear(acc);
        if constexpr (Tile::slices == 1 && pieces == 1) {
          multiply(acc, s, g);
        } else {
          // The slots of the other rows are masked in both factors: zero times an infinity would not be zero.
          multiply(acc, s, g, [=](int lane, int e) {
            const int k = Atom::b_coord(lane, e).row;
            return k / 4 == slice && piece_of<Class>(k % 4) == piece;
          });
        }
        const std::int32_t run = p_.runs[2 * (std::size_t{p_.first_step[Class]} + local) + piece -
                                         2 * std::size_t{p_.first_step[DaspPairs13]}];
        w_.each([&](int lane) {
          const std::uint32_t in_step =
              static_cast<std::uint32_t>(Tile::result_tile(lane) * Tile::rows + Tile::result_row(lane)) * Tile::slices +
              slice;
          std::uint32_t i = local * units + in_step, along = in_step;
          if (Class == DaspPairs22) i = 2 * i + piece, along = 2 * in_step + piece;
          if (i >= end) return;
          const std::uint32_t first =
              Class == DaspPairs13 && piece == 0 ? p_.pair_ones_position : p_.first_position[Class];
          const std::int64_t row =
              run >= 0 ? std::int64_t{run} + along : std::int64_t{p_.row_order[std::size_t{first} + i]};
          store(row, own_result(acc, lane));
        });
      }
    }
  }

  TESSERA_FUNCTION void single(std::uint32_t index) const {
    const Value* values = static_cast<const Value*>(p_.irregular_values) + p_.first_single;
    const std::int32_t* columns = p_.irregular_columns + p_.first_single;
    const std::int32_t* rows = p_.row_order + p_.first_position[DaspSingle];
    w_.each([&](int lane) {
      Value value[rows_per_lane];
      std::int32_t column[rows_per_lane], row[rows_per_lane];
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) {
        const std::uint32_t i = (index - p_.first_wave[DaspSingle]) * (lanes * rows_per_lane) +
                                static_cast<std::uint32_t>(u * lanes + lane);
        row[u] = -1;
        column[u] = -1;
        value[u] = Value{};
        if (i < p_.row_count[DaspSingle]) {
          value[u] = Wave::template load<Stream>(values + i);
          column[u] = Wave::template load<Stream>(columns + i);
          row[u] = Wave::template load<Stream>(rows + i);
        }
      }
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) {
        Sum sum = Sum(0);
        add(sum, value[u], gather(column[u]));
        if (row[u] >= 0) store(row[u], sum);
      }
    });
  }

  TESSERA_FUNCTION void empty(std::uint32_t index) const {
    const std::int32_t* rows = p_.row_order + p_.first_position[DaspEmpty];
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) {
        const std::uint32_t i =
            (index - p_.first_wave[DaspEmpty]) * (lanes * rows_per_lane) + static_cast<std::uint32_t>(u * lanes + lane);
        if (i < p_.row_count[DaspEmpty]) store(Wave::template load<Stream>(rows + i), Sum(0));
      }
    });
  }

  const Wave& w_;
  const SpmvDaspArgs& p_;
};

}  // namespace Tessera

#endif
