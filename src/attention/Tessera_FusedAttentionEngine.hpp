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

  FusedAttentionEngine(const Exec&, const Csr& A, const AttentionOptions& options) : csr_(A), values_(options.values) {
    scratch_.set_up(nullptr, options.workspace);
  }

  std::size_t format_bytes() const { return 0; }
  /// One head of Q, K, V and O, if their rows are not contiguous.
  std::size_t workspace_bytes(std::int64_t columns) const {
    const auto m = static_cast<std::int64_t>(csr_.rows()), n = static_cast<std::int64_t>(csr_.cols());
    const auto one = [&](std::int64_t rows) {
      return ScratchLayout::rounded(static_cast<std::size_t>(rows * Dense<T>::padded(columns)) * sizeof(T));
    };
    return 2 * one(m) + 2 * one(n);
  }

  /// There are rows and heads.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out) const {
    apply(space, scale, in, out, scratch_);
  }
  /// In the scratch of the engine that this one stands in for, which knows on what instance that is in use.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out,
             const PlanScratch<Exec, Memory>& scratch) const {
    const AttentionForwardOperands<Csr, false> operands(space, in, out, scratch);
    const AttentionInput<T>& from = operands.from;
    const AttentionOutput<T>& to = operands.to;
    const AttentionScores<T> scores{csr_.values().data(), values_, scale};
    if constexpr (Compat::is_host_v<Exec>) {
      using Forward = AttentionHostForward<Csr>;
      const auto items = attention_items(csr_);
      const Shares shares = items.shares(space, in.heads);
      const int vector = host_row_bytes<Sum>(std::max(in.q.matrix.columns, in.v.matrix.columns));
      static const std::string label("Tessera::attention[fused]");
      for_each_share(label, space, shares, AttentionShare<Forward>{Forward{items, scores, from, to, shares, vector}});
    } else {
      AttentionTeamForward<Csr>{CsrArrays<Csr>(csr_), scores, from, to}.run(space);
    }
    operands.finish(space, out);
  }

  void update(const Exec&, const Csr& A) { csr_ = A; }
  void describe(Statistics&) const {}

 private:
  Csr csr_;
  AttentionValues values_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
