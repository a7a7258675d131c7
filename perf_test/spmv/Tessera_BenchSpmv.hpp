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

/// What Tessera is compared with, each on the arrays that Tessera gets, set up as its authors advise for repeated use.
std::vector<std::string> spmv_baselines(const SpmvOperands& operands);
/// @throw NotSupported
System make_spmv_baseline(const SpmvOperands& operands, const std::string& name);

}  // namespace Bench
}  // namespace Tessera

#endif
