// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_KERNEL_TABLE_HPP
#define TESSERA_INTERFACE_KERNEL_TABLE_HPP

#include <cstddef>

#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "backends/interface/Tessera_DeviceFacts.hpp"
#include "backends/interface/Tessera_SddmmKernels.hpp"
#include "backends/interface/Tessera_SpgemmKernels.hpp"
#include "backends/interface/Tessera_SpmmKernels.hpp"
#include "backends/interface/Tessera_SpmvKernels.hpp"
#include "backends/interface/Tessera_Status.hpp"

/// \file
/// What a backend offers: structs of function pointers, one per operation. Backends know neither Kokkos nor exceptions;
/// they answer with a Status, which the Kokkos side turns into an exception.

namespace Tessera {

/// Of what kernels and the host send each other.
constexpr std::size_t mailbox_bytes = 256;

/// What the library asks of a backend's runtime.
struct RuntimeCalls {
  /// Facts of the current device; an error names the reason why the backend cannot be used.
  Status (*device_facts)(DeviceFacts&) noexcept = nullptr;
  /// Memory from a pool of the backend, usable on the stream at once; null where there is no pool. An ordinary device
  /// allocation takes as long as dozens of small products.
  Status (*allocate)(std::size_t bytes, Stream, void** memory) noexcept = nullptr;
  /// Gives it back once everything enqueued on the stream is done; with `everywhere`, waits for all streams of the
  /// device that it lies on first.
  void (*release)(void* memory, Stream, bool everywhere) noexcept = nullptr;
  /// Waits for the stream and copies from the device; null: as Kokkos does it. Faster than a copy to pageable memory.
  Status (*fetch)(void* host, const void* device, std::size_t bytes, Stream) noexcept = nullptr;
  /// A mailbox, mailbox_bytes of memory that kernels write and the host reads, of those that the process has for that;
  /// null where there are none.
  Status (*open_mailbox)(void** memory) noexcept = nullptr;
  void (*close_mailbox)(void* memory) noexcept = nullptr;
  /// Returns as soon as a kernel on the stream has written `wanted` to *number, which lies in a mailbox; what it wrote
  /// before can then be read. Sooner than the kernel ends, and in less time than a wait for the stream and a copy take.
  Status (*await)(const std::int64_t* number, std::int64_t wanted, Stream) noexcept = nullptr;
  /// At least so many bytes of the current device, of those that the process keeps between set-ups: the first
  /// borrowed_zero_bytes are zero. *memory is null where so many are not kept; borrow is null where none are.
  Status (*borrow)(std::size_t bytes, Stream, void** memory) noexcept = nullptr;
  /// The device is done with it, and the first bytes are zero again. `spoiled`: neither may be so; it is not kept.
  void (*give_back)(void* memory, bool spoiled) noexcept = nullptr;
};

/// Of borrowed memory, those that are zero.
constexpr std::size_t borrowed_zero_bytes = 8192;

/// Filled in backends/launch/Tessera_KernelTableOf.hpp, by name and for all backends alike.
struct KernelTable {
  const char* name = "";   ///< "cuda", "hip", "emulated-nvidia", "emulated-amd"
  bool on_device = false;  ///< pointers of arguments are device pointers
  RuntimeCalls runtime;
  SpmvKernels spmv;
  SpmmKernels spmm;
  SddmmKernels sddmm;
  SpgemmKernels spgemm;
  AttentionKernels attention;
};

/// Null where the backend is not part of this build.
const KernelTable* cuda_table() noexcept;
const KernelTable* hip_table() noexcept;
const KernelTable* emulated_nvidia_table() noexcept;
const KernelTable* emulated_amd_table() noexcept;

}  // namespace Tessera

#endif
