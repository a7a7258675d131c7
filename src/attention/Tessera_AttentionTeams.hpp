// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_TEAMS_HPP
#define TESSERA_ATTENTION_ATTENTION_TEAMS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/Tessera_AttentionOperands.hpp"
#include "core/Tessera_Exponential.hpp"

/// \file
/// Fused attention in Kokkos teams, for devices, in both directions. A thread's vector lanes share a row: the columns
/// of its inner products, and those of its sums, which stay in the thread's scratch.

namespace Tessera {
namespace Impl {

/// Rows of a head, one after the other, for the threads of Kokkos teams. Item h * rows + i is row i of head h.
template <class Exec>
struct AttentionTeams {
  using Team = typename Kokkos::TeamPolicy<Exec>::member_type;
  static constexpr int items = 4;           ///< of a team
  static constexpr int most_columns = 512;  ///< of a running sum; wider rows take several passes

  template <class F>
  static void run(const char* label, const Exec& space, const F& f, std::int64_t count, std::int64_t sums) {
    using Policy = Kokkos::TeamPolicy<Exec>;
    const int lanes = std::min(32, Policy::vector_length_max());
    const auto teams = static_cast<int>((count + items - 1) / items);
    const auto bytes = static_cast<int>(static_cast<std::size_t>(sums) * sizeof(typename F::Sum));
    Kokkos::parallel_for(label, Policy(space, teams, Kokkos::AUTO, lanes).set_scratch_size(0, Kokkos::PerThread(bytes)),
                         f);
  }
  /// f(item) for the items of a team, with all lanes of a thread.
  template <class F>
  KOKKOS_INLINE_FUNCTION static void each(const Team& team, std::int64_t count, const F& f) {
    const std::int64_t first = std::int64_t{team.league_rank()} * items;
    const int here = count - first < items ? static_cast<int>(count - first) : items;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, here), [&](const int i) { f(first + i); });
  }
  template <class Sum, class T>
  KOKKOS_INLINE_FUNCTION static Sum dot(const Team& team, const T* x, const T* y, std::int64_t n) {
    Sum sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, static_cast<int>(n)),
        [&](const int k, Sum& part) { part += widen<Sum>(x[k]) * widen<Sum>(y[k]); }, sum);
    return sum;
  }
  /// A lane meets the same k in every call, so that no lane waits for another.
  template <class F>
  KOKKOS_INLINE_FUNCTION static void lanes(const Team& team, std::int64_t n, const F& f) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(n)), f);
  }
};

template <class Csr, class Exec = typename Csr::execution_space>
struct AttentionTeamForward {
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using Teams = AttentionTeams<Exec>;
  CsrArrays<Csr> A;
  AttentionScores<T> scores;
  AttentionInput<T> in;
  AttentionOutput<T> out;
  std::int64_t column = 0, width = 0;  ///< of O, at most Teams::most_columns

  /// All columns of all rows.
  void run(const Exec& space) {
    const std::int64_t all = in.v.matrix.columns;
    column = 0;
    do {
      width = std::min<std::int64_t>(all - column, Teams::most_columns);
      Teams::run("Tessera::attention[fused]", space, *this, in.heads * in.q.matrix.rows, width);
      column += width;
    } while (column < all);
  }
  KOKKOS_INLINE_FUNCTION void operator()(const typename Teams::Team& team) const {
    Sum* const sums = static_cast<Sum*>(team.thread_scratch(0).get_shmem(width * static_cast<int>(sizeof(Sum))));
    const std::int64_t rows = in.q.matrix.rows;
    Teams::each(team, in.heads * rows, [&](const std::int64_t item) {
      const std::int64_t head = item / rows;
      row_of(team, head, item - head * rows, sums);
    });
  }
  KOKKOS_INLINE_FUNCTION void row_of(const typename Teams::Team& team, std::int64_t head, std::int64_t row,
                                     Sum* sums) const {
    constexpr Sum none = AttentionScores<T>::none;
    const T* const q = in.q.matrix.at(row, 0) + head * in.q.head_stride;
    Teams::lanes(team, width, [&](const int k) { sums[k] = 0; });
    Sum m = none, total = 0;
    const auto end = static_cast<std::int64_t>(A.row_map()(row + 1));
    for (auto e = static_cast<std::int64_t>(A.row_map()(row)); e < end; ++e) {
      if (scores.masked(e)) continue;
      const auto other = static_cast<std::int64_t>(A.entries()(e));
      const T* const key = in.k.matrix.at(other, 0) + head * in.k.head_stride;
      const Sum s = scores(Teams::template dot<Sum>(team, q, key, in.q.matrix.columns), e);
      if (s == none) continue;
      const Sum next = s > m ? s : m, shrink = m == next ? Sum(1) : exponential(m - next), p = exponential(s - next);
      total = total * shrink + p;
      m = next;
      const T* const value = in.v.matrix.at(other, column) + head * in.v.head_stride;
      Teams::lanes(team, width, [&](const int k) { sums[k] = sums[k] * shrink + p * widen<Sum>(value[k]); });
    }
    const Sum inverse = total == Sum(0) ? Sum(0) : Sum(1) / total;
    T* const o = out.o.matrix.at(row, column) + head * out.o.head_stride;
    Teams::lanes(team, width, [&](const int k) { o[k] = T(sums[k] * inverse); });
    if (column > 0 || out.lse.data == nullptr) return;
    using std::log;
    Kokkos::single(Kokkos::PerThread(team), [&]() { out.lse(head, row) = m + log(total); });
  }
};

