// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_WINDOW_ATTENTION_BACKWARD_HPP
#define TESSERA_ATTENTION_WINDOW_ATTENTION_BACKWARD_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "attention/Tessera_AttentionGradientOperands.hpp"
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
    return attention_units_take<T>(shape_, rows_.height == 2 || columns_.height == 2, d, e);
  }

  /// There are heads, and fits().
  void apply(const Exec& space, const Csr& A, AttentionSum<T> scale, const AttentionInput<T>& in,
             const AttentionGradients<T>& g, const Scratch& scratch) const {
    const std::int64_t d = rows_of_whole_words<T>.columns(in.q.matrix.columns),
                       e = rows_of_whole_words<T>.columns(in.v.matrix.columns);
    const AttentionGradientOperands<Csr> operands(space, in, g, scratch,
                                                  std::max(partial_rows(rows_) * d, partial_rows(columns_) * (d + e)),
                                                  rows_of_whole_words<T>);
    launch(space, arguments(A, scale, operands, false));
    launch(space, arguments(A, scale, operands, true));
    operands.finish(space, g);
  }

 private:
  using Entries = Kokkos::View<std::uint32_t*, Kokkos::LayoutLeft, typename Csr::device_type>;
  /// Rows of the transposed pattern ascend, so that its windows count entries in its own order.
  template <class Source>
  void keep_entries(const Exec& space, const Source& source) {
    const auto nnz = source.extent(0);
    entries_ = Compat::allocate_view<Entries>("Tessera::attention entries", nnz);
    Kokkos::parallel_for(
        "Tessera::attention[windows] entries of columns",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(nnz)),
        NarrowEntries<Source, Entries>{source, entries_});
  }
  static std::int64_t partial_rows(const Format& f) { return f.partial_count * f.window_rows(); }

  AttentionBackwardArgs arguments(const Csr& A, AttentionSum<T> scale, const AttentionGradientOperands<Csr>& operands,
                                  bool by_columns) const {
    AttentionBackwardArgs a;
    a.windows = (by_columns ? columns_ : rows_).arguments();
    if (by_columns && entries_.extent(0) > 0) a.windows.entry_at = entries_.data();
    a.windows.partials = operands.partials;
    a.windows.dense = attention_dense<T>(A, kind_, scale, operands.from, operands.to.o, operands.to.lse);
    operands.set(a, by_columns);
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
