// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_TILES_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_TILES_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmColumnSet.hpp"
#include "backends/kernels/spgemm/Tessera_SpgemmNumbersKernel.hpp"
#include "backends/units/Tessera_Atom.hpp"

/// \file
/// Numbers of a window of consecutive rows of C on FP64 matrix units, for windows whose rows of A share most of their
/// columns. A thread block takes the window: its columns of A (the depth) and of C (the width) are the unions of those
/// of its rows. Four rows of B at a time are laid out dense over the width, in which each of their entries is looked up
/// once for all rows of the window; the instructions of blocks without entries are left out. Sums stay in registers.
///
/// Zeros of the layout are multiplied by whatever stands in the other operand. So a window with a number of A or B that
/// is not finite is summed again by waves, row by row, as rows of windows without tiles are.

namespace Tessera {

/// @tparam Columns  of C at once  @tparam Depth  columns of A, at most
template <class Unit, class Wave, int Waves, int Columns, int Depth>
class SpgemmTilesKernel {
 public:
  using Atom = typename Unit::Atom;
  using Value = typename Atom::Operand;
  using Parts = SpgemmPartsKernel<Wave, Value>;
  static constexpr int threads = Waves * Wave::lanes;
  static constexpr int rows = Atom::m, depth = Atom::k, width = Atom::n;
  static constexpr int most_depth = Depth, columns = Columns;
  static constexpr int laid = depth * Columns;            ///< numbers of four rows of B
  static constexpr int row_of_c = Columns + width;        ///< rows of a fragment of C then lie in different banks
  static constexpr int blocks = Columns / width / Waves;  ///< of a wave
  static_assert(Atom::a_registers == 1 && Atom::b_registers == 1 && Waves % depth == 0, "");
  using Set = SpgemmColumnSet<Wave, threads>;
  struct Tiles {
    alignas(16) Value staged[2 * laid > rows* row_of_c ? 2 * laid : rows* row_of_c];  ///< of B, later of C
    Value a[most_depth * rows];
    std::int64_t begin[most_depth];  ///< of rows of B
    Set set;
    std::int32_t k[most_depth];      ///< these rows; -1: none
    std::int32_t count[most_depth];  ///< their entries
    std::int32_t not_finite;
  };
  static constexpr int own_bytes = static_cast<int>((sizeof(Tiles) + 15) / 16 * 16);
  static constexpr int bytes = own_bytes > Waves* Parts::bytes ? own_bytes : Waves* Parts::bytes;

