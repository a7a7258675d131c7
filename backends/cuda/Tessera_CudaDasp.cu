// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/kernels/spmv/Tessera_DaspKernel.hpp"

/// \file
/// Launchers of DASP SpMV: one wave a warp, four warps a block, no shared memory.

namespace Tessera {
namespace {

constexpr int warps_per_block = 4;

/// Blocks a multiprocessor must hold, which bounds the registers: 64 in FP64, 56 in 16 bits. More registers leave too
/// few warps, fewer make the compiler spill (perf_test/NOTES.md has the times of 4 to 10).
template <class Atom>
constexpr int resident_blocks = sizeof(typename Atom::Operand) == 8 ? 8 : 9;

template <class Atom, bool Streaming, bool UnitStride>
__global__ __launch_bounds__(warps_per_block * 32,
                             resident_blocks<Atom>) void dasp_kernel(const __grid_constant__ SpmvDaspArgs args) {
  const unsigned index = blockIdx.x * warps_per_block + threadIdx.x / 32;
  if (index >= args.first_wave[DaspClasses]) return;
  const CudaWave wave;
  DaspKernel<PtxUnit<Atom>, CudaWave, Streaming, UnitStride>::run(wave, args, index);
}

template <class Atom>
void launch(const SpmvDaspArgs& args, cudaStream_t stream) {
  const unsigned blocks = (args.first_wave[DaspClasses] + warps_per_block - 1) / warps_per_block;
  if (blocks == 0) return;
  const auto kernel = args.x_stride != 1 ? dasp_kernel<Atom, true, false>
                      : args.stream      ? dasp_kernel<Atom, true, true>
                                         : dasp_kernel<Atom, false, true>;
  kernel<<<blocks, warps_per_block * 32, 0, stream>>>(args);
}

}  // namespace

namespace Cuda {

const DaspGeometry* dasp_geometry(Precision precision) noexcept {
  static const DaspGeometry fp64 = Tessera::dasp_geometry<Sm80_M8N8K4_F64>();
  static const DaspGeometry fp16 = Tessera::dasp_geometry<Sm80_M16N8K8_F32_F16>();
  static const DaspGeometry bf16 = Tessera::dasp_geometry<Sm80_M16N8K8_F32_BF16>();
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
  const auto s = static_cast<cudaStream_t>(stream);
  switch (args.precision) {
    case Precision::FP64:
      launch<Sm80_M8N8K4_F64>(args, s);
      break;
    case Precision::FP16:
      launch<Sm80_M16N8K8_F32_F16>(args, s);
      break;
    case Precision::BF16:
      launch<Sm80_M16N8K8_F32_BF16>(args, s);
      break;
    default:
      return {"spmv[dasp]: the CUDA backend offers FP64, FP16 and BF16"};
  }
  return status_of(cudaGetLastError(), "Tessera::spmv[dasp]");
}

}  // namespace Cuda
}  // namespace Tessera
