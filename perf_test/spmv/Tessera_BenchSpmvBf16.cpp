// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchSpmvCase.hpp"

void Tessera::Bench::bench_spmv_bf16(const SpmvJob& job) {
  if (job.options.y_as_operand) {
    bench_spmv_types<bhalf_t, bhalf_t>(job, Precision::BF16);
  } else {
    bench_spmv_types<bhalf_t, float>(job, Precision::BF16);
  }
}
