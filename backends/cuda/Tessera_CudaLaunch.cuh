// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_LAUNCH_CUH
#define TESSERA_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaBackend.hpp"

/// \file
/// Launches that the device prepares while the launch before is still running (programmatic dependent launch,
/// capability 9.0): a good part of what a launch costs is then hidden behind that one.

namespace Tessera {
namespace Cuda {

/// Waits until the launch before is complete. Every thread that touches memory that another kernel writes calls this
/// first, and some thread of every launch must, since the launch after this one waits for this one alone. EarlyNext:
/// lets the blocks of the next launch come in from now on, else as this one's end. Early blocks are shared out by the
/// room that they find, so that launches of a few blocks a multiprocessor become uneven (perf_test/NOTES.md,
/// "Launches").
template <bool EarlyNext>
__device__ __forceinline__ void wait_for_previous_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (EarlyNext) asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// kernel<<<grid, block, shared, stream>>>(args...). Code compiled for an older architecture (as text for a newer
/// device) does not wait, and must be launched after the one before.
template <class... Parameters, class... Args>
cudaError_t launch_overlapping(void (*kernel)(Parameters...), dim3 grid, unsigned block, std::size_t shared,
                               cudaStream_t stream, Args... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(block);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute dependent{};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &dependent;
  config.numAttrs = supports_dependent_launch() ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, args...);
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

}  // namespace Cuda
}  // namespace Tessera

#endif
