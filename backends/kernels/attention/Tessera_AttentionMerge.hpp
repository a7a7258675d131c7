// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_MERGE_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_MERGE_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionWeights.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The second launch of attention where windows were split: what their parts left becomes O. All sums of a row are
/// brought to the largest reference of its parts and added, from the first part to the last one.

namespace Tessera {

template <class Operand, class Wave>
struct AttentionMerge {
  static constexpr int width = 4;  ///< columns of a lane

  /// Row `index` of those of split windows.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionArgs& args, std::int64_t index,
                                   std::int64_t head_index) {
    const SpmmSplit split = args.splits[index / args.window_rows];
    const auto local = static_cast<std::int32_t>(index % args.window_rows);
    const std::int64_t row = std::int64_t{split.window} * args.window_rows + local;
    if (row >= args.rows) return;
    const AttentionHead<Operand> head(args.dense, head_index);
    const auto e = static_cast<int>(args.dense.e);
    const std::int64_t size = AttentionPartials::row_size(e), stride = args.window_rows * size;
    const std::int64_t first = head_index * args.partial_count + split.first;
    const float* const from = args.partials + first * stride + local * size;
    wave.each([&](int lane) {
      float reference = attention_no_reference;
      TESSERA_UNROLL_4
      for (int i = 0; i < split.count; ++i) {
        const float other = from[i * stride + e];
        reference = other > reference ? other : reference;
      }
      for (int column = lane * width; column == lane * width || column < e; column += Wave::lanes * width) {
        add(head, from, stride, split.count, e, column, row, reference);
      }
    });
  }

 private:
  /// Lane 0, which is always among those that come, writes the log-sum-exp.
  TESSERA_FUNCTION static void add(const AttentionHead<Operand>& head, const float* from, std::int64_t stride,
                                   int count, int e, int column, std::int64_t row, float reference) {
    const bool inside = column < e;
    float total = 0, sums[width] = {};
    TESSERA_UNROLL_4
    for (int i = 0; i < count; ++i) {
      const float* const part = from + i * stride;
      const Word facts = Wave::load_written(reinterpret_cast<const Word*>(part + e));
      const Word word = Wave::load_written(reinterpret_cast<const Word*>(part + (inside ? column : 0)));
      const float shrink = power_of_two(Impl::float_from_bits(facts.w[0]) - reference);
      total += Impl::float_from_bits(facts.w[1]) * shrink;
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) sums[v] += Impl::float_from_bits(word.w[v]) * shrink;
    }
    if (column == 0) head.store_lse(row, reference, total);
    if (!inside) return;
    const float inverse = attention_inverse(total);
    const WeightPair<Operand> pairs[2] = {WeightPair<Operand>::of(sums[0] * inverse, sums[1] * inverse),
                                          WeightPair<Operand>::of(sums[2] * inverse, sums[3] * inverse)};
    attention_store<static_cast<int>(sizeof(pairs))>(head.o(row, column), pairs);
  }
};

}  // namespace Tessera

#endif
