// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmv/Tessera_BenchSpmvCase.hpp"

void Tessera::Bench::bench_spmv_fp64(const SpmvJob& job) { bench_spmv_types<double, double>(job, Precision::FP64); }
