// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_SPGEMM_WINDOW_LAUNCH_HPP
#define TESSERA_LAUNCH_SPGEMM_WINDOW_LAUNCH_HPP

#include "backends/kernels/spgemm/Tessera_SpgemmTilesKernel.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmWindowsKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SpgemmTurn.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"

/// \file
/// Windows of rows of SpGEMM on FP64 matrix units.

namespace Tessera {
namespace Launch {

/// Tiles of a family. Shared memory of 64 KiB (AMD) has room for windows of 16 rows and 256 columns of C.
template <class Device>
struct SpgemmWindows {
  using Wave = typename Device::Wave;
  using Atom = ForFamily<Device, Sm80_M8N8K4_F64, Gfx90a_M16N16K4_F64>;
  using Unit = typename Device::template Unit<Atom>;
  using Small = SpgemmTilesKernel<Unit, Wave, 4, 256, 160>;
  using Large = SpgemmTilesKernel<Unit, Wave, for_family<Device>(8, 4), for_family<Device>(512, 256),
                                  for_family<Device>(256, 160)>;
  using Look = SpgemmWindowsKernel<Wave, for_family<Device>(4, 2), Small, Large>;
};

template <class Device, class Kernel>
struct SpgemmTilesBody {
  static constexpr int threads = Kernel::threads, shared = Kernel::bytes;
  // 64 registers per thread, some spilled: 1.00 to 1.09 times as fast as 85 without spills, on an H100.
  static constexpr int bound = for_family<Device>(1024 / threads, 0);
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, SpgemmTurn turn,
                                   std::int64_t begin) {
    spgemm_in_turn(thread_block, turn,
                   [&] { Kernel::run(thread_block, args, args.sizes[begin + thread_block.index()]); });
  }
};

template <class Device>
struct SpgemmWindowsBody {
  using Kernel = typename SpgemmWindows<Device>::Look;
  static constexpr int threads = Kernel::threads, shared = Kernel::bytes, bound = 0;
  static constexpr bool overlapping = true;
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args) {
    thread_block.template wait_for_previous_launch<false>();
    Kernel::run(thread_block, args, thread_block.index());
  }
};

template <class Device>
Status spgemm_windows(const SpgemmArgs& args, Stream stream) noexcept {
  const std::int64_t windows = ceil_div(args.A.rows, SpgemmWindows<Device>::Atom::m);
  const auto error =
      windows == 0 ? Device::success : launch<Device, SpgemmWindowsBody<Device>>({windows}, stream, args);
  return Device::status(error, "Tessera::spgemm[windows]");
}

}  // namespace Launch
}  // namespace Tessera

#endif
