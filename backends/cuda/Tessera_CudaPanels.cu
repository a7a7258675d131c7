// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaLaunch.cuh"
#include "backends/cuda/Tessera_CudaPartials.cuh"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/kernels/spmm/Tessera_PanelDispatch.hpp"

/// \file
/// Launchers of SpMM from panels: a block's warps take neighbouring windows and the same columns, column tiles follow
/// each other, so that a tile of B stays in the caches.

namespace Tessera {
namespace {

constexpr int panel_warps = 4;

template <class Kernel, int Blocks>
__global__ __launch_bounds__(panel_warps * 32, Blocks) void panel_kernel(const __grid_constant__ SpmmPanelArgs args,
                                                                         std::int64_t first_tile) {
  extern __shared__ __align__(128) char stages[];
  Cuda::wait_for_previous_launch<false>();
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t part = std::int64_t{blockIdx.x} * panel_warps + warp;
  if (part >= args.split.part_count) return;
  const CudaWave wave;
  Kernel::run(wave, args, CudaWave::memory(stages) + warp * Kernel::wave_bytes, part,
              (first_tile + blockIdx.y) * Kernel::tile_columns);
}

/// Blocks a multiprocessor: their rings take 100 to 190 of its 256 KB, the rest is cache (perf_test/NOTES.md has other
/// numbers); registers follow. 16-bit operands in two chunks need more than a fifth of them.
template <class Kernel>
constexpr int resident_blocks = Kernel::row_bytes <= 64                                             ? 8
                                : Kernel::row_bytes <= 128 || sizeof(typename Kernel::Operand) == 8 ? 6
                                : sizeof(typename Kernel::Operand) == 2                             ? 4
                                                                                                    : 5;

struct Launch {
  const SpmmPanelArgs& args;
  cudaStream_t stream;

  template <class Atom, int Steps, int Chunks, int Bytes>
  Status run() const {
    using Kernel = PanelKernel<typename UnitOf<PtxUnit, Atom>::type, CudaWave, Steps, Chunks, Bytes>;
    const auto kernel = panel_kernel<Kernel, resident_blocks<Kernel>>;
    constexpr int shared = panel_warps * Kernel::wave_bytes;
    constexpr std::int64_t most = 65535;
    static std::atomic<std::uint64_t> allowed{0};
    cudaError_t error = Cuda::allow_shared_memory(reinterpret_cast<const void*>(kernel), shared, allowed);
    const SpmmPanelArgs shared_out =
        panel_shared_out(args, Kernel::tile_columns, Cuda::multiprocessors() * std::int64_t{96});
    const std::int64_t blocks = (shared_out.split.part_count + panel_warps - 1) / panel_warps;
    const std::int64_t tiles = (args.dense.columns + Kernel::tile_columns - 1) / Kernel::tile_columns;
    for (std::int64_t first = 0; first < tiles && error == cudaSuccess; first += most) {
      const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min(most, tiles - first)));
      error = Cuda::launch_overlapping(kernel, grid, panel_warps * 32, shared, stream, shared_out, first);
    }
    if (error == cudaSuccess) {
      const SpmmPartialRows split = spmm_partial_rows(args, Kernel::Shape::rows);
      error = Cuda::add_partials<typename Atom::Operand, typename Atom::Accumulator>(split, stream);
    }
    return Cuda::status_of(error, "Tessera::spmm[panels]");
  }
};

}  // namespace

namespace Cuda {

const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept {
  return PanelNvidia::geometry(precision, columns);
}

Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept {
  const Status status = panel_check(args);
  if (!status.ok() || args.split.part_count == 0 || args.dense.columns == 0) return status;
  return PanelNvidia::dispatch(args, Launch{args, static_cast<cudaStream_t>(stream)});
}

}  // namespace Cuda
}  // namespace Tessera
