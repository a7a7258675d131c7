// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ROWS_ATTENTION_ENGINE_HPP
#define TESSERA_ATTENTION_ROWS_ATTENTION_ENGINE_HPP

#include <cstdint>

#include "attention/Tessera_AttentionShares.hpp"
#include "attention/Tessera_WindowAttentionEngine.hpp"

namespace Tessera {
namespace Impl {

/// What kernels by rows ask of rows of dense operands.
inline RowsWanted attention_rows_wanted(const AttentionRowsLimits& limits) { return {limits.columns}; }
/// Whether kernels by rows take operands of so many columns.
inline bool attention_rows_take(const AttentionRowsLimits& limits, std::int64_t d, std::int64_t e) {
  const auto fits = [&](std::int64_t n) {
    return n > 0 && limits.columns > 0 && attention_rows_wanted(limits).columns(n) <= limits.most_columns;
  };
  return fits(d) && fits(e);
}

/// AttentionAlgorithm::Rows: a backend's kernel by rows, in one launch for all heads (two where rows are cut). Operands
/// whose rows are not whole words of sixteen bytes are copied (two launches more); those of more columns than the
/// backend takes go to the portable kernel, in any call.
template <class Csr>
class RowsAttentionEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  static_assert(sizeof(T) >= 4, "of the type of its sums");

  RowsAttentionEngine(const Exec& space, const Csr& A, const AttentionOptions& options, Precision precision,
                      const KernelTable& backend)
      : csr_(A),
        values_(options.values),
        precision_(precision),
        backend_(&backend),
        limits_(backend.attention.rows_limits(precision)),
        shares_(attention_shares(space, pattern_of(A), options.dimension_hint * std::int64_t{sizeof(T)}, &backend)),
        portable_(space, A, options) {
    scratch_.set_up(&backend, options.workspace);
  }

  const AttentionShares<Memory>& shares() const { return shares_; }
  std::size_t format_bytes() const { return shares_.bytes(); }
  /// One head of copies of all operands, and what pieces of cut rows leave.
  std::size_t workspace_bytes(std::int64_t columns) const {
    const std::int64_t whole = attention_rows_wanted(limits_).columns(columns);
    return portable_.workspace_bytes(whole) + ScratchLayout::rounded(partial_numbers(whole) * sizeof(Sum));
  }
  bool fits(std::int64_t d, std::int64_t e) const { return attention_rows_take(limits_, d, e); }

  /// There are rows and heads.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out) const {
    if (!fits(in.q.matrix.columns, in.v.matrix.columns)) return portable_.apply(space, scale, in, out, scratch_);
    const std::size_t partials = partial_numbers(attention_rows_wanted(limits_).columns(in.v.matrix.columns));
    const AttentionForwardOperands<Csr, true> operands(space, in, out, scratch_, static_cast<std::int64_t>(partials),
                                                       attention_rows_wanted(limits_));
    AttentionRowsArgs args = shares_.arguments(csr_, precision_);
    args.partials = operands.partials;
    args.dense = attention_dense<T>(csr_, values_, scale, operands.from, operands.to.o, out.lse);
    run_on_backend(space, {"attention", "rows", precision_},
                   [&](Stream stream) { return backend_->attention.rows_forward(args, stream); });
    operands.finish(space, out);
  }

  void update(const Exec& space, const Csr& A) {
    csr_ = A;
    portable_.update(space, A);
  }
  void describe(Statistics& s) const {
    s.format_bytes = s.csr_bytes + shares_.bytes();
    s.launches = shares_.table.partial_count > 0 ? 2 : 1;
    s.classes = {{"shares", shares_.shares, s.nnz}, {"pieces of cut rows", shares_.table.partial_count, s.nnz}};
  }

 private:
  std::size_t partial_numbers(std::int64_t columns) const {
    return static_cast<std::size_t>(shares_.table.partial_count * AttentionPartials::row_size(columns));
  }
  Csr csr_;
  AttentionValues values_;
  Precision precision_;
  const KernelTable* backend_;
  AttentionRowsLimits limits_;
  AttentionShares<Memory> shares_;
  FusedAttentionEngine<Csr> portable_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
