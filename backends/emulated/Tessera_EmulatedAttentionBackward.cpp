// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionShape attention_backward_shape<EmulatedNvidia>(Precision) noexcept;
template Status attention_backward<EmulatedNvidia>(const AttentionBackwardArgs&, Stream) noexcept;
template AttentionShape attention_backward_shape<EmulatedAmd>(Precision) noexcept;
template Status attention_backward<EmulatedAmd>(const AttentionBackwardArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
