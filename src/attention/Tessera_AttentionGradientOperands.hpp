// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_GRADIENT_OPERANDS_HPP
#define TESSERA_ATTENTION_ATTENTION_GRADIENT_OPERANDS_HPP

#include <cstdint>

#include "attention/Tessera_AttentionOperands.hpp"
#include "backends/interface/Tessera_AttentionArgs.hpp"

namespace Tessera {
namespace Impl {

/// Operands of both passes of a backend, copies of those whose rows are not as they are wanted, and what passes leave
/// to each other.
template <class Csr>
struct AttentionGradientOperands {
  using Exec = typename Csr::execution_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using In = ContiguousRows<const T, true>;
  using Out = ContiguousRows<T, true>;
  DenseBatch<T> q, k, v, o, d_o, d_q, d_k, d_v;
  AttentionFactsOf<Sum>* facts = nullptr;
  Sum* partials = nullptr;  ///< one pass after the other has them
  AttentionInput<T> from;
  AttentionGradients<T> to;

  RowsWanted wanted;

  /// partial_numbers: of a head.
  template <class Scratch>
  AttentionGradientOperands(const Exec& space, const AttentionInput<T>& in, const AttentionGradients<T>& g,
                            const Scratch& scratch, std::int64_t partial_numbers, const RowsWanted& rows_wanted)
      : wanted(rows_wanted) {
    In reads{wanted};
    const Out writes{wanted};
    const std::int64_t heads = in.heads;
    const auto lay_out = [&](ScratchLayout layout) {
      facts = layout.template take<AttentionFactsOf<Sum>>(heads * in.q.matrix.rows);
      q = reads.place(layout, in.q, heads);
      k = reads.place(layout, in.k, heads);
      v = reads.place(layout, in.v, heads);
      o = reads.place(layout, g.o, heads);
      d_o = reads.place(layout, g.d_o, heads);
      d_q = writes.place(layout, g.d_q, heads);
      d_k = writes.place(layout, g.d_k, heads);
      d_v = writes.place(layout, g.d_v, heads);
      partials = layout.template take<Sum>(heads * partial_numbers);
      return layout.bytes();
    };
    const std::size_t bytes = lay_out(ScratchLayout());
    lay_out(ScratchLayout(scratch.reserve(space, bytes)));
    from = {reads.read(space, "Tessera::attention[pack Q]", in.q, q, heads),
            reads.read(space, "Tessera::attention[pack K]", in.k, k, heads),
            reads.read(space, "Tessera::attention[pack V]", in.v, v, heads), heads};
    to = g;
    to.o = reads.read(space, "Tessera::attention[pack O]", g.o, o, heads);
    to.d_o = reads.read(space, "Tessera::attention[pack dO]", g.d_o, d_o, heads);
    reads.run(space, "Tessera::attention[pack rows]");
    to.d_q = writes.write(g.d_q, d_q);
    to.d_k = writes.write(g.d_k, d_k);
    to.d_v = writes.write(g.d_v, d_v);
    if constexpr (Compat::is_host_v<Exec>) Compat::fence(space, "Tessera::attention emulated");
  }
  /// g: as it was given.
  void finish(const Exec& space, const AttentionGradients<T>& g) const {
    Out writes{wanted};
    writes.finish(space, "Tessera::attention[unpack dQ]", g.d_q, d_q, from.heads);
    writes.finish(space, "Tessera::attention[unpack dK]", g.d_k, d_k, from.heads);
    writes.finish(space, "Tessera::attention[unpack dV]", g.d_v, d_v, from.heads);
    writes.run(space, "Tessera::attention[unpack rows]");
  }
  void set(AttentionGradientArgs& a, bool by_columns) const {
    const auto place = [](const auto& batch, auto& data, std::int64_t& ld, std::int64_t& head) {
      data = batch.matrix.data;
      ld = batch.matrix.row_stride;
      head = batch.head_stride;
    };
    a.by_columns = by_columns;
    place(to.d_o, a.d_o, a.ld_d_o, a.d_o_head);
    place(by_columns ? to.d_k : to.d_q, a.d_first, a.ld_d_first, a.d_first_head);
    place(to.d_v, a.d_second, a.ld_d_second, a.d_second_head);
    a.facts = facts;
    a.pattern_rows = from.q.matrix.rows;
    a.d_values = to.d_values.data;
    a.d_values_stride = to.d_values.stride;
    a.d_values_head = to.d_values.head_stride;
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
