// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_FORWARD_OPERANDS_HPP
#define TESSERA_ATTENTION_ATTENTION_FORWARD_OPERANDS_HPP

#include <cstdint>

#include "attention/Tessera_AttentionOperands.hpp"

namespace Tessera {
namespace Impl {

/// Operands of a forward pass, copies of those whose rows are not contiguous (Words: not as they are wanted), and what
/// parts or pieces of rows leave.
template <class Csr, bool Words>
struct AttentionForwardOperands {
  using Exec = typename Csr::execution_space;
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using In = ContiguousRows<const T, Words>;
  using Out = ContiguousRows<T, Words>;
  DenseBatch<T> q, k, v, o;
  Sum* partials = nullptr;
  AttentionInput<T> from;
  AttentionOutput<T> to;

  RowsWanted wanted;

  /// partial_numbers: of a head.
  template <class Scratch>
  AttentionForwardOperands(const Exec& space, const AttentionInput<T>& in, const AttentionOutput<T>& out,
                           const Scratch& scratch, std::int64_t partial_numbers = 0, const RowsWanted& rows_wanted = {})
      : wanted(rows_wanted) {
    In reads{wanted};
    const Out writes{wanted};
    const auto lay_out = [&](ScratchLayout layout) {
      q = reads.place(layout, in.q, in.heads);
      k = reads.place(layout, in.k, in.heads);
      v = reads.place(layout, in.v, in.heads);
      o = writes.place(layout, out.o, in.heads);
      partials = layout.template take<Sum>(in.heads * partial_numbers);
      return layout.bytes();
    };
    const std::size_t bytes = lay_out(ScratchLayout());
    lay_out(ScratchLayout(scratch.reserve(space, bytes)));
    from = {reads.read(space, "Tessera::attention[pack Q]", in.q, q, in.heads),
            reads.read(space, "Tessera::attention[pack K]", in.k, k, in.heads),
            reads.read(space, "Tessera::attention[pack V]", in.v, v, in.heads), in.heads};
    reads.run(space, "Tessera::attention[pack rows]");
    to = {writes.write(out.o, o), out.lse};
  }
  /// out: as it was given.
  void finish(const Exec& space, const AttentionOutput<T>& out) const {
    Out writes{wanted};
    writes.finish(space, "Tessera::attention[unpack O]", out.o, o, from.heads);
    writes.run(space, "Tessera::attention[unpack rows]");
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