/// dQ and the gradients of the matrix's numbers: rows of A. dK and dV (by_columns): rows of the transposed pattern,
/// with the entry that each of its entries was.
template <class Csr, class Exec = typename Csr::execution_space>
struct AttentionTeamBackward {
  using T = typename Csr::value_type;
  using Sum = AttentionSum<T>;
  using Teams = AttentionTeams<Exec>;
  CsrArrays<Csr> A;  ///< or its transposed pattern
  const typename Csr::size_type* source;
  AttentionScores<T> scores;
  AttentionInput<T> in;
  AttentionGradients<T> g;
  const Sum* delta;
  bool by_columns;
  std::int64_t column = 0, d_width = 0, e_width = 0;  ///< of the sums; e_width: of dV, 0 for dQ

  KOKKOS_INLINE_FUNCTION std::int64_t rows() const { return by_columns ? in.k.matrix.rows : in.q.matrix.rows; }

  void run(const Exec& space) {
    const std::int64_t d = in.q.matrix.columns, e = by_columns ? in.v.matrix.columns : 0, most = Teams::most_columns;
    column = 0;
    do {
      d_width = std::max<std::int64_t>(0, std::min(d - column, most));
      e_width = std::max<std::int64_t>(0, std::min(e - column, most));
      Teams::run(by_columns ? "Tessera::attention[dK, dV]" : "Tessera::attention[dQ]", space, *this, in.heads * rows(),
                 d_width + e_width);
      column += most;
    } while (column < std::max(d, e));
  }
  KOKKOS_INLINE_FUNCTION void operator()(const typename Teams::Team& team) const {
    Sum* const sums =
        static_cast<Sum*>(team.thread_scratch(0).get_shmem((d_width + e_width) * static_cast<int>(sizeof(Sum))));
    const std::int64_t count = rows();
    Teams::each(team, in.heads * count, [&](const std::int64_t item) {
      const std::int64_t head = item / count;
      row_of(team, head, item - head * count, sums);
    });
  }
  KOKKOS_INLINE_FUNCTION static const T* place(const DenseBatch<const T>& b, std::int64_t head, std::int64_t row) {
    return b.matrix.at(row, 0) + head * b.head_stride;
  }
  KOKKOS_INLINE_FUNCTION void row_of(const typename Teams::Team& team, std::int64_t head, std::int64_t row,
                                     Sum* sums) const {
    constexpr Sum none = AttentionScores<T>::none;
    const std::int64_t width = d_width + e_width;
    const bool columns = by_columns, by_value = !columns && column == 0 && g.d_values.data != nullptr;
    const auto end = static_cast<std::int64_t>(A.row_map()(row + 1));
    Teams::lanes(team, width, [&](const int k) { sums[k] = 0; });
    for (auto at = static_cast<std::int64_t>(A.row_map()(row)); at < end; ++at) {
      const std::int64_t e = columns ? static_cast<std::int64_t>(source[at]) : at;
      const auto other = static_cast<std::int64_t>(A.entries()(at));
      const std::int64_t i = columns ? other : row, j = columns ? row : other;
      const bool skipped = scores.masked(e);
      const T *const q = place(in.q, head, i), *const key = place(in.k, head, j), *const d_o = place(g.d_o, head, i);
      const Sum product = skipped ? Sum(0) : Teams::template dot<Sum>(team, q, key, in.q.matrix.columns);
      const Sum s = scores(product, e);
      if (skipped || s == none) {
        if (by_value) Kokkos::single(Kokkos::PerThread(team), [&]() { g.d_values(head, e) = T(Sum(0)); });
        continue;
      }
      const Sum p = exponential(s - g.lse(head, i));
      const Sum d_p = Teams::template dot<Sum>(team, d_o, place(in.v, head, j), in.v.matrix.columns);
      const Sum d_s = p * (d_p - delta[head * in.q.matrix.rows + i]), by_product = d_s * scores.factor(e);
      if (by_value) {
        Kokkos::single(Kokkos::PerThread(team), [&]() { g.d_values(head, e) = T(scores.by_value(d_s, product)); });
      }
      const T *const first = (columns ? q : key) + column, *const second = d_o + column - d_width;
      Teams::lanes(team, width, [&](const int k) {
        sums[k] += k < d_width ? by_product * widen<Sum>(first[k]) : p * widen<Sum>(second[k]);
      });
    }
    const DenseBatch<T>& target = columns ? g.d_k : g.d_q;
    T* const d_first = target.matrix.at(row, column) + head * target.head_stride;
    T* const d_second = columns ? g.d_v.matrix.at(row, column) + head * g.d_v.head_stride : nullptr;
    Teams::lanes(team, width, [&](const int k) {
      if (k < d_width) {
        d_first[k] = T(sums[k]);
      } else {
        d_second[k - d_width] = T(sums[k]);
      }
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
