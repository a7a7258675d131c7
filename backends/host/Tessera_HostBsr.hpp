// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_BSR_HPP
#define TESSERA_HOST_HOST_BSR_HPP

#include "backends/interface/Tessera_BsrArgs.hpp"

/// \file
/// y := alpha A x + beta y from blocks on CPUs, compiled once for all programs.
///
/// Bytes: b^2 v + 4 per block, an offset per block row, x and y once. A column index and b numbers of x serve b^2
/// entries, whose b sums are independent of each other. Deterministic: a block row is one thread's.

namespace Tessera {

/// Block rows [begin, end), blocks of any side. Reads what SpmvBsrArgs names but `streaming`.
void host_bsr(const SpmvBsrArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace Tessera

#endif
