// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_BsrLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status spmv_bsr<EmulatedNvidia>(const SpmvBsrArgs&, Stream) noexcept;
template Status spmv_bsr<EmulatedAmd>(const SpmvBsrArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
