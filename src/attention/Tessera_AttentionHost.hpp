// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_HOST_HPP
#define TESSERA_ATTENTION_ATTENTION_HOST_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/Tessera_AttentionCutRows.hpp"
#include "attention/Tessera_AttentionOperands.hpp"
#include "core/Tessera_Exponential.hpp"
#include "core/Tessera_HostRows.hpp"
#include "core/Tessera_Shares.hpp"

/// \file
/// Fused attention on CPUs, forward. A thread goes through its rows, 32 entries of a row at once: their scores stay in
/// the first cache, and the running sums of a row in registers while the entries' rows of V go by. Long rows are cut.

namespace Tessera {
namespace Impl {

/// What the kernels of both directions do with up to 32 entries of a row.
template <class T, int Bytes>
struct AttentionBlock {
  using Sum = AttentionSum<T>;
  using Lanes = HostLanes<Sum, Bytes>;
  static constexpr int most = 32;
  static constexpr int most_columns = 512;  ///< of a running sum; wider rows take several passes
  static_assert(most % Lanes::count == 0);

  int count = 0;
  std::int64_t entry[most], row[most];  ///< the entry, and the row of the other operand that it names
  const T* rows[most];
  Sum product[most], score[most];

  /// The next unmasked entries from e on.
  template <class Entries, class Masked>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t gather(std::int64_t e, std::int64_t end, const Entries& entries,
                                                  const Masked& masked) {
    for (count = 0; e < end && count < most; ++e) {
      if (masked(e)) continue;
      entry[count] = e;
      row[count++] = static_cast<std::int64_t>(entries(e));
    }
    return e;
  }
  KOKKOS_FORCEINLINE_FUNCTION void point(const Dense<const T>& d) {
    for (int c = 0; c < count; ++c) rows[c] = d.at(row[c], 0);
  }
  /// to[c] := <x, rows[c]>.
  KOKKOS_FORCEINLINE_FUNCTION void dots(const T* x, std::int64_t n, Sum* to) const {
    int c = 0;
    for (; c + 4 <= count; c += 4) host_dots<Bytes, 4>(x, 1, rows + c, 1, n, to + c);
    for (; c + 2 <= count; c += 2) host_dots<Bytes, 2>(x, 1, rows + c, 1, n, to + c);
    for (; c < count; ++c) host_dots<Bytes, 1>(x, 1, rows + c, 1, n, to + c);
  }
  /// Scores of the products; entries whose score is -inf are dropped.
  KOKKOS_FORCEINLINE_FUNCTION void keep_scores(const AttentionScores<T>& scores) {
    int kept = 0;
    for (int c = 0; c < count; ++c) {
      const Sum s = scores(product[c], entry[c]);
      if (s == AttentionScores<T>::none) continue;
      entry[kept] = entry[c];
      row[kept] = row[c];
      product[kept] = product[c];
      score[kept++] = s;
    }
    count = kept;
  }
  /// The largest score, which a NaN is not.
  KOKKOS_FORCEINLINE_FUNCTION Sum largest() const {
    constexpr Sum none = AttentionScores<T>::none;
    Sum m[4] = {none, none, none, none};
    int c = 0;
    for (; c + 4 <= count; c += 4) {
      for (int j = 0; j < 4; ++j) m[j] = score[c + j] > m[j] ? score[c + j] : m[j];
    }
    for (; c < count; ++c) m[0] = score[c] > m[0] ? score[c] : m[0];
    return std::max(std::max(m[0], m[1]), std::max(m[2], m[3]));
  }
  /// score[c] := e^(score[c] - m), 0 behind the last one. @return their sum
  KOKKOS_FORCEINLINE_FUNCTION Sum exponentials(Sum m) {
    for (int c = 0; c < count; ++c) score[c] = exponential(score[c] - m);
    for (int c = count; c < most; ++c) score[c] = 0;
    typename Lanes::type sum = {};
    for (int c = 0; c < most; c += Lanes::count) Lanes::add(sum, Sum(1), score + c);
    return Lanes::total(sum);
  }
};

/// Heads and rows, and which of them a thread takes. Item h * rows + i is row i of head h.
template <class Csr>
struct AttentionItems {
  CsrArrays<Csr> A;
  std::int64_t rows, nnz;

