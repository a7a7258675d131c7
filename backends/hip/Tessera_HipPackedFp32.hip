// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/hip/Tessera_HipPacked.hpp"

namespace Tessera {
namespace Hip {

Status spmv_packed_fp32(const SpmvPackedArgs& args, Stream stream) noexcept {
  return spmv_packed_in<float>(args, stream);
}

}  // namespace Hip
}  // namespace Tessera
