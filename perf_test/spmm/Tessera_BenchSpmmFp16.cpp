// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmmCase.hpp"

void Tessera::Bench::bench_spmm_fp16(const SpmmJob& job) {
  if (job.options.y_as_operand) {
    bench_spmm_types<half_t, half_t>(job, Precision::FP16);
  } else {
    bench_spmm_types<half_t, float>(job, Precision::FP16);
  }
}
