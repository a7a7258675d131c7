// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

template hipError_t attention_forward_32_bits<HipDevice>(const AttentionArgs&, Stream);

}  // namespace Launch
}  // namespace Tessera
