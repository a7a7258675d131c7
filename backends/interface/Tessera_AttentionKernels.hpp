// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_ATTENTION_KERNELS_HPP
#define TESSERA_INTERFACE_ATTENTION_KERNELS_HPP

#include "backends/interface/Tessera_AttentionArgs.hpp"
#include "backends/interface/Tessera_Status.hpp"

namespace Tessera {

/// What the fused kernel takes at once; rows == 0: there is none for the precision.
struct AttentionShape {
  int rows = 0;                 ///< of a window, which may also be twice as high
  int vectors = 0;              ///< column vectors of a block
  int most_columns = 0;         ///< of Q and V, whose rows are whole words of sixteen bytes
  int most_columns_of_two = 0;  ///< the same for windows of twice the height
  const char* atom = "";
  int least_inner = 0;  ///< columns of Q, from which the products keep the bound of the precision
};

/// What the kernels by rows take; most_columns == 0: there are none for the precision.
struct AttentionRowsLimits {
  int columns = 0;       ///< those of Q and V are multiples of it
  int most_columns = 0;  ///< of Q and V
};

/// What a backend offers for O := softmax(scale Q K^T on a pattern) V.
struct AttentionKernels {
  AttentionShape (*shape)(Precision) noexcept = nullptr;
  /// On matrix units; one launch, one more where windows are split.
  Status (*forward)(const AttentionArgs&, Stream) noexcept = nullptr;
  /// What the backward pass takes, on windows of the same instruction.
  AttentionShape (*backward_shape)(Precision) noexcept = nullptr;
  /// One of its two passes, that by rows first: a launch each, one more where windows are split.
  Status (*backward)(const AttentionBackwardArgs&, Stream) noexcept = nullptr;
  AttentionRowsLimits (*rows_limits)(Precision) noexcept = nullptr;
  /// By rows, without units; one launch, one more where rows are cut.
  Status (*rows_forward)(const AttentionRowsArgs&, Stream) noexcept = nullptr;
  /// One of its two passes, that by rows first: a launch each, one more where rows are cut.
  Status (*rows_backward)(const AttentionRowsBackwardArgs&, Stream) noexcept = nullptr;
};

}  // namespace Tessera

#endif
