// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/cuda/Tessera_CudaPacked.cuh"

namespace Tessera {
namespace Cuda {

Status spmv_packed_fp64(const SpmvPackedArgs& args, Stream stream) noexcept {
  return spmv_packed_in<double>(args, stream);
}

}  // namespace Cuda
}  // namespace Tessera
