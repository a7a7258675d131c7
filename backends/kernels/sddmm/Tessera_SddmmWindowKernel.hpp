// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_WINDOW_KERNEL_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_WINDOW_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/sddmm/Tessera_SddmmStore.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// P := alpha (X Y^T on a pattern) [* S] + beta P on matrix units, from windows of rows. Swapped and transposed as in
/// FlashSparse [Shi et al., PPoPP'25, section 4]: the rows of Y that a window's column vectors name are the left
/// operand (16 of them), the rows of X of the window the right one (8): P^T(16 x 8) = Y(16 x K) X^T(K x 8). All of K is
/// summed in the unit.
///
/// What differs from the published kernel:
/// - The order of K in a sum is free as long as both operands share it. So a lane reads sixteen bytes of a row at once,
///   four lanes 64 bytes, and these feed several instructions; no shared memory and no shuffles.
/// - Which slots hold an entry is said by bits (SddmmBlockRow), not by an integer per slot, and the bits before a slot
///   count where in CSR its entry is: results leave in the caller's order.
/// - K need not be a multiple of anything: words beyond it are zeros.
/// - A window may be two instructions high: rows of Y are then read once for both.
/// - Waves take equal numbers of blocks, so windows are neither cut nor merged; those of a thread block work on
///   neighbouring windows, which find each other's rows of Y in the first-level cache.
///
/// An instruction's rows and columns do not mix: an infinite or undefined number reaches only the entries that use it.

namespace Tessera {

/// How rows go by.
template <int Height, int Count, bool Whole, bool Exact>
struct SddmmChunks {
  static constexpr int height = Height;  ///< instructions that a window is high
  static constexpr int count = Count;    ///< chunks of 64 bytes at once
  static constexpr bool whole = Whole;   ///< that is all of a row; those of X then stay in registers while they can
  static constexpr bool exact = Exact;   ///< rows are whole numbers of them
};

template <class Unit, class Wave, class Chunks>
class SddmmWindowKernel {
 public:
  using Atom = typename Unit::Atom;
  using Shape = PanelShape<Atom, 1>;
  using Head = SddmmHead<typename Shape::Operand, typename Shape::Sum>;
  static constexpr int height = Chunks::height, chunks = Chunks::count;
  static constexpr bool whole = Chunks::whole, exact = Chunks::exact;

 private:
  static constexpr int halves = Shape::halves;
  /// Registers of a lane that words of X and Y may take.
  static constexpr int room = height == 1 ? 96 : 80;
  /// Chunks of rows of Y that are under way.
  static constexpr int at_once_of(int n) {
    return n == 1 || (n <= 8 && 4 * (height * chunks + halves * n) <= room) ? n : at_once_of(n / 2);
  }

 public:
  static constexpr int at_once = at_once_of(chunks);
  static constexpr int registers = 4 * (height * chunks + halves * at_once);  ///< of these words

  /// Blocks of a window that share words of X each time these are read, where no whole row stays: as many as registers
  /// hold places and sums of. The three products of FP32 leave no room; 16-bit rows are whole up to 512 bytes.
  static constexpr int together_of() {
    if (whole) return 1;
    if (sizeof(typename Shape::Operand) == 8) return height == 1 && Atom::m == 8 ? 4 : 2;
    return Atom::rounding == OperandRounding::Tf32Nearest ? 2 : 1;
  }
  static constexpr int together = together_of();

  /// Blocks first, first + stride and so on, `count` of them as far as there are.
  TESSERA_FUNCTION static void run(const Wave& wave, const SddmmWindowArgs& args, std::int64_t first, int stride,
                                   int count, std::int64_t head_index) {
    const Head head(args.dense, head_index);
    if constexpr (together == 1) {
      one_by_one(wave, args, head, first, stride, count);
    } else {
      several_at_once(wave, args, head, first, stride, count);
    }
  }

 private:
  using Operand = typename Shape::Operand;
  using Sum = typename Shape::Sum;
  static constexpr int quads = Shape::quads, per_step = Shape::per_step;
  static constexpr int window_rows = height * Shape::rows;
  static constexpr int steps = Shape::width / per_step;  ///< instructions that a word feeds
  /// Different rows of the window among a lane's results: register i has row i % own_rows.
  static constexpr int own_rows = Atom::c_coord(0, 1).col == Atom::c_coord(0, 0).col ? 1 : 2;
  static_assert(Shape::consistent() && quads * Shape::rows == Atom::lanes, "both operands have the same order of K");
  static_assert(chunks % at_once == 0, "all of a row's chunks come");

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using RowWord = Packed<Operand, Shape::width>;
  using Sums = Varying<CFragment<Atom>>;

