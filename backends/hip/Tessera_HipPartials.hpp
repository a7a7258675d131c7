// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_PARTIALS_HPP
#define TESSERA_HIP_PARTIALS_HPP

#include <hip/hip_runtime.h>

#include <algorithm>

#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/kernels/spmm/Tessera_SpmmPartials.hpp"

/// \file
/// The second launch of SpMM: four waves a block, a row of C and a tile of its columns each.

namespace Tessera {
namespace Hip {

template <class Value, class Sum>
__global__ __launch_bounds__(256) void add_partials_kernel(const SpmmPartialRows split) {
  const std::int64_t row = std::int64_t{blockIdx.x} * 4 + threadIdx.x / 64;
  if (row < split.count) SpmmPartials<Value, Sum, HipWave>::run(HipWave{}, split, row, blockIdx.y, gridDim.y);
}

/// Nothing where no row was split.
template <class Value, class Sum>
hipError_t add_partials(const SpmmPartialRows& split, hipStream_t stream) {
  if (split.count == 0) return hipSuccess;
  // A grid has less than 2^32 threads in each direction here.
  if (split.count > (std::int64_t{1} << 32) / 64 - 4) return hipErrorInvalidConfiguration;
  const std::int64_t tiles = SpmmPartials<Value, Sum, HipWave>::tiles(split);
  const dim3 grid(static_cast<unsigned>((split.count + 3) / 4),
                  static_cast<unsigned>(std::min(tiles, std::int64_t{65535})));
  add_partials_kernel<Value, Sum><<<grid, 256, 0, stream>>>(split);
  return hipGetLastError();
}

}  // namespace Hip
}  // namespace Tessera

#endif
