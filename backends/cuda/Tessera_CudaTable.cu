// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "backends/cuda/Tessera_CudaBackend.hpp"

namespace Tessera {
namespace Cuda {

Status status_of(cudaError_t error, const char* label) noexcept {
  if (error == cudaSuccess) return {};
  thread_local char text[256];
  int device = -1;
  cudaGetDevice(&device);
  std::snprintf(text, sizeof(text), "%s: %s (%s) on CUDA device %d", label, cudaGetErrorName(error),
                cudaGetErrorString(error), device);
  return {text};
}

namespace {

/// FP64 rate of the matrix instruction by compute capability, flop a clock and multiprocessor: capability alone cannot
/// tell an H100 from an H800 (whose FP64 units are cut), so the name decides there.
double fp64_flop_per_clock(const cudaDeviceProp& p) {
  if (std::strstr(p.name, "H800") != nullptr || std::strstr(p.name, "H20") == p.name + 7) return 8;
  if (p.major == 8 && p.minor == 0) return 128;
  if (p.major == 9 && p.minor == 0) return 128;
  return 4;
}

Status query(int device, DeviceFacts& facts) noexcept {
  cudaDeviceProp p{};
  int clock = 0, memory_clock = 0;
  cudaError_t error = cudaGetDeviceProperties(&p, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device);
  if (error != cudaSuccess) return status_of(error, "device query");
  std::snprintf(facts.name, sizeof(facts.name), "%.127s", p.name);
  facts.index = device;
  facts.major = p.major;
  facts.minor = p.minor;
  facts.wave = p.warpSize;
  facts.compute_units = p.multiProcessorCount;
  facts.shared_bytes = p.sharedMemPerBlockOptin;
  facts.cache_bytes = static_cast<std::size_t>(p.l2CacheSize);
  facts.memory_bytes = p.totalGlobalMem;
  facts.bandwidth = 2e3 * memory_clock * (p.memoryBusWidth / 8.0);
  facts.fp64_matrix_rate = fp64_flop_per_clock(p) * 1e3 * clock * p.multiProcessorCount;
  return {};
}

/// Says for which architecture the code of this backend that runs on a device was compiled.
__global__ void compiled_for_kernel() {}

/// A full query takes about a millisecond, so each device is asked once.
Status device_facts(DeviceFacts& facts) noexcept {
  constexpr int most = 64;
  static std::mutex guard;
  static DeviceFacts known[most];
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) {
    cudaGetLastError();  // an absent device is an answer, not a lasting error
    return status_of(error, "device query");
  }
  if (device >= most) return {"more than 64 devices"};
  const std::lock_guard<std::mutex> lock(guard);
  if (known[device].wave == 0) {
    const Status status = query(device, known[device]);
    cudaGetLastError();
    if (!status.ok()) return status;
  }
  facts = known[device];
  if (facts.major < 8) return {"compute capability 8.0 or newer is required (mma.sync m8n8k4 f64, m16n8k8)"};
  return {};
}

Status spmv_packed(const SpmvPackedArgs& args, Stream stream) noexcept {
  switch (args.precision) {
    case Precision::FP64:
      return spmv_packed_fp64(args, stream);
    case Precision::FP32:
      return spmv_packed_fp32(args, stream);
    case Precision::FP16:
      return spmv_packed_fp16(args, stream);
    case Precision::BF16:
      return spmv_packed_bf16(args, stream);
    default:
      return {"spmv[packed]: the CUDA backend offers FP64, FP32, FP16 and BF16"};
  }
}

/// What the pool keeps of released memory for the next plan; more goes back to the device, and costs about 1 us a MB
/// when it is needed again.
std::uint64_t kept_bytes(std::size_t memory_bytes) {
  return std::max<std::uint64_t>(std::uint64_t{256} << 20, memory_bytes / 32);
}

/// One pool a device, made at first use and left to the driver at the end of the process.
cudaError_t pool_of(int device, cudaMemPool_t& pool) {
  constexpr int most = 64;
  static std::mutex guard;
  static cudaMemPool_t pools[most] = {};
  if (device >= most) return cudaErrorInvalidDevice;
  const std::lock_guard<std::mutex> lock(guard);
  if (pools[device] == nullptr) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    cudaError_t error = cudaMemPoolCreate(&pools[device], &properties);
    DeviceFacts facts;
    std::uint64_t threshold = kept_bytes(device_facts(facts).ok() ? facts.memory_bytes : 0);
    if (error == cudaSuccess) {
      error = cudaMemPoolSetAttribute(pools[device], cudaMemPoolAttrReleaseThreshold, &threshold);
    }
    if (error != cudaSuccess) return error;
  }
  pool = pools[device];
  return cudaSuccess;
}

Status allocate(std::size_t bytes, Stream stream, void** memory) noexcept {
  *memory = nullptr;
  int device = 0;
  cudaMemPool_t pool = nullptr;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = pool_of(device, pool);
  if (error == cudaSuccess) {
    error = cudaMallocFromPoolAsync(memory, bytes > 0 ? bytes : 1, pool, static_cast<cudaStream_t>(stream));
  }
  if (error != cudaSuccess) cudaGetLastError();  // running out of memory is not a lasting error
  return status_of(error, "allocation");
}

void release(void* memory, Stream stream, bool everywhere) noexcept {
  if (everywhere) cudaDeviceSynchronize();
  cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
}

/// Through a little pinned memory, which the process keeps.
Status fetch(void* host, const void* device, std::size_t bytes, Stream stream) noexcept {
  constexpr std::size_t room = 16384;
  static std::mutex guard;
  static void* pinned = nullptr;
  const std::lock_guard<std::mutex> lock(guard);
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaSuccess;
  if (pinned == nullptr) error = cudaHostAlloc(&pinned, room, cudaHostAllocPortable);
  for (std::size_t at = 0; error == cudaSuccess && at < bytes; at += room) {
    const std::size_t here = std::min(room, bytes - at);
    error = cudaMemcpyAsync(pinned, static_cast<const char*>(device) + at, here, cudaMemcpyDeviceToHost, queue);
    if (error == cudaSuccess) error = cudaStreamSynchronize(queue);
    if (error == cudaSuccess) std::memcpy(static_cast<char*>(host) + at, pinned, here);
  }
  return status_of(error, "copy to the host");
}

}  // namespace

