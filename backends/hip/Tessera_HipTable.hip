// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_KernelTableOf.hpp"

namespace Tessera {

const KernelTable* hip_table() noexcept { return Launch::kernel_table_of<HipDevice>(); }

}  // namespace Tessera
