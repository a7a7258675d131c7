// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_ROWS_HPP
#define TESSERA_SDDMM_SDDMM_ROWS_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/Tessera_HostRows.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_Shares.hpp"
#include "sddmm/Tessera_SddmmOperands.hpp"

/// \file
/// P := alpha <X_i, Y_j> [* S_ij] + beta P straight from CSR, in Kokkos, on every back end and for all element types.
///
/// Hosts: equal numbers of entries per share, cut inside rows where rows are long; four entries of a row at once, so
/// that a vector of X_i is loaded once for four of Y and four sums are under way. Devices: a few lanes per entry, which
/// finds its row by a search in the row map; Tessera's backends have better kernels.

namespace Tessera {
namespace Impl {

/// One head, with any strides. scale: S, or null.
template <class Csr, class T, class PT>
struct SddmmProduct {
  using Sum = AccumulatorOf<T, T, PT>;
  CsrArrays<Csr> A;
  Dense<const T> x, y;
  PT* p;
  std::int64_t p_stride;
  SddmmSlots slots;
  const typename Csr::value_type* scale;
  Sum alpha, beta;

  KOKKOS_INLINE_FUNCTION void store(std::int64_t entry, Sum sum) const {
    if (scale != nullptr) sum *= widen<Sum>(scale[entry]);
    store_scaled(p + slots(entry) * p_stride, alpha, sum, beta);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t row) const {
    return static_cast<std::int64_t>(A.row_map()(row));
  }
  /// The row of an entry: the last one that begins there or before.
  KOKKOS_INLINE_FUNCTION std::int64_t row_of(std::int64_t entry) const {
    std::int64_t low = 0, high = static_cast<std::int64_t>(A.rows());
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (begin(middle) <= entry) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <class Csr, class T, class PT>
struct SddmmHostFunctor : SddmmProduct<Csr, T, PT> {
  using Base = SddmmProduct<Csr, T, PT>;
  using Sum = typename Base::Sum;
  Shares shares;
  int vector_bytes;  ///< 16, 32 or 64
  SddmmHostFunctor(const Base& base, const Shares& s, int bytes) : Base(base), shares(s), vector_bytes(bytes) {}

  /// Count entries of one row. Bytes == 0: elements lie apart.
  template <int Bytes, int Count>
  KOKKOS_FORCEINLINE_FUNCTION void entries(std::int64_t row, std::int64_t first) const {
    const T* const x = this->x.at(row, 0);
    const T* y[Count];
    for (int c = 0; c < Count; ++c) y[c] = this->y.at(static_cast<std::int64_t>(this->A.entries()(first + c)), 0);
    Sum sums[Count];
    host_dots<Bytes, Count>(x, this->x.column_stride, y, this->y.column_stride, this->x.columns, sums);
    for (int c = 0; c < Count; ++c) {
      const std::int64_t entry = first + c;
      if (this->scale != nullptr) sums[c] *= host_widen<Sum, Bytes>(this->scale[entry]);
      host_store_scaled<Bytes>(this->p + this->slots(entry) * this->p_stride, this->alpha, sums[c], this->beta);
    }
  }

  template <int Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(const std::int64_t share) const {
    std::int64_t e = Shares::cut(shares.work, share, shares.count);
    const std::int64_t last = Shares::cut(shares.work, share + 1, shares.count);
    if (e == last) return;
    for (std::int64_t row = this->row_of(e); e < last; ++row) {
      const std::int64_t end = std::min(this->begin(row + 1), last);
      for (; e + 4 <= end; e += 4) entries<Bytes, 4>(row, e);
      for (; e + 2 <= end; e += 2) entries<Bytes, 2>(row, e);
      for (; e < end; ++e) entries<Bytes, 1>(row, e);
    }
  }
#ifdef TESSERA_HOST_HAS_TARGETS
  TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma") void run64(const std::int64_t share) const {
    run<64>(share);
  }
  TESSERA_HOST_TARGET("avx2,fma") void run32(const std::int64_t share) const { run<32>(share); }
#endif
  void operator()(const std::int64_t share) const {
    if (this->x.column_stride != 1 || this->y.column_stride != 1) return run<0>(share);
#ifdef TESSERA_HOST_HAS_TARGETS
    if (vector_bytes == 64) return run64(share);
    if (vector_bytes == 32) return run32(share);
#endif
    run<16>(share);
  }
};

/// A Kokkos team's threads take entries, their vector lanes share the sums.
template <class Exec, class Csr, class T, class PT>
struct SddmmDeviceFunctor : SddmmProduct<Csr, T, PT> {
  using Base = SddmmProduct<Csr, T, PT>;
  using Sum = typename Base::Sum;
  static constexpr int entries = 256;  ///< of a team
  std::int64_t nnz;
  SddmmDeviceFunctor(const Base& base, std::int64_t n) : Base(base), nnz(n) {}

  KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
    const std::int64_t first = std::int64_t{team.league_rank()} * entries;
    const int count = nnz - first < entries ? static_cast<int>(nnz - first) : entries;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int i) {
      const std::int64_t entry = first + i, row = this->row_of(entry);
      const auto column = static_cast<std::int64_t>(this->A.entries()(entry));
      Sum sum = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, static_cast<int>(this->x.columns)),
          [&](const int k, Sum& part) { part += widen<Sum>(*this->x.at(row, k)) * widen<Sum>(*this->y.at(column, k)); },
          sum);
      Kokkos::single(Kokkos::PerThread(team), [&]() { this->store(entry, sum); });
    });
  }
};

/// At least one entry.
template <class Exec, class Csr, class T, class PT>
void sddmm_rows(const Exec& space, double alpha, const Csr& S, bool scaled, const SddmmInput<T>& in, double beta,
                const SddmmOutput<PT>& out) {
  using Product = SddmmProduct<Csr, T, PT>;
  using Sum = typename Product::Sum;
  const auto nnz = static_cast<std::int64_t>(S.nnz());
  for (std::int64_t h = 0; h < in.heads; ++h) {
    const Product product{CsrArrays<Csr>(S),
                          in.x.head(h),
                          in.y.head(h),
                          out.data + h * out.head_stride,
                          out.stride,
                          out.slots,
                          scaled ? S.values().data() : nullptr,
                          static_cast<Sum>(alpha),
                          static_cast<Sum>(beta)};
    static const std::string label("Tessera::sddmm[rows]");
    if constexpr (Compat::is_host_v<Exec>) {
      // Entries of work: a product of K, in parts of a vector.
      const Shares shares = Shares::of(space, nnz, nnz, 64, 20000, 32);
      const int bytes = host_row_bytes<Sum>(in.x.matrix.columns);
      for_each_share(label, space, shares, SddmmHostFunctor<Csr, T, PT>(product, shares, bytes));
    } else {
      using Functor = SddmmDeviceFunctor<Exec, Csr, T, PT>;
      const std::int64_t teams = (nnz + Functor::entries - 1) / Functor::entries;
      Kokkos::parallel_for(label, Kokkos::TeamPolicy<Exec>(space, static_cast<int>(teams), Kokkos::AUTO, 8),
                           Functor(product, nnz));
    }
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
