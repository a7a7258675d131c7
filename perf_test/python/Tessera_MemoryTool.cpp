// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A tool for Kokkos that counts bytes: what is allocated now, at most since tessera_memory_reset(), and how often. The
// library reports its pools' allocations like Kokkos' own. For attention_memory.py, which compiles and asks it.

#include <atomic>
#include <cstdint>

namespace {

std::atomic<std::int64_t> now{0}, most{0}, count{0};

}  // namespace

extern "C" {

struct KokkosSpace {
  char name[64];
};
struct KokkosToolSettings {
  bool requires_global_fencing;
  bool padding[255];
};

// Called since Kokkos 3.7: without it, Kokkos waits before and after each event.
void kokkosp_request_tool_settings(std::uint32_t, KokkosToolSettings* settings) {
  settings->requires_global_fencing = false;
}
// Every kind of memory counts, a device's, pinned, the host's.
void kokkosp_allocate_data(const KokkosSpace, const char*, const void*, std::uint64_t bytes) {
  ++count;
  const std::int64_t sum = now += static_cast<std::int64_t>(bytes);
  if (sum > most) most = sum;
}
void kokkosp_deallocate_data(const KokkosSpace, const char*, const void*, std::uint64_t bytes) {
  now -= static_cast<std::int64_t>(bytes);
}

std::int64_t tessera_memory_now() { return now; }
std::int64_t tessera_memory_most() { return most; }
std::int64_t tessera_memory_count() { return count; }
void tessera_memory_reset() {
  most = now.load();
  count = 0;
}

}  // extern "C"
