// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_FlashLaunch.hpp"

namespace Tessera {
namespace Launch {

template int flash_depth<EmulatedNvidia>(Precision, int) noexcept;
template int flash_depth<EmulatedAmd>(Precision, int) noexcept;
template Status spmm_flash<EmulatedNvidia>(const SpmmFlashArgs&, Stream) noexcept;
template Status spmm_flash<EmulatedAmd>(const SpmmFlashArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
