// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_AttentionBackwardLaunch.hpp"

namespace Tessera {
namespace Launch {

#define TESSERA_KERNELS_OF(Device)                                              \
  template AttentionShape attention_backward_shape<Device>(Precision) noexcept; \
  template Status attention_backward<Device>(const AttentionBackwardArgs&, Stream) noexcept;
TESSERA_EACH_EMULATED(TESSERA_KERNELS_OF)

}  // namespace Launch
}  // namespace Tessera
