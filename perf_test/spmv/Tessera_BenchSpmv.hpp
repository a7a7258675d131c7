// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMV_HPP
#define TESSERA_BENCH_SPMV_HPP

#include <vector>

#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchOptions.hpp"
#include "driver/Tessera_BenchReport.hpp"

namespace Tessera {
namespace Bench {

/// Everything about one matrix that does not depend on the precision.
struct SpmvJob {
  const BenchOptions& options;
  const BenchMatrix& matrix;
  const std::vector<double>& x;
  const std::vector<double>& y;  ///< before the product; only looked at if beta is not 0
  Report& report;
};

/// All algorithms and baselines, all precisions, on one matrix.
void bench_spmv(const SpmvJob& job);

/// One precision each, compiled in files of their own.
void bench_spmv_fp64(const SpmvJob& job);
void bench_spmv_fp32(const SpmvJob& job);
void bench_spmv_fp16(const SpmvJob& job);
void bench_spmv_bf16(const SpmvJob& job);

/// One Tessera row of the table.
struct SpmvVariant {
  SpmvAlgorithm algorithm = SpmvAlgorithm::Auto;
  DaspOptions dasp{};
  std::string name;  ///< of an ablation's option set
};
/// What --algorithm, --backend, --ablation and --regret ask for, csr first so that the others can be compared with it.
std::vector<SpmvVariant> spmv_variants(const BenchOptions& options, Precision precision);

}  // namespace Bench
}  // namespace Tessera

#endif
