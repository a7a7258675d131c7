// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_CHAIN_ATTENTION_ENGINE_HPP
#define TESSERA_ATTENTION_CHAIN_ATTENTION_ENGINE_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "Tessera_Statistics.hpp"
#include "attention/Tessera_SoftmaxOfRows.hpp"
#include "sddmm/Tessera_SddmmInstances.hpp"
#include "spmm/Tessera_SpmmInstances.hpp"

namespace Tessera {
namespace Impl {

/// AttentionAlgorithm::Chain: scores by an SDDMM plan, their softmax where they lie, an SpMM plan of the result. Scores
/// and probabilities are of the sums' type, so that 16-bit operands lose nothing on the way.
template <class Csr>
class ChainAttentionEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using Weights = CsrView<Sum, typename Csr::ordinal_type, typename Csr::size_type, typename Csr::device_type>;
  using Sddmm = PlanBody<SddmmOperation<Csr>>;
  using Spmm = PlanBody<SpmmOperation<Weights>>;

  ChainAttentionEngine(const Exec& space, const Csr& A, const AttentionOptions& options)
      : csr_(A), values_(options.values) {
    scratch_.set_up(nullptr, options.workspace);
    SddmmBodyOptions<Memory> first;
    first.backend = options.backend;
    first.compute = options.compute;
    first.inner_hint = options.dimension_hint;
    first.scale_by_values = options.values == AttentionValues::Scale;
    sddmm_ = std::make_unique<Sddmm>(space, A, first);
    SpmmOptions second;
    second.backend = options.backend;
    if (options.compute == ComputeType::TF32) second.compute = options.compute;  // else of weights
    second.num_columns_hint = options.dimension_hint;
    const typename Weights::values_type unknown =
        Compat::allocate<Kokkos::View<Sum*, typename Csr::device_type>>(space, "Tessera::attention::weights", A.nnz());
    spmm_ = std::make_unique<Spmm>(space, weights(unknown), second);
    Compat::fence(space, "Tessera::attention: weights are released");
  }

  std::int64_t most_scores = std::int64_t{1} << 24;  ///< at once

  std::size_t format_bytes() const { return sddmm_->format_bytes() + spmm_->format_bytes(); }
  /// Scores of one head; what the two plans need is theirs.
  std::size_t workspace_bytes(std::int64_t) const { return ScratchLayout::rounded(csr_.nnz() * sizeof(Sum)); }

  /// There are rows and heads. As many heads at once as have up to most_scores and as scratch has room for, one at
  /// least.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out) const {
    const auto nnz = static_cast<std::int64_t>(csr_.nnz());
    const auto room = std::min<std::size_t>(scratch_.most() / sizeof(Sum), std::numeric_limits<std::int64_t>::max());
    const std::int64_t most = std::min(most_scores, static_cast<std::int64_t>(room));
    const std::int64_t at_once = nnz > 0 ? std::clamp<std::int64_t>(most / nnz, 1, in.heads) : in.heads;
    ScratchLayout layout(scratch_.reserve(space, static_cast<std::size_t>(at_once * nnz) * sizeof(Sum)));
    const BatchVector<Sum> p{layout.take<Sum>(at_once * nnz), nnz, 1, nnz};
    for (std::int64_t h = 0; h < in.heads; h += at_once) {
      AttentionInput<T> some = in;
      AttentionOutput<T> to = out;
      some.heads = std::min(at_once, in.heads - h);
      some.q.matrix = in.q.head(h);
      some.k.matrix = in.k.head(h);
      some.v.matrix = in.v.head(h);
      to.o.matrix = out.o.head(h);
      if (out.lse.data != nullptr) to.lse.data += h * out.lse.head_stride;
      chain(space, scale, some, to, p);
    }
  }

  void update(const Exec& space, const Csr& A) {
    csr_ = A;
    sddmm_->update_values(space, A.values());
  }
  void describe(Statistics& s) const {
    s.launches = sddmm_->statistics().launches + 1 + spmm_->statistics().launches;
    s.format_bytes = s.csr_bytes + format_bytes();
  }

 private:
  Weights weights(const typename Weights::values_type& values) const {
    using Offsets = typename Weights::row_map_type;
    return Weights(csr_.rows(), csr_.cols(), Offsets(csr_.row_map().data(), csr_.row_map().extent(0)),
                   typename Weights::entries_type(csr_.entries().data(), csr_.nnz()), values);
  }

  void chain(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out,
             const BatchVector<Sum>& p) const {
    const std::int64_t nnz = p.size;
    if (nnz > 0) {
      SddmmOutput<Sum> to;
      to.data = p.data;
      to.nnz = nnz;
      to.heads = in.heads;
      to.head_stride = nnz;
      sddmm_->apply(space, Op::NoTrans, static_cast<double>(scale), SddmmInput<T>{in.q, in.k, in.heads, in.heads}, 0.0,
                    to);
    }
    using Softmax = SoftmaxForward<Csr, Sum, Sum>;
    run_softmax("Tessera::attention[softmax]", space,
                Softmax{attention_items(csr_),
                        in.heads,
                        {p.data, nnz, 1, nnz},
                        p,
                        values_ == AttentionValues::Bias ? csr_.values().data() : nullptr,
                        out.lse,
                        Shares(),
                        16});
    const auto span = static_cast<std::size_t>(span_of(in.v.matrix));
    for (std::int64_t h = 0; h < in.heads; ++h) {
      spmm_->update_values(space, typename Weights::values_type(p.data + h * nnz, csr_.nnz()));
      spmm_->apply(space, Op::NoTrans, 1.0, DenseInput<T>{in.v.head(h), span}, 0.0, out.o.head(h));
    }
  }

  Csr csr_;
  AttentionValues values_;
  std::unique_ptr<Sddmm> sddmm_;
  std::unique_ptr<Spmm> spmm_;  ///< its numbers are those of the last head
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
