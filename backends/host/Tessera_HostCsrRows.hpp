// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_CSR_ROWS_HPP
#define TESSERA_HOST_HOST_CSR_ROWS_HPP

#include <cstdint>

#include "backends/interface/Tessera_SpmvArgs.hpp"

/// \file
/// Compressed rows times several vectors whose numbers of a row are neighbours (LayoutRight), on hosts: compiled once,
/// so that plans of SpMV need not. Threads are the caller's.

namespace Tessera {

/// y := alpha A x + beta y. x: `columns` numbers from x + i x_stride on.
struct HostCsrRowsArgs {
  const void* row_map = nullptr;
  int offset_bytes = 4;  ///< 4 or 8
  const std::int32_t* entries = nullptr;
  const void* values = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t columns = 2;  ///< at least 2
  std::int64_t x_stride = 2, y_stride = 2, y_column_stride = 1;
  ElementType y_type = ElementType::Double;  ///< of 16-bit matrices float or their own
  double alpha = 1, beta = 0;
};

/// Rows [begin, end). Entries are added in two or four sums per row; results may differ between CPUs with vectors of
/// different widths, never between runs or numbers of threads.
using HostCsrRowsRun = void (*)(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);
void host_csr_rows_fp64(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);
void host_csr_rows_fp32(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);
void host_csr_rows_fp16(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);
void host_csr_rows_bf16(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);
void host_csr_rows_fp32_with_fp64(const HostCsrRowsArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace Tessera

#endif
