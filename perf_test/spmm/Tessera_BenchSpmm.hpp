// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMM_HPP
#define TESSERA_BENCH_SPMM_HPP

#include <string>
#include <vector>

#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchOptions.hpp"
#include "driver/Tessera_BenchReport.hpp"

namespace Tessera {
namespace Bench {

/// Everything about one matrix that depends neither on the precision nor on the number of columns.
struct SpmmJob {
  const BenchOptions& options;
  const BenchMatrix& matrix;
  Report& report;
};

/// All algorithms and baselines, all precisions and numbers of columns, on one matrix.
void bench_spmm(const SpmmJob& job);

/// One precision each, compiled in files of their own. TF32 is FP32's data with another plan.
void bench_spmm_fp64(const SpmmJob& job);
void bench_spmm_fp32(const SpmmJob& job, Precision precision);
void bench_spmm_fp16(const SpmmJob& job);
void bench_spmm_bf16(const SpmmJob& job);

/// One Tessera row of the table.
struct SpmmVariant {
  SpmmAlgorithm algorithm = SpmmAlgorithm::Auto;
  FlashOptions flash{};
  std::string name;   ///< of an ablation's option set
  bool named = true;  ///< on the command line: that it is not supported is a shortcoming of the run
};
/// What --algorithm, --backend, --ablation and --regret ask for, csr first so that the others can be compared with it.
std::vector<SpmmVariant> spmm_variants(const BenchOptions& options, Precision precision);

/// Bytes that an spmm of this size may take on a machine with `memory` bytes: the matrix, a format and the dense
/// operands, with a copy of each where a kernel wants another layout.
/// @return why it does not fit; empty if it does, or if memory is 0 (not known)
std::string too_large(double matrix_bytes, double dense_bytes, double memory, bool host);

}  // namespace Bench
}  // namespace Tessera

#endif
