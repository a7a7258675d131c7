// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_PACKED_CUH
#define TESSERA_CUDA_PACKED_CUH

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaLaunch.cuh"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/interface/Tessera_PackedCheck.hpp"
#include "backends/kernels/spmv/Tessera_PackedKernel.hpp"

/// \file
/// Launchers of packed-slices SpMV: one slice a warp, four warps a block; with hub columns one block a multiprocessor.
/// The kernels of one precision are compiled in a file of their own.

namespace Tessera {
namespace Cuda {

constexpr int packed_warps = 4, wide_warps = 16, table_warps = 32;

/// Chunks in flight, blocks a multiprocessor must hold (which bounds the registers) and warps a block, by
/// PackedVariant; measured: perf_test/NOTES.md.
template <class Types>
struct PackedTuning {
  static constexpr bool pairs = Types::value_bytes == 8;                      // two steps a chunk, else four
  static constexpr bool wide_x = !pairs && sizeof(typename Types::Sum) == 8;  // doubles stored in fewer bytes
  static constexpr int batch = pairs ? 4 : 2, blocks = pairs || wide_x ? 8 : 10;
  static constexpr int short_batch = pairs ? 2 : 1, short_blocks = Types::value_bytes == 2 ? 12 : 10;
  static constexpr int free_batch = pairs ? 3 : short_batch, free_blocks = pairs ? 8 : short_blocks;
  static constexpr int wide_batch = batch, wide_blocks = 2;
};

/// The pattern never changes, so that the slice's record can be read before the wait; x, y and the values can not.
template <class Types, class Gather, int Batch, int Blocks, bool Stream, int Columns, bool Groups, int Warps>
__global__ __launch_bounds__(Warps * 32, Blocks) void packed_kernel(const __grid_constant__ SpmvPackedArgs args) {
  using Kernel = PackedKernel<Types, CudaWave, Gather, Batch, Stream, Columns, Groups>;
  const unsigned index = blockIdx.x * Warps + threadIdx.x / 32;
  if (index >= args.slice_count) return;
  const CudaWave wave;
  const Gather gather = Gather::make(args);
  const PackedSlice slice = Kernel::load_slice(args, index);
  wait_for_previous_launch<true>();
  Kernel::run(wave, args, gather, slice);
}

/// Slices at(i) for i = first, first + stride ... below count; the next one's record is on its way while one is
/// multiplied.
template <class Kernel, class Gather, class At>
__device__ __forceinline__ void multiply_slices(const SpmvPackedArgs& args, const Gather& gather, unsigned first,
                                                unsigned stride, unsigned count, const At& at) {
  if (first >= count) return;
  const CudaWave wave;
  PackedSlice next = Kernel::load_slice(args, at(first));
  for (unsigned i = first; i < count; i += stride) {
    const PackedSlice slice = next;
    if (i + stride < count) next = Kernel::load_slice(args, at(i + stride));
    Kernel::run(wave, args, gather, slice);
  }
}

/// x at the hub columns in shared memory, one block a multiprocessor.
template <class Types, int Batch>
__global__ __launch_bounds__(table_warps * 32, 1) void packed_hub_kernel(const __grid_constant__ SpmvPackedArgs args) {
  using Value = typename Types::Value;
  using Gather = GatherHubs<Value, CudaWave>;
  using Kernel = PackedKernel<Types, CudaWave, Gather, Batch, true, 1, false>;
  extern __shared__ double table_memory[];
  Value* const table = reinterpret_cast<Value*>(table_memory);
  const Value* const x = static_cast<const Value*>(args.x);
  wait_for_previous_launch<true>();
  for (unsigned i = threadIdx.x; i < args.hubs; i += table_warps * 32) table[i] = x[args.hub_columns[i]];
  __syncthreads();
  const Gather gather{x, table, args.hubs};
  multiply_slices<Kernel>(args, gather, blockIdx.x * table_warps + threadIdx.x / 32, gridDim.x * table_warps,
                          args.slice_count, [](unsigned i) { return i; });
}

/// One block of threads a share: x at the columns of its block in shared memory, then its slices.
template <class Types, int Batch>
__global__ __launch_bounds__(table_warps * 32,
                             1) void packed_block_kernel(const __grid_constant__ SpmvPackedArgs args) {
  using Value = typename Types::Value;
  using Gather = GatherBlock<Value, CudaWave>;
  using Kernel = PackedKernel<Types, CudaWave, Gather, Batch, true, 1, false>;
  extern __shared__ double table_memory[];
  Value* const table = reinterpret_cast<Value*>(table_memory);
  const PackedShare share = args.shares[blockIdx.x];
  const Value* const x = static_cast<const Value*>(args.x) + share.column;
  wait_for_previous_launch<true>();
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < share.columns; i += table_warps * 32) table[i] = x[i];
  __syncthreads();
  const Gather gather{table, share.column};
  multiply_slices<Kernel>(args, gather, share.rank * table_warps + threadIdx.x / 32, share.ranks * table_warps,
                          share.count(), [&](unsigned i) { return share.slice(i); });
}

template <class Value>
__global__ __launch_bounds__(256) void add_blocks_kernel(const __grid_constant__ SpmvPackedArgs args) {
  wait_for_previous_launch<true>();
  const std::int64_t row = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (row < args.rows) packed_add_blocks<Value>(args, row);
}

template <class Kernel>
Status launch_packed(Kernel kernel, unsigned blocks, unsigned threads, std::size_t shared, const SpmvPackedArgs& args,
                     Stream stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  return status_of(launch_overlapping(kernel, dim3(blocks), threads, shared, s, args), "Tessera::spmv[packed]");
}

template <class Types, class Gather, int Batch, int Blocks, bool Streaming, int Columns, bool Groups = true,
          int Warps = packed_warps>
Status launch_slices(const SpmvPackedArgs& args, Stream stream) {
  const unsigned blocks = (args.slice_count + Warps - 1) / Warps;
  return launch_packed(packed_kernel<Types, Gather, Batch, Blocks, Streaming, Columns, Groups, Warps>, blocks,
                       Warps * 32, 0, args, stream);
}

template <class Value>
__global__ __launch_bounds__(256) void copy_hubs_kernel(const __grid_constant__ SpmvPackedArgs args) {
  wait_for_previous_launch<true>();
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  if (i < args.hubs) static_cast<Value*>(args.hub_copy)[i] = static_cast<const Value*>(args.x)[args.hub_columns[i]];
}

/// Lets a kernel have that much shared memory.
template <class Kernel>
Status allow_shared(Kernel kernel, std::size_t bytes) {
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) cudaGetLastError();
  return status_of(error, "Tessera::spmv[packed] shared memory");
}

