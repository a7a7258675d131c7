// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_FUSED_ATTENTION_ENGINE_HPP
#define TESSERA_ATTENTION_FUSED_ATTENTION_ENGINE_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "Tessera_Statistics.hpp"
#include "attention/Tessera_AttentionForwardOperands.hpp"
#include "attention/Tessera_AttentionHost.hpp"
#include "attention/Tessera_AttentionTeams.hpp"
#include "attention/Tessera_SoftmaxOfRows.hpp"

namespace Tessera {
namespace Impl {

/// AttentionAlgorithm::Fused, by the portable kernels.
template <class Csr>
class FusedAttentionEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;

  FusedAttentionEngine(const Exec& space, const Csr& A, const AttentionOptions& options)
      : csr_(A), values_(options.values) {
    scratch_.set_up(nullptr, options.workspace);
    if constexpr (Compat::is_host_v<Exec>) long_rows_ = AttentionLongRows(space, A);
  }

  std::size_t format_bytes() const { return long_rows_.bytes(); }
  /// One head of Q, K, V and O, if their rows are not contiguous, and what pieces of long rows add up.
  std::size_t workspace_bytes(std::int64_t columns) const { return copy_bytes(columns) + piece_bytes(columns); }

  /// There are rows and heads.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out) const {
    apply(space, scale, in, out, scratch_);
  }
  /// In the scratch of the engine that this one stands in for, which knows on what instance that is in use.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out,
             const PlanScratch<Exec, Memory>& scratch) const {
    const std::int64_t numbers = Forward::numbers(in.v.matrix.columns), pieces = long_rows_.numbers(numbers);
    // A caller's workspace that has no room for pieces is no error: rows stay whole.
    const std::size_t bytes = workspace_bytes(std::max(in.q.matrix.columns, in.v.matrix.columns));
    const bool cuts = pieces > 0 && scratch.offers(static_cast<std::size_t>(in.heads) * bytes);
    const AttentionForwardOperands<Csr, false> operands(space, in, out, scratch, cuts ? pieces : 0);
    const AttentionInput<T>& from = operands.from;
    const AttentionOutput<T>& to = operands.to;
    const AttentionScores<T> scores{csr_.values().data(), values_, scale};
    if constexpr (Compat::is_host_v<Exec>) {
      const auto items = attention_items(csr_);
      const Shares shares = items.shares(space, in.heads);
      const int vector = host_row_bytes<Sum>(std::max(in.q.matrix.columns, in.v.matrix.columns));
      static const std::string label("Tessera::attention[fused]"), cut_label("Tessera::attention[fused] cut rows");
      const auto cut = long_rows_.cut(cuts ? operands.partials : nullptr, numbers);
      const Forward forward{items, scores, from, to, shares, vector, cut};
      for_each_share(label, space, shares, AttentionShare<Forward>{forward});
      for_each_cut_row(cut_label, space, in.heads, cut,
                       [=](std::int64_t head, std::int64_t index) { forward.finish(head, index); });
    } else {
      AttentionTeamForward<Csr>{CsrArrays<Csr>(csr_), scores, from, to}.run(space);
    }
    operands.finish(space, out);
  }

  void update(const Exec&, const Csr& A) { csr_ = A; }
  void describe(Statistics& s) const {
    if (long_rows_.count() == 0) return;
    s.launches = 2;
    s.classes = {{"cut rows", static_cast<long long>(long_rows_.count()), 0}};
  }

 private:
  using Forward = AttentionHostForward<Csr>;
  std::size_t piece_bytes(std::int64_t columns) const {
    return ScratchLayout::rounded(static_cast<std::size_t>(long_rows_.numbers(Forward::numbers(columns))) *
                                  sizeof(Sum));
  }
  std::size_t copy_bytes(std::int64_t columns) const {
    const auto m = static_cast<std::int64_t>(csr_.rows()), n = static_cast<std::int64_t>(csr_.cols());
    const auto one = [&](std::int64_t rows) {
      return ScratchLayout::rounded(static_cast<std::size_t>(rows * Dense<T>::padded(columns)) * sizeof(T));
    };
    return 2 * one(m) + 2 * one(n);
  }

  Csr csr_;
  AttentionValues values_;
  AttentionLongRows long_rows_;  ///< hosts
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
