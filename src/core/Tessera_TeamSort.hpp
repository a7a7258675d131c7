// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_TEAM_SORT_HPP
#define TESSERA_CORE_TEAM_SORT_HPP

#include <Kokkos_Core.hpp>

namespace Tessera {
namespace Impl {

/// Bitonic sort of `count` keys (a power of two) in a Kokkos team's scratch, ascending. With distinct keys (the place
/// in the low bits) the order is the stable one. Keys that are in order already are left after one look.
template <class Member, class Keys>
KOKKOS_INLINE_FUNCTION void team_sort(const Member& team, const Keys& keys, const int count) {
  int descents = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, count - 1), [&](const int i, int& d) { d += keys(i) > keys(i + 1); }, descents);
  if (descents == 0) return;
  for (int run = 2; run <= count; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count / 2), [&](const int i) {
        const int low = 2 * i - (i & (distance - 1)), high = low + distance;
        const bool ascending = (low & run) == 0;
        const auto a = keys(low), b = keys(high);
        if ((a > b) == ascending) keys(low) = b, keys(high) = a;
      });
      team.team_barrier();
    }
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
