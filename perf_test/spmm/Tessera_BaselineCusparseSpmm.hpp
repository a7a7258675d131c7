// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BASELINE_CUSPARSE_SPMM_HPP
#define TESSERA_BASELINE_CUSPARSE_SPMM_HPP

#include "spmv/Tessera_BaselineCusparse.hpp"

namespace Tessera {
namespace Bench {

/// cuSPARSE's generic SpMM on the caller's CSR arrays, with its preprocessing call; B and C in the caller's layout.
/// 16-bit operands are summed in FP32, as Tessera does. @throw NotSupported
System make_cusparse_spmm(const SpmmOperands& operands, cusparseSpMMAlg_t algorithm, const char* name);

}  // namespace Bench
}  // namespace Tessera

#endif
