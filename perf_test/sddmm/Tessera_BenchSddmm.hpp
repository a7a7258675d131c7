// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SDDMM_HPP
#define TESSERA_BENCH_SDDMM_HPP

#include <memory>
#include <string>
#include <vector>

#include "driver/Tessera_BenchCase.hpp"
#include "sddmm/Tessera_SddmmOptions.hpp"

namespace Tessera {
namespace Bench {

/// P := alpha <X_i, Y_j> + beta P; X, Y in LayoutRight.
struct SddmmOperands {
  CsrOperand S;
  ElementType p_type = ElementType::Double;
  std::int64_t inner = 0;
  DeviceArray X, Y, P;
  double alpha = 1, beta = 0;

  DenseElements x_elements() const { return {X.data<void>(), S.element, S.rows, inner, inner, 1}; }
  DenseElements y_elements() const { return {Y.data<void>(), S.element, S.cols, inner, inner, 1}; }
  /// As a matrix of one row.
  DenseElements p_elements(const DeviceArray& p) const { return {p.data<void>(), p_type, 1, S.nnz(), S.nnz(), 1}; }
};

/// An SpMM plan whose windows SDDMM takes: made by the first plan that asks for it, so that the median of several
/// set-ups is that of SDDMM alone.
struct SharedWindows {
  std::shared_ptr<const void> plan;
};

/// Plans by the type of the pattern, compiled in files of their own; P is of the same type or of float.
/// @param windows  null: of the plan's own
System sddmm_plan_fp64(const SddmmOperands& operands, const SddmmOptions& options, SharedWindows* windows);
System sddmm_plan_fp32(const SddmmOperands& operands, const SddmmOptions& options, SharedWindows* windows);
System sddmm_plan_fp16(const SddmmOperands& operands, const SddmmOptions& options, SharedWindows* windows);
System sddmm_plan_bf16(const SddmmOperands& operands, const SddmmOptions& options, SharedWindows* windows);

/// See spmv_baselines().
std::vector<std::string> sddmm_baselines(const SddmmOperands& operands);
/// @throw NotSupported
System make_sddmm_baseline(const SddmmOperands& operands, const std::string& name);
/// cuSPARSE's generic SDDMM on the caller's CSR arrays, with its preprocessing call. @throw NotSupported
System make_cusparse_sddmm(const SddmmOperands& operands);
/// A plain loop over CSR whose inner loop the compiler makes vectors of: what a user writes first.
System make_csr_loop_sddmm(const SddmmOperands& operands);

/// The error of every number of P over its bound, as check_spmm has it with K for the entries of a row.
/// @param first  P before the product; without data: what fill_dense makes of `seed`
Verdict check_sddmm(const SddmmOperands& operands, const DenseElements& first, std::uint64_t seed, Precision precision,
                    const std::string& kernel);

}  // namespace Bench
}  // namespace Tessera

#endif
