// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_FLASH_SPMM_KERNEL_HPP
#define TESSERA_KERNELS_SPMM_FLASH_SPMM_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/kernels/spmm/Tessera_SpmmStore.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// C := alpha A B + beta C from ME-BCRS [Shi et al., "FlashSparse", PPoPP'25, sections 4.1-4.3], one wave at a time.
/// The same text runs on devices (one lane per thread) and on hosts (emulated lanes and matrix unit).
///
/// Swap and transpose: the sparse block of a window is the right operand, whose n is the window's 8 rows (16 on AMD's
/// units), and the gathered rows of B, transposed, are the left one: C^T(16 x 8) += B^T(16 x depth) A^T(depth x 8).
/// Without the swap, the paper's 16x1 comparison, the sparse block is the left operand and each instruction takes 8
/// columns of B.
///
/// Differences to the paper: a wave takes up to 64 columns of B, so that values and indices are read once for all of
/// them; those of the next block are under way while the present one's rows of B are fetched; windows of several parts
/// leave partial sums that a second launch adds in a fixed order, instead of atomic additions; sums are in FP32 for
/// 16-bit operands, too.
///
/// A zero slot of a column vector is multiplied as everything else: an infinity or NaN in row j of B makes NaN of every
/// row of a window in which any row has an entry of column j. Sums are therefore looked at before they are stored, and
/// where one is not finite, the window's are computed again, number by number, without slots that hold +0: these are no
/// entries (an entry that is zero is stored as -0). Slots beyond a window's last column vector and padding (column -1)
/// are zero in both operands and read nothing.

namespace Tessera {

/// How one instruction's fragments are shared out, in the terms of this kernel: *along* is the place in the dense
/// operand's 16 or 8 columns, k the column vector of the block.
template <class Atom_, bool Swap>
struct FlashTile {
  using Atom = Atom_;
  static constexpr int lanes = Atom::lanes, depth = Atom::k;
  static constexpr int window_rows = Swap ? Atom::n : Atom::m, extent = Swap ? Atom::m : Atom::n;
  static constexpr int dense_registers = Swap ? Atom::a_registers : Atom::b_registers;
  static constexpr int sparse_registers = Swap ? Atom::b_registers : Atom::a_registers;
  static constexpr int results = Atom::c_registers;

  struct Place {
    int along, k;
  };
  TESSERA_FUNCTION static constexpr Place dense(int lane, int i) {
    if (Swap) return {Atom::a_coord(lane, i).row, Atom::a_coord(lane, i).col};
    return {Atom::b_coord(lane, i).col, Atom::b_coord(lane, i).row};
  }
  /// `along` is the row of the window here.
  TESSERA_FUNCTION static constexpr Place sparse(int lane, int i) {
    if (Swap) return {Atom::b_coord(lane, i).col, Atom::b_coord(lane, i).row};
    return {Atom::a_coord(lane, i).row, Atom::a_coord(lane, i).col};
  }
  TESSERA_FUNCTION static constexpr int result_along(int lane, int i) {
    return Swap ? Atom::c_coord(lane, i).row : Atom::c_coord(lane, i).col;
  }
  TESSERA_FUNCTION static constexpr int result_row(int lane, int i) {
    return Swap ? Atom::c_coord(lane, i).col : Atom::c_coord(lane, i).row;
  }

  /// A lane's registers hold `run` consecutive k, at `places` places `width` apart of the dense operand and
  /// `sparse_rows` places of the sparse one: register place * run + kk.
  static constexpr int run = sizeof(typename Atom::Operand) == 4 ? 1 : Atom::lanes == 32 ? 2 : 4;
  static constexpr int places = dense_registers / run, width = extent / places;
  static constexpr int sparse_rows = sparse_registers / run;