  /// @param first  of the window's rows
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first) {
    auto& tiles = *reinterpret_cast<Tiles*>(thread_block.memory());
    thread_block.each_thread([&](unsigned thread) {
      if (thread == 0) tiles.not_finite = 0;
    });
    const int n_k = take_a(thread_block, args, first, tiles);
    const int n_c = n_k > 0 ? take_c(thread_block, args, first, tiles) : -1;
    bool done = n_c >= 0;
    for (int from = 0; done && from < n_c; from += Columns) {
      done = multiply(thread_block, args, first, from, n_c - from < Columns ? n_c - from : Columns, n_k, tiles);
    }
    if (!done) {
      thread_block.synchronize();
      by_rows(thread_block, args, first);
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  /// Of a wave, kept while others work.
  static constexpr int ahead = 2;
  struct Own {
    Varying<CFragment<Atom>> sum[blocks];
    Varying<std::int64_t> begin;
    Varying<std::int32_t> count, column[ahead];
    Varying<Value> value[ahead];
  };
  static constexpr int step = Waves / depth * Wave::lanes;  ///< entries of a row of B at once

  TESSERA_FUNCTION static bool is_finite(Value v) { return v - v == Value(0); }
  TESSERA_FUNCTION static int staged_at(int k, int slot) {
    constexpr int turn = width == 8 ? 2 : 0;  // eight columns of different rows then lie in different banks
    return (slot / width * depth + k) * width + ((slot % width) ^ ((k & 2) * turn));
  }

  /// Columns of A and their numbers by these and by row. @return how many columns; 0: too many
  template <class ThreadBlock>
  TESSERA_FUNCTION static int take_a(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                     Tiles& tiles) {
    const auto each_entry = [&](const auto& f) {
      thread_block.each_wave([&](unsigned w) {
        const Wave wave;
        for (int row = static_cast<int>(w); row < rows && first + row < args.A.rows; row += Waves) {
          const std::int64_t begin = args.A.row_map(first + row), end = args.A.row_map(first + row + 1);
          wave.each([&](int lane) {
            for (std::int64_t e = begin + lane; e < end; e += Wave::lanes) f(row, e);
          });
        }
      });
    };
    tiles.set.clear(thread_block);
    each_entry([&](int, std::int64_t e) { tiles.set.insert(args.A.columns[e]); });
    const int n = tiles.set.rank(thread_block);
    if (n <= 0 || n > most_depth) return 0;
    const int whole = (n + depth - 1) / depth * depth;
    thread_block.each_thread([&](unsigned thread) {
      for (int i = static_cast<int>(thread); i < whole * rows; i += threads) tiles.a[i] = 0;
      for (int i = static_cast<int>(thread) + n; i < whole; i += threads) tiles.k[i] = -1;
    });
    thread_block.synchronize();
    each_entry([&](int row, std::int64_t e) {
      const std::int32_t c = args.A.columns[e];
      const Value a = static_cast<const Value*>(args.A.values)[e];
      const int slot = tiles.set.slot(c);
      tiles.k[slot] = c;
      tiles.a[slot * rows + row] = a;
      if (!is_finite(a)) tiles.not_finite = 1;
    });
    thread_block.synchronize();
    thread_block.each_thread([&](unsigned thread) {
      for (int i = static_cast<int>(thread); i < whole; i += threads) {
        const std::int32_t k = tiles.k[i];
        const std::int64_t begin = k >= 0 ? args.B.row_map(k) : 0;
        tiles.begin[i] = begin;
        tiles.count[i] = k >= 0 ? static_cast<std::int32_t>(args.B.row_map(k + 1) - begin) : 0;
      }
    });
    return n;
  }
  /// f(row of the window, its stretch of C) by waves.
  template <class ThreadBlock, class F>
  TESSERA_FUNCTION static void each_row(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                        const F& f) {
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      for (int row = static_cast<int>(w); row < rows && first + row < args.A.rows; row += Waves) {
        if (args.count[first + row] == 0) continue;
        f(wave, row, SpgemmStretch<Value>::of(args, static_cast<std::int32_t>(first + row), 0, INT32_MAX));
      }
    });
  }
  /// Columns of C. @return how many; below 0: of too many places
  template <class ThreadBlock>
  TESSERA_FUNCTION static int take_c(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                     Tiles& tiles) {
    tiles.set.clear(thread_block);
    each_row(thread_block, args, first, [&](const Wave& wave, int, const SpgemmStretch<Value>& s) {
      wave.each([&](int lane) {
        TESSERA_UNROLL_4
        for (int j = lane; j < s.n; j += Wave::lanes) tiles.set.insert(s.known[j]);
      });
    });
    return tiles.set.rank(thread_block);
  }

