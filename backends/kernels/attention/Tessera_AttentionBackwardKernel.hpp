// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_BACKWARD_KERNEL_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_BACKWARD_KERNEL_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/kernels/attention/Tessera_AttentionBackwardHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionTiles.hpp"

/// \file
/// Gradients of attention on matrix units, in two passes, each of which computes scores S and weights P = e^(S -
/// log-sum-exp) again. A wave takes a window of rows of the pattern, or a part of one, and makes of each block
///
///     S^T(16 x 8)   = K(16 x d) Q^T(d x 8),    dP^T(16 x 8) = V(16 x e) dO^T(e x 8)
///     dS^T          = P^T (dP^T - <dO_i, O_i>)
///     dQ^T(d x 8)  += K^T(d x 16) dS^T(16 x 8)
///
/// and then, of a window of columns, by rows of the transposed pattern, whose gathered rows are those of Q and dO,
///
///     dK^T(d x 8) += Q^T(d x 16) dS(16 x 8),   dV^T(e x 8) += dO^T(e x 16) P(16 x 8)
///
/// one text for both. The passes by rows leaves log-sum-exp and <dO_i, O_i> side by side for the one by columns. No sum
/// needs atomics: parts of split windows are added in their order by another launch.
///
/// Gathered rows are read twice, for products as words and for sums as pieces (AttentionTiles), the second time from
/// the first-level cache.
///
/// P and dS are rounded to 16 bits before they multiply. In FP16 P is 2^14 times as large then, and dS of a row of the
/// window is scaled by a power of two that follows its largest one loosely (as forward WeightRange does), so that
/// neither overflows, and what is below the normal range is 2^-32 of the largest one. As forward, sums that are not
/// finite are made again row by row, with zeros instead of gathered rows that the row does not use.

namespace Tessera {

template <class Unit, class Wave, int Height, int Columns, bool Exact, bool ByColumns>
class AttentionBackwardKernel : AttentionTiles<Unit, Wave, Height, Columns, Exact> {
  using Tiles = AttentionTiles<Unit, Wave, Height, Columns, Exact>;
  using typename Tiles::Atom;
  using typename Tiles::GatheredWords;
  using typename Tiles::Operand;
  using typename Tiles::OwnBits;
  using typename Tiles::OwnWords;
  using typename Tiles::Pieces;
  using typename Tiles::Place;
  using typename Tiles::RowWord;
  using typename Tiles::Scores;
  using typename Tiles::Sums;
  using typename Tiles::UsedSlots;
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Tiles::all_rows;
  using Tiles::height;
  using Tiles::own_rows;
  using Tiles::rows;
  using Tiles::window_rows;
  using Head = AttentionBackwardHead<Operand, ByColumns>;
  using Shape = typename Tiles::Shape;
  static_assert(Tiles::ahead, "all words of gathered rows at once");

  static constexpr bool narrow = WeightRange<Operand>::narrow;
  static constexpr float weight_scale = narrow ? 16384.0f : 1.0f;
  /// dS is scaled so that its largest one is 2^first or more, and again where it is beyond 2^most.
  static constexpr int first = 7;
  static constexpr float most = 32768;

