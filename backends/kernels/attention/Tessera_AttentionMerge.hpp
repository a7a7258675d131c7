// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_MERGE_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_MERGE_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionPieces.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The second launch of attention where windows were split: what their parts left becomes O.

namespace Tessera {

template <class Operand, class Wave>
struct AttentionMerge {
  using Pieces = AttentionPieces<float, Wave, true>;
  static int words(const AttentionArgs& args) { return static_cast<int>(args.dense.e) / Pieces::width; }

  /// Row `index` of those of split windows.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionArgs& args, const AttentionMergeTiles& tiles,
                                   std::int64_t index, int tile, std::int64_t head_index) {
    const SpmmSplit split = args.splits[index / args.window_rows];
    const auto local = static_cast<std::int32_t>(index % args.window_rows);
    const std::int64_t row = std::int64_t{split.window} * args.window_rows + local;
    if (row >= args.rows) return;
    const AttentionHead<Operand> head(args.dense, head_index);
    const std::int64_t size = AttentionPartials::row_size(head.e()), stride = args.window_rows * size;
    const float* const from = args.partials + (head_index * args.partial_count + split.first) * stride + local * size;
    const Pieces pieces{from, stride, split.count, head.e() / Pieces::width};
    pieces.run(wave, tiles, tile, [&](int column, const typename Pieces::State& sums) {
      attention_store_rounded<Operand>(head.o(row, column), sums.s, attention_inverse(sums.total));
      if (column == 0) head.store_lse(row, sums.reference, sums.total);
    });
  }
};

}  // namespace Tessera

#endif
