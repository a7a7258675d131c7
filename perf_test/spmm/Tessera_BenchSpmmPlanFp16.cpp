// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmmPlan.hpp"

Tessera::Bench::System Tessera::Bench::spmm_plan_fp16(const SpmmOperands& operands, const SpmmOptions& options) {
  return spmm_plan_of<half_t>(operands, options);
}
