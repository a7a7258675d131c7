// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionRowsLimits attention_rows_limits<HipDevice>(Precision) noexcept;
template Status attention_rows_forward<HipDevice>(const AttentionRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
