// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SDDMM_WINDOW_LAUNCH_HPP
#define TESSERA_LAUNCH_SDDMM_WINDOW_LAUNCH_HPP

#include <algorithm>
#include <type_traits>

#include "backends/kernels/sddmm/Tessera_SddmmDispatch.hpp"
#include "backends/launch/Tessera_CompactLaunch.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SddmmLaunchers.hpp"

/// \file
/// Launchers of SDDMM on matrix units: a thread block has a wave per window that takes turns (SddmmBlock); rows of Y
/// meet in the first-level cache. A head is a tile of the grid. No shared memory.

namespace Tessera {
namespace Launch {

template <class Device, class Kernel>
struct SddmmWindowBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = SddmmBlock::side_by_side, threads = waves * Wave::lanes;
  static constexpr int bound = for_family<Device>(Kernel::thread_blocks, 1), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SddmmWindowArgs& args,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    if (args.with_next) thread_block.start_next_launch();  // not before: it does not wait for the launch before
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t first = std::int64_t{thread_block.index()} * waves * args.blocks_per_wave + in_thread_block;
      if (first >= args.blocks) return;
      const Wave wave;
      Kernel::run(wave, args, static_cast<std::uint32_t>(first), waves, static_cast<int>(args.blocks_per_wave),
                  first_head + thread_block.tile());
    });
  }
};

/// Four blocks per wave, so that what a device has under way uses the same rows of Y; two where blocks share words of X
/// each time these are read; more of long windows, which use rows of Y once (perf_test/notes/sddmm.md). Fewer where a
/// device would not be filled.
template <class Device, class Kernel>
std::int64_t sddmm_blocks_per_wave(const SddmmWindowArgs& args) {
  if (Device::emulated) return 3;
  const std::int64_t per_window = args.blocks * args.window_rows / std::max<std::int64_t>(args.rows, 1);
  std::int64_t most = Kernel::together == 2 ? 2 : 4;
  if (Kernel::whole && per_window >= 10) most = per_window >= 64 ? 16 : 8;
  return std::clamp<std::int64_t>(args.blocks / (std::int64_t{32} * Device::multiprocessors()), 1, most);
}

/// Enqueues the copy of Y for a kernel, and names it in the arguments.
template <class Device>
typename Device::Error compact_y(SddmmWindowArgs& args, int across, Stream stream) {
  CompactCopy copy;
  copy.from = static_cast<const float*>(args.dense.y);
  copy.ld = args.dense.ldy;
  copy.head = args.dense.y_head;
  copy.rows = args.cols;
  copy.columns = args.dense.words * 4;
  copy.heads = args.dense.heads;
  copy.to = args.dense.compact;
  copy.across = across;
  args.dense.y = args.dense.compact;
  args.dense.ldy = copy.groups();
  args.dense.y_head = args.cols * copy.groups();
  args.dense.lower = copy.lower();
  return launch_compact<Device>(copy, stream);
}

template <class Device, class Atom, class Chunks>
typename Device::Error launch_sddmm_windows(SddmmWindowArgs args, Stream stream) {
  using Unit = typename UnitOf<Device::template Unit, Atom>::type;
  using Kernel = SddmmWindowKernel<Unit, typename Device::Wave, Chunks>;
  using Body = SddmmWindowBody<Device, Kernel>;
  if constexpr (Chunks::compact) {
    const auto error = compact_y<Device>(args, Kernel::across, stream);
    if (error != Device::success) return error;
  }
  args.blocks_per_wave = sddmm_blocks_per_wave<Device, Kernel>(args);
  args.plain = args.entry_at == nullptr && args.dense.plain(sizeof(typename Atom::Operand) > 2);
  const std::int64_t waves = ceil_div(args.blocks, args.blocks_per_wave);
  return launch_tiles<Device, Body>({ceil_div(waves, Body::waves), args.dense.heads}, stream, args);
}

