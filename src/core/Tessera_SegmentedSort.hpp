// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_SEGMENTED_SORT_HPP
#define TESSERA_CORE_SEGMENTED_SORT_HPP

#include <cstdint>
#include <utility>

#include "Tessera_Compat.hpp"

namespace Tessera {
namespace Impl {

/// The segment that holds place i: the last one that begins at i or before (empty segments hold nothing).
template <class Offsets>
KOKKOS_INLINE_FUNCTION std::int64_t segment_of(const Offsets& begin, std::int64_t segments, std::int64_t i) {
  std::int64_t low = 0, high = segments;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (static_cast<std::int64_t>(begin(middle)) <= i ? low : high) = middle;
  }
  return low;
}

/// Stable sort of the keys inside each segment of an array, and of a payload with them.
///
/// Merge sort by ranks: in a pass every element finds its place in the merged pair of runs by a binary search in the
/// sibling run. All elements work at once, so that one long segment among short ones costs no more than its length.
/// n elements, longest segment m: O(n log^2 m) work in ceil(log2 m) launches; deterministic. No integer arithmetic on
/// keys, no atomics.
template <class Device, class Key, class Payload>
class SegmentedSort {
 public:
  using Keys = Kokkos::View<Key*, Kokkos::LayoutLeft, Device>;
  using Payloads = Kokkos::View<Payload*, Kokkos::LayoutLeft, Device>;
  using Segments = Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, Device>;

  /// Owns its arrays; the caller fills keys and segments, and payload if it asked for one.
  template <class Exec>
  SegmentedSort(const Exec& space, std::int64_t n, bool with_payload) : n_(n), with_payload_(with_payload) {
    const auto size = static_cast<std::size_t>(n), carried = with_payload ? size : 0;
    keys = Compat::allocate<Keys>(space, "Tessera::sort::keys", size);
    other_keys_ = Compat::allocate<Keys>(space, "Tessera::sort::keys", size);
    payload = Compat::allocate<Payloads>(space, "Tessera::sort::payload", carried);
    other_payload_ = Compat::allocate<Payloads>(space, "Tessera::sort::payload", carried);
    segments = Compat::allocate<Segments>(space, "Tessera::sort::segments", size);
  }

  /// @param begin  offsets of the segments, one more than there are
  /// @param longest  length of the longest segment
  template <class Exec, class Offsets>
  void run(const Exec& space, const Offsets& begin, std::int64_t longest) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    for (std::int64_t width = 1; width < longest; width *= 2) {
      Kokkos::parallel_for(
          "Tessera::sort merge", Policy(space, 0, n_),
          Merge<Offsets>{begin, segments, keys, other_keys_, payload, other_payload_, width, with_payload_});
      std::swap(keys, other_keys_);
      std::swap(payload, other_payload_);
    }
  }

  Keys keys;
  Payloads payload;
  Segments segments;  ///< the segment of each element

  /// One pass over runs of `width`. Public, as nvcc wants of a kernel's functor.
  template <class Offsets>
  struct Merge {
    Offsets begin;
    Segments segments;
    Keys from, to;
    Payloads payload_from, payload_to;
    std::int64_t width;
    bool with_payload;

    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t segment = segments(i), base = static_cast<std::int64_t>(begin(segment)),
                         length = static_cast<std::int64_t>(begin(segment + 1)) - base;
      const std::int64_t run = (i - base) / width, sibling = (run ^ 1) * width;
      const Key key = from(i);
      std::int64_t place = i;
      if (sibling < length) {
        // Equal keys of the left run come first, which keeps the order of equals.
        const bool left = run % 2 == 0;
        std::int64_t low = sibling, high = sibling + width < length ? sibling + width : length;
        while (low < high) {
          const std::int64_t middle = low + (high - low) / 2;
          const Key other = from(base + middle);
          const bool before = left ? other < key : !(key < other);
          if (before) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        place = base + run / 2 * 2 * width + (i - base - run * width) + (low - sibling);
      }
      to(place) = key;
      if (with_payload) payload_to(place) = payload_from(i);
    }
  };

 private:
  std::int64_t n_;
  bool with_payload_;
  Keys other_keys_;
  Payloads other_payload_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
