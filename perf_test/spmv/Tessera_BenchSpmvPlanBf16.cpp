// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchSpmvPlan.hpp"

Tessera::Bench::System Tessera::Bench::spmv_plan_bf16(const SpmvOperands& operands, const SpmvOptions& options) {
  return spmv_plan_of<bhalf_t>(operands, options);
}
