// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_COMPACT_LAUNCH_HPP
#define TESSERA_LAUNCH_COMPACT_LAUNCH_HPP

#include "backends/interface/Tessera_CompactB.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// The launcher of copies in TF32 (CompactB): a thread per group; a matrix of several is a tile of the grid.

namespace Tessera {
namespace Launch {

struct CompactBody {
  static constexpr int threads = 256, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const CompactCopy& copy, std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    const std::uint32_t first = thread_block.index() * threads, groups = static_cast<std::uint32_t>(copy.groups());
    thread_block.each_thread([&](unsigned thread) {
      const std::uint32_t n = first + thread;
      // 32 bits: CompactB::fits
      if (n < copy.rows * groups) copy.write(first_head + thread_block.tile(), n / groups, n % groups);
    });
  }
};

template <class Device>
typename Device::Error launch_compact(const CompactCopy& copy, Stream stream) {
  const Grid grid{ceil_div(copy.rows * copy.groups(), CompactBody::threads), copy.heads};
  return launch_tiles<Device, CompactBody>(grid, stream, copy);
}

}  // namespace Launch
}  // namespace Tessera

#endif
