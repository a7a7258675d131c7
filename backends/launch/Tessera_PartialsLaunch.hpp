// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_PARTIALS_LAUNCH_HPP
#define TESSERA_LAUNCH_PARTIALS_LAUNCH_HPP

#include "backends/kernels/spmm/Tessera_SpmmPartials.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// The second launch of SpMM: 256 threads per thread block, a row of C and a tile of its columns for each wave.

namespace Tessera {
namespace Launch {

template <class Device, class Value, class Sum>
struct AddPartialsBody {
  using Wave = typename Device::Wave;
  static constexpr int threads = 256, waves = threads / Wave::lanes, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmmPartialRows& split) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t row = std::int64_t{thread_block.index()} * waves + in_thread_block;
      if (row < split.count)
        SpmmPartials<Value, Sum, Wave>::run(Wave{}, split, row, thread_block.tile(), thread_block.tiles());
    });
  }
};

/// Nothing where no row was split.
template <class Device, class Value, class Sum>
typename Device::Error add_partials(const SpmmPartialRows& split, Stream stream) {
  using Body = AddPartialsBody<Device, Value, Sum>;
  if (split.count == 0 || split.dense.columns == 0) return Device::success;
  const std::int64_t tiles = SpmmPartials<Value, Sum, typename Device::Wave>::tiles(split);
  return launch<Device, Body>({ceil_div(split.count, Body::waves), std::min(tiles, most_tiles)}, stream, split);
}

}  // namespace Launch
}  // namespace Tessera

#endif
