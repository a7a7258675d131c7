// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_WINDOW_KERNEL_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_WINDOW_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/kernels/sddmm/Tessera_SddmmRowsOfY.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_SplitUnit.hpp"
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
/// FP32 in parts of TF32 makes NaN of every such number and of the largest ones; these sums are made again in FP32.

namespace Tessera {

/// How rows go by; a kernel's tuning derives from it.
template <int Height, int Count>
struct SddmmChunks {
  static constexpr int height = Height;   ///< instructions that a window is high
  static constexpr int count = Count;     ///< chunks of 64 bytes of X at once
  static constexpr bool whole = true;     ///< that is all of a row; those of X then stay in registers while they can
  static constexpr bool exact = true;     ///< rows are whole numbers of them
  static constexpr bool compact = false;  ///< Y is a copy in TF32
};

/// The unit that a kernel multiplies with. TF32 on NVIDIA's: operands are rounded by the kernel, those of X once and
/// not for each block, and those of a copy are already.
template <class Unit>
struct SddmmUnit {
  using type = Unit;
  static constexpr bool rounds = false;
};
template <template <class> class Unit>
struct SddmmUnit<Unit<Sm80_M16N8K8_F32_TF32>> {
  using type = Unit<Sm80_M16N8K8_F32_TF32Cut>;
  static constexpr bool rounds = true;
};

/// Chunks: an SddmmChunks.
template <class Unit_, class Wave, class Chunks>
class SddmmWindowKernel {
 public:
  using Unit = typename SddmmUnit<Unit_>::type;
  using Atom = typename Unit::Atom;
  using Shape = PanelShape<Atom, 1>;
  using Head = SddmmHead<typename Shape::Operand, typename Shape::Sum>;
  static constexpr int height = Chunks::height, chunks = Chunks::count;
  static constexpr bool whole = Chunks::whole, exact = Chunks::exact, compact = Chunks::compact;

 private:
  using Operand = typename Shape::Operand;
  using Sum = typename Shape::Sum;
  static constexpr int halves = Shape::halves;
  /// Registers of a lane that words of X and Y may take.
  static constexpr int room = height == 1 ? 96 : 80;
  static constexpr int registers_of(int at_once) {
    return 4 * height * chunks + halves * (compact ? at_once / 2 * 5 : at_once * 4);
  }
  /// Chunks of rows of Y that are under way.
  static constexpr int at_once_of(int n) {
    return n == (compact ? 2 : 1) || (n <= 8 && registers_of(n) <= room) ? n : at_once_of(n / 2);
  }

 public:
  static constexpr int at_once = at_once_of(chunks);
  static constexpr int registers = registers_of(at_once);  ///< of these words
  /// Of eight waves that an NVIDIA multiprocessor is to hold at once: of 64, 80 or 128 registers per lane.
  static constexpr int thread_blocks = whole && registers <= 20 ? 4 : registers <= 48 ? 3 : 2;
  static constexpr int across = compact ? at_once / 2 : 0;  ///< of the copy (CompactCopy)

  /// Blocks of a window that share words of X each time these are read, where no whole row stays: as many as registers
  /// hold places and sums of. The three products of FP32 leave no room; 16-bit rows are whole up to 512 bytes.
  static constexpr int together_of() {
    if (whole) return 1;
    if (sizeof(Operand) == 8) return height == 1 && Atom::m == 8 ? 4 : 2;
    return SddmmUnit<Unit_>::rounds ? 2 : 1;
  }
  static constexpr int together = together_of();

  /// Blocks first, first + stride and so on, `count` of them as far as there are.
  TESSERA_FUNCTION static void run(const Wave& wave, const SddmmWindowArgs& args, std::uint32_t first, int stride,
                                   int count, std::int64_t head_index) {
    const Head head(args.dense, head_index);
    const auto blocks = static_cast<std::uint32_t>(args.blocks);
    const int left = static_cast<int>((blocks - first - 1) / static_cast<std::uint32_t>(stride)) + 1;
    count = Wave::keep(left < count ? left : count);
    Varying<Lane> own;
    wave.each([&](int lane) { own(lane) = lane_of(args, head, head_index, lane); });
    if constexpr (together == 1) {
      one_by_one(wave, args, head, own, first, stride, count);
    } else {
      several_at_once(wave, args, head, own, first, stride, count);
    }
  }

