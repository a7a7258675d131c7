// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_TILES_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_TILES_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionWeights.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_SplitUnit.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// What the kernels of attention do with a window of rows and a block of its column vectors, each of which names a row
/// of a dense operand: inner products of the window's own rows and the gathered ones, and sums of the gathered rows
/// with weights. *Own* rows: Q and dO where windows are of rows of the pattern, K and V where they are of its columns.
///
///     S^T(16 x 8)  = G(16 x d) W^T(d x 8)         G: gathered rows, W: the window's own
///     R^T(d x 8)  += G^T(d x 16) P^T(16 x 8)      P: weights in the type of operands
///
/// all in registers. The order of d in an inner product, of the column vectors in a sum and of the columns of its
/// result are free, so lanes read sixteen bytes of rows as they lie. Operands of 16 bits are multiplied 16 deep, those
/// of FP32 8 or 4 deep (PanelShape), TF32 in one product and FP32 on NVIDIA's units in three (SplitUnit).

namespace Tessera {

/// Columns: dense operands have at most so many. Exact: they have so many.
template <class Unit, class Wave, int Height, int Columns, bool Exact>
class AttentionTiles {
 public:
  using Atom = typename Unit::Atom;
  using Shape = PanelShape<Atom, Atom::m / Atom::k>;
  using Operand = typename Shape::Operand;
  using Head = AttentionHead<Operand>;
  static constexpr int height = Height, rows = Shape::rows, window_rows = height * rows;
  static constexpr int quads = Shape::quads, per_step = Shape::per_step, slots = Shape::slots, halves = Shape::halves;

  // Of inner products: chunks of 64 bytes of rows.
  static constexpr int inner_chunks = Columns / (quads * Shape::width);
  static constexpr int steps = Shape::width / per_step;  ///< instructions that a word feeds
  static constexpr int at_once = inner_chunks < 4 ? inner_chunks : 4;
  /// All words of gathered rows are there before they are used. In parts they leave too few registers, from 64 columns.
  static constexpr bool ahead = at_once == inner_chunks && !(in_parts<Atom> && inner_chunks > 2);

  // Of sums: a lane's piece of a gathered row.
  static constexpr int element = static_cast<int>(sizeof(Operand));
  static constexpr int piece_bytes = Columns * element / Shape::groups < 16 ? Columns * element / Shape::groups : 16;
  static constexpr int width = piece_bytes / element;
  static constexpr int chunk_columns = Shape::groups * width, chunks = Columns / chunk_columns;
  static constexpr int products = width / halves;  ///< instructions that share a chunk's loads

  static constexpr bool pairs = element == 2;  ///< operands share registers
  static constexpr bool pairs_are_words() {
    for (int i = 0; pairs && i < Atom::a_registers; i += 2) {
      const bool same = Shape::a_half(i) == Shape::a_half(i + 1) && Shape::a_slot(i) + 1 == Shape::a_slot(i + 1);
      if (!same || Shape::a_slot(i) % 2 != 0) return false;
    }
    return !pairs || per_step % 2 == 0;
  }
  static_assert(Shape::consistent() && WeightSlots<Atom>::consistent(), "layouts that the kernels are written for");
  static_assert(inner_chunks * quads * Shape::width == Columns && chunks * chunk_columns == Columns, "whole chunks");
  static_assert(pairs_are_words(), "neighbours in a word are neighbours in an operand");
  static_assert(slots == per_step * Shape::steps && per_step == Atom::b_registers, "a slot per weight");

  /// Instead of a row of the window: all of them.
  static constexpr int all_rows = -1;
  /// Rows of the window that an accumulator of a lane has.
  static constexpr int own_rows = Atom::c_coord(0, 1).col == Atom::c_coord(0, 0).col ? 1 : 2;
  static constexpr int first_distance = rows / own_rows;  ///< between lanes that share rows of the window
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using RowWord = Packed<Operand, Shape::width>;
  using Scores = CFragment<Atom>;
  using Weights = WeightOperands<Atom>;