/// Column blocks; x from memory where a block of it does not fit into shared memory, or has a stride.
template <class Types>
Status launch_blocks(const SpmvPackedArgs& args, bool plain, Stream stream) {
  using Value = typename Types::Value;
  const std::size_t shared = args.block_columns * sizeof(Value);
  const SpmvPackedArgs first = packed_block_args(args);
  Status status;
  if (plain && shared <= shared_bytes()) {
    const auto kernel = packed_block_kernel<Types, PackedTuning<Types>::batch>;
    status = allow_shared(kernel, shared);
    if (status.ok()) status = launch_packed(kernel, args.share_count, table_warps * 32, shared, first, stream);
  } else {
    status = launch_slices<Types, GatherPlain<Value, CudaWave, true>, 2, 8, true, 1>(first, stream);
  }
  if (!status.ok()) return status;
  const auto blocks = static_cast<unsigned>((args.rows + 255) / 256);
  return launch_packed(add_blocks_kernel<Value>, blocks, 256, 0, args, stream);
}

template <class Types>
Status launch_hubs(const SpmvPackedArgs& args, Stream stream) {
  using Value = typename Types::Value;
  using Tuning = PackedTuning<Types>;
  if (args.hub_copy != nullptr) {
    const Status status = launch_packed(copy_hubs_kernel<Value>, (args.hubs + 255) / 256, 256, 0, args, stream);
    if (!status.ok()) return status;
    using Gather = GatherCopied<Value, CudaWave>;
    return launch_slices<Types, Gather, Tuning::batch, Tuning::blocks, true, 1, false>(args, stream);
  }
  const auto kernel = packed_hub_kernel<Types, PackedTuning<Types>::batch>;
  const std::size_t shared = args.hubs * sizeof(Value);
  const Status status = allow_shared(kernel, shared);
  if (!status.ok()) return status;
  return launch_packed(kernel, static_cast<unsigned>(multiprocessors()), table_warps * 32, shared, args, stream);
}

