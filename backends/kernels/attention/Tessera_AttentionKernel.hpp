// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_KERNEL_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_KERNEL_HPP

#include <cmath>
#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionWeights.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

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
/// number reaches the rows that use it and no other.

namespace Tessera {

/// Columns: Q and V have at most so many. Exact: they have so many.
template <class Unit, class Wave, int Height, int Columns, bool Exact>
class AttentionKernel {
 public:
  using Atom = typename Unit::Atom;
  using Shape = PanelShape<Atom, 1>;
  using Operand = typename Shape::Operand;
  using Head = AttentionHead<Operand>;
  static constexpr int height = Height, rows = Shape::rows, window_rows = height * rows;
  static constexpr int quads = Shape::quads, per_step = Shape::per_step, slots = Shape::slots, halves = Shape::halves;

  // Of scores: chunks of 64 bytes of rows of Q and K.
  static constexpr int inner_chunks = Columns / (quads * Shape::width);
  static constexpr int steps = Shape::width / per_step;  ///< instructions that a word feeds
  static constexpr int at_once = inner_chunks < 4 ? inner_chunks : 4;
  static constexpr bool ahead = at_once == inner_chunks;  ///< K of the next block is read before it is needed

  // Of sums: a lane's piece of a row of V.
  static constexpr int piece_bytes = Columns * 2 / Shape::groups < 16 ? Columns * 2 / Shape::groups : 16;
  static constexpr int width = piece_bytes / 2;
  static constexpr int chunk_columns = Shape::groups * width, chunks = Columns / chunk_columns;
  static constexpr int products = width / halves;  ///< instructions that share a chunk's loads

  static constexpr bool pairs_are_words() {
    for (int i = 0; i < Atom::a_registers; i += 2) {
      const bool same = Shape::a_half(i) == Shape::a_half(i + 1) && Shape::a_slot(i) + 1 == Shape::a_slot(i + 1);
      if (!same || Shape::a_slot(i) % 2 != 0) return false;
    }
    return per_step % 2 == 0;
  }
  /// That a multiprocessor should hold, of 128 threads.
  static constexpr int thread_blocks = Columns * height <= 32    ? 5
                                       : Columns * height <= 64  ? 4
                                       : Columns * height <= 128 ? 3
                                                                 : 2;

  static_assert(Shape::consistent() && WeightSlots<Atom>::consistent(), "layouts that the kernel is written for");
  static_assert(inner_chunks * quads * Shape::width == Columns && chunks * chunk_columns == Columns, "whole chunks");
  static_assert(pairs_are_words(), "neighbours in a word are neighbours in an operand");
  static_assert(slots == per_step && slots == Atom::b_registers, "a block is one instruction deep");

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
    Varying<WordsOfQ> q;
    Varying<WordsOfK> k;
    Varying<Place> ahead_of;
    std::uint32_t block = part.first_block;
    wave.each([&](int lane) {
      clear(state(lane));
      load_q(args, head, part.window, lane, q(lane));
      if (block < end) load_place(args, block, lane, ahead_of(lane));
      if (ahead && block < end) load_k(head, ahead_of(lane), 0, lane, k(lane));
    });
    std::uint32_t odd = 0;  // a bit per part that has to be done again
    for (int index = 0;;) {
      bool ready = false;  // rows of Q of the next window are
      for (; block < part.end_block; ++block) {
        const bool more = block + 1 < end, turn = block + 1 == part.end_block && index < last;
        Varying<Place> place;
        Varying<OwnRows> own;
        Varying<WordsOfV> v;
        wave.each([&](int lane) {
          place(lane) = ahead_of(lane);
          load_v(head, place(lane), 0, lane, v(lane));
          load_rows(args, block, lane, own(lane));
          if (more) load_place(args, block + 1, lane, ahead_of(lane));
        });
        Varying<Scores> scores[height];
        multiply_scores(wave, head, place, q, k, scores);
        wave.each([&](int lane) {
          if (ahead && more) load_k(head, ahead_of(lane), 0, lane, k(lane));
          if (turn) load_q(args, head, next.window, lane, q(lane));
        });
        Varying<BFragment<Atom>> weights[height];
        weigh(wave, args, head, block, own, scores, state, weights);
        ready = turn;
        TESSERA_UNROLL
        for (int chunk = 0; chunk < chunks; ++chunk) {
          if (chunk > 0) wave.each([&](int lane) { load_v(head, place(lane), chunk, lane, v(lane)); });
          add_values(wave, v, weights, chunk, state);
        }
      }
      finish(wave, state);
      if (store_unless_odd(wave, args, head, part, state)) odd |= std::uint32_t{1} << index;
      if (++index > last) break;
      part = next;
      if (index < last) next = attention_part(args, first + index + 1);
      wave.each([&](int lane) {
        clear(state(lane));
        if (!ready) load_q(args, head, part.window, lane, q(lane));  // the window before had no block
      });
    }
    for (std::int64_t index = first; odd != 0; ++index, odd >>= 1) {
      if ((odd & 1) != 0) redo(args, head_index, attention_part(args, index));
    }
  }