  struct Sums {
    Scores at[height][chunks][products];
  };
  struct OwnWords {
    RowWord word[height][inner_chunks];
  };
  struct GatheredWords {
    RowWord word[at_once][halves];
  };
  struct Pieces {
    Packed<Operand, width> slot[slots];
  };
  /// Gathered rows of a block, as a lane needs them for inner products and for sums.
  struct Place {
    std::uint32_t inner[halves], sum[slots];
  };
  struct OwnBits {
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
      place.inner[h] = static_cast<std::uint32_t>(columns[Shape::group_of(lane) + h * Shape::groups]);
    }
    WeightSlots<Atom>::load_columns(columns, lane, place.sum);
  }
  TESSERA_FUNCTION static const SddmmBlockRow& block_row(const AttentionArgs& args, std::uint32_t block, int s, int i,
                                                         int lane) {
    return args.block_rows[std::int64_t{block} * window_rows + s * rows + Atom::c_coord(lane, i).col];
  }
  TESSERA_FUNCTION static void load_bits(const AttentionArgs& args, std::uint32_t block, int lane, OwnBits& own) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int i = 0; i < own_rows; ++i) own.bits[s][i] = block_row(args, block, s, i, lane).bits;
    }
  }
  /// Whether the row has an entry in the column vector of register i.
  TESSERA_FUNCTION static bool is_on(const OwnBits& own, int s, int i, int lane) {
    return (own.bits[s][i % own_rows] >> Atom::c_coord(lane, i).row & 1) != 0;
  }
  /// f(entry in CSR) for register i, if its slot holds one.
  template <class F>
  TESSERA_FUNCTION static void with_entry(const AttentionArgs& args, std::uint32_t block, int s, int i, int lane,
                                          const F& f) {
    const SddmmBlockRow row = block_row(args, block, s, i, lane);
    const int vector = Atom::c_coord(lane, i).row;
    if ((row.bits >> vector & 1) == 0) return;
    std::uint32_t entry =
        row.begin + static_cast<std::uint32_t>(count_bits(row.bits & ((std::uint32_t{1} << vector) - 1)));
    if (args.entry_at != nullptr) entry = args.entry_at[entry];
    f(entry);
  }

  /// The window's own rows; beyond the last one, that one again.
  TESSERA_FUNCTION static void load_own(const AttentionArgs& args, const AttentionRows& from, std::int64_t window,
                                        int lane, OwnWords& to) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const std::int64_t row = window * window_rows + s * rows + Shape::row_of(lane);
      const char* const at =
          from.at(static_cast<std::uint32_t>(row < args.rows ? row : args.rows - 1)) + Shape::quad_of(lane) * 16;
      TESSERA_UNROLL
      for (int c = 0; c < inner_chunks; ++c) {
        const bool on = c * quads + Shape::quad_of(lane) < from.words;
        attention_load<Exact, 16, Wave>(at + c * quads * 16, on, to.word[s][c].w);
      }
    }
  }
  /// Chunks [first, first + at_once) of the gathered rows, for inner products.
  TESSERA_FUNCTION static void load_gathered(const AttentionRows& from, const Place& place, int first, int lane,
                                             GatheredWords& to) {
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) {
      const char* const at = from.at(place.inner[h]) + (first * quads + Shape::quad_of(lane)) * 16;
      TESSERA_UNROLL
      for (int c = 0; c < at_once; ++c) {
        const bool on = (first + c) * quads + Shape::quad_of(lane) < from.words;
        attention_load<Exact, 16, Wave>(at + c * quads * 16, on, to.word[c][h].w);
      }
    }
  }
  /// A chunk of the gathered rows, for sums.
  TESSERA_FUNCTION static void load_pieces(const AttentionRows& from, const Place& place, int chunk, int lane,
                                           Pieces& to) {
    const int column = chunk * chunk_columns + Shape::group_of(lane) * width;
    TESSERA_UNROLL
    for (int j = 0; j < slots; ++j) {
      attention_load<Exact, piece_bytes, Wave>(from.at(place.sum[j]) + column * element, column < from.columns,
                                               to.slot[j].w);
    }
  }

  TESSERA_FUNCTION static void clear(Sums& sums) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int c = 0; c < chunks; ++c) {
        TESSERA_UNROLL
        for (int p = 0; p < products; ++p) sums.at[s][c][p] = Scores{};
      }
    }
  }

  /// Inner products of a block. gathered: its words if they all are there (`ahead`); else they are loaded here.
  TESSERA_FUNCTION static void multiply(const Wave& wave, const AttentionRows& from, const Varying<Place>& place,
                                        const Varying<OwnWords>& own, Varying<GatheredWords>& gathered,
                                        Varying<Scores> (&scores)[height]) {
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) scores[s](lane) = Scores{};
    });
    TESSERA_UNROLL
    for (int first = 0; first < inner_chunks; first += at_once) {
      if (!ahead) wave.each([&](int lane) { load_gathered(from, place(lane), first, lane, gathered(lane)); });
      TESSERA_UNROLL
      for (int c = 0; c < at_once; ++c) {
        TESSERA_UNROLL
        for (int step = 0; step < steps; ++step) {
          Varying<AFragment<Atom>> left;
          wave.each([&](int lane) {
            TESSERA_UNROLL
            for (int i = 0; i < Atom::a_registers; i += 4 / element) {
              const auto& word = gathered(lane).word[c][Shape::a_half(i)];
              __builtin_memcpy(left(lane).r + i, word.w + (step * per_step + Shape::a_slot(i)) * element / 4, 4);
            }
          });
          TESSERA_UNROLL
          for (int s = 0; s < height; ++s) {
            Varying<BFragment<Atom>> right;
            wave.each([&](int lane) {
              __builtin_memcpy(right(lane).r, own(lane).word[s][first + c].w + step * per_step * element / 4,
                               sizeof(right(lane).r));
            });
            Unit::mma(wave, scores[s], left, right);
          }
        }
      }
    }
  }

  /// FP32 in parts of TF32 makes NaN of infinite numbers and of the largest ones: products of entries that are not
  /// finite are made again, as plain loops would. Rare, and kept small: no register is named by a loop that stays one.
  TESSERA_FUNCTION static void multiply_again(const Wave& wave, const AttentionArgs& args, const AttentionRows& own,
                                              const AttentionRows& gathered, std::int64_t window, std::uint32_t block,
                                              const Varying<OwnBits>& bits, Varying<Scores> (&scores)[height]) {
    constexpr int registers = height * Atom::c_registers;
    wave.each([&](int lane) {
      std::uint32_t wanted = 0;
      TESSERA_UNROLL
      for (int n = 0; n < registers; ++n) {
        const int s = n / Atom::c_registers, i = n % Atom::c_registers;
        const bool odd = is_on(bits(lane), s, i, lane) && !is_finite(scores[s](lane).r[i]);
        wanted |= static_cast<std::uint32_t>(odd) << n;
      }
      if (wanted == 0) return;
      TESSERA_NO_UNROLL
      for (int n = 0; n < registers; ++n) {
        if ((wanted >> n & 1) == 0) continue;
        const Coord at = Atom::c_coord(lane, n % Atom::c_registers);
        const std::int64_t row = window * window_rows + n / Atom::c_registers * rows + at.col;
        const std::int32_t column = args.columns[std::int64_t{block} * Shape::depth + at.row];
        const float product =
            product_of(own, static_cast<std::uint32_t>(row), gathered, static_cast<std::uint32_t>(column));
        TESSERA_UNROLL
        for (int m = 0; m < registers; ++m) {
          float& score = scores[m / Atom::c_registers](lane).r[m % Atom::c_registers];
          score = m == n ? product : score;
        }
      }
    });
  }
  TESSERA_FUNCTION static float product_of(const AttentionRows& x, std::uint32_t x_row, const AttentionRows& y,
                                           std::uint32_t y_row) {
    const auto* const a = reinterpret_cast<const Operand*>(x.at(x_row));
    const auto* const b = reinterpret_cast<const Operand*>(y.at(y_row));
    float sum = 0;
    TESSERA_NO_UNROLL
    for (int k = 0; k < x.columns; ++k) sum = std::fma(static_cast<float>(a[k]), static_cast<float>(b[k]), sum);
    return sum;
  }

  /// A chunk of weighted sums. sums_of(state): those of a lane.
  template <class VaryingState, class SumsOf>
  TESSERA_FUNCTION static void add_pieces(const Wave& wave, const Varying<Pieces>& pieces,
                                          const Varying<Weights> (&weights)[height], int chunk, VaryingState& state,
                                          const SumsOf& sums_of) {
    TESSERA_UNROLL
    for (int p = 0; p < products; ++p) {
      TESSERA_UNROLL
      for (int step = 0; step < Shape::steps; ++step) {
        Varying<AFragment<Atom>> left;
        wave.each([&](int lane) { left_of_sums(pieces(lane), p, step, left(lane)); });
        TESSERA_UNROLL
        for (int s = 0; s < height; ++s) {
          Varying<BFragment<Atom>> right;
          Varying<Scores> sums;
          wave.each([&](int lane) {
            right(lane) = weights[s](lane).step(step);
            sums(lane) = sums_of(state(lane)).at[s][chunk][p];
          });
          Unit::mma(wave, sums, left, right);
          wave.each([&](int lane) { sums_of(state(lane)).at[s][chunk][p] = sums(lane); });
        }
      }
    }
  }
  /// Of product p of a chunk, and of the slots of instruction `step`.
  TESSERA_FUNCTION static void left_of_sums(const Pieces& pieces, int p, int step, AFragment<Atom>& left) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::a_registers; i += 4 / element) {
      const int column = p * halves + Shape::a_half(i), slot = step * per_step + Shape::a_slot(i);
      if constexpr (pairs) {
        const std::uint32_t two =
            pair_of(pieces.slot[slot], pieces.slot[step * per_step + Shape::a_slot(i + 1)], column);
        __builtin_memcpy(left.r + i, &two, sizeof(two));
      } else {
        left.r[i] = pieces.slot[slot].get(column);
      }
    }
  }
  /// The sums of own row r of the lane, times a factor.
  TESSERA_FUNCTION static void scale_row(Sums& sums, int s, int r, float factor) {
    TESSERA_UNROLL
    for (int c = 0; c < chunks; ++c) {
      TESSERA_UNROLL
      for (int p = 0; p < products; ++p) {
        TESSERA_UNROLL
        for (int i = r; i < Atom::c_registers; i += own_rows) sums.at[s][c][p].r[i] *= factor;
      }
    }
  }
  /// Whether all sums of own row r of the lane are finite.
  TESSERA_FUNCTION static bool finite_row(const Sums& sums, int s, int r) {
    float zero = 0;  // until a number that is not finite is multiplied by it
    TESSERA_UNROLL
    for (int c = 0; c < chunks; ++c) {
      TESSERA_UNROLL
      for (int p = 0; p < products; ++p) {
        TESSERA_UNROLL
        for (int i = r; i < Atom::c_registers; i += own_rows) zero = std::fma(sums.at[s][c][p].r[i], 0.0f, zero);
      }
    }
    return is_finite(zero);
  }
  /// Makes v of a lane the sum, or the largest, of it over all lanes that share its rows, in a fixed order.
  TESSERA_FUNCTION static void sum_of_row(const Wave& wave, Varying<float>& v) {
    Varying<float> other;
    TESSERA_UNROLL
    for (int distance = first_distance; distance < Wave::lanes; distance *= 2) {
      wave.shuffle(other, v, [=](int lane) { return lane ^ distance; });
      wave.each([&](int lane) { v(lane) += other(lane); });
    }
  }
  TESSERA_FUNCTION static void largest_of_row(const Wave& wave, Varying<float>& v) {
    Varying<float> other;
    TESSERA_UNROLL
    for (int distance = first_distance; distance < Wave::lanes; distance *= 2) {
      wave.shuffle(other, v, [=](int lane) { return lane ^ distance; });
      wave.each([&](int lane) { v(lane) = other(lane) > v(lane) ? other(lane) : v(lane); });
    }
  }

  /// Zeros instead of the gathered rows that row `row` of the instruction does not use.
  TESSERA_FUNCTION static void clear_unused(const UsedSlots& used, int row, int lane, Pieces& pieces) {
    TESSERA_UNROLL
    for (int j = 0; j < slots; ++j) {
      const int vector = WeightSlots<Atom>::vector_of(lane, j), at = WeightSlots<Atom>::register_of(vector, row);
      typename Wave::Mask mask = 0;
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) mask = i == at ? used.lanes[i] : mask;
      const bool on = (mask >> WeightSlots<Atom>::lane_of(vector, row) & 1) != 0;
      TESSERA_UNROLL
      for (int w = 0; w < (piece_bytes + 3) / 4; ++w) pieces.slot[j].w[w] = on ? pieces.slot[j].w[w] : 0;
    }
  }

  /// All sums of a block for row `row` of the window, entry by entry: where a product in parts is not finite. weights:
  /// as the accumulator has them. (Sums of other rows become anything.)
  template <class VaryingState, class SumsOf>
  TESSERA_FUNCTION static void add_entries(const Wave& wave, const AttentionArgs& args, const AttentionRows& from,
                                           std::uint32_t block, const UsedSlots& used, int row,
                                           const Varying<Scores> (&weights)[height], VaryingState& state,
                                           const SumsOf& sums_of) {
    for (int vector = 0; vector < Atom::m; ++vector) {
      const int at = WeightSlots<Atom>::register_of(vector, row % rows);
      const int holder = WeightSlots<Atom>::lane_of(vector, row % rows);
      if ((used.lanes[at] >> holder & 1) == 0) continue;
      Varying<float> weight;
      wave.each([&](int lane) { weight(lane) = weights[row / rows](lane).r[at]; });
      wave.shuffle(weight, weight, [=](int) { return holder; });
      const auto* const values = reinterpret_cast<const Operand*>(
          from.at(static_cast<std::uint32_t>(args.columns[std::int64_t{block} * Shape::depth + vector])));
      wave.each([&](int lane) {
        for (int c = 0; c < chunks * products * Atom::c_registers; ++c) {
          const int i = c % Atom::c_registers, p = c / Atom::c_registers % products;
          const int chunk = c / (Atom::c_registers * products), place = Atom::c_coord(lane, i).row;
          const int column = chunk * chunk_columns + place % Shape::groups * width + p * halves + place / Shape::groups;
          if (column >= from.columns) continue;
          float& sum = sums_of(state(lane)).at[row / rows][chunk][p].r[i];
          sum = std::fma(weight(lane), static_cast<float>(values[column]), sum);
        }
      });
    }
  }

  /// f(row of the window, first column, s, own row, sums of the piece) for all that the lane holds.
  template <class F>
  TESSERA_FUNCTION static void each_piece(const Sums& sums, int lane, const F& f) {
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
            piece[v] = sums.at[s][chunk][v / halves].r[Shape::c_register(i, v % halves)];
          }
          f(s * rows + at.col, chunk * chunk_columns + at.row % Shape::groups * width, s, i % own_rows, piece);
        }
      }
    }
  }
  /// A piece as it is.
  TESSERA_FUNCTION static void store_floats(float* to, const float (&piece)[width]) {
    constexpr int bytes = width * 4 < 16 ? width * 4 : 16;
    TESSERA_UNROLL
    for (int v = 0; v < width; v += bytes / 4) attention_store<bytes>(to + v, piece + v);
  }
};

}  // namespace Tessera

#endif
