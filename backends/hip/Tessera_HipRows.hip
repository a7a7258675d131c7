// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include <algorithm>

#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipPartials.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/kernels/spmm/Tessera_RowsKernel.hpp"

/// \file
/// Launchers of SpMM from compressed rows: four waves a block.

namespace Tessera {
namespace {

constexpr int rows_waves = 4;

template <class Kernel>
__global__ __launch_bounds__(rows_waves * 64) void rows_kernel(const SpmmRowsArgs args, int items, int tile_columns) {
  const std::int64_t wave_index = std::int64_t{blockIdx.x} * rows_waves + threadIdx.x / 64;
  const HipWave wave;
  Kernel::run(wave, args, wave_index * items, static_cast<std::int32_t>(blockIdx.y) * tile_columns);
}

__global__ __launch_bounds__(256) void compact_b_kernel(const SpmmDense dense, const SpmmDense copy,
                                                        std::int64_t rows) {
  const std::int64_t n = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (n < rows * copy.ldb) compact_b_group(dense, copy, n / copy.ldb, n % copy.ldb);
}

template <class Types>
hipError_t launch(const SpmmRowsArgs& args, hipStream_t stream) {
  const std::int64_t lanes = 104 * 2048;  // compute units of an MI250X die
  rows_dispatch<Types, HipWave>(args, lanes, rows_narrow(args), [&](auto kernel, const SpmmRowsArgs& ready) {
    using Kernel = decltype(kernel);
    const std::int64_t items = Kernel::items(ready), tile = Kernel::tile_columns(ready);
    const std::int64_t a_block = rows_waves * items;
    const dim3 grid(static_cast<unsigned>((ready.count + a_block - 1) / a_block),
                    static_cast<unsigned>((ready.dense.columns + tile - 1) / tile));
    rows_kernel<Kernel><<<grid, rows_waves * 64, 0, stream>>>(ready, static_cast<int>(items), static_cast<int>(tile));
  });
  const hipError_t error = hipGetLastError();
  if (error != hipSuccess) return error;
  return Hip::add_partials<typename Types::Value, typename Types::Sum>(spmm_partial_rows(args), stream);
}

hipError_t launch_tf32(SpmmRowsArgs args, hipStream_t stream) {
  if (args.compact == nullptr) return launch<RowsTypes<float, float>>(args, stream);
  const SpmmDense copy = CompactB::dense(args.dense, args.cols, args.compact);
  const auto blocks = static_cast<unsigned>((args.cols * copy.ldb + 255) / 256);
  compact_b_kernel<<<blocks, 256, 0, stream>>>(args.dense, copy, args.cols);
  args.dense = copy;
  return launch<RowsTypes<float, float, RowsOfCompactB>>(args, stream);
}

}  // namespace

namespace Hip {

Status spmm_rows(const SpmmRowsArgs& args, Stream stream) noexcept {
  const Status status = rows_check(args);
  if (!status.ok() || args.count == 0 || args.dense.columns == 0) return status;
  const auto s = static_cast<hipStream_t>(stream);
  hipError_t error = hipErrorInvalidValue;
  switch (args.precision) {
    case Precision::FP64:
      error = launch<RowsTypes<double, double>>(args, s);
      break;
    case Precision::FP32:
      error = launch<RowsTypes<float, float>>(args, s);
      break;
    case Precision::TF32:
      error = launch_tf32(args, s);
      break;
    case Precision::FP16:
      error = launch<RowsTypes<half_t, float>>(args, s);
      break;
    case Precision::BF16:
      error = launch<RowsTypes<bhalf_t, float>>(args, s);
      break;
  }
  return status_of(error, "Tessera::spmm[gespmm]");
}

}  // namespace Hip
}  // namespace Tessera
