// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR_SPMV_HPP
#define TESSERA_SPMV_CSR_SPMV_HPP

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

  Base f;
  Shares shares;
  bool long_rows;  ///< sums of their own pay: one sum waits four cycles for each addition, but short rows overlap
  bool f16c = host_has_f16c();

  std::int64_t begin_of(std::int64_t share) const {
    return shares.begin(share, [&](std::int64_t row) { return static_cast<std::int64_t>(f.A.row_map()(row)) + row; });
  }
  void operator()(const std::int64_t share) const {
    const std::int64_t begin = begin_of(share), end = begin_of(share + 1);
    if constexpr (std::is_same_v<typename Csr::value_type, half_t>) {
      if (f16c) return long_rows ? run<true, 32>(begin, end) : run<false, 32>(begin, end);
    }
    return long_rows ? run<true, 16>(begin, end) : run<false, 16>(begin, end);
  }
  /// Bytes: as in host_widen.
  template <bool Long, int Bytes>
  void run(std::int64_t begin, std::int64_t end) const {
    const auto* const values = f.A.values().data();
    const auto* const entries = f.A.entries().data();
    const auto* const map = f.A.row_map().data();
    // Copies, which stay in registers: what is written to y might otherwise be any of the members.
    const X x = f.x;
    const Y y = f.y;
    const Sum alpha = f.alpha, beta = f.beta;
    const auto entry = [&](offset i) {
      return host_widen<Sum, Bytes>(values[i]) * host_widen<Sum, Bytes>(x(entries[i]));
    };
    for (std::int64_t row = begin; row < end; ++row) {
      offset i = map[row];
      const offset last = map[row + 1];
      Sum sum[4] = {Sum(0), Sum(0), Sum(0), Sum(0)};
      if constexpr (Long) {
        for (const offset whole = i + (last - i) / 4 * 4; i < whole; i += 4) {
          sum[0] += entry(i);
          sum[1] += entry(i + 1);
          sum[2] += entry(i + 2);
          sum[3] += entry(i + 3);
        }
      }
      for (; i < last; ++i) sum[0] += entry(i);
      host_store_scaled<Bytes>(&y(row), alpha, Long ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[0], beta);
    }
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
    for_each_share(label, space, shares, CsrHostFunctor<CsrArrays<Csr>, X, Y>{f, shares, nnz >= 20 * rows});
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
