// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_PANEL_KERNEL_HPP
#define TESSERA_KERNELS_SPMM_PANEL_KERNEL_HPP

#include <cstdint>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/kernels/spmm/Tessera_PanelBlock.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// C := alpha A B + beta C from panels on matrix units. A wave takes a few neighbouring row windows (or a part of one)
/// and a tile of columns; the waves of a block take neighbouring windows, whose rows of B meet in the first-level
/// cache.
///
/// The operands are swapped and transposed as in FlashSparse [Shi et al., PPoPP'25]: C^T += B^T A^T, so that windows
/// are as low as the instruction's n. What differs:
/// - Rows of B, values and packets come through rings in shared memory that belong to the wave alone: asynchronous
///   copies of whole lines, several blocks ahead. No lane ever waits for a load: packets arrive before the copies that
///   need their columns are issued, and these before the products that need them. The rings are kept small: what they
///   leave of the memory is first-level cache, in which the windows of a block find each other's rows.
/// - Which column of B a fragment's row stands for is free, and so a lane takes sixteen bytes of a staged row at once,
///   which feed several instructions; rows of C leave the same way. No shuffles.
/// - Of A only entries are stored; a lane finds its own by counting bits.
/// - What a lane does for each block is counted in instructions: places that stay the same from block to block are made
///   once (Lane), and others move on by a mask (perf_test/notes/spmm-panels.md).
///
/// A slot without entry is a zero that is multiplied: Inf and NaN in a row of B reach all rows of a window that has an
/// entry in that column. Sums are therefore looked at before they are stored, and where one is not finite, the window's
/// are computed again, entry by entry.

namespace Tessera {

/// A wave's tile is Chunks * groups * (Bytes / operand size) columns wide; Bytes: what a lane reads of a staged row at
/// once, 16, or 8 or 4 for narrow C.
template <class Unit, class Wave, int Steps, int Chunks, int Bytes = 16>
struct PanelKernel {
  using Atom = typename Unit::Atom;
  using Shape = PanelShape<Atom, Steps>;
  using Operand = typename Shape::Operand;
  using Sum = typename Shape::Sum;
  static constexpr int width = Bytes / static_cast<int>(sizeof(Operand));
  static constexpr int chunk_columns = Shape::groups * width;
  static constexpr int tile_columns = Chunks * chunk_columns;
  static constexpr int products = width / Shape::halves;  ///< instructions that share a chunk's loads
  static constexpr int row_bytes = tile_columns * static_cast<int>(sizeof(Operand));
  static constexpr PanelGeometry geometry = panel_geometry<Shape>();
  static constexpr int rows_bytes = Shape::depth * row_bytes;
  // Two blocks in flight or in use. A third one costs more, in cache, than it brings (perf_test/notes/spmm-panels.md).
  static constexpr int stage_bytes = rows_bytes + Shape::rows * Shape::depth * static_cast<int>(sizeof(Operand));
  static constexpr int packet_bytes = geometry.packet_words() * 4;
  static constexpr int packets = 4;  ///< in their ring: a packet is copied three blocks before its products
  static constexpr int packet_stride = packet_bytes <= 64 ? 64 : packet_bytes <= 128 ? 128 : 256;  ///< there
  static constexpr int wave_bytes =
      (2 * stage_bytes + packets * packet_stride + 127) / 128 * 128;  ///< of shared memory
  static_assert(packet_bytes <= packet_stride, "the place of the next packet is found by a mask");
  static constexpr int pieces = row_bytes / 16;                       ///< lanes that copy a row
  static constexpr int copies = Shape::depth * pieces / Wave::lanes;  ///< rows of which a lane copies a piece

  static constexpr int runs = Atom::c_registers / Shape::halves;  ///< of columns that a lane holds of a chunk

  static_assert(Shape::consistent(), "the layout is not the one the kernel is written for");
  static_assert(pieces <= Wave::lanes && copies >= 1, "a row is copied by one wave at once");

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Memory = typename Wave::Memory;

  struct Tile {
    CFragment<Atom> c[Chunks][products];
  };

