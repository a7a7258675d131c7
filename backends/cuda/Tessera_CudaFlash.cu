// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <algorithm>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaLaunch.cuh"
#include "backends/cuda/Tessera_CudaPartials.cuh"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/kernels/spmm/Tessera_FlashSpmmKernel.hpp"

/// \file
/// Launchers of FlashSparse SpMM: a warp makes the 16, 32 or 64 columns of a part, four warps a block, no shared
/// memory. All parts of one group of columns come before those of the next, which keeps the group's slice of B in the
/// caches.

namespace Tessera {
namespace {

constexpr int warps_per_block = 4;
/// Warps a multiprocessor should have before a warp takes several tiles of columns.
constexpr std::int64_t least_warps = 32;

/// Blocks a multiprocessor must hold, which bounds the registers. Left to itself the compiler takes 40 for some kernels
/// on 8.0 and spills.
template <bool Swap, int Tiles>
constexpr int resident_blocks = Tiles == 4   ? (Swap ? 8 : 6)
                                : Tiles == 2 ? (Swap ? 10 : 8)
                                             : 10;

template <class Atom, bool Swap, bool Coalesced, int Tiles>
__global__ __launch_bounds__(warps_per_block * 32, (resident_blocks<Swap, Tiles>)) void flash_kernel(
    const __grid_constant__ SpmmFlashArgs args, std::int64_t first_group) {
  using Kernel = FlashSpmmKernel<PtxUnit<Atom>, CudaWave, Swap, Coalesced, Tiles>;
  Cuda::wait_for_previous_launch<false>();
  const std::int64_t part = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / 32;
  if (part >= args.split.part_count) return;
  const CudaWave wave;
  Kernel::run(wave, args, part, (first_group + blockIdx.y) * Kernel::columns);
}

struct Launch {
  const SpmmFlashArgs& args;
  cudaStream_t stream;

  template <class Atom, bool Swap, bool Coalesced, int Tiles>
  cudaError_t run() const {
    constexpr std::int64_t columns = 16 * Tiles, most = 65535;
    const auto blocks = static_cast<unsigned>((args.split.part_count + warps_per_block - 1) / warps_per_block);
    const std::int64_t groups = (args.dense.columns + columns - 1) / columns;
    for (std::int64_t first = 0; first < groups; first += most) {  // more than once from a million columns on
      const dim3 grid(blocks, static_cast<unsigned>(std::min(most, groups - first)));
      const cudaError_t error = Cuda::launch_overlapping(flash_kernel<Atom, Swap, Coalesced, Tiles>, grid,
                                                         warps_per_block * 32, 0, stream, args, first);
      if (error != cudaSuccess) return error;
    }
    return Cuda::add_partials<typename Atom::Operand, float>(spmm_partial_rows(args, args.vector_length), stream);
  }
};

}  // namespace

namespace Cuda {

int flash_depth(Precision precision, int vector_length) noexcept {
  return flash_depth_of<FlashNvidia>(precision, vector_length);
}

Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept {
  const Status status = flash_check<FlashNvidia>(args);
  if (!status.ok()) return status;
  if (args.split.part_count == 0 || args.dense.columns == 0) return {};
  const int tiles = flash_tiles(args, least_warps * multiprocessors());
  return status_of(flash_dispatch<FlashNvidia>(args, tiles, Launch{args, static_cast<cudaStream_t>(stream)}),
                   "Tessera::spmm[flash]");
}

}  // namespace Cuda
}  // namespace Tessera