  TESSERA_FUNCTION static constexpr bool is_consistent() {
    for (int lane = 0; lane < lanes; ++lane) {
      const Place first = dense(lane, 0);
      if (first.along >= width || first.k + run > depth || first.k % run != 0) return false;
      for (int i = 0; i < dense_registers; ++i) {
        if (dense(lane, i).along != first.along + i / run * width || dense(lane, i).k != first.k + i % run)
          return false;
      }
      for (int i = 0; i < sparse_registers; ++i) {
        if (sparse(lane, i).along != sparse(lane, i / run * run).along || sparse(lane, i).k != first.k + i % run) {
          return false;
        }
      }
    }
    return true;
  }
};

template <class Atom>
constexpr int flash_steps(bool swap, bool coalesced, int tiles) {
  if (Atom::lanes != 32 || !swap || !coalesced) return 1;
  return sizeof(typename Atom::Operand) == 4 && tiles == 2 ? 4 : 2;
}

/// Unit: the matrix unit. Coalesced: how lanes read B (SpmmFlashArgs). A wave makes 16 * Tiles columns of C.
template <class Unit, class Wave, bool Swap, bool Coalesced, int Tiles>
class FlashSpmmKernel {
 public:
  using Atom = typename Unit::Atom;
  using Tile = FlashTile<Atom, Swap>;
  using Value = typename Atom::Operand;
  using Sum = typename Atom::Accumulator;
  static constexpr int columns = 16 * Tiles;

  /// Does columns [first_column, first_column + columns) of part `index` of args.split.part_count.
  TESSERA_FUNCTION static void run(const Wave& w, const SpmmFlashArgs& args, std::int64_t index,
                                   std::int64_t first_column) {
    FlashSpmmKernel(w, args, first_column).part(index);
  }

 private:
  static constexpr int depth = Tile::depth, run_length = Tile::run, window_rows = Tile::window_rows;
  static constexpr int instructions = columns / Tile::extent;
  /// Blocks under way at once, since a wave waits for memory once for all of them (perf_test/notes/spmm-flash.md). In
  /// TF32 blocks are half as deep. Other mappings, the paper's comparison, and AMD's are as they were.
  static constexpr int steps = flash_steps<Atom>(Swap, Coalesced, Tiles);
  static constexpr int slots = instructions * Tile::places;  ///< columns of B of a lane
  /// Two neighbours in one load need two slots; a single tile of AMD's units has one.
  static constexpr bool pairs = Coalesced && slots % 2 == 0;
  static_assert(Tile::is_consistent(), "registers of a lane hold consecutive column vectors");
  static_assert(std::is_same<Sum, float>::value, "sums are FP32");

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using DenseFragment = std::conditional_t<Swap, AFragment<Atom>, BFragment<Atom>>;
  using SparseFragment = std::conditional_t<Swap, BFragment<Atom>, AFragment<Atom>>;

  /// Where a lane reads next, and what it reads of a block: columns of its column vectors, values as they lie in
  /// memory.
  struct Cursor {
    const std::int32_t* columns;
    const Value* values;
    const char* b;  ///< the lane's first column of B's row 0
  };
  static constexpr int run_bytes = run_length * static_cast<int>(sizeof(Value)), run_words = (run_bytes + 3) / 4;
  struct Block {
    std::int32_t column[run_length];
    std::uint32_t word[Tile::sparse_rows * run_words];
  };
  struct Gathered {
    Value b[run_length][slots];
  };

  TESSERA_FUNCTION FlashSpmmKernel(const Wave& w, const SpmmFlashArgs& args, std::int64_t first_column)
      : w_(w),
        p_(args),
        first_column_(first_column),
        row_bytes_(static_cast<std::uint32_t>(args.dense.ldb * static_cast<std::int64_t>(sizeof(Value)))),
        wanted_(static_cast<int>(args.dense.columns - first_column < columns ? args.dense.columns - first_column
                                                                             : columns)) {}

  /// Column, counted from the first of the wave, of a slot of the lane that is at place `along` of `width`.
  TESSERA_FUNCTION static constexpr int column_of(int along, int slot) {
    return pairs ? slot / 2 * (2 * Tile::width) + 2 * along + slot % 2 : slot * Tile::width + along;
  }
  TESSERA_FUNCTION static constexpr int result_column(int lane, int instruction, int i) {
    const int along = Tile::result_along(lane, i);
    return column_of(along % Tile::width, instruction * Tile::places + along / Tile::width);
  }

  // ---- memory; `left` column vectors of the part are not yet done: the block has that many, or `depth`

