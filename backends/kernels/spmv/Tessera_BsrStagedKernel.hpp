// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_BSR_STAGED_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_BSR_STAGED_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_BsrArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y for row-major blocks of one side, staged in shared memory piece by piece.
///
/// The values of neighbouring block rows are one run of bytes, whatever the side, and so are their columns. A wave has
/// a few block rows and takes their run by pieces of at most `Piece` blocks, across the ends of rows: it copies the
/// piece's columns and values to shared memory of its own, then the numbers of x that these columns name, and
/// multiplies from there. So a piece waits twice, however many blocks it has, all its bytes are on their way at once
/// without a register for any of them, values are read by words of 16 bytes, and a number of x is read once per block.
///
/// A lane takes one row of a block (b numbers side by side, of an odd side without bank conflicts), `lanes / b` blocks
/// at a time. Sums of a block row's places are added in halves: the order is fixed.

namespace Tessera {

/// Piece: blocks that are staged at once.
template <class Value, class Wave, int Block, int Piece>
class BsrStagedKernel {
  static constexpr int lanes = Wave::lanes, value_bytes = static_cast<int>(sizeof(Value));
  static constexpr int places = lanes / Block;  ///< blocks that a wave has lanes for
  static constexpr int row_bytes = Block * value_bytes, block_bytes = Block * row_bytes;
  /// Numbers of a row of a block that are side by side at a multiple of their bytes, in A as in x.
  static constexpr int width = (row_bytes % 16 == 0 ? 16 : row_bytes % 8 == 0 ? 8 : value_bytes) / value_bytes;
  static constexpr int parts = Block / width;
  /// A block's x begins at a word in shared memory.
  static constexpr int x_width = 16 / value_bytes, x_words = (Block + x_width - 1) / x_width, x_bytes = x_words * 16;

  /// Values, of which a piece may begin between two words, x, columns.
  static constexpr int x_at = (Piece * block_bytes + 31) / 16 * 16, columns_at = x_at + Piece * x_bytes;
  static constexpr int value_copies = (x_at / 16 + lanes - 1) / lanes;

 public:
  static constexpr int wave_bytes = (columns_at + Piece * 4 + 127) / 128 * 128;
  static constexpr int alignment = width * value_bytes;  ///< of x

  using Memory = typename Wave::Memory;
  using CacheHint = typename Wave::CacheHint;
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// `rows` block rows, fewer than lanes. `memory`: wave_bytes that only this wave uses. `hint`: for the values.
  TESSERA_FUNCTION static void run(const Wave& w, const SpmvBsrArgs& args, Memory memory, std::int64_t first_row,
                                   int rows, CacheHint hint) {
    Varying<std::int64_t> offsets;
    w.each([&](int lane) { offsets(lane) = args.offset(first_row + (lane < rows ? lane : rows)); });
    const std::int64_t first = of_lane(w, offsets, 0);
    Varying<std::int32_t> ends;
    Varying<Value> sum;
    w.each([&](int lane) {
      ends(lane) = static_cast<std::int32_t>(offsets(lane) - first);
      sum(lane) = Value(0);
    });
    const BsrStagedKernel kernel(w, args, memory, hint);
    const std::int32_t all = of_lane(w, ends, rows);
    std::int32_t begin = 0;
    for (int piece = 0, row = 0; row < rows; piece += Piece) {
      const std::int32_t count = all - piece < Piece ? all - piece : Piece;
      const int shift = kernel.stage(first + piece, count);
      for (; row < rows; ++row) {
        const std::int32_t end = of_lane(w, ends, row + 1), until = end < piece + count ? end : piece + count;
        w.each([&](int lane) { sum(lane) = kernel.multiply(lane, shift, begin - piece, until - piece, sum(lane)); });
        begin = until;
        if (until < end) break;  // the rest of the row is in the next piece
        add_up(w, sum);
        w.each([&](int lane) {
          if (lane < Block) {
            store_result<Value>(args, ((first_row + row) * Block + lane) * args.y_stride, sum(lane));
          }
          sum(lane) = Value(0);
        });
      }
      Wave::converge();  // all lanes have read what the next piece overwrites
    }
  }

