// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_AttentionBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionShape attention_backward_shape<HipDevice>(Precision) noexcept;
template Status attention_backward<HipDevice>(const AttentionBackwardArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
