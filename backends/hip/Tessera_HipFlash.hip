// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_FlashLaunch.hpp"

namespace Tessera {
namespace Launch {

template int flash_depth<HipDevice>(Precision, int) noexcept;
template Status spmm_flash<HipDevice>(const SpmmFlashArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
