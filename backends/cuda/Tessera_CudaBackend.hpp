// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_CUDA_BACKEND_HPP
#define TESSERA_CUDA_CUDA_BACKEND_HPP

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// What the files of this folder share of the CUDA runtime.

namespace Tessera {
namespace Cuda {

/// Devices that a process can use.
constexpr int most_devices = 64;

/// Ok, or "LABEL: cudaErrorName (text) on DEVICE" in thread-local storage.
Status status_of(cudaError_t error, const char* label) noexcept;

/// What the table holds of the runtime.
RuntimeCalls runtime_calls() noexcept;

/// How a kernel is launched: thread blocks in two dimensions, threads of each, bytes of its dynamic shared memory.
struct LaunchShape {
  unsigned thread_blocks, tiles, threads;
  std::size_t shared;
};

/// What is known of one kernel on each device: its handle at the driver, the dynamic shared memory that it may have.
class LaunchedKernel {
 public:
  /// Enqueues the kernel by the driver, which takes 0.25 us less of a host than the runtime
  /// (perf_test/notes/launches.md); by the runtime where that fails: the thread may have no context yet.
  /// @param overlapping whether the launch may begin before the one before it is complete: on devices of capability 9.0
  ///                    or later, if the code that runs there was compiled for 9.0 or later too
  cudaError_t launch(const void* kernel, const LaunchShape& shape, bool overlapping, cudaStream_t stream,
                     void** args) noexcept;

 private:
  cudaError_t allow(const void* kernel, int device, std::size_t bytes) noexcept;
  void* find(const void* kernel, int device) noexcept;  ///< null: for the runtime to launch

  std::atomic<void*> functions_[most_devices]{};
  std::atomic<std::size_t> shared_[most_devices]{};  ///< only grows
};

/// Of the current device: shared memory that a thread block can have, and multiprocessors.
std::size_t shared_bytes() noexcept;
int multiprocessors() noexcept;

}  // namespace Cuda
}  // namespace Tessera

#endif