 private:
  static constexpr int all_rows = -1;
  static constexpr int own_rows = Atom::c_coord(0, 1).col == Atom::c_coord(0, 0).col ? 1 : 2;
  static constexpr int first_distance = rows / own_rows;  ///< between lanes that share rows of the window
  using Range = WeightRange<Operand>;
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using RowWord = Packed<Operand, Shape::width>;
  using Scores = CFragment<Atom>;

  struct State {
    Scores sums[height][chunks][products];
    float reference[height][own_rows], total[height][own_rows];
  };
  struct WordsOfQ {
    RowWord word[height][inner_chunks];
  };
  struct WordsOfK {
    RowWord word[at_once][halves];
  };
  struct WordsOfV {
    Packed<Operand, width> slot[slots];
  };
  /// What a lane needs of a block.
  struct Place {
    std::uint32_t k_row[halves], v_row[slots];
  };
  struct OwnRows {
    std::uint32_t bits[height][own_rows];
  };
  /// For each register, the lanes whose slot holds an unmasked entry.
  struct UsedSlots {
    typename Wave::Mask lanes[Atom::c_registers];
  };

  TESSERA_FUNCTION static void load_place(const AttentionArgs& args, std::uint32_t block, int lane, Place& place) {
    const std::int32_t* const columns = args.columns + std::int64_t{block} * Shape::depth;
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) {
      place.k_row[h] = static_cast<std::uint32_t>(columns[Shape::group_of(lane) + h * Shape::groups]);
    }
    WeightSlots<Atom>::load_columns(columns, lane, place.v_row);
  }
  TESSERA_FUNCTION static const SddmmBlockRow& block_row(const AttentionArgs& args, std::uint32_t block, int s, int i,
                                                         int lane) {
    return args.block_rows[std::int64_t{block} * window_rows + s * rows + Atom::c_coord(lane, i).col];
  }
  TESSERA_FUNCTION static void load_rows(const AttentionArgs& args, std::uint32_t block, int lane, OwnRows& own) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int i = 0; i < own_rows; ++i) own.bits[s][i] = block_row(args, block, s, i, lane).bits;
    }
  }
  TESSERA_FUNCTION static void load_q(const AttentionArgs& args, const Head& head, std::int64_t window, int lane,
                                      WordsOfQ& q) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const std::int64_t row = window * window_rows + s * rows + Shape::row_of(lane);
      const char* const from = head.q(row < args.rows ? row : args.rows - 1) + Shape::quad_of(lane) * 16;
      TESSERA_UNROLL
      for (int c = 0; c < inner_chunks; ++c) {
        const bool on = c * quads + Shape::quad_of(lane) < head.d_words();
        attention_load<Exact, 16, Wave>(from + c * quads * 16, on, q.word[s][c].w);
      }
    }
  }
  TESSERA_FUNCTION static void load_k(const Head& head, const Place& place, int first, int lane, WordsOfK& k) {
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) {
      const char* const from = head.k(place.k_row[h]) + (first * quads + Shape::quad_of(lane)) * 16;
      TESSERA_UNROLL
      for (int c = 0; c < at_once; ++c) {
        const bool on = (first + c) * quads + Shape::quad_of(lane) < head.d_words();
        attention_load<Exact, 16, Wave>(from + c * quads * 16, on, k.word[c][h].w);
      }
    }
  }
  TESSERA_FUNCTION static void load_v(const Head& head, const Place& place, int chunk, int lane, WordsOfV& v) {
    const int column = chunk * chunk_columns + Shape::group_of(lane) * width;
    TESSERA_UNROLL
    for (int j = 0; j < slots; ++j) {
      attention_load<Exact, piece_bytes, Wave>(head.v(place.v_row[j]) + column * 2, column < head.e(), v.slot[j].w);
    }
  }

  TESSERA_FUNCTION static void clear(State& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int c = 0; c < chunks; ++c) {
        TESSERA_UNROLL
        for (int p = 0; p < products; ++p) state.sums[s][c][p] = Scores{};
      }
      TESSERA_UNROLL
      for (int i = 0; i < own_rows; ++i) {
        state.reference[s][i] = attention_no_reference;
        state.total[s][i] = 0;
      }
    }
  }

  TESSERA_FUNCTION static void multiply_scores(const Wave& wave, const Head& head, const Varying<Place>& place,
                                               const Varying<WordsOfQ>& q, Varying<WordsOfK>& k,
                                               Varying<Scores> (&scores)[height]) {
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) scores[s](lane) = Scores{};
    });
    TESSERA_UNROLL
    for (int first = 0; first < inner_chunks; first += at_once) {
      if (!ahead) wave.each([&](int lane) { load_k(head, place(lane), first, lane, k(lane)); });
      TESSERA_UNROLL
      for (int c = 0; c < at_once; ++c) {
        TESSERA_UNROLL
        for (int step = 0; step < steps; ++step) {
          Varying<AFragment<Atom>> left;
          wave.each([&](int lane) {
            TESSERA_UNROLL
            for (int i = 0; i < Atom::a_registers; i += 2) {
              const auto& word = k(lane).word[c][Shape::a_half(i)];
              __builtin_memcpy(left(lane).r + i, word.w + (step * per_step + Shape::a_slot(i)) / 2, 4);
            }
          });
          TESSERA_UNROLL
          for (int s = 0; s < height; ++s) {
            Varying<BFragment<Atom>> right;
            wave.each([&](int lane) {
              __builtin_memcpy(right(lane).r, q(lane).word[s][first + c].w + step * per_step / 2, 2 * per_step);
            });
            Unit::mma(wave, scores[s], left, right);
          }
        }
      }
    }
  }

  /// Scores of the entries from products of Q and K and the numbers of the pattern.
  TESSERA_FUNCTION static void use_values(const AttentionArgs& args, const Head& head, std::uint32_t block, int s,
                                          Scores& scores, int lane) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const SddmmBlockRow row = block_row(args, block, s, i, lane);
      const int vector = Atom::c_coord(lane, i).row;
      if ((row.bits >> vector & 1) == 0) continue;
      std::uint32_t entry =
          row.begin + static_cast<std::uint32_t>(count_bits(row.bits & ((std::uint32_t{1} << vector) - 1)));
      if (args.entry_at != nullptr) entry = args.entry_at[entry];
      scores.r[i] = head.score(scores.r[i], entry);
    }
  }
  /// Whether the row has an entry in the column vector of register i.
  TESSERA_FUNCTION static bool is_on(const OwnRows& own, int s, int i, int lane) {
    return (own.bits[s][i % own_rows] >> Atom::c_coord(lane, i).row & 1) != 0;
  }

  /// Weights of a block from its products of Q and K; totals grow. used: [height], not null where it is wanted.
  TESSERA_FUNCTION static void weigh(const Wave& wave, const AttentionArgs& args, const Head& head, std::uint32_t block,
                                     const Varying<OwnRows>& own, Varying<Scores> (&scores)[height],
                                     Varying<State>& state, Varying<BFragment<Atom>> (&weights)[height],
                                     UsedSlots* used = nullptr) {
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
      if (used != nullptr) mark_used(wave, own, s, unit, scores[s], used[s]);
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
  TESSERA_FUNCTION static void raise(const Wave& wave, const Varying<OwnRows>& own, float unit,
                                     const Varying<Scores> (&scores)[height], Varying<State>& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        Varying<float> largest, other;
        wave.each([&](int lane) {
          float m = attention_no_score;  // which a NaN does not replace
          TESSERA_UNROLL
          for (int i = r; i < Atom::c_registers; i += own_rows) {
            const float score = scores[s](lane).r[i] * unit;
            m = is_on(own(lane), s, i, lane) && score > m ? score : m;
          }
          largest(lane) = m;
        });
        TESSERA_UNROLL
        for (int distance = first_distance; distance < Wave::lanes; distance *= 2) {
          wave.shuffle(other, largest, [=](int lane) { return lane ^ distance; });
          wave.each([&](int lane) { largest(lane) = other(lane) > largest(lane) ? other(lane) : largest(lane); });
        }
        wave.each([&](int lane) {
          float& reference = state(lane).reference[s][r];
          const bool change = largest(lane) > reference + Range::most;
          const float next = change ? largest(lane) - Range::first : reference;
          const float shrink = change ? power_of_two(reference - next) : 1.0f;
          reference = next;
          state(lane).total[s][r] *= shrink;
          TESSERA_UNROLL
          for (int c = 0; c < chunks; ++c) {
            TESSERA_UNROLL
            for (int p = 0; p < products; ++p) {
              TESSERA_UNROLL
              for (int i = r; i < Atom::c_registers; i += own_rows) state(lane).sums[s][c][p].r[i] *= shrink;
            }
          }
        });
      }
    }
  }

  TESSERA_FUNCTION static void add_values(const Wave& wave, const Varying<WordsOfV>& v,
                                          const Varying<BFragment<Atom>> (&weights)[height], int chunk,
                                          Varying<State>& state) {
    TESSERA_UNROLL
    for (int p = 0; p < products; ++p) {
      Varying<AFragment<Atom>> left;
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < Atom::a_registers; i += 2) {
          const auto& first = v(lane).slot[Shape::a_slot(i)];
          const auto& second = v(lane).slot[Shape::a_slot(i + 1)];
          const std::uint32_t two = pair_of(first, second, p * halves + Shape::a_half(i));
          __builtin_memcpy(left(lane).r + i, &two, sizeof(two));
        }
      });
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        Varying<Scores> sums;
        wave.each([&](int lane) { sums(lane) = state(lane).sums[s][chunk][p]; });
        Unit::mma(wave, sums, left, weights[s]);
        wave.each([&](int lane) { state(lane).sums[s][chunk][p] = sums(lane); });
      }
    }
  }

  /// Totals of rows from those of lanes, in a fixed order.
  TESSERA_FUNCTION static void finish(const Wave& wave, Varying<State>& state) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        Varying<float> total, other;
        wave.each([&](int lane) { total(lane) = state(lane).total[s][r]; });
        TESSERA_UNROLL
        for (int distance = first_distance; distance < Wave::lanes; distance *= 2) {
          wave.shuffle(other, total, [=](int lane) { return lane ^ distance; });
          wave.each([&](int lane) { total(lane) += other(lane); });
        }
        wave.each([&](int lane) { state(lane).total[s][r] = total(lane); });
      }
    }
  }

  // ---- numbers that are not finite

  /// Whether a sum is not finite, of a row whose weights are.
  TESSERA_FUNCTION static bool contaminated(const State& state) {
    int odd = 0;
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int r = 0; r < own_rows; ++r) {
        float zero = 0;  // until a number that is not finite is multiplied by it
        TESSERA_UNROLL
        for (int c = 0; c < chunks; ++c) {
          TESSERA_UNROLL
          for (int p = 0; p < products; ++p) {
            TESSERA_UNROLL
            for (int i = r; i < Atom::c_registers; i += own_rows) zero = std::fma(state.sums[s][c][p].r[i], 0.0f, zero);
          }
        }
        odd |= static_cast<int>(!is_finite(zero)) & static_cast<int>(is_finite(state.total[s][r]));
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
      Varying<WordsOfQ> q;
      wave.each([&](int lane) {
        clear(state(lane));
        load_q(args, head, part.window, lane, q(lane));
      });
      for (std::uint32_t block = part.first_block; block < part.end_block; ++block) {
        Varying<Place> place;
        Varying<OwnRows> own;
        Varying<WordsOfK> k;
        Varying<WordsOfV> v;
        Varying<Scores> scores[height];
        Varying<BFragment<Atom>> weights[height];
        UsedSlots used[height];
        wave.each([&](int lane) {
          load_place(args, block, lane, place(lane));
          load_rows(args, block, lane, own(lane));
          if (ahead) load_k(head, place(lane), 0, lane, k(lane));
        });
        multiply_scores(wave, head, place, q, k, scores);
        weigh(wave, args, head, block, own, scores, state, weights, used);
        for (int chunk = 0; chunk < chunks; ++chunk) {
          wave.each([&](int lane) {
            load_v(head, place(lane), chunk, lane, v(lane));
            clear_unused(used[row / rows], row % rows, lane, v(lane));
          });
          add_values(wave, v, weights, chunk, state);
        }
      }
      finish(wave, state);
      store_all(wave, args, head, part, row, state);
    }
  }
  /// An entry whose score is -inf is masked.
  TESSERA_FUNCTION static void mark_used(const Wave& wave, const Varying<OwnRows>& own, int s, float unit,
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
  /// Zeros instead of the rows of V that row `row` of the instruction does not use.
  TESSERA_FUNCTION static void clear_unused(const UsedSlots& used, int row, int lane, WordsOfV& v) {
    TESSERA_UNROLL
    for (int j = 0; j < slots; ++j) {
      const int vector = WeightSlots<Atom>::vector_of(lane, j), at = WeightSlots<Atom>::register_of(vector, row);
      typename Wave::Mask mask = 0;
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) mask = i == at ? used.lanes[i] : mask;
      const bool on = (mask >> WeightSlots<Atom>::lane_of(vector, row) & 1) != 0;
      TESSERA_UNROLL
      for (int w = 0; w < (piece_bytes + 3) / 4; ++w) v.slot[j].w[w] = on ? v.slot[j].w[w] : 0;
    }
  }

  // ---- results

  /// f(row of the window, first column, s, own row, sums of the piece) for all that the lane holds.
  template <class F>
  TESSERA_FUNCTION static void each_piece(const State& state, int lane, const F& f) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) {
        if (Atom::c_coord(0, i).row / Shape::groups != 0) continue;  // goes with the first half
        const Coord at = Atom::c_coord(lane, i);
        TESSERA_UNROLL
        for (int chunk = 0; chunk < chunks; ++chunk) {
          float piece[width];
          TESSERA_UNROLL
          for (int v = 0; v < width; ++v) {
            piece[v] = state.sums[s][chunk][v / halves].r[Shape::c_register(i, v % halves)];
          }
          f(s * rows + at.col, chunk * chunk_columns + at.row % Shape::groups * width, s, i % own_rows, piece);
        }
      }
    }
  }
  /// Row `only` of the window, or all_rows of them.
  TESSERA_FUNCTION static void store_all(const Wave& wave, const AttentionArgs& args, const Head& head,
                                         const AttentionPart& part, int only, const Varying<State>& state) {
    wave.each([&](int lane) {
      each_piece(state(lane), lane, [&](int local, int column, int s, int r, const float(&piece)[width]) {
        if (only != all_rows && local != only) return;
        const float reference = state(lane).reference[s][r], total = state(lane).total[s][r];
        if (part.partial >= 0) {
          store_partial(args, head, part.partial, local, column, reference, total, piece);
        } else {
          store(args, head, part.window * window_rows + local, column, reference, total, piece);
        }
      });
    });
  }
  TESSERA_FUNCTION static void store(const AttentionArgs& args, const Head& head, std::int64_t row, int column,
                                     float reference, float total, const float (&piece)[width]) {
    if (row >= args.rows) return;
    if (column == 0) head.store_lse(row, reference, total);
    if (column >= head.e()) return;
    const float inverse = attention_inverse(total);
    std::uint32_t words[width / 2];
    TESSERA_UNROLL
    for (int v = 0; v < width; v += 2) {
      words[v / 2] = rounded_pair<Operand>(piece[v] * inverse, piece[v + 1] * inverse);
    }
    head.template store<piece_bytes>(row, column, words);
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
    constexpr int bytes = width * 4 < 16 ? width * 4 : 16;
    TESSERA_UNROLL
    for (int v = 0; v < width; v += bytes / 4) attention_store<bytes>(row + column + v, piece + v);
  }
};

}  // namespace Tessera

#endif
