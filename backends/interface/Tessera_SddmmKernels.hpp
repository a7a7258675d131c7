// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SDDMM_KERNELS_HPP
#define TESSERA_INTERFACE_SDDMM_KERNELS_HPP

#include "backends/interface/Tessera_SddmmArgs.hpp"
#include "backends/interface/Tessera_Status.hpp"

namespace Tessera {

/// What a matrix instruction takes at once; rows == 0: there is none.
struct SddmmShape {
  int rows = 0;     ///< of a window, which may also be twice as high
  int vectors = 0;  ///< column vectors of a block
  const char* atom = "";
  bool in_parts = false;  ///< FP32: multiplies numbers in two parts of TF32 each, three products
};

/// What a backend offers for P := alpha (X Y^T on a pattern) [* S] + beta P.
struct SddmmKernels {
  /// Entry by entry; one launch. TF32 is answered in FP32.
  Status (*rows)(const SddmmRowsArgs&, Stream) noexcept = nullptr;
  /// The same where rows lie at multiples of SddmmDense::word_bytes < 16 alone; null: they are copied first.
  Status (*narrow_rows)(const SddmmRowsArgs&, Stream) noexcept = nullptr;
  SddmmShape (*shape)(Precision) noexcept = nullptr;
  /// On matrix units; one launch.
  Status (*windows)(const SddmmWindowArgs&, Stream) noexcept = nullptr;
};

}  // namespace Tessera

#endif
