// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_TEAM_RADIX_SORT_HPP
#define TESSERA_CORE_TEAM_RADIX_SORT_HPP

#include <Kokkos_Core.hpp>
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

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define TESSERA_LANES_VOTE 1
/// Of 32 threads that stand beside each other and are all here: whose `yes` is set.
__device__ __forceinline__ std::uint32_t vote(bool yes) {
#if defined(__CUDA_ARCH__)
  return __ballot_sync(~0u, yes);
#else
  return static_cast<std::uint32_t>(__ballot(yes) >> (__lane_id() & 32u));
#endif
}
#else
#define TESSERA_LANES_VOTE 0
#endif
#if defined(__CUDA_ARCH__)
#define TESSERA_WAVES_COUNT 1
#else
#define TESSERA_WAVES_COUNT 0
#endif

/// Stable sort of `count` keys (a multiple of 32) in a Kokkos team's scratch, ascending by bits [low, high), four at a
/// time of those in which keys differ. A place's rank is how many places before it have the same digit: a bit per place
/// and digit, counted by words. On devices the threads of 32 places vote on these bits (atomics on one word would queue
/// where digits are alike), so that the team's size must be a multiple of 32 there.
///
/// NVIDIA devices: up to eight bits at a time. Each wave has consecutive places and a counter per digit, so that a
/// place costs a vote per bit, and one pass is nearly always enough: what a sort takes is its instructions.
template <class Words>
class TeamRadixSort {
 public:
  static constexpr int bits = 4, digits = 1 << bits;

  /// Words of scratch that the sort of so many keys needs, the keys among them.
  KOKKOS_INLINE_FUNCTION static constexpr int words(int count) { return 2 * count + behind(count) + most_waves; }

  /// @param scratch  words(count); the keys lie in the first `count`
  KOKKOS_INLINE_FUNCTION TeamRadixSort(const Words& scratch, int count) : scratch_(scratch), count_(count) {}

  /// @return where in the scratch the sorted keys begin
  template <class Member>
  KOKKOS_INLINE_FUNCTION int run(const Member& team, int low, int high) const {
    return run_where(team, different_bits(team) & ((1u << high) - (1u << low)));
  }
  /// @param differ  bits in which keys differ; others do not count
  template <class Member>
  KOKKOS_INLINE_FUNCTION int run_where(const Member& team, std::uint32_t differ) const {
    int from = 0, to = count_;
#if TESSERA_WAVES_COUNT
    if (count_ <= most_each * team.team_size() && team.team_size() <= 32 * most_waves) {
      int most = 8;  // bits at once
      while ((team.team_size() / 32 << most) > 2 * behind(count_)) --most;
      while (differ != 0) {
        const int left = bits_set(differ), passes = (left + most - 1) / most;
        std::uint32_t rest = differ;
        for (int n = (left + passes - 1) / passes; n > 0; --n) rest &= rest - 1;
        count_pass(team, from, to, differ ^ rest);
        differ = rest;
        const int next = from;
        from = to, to = next;
      }
      return from;
    }
#endif
    while (differ != 0) {
      Digit digit;
      for (int b = 0, bit = 0; b < bits; ++b) {  // the highest again where there are fewer
        if (differ != 0) bit = lowest_bit(differ);
        digit.at[b] = bit;
        differ &= differ - 1;
      }
      pass(team, from, to, digit);
      const int next = from;
      from = to, to = next;
    }
    return from;
  }

 private:
  static constexpr int part_words = 4;                  // of which one thread counts the bits
  static constexpr int stride = digits + 1;             // from word to word; odd, so that they lie in different banks
  static constexpr int most_each = 8, most_waves = 16;  // places of a thread, where waves count
  KOKKOS_INLINE_FUNCTION static constexpr int parts(int count) { return (count / 32 + part_words - 1) / part_words; }
  /// Words behind the keys and their copy.
  KOKKOS_INLINE_FUNCTION static constexpr int behind(int count) {
    const int masks = stride * (count / 32) + digits * parts(count), counts = count < 1024 ? 2 * count : 2048;
    return masks > counts ? masks : counts;
  }
  /// Bits of a key, the lowest first.
  struct Digit {
    int at[bits];
    KOKKOS_INLINE_FUNCTION int of(std::uint32_t key) const {
      std::uint32_t d = 0;
      for (int b = 0; b < bits; ++b) d |= (key >> at[b] & 1u) << b;
      return static_cast<int>(d);
    }
  };
  KOKKOS_INLINE_FUNCTION static int lowest_bit(std::uint32_t word) { return bits_set((word & (~word + 1)) - 1); }

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

