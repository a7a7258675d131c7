// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_DEVICE_HPP
#define TESSERA_TEST_DEVICE_HPP

#include <Kokkos_Core.hpp>
#include <string>

#include "Tessera_Compat.hpp"
#include "Tessera_Device.hpp"

/// \file
/// Whether the default execution space is what device tests need.

namespace Tessera {
namespace Testing {

/// Empty if the default execution space is a device.
inline std::string why_no_device() {
  using Exec = Kokkos::DefaultExecutionSpace;
  return Compat::is_host_v<Exec> ? std::string(Exec::name()) + " is no device" : "";
}
/// Empty if it is one whose matrix-unit backend can be used.
inline std::string why_no_matrix_unit() {
  using Exec = Kokkos::DefaultExecutionSpace;
  if (Compat::is_host_v<Exec>) return why_no_device();
  const Backend wanted = Compat::is_cuda_v<Exec> ? Backend::Cuda : Backend::Hip;
  for (const BackendInfo& info : available_backends()) {
    if (info.backend == wanted) return info.usable ? "" : info.name + ": " + info.reason;
  }
  return "no backend for this device";
}

}  // namespace Testing
}  // namespace Tessera

#endif
