// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_AttentionLaunch.hpp"

namespace Tessera {
namespace Launch {

template AttentionShape attention_shape<HipDevice>(Precision) noexcept;
template Status attention_forward<HipDevice>(const AttentionArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
