// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_ROWS_LAUNCH_HPP
#define TESSERA_LAUNCH_ATTENTION_ROWS_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/attention/Tessera_AttentionRowsKernel.hpp"
#include "backends/launch/Tessera_AttentionLaunchers.hpp"
#include "backends/launch/Tessera_AttentionMergeLaunch.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// Launchers of attention by rows: four waves per thread block, whose teams take neighbouring shares; a head is a tile
/// of the grid. No shared memory.

namespace Tessera {
namespace Launch {

/// Words of sixteen bytes that the widest team takes of a row.
constexpr int attention_rows_most_words = 128;

/// A share per team.
template <class Device, class Kernel, class Args>
struct AttentionRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = 0;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 1);
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const Args& args, std::int64_t share_count,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t first = (std::int64_t{thread_block.index()} * waves + in_thread_block) * Kernel::teams;
      if (first >= share_count) return;
      const Wave wave;
      Kernel::run(wave, args, first, first_head + thread_block.tile());
    });
  }
};

/// Both launches. rows: args, or what of it says the rows.
template <class Device, class Kernel, class Merge, class Args>
typename Device::Error launch_attention_rows(const AttentionRowsArgs& rows, const Args& args, Stream stream) {
  using Body = AttentionRowsBody<Device, Kernel, Args>;
  const std::int64_t per_thread_block = std::int64_t{Body::waves} * Kernel::teams;
  for (std::int64_t head = 0; head < rows.dense.heads; head += most_tiles) {
    const Grid grid{ceil_div(rows.share_count, per_thread_block), std::min(most_tiles, rows.dense.heads - head)};
    const auto error = launch<Device, Body>(grid, stream, args, rows.share_count, head);
    if (error != Device::success) return error;
  }
  return launch_attention_merge<Device, Merge>(rows, args, 1, stream);
}

/// Calls run(shape) with the team for rows of so many words of Q and of V. Lanes without a word take their time all the
/// same, so that there are teams of three words per lane as well: of four lanes where rows of the pattern are long
/// enough, since of short ones more teams have more under way (perf_test/notes/attention.md).
template <class Run>
auto attention_rows_dispatch(std::int64_t d, std::int64_t e, bool short_rows, const Run& run) {
  const std::int64_t most = std::max(d, e);
  if (d == e && d == 8) return run(AttentionRowsShape<2, 2, 4, true>{});
  if (d == e && d == 16) return run(AttentionRowsShape<3, 2, 4, true>{});
  if (d == e && d == 32) return run(AttentionRowsShape<4, 2, 4, true>{});
  if (d == e && d == 64) return run(AttentionRowsShape<5, 2, 4, true>{});
  if (most <= 8) return run(AttentionRowsShape<2, 2, 4, false>{});
  if (most <= 12 && !short_rows) return run(AttentionRowsShape<2, 3, 3, false>{});
  if (most <= 16) return run(AttentionRowsShape<3, 2, 4, false>{});
  if (most <= 24) return run(AttentionRowsShape<3, 3, 3, false>{});
  if (most <= 32) return run(AttentionRowsShape<4, 2, 4, false>{});
  if (most <= 48) return run(AttentionRowsShape<4, 3, 3, false>{});
  if (most <= 64) return run(AttentionRowsShape<5, 2, 4, false>{});
  return run(AttentionRowsShape<5, 4, 2, false>{});
}

/// The same for the gradients, which hold twice as much of a row.
template <class Run>
auto attention_rows_backward_dispatch(std::int64_t d, std::int64_t e, const Run& run) {
  const std::int64_t most = std::max(d, e);
  if (d == e && d == 8) return run(AttentionRowsShape<2, 2, 2, true>{});
  if (d == e && d == 16) return run(AttentionRowsShape<3, 2, 2, true>{});
  if (d == e && d == 32) return run(AttentionRowsShape<4, 2, 2, true>{});
  if (d == e && d == 64) return run(AttentionRowsShape<5, 2, 2, true>{});
  if (most <= 8) return run(AttentionRowsShape<2, 2, 2, false>{});
  if (most <= 16) return run(AttentionRowsShape<3, 2, 2, false>{});
  if (most <= 32) return run(AttentionRowsShape<4, 2, 2, false>{});
  if (most <= 64) return run(AttentionRowsShape<5, 2, 2, false>{});
  return run(AttentionRowsShape<5, 4, 1, false>{});
}

template <class Device>
AttentionRowsLimits attention_rows_limits(Precision precision) noexcept {
  if (precision == Precision::FP16 || precision == Precision::BF16) return {};
  const int columns = precision == Precision::FP64 ? 2 : 4;
  return {columns, columns * attention_rows_most_words};
}

/// Ok, or why these arguments cannot be run.
inline Status attention_rows_check(const AttentionRowsArgs& args, const AttentionRowsLimits& limits) noexcept {
  if (limits.most_columns == 0) return {"attention[rows]: no kernel has the precision"};
  const AttentionDense& dense = args.dense;
  const auto fits = [&](std::int64_t columns) {
    return columns > 0 && columns % limits.columns == 0 && columns <= limits.most_columns;
  };
  if (!fits(dense.d) || !fits(dense.e)) {
    return {"attention[rows]: columns of Q and V must be whole words of 16 bytes, up to 512 (FP64: 256)"};
  }
  const std::int64_t apart = args.precision == Precision::FP64 ? std::int64_t{1} << 29 : std::int64_t{1} << 30;
  if (std::max({dense.ldq, dense.ldk, dense.ldv}) >= apart) {
    return {"attention[rows]: rows of Q, K or V lie 2^30 or more elements apart (FP64: 2^29)"};
  }
  if (args.nnz >= (std::int64_t{1} << 32) - 16) return {"attention[rows]: 2^32 - 16 entries or more"};
  return {};
}

template <class Device, class Value>
typename Device::Error attention_rows_of(const AttentionRowsArgs& args, Stream stream) {
  using Wave = typename Device::Wave;
  constexpr int width = 16 / static_cast<int>(sizeof(Value));
  const bool short_rows = args.nnz < 12 * args.rows;
  return attention_rows_dispatch(args.dense.d / width, args.dense.e / width, short_rows, [&](auto shape) {
    using Kernel = AttentionRowsKernel<Wave, decltype(shape), Value>;
    return launch_attention_rows<Device, Kernel, AttentionRowsMerge<Value, Wave>>(args, args, stream);
  });
}

template <class Device>
Status attention_rows_forward(const AttentionRowsArgs& args, Stream stream) noexcept {
  const Status status = attention_rows_check(args, attention_rows_limits<Device>(args.precision));
  if (!status.ok() || args.share_count == 0 || args.dense.heads == 0) return status;
  const auto error = args.precision == Precision::FP64 ? attention_rows_of<Device, double>(args, stream)
                                                       : attention_rows_of<Device, float>(args, stream);
  return Device::status(error, "Tessera::attention[rows]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