  /// Columns [first_column, first_column + tile_columns) of the windows of one part. `memory`: wave_bytes that only
  /// this wave uses, at a multiple of 128 bytes.
  TESSERA_FUNCTION static void run(const Wave& wave, const SpmmPanelArgs& args, Memory memory, std::int64_t part_index,
                                   std::int64_t first_column) {
    PanelPart part = panel_part(args, part_index);
    const Memory ring = memory + 2 * stage_bytes;
    Varying<Tile> tile;
    Varying<Lane> own;
    const std::uint32_t first = part.first_block, count = part.end_block - first;
    wave.each([&](int lane) {
      tile(lane) = Tile{};
      own(lane) = lane_facts(args, first_column, first, lane);
    });

    // Groups of copies: packets that are needed at once; then, for each block, it and the packet two after.
    copy_packet(wave, args, first, 0 < count, ring);
    copy_packet(wave, args, first + 1, 1 < count, ring + packet_stride);
    wave.commit_copies();
    wave.template wait_copies<0>();
    if (count > 0) copy_block(wave, own, count + 1, ring, memory, ring + 2 * packet_stride);
    wave.commit_copies();
    const bool plain = stores_plain(args, part, first_column);
    std::int32_t packet = 0, stage = 0;  // where this block's are
    std::uint32_t i = 0, window_end = part.window_end - first;
    for (;;) {
      if (i == window_end) {
        do {  // windows that end here; those without blocks as well
          if (!finite(wave, args, first_column, plain, tile)) {
            store_by_entries(args, part, first_column);
          } else if (plain && (part.window + 1) * Shape::rows <= args.rows) {
            store_plain(wave, args, part, first_column, tile);
          } else {
            store(wave, args, part, first_column, tile);
          }
          wave.each([&](int lane) { tile(lane) = Tile{}; });
          panel_next_window(args, part);
        } while (part.window < part.end_window && part.window_end - first == i);
        if (part.window >= part.end_window) break;
        window_end = part.window_end - first;
      }
      const std::int32_t next = (packet + packet_stride) & (packets * packet_stride - 1);
      if (i + 1 < count) {
        const std::int32_t later = (packet - packet_stride) & (packets * packet_stride - 1);
        copy_block(wave, own, count - i, ring + next, memory + (stage_bytes - stage), ring + later);
      }
      wave.commit_copies();
      wave.template wait_copies<1>();
      multiply(wave, own, memory + stage, ring + packet, tile);
      wave.converge();  // all lanes have read what is overwritten next
      packet = next;
      stage = stage_bytes - stage;
      ++i;
    }
    wave.template wait_copies<0>();
  }

 private:
  /// Place of a sixteen-byte piece in a stage. Rows that lanes of one instruction read together are neighbours, and
  /// their pieces are exchanged so that they fall into different banks.
  TESSERA_FUNCTION static int place(int slot, int piece) {
    const int quad = slot / Shape::slots, j = slot % Shape::slots;
    const int turn = pieces >= 8 ? 2 * quad : pieces >= 4 ? quad / 2 * 2 : 0;
    return (j * Shape::quads + quad) * row_bytes + (piece ^ turn) * 16;
  }

  /// Rows that a lane copies, by their places: those of one quad are at a fixed distance from each other.
  static constexpr int quad_copies = copies < Shape::slots ? copies : Shape::slots;
  static constexpr int slot_bytes = Shape::quads * row_bytes;
  static_assert(copies % quad_copies == 0 && Shape::slots % quad_copies == 0, "");
  static_assert(Chunks == 1 || Shape::groups * Bytes % 128 == 0, "chunks are at a fixed distance from each other");

