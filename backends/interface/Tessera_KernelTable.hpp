// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BACKENDS_KERNEL_TABLE_HPP
#define TESSERA_BACKENDS_KERNEL_TABLE_HPP

#include <cstddef>

#include "backends/interface/Tessera_DeviceFacts.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "backends/interface/Tessera_SpmvArgs.hpp"

/// \file
/// What a backend offers: a struct of function pointers. Backends know neither Kokkos nor exceptions; they answer with
/// a Status, which the Kokkos side turns into an exception.

namespace Tessera {

/// A stream of the backend's runtime (cudaStream_t, hipStream_t) or null for host backends and default streams.
using Stream = void*;

/// Success, or what went wrong in the backend's own words (static text or thread-local storage; copy it at once).
struct Status {
  const char* message = nullptr;
  bool ok() const noexcept { return message == nullptr; }
};

struct KernelTable {
  const char* name;  ///< "cuda", "hip", "emulated-nvidia", "emulated-amd"
  bool on_device;    ///< pointers of arguments are device pointers

  /// Facts of the current device; an error names the reason why the backend cannot be used.
  Status (*device_facts)(DeviceFacts&) noexcept;

  /// Block geometry for a precision; null where DASP is not offered (FP32, TF32).
  const DaspGeometry* (*dasp_geometry)(Precision) noexcept;
  /// Enqueues y := alpha A x + beta y; one launch, no allocation, no synchronisation.
  Status (*spmv_dasp)(const SpmvDaspArgs&, Stream) noexcept;
  /// The same from packed slices for waves of DeviceFacts::wave lanes. Refuses what check_packed_waves does.
  Status (*spmv_packed)(const SpmvPackedArgs&, Stream) noexcept;

  /// Memory from a pool of the backend, usable on the stream at once; null where there is no pool. An ordinary device
  /// allocation takes as long as dozens of small products.
  Status (*allocate)(std::size_t bytes, Stream, void** memory) noexcept = nullptr;
  /// Gives it back once everything enqueued on the stream is done; with `everywhere`, waits for all streams first.
  void (*release)(void* memory, Stream, bool everywhere) noexcept = nullptr;
  /// Waits for the stream and copies from the device; null: as Kokkos does it. Faster than a copy to pageable memory.
  Status (*fetch)(void* host, const void* device, std::size_t bytes, Stream) noexcept = nullptr;

  /// Shape of FlashSparse's instruction: vectors of a block for a precision and vector length; 0 where not offered.
  int (*flash_depth)(Precision, int vector_length) noexcept = nullptr;
  /// Enqueues C := alpha A B + beta C from ME-BCRS; one launch, two where windows are split.
  Status (*spmm_flash)(const SpmmFlashArgs&, Stream) noexcept = nullptr;
  /// Block geometry of panels for a precision and the columns that B will mostly have; null where not offered.
  const PanelGeometry* (*panel_geometry)(Precision, std::int64_t columns) noexcept = nullptr;
  /// The same from panels.
  Status (*spmm_panels)(const SpmmPanelArgs&, Stream) noexcept = nullptr;
  /// The same from compressed rows; null: the Kokkos kernel is as good. Operands of the precision's type.
  Status (*spmm_rows)(const SpmmRowsArgs&, Stream) noexcept = nullptr;
};

/// Null where the backend is not part of this build.
const KernelTable* cuda_table() noexcept;
const KernelTable* hip_table() noexcept;
const KernelTable* emulated_nvidia_table() noexcept;
const KernelTable* emulated_amd_table() noexcept;

}  // namespace Tessera

#endif