  /// Entries of work: two products of d columns and an exponential.
  template <class Exec>
  Shares shares(const Exec& space, std::int64_t heads) const {
    return Shares::of(space, heads * rows, heads * (nnz + rows), 32, 8000, 32);
  }
  std::int64_t begin(const Shares& s, std::int64_t share) const {
    return s.begin(share, [&](std::int64_t item) { return work_before(item); });
  }
  std::int64_t work_before(std::int64_t item) const {
    const std::int64_t head = item / rows, row = item - head * rows;
    return head * (nnz + rows) + static_cast<std::int64_t>(A.row_map()(row)) + row;
  }

  struct Place {
    std::int64_t item, piece;
  };
  /// Where a share begins, pieces of rows counted apart.
  template <class Sum>
  Place place(const Shares& s, std::int64_t share, const AttentionCutRows<Sum>& cut) const {
    const std::int64_t item = begin(s, share);
    if (cut.count == 0 || item == 0) return {item, 0};
    const std::int64_t into = Shares::cut(s.work, share, s.count) - work_before(item - 1);
    const std::int64_t piece = (into + cut.entries - 1) / cut.entries;
    return piece < cut.pieces(length((item - 1) % rows)) ? Place{item - 1, piece} : Place{item, 0};
  }
  std::int64_t length(std::int64_t row) const {
    return static_cast<std::int64_t>(A.row_map()(row + 1)) - static_cast<std::int64_t>(A.row_map()(row));
  }
};

/// Goes through the rows and pieces of a share.
template <class Csr, class Sum>
struct AttentionRowsOfShare {
  using Place = typename AttentionItems<Csr>::Place;
  const AttentionItems<Csr>& items;
  const AttentionCutRows<Sum>& cut;
  Place at, last;
  std::int64_t head = 0, row = 0, begin = 0, end = 0;  ///< entries of the row or piece
  Sum* piece = nullptr;                                ///< where the sums of a piece go; null: a whole row

  AttentionRowsOfShare(const AttentionItems<Csr>& of, const Shares& shares, std::int64_t share,
                       const AttentionCutRows<Sum>& rows)
      : items(of), cut(rows), at(of.place(shares, share, rows)), last(of.place(shares, share + 1, rows)) {}
  bool next() {
    if (at.item > last.item || (at.item == last.item && at.piece >= last.piece)) return false;
    head = at.item / items.rows;
    row = at.item - head * items.rows;
    begin = static_cast<std::int64_t>(items.A.row_map()(row));
    end = begin + items.length(row);
    const std::int64_t pieces = cut.pieces(end - begin);
    piece = nullptr;
    if (pieces > 1) {
      begin += at.piece * cut.entries;
      end = std::min(begin + cut.entries, end);
      piece = cut.of(head, cut.index_of(row), at.piece);
    }
    at = at.piece + 1 < pieces ? Place{at.item, at.piece + 1} : Place{at.item + 1, 0};
    return true;
  }
};

/// Calls f.run<Bytes>(share) with vectors of f.vector_bytes.
template <class F>
struct AttentionShare {
  F f;
#ifdef TESSERA_HOST_HAS_TARGETS
  TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma") void run64(const std::int64_t share) const {
    f.template run<64>(share);
  }
  TESSERA_HOST_TARGET("avx2,fma") void run32(const std::int64_t share) const { f.template run<32>(share); }
#endif
  void operator()(const std::int64_t share) const {
#ifdef TESSERA_HOST_HAS_TARGETS
    if (f.vector_bytes == 64) return run64(share);
    if (f.vector_bytes == 32) return run32(share);
#endif
    f.template run<16>(share);
  }
};

/// O and the log-sum-exp. Rows of all operands lie side by side.
template <class Csr>
struct AttentionHostForward {
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  AttentionItems<Csr> items;
  AttentionScores<T> scores;
  AttentionInput<T> in;
  AttentionOutput<T> out;
  Shares shares;
  int vector_bytes;
  AttentionCutRows<Sum> cut{};  ///< of a piece: largest score, sum of exponentials, sums

