// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_ALIGNED_HPP
#define TESSERA_INTERFACE_ALIGNED_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// A device stops at an access of several words at an address that is no multiple of their bytes; a host does not.
/// Emulated kernels stop here, so that tests without a device find it, whatever flags they are compiled with.

namespace Tessera {

[[noreturn]] inline void stop_misaligned(const void* p, int bytes) {
  std::fprintf(stderr, "Tessera: an access of %d bytes at %p, which a device would not do\n", bytes, p);
  std::abort();
}

/// Nothing on devices, which see it for themselves.
TESSERA_FUNCTION void expect_aligned([[maybe_unused]] const void* p, [[maybe_unused]] int bytes) {
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
  if (reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(bytes) != 0) stop_misaligned(p, bytes);
#endif
}

}  // namespace Tessera

#endif
