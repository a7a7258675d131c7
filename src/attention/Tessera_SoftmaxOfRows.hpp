// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_SOFTMAX_OF_ROWS_HPP
#define TESSERA_ATTENTION_SOFTMAX_OF_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/Tessera_AttentionHost.hpp"
#include "attention/Tessera_AttentionTeams.hpp"

/// \file
/// Softmax of the rows of a pattern, forward and backward: hosts in vectors of 32 entries, devices with the vector
/// lanes of a thread per row. The exponentials are computed twice, once for their sum: that costs less than writing
/// them, and x may be y.

namespace Tessera {
namespace Impl {

/// y_e := e^(x_e + bias_e - log-sum-exp of the row). bias: the matrix's numbers, or null.
template <class Csr, class X, class Y, class Exec = typename Csr::execution_space>
struct SoftmaxForward {
  using Sum = AccumulatorOf<X, Y, Y>;
  using Teams = AttentionTeams<Exec>;
  AttentionItems<Csr> items;
  std::int64_t heads;
  BatchVector<const X> x;
  BatchVector<Y> y;
  const typename Csr::value_type* bias;
  BatchVector<Sum> lse;  ///< data null: not wanted
  Shares shares;
  int vector_bytes;
  static constexpr Sum none = -std::numeric_limits<Sum>::infinity();  ///< read by value

  KOKKOS_FORCEINLINE_FUNCTION Sum score(std::int64_t head, std::int64_t e) const {
    const Sum own = widen<Sum>(x(head, e)), more = bias == nullptr ? Sum(0) : widen<Sum>(bias[e]);
    return more == none ? more : own + more;
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t begin(std::int64_t row) const {
    return static_cast<std::int64_t>(items.A.row_map()(row));
  }

  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    constexpr int most = 32;
    Sum block[most];
    const std::int64_t last = items.begin(shares, share + 1);
    for (std::int64_t item = items.begin(shares, share); item < last; ++item) {
      const std::int64_t head = item / items.rows, row = item - head * items.rows, end = begin(row + 1);
      Sum m = none, total = 0;
      for (std::int64_t e = begin(row); e < end; ++e) m = std::max(m, score(head, e));  // (-inf, NaN) is -inf
      const Sum base = m == none ? Sum(0) : m;
      const auto exponentials = [&](std::int64_t e) {
        const int count = static_cast<int>(std::min<std::int64_t>(end - e, most));
        for (int c = 0; c < count; ++c) block[c] = score(head, e + c) - base;
        for (int c = count; c < most; ++c) block[c] = none;
        for (int c = 0; c < most; ++c) block[c] = exponential(block[c]);
        return count;
      };
      for (std::int64_t e = begin(row); e < end; e += most) {
        exponentials(e);
        typename HostLanes<Sum, Bytes>::type sum = {};
        for (int c = 0; c < most; c += HostLanes<Sum, Bytes>::count) HostLanes<Sum, Bytes>::add(sum, Sum(1), block + c);
        total += HostLanes<Sum, Bytes>::total(sum);
      }
      const Sum inverse = total == Sum(0) ? Sum(0) : Sum(1) / total;
      for (std::int64_t e = begin(row); e < end; e += most) {
        const int count = exponentials(e);
        for (int c = 0; c < count; ++c) y(head, e + c) = Y(block[c] * inverse);
      }
      if (lse.data != nullptr) lse(head, row) = m + std::log(total);
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(const typename Teams::Team& team) const {
    Teams::each(team, heads * items.rows, [&](const std::int64_t item) {
      const std::int64_t head = item / items.rows, row = item - head * items.rows, first = begin(row);
      const int count = static_cast<int>(begin(row + 1) - first);
      Sum m = none, total = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, count),
          [&](const int c, Sum& most) {
            const Sum s = score(head, first + c);
            most = s > most ? s : most;
          },
          Kokkos::Max<Sum>(m));
      if (!(m > none)) m = none;  // of no entries
      const Sum base = m == none ? Sum(0) : m;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, count),
          [&](const int c, Sum& sum) { sum += exponential(score(head, first + c) - base); }, total);
      const Sum inverse = total == Sum(0) ? Sum(0) : Sum(1) / total;
      Teams::lanes(team, count,
                   [&](const int c) { y(head, first + c) = Y(exponential(score(head, first + c) - base) * inverse); });
      if (lse.data == nullptr) return;
      using std::log;
      Kokkos::single(Kokkos::PerThread(team), [&]() { lse(head, row) = m + log(total); });
    });
  }
};

/// dx_e := y_e (dy_e - sum of the row's y dy).
template <class Csr, class Y, class D, class Exec = typename Csr::execution_space>
struct SoftmaxBackward {
  using Sum = AccumulatorOf<Y, D, D>;
  using Teams = AttentionTeams<Exec>;
  AttentionItems<Csr> items;
  std::int64_t heads;
  BatchVector<const Y> y;
  BatchVector<const D> d_y;
  BatchVector<D> d_x;
  Shares shares;
  int vector_bytes;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t begin(std::int64_t row) const {
    return static_cast<std::int64_t>(items.A.row_map()(row));
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(std::int64_t head, std::int64_t e, Sum taken) const {
    d_x(head, e) = D(widen<Sum>(y(head, e)) * (widen<Sum>(d_y(head, e)) - taken));
  }
  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    const std::int64_t last = items.begin(shares, share + 1);
    for (std::int64_t item = items.begin(shares, share); item < last; ++item) {
      const std::int64_t head = item / items.rows, row = item - head * items.rows, end = begin(row + 1);
      Sum taken = 0;
      for (std::int64_t e = begin(row); e < end; ++e) taken += widen<Sum>(y(head, e)) * widen<Sum>(d_y(head, e));
      for (std::int64_t e = begin(row); e < end; ++e) store(head, e, taken);
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(const typename Teams::Team& team) const {
    Teams::each(team, heads * items.rows, [&](const std::int64_t item) {
      const std::int64_t head = item / items.rows, row = item - head * items.rows, first = begin(row);
      const int count = static_cast<int>(begin(row + 1) - first);
      Sum taken = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, count),
          [&](const int c, Sum& sum) { sum += widen<Sum>(y(head, first + c)) * widen<Sum>(d_y(head, first + c)); },
          taken);
      Teams::lanes(team, count, [&](const int c) { store(head, first + c, taken); });
    });
  }
};

/// Runs one of the two for all heads. @param f  without shares
template <class Exec, class F>
void run_softmax(const char* label, const Exec& space, F f) {
  if (f.heads * f.items.rows == 0) return;
  if constexpr (Compat::is_host_v<Exec>) {
    f.shares = f.items.shares(space, f.heads);
    f.vector_bytes = host_vector_bytes();
    for_each_share(label, space, f.shares, AttentionShare<F>{f});
  } else {
    F::Teams::run(label, space, f, f.heads * f.items.rows, 0);
  }
}

template <class Csr>
AttentionItems<Csr> attention_items(const Csr& A) {
  return {CsrArrays<Csr>(A), static_cast<std::int64_t>(A.rows()), static_cast<std::int64_t>(A.nnz())};
}

}  // namespace Impl
}  // namespace Tessera

#endif