  /// What stays the same for a lane from block to block, but for `packet`. Compilers would make all of it again for
  /// every block, which takes as many instructions as the block itself.
  struct Lane {
    const char* b;       ///< its piece of a row 0 of B
    const char* values;  ///< its piece of value 0
    const char* packet;  ///< its piece of the next packet that is to be copied
    std::int32_t ldb_bytes;
    std::int32_t least;         ///< column from which on rows of B are read: 0, or none where its piece has no columns
    std::int32_t packets_from;  ///< blocks that must be left for it to copy a packet
    std::int32_t copy_at[copies / quad_copies], columns_at, piece;
    std::int32_t fragment_at, bits_at, before_at, below, shift;
  };
  TESSERA_FUNCTION static Lane lane_facts(const SpmmPanelArgs& args, std::int64_t first_column, std::uint32_t block,
                                          int lane) {
    Lane l;
    constexpr std::int64_t size = sizeof(Operand);
    const std::int64_t byte = first_column * size + lane % pieces * 16;
    l.least = Wave::keep(byte < args.dense.columns * size ? 0 : 0x7fffffff);
    l.b = Wave::keep(static_cast<const char*>(args.dense.b) + byte);
    l.values = Wave::keep(static_cast<const char*>(args.values) + lane * 16);
    l.packet = reinterpret_cast<const char*>(args.packets) + (std::size_t{block} + 2) * packet_bytes + lane * 16;
    l.ldb_bytes = static_cast<std::int32_t>(args.dense.ldb * size);
    l.packets_from = Wave::keep(lane < packet_bytes / 16 ? 4 : 0x7fffffff);
    const int first = lane / pieces * copies, slot = Shape::slot_of(lane);
    TESSERA_UNROLL
    for (int i = 0; i < copies / quad_copies; ++i) {
      l.copy_at[i] = Wave::keep(place(first + i * quad_copies, lane % pieces));
    }
    l.columns_at = Wave::keep(first * 4);
    l.piece = Wave::keep(lane * 16);
    const int bit = Shape::row_of(lane) * Shape::depth, group_byte = Shape::group_of(lane) * Bytes;
    l.fragment_at = Wave::keep(place(slot, group_byte / 16) + group_byte % 16);
    l.bits_at = Wave::keep((geometry.bitmap_at() + bit / 32) * 4);
    l.before_at = Wave::keep(geometry.prefix_at() * 4 + Shape::row_of(lane));
    l.below = Wave::keep(static_cast<std::int32_t>(((1u << slot) - 1u) << bit % 32));
    l.shift = Wave::keep(bit % 32 + slot);
    return l;
  }

  TESSERA_FUNCTION static void copy_packet(const Wave& wave, const SpmmPanelArgs& args, std::uint32_t block, bool on,
                                           Memory packet) {
    wave.each([&](int lane) {
      if (!on || lane >= packet_bytes / 16) return;
      const char* from = reinterpret_cast<const char*>(args.packets) + std::size_t{block} * packet_bytes + lane * 16;
      Wave::template copy_async<false>(packet + lane * 16, from, true);
    });
  }

  /// The rows of B and the values of a block whose packet has arrived, and, where `left` blocks are left, the packet
  /// two after.
  TESSERA_FUNCTION static void copy_block(const Wave& wave, Varying<Lane>& own, std::uint32_t left, Memory packet,
                                          Memory stage, Memory later_packet) {
    wave.each([&](int lane) {
      Lane& l = own(lane);
      std::uint32_t columns[copies], extent[2];
      constexpr int width = copies < 4 ? copies : 4;
      TESSERA_UNROLL
      for (int i = 0; i < copies; i += width) {
        Wave::template load_staged<width * 4>(packet + l.columns_at + i * 4, columns + i);
      }
      Wave::template load_staged<8>(packet + geometry.begin_at() * 4, extent);
      const char* const values = l.values + std::size_t{extent[0]} * sizeof(Operand);
      const Memory values_at = stage + rows_bytes + l.piece, packet_at = later_packet + l.piece;
      TESSERA_UNROLL
      for (int i = 0; i < copies; ++i) {
        const auto column = static_cast<std::int32_t>(columns[i]);
        const char* from = l.b + std::int64_t{column} * l.ldb_bytes;  // not read for column -1
        const Memory to = stage + l.copy_at[i / quad_copies] + i % quad_copies * slot_bytes;
        Wave::template copy_async<true>(to, from, column >= l.least);
      }
      if (l.piece < static_cast<int>(extent[1] * sizeof(Operand))) {
        Wave::template copy_async<false>(values_at, values, true);
      }
      if (left >= static_cast<std::uint32_t>(l.packets_from)) {
        Wave::template copy_async<false>(packet_at, l.packet, true);
      }
      l.packet += packet_bytes;
    });
  }

