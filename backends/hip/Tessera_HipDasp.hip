// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipDevice.hpp"
#include "backends/launch/Tessera_DaspLaunch.hpp"

namespace Tessera {
namespace Launch {

template const DaspGeometry* dasp_geometry<HipDevice>(Precision) noexcept;
template Status spmv_dasp<HipDevice>(const SpmvDaspArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
