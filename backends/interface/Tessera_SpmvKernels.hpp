// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPMV_KERNELS_HPP
#define TESSERA_INTERFACE_SPMV_KERNELS_HPP

#include "backends/interface/Tessera_BsrArgs.hpp"
#include "backends/interface/Tessera_CellsArgs.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_SpmvArgs.hpp"
#include "backends/interface/Tessera_Status.hpp"

namespace Tessera {

/// What a backend offers for y := alpha A x + beta y.
struct SpmvKernels {
  /// Block geometry for a precision; null where DASP is not offered (FP32, TF32).
  const DaspGeometry* (*dasp_geometry)(Precision) noexcept = nullptr;
  /// Enqueues y := alpha A x + beta y; one launch, no allocation, no synchronisation.
  Status (*dasp)(const SpmvDaspArgs&, Stream) noexcept = nullptr;
  /// The same from packed slices for waves of DeviceFacts::wave lanes. Refuses what check_packed_waves does.
  Status (*packed)(const SpmvPackedArgs&, Stream) noexcept = nullptr;
  /// The same from packed slices in cells; null where shared memory holds too little of x. At most two launches.
  Status (*cells)(const SpmvCellsArgs&, Stream) noexcept = nullptr;
  /// The same from the caller's blocks. Refuses what check_bsr does.
  Status (*bsr)(const SpmvBsrArgs&, Stream) noexcept = nullptr;
};

}  // namespace Tessera

#endif
