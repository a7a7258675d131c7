// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_DASP_LAUNCH_HPP
#define TESSERA_LAUNCH_DASP_LAUNCH_HPP

#include "backends/kernels/spmv/Tessera_DaspKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/launch/Tessera_SpmvLaunchers.hpp"

/// \file
/// Launchers of DASP SpMV: four waves per thread block, no shared memory, no private memory (CheckHipAssembly.cmake
/// proves it for AMD).

namespace Tessera {
namespace Launch {

struct DaspNvidia {
  using FP64 = Sm80_M8N8K4_F64;
  using FP16 = Sm80_M16N8K8_F32_F16;
  using BF16 = Sm80_M16N8K8_F32_BF16;
};
struct DaspAmd {
  using FP64 = Gfx90a_M16N16K4_F64;
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
};

/// Streaming: matrix loads pass the first-level cache by. UnitStride: x is contiguous.
template <class Device, class Atom, bool Streaming, bool UnitStride>
struct DaspBody {
  using Wave = typename Device::Wave;
  static constexpr int waves = 4, threads = waves * Wave::lanes, shared = 0;
  /// NVIDIA: 64 registers in FP64, 56 in 16 bits. More registers leave too few waves, fewer make the compiler spill
  /// (perf_test/notes/spmv-dasp.md has the times of 4 to 10). AMD: 128 of the 512 registers. Twice as many waves would
  /// need 64 registers and spill.
  static constexpr int bound = for_family<Device>(sizeof(typename Atom::Operand) == 8 ? 8 : 9, 4);
  static constexpr bool overlapping = false;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvDaspArgs& args) {
    thread_block.each_wave([&](unsigned in_thread_block) {
      const unsigned index = thread_block.index() * waves + in_thread_block;
      if (index >= args.first_wave[DaspClasses]) return;
      const Wave wave;
      DaspKernel<typename Device::template Unit<Atom>, Wave, Streaming, UnitStride>::run(wave, args, index);
    });
  }
};

template <class Device, class Atom>
Status launch_dasp(const SpmvDaspArgs& args, Stream stream) {
  using General = DaspBody<Device, Atom, true, false>;
  const Grid grid{ceil_div(args.first_wave[DaspClasses], General::waves)};
  typename Device::Error error = Device::success;
  if (grid.thread_blocks == 0) return {};
  constexpr bool others = !Device::emulated && Device::template every_variant<typename Atom::Operand>;
  if (!others || args.x_stride != 1) {
    error = launch<Device, General>(grid, stream, args);
  } else if constexpr (others) {
    error = args.streaming ? launch<Device, DaspBody<Device, Atom, true, true>>(grid, stream, args)
                           : launch<Device, DaspBody<Device, Atom, false, true>>(grid, stream, args);
  }
  return Device::status(error, "Tessera::spmv[dasp]");
}

template <class Device>
const DaspGeometry* dasp_geometry(Precision precision) noexcept {
  using Atoms = ForFamily<Device, DaspNvidia, DaspAmd>;
  static const DaspGeometry fp64 = Tessera::dasp_geometry<typename Atoms::FP64>();
  static const DaspGeometry fp16 = Tessera::dasp_geometry<typename Atoms::FP16>();
  static const DaspGeometry bf16 = Tessera::dasp_geometry<typename Atoms::BF16>();
  switch (precision) {
    case Precision::FP64:
      return &fp64;
    case Precision::FP16:
      return &fp16;
    case Precision::BF16:
      return &bf16;
    default:
      return nullptr;
  }
}

template <class Device>
Status spmv_dasp(const SpmvDaspArgs& args, Stream stream) noexcept {
  using Atoms = ForFamily<Device, DaspNvidia, DaspAmd>;
  switch (args.precision) {
    case Precision::FP64:
      return launch_dasp<Device, typename Atoms::FP64>(args, stream);
    case Precision::FP16:
      return launch_dasp<Device, typename Atoms::FP16>(args, stream);
    case Precision::BF16:
      return launch_dasp<Device, typename Atoms::BF16>(args, stream);
    default:
      return {"spmv[dasp]: FP64, FP16 and BF16 are offered"};
  }
}

}  // namespace Launch
}  // namespace Tessera

#endif
