// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_SddmmNarrowRowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status sddmm_narrow_rows<EmulatedNvidia>(const SddmmRowsArgs&, Stream) noexcept;
template Status sddmm_narrow_rows<EmulatedAmd>(const SddmmRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
