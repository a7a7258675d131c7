// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_SddmmWindowLaunch.hpp"

namespace Tessera {
namespace Launch {

template SddmmShape sddmm_shape<HipDevice>(Precision) noexcept;
template Status sddmm_windows<HipDevice>(const SddmmWindowArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