bool supports_dependent_launch() noexcept {
  enum : int { unknown, no, yes };
  static std::atomic<int> answers[64];
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  if (device >= 64) return false;
  int answer = answers[device].load(std::memory_order_acquire);
  if (answer == unknown) {
    DeviceFacts facts;
    cudaFuncAttributes code{};
    const cudaError_t error = cudaFuncGetAttributes(&code, compiled_for_kernel);
    if (error != cudaSuccess) cudaGetLastError();
    answer = error == cudaSuccess && code.ptxVersion >= 90 && device_facts(facts).ok() && facts.major >= 9 ? yes : no;
    answers[device].store(answer, std::memory_order_release);
  }
  return answer == yes;
}

cudaError_t allow_shared_memory(const void* kernel, int bytes, std::atomic<std::uint64_t>& devices) noexcept {
  int device = 0;
  const cudaError_t known = cudaGetDevice(&device);
  if (known != cudaSuccess) {
    cudaGetLastError();
    return known;
  }
  const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;
  if ((devices.load(std::memory_order_acquire) & bit) != 0) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) {
    devices.fetch_or(bit, std::memory_order_release);
  } else {
    cudaGetLastError();
  }
  return error;
}

std::size_t shared_bytes() noexcept {
  DeviceFacts facts;
  return device_facts(facts).ok() ? facts.shared_bytes : 0;
}

int multiprocessors() noexcept {
  DeviceFacts facts;
  return device_facts(facts).ok() ? facts.compute_units : 1;
}

}  // namespace Cuda

const KernelTable* cuda_table() noexcept {
  static const KernelTable table{"cuda",
                                 true,
                                 Cuda::device_facts,
                                 Cuda::dasp_geometry,
                                 Cuda::spmv_dasp,
                                 Cuda::spmv_packed,
                                 Cuda::allocate,
                                 Cuda::release,
                                 Cuda::fetch,
                                 Cuda::flash_depth,
                                 Cuda::spmm_flash,
                                 Cuda::panel_geometry,
                                 Cuda::spmm_panels,
                                 Cuda::spmm_rows};
  return &table;
}

}  // namespace Tessera
