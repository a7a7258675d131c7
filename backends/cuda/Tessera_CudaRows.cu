// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/matrix_unit/Tessera_RowsKernel.hpp"

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
                                                                   int tile_columns) {
  const std::int64_t wave_index = std::int64_t{blockIdx.x} * rows_warps + threadIdx.x / 32;
  const CudaWave wave;
  Kernel::run(wave, args, wave_index * items, static_cast<std::int32_t>(blockIdx.y) * tile_columns);
}

template <class Types>
__global__ __launch_bounds__(256) void add_pieces_kernel(const __grid_constant__ SpmmRowsArgs args) {
  const SpmmSplitRow split = args.splits[blockIdx.x];
  const std::int64_t column = std::int64_t{blockIdx.y} * 256 + threadIdx.x;
  if (column < args.dense.columns) {
    rows_add_pieces<Types>(args, split, column);
  }
}

__global__ __launch_bounds__(256) void compact_b_kernel(const __grid_constant__ SpmmDense dense,
                                                        const __grid_constant__ SpmmDense copy, std::int64_t rows) {
  const std::uint32_t n = blockIdx.x * 256u + threadIdx.x, groups = static_cast<std::uint32_t>(copy.ldb);
  if (n < rows * copy.ldb) compact_b_group(dense, copy, n / groups, n % groups);  // 32 bits: CompactB::fits
}

template <class Types>
void launch(const SpmmRowsArgs& args, cudaStream_t stream) {
  const std::int64_t lanes = Cuda::multiprocessors() * std::int64_t{2048};
  rows_dispatch<Types, CudaWave>(args, lanes, rows_narrow(args), [&](auto kernel, const SpmmRowsArgs& ready) {
    using Kernel = decltype(kernel);
    const std::int64_t items = Kernel::items(ready), tile = Kernel::tile_columns(ready);
    const std::int64_t a_block = rows_warps * items;
    const dim3 grid(static_cast<unsigned>((ready.count + a_block - 1) / a_block),
                    static_cast<unsigned>((ready.dense.columns + tile - 1) / tile));
    rows_kernel<Kernel><<<grid, rows_warps * 32, 0, stream>>>(ready, static_cast<int>(items), static_cast<int>(tile));
  });
  if (args.split_count > 0) {
    const dim3 grid(static_cast<unsigned>(args.split_count), static_cast<unsigned>((args.dense.columns + 255) / 256));
    add_pieces_kernel<Types><<<grid, 256, 0, stream>>>(args);
  }
}

void launch_tf32(SpmmRowsArgs args, cudaStream_t stream) {
  if (args.compact == nullptr) return launch<RowsTypes<float, float>>(args, stream);
  const SpmmDense copy = CompactB::dense(args.dense, args.cols, args.compact);
  const auto blocks = static_cast<unsigned>((args.cols * copy.ldb + 255) / 256);
  compact_b_kernel<<<blocks, 256, 0, stream>>>(args.dense, copy, args.cols);
  args.dense = copy;
  launch<RowsTypes<float, float, RowsOfCompactB>>(args, stream);
}

}  // namespace

namespace Cuda {

Status spmm_rows(const SpmmRowsArgs& args, Stream stream) noexcept {
  const Status status = rows_check(args);
  if (!status.ok() || args.count == 0 || args.dense.columns == 0) return status;
  const auto s = static_cast<cudaStream_t>(stream);
  switch (args.precision) {
    case Precision::FP64:
      launch<RowsTypes<double, double>>(args, s);
      break;
    case Precision::FP32:
      launch<RowsTypes<float, float>>(args, s);
      break;
    case Precision::FP16:
      launch<RowsTypes<half_t, float>>(args, s);
      break;
    case Precision::BF16:
      launch<RowsTypes<bhalf_t, float>>(args, s);
      break;
    case Precision::TF32:
      launch_tf32(args, s);
      break;
  }
  return status_of(cudaGetLastError(), "Tessera::spmm[gespmm]");
}

}  // namespace Cuda
}  // namespace Tessera