  /// Of block `s` from the cursor on.
  TESSERA_FUNCTION void load_block(const Cursor& from, int s, int left, int lane, Block& block) const {
    const Cursor at{from.columns + s * depth, from.values + s * depth * window_rows, from.b};
    const int k = Tile::dense(lane, 0).k, row = Tile::sparse(lane, 0).along;
    TESSERA_UNROLL
    for (int kk = 0; kk < run_length; ++kk) {
      std::uint32_t word[1];
      Wave::template load_if<false, 4>(at.columns + kk, k + kk < left, ~0u, word);
      block.column[kk] = static_cast<std::int32_t>(word[0]);
    }
    if (left >= depth) {
      TESSERA_UNROLL
      for (int r = 0; r < Tile::sparse_rows; ++r) {
        const int rows_on = Tile::sparse(lane, r * run_length).along - row;
        Wave::template load_if<true, run_bytes>(at.values + rows_on * depth, true, 0u, block.word + r * run_words);
      }
    } else {  // the window's last block, as narrow as it is, or nothing
      TESSERA_UNROLL
      for (int r = 0; r < Tile::sparse_rows; ++r) {
        const int rows_on = Tile::sparse(lane, r * run_length).along - row;
        TESSERA_UNROLL
        for (int i = 0; i < run_words; ++i) block.word[r * run_words + i] = 0;
        TESSERA_UNROLL
        for (int kk = 0; kk < run_length; ++kk) {
          const bool on = k + kk < left;
          std::uint32_t word[1];
          const Value* value = at.values + (on ? kk + rows_on * left - row * (depth - left) : 0);
          Wave::template load_if<true, static_cast<int>(sizeof(Value))>(value, on, 0u, word);
          block.word[r * run_words + kk / 2] |= word[0] << (kk % 2 * 16);
        }
      }
    }
  }

  TESSERA_FUNCTION void gather(const Cursor& at, const Block& block, int lane, Gathered& g) const {
    const int first = column_of(Tile::dense(lane, 0).along, 0);
    TESSERA_UNROLL
    for (int kk = 0; kk < run_length; ++kk) {
      const bool used = block.column[kk] >= 0;
      const std::uint32_t row_index = used ? static_cast<std::uint32_t>(block.column[kk]) : 0u;
      const Value* row = reinterpret_cast<const Value*>(at.b + std::uint64_t{row_index} * row_bytes_);
      if constexpr (pairs) {
        constexpr int bytes = 2 * static_cast<int>(sizeof(Value));
        TESSERA_UNROLL
        for (int s = 0; s < slots; s += 2) {
          std::uint32_t words[bytes / 4];
          const int on = column_of(0, s);  // even: its neighbour may be the first one beyond the row's end
          Wave::template load_if<false, bytes>(row + on, used && first + on < wanted_, 0u, words);
          __builtin_memcpy(g.b[kk] + s, words, bytes);
        }
      } else {
        TESSERA_UNROLL
        for (int s = 0; s < slots; ++s) {
          const int on = column_of(0, s);
          g.b[kk][s] = Wave::template gather_if<Value>(row + on, used && first + on < wanted_);
        }
      }
    }
  }

  // ---- a part