  /// Column vectors that an accumulator of a lane has, those of Place.
  static constexpr int own_vectors = Atom::c_registers / own_rows;
  static constexpr bool vectors_are_places() {
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i) {
        const int v = i / own_rows;
        const int vector = WeightSlots<Atom>::nvidia ? Shape::group_of(lane) + v * Shape::groups
                                                     : WeightSlots<Atom>::vector_of(lane, v);
        if (Atom::c_coord(lane, i).row != vector) return false;
      }
    }
    return true;
  }
  static_assert(vectors_are_places(), "rows of the accumulator are gathered ones");
  /// Lanes that share a row of the window in OwnWords: next to each other, or as far apart as there are rows.
  static constexpr bool side_by_side = Shape::row_of(1) == 0;

 public:
  /// That a multiprocessor should hold, of 128 threads.
  static constexpr int thread_blocks = (ByColumns ? 2 : 1) * Columns * height <= 64    ? 4
                                       : (ByColumns ? 2 : 1) * Columns * height <= 128 ? 3
                                                                                       : 2;

  /// Part `index` of head `head_index`.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionBackwardArgs& args, std::int64_t index,
                                   std::int64_t head_index) {
    const Head head(args, head_index);
    const AttentionPart part = attention_part(args.windows, index);
    Own own;
    wave.each([&](int lane) {
      Tiles::load_own(args.windows, head.own_first(), part.window, lane, own.first(lane));
      Tiles::load_own(args.windows, head.own_second(), part.window, lane, own.second(lane));
    });
    if constexpr (!ByColumns) make_facts(wave, args, head, part, own);
    Varying<State> state;
    for (int only = all_rows; only < window_rows; ++only) {
      wave.each([&](int lane) { clear(state(lane)); });
      add_part(wave, args, head, part, own, only, state);
      if (only == all_rows && any_odd(wave, state)) continue;
      store(wave, args, head, part, only, state);
      if (only == all_rows) break;
    }
  }

 private:
  struct Nothing {};
  struct State {
    Sums first;                                           ///< dQ or dK
    std::conditional_t<ByColumns, Sums, Nothing> second;  ///< dV
    float inverse[height][own_rows];                      ///< what dS is multiplied by
  };
  struct First {
    TESSERA_FUNCTION Sums& operator()(State& state) const { return state.first; }
  };
  struct Second {
    TESSERA_FUNCTION auto& operator()(State& state) const { return state.second; }
  };
  struct OwnFacts {
    float lse[height][own_rows], delta[height][own_rows];
  };
  struct GatheredFacts {
    AttentionRowFacts of[own_vectors];
  };
  struct Own {
    Varying<OwnWords> first, second;
    Varying<OwnFacts> facts;
  };
  struct Gathered {
    Varying<GatheredWords> first, second;
    Varying<GatheredFacts> facts;
    Varying<OwnBits> bits;
  };
  struct Weights {
    Varying<Scores> weight[height], d_score[height];
    Varying<std::uint32_t> used;  ///< a bit per register and height: an entry that is not masked
  };

  TESSERA_FUNCTION static void clear(State& state) {
    Tiles::clear(state.first);
    if constexpr (ByColumns) Tiles::clear(state.second);
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) state.inverse[s][r] = narrow ? 0x1p126f : 1.0f;
    }
  }
  TESSERA_FUNCTION static float dot(const RowWord (&x)[Tiles::inner_chunks], const RowWord (&y)[Tiles::inner_chunks]) {
    float sum = 0;
    TESSERA_UNROLL
    for (int c = 0; c < Tiles::inner_chunks; ++c) {
      TESSERA_UNROLL
      for (int n = 0; n < Shape::width; ++n) {
        sum = std::fma(static_cast<float>(x[c].get(n)), static_cast<float>(y[c].get(n)), sum);
      }
    }
    return sum;
  }
  /// Log-sum-exp and <dO, O> of the window's rows, for this pass and, by its first part, for the other one.
  TESSERA_FUNCTION static void make_facts(const Wave& wave, const AttentionBackwardArgs& args, const Head& head,
                                          const AttentionPart& part, Own& own) {
    Varying<OwnWords> o;
    wave.each([&](int lane) { Tiles::load_own(args.windows, head.o(), part.window, lane, o(lane)); });
    const bool writes = part.first_block == args.windows.first_block[part.window];
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      Varying<float> lse, delta, other;
      wave.each([&](int lane) { delta(lane) = dot(own.second(lane).word[s], o(lane).word[s]); });
      TESSERA_UNROLL
      for (int quad = 1; quad < Shape::quads; quad *= 2) {
        const int distance = side_by_side ? quad : quad * rows;
        wave.shuffle(other, delta, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { delta(lane) += other(lane); });
      }
      wave.each([&](int lane) {
        const std::int64_t row = std::int64_t{part.window} * window_rows + s * rows + Shape::row_of(lane);
        lse(lane) = row < args.windows.rows ? head.lse(row) : 0;
        if (writes && row < args.windows.rows && Shape::quad_of(lane) == 0) head.facts(row) = {lse(lane), delta(lane)};
      });
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        // A lane whose own words are of the row that its accumulator has.
        const auto source = [=](int lane) {
          const int row = Atom::c_coord(lane, r).col;
          return side_by_side ? row * Shape::quads : row;
        };
        wave.shuffle(other, lse, source);
        wave.each([&](int lane) { own.facts(lane).lse[s][r] = other(lane); });
        wave.shuffle(other, delta, source);
        wave.each([&](int lane) { own.facts(lane).delta[s][r] = other(lane); });
      }
    }
  }

  /// only: a row of the window, whose sums alone matter then; gathered rows that it does not use are zeros.
  TESSERA_FUNCTION static void add_part(const Wave& wave, const AttentionBackwardArgs& args, const Head& head,
                                        const AttentionPart& part, Own& own, int only, Varying<State>& state) {
    Varying<Place> next;
    if (part.first_block < part.end_block) {
      wave.each([&](int lane) { Tiles::load_place(args.windows, part.first_block, lane, next(lane)); });
    }
    for (std::uint32_t block = part.first_block; block < part.end_block; ++block) {
      Varying<Place> place;
      Gathered gathered;
      wave.each([&](int lane) {
        place(lane) = next(lane);
        Tiles::load_gathered(head.gathered_first(), place(lane), 0, lane, gathered.first(lane));
        Tiles::load_gathered(head.gathered_second(), place(lane), 0, lane, gathered.second(lane));
        Tiles::load_bits(args.windows, block, lane, gathered.bits(lane));
        if constexpr (ByColumns) load_facts(head, place(lane), gathered.facts(lane));
        if (block + 1 < part.end_block) Tiles::load_place(args.windows, block + 1, lane, next(lane));
      });
      Weights weights;
      Tiles::multiply(wave, head.gathered_first(), place, own.first, gathered.first, weights.weight);
      Tiles::multiply(wave, head.gathered_second(), place, own.second, gathered.second, weights.d_score);
      weigh(wave, args, head, block, own, gathered, weights);
      Varying<WeightOperands<Atom>> right[height];
      if constexpr (narrow) follow(wave, weights, state);
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) WeightSlots<Atom>::to_operand(wave, weights.d_score[s], right[s]);
      add_sums(wave, head.gathered_first(), place, weights, only, right, state, First{});
      if constexpr (ByColumns) {
        TESSERA_UNROLL
        for (int s = 0; s < height; ++s) WeightSlots<Atom>::to_operand(wave, weights.weight[s], right[s]);
        add_sums(wave, head.gathered_second(), place, weights, only, right, state, Second{});
      }
    }
  }
  TESSERA_FUNCTION static void load_facts(const Head& head, const Place& place, GatheredFacts& facts) {
    TESSERA_UNROLL
    for (int v = 0; v < own_vectors; ++v) {
      facts.of[v] = head.facts(WeightSlots<Atom>::nvidia ? place.inner[v % Tiles::halves] : place.sum[v]);
    }
  }
  template <class SumsOf>
  TESSERA_FUNCTION static void add_sums(const Wave& wave, const AttentionRows& from, const Varying<Place>& place,
                                        const Weights& weights, int only,
                                        const Varying<WeightOperands<Atom>> (&right)[height], Varying<State>& state,
                                        const SumsOf& sums_of) {
    TESSERA_UNROLL
    for (int chunk = 0; chunk < Tiles::chunks; ++chunk) {
      Varying<Pieces> pieces;
      wave.each([&](int lane) { Tiles::load_pieces(from, place(lane), chunk, lane, pieces(lane)); });
      if (only != all_rows) {
        const UsedSlots used = used_slots(wave, weights, only / rows);
        wave.each([&](int lane) { Tiles::clear_unused(used, only % rows, lane, pieces(lane)); });
      }
      Tiles::add_pieces(wave, pieces, right, chunk, state, sums_of);
    }
  }
  TESSERA_FUNCTION static UsedSlots used_slots(const Wave& wave, const Weights& weights, int s) {
    UsedSlots used;
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      Varying<bool> on;
      wave.each([&](int lane) { on(lane) = (weights.used(lane) >> (s * Atom::c_registers + i) & 1) != 0; });
      used.lanes[i] = wave.ballot(on);
    }
    return used;
  }

  /// Products become weights, scaled, and gradients of scores, times the entry's factor; gradients of entries' numbers
  /// are stored.
  TESSERA_FUNCTION static void weigh(const Wave& wave, const AttentionBackwardArgs& args, const Head& head,
                                     std::uint32_t block, const Own& own, const Gathered& gathered, Weights& weights) {
    const bool valued = head.scores().valued(), by_value = head.wants_values();
    const float unit = valued ? 1.0f : head.scores().scale();
    wave.each([&](int lane) {
      weights.used(lane) = 0;
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) {
          float &weight = weights.weight[s](lane).r[i], &d_score = weights.d_score[s](lane).r[i];
          const float product = weight;
          float score = product, factor = 1;
          std::int64_t entry = -1;
          if (valued) {
            Tiles::with_entry(args.windows, block, s, i, lane, [&](std::uint32_t at) {
              entry = at;
              score = head.scores().score(product, at);
              factor = head.scores().factor(at);
            });
          }
          float lse, delta;
          if constexpr (ByColumns) {
            lse = gathered.facts(lane).of[i / own_rows].lse;
            delta = gathered.facts(lane).of[i / own_rows].delta;
          } else {
            lse = own.facts(lane).lse[s][i % own_rows];
            delta = own.facts(lane).delta[s][i % own_rows];
          }
          const bool on = Tiles::is_on(gathered.bits(lane), s, i, lane) && !(score * unit == attention_no_score);
          const float p = power_of_two(std::fma(score, unit, -lse));
          weights.used(lane) |= static_cast<std::uint32_t>(on) << (s * Atom::c_registers + i);
          weight = on ? p * weight_scale : 0.0f;
          d_score = on ? p * (d_score - delta) : 0.0f;
          // A masked entry's product or factor may be infinite.
          if (by_value && entry >= 0) head.store_value(entry, d_score, on ? product : 0.0f);
          if (valued && on) d_score *= factor;
        }
      }
    });
  }

  /// dS of rows where one is beyond the range gets another scale, and so do their sums; then all of dS is scaled.
  TESSERA_FUNCTION static void follow(const Wave& wave, Weights& weights, Varying<State>& state) {
    Varying<bool> above;
    wave.each([&](int lane) {
      int any = 0;  // no branches
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) {
          const float scaled = weights.d_score[s](lane).r[i] * state(lane).inverse[s][i % own_rows];
          any |= static_cast<int>(std::fabs(scaled) > most);
        }
      }
      above(lane) = any != 0;
    });
    if (wave.ballot(above) != 0) raise(wave, weights, state);
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) {
          weights.d_score[s](lane).r[i] *= state(lane).inverse[s][i % own_rows];
        }
      }
    });
  }
  TESSERA_FUNCTION static void raise(const Wave& wave, const Weights& weights, Varying<State>& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        Varying<float> largest;
        wave.each([&](int lane) {
          float m = 0;  // which a NaN does not replace, and what is infinite must not
          TESSERA_UNROLL
          for (int i = r; i < Atom::c_registers; i += own_rows) {
            const float size = std::fabs(weights.d_score[s](lane).r[i]);
            m = size > m && is_finite(size) ? size : m;
          }
          largest(lane) = m;
        });
        Tiles::largest_of_row(wave, largest);
        wave.each([&](int lane) {
          float& inverse = state(lane).inverse[s][r];
          const bool change = largest(lane) * inverse > most;
          const float next = change ? power_below(largest(lane)) : inverse;
          Tiles::scale_row(state(lane).first, s, r, change ? next * (1.0f / inverse) : 1.0f);
          inverse = next;
        });
      }
    }
  }
  /// The power of two that brings a number from 2^first to twice that, as far as floats of normal range have it.
  TESSERA_FUNCTION static float power_below(float size) {
    const int exponent = static_cast<int>(Impl::float_bits(size) >> 23 & 0xff), wanted = 127 + first + 127 - exponent;
    return Impl::float_from_bits(static_cast<std::uint32_t>(wanted > 253 ? 253 : wanted) << 23);
  }

  // ---- results

  TESSERA_FUNCTION static bool any_odd(const Wave& wave, const Varying<State>& state) {
    Varying<bool> odd;
    wave.each([&](int lane) {
      int any = 0;
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int r = 0; r < own_rows; ++r) {
          any |= static_cast<int>(!Tiles::finite_row(state(lane).first, s, r));
          if constexpr (ByColumns) any |= static_cast<int>(!Tiles::finite_row(state(lane).second, s, r));
        }
      }
      odd(lane) = any != 0;
    });
    return wave.ballot(odd) != 0;
  }
  /// Row `only` of the window, or all_rows of them.
  TESSERA_FUNCTION static void store(const Wave& wave, const AttentionBackwardArgs& args, const Head& head,
                                     const AttentionPart& part, int only, const Varying<State>& state) {
    const auto store_piece = [&](int local, int column, int columns, int from, float restore, float scale, void* to,
                                 const float(&piece)[Tiles::width]) {
      if (column >= columns) return;
      if (part.partial < 0) return attention_store_rounded<Operand>(to, piece, restore * scale);
      float restored[Tiles::width];
      TESSERA_UNROLL
      for (int v = 0; v < Tiles::width; ++v) restored[v] = piece[v] * restore;
      Tiles::store_floats(head.partial(part.partial, local) + from + column, restored);
    };
    wave.each([&](int lane) {
      const auto inside = [&](int local, std::int64_t row) {
        return (only == all_rows || local == only) && row < args.windows.rows;
      };
      Tiles::each_piece(state(lane).first, lane,
                        [&](int local, int column, int s, int r, const float(&piece)[Tiles::width]) {
                          const std::int64_t row = std::int64_t{part.window} * window_rows + local;
                          if (!inside(local, row)) return;
                          store_piece(local, column, head.d(), 0, 1.0f / state(lane).inverse[s][r], head.scale(),
                                      head.first(row, column), piece);
                        });
      if constexpr (ByColumns) {
        Tiles::each_piece(
            state(lane).second, lane, [&](int local, int column, int, int, const float(&piece)[Tiles::width]) {
              const std::int64_t row = std::int64_t{part.window} * window_rows + local;
              if (!inside(local, row)) return;
              store_piece(local, column, head.e(), head.d(), 1 / weight_scale, 1.0f, head.second(row, column), piece);
            });
      }
    });
  }
};

}  // namespace Tessera

#endif
