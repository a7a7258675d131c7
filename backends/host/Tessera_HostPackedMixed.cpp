// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/host/Tessera_HostPackedRun.hpp"

namespace Tessera {

void host_packed_fp32_with_fp64(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  host_packed_mixed<float, double>(args, begin, end);
}

}  // namespace Tessera
