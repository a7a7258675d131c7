// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmmCase.hpp"

void Tessera::Bench::bench_spmm_fp32(const SpmmJob& job, Precision precision) {
  bench_spmm_types<float, float>(job, precision);
}
