// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_BITS_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_BITS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmWave.hpp"

/// \file
/// Columns of rows of C with many products, a thread block per row: a bit per column from the row's first to its last,
/// in windows where these are too many. What is set is counted and written in order.

namespace Tessera {

/// Words: of 32 columns, in a window. AtOnce: rows of B whose first entries lanes have under way; for rows of A so long
/// that few thread blocks do all the work.
template <class Wave, int Waves, int Words, int AtOnce>
class SpgemmBitsKernel {
 public:
  static constexpr int threads = Waves * Wave::lanes;
  struct Memory {
    std::int64_t begin[threads];  ///< of rows of B, in its entries
    std::int32_t entries[threads];
    std::int32_t set[Waves];               ///< bits of each wave's words
    typename Wave::Mask long_ones[Waves];  ///< which of these rows are long
    alignas(16) std::uint32_t word[Words];
  };
  static constexpr int bytes = static_cast<int>(sizeof(Memory));

  /// @param lanes  that go through a row of B together, a power of two
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t place,
                                   int lanes) {
    auto& memory = *reinterpret_cast<Memory*>(thread_block.memory());
    const std::int32_t row = args.order[place];
    const std::int64_t low = args.low[row] / 32 * 32, high = args.high[row];
    std::int64_t done = 0;
    for (std::int64_t first = low; first <= high; first += 32 * std::int64_t{Words}) {
      const std::int64_t left = (high - first) / 32 + 1;
      const int words = left < Words ? static_cast<int>(left) : Words;
      mark(thread_block, args, memory, row, first, words, lanes);
      // Whole rounds of lanes, so that all waves but the last have full ones.
      const int each = ((words + Waves - 1) / Waves + Wave::lanes - 1) / Wave::lanes * Wave::lanes;
      thread_block.each_wave([&](unsigned w) { count(memory, w, each, words); });
      thread_block.synchronize();
      if (args.found != nullptr) {
        const std::int64_t to = args.place(row) + done;
        thread_block.each_wave([&](unsigned w) {
          std::int64_t before = 0;
          for (unsigned v = 0; v < w; ++v) before += memory.set[v];
          write(memory, w, each, words, static_cast<std::int32_t>(first), args.found + to + before);
        });
      }
      for (int v = 0; v < Waves; ++v) done += memory.set[v];
      thread_block.synchronize();  // before the window is cleared
    }
    thread_block.each_thread([&](unsigned thread) {
      if (thread == 0) args.count[row] = static_cast<std::int32_t>(done);
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Mask = typename Wave::Mask;
  /// Of B: all threads go through it, where a few lanes would take this many steps.
  static constexpr int long_row = 128;

  /// Entries of A are looked up by all threads side by side.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void mark(const ThreadBlock& thread_block, const SpgemmArgs& args, Memory& memory,
                                    std::int32_t row, std::int64_t first, int words, int lanes) {
    thread_block.each_thread([&](unsigned thread) {
      for (int i = static_cast<int>(thread); i < words; i += threads) memory.word[i] = 0;
    });
    const std::int64_t end = args.A.row_map(row + 1);
    for (std::int64_t e = args.A.row_map(row); e < end; e += threads) {
      const int n = end - e < threads ? static_cast<int>(end - e) : threads;
      thread_block.each_wave([&](unsigned w) { look_up(args, memory, w, e, n, lanes); });
      thread_block.synchronize();
      thread_block.each_thread([&](unsigned thread) {
        mark_short_rows(args, memory, thread, n, first, words, lanes);
        for (int w = 0; w * Wave::lanes < n; ++w) {
          for (Mask left = memory.long_ones[w]; left != 0; left &= left - 1) {
            const int j = w * Wave::lanes + Wave::count((left & (Mask{0} - left)) - 1);
            mark_entries(args, memory, j, static_cast<std::int32_t>(thread), threads, first, words);
          }
        }
      });
      thread_block.synchronize();
    }
  }
  /// The rows of B of a wave's entries of A.
  TESSERA_FUNCTION static void look_up(const SpgemmArgs& args, Memory& memory, unsigned w, std::int64_t e, int n,
                                       int lanes) {
    const Wave wave;
    Varying<bool> is_long;
    wave.each([&](int lane) {
      const int at = static_cast<int>(w) * Wave::lanes + lane;
      const SpgemmPiece piece = at < n ? spgemm_piece(args, e + at) : SpgemmPiece{0, 0};
      memory.begin[at] = piece.begin;
      memory.entries[at] = piece.count;
      is_long(lane) = piece.count > long_row * lanes;
    });
    const Mask long_ones = wave.ballot(is_long);
    wave.each([&](int lane) {
      if (lane == 0) memory.long_ones[w] = long_ones;
    });
  }
  /// Some lanes per row.
  TESSERA_FUNCTION static void mark_short_rows(const SpgemmArgs& args, Memory& memory, unsigned thread, int n,
                                               std::int64_t first, int words, int lanes) {
    const int own = static_cast<int>(thread) & (lanes - 1), teams = threads / lanes;
    for (int j = static_cast<int>(thread) / lanes; j < n; j += AtOnce * teams) {
      std::int32_t column[AtOnce];
      TESSERA_UNROLL
      for (int k = 0; k < AtOnce && AtOnce > 1; ++k) {
        const int at = j + k * teams;
        column[k] = at < n && own < memory.entries[at] ? args.B.columns[memory.begin[at] + own] : -1;
      }
      TESSERA_UNROLL
      for (int k = 0; k < AtOnce; ++k) {
        const int at = j + k * teams;
        if (at >= n || memory.entries[at] > long_row * lanes) continue;
        if (AtOnce > 1 && column[k] >= 0) set(memory.word, column[k] - first, words);
        mark_entries(args, memory, at, AtOnce > 1 ? own + lanes : own, lanes, first, words);
      }
    }
  }
  /// Every `step`-th entry of a row of B: columns of several are under way before the first is looked at.
  TESSERA_FUNCTION static void mark_entries(const SpgemmArgs& args, Memory& memory, int j, std::int32_t from, int step,
                                            std::int64_t first, int words) {
    const std::int32_t* const columns = args.B.columns + memory.begin[j];
    const std::int32_t count = memory.entries[j];
    constexpr int at_once = 4;
    std::int32_t i = from;
    for (; i + (at_once - 1) * step < count; i += at_once * step) {
      std::int32_t column[at_once];
      TESSERA_UNROLL
      for (int k = 0; k < at_once; ++k) column[k] = columns[i + k * step];
      TESSERA_UNROLL
      for (int k = 0; k < at_once; ++k) set(memory.word, column[k] - first, words);
    }
    for (; i < count; i += step) set(memory.word, columns[i] - first, words);
  }
  /// Neighbours share words: most bits are set by then, and lanes would queue for the word.
  TESSERA_FUNCTION static void set(std::uint32_t* word, std::int64_t at, int words) {
    if (at < 0 || at >= std::int64_t{words} * 32) return;
    const auto where = static_cast<std::uint32_t>(at);
    const std::uint32_t bit = 1u << where % 32;
    if ((word[where / 32] & bit) == 0) Wave::set_bits(word + where / 32, bit);
  }
  TESSERA_FUNCTION static void count(Memory& memory, unsigned own, int each, int words) {
    const Wave wave;
    Varying<std::int32_t> bits;
    wave.each([&](int lane) {
      const int begin = static_cast<int>(own) * each, end = begin + each < words ? begin + each : words;
      bits(lane) = 0;
      for (int i = begin + lane; i < end; i += Wave::lanes) bits(lane) += count_bits(memory.word[i]);
    });
    const std::int32_t all = wave.sum(bits);
    wave.each([&](int lane) {
      if (lane == 0) memory.set[own] = all;
    });
  }
  /// The columns of a wave's words; `first` is that of the window.
  TESSERA_FUNCTION static void write(const Memory& memory, unsigned own, int each, int words, std::int32_t first,
                                     std::int32_t* to) {
    const Wave wave;
    const int begin = static_cast<int>(own) * each, end = begin + each < words ? begin + each : words;
    for (int i = begin; i < end; i += Wave::lanes) {
      Varying<std::uint32_t> word;
      Varying<std::int32_t> before;
      Varying<bool> is;
      wave.each([&](int lane) {
        word(lane) = i + lane < end ? memory.word[i + lane] : 0;
        before(lane) = count_bits(word(lane));
        is(lane) = word(lane) != 0;
      });
      if (wave.ballot(is) == 0) continue;
      spgemm_scan(wave, before);
      const std::int32_t all = spgemm_lane(wave, before, Wave::lanes - 1);
      if (all < 8 * Wave::lanes) {
        wave.each([&](int lane) {
          std::int32_t at = before(lane) - count_bits(word(lane));
          for (std::uint32_t bits = word(lane); bits != 0; bits &= bits - 1) {
            to[at++] = first + 32 * (i + lane) + count_bits((bits & (0u - bits)) - 1);
          }
        });
      } else {  // a word at a time, so that lanes write side by side
        for (int source = 0; source < Wave::lanes && i + source < end; ++source) {
          const std::uint32_t bits = spgemm_lane(wave, word, source);
          const std::int32_t at = spgemm_lane(wave, before, source) - count_bits(bits);
          wave.each([&](int lane) {
            if (lane < 32 && (bits >> lane & 1) != 0) {
              to[at + count_bits(bits & ((1u << lane) - 1))] = first + 32 * (i + source) + lane;
            }
          });
        }
      }
      to += all;
    }
  }
};

}  // namespace Tessera

#endif
