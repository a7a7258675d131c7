// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_TOTALS_HPP
#define TESSERA_CORE_HOST_TOTALS_HPP

#include <cstdint>
#include <cstring>

#include "core/Tessera_HostLanes.hpp"

/// \file
/// Totals of four vectors at once on CPUs.

namespace Tessera {
namespace Impl {

// GCC on x86: CPUs do one shuffle per cycle, of which a total takes two to four. Four vectors share theirs: halves of
// two lie in one vector, then quarters of all four. Lanes are added in the order of HostLanes::total, so sums are the
// same bits. Elsewhere totals are made one by one.
#if defined(TESSERA_HOST_HAS_TARGETS) && !defined(__clang__)
#define TESSERA_HOST_TOTALS 1

typedef std::int64_t HostWords2 __attribute__((vector_size(16)));
typedef std::int64_t HostWords4 __attribute__((vector_size(32)));
typedef std::int64_t HostWords8 __attribute__((vector_size(64)));
typedef std::int32_t HostInts4 __attribute__((vector_size(16)));
typedef std::int32_t HostInts8 __attribute__((vector_size(32)));
typedef std::int32_t HostInts16 __attribute__((vector_size(64)));

template <class Sum, int Bytes>
struct HostTotals;

template <class Sum>
struct HostTotals<Sum, 16> {
  using V = typename HostLanes<Sum, 16>::type;
  static KOKKOS_FORCEINLINE_FUNCTION void of(const V* v, Sum* sums) {
    V first, second;
    if constexpr (sizeof(Sum) == 8) {
      first = __builtin_shuffle(v[0], v[1], HostWords2{0, 2}) + __builtin_shuffle(v[0], v[1], HostWords2{1, 3});
      second = __builtin_shuffle(v[2], v[3], HostWords2{0, 2}) + __builtin_shuffle(v[2], v[3], HostWords2{1, 3});
      std::memcpy(sums, &first, sizeof(first));
      std::memcpy(sums + 2, &second, sizeof(second));
    } else {
      constexpr HostInts4 low{0, 4, 1, 5}, high{2, 6, 3, 7};
      first = __builtin_shuffle(v[0], v[1], low) + __builtin_shuffle(v[0], v[1], high);
      second = __builtin_shuffle(v[2], v[3], low) + __builtin_shuffle(v[2], v[3], high);
      first = __builtin_shuffle(first, second, HostInts4{0, 1, 4, 5}) +
              __builtin_shuffle(first, second, HostInts4{2, 3, 6, 7});
      std::memcpy(sums, &first, sizeof(first));
    }
  }
};

template <class Sum>
struct HostTotals<Sum, 32> {
  using V = typename HostLanes<Sum, 32>::type;
  /// Halves of a, then of b.
  static KOKKOS_FORCEINLINE_FUNCTION void halves(V& to, const V& a, const V& b) {
    const auto x = reinterpret_cast<HostWords4>(a), y = reinterpret_cast<HostWords4>(b);
    to = reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords4{0, 1, 4, 5})) +
         reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords4{2, 3, 6, 7}));
  }
  static KOKKOS_FORCEINLINE_FUNCTION void of(const V* v, Sum* sums) {
    V even, odd;
    halves(even, v[0], v[2]);
    halves(odd, v[1], v[3]);
    if constexpr (sizeof(Sum) == 8) {
      even =
          __builtin_shuffle(even, odd, HostWords4{0, 4, 2, 6}) + __builtin_shuffle(even, odd, HostWords4{1, 5, 3, 7});
      std::memcpy(sums, &even, sizeof(even));
    } else {
      even = __builtin_shuffle(even, odd, HostInts8{0, 8, 1, 9, 4, 12, 5, 13}) +
             __builtin_shuffle(even, odd, HostInts8{2, 10, 3, 11, 6, 14, 7, 15});
      even += __builtin_shuffle(even, HostInts8{2, 3, 2, 3, 6, 7, 6, 7});
      const auto words = reinterpret_cast<HostWords4>(even);
      const std::int64_t pairs[2] = {words[0], words[2]};
      std::memcpy(sums, pairs, sizeof(pairs));
    }
  }
};

template <class Sum>
struct HostTotals<Sum, 64> {
  using V = typename HostLanes<Sum, 64>::type;
  static KOKKOS_FORCEINLINE_FUNCTION void halves(V& to, const V& a, const V& b) {
    const auto x = reinterpret_cast<HostWords8>(a), y = reinterpret_cast<HostWords8>(b);
    to = reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords8{0, 1, 2, 3, 8, 9, 10, 11})) +
         reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords8{4, 5, 6, 7, 12, 13, 14, 15}));
  }
  static KOKKOS_FORCEINLINE_FUNCTION void of(const V* v, Sum* sums) {
    V first, second;
    halves(first, v[0], v[1]);
    halves(second, v[2], v[3]);
    // A quarter for each.
    const auto x = reinterpret_cast<HostWords8>(first), y = reinterpret_cast<HostWords8>(second);
    V all = reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords8{0, 1, 4, 5, 8, 9, 12, 13})) +
            reinterpret_cast<V>(__builtin_shuffle(x, y, HostWords8{2, 3, 6, 7, 10, 11, 14, 15}));
    if constexpr (sizeof(Sum) == 8) {
      all += __builtin_shuffle(all, HostWords8{1, 0, 3, 2, 5, 4, 7, 6});
      all = __builtin_shuffle(all, HostWords8{0, 2, 4, 6, 0, 2, 4, 6});
    } else {
      all += __builtin_shuffle(all, HostInts16{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
      all += __builtin_shuffle(all, HostInts16{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14});
      all = __builtin_shuffle(all, HostInts16{0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12});
    }
    std::memcpy(sums, &all, 4 * sizeof(Sum));
  }
};
#endif

/// sums[c] := the total of v[c].
template <int Count, class Sum, int Bytes, class Vector>
KOKKOS_FORCEINLINE_FUNCTION void host_totals(const Vector* v, Sum* sums) {
#ifdef TESSERA_HOST_TOTALS
  if constexpr (Count == 4) return HostTotals<Sum, Bytes>::of(v, sums);
#endif
  for (int c = 0; c < Count; ++c) sums[c] = HostLanes<Sum, Bytes>::total(v[c]);
}

}  // namespace Impl
}  // namespace Tessera

#endif