  /// The next rows of B come under way.
  TESSERA_FUNCTION static void load(const Wave& wave, const SpgemmArgs& args, const Tiles& tiles, unsigned w, int k,
                                    int n_k, Own& own) {
    const int mine = k + static_cast<int>(w) % depth;
    const std::int64_t begin = mine < n_k ? tiles.begin[mine] : 0;
    const std::int32_t count = mine < n_k ? tiles.count[mine] : 0;
    wave.each([&](int lane) {
      own.begin(lane) = begin;
      own.count(lane) = count;
      TESSERA_UNROLL
      for (int i = 0; i < ahead; ++i) {
        const std::int32_t at = i * step + static_cast<int>(w) / depth * Wave::lanes + lane;
        const bool on = at < own.count(lane);
        own.column[i](lane) = on ? args.B.columns[begin + at] : -1;
        own.value[i](lane) = on ? static_cast<const Value*>(args.B.values)[begin + at] : Value(0);
      }
    });
  }
  /// They are laid out.
  TESSERA_FUNCTION static void lay(const Wave& wave, const SpgemmArgs& args, unsigned w, int from, int n,
                                   const Own& own, Value* to, Tiles& tiles) {
    const int k = static_cast<int>(w) % depth;
    const auto put = [&](std::int32_t column, Value value) {
      const int slot = tiles.set.slot(column) - from;
      if (slot >= 0 && slot < n) to[staged_at(k, slot)] = value;
      if (!is_finite(value)) tiles.not_finite = 1;
    };
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int i = 0; i < ahead; ++i) {
        if (own.column[i](lane) >= 0) put(own.column[i](lane), own.value[i](lane));
      }
      const std::int32_t at = static_cast<int>(w) / depth * Wave::lanes + lane;
      for (std::int32_t i = at + ahead * step; i < own.count(lane); i += step) {
        put(args.B.columns[own.begin(lane) + i], static_cast<const Value*>(args.B.values)[own.begin(lane) + i]);
      }
    });
  }
  /// A wave's blocks; what was laid out is zero again afterwards.
  TESSERA_FUNCTION static void add(const Wave& wave, unsigned w, int k, int n, Value* present, const Tiles& tiles,
                                   Own& own) {
    Varying<AFragment<Atom>> a;
    wave.each([&](int lane) {
      const Coord at = Atom::a_coord(lane, 0);
      a(lane).r[0] = tiles.a[(k + at.col) * rows + at.row];
    });
    TESSERA_UNROLL
    for (int i = 0; i < blocks; ++i) {
      const int block = i * Waves + static_cast<int>(w);
      if (block * width >= n) break;
      Varying<BFragment<Atom>> b;
      Varying<bool> any;
      wave.each([&](int lane) {
        const Coord at = Atom::b_coord(lane, 0);
        b(lane).r[0] = present[staged_at(at.row, block * width + at.col)];
        any(lane) = b(lane).r[0] != Value(0);
      });
      if (wave.ballot(any) == 0) continue;
      wave.each([&](int lane) {
        const Coord at = Atom::b_coord(lane, 0);
        present[staged_at(at.row, block * width + at.col)] = 0;
      });
      Unit::mma(wave, own.sum[i], a, b);
    }
  }
  /// Columns [from, from + n) of the window's. @return false, and nothing written: a number is not finite
  template <class ThreadBlock>
  TESSERA_FUNCTION static bool multiply(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                        int from, int n, int n_k, Tiles& tiles) {
    Own own[ThreadBlock::template held<Waves>];
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      Own& mine = own[ThreadBlock::held_at(w)];
      load(wave, args, tiles, w, 0, n_k, mine);
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < blocks; ++i) {
          TESSERA_UNROLL
          for (int r = 0; r < Atom::c_registers; ++r) mine.sum[i](lane).r[r] = 0;
        }
        const int used = (n + width - 1) / width * width * depth;
        for (int i = static_cast<int>(w) * Wave::lanes + lane; i < used; i += threads) {
          tiles.staged[i] = tiles.staged[laid + i] = 0;
        }
      });
    });
    thread_block.synchronize();
    int buffer = 0;
    for (int k = 0; k < n_k; k += depth, buffer ^= 1) {
      Value* const present = tiles.staged + buffer * laid;
      thread_block.each_wave([&](unsigned w) {
        const Wave wave;
        Own& mine = own[ThreadBlock::held_at(w)];
        lay(wave, args, w, from, n, mine, present, tiles);
        load(wave, args, tiles, w, k + depth, n_k, mine);
      });
      thread_block.synchronize();  // once: what is added now is laid over only after the next one
      thread_block.each_wave([&](unsigned w) {
        const Wave wave;
        add(wave, w, k, n, present, tiles, own[ThreadBlock::held_at(w)]);
      });
    }
    thread_block.synchronize();
    if (tiles.not_finite != 0) return false;
    store(thread_block, args, first, from, n, own, tiles);
    return true;
  }
  template <class ThreadBlock>
  TESSERA_FUNCTION static void store(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                     int from, int n, const Own* own, Tiles& tiles) {
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      const Own& mine = own[ThreadBlock::held_at(w)];
      wave.each([&](int lane) {
        TESSERA_UNROLL
        for (int i = 0; i < blocks; ++i) {
          const int block = i * Waves + static_cast<int>(w);
          if (block * width >= n) break;
          TESSERA_UNROLL
          for (int r = 0; r < Atom::c_registers; ++r) {
            const Coord at = Atom::c_coord(lane, r);
            tiles.staged[at.row * row_of_c + block * width + at.col] = mine.sum[i](lane).r[r];
          }
        }
      });
    });
    thread_block.synchronize();
    each_row(thread_block, args, first, [&](const Wave& wave, int row, const SpgemmStretch<Value>& s) {
      wave.each([&](int lane) {
        TESSERA_UNROLL_4
        for (int j = lane; j < s.n; j += Wave::lanes) {
          const std::int32_t c = s.known[j];
          const int slot = tiles.set.slot(c) - from;
          if (slot < 0 || slot >= n) continue;
          s.values[j] = tiles.staged[row * row_of_c + slot];
          if (s.columns != nullptr) s.columns[j] = c;
        }
      });
    });
    thread_block.synchronize();
  }
  template <class ThreadBlock>
  TESSERA_OUTLINED_FUNCTION static void by_rows(const ThreadBlock& thread_block, const SpgemmArgs& args,
                                                std::int64_t first) {
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      for (std::int64_t row = first + w; row < first + rows && row < args.A.rows; row += Waves) {
        const std::int64_t entries = args.count[row];
        if (entries == 0) continue;
        const std::int64_t each = spgemm_each_part(args, row, entries);
        for (std::int32_t p = 0; p * each < entries; ++p) {
          Parts::run(wave, args, {static_cast<std::int32_t>(row), p}, thread_block.memory() + w * Parts::bytes);
          wave.converge();
        }
      }
    });
  }
};

}  // namespace Tessera

#endif
