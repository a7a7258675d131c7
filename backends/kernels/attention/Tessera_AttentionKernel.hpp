// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_KERNEL_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_KERNEL_HPP

#include <cmath>
#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionTiles.hpp"

/// \file
/// O := softmax(scale Q K^T on a pattern) V on matrix units, in one pass over windows of rows. A wave takes a few
/// neighbouring windows, or parts of them, one after the other; of each block it makes
///
///     S^T(16 x 8) = K(16 x d) Q^T(d x 8)      scores, K: the rows that the block's column vectors name
///     P^T         = 2^(S^T log2(e) - reference of the row) where the row has an entry, 0 elsewhere
///     O^T(e x 8) += V^T(e x 16) P^T(16 x 8)
///
/// all in registers: scores are never written. Running maximum and sum: Milakov & Gimelshein, arXiv:1805.02867; on
/// windows of a sparse pattern: Fused3S, ICS'25; swapped and transposed operands: FlashSparse, PPoPP'25, by which
/// windows are as low as the instruction's n. What differs:
/// - Neither K nor V goes through shared memory. The order of d in a score, of the column vectors in a sum and of the
///   columns of V in registers are free, so lanes read sixteen bytes of rows as they lie (as SDDMM and Panels do), and
///   weights go from the accumulator of one product to the operand of the next in two shuffles (WeightSlots).
/// - The reference follows the largest score loosely (WeightRange), so that most blocks need no reduction and no change
///   of the sums, and weights use the range that FP16 has.
/// - Sums of weights stay by lanes until the end, where they are added in a fixed order.
/// - Words of K, and where the window changes those of Q, for the next block are under way while this one is worked on,
///   and so are the columns of the block after it, across windows.
///
/// A slot without entry has weight 0 in the unit; 0 times an infinite or undefined number of V would reach all rows of
/// the window. Results are therefore looked at before they are stored, and where a row with finite weights has a result
/// that is not finite, the part is done again row by row, with rows of V that the row does not use as zeros: such a
/// number reaches the rows that use it and no other. FP32 in parts of TF32 makes NaN of infinite and of the largest
/// numbers: scores and rows that are not finite are then made again entry by entry.

namespace Tessera {

/// Columns: Q and V have at most so many. Exact: they have so many.
template <class Unit, class Wave, int Height, int Columns, bool Exact>
class AttentionKernel : AttentionTiles<Unit, Wave, Height, Columns, Exact> {
  using Tiles = AttentionTiles<Unit, Wave, Height, Columns, Exact>;
  using typename Tiles::Atom;
  using typename Tiles::GatheredWords;
  using typename Tiles::Head;
  using typename Tiles::Operand;
  using typename Tiles::OwnBits;
  using typename Tiles::OwnWords;
  using typename Tiles::Pieces;
  using typename Tiles::Place;
  using typename Tiles::Scores;
  using typename Tiles::Sums;
  using typename Tiles::UsedSlots;
  using typename Tiles::Weights;
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Tiles::ahead;
  using Tiles::all_rows;
  using Tiles::chunks;
  using Tiles::height;
  using Tiles::is_on;
  using Tiles::own_rows;
  using Tiles::rows;
  using Tiles::width;
  using Tiles::window_rows;
  using Range = WeightRange<Operand>;

 public:
  /// That a multiprocessor should hold, of 128 threads: by the words of a row of Q and of its sums, which it keeps.
  static constexpr int words = Columns * height * static_cast<int>(sizeof(Operand)) / 4;
  static constexpr int thread_blocks = words <= 16 ? 5 : words <= 32 ? 4 : words <= 64 ? 3 : 2;

  /// Rows of V wait until those of K are done with: parts leave no registers for both.
  static constexpr bool v_late = in_parts<Atom> && !ahead;

