// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_FORWARD_OPERANDS_HPP
#define TESSERA_ATTENTION_ATTENTION_FORWARD_OPERANDS_HPP

#include <cstdint>

#include "attention/Tessera_AttentionOperands.hpp"

namespace Tessera {
namespace Impl {

/// Operands of a forward pass, copies of those whose rows are not contiguous (Words: not words of sixteen bytes), and
/// what parts or pieces of rows leave.
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

  /// partials: numbers of a head.
  template <class Scratch>
  AttentionForwardOperands(const Exec& space, const AttentionInput<T>& in, const AttentionOutput<T>& out,
                           const Scratch& scratch, std::int64_t partial_numbers = 0) {
    const auto lay_out = [&](ScratchLayout layout) {
      q = In::place(layout, in.q, in.heads);
      k = In::place(layout, in.k, in.heads);
      v = In::place(layout, in.v, in.heads);
      o = Out::place(layout, out.o, in.heads);
      partials = layout.template take<Sum>(in.heads * partial_numbers);
      return layout.bytes();
    };
    const std::size_t bytes = lay_out(ScratchLayout());
    lay_out(ScratchLayout(scratch.reserve(space, bytes)));
    from = {In::read(space, "Tessera::attention[pack Q]", in.q, q, in.heads),
            In::read(space, "Tessera::attention[pack K]", in.k, k, in.heads),
            In::read(space, "Tessera::attention[pack V]", in.v, v, in.heads), in.heads};
    to = {Out::write(out.o, o), out.lse};
  }
  /// out: as it was given.
  void finish(const Exec& space, const AttentionOutput<T>& out) const {
    Out::finish(space, "Tessera::attention[unpack O]", out.o, o, from.heads);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
