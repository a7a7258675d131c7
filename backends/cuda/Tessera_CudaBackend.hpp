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

/// Whether kernels may be launched before the one before them is complete: on devices of capability 9.0 or later, if
/// the code that runs there was compiled for 9.0 or later too.
bool supports_dependent_launch() noexcept;

/// The dynamic shared memory that one kernel may have, for each device. It only grows.
class AllowedMemory {
 public:
  /// Lets the kernel have so many bytes on the current device.
  cudaError_t allow(const void* kernel, std::size_t bytes) noexcept;

 private:
  std::atomic<std::size_t> bytes_[most_devices]{};
};

/// Of the current device: shared memory that a thread block can have, and multiprocessors.
std::size_t shared_bytes() noexcept;
int multiprocessors() noexcept;

}  // namespace Cuda
}  // namespace Tessera

#endif
