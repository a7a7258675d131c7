// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_CELLS_SLOTS_HPP
#define TESSERA_FORMATS_PACKED_CELLS_SLOTS_HPP

#include <cstdint>
#include <type_traits>

#include "core/Tessera_Pattern.hpp"
#include "formats/packed/Tessera_PackedCells.hpp"

/// \file
/// Last part of the conversion to cells: places, columns and numbers of all pieces in one kernel. Its threads are rows:
/// pieces of equal length of neighbouring rows lie side by side in their slices, so that what threads store together
/// is in few sectors (perf_test/notes/spmv-cells.md).

namespace Tessera {
namespace Impl {

/// Which column block a column is in, without a division.
struct CellsDivider {
  std::uint32_t width = 1, inverse = 0;

  CellsDivider() = default;
  explicit CellsDivider(std::int64_t block_columns)
      : width(static_cast<std::uint32_t>(block_columns)),
        inverse(static_cast<std::uint32_t>((std::uint64_t{1} << 32) / static_cast<std::uint64_t>(block_columns))) {}
  KOKKOS_INLINE_FUNCTION int operator()(std::uint32_t column) const {
    auto block = static_cast<std::uint32_t>(std::uint64_t{column} * inverse >> 32);  // or the one before
    if (column - block * width >= width) ++block;
    return static_cast<int>(block);
  }
};

/// Where pieces lie.
template <class Memory>
struct CellsPlaces {
  template <class T>
  using View = typename Experimental::PackedCells<Memory>::template View<T>;
  CellsShape shape;
  View<std::uint16_t> position;  // [cell][place of the row block]; 0xffff: no piece
  View<std::uint32_t> units, slice_at;
  unsigned char* packets;
  int value_bytes;

  /// What slice s of a cell is: units from the cell's first, and steps.
  KOKKOS_INLINE_FUNCTION std::uint32_t word(std::int64_t cell, int s) const {
    return slice_at(cell * shape.slices() + s);
  }
};

/// A piece of a slice.
struct CellsPiece {
  std::size_t unit;
  int steps, at;

  KOKKOS_INLINE_FUNCTION CellsPiece(std::uint32_t cell_unit, std::uint32_t word, int position)
      : unit(std::size_t{cell_unit} + (word >> 6)),
        steps(static_cast<int>(word & 63u)),
        at(position % CellsLayout::pieces) {}
  /// The name of its row; step s of its columns lies 1 + s times `pieces` behind.
  KOKKOS_INLINE_FUNCTION std::uint16_t* place(unsigned char* packets) const {
    return reinterpret_cast<std::uint16_t*>(packets + unit * CellsLayout::unit) + at;
  }
  /// Its first number, in numbers; step s lies s times `pieces` behind.
  KOKKOS_INLINE_FUNCTION std::uint32_t slot(int value_bytes) const {
    constexpr int row = CellsLayout::pieces * 2 / CellsLayout::unit;  // units of 64 columns
    const auto before = static_cast<std::uint32_t>(unit) + static_cast<std::uint32_t>(row * (1 + steps));
    return before * static_cast<std::uint32_t>(CellsLayout::unit / value_bytes) + static_cast<std::uint32_t>(at);
  }
  /// A number that is none.
  KOKKOS_INLINE_FUNCTION static void zero(unsigned char* packets, std::size_t slot, int value_bytes) {
    unsigned char* const value = packets + slot * static_cast<std::size_t>(value_bytes);
    if (value_bytes == 2) {
      *reinterpret_cast<std::uint16_t*>(value) = 0;
    } else {
      for (int w = 0; w < value_bytes / 4; ++w) reinterpret_cast<std::uint32_t*>(value)[w] = 0;
    }
  }
};

/// Pieces that are none: the last ones of each cell's last slice. One thread per cell and piece of a slice.
template <class Pattern>
struct CellsTailFunctor {
  template <class T>
  using View = typename CellsPlaces<typename Pattern::memory_space>::template View<T>;
  CellsPlaces<typename Pattern::memory_space> to;
  View<std::uint32_t> counts;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    constexpr int pieces = CellsLayout::pieces;
    const std::int64_t cell = i / pieces;
    const int found = static_cast<int>(counts(cell)), at = found + static_cast<int>(i % pieces);
    if (at >= (found + pieces - 1) / pieces * pieces) return;
    const CellsPiece piece(to.units(cell), to.word(cell, at / pieces), at);
    std::uint16_t* const place = piece.place(to.packets);
    const std::uint32_t slot = piece.slot(to.value_bytes);
    *place = static_cast<std::uint16_t>(to.shape.places());
    for (int step = 0; step < piece.steps; ++step) {
      place[(1 + step) * pieces] = static_cast<std::uint16_t>(to.shape.block_columns);
      CellsPiece::zero(to.packets, std::size_t{slot} + static_cast<std::size_t>(step * pieces), to.value_bytes);
    }
  }
};

/// What is known of the rows, and where their pieces go.
template <class Pattern>
struct CellsPieces {
  template <class T>
  using View = typename CellsPlaces<typename Pattern::memory_space>::template View<T>;
  typename Pattern::entries_type columns;
  View<std::int64_t> firsts;             // [group of places]: its first entry
  View<std::uint32_t> offsets;           // [group][rows + 1]: where rows begin behind that
  View<std::uint16_t> lengths;           // [column block][place of all]
  View<std::uint16_t> parts, cut_first;  // [place of all]
  CellsPlaces<typename Pattern::memory_space> to;
  View<std::uint32_t> slots;  // where each number lies; empty: nobody asks
  int threads = 1, room = 0;  // of a team; entries that it holds in scratch
};

/// Stands for numbers that are not written.
struct CellsNoNumbers {
  using non_const_value_type = std::uint16_t;
};

/// The pieces of 32 rows, for which a team of Kokkos is.
template <class Exec, class Pattern, class Values>
struct CellsSlotFunctor {
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Number = typename Values::non_const_value_type;
  using Scratch = Kokkos::View<std::uint64_t*, typename Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr bool numbers = !std::is_same_v<Values, CellsNoNumbers>;
  static constexpr int rows = CellsLayout::row_group, pieces = CellsLayout::pieces, unrolled = 4;
  CellsPieces<Pattern> in;
  Values values;
  CellsDivider block_of;
  int level;

