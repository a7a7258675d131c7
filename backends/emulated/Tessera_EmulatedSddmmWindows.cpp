// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_SddmmWindowLaunch.hpp"

namespace Tessera {
namespace Launch {

template SddmmShape sddmm_shape<EmulatedNvidia>(Precision) noexcept;
template Status sddmm_windows<EmulatedNvidia>(const SddmmWindowArgs&, Stream) noexcept;
template SddmmShape sddmm_shape<EmulatedAmd>(Precision) noexcept;
template Status sddmm_windows<EmulatedAmd>(const SddmmWindowArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
