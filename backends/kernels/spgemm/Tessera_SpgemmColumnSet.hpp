// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_COLUMN_SET_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_COLUMN_SET_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmWave.hpp"

/// \file
/// Columns that the rows of a window have, in memory of a thread block: words of 32 columns in a table, with a bit per
/// column and how many columns there are in smaller words. A column's place among all is then two loads away.

namespace Tessera {

/// As many places for words as the thread block has threads.
template <class Wave, int Threads>
struct SpgemmColumnSet {
  static constexpr std::uint32_t none = 0xffffffffu;
  static constexpr std::int32_t nowhere = INT32_MIN / 2;
  std::uint32_t key[Threads], bits[Threads];
  std::int32_t before[Threads];      ///< columns in words with smaller keys
  std::uint32_t dense_key[Threads];  ///< of the words that there are
  std::int32_t dense_columns[Threads];
  std::int32_t words[Threads / Wave::lanes];  ///< of the places of each wave
  std::int32_t size, full;

  template <class ThreadBlock>
  TESSERA_FUNCTION void clear(const ThreadBlock& thread_block) {
    thread_block.synchronize();
    thread_block.each_thread([&](unsigned thread) {
      key[thread] = none;
      bits[thread] = 0;
      before[thread] = nowhere;
      if (thread == 0) size = full = 0;
    });
    thread_block.synchronize();
  }
  TESSERA_FUNCTION void insert(std::int32_t column) {
    const std::uint32_t word = static_cast<std::uint32_t>(column) / 32, bit = 1u << column % 32;
    std::uint32_t at = place(word);
    for (int tries = 0; tries < Threads; ++tries, at = (at + 1) % Threads) {
      std::uint32_t there = key[at];
      if (there == none) there = Wave::claim(key + at, none, word);
      if (there == none || there == word) {
        if ((bits[at] & bit) == 0) Wave::set_bits(bits + at, bit);
        return;
      }
    }
    full = 1;
  }
  /// After all are inserted. @return how many columns there are; -1: more words than places
  template <class ThreadBlock>
  TESSERA_FUNCTION int rank(const ThreadBlock& thread_block) {
    thread_block.synchronize();
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      const typename Wave::Mask used = used_of(wave, w);
      wave.each([&](int lane) {
        if (lane == 0) words[w] = Wave::count(used);
      });
    });
    thread_block.synchronize();
    int n = 0;
    for (int w = 0; w < Threads / Wave::lanes; ++w) n += words[w];
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      const typename Wave::Mask used = used_of(wave, w);
      int start = 0;
      for (unsigned other = 0; other < w; ++other) start += words[other];
      wave.each([&](int lane) {
        const unsigned at = w * Wave::lanes + static_cast<unsigned>(lane);
        if (key[at] == none) return;
        const int to = start + Wave::rank(used, lane);
        dense_key[to] = key[at];
        dense_columns[to] = count_bits(bits[at]);
      });
    });
    thread_block.synchronize();
    thread_block.each_thread([&](unsigned thread) {
      const std::uint32_t own = key[thread];
      if (own == none) return;
      std::int32_t smaller = 0, columns = 0;
      for (int i = 0; i < n; ++i) {
        if (dense_key[i] < own) {
          ++smaller;
          columns += dense_columns[i];
        }
      }
      before[thread] = columns;
      if (smaller == n - 1) size = columns + count_bits(bits[thread]);
    });
    thread_block.synchronize();
    return full != 0 ? -1 : size;
  }
  /// Of a column that is there; of one that is not, and whose word is not, no place, or any.
  TESSERA_FUNCTION int slot(std::int32_t column) const {
    const std::uint32_t word = static_cast<std::uint32_t>(column) / 32;
    std::uint32_t at = place(word);
    while (key[at] != word && key[at] != none) at = (at + 1) % Threads;
    return before[at] + count_bits(bits[at] & ((1u << column % 32) - 1));
  }

 private:
  TESSERA_FUNCTION static std::uint32_t place(std::uint32_t word) { return (word * 0x9e3779b1u >> 16) % Threads; }
  TESSERA_FUNCTION typename Wave::Mask used_of(const Wave& wave, unsigned w) const {
    typename Wave::template Varying<bool> is;
    wave.each([&](int lane) { is(lane) = key[w * Wave::lanes + static_cast<unsigned>(lane)] != none; });
    return wave.ballot(is);
  }
};

}  // namespace Tessera

#endif
