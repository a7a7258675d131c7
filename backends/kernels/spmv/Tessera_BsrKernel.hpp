// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_BSR_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_BSR_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_BsrArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y for blocks of side b in the caller's arrays. One text for devices and hosts.
///
/// Lanes lie on the numbers of blocks as these lie in memory: `per_row` lanes side by side read one row of a block,
/// `Width` numbers each; the rows of a block follow, then the blocks that a block row has in work at once (its
/// *places*), then further block rows. So a wave reads consecutive numbers whatever b is, a lane has the same row and
/// column of a block all the way, and the side is no parameter of the template. Blocks of more numbers than a wave has
/// lanes, and those of side 3, take `Words` numbers of different rows per lane, which share the column of the block and
/// x, and pass several times if that is not enough.
///
/// Bytes: b^2 v + 4 per block, an offset per block row, x and y once. All loads of a batch are predicated and go out
/// before the first of them is needed, columns one batch ahead of their x.

namespace Tessera {

/// How the lanes of a wave are dealt out.
struct BsrShape {
  int per_row = 1;                                           ///< lanes of a row of a block
  int rows = 1;                                              ///< rows of a block that lanes lie on
  int places = 1;                                            ///< blocks of a block row in work at once
  int block_rows = 1;                                        ///< of a wave
  std::uint32_t by_row = 0, by_place = 0, by_block_row = 0;  ///< for quotients of lane numbers

  TESSERA_FUNCTION int lanes_per_block() const { return per_row * rows; }
  TESSERA_FUNCTION int lanes_per_block_row() const { return per_row * rows * places; }

  static constexpr std::uint32_t inverse(int divisor) {
    return (65536u + static_cast<std::uint32_t>(divisor) - 1) / static_cast<std::uint32_t>(divisor);
  }
  /// lane / divisor, exact for numbers below 256.
  TESSERA_FUNCTION static int quotient(int lane, std::uint32_t inverse) {
    return static_cast<int>(static_cast<std::uint32_t>(lane) * inverse >> 16);
  }