  struct OwnRows {
    SddmmBlockRow row[own_rows];
  };
  /// What a lane needs of a block.
  struct Place {
    std::uint32_t window;
    std::int32_t x_row[height];  ///< beyond the last one: the last; their results are not stored
    std::int32_t y_row[halves];  ///< beyond the last one: the first; likewise
    OwnRows own[height];
  };
  /// A whole row of X stays from block to block of a window.
  TESSERA_FUNCTION static void one_by_one(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                          std::int64_t first, int stride, int count) {
    const auto words = static_cast<int>(args.dense.words);
    Varying<Place> next;
    Varying<WordsOfX> x;
    Varying<std::uint32_t> window;
    wave.each([&](int lane) {
      next(lane) = place_of(args, first, lane);
      window(lane) = ~std::uint32_t{0};
    });
    for (int u = 0; u < count && first < args.blocks; ++u, first += stride) {
      const Varying<Place> place = next;
      if (u + 1 < count && first + stride < args.blocks) {  // the next columns are under way while rows of Y are
        wave.each([&](int lane) { next(lane) = place_of(args, first + stride, lane); });
      }
      Sums sums[height];
      clear(wave, sums);
      for (int begin = 0; begin < (whole ? 1 : words); begin += chunks * quads) {
        wave.each([&](int lane) {
          if (whole && place(lane).window == window(lane)) return;
          load_x(head, place(lane), begin, words, x(lane), lane);
          window(lane) = place(lane).window;
        });
        multiply_all(wave, head, place, begin, words, x, sums);
      }
      store_all(wave, args, head, place, sums);
    }
  }

  /// Words of X serve some blocks of a window each time they are read.
  TESSERA_FUNCTION static void several_at_once(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                               std::int64_t first, int stride, int count) {
    const auto words = static_cast<int>(args.dense.words);
    const std::int64_t last = first + std::int64_t{count} * stride, end = last < args.blocks ? last : args.blocks;
    while (first < end) {
      const int blocks = of_one_window(args, first, stride, end);
      Varying<Place> place[together];
      Sums sums[together][height];
      TESSERA_UNROLL
      for (int j = 0; j < together; ++j) {
        clear(wave, sums[j]);
        wave.each([&](int lane) { place[j](lane) = place_of(args, first + (j < blocks ? j : 0) * stride, lane); });
      }
      for (int begin = 0; begin < words; begin += chunks * quads) {
        Varying<WordsOfX> x;
        wave.each([&](int lane) { load_x(head, place[0](lane), begin, words, x(lane), lane); });
        TESSERA_UNROLL
        for (int j = 0; j < together; ++j) {
          if (j < blocks) multiply_all(wave, head, place[j], begin, words, x, sums[j]);
        }
      }
      TESSERA_UNROLL
      for (int j = 0; j < together; ++j) {
        if (j < blocks) store_all(wave, args, head, place[j], sums[j]);
      }
      first += std::int64_t{blocks} * stride;
    }
  }
  /// Blocks first, first + stride and so on that belong to its window: as many as go together.
  TESSERA_FUNCTION static int of_one_window(const SddmmWindowArgs& args, std::int64_t first, int stride,
                                            std::int64_t end) {
    const std::uint32_t window = args.block[first].window_index();
    int blocks = 1;
    for (std::int64_t at = first + stride; blocks < together && at < end; at += stride, ++blocks) {
      if (args.block[at].window_index() != window) break;
    }
    return blocks;
  }

