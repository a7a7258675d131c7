// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_WALK_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_ROWS_WALK_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"

/// \file
/// What the kernels of attention by rows share: how a *team*, some lanes of a wave, walks through its share of the
/// rows, and what its lanes do with rows of dense operands.
///
/// Teams of a wave step together, a batch of entries at a time, each in rows of its own: one that is done with a row
/// goes on with its next one in the next step, so that none waits for the longest row, and shares are of about as many
/// entries each. What a step needs first, columns, was asked for in the step before it, and so was the piece after this
/// one.

namespace Tessera {

/// A team of 2^Shift lanes, each with Words words of a row, Batch entries at once. Exact: rows have as many words as
/// the team, else up to as many.
template <int Shift_, int Words_, int Batch_, bool Exact_>
struct AttentionRowsShape {
  static constexpr int shift = Shift_, words = Words_, batch = Batch_;
  static constexpr bool exact = Exact_;
  static constexpr int lanes = 1 << shift, tile = lanes * words;
};

template <class Wave_, class Shape, class Sum_>
struct AttentionRowsTeam {
  using Wave = Wave_;
  using Sum = Sum_;
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  static constexpr int batch = Shape::batch, words = Shape::words, lanes = Shape::lanes;
  static constexpr int width = 16 / static_cast<int>(sizeof(Sum));  ///< numbers of a word
  static constexpr int teams = Wave::lanes / lanes;                 ///< of a wave

  using RowWord = Packed<Sum, width>;
  /// A lane's words of a row, and its numbers of a row of sums.
  struct Row {
    RowWord w[words];
  };
  struct RowSums {
    Sum s[words][width];
  };
  /// A number per entry of a batch.
  struct Batch {
    Sum of[batch];
  };

  // ---- the walk

  struct Piece {
    std::uint32_t begin, count;
    std::int32_t row, partial;
  };
  /// Where a team is; all of its lanes have the same.
  struct Place {
    Piece piece;                ///< what is left of the present one
    Piece later;                ///< the one after it, if there is one
    std::uint32_t number, end;  ///< of the present piece, and where the share ends
    bool begins;                ///< nothing of the present piece was taken
  };
  /// A batch of entries of one piece.
  struct Step {
    std::uint32_t first, on;  ///< entry, and a bit for each that there is
    std::int32_t row, partial, column[batch];
    bool alive, begins, ends;  ///< whether there was one; of the piece
  };

  TESSERA_FUNCTION static Piece piece_at(const AttentionRowsArgs& args, std::uint32_t number) {
    if (args.table != nullptr) {
      const SpmmRowPiece p = args.table[number];
      return {static_cast<std::uint32_t>(p.packed >> SpmmRowPiece::length_bits),
              static_cast<std::uint32_t>(p.packed) & static_cast<std::uint32_t>(SpmmRowPiece::most_entries), p.row,
              p.partial};
    }
    const std::uint32_t begin = offset_at(args, args.row_map, number);
    return {begin, offset_at(args, args.row_map, number + 1) - begin, static_cast<std::int32_t>(number), -1};
  }
  TESSERA_FUNCTION static std::uint32_t offset_at(const AttentionRowsArgs& args, const void* of, std::uint32_t at) {
    return args.offset_bytes == 4 ? static_cast<const std::uint32_t*>(of)[at]
                                  : static_cast<std::uint32_t>(static_cast<const std::uint64_t*>(of)[at]);
  }
  TESSERA_FUNCTION static Place begin(const AttentionRowsArgs& args, std::int64_t share) {
    Place place{};
    if (share >= args.share_count) return place;
    place.number = args.shares[share];
    place.end = args.shares[share + 1];
    place.begins = true;
    if (place.number < place.end) place.piece = piece_at(args, place.number);
    if (place.number + 1 < place.end) place.later = piece_at(args, place.number + 1);
    return place;
  }
  /// The next batch, whose columns are asked for.
  TESSERA_FUNCTION static Step take(const AttentionRowsArgs& args, Place& place) {
    Step step;
    Piece& piece = place.piece;
    const std::uint32_t count = piece.count < batch ? piece.count : batch;
    step.alive = place.number < place.end;
    step.first = piece.begin;
    step.on = step.alive ? (std::uint32_t{1} << count) - 1 : 0;
    step.row = piece.row;
    step.partial = piece.partial;
    step.begins = step.alive && place.begins;
    step.ends = step.alive && piece.count <= batch;
    TESSERA_UNROLL
    for (int b = 0; b < batch; ++b)
      step.column[b] = Wave::gather_if(args.columns + (std::int64_t{piece.begin} + b), (step.on >> b & 1) != 0);
    if (piece.count > batch) {
      piece.begin += batch;
      piece.count -= batch;
      place.begins = false;
    } else if (step.alive) {
      piece = place.later;
      place.begins = true;
      ++place.number;
      if (place.number + 1 < place.end) place.later = piece_at(args, place.number + 1);
    }
    return step;
  }

  // ---- rows

  TESSERA_FUNCTION static int own(int lane) { return lane & (lanes - 1); }
  /// Whether a lane's word w is one of a row of so many.
  TESSERA_FUNCTION static bool has(int w, int row_words, int lane) {
    return Shape::exact || own(lane) + w * lanes < row_words;
  }
  /// A lane's words of a row, zeros beyond its end and where it is not `on`.
  TESSERA_FUNCTION static void load(const AttentionRows& from, std::int32_t row, bool on, int lane, Row& to) {
    const char* const at = from.at(static_cast<std::uint32_t>(row)) + own(lane) * 16;
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w)
      Wave::template load_if<false, 16>(at + w * lanes * 16, on && has(w, from.words, lane), 0, to.w[w].w);
  }
  TESSERA_FUNCTION static Sum product(const Row& x, const Row& y) {
    Sum sum = 0;
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < width; ++i) sum += x.w[w].get(i) * y.w[w].get(i);
    }
    return sum;
  }
  TESSERA_FUNCTION static void add(Sum weight, const Row& row, RowSums& sums) {
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < width; ++i) sums.s[w][i] += weight * row.w[w].get(i);
    }
  }
  TESSERA_FUNCTION static void clear(Row& row) {
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < 4; ++i) row.w[w].w[i] = 0;
    }
  }
  TESSERA_FUNCTION static void scale(RowSums& sums, Sum by) {
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < width; ++i) sums.s[w][i] *= by;
    }
  }
  /// Times a number; row: of row_words words.
  TESSERA_FUNCTION static void store(const RowSums& sums, Sum by, int row_words, int lane, void* row) {
    TESSERA_UNROLL
    for (int w = 0; w < words; ++w) {
      if (!has(w, row_words, lane)) continue;
      Sum to[width];
      TESSERA_UNROLL
      for (int i = 0; i < width; ++i) to[i] = sums.s[w][i] * by;
      attention_store<16>(static_cast<char*>(row) + (own(lane) + w * lanes) * 16, to);
    }
  }
  /// Adds up numbers over the lanes of each team, in an order that does not depend on the lane.
  TESSERA_FUNCTION static void add_up(const Wave& wave, Varying<Batch>& sums) {
    TESSERA_UNROLL
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) {
        Varying<Sum> given, taken;
        wave.each([&](int lane) { given(lane) = sums(lane).of[b]; });
        wave.shuffle(taken, given, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { sums(lane).of[b] += taken(lane); });
      }
    }
  }
};

}  // namespace Tessera

#endif
