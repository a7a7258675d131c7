// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_AttentionRowsBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status attention_rows_backward<HipDevice>(const AttentionRowsBackwardArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
