// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_CSR_ROWS_HPP
#define TESSERA_HOST_HOST_CSR_ROWS_HPP

#include <cstddef>
#include <cstdint>

#include "backends/interface/Tessera_SpmvArgs.hpp"

/// \file
/// Compressed rows times several vectors on hosts, an entry read once for all or many of them: compiled once, so that
/// plans of SpMV need not. Threads are the caller's.

namespace Tessera {

/// y := alpha A x + beta y. Number j of a row of x is at x + i x_stride + j x_column_stride; these are
/// neighbours (LayoutRight, or a copy) but where all three are double, or all float.
struct HostCsrRowsArgs {
  const void* row_map = nullptr;
  int offset_bytes = 4;  ///< 4 or 8; signed or not: none is negative
  const std::int32_t* entries = nullptr;
  const void* values = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t columns = 2;    ///< at least 2
  std::int64_t x_columns = 0;  ///< numbers of a row of x that may be read, zeros behind `columns`; 0: `columns`
  std::int64_t x_stride = 2, x_column_stride = 1, y_stride = 2, y_column_stride = 1;
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

/// Memory of the calling thread for a copy of x, aligned to 64 bytes; the same at the next call, as what allocators
/// give back to the system costs a fault per page at each product. Null: there is none.
void* host_csr_rows_room(std::size_t bytes);

}  // namespace Tessera

#endif