 private:
  static constexpr int quads = Shape::quads, per_step = Shape::per_step;
  static constexpr int window_rows = height * Shape::rows;
  static constexpr int steps = Shape::width / per_step;  ///< instructions that a word feeds
  /// Different rows of the window among a lane's results: register i has row i % own_rows.
  static constexpr int own_rows = Atom::c_coord(0, 1).col == Atom::c_coord(0, 0).col ? 1 : 2;
  static constexpr bool pairs = sizeof(Operand) == 2;  ///< operands share registers
  static_assert(Shape::consistent() && quads * Shape::rows == Atom::lanes, "both operands have the same order of K");
  static_assert(chunks % at_once == 0, "all of a row's chunks come");
  static_assert(own_rows == 1 || Atom::c_coord(1, 1).col == Atom::c_coord(1, 0).col + 1, "own rows are neighbours");
  static_assert(!pairs || (Shape::a_slot(0) % 2 == 0 && Shape::a_slot(1) == Shape::a_slot(0) + 1),
                "as words have them");

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using RowWord = Packed<Operand, Shape::width>;
  using Sums = Varying<CFragment<Atom>>;
  using WordsOfY =
      std::conditional_t<compact, SddmmRowsOfCompactY<(at_once < 2 ? 2 : at_once), !SddmmUnit<Unit_>::rounds>,
                         SddmmRowsOfY<Operand, at_once, exact>>;

  struct alignas(8 * own_rows) OwnRows {
    SddmmBlockRow row[own_rows];
  };
  /// What a lane has from the first block to the last.
  struct Lane {
    typename WordsOfY::Base y;
    const char* x;              ///< row 0, from its first word on
    const SddmmBlockRow* rows;  ///< its own, of block 0
    Sum* p;                     ///< where results go that are plain
    Sum alpha;
  };
  /// Where words and the parts of FP32 leave registers for them.
  template <class T>
  TESSERA_FUNCTION static T held(T value) {
    return whole && registers <= (in_parts<Atom> ? 32 : 128) ? Wave::keep(value) : value;
  }
  TESSERA_FUNCTION static Lane lane_of(const SddmmWindowArgs& args, const Head& head, std::int64_t head_index,
                                       int lane) {
    Lane own;
    own.y = WordsOfY::template base<Wave>(args.dense, head_index, Shape::quad_of(lane));
    own.x = held(head.x(0) + Shape::quad_of(lane) * 16);
    own.rows = held(args.block_rows + Atom::c_coord(lane, 0).col);
    own.p = held(head.sums());
    own.alpha = held(head.alpha());
    return own;
  }

