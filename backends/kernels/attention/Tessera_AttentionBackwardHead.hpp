// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_BACKWARD_HEAD_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_BACKWARD_HEAD_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionPieces.hpp"

/// \file
/// Operands and results of the backward pass, and what its second launch does where windows were split.

namespace Tessera {

/// One head. *First* operands make scores (Q and K), *second* ones gradients of weights (dO and V); *own* ones belong
/// to the rows of windows, the others are gathered. By rows of the pattern Q and dO are own, by columns K and V.
template <class Operand, bool ByColumns, class Args = AttentionBackwardArgs>
class AttentionBackwardHead {
 public:
  using Sum = typename AttentionHead<Operand>::Sum;
  using Facts = AttentionFactsOf<Sum>;

  TESSERA_FUNCTION AttentionBackwardHead(const Args& args, std::int64_t head)
      : args_(args),
        scores_(args.dense(), head),
        d_o_(attention_rows<Operand>(args.d_o, head, args.d_o_head, args.ld_d_o, args.dense().e)) {}

  TESSERA_FUNCTION const AttentionRows& own_first() const { return ByColumns ? scores_.k() : scores_.q(); }
  TESSERA_FUNCTION const AttentionRows& own_second() const { return ByColumns ? scores_.v() : d_o_; }
  TESSERA_FUNCTION const AttentionRows& gathered_first() const { return ByColumns ? scores_.q() : scores_.k(); }
  TESSERA_FUNCTION const AttentionRows& gathered_second() const { return ByColumns ? d_o_ : scores_.v(); }
  TESSERA_FUNCTION AttentionRows o() const {
    const AttentionDense& d = args_.dense();
    return attention_rows<Operand>(d.o, head(), d.o_head, d.ldo, d.e);
  }
  TESSERA_FUNCTION const AttentionHead<Operand>& scores() const { return scores_; }
  TESSERA_FUNCTION std::int64_t head() const { return scores_.index(); }
  TESSERA_FUNCTION int d() const { return scores_.q().columns; }
  TESSERA_FUNCTION int e() const { return scores_.e(); }

  /// The log-sum-exp of a row of the pattern, as a binary logarithm.
  TESSERA_FUNCTION Sum lse(std::int64_t row) const {
    const AttentionDense& d = args_.dense();
    return static_cast<const Sum*>(d.lse)[head() * d.lse_head + row * d.lse_row] * static_cast<Sum>(attention_log2_e);
  }
  TESSERA_FUNCTION Facts& facts(std::int64_t row) const {
    return static_cast<Facts*>(args_.facts)[head() * args_.pattern_rows + row];
  }
  TESSERA_FUNCTION bool wants_values() const { return !ByColumns && args_.d_values != nullptr; }
  /// Of an entry, from its score's gradient and its product of Q and K.
  TESSERA_FUNCTION void store_value(std::int64_t entry, Sum d_score, Sum product) const {
    const AttentionDense& d = args_.dense();
    const Sum value = d.factor != nullptr ? d_score * static_cast<Sum>(d.scale) * product : d_score;
    static_cast<Operand*>(args_.d_values)[head() * args_.d_values_head + entry * args_.d_values_stride] =
        Operand(value);
  }

  /// What sums become gradients by.
  TESSERA_FUNCTION Sum scale() const { return static_cast<Sum>(args_.dense().scale); }
  /// dQ or dK, and dV.
  TESSERA_FUNCTION void* first(std::int64_t row, int column) const {
    return static_cast<Operand*>(args_.d_first) + head() * args_.d_first_head + row * args_.ld_d_first + column;
  }
  TESSERA_FUNCTION void* second(std::int64_t row, int column) const {
    return static_cast<Operand*>(args_.d_second) + head() * args_.d_second_head + row * args_.ld_d_second + column;
  }
  /// What a part leaves of a row of its window: d sums, by columns e more.
  TESSERA_FUNCTION int partial_size() const { return ByColumns ? d() + e() : d(); }
  TESSERA_FUNCTION float* partial(std::int64_t partial, int local) const {
    const AttentionArgs& w = args_.windows;
    return w.partials + ((head() * w.partial_count + partial) * w.window_rows + local) * partial_size();
  }

 private:
  const Args& args_;
  AttentionHead<Operand> scores_;
  AttentionRows d_o_;
};

/// What parts left of a row of a split window becomes its gradients.
template <class Operand, class Wave, bool ByColumns>
struct AttentionBackwardMerge {
  using Pieces = AttentionPieces<float, Wave, false>;
  static int words(const AttentionBackwardArgs& args) {
    const AttentionDense& dense = args.windows.dense;
    return static_cast<int>(ByColumns ? dense.d + dense.e : dense.d) / Pieces::width;
  }

  /// Row `index` of those of split windows.
  TESSERA_FUNCTION static void run(const Wave& wave, const AttentionBackwardArgs& args,
                                   const AttentionMergeTiles& tiles, std::int64_t index, int tile,
                                   std::int64_t head_index) {
    const AttentionArgs& w = args.windows;
    const SpmmSplit split = w.splits[index / w.window_rows];
    const auto local = static_cast<int>(index % w.window_rows);
    const std::int64_t row = std::int64_t{split.window} * w.window_rows + local;
    if (row >= w.rows) return;
    const AttentionBackwardHead<Operand, ByColumns> head(args, head_index);
    const std::int64_t stride = std::int64_t{w.window_rows} * head.partial_size();
    const Pieces pieces{head.partial(split.first, local), stride, split.count, head.partial_size() / Pieces::width};
    pieces.run(wave, tiles, tile, [&](int column, const typename Pieces::State& sums) {
      const bool first = column < head.d();
      attention_store_rounded<Operand>(first ? head.first(row, column) : head.second(row, column - head.d()), sums.s,
                                       first ? head.scale() : 1.0f);
    });
  }
};

}  // namespace Tessera

#endif
