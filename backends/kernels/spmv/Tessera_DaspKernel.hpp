// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_DASP_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_DASP_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_SpmvArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/kernels/spmv/Tessera_DaspTile.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y in the DASP format [Lu & Liu, SC'23, sections 3.2-3.4], one wave at a time. The same text
/// runs on devices (one lane per thread) and on hosts (emulated lanes and matrix unit).
///
/// Differences to the paper, all to move fewer bytes or to wait less: y is stored in the user's row order; the
/// irregular entries of a row-block are stored compacted in lane order and so are read coalesced by all lanes; rows cut
/// into several pieces are finished by the last piece to arrive, in the order of the pieces, within the one launch.
///
/// Bytes that a launch must move: 12 (FP64) or 6 (16-bit) per slot, x and y once, 4 per row for the row order (none
/// where the rows of a wave are consecutive), 1 per medium row, 16 per wave.

namespace Tessera {

/// Streaming: matrix loads pass the first-level cache by. UnitStride: x is contiguous.
template <class Unit, class Wave, bool Streaming, bool UnitStride>
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

  /// Rows that a wave takes of the classes without matrix products.
  static constexpr int rows_per_lane = 4;

 private:
  static constexpr int tiles = Tile::tiles, lanes = Tile::lanes, elements = Tile::elements;
  static constexpr int slots_per_lane = tiles * elements;
  static constexpr int values_per_word = 16 / static_cast<int>(sizeof(Value));
  static constexpr int value_words = slots_per_lane / values_per_word, index_words = slots_per_lane / 4;
  /// Irregular entries that a lane has in flight.
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
  struct IrregularX {
    Value x[irregular_unroll];
  };

  TESSERA_FUNCTION DaspKernel(const Wave& w, const SpmvDaspArgs& args) : w_(w), p_(args) {}

  // ---- memory

  TESSERA_FUNCTION void load_step(std::size_t step, int lane, bool wanted, Step& s) const {
    Word words[value_words + index_words];
    if (wanted) {
      const Word* v = static_cast<const Word*>(p_.values) + step * (value_words * lanes) + lane;
      const Word* c = reinterpret_cast<const Word*>(p_.columns) + step * (index_words * lanes) + lane;
      TESSERA_UNROLL
      for (int i = 0; i < value_words; ++i) words[i] = Wave::template load<Streaming>(v + i * lanes);
      TESSERA_UNROLL
      for (int i = 0; i < index_words; ++i) words[value_words + i] = Wave::template load<Streaming>(c + i * lanes);
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < value_words; ++i) words[i] = Word{{0u, 0u, 0u, 0u}};
      TESSERA_UNROLL
      for (int i = 0; i < index_words; ++i) words[value_words + i] = Word{{~0u, ~0u, ~0u, ~0u}};
    }
    __builtin_memcpy(s.value, words, sizeof(s.value));
    __builtin_memcpy(s.column, words + value_words, sizeof(s.column));
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

  TESSERA_FUNCTION void store(std::int64_t row, Sum sum) const { store_result<Value>(p_, row * p_.y_stride, sum); }

  // ---- matrix products

  /// The register with the lane's result. Written as a selection among values: an index would put the accumulators into
  /// memory.
  TESSERA_FUNCTION static Sum own_register(int i, const CFragment<Atom>& c) {
    const Sum c0 = c.r[0], c1 = c.r[1];
    const Sum low = (i & 1) ? c1 : c0;
    if constexpr (Tile::result_registers == 2) {
      return low;
    } else {
      const Sum c2 = c.r[2], c3 = c.r[3];
      const Sum high = (i & 1) ? c3 : c2;
      return (i & 2) ? high : low;
    }
  }