  TESSERA_FUNCTION void part(std::int64_t index) const {
    std::int64_t window = index;
    std::int32_t partial = -1, begin, count;
    if (p_.split.parts != nullptr) {
      const Word word = Wave::template load<false>(reinterpret_cast<const Word*>(p_.split.parts) + index);
      SpmmPart share;
      __builtin_memcpy(&share, &word, sizeof(share));
      window = share.window;
      partial = share.partial;
      const std::int32_t skipped = static_cast<std::int32_t>(share.first_block) * depth;
      begin = p_.row_pointers[window] + skipped;
      count = p_.row_pointers[window + 1] - begin;
      if (share.blocks < (count + depth - 1) / depth) count = share.blocks * depth;
    } else {
      begin = p_.row_pointers[window];
      count = p_.row_pointers[window + 1] - begin;
    }

    Varying<CFragment<Atom>> sums[instructions];
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int j = 0; j < instructions; ++j) {
        TESSERA_UNROLL
        for (int i = 0; i < Tile::results; ++i) sums[j](lane).r[i] = Sum(0);
      }
    });
    multiply(p_.column_indices + begin, static_cast<const Value*>(p_.values) + std::int64_t{begin} * window_rows, count,
             sums);

    if (!finite(sums)) return store_by_numbers(window, partial, begin, count);
    if (partial >= 0) {
      const auto target = spmm_partials<Sum>(p_.split, p_.dense.columns, partial, window_rows);
      store(target, sums, [](int local) { return std::int64_t{local}; });
    } else {
      spmm_to_c<Value, Sum>(p_.dense, [&](const auto& target) {
        store(target, sums, [&](int local) { return spmm_row(p_, window, window_rows, local); });
      });
    }
  }

  /// The next blocks' indices and values are asked for before these blocks' rows of B, whose addresses are known, are
  /// waited for: `steps` blocks cost one wait for memory.
  TESSERA_FUNCTION void multiply(const std::int32_t* indices, const Value* values, int count,
                                 Varying<CFragment<Atom>> (&sums)[instructions]) const {
    Varying<Cursor> at;
    Varying<Block> block[steps], next[steps];
    Varying<Gathered> g[steps];
    w_.each([&](int lane) {
      const int k = Tile::dense(lane, 0).k, column = column_of(Tile::dense(lane, 0).along, 0);
      at(lane).columns = indices + k;
      at(lane).values = values + (Tile::sparse(lane, 0).along * depth + k);
      at(lane).b =
          static_cast<const char*>(p_.dense.b) + (first_column_ + column) * static_cast<std::int64_t>(sizeof(Value));
      TESSERA_UNROLL
      for (int s = 0; s < steps; ++s) load_block(at(lane), s, count - s * depth, lane, block[s](lane));
    });
    for (int left = count; left > 0; left -= steps * depth) {
      w_.each([&](int lane) {
        TESSERA_UNROLL
        for (int s = 0; s < steps; ++s) gather(at(lane), block[s](lane), lane, g[s](lane));
        at(lane).columns += steps * depth;
        at(lane).values += steps * depth * window_rows;
        TESSERA_UNROLL
        for (int s = 0; s < steps; ++s) load_block(at(lane), s, left - (steps + s) * depth, lane, next[s](lane));
      });
      TESSERA_UNROLL
      for (int s = 0; s < steps; ++s) {
        Varying<SparseFragment> a;
        w_.each([&](int lane) { __builtin_memcpy(a(lane).r, block[s](lane).word, sizeof(a(lane).r)); });
        TESSERA_UNROLL
        for (int j = 0; j < instructions; ++j) {
          Varying<DenseFragment> b;
          w_.each([&](int lane) {
            TESSERA_UNROLL
            for (int i = 0; i < Tile::dense_registers; ++i) {
              b(lane).r[i] = g[s](lane).b[i % run_length][j * Tile::places + i / run_length];
            }
          });
          if constexpr (Swap) {
            Unit::mma(w_, sums[j], b, a);
          } else {
            Unit::mma(w_, sums[j], a, b);
          }
        }
        w_.each([&](int lane) { block[s](lane) = next[s](lane); });
      }
    }
  }

  // ---- results

  /// Register 2u or 2u + 1 of the lane's results in an order in which neighbouring columns of a row follow each other.
  struct Register {
    int instruction, i;
  };
  TESSERA_FUNCTION static constexpr Register result_register(int u, int half) {
    constexpr int n = Tile::results;
    if (Tile::places == 2) return {u / 2, u % 2 + 2 * half};  // NVIDIA, swapped: i / 2 chooses between places
    if (pairs) return {2 * (u / n) + half, u % n};            // slots of two instructions
    return {u / (n / 2), 2 * (u % (n / 2)) + half};           // of one
  }
  static constexpr bool neighbours = pairs || Tile::places == 1;
  TESSERA_FUNCTION static constexpr bool order_is_right() {
    for (int lane = 0; lane < Tile::lanes; ++lane) {
      for (int u = 0; u < instructions * Tile::results / 2; ++u) {
        const Register a = result_register(u, 0), b = result_register(u, 1);
        if (Tile::result_row(lane, a.i) != Tile::result_row(lane, b.i)) return false;
        const int first = result_column(lane, a.instruction, a.i), second = result_column(lane, b.instruction, b.i);
        if (neighbours && (first % 2 != 0 || second != first + 1)) return false;
      }
    }
    return true;
  }

  template <class Target, class RowOf>
  TESSERA_FUNCTION void store(const Target& target, Varying<CFragment<Atom>> (&sums)[instructions],
                              RowOf&& row_of) const {
    static_assert(order_is_right(), "pairs of results are neighbours in a row of C");
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int u = 0; u < instructions * Tile::results / 2; ++u) {
        const Register a = result_register(u, 0), b = result_register(u, 1);
        const std::int64_t row = row_of(Tile::result_row(lane, a.i));
        const int first = result_column(lane, a.instruction, a.i), second = result_column(lane, b.instruction, b.i);
        const Sum two[2] = {sums[a.instruction](lane).r[a.i], sums[b.instruction](lane).r[b.i]};
        if (row < 0) continue;
        if constexpr (neighbours) {
          target.store(row, first_column_ + first, two);
        } else {
          const Sum left[1] = {two[0]}, right[1] = {two[1]};
          target.store(row, first_column_ + first, left);
          target.store(row, first_column_ + second, right);
        }
      }
    });
  }

  // ---- numbers that are not finite

  /// Whether all sums of the wave are, of columns that B has.
  TESSERA_FUNCTION bool finite(Varying<CFragment<Atom>> (&sums)[instructions]) const {
    Varying<bool> odd;
    w_.each([&](int lane) {
      FiniteProbe<Sum> probe;
      TESSERA_UNROLL
      for (int j = 0; j < instructions; ++j) {
        TESSERA_UNROLL
        for (int i = 0; i < Tile::results; ++i) {
          if (result_column(lane, j, i) < wanted_) probe.look_at(sums[j](lane).r[i]);
        }
      }
      odd(lane) = !probe.all_finite();
    });
    return w_.ballot(odd) == 0;
  }
  /// One sum without the unit.
  TESSERA_FUNCTION Sum sum_by_numbers(std::int32_t begin, std::int32_t count, int row, int column) const {
    Sum sum = 0;
    const std::int32_t* const indices = p_.column_indices + begin;
    const Value* block = static_cast<const Value*>(p_.values) + std::int64_t{begin} * window_rows;
    for (std::int32_t first = 0; first < count; first += depth, block += depth * window_rows) {
      const int block_width = count - first < depth ? count - first : depth;
      for (int k = 0; k < block_width; ++k) {
        const Sum value = static_cast<Sum>(block[row * block_width + k]);
        if (indices[first + k] < 0 || Impl::float_bits(value) == 0) continue;
        const Value* const b = static_cast<const Value*>(p_.dense.b) + indices[first + k] * p_.dense.ldb;
        sum += value * static_cast<Sum>(b[first_column_ + column]);
      }
    }
    return sum;
  }
  /// The sums of the part once more.
  TESSERA_FUNCTION void store_by_numbers(std::int64_t window, std::int32_t partial, std::int32_t begin,
                                         std::int32_t count) const {
    w_.each([&](int lane) {
      TESSERA_NO_UNROLL
      for (int u = 0; u < instructions * Tile::results; ++u) {
        const int i = u % Tile::results, local = Tile::result_row(lane, i);
        const int column = result_column(lane, u / Tile::results, i);
        if (column >= wanted_) continue;
        const Sum sum[1] = {sum_by_numbers(begin, count, local, column)};
        const std::int64_t row = partial >= 0 ? local : spmm_row(p_, window, window_rows, local);
        if (row < 0) continue;
        if (partial >= 0) {
          spmm_partials<Sum>(p_.split, p_.dense.columns, partial, window_rows).store(row, first_column_ + column, sum);
        } else {
          spmm_to_c<Value, Sum>(p_.dense, [&](const auto& target) { target.store(row, first_column_ + column, sum); });
        }
      }
    });
  }

  const Wave& w_;
  const SpmmFlashArgs& p_;
  std::int64_t first_column_;
  std::uint32_t row_bytes_;  ///< of B; flash_check sees to it that they fit
  int wanted_;               ///< columns that B has from there on, at most `columns`
};

