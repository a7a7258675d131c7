// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPGEMM_HPP
#define TESSERA_BENCH_SPGEMM_HPP

#include <memory>
#include <string>
#include <vector>

#include "Tessera_Config.hpp"
#include "driver/Tessera_BenchCase.hpp"
#include "spgemm/Tessera_SpgemmOptions.hpp"

namespace Tessera {
namespace Bench {

/// C as the last product left it.
struct SpgemmOutput {
  DeviceArray row_map, entries, values;
  bool sorted = true;  ///< columns ascend in every row
};

/// C := A B. All of a product is timed: looking at the matrices, both phases, the allocation of C.
struct SpgemmOperands {
  CsrOperand A, B;
  std::shared_ptr<SpgemmOutput> C = std::make_shared<SpgemmOutput>();
};

/// Plans by the type of the matrices, compiled in files of their own.
System spgemm_plan_fp64(const SpgemmOperands& operands, const SpgemmOptions& options);
System spgemm_plan_fp32(const SpgemmOperands& operands, const SpgemmOptions& options);

#if defined(TESSERA_HAVE_KOKKOSKERNELS)
/// KokkosSparse::spgemm_symbolic and spgemm_numeric: double, offsets of 32 bits, hosts. Its C is not sorted.
bool kokkos_kernels_has_spgemm(const SpgemmOperands& operands);
System kokkos_kernels_spgemm(const SpgemmOperands& operands);
#endif

/// Rows of C against plain sums in long double: every row or, of more than two million products, rows at equal
/// distances; each number within the bound of its products, and no column missing, too many or, where C says that it is
/// sorted, out of order.
Verdict check_spgemm(const SpgemmOperands& operands);

}  // namespace Bench
}  // namespace Tessera

#endif
