// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_GeSpmmWordsLaunch.hpp"

namespace Tessera {
namespace Launch {

#define TESSERA_KERNELS_OF(Device) template Status spmm_gespmm_words<Device>(const GeSpmmArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
