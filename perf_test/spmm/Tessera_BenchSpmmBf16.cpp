// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmmCase.hpp"

void Tessera::Bench::bench_spmm_bf16(const SpmmJob& job) {
  if (job.options.y_as_operand) {
    bench_spmm_types<bhalf_t, bhalf_t>(job, Precision::BF16);
  } else {
    bench_spmm_types<bhalf_t, float>(job, Precision::BF16);
  }
}