 private:
  TESSERA_FUNCTION BsrStagedKernel(const Wave& w, const SpmvBsrArgs& args, Memory memory, CacheHint hint)
      : w_(w), p_(args), memory_(memory), hint_(hint) {}

  template <class T>
  TESSERA_FUNCTION static T of_lane(const Wave& w, const Varying<T>& v, int lane) {
    Varying<T> out;
    w.shuffle(out, v, [=](int) { return lane; });
    return Wave::first(out);
  }

  /// Copies `count` blocks from `first` on. @return bytes of a word before their first number
  TESSERA_FUNCTION int stage(std::int64_t first, std::int32_t count) const {
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int i = 0; i < (Piece + lanes - 1) / lanes; ++i) {
        const int k = lane + i * lanes;
        if (k < count) Wave::template copy_number<4>(memory_ + columns_at + k * 4, p_.columns + first + k);
      }
    });
    Wave::commit_copies();
    const std::int64_t at = first * block_bytes;
    const int shift = block_bytes % 16 == 0 ? 0 : static_cast<int>(at & 15), bytes = shift + count * block_bytes;
    w_.each([&](int lane) {
      const char* const from = static_cast<const char*>(p_.values) + (at - shift) + lane * 16;
      TESSERA_UNROLL
      for (int i = 0; i < value_copies; ++i) {
        const int word = (lane + i * lanes) * 16, left = bytes - word;
        if (left > 0) Wave::copy_part(memory_ + word, from + i * lanes * 16, left < 16 ? left : 16, hint_);
      }
    });
    Wave::commit_copies();
    Wave::template wait_copies<1>();
    w_.each([&](int lane) {
      const Value* const x = static_cast<const Value*>(p_.x);
      TESSERA_UNROLL
      for (int i = 0; i < (Piece * parts + lanes - 1) / lanes; ++i) {
        const int k = (lane + i * lanes) / parts, part = (lane + i * lanes) % parts;
        if (k >= count) continue;
        std::uint32_t column;
        Wave::template load_staged<4>(memory_ + columns_at + k * 4, &column);
        const std::int64_t from = static_cast<std::int64_t>(column) * Block + part * width;
        Wave::template copy_number<alignment>(memory_ + x_at + k * x_bytes + part * alignment, x + from * p_.x_stride);
      }
    });
    Wave::commit_copies();
    Wave::template wait_copies<0>();
    return shift;
  }

  /// The own lane's part of the piece's blocks from `begin` to `end`.
  TESSERA_FUNCTION Value multiply(int lane, int shift, std::int32_t begin, std::int32_t end, Value sum) const {
    const int place = lane / Block;
    if (place >= places) return sum;
    Memory a_from = memory_ + shift + (begin * Block + lane) * row_bytes;
    Memory x_from = memory_ + x_at + (begin + place) * x_bytes;
    for (std::int32_t k = begin + place; k < end; k += places) {
      Packed<Value, width> a[parts];
      Packed<Value, x_width> x[x_words];
      TESSERA_UNROLL
      for (int n = 0; n < parts; ++n) Wave::template load_staged<alignment>(a_from + n * alignment, a[n].w);
      TESSERA_UNROLL
      for (int n = 0; n < x_words; ++n) Wave::template load_staged<16>(x_from + n * 16, x[n].w);
      TESSERA_UNROLL
      for (int n = 0; n < Block; ++n) sum += a[n / width].get(n % width) * x[n / x_width].get(n % x_width);
      a_from += places * block_bytes;
      x_from += places * x_bytes;
    }
    return sum;
  }

  /// The sums of all places to the first of them: halves onto halves.
  TESSERA_FUNCTION static void add_up(const Wave& w, Varying<Value>& sum) {
    TESSERA_UNROLL
    for (int count = places; count > 1; count = (count + 1) / 2) {
      const int half = (count + 1) / 2;
      Varying<Value> other;
      w.shuffle(other, sum, [=](int lane) {
        const int from = lane + half * Block;
        return from < lanes ? from : lane;
      });
      w.each([&](int lane) {
        if (lane / Block + half < count) sum(lane) += other(lane);
      });
    }
  }

  const Wave& w_;
  const SpmvBsrArgs& p_;
  const Memory memory_;
  const CacheHint hint_;
};

}  // namespace Tessera

#endif
