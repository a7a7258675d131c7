// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMM_HPP
#define TESSERA_BENCH_SPMM_HPP

#include <string>
#include <vector>

#include "driver/Tessera_BenchCase.hpp"

namespace Tessera {
namespace Bench {

/// One Tessera row of the table.
struct SpmmVariant {
  SpmmAlgorithm algorithm = SpmmAlgorithm::Auto;
  FlashOptions flash{};
  std::string name;   ///< of an ablation's option set
  bool named = true;  ///< on the command line: that it is not supported is a shortcoming of the run
};
/// What --algorithm, --backend, --ablation and --regret ask for, csr first so that the others can be compared with it.
std::vector<SpmmVariant> spmm_variants(const BenchOptions& options, Precision precision);

/// Plans by the type of A, compiled in files of their own; C is of the same type or of float.
System spmm_plan_fp64(const SpmmOperands& operands, const SpmmOptions& options);
System spmm_plan_fp32(const SpmmOperands& operands, const SpmmOptions& options);
System spmm_plan_fp16(const SpmmOperands& operands, const SpmmOptions& options);
System spmm_plan_bf16(const SpmmOperands& operands, const SpmmOptions& options);

/// See spmv_baselines().
std::vector<std::string> spmm_baselines(const SpmmOperands& operands);
/// @throw NotSupported
System make_spmm_baseline(const SpmmOperands& operands, const std::string& name);

/// Bytes that an spmm of this size may take on a machine with `memory` bytes: the matrix, a format and the dense
/// operands, with a copy of each where a kernel wants another layout.
/// @return why it does not fit; empty if it does, or if memory is 0 (not known)
std::string too_large(double matrix_bytes, double dense_bytes, double memory, bool host);

}  // namespace Bench
}  // namespace Tessera

#endif
