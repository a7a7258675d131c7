// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_PARTIALS_CUH
#define TESSERA_CUDA_PARTIALS_CUH

#include <algorithm>

#include "backends/cuda/Tessera_CudaLaunch.cuh"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/kernels/spmm/Tessera_SpmmPartials.hpp"

/// \file
/// The second launch of SpMM: eight waves a block, a row of C and a tile of its columns each.

namespace Tessera {
namespace Cuda {

template <class Value, class Sum>
__global__ __launch_bounds__(256) void add_partials_kernel(const __grid_constant__ SpmmPartialRows split) {
  wait_for_previous_launch<false>();
  const std::int64_t row = std::int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row < split.count) SpmmPartials<Value, Sum, CudaWave>::run(CudaWave{}, split, row, blockIdx.y, gridDim.y);
}

/// Nothing where no row was split.
template <class Value, class Sum>
cudaError_t add_partials(const SpmmPartialRows& split, cudaStream_t stream) {
  if (split.count == 0) return cudaSuccess;
  const std::int64_t tiles = SpmmPartials<Value, Sum, CudaWave>::tiles(split);
  const dim3 grid(static_cast<unsigned>((split.count + 7) / 8),
                  static_cast<unsigned>(std::min(tiles, std::int64_t{65535})));
  return launch_overlapping(add_partials_kernel<Value, Sum>, grid, 256, 0, stream, split);
}

}  // namespace Cuda
}  // namespace Tessera

#endif