  TESSERA_FUNCTION static Place place_of(const SddmmWindowArgs& args, std::int64_t index, int lane) {
    const SddmmBlock block = args.block[index];
    Place place;
    place.window = block.window_index();
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      std::int64_t at = std::int64_t{place.window} * window_rows + s * Shape::rows + Shape::row_of(lane);
      if (at >= args.rows) at = args.rows - 1;
      place.x_row[s] = args.row_order != nullptr ? args.row_order[at] : static_cast<std::int32_t>(at);
    }
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) {
      const int vector = Shape::group_of(lane) + h * Shape::groups;
      place.y_row[h] = args.columns[std::int64_t{block.first} + (vector < block.count() ? vector : 0)];
    }
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      TESSERA_UNROLL
      for (int i = 0; i < own_rows; ++i) {
        place.own[s].row[i] = args.block_rows[index * window_rows + s * Shape::rows + Atom::c_coord(lane, i).col];
      }
    }
    return place;
  }

  struct WordsOfX {
    RowWord word[height][chunks];
  };
  struct WordsOfY {
    RowWord word[at_once][halves];
  };
  TESSERA_FUNCTION static void load_x(const Head& head, const Place& place, int begin, int words, WordsOfX& x,
                                      int lane) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const char* const row = head.x(place.x_row[s]) + Shape::quad_of(lane) * 16;
      TESSERA_UNROLL
      for (int c = 0; c < chunks; ++c) {
        sddmm_load<exact, Wave>(row + (begin + c * quads) * 16, begin + c * quads + Shape::quad_of(lane) < words,
                                x.word[s][c]);
      }
    }
  }

  TESSERA_FUNCTION static void clear(const Wave& wave, Sums (&sums)[height]) {
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) sums[s](lane) = CFragment<Atom>{};
    });
  }
  TESSERA_FUNCTION static void multiply_all(const Wave& wave, const Head& head, const Varying<Place>& place, int begin,
                                            int words, const Varying<WordsOfX>& x, Sums (&sums)[height]) {
    TESSERA_UNROLL
    for (int c = 0; c < chunks; c += at_once) multiply(wave, head, place, begin, c, words, x, sums);
  }
  /// Chunks [first, first + at_once) of those from word `begin` on.
  TESSERA_FUNCTION static void multiply(const Wave& wave, const Head& head, const Varying<Place>& place, int begin,
                                        int first, int words, const Varying<WordsOfX>& x, Sums (&sums)[height]) {
    Varying<WordsOfY> y;
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int h = 0; h < halves; ++h) {
        const char* const row = head.y(place(lane).y_row[h]) + Shape::quad_of(lane) * 16;
        TESSERA_UNROLL
        for (int c = 0; c < at_once; ++c) {
          const int word = begin + (first + c) * quads;
          sddmm_load<exact, Wave>(row + word * 16, word + Shape::quad_of(lane) < words, y(lane).word[c][h]);
        }
      }
    });
    TESSERA_UNROLL
    for (int c = 0; c < at_once; ++c) {
      TESSERA_UNROLL
      for (int step = 0; step < steps; ++step) {
        Varying<AFragment<Atom>> left;
        wave.each([&](int lane) {
          TESSERA_UNROLL
          for (int i = 0; i < Atom::a_registers; ++i) {
            left(lane).r[i] = y(lane).word[c][Shape::a_half(i)].get(step * per_step + Shape::a_slot(i));
          }
        });
        TESSERA_UNROLL
        for (int s = 0; s < height; ++s) {
          Varying<BFragment<Atom>> right;
          wave.each([&](int lane) {
            TESSERA_UNROLL
            for (int i = 0; i < per_step; ++i) right(lane).r[i] = x(lane).word[s][first + c].get(step * per_step + i);
          });
          Unit::mma(wave, sums[s], left, right);
        }
      }
    }
  }

  TESSERA_FUNCTION static void store_all(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                         const Varying<Place>& place, const Sums (&sums)[height]) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      wave.each([&](int lane) { store(args, head, place(lane).own[s], sums[s](lane), lane); });
    }
  }
  TESSERA_FUNCTION static void store(const SddmmWindowArgs& args, const Head& head, const OwnRows& own,
                                     const CFragment<Atom>& sums, int lane) {
    std::uint32_t at[Atom::c_registers];
    bool on[Atom::c_registers];
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const SddmmBlockRow row = own.row[i % own_rows];
      const int vector = Atom::c_coord(lane, i).row;
      on[i] = (row.bits >> vector & 1) != 0;
      at[i] = row.begin + static_cast<std::uint32_t>(count_bits(row.bits & ((std::uint32_t{1} << vector) - 1)));
    }
    if (args.entry_at != nullptr) {  // all of these under way before the first store, which could change them
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) {
        if (on[i]) at[i] = args.entry_at[at[i]];
      }
    }
    if (head.plain()) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) {
        if (on[i]) head.store_plain(at[i], sums.r[i]);
      }
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) {
        if (on[i]) head.store(at[i], sums.r[i]);
      }
    }
  }
};

}  // namespace Tessera

#endif
