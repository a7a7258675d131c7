// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_PANEL_LAUNCH_HPP
#define TESSERA_LAUNCH_PANEL_LAUNCH_HPP

#include "backends/kernels/spmm/Tessera_PanelDispatch.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_PartialsLaunch.hpp"
#include "backends/launch/Tessera_SpmmLaunchers.hpp"

/// \file
/// Launchers of SpMM from panels: the four waves of a thread block, each with rings of its own in shared memory, take
/// neighbouring windows and the same columns; column tiles follow each other, so that a tile of B stays in the caches.
/// No private memory (CheckHipAssembly.cmake proves it for AMD).

namespace Tessera {
namespace Launch {

/// NVIDIA: the rings of a multiprocessor's thread blocks take 100 to 190 of its 256 KB, the rest is cache
/// (perf_test/notes/spmm-panels.md has other numbers); registers follow. 16-bit operands, and products in parts, need
/// more of them, so that what a lane keeps from block to block stays in registers.
template <class Kernel>
constexpr int panel_thread_blocks_of() {
  constexpr int bytes = Kernel::row_bytes, size = sizeof(typename Kernel::Operand);
  if (size == 2) return bytes <= 32 ? 8 : bytes <= 64 ? 6 : bytes <= 128 ? 5 : 4;
  if (bytes <= 128) return 6;
  if (size == 8) return bytes <= 256 ? 6 : 4;
  return in_parts<typename Kernel::Atom> ? 4 : 5;
}
template <class Kernel>
constexpr int panel_thread_blocks = panel_thread_blocks_of<Kernel>();

template <class Device, class Kernel_>
struct PanelBody {
  using Kernel = Kernel_;
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes,
                       bound = for_family<Device>(panel_thread_blocks<Kernel>, 1);
  static constexpr int shared = waves * Kernel::wave_bytes;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmmPanelArgs& args,
                                   std::int64_t first_tile) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const int index = static_cast<int>(in_thread_block);
      const std::int64_t part = std::int64_t{thread_block.index()} * waves + index;
      if (part >= args.split.part_count) return;
      const Wave wave;
      Kernel::run(wave, args, Wave::memory(thread_block.memory()) + index * Kernel::wave_bytes, part,
                  (first_tile + thread_block.tile()) * Kernel::tile_columns);
    });
  }
};

/// Waves that the device should have before a wave takes several windows; an emulation's are few, so that small
/// matrices have such waves.
template <class Device>
std::int64_t panel_waves() {
  return Device::emulated ? 3 : std::int64_t{for_family<Device>(96, 24)} * Device::multiprocessors();
}

/// What the dispatch over panels calls.
template <class Device>
struct PanelLauncher {
  const SpmmPanelArgs& args;
  Stream stream;

  /// Windows that fill the device even in wide tiles; an emulation's are few, so that small matrices have such tiles.
  static constexpr std::int64_t many_windows = Device::emulated ? 5 : 6000;
  /// Windows up to which narrower tiles make more waves, whose last round is shorter.
  static constexpr std::int64_t few_windows = Device::emulated ? 3 : 100;

  template <class Atom, int Steps, int Chunks, int Bytes>
  Status run() const {
    using Unit = typename UnitOf<Device::template Unit, Atom>::type;
    using Kernel = PanelKernel<Unit, typename Device::Wave, Steps, Chunks, Bytes>;
    using Body = PanelBody<Device, Kernel>;
    const SpmmPanelArgs shared_out = panel_shared_out(args, Kernel::tile_columns, panel_waves<Device>());
    const Grid grid{ceil_div(shared_out.split.part_count, Body::waves),
                    ceil_div(args.dense.columns, Kernel::tile_columns)};
    typename Device::Error error = launch_tiles<Device, Body>(grid, stream, shared_out);
    if (error == Device::success) {
      const SpmmPartialRows split = spmm_partial_rows(args, Kernel::Shape::rows);
      error = add_partials<Device, typename Atom::Operand, typename Atom::Accumulator>(split, stream);
    }
    return Device::status(error, "Tessera::spmm[panels]");
  }
};

template <class Device>
const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept {
  return ForFamily<Device, PanelNvidia, PanelAmd>::geometry(precision, columns);
}

template <class Device>
Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept {
  const Status status = panel_check(args);
  if (!status.ok() || args.split.part_count == 0 || args.dense.columns == 0) return status;
  return ForFamily<Device, PanelNvidia, PanelAmd>::dispatch(args, PanelLauncher<Device>{args, stream});
}

}  // namespace Launch
}  // namespace Tessera

#endif
