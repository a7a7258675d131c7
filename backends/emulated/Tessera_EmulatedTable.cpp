// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_KernelTableOf.hpp"

namespace Tessera {
namespace {

template <class Device>
Status device_facts(DeviceFacts& facts) noexcept {
  facts = DeviceFacts{};
  std::snprintf(facts.name, sizeof(facts.name), "%s",
                Device::nvidia ? "emulated NVIDIA matrix unit (sm_80 atoms, waves of 32)"
                               : "emulated AMD matrix unit (gfx90a atoms, waves of 64)");
  facts.wave = Device::Wave::lanes;
  facts.compute_units = Device::multiprocessors();
  facts.cache_bytes = 64 << 10;  // so that some matrices reach beyond it
  return {};
}

Status borrow(std::size_t bytes, Stream, void** memory) noexcept {
  *memory = std::malloc(std::max(bytes, borrowed_zero_bytes));
  if (*memory == nullptr) return {"out of memory"};
  std::memset(*memory, 0xcd, bytes);
  std::memset(*memory, 0, borrowed_zero_bytes);
  return {};
}

Status open_mailbox(void** memory) noexcept {
  *memory = std::malloc(mailbox_bytes);
  return *memory != nullptr ? Status{} : Status{"no memory"};
}
/// Kernels have ended when they were launched.
Status await(const std::int64_t* number, std::int64_t wanted, Stream) noexcept {
  return *number == wanted ? Status{} : Status{"a kernel ended without an answer"};
}

}  // namespace

template <Family F>
RuntimeCalls EmulatedDevice<F>::runtime() noexcept {
  RuntimeCalls calls;
  calls.device_facts = device_facts<EmulatedDevice>;
  if (!nvidia) return calls;  // so that answers come both ways
  calls.open_mailbox = open_mailbox;
  calls.borrow = borrow;
  calls.give_back = [](void* memory, bool) noexcept { std::free(memory); };
  calls.close_mailbox = [](void* memory) noexcept { std::free(memory); };
  calls.await = await;
  return calls;
}

const KernelTable* emulated_nvidia_table() noexcept { return Launch::kernel_table_of<EmulatedNvidia>(); }
#ifdef TESSERA_EMULATED_FEWER_TYPES
const KernelTable* emulated_amd_table() noexcept { return nullptr; }
#else
const KernelTable* emulated_amd_table() noexcept { return Launch::kernel_table_of<EmulatedAmd>(); }
#endif

}  // namespace Tessera