  static constexpr int most_parts = 32;
  /// Parts [first, first + count) of head `head_index`, as far as there are, most_parts at most.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionArgs& args, std::int64_t first, int count,
                                   std::int64_t head_index) {
    const Head head(args.dense, head_index);
    const std::int64_t left = args.part_count - first;
    const int last = (left < count ? static_cast<int>(left) : count) - 1;
    AttentionPart part = attention_part(args, first), next = part;
    if (last > 0) next = attention_part(args, first + 1);
    const std::uint32_t end = attention_part(args, first + last).end_block;
    Varying<State> state;
    Ahead now;
    std::uint32_t block = part.first_block;
    wave.each([&](int lane) {
      clear(state(lane));
      Tiles::load_own(args, head.q(), part.window, lane, now.q(lane));
      if (block < end) Tiles::load_place(args, block, lane, now.place(lane));
      if (ahead && block < end) Tiles::load_gathered(head.k(), now.place(lane), 0, lane, now.k(lane));
    });
    std::uint32_t odd = 0;  // a bit per part that has to be done again
    for (int index = 0;;) {
      bool ready = false;  // rows of Q of the next window are
      for (; block < part.end_block; ++block) {
        ready = block + 1 == part.end_block && index < last;
        add_block(wave, args, head, block, block + 1 < end, ready, next.window, now, state);
      }
      finish(wave, state);
      if (store_unless_odd(wave, args, head, part, state)) odd |= std::uint32_t{1} << index;
      if (++index > last) break;
      part = next;
      if (index < last) next = attention_part(args, first + index + 1);
      wave.each([&](int lane) {
        clear(state(lane));
        // Else the window before had no block.
        if (!ready) Tiles::load_own(args, head.q(), part.window, lane, now.q(lane));
      });
    }
    for (std::int64_t index = first; odd != 0; ++index, odd >>= 1) {
      if ((odd & 1) != 0) redo(args, head_index, attention_part(args, index));
    }
  }

 private:
  struct State {
    Sums sums;
    float reference[height][own_rows], total[height][own_rows];
  };
  /// What is loaded before the block that needs it.
  struct Ahead {
    Varying<OwnWords> q;
    Varying<GatheredWords> k;
    Varying<Place> place;
  };
  struct SumsOf {
    TESSERA_FUNCTION Sums& operator()(State& state) const { return state.sums; }
  };

