// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_WINDOW_ATTENTION_BACKWARD_HPP
#define TESSERA_ATTENTION_WINDOW_ATTENTION_BACKWARD_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "attention/Tessera_AttentionRules.hpp"
#include "attention/Tessera_WindowAttentionEngine.hpp"
#include "core/Tessera_Profile.hpp"
#include "core/Tessera_Transpose.hpp"

namespace Tessera {
namespace Impl {

/// Places of entries as the backends have them.
template <class Source, class Entries>
struct NarrowEntries {
  Source source;
  Entries entries;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t e) const {
    entries(e) = static_cast<std::uint32_t>(source(e));
  }
};

/// The gradients of attention on a backend's matrix units: dQ and d_values by windows of rows, those of the forward
/// pass where they are low enough, then dK and dV by windows of the transposed pattern. Two launches, one more for each
/// where windows are split. Operands as forward; columns up to 128, in windows of twice the height 64.
template <class Csr>
class WindowAttentionBackward {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Format = Experimental::SplitWindows<Memory>;
  using Scratch = PlanScratch<Exec, Memory>;
  static_assert(sizeof(T) == 2, "what units take");

  /// @param turned  the transposed pattern   @param source  the entry that each of its entries was
  template <class Source>
  WindowAttentionBackward(const Exec& space, const Csr& A, const Csr& turned, const Source& source,
                          const WindowAttentionEngine<Csr>& forward, const AttentionOptions& options)
      : backend_(&forward.backend()),
        kind_(options.values),
        shape_(backend_->attention.backward_shape(forward.format().precision)),
        rows_(forward.format()) {
    const Precision precision = rows_.precision;
    if (rows_.height == 2 && options.dimension_hint > shape_.most_columns_of_two) {
      rows_ = split_windows(space, pattern_of(A), shape_, 1, precision, 0, backend_);
      own_rows_ = true;
    }
    const int height = attention_window_height(shape_, spmm_features(space, turned, backend_), options);
    columns_ = split_windows(space, pattern_of(turned), shape_, height, precision, 0, backend_);
    if (kind_ != AttentionValues::None && A.nnz() > 0) keep_entries(space, source);
  }

  std::size_t bytes() const {
    return columns_.format_bytes() + (own_rows_ ? rows_.format_bytes() : 0) + 4 * entries_.extent(0);
  }
  void describe(Statistics& s) const {
    s.classes.push_back({"windows of columns", columns_.windows, columns_.nnz});
    s.classes.push_back({"vectors of columns", columns_.column_vectors, columns_.nnz});
    s.classes.push_back({"parts of split windows of columns", columns_.partial_count, columns_.nnz});
  }
  bool fits(std::int64_t d, std::int64_t e) const {
    const bool two = rows_.height == 2 || columns_.height == 2;
    const std::int64_t most = two ? shape_.most_columns_of_two : shape_.most_columns;
    return d > 0 && e > 0 && d % 8 == 0 && e % 8 == 0 && std::max(d, e) <= most;
  }

