// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include "backends/hip/Tessera_HipAtoms.hpp"
#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/kernels/spmv/Tessera_DaspKernel.hpp"

/// \file
/// Launchers of DASP SpMV: four waves a block, no shared memory, no private memory (CheckHipAssembly.cmake proves it).

namespace Tessera {
namespace {

constexpr int waves_per_block = 4;
/// hipcc reads the second launch bound as waves a SIMD: with 4 a lane may have 128 of the 512 registers. Twice as many
/// waves would need 64 registers and spill.
constexpr int waves_per_simd = 4;

template <class Atom, bool Streaming, bool UnitStride>
__global__ __launch_bounds__(waves_per_block * 64, waves_per_simd) void dasp_kernel(const SpmvDaspArgs args) {
  // The same in all lanes, which the compiler cannot know: told so, it keeps everything that follows from the wave's
  // index, branches included, in scalar registers.
  const int in_block = __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / 64);
  const unsigned index = blockIdx.x * waves_per_block + static_cast<unsigned>(in_block);
  if (index >= args.first_wave[DaspClasses]) return;
  const HipWave wave;
  DaspKernel<MfmaUnit<Atom>, HipWave, Streaming, UnitStride>::run(wave, args, index);
}

template <class Atom>
void launch(const SpmvDaspArgs& args, hipStream_t stream) {
  const unsigned blocks = (args.first_wave[DaspClasses] + waves_per_block - 1) / waves_per_block;
  if (blocks == 0) return;
  const auto kernel = args.x_stride != 1 ? dasp_kernel<Atom, true, false>
                      : args.stream      ? dasp_kernel<Atom, true, true>
                                         : dasp_kernel<Atom, false, true>;
  kernel<<<blocks, waves_per_block * 64, 0, stream>>>(args);
}

}  // namespace

namespace Hip {

const DaspGeometry* dasp_geometry(Precision precision) noexcept {
  static const DaspGeometry fp64 = Tessera::dasp_geometry<Gfx90a_M16N16K4_F64>();
  static const DaspGeometry fp16 = Tessera::dasp_geometry<Gfx90a_M16N16K16_F32_F16>();
  static const DaspGeometry bf16 = Tessera::dasp_geometry<Gfx90a_M16N16K16_F32_BF16>();
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

Status spmv_dasp(const SpmvDaspArgs& args, Stream stream) noexcept {
  const auto s = static_cast<hipStream_t>(stream);
  switch (args.precision) {
    case Precision::FP64:
      launch<Gfx90a_M16N16K4_F64>(args, s);
      break;
    case Precision::FP16:
      launch<Gfx90a_M16N16K16_F32_F16>(args, s);
      break;
    case Precision::BF16:
      launch<Gfx90a_M16N16K16_F32_BF16>(args, s);
      break;
    default:
      return {"spmv[dasp]: the HIP backend offers FP64, FP16 and BF16"};
  }
  return status_of(hipGetLastError(), "Tessera::spmv[dasp]");
}

}  // namespace Hip
}  // namespace Tessera
