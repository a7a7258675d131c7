// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_BSR_STREAM_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_BSR_STREAM_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_BsrArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y for row-major blocks of one side, streamed through shared memory.
///
/// The values of neighbouring block rows are one run of bytes, whatever the side, and so are their columns. A wave has
/// a few block rows, whose run it copies by words of 16 bytes into a ring of its own in shared memory, some chunks
/// ahead of what it multiplies and across the ends of rows: how much is in flight depends neither on the side, nor on
/// the length of a block row, nor on registers. A chunk is as many rows of blocks as a wave has lanes.
///
/// A lane takes one row of a block (b numbers side by side, of an odd side without bank conflicts), `lanes / b` blocks
/// at a time; its x are the same as those of the block's other lanes. Sums of a block row's places are added in halves:
/// the order is fixed.

namespace Tessera {

constexpr int power_of_two_from(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

/// Slots: of the ring, a power of two. Steps: blocks of a lane whose x are in flight at once.
template <class Value, class Wave, int Block, int Slots, int Steps>
class BsrStreamKernel {
  static constexpr int lanes = Wave::lanes, value_bytes = static_cast<int>(sizeof(Value));
  static constexpr int places = lanes / Block;  ///< blocks that a wave has lanes for
  static constexpr int row_bytes = Block * value_bytes;
  /// Numbers that are read at once from the ring and of x.
  static constexpr int width = (row_bytes % 16 == 0 ? 16 : row_bytes % 8 == 0 ? 8 : value_bytes) / value_bytes;
  /// A run may begin between two words, and then a chunk's last word is the next one's first.
  static constexpr int spare = Block * row_bytes % 16 == 0 ? 0 : 16;
  static constexpr int chunk_bytes = lanes * row_bytes, slot_bytes = chunk_bytes + spare;
  static constexpr int words = slot_bytes / 16, copies = (words + lanes - 1) / lanes;
  /// Chunks on their way while one is multiplied; a batch of steps may lie in Steps + 1 of them.
  static constexpr int ahead = Slots - Steps - 1;
  static_assert(ahead >= 1 && (Slots & (Slots - 1)) == 0, "a ring of chunks");

  static constexpr int columns_at_once = 64;
  static constexpr int column_slots = power_of_two_from(Slots * lanes / Block + 8 + columns_at_once);

 public:
  static constexpr int wave_bytes = (Slots * slot_bytes + column_slots * 4 + 127) / 128 * 128;
  static constexpr int alignment = width * value_bytes;  ///< of x

  using Memory = typename Wave::Memory;
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// `rows` block rows, at most as many as lanes. `memory`: wave_bytes that only this wave uses.
  TESSERA_FUNCTION static void run(const Wave& w, const SpmvBsrArgs& args, Memory memory, std::int64_t first_row,
                                   int rows) {
    const std::int64_t first = args.offset(first_row);
    Varying<std::int32_t> ends;
    w.each([&](int lane) {
      ends(lane) = static_cast<std::int32_t>(args.offset(first_row + 1 + (lane < rows ? lane : rows - 1)) - first);
    });
    BsrStreamKernel stream(w, args, memory, first, of_lane(w, ends, rows - 1));
    for (int chunk = 0; chunk < ahead; ++chunk) stream.issue(chunk);
    std::int32_t begin = 0;
    for (int row = 0; row < rows; ++row) {
      const std::int32_t end = of_lane(w, ends, row);
      Varying<Value> sum;
      w.each([&](int lane) { sum(lane) = Value(0); });
      for (std::int32_t block = begin; block < end; block += Steps * places) {
        stream.await(block + Steps * places < end ? block + Steps * places : end);
        w.each([&](int lane) { sum(lane) = stream.batch(lane, block, end, sum(lane)); });
      }
      add_up(w, sum);
      w.each([&](int lane) {
        if (lane >= Block) return;
        store_result<Value>(args, ((first_row + row) * Block + lane) * args.y_stride, sum(lane));
      });
      begin = end;
    }
    Wave::template wait_copies<0>();
  }

 private:
  TESSERA_FUNCTION BsrStreamKernel(const Wave& w, const SpmvBsrArgs& args, Memory memory, std::int64_t first,
                                   std::int32_t blocks)
      : w_(w), ring_(memory), x_(static_cast<const Value*>(args.x)), blocks_(blocks) {
    const std::int64_t at = first * Block * row_bytes;
    shift_ = spare == 0 ? 0 : static_cast<int>(at & 15);
    const char* const values = static_cast<const char*>(args.values) + (at - shift_);
    w.each([&](int lane) { from_(lane) = values + lane * 16; });
    left_ = std::int64_t{blocks} * Block * row_bytes + shift_;
    column_shift_ = static_cast<int>(first & 3);
    columns_ = args.columns + (first - column_shift_);
  }

  TESSERA_FUNCTION static std::int32_t of_lane(const Wave& w, const Varying<std::int32_t>& v, int lane) {
    Varying<std::int32_t> out;
    w.shuffle(out, v, [=](int) { return lane; });
    return Wave::first(out);
  }

  /// Starts to copy a chunk, if there is one, and columns before those of its blocks are asked for.
  TESSERA_FUNCTION void issue(int chunk) {
    if (left_ > shift_) {
      const Memory slot = ring_ + (chunk & (Slots - 1)) * slot_bytes;
      if (left_ >= slot_bytes) {
        w_.each([&](int lane) {
          TESSERA_UNROLL
          for (int i = 0; i < copies; ++i) {
            const int word = lane + i * lanes;
            if ((i + 1) * lanes > words && word >= words) continue;
            Wave::template copy_async<false>(slot + word * 16, from_(lane) + i * lanes * 16, true);
          }
        });
      } else {
        copy_last(slot, static_cast<int>(left_));
      }
      w_.each([&](int lane) { from_(lane) += chunk_bytes; });
      left_ -= chunk_bytes;
      const int begun = static_cast<int>((static_cast<unsigned>(chunk + 1) * lanes + Block - 1) / Block);
      if (column_shift_ + begun > columns_asked_) copy_columns();
    }
    Wave::commit_copies();
  }
  TESSERA_FUNCTION void copy_last(Memory slot, int left) const {
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int i = 0; i < copies; ++i) {
        const int at = (lane + i * lanes) * 16;
        if (at < left) Wave::copy_part(slot + at, from_(lane) + i * lanes * 16, left - at < 16 ? left - at : 16);
      }
    });
  }
  TESSERA_FUNCTION void copy_columns() {
    w_.each([&](int lane) {
      const int at = columns_asked_ + lane * 4, rest = column_shift_ + blocks_ - at;
      if (lane < columns_at_once / 4 && rest > 0) {
        Wave::copy_part(column_at(at), columns_ + at, rest < 4 ? rest * 4 : 16);
      }
    });
    columns_asked_ += columns_at_once;
  }
  TESSERA_FUNCTION Memory column_at(int at) const { return ring_ + Slots * slot_bytes + (at & (column_slots - 1)) * 4; }

  /// Until all blocks before `end` are there.
  TESSERA_FUNCTION void await(std::int32_t end) {
    const int chunk = static_cast<int>(static_cast<unsigned>(end * Block - 1) / lanes);
    if (arrived_ > chunk) return;
    Wave::converge();  // all lanes have read what is overwritten next
    do {
      issue(arrived_ + ahead);
      Wave::template wait_copies<ahead>();
    } while (++arrived_ <= chunk);
  }

  /// The own lane's part of the blocks from `block` on: those of its place in each step.
  TESSERA_FUNCTION Value batch(int lane, std::int32_t block, std::int32_t end, Value sum) const {
    const int place = lane / Block;
    Packed<Value, width> x[Steps][Block / width];
    bool on[Steps];
    std::uint32_t column[Steps];
    TESSERA_UNROLL
    for (int u = 0; u < Steps; ++u) {
      const std::int32_t own = block + u * places + place;
      on[u] = place < places && own < end;
      Wave::template load_staged<4>(column_at(column_shift_ + own), column + u);
    }
    TESSERA_UNROLL
    for (int u = 0; u < Steps; ++u) {
      // A lane without a block reads the first x.
      const Value* const x_block = x_ + static_cast<std::int64_t>(on[u] ? column[u] : 0) * Block;
      TESSERA_UNROLL
      for (int n = 0; n < Block / width; ++n) {
        Wave::template load_if<false, width * value_bytes>(x_block + n * width, true, 0u, x[u][n].w);
      }
    }
    TESSERA_UNROLL
    for (int u = 0; u < Steps; ++u) {
      const auto row = static_cast<std::uint32_t>((block + u * places) * Block + lane);
      const Memory at = ring_ + static_cast<int>(row / lanes % Slots) * slot_bytes + shift_ +
                        static_cast<int>(row % lanes) * row_bytes;
      Packed<Value, width> a[Block / width];
      TESSERA_UNROLL
      for (int n = 0; n < Block / width; ++n) {
        Wave::template load_staged<width * value_bytes>(at + n * width * value_bytes, a[n].w);
      }
      Value added = sum;
      TESSERA_UNROLL
      for (int n = 0; n < Block; ++n) added += a[n / width].get(n % width) * x[u][n / width].get(n % width);
      // The ring goes on with the next block row, whose numbers may be infinite.
      sum = on[u] ? added : sum;
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
  const Memory ring_;
  const Value* const x_;
  Varying<const char*> from_;    ///< the lane's word of the next chunk
  const std::int32_t* columns_;  ///< of the run, from a word on
  std::int64_t left_;            ///< bytes of the run that are not asked for yet
  std::int32_t blocks_;          ///< of the run
  int shift_, column_shift_;     ///< of the run's first number, and column, in a word
  int columns_asked_ = 0, arrived_ = 0;
};

}  // namespace Tessera

#endif