  /// In scratch.
  struct Table {
    Number* numbers;         // of the entries, if they fit
    std::uint32_t* columns;  // theirs, and once written, their slots
    std::uint32_t* begins;   // [column block][row]: where pieces begin, and the row ends
    std::uint32_t* units;    // [column block]
    std::uint32_t* cut;      // whether there are cut pieces
    std::uint16_t* position;
    bool held;
  };
  /// Of the entries' numbers, in words of four bytes.
  KOKKOS_INLINE_FUNCTION int number_words() const {
    return numbers ? in.room * static_cast<int>(sizeof(Number)) / 4 : 0;
  }
  /// Words of eight bytes.
  KOKKOS_INLINE_FUNCTION int words() const {
    const int blocks = in.to.shape.column_blocks;
    return (number_words() + in.room + rows * (blocks + 1) + blocks + 1 + rows * blocks / 2 + 1) / 2;
  }
  int scratch_bytes() const { return static_cast<int>(Scratch::shmem_size(static_cast<std::size_t>(words()))); }
  /// Of a team's rows.
  struct Rows {
    std::int64_t group, cell, first;  // cell: the row block's first
    int own, count;                   // place of its first row in the row block; entries
    KOKKOS_INLINE_FUNCTION std::int64_t place(int r) const { return group * rows + r; }
  };

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const CellsShape& shape = in.to.shape;
    Rows of;
    of.group = team.league_rank();
    const std::int64_t block = of.place(0) / shape.row_places();
    of.own = static_cast<int>(of.place(0) - block * shape.row_places());
    of.cell = block * shape.column_blocks;
    of.first = in.firsts(of.group);
    of.count = static_cast<int>(in.offsets(of.group * (rows + 1) + rows));
    Scratch scratch(team.team_scratch(level), static_cast<std::size_t>(words()));
    Table table;
    table.numbers = reinterpret_cast<Number*>(scratch.data());
    table.columns = reinterpret_cast<std::uint32_t*>(scratch.data()) + number_words();
    table.begins = table.columns + in.room;
    table.units = table.begins + rows * (shape.column_blocks + 1);
    table.cut = table.units + shape.column_blocks;
    table.position = reinterpret_cast<std::uint16_t*>(table.cut + 1);
    table.held = of.count <= in.room;
    read(team, of, table);
    write(team, of, table);
    team.team_barrier();
    if (*table.cut != 0) write_cut(team, of, table);
    if (!table.held || in.slots.data() == nullptr) return;
    if (*table.cut != 0) team.team_barrier();
    for (int i = team.team_rank(); i < of.count; i += team.team_size()) {
      in.slots(of.first + i) = table.columns[i];
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION void read(const member& team, const Rows& of, const Table& table) const {
    const CellsShape& shape = in.to.shape;
    const int stride = team.team_size(), rank = team.team_rank(), all = rows * shape.column_blocks;
    for (int i = rank; i < all; i += unrolled * stride) {
      std::uint16_t length[unrolled], position[unrolled];
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        const int at = i + u * stride < all ? i + u * stride : i, b = at / rows, r = at % rows;
        length[u] = in.lengths(b * shape.all_places() + of.place(r));
        position[u] = in.to.position((of.cell + b) * shape.places() + of.own + r);
      }
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        if (i + u * stride >= all) continue;
        table.begins[rows + i + u * stride] = length[u];
        table.position[i + u * stride] = position[u];
      }
    }
    for (int b = rank; b < shape.column_blocks; b += stride) table.units[b] = in.to.units(of.cell + b);
    for (int r = rank; r < rows; r += stride) table.begins[r] = in.offsets(of.group * (rows + 1) + r);
    if (rank == 0) *table.cut = 0;
    for (int i = rank; table.held && i < of.count; i += unrolled * stride) {
      std::uint32_t column[unrolled];
      [[maybe_unused]] Number number[unrolled];
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        const int at = i + u * stride < of.count ? i + u * stride : i;
        column[u] = static_cast<std::uint32_t>(in.columns(of.first + at));
        if constexpr (numbers) number[u] = values(of.first + at);
      }
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        if (i + u * stride >= of.count) continue;
        table.columns[i + u * stride] = column[u];
        if constexpr (numbers) table.numbers[i + u * stride] = number[u];
      }
    }
    team.team_barrier();
    for (int r = rank; r < rows; r += stride) {
      std::uint32_t begin = table.begins[r];
      for (int b = 1; b <= shape.column_blocks; ++b) {
        begin += table.begins[b * rows + r];
        table.begins[b * rows + r] = begin;
      }
    }
    team.team_barrier();
  }

  KOKKOS_INLINE_FUNCTION std::uint32_t word(const Rows& of, const Table& table, int i) const {
    const int position = table.position[i];
    return position == 0xffff ? 0 : in.to.word(of.cell + i / rows, position / pieces);
  }
  /// What of pieces is not cut off.
  KOKKOS_INLINE_FUNCTION void write(const member& team, const Rows& of, const Table& table) const {
    const CellsShape& shape = in.to.shape;
    const int stride = team.team_size(), all = rows * shape.column_blocks;
    int i = team.team_rank();
    std::uint32_t here = i < all ? word(of, table, i) : 0;
    for (; i < all; i += stride) {
      const std::uint32_t next = i + stride < all ? word(of, table, i + stride) : 0;
      const std::uint32_t begin = table.begins[i], length = table.begins[rows + i] - begin;
      const int b = i / rows;
      if (length > 0) {
        const bool cut = static_cast<int>(length) > shape.max_steps;
        if (cut) *table.cut = 1;
        const CellsPiece piece(table.units[b], here, table.position[i]);
        std::uint16_t* const place = piece.place(in.to.packets);
        *place = static_cast<std::uint16_t>(of.own + i % rows);
        steps(of, table, piece, place, begin, cut ? shape.max_steps : static_cast<int>(length),
              static_cast<std::uint32_t>(b) * block_of.width);
      }
      here = next;
    }
  }
  /// Columns and numbers of a piece, and what pads it. @param first  entry; @param base  column of the column block
  KOKKOS_INLINE_FUNCTION void steps(const Rows& of, const Table& table, const CellsPiece& piece, std::uint16_t* place,
                                    std::uint32_t first, int length, std::uint32_t base) const {
    std::uint32_t slot = piece.slot(numbers ? static_cast<int>(sizeof(Number)) : in.to.value_bytes);
    for (int step = 0; step < piece.steps; ++step, slot += pieces) {
      place += pieces;
      if (step >= length) {
        *place = static_cast<std::uint16_t>(block_of.width);
        CellsPiece::zero(in.to.packets, slot, in.to.value_bytes);
        continue;
      }
      const std::uint32_t i = first + static_cast<std::uint32_t>(step);
      const std::uint32_t column = table.held ? table.columns[i] : static_cast<std::uint32_t>(in.columns(of.first + i));
      *place = static_cast<std::uint16_t>(column - base);
      if constexpr (numbers) {
        reinterpret_cast<Number*>(in.to.packets)[slot] = table.held ? table.numbers[i] : values(of.first + i);
      }
      keep(of, table, i, slot);
    }
  }
  KOKKOS_INLINE_FUNCTION void keep(const Rows& of, const Table& table, std::uint32_t i, std::uint32_t slot) const {
    if (in.slots.data() == nullptr) return;
    if (table.held) {
      table.columns[i] = slot;
    } else {
      in.slots(of.first + i) = slot;
    }
  }

  /// What is cut off: of long rows all threads take entries, one by one.
  KOKKOS_INLINE_FUNCTION void write_cut(const member& team, const Rows& of, const Table& table) const {
    const int stride = team.team_size(), blocks = in.to.shape.column_blocks;
    for (int r = 0; r < rows; ++r) {
      if (in.parts(of.place(r)) == 0) continue;
      const auto begin = static_cast<int>(table.begins[r]), end = static_cast<int>(table.begins[blocks * rows + r]);
      for (int i = begin + team.team_rank(); i < end; i += unrolled * stride) {
        std::uint32_t column[unrolled];  // from memory: some in scratch are slots now
        TESSERA_UNROLL
        for (int u = 0; u < unrolled; ++u) {
          const int at = i + u * stride < end ? i + u * stride : i;
          column[u] = static_cast<std::uint32_t>(in.columns(of.first + at));
        }
        TESSERA_UNROLL
        for (int u = 0; u < unrolled; ++u) {
          if (i + u * stride < end) entry(of, table, r, static_cast<std::uint32_t>(i + u * stride), column[u]);
        }
      }
    }
  }
  /// An entry of a further part of its piece.
  KOKKOS_INLINE_FUNCTION void entry(const Rows& of, const Table& table, int r, std::uint32_t i,
                                    std::uint32_t column) const {
    const CellsShape& shape = in.to.shape;
    const int b = block_of(column), most = shape.max_steps;
    const std::uint32_t first = table.begins[b * rows + r];
    const int in_piece = static_cast<int>(i - first), part = in_piece / most, step = in_piece % most;
    if (part == 0) return;
    const int v = in.cut_first(of.place(r)) + part - 1;
    const int position = in.to.position((of.cell + b) * shape.places() + v);
    const CellsPiece piece(table.units[b], in.to.word(of.cell + b, position / pieces), position);
    std::uint16_t* const place = piece.place(in.to.packets);
    const std::uint32_t slot = piece.slot(numbers ? static_cast<int>(sizeof(Number)) : in.to.value_bytes) +
                               static_cast<std::uint32_t>(step * pieces);
    place[(1 + step) * pieces] = static_cast<std::uint16_t>(column - static_cast<std::uint32_t>(b) * block_of.width);
    if constexpr (numbers) reinterpret_cast<Number*>(in.to.packets)[slot] = values(of.first + i);
    keep(of, table, i, slot);
    if (step > 0) return;
    *place = static_cast<std::uint16_t>(v);
    const int length = static_cast<int>(table.begins[(b + 1) * rows + r] - i);
    for (int s = length; s < piece.steps; ++s) {
      place[(1 + s) * pieces] = static_cast<std::uint16_t>(block_of.width);
      CellsPiece::zero(in.to.packets, std::size_t{slot} + static_cast<std::size_t>(s * pieces), in.to.value_bytes);
    }
  }
};

/// Writes all pieces. One kernel, no wait. Compiled once per type of numbers. @param values  of the type that is
/// stored, or CellsNoNumbers
template <class Exec, class Pattern, class Values>
void cells_write(const Exec& space, const CellsPieces<Pattern>& in, const Values& values) {
  CellsSlotFunctor<Exec, Pattern, Values> f;
  f.in = in;
  f.values = values;
  f.block_of = CellsDivider(in.to.shape.block_columns);
  f.level = Compat::large_scratch_level<Exec>;
  using Policy = Kokkos::TeamPolicy<Exec, Compat::LightWeight, Kokkos::LaunchBounds<256, 5>>;
  const auto teams = static_cast<int>(in.to.shape.all_places() / CellsLayout::row_group);
  Kokkos::parallel_for("Tessera::convert[cells] slots",
                       Policy(space, teams, Compat::team_size<Exec>(in.threads))
                           .set_scratch_size(f.level, Kokkos::PerTeam(f.scratch_bytes())),
                       f);
}

}  // namespace Impl
}  // namespace Tessera

#endif