  /// Place i has this key's digit: bit i % 32 of one of the word's masks, which begin at `at`.
  KOKKOS_INLINE_FUNCTION void mark(std::uint32_t key, const Digit& digit, int i, int at) const {
#if TESSERA_LANES_VOTE
    const int lane = i % 32;  // which writes the mask of digit `lane`
    std::uint32_t mask = ~0u;
    for (int b = 0; b < bits; ++b) {
      const std::uint32_t ones = vote((key >> digit.at[b] & 1) != 0);
      mask &= (lane >> b & 1) != 0 ? ones : ~ones;
    }
    if (lane < digits) scratch_(at + lane) = mask;
#else
    Kokkos::atomic_fetch_or(&scratch_(at + digit.of(key)), 1u << (i % 32));
#endif
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void pass(const Member& team, int from, int to, const Digit& digit) const {
    const int row = count_ / 32, part_count = parts(count_), masks = 2 * count_, ranks = masks + stride * row;
#if !TESSERA_LANES_VOTE
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, stride * row), [&](const int i) { scratch_(masks + i) = 0; });
    team.team_barrier();
#endif
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count_),
                         [&](const int i) { mark(scratch_(from + i), digit, i, masks + i / 32 * stride); });
    team.team_barrier();
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, digits * part_count),
                          [&](const int i, int& sum, const bool final) {
                            if (final) scratch_(ranks + i) = static_cast<std::uint32_t>(sum);
                            const int first = i % part_count * part_words;
                            for (int w = first; w < first + part_words && w < row; ++w) {
                              sum += bits_set(scratch_(masks + w * stride + i / part_count));
                            }
                          });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count_), [&](const int i) {
      const std::uint32_t key = scratch_(from + i);
      const int d = digit.of(key), word = i / 32, part = word / part_words;
      auto rank = static_cast<int>(scratch_(ranks + d * part_count + part));
      for (int w = part * part_words; w < word; ++w) rank += bits_set(scratch_(masks + w * stride + d));
      rank += bits_set(scratch_(masks + word * stride + d) & ((1u << (i % 32)) - 1));
      scratch_(to + rank) = key;
    });
    team.team_barrier();
  }

#if TESSERA_WAVES_COUNT
  /// By the bits of `digit`. Counters lie by digit, then by wave.
  template <class Member>
  __device__ __forceinline__ void count_pass(const Member& team, int from, int to, std::uint32_t digit) const {
    std::uint16_t* const counts = reinterpret_cast<std::uint16_t*>(&scratch_(2 * count_));
    const int threads = team.team_size(), thread = team.team_rank(), lane = thread & 31, wave = thread >> 5;
    const int waves = threads >> 5, words = count_ >> 5, share = (words + waves - 1) / waves;
    const int all = waves << bits_set(digit);
    for (int at = (lane * waves) + wave; at < all; at += 32 * waves) counts[at] = 0;
    __syncwarp();
    std::uint32_t place[most_each];  // the counter, and how many places of the wave come before with the same digit
#pragma unroll
    for (int n = 0; n < most_each; ++n) {
      const int word = wave * share + n;
      if (n >= share || word >= words) continue;
      const std::uint32_t key = scratch_(from + 32 * word + lane);
      std::uint32_t alike = ~0u, counter = wave, weight = waves;
      for (std::uint32_t rest = digit; rest != 0; rest &= rest - 1) {
        const bool one = (key & rest & (~rest + 1)) != 0;
        const std::uint32_t ones = vote(one);
        alike &= one ? ones : ~ones;
        counter += one ? weight : 0;
        weight *= 2;
      }
      const std::uint32_t before = counts[counter], below = alike & ((1u << lane) - 1);
      __syncwarp();
      if (below == 0) counts[counter] = static_cast<std::uint16_t>(before + bits_set(alike));
      __syncwarp();
      place[n] = counter << 16 | (before + bits_set(below));
    }
    team.team_barrier();
    counts_to_places(team, counts, all);
#pragma unroll
    for (int n = 0; n < most_each; ++n) {
      const int word = wave * share + n;
      if (n >= share || word >= words) continue;
      scratch_(to + counts[place[n] >> 16] + (place[n] & 0xffffu)) = scratch_(from + 32 * word + lane);
    }
    team.team_barrier();
  }
  /// Each of `all` counts becomes the sum of those before it; a thread takes consecutive ones.
  template <class Member>
  __device__ __forceinline__ void counts_to_places(const Member& team, std::uint16_t* counts, int all) const {
    const int threads = team.team_size(), thread = team.team_rank(), lane = thread & 31, wave = thread >> 5;
    const int share = (all + threads - 1) / threads, first = thread * share;
    std::uint32_t own[8], sum = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      own[n] = n < share && first + n < all ? counts[first + n] : 0;
      sum += own[n];
    }
    std::uint32_t until = sum;
    for (int d = 1; d < 32; d *= 2) {
      const std::uint32_t other = __shfl_up_sync(~0u, until, d);
      if (lane >= d) until += other;
    }
    const int sums = 2 * count_ + behind(count_);
    if (lane == 31) scratch_(sums + wave) = until;
    team.team_barrier();
    std::uint32_t before = until - sum;
    for (int w = 0; w < wave; ++w) before += scratch_(sums + w);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      if (n < share && first + n < all) counts[first + n] = static_cast<std::uint16_t>(before);
      before += own[n];
    }
    team.team_barrier();
  }
#endif

  const Words& scratch_;
  int count_;
};

}  // namespace Impl
}  // namespace Tessera

#undef TESSERA_LANES_VOTE
#undef TESSERA_WAVES_COUNT

#endif
