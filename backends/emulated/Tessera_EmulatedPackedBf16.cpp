// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedPacked.hpp"

namespace Tessera {

void emulate_packed_bf16(const SpmvPackedArgs& args, int lanes) {
  lanes == 32 ? emulate_packed<bhalf_t, 32>(args) : emulate_packed<bhalf_t, 64>(args);
}

}  // namespace Tessera