  /// @param steps  that a lane should have at least: fewer places per block row where rows are short
  /// @param words  rows of a block that a lane has
  static BsrShape of(const SpmvBsrArgs& args, int width, int lanes, int steps, int words) {
    BsrShape s;
    s.per_row = args.block / width;
    s.rows = args.block < lanes / s.per_row ? (args.block + words - 1) / words : lanes / s.per_row;
    const int blocks = lanes / s.lanes_per_block();
    const std::int64_t mean = args.block_rows > 0 ? args.blocks / args.block_rows : 0;
    // The most lanes with work; of equals, the most places.
    int most = 0;
    for (int places = 1; places <= blocks && (places == 1 || places * std::int64_t{steps} <= mean); ++places) {
      const int busy = blocks / places * places;
      if (busy < most) continue;
      most = busy;
      s.places = places;
    }
    s.block_rows = blocks / s.places;
    s.by_row = inverse(s.per_row);
    s.by_place = inverse(s.lanes_per_block());
    s.by_block_row = inverse(s.lanes_per_block_row());
    return s;
  }
};

/// Width: numbers that a lane reads at once; above 1 they must be side by side and aligned in A and x, and divide b.
/// Words: rows of a block per lane.
template <class Value, class Wave, int Width, int Words, bool Streaming>
class BsrKernel {
 public:
  TESSERA_FUNCTION static void run(const Wave& w, const SpmvBsrArgs& args, const BsrShape& shape, std::int64_t wave) {
    const BsrKernel kernel(w, args, shape);
    Varying<Place> place;
    w.each([&](int lane) { place(lane) = kernel.place_of(lane, wave); });
    for (int top = 0; top < args.block; top += shape.rows * Words) kernel.rows(place, top);
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  static constexpr int lanes = Wave::lanes, value_bytes = static_cast<int>(sizeof(Value));
  static constexpr int batch = 4;  ///< blocks that a lane has in flight

  /// What a lane has of which block row.
  struct Place {
    std::int64_t block_row, first;  ///< and the row's first block
    std::int32_t blocks;            ///< of the row; 0: the lane has nothing to do
    int place, row, part;           ///< of the row's blocks, of a block's rows, of a row's numbers
    bool stores;
  };
  struct Sums {
    Value sum[Words];
  };

  TESSERA_FUNCTION BsrKernel(const Wave& w, const SpmvBsrArgs& args, const BsrShape& shape)
      : w_(w), p_(args), shape_(shape) {}

  TESSERA_FUNCTION Place place_of(int lane, std::int64_t wave) const {
    Place at;
    const int in_wave = BsrShape::quotient(lane, shape_.by_block_row);
    const int rest = lane - in_wave * shape_.lanes_per_block_row();
    at.place = BsrShape::quotient(rest, shape_.by_place);
    const int in_block = rest - at.place * shape_.lanes_per_block();
    at.row = BsrShape::quotient(in_block, shape_.by_row);
    at.part = in_block - at.row * shape_.per_row;
    at.block_row = wave * shape_.block_rows + in_wave;
    const bool on = in_wave < shape_.block_rows && at.block_row < p_.block_rows;
    at.stores = on && at.place == 0 && at.part == 0;
    at.first = offset_if(at.block_row, on);
    at.blocks = static_cast<std::int32_t>(offset_if(at.block_row + 1, on) - at.first);
    return at;
  }
  TESSERA_FUNCTION std::int64_t offset_if(std::int64_t at, bool on) const {
    Packed<std::int64_t, 1> offset{};
    if (p_.wide_offsets) {
      Wave::template load_if<false, 8>(static_cast<const std::int64_t*>(p_.row_map) + at, on, 0u, offset.w);
      return offset.get(0);
    }
    Wave::template load_if<false, 4>(static_cast<const std::int32_t*>(p_.row_map) + at, on, 0u, offset.w);
    return static_cast<std::int32_t>(offset.w[0]);
  }

  /// Rows of blocks from `top` on, as many as lanes have words for.
  TESSERA_FUNCTION void rows(const Varying<Place>& place, int top) const {
    Varying<Sums> sums;
    w_.each([&](int lane) { sums(lane) = lane_sums(place(lane), top); });
    add_up(
        sums, [&](int lane) { return place(lane).part; }, shape_.per_row, 1);
    add_up(
        sums, [&](int lane) { return place(lane).place; }, shape_.places, shape_.lanes_per_block());
    w_.each([&](int lane) {
      const Place& at = place(lane);
      TESSERA_UNROLL
      for (int r = 0; r < Words; ++r) {
        const int row = top + at.row + r * shape_.rows;
        if (at.stores && row < p_.block) {
          store_result<Value>(p_, (at.block_row * p_.block + row) * p_.y_stride, sums(lane).sum[r]);
        }
      }
    });
  }

  /// The sums of `count` neighbours, `distance` lanes apart, to the first of them: halves onto halves.
  template <class Index>
  TESSERA_FUNCTION void add_up(Varying<Sums>& sums, const Index& index, int count, int distance) const {
    while (count > 1) {
      const int half = (count + 1) / 2;
      TESSERA_UNROLL
      for (int r = 0; r < Words; ++r) {
        Varying<Value> own, other;
        w_.each([&](int lane) { own(lane) = sums(lane).sum[r]; });
        w_.shuffle(other, own, [=](int lane) {
          const int from = lane + half * distance;
          return from < lanes ? from : lane;
        });
        w_.each([&](int lane) {
          if (index(lane) + half < count) sums(lane).sum[r] += other(lane);
        });
      }
      count = half;
    }
  }

  TESSERA_FUNCTION Sums lane_sums(const Place& at, int top) const {
    Sums sums;
    TESSERA_UNROLL
    for (int r = 0; r < Words; ++r) sums.sum[r] = Value(0);
    const std::int64_t b = p_.block;
    const BsrSteps steps = BsrSteps::of(p_.order, b, at.blocks);
    const std::int64_t down = shape_.rows * steps.row;
    const int places = shape_.places, ahead = places * static_cast<int>(steps.block);
    const Value* values = static_cast<const Value*>(p_.values) + at.first * b * b + at.place * steps.block +
                          (top + at.row) * steps.row + at.part * Width * steps.column;
    const std::int32_t* columns = p_.columns + at.first + at.place;
    const Value* const x_part = static_cast<const Value*>(p_.x) + at.part * Width * p_.x_stride;
    const std::int64_t x_step = b * p_.x_stride;
    std::uint32_t next[batch];
    std::int32_t left = at.blocks - at.place;
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) {
      Wave::template load_if<false, 4>(columns + u * places, u * places < left, ~0u, next + u);
    }
    for (; left > 0; left -= batch * places) {
      Packed<Value, Width> a[batch][Words], x[batch];
      std::uint32_t column[batch];
      columns += batch * places;
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        column[u] = next[u];
        TESSERA_UNROLL
        for (int r = 0; r < Words; ++r) {
          const bool on = u * places < left && (Words == 1 || top + at.row + r * shape_.rows < p_.block);
          Wave::template load_if<Streaming, Width * value_bytes>(values + u * ahead + r * down, on, 0u, a[u][r].w);
        }
      }
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        Wave::template load_if<false, 4>(columns + u * places, (batch + u) * places < left, ~0u, next + u);
      }
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        // All ones: there is no block.
        Wave::template load_if<false, Width * value_bytes>(x_part + column[u] * x_step, column[u] != ~0u, 0u, x[u].w);
      }
      values += batch * ahead;
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        TESSERA_UNROLL
        for (int r = 0; r < Words; ++r) {
          TESSERA_UNROLL
          for (int n = 0; n < Width; ++n) sums.sum[r] += a[u][r].get(n) * x[u].get(n);
        }
      }
    }
    return sums;
  }

  const Wave& w_;
  const SpmvBsrArgs& p_;
  const BsrShape& shape_;
};

}  // namespace Tessera

#endif
