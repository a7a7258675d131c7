// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_STATUS_HPP
#define TESSERA_INTERFACE_STATUS_HPP

/// \file
/// What every call to a backend takes and answers.

namespace Tessera {

/// A stream of the backend's runtime (cudaStream_t, hipStream_t) or null for host backends and default streams.
using Stream = void*;

/// Success, or what went wrong in the backend's own words (static text or thread-local storage; copy it at once).
struct Status {
  const char* message = nullptr;
  bool ok() const noexcept { return message == nullptr; }
};

}  // namespace Tessera

#endif
