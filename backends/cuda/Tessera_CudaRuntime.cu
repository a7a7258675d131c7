// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/cuda/Tessera_CudaBackend.hpp"

/// \file
/// The CUDA runtime: facts, memory, errors.

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

/// FP64 rate of the matrix instruction by compute capability, flop per clock and multiprocessor: capability alone
/// cannot tell an H100 from an H800 (whose FP64 units are cut), so the name decides there.
double fp64_flop_per_clock(const cudaDeviceProp& p) {
  if (std::strstr(p.name, "H800") != nullptr || (std::strstr(p.name, "H20") == p.name + 7 && p.name[10] != '0')) {
    return 8;  // not the H200
  }
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
  static std::mutex guard;
  static DeviceFacts known[most_devices];
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) {
    cudaGetLastError();  // an absent device is an answer, not a lasting error
    return status_of(error, "device query");
  }
  if (device >= most_devices) return {"more than 64 devices"};
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

/// What the pool keeps of released memory for the next plan; more goes back to the device, and costs about 1 us a MB
/// when it is needed again.
std::uint64_t kept_bytes(std::size_t memory_bytes) {
  return std::max<std::uint64_t>(std::uint64_t{256} << 20, memory_bytes / 32);
}

/// One pool per device, made at first use and left to the driver at the end of the process.
cudaError_t pool_of(int device, cudaMemPool_t& pool) {
  static std::mutex guard;
  static cudaMemPool_t pools[most_devices] = {};
  if (device >= most_devices) return cudaErrorInvalidDevice;
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

/// A plan may go while another device is the current one: everywhere is on the memory's.
void release(void* memory, Stream stream, bool everywhere) noexcept {
  int current = 0;
  cudaPointerAttributes place{};
  const bool known =
      everywhere && cudaGetDevice(&current) == cudaSuccess && cudaPointerGetAttributes(&place, memory) == cudaSuccess;
  const bool elsewhere = known && place.device != current && cudaSetDevice(place.device) == cudaSuccess;
  if (everywhere) cudaDeviceSynchronize();
  cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
  if (elsewhere) cudaSetDevice(current);
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

/// Mailboxes, which the process keeps: allocations of pinned memory wait for the device.
class Mailboxes {
 public:
  cudaError_t open(void** memory) {
    const std::lock_guard<std::mutex> lock(guard_);
    if (free_.empty()) {
      char* block = nullptr;
      free_.reserve(free_.capacity() + at_once);  // so that close() allocates nothing
      const cudaError_t error = cudaHostAlloc(reinterpret_cast<void**>(&block), at_once * mailbox_bytes,
                                              cudaHostAllocPortable | cudaHostAllocMapped);
      if (error != cudaSuccess) return error;
      for (std::size_t i = 0; i < at_once; ++i) free_.push_back(block + i * mailbox_bytes);
    }
    *memory = free_.back();
    free_.pop_back();
    return cudaSuccess;
  }
  void close(void* memory) {
    const std::lock_guard<std::mutex> lock(guard_);
    free_.push_back(memory);
  }

 private:
  static constexpr std::size_t at_once = 64;
  std::mutex guard_;
  std::vector<void*> free_;
};
/// Never destroyed, so that no plan comes too late.
Mailboxes& mailboxes() {
  static auto* const all = new Mailboxes;
  return *all;
}

Status open_mailbox(void** memory) noexcept {
  try {
    const cudaError_t error = mailboxes().open(memory);
    if (error != cudaSuccess) cudaGetLastError();
    return status_of(error, "mailbox");
  } catch (...) {
    return {"no memory for the list of mailboxes"};
  }
}
void close_mailbox(void* memory) noexcept { mailboxes().close(memory); }

/// Memory that set-ups use one after the other: a call of the allocator and a fill take longer than some of their
/// kernels.
class LentMemory {
 public:
  static constexpr std::size_t least = std::size_t{4} << 20, most = std::size_t{32} << 20;

  cudaError_t lend(int device, std::size_t bytes, cudaStream_t stream, void** memory) {
    const std::lock_guard<std::mutex> lock(guard_);
    for (Block& block : blocks_) {
      if (block.lent || block.device != device || block.bytes < bytes) continue;
      block.lent = true;
      *memory = block.memory;
      return cudaSuccess;
    }
    Block block;
    block.device = device;
    block.lent = true;
    block.bytes = least;
    while (block.bytes < bytes) block.bytes *= 2;
    blocks_.reserve(blocks_.size() + 1);
    drop_smaller(device, block.bytes);
    cudaError_t error = cudaMalloc(&block.memory, block.bytes);
    if (error == cudaSuccess) error = cudaMemsetAsync(block.memory, 0, borrowed_zero_bytes, stream);
    // Another stream may borrow it next.
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) {
      blocks_.push_back(block);
      *memory = block.memory;
    } else if (block.memory != nullptr) {
      cudaFree(block.memory);
    }
    return error;
  }
  void give_back(void* memory, bool spoiled) {
    const std::lock_guard<std::mutex> lock(guard_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].memory != memory) continue;
      blocks_[i].lent = false;
      if (spoiled) drop(i);
      return;
    }
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
    int device = 0;
    bool lent = false;
  };

  /// Waits for the device.
  void drop(std::size_t i) {
    cudaFree(blocks_[i].memory);
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
  }
  /// Blocks that the one of so many bytes serves as well.
  void drop_smaller(int device, std::size_t bytes) {
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      if (!blocks_[i].lent && blocks_[i].device == device && blocks_[i].bytes < bytes) drop(i);
    }
  }

  std::mutex guard_;
  std::vector<Block> blocks_;
};
/// Never destroyed, so that no plan comes too late.
LentMemory& lent_memory() {
  static auto* const all = new LentMemory;
  return *all;
}

