// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spmm/Tessera_BenchSpmmCase.hpp"

void Tessera::Bench::bench_spmm_fp64(const SpmmJob& job) { bench_spmm_types<double, double>(job, Precision::FP64); }
