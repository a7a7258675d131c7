// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_HOST_BACKWARD_HPP
#define TESSERA_ATTENTION_ATTENTION_HOST_BACKWARD_HPP

#include <algorithm>
#include <cstdint>

#include "attention/Tessera_AttentionHost.hpp"

/// \file
/// Gradients of attention on CPUs. Scores are computed again from Q, K and the log-sum-exp: by rows for dQ and the
/// numbers of the matrix, by rows of the transposed pattern for dK and dV, whose sums so have the order of rows.

namespace Tessera {
namespace Impl {

/// delta_i = <dO_i, O_i>, what softmax takes off the gradient of every score of a row.
template <class T>
struct AttentionDelta {
  using Sum = AttentionSum<T>;
  DenseBatch<const T> o, d_o;
  Sum* delta;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t rows = o.matrix.rows, head = item / rows, row = item - head * rows;
    const Dense<const T> x = o.matrix, y = d_o.matrix;
    const T *a = x.at(row, 0) + head * o.head_stride, *b = y.at(row, 0) + head * d_o.head_stride;
    Sum sum = 0;
    for (std::int64_t k = 0; k < x.columns; ++k) {
      sum += widen<Sum>(a[k * x.column_stride]) * widen<Sum>(b[k * y.column_stride]);
    }
    delta[item] = sum;
  }
};

/// dQ, and the gradients of the matrix's numbers.
template <class Csr>
struct AttentionHostRows {
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  AttentionItems<Csr> items;
  AttentionScores<T> scores;
  AttentionInput<T> in;
  AttentionGradients<T> g;
  const Sum* delta;
  Shares shares;
  int vector_bytes;
  AttentionCutRows<Sum> cut{};  ///< of a piece: what it adds to dQ

  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    const std::int64_t width = in.q.matrix.columns;
    constexpr std::int64_t most = AttentionBlock<T, Bytes>::most_columns;
    AttentionRowsOfShare<Csr, Sum> own(items, shares, share, cut);
    while (own.next()) {
      std::int64_t column = 0;
      do {
        pass<Bytes>(own, column, std::min(width - column, most));
        column += most;
      } while (column < width);
    }
  }
  void finish(std::int64_t head, std::int64_t index) const {
    const std::int64_t row = cut.rows[index];
    T* const d_q = g.d_q.head(head).at(row, 0);
    const Sum* const sums = cut.added_up(head, index, items.length(row));
    for (std::int64_t k = 0; k < in.q.matrix.columns; ++k) d_q[k] = T(sums[k]);
  }
  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void pass(const AttentionRowsOfShare<Csr, Sum>& own, std::int64_t column,
                                        std::int64_t width) const {
    const std::int64_t head = own.head, row = own.row, begin = own.begin, end = own.end;
    using Block = AttentionBlock<T, Bytes>;
    Block block;
    Sum sums[Block::most_columns], d_p[Block::most];
    host_clear_row<Bytes>(sums, width);
    const Dense<const T> keys = in.k.head(head), values = in.v.head(head);
    Dense<const T> columns = keys;
    columns.data += column;
    const T *const q = in.q.head(head).at(row, 0), *const d_o = g.d_o.head(head).at(row, 0);
    const auto masked = [&](std::int64_t e) { return scores.masked(e); };
    const Sum lse = g.lse(head, row), taken = delta[head * items.rows + row];
    const bool by_value = column == 0 && g.d_values.data != nullptr;
    for (std::int64_t e = begin; by_value && e < end; ++e) g.d_values(head, e) = T(Sum(0));
    for (std::int64_t e = begin; e < end;) {
      e = block.gather(e, end, items.A.entries(), masked);
      block.point(keys);
      block.dots(q, in.q.matrix.columns, block.product);
      block.keep_scores(scores);
      block.point(values);
      block.dots(d_o, in.v.matrix.columns, d_p);
      block.exponentials(lse);
      for (int c = 0; c < block.count; ++c) d_p[c] = block.score[c] * (d_p[c] - taken);
      for (int c = 0; by_value && c < block.count; ++c) {
        g.d_values(head, block.entry[c]) = host_round<T, Bytes>(scores.by_value(d_p[c], block.product[c]));
      }
      for (int c = 0; c < block.count; ++c) d_p[c] *= scores.factor(block.entry[c]);
      block.point(columns);
      host_add_rows<Bytes>(sums, d_p, block.rows, block.count, width);
    }
    if (own.piece != nullptr) {
      host_store_row<Bytes>(own.piece + column, Sum(1), sums, width);
    } else {
      host_store_row<Bytes>(g.d_q.head(head).at(row, column), Sum(1), sums, width);
    }
  }
};

