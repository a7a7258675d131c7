// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_HUBS_HPP
#define TESSERA_FORMATS_PACKED_PACKED_HUBS_HPP

#include <cstdint>

#include "formats/packed/Tessera_PackedOrder.hpp"

/// \file
/// Hub columns: the most used ones of a matrix, whose x a thread block keeps in shared memory. An L2 gather costs eight
/// times a read of shared memory (perf_test/notes/spmv-packed.md).

namespace Tessera {
namespace Impl {

/// How often a column is used, in 2048 bins, each at most 1.6 % wide: six bits behind the leading one.
struct HubBin {
  static constexpr int count = 2048;
  KOKKOS_INLINE_FUNCTION static int of(std::uint32_t uses) {
    if (uses < 64) return static_cast<int>(uses);
    int exponent = 0;
    while ((uses >> exponent) >= 128) ++exponent;
    return 64 * (exponent + 1) + static_cast<int>((uses >> exponent) - 64);
  }
};

struct HubFound {
  std::int64_t above;     // columns in bins above the threshold
  std::int64_t bin;       // the threshold: its columns are taken in their order while there is room
  std::uint64_t entries;  // in hub columns
};

template <class Csr>
struct HubCountFunctor : PackedTypesOf<Csr> {
  typename Csr::entries_type entries;
  typename PackedTypesOf<Csr>::template View<std::uint32_t> uses;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { Kokkos::atomic_add(&uses(entries(i)), 1u); }
};

/// How often each column is used. @param uses  zero
template <class Pattern, class Exec, class Uses>
void count_column_uses(const Exec& space, const Pattern& A, const Uses& uses) {
  HubCountFunctor<Pattern> count;
  count.entries = A.entries();
  count.uses = uses;
  Kokkos::parallel_for("Tessera::convert[packed] column uses",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, A.nnz()), count);
}

/// Columns per bin, of those used more often than `least`: all others are too many for atomics on few addresses.
template <class Csr>
struct HubBinFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> uses, bins;
  std::uint32_t least;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t c) const {
    if (uses(c) > least) Kokkos::atomic_add(&bins(HubBin::of(uses(c))), 1u);
  }
};

/// From the fullest use down: where `hubs` columns are reached.
template <class Csr>
struct HubThresholdFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> bins;
  View<HubFound> found;
  std::int64_t hubs;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& sum, const bool final) const {
    const std::int64_t bin = HubBin::count - 1 - i, here = bins(bin);
    if (final && sum < hubs && (sum + here >= hubs || i + 1 == HubBin::count)) {
      found(0).above = sum;
      found(0).bin = bin;
    }
    sum += here;
  }
};

struct HubRank {
  std::int64_t above, level;
};

/// Numbers the hubs in the order of their columns; all other columns count from `hubs`.
template <class Csr>
struct HubPlaceFunctor : PackedTypesOf<Csr> {
  using value_type = HubRank;
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> uses, hub_columns, place;
  View<HubFound> found;
  std::int64_t hubs;
  std::uint32_t least;

  KOKKOS_INLINE_FUNCTION void init(HubRank& r) const { r.above = r.level = 0; }
  KOKKOS_INLINE_FUNCTION void join(HubRank& a, const HubRank& b) const { a.above += b.above, a.level += b.level; }
  KOKKOS_INLINE_FUNCTION void join(volatile HubRank& a, const volatile HubRank& b) const {
    a.above = a.above + b.above, a.level = a.level + b.level;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t c, HubRank& sum, const bool final) const {
    const std::int64_t room = hubs - found(0).above;
    const bool candidate = uses(c) > least;
    const int bin = HubBin::of(uses(c));
    const bool above = candidate && bin > found(0).bin, level = candidate && bin == found(0).bin;
    if (final) {
      const bool hub = above || (level && sum.level < room);
      const std::int64_t rank = sum.above + (sum.level < room ? sum.level : room);
      place(c) = static_cast<std::uint32_t>(hub ? rank : c + hubs);
      if (hub) {
        hub_columns(rank) = static_cast<std::uint32_t>(c);
        Kokkos::atomic_add(&found(0).entries, static_cast<std::uint64_t>(uses(c)));
      }
    }
    sum.above += above, sum.level += level;
  }
};

/// Columns in the order of their use, by powers of two; inside one of these they keep their own.
struct ColumnUse {
  static constexpr int classes = 16;
  std::uint32_t columns[classes], entries[classes];

  /// The most used first; the last: not used at all.
  KOKKOS_INLINE_FUNCTION static int of(std::uint32_t uses) {
    int log = 0;
    while (log < classes - 1 && uses >> log != 0) ++log;
    return classes - 1 - log;
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
