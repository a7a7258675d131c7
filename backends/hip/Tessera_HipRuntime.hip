// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "backends/hip/Tessera_HipBackend.hpp"

/// \file
/// The HIP runtime: facts and errors.

namespace Tessera {
namespace Hip {

Status status_of(hipError_t error, const char* label) noexcept {
  if (error == hipSuccess) return {};
  thread_local char text[256];
  int device = -1;
  if (hipGetDevice(&device) != hipSuccess) device = -1;
  std::snprintf(text, sizeof(text), "%s: %s (%s) on HIP device %d", label, hipGetErrorName(error),
                hipGetErrorString(error), device);
  return {text};
}

namespace {

/// CDNA2 and CDNA3 have every instruction of Tessera_AtomsAmd.hpp; earlier and later families lack one or more.
bool has_atoms(const char* architecture) {
  for (const char* known : {"gfx90a", "gfx940", "gfx941", "gfx942"}) {
    if (std::strncmp(architecture, known, 6) == 0) return true;
  }
  return false;
}

Status query(int device, DeviceFacts& facts) noexcept {
  hipDeviceProp_t p{};
  const hipError_t error = hipGetDeviceProperties(&p, device);
  if (error != hipSuccess) return status_of(error, "device query");
  if (!has_atoms(p.gcnArchName)) {
    thread_local char text[160];
    std::snprintf(text, sizeof(text), "gfx90a or gfx94x is required (v_mfma_f64_16x16x4f64), the device is %.64s",
                  p.gcnArchName);
    return {text};
  }
  std::snprintf(facts.name, sizeof(facts.name), "%.100s", p.name);
  facts.index = device;
  facts.major = p.major;
  facts.minor = p.minor;
  facts.compute_units = p.multiProcessorCount;
  facts.shared_bytes = p.sharedMemPerBlock;
  facts.cache_bytes = static_cast<std::size_t>(p.l2CacheSize);
  facts.memory_bytes = p.totalGlobalMem;
  facts.bandwidth = 2e3 * p.memoryClockRate * (p.memoryBusWidth / 8.0);
  // 256 flop per clock and compute unit: MI250X 47.9 Tflop/s per die, MI300X 163.4 Tflop/s.
  facts.fp64_matrix_rate = 256 * 1e3 * p.clockRate * p.multiProcessorCount;
  facts.wave = p.warpSize;
  return {};
}

/// A full query takes long beside an apply, so each usable device is asked once.
Status device_facts(DeviceFacts& facts) noexcept {
  constexpr int most = 64;
  static std::mutex guard;
  static DeviceFacts known[most];
  int device = 0;
  const hipError_t error = hipGetDevice(&device);
  if (error != hipSuccess) {
    (void)hipGetLastError();  // an absent device is an answer, not a lasting error
    return status_of(error, "device query");
  }
  if (device >= most) return {"more than 64 devices"};
  const std::lock_guard<std::mutex> lock(guard);
  if (known[device].wave == 0) {
    const Status status = query(device, known[device]);
    (void)hipGetLastError();
    if (!status.ok()) return status;
  }
  facts = known[device];
  return {};
}

}  // namespace

int multiprocessors() noexcept {
  DeviceFacts facts;
  return device_facts(facts).ok() ? facts.compute_units : 1;
}

std::size_t shared_bytes() noexcept {
  DeviceFacts facts;
  return device_facts(facts).ok() ? facts.shared_bytes : 0;
}

RuntimeCalls runtime_calls() noexcept {
  RuntimeCalls calls;
  calls.device_facts = device_facts;
  return calls;
}

}  // namespace Hip
}  // namespace Tessera
