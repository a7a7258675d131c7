// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_SHARES_HPP
#define TESSERA_CORE_SHARES_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "Tessera_Compat.hpp"
#include "core/Tessera_Profile.hpp"

/// \file
/// Consecutive items cut into shares of equal work, for the threads of a host.

namespace Tessera {
namespace Impl {

/// First of `count` items for which `beyond` holds; it holds for all that follow.
template <class F>
std::int64_t first_item(std::int64_t count, F&& beyond) {
  std::int64_t low = 0;
  while (low < count) {
    const std::int64_t middle = low + (count - low) / 2;
    if (beyond(middle)) {
      count = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// How many shares, and where they begin.
struct Shares {
  std::int64_t items = 0, work = 0, count = 1;
  bool per_thread = true;  ///< one share per thread

  /// One share per thread where the matrix stays in the caches between products: a thread then meets its own share
  /// again. More and smaller ones for large matrices (`large` units of work per thread), so that a thread which is held
  /// up delays the others less, at most `most` per thread. None with less work than `small`; only one where all of the
  /// work is less than `alone`, which is what waking other threads costs.
  template <class Exec>
  static Shares of(const Exec& space, std::int64_t items, std::int64_t work, std::int64_t small, std::int64_t large,
                   std::int64_t most = 16, std::int64_t alone = 0) {
    if (work < alone) return {items, work, 1, true};
    const std::int64_t threads = std::max(1, static_cast<int>(space.concurrency()));
    const std::int64_t each = std::min<std::int64_t>(1 + work / (threads * large), most);
    return {items, work, std::min(threads * each, 1 + work / small), each == 1};
  }

  /// Where share `share` of `count` begins in `whole`.
  static constexpr std::int64_t cut(std::int64_t whole, std::int64_t share, std::int64_t count) {
    return whole / count * share + whole % count * share / count;  // whole * share may be too large
  }

  /// First item of a share. work_before(i): of all items before item i.
  template <class WorkBefore>
  std::int64_t begin(std::int64_t share, WorkBefore&& work_before) const {
    if (share == 0) return 0;
    if (share == count) return items;
    const std::int64_t until = cut(work, share, count);
    return first_item(items, [&](std::int64_t i) { return work_before(i) >= until; });
  }
};

/// f(share) for all shares, on the threads of a host; a single one on the calling thread where kernels have ended when
/// parallel_for returns, as a parallel region of OpenMP takes longer than the product of a small matrix. (Kokkos takes
/// labels as std::string: making one may cost as much as the product of a small matrix.)
template <class Exec, class F>
void for_each_share(const std::string& label, const Exec& space, const Shares& shares, const F& f) {
  static_assert(Compat::is_host_v<Exec>, "shares are for the threads of a host");
  using Kokkos::RangePolicy;
  using Kokkos::Schedule;
  if (Compat::is_openmp_v<Exec> && shares.count == 1) {
    const KernelEvent<Exec> event(space, label);
    return f(0);
  }
  if (shares.per_thread) {
    Kokkos::parallel_for(label, RangePolicy<Exec, Schedule<Kokkos::Static>>(space, 0, shares.count), f);
  } else {
    Kokkos::parallel_for(label,
                         RangePolicy<Exec, Schedule<Kokkos::Dynamic>>(space, 0, shares.count, Kokkos::ChunkSize(1)), f);
  }
}

}  // namespace Impl
}  // namespace Tessera

#endif
