// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/host/Tessera_HostPackedRun.hpp"

namespace Tessera {

void host_packed_fp16(const SpmvPackedArgs& args, std::uint32_t begin, std::uint32_t end) {
  host_packed<half_t>(args, begin, end);
}

bool host_packed_fast_fp16() { return Impl::host_has_fast_half(); }

}  // namespace Tessera
