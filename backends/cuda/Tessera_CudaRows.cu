// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <algorithm>

#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaLaunch.cuh"
#include "backends/cuda/Tessera_CudaPartials.cuh"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/kernels/spmm/Tessera_RowsKernel.hpp"

/// \file
/// Launchers of SpMM from compressed rows: column tiles follow each other, so that a tile of B stays in the caches.

namespace Tessera {
namespace {

constexpr int rows_warps = 4;  ///< of a block

/// Blocks that a multiprocessor holds at least: registers follow, 64 for a compact B, 48 where two vectors are 16 sums,
/// else 40.
template <class Kernel>
constexpr int rows_blocks = sizeof(typename Kernel::B::Vector) > 16 ? 8
                            : Kernel::vectors* Kernel::vector == 16 ? 10
                                                                    : 12;

template <class Kernel>
__global__ __launch_bounds__(rows_warps * 32,
                             rows_blocks<Kernel>) void rows_kernel(const __grid_constant__ SpmmRowsArgs args, int items,
                                                                   int tile_columns, RowsAhead ahead) {
  Cuda::wait_for_previous_launch<false>();
  const std::int64_t wave_index = std::int64_t{blockIdx.x} * rows_warps + threadIdx.x / 32;
  const CudaWave wave;
  Kernel::run(wave, args, wave_index * items, static_cast<std::int32_t>(blockIdx.y) * tile_columns, ahead);
}

__global__ __launch_bounds__(256) void compact_b_kernel(const __grid_constant__ SpmmDense dense,
                                                        const __grid_constant__ SpmmDense copy, std::int64_t rows) {
  Cuda::wait_for_previous_launch<false>();
  const std::uint32_t n = blockIdx.x * 256u + threadIdx.x, groups = static_cast<std::uint32_t>(copy.ldb);
  if (n < rows * copy.ldb) compact_b_group(dense, copy, n / groups, n % groups);  // 32 bits: CompactB::fits
}

template <class Types>
cudaError_t launch(const SpmmRowsArgs& args, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  const std::int64_t lanes = Cuda::multiprocessors() * std::int64_t{2048};
  rows_dispatch<Types, CudaWave>(args, lanes, rows_narrow(args), [&](auto kernel, const SpmmRowsArgs& ready) {
    using Kernel = decltype(kernel);
    const std::int64_t items = Kernel::items(ready), tile = Kernel::tile_columns(ready);
    const std::int64_t a_block = rows_warps * items;
    const dim3 grid(static_cast<unsigned>((ready.count + a_block - 1) / a_block),
                    static_cast<unsigned>((ready.dense.columns + tile - 1) / tile));
    RowsAhead ahead;
    const std::int64_t at_once = Cuda::multiprocessors() * rows_blocks<Kernel> * a_block;
    if (at_once < ready.count && rows_narrow(ready)) {
      ahead.items = static_cast<std::int32_t>(at_once);
      ahead.entries = static_cast<std::int32_t>(ready.nnz * at_once / ready.count);
    }
    error = Cuda::launch_overlapping(rows_kernel<Kernel>, grid, rows_warps * 32, 0, stream, ready,
                                     static_cast<int>(items), static_cast<int>(tile), ahead);
  });
  if (error != cudaSuccess) return error;
  return Cuda::add_partials<typename Types::Value, typename Types::Sum>(spmm_partial_rows(args), stream);
}

cudaError_t launch_tf32(SpmmRowsArgs args, cudaStream_t stream) {
  if (args.compact == nullptr) return launch<RowsTypes<float, float>>(args, stream);
  const SpmmDense copy = CompactB::dense(args.dense, args.cols, args.compact);
  const auto blocks = static_cast<unsigned>((args.cols * copy.ldb + 255) / 256);
  const cudaError_t error =
      Cuda::launch_overlapping(compact_b_kernel, dim3(blocks), 256, 0, stream, args.dense, copy, args.cols);
  if (error != cudaSuccess) return error;
  args.dense = copy;
  return launch<RowsTypes<float, float, RowsOfCompactB>>(args, stream);
}

}  // namespace

namespace Cuda {

Status spmm_rows(const SpmmRowsArgs& args, Stream stream) noexcept {
  const Status status = rows_check(args);
  if (!status.ok() || args.count == 0 || args.dense.columns == 0) return status;
  const auto s = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaErrorInvalidValue;
  switch (args.precision) {
    case Precision::FP64:
      error = launch<RowsTypes<double, double>>(args, s);
      break;
    case Precision::FP32:
      error = launch<RowsTypes<float, float>>(args, s);
      break;
    case Precision::FP16:
      error = launch<RowsTypes<half_t, float>>(args, s);
      break;
    case Precision::BF16:
      error = launch<RowsTypes<bhalf_t, float>>(args, s);
      break;
    case Precision::TF32:
      error = launch_tf32(args, s);
      break;
  }
  return status_of(error, "Tessera::spmm[gespmm]");
}

}  // namespace Cuda
}  // namespace Tessera
