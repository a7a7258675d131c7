// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMV_HPP
#define TESSERA_BENCH_SPMV_HPP

#include <string>
#include <vector>

#include "driver/Tessera_BenchCase.hpp"

namespace Tessera {
namespace Bench {

/// One Tessera row of the table.
struct SpmvVariant {
  SpmvAlgorithm algorithm = SpmvAlgorithm::Auto;
  DaspOptions dasp{};
  std::string name;  ///< of an ablation's option set
};
/// What --algorithm, --backend, --ablation and --regret ask for, csr first so that the others can be compared with it.
std::vector<SpmvVariant> spmv_variants(const BenchOptions& options, Precision precision);

/// Plans by the type of A, compiled in files of their own; y is of the same type or of float.
System spmv_plan_fp64(const SpmvOperands& operands, const SpmvOptions& options);
System spmv_plan_fp32(const SpmvOperands& operands, const SpmvOptions& options);
System spmv_plan_fp16(const SpmvOperands& operands, const SpmvOptions& options);
System spmv_plan_bf16(const SpmvOperands& operands, const SpmvOptions& options);

/// A, scaled, in blocks of `side`. @throw NotSupported  rows or columns are no multiples
BsrOperand make_bsr(const Job& job, const CsrOperand& A, double scale, int side);
/// A plan of the blocks; double and float.
System spmv_plan_bsr(const SpmvOperands& operands, const SpmvOptions& options);
/// Baselines that know blocks: names, and those of this build. make_blocks_baseline: nothing if the name is another's.
std::vector<std::string> blocks_baseline_names();
std::vector<std::string> blocks_baselines(const SpmvOperands& operands);
bool make_blocks_baseline(const SpmvOperands& operands, const std::string& name, System& system);

/// What Tessera is compared with, each on the arrays that Tessera gets, set up as its authors advise for repeated use.
std::vector<std::string> spmv_baselines(const SpmvOperands& operands);
/// @throw NotSupported
System make_spmv_baseline(const SpmvOperands& operands, const std::string& name);

/// Baselines of another cuSPARSE than the linked one, from this file; nothing if that was done before.
/// @throw BenchError  ExitInput: it cannot be loaded or is no cuSPARSE; ExitNotSupported: not in this build
void load_cusparse(const std::string& file);

}  // namespace Bench
}  // namespace Tessera

#endif
