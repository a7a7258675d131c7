// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR_SPMV_HPP
#define TESSERA_SPMV_CSR_SPMV_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Accumulator.hpp"
#include "core/Tessera_HostLanes.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_Shares.hpp"

/// \file
/// y := alpha A x + beta y straight from CSR, in Kokkos, on every back end. No set-up. A team takes a group of
/// consecutive rows, a vector of lanes per row (devices), or one thread per range of rows with as many entries as
/// others (hosts).
///
/// Bytes: nnz (v + 4) + rows (offset + y) + x once if it stays in cache; one launch; deterministic (the reduction over
/// a row's lanes has a fixed order).

namespace Tessera {
namespace Impl {

template <class Csr, class X, class Y>
struct CsrSpmvFunctor {
  using exec = typename Csr::execution_space;
  using Sum =
      AccumulatorOf<typename Csr::value_type, typename X::non_const_value_type, typename Y::non_const_value_type>;
  using offset = typename Csr::size_type;

  Csr A;
  X x;
  Y y;
  Sum alpha, beta;
  std::int64_t rows_per_team;

  KOKKOS_INLINE_FUNCTION Sum entry(offset i) const { return widen<Sum>(A.values()(i)) * widen<Sum>(x(A.entries()(i))); }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, Sum sum) const { store_scaled(&y(row), alpha, sum, beta); }

  /// Devices: a team, rows_per_team rows.
  KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<exec>::member_type& team) const {
    const std::int64_t first = team.league_rank() * rows_per_team, rows = A.rows();
    const std::int64_t last = first + rows_per_team < rows ? first + rows_per_team : rows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, first, last), [&](const std::int64_t row) {
      Sum sum = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, A.row_map()(row), A.row_map()(row + 1)),
          [&](const offset i, Sum& s) { s += entry(i); }, sum);
      Kokkos::single(Kokkos::PerThread(team), [&]() { store(row, sum); });
    });
  }
};

/// Hosts: a share of the rows. Work: the entries, and one more per row.
template <class Csr, class X, class Y>
struct CsrHostFunctor {
  using Base = CsrSpmvFunctor<Csr, X, Y>;
  using Sum = typename Base::Sum;
  using offset = typename Csr::size_type;
  static constexpr int short_most = 64;

  Base f;
  Shares shares;
  bool long_rows;   ///< sums of their own pay: one sum waits four cycles for each addition, but short rows overlap
  bool short_ones;  ///< rows have one entry or little more in the mean
  bool overwrites;  ///< most rows are empty or have one entry, and beta is zero: branches are what takes time
  bool f16c = host_has_f16c();

  std::int64_t begin_of(std::int64_t share) const {
    return shares.begin(share, [&](std::int64_t row) { return static_cast<std::int64_t>(f.A.row_map()(row)) + row; });
  }
  void operator()(const std::int64_t share) const {
    const std::int64_t begin = begin_of(share), end = begin_of(share + 1);
    if constexpr (std::is_same_v<typename Csr::value_type, half_t>) {
      if (f16c) return run<32>(begin, end);
    }
    run<16>(begin, end);
  }
  /// Bytes: as in host_widen.
  template <int Bytes>
  void run(std::int64_t begin, std::int64_t end) const {
    if (short_ones && end - begin >= short_most) return short_rows<Bytes>(begin, end);
    if (long_rows) return rows<true, Bytes, false>(begin, end);
    return overwrites ? rows<false, Bytes, true>(begin, end) : rows<false, Bytes, false>(begin, end);
  }

