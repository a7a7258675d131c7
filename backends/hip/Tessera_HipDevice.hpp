// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_HIP_DEVICE_HPP
#define TESSERA_HIP_HIP_DEVICE_HPP

#include <hip/hip_runtime.h>

#include "backends/hip/Tessera_HipAtoms.hpp"
#include "backends/hip/Tessera_HipBackend.hpp"
#include "backends/hip/Tessera_HipWave.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// HIP as launchers see it (Tessera_Launch.hpp). hipcc reads the second launch bound as waves per SIMD: with 4 a lane
/// may have 128 of the 512 registers.

namespace Tessera {

/// The own thread block.
class HipThreadBlock {
 public:
  __device__ __forceinline__ explicit HipThreadBlock(char* memory) : memory_(memory) {}

  __device__ __forceinline__ static unsigned index() { return blockIdx.x; }
  __device__ __forceinline__ static unsigned thread_blocks() { return gridDim.x; }
  __device__ __forceinline__ static unsigned tile() { return blockIdx.y; }
  __device__ __forceinline__ static unsigned tiles() { return gridDim.y; }
  __device__ __forceinline__ char* memory() const { return memory_; }

  /// The wave's index is the same in all lanes, which the compiler cannot know: told so, it keeps everything that
  /// follows from it, branches included, in scalar registers.
  template <class F>
  __device__ __forceinline__ static void each_wave(F&& f) {
    f(static_cast<unsigned>(__builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / 64)));
  }
  template <class Body, class... Args>
  __device__ __forceinline__ void each_wave_of(const Args&... args) const {
    each_wave([&](unsigned in_thread_block) { Body::wave(*this, in_thread_block, args...); });
  }
  template <class F>
  __device__ __forceinline__ static void each_thread(F&& f) {
    f(static_cast<unsigned>(threadIdx.x));
  }
  __device__ __forceinline__ static void synchronize() { __syncthreads(); }
  /// Of what waves keep while others work: as many as a thread holds, and which is that of a wave.
  template <int Waves>
  static constexpr int held = 1;
  __device__ __forceinline__ static constexpr unsigned held_at(unsigned) { return 0; }
  /// Launches follow each other.
  template <bool EarlyNext>
  __device__ __forceinline__ static void wait_for_previous_launch() {}
  __device__ __forceinline__ static void start_next_launch() {}

 private:
  char* memory_;
};

namespace Hip {

template <class Body>
__device__ __forceinline__ char* thread_block_memory() {
  if constexpr (Body::shared > 0) {
    __shared__ __align__(128) char memory[Body::shared];
    return memory;
  } else {
    return nullptr;
  }
}

template <class Body, class... Args>
__global__ __launch_bounds__(Body::threads, Body::bound) void bounded_kernel(const Args... args) {
  Body::run(HipThreadBlock(thread_block_memory<Body>()), args...);
}
template <class Body, class... Args>
__global__ __launch_bounds__(Body::threads) void kernel(const Args... args) {
  Body::run(HipThreadBlock(thread_block_memory<Body>()), args...);
}

}  // namespace Hip

struct HipDevice {
  using Wave = HipWave;
  template <class Atom>
  using Unit = MfmaUnit<Atom>;
  using Error = hipError_t;

  static constexpr const char* name = "hip";
  static constexpr Family family = Family::Amd;
  static constexpr bool emulated = false;
  template <class Atom>
  static constexpr bool every_width = !compile_less || std::is_same_v<typename Atom::Operand, half_t>;
  static constexpr bool middle_widths = !compile_less;
  template <class>
  static constexpr bool every_length = !compile_less;
  template <class Value>
  static constexpr bool every_walk = !compile_less || std::is_same_v<Value, half_t>;
  template <class Value>
  static constexpr bool every_variant = !compile_less || std::is_same_v<Value, half_t>;
  static constexpr bool tables = false;  ///< 64 kB of shared memory hold too little of x
  static constexpr Error success = hipSuccess, too_large = hipErrorInvalidConfiguration;

  /// A grid has less than 2^32 threads in each direction here.
  static constexpr std::int64_t most_thread_blocks(int threads) { return (std::int64_t{1} << 32) / threads - 1; }
  static int multiprocessors() noexcept { return Hip::multiprocessors(); }
  static std::size_t shared_bytes() noexcept { return Hip::shared_bytes(); }
  static Status status(Error error, const char* label) noexcept { return Hip::status_of(error, label); }
  static RuntimeCalls runtime() noexcept { return Hip::runtime_calls(); }

  template <class Body, class... Args>
  static Error launch(const Launch::Grid& grid, Stream stream, const Args&... args) {
    const dim3 thread_blocks(static_cast<unsigned>(grid.thread_blocks), static_cast<unsigned>(grid.tiles));
    const auto queue = static_cast<hipStream_t>(stream);
    if constexpr (Body::bound > 0) {
      Hip::bounded_kernel<Body, Args...><<<thread_blocks, Body::threads, 0, queue>>>(args...);
    } else {
      Hip::kernel<Body, Args...><<<thread_blocks, Body::threads, 0, queue>>>(args...);
    }
    return hipGetLastError();
  }
};

}  // namespace Tessera

#endif