/// What launchers share: the atoms of a vendor, and the kernel for a call.
struct FlashNvidia {
  using FP16 = Sm80_M16N8K8_F32_F16;
  using BF16 = Sm80_M16N8K8_F32_BF16;
  using TF32 = Sm80_M16N8K4_F32_TF32;
  static constexpr bool both_lengths = true;  ///< 8 with the swap, 16 without; else 16 with it
};
struct FlashAmd {
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
  using TF32 = Gfx90a_M16N16K4_F32;
  static constexpr bool both_lengths = false;
};

template <class Vendor>
int flash_depth_of(Precision precision, int vector_length) noexcept {
  if (vector_length != 16 && !(Vendor::both_lengths && vector_length == 8)) return 0;
  switch (precision) {
    case Precision::FP16:
      return Vendor::FP16::k;
    case Precision::BF16:
      return Vendor::BF16::k;
    case Precision::TF32:
      return Vendor::TF32::k;
    default:
      return 0;
  }
}

/// Ok, or why these arguments cannot be run.
template <class Vendor>
Status flash_check(const SpmmFlashArgs& args) noexcept {
  const int depth = flash_depth_of<Vendor>(args.precision, args.vector_length);
  if (depth == 0) return {"spmm[flash]: this precision and vector length are not offered"};
  if (depth != args.depth) return {"spmm[flash]: the format was built for another instruction"};
  const ElementType narrow = args.precision == Precision::FP16   ? ElementType::Half
                             : args.precision == Precision::BF16 ? ElementType::BHalf
                                                                 : ElementType::Float;
  if (args.dense.c_type != ElementType::Float && args.dense.c_type != narrow) {
    return {"spmm[flash]: C must be float or of the operands' type"};
  }
  if (args.split.parts == nullptr && args.split.windows_per_part != 1) {
    return {"spmm[flash]: a wave takes one window"};
  }
  if (args.dense.ldb >= (std::int64_t{1} << 30)) return {"spmm[flash]: rows of B have 2^30 or more elements"};
  return {};
}

