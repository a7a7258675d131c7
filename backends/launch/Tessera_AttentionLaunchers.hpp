// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_LAUNCHERS_HPP
#define TESSERA_LAUNCH_ATTENTION_LAUNCHERS_HPP

#include "backends/interface/Tessera_AttentionKernels.hpp"

/// \file
/// The launchers of attention, as the table names them. A vendor's folder instantiates the definitions of
/// Tessera_AttentionLaunch.hpp, Tessera_AttentionBackwardLaunch.hpp, and by rows Tessera_AttentionRowsLaunch.hpp and
/// Tessera_AttentionRowsBackwardLaunch.hpp.

namespace Tessera {
namespace Launch {

template <class Device>
AttentionShape attention_shape(Precision precision) noexcept;
template <class Device>
Status attention_forward(const AttentionArgs& args, Stream stream) noexcept;
/// Its part of FP32 and TF32, in a file of its own where that compiles for long. The arguments have been checked.
template <class Device>
typename Device::Error attention_forward_32_bits(const AttentionArgs& args, Stream stream);
template <class Device>
AttentionShape attention_backward_shape(Precision precision) noexcept;
template <class Device>
Status attention_backward(const AttentionBackwardArgs& args, Stream stream) noexcept;
template <class Device>
AttentionRowsLimits attention_rows_limits(Precision precision) noexcept;
template <class Device>
Status attention_rows_forward(const AttentionRowsArgs& args, Stream stream) noexcept;
template <class Device>
Status attention_rows_backward(const AttentionRowsBackwardArgs& args, Stream stream) noexcept;

template <class Device>
AttentionKernels attention_kernels() noexcept {
  AttentionKernels kernels;
  kernels.shape = attention_shape<Device>;
  kernels.forward = attention_forward<Device>;
  kernels.backward_shape = attention_backward_shape<Device>;
  kernels.backward = attention_backward<Device>;
  kernels.rows_limits = attention_rows_limits<Device>;
  kernels.rows_forward = attention_rows_forward<Device>;
  kernels.rows_backward = attention_rows_backward<Device>;
  return kernels;
}

}  // namespace Launch
}  // namespace Tessera

#endif
