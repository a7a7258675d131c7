// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionRowsLimits attention_rows_limits<EmulatedNvidia>(Precision) noexcept;
template Status attention_rows_forward<EmulatedNvidia>(const AttentionRowsArgs&, Stream) noexcept;
template AttentionRowsLimits attention_rows_limits<EmulatedAmd>(Precision) noexcept;
template Status attention_rows_forward<EmulatedAmd>(const AttentionRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
