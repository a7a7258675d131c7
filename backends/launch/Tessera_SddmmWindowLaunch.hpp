// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SDDMM_WINDOW_LAUNCH_HPP
#define TESSERA_LAUNCH_SDDMM_WINDOW_LAUNCH_HPP

#include <algorithm>

#include "backends/kernels/sddmm/Tessera_SddmmDispatch.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SddmmLaunchers.hpp"

/// \file
/// Launchers of SDDMM on matrix units: a thread block has a wave per window that takes turns (SddmmUnit); rows of Y
/// meet in the first-level cache. A head is a tile of the grid. No shared memory.

namespace Tessera {
namespace Launch {

template <class Device, class Kernel>
struct SddmmWindowBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = SddmmUnit::side_by_side, threads = waves * Wave::lanes;
  static constexpr int bound = for_family<Device>(3, 1), shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SddmmWindowArgs& args,
                                   std::int64_t first_head) {
    thread_block.template wait_for_previous_launch<false>();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const std::int64_t first = std::int64_t{thread_block.index()} * waves * args.units_per_wave + in_thread_block;
      if (first >= args.units) return;
      const Wave wave;
      Kernel::run(wave, args, first, waves, static_cast<int>(args.units_per_wave), first_head + thread_block.tile());
    });
  }
};

/// Few units per wave, fewer where a device would not be filled.
template <class Device>
std::int64_t sddmm_units_per_wave(const SddmmWindowArgs& args) {
  if (Device::emulated) return 3;
  return std::clamp<std::int64_t>(args.units / (std::int64_t{32} * Device::multiprocessors()), 1, 4);
}

template <class Device, class Atom, class Chunks>
typename Device::Error launch_sddmm_windows(SddmmWindowArgs args, Stream stream) {
  using Unit = typename UnitOf<Device::template Unit, Atom>::type;
  using Body = SddmmWindowBody<Device, SddmmWindowKernel<Unit, typename Device::Wave, Chunks>>;
  args.units_per_wave = sddmm_units_per_wave<Device>(args);
  const std::int64_t waves = ceil_div(args.units, args.units_per_wave);
  return launch_tiles<Device, Body>({ceil_div(waves, Body::waves), args.dense.heads}, stream, args);
}

template <class Device>
SddmmShape sddmm_shape(Precision precision) noexcept {
  return sddmm_shape_of<ForFamily<Device, SddmmNvidia, SddmmAmd>>(precision);
}

template <class Device>
Status sddmm_windows(const SddmmWindowArgs& args, Stream stream) noexcept {
  using Vendor = ForFamily<Device, SddmmNvidia, SddmmAmd>;
  if (sddmm_shape_of<Vendor>(args.precision).rows != args.window_rows) {
    return {"sddmm[panels]: the windows were made for another instruction"};
  }
  if (args.units == 0 || args.dense.heads == 0) return {};
  const auto error = sddmm_with_atom<Vendor>(args.precision, [&](auto atom) {
    using Atom = typename decltype(atom)::type;
    const std::int64_t words = args.dense.words;
    if (words == 4) return launch_sddmm_windows<Device, Atom, SddmmChunks<1, true, true>>(args, stream);
    if (words == 8) return launch_sddmm_windows<Device, Atom, SddmmChunks<2, true, true>>(args, stream);
    if (words == 16) return launch_sddmm_windows<Device, Atom, SddmmChunks<4, true, true>>(args, stream);
    if (words % 16 == 0) return launch_sddmm_windows<Device, Atom, SddmmChunks<4, false, true>>(args, stream);
    return launch_sddmm_windows<Device, Atom, SddmmChunks<2, false, false>>(args, stream);
  });
  return Device::status(error, "Tessera::sddmm[panels]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
