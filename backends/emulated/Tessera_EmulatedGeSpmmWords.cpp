// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/emulated/Tessera_EmulatedDevice.hpp"
#include "backends/launch/Tessera_GeSpmmWordsLaunch.hpp"

namespace Tessera {
namespace Launch {

template Status spmm_gespmm_words<EmulatedNvidia>(const GeSpmmArgs&, Stream) noexcept;
template Status spmm_gespmm_words<EmulatedAmd>(const GeSpmmArgs&, Stream) noexcept;

}  // namespace Launch
}  // namespace Tessera
