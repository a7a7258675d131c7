// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_MERGE_LAUNCH_HPP
#define TESSERA_LAUNCH_ATTENTION_MERGE_LAUNCH_HPP

#include <algorithm>
#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionPieces.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// The second launch of attention where rows, or windows of them, were split: a wave per row, or, where rows have many
/// pieces and are few, per some words of one. A head is a tile of the grid.

namespace Tessera {
namespace Launch {

/// Of `rows` rows of a head, of `words` words of sixteen bytes: so few words per wave that its lanes have so many
/// pieces under way at once, two at least, as long as a device holds most of the waves (perf_test/notes/attention.md).
/// How many heads there are does not count: a head has the same bits in any batch.
template <class Wave>
AttentionMergeTiles attention_merge_tiles(int words, std::int64_t rows, std::int64_t pieces) {
  constexpr std::int64_t most_waves = 32768, at_once = 8;
  int shift = 0;
  while (1 << shift < words && 1 << shift < Wave::lanes) ++shift;
  const auto waves_of_row = [&] { return ceil_div(words, 1 << shift); };
  while (shift > 1 && at_once * (Wave::lanes >> shift) < pieces && 2 * rows * waves_of_row() <= most_waves) --shift;
  return {shift, static_cast<int>(waves_of_row())};
}

template <class Args>
struct AttentionMergeArgs {
  Args of;
  AttentionMergeTiles tiles;
  std::int64_t rows;  ///< of a head
};

template <class Device, class Merge, class Args>
struct AttentionMergeBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const AttentionMergeArgs<Args>& args,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t index = std::int64_t{thread_block.index()} * waves + in_thread_block;
      const std::int64_t row = index / args.tiles.tiles;
      if (row >= args.rows) return;
      const Wave wave;
      Merge::run(wave, args.of, args.tiles, row, static_cast<int>(index - row * args.tiles.tiles),
                 first_head + thread_block.tile());
    });
  }
};

/// Nothing where nothing was split. pattern: args, or what of it says what was split. split_rows: of a split.
template <class Device, class Merge, class Pattern, class Args>
typename Device::Error launch_attention_merge(const Pattern& pattern, const Args& args, int split_rows, Stream stream) {
  using Body = AttentionMergeBody<Device, Merge, Args>;
  const std::int64_t rows = pattern.split_count * split_rows, heads = pattern.dense.heads;
  if (rows == 0) return Device::success;
  // The most that one row may have; of windows, where more waves cost most of them more than they save one, the mean.
  const std::int64_t pieces = split_rows == 1 ? pattern.partial_count - 2 * (pattern.split_count - 1)
                                              : pattern.partial_count / pattern.split_count;
  const auto tiles = attention_merge_tiles<typename Device::Wave>(Merge::words(args), rows, pieces);
  return launch_tiles<Device, Body>({ceil_div(rows * tiles.tiles, Body::waves), heads}, stream,
                                    AttentionMergeArgs<Args>{args, tiles, rows});
}

}  // namespace Launch
}  // namespace Tessera

#endif