/// Rows of several times so many chunks.
template <int Height, int Count>
struct SddmmLongRows : SddmmChunks<Height, Count> {
  static constexpr bool whole = false;
};
/// Rows of any length.
template <int Height>
struct SddmmAnyRows : SddmmChunks<Height, 2> {
  static constexpr bool whole = false, exact = false;
};
/// The same from a copy of Y in TF32.
template <class Chunks>
struct SddmmFromCopy : Chunks {
  static constexpr bool compact = true;
};

/// The kernel for rows of so many words.
template <class Device, class Atom, int Height>
typename Device::Error launch_sddmm_height(const SddmmWindowArgs& args, Stream stream) {
  const auto launch = [&](auto chunks) { return launch_sddmm_windows<Device, Atom, decltype(chunks)>(args, stream); };
  const std::int64_t words = args.dense.words;
  constexpr bool every = Device::template every_length<typename Atom::Operand>;
  if constexpr (every) {
    if (words == 4) return launch(SddmmChunks<Height, 1>());
    if (words == 8) return launch(SddmmChunks<Height, 2>());
  }
  if (words == 16) return launch(SddmmChunks<Height, 4>());
  if constexpr (every && Height == 1) {
    if (words == 32) return launch(SddmmChunks<1, 8>());
    if constexpr (Atom::m == 8) {  // half the registers for Y
      if (words == 64) return launch(SddmmChunks<1, 16>());
    }
    if (words % 32 == 0) return launch(SddmmLongRows<1, 8>());
  }
  if (words % 16 == 0) return launch(SddmmLongRows<Height, 4>());
  return launch(SddmmAnyRows<Height>());
}

/// The same with a copy of Y in TF32.
template <class Device, class Atom, int Height>
typename Device::Error launch_sddmm_compact(const SddmmWindowArgs& args, Stream stream) {
  const auto launch = [&](auto chunks) {
    return launch_sddmm_windows<Device, Atom, SddmmFromCopy<decltype(chunks)>>(args, stream);
  };
  const std::int64_t words = args.dense.words;
  constexpr bool every = Device::template every_length<typename Atom::Operand>;
  if constexpr (every) {
    if (words == 8) return launch(SddmmChunks<Height, 2>());
  }
  if (words == 16) return launch(SddmmChunks<Height, 4>());
  if constexpr (every && Height == 1) {
    if (words == 32) return launch(SddmmChunks<1, 8>());
    if (words % 32 == 0) return launch(SddmmLongRows<1, 8>());
  }
  if (words % 16 == 0) return launch(SddmmLongRows<Height, 4>());
  return launch(SddmmAnyRows<Height>());
}

template <class Device>
SddmmShape sddmm_shape(Precision precision) noexcept {
  return sddmm_shape_of<ForFamily<Device, SddmmNvidia, SddmmAmd>>(precision);
}

template <class Device>
Status sddmm_windows(const SddmmWindowArgs& args, Stream stream) noexcept {
  using Vendor = ForFamily<Device, SddmmNvidia, SddmmAmd>;
  const int rows = sddmm_shape_of<Vendor>(args.precision).rows;
  if (args.window_rows != rows && args.window_rows != 2 * rows) {
    return {"sddmm[panels]: the windows were made for another instruction"};
  }
  if (args.blocks == 0 || args.dense.heads == 0) return {};
  const auto error = sddmm_with_atom<Vendor>(args.precision, [&](auto atom) {
    using Atom = typename decltype(atom)::type;
    if constexpr (std::is_same_v<Atom, typename Vendor::TF32>) {
      if (args.dense.compact != nullptr && args.precision == Precision::TF32) {
        if (args.window_rows == rows) return launch_sddmm_compact<Device, Atom, 1>(args, stream);
        return launch_sddmm_compact<Device, Atom, 2>(args, stream);
      }
    }
    if (args.window_rows == rows) return launch_sddmm_height<Device, Atom, 1>(args, stream);
    return launch_sddmm_height<Device, Atom, 2>(args, stream);
  });
  return Device::status(error, "Tessera::sddmm[panels]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
