// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_FLASH_LAUNCH_HPP
#define TESSERA_LAUNCH_FLASH_LAUNCH_HPP

#include "backends/kernels/spmm/Tessera_FlashSpmmKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_PartialsLaunch.hpp"
#include "backends/launch/Tessera_SpmmLaunchers.hpp"

/// \file
/// Launchers of FlashSparse SpMM: a wave makes the 16, 32 or 64 columns of a part, four waves per thread block, no
/// shared and no private memory. All parts of one group of columns come before those of the next, which keeps the
/// group's slice of B in the caches. On AMD's units windows have 16 rows, the n of the instructions, and TF32 requests
/// are answered in FP32.

namespace Tessera {
namespace Launch {

/// NVIDIA: left to itself the compiler takes 40 registers for some kernels on 8.0 and spills. AMD: 128 registers.
template <class Device, class Atom>
constexpr int flash_bound(bool swap, bool coalesced, int tiles) {
  const bool more = flash_steps<Atom>(swap, coalesced, tiles) > 2;
  return for_family<Device>(tiles == 4 ? (swap ? 8 : 6) : tiles == 2 ? (swap && !more ? 10 : 8) : 10, 4);
}

template <class Device, class Atom, bool Swap, bool Coalesced, int Tiles>
struct FlashBody {
  using Wave = typename Device::Wave;
  using Kernel = FlashSpmmKernel<typename Device::template Unit<Atom>, Wave, Swap, Coalesced, Tiles>;
  static constexpr int waves = 4, threads = waves * Wave::lanes,
                       bound = flash_bound<Device, Atom>(Swap, Coalesced, Tiles), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmmFlashArgs& args,
                                   std::int64_t first_tile) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t part = std::int64_t{thread_block.index()} * waves + in_thread_block;
      if (part >= args.split.part_count) return;
      const Wave wave;
      Kernel::run(wave, args, part, (first_tile + thread_block.tile()) * Kernel::columns);
    });
  }
};

/// What flash_dispatch calls.
template <class Device>
struct FlashLauncher {
  const SpmmFlashArgs& args;
  Stream stream;

  template <class Atom, bool Swap, bool Coalesced, int Tiles>
  typename Device::Error run() const {
    using Body = FlashBody<Device, Atom, Swap, Coalesced, Tiles>;
    const Grid grid{ceil_div(args.split.part_count, Body::waves), ceil_div(args.dense.columns, Body::Kernel::columns)};
    const typename Device::Error error = launch_tiles<Device, Body>(grid, stream, args);
    if (error != Device::success) return error;
    return add_partials<Device, typename Atom::Operand, float>(spmm_partial_rows(args, args.vector_length), stream);
  }
};

template <class Device>
int flash_depth(Precision precision, int vector_length) noexcept {
  return flash_depth_of<ForFamily<Device, FlashNvidia, FlashAmd>>(precision, vector_length);
}

template <class Device>
Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept {
  using Vendor = ForFamily<Device, FlashNvidia, FlashAmd>;
  /// Waves that a multiprocessor should have before a wave takes several tiles of columns.
  constexpr int least_waves = Device::emulated ? 0 : for_family<Device>(32, 0);
  const Status status = flash_check<Vendor>(args);
  if (!status.ok() || args.split.part_count == 0 || args.dense.columns == 0) return status;
  const int tiles = flash_tiles(args, std::int64_t{least_waves} * Device::multiprocessors());
  return Device::status(flash_dispatch<Vendor>(args, tiles, FlashLauncher<Device>{args, stream}),
                        "Tessera::spmm[flash]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
