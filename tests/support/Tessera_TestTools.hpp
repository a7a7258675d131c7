// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_TOOLS_HPP
#define TESSERA_TEST_TOOLS_HPP

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

/// \file
/// Counts what Kokkos is asked to do, through its profiling callbacks.

namespace Tessera {
namespace Testing {

/// Whether the event of a kernel names a backend's: "Tessera::spmv[packed,fp64]".
inline bool of_backend(const char* event) {
  const std::string name(event);
  const std::size_t comma = name.rfind(',');
  if (comma == std::string::npos) return false;
  const std::string precision = name.substr(comma + 1);
  return precision == "fp64]" || precision == "fp32]" || precision == "tf32]" || precision == "fp16]" ||
         precision == "bf16]";
}

/// Allocations, kernels, products by a backend and (Kokkos 3.6 or newer) fences since its construction. One at a time:
/// where another one was made meanwhile, since that was.
class KokkosCounters {
 public:
  KokkosCounters() {
    allocations_ = kernels_ = backend_kernels_ = fences_ = 0;
    kernel_[0] = 0;
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_allocate_data_callback([](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t) {
      // What Kokkos keeps for itself (pools of Kokkos teams' scratch) grows once and is not ours.
      if (std::string(label).rfind("Kokkos::", 0) == 0) return;
      ++allocations_;
      std::snprintf(label_, sizeof(label_), "%s", label);
    });
    Tools::set_begin_parallel_for_callback([](const char* name, std::uint32_t, std::uint64_t*) {
      ++(of_backend(name) ? backend_kernels_ : kernels_);
      std::snprintf(kernel_, sizeof(kernel_), "%s", name);
    });
    Tools::set_begin_parallel_reduce_callback([](const char*, std::uint32_t, std::uint64_t*) { ++kernels_; });
#if KOKKOS_VERSION >= 30600
    Tools::set_begin_fence_callback([](const char* name, std::uint32_t, std::uint64_t*) {
      // Kokkos waits before and after each event of a kernel while a tool listens.
      if (std::string(name).find("Profile Tool Fence") == std::string::npos) ++fences_;
    });
#endif
  }
  ~KokkosCounters() {
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_allocate_data_callback(nullptr);
    Tools::set_begin_parallel_for_callback(nullptr);
    Tools::set_begin_parallel_reduce_callback(nullptr);
#if KOKKOS_VERSION >= 30600
    Tools::set_begin_fence_callback(nullptr);
#endif
  }
  KokkosCounters(const KokkosCounters&) = delete;
  KokkosCounters& operator=(const KokkosCounters&) = delete;
  int allocations() const { return allocations_; }
  const char* last_allocation() const { return label_; }
  /// Through Kokkos.
  int kernels() const { return kernels_; }
  /// Of the last parallel_for.
  std::string last_kernel() const { return kernel_; }
  int backend_kernels() const { return backend_kernels_; }
  int fences() const { return fences_; }

 private:
  static inline char label_[128] = {}, kernel_[128] = {};
  static inline std::atomic<int> allocations_{0}, kernels_{0}, backend_kernels_{0}, fences_{0};
};

/// Bytes that are allocated under a label which `counts` takes, of allocations since its construction. One at a time.
class KokkosMemory {
 public:
  explicit KokkosMemory(bool (*counts)(const std::string& label)) {
    counts_ = counts;
    now_ = peak_ = 0;
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_allocate_data_callback(
        [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
          if (!counts_(label)) return;
          now_ += static_cast<std::int64_t>(bytes);
          if (now_ > peak_) peak_ = now_.load();
        });
    Tools::set_deallocate_data_callback(
        [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
          if (counts_(label)) now_ -= static_cast<std::int64_t>(bytes);
        });
  }
  ~KokkosMemory() {
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
    Kokkos::Tools::Experimental::set_deallocate_data_callback(nullptr);
  }
  KokkosMemory(const KokkosMemory&) = delete;
  KokkosMemory& operator=(const KokkosMemory&) = delete;
  /// From now on.
  void forget_peak() { peak_ = now_.load(); }
  std::size_t peak() const { return static_cast<std::size_t>(peak_.load()); }

 private:
  static inline bool (*counts_)(const std::string& label) = nullptr;
  static inline std::atomic<std::int64_t> now_{0}, peak_{0};
};

}  // namespace Testing
}  // namespace Tessera

#endif
