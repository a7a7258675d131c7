// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include <algorithm>

#include "backends/hip/Tessera_HipAtoms.hpp"
#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipPartials.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/kernels/spmm/Tessera_PanelDispatch.hpp"

/// \file
/// Launchers of SpMM from panels: four waves a block, each with rings of its own in the local data share; no private
/// memory (CheckHipAssembly.cmake proves it).

namespace Tessera {
namespace {

constexpr int panel_waves = 4;

template <class Kernel>
__global__ __launch_bounds__(panel_waves * 64, 1) void panel_kernel(const SpmmPanelArgs args, std::int64_t first_tile) {
  __shared__ __align__(128) char stages[panel_waves * Kernel::wave_bytes];
  const int in_block = __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / 64);
  const std::int64_t part = std::int64_t{blockIdx.x} * panel_waves + in_block;
  if (part >= args.split.part_count) return;
  const HipWave wave;
  Kernel::run(wave, args, HipWave::memory(stages) + in_block * Kernel::wave_bytes, part,
              (first_tile + blockIdx.y) * Kernel::tile_columns);
}

struct Launch {
  const SpmmPanelArgs& args;
  hipStream_t stream;

  template <class Atom, int Steps, int Chunks, int Bytes>
  Status run() const {
    using Kernel = PanelKernel<MfmaUnit<Atom>, HipWave, Steps, Chunks, Bytes>;
    constexpr std::int64_t most = 65535;
    const SpmmPanelArgs shared_out = panel_shared_out(args, Kernel::tile_columns, 104 * 24);
    const std::int64_t blocks = (shared_out.split.part_count + panel_waves - 1) / panel_waves;
    const std::int64_t tiles = (args.dense.columns + Kernel::tile_columns - 1) / Kernel::tile_columns;
    hipError_t error = hipSuccess;
    for (std::int64_t first = 0; first < tiles && error == hipSuccess; first += most) {
      const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min(most, tiles - first)));
      panel_kernel<Kernel><<<grid, panel_waves * 64, 0, stream>>>(shared_out, first);
      error = hipGetLastError();
    }
    if (error == hipSuccess) {
      const SpmmPartialRows split = spmm_partial_rows(args, Kernel::Shape::rows);
      error = Hip::add_partials<typename Atom::Operand, typename Atom::Accumulator>(split, stream);
    }
    return Hip::status_of(error, "Tessera::spmm[panels]");
  }
};

}  // namespace

namespace Hip {

const PanelGeometry* panel_geometry(Precision precision, std::int64_t columns) noexcept {
  return PanelAmd::geometry(precision, columns);
}

Status spmm_panels(const SpmmPanelArgs& args, Stream stream) noexcept {
  const Status status = panel_check(args);
  if (!status.ok() || args.split.part_count == 0 || args.dense.columns == 0) return status;
  return PanelAmd::dispatch(args, Launch{args, static_cast<hipStream_t>(stream)});
}

}  // namespace Hip
}  // namespace Tessera