Status borrow(std::size_t bytes, Stream stream, void** memory) noexcept {
  *memory = nullptr;
  if (bytes > LentMemory::most) return {};
  try {
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
      error = lent_memory().lend(device, bytes, static_cast<cudaStream_t>(stream), memory);
    }
    if (error != cudaSuccess) cudaGetLastError();
    return status_of(error, "memory of a set-up");
  } catch (...) {
    return {"no memory for the list of lent memory"};
  }
}
void give_back(void* memory, bool spoiled) noexcept { lent_memory().give_back(memory, spoiled); }

/// Looks again and again for as long as a small product takes, and then waits for the stream, which also knows of
/// errors.
Status await(const std::int64_t* number, std::int64_t wanted, Stream stream) noexcept {
  constexpr std::chrono::microseconds patience(200);
  const auto there = [=] {
    const bool same = *static_cast<const volatile std::int64_t*>(number) == wanted;
    std::atomic_thread_fence(std::memory_order_acquire);
    return same;
  };
  const auto begin = std::chrono::steady_clock::now();
  do {
    if (there()) return {};
  } while (std::chrono::steady_clock::now() - begin < patience);
  const cudaError_t error = cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) return status_of(error, "wait for a kernel");
  return there() ? Status{} : Status{"a kernel ended without an answer"};
}

}  // namespace

bool supports_dependent_launch() noexcept {
  enum : int { unknown, no, yes };
  static std::atomic<int> answers[most_devices];
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  if (device >= most_devices) return false;
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

cudaError_t AllowedMemory::allow(const void* kernel, std::size_t bytes) noexcept {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess && device >= most_devices) error = cudaErrorInvalidDevice;
  if (error == cudaSuccess && bytes > bytes_[device].load(std::memory_order_acquire)) {
    static std::mutex guard;  // of two threads with different needs the greater one must stay
    const std::lock_guard<std::mutex> lock(guard);
    if (bytes <= bytes_[device].load(std::memory_order_acquire)) return cudaSuccess;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error == cudaSuccess) bytes_[device].store(bytes, std::memory_order_release);
  }
  if (error != cudaSuccess) cudaGetLastError();
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

RuntimeCalls runtime_calls() noexcept {
  RuntimeCalls calls;
  calls.device_facts = device_facts;
  calls.allocate = allocate;
  calls.release = release;
  calls.fetch = fetch;
  calls.open_mailbox = open_mailbox;
  calls.close_mailbox = close_mailbox;
  calls.await = await;
  calls.borrow = borrow;
  calls.give_back = give_back;
  return calls;
}

}  // namespace Cuda
}  // namespace Tessera