  /// One product per tile; every lane adds the one result that lies in it. Summing here instead of in the accumulators
  /// costs an addition per tile and saves the registers that the next loads need. `keep(lane, e)` says whether slot e
  /// of the lane takes part.
  template <class Keep>
  TESSERA_FUNCTION void multiply(Varying<Sum>& sum, Varying<Step>& s, Varying<Gathered>& g, Keep keep) const {
    TESSERA_UNROLL
    for (int b = 0; b < tiles; ++b) {
      Varying<AFragment<Atom>> left;
      Varying<BFragment<Atom>> right;
      Varying<CFragment<Atom>> acc;
      w_.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) acc(lane).r[i] = Sum(0);
        TESSERA_UNROLL
        for (int i = 0; i < Atom::a_registers; ++i) left(lane).r[i] = Value{};
        TESSERA_UNROLL
        for (int e = 0; e < elements; ++e) {
          const bool kept = keep(lane, e);
          left(lane).r[Tile::a_register(e)] = kept ? s(lane).value[b * elements + e] : Value{};
          right(lane).r[e] = kept ? g(lane).x[b * elements + e] : Value{};
        }
      });
      Unit::mma(w_, acc, left, right);
      w_.each([&](int lane) {
        const Sum result = own_register(Tile::result_register(lane), acc(lane));
        if (Tile::result_tile(lane) == b) sum(lane) += result;
      });
    }
  }
  TESSERA_FUNCTION void multiply(Varying<Sum>& sum, Varying<Step>& s, Varying<Gathered>& g) const {
    multiply(sum, s, g, [](int, int) { return true; });
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
    const Word word = Wave::template load<Streaming>(reinterpret_cast<const Word*>(p_.blocks) + index);
    DaspBlock block;
    __builtin_memcpy(&block, &word, sizeof(block));
    return block;
  }

  TESSERA_FUNCTION void long_piece(std::uint32_t piece) const {
    const DaspBlock block = load_block(piece);
    const int count = steps_of(block), loose = irregular_of(block);
    const std::size_t first_irregular = first_irregular_of(block);
    const LongRow row{p_.long_pieces[block.row], p_.long_pieces[block.row + 1],
                      p_.row_order[p_.first_position[DaspLong] + block.row]};
    Varying<Step> s;
    Varying<Sum> sum;
    w_.each([&](int lane) {
      load_step(block.first_step, lane, count > 0, s(lane));
      sum(lane) = Sum(0);
    });
    for (int i = 0; i < count; ++i) {  // the next step's loads are under way while this one's x is gathered
      Varying<Step> next;
      Varying<Gathered> g;
      w_.each([&](int lane) {
        load_step(std::size_t{block.first_step} + i + 1, lane, i + 1 < count, next(lane));
        gather_step(s(lane), g(lane));
      });
      multiply(sum, s, g);
      w_.each([&](int lane) { s(lane) = next(lane); });
    }
    if (loose > 0) add_rest(sum, first_irregular, loose);
    finish_piece(piece, row, p_.arrivals + block.row, w_.sum(sum));
  }

  /// The pieces of a long row, and its row of y.
  struct LongRow {
    std::uint32_t begin, end;
    std::int64_t row;
  };

  /// What is left of a long row, less than a step, in its own order.
  TESSERA_FUNCTION void add_rest(Varying<Sum>& sum, std::size_t first, int count) const {
    const Value* values = static_cast<const Value*>(p_.irregular_values) + first;
    const std::int32_t* columns = p_.irregular_columns + first;
    Varying<Step> rest;
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int u = 0; u < slots_per_lane; ++u) {
        const int j = u * lanes + lane;
        rest(lane).value[u] = Value{};
        rest(lane).column[u] = -1;
        if (j < count) {
          rest(lane).value[u] = Wave::template load<Streaming>(values + j);
          rest(lane).column[u] = Wave::template load<Streaming>(columns + j);
        }
      }
      Gathered g;
      gather_step(rest(lane), g);
      TESSERA_UNROLL
      for (int u = 0; u < slots_per_lane; ++u) add(sum(lane), rest(lane).value[u], g.x[u]);
    });
  }

  /// Stores a row of one piece; of several, the last one to arrive adds all partial sums.
  TESSERA_FUNCTION void finish_piece(std::uint32_t piece, const LongRow& of, std::uint32_t* arrivals, Sum total) const {
    if (of.end - of.begin == 1) {
      w_.each([&](int lane) {
        if (lane == 0) store(of.row, total);
      });
      return;
    }
    Sum* partials = static_cast<Sum*>(p_.partials);
    w_.publish(partials + piece, total);
    if (!w_.last_to_arrive(arrivals, of.end - of.begin)) return;
    Varying<Sum> own;
    w_.each([&](int lane) {
      own(lane) = Sum(0);
      for (std::uint32_t i = of.begin + lane; i < of.end; i += lanes) own(lane) += Wave::read_published(partials + i);
    });
    const Sum whole = w_.sum(own);
    w_.each([&](int lane) {
      if (lane == 0) store(of.row, whole);
    });
  }

  /// What a wave knows of a set of row-blocks before it multiplies: the record, each lane's row and irregular entries,
  /// and the loads under way.
  struct Set {
    DaspBlock block;
    Varying<int> left;             // irregular entries of the lane's row
    Varying<std::int32_t> target;  // row of y, -1: none or not this lane's to store
    Varying<Irregular> loose;
    int taken;                 // irregular rounds asked for
    std::size_t at;            // next irregular entry
    typename Wave::Mask more;  // lanes with further ones
  };

  /// A set of `row_blocks` x rows rows; the four tiles of a step are row_blocks x phases, where the phases of a row
  /// follow each other in the row. Loads are issued as early as their addresses are known, and nothing is waited for
  /// before everything that can be asked for has been: a wave spends its time waiting for memory, so the number of
  /// waits in a row is what counts.
  TESSERA_FUNCTION void medium(DaspClass cls, std::uint32_t index, int row_blocks) const {
    const int phases = tiles / row_blocks;
    const std::uint32_t local = index - p_.first_wave[cls];
    const std::uint32_t first_row = local * static_cast<std::uint32_t>(row_blocks * Tile::rows);
    const std::uint32_t position = p_.first_position[cls] + first_row, row_count = p_.row_count[cls];
    Set set;
    set.block = load_block(p_.first_block[cls] + local);
    Varying<int> row, phase;  // of the lane in the set
    w_.each([&](int lane) {
      const int tile = Tile::result_tile(lane);
      row(lane) = (tile & (row_blocks - 1)) * Tile::rows + Tile::result_row(lane);
      phase(lane) = tile / row_blocks;
      set.left(lane) = 0;
      if (first_row + row(lane) < row_count) {
        set.left(lane) =
            Wave::template load<Streaming>(p_.remainder + (position - p_.first_position[DaspMedium1]) + row(lane));
      }
    });
    const int count = steps_of(set.block);
    Varying<Step> s;
    Varying<Gathered> g;
    Varying<IrregularX> loose_x;
    Varying<Sum> sum;
    w_.each([&](int lane) {
      load_step(set.block.first_step, lane, count > 0, s(lane));
      set.target(lane) = -1;
      if (phase(lane) == 0 && first_row + row(lane) < row_count) {
        set.target(lane) = set.block.row >= 0
                               ? set.block.row + row(lane)
                               : Wave::template load<Streaming>(p_.row_order + std::size_t{position} + row(lane));
      }
    });
    set.taken = 0;
    set.at = first_irregular_of(set.block);
    load_irregular(set, phase, phases);
    w_.each([&](int lane) {
      gather_step(s(lane), g(lane));
      gather_irregular(set.loose(lane), loose_x(lane));
      sum(lane) = Sum(0);
    });
    for (int i = 0; i < count; ++i) {
      Varying<Step> next;
      w_.each([&](int lane) { load_step(std::size_t{set.block.first_step} + i + 1, lane, i + 1 < count, next(lane)); });
      multiply(sum, s, g);
      w_.each([&](int lane) {
        s(lane) = next(lane);
        gather_step(s(lane), g(lane));
      });
    }
    w_.each([&](int lane) { add_irregular(sum(lane), set.loose(lane), loose_x(lane)); });
    while (set.more != 0) {
      load_irregular(set, phase, phases);
      w_.each([&](int lane) {
        gather_irregular(set.loose(lane), loose_x(lane));
        add_irregular(sum(lane), set.loose(lane), loose_x(lane));
      });
    }
    add_phases(sum, row_blocks);
    w_.each([&](int lane) {
      if (set.target(lane) >= 0) store(set.target(lane), sum(lane));
    });
  }

  /// To every lane's sum those of the other phases of its row.
  TESSERA_FUNCTION void add_phases(Varying<Sum>& sum, int row_blocks) const {
    for (int distance = 2; distance >= row_blocks; distance /= 2) {
      Varying<Sum> other;
      w_.shuffle(other, sum, [&](int lane) {
        return Tile::result_lane(Tile::result_row(lane), Tile::result_tile(lane) ^ distance);
      });
      w_.each([&](int lane) { sum(lane) += other(lane); });
    }
  }

  /// Asks for up to irregular_unroll further entries per lane. Round j of a set holds, in lane order and without gaps,
  /// entry j * phases + phase of every lane whose row has that many.
  TESSERA_FUNCTION void load_irregular(Set& set, Varying<int>& phase, int phases) const {
    const Value* values = static_cast<const Value*>(p_.irregular_values);
    Varying<bool> has;
    typename Wave::Mask mask[irregular_unroll + 1];
    TESSERA_UNROLL
    for (int u = 0; u <= irregular_unroll; ++u) {
      w_.each([&](int lane) { has(lane) = (set.taken + u) * phases + phase(lane) < set.left(lane); });
      mask[u] = w_.ballot(has);
    }
    set.taken += irregular_unroll;
    w_.each([&](int lane) {
      std::size_t base = set.at;
      TESSERA_UNROLL
      for (int u = 0; u < irregular_unroll; ++u) {
        set.loose(lane).value[u] = Value{};
        set.loose(lane).column[u] = -1;
        if ((mask[u] >> lane) & 1u) {
          const std::size_t i = base + Wave::rank(mask[u], lane);
          set.loose(lane).value[u] = Wave::template load<Streaming>(values + i);
          set.loose(lane).column[u] = Wave::template load<Streaming>(p_.irregular_columns + i);
        }
        base += Wave::count(mask[u]);
      }
    });
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) set.at += Wave::count(mask[u]);
    set.more = mask[irregular_unroll];
  }

  TESSERA_FUNCTION void gather_irregular(const Irregular& loose, IrregularX& x) const {
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) x.x[u] = gather(loose.column[u]);
  }
  TESSERA_FUNCTION void add_irregular(Sum& sum, const Irregular& loose, const IrregularX& x) const {
    TESSERA_UNROLL
    for (int u = 0; u < irregular_unroll; ++u) add(sum, loose.value[u], x.x[u]);
  }

  /// Which of the rows that share a slice of four slots owns slot k.
  template <DaspClass Class>
  TESSERA_FUNCTION static constexpr int piece_of(int k) {
    return Class == DaspPairs13 ? (k > 0) : Class == DaspPairs22 ? k / 2 : 0;
  }

  /// A wave takes p_.short_steps_per_wave steps, the next one's loads under way while it multiplies this one.
  template <DaspClass Class>
  TESSERA_FUNCTION void short_steps(std::uint32_t index) const {
    constexpr std::uint64_t rows_per_step = tiles * Tile::rows * Tile::slices * (Class == DaspPairs22 ? 2 : 1);
    const std::uint32_t count = static_cast<std::uint32_t>((p_.row_count[Class] + rows_per_step - 1) / rows_per_step);
    const std::uint32_t first = (index - p_.first_wave[Class]) * p_.short_steps_per_wave;
    const std::uint32_t end = first + p_.short_steps_per_wave < count ? first + p_.short_steps_per_wave : count;
    const std::size_t first_step = p_.first_step[Class];
    Varying<Step> s;
    w_.each([&](int lane) { load_step(first_step + first, lane, true, s(lane)); });
    for (std::uint32_t local = first; local < end; ++local) {
      Varying<Gathered> g;
      Varying<Step> next;
      w_.each([&](int lane) {
        load_step(first_step + local + 1, lane, local + 1 < end, next(lane));
        gather_step(s(lane), g(lane));
      });
      short_results<Class>(s, g, local);
      w_.each([&](int lane) { s(lane) = next(lane); });
    }
  }

  template <DaspClass Class>
  TESSERA_FUNCTION void short_results(Varying<Step>& s, Varying<Gathered>& g, std::uint32_t local) const {
    constexpr int pieces = Class == DaspPairs13 || Class == DaspPairs22 ? 2 : 1;
    constexpr std::uint32_t units = tiles * Tile::rows * Tile::slices;  // slices of four slots in a step
    const std::uint32_t end = p_.row_count[Class];
    const std::int32_t* runs = p_.runs + 2 * (std::size_t{p_.first_step[Class]} + local - p_.first_step[DaspPairs13]);
    // The rows first: they are asked for while the products wait for x.
    Varying<std::int32_t> row[pieces * Tile::slices];
    TESSERA_UNROLL
    for (int piece = 0; piece < pieces; ++piece) {
      const std::int32_t run = runs[piece];
      const std::int32_t* order =
          p_.row_order + (Class == DaspPairs13 && piece == 0 ? p_.pair_ones_position : p_.first_position[Class]);
      TESSERA_UNROLL
      for (int slice = 0; slice < Tile::slices; ++slice) {
        w_.each([&](int lane) {
          std::uint32_t along =
              static_cast<std::uint32_t>(Tile::result_tile(lane) * Tile::rows + Tile::result_row(lane)) * Tile::slices +
              slice;
          std::uint32_t i = local * units + along;
          if (Class == DaspPairs22) {
            i = 2 * i + piece;
            along = 2 * along + piece;
          }
          std::int32_t& target = row[piece * Tile::slices + slice](lane);
          target = -1;
          if (i < end)
            target = run >= 0 ? run + static_cast<std::int32_t>(along) : Wave::template load<Streaming>(order + i);
        });
      }
    }
    TESSERA_UNROLL
    for (int piece = 0; piece < pieces; ++piece) {
      TESSERA_UNROLL
      for (int slice = 0; slice < Tile::slices; ++slice) {
        Varying<Sum> sum;
        w_.each([&](int lane) { sum(lane) = Sum(0); });
        if constexpr (Tile::slices == 1 && pieces == 1) {
          multiply(sum, s, g);
        } else {
          // The slots of the other rows are masked in both factors: zero times an infinity would not be zero.
          multiply(sum, s, g, [=](int lane, int e) {
            const int k = Atom::b_coord(lane, e).row;
            return k / 4 == slice && piece_of<Class>(k % 4) == piece;
          });
        }
        w_.each([&](int lane) {
          const std::int32_t target = row[piece * Tile::slices + slice](lane);
          if (target >= 0) store(target, sum(lane));
        });
      }
    }
  }

  TESSERA_FUNCTION void single(std::uint32_t index) const {
    const Value* values = static_cast<const Value*>(p_.irregular_values) + p_.first_single;
    const std::int32_t* columns = p_.irregular_columns + p_.first_single;
    const std::int32_t* rows = p_.row_order + p_.first_position[DaspSingle];
    w_.each([&](int lane) {
      Value value[rows_per_lane], x[rows_per_lane];
      std::int32_t column[rows_per_lane], row[rows_per_lane];
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) {  // beyond the end: the last one once more, not stored; no branch
        const std::uint32_t i = (index - p_.first_wave[DaspSingle]) * (lanes * rows_per_lane) +
                                static_cast<std::uint32_t>(u * lanes + lane);
        const std::uint32_t last = p_.row_count[DaspSingle] - 1, at = i < last ? i : last;
        value[u] = Wave::template load<Streaming>(values + at);
        column[u] = Wave::template load<Streaming>(columns + at);
        row[u] = Wave::template load<Streaming>(rows + at);
        if (i > last) row[u] = -1;
      }
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) x[u] = gather(column[u]);
      TESSERA_UNROLL
      for (int u = 0; u < rows_per_lane; ++u) {
        Sum sum = Sum(0);
        add(sum, value[u], x[u]);
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
        if (i < p_.row_count[DaspEmpty]) store(Wave::template load<Streaming>(rows + i), Sum(0));
      }
    });
  }

  const Wave& w_;
  const SpmvDaspArgs& p_;
};

}  // namespace Tessera

#endif