/// dK and dV. The items are the rows of the transposed pattern; source: the entry that each of its entries was.
template <class Csr>
struct AttentionHostColumns {
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  AttentionItems<Csr> items;
  const typename Csr::size_type* source;
  AttentionScores<T> scores;
  AttentionInput<T> in;
  AttentionGradients<T> g;
  const Sum* delta;
  Shares shares;
  int vector_bytes;
  AttentionCutRows<Sum> cut{};  ///< of a piece: what it adds to dK, then to dV

  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    const std::int64_t width = std::max(in.k.matrix.columns, in.v.matrix.columns);
    constexpr std::int64_t most = AttentionBlock<T, Bytes>::most_columns;
    AttentionRowsOfShare<Csr, Sum> own(items, shares, share, cut);
    while (own.next()) {
      for (std::int64_t column = 0; column < width; column += most) pass<Bytes>(own, column);
    }
  }
  void finish(std::int64_t head, std::int64_t index) const {
    const std::int64_t row = cut.rows[index], d = in.k.matrix.columns;
    T *const d_k = g.d_k.head(head).at(row, 0), *const d_v = g.d_v.head(head).at(row, 0);
    const Sum* const sums = cut.added_up(head, index, items.length(row));
    for (std::int64_t k = 0; k < d; ++k) d_k[k] = T(sums[k]);
    for (std::int64_t k = 0; k < in.v.matrix.columns; ++k) d_v[k] = T(sums[d + k]);
  }
  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void pass(const AttentionRowsOfShare<Csr, Sum>& own, std::int64_t column) const {
    const std::int64_t head = own.head, row = own.row, end = own.end;
    using Block = AttentionBlock<T, Bytes>;
    constexpr std::int64_t most = Block::most_columns;
    const auto part = [&](std::int64_t n) { return std::max<std::int64_t>(0, std::min(n - column, most)); };
    const std::int64_t d = part(in.k.matrix.columns), width = part(in.v.matrix.columns);
    Block block;
    Sum for_k[most], for_v[most], d_p[Block::most];
    host_clear_row<Bytes>(for_k, d);
    host_clear_row<Bytes>(for_v, width);
    const Dense<const T> queries = in.q.head(head), d_o = g.d_o.head(head);
    Dense<const T> query_columns = queries, d_o_columns = d_o;
    query_columns.data += column;
    d_o_columns.data += column;
    const T *const key = in.k.head(head).at(row, 0), *const value = in.v.head(head).at(row, 0);
    const auto masked = [&](std::int64_t e) { return scores.masked(static_cast<std::int64_t>(source[e])); };
    const Sum* const taken = delta + head * in.q.matrix.rows;
    for (std::int64_t e = own.begin; e < end;) {
      e = block.gather(e, end, items.A.entries(), masked);
      for (int c = 0; c < block.count; ++c) block.entry[c] = static_cast<std::int64_t>(source[block.entry[c]]);
      block.point(queries);
      block.dots(key, in.q.matrix.columns, block.product);
      block.keep_scores(scores);
      block.point(d_o);
      block.dots(value, in.v.matrix.columns, d_p);
      for (int c = 0; c < block.count; ++c) block.score[c] -= g.lse(head, block.row[c]);
      block.exponentials(Sum(0));
      for (int c = 0; c < block.count; ++c) {
        d_p[c] = block.score[c] * (d_p[c] - taken[block.row[c]]) * scores.factor(block.entry[c]);
      }
      block.point(d_o_columns);
      host_add_rows<Bytes>(for_v, block.score, block.rows, block.count, width);
      block.point(query_columns);
      host_add_rows<Bytes>(for_k, d_p, block.rows, block.count, d);
    }
    if (own.piece != nullptr) {
      host_store_row<Bytes>(own.piece + column, Sum(1), for_k, d);
      host_store_row<Bytes>(own.piece + in.k.matrix.columns + column, Sum(1), for_v, width);
    } else {
      host_store_row<Bytes>(g.d_k.head(head).at(row, column), Sum(1), for_k, d);
      host_store_row<Bytes>(g.d_v.head(head).at(row, column), Sum(1), for_v, width);
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