  TESSERA_FUNCTION static void clear(State& state) {
    Tiles::clear(state.sums);
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int i = 0; i < own_rows; ++i) {
        state.reference[s][i] = attention_no_reference;
        state.total[s][i] = 0;
      }
    }
  }
  /// more: a block comes after this one. turn: of another part, whose window is next_window. (Numbers: of what is
  /// pointed at AMD's compiler keeps a copy in memory.)
  TESSERA_FUNCTION static void add_block(const Wave& wave, const AttentionArgs& args, const Head& head,
                                         std::uint32_t block, bool more, bool turn, std::int64_t next_window,
                                         Ahead& next, Varying<State>& state) {
    Varying<Place> place;
    Varying<OwnBits> own;
    Varying<Pieces> v;
    wave.each([&](int lane) {
      place(lane) = next.place(lane);
      if (!v_late) Tiles::load_pieces(head.v(), place(lane), 0, lane, v(lane));
      Tiles::load_bits(args, block, lane, own(lane));
      if (more) Tiles::load_place(args, block + 1, lane, next.place(lane));
    });
    Varying<Scores> scores[height];
    Tiles::multiply(wave, head.k(), place, next.q, next.k, scores);
    wave.each([&](int lane) {
      if (ahead && more) Tiles::load_gathered(head.k(), next.place(lane), 0, lane, next.k(lane));
      if (turn) Tiles::load_own(args, head.q(), next_window, lane, next.q(lane));
    });
    Varying<Weights> weights[height];
    weigh(wave, args, head, block, own, scores, state, weights);
    TESSERA_UNROLL
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (v_late || chunk > 0)
        wave.each([&](int lane) { Tiles::load_pieces(head.v(), place(lane), chunk, lane, v(lane)); });
      Tiles::add_pieces(wave, v, weights, chunk, state, SumsOf{});
    }
  }

  /// Scores of the entries from products of Q and K and the numbers of the pattern.
  TESSERA_FUNCTION static void use_values(const AttentionArgs& args, const Head& head, std::uint32_t block, int s,
                                          Scores& scores, int lane) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      Tiles::with_entry(args, block, s, i, lane,
                        [&](std::uint32_t entry) { scores.r[i] = head.score(scores.r[i], entry); });
    }
  }

  /// Weights of a block from its products of Q and K; totals grow. used: of instruction used_of of the window, not null
  /// where it is wanted.
  TESSERA_FUNCTION static void weigh(const Wave& wave, const AttentionArgs& args, const Head& head, std::uint32_t block,
                                     const Varying<OwnBits>& own, Varying<Scores> (&scores)[height],
                                     Varying<State>& state, Varying<Weights> (&weights)[height],
                                     UsedSlots* used = nullptr, int used_of = 0) {
    const float unit = head.valued() ? 1.0f : head.scale();
    if (head.valued()) {
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int s = 0; s < height; ++s) use_values(args, head, block, s, scores[s](lane), lane);
      });
    }
    Varying<bool> above;
    wave.each([&](int lane) {
      int any = 0;  // no branches
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) {
          const float score = scores[s](lane).r[i] * unit, bound = state(lane).reference[s][i % own_rows] + Range::most;
          any |= static_cast<int>(is_on(own(lane), s, i, lane)) & static_cast<int>(score > bound);
        }
      }
      above(lane) = any != 0;
    });
    if (wave.ballot(above) != 0) raise(wave, own, unit, scores, state);
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      if (used != nullptr && s == used_of) mark_used(wave, own, s, unit, scores[s], *used);
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::c_registers; ++i) {
          float& score = scores[s](lane).r[i];
          // One rounding of what is left after the subtraction, however large the score.
          const float weight = power_of_two(std::fma(score, unit, -state(lane).reference[s][i % own_rows]));
          score = is_on(own(lane), s, i, lane) ? weight : 0.0f;
          state(lane).total[s][i % own_rows] += score;
        }
      });
      WeightSlots<Atom>::to_operand(wave, scores[s], weights[s]);
    }
  }

  /// Rows with a weight beyond the range get another reference, and what there is of them is made smaller.
  TESSERA_FUNCTION static void raise(const Wave& wave, const Varying<OwnBits>& own, float unit,
                                     const Varying<Scores> (&scores)[height], Varying<State>& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        Varying<float> largest;
        wave.each([&](int lane) {
          float m = attention_no_score;  // which a NaN does not replace
          TESSERA_UNROLL
          for (int i = r; i < Atom::c_registers; i += own_rows) {
            const float score = scores[s](lane).r[i] * unit;
            m = is_on(own(lane), s, i, lane) && score > m ? score : m;
          }
          largest(lane) = m;
        });
        Tiles::largest_of_row(wave, largest);
        wave.each([&](int lane) {
          float& reference = state(lane).reference[s][r];
          const bool change = largest(lane) > reference + Range::most;
          const float next = change ? largest(lane) - Range::first : reference;
          const float shrink = change ? power_of_two(reference - next) : 1.0f;
          reference = next;
          state(lane).total[s][r] *= shrink;
          Tiles::scale_row(state(lane).sums, s, r, shrink);
        });
      }
    }
  }

  /// Totals of rows from those of lanes, in a fixed order.
  TESSERA_FUNCTION static void finish(const Wave& wave, Varying<State>& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        Varying<float> total;
        wave.each([&](int lane) { total(lane) = state(lane).total[s][r]; });
        Tiles::sum_of_row(wave, total);
        wave.each([&](int lane) { state(lane).total[s][r] = total(lane); });
      }
    }
  }

  // ---- numbers that are not finite

  /// Whether a sum is not finite, of a row whose weights are: of row `only` of the window, or of any. Of FP32 in parts,
  /// before anything was made again, whatever the weights are, as scores may be what parts do not hold.
  TESSERA_FUNCTION static bool contaminated(const State& state, int only = all_rows, int lane = 0) {
    int odd = 0;
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        const bool weighed = is_finite(state.total[s][r]) || (in_parts<Atom> && only == all_rows);
        const bool wanted = only == all_rows || only == s * rows + Atom::c_coord(lane, r).col;
        odd |= static_cast<int>(!Tiles::finite_row(state.sums, s, r)) & static_cast<int>(weighed) &
               static_cast<int>(wanted);
      }
    }
    return odd != 0;
  }
  /// Stores the part, if it may be. @return whether it may not
  TESSERA_FUNCTION static bool store_unless_odd(const Wave& wave, const AttentionArgs& args, const Head& head,
                                                const AttentionPart& part, const Varying<State>& state) {
    Varying<bool> odd;
    wave.each([&](int lane) { odd(lane) = contaminated(state(lane)); });
    if (wave.ballot(odd) != 0) return true;
    store_all(wave, args, head, part, all_rows, state);
    return false;
  }
  /// A part row by row, with zeros instead of the rows of V that the row does not use.
  TESSERA_OUTLINED_FUNCTION static void redo(const AttentionArgs& args, std::int64_t head_index, AttentionPart part) {
    const Wave wave;
    const Head head(args.dense, head_index);
    for (int row = 0; row < window_rows; ++row) {
      Varying<State> state;
      for (bool by_entries = false;; by_entries = true) {
        redo_row(wave, args, head, part, row, by_entries, state);
        if (!in_parts<Atom> || by_entries) break;
        Varying<bool> odd;
        wave.each([&](int lane) { odd(lane) = contaminated(state(lane), row, lane); });
        if (wave.ballot(odd) == 0) break;
      }
      store_all(wave, args, head, part, row, state);
    }
  }
  /// by_entries: sums without the unit.
  TESSERA_FUNCTION static void redo_row(const Wave& wave, const AttentionArgs& args, const Head& head,
                                        const AttentionPart& part, int row, bool by_entries, Varying<State>& state) {
    Varying<OwnWords> q;
    wave.each([&](int lane) {
      clear(state(lane));
      Tiles::load_own(args, head.q(), part.window, lane, q(lane));
    });
    for (std::uint32_t block = part.first_block; block < part.end_block; ++block) {
      Varying<Place> place;
      Varying<OwnBits> own;
      Varying<GatheredWords> k;
      Varying<Pieces> v;
      Varying<Scores> scores[height];
      Varying<Weights> weights[height];
      UsedSlots used{};
      wave.each([&](int lane) {
        Tiles::load_place(args, block, lane, place(lane));
        Tiles::load_bits(args, block, lane, own(lane));
        if (ahead) Tiles::load_gathered(head.k(), place(lane), 0, lane, k(lane));
      });
      Tiles::multiply(wave, head.k(), place, q, k, scores);
      if constexpr (in_parts<Atom>) {
        Tiles::multiply_again(wave, args, head.q(), head.k(), part.window, block, own, scores);
      }
      weigh(wave, args, head, block, own, scores, state, weights, &used, row / rows);
      if constexpr (in_parts<Atom>) {
        if (by_entries) {
          Tiles::add_entries(wave, args, head.v(), block, used, row, scores, state, SumsOf{});
          continue;
        }
      }
      for (int chunk = 0; chunk < chunks; ++chunk) {
        wave.each([&](int lane) {
          Tiles::load_pieces(head.v(), place(lane), chunk, lane, v(lane));
          Tiles::clear_unused(used, row % rows, lane, v(lane));
        });
        Tiles::add_pieces(wave, v, weights, chunk, state, SumsOf{});
      }
    }
    finish(wave, state);
  }
  /// An entry whose score is -inf is masked.
  TESSERA_FUNCTION static void mark_used(const Wave& wave, const Varying<OwnBits>& own, int s, float unit,
                                         const Varying<Scores>& scores, UsedSlots& used) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      Varying<bool> on;
      wave.each([&](int lane) {
        on(lane) = is_on(own(lane), s, i, lane) && !(scores(lane).r[i] * unit == attention_no_score);
      });
      used.lanes[i] = wave.ballot(on);
    }
  }

  // ---- results

  /// Row `only` of the window, or all_rows of them.
  TESSERA_FUNCTION static void store_all(const Wave& wave, const AttentionArgs& args, const Head& head,
                                         const AttentionPart& part, int only, const Varying<State>& state) {
    wave.each([&](int lane) {
      Tiles::each_piece(state(lane).sums, lane, [&](int local, int column, int s, int r, const float(&piece)[width]) {
        if (only != all_rows && local != only) return;
        const float reference = state(lane).reference[s][r], total = state(lane).total[s][r];
        if (part.partial >= 0) {
          store_partial(args, head, part.partial, local, column, reference, total, piece);
        } else {
          store(args, head, std::int64_t{part.window} * window_rows + local, column, reference, total, piece);
        }
      });
    });
  }
  TESSERA_FUNCTION static void store(const AttentionArgs& args, const Head& head, std::int64_t row, int column,
                                     float reference, float total, const float (&piece)[width]) {
    if (row >= args.rows) return;
    if (column == 0) head.store_lse(row, reference, total);
    if (column >= head.e()) return;
    attention_store_rounded<Operand>(head.o(row, column), piece, attention_inverse(total));
  }
  TESSERA_FUNCTION static void store_partial(const AttentionArgs& args, const Head& head, std::int32_t partial,
                                             int local, int column, float reference, float total,
                                             const float (&piece)[width]) {
    const std::int64_t size = AttentionPartials::row_size(head.e());
    const std::int64_t before = head.index() * args.partial_count + partial;
    float* const row = args.partials + (before * window_rows + local) * size;
    if (column == 0) {
      row[head.e()] = reference;
      row[head.e() + 1] = total;
    }
    if (column >= head.e()) return;
    Tiles::store_floats(row + column, piece);
  }
};

}  // namespace Tessera

#endif
