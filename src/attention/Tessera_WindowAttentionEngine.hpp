// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_WINDOW_ATTENTION_ENGINE_HPP
#define TESSERA_ATTENTION_WINDOW_ATTENTION_ENGINE_HPP

#include <algorithm>
#include <cstdint>
#include <utility>

#include "Tessera_Statistics.hpp"
#include "attention/Tessera_FusedAttentionEngine.hpp"
#include "core/Tessera_KernelTables.hpp"
#include "core/Tessera_Profile.hpp"
#include "formats/windows/Tessera_SplitWindows.hpp"

namespace Tessera {
namespace Impl {

/// Operands as backends take them. Forward O and the log-sum-exp are written, backward they are read.
template <class T, class Csr, class O, class L>
AttentionDense attention_dense(const Csr& A, AttentionValues values, AttentionSum<T> scale, const AttentionInput<T>& in,
                               const DenseBatch<O>& o, const BatchVector<L>& lse) {
  AttentionDense d;
  d.q = in.q.matrix.data;
  d.k = in.k.matrix.data;
  d.v = in.v.matrix.data;
  d.o = const_cast<T*>(o.matrix.data);
  d.d = in.q.matrix.columns;
  d.e = in.v.matrix.columns;
  d.ldq = in.q.matrix.row_stride;
  d.ldk = in.k.matrix.row_stride;
  d.ldv = in.v.matrix.row_stride;
  d.ldo = o.matrix.row_stride;
  d.heads = in.heads;
  d.q_head = in.q.head_stride;
  d.k_head = in.k.head_stride;
  d.v_head = in.v.head_stride;
  d.o_head = o.head_stride;
  d.lse = const_cast<AttentionSum<T>*>(lse.data);
  d.lse_row = lse.stride;
  d.lse_head = lse.head_stride;
  if (values == AttentionValues::Bias) d.bias = A.values().data();
  if (values == AttentionValues::Scale) d.factor = A.values().data();
  d.scale = static_cast<double>(scale);
  return d;
}

/// Whether units of this shape take Q and V of so many columns. two: in windows of twice the height.
template <class T>
bool attention_units_take(const AttentionShape& shape, bool two, std::int64_t d, std::int64_t e) {
  const std::int64_t most = two ? shape.most_columns_of_two : shape.most_columns;
  return d > 0 && e > 0 && d >= shape.least_inner && rows_of_whole_words<T>.columns(std::max(d, e)) <= most;
}

/// AttentionAlgorithm::Fused on a backend's matrix units, in one launch for all heads (two where windows are split).
/// Operands of 16 or 32 bits with columns from what the backend wants up to what it takes, copied (two launches more)
/// where their rows are not whole words of sixteen bytes; others go to the portable kernel, in any call.
template <class Csr>
class WindowAttentionEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using Format = Experimental::SplitWindows<Memory>;
  static_assert(sizeof(T) <= 4, "what units take");

  WindowAttentionEngine(const Exec& space, const Csr& A, const AttentionOptions& options, Format format,
                        const KernelTable& backend)
      : csr_(A), values_(options.values), backend_(&backend), format_(std::move(format)), portable_(space, A, options) {
    scratch_.set_up(&backend, options.workspace);
  }

  const Format& format() const { return format_; }
  const KernelTable& backend() const { return *backend_; }
  std::size_t format_bytes() const { return format_.format_bytes(); }
  /// One head of copies of all operands, and what parts of split windows leave.
  std::size_t workspace_bytes(std::int64_t columns) const {
    const std::int64_t whole = rows_of_whole_words<T>.columns(columns);
    return portable_.workspace_bytes(whole) + ScratchLayout::rounded(partial_floats(whole) * sizeof(float));
  }
  /// Whether the units take operands of so many columns.
  bool fits(std::int64_t d, std::int64_t e) const {
    return attention_units_take<T>(format_.shape, format_.height == 2, d, e);
  }

  /// There are rows and heads.
  void apply(const Exec& space, Sum scale, const AttentionInput<T>& in, const AttentionOutput<T>& out) const {
    if (!fits(in.q.matrix.columns, in.v.matrix.columns)) return portable_.apply(space, scale, in, out, scratch_);
    const std::size_t partials = partial_floats(rows_of_whole_words<T>.columns(in.v.matrix.columns));
    const AttentionForwardOperands<Csr, true> operands(space, in, out, scratch_, static_cast<std::int64_t>(partials),
                                                       rows_of_whole_words<T>);
    AttentionArgs args = format_.arguments();
    args.partials = operands.partials;
    args.dense = attention_dense<T>(csr_, values_, scale, operands.from, operands.to.o, out.lse);
    run_on_backend(space, {"attention", "forward", format_.precision},
                   [&](Stream stream) { return backend_->attention.forward(args, stream); });
    operands.finish(space, out);
  }

  void update(const Exec& space, const Csr& A) {
    csr_ = A;
    portable_.update(space, A);
  }
  void describe(Statistics& s) const {
    s.atom = format_.shape.atom;
    s.matrix_unit_share = s.nnz > 0 ? 1 : 0;
    s.stored = s.nnz;  // slots without an entry are a bit each
    s.format_bytes = s.csr_bytes + format_.format_bytes();
    s.launches = format_.partial_count > 0 ? 2 : 1;
    s.classes = {{"windows", format_.windows, s.nnz},
                 {"vectors", format_.column_vectors, s.nnz},
                 {"blocks", format_.blocks, s.nnz},
                 {"parts of split windows", format_.partial_count, s.nnz}};
  }

 private:
  std::size_t partial_floats(std::int64_t columns) const {
    const std::int64_t row = AttentionPartials::row_size(columns);
    return static_cast<std::size_t>(format_.partial_count * format_.window_rows() * row);
  }
  Csr csr_;
  AttentionValues values_;
  const KernelTable* backend_;
  Format format_;
  FusedAttentionEngine<Csr> portable_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
