// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KOKKOS_CSR_SPMV_HPP
#define TESSERA_KOKKOS_CSR_SPMV_HPP

#include <cstdint>
#include <type_traits>

#include "Tessera_CsrView.hpp"

/// \file
/// y := alpha A x + beta y straight from CSR, in Kokkos, on every back end. No set-up. A team takes a group of
/// consecutive rows, a vector of lanes a row (devices), or a thread a range of rows (hosts).
///
/// Bytes: nnz (v + 4) + rows (offset + y) + x once if it stays in cache; one launch; deterministic (the reduction over
/// a row's lanes has a fixed order).

namespace Tessera {
namespace Impl {

/// double as soon as one operand is double, else float: float A with double x sums in double.
template <class A, class X, class Y>
using AccumulatorOf =
    std::conditional_t<std::is_same_v<A, double> || std::is_same_v<X, double> || std::is_same_v<Y, double>, double,
                       float>;

/// Value of any supported element as the accumulator type.
template <class Sum, class T>
KOKKOS_INLINE_FUNCTION Sum widen(const T& v) {
  if constexpr (std::is_same_v<T, half_t> || std::is_same_v<T, bhalf_t>) {
    return static_cast<Sum>(static_cast<float>(v));
  } else {
    return static_cast<Sum>(v);
  }
}

template <class Csr, class X, class Y>
struct CsrSpmvFunctor {
  using exec = typename Csr::execution_space;
  using Sum =
      AccumulatorOf<typename Csr::value_type, typename X::non_const_value_type, typename Y::non_const_value_type>;
  using Result = typename Y::non_const_value_type;
  using offset = typename Csr::size_type;

  Csr A;
  X x;
  Y y;
  Sum alpha, beta;
  std::int64_t rows_per_team;

  KOKKOS_INLINE_FUNCTION Sum entry(offset i) const { return widen<Sum>(A.values()(i)) * widen<Sum>(x(A.entries()(i))); }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, Sum sum) const {
    const Sum result = beta == Sum(0) ? alpha * sum : alpha * sum + beta * widen<Sum>(y(row));
    y(row) = Result(result);
  }

  /// Hosts: one thread, a row, in four sums that do not wait for each other.
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const offset begin = A.row_map()(row), end = A.row_map()(row + 1);
    const offset whole = begin + (end - begin) / 4 * 4;
    Sum sum[4] = {Sum(0), Sum(0), Sum(0), Sum(0)};
    for (offset i = begin; i < whole; i += 4) {
      for (int j = 0; j < 4; ++j) sum[j] += entry(i + static_cast<offset>(j));
    }
    for (offset i = whole; i < end; ++i) sum[0] += entry(i);
    store(row, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }

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

/// y := beta y without reading y for beta == 0 (alpha == 0, or no entries).
template <class Y, class Sum>
struct ScaleFunctor {
  Y y;
  Sum beta;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    y(i) = typename Y::non_const_value_type(beta == Sum(0) ? Sum(0) : beta * widen<Sum>(y(i)));
  }
};

template <class Exec, class Sum, class Y>
void scale(const Exec& space, Sum beta, const Y& y) {
  if (beta == Sum(1) || y.extent(0) == 0) return;
  Kokkos::parallel_for("Tessera::spmv[scale]",
                       Kokkos::RangePolicy<Exec>(space, 0, static_cast<std::int64_t>(y.extent(0))),
                       ScaleFunctor<Y, Sum>{y, beta});
}

/// Rank-1 x and y of any stride.
template <class Exec, class Csr, class X, class Y>
void csr_spmv(const Exec& space, double alpha, const Csr& A, const X& x, double beta, const Y& y) {
  using Functor = CsrSpmvFunctor<Csr, X, Y>;
  using Sum = typename Functor::Sum;
  const std::int64_t rows = A.rows();
  if (rows == 0) return;
  Functor f{A, x, y, static_cast<Sum>(alpha), static_cast<Sum>(beta), 0};
  if constexpr (Compat::is_host_v<Exec>) {
    // Small dynamic chunks: rows differ in length.
    Kokkos::parallel_for(
        "Tessera::spmv[csr]",
        Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>>(space, 0, rows, Kokkos::ChunkSize(256)), f);
  } else {
    // As many lanes a row as the mean row has entries, a power of two; 256 threads a team.
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
