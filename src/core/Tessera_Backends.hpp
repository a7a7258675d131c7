// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_BACKENDS_HPP
#define TESSERA_CORE_BACKENDS_HPP

#include "Tessera_Compat.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_KernelTables.hpp"

/// \file
/// Which backend belongs to an execution space, and which precision is meant.

namespace Tessera {

namespace Impl {

inline Precision precision_of(ComputeType compute, Precision natural) {
  switch (compute) {
    case ComputeType::Auto:
      return natural;
    case ComputeType::FP64:
      return Precision::FP64;
    case ComputeType::FP32:
      return Precision::FP32;
    case ComputeType::TF32:
      return Precision::TF32;
    case ComputeType::FP16_FP32:
      return Precision::FP16;
    case ComputeType::BF16_FP32:
      return Precision::BF16;
  }
  return natural;
}

inline bool on_matrix_units(Precision p) {
  return p == Precision::FP64 || p == Precision::FP16 || p == Precision::BF16;
}

/// The matrix-unit backend of an execution space: its own device, or an emulated unit on hosts.
template <class Exec>
Backend natural_backend() {
  if (Compat::is_cuda_v<Exec>) return Backend::Cuda;
  if (Compat::is_hip_v<Exec>) return Backend::Hip;
  return Backend::EmulatedNvidia;
}

}  // namespace Impl
}  // namespace Tessera

#endif
