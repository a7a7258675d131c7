// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchSpmvCase.hpp"

void Tessera::Bench::bench_spmv_fp32(const SpmvJob& job) { bench_spmv_types<float, float>(job, Precision::FP32); }
