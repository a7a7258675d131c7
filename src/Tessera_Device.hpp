// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_DEVICE_HPP
#define TESSERA_DEVICE_HPP

#include <string>
#include <vector>

#include "Tessera_Types.hpp"
#include "backends/interface/Tessera_DeviceFacts.hpp"

namespace Tessera {

/// One matrix-unit backend, and whether it can be used here.
struct BackendInfo {
  Backend backend = Backend::Auto;  ///< which
  std::string name;                 ///< to_string(backend)
  bool compiled = false;            ///< part of this build
  bool usable = false;              ///< compiled, and there is a device that can run it
  std::string reason;               ///< why not, if not usable
  DeviceFacts facts{};              ///< of the current device, if usable
};

/// Every backend Tessera has, in order of preference, with the reason where one cannot be used. Queries the device
/// runtimes (microseconds after the first call); thread-safe.
std::vector<BackendInfo> available_backends();

/// Facts of the device that `backend` would use.
/// @throw NotCompiled  the backend is not part of this build
/// @throw NotSupported  it is, but the current device cannot run it; the message says why
/// @throw InvalidArgument  Auto, Kokkos and Reference have no device
DeviceFacts device_facts(Backend backend);

/// What the environment asks for, Auto if nothing: TESSERA_FORCE_BACKEND, TESSERA_FORCE_ALGORITHM (SpMV) and
/// TESSERA_FORCE_SPMM_ALGORITHM.
/// @throw InvalidArgument  unknown name
Backend forced_backend();
SpmvAlgorithm forced_spmv_algorithm();
SpmmAlgorithm forced_spmm_algorithm();
/// TESSERA_VERBOSE=1: plans print one line each to standard error.
bool verbose();

}  // namespace Tessera

#endif
