// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_BACKWARD_HPP
#define TESSERA_ATTENTION_ATTENTION_BACKWARD_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "attention/Tessera_AttentionHostBackward.hpp"
#include "attention/Tessera_AttentionTeams.hpp"
#include "attention/Tessera_RowsAttentionBackward.hpp"
#include "attention/Tessera_SoftmaxOfRows.hpp"
#include "attention/Tessera_WindowAttentionBackward.hpp"
#include "core/Tessera_Transpose.hpp"

namespace Tessera {
namespace Impl {

/// The gradients of an attention plan: what depends on the pattern, and the launches. 16-bit operands go to matrix
/// units where a backend's kernel goes forward and takes their columns, wider ones to a backend's kernels by rows where
/// it has such and they take the columns, all others to portable kernels.
template <class Csr>
class AttentionBackward {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;

  /// @param forward  the engine of a backend's kernel on units, if that goes forward, else null
  /// @param shares  those of the engine by rows, if that goes forward, else null   @param by_rows  whose kernels; null
  AttentionBackward(const Exec& space, const Csr& A, const WindowAttentionEngine<Csr>* forward,
                    const AttentionShares<Memory>* shares, const KernelTable* by_rows, const AttentionOptions& options)
      : transposed_(transposed_pattern(space, pattern_of(A))) {
    scratch_.set_up(nullptr, {});
    if constexpr (Compat::is_host_v<Exec>) {
      long_rows_ = AttentionLongRows(space, A);
      long_columns_ = AttentionLongRows(space, turned(A));
    }
    if constexpr (!on_units) {
      if (by_rows != nullptr) rows_.emplace(space, A, turned(A), shares, options, *by_rows);
    }
    if constexpr (on_units) {
      if (forward != nullptr && forward->backend().attention.backward != nullptr) {
        units_.emplace(space, A, turned(A), transposed_.source, *forward, options);
      }
    }
  }

  /// Whether operands of so many columns go to matrix units.
  bool takes_units(std::int64_t d, std::int64_t e) const {
    if constexpr (on_units) return units_ && units_->fits(d, e);
    return false;
  }
  std::size_t bytes() const {
    std::size_t own = 0;
    if constexpr (on_units) own = units_ ? units_->bytes() : 0;
    if constexpr (!on_units) own = rows_ ? rows_->bytes() : 0;
    return own + long_rows_.bytes() + long_columns_.bytes() +
           (transposed_.row_map.extent(0) + transposed_.source.extent(0)) * sizeof(typename Csr::size_type) +
           transposed_.entries.extent(0) * sizeof(typename Csr::ordinal_type);
  }

  void describe(Statistics& s) const {
    if constexpr (on_units) {
      if (units_) units_->describe(s);
    } else {
      if (rows_) rows_->describe(s);
    }
  }

  /// There are heads.
  void apply(const Exec& space, const Csr& A, AttentionValues kind, Sum scale, const AttentionInput<T>& in,
             const AttentionGradients<T>& g) const {
    if constexpr (on_units) {
      if (takes_units(in.q.matrix.columns, in.v.matrix.columns)) {
        return units_->apply(space, A, scale, in, g, scratch_);
      }
    } else {
      if (rows_ && rows_->fits(in.q.matrix.columns, in.v.matrix.columns)) {
        return rows_->apply(space, A, turned(A), transposed_.source, scale, in, g, scratch_);
      }
    }
    ContiguousRows<const T> reads;
    ContiguousRows<T> writes;
    const std::int64_t heads = in.heads, rows = in.q.matrix.rows;
    DenseBatch<T> q, k, v, d_o, d_q, d_k, d_v;
    Sum *delta = nullptr, *pieces = nullptr;
    const std::int64_t d = in.q.matrix.columns, e = in.v.matrix.columns;
    const std::int64_t numbers = std::max(long_rows_.numbers(d), long_columns_.numbers(d + e));
    const auto lay_out = [&](ScratchLayout layout) {
      delta = layout.template take<Sum>(heads * rows);
      pieces = layout.template take<Sum>(heads * numbers);
      q = reads.place(layout, in.q, heads);
      k = reads.place(layout, in.k, heads);
      v = reads.place(layout, in.v, heads);
      d_o = reads.place(layout, g.d_o, heads);
      d_q = writes.place(layout, g.d_q, heads);
      d_k = writes.place(layout, g.d_k, heads);
      d_v = writes.place(layout, g.d_v, heads);
      return layout.bytes();
    };
    const std::size_t bytes = lay_out(ScratchLayout());
    lay_out(ScratchLayout(scratch_.reserve(space, bytes)));
    const AttentionInput<T> from{reads.read(space, "Tessera::attention[pack Q]", in.q, q, heads),
                                 reads.read(space, "Tessera::attention[pack K]", in.k, k, heads),
                                 reads.read(space, "Tessera::attention[pack V]", in.v, v, heads), heads};
    AttentionGradients<T> to = g;
    to.d_o = reads.read(space, "Tessera::attention[pack dO]", g.d_o, d_o, heads);
    to.d_q = writes.write(g.d_q, d_q);
    to.d_k = writes.write(g.d_k, d_k);
    to.d_v = writes.write(g.d_v, d_v);
    Kokkos::parallel_for("Tessera::attention[delta]",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, heads * rows),
                         AttentionDelta<T>{g.o, to.d_o, delta});
    launch(space, A, {A.values().data(), kind, scale}, from, to, delta, pieces);
    writes.finish(space, "Tessera::attention[unpack dQ]", g.d_q, d_q, heads);
    writes.finish(space, "Tessera::attention[unpack dK]", g.d_k, d_k, heads);
    writes.finish(space, "Tessera::attention[unpack dV]", g.d_v, d_v, heads);
  }

