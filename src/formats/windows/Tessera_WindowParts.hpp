// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_WINDOW_PARTS_HPP
#define TESSERA_FORMATS_WINDOWS_WINDOW_PARTS_HPP

#include <cstdint>

#include "Tessera_Compat.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "core/Tessera_SegmentedSort.hpp"

/// \file
/// Windows with more blocks than a wave should take are cut into parts.

namespace Tessera {
namespace Impl {

/// Blocks that one wave takes at most, between 16 and 256. Splitting costs a second launch and partial sums, so only
/// windows of more than four times the mean are split, for which a device would wait. Where there are less than 16
/// windows for a multiprocessor, all those are split that hold more than a 16th of its share of the blocks, but not
/// small ones for which there is a wave each (perf_test/notes/spmm-panels.md).
KOKKOS_INLINE_FUNCTION std::int64_t spmm_part_bound(int wanted, std::int64_t blocks, std::int64_t windows,
                                                    int compute_units) {
  if (wanted > 0) return wanted;
  std::int64_t bound = windows > 0 ? 4 * blocks / windows : 0;
  if (windows < std::int64_t{16} * compute_units) {
    const std::int64_t share = blocks / (std::int64_t{16} * compute_units);
    const std::int64_t least = windows < std::int64_t{4} * compute_units ? 16 : 24;
    bound = bound < share ? bound : share;
    bound = bound > least ? bound : least;
  }
  return bound < 16 ? 16 : bound > 256 ? 256 : bound;
}

/// Multiprocessors of the backend's device; 64 where it does not say.
inline int spmm_compute_units(const KernelTable* backend) {
  DeviceFacts facts;
  if (backend == nullptr || backend->runtime.device_facts == nullptr || !backend->runtime.device_facts(facts).ok())
    return 64;
  return facts.compute_units > 0 ? facts.compute_units : 64;
}

/// Split windows and their parts, in the halves of one word: neither sum reaches 2^32, as there are no more parts of
/// split windows than blocks.
struct SpmmSplitCount {
  std::uint64_t both = 0;
  KOKKOS_INLINE_FUNCTION std::int64_t windows() const { return static_cast<std::int64_t>(both >> 32); }
  KOKKOS_INLINE_FUNCTION std::int64_t parts() const { return static_cast<std::int64_t>(both & 0xffffffffu); }
};

/// before(w): of the windows before w; the last element and *total: of all. Scan over windows + 1.
template <class MemorySpace>
struct SpmmSplitScan {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using value_type = std::uint64_t;

  View<std::uint32_t> first_block;  ///< prefix sums of the windows' blocks, windows + 1
  std::int64_t windows;
  int wanted, compute_units;
  View<std::uint64_t> before;
  std::uint64_t* total;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w, std::uint64_t& sum, const bool final) const {
    if (final) {
      before(w) = sum;
      if (w == windows) *total = sum;
    }
    if (w == windows) return;
    const std::int64_t blocks = std::int64_t{first_block(w + 1)} - std::int64_t{first_block(w)};
    const std::int64_t bound = spmm_part_bound(wanted, first_block(windows), windows, compute_units);
    if (blocks > bound) sum += std::uint64_t{1} << 32 | static_cast<std::uint64_t>((blocks + bound - 1) / bound);
  }
};

/// Writes part i: part i - first_part(w) of the window w it belongs to. Parts of a window differ by one block at most.
template <class MemorySpace>
struct SpmmPartFunctor {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  View<std::uint32_t> first_block;
  View<std::uint64_t> before;
  std::int64_t windows;
  bool inside;  ///< blocks are counted inside the window, not over the matrix
  View<SpmmPart> parts;
  View<SpmmSplit> splits;

  /// Where the parts of window w begin: every window has one, split ones have more.
  struct FirstPart {
    View<std::uint64_t> before;
    KOKKOS_INLINE_FUNCTION std::int64_t operator()(const std::int64_t w) const {
      const SpmmSplitCount count{before(w)};
      return w - count.windows() + count.parts();
    }
  };
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const FirstPart first_part{before};
    const std::int64_t w = segment_of(first_part, windows, i), j = i - first_part(w);
    const std::int64_t n = first_part(w + 1) - first_part(w);
    const std::int64_t base = first_block(w), blocks = std::int64_t{first_block(w + 1)} - base;
    const std::int64_t begin = blocks * j / n, end = blocks * (j + 1) / n;
    const SpmmSplitCount count{before(w)};
    SpmmPart part;
    part.window = static_cast<std::int32_t>(w);
    part.first_block = static_cast<std::uint32_t>(inside ? begin : base + begin);
    part.blocks = static_cast<std::int32_t>(end - begin);
    part.partial = static_cast<std::int32_t>(n > 1 ? count.parts() + j : -1);
    parts(i) = part;
    if (n == 1 || j > 0) return;
    SpmmSplit split;
    split.window = static_cast<std::int32_t>(w);
    split.first = static_cast<std::int32_t>(count.parts());
    split.count = static_cast<std::int32_t>(n);
    splits(count.windows()) = split;
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