  /// The lane's entries: its bits, and how many entries of the block stand before them.
  struct Sparse {
    Operand value[Shape::slots];
  };
  TESSERA_FUNCTION static void decode(Memory packet, Memory values, const Lane& l, Sparse& sparse) {
    std::uint32_t word, prefix;
    Wave::template load_staged<4>(packet + l.bits_at, &word);
    Wave::template load_staged<1>(packet + l.before_at, &prefix);
    const int before = static_cast<int>(prefix) + count_bits(word & static_cast<std::uint32_t>(l.below));
    const std::uint32_t own = word >> l.shift;
    // A slot without entry reads the value of another one. A step that compilers do not know is added in two
    // instructions, a shifted bit of the word in three.
    constexpr int size = sizeof(Operand);
    const std::int32_t step = Wave::keep(std::int32_t{size});
    Memory at = values + before * size;
    TESSERA_UNROLL
    for (int j = 0; j < Shape::slots; ++j) {
      Operand value;
      std::uint32_t bits[(sizeof(Operand) + 3) / 4];
      Wave::template load_staged<size>(at, bits);
      __builtin_memcpy(&value, bits, sizeof(Operand));
      const bool on = (own & (1u << j)) != 0;
      sparse.value[j] = on ? value : Operand{};
      at += on ? step : 0;
    }
  }

  TESSERA_FUNCTION static void multiply(const Wave& wave, const Varying<Lane>& own, Memory stage, Memory packet,
                                        Varying<Tile>& tile) {
    Varying<Sparse> sparse;
    wave.each([&](int lane) { decode(packet, stage + rows_bytes, own(lane), sparse(lane)); });
    struct Dense {
      Packed<Operand, width> b[Shape::slots];
    };
    TESSERA_UNROLL
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      Varying<Dense> rows;
      wave.each([&](int lane) {
        const Memory from = stage + own(lane).fragment_at;
        TESSERA_UNROLL
        for (int j = 0; j < Shape::slots; ++j) {
          const int skip = j * slot_bytes + chunk * Shape::groups * Bytes;
          Wave::template load_staged<Bytes>(from + skip, rows(lane).b[j].w);
        }
      });
      TESSERA_UNROLL
      for (int step = 0; step < Shape::steps; ++step) {
        Varying<BFragment<Atom>> right;
        wave.each([&](int lane) {
          TESSERA_UNROLL
          for (int i = 0; i < Shape::per_step; ++i) right(lane).r[i] = sparse(lane).value[step * Shape::per_step + i];
        });
        TESSERA_UNROLL
        for (int p = 0; p < products; ++p) {
          Varying<AFragment<Atom>> left;
          Varying<CFragment<Atom>> c;
          wave.each([&](int lane) {
            TESSERA_UNROLL
            for (int i = 0; i < Atom::a_registers; i += Shape::pairing) {
              const auto row = [&](int k) -> const auto& {
                return rows(lane).b[step * Shape::per_step + Shape::a_slot(i + k)];
              };
              const int column = p * Shape::halves + Shape::a_half(i);
              if constexpr (Shape::pairing == 2) {
                const std::uint32_t two = pair_of(row(0), row(1), column);
                __builtin_memcpy(left(lane).r + i, &two, sizeof(two));
              } else {
                left(lane).r[i] = row(0).get(column);
              }
            }
            c(lane) = tile(lane).c[chunk][p];
          });
          Unit::mma(wave, c, left, right);
          wave.each([&](int lane) { tile(lane).c[chunk][p] = c(lane); });
        }
      }
    }
  }

  /// Registers with the first columns of runs come first.
  TESSERA_FUNCTION static constexpr bool runs_first() {
    for (int i = 0; i < Atom::c_registers; ++i) {
      if ((Atom::c_coord(0, i).row < Shape::groups) != (i < runs)) return false;
    }
    return true;
  }
  /// f(row of the window, column, chunk, i) for each run of `width` columns that a lane holds, the first in register i.
  template <class F>
  TESSERA_FUNCTION static void each_run(std::int64_t first_column, int lane, F&& f) {
    static_assert(runs_first(), "runs are counted by their first registers");
    TESSERA_UNROLL
    for (int i = 0; i < runs; ++i) {
      const Coord at = Atom::c_coord(lane, i);
      TESSERA_UNROLL
      for (int chunk = 0; chunk < Chunks; ++chunk) {
        f(at.col, first_column + chunk * chunk_columns + at.row * width, chunk, i);
      }
    }
  }
  TESSERA_FUNCTION static Sum sum_of(const Tile& tile, int chunk, int i, int v) {
    return tile.c[chunk][v / Shape::halves].r[Shape::c_register(i, v % Shape::halves)];
  }

