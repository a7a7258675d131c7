// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionShape attention_shape<EmulatedNvidia>(Precision) noexcept;
template Status attention_forward<EmulatedNvidia>(const AttentionArgs&, Stream) noexcept;
template AttentionShape attention_shape<EmulatedAmd>(Precision) noexcept;
template Status attention_forward<EmulatedAmd>(const AttentionArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
