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

template <class Device, class Kernel>
struct SddmmRowsBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, bound = for_family<Device>(5, 0), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SddmmRowsArgs& args, int passes,
                                   std::int64_t first_head) {
    if (!args.beside) thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t index = std::int64_t{thread_block.index()} * waves + in_thread_block;
      const std::int64_t first = index * passes * Kernel::entries;
      if (first >= args.nnz) return;
      const Wave wave;
      Kernel::run(wave, args, first, passes, first_head + thread_block.tile());
    });
    // The launch after this one waits for this one alone, so one thread block waits for the one before.
    if (args.beside && thread_block.index() + 1 == thread_block.thread_blocks()) {
      thread_block.template wait_for_previous_launch<false>();
    }
  }
};

/// Batches that a team takes one after the other: two or more, since the next columns come while one is multiplied; of
/// 8 entries in all where rows are about as short, else of 16. With more a row of X serves more of them, but those that
/// a device has under way lie so far apart that they meet fewer rows of Y in its caches (perf_test/notes/sddmm.md).
/// Fewer where that would leave multiprocessors without work at the end.
template <class Device, class Kernel>
int sddmm_passes(const SddmmRowsArgs& args) {
  const int most = std::max(2, (args.nnz <= 9 * args.rows ? 8 : 16) / Kernel::batch);
  if (Device::emulated) return most < 3 ? most : 3;
  const auto with_waves = [&](int per_multiprocessor) {
    return args.nnz / (std::int64_t{Kernel::entries} * per_multiprocessor * Device::multiprocessors());
  };
  const std::int64_t passes = std::max(with_waves(80), std::min<std::int64_t>(with_waves(20), 8 / Kernel::batch));
  return static_cast<int>(std::clamp<std::int64_t>(passes, 1, most));
}

template <class Device, class Value, class Sum>
typename Device::Error launch_sddmm_rows(SddmmRowsArgs args, Stream stream) {
  args.aligned = reinterpret_cast<std::uintptr_t>(args.columns) % 16 == 0;
  using Head = SddmmHead<Value, Sum>;
  return sddmm_rows_dispatch<Head, typename Device::Wave>(args.dense.words, [&](auto kernel) {
    using Kernel = decltype(kernel);
    using Body = SddmmRowsBody<Device, Kernel>;
    const int passes = sddmm_passes<Device, Kernel>(args);
    typename Device::Error error = Device::success;
    for (std::int64_t head = 0; head < args.dense.heads && error == Device::success; head += most_tiles) {
      const Grid grid{ceil_div(args.nnz, std::int64_t{Body::waves} * passes * Kernel::entries),
                      std::min(most_tiles, args.dense.heads - head)};
      error = launch<Device, Body>(grid, stream, args, passes, head);
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
