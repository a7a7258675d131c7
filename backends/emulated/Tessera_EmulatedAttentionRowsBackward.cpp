// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status attention_rows_backward<EmulatedNvidia>(const AttentionRowsBackwardArgs&, Stream) noexcept;
template Status attention_rows_backward<EmulatedAmd>(const AttentionRowsBackwardArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