/// Tiles of 16 columns that a wave takes: as many as N has, at most 4, fewer where there would be less than `waves`
/// waves. No result depends on it.
inline int flash_tiles(const SpmmFlashArgs& args, std::int64_t waves) noexcept {
  const std::int64_t n = args.dense.columns;
  int tiles = n > 32 ? 4 : n > 16 ? 2 : 1;
  while (tiles > 1 && (n + 16 * tiles - 1) / (16 * tiles) * args.split.part_count < waves) tiles /= 2;
  return tiles;
}

namespace Impl {
template <class Atom, bool Swap, bool Coalesced, class Launch>
auto flash_with_tiles(int tiles, const Launch& launch) {
  switch (tiles) {
    case 1:
      return launch.template run<Atom, Swap, Coalesced, 1>();
    case 2:
      return launch.template run<Atom, Swap, Coalesced, 2>();
    default:
      return launch.template run<Atom, Swap, Coalesced, 4>();
  }
}
template <class Vendor, class Atom, class Launch>
auto flash_with_mapping(const SpmmFlashArgs& args, int tiles, const Launch& launch) {
  const bool coalesced = args.coalesced;
  if constexpr (Vendor::both_lengths) {
    if (args.vector_length == 16) {
      return coalesced ? flash_with_tiles<Atom, false, true>(tiles, launch)
                       : flash_with_tiles<Atom, false, false>(tiles, launch);
    }
  }
  return coalesced ? flash_with_tiles<Atom, true, true>(tiles, launch)
                   : flash_with_tiles<Atom, true, false>(tiles, launch);
}
}  // namespace Impl

/// launch.run<Atom, Swap, Coalesced, Tiles>() of the kernel that checked arguments ask for.
template <class Vendor, class Launch>
auto flash_dispatch(const SpmmFlashArgs& args, int tiles, const Launch& launch) {
  switch (args.precision) {
    case Precision::FP16:
      return Impl::flash_with_mapping<Vendor, typename Vendor::FP16>(args, tiles, launch);
    case Precision::BF16:
      return Impl::flash_with_mapping<Vendor, typename Vendor::BF16>(args, tiles, launch);
    default:
      return Impl::flash_with_mapping<Vendor, typename Vendor::TF32>(args, tiles, launch);
  }
}

}  // namespace Tessera

#endif