  static std::int64_t numbers(std::int64_t columns) { return 2 + columns; }  ///< of a piece
  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    const std::int64_t width = in.v.matrix.columns;
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
  /// Columns [column, column + width) of a row of O, or of what a piece of it adds up.
  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void pass(const AttentionRowsOfShare<Csr, Sum>& own, std::int64_t column,
                                        std::int64_t width) const {
    const std::int64_t head = own.head, row = own.row, end = own.end;
    using Block = AttentionBlock<T, Bytes>;
    Block block;
    Sum sums[Block::most_columns];
    host_clear_row<Bytes>(sums, width);
    const Dense<const T> keys = in.k.head(head);
    Dense<const T> columns = in.v.head(head);
    columns.data += column;
    const T* const q = in.q.head(head).at(row, 0);
    const auto masked = [&](std::int64_t e) { return scores.masked(e); };
    Sum m = scores.none, total = 0;
    for (std::int64_t e = own.begin; e < end;) {
      e = block.gather(e, end, items.A.entries(), masked);
      block.point(keys);
      block.dots(q, in.q.matrix.columns, block.product);
      block.keep_scores(scores);
      const Sum largest = block.largest();
      if (largest > m) {  // what there is becomes smaller
        const Sum shrink = exponential(m - largest);
        total *= shrink;
        host_scale_row<Bytes>(sums, shrink, width);
        m = largest;
      }
      total += block.exponentials(m);
      block.point(columns);
      host_add_rows<Bytes>(sums, block.score, block.rows, block.count, width);
    }
    if (own.piece != nullptr) {
      own.piece[0] = m;
      own.piece[1] = total;
      return host_store_row<Bytes>(own.piece + 2 + column, Sum(1), sums, width);
    }
    T* const o = out.o.head(head).at(row, column);
    host_store_row<Bytes>(o, inverse(total), sums, width);
    if (column == 0 && out.lse.data != nullptr) out.lse(head, row) = m + std::log(total);
  }
  /// Without entries, or with masked ones alone, the sums are 0.
  KOKKOS_FORCEINLINE_FUNCTION static Sum inverse(Sum total) { return total == Sum(0) ? Sum(0) : Sum(1) / total; }
  /// The pieces of a cut row: all become multiples of e^-m for the largest score m of the row.
  void finish(std::int64_t head, std::int64_t index) const {
    const std::int64_t row = cut.rows[index], length = items.length(row), width = in.v.matrix.columns;
    Sum m = scores.none;
    for (std::int64_t p = 0; p < cut.pieces(length); ++p) m = std::max(m, cut.of(head, index, p)[0]);
    for (std::int64_t p = 0; p < cut.pieces(length); ++p) {
      Sum* const piece = cut.of(head, index, p);
      const Sum shrink = piece[1] == Sum(0) ? Sum(0) : exponential(piece[0] - m);  // masked entries alone: no score
      for (std::int64_t k = 1; k < 2 + width; ++k) piece[k] *= shrink;
    }
    const Sum *const sums = cut.added_up(head, index, length) + 2, total = sums[-1];
    T* const o = out.o.head(head).at(row, 0);
    for (std::int64_t k = 0; k < width; ++k) o[k] = T(inverse(total) * sums[k]);
    if (out.lse.data != nullptr) out.lse(head, row) = m + std::log(total);
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
