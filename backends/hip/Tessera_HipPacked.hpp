// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_PACKED_HPP
#define TESSERA_HIP_PACKED_HPP

#include <hip/hip_runtime.h>

#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/interface/Tessera_PackedCheck.hpp"
#include "backends/kernels/spmv/Tessera_PackedKernel.hpp"

/// \file
/// Launchers of packed-slices SpMV: one slice a wave, four waves a block. Compiled and checked statically; no variant
/// is tuned yet, as nothing here has run on a device. Hub columns go through a copy of x that the caches keep.

namespace Tessera {
namespace Hip {

constexpr int packed_waves = 4;
/// hipcc reads the second launch bound as waves a SIMD: with 4 a lane may have 128 registers.
constexpr int packed_waves_per_simd = 4;

template <class Types, class Gather, int Batch, int Columns>
__global__ __launch_bounds__(packed_waves * 64, packed_waves_per_simd) void packed_kernel(const SpmvPackedArgs args) {
  using Kernel = PackedKernel<Types, HipWave, Gather, Batch, true, Columns>;
  // The same in all lanes: told so, the compiler keeps what follows from the wave's index in scalar registers.
  const int in_block = __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / 64);
  const unsigned index = blockIdx.x * packed_waves + static_cast<unsigned>(in_block);
  if (index >= args.slice_count) return;
  const HipWave wave;
  const Gather gather = Gather::make(args);
  const PackedSlice slice = Kernel::load_slice(args, index);
  Kernel::run(wave, args, gather, slice);
}

template <class Value>
__global__ __launch_bounds__(256) void copy_hubs_kernel(const SpmvPackedArgs args) {
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  if (i < args.hubs) static_cast<Value*>(args.hub_copy)[i] = static_cast<const Value*>(args.x)[args.hub_columns[i]];
}

template <class Value>
__global__ __launch_bounds__(256) void add_blocks_kernel(const SpmvPackedArgs args) {
  const std::int64_t row = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (row < args.rows) packed_add_blocks<Value>(args, row);
}

template <class Types, class Gather, int Batch, int Columns>
Status launch_slices(const SpmvPackedArgs& args, Stream stream) {
  const unsigned blocks = (args.slice_count + packed_waves - 1) / packed_waves;
  packed_kernel<Types, Gather, Batch, Columns>
      <<<blocks, packed_waves * 64, 0, static_cast<hipStream_t>(stream)>>>(args);
  return status_of(hipGetLastError(), "Tessera::spmv[packed]");
}

/// Column blocks: x from memory, since 64 kB of shared memory hold too little of it.
template <class Value>
Status launch_blocks(const SpmvPackedArgs& args, Stream stream) {
  using Full = PackedTypes<Value, PackedStorage::Full>;
  const Status status = launch_slices<Full, GatherPlain<Value, HipWave, true>, 1, 1>(packed_block_args(args), stream);
  if (!status.ok()) return status;
  const auto blocks = static_cast<unsigned>((args.rows + 255) / 256);
  add_blocks_kernel<Value><<<blocks, 256, 0, static_cast<hipStream_t>(stream)>>>(args);
  return status_of(hipGetLastError(), "Tessera::spmv[packed] sums of column blocks");
}

template <class Value, PackedStorage Storage>
Status spmv_packed_stored(const SpmvPackedArgs& args, bool plain, Stream stream) {
  using Types = PackedTypes<Value, Storage>;
  using Plain = GatherPlain<Value, HipWave, false>;
  using Strided = GatherPlain<Value, HipWave, true>;
  return plain ? launch_slices<Types, Plain, 2, 1>(args, stream) : launch_slices<Types, Strided, 1, 1>(args, stream);
}

template <class Value>
Status spmv_packed_in(const SpmvPackedArgs& args, Stream stream) {
  using Full = PackedTypes<Value, PackedStorage::Full>;
  using Plain = GatherPlain<Value, HipWave, false>;
  using Strided = GatherPlain<Value, HipWave, true>;
  constexpr int batch = sizeof(Value) == 8 ? 4 : 2;
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
  if (args.blocks > 1) return launch_blocks<Value>(args, stream);
  if (args.hubs > 0 && plain && args.hub_copy != nullptr) {
    copy_hubs_kernel<Value><<<(args.hubs + 255) / 256, 256, 0, static_cast<hipStream_t>(stream)>>>(args);
    return launch_slices<Full, GatherCopied<Value, HipWave>, batch, 1>(args, stream);
  }
  if (args.hubs > 0) return launch_slices<Full, GatherRenumbered<Value, HipWave>, 1, 1>(args, stream);
  if (args.columns > 1) return launch_slices<Full, Strided, 1, packed_max_columns>(args, stream);
  return plain ? launch_slices<Full, Plain, batch, 1>(args, stream) : launch_slices<Full, Strided, 1, 1>(args, stream);
}

}  // namespace Hip
}  // namespace Tessera

#endif