/// Storage other than in full: one vector a launch.
template <class Value, PackedStorage Storage>
Status spmv_packed_stored(const SpmvPackedArgs& args, bool plain, Stream stream) {
  using Types = PackedTypes<Value, Storage>;
  using Tuning = PackedTuning<Types>;
  using Plain = GatherPlain<Value, CudaWave, false>;
  using Strided = GatherPlain<Value, CudaWave, true>;
  return plain ? launch_slices<Types, Plain, Tuning::batch, Tuning::blocks, true, 1>(args, stream)
               : launch_slices<Types, Strided, 1, Tuning::blocks, true, 1>(args, stream);
}

template <class Types, bool Streaming>
Status launch_variant(const SpmvPackedArgs& args, Stream stream) {
  using Gather = GatherPlain<typename Types::Value, CudaWave, false>;
  using T = PackedTuning<Types>;
  switch (args.variant) {
    case PackedVariant::ShortSlices:
      return launch_slices<Types, Gather, T::short_batch, T::short_blocks, Streaming, 1, false>(args, stream);
    case PackedVariant::IndexFree:
      return launch_slices<Types, Gather, T::free_batch, T::free_blocks, Streaming, 1, false>(args, stream);
    case PackedVariant::WideBlocks:
      return launch_slices<Types, Gather, T::wide_batch, T::wide_blocks, true, 1, false, wide_warps>(args, stream);
    default:
      return launch_slices<Types, Gather, T::batch, T::blocks, Streaming, 1>(args, stream);
  }
}

template <class Value>
Status spmv_packed_in(const SpmvPackedArgs& args, Stream stream) {
  using Full = PackedTypes<Value, PackedStorage::Full>;
  using Strided = GatherPlain<Value, CudaWave, true>;
  const Status status = check_packed_waves(args);
  if (!status.ok() || args.slice_count == 0) return status;
  const bool plain = args.columns == 1 && args.x_stride == 1;
  switch (args.storage) {
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) return spmv_packed_stored<Value, PackedStorage::Float>(args, plain, stream);
      break;  // refused above
    case PackedStorage::Integer:
      return spmv_packed_stored<Value, PackedStorage::Integer>(args, plain, stream);
    case PackedStorage::Dictionary:
      return spmv_packed_stored<Value, PackedStorage::Dictionary>(args, plain, stream);
    case PackedStorage::Constant:
      return spmv_packed_stored<Value, PackedStorage::Constant>(args, plain, stream);
    case PackedStorage::Full:
      break;
  }
  if (args.blocks > 1) return launch_blocks<Full>(args, plain, stream);
  if (args.hubs > 0) {
    return plain ? launch_hubs<Full>(args, stream)
                 : launch_slices<Full, GatherRenumbered<Value, CudaWave>, 1, 8, true, 1>(args, stream);
  }
  if (args.columns > 4) return launch_slices<Full, Strided, 1, 4, true, packed_max_columns>(args, stream);
  if (args.columns > 1) return launch_slices<Full, Strided, 2, 4, true, 4>(args, stream);
  if (!plain) return launch_slices<Full, Strided, 2, 8, true, 1>(args, stream);
  return args.stream ? launch_variant<Full, true>(args, stream) : launch_variant<Full, false>(args, stream);
}

}  // namespace Cuda
}  // namespace Tessera

#endif
