// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_RowsLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status spmm_rows<EmulatedNvidia>(const SpmmRowsArgs&, Stream) noexcept;
template Status spmm_rows<EmulatedAmd>(const SpmmRowsArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