  /// What a lane needs of a block.
  struct Place {
    std::uint32_t window;
    std::int32_t x_row[height];  ///< beyond the last one: the last; their results are not stored
    std::int32_t y_row[halves];  ///< beyond the last one: the last; likewise
  };
  /// Its entries, as far as a lane has results for them.
  struct Entries {
    OwnRows own[height];
  };
  TESSERA_FUNCTION static Entries entries_of(const Lane& own, std::uint32_t index) {
    Entries entries;
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const SddmmBlockRow* const rows = own.rows + (std::uint64_t{index} * window_rows + s * Shape::rows);
      entries.own[s] = Wave::template load<false>(reinterpret_cast<const OwnRows*>(rows));
    }
    return entries;
  }
  TESSERA_FUNCTION static Place place_of(const SddmmWindowArgs& args, SddmmBlock block, int lane) {
    Place place;
    place.window = block.window_index();
    const std::uint32_t last = block.window >> SddmmBlock::window_bits;
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) {
      const auto vector = static_cast<std::uint32_t>(Shape::group_of(lane) + h * Shape::groups);
      place.y_row[h] = args.columns[block.first + (vector < last ? vector : last)];
    }
    const auto end = static_cast<std::uint32_t>(args.rows - 1);
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const std::uint32_t row =
          place.window * window_rows + static_cast<std::uint32_t>(s * Shape::rows + Shape::row_of(lane));
      const std::uint32_t at = row < end ? row : end;
      place.x_row[s] = args.row_order != nullptr ? args.row_order[at] : static_cast<std::int32_t>(at);
    }
    return place;
  }

  struct WordsOfX {
    RowWord word[height][chunks];
  };
  struct HalvesOfY {
    WordsOfY half[halves];
  };
  TESSERA_FUNCTION static void load_x(const Lane& own, const Head& head, const Place& place, int begin, int words,
                                      WordsOfX& x, int lane) {
    const int first = begin + Shape::quad_of(lane);
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      const char* const row = Wave::keep(own.x + (head.x_distance(place.x_row[s]) + begin * 16));
      TESSERA_UNROLL
      for (int c = 0; c < chunks; ++c) {
        sddmm_load<exact, Wave>(row + c * quads * 16, first + c * quads < words, x.word[s][c]);
      }
    }
  }
  TESSERA_FUNCTION static void round_x(WordsOfX& x) {
    if constexpr (SddmmUnit<Unit_>::rounds) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) {
        TESSERA_UNROLL
        for (int c = 0; c < chunks; ++c) {
          TESSERA_UNROLL
          for (int i = 0; i < Shape::width; ++i) {
            x.word[s][c].w[i] = Impl::float_bits(round_to_tf32(x.word[s][c].get(i)));
          }
        }
      }
    }
  }
  TESSERA_FUNCTION static void load_y(const Lane& own, const Place& place, int begin, int words, HalvesOfY& y) {
    TESSERA_UNROLL
    for (int h = 0; h < halves; ++h) y.half[h].template load<Wave, quads>(own.y, place.y_row[h], begin, words);
  }

  /// Where the next block is. What it needs is asked for while this one's rows of Y are under way, by what was asked
  /// for one block before, so that nothing waits for an answer that another one needs.
  struct Ahead {
    Varying<Place> next;
    Varying<SddmmBlock> coming;  ///< after that one

    TESSERA_FUNCTION Ahead(const Wave& wave, const SddmmWindowArgs& args, std::uint32_t first, int stride, int count) {
      wave.each([&](int lane) {
        const SddmmBlock block = args.block[first];
        coming(lane) = count > 1 ? args.block[first + static_cast<std::uint32_t>(stride)] : block;
        next(lane) = place_of(args, block, lane);
      });
    }
    /// index: of this block; left: blocks from it on.
    TESSERA_FUNCTION void step(const Wave& wave, const SddmmWindowArgs& args, std::uint32_t index, int stride,
                               int left) {
      wave.each([&](int lane) {
        if (left > 1) next(lane) = place_of(args, coming(lane), lane);
        if (left > 2) coming(lane) = args.block[index + static_cast<std::uint32_t>(2 * stride)];
      });
    }
  };

  /// A whole row of X stays from block to block of a window.
  TESSERA_FUNCTION static void one_by_one(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                          const Varying<Lane>& own, std::uint32_t first, int stride, int count) {
    Ahead ahead(wave, args, first, stride, count);
    const auto words = static_cast<int>(args.dense.words);
    Varying<WordsOfX> x;
    Varying<std::uint32_t> window;
    wave.each([&](int lane) { window(lane) = ~std::uint32_t{0}; });
    for (int left = count; left > 0; --left, first += static_cast<std::uint32_t>(stride)) {
      const Varying<Place> place = ahead.next;
      Varying<Entries> entries;
      Sums sums[height];
      clear(wave, sums);
      for (int begin = 0; begin < (whole ? 1 : words); begin += chunks * quads) {
        TESSERA_UNROLL
        for (int c = 0; c < chunks; c += at_once) {
          Varying<HalvesOfY> y;
          Varying<bool> other;
          wave.each([&](int lane) {
            load_y(own(lane), place(lane), begin + c * quads, words, y(lane));
            other(lane) = c == 0 && (!whole || place(lane).window != window(lane));
            if (other(lane)) load_x(own(lane), head, place(lane), begin, words, x(lane), lane);
          });
          if (begin == 0 && c == 0) ahead.step(wave, args, first, stride, left);
          wave.each([&](int lane) {
            if (begin == 0 && c == 0) entries(lane) = entries_of(own(lane), first);
            if (!other(lane)) return;
            round_x(x(lane));
            window(lane) = place(lane).window;
          });
          multiply(wave, y, c, x, sums);
        }
      }
      store_all(wave, args, head, own, entries, first, sums);
    }
  }

  /// Words of X serve some blocks of a window each time they are read.
  TESSERA_FUNCTION static void several_at_once(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                               const Varying<Lane>& own, std::uint32_t first, int stride, int count) {
    const auto words = static_cast<int>(args.dense.words);
    while (count > 0) {
      const int blocks = of_one_window(args, first, stride, count);
      Varying<Place> place[together];
      Sums sums[together][height];
      TESSERA_UNROLL
      for (int j = 0; j < together; ++j) {
        clear(wave, sums[j]);
        const std::uint32_t index = first + static_cast<std::uint32_t>((j < blocks ? j : 0) * stride);
        wave.each([&](int lane) { place[j](lane) = place_of(args, args.block[index], lane); });
      }
      for (int begin = 0; begin < words; begin += chunks * quads) {
        Varying<WordsOfX> x;
        wave.each([&](int lane) {
          load_x(own(lane), head, place[0](lane), begin, words, x(lane), lane);
          round_x(x(lane));
        });
        TESSERA_UNROLL
        for (int j = 0; j < together; ++j) {
          if (j >= blocks) continue;
          TESSERA_UNROLL
          for (int c = 0; c < chunks; c += at_once) {
            Varying<HalvesOfY> y;
            wave.each([&](int lane) { load_y(own(lane), place[j](lane), begin + c * quads, words, y(lane)); });
            multiply(wave, y, c, x, sums[j]);
          }
        }
      }
      TESSERA_UNROLL
      for (int j = 0; j < together; ++j) {
        if (j >= blocks) continue;
        const std::uint32_t index = first + static_cast<std::uint32_t>(j * stride);
        Varying<Entries> entries;
        wave.each([&](int lane) { entries(lane) = entries_of(own(lane), index); });
        store_all(wave, args, head, own, entries, index, sums[j]);
      }
      first += static_cast<std::uint32_t>(blocks * stride);
      count -= blocks;
    }
  }
  /// Blocks first, first + stride and so on that belong to its window: as many as go together.
  TESSERA_FUNCTION static int of_one_window(const SddmmWindowArgs& args, std::uint32_t first, int stride, int count) {
    const std::uint32_t window = args.block[first].window_index();
    int blocks = 1;
    for (std::uint32_t at = first; blocks < together && blocks < count; ++blocks) {
      at += static_cast<std::uint32_t>(stride);
      if (args.block[at].window_index() != window) break;
    }
    return blocks;
  }

  TESSERA_FUNCTION static void clear(const Wave& wave, Sums (&sums)[height]) {
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int s = 0; s < height; ++s) sums[s](lane) = CFragment<Atom>{};
    });
  }
  /// Chunks [first, first + at_once) of those of X.
  TESSERA_FUNCTION static void multiply(const Wave& wave, const Varying<HalvesOfY>& y, int first,
                                        const Varying<WordsOfX>& x, Sums (&sums)[height]) {
    TESSERA_UNROLL
    for (int c = 0; c < at_once; ++c) {
      TESSERA_UNROLL
      for (int step = 0; step < steps; ++step) {
        Varying<AFragment<Atom>> left;
        wave.each([&](int lane) { left_operand(y(lane), c, step, left(lane)); });
        TESSERA_UNROLL
        for (int s = 0; s < height; ++s) {
          Varying<BFragment<Atom>> right;
          wave.each([&](int lane) {
            const RowWord& word = x(lane).word[s][first + c];
            if constexpr (pairs) {
              __builtin_memcpy(right(lane).r, word.w + step * per_step / 2, sizeof(right(lane).r));
            } else {
              TESSERA_UNROLL
              for (int i = 0; i < per_step; ++i) right(lane).r[i] = word.get(step * per_step + i);
            }
          });
          Unit::mma(wave, sums[s], left, right);
        }
      }
    }
  }
  TESSERA_FUNCTION static void left_operand(const HalvesOfY& y, int c, int step, AFragment<Atom>& left) {
    if constexpr (pairs) {  // two in a register, as they lie in the words
      TESSERA_UNROLL
      for (int i = 0; i < Atom::a_registers; i += 2) {
        const std::uint32_t* const bits = y.half[Shape::a_half(i)].bits(c);
        __builtin_memcpy(left.r + i, bits + (step * per_step + Shape::a_slot(i)) / 2, 4);
      }
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::a_registers; ++i) {
        const Operand value = y.half[Shape::a_half(i)].get(c, step * per_step + Shape::a_slot(i));
        if constexpr (SddmmUnit<Unit_>::rounds && !compact) {
          left.r[i] = round_to_tf32(value);
        } else {
          left.r[i] = value;
        }
      }
    }
  }

  TESSERA_FUNCTION static void store_all(const Wave& wave, const SddmmWindowArgs& args, const Head& head,
                                         const Varying<Lane>& own, const Varying<Entries>& entries, std::uint32_t index,
                                         Sums (&sums)[height]) {
    TESSERA_UNROLL
    for (int s = 0; s < height; ++s) {
      wave.each([&](int lane) {
        if constexpr (in_parts<Atom>) {
          if (!all_finite(sums[s](lane))) sum_again(args, head, entries(lane).own[s], index, s, sums[s](lane), lane);
        }
        if (args.plain) {
          store_plain(own(lane), entries(lane).own[s], sums[s](lane), lane);
        } else {
          store(args, head, entries(lane).own[s], sums[s](lane), lane);
        }
      });
    }
  }
  /// The bits of register i's row up to its own one, which is the highest: whether it is an entry, and how many stand
  /// before it.
  TESSERA_FUNCTION static std::uint32_t bits_to(const OwnRows& own, int i, int lane) {
    return own.row[i % own_rows].bits << (31 - Atom::c_coord(lane, i).row);
  }
  TESSERA_FUNCTION static bool is_entry(std::uint32_t bits) { return static_cast<std::int32_t>(bits) < 0; }
  TESSERA_FUNCTION static std::uint32_t entry_of(const OwnRows& own, int i, std::uint32_t bits) {
    return own.row[i % own_rows].begin + static_cast<std::uint32_t>(count_bits(bits)) - 1;
  }
  TESSERA_FUNCTION static bool all_finite(const CFragment<Atom>& sums) {
    Sum zero = 0;
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) zero += sums.r[i] * Sum(0);
    return zero == Sum(0);
  }
  /// Entries of instruction s of block `index` whose sums are not finite, from rows of X and Y as plain loops would.
  /// Rare, and kept small: no register is named by a loop that stays one.
  TESSERA_FUNCTION static void sum_again(const SddmmWindowArgs& args, const Head& head, const OwnRows& own,
                                         std::uint32_t index, int s, CFragment<Atom>& sums, int lane) {
    std::uint32_t wanted = 0;
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const bool finite = sums.r[i] * Sum(0) == Sum(0);
      if (is_entry(bits_to(own, i, lane)) && !finite) wanted |= std::uint32_t{1} << i;
    }
    const SddmmBlock block = args.block[index];
    TESSERA_NO_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      if ((wanted >> i & 1) == 0) continue;
      const auto place = Atom::c_coord(lane, i);
      const std::int64_t at = std::int64_t{block.window_index()} * window_rows + s * Shape::rows + place.col;
      const std::int32_t row = args.row_order != nullptr ? args.row_order[at] : static_cast<std::int32_t>(at);
      const auto* const x = reinterpret_cast<const Operand*>(head.x(row));
      const auto* const y =
          reinterpret_cast<const Operand*>(head.y(args.columns[block.first + static_cast<std::uint32_t>(place.row)]));
      Sum sum = 0;
      TESSERA_NO_UNROLL
      for (std::int64_t k = 0; k < args.dense.words * Shape::width; ++k) sum += x[k] * y[k];
      TESSERA_UNROLL
      for (int j = 0; j < Atom::c_registers; ++j) {
        if (j == i) sums.r[j] = sum;
      }
    }
  }
  TESSERA_FUNCTION static void store_plain(const Lane& to, const OwnRows& own, const CFragment<Atom>& sums, int lane) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const std::uint32_t bits = bits_to(own, i, lane), entry = entry_of(own, i, bits);
      if (is_entry(bits)) to.p[entry] = to.alpha * sums.r[i];
    }
  }
  TESSERA_FUNCTION static void store(const SddmmWindowArgs& args, const Head& head, const OwnRows& own,
                                     const CFragment<Atom>& sums, int lane) {
    std::uint32_t at[Atom::c_registers];
    bool on[Atom::c_registers];
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const std::uint32_t bits = bits_to(own, i, lane);
      on[i] = is_entry(bits);
      at[i] = entry_of(own, i, bits);
    }
    if (args.entry_at != nullptr) {  // all of these under way before the first store, which could change them
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) {
        if (on[i]) at[i] = args.entry_at[at[i]];
      }
    }
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      if (on[i]) head.store(at[i], sums.r[i]);
    }
  }
};

}  // namespace Tessera

#endif
