// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_PIECES_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_PIECES_HPP

#include <cstdint>

#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/kernels/attention/Tessera_AttentionWeights.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The second launch of attention where rows, or windows of them, were split: what the pieces of a row left becomes one
/// row. A row that all others see has thousands of pieces; one after another each would cost a wait for memory.

namespace Tessera {

/// Which waves add up what pieces left: a row's words of sixteen bytes are dealt to `tiles` waves, 2^shift words each.
struct AttentionMergeTiles {
  int shift, tiles;
};

/// The pieces of one row, `count` rows of numbers, `size` numbers apart, at multiples of sixteen bytes. Weighed: each
/// ends with the reference that its numbers were divided by and a total, one word (AttentionPartials), and sums are
/// brought to the largest reference.
///
/// The lanes that a wave's words do not need take other pieces: several are under way at once in a wave and `at_once`
/// in a lane. Which are added to which first depends on their number, the shift and the number of lanes alone.
template <class Sum, class Wave, bool Weighed>
struct AttentionPieces {
  static constexpr int width = 16 / static_cast<int>(sizeof(Sum));
  static constexpr int log2_lanes = Wave::lanes == 64 ? 6 : 5;
  static constexpr int at_once = sizeof(Sum) == 4 ? 8 : 4;
  /// Up to so many pieces a wave takes as many words as it has lanes, whatever the tiles are.
  static constexpr int few = 8;
  /// What a lane has of a row. Not weighed: the sums alone.
  struct State {
    Sum reference = attention_no_reference_of<Sum>, total = 0, s[width] = {};
  };

  const Sum* from;
  std::int64_t size;
  int count, words;  ///< words of a row without the last one, where Weighed

  /// store(first number, state) for the words of tile `first_tile` and of every tiles.tiles-th after it.
  template <class Store>
  TESSERA_FUNCTION void run(const Wave& wave, const AttentionMergeTiles& tiles, int first_tile,
                            const Store& store) const {
    int shift = tiles.shift;
    if (count <= few) {
      shift = 0;
      while (1 << shift < words && shift < log2_lanes) ++shift;
    }
    for (int tile = first_tile; tile << shift < words; tile += tiles.tiles) {
      Varying<State> states;
      const auto word_of = [=](int lane) { return (tile << shift) + (lane & ((1 << shift) - 1)); };
      wave.each([&](int lane) {
        states(lane) = State{};
        if (word_of(lane) < words) add(lane >> shift, Wave::lanes >> shift, word_of(lane) * width, states(lane));
      });
      for (int distance = 1 << shift; distance < Wave::lanes; distance *= 2) join(wave, distance, states);
      wave.each([&](int lane) {
        if (lane >> shift == 0 && word_of(lane) < words) store(word_of(lane) * width, states(lane));
      });
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  struct Numbers {
    Sum n[width];
  };

  TESSERA_FUNCTION static Numbers load(const Sum* p) {
    const Word word = Wave::load_written(reinterpret_cast<const Word*>(p));
    Numbers numbers;
    __builtin_memcpy(numbers.n, word.w, 16);
    return numbers;
  }

  /// Pieces begin, begin + step, ... of the numbers from `column` on.
  TESSERA_FUNCTION void add(int begin, int step, int column, State& state) const {
    for (int i = begin; i < count; i += step * at_once) {
      Numbers numbers[at_once], facts[at_once];
      TESSERA_UNROLL
      for (int u = 0; u < at_once; ++u) {
        const bool on = i + u * step < count;
        const Sum* const piece = from + (i + u * step) * size;
        numbers[u] = on ? load(piece + column) : Numbers{};
        if constexpr (Weighed) {
          constexpr Numbers none{{attention_no_reference_of<Sum>}};
          facts[u] = on ? load(piece + std::int64_t{words} * width) : none;
        }
      }
      if constexpr (Weighed) weigh(numbers, facts, state);
      fold<at_once / 2>(numbers);
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) state.s[v] += numbers[0].n[v];
    }
  }
  /// Brings all to the largest reference, and adds up the totals.
  TESSERA_FUNCTION static void weigh(Numbers (&numbers)[at_once], const Numbers (&facts)[at_once], State& state) {
    Sum largest = state.reference;
    TESSERA_UNROLL
    for (int u = 0; u < at_once; ++u) largest = facts[u].n[0] > largest ? facts[u].n[0] : largest;
    scale(state, power_of_two(state.reference - largest));
    state.reference = largest;
    TESSERA_UNROLL
    for (int u = 0; u < at_once; ++u) {
      const Sum by = power_of_two(facts[u].n[0] - largest);
      state.total += facts[u].n[1] * by;
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) numbers[u].n[v] *= by;
    }
  }
  /// Into the first one. By halves: the first addition needs a load of the second half, so that no compiler can save
  /// registers by waiting for each load before the next.
  template <int Half>
  TESSERA_FUNCTION static void fold(Numbers (&numbers)[at_once]) {
    TESSERA_UNROLL
    for (int u = 0; u < Half; ++u) {
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) numbers[u].n[v] += numbers[u + Half].n[v];
    }
    if constexpr (Half > 1) fold<Half / 2>(numbers);
  }
  TESSERA_FUNCTION static void scale(State& state, Sum by) {
    state.total *= by;
    TESSERA_UNROLL
    for (int v = 0; v < width; ++v) state.s[v] *= by;
  }

  /// Every lane's state and that of the lane `distance` away.
  TESSERA_FUNCTION static void join(const Wave& wave, int distance, Varying<State>& states) {
    const auto other_of = [&](const auto& get) {
      Varying<Sum> own, other;
      wave.each([&](int lane) { own(lane) = get(states(lane)); });
      wave.shuffle(other, own, [=](int lane) { return lane ^ distance; });
      return other;
    };
    if constexpr (Weighed) {
      const Varying<Sum> reference = other_of([](const State& state) { return state.reference; });
      wave.each([&](int lane) {
        State& state = states(lane);
        const Sum largest = reference(lane) > state.reference ? reference(lane) : state.reference;
        scale(state, power_of_two(state.reference - largest));
        state.reference = largest;
      });
      const Varying<Sum> total = other_of([](const State& state) { return state.total; });
      wave.each([&](int lane) { states(lane).total += total(lane); });
    }
    TESSERA_UNROLL
    for (int v = 0; v < width; ++v) {
      const Varying<Sum> sum = other_of([v](const State& state) { return state.s[v]; });
      wave.each([&](int lane) { states(lane).s[v] += sum(lane); });
    }
  }
};

}  // namespace Tessera

#endif
