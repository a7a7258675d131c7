// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ROWS_ATTENTION_BACKWARD_HPP
#define TESSERA_ATTENTION_ROWS_ATTENTION_BACKWARD_HPP

#include <algorithm>
#include <cstdint>

#include "attention/Tessera_AttentionGradientOperands.hpp"
#include "attention/Tessera_RowsAttentionEngine.hpp"
#include "core/Tessera_Selection.hpp"

namespace Tessera {
namespace Impl {

/// The backend whose gradients by rows a plan of a type takes, asked for or the device's own; null: none.
template <class Csr>
const KernelTable* attention_rows_backend(Backend option) {
  if (!attention_rows_read<Csr>) return nullptr;
  const BackendSelection<typename Csr::execution_space> place(option);
  if (place.forced() == Backend::Kokkos || place.forced() == Backend::Reference) return nullptr;
  if ((place.host() && !place.emulated()) || !place.why_not().empty()) return nullptr;
  const KernelTable& table = kernel_table(place.backend());
  if (table.attention.rows_limits == nullptr) return nullptr;
  return table.attention.rows_limits(ScalarTraits<typename Csr::value_type>::precision).columns > 0 ? &table : nullptr;
}

/// The gradients of attention by a backend's kernels by rows: dQ and d_values by rows of the pattern, then dK and dV by
/// those of the transposed one. Two launches, one more for each where rows are cut. Operands as forward.
template <class Csr>
class RowsAttentionBackward {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Scratch = PlanScratch<Exec, Memory>;

  /// @param turned  the transposed pattern   @param forward  shares of the rows, if they were made; null
  RowsAttentionBackward(const Exec& space, const Csr& A, const Csr& turned, const AttentionShares<Memory>* forward,
                        const AttentionOptions& options, const KernelTable& backend)
      : backend_(&backend), kind_(options.values), limits_(backend.attention.rows_limits(precision)) {
    const std::int64_t row_bytes = options.dimension_hint * std::int64_t{sizeof(T)};
    own_rows_ = forward == nullptr;
    rows_ = forward != nullptr ? *forward : attention_shares(space, pattern_of(A), row_bytes, backend_);
    columns_ = attention_shares(space, pattern_of(turned), row_bytes, backend_);
  }

  std::size_t bytes() const { return columns_.bytes() + (own_rows_ ? rows_.bytes() : 0); }
  void describe(Statistics& s) const {
    s.classes.push_back({"shares of columns", columns_.shares, columns_.nnz});
    s.classes.push_back({"pieces of cut columns", columns_.table.partial_count, columns_.nnz});
  }
  bool fits(std::int64_t d, std::int64_t e) const { return attention_rows_take(limits_, d, e); }

  /// There are heads, and fits(). source: the entry that each entry of `turned` was.
  template <class Source>
  void apply(const Exec& space, const Csr& A, const Csr& turned, const Source& source, AttentionSum<T> scale,
             const AttentionInput<T>& in, const AttentionGradients<T>& g, const Scratch& scratch) const {
    const std::int64_t d = attention_rows_wanted(limits_).columns(in.q.matrix.columns),
                       e = attention_rows_wanted(limits_).columns(in.v.matrix.columns);
    const AttentionGradientOperands<Csr> operands(
        space, in, g, scratch, std::max(rows_.table.partial_count * d, columns_.table.partial_count * (d + e)),
        attention_rows_wanted(limits_));
    for (const bool by_columns : {false, true}) {
      AttentionRowsBackwardArgs a;
      a.pattern = by_columns ? columns_.arguments(turned, precision) : rows_.arguments(A, precision);
      a.pattern.partials = operands.partials;
      a.pattern.dense = attention_dense<T>(A, kind_, scale, operands.from, operands.to.o, operands.to.lse);
      if (by_columns && kind_ != AttentionValues::None) a.source = source.data();
      operands.set(a, by_columns);
      if (a.pattern.share_count == 0) continue;
      run_on_backend(space, {"attention", by_columns ? "backward rows of columns" : "backward rows", precision},
                     [&](Stream stream) { return backend_->attention.rows_backward(a, stream); });
    }
    operands.finish(space, g);
  }

 private:
  static constexpr Precision precision = ScalarTraits<T>::precision;
  const KernelTable* backend_;
  AttentionValues kind_;
  AttentionRowsLimits limits_;
  AttentionShares<Memory> rows_, columns_;
  bool own_rows_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
