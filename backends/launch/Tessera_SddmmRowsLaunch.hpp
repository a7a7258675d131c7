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

/// Parts (SddmmRowsKernel) and who takes which. at_once: each wave takes so many consecutive ones and ends; 0: waves
/// stay, and go on to the part as many further as there are waves.
struct SddmmRowsParts {
  std::uint32_t count, at_once;
};

template <class Device, class Kernel>
struct SddmmRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = 0;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 0);
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SddmmRowsArgs& args, SddmmRowsParts parts,
                                   std::int64_t first_head) {
    if (!args.beside) thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::uint32_t index = thread_block.index() * waves + in_thread_block;
      const std::uint32_t first = parts.at_once == 0 ? index : index * parts.at_once;
      const std::uint32_t stride = parts.at_once == 0 ? thread_block.thread_blocks() * waves : 1;
      const std::uint32_t end =
          parts.at_once == 0 || parts.count - first < parts.at_once ? parts.count : first + parts.at_once;
      if (first >= parts.count) return;
      const Wave wave;
      Kernel::run(wave, args, first, stride, end, first_head + thread_block.tile());
    });
    // The launch after this one waits for this one alone, so one thread block waits for the one before.
    if (args.beside && thread_block.index() + 1 == thread_block.thread_blocks()) {
      thread_block.template wait_for_previous_launch<false>();
    }
  }
};

/// Waves stay where rows of Y have up to 64 words: the next part's columns come while this one's rows do, and all that
/// a device has under way lies together, so that it meets the same rows of Y in the caches. With longer rows waves that
/// wait at different places spread too far for that (perf_test/notes/sddmm.md).
template <class Device, class Body>
SddmmRowsParts sddmm_rows_parts(const SddmmRowsArgs& args, std::int64_t count) {
  const bool stay = args.dense.words <= 64 && (Body::bound > 0 || Device::emulated);
  const std::int64_t for_all = count / (std::int64_t{8} * Body::waves * Device::multiprocessors());
  const std::int64_t at_once = stay ? 0 : std::clamp<std::int64_t>(for_all, 1, 4);
  return {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(at_once)};
}
template <class Device, class Body>
std::int64_t sddmm_rows_thread_blocks(const SddmmRowsParts& parts) {
  const std::int64_t all = ceil_div(parts.count, std::int64_t{Body::waves} * std::max(1u, parts.at_once));
  if (parts.at_once > 0) return all;
  return std::min(all, Device::emulated ? std::int64_t{2} : std::int64_t{Body::bound} * Device::multiprocessors());
}

template <class Device, class Value, class Sum>
typename Device::Error launch_sddmm_rows(SddmmRowsArgs args, Stream stream) {
  args.aligned = reinterpret_cast<std::uintptr_t>(args.columns) % 16 == 0;
  using Head = SddmmHead<Value, Sum>;
  return sddmm_rows_dispatch<Head, typename Device::Wave>(args.dense.words, [&](auto kernel) {
    using Kernel = decltype(kernel);
    using Body = SddmmRowsBody<Device, Kernel>;
    const std::int64_t count = ceil_div(args.nnz, Kernel::entries);
    if (count >= std::int64_t{1} << 31) return Device::too_large;
    const SddmmRowsParts parts = sddmm_rows_parts<Device, Body>(args, count);
    typename Device::Error error = Device::success;
    for (std::int64_t head = 0; head < args.dense.heads && error == Device::success; head += most_tiles) {
      const Grid grid{sddmm_rows_thread_blocks<Device, Body>(parts), std::min(most_tiles, args.dense.heads - head)};
      error = launch<Device, Body>(grid, stream, args, parts, head);
    }
    return error;
  });
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
