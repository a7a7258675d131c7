// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_TEAM_RADIX_SORT_HPP
#define TESSERA_CORE_TEAM_RADIX_SORT_HPP

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>

namespace Tessera {
namespace Impl {

KOKKOS_INLINE_FUNCTION int bits_set(std::uint32_t word) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

/// Stable sort of `count` keys (a multiple of 32) in a Kokkos team's scratch, ascending by bits [low, high), four at a
/// time. A place's rank is how many places before it have the same digit: a bit per place and digit, counted by words.
/// A pass has five barriers, where a bitonic sort of 4,096 keys has 78.
template <class Words>
class TeamRadixSort {
 public:
  static constexpr int bits = 4, digits = 1 << bits;

  /// Words of scratch that the sort of so many keys needs, the keys among them.
  KOKKOS_INLINE_FUNCTION static constexpr int words(int count) {
    return 2 * count + digits * (count / 32) + digits * parts(count);
  }

  /// @param scratch  words(count); the keys lie in the first `count`
  KOKKOS_INLINE_FUNCTION TeamRadixSort(const Words& scratch, int count) : scratch_(scratch), count_(count) {}

  /// @return where in the scratch the sorted keys begin
  template <class Member>
  KOKKOS_INLINE_FUNCTION int run(const Member& team, int low, int high) const {
    const std::uint32_t differ = different_bits(team);
    int from = 0, to = count_;
    for (int bit = low; bit < high; bit += bits) {
      if ((differ >> bit & (digits - 1)) == 0) continue;
      pass(team, from, to, bit);
      const int next = from;
      from = to, to = next;
    }
    return from;
  }

 private:
  static constexpr int part_words = 4;  // of which one thread counts the bits
  KOKKOS_INLINE_FUNCTION static constexpr int parts(int count) { return (count / 32 + part_words - 1) / part_words; }
  KOKKOS_INLINE_FUNCTION int digit(int from, int i, int bit) const {
    return static_cast<int>(scratch_(from + i) >> bit & (digits - 1));
  }

  /// Bits in which some key differs from the first.
  template <class Member>
  KOKKOS_INLINE_FUNCTION std::uint32_t different_bits(const Member& team) const {
    std::uint32_t differ = 0;
    const std::uint32_t first = scratch_(0);
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count_), [&](const int i, std::uint32_t& d) { d |= scratch_(i) ^ first; },
        Kokkos::BOr<std::uint32_t>(differ));
    return differ;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void pass(const Member& team, int from, int to, int bit) const {
    const int row = count_ / 32, part_count = parts(count_), masks = 2 * count_, ranks = masks + digits * row;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, digits * row), [&](const int i) { scratch_(masks + i) = 0; });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count_), [&](const int i) {
      Kokkos::atomic_fetch_or(&scratch_(masks + digit(from, i, bit) * row + i / 32), 1u << (i % 32));
    });
    team.team_barrier();
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, digits * part_count),
                          [&](const int i, int& sum, const bool final) {
                            if (final) scratch_(ranks + i) = static_cast<std::uint32_t>(sum);
                            const int first = i % part_count * part_words;
                            for (int w = first; w < first + part_words && w < row; ++w) {
                              sum += bits_set(scratch_(masks + i / part_count * row + w));
                            }
                          });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count_), [&](const int i) {
      const int d = digit(from, i, bit), word = i / 32, part = word / part_words;
      auto rank = static_cast<int>(scratch_(ranks + d * part_count + part));
      for (int w = part * part_words; w < word; ++w) rank += bits_set(scratch_(masks + d * row + w));
      rank += bits_set(scratch_(masks + d * row + word) & ((1u << (i % 32)) - 1));
      scratch_(to + rank) = scratch_(from + i);
    });
    team.team_barrier();
  }

  const Words& scratch_;
  int count_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
