// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_HIP_BACKEND_HPP
#define TESSERA_HIP_HIP_BACKEND_HPP

#include <hip/hip_runtime_api.h>

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// What the files of this folder share of the HIP runtime.

namespace Tessera {
namespace Hip {

/// Ok, or "LABEL: hipErrorName (text) on HIP device N" in thread-local storage.
Status status_of(hipError_t error, const char* label) noexcept;

/// What the table holds of the runtime.
RuntimeCalls runtime_calls() noexcept;

/// Of the current device.
int multiprocessors() noexcept;
/// Of shared memory that a thread block can have.
std::size_t shared_bytes() noexcept;

}  // namespace Hip
}  // namespace Tessera

#endif
