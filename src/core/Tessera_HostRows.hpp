// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_ROWS_HPP
#define TESSERA_CORE_HOST_ROWS_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/Tessera_HostLanes.hpp"
#include "core/Tessera_HostTotals.hpp"

/// \file
/// Products and sums of dense rows on CPUs, in vectors: what is done per entry in SDDMM and attention.

namespace Tessera {
namespace Impl {

// A row that is no multiple of a vector ends with its last whole vector once more, which overlaps the one before; a row
// shorter than a vector is read in vectors of 16 bytes, or in parts of one. Nothing outside of a row is read.

/// Widest vectors for rows of up to n numbers: no wider than these, as far as there is code for it.
template <class Sum>
int host_row_bytes(std::int64_t n) {
  int bytes = host_vector_bytes();
  while (bytes > 32 && n * static_cast<std::int64_t>(sizeof(Sum)) < bytes) bytes /= 2;
  return bytes;
}

/// sums[c] := <x, y[c]> over N elements, fewer than a vector of 16 bytes holds.
template <int Count, int Isa, int N, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_short_dots(const T* x, const T* const* y, Sum* sums) {
  using Lanes = HostLanes<Sum, 16, Isa>;
  typename Lanes::type v[Count] = {}, own, other;
  Lanes::template load_first<N>(own, x);
  for (int c = 0; c < Count; ++c) {
    Lanes::template load_first<N>(other, y[c]);
    Lanes::add_product(v[c], own, other);
  }
  host_totals<Count, Sum, 16>(v, sums);
}

/// sums[c] := <x, y[c]> over n elements. Several rows at once, so that a vector of x is loaded once for all and several
/// sums are under way. Bytes == 0: elements lie dx and dy apart.
template <int Bytes, int Count, int Isa = Bytes, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_dots(const T* x, std::int64_t dx, const T* const* y, std::int64_t dy,
                                           std::int64_t n, Sum* sums) {
  if constexpr (Bytes == 0) {
    for (int c = 0; c < Count; ++c) sums[c] = Sum(0);
    for (std::int64_t k = 0; k < n; ++k) {
      const Sum own = widen<Sum>(x[k * dx]);
      for (int c = 0; c < Count; ++c) sums[c] += own * widen<Sum>(y[c][k * dy]);
    }
  } else {
    using Lanes = HostLanes<Sum, Bytes, Isa>;
    if (n < Lanes::count) {
      if constexpr (Bytes > 16) {
        return host_dots<16, Count, Isa>(x, dx, y, dy, n, sums);
      } else {
        if constexpr (Lanes::count > 2) {
          if (n == 3) return host_short_dots<Count, Isa, 3>(x, y, sums);
          if (n == 2) return host_short_dots<Count, Isa, 2>(x, y, sums);
        }
        if (n == 1) return host_short_dots<Count, Isa, 1>(x, y, sums);
        for (int c = 0; c < Count; ++c) sums[c] = Sum(0);
        return;
      }
    }
    typename Lanes::type v[Count] = {}, own, other;
    std::int64_t k = 0;
    for (; k + Lanes::count <= n; k += Lanes::count) {
      Lanes::load(own, x + k);
      for (int c = 0; c < Count; ++c) {
        Lanes::load(other, y[c] + k);
        Lanes::add_product(v[c], own, other);
      }
    }
    if (std::is_same_v<T, Sum> && k + 1 == n) {  // of rows that cross lines of the caches, one number costs less
      host_totals<Count, Sum, Bytes>(v, sums);
      for (int c = 0; c < Count; ++c) sums[c] += x[k] * y[c][k];
      return;
    }
    if (k < n) {
      // What was added already becomes 0 in both rows, as infinite times 0 is not 0.
      typename Lanes::Mask mask;
      Lanes::last_lanes(mask, n - k);
      const std::int64_t last = n - Lanes::count;
      Lanes::load(own, x + last);
      Lanes::keep(own, mask);
      for (int c = 0; c < Count; ++c) {
        Lanes::load(other, y[c] + last);
        Lanes::keep(other, mask);
        Lanes::add_product(v[c], own, other);
      }
    }
    host_totals<Count, Sum, Bytes>(v, sums);
  }
}

// Sums of a row: a vector for each of the row's, so that the last one holds the sums of the row's last columns, some of
// which the one before holds as well. So sums that overlap are the same, and no vector waits for another one's store.

/// Sums of n columns, all 0.
template <int Bytes, class Sum>
KOKKOS_FORCEINLINE_FUNCTION void host_clear_row(Sum* sums, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes>;
  const typename Lanes::type zero{};
  for (std::int64_t k = 0; k < n; k += Lanes::count) std::memcpy(sums + k, &zero, sizeof(zero));
}
template <int Bytes, class Sum>
KOKKOS_FORCEINLINE_FUNCTION void host_scale_row(Sum* sums, Sum factor, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes>;
  for (std::int64_t k = 0; k < n; k += Lanes::count) {
    typename Lanes::type v;
    std::memcpy(&v, sums + k, sizeof(v));
    Lanes::scale(v, factor);
    std::memcpy(sums + k, &v, sizeof(v));
  }
}

/// Groups of vectors from column k on, as many as n has: sums += a[c] y[c] for all c, in this order. Sums stay in
/// registers while the rows go by. Returns the first column that is left.
template <int Bytes, int Vectors, int Isa, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t host_add_vectors(Sum* sums, const Sum* a, const T* const* y, int count,
                                                          std::int64_t k, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes, Isa>;
  constexpr int before = (Vectors - 1) * Lanes::count;
  for (; k + before < n; k += Vectors * Lanes::count) {
    const std::int64_t last = std::min(k + before, n - Lanes::count);
    typename Lanes::type v[Vectors];
    for (int j = 0; j < Vectors; ++j) std::memcpy(&v[j], sums + k + j * Lanes::count, sizeof(v[j]));
    for (int c = 0; c < count; ++c) {
      for (int j = 0; j + 1 < Vectors; ++j) Lanes::add(v[j], a[c], y[c] + k + j * Lanes::count);
      Lanes::add(v[Vectors - 1], a[c], y[c] + last);
    }
    for (int j = 0; j < Vectors; ++j) std::memcpy(sums + k + j * Lanes::count, &v[j], sizeof(v[j]));
  }
  return k;
}

/// sums[0..N) += a[c] y[c][0..N) for all c, in this order; N is less than a vector of 16 bytes holds.
template <int Isa, int N, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_add_short_rows(Sum* sums, const Sum* a, const T* const* y, int count) {
  using Lanes = HostLanes<Sum, 16, Isa>;
  typename Lanes::type v, row;
  std::memcpy(&v, sums, sizeof(v));
  for (int c = 0; c < count; ++c) {
    Lanes::template load_first<N>(row, y[c]);
    Lanes::scale(row, a[c]);
    Lanes::add(v, row);
  }
  std::memcpy(sums, &v, sizeof(v));
}

/// sums[0..n) += a[c] y[c][0..n) for all c, in this order.
template <int Bytes, int Isa = Bytes, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_add_rows(Sum* sums, const Sum* a, const T* const* y, int count, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes, Isa>;
  constexpr int lanes = Lanes::count;
  if (n < lanes) {
    if constexpr (Bytes > 16) {
      return host_add_rows<16, Isa>(sums, a, y, count, n);
    } else {
      if constexpr (lanes > 2) {
        if (n == 3) return host_add_short_rows<Isa, 3>(sums, a, y, count);
        if (n == 2) return host_add_short_rows<Isa, 2>(sums, a, y, count);
      }
      if (n == 1) host_add_short_rows<Isa, 1>(sums, a, y, count);
      return;
    }
  }
  std::int64_t k = host_add_vectors<Bytes, 8, Isa>(sums, a, y, count, 0, n);
  k = host_add_vectors<Bytes, 4, Isa>(sums, a, y, count, k, n);
  k = host_add_vectors<Bytes, 2, Isa>(sums, a, y, count, k, n);
  host_add_vectors<Bytes, 1, Isa>(sums, a, y, count, k, n);
}

/// to[0..n) := factor sums[0..n), rounded.
template <int Bytes, int Isa = Bytes, class Sum, class T>
KOKKOS_FORCEINLINE_FUNCTION void host_store_row(T* to, Sum factor, const Sum* sums, std::int64_t n) {
  using Lanes = HostLanes<Sum, Bytes, Isa>;
  constexpr int lanes = Lanes::count;
  if (n < lanes) {
    if constexpr (Bytes > 16) return host_store_row<16, Isa>(to, factor, sums, n);
    for (std::int64_t k = 0; k < n; ++k) to[k] = host_round<T, Isa>(factor * sums[k]);
    return;
  }
  for (std::int64_t k = 0; k < n; k += lanes) {
    T* const at = to + std::min(k, n - lanes);
    if constexpr (std::is_same_v<T, Sum> || Lanes::template can_store<T>) {
      typename Lanes::type v;
      std::memcpy(&v, sums + k, sizeof(v));
      Lanes::scale(v, factor);
      if constexpr (std::is_same_v<T, Sum>) {
        std::memcpy(at, &v, sizeof(v));
      } else {
        Lanes::store(at, v);
      }
    } else {
      for (int j = 0; j < lanes; ++j) at[j] = host_round<T, Isa>(factor * sums[k + j]);
    }
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
