// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_DaspLaunch.hpp"

namespace Tessera {
namespace Launch {

template const DaspGeometry* dasp_geometry<EmulatedNvidia>(Precision) noexcept;
template const DaspGeometry* dasp_geometry<EmulatedAmd>(Precision) noexcept;
template Status spmv_dasp<EmulatedNvidia>(const SpmvDaspArgs&, Stream) noexcept;
template Status spmv_dasp<EmulatedAmd>(const SpmvDaspArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
