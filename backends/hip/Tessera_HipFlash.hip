// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include <algorithm>

#include "backends/hip/Tessera_HipAtoms.hpp"
#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipPartials.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/kernels/spmm/Tessera_FlashSpmmKernel.hpp"

/// \file
/// Launchers of FlashSparse SpMM: a wave makes the 16, 32 or 64 columns of a part, four waves a block, no shared and no
/// private memory. Windows have 16 rows, the n of the instructions; TF32 requests are answered in FP32.

namespace Tessera {
namespace {

constexpr int waves_per_block = 4;
/// hipcc reads the second launch bound as waves a SIMD: with 4 a lane may have 128 of the 512 registers.
constexpr int waves_per_simd = 4;

template <class Atom, bool Swap, bool Coalesced, int Tiles>
__global__ __launch_bounds__(waves_per_block * 64, waves_per_simd) void flash_kernel(const SpmmFlashArgs args,
                                                                                     std::int64_t first_group) {
  using Kernel = FlashSpmmKernel<MfmaUnit<Atom>, HipWave, Swap, Coalesced, Tiles>;
  // The same in all lanes, which the compiler cannot know (Tessera_HipDasp.hip).
  const int in_block = __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / 64);
  const std::int64_t part = std::int64_t{blockIdx.x} * waves_per_block + in_block;
  if (part >= args.split.part_count) return;
  const HipWave wave;
  Kernel::run(wave, args, part, (first_group + blockIdx.y) * Kernel::columns);
}

struct Launch {
  const SpmmFlashArgs& args;
  hipStream_t stream;

  template <class Atom, bool Swap, bool Coalesced, int Tiles>
  hipError_t run() const {
    constexpr std::int64_t columns = 16 * Tiles, most = 65535;
    // A grid has less than 2^32 threads in each direction here.
    const std::int64_t most_blocks = (std::int64_t{1} << 32) / (waves_per_block * 64) - 1;
    const std::int64_t blocks = (args.split.part_count + waves_per_block - 1) / waves_per_block;
    const std::int64_t groups = (args.dense.columns + columns - 1) / columns;
    if (blocks > most_blocks) return hipErrorInvalidConfiguration;
    for (std::int64_t first = 0; first < groups; first += most) {  // more than once from a million columns on
      const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min(most, groups - first)));
      flash_kernel<Atom, Swap, Coalesced, Tiles><<<grid, waves_per_block * 64, 0, stream>>>(args, first);
      const hipError_t error = hipGetLastError();
      if (error != hipSuccess) return error;
    }
    return Hip::add_partials<typename Atom::Operand, float>(spmm_partial_rows(args, args.vector_length), stream);
  }
};

}  // namespace

namespace Hip {

int flash_depth(Precision precision, int vector_length) noexcept {
  return flash_depth_of<FlashAmd>(precision, vector_length);
}

Status spmm_flash(const SpmmFlashArgs& args, Stream stream) noexcept {
  const Status status = flash_check<FlashAmd>(args);
  if (!status.ok()) return status;
  if (args.split.part_count == 0 || args.dense.columns == 0) return {};
  return status_of(flash_dispatch<FlashAmd>(args, flash_tiles(args, 1), Launch{args, static_cast<hipStream_t>(stream)}),
                   "Tessera::spmm[flash]");
}

}  // namespace Hip
}  // namespace Tessera
