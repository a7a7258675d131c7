// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_KERNEL_TABLES_HPP
#define TESSERA_CORE_KERNEL_TABLES_HPP

#include "Tessera_Device.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"

namespace Tessera {

/// The kernels of a matrix-unit backend.
/// @throw NotCompiled  the backend is not part of this build
/// @throw NotSupported  it is, but the current device cannot run it; the message says why
/// @throw InvalidArgument  Auto, Kokkos and Reference have no table
const KernelTable& kernel_table(Backend backend);

}  // namespace Tessera

#endif
