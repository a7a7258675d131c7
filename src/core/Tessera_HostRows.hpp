// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_ROWS_HPP
#define TESSERA_CORE_HOST_ROWS_HPP

#include <cstdint>
#include <cstring>

#include "core/Tessera_HostLanes.hpp"

/// \file
/// Products and sums of dense rows on CPUs, in vectors: what is done per entry in SDDMM and attention.

namespace Tessera {
namespace Impl {

/// sums[c] := <x, y[c]> over n elements. Several rows at once, so that a vector of x is loaded once for all and several
/// sums are under way. Bytes == 0: elements lie dx and dy apart.
template <int Bytes, int Count, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_dots(const T* x, std::int64_t dx, const T* const* y, std::int64_t dy,
                                           std::int64_t n, Sum* sums) {
  std::int64_t k = 0;
  for (int c = 0; c < Count; ++c) sums[c] = Sum(0);
  if constexpr (Bytes > 0) {
    using Lanes = HostLanes<Sum, Bytes>;
    typename Lanes::type v[Count] = {};
    for (; k + Lanes::count <= n; k += Lanes::count) {
      typename Lanes::type own, other;
      Lanes::load(own, x + k);
      for (int c = 0; c < Count; ++c) {
        Lanes::load(other, y[c] + k);
        Lanes::add_product(v[c], own, other);
      }
    }
    for (int c = 0; c < Count; ++c) sums[c] = Lanes::total(v[c]);
  }
  for (; k < n; ++k) {
    const Sum own = host_widen<Sum, Bytes>(x[k * dx]);
    for (int c = 0; c < Count; ++c) sums[c] += own * host_widen<Sum, Bytes>(y[c][k * dy]);
  }
}

/// Vectors sums[0..Vectors) += a[c] y[c][0..) for all c, in this order; sums stay in registers while the rows go by.
template <int Bytes, int Vectors, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_add_vectors(Sum* sums, const Sum* a, const T* const* y, int count,
                                                  std::int64_t first) {
  using Lanes = HostLanes<Sum, Bytes>;
  typename Lanes::type v[Vectors];
  for (int j = 0; j < Vectors; ++j) std::memcpy(&v[j], sums + first + j * Lanes::count, sizeof(v[j]));
  for (int c = 0; c < count; ++c) {
    for (int j = 0; j < Vectors; ++j) Lanes::add(v[j], a[c], y[c] + first + j * Lanes::count);
  }
  for (int j = 0; j < Vectors; ++j) std::memcpy(sums + first + j * Lanes::count, &v[j], sizeof(v[j]));
}

/// sums[0..n) += a[c] y[c][0..n) for all c, in this order.
template <int Bytes, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_add_rows(Sum* sums, const Sum* a, const T* const* y, int count, std::int64_t n) {
  constexpr int lanes = HostLanes<Sum, Bytes>::count;
  std::int64_t k = 0;
  for (; k + 8 * lanes <= n; k += 8 * lanes) host_add_vectors<Bytes, 8>(sums, a, y, count, k);
  for (; k + 4 * lanes <= n; k += 4 * lanes) host_add_vectors<Bytes, 4>(sums, a, y, count, k);
  for (; k + 2 * lanes <= n; k += 2 * lanes) host_add_vectors<Bytes, 2>(sums, a, y, count, k);
  for (; k + lanes <= n; k += lanes) host_add_vectors<Bytes, 1>(sums, a, y, count, k);
  for (; k < n; ++k) {
    Sum sum = sums[k];
    for (int c = 0; c < count; ++c) sum += a[c] * host_widen<Sum, Bytes>(y[c][k]);
    sums[k] = sum;
  }
}

/// to[0..n) := factor sums[0..n), rounded.
template <int Bytes, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_store_row(T* to, Sum factor, const Sum* sums, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes>;
  std::int64_t k = 0;
  if constexpr (Lanes::template can_store<T>) {
    for (; k + Lanes::count <= n; k += Lanes::count) {
      typename Lanes::type v;
      Lanes::load(v, sums + k);
      v *= factor;
      Lanes::store(to + k, v);
    }
  }
  for (; k < n; ++k) to[k] = host_round<T, Bytes>(factor * sums[k]);
}

}  // namespace Impl
}  // namespace Tessera

#endif