  /// Whether all sums of the wave are, of columns that B has: what lies behind a row of B may be anything.
  TESSERA_FUNCTION static bool finite(const Wave& wave, const SpmmPanelArgs& args, std::int64_t first_column,
                                      bool whole, const Varying<Tile>& tile) {
    Varying<bool> odd;
    wave.each([&](int lane) {
      FiniteProbe<Sum> probes[2];  // sums of one wait for each other
      if (whole) {
        each_run(first_column, lane, [&](int, std::int64_t, int chunk, int i) {
          TESSERA_UNROLL
          for (int v = 0; v < width; ++v) probes[v % 2].look_at(sum_of(tile(lane), chunk, i, v));
        });
      } else {
        each_run(first_column, lane, [&](int, std::int64_t column, int chunk, int i) {
          TESSERA_UNROLL
          for (int v = 0; v < width; ++v) {
            if (column + v < args.dense.columns) probes[v % 2].look_at(sum_of(tile(lane), chunk, i, v));
          }
        });
      }
      odd(lane) = !probes[0].all_finite() || !probes[1].all_finite();
    });
    return wave.ballot(odd) == 0;
  }

  /// Whether whole windows of the part are stored without a look at each place: most are, and of windows of a few
  /// blocks the looking would be as many instructions as the blocks.
  TESSERA_FUNCTION static bool stores_plain(const SpmmPanelArgs& args, const PanelPart& part,
                                            std::int64_t first_column) {
    const SpmmDense& d = args.dense;
    const std::int64_t size = d.c_type == ElementType::Double ? 8 : d.c_type == ElementType::Float ? 4 : 2;
    const bool aligned = reinterpret_cast<std::uintptr_t>(d.c) % 16 == 0 && d.ldc * size % 16 == 0;
    return aligned && d.beta == 0 && part.partial < 0 && args.row_order == nullptr &&
           first_column + tile_columns <= d.columns;
  }
  TESSERA_FUNCTION static void store_plain(const Wave& wave, const SpmmPanelArgs& args, const PanelPart& part,
                                           std::int64_t first_column, const Varying<Tile>& tile) {
    wave.each([&](int lane) {
      spmm_to_c<Operand, Sum>(args.dense, [&](const auto& target) {
        const std::int64_t first = part.window * Shape::rows * target.ld + first_column;
        each_run(0, lane, [&](int row, std::int64_t column, int chunk, int i) {
          Sum sums[width];
          TESSERA_UNROLL
          for (int v = 0; v < width; ++v) sums[v] = sum_of(tile(lane), chunk, i, v);
          target.store_plain(first + row * target.ld + column, sums);
        });
      });
    });
  }
  TESSERA_FUNCTION static void store(const Wave& wave, const SpmmPanelArgs& args, const PanelPart& part,
                                     std::int64_t first_column, const Varying<Tile>& tile) {
    wave.each([&](int lane) {
      each_run(first_column, lane, [&](int row, std::int64_t column, int chunk, int i) {
        Sum sums[width];
        TESSERA_UNROLL
        for (int v = 0; v < width; ++v) sums[v] = sum_of(tile(lane), chunk, i, v);
        panel_store<Wave, Operand, width>(args, part, Shape::rows, row, column, sums);
      });
    });
  }

  /// The sums of the part's present window once more, without the unit.
  TESSERA_FUNCTION static void store_by_entries(const SpmmPanelArgs& args, const PanelPart& part,
                                                std::int64_t first_column) {
    Wave().each([&](int lane) {
      TESSERA_NO_UNROLL
      for (int u = 0; u < Chunks * runs * width; ++u) {
        const int run = u / width;
        const Coord at = Atom::c_coord(lane, run % runs);
        const std::int64_t column = first_column + run / runs * chunk_columns + at.row * width + u % width;
        if (column >= args.dense.columns) continue;
        const Sum sum[1] = {panel_sum<Shape>(args, part, at.col, column)};
        panel_store<Wave, Operand, 1>(args, part, Shape::rows, at.col, column, sum);
      }
    });
  }
};

}  // namespace Tessera

#endif