 private:
  static constexpr bool on_units = sizeof(T) == 2;
  struct None {};
  template <class C, bool OnUnits>
  struct UnitsOf {
    using type = WindowAttentionBackward<C>;
    using Rows = None;
  };
  template <class C>
  struct UnitsOf<C, false> {
    using type = None;
    using Rows = RowsAttentionBackward<C>;
  };

  /// The transposed pattern as a matrix, whose numbers nobody reads.
  Csr turned(const Csr& A) const {
    return Csr(A.cols(), A.rows(),
               typename Csr::row_map_type(transposed_.row_map.data(), transposed_.row_map.extent(0)),
               typename Csr::entries_type(transposed_.entries.data(), A.nnz()),
               typename Csr::values_type(A.values().data(), A.nnz()));
  }
  void launch(const Exec& space, const Csr& A, const AttentionScores<T>& scores, const AttentionInput<T>& in,
              const AttentionGradients<T>& g, const Sum* delta, [[maybe_unused]] Sum* pieces) const {
    const Csr columns = turned(A);
    if constexpr (Compat::is_host_v<Exec>) {
      using Rows = AttentionHostRows<Csr>;
      using Columns = AttentionHostColumns<Csr>;
      static const std::string rows_label("Tessera::attention[dQ]"), columns_label("Tessera::attention[dK, dV]"),
          cut_label("Tessera::attention[backward] cut rows");
      const std::int64_t d = in.q.matrix.columns, e = in.v.matrix.columns;
      const int vector = host_row_bytes<Sum>(std::max(d, e));
      const auto run = [&](const std::string& label, const auto& f) {
        for_each_share(label, space, f.shares, AttentionShare<std::decay_t<decltype(f)>>{f});
        for_each_cut_row(cut_label, space, in.heads, f.cut,
                         [=](std::int64_t head, std::int64_t index) { f.finish(head, index); });
      };
      if (A.rows() > 0) {
        const auto items = attention_items(A);
        run(rows_label,
            Rows{items, scores, in, g, delta, items.shares(space, in.heads), vector, long_rows_.cut(pieces, d)});
      }
      if (A.cols() > 0) {
        const auto items = attention_items(columns);
        run(columns_label, Columns{items, transposed_.source.data(), scores, in, g, delta,
                                   items.shares(space, in.heads), vector, long_columns_.cut(pieces, d + e)});
      }
    } else {
      using Teams = AttentionTeamBackward<Csr>;
      if (A.rows() > 0) Teams{CsrArrays<Csr>(A), nullptr, scores, in, g, delta, false}.run(space);
      if (A.cols() > 0) {
        Teams{CsrArrays<Csr>(columns), transposed_.source.data(), scores, in, g, delta, true}.run(space);
      }
    }
  }

  TransposedPattern<PatternOf<Csr>> transposed_;
  std::optional<typename UnitsOf<Csr, on_units>::type> units_;
  std::optional<typename UnitsOf<Csr, on_units>::Rows> rows_;
  AttentionLongRows long_rows_, long_columns_;  ///< hosts
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
