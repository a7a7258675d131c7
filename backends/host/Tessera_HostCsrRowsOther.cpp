// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "backends/host/Tessera_HostCsrRowsKernel.hpp"

namespace Tessera {

// The types whose text is that of FP64 and FP16.
void host_csr_rows_fp32(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  CsrRows<float, float, float>(args).run(begin, end);
}
void host_csr_rows_bf16(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  run_narrow_rows<bhalf_t>(args, begin, end);
}
void host_csr_rows_fp32_with_fp64(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end) {
  CsrRows<float, double, double>(args).run(begin, end);
}

}  // namespace Tessera
