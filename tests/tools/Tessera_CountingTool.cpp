// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A tool for Kokkos that writes down kernels, regions and memory. It shares the record with the program that loaded it,
// so both have to be built by one compiler. One thread at a time.

#include "Tessera_CountingTool.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace {

using Tessera::Testing::ToolRecord;

ToolRecord record;
std::map<std::uint64_t, std::string> open_kernels;
std::map<const void*, std::pair<std::string, std::uint64_t>> memory;
std::uint64_t last_kernel = 0;

void begin(const char* name, std::uint64_t* id) {
  if (!open_kernels.empty()) {
    record.faults.push_back(std::string(name) + " begins within " + open_kernels.begin()->second);
  }
  *id = ++last_kernel;
  open_kernels[*id] = name;
  ++record.kernels[name];
}
void end(std::uint64_t id) {
  if (open_kernels.erase(id) == 0) record.faults.push_back("an end without a begin");
}

}  // namespace

extern "C" {

struct KokkosSpace {
  char name[64];
};
struct KokkosToolSettings {
  bool requires_global_fencing;
  bool padding[255];
};

ToolRecord& tessera_tool_record() { return record; }

// Called since Kokkos 3.7: without it, Kokkos waits before and after each event.
void kokkosp_request_tool_settings(std::uint32_t, KokkosToolSettings* settings) {
  settings->requires_global_fencing = false;
}
void kokkosp_begin_parallel_for(const char* name, std::uint32_t, std::uint64_t* id) { begin(name, id); }
void kokkosp_end_parallel_for(std::uint64_t id) { end(id); }
void kokkosp_begin_parallel_reduce(const char* name, std::uint32_t, std::uint64_t* id) { begin(name, id); }
void kokkosp_end_parallel_reduce(std::uint64_t id) { end(id); }
void kokkosp_begin_parallel_scan(const char* name, std::uint32_t, std::uint64_t* id) { begin(name, id); }
void kokkosp_end_parallel_scan(std::uint64_t id) { end(id); }
void kokkosp_push_profile_region(const char* name) { ++record.regions[name]; }

void kokkosp_allocate_data(const KokkosSpace, const char* label, const void* data, std::uint64_t bytes) {
  memory[data] = {label, bytes};
  record.bytes[label] += static_cast<long>(bytes);
}
void kokkosp_deallocate_data(const KokkosSpace, const char* label, const void* data, std::uint64_t bytes) {
  const auto found = memory.find(data);
  if (found == memory.end() || found->second != std::make_pair(std::string(label), bytes)) {
    record.faults.push_back(std::string("release of ") + label + ", which was not allocated so");
    return;
  }
  memory.erase(found);
  record.bytes[label] -= static_cast<long>(bytes);
}

}  // extern "C"
