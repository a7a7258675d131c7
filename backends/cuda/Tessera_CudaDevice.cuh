// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_CUDA_DEVICE_HPP
#define TESSERA_CUDA_CUDA_DEVICE_HPP

#include <cuda_runtime.h>

#include "backends/cuda/Tessera_CudaAtoms.cuh"
#include "backends/cuda/Tessera_CudaBackend.hpp"
#include "backends/cuda/Tessera_CudaWave.cuh"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// CUDA as launchers see it (Tessera_Launch.hpp). Launches are prepared by the device while the launch before is still
/// running (programmatic dependent launch, capability 9.0): a good part of what a launch costs is then hidden behind
/// that one.

namespace Tessera {

/// The own thread block.
class CudaThreadBlock {
 public:
  __device__ __forceinline__ explicit CudaThreadBlock(char* memory) : memory_(memory) {}

  __device__ __forceinline__ static unsigned index() { return blockIdx.x; }
  __device__ __forceinline__ static unsigned thread_blocks() { return gridDim.x; }
  __device__ __forceinline__ static unsigned tile() { return blockIdx.y; }
  __device__ __forceinline__ static unsigned tiles() { return gridDim.y; }
  __device__ __forceinline__ char* memory() const { return memory_; }

  template <class F>
  __device__ __forceinline__ static void each_wave(F&& f) {
    f(threadIdx.x / 32);
  }
  template <class Body, class... Args>
  __device__ __forceinline__ void each_wave_of(const Args&... args) const {
    Body::wave(*this, threadIdx.x / 32, args...);
  }
  template <class F>
  __device__ __forceinline__ static void each_thread(F&& f) {
    f(threadIdx.x);
  }
  __device__ __forceinline__ static void synchronize() { __syncthreads(); }
  /// Of what waves keep while others work: as many as a thread holds, and which is that of a wave.
  template <int Waves>
  static constexpr int held = 1;
  __device__ __forceinline__ static constexpr unsigned held_at(unsigned) { return 0; }

  /// Waits until the launch before is complete. Every thread that touches memory that another kernel writes calls this
  /// first, and some thread of every launch must, since the launch after this one waits for this one alone. EarlyNext:
  /// lets the thread blocks of the next launch come in from now on, else as this one's end. Early thread blocks are
  /// shared out by the room that they find, so that launches of a few thread blocks per multiprocessor become uneven
  /// (perf_test/notes/launches.md).
  template <bool EarlyNext>
  __device__ __forceinline__ static void wait_for_previous_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if constexpr (EarlyNext) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
  /// Lets the thread blocks of the next launch come in; for a launch that waits when its work is done.
  __device__ __forceinline__ static void start_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
  }

 private:
  char* memory_;
};

namespace Cuda {

/// Thread blocks that a multiprocessor should hold; no more than one of the architecture has threads for.
template <class Body>
constexpr int bound_of() {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890)
  constexpr int most = 1536 / Body::threads;
#else
  constexpr int most = 2048 / Body::threads;
#endif
  return Body::bound < most ? Body::bound : most;
}

template <class Body, class Args, class... Rest>
__global__ __launch_bounds__(Body::threads, bound_of<Body>()) void bounded_kernel(const __grid_constant__ Args args,
                                                                                  Rest... rest) {
  extern __shared__ __align__(128) char memory[];
  Body::run(CudaThreadBlock(memory), args, rest...);
}
template <class Body, class Args, class... Rest>
__global__ __launch_bounds__(Body::threads) void kernel(const __grid_constant__ Args args, Rest... rest) {
  extern __shared__ __align__(128) char memory[];
  Body::run(CudaThreadBlock(memory), args, rest...);
}

template <class Body, class... Args>
auto kernel_of() -> void (*)(Args...) {
  if constexpr (Body::bound > 0) {
    return bounded_kernel<Body, Args...>;
  } else {
    return kernel<Body, Args...>;
  }
}

}  // namespace Cuda

struct CudaDevice {
  using Wave = CudaWave;
  template <class Atom>
  using Unit = PtxUnit<Atom>;
  using Error = cudaError_t;

  static constexpr const char* name = "cuda";
  static constexpr Family family = Family::Nvidia;
  static constexpr bool emulated = false, tables = true;
  template <class Atom>
  static constexpr bool every_width = !compile_less || std::is_same_v<typename Atom::Operand, half_t>;
  static constexpr bool middle_widths = true;
  template <class Value>
  static constexpr bool every_length = !compile_less || std::is_same_v<Value, half_t>;
  template <class Value>
  static constexpr bool every_walk = every_length<Value>;
  template <class Value>
  static constexpr bool every_variant = !compile_less || std::is_same_v<Value, half_t>;
  static constexpr Error success = cudaSuccess, too_large = cudaErrorInvalidConfiguration;

  static constexpr std::int64_t most_thread_blocks(int) { return (std::int64_t{1} << 31) - 1; }
  static int multiprocessors() noexcept { return Cuda::multiprocessors(); }
  static std::size_t shared_bytes() noexcept { return Cuda::shared_bytes(); }
  static Status status(Error error, const char* label) noexcept { return Cuda::status_of(error, label); }
  static RuntimeCalls runtime() noexcept { return Cuda::runtime_calls(); }

  /// Code compiled for an older architecture (as text for a newer device) does not wait, and must be launched after the
  /// one before.
  template <class Body, class... Args>
  static Error launch(const Launch::Grid& grid, Stream stream, const Args&... args) {
    const auto kernel = Cuda::kernel_of<Body, Args...>();
    const std::size_t shared = Body::shared + grid.table_bytes;
    if (shared > 0) {
      static Cuda::AllowedMemory allowed;
      const Error error = allowed.allow(reinterpret_cast<const void*>(kernel), shared);
      if (error != cudaSuccess) return error;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(grid.thread_blocks), static_cast<unsigned>(grid.tiles));
    config.blockDim = dim3(Body::threads);
    config.dynamicSmemBytes = shared;
    config.stream = static_cast<cudaStream_t>(stream);
    cudaLaunchAttribute dependent{};
    dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    dependent.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &dependent;
    config.numAttrs = Body::overlapping && Cuda::supports_dependent_launch() ? 1 : 0;
    const Error error = cudaLaunchKernelEx(&config, kernel, args...);
    if (error != cudaSuccess) cudaGetLastError();
    return error;
  }
};

}  // namespace Tessera

#endif
