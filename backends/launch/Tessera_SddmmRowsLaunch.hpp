// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SDDMM_ROWS_LAUNCH_HPP
#define TESSERA_LAUNCH_SDDMM_ROWS_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/sddmm/Tessera_SddmmRowsKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SddmmLaunchers.hpp"

/// \file
/// Launchers of SDDMM entry by entry: four waves per thread block take consecutive entries, whose rows of X meet in the
/// first-level cache; a head is a tile of the grid.

namespace Tessera {
namespace Launch {

/// Parts (SddmmRowsKernel) and who takes which: waves 0, 1 ... `side_by_side` - 1 take the first parts, one each, then
/// the next ones, `rounds` times; the waves after them go on behind that.
struct SddmmRowsParts {
  std::uint32_t count, side_by_side, rounds;

  std::int64_t waves() const {
    const std::int64_t whole = count / (std::int64_t{side_by_side} * rounds);
    const std::int64_t rest = count - whole * side_by_side * rounds;
    return whole * side_by_side + std::min<std::int64_t>(rest, side_by_side);
  }
  TESSERA_FUNCTION std::uint32_t first(std::uint32_t wave) const {
    return wave / side_by_side * (side_by_side * rounds) + wave % side_by_side;
  }
  TESSERA_FUNCTION std::uint32_t end(std::uint32_t wave) const {
    const std::uint32_t begin = wave / side_by_side * (side_by_side * rounds), all = side_by_side * rounds;
    return begin >= count || count - begin < all ? count : begin + all;
  }
};

template <class Device, class Kernel>
struct SddmmRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = 0;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 0);
  static constexpr int held = for_family<Device>(Kernel::thread_blocks, 4);  ///< thread blocks per multiprocessor
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SddmmRowsArgs& args, SddmmRowsParts parts,
                                   std::int64_t first_head) {
    if (!args.beside) thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::uint32_t index = thread_block.index() * waves + in_thread_block, first = parts.first(index);
      if (first >= parts.count) return;
      const Wave wave;
      Kernel::run(wave, args, first, parts.side_by_side, parts.end(index), first_head + thread_block.tile());
    });
    // The launch after this one waits for this one alone, so one thread block waits for the one before.
    if (args.beside && thread_block.index() + 1 == thread_block.thread_blocks()) {
      thread_block.template wait_for_previous_launch<false>();
    }
  }
};

/// As many waves side by side as multiprocessors hold. Each one asks for the next part's columns while this one's rows
/// come, and all that a device has under way lies together, so that it meets the same rows of Y in the caches. Waves
/// wait at different places, so that after some rounds they lie far apart, by how much data moves in each: then they
/// end, and others begin in order (perf_test/notes/sddmm.md).
template <class Device, class Body>
SddmmRowsParts sddmm_rows_parts(const SddmmRowsArgs& args, std::int64_t count) {
  const int held = Body::waves * (Device::emulated ? 2 : Body::held * std::max(Device::multiprocessors(), 1));
  const std::int64_t words = args.dense.words * args.dense.word_bytes / 16;
  const unsigned rounds = Device::emulated ? 2 : words <= 4 ? 64 : words <= 16 ? 32 : 8;
  return {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(held), rounds};
}

template <class Device, class Kernel>
typename Device::Error launch_sddmm_rows_kernel(SddmmRowsArgs args, Stream stream) {
  args.aligned = reinterpret_cast<std::uintptr_t>(args.columns) % 16 == 0;
  using Body = SddmmRowsBody<Device, Kernel>;
  const std::int64_t count = ceil_div(args.nnz, Kernel::entries);
  if (count >= std::int64_t{1} << 31) return Device::too_large;
  const SddmmRowsParts parts = sddmm_rows_parts<Device, Body>(args, count);
  typename Device::Error error = Device::success;
  for (std::int64_t head = 0; head < args.dense.heads && error == Device::success; head += most_tiles) {
    const Grid grid{ceil_div(parts.waves(), Body::waves), std::min(most_tiles, args.dense.heads - head)};
    error = launch<Device, Body>(grid, stream, args, parts, head);
  }
  return error;
}

template <class Device, class Value, class Sum>
typename Device::Error launch_sddmm_rows(const SddmmRowsArgs& args, Stream stream) {
  return sddmm_rows_dispatch<SddmmHead<Value, Sum>, typename Device::Wave, Device::template every_length<Value>>(
      args.dense.words, [&](auto kernel) { return launch_sddmm_rows_kernel<Device, decltype(kernel)>(args, stream); });
}

template <class Device>
Status sddmm_rows(const SddmmRowsArgs& args, Stream stream) noexcept {
  if (args.nnz == 0 || args.dense.heads == 0) return {};
  const auto answer = [](typename Device::Error error) { return Device::status(error, "Tessera::sddmm[rows]"); };
  switch (args.precision) {
    case Precision::FP64:
      return answer(launch_sddmm_rows<Device, double, double>(args, stream));
    case Precision::FP32:
    case Precision::TF32:
      return answer(launch_sddmm_rows<Device, float, float>(args, stream));
    case Precision::FP16:
      return answer(launch_sddmm_rows<Device, half_t, float>(args, stream));
    case Precision::BF16:
      return answer(launch_sddmm_rows<Device, bhalf_t, float>(args, stream));
  }
  return {"sddmm[rows]: unknown precision"};
}

}  // namespace Launch
}  // namespace Tessera

#endif