  /// There are heads, and fits().
  void apply(const Exec& space, const Csr& A, AttentionSum<T> scale, const AttentionInput<T>& in,
             const AttentionGradients<T>& g, const Scratch& scratch) const {
    using In = ContiguousRows<const T, true>;
    using Out = ContiguousRows<T, true>;
    const std::int64_t heads = in.heads, d = in.q.matrix.columns, e = in.v.matrix.columns;
    DenseBatch<T> q, k, v, o, d_o, d_q, d_k, d_v;
    AttentionRowFacts* facts = nullptr;
    float* partials = nullptr;
    const auto lay_out = [&](ScratchLayout layout) {
      facts = layout.template take<AttentionRowFacts>(heads * in.q.matrix.rows);
      q = In::place(layout, in.q, heads);
      k = In::place(layout, in.k, heads);
      v = In::place(layout, in.v, heads);
      o = In::place(layout, g.o, heads);
      d_o = In::place(layout, g.d_o, heads);
      d_q = Out::place(layout, g.d_q, heads);
      d_k = Out::place(layout, g.d_k, heads);
      d_v = Out::place(layout, g.d_v, heads);
      // One pass after the other has them.
      partials =
          layout.template take<float>(heads * std::max(partial_rows(rows_) * d, partial_rows(columns_) * (d + e)));
      return layout.bytes();
    };
    const std::size_t bytes = lay_out(ScratchLayout());
    lay_out(ScratchLayout(scratch.reserve(space, bytes)));
    const AttentionInput<T> from{In::read(space, "Tessera::attention[pack Q]", in.q, q, heads),
                                 In::read(space, "Tessera::attention[pack K]", in.k, k, heads),
                                 In::read(space, "Tessera::attention[pack V]", in.v, v, heads), heads};
    AttentionGradients<T> to = g;
    to.o = In::read(space, "Tessera::attention[pack O]", g.o, o, heads);
    to.d_o = In::read(space, "Tessera::attention[pack dO]", g.d_o, d_o, heads);
    to.d_q = Out::write(g.d_q, d_q);
    to.d_k = Out::write(g.d_k, d_k);
    to.d_v = Out::write(g.d_v, d_v);
    if constexpr (Compat::is_host_v<Exec>) Compat::fence(space, "Tessera::attention emulated");
    launch(space, arguments(A, scale, from, to, facts, partials, false));
    launch(space, arguments(A, scale, from, to, facts, partials, true));
    Out::finish(space, "Tessera::attention[unpack dQ]", g.d_q, d_q, heads);
    Out::finish(space, "Tessera::attention[unpack dK]", g.d_k, d_k, heads);
    Out::finish(space, "Tessera::attention[unpack dV]", g.d_v, d_v, heads);
  }

 private:
  using Entries = Kokkos::View<std::uint32_t*, Kokkos::LayoutLeft, typename Csr::device_type>;
  /// Rows of the transposed pattern ascend, so that its windows count entries in its own order.
  template <class Source>
  void keep_entries(const Exec& space, const Source& source) {
    const auto nnz = source.extent(0);
    entries_ = Entries(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("Tessera::attention entries")), nnz);
    Kokkos::parallel_for(
        "Tessera::attention[windows] entries of columns",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(nnz)),
        NarrowEntries<Source, Entries>{source, entries_});
  }
  static std::int64_t partial_rows(const Format& f) { return f.partial_count * f.window_rows(); }

  AttentionBackwardArgs arguments(const Csr& A, AttentionSum<T> scale, const AttentionInput<T>& in,
                                  const AttentionGradients<T>& g, AttentionRowFacts* facts, float* partials,
                                  bool by_columns) const {
    AttentionBackwardArgs a;
    a.windows = (by_columns ? columns_ : rows_).arguments();
    if (by_columns && entries_.extent(0) > 0) a.windows.entry_at = entries_.data();
    a.windows.partials = partials;
    a.windows.dense = attention_dense<T>(A, kind_, scale, in, g.o, g.lse);
    a.by_columns = by_columns;
    const auto set = [](const auto& batch, auto& data, std::int64_t& ld, std::int64_t& head) {
      data = batch.matrix.data;
      ld = batch.matrix.row_stride;
      head = batch.head_stride;
    };
    set(g.d_o, a.d_o, a.ld_d_o, a.d_o_head);
    set(by_columns ? g.d_k : g.d_q, a.d_first, a.ld_d_first, a.d_first_head);
    set(g.d_v, a.d_second, a.ld_d_second, a.d_second_head);
    a.facts = facts;
    a.pattern_rows = in.q.matrix.rows;
    a.d_values = g.d_values.data;
    a.d_values_stride = g.d_values.stride;
    a.d_values_head = g.d_values.head_stride;
    return a;
  }
  void launch(const Exec& space, const AttentionBackwardArgs& args) const {
    if (args.windows.part_count == 0) return;
    const char* const step = args.by_columns ? "backward by columns" : "backward by rows";
    run_on_backend(space, {"attention", step, rows_.precision},
                   [&](Stream stream) { return backend_->attention.backward(args, stream); });
  }

  const KernelTable* backend_;
  AttentionValues kind_;
  AttentionShape shape_;
  Format rows_, columns_;
  bool own_rows_ = false;
  Entries entries_;  ///< of columns_, where numbers of the pattern are used
};

}  // namespace Impl
}  // namespace Tessera

#endif
