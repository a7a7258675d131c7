// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_ATTENTION_HPP
#define TESSERA_BENCH_ATTENTION_HPP

#include <string>

#include "attention/Tessera_AttentionOptions.hpp"
#include "driver/Tessera_BenchCase.hpp"

namespace Tessera {
namespace Bench {

/// O := softmax(scale Q K^T on the pattern of A) V, or the gradients dQ, dK and dV from dO, O and the log-sum-exp; Q, K
/// and V of equal width, heads side by side, rows contiguous. The numbers of A are not used.
struct AttentionOperands {
  CsrOperand A;
  std::int64_t heads = 1, columns = 0;
  double scale = 1;
  bool backward = false;
  DeviceArray q, k, v, o, lse, d_o, d_q, d_k, d_v;

  ElementType sum_type() const { return A.element == ElementType::Double ? ElementType::Double : ElementType::Float; }
  /// A head of Q, K, V, O or a gradient of one, which has `rows` rows.
  DenseElements head(const DeviceArray& array, std::int64_t rows, std::int64_t index) const {
    return {array.data<char>() + index * rows * columns * static_cast<std::int64_t>(bytes_of(A.element)),
            A.element,
            rows,
            columns,
            columns,
            1};
  }
  /// All heads, one below the other.
  DenseElements all(const DeviceArray& array, std::int64_t rows) const {
    return {array.data<void>(), A.element, heads * rows, columns, columns, 1};
  }
  /// The log-sum-exp of a head, as a matrix of one column.
  DenseElements head_lse(std::int64_t index) const {
    return {lse.data<char>() + index * A.rows * static_cast<std::int64_t>(bytes_of(sum_type())),
            sum_type(),
            A.rows,
            1,
            1,
            1};
  }
};

/// Plans by the type of the operands, compiled in files of their own.
System attention_plan_fp64(const AttentionOperands& operands, const AttentionOptions& options);
System attention_plan_fp32(const AttentionOperands& operands, const AttentionOptions& options);
System attention_plan_fp16(const AttentionOperands& operands, const AttentionOptions& options);
System attention_plan_bf16(const AttentionOperands& operands, const AttentionOptions& options);

/// The transposed pattern, for sums over columns: rows in ascending order, and the entry that each of its entries was.
struct AttentionColumns {
  DeviceArray row_map, rows, source;
  AttentionColumns() = default;
  AttentionColumns(const Exec& space, const BenchMatrix& matrix);
};

/// O and the log-sum-exp by plain loops in double, rounded once: what the backward pass gets.
void attention_inputs(const AttentionOperands& operands);

/// The error of every number of O and of the log-sum-exp, or of dQ, dK and dV, over its bound: that of
/// tests/attention/AttentionReference.hpp, to first order doubled, by plain loops in double that share nothing with any
/// kernel. Gradients are checked as functions of the O and log-sum-exp that they were made of.
/// @param columns  of the backward pass   @param kernel  as the record names it: units round weights to 16 bits
/// @param precision  TF32: forward operands are rounded; others are those of the operands
Verdict check_attention(const AttentionOperands& operands, const AttentionColumns& columns, const std::string& kernel,
                        Precision precision = Precision::FP32);

}  // namespace Bench
}  // namespace Tessera

#endif