  /// What a thread reads, copied, so that it stays in registers: what is written to y might otherwise be any of the
  /// members.
  template <int Bytes>
  struct Local {
    const typename Csr::value_type* values;
    const typename Csr::ordinal_type* entries;
    const offset* map;
    X x;
    Y y;
    Sum alpha, beta;
    explicit Local(const Base& f)
        : values(f.A.values().data()),
          entries(f.A.entries().data()),
          map(f.A.row_map().data()),
          x(f.x),
          y(f.y),
          alpha(f.alpha),
          beta(f.beta) {}
    Sum entry(std::ptrdiff_t i) const {
      return host_widen<Sum, Bytes>(values[i]) * host_widen<Sum, Bytes>(x(entries[i]));
    }
    void add(Sum& sum, offset first, offset last) const {
      const auto end = static_cast<std::ptrdiff_t>(last);
      for (auto i = static_cast<std::ptrdiff_t>(first); i < end; ++i) {
        sum += entry(i);
#if defined(__GNUC__)
        // Else some products are made at once and added one by one, at a loss where rows are short. Numbers of 16 bits
        // are widened so.
        if constexpr (sizeof(values[0]) > 2) asm("" : "+r"(i));
#endif
      }
    }
    Sum four_sums(offset first, offset last) const {
      Sum sum[4] = {Sum(0), Sum(0), Sum(0), Sum(0)};
      auto i = static_cast<std::ptrdiff_t>(first);
      for (const auto whole = i + static_cast<std::ptrdiff_t>(last - first) / 4 * 4; i < whole; i += 4) {
        sum[0] += entry(i);
        sum[1] += entry(i + 1);
        sum[2] += entry(i + 2);
        sum[3] += entry(i + 3);
      }
      add(sum[0], static_cast<offset>(i), last);
      return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    void store(std::int64_t row, Sum sum) const { host_store_scaled<Bytes>(&y(row), alpha, sum, beta); }
  };
  /// Overwrites: beta is zero.
  template <bool Long, int Bytes, bool Overwrites>
  void rows(std::int64_t begin, std::int64_t end) const {
    Local<Bytes> l(f);
    if constexpr (Overwrites) l.beta = Sum(0);
    for (std::int64_t row = begin; row < end; ++row) {
      const offset first = l.map[row], last = l.map[row + 1];
      Sum sum(0);
      if constexpr (Long) {
        sum = l.four_sums(first, last);
      } else {
        l.add(sum, first, last);
      }
      l.store(row, sum);
    }
  }
  /// Some rows at a time, without a loop over their entries where each has one.
  template <int Bytes>
  void short_rows(std::int64_t begin, std::int64_t end) const {
    const Local<Bytes> l(f);
    for (std::int64_t row = begin; row < end; row += short_most) {
      const int count = static_cast<int>(end - row < short_most ? end - row : short_most);
      const offset* const from = l.map + row;
      if (from[count] - from[0] == static_cast<offset>(count) && all_have_one(from, count)) {
        for (int k = 0; k < count; ++k) l.store(row + k, l.entry(static_cast<std::ptrdiff_t>(from[0]) + k));
      } else {
        rows<false, Bytes, false>(row, row + count);
      }
    }
  }
  static bool all_have_one(const offset* from, int count) {
    offset other = 0;
    for (int k = 0; k < count; ++k) other |= from[k + 1] - from[k] - 1;
    return other == 0;
  }
};

/// Rows and entries, together, that a host's calling thread multiplies in the time that it takes to wake others.
constexpr std::int64_t csr_spmv_alone = 6000;

/// Rank-1 x and y of any stride.
template <class Exec, class Csr, class X, class Y>
void csr_spmv(const Exec& space, double alpha, const Csr& matrix, const X& x, double beta, const Y& y) {
  const CsrArrays<Csr> A(matrix);
  using Functor = CsrSpmvFunctor<CsrArrays<Csr>, X, Y>;
  using Sum = typename Functor::Sum;
  const std::int64_t rows = A.rows();
  if (rows == 0) return;
  Functor f{A, x, y, static_cast<Sum>(alpha), static_cast<Sum>(beta), 0};
  if constexpr (Compat::is_host_v<Exec>) {
    const auto nnz = static_cast<std::int64_t>(A.nnz());
    const Shares shares = Shares::of(space, rows, nnz + rows, 256, 100000, 16, csr_spmv_alone);
    static const std::string label("Tessera::spmv[csr]");
    for_each_share(label, space, shares,
                   CsrHostFunctor<CsrArrays<Csr>, X, Y>{f, shares, nnz >= 20 * rows, nnz >= rows && nnz < 2 * rows,
                                                        nnz < rows && f.beta == Sum(0)});
  } else {
    // As many lanes per row as the mean row has entries, a power of two; 256 threads per team.
    const std::int64_t mean = static_cast<std::int64_t>(A.nnz()) / rows;
    int lanes = 1;
    while (lanes < 32 && lanes < mean) lanes *= 2;
    const int threads = 256 / lanes;
    f.rows_per_team = threads;
    const std::int64_t teams = (rows + f.rows_per_team - 1) / f.rows_per_team;
    Kokkos::parallel_for("Tessera::spmv[csr]", Kokkos::TeamPolicy<Exec>(space, static_cast<int>(teams), threads, lanes),
                         f);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
