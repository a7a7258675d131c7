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
  static constexpr int widths = CellsLayout::widths;
  CellsShape shape;
  View<std::uint16_t> position;             // [cell][place]: among pieces of as many slots; 0xffff: no piece
  View<std::uint32_t> units;                // [cell]
  View<std::uint32_t> first_slice, counts;  // [cell][log2 of slots]: place in slice_at, and how many pieces
  View<std::uint32_t> slice_at;             // units from the cell's first << 5, and steps
  unsigned char* packets;
  int value_bytes;

  /// What the slice of a piece is. @param first  first_slice of the cell's pieces of as many slots
  KOKKOS_INLINE_FUNCTION std::uint32_t word(std::uint32_t first, int log, int position) const {
    return slice_at(first + (static_cast<std::uint32_t>(position) >> (6 - log)));
  }
};
static_assert(CellsLayout::slots == 1 << 6, "CellsPlaces::word and CellsPiece shift by 6");

/// A piece of a slice.
struct CellsPiece {
  std::size_t unit;
  int steps, at, log;  // at: its first slot

  KOKKOS_INLINE_FUNCTION CellsPiece(std::uint32_t cell_unit, std::uint32_t word, int position, int log_slots)
      : unit(std::size_t{cell_unit} + (word >> 5)),
        steps(static_cast<int>(word & 31u)),
        at((position & ((CellsLayout::slots >> log_slots) - 1)) << log_slots),
        log(log_slots) {}
  /// The name of its row; step s of its columns lies 1 + s times `slots` behind.
  KOKKOS_INLINE_FUNCTION std::uint16_t* place(unsigned char* packets) const {
    return reinterpret_cast<std::uint16_t*>(packets + unit * CellsLayout::unit) + at;
  }
  /// Its first number, in numbers; step s lies s times `slots` behind.
  KOKKOS_INLINE_FUNCTION std::uint32_t slot(int value_bytes) const {
    constexpr int row = CellsLayout::slots * 2 / CellsLayout::unit;  // units of 64 columns
    const auto before = static_cast<std::uint32_t>(unit) + static_cast<std::uint32_t>(row * (1 + steps));
    return before * static_cast<std::uint32_t>(CellsLayout::unit / value_bytes) + static_cast<std::uint32_t>(at);
  }
  /// Where entry k of the piece lies behind its first.
  KOKKOS_INLINE_FUNCTION int behind(int k) const { return (k >> log) * CellsLayout::slots + (k & ((1 << log) - 1)); }
  /// No entries behind the piece's: @param from  how many it has
  KOKKOS_INLINE_FUNCTION void pad(unsigned char* packets, int from, std::int64_t column, int value_bytes) const {
    std::uint16_t* const columns = place(packets) + CellsLayout::slots;
    const std::uint32_t first = slot(value_bytes);
    for (int k = from; k < steps << log; ++k) {
      columns[behind(k)] = static_cast<std::uint16_t>(column);
      zero(packets, std::size_t{first} + static_cast<std::size_t>(behind(k)), value_bytes);
    }
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

/// Pieces that are none: behind the last ones of each number of slots. One thread per cell, number of slots, and slot.
template <class Pattern>
struct CellsTailFunctor {
  CellsPlaces<typename Pattern::memory_space> to;

  static std::int64_t threads(const CellsShape& shape) {
    return shape.cells() * CellsLayout::widths * CellsLayout::slots;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::int64_t of_cell = i / CellsLayout::slots, cell = of_cell / CellsLayout::widths;
    const int log = static_cast<int>(of_cell % CellsLayout::widths), of_slice = CellsLayout::slots >> log;
    const int found = static_cast<int>(to.counts(of_cell)), at = found + static_cast<int>(i % CellsLayout::slots);
    if (at >= (found + of_slice - 1) / of_slice * of_slice) return;
    const CellsPiece piece(to.units(cell), to.word(to.first_slice(of_cell), log, at), at, log);
    for (int slot = 0; slot < 1 << log; ++slot) {
      piece.place(to.packets)[slot] = static_cast<std::uint16_t>(to.shape.places());
    }
    piece.pad(to.packets, 0, to.shape.block_columns, to.value_bytes);
  }
};

/// Groups of 32 rows that have many entries. A team of Kokkos has a group, and others would wait for that of these rows
/// alone, so that their entries are shared out: a work unit is so many of them.
template <class Memory>
struct CellsHeavy {
  template <class T>
  using View = typename Experimental::PackedCells<Memory>::template View<T>;
  View<std::uint64_t> work;        // units: group << 32, and which of its units
  View<std::uint32_t> place_of;    // [group]: its place among all
  std::uint32_t* found = nullptr;  // how many work units
  std::uint32_t entries = 0;       // of a work unit; groups that have more are heavy
  int teams = 0;                   // of Kokkos, that take work units; before those that have groups

  static std::int64_t most(std::int64_t nnz, std::int64_t entries) { return 2 * nnz / entries + 1; }
  KOKKOS_INLINE_FUNCTION bool has(std::int64_t count) const { return count > entries; }
  KOKKOS_INLINE_FUNCTION void add(std::int64_t group, std::int64_t count) const {
    const auto parts = static_cast<std::uint32_t>((count + entries - 1) / entries);
    const std::uint32_t at = Kokkos::atomic_fetch_add(found, parts);
    for (std::uint32_t n = 0; n < parts; ++n) work(at + n) = static_cast<std::uint64_t>(group) << 32 | n;
  }
  /// f(group, first of its entries) for the work units of team `rank`.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each(int rank, const F& f) const {
    for (std::uint32_t u = static_cast<std::uint32_t>(rank), all = *found; u < all;
         u += static_cast<std::uint32_t>(teams)) {
      const std::uint64_t here = work(u);
      f(static_cast<std::int64_t>(here >> 32), static_cast<std::int64_t>(here & 0xffffffffu) * entries);
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
  CellsHeavy<typename Pattern::memory_space> heavy;
  View<std::uint32_t> slots;  // where each number lies; empty: nobody asks
  int threads = 1, room = 0;  // of a team; entries that it holds in scratch
};

/// Stands for numbers that are not written.
struct CellsNoNumbers {
  using non_const_value_type = std::uint16_t;
};

/// The pieces of 32 rows, for which a team of Kokkos is, or those of a work unit of heavy ones.
template <class Exec, class Pattern, class Values>
struct CellsSlotFunctor {
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Number = typename Values::non_const_value_type;
  using Scratch = Kokkos::View<std::uint64_t*, typename Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr bool numbers = !std::is_same_v<Values, CellsNoNumbers>;
  static constexpr int rows = CellsLayout::row_group, widths = CellsLayout::widths, unrolled = 4;
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
    std::uint32_t* slices;   // [column block]: first_slice of pieces of one slot
    std::uint32_t* wide;     // whether there are pieces of several slots
    std::uint16_t* position;
    bool held;
  };
  /// Of the entries' numbers, in words of four bytes.
  KOKKOS_INLINE_FUNCTION int number_words() const {
    return numbers ? in.room * static_cast<int>(sizeof(Number)) / 4 : 0;
  }
  /// Words of eight bytes.
  KOKKOS_INLINE_FUNCTION int words() const {
    return (4 * (number_words() + in.room) + CellsShape::setup_bytes(in.to.shape.column_blocks) + 7) / 8;
  }
  int scratch_bytes() const { return static_cast<int>(Scratch::shmem_size(static_cast<std::size_t>(words()))); }
  /// Of a team's rows.
  struct Rows {
    std::int64_t group, cell, first;  // cell: the row block's first
    int own, count;                   // place of its first row in the row block; entries
    KOKKOS_INLINE_FUNCTION std::int64_t place(int r) const { return group * rows + r; }
  };

  KOKKOS_INLINE_FUNCTION void operator()(const member& team) const {
    const int rank = team.league_rank() - in.heavy.teams;
    if (rank >= 0) return group(team, rank);
    const Table table = table_of(team, false);
    in.heavy.each(team.league_rank(), [&](std::int64_t g, std::int64_t first) {
      const Rows of = rows_of(in.heavy.place_of(g));
      read(team, of, table);
      const std::int64_t left = of.count - first;
      write_wide(team, of, table, static_cast<int>(first),
                 static_cast<int>(left < in.heavy.entries ? of.count : first + in.heavy.entries));
      team.team_barrier();
    });
  }

 private:
  KOKKOS_INLINE_FUNCTION Rows rows_of(std::int64_t group) const {
    const CellsShape& shape = in.to.shape;
    Rows of;
    of.group = group;
    const std::int64_t block = of.place(0) / shape.row_places();
    of.own = static_cast<int>(of.place(0) - block * shape.row_places());
    of.cell = block * shape.column_blocks;
    of.first = in.firsts(group);
    of.count = static_cast<int>(in.offsets(group * (rows + 1) + rows));
    return of;
  }
  KOKKOS_INLINE_FUNCTION Table table_of(const member& team, bool held) const {
    const CellsShape& shape = in.to.shape;
    Scratch scratch(team.team_scratch(level), static_cast<std::size_t>(words()));
    Table table;
    table.numbers = reinterpret_cast<Number*>(scratch.data());
    table.columns = reinterpret_cast<std::uint32_t*>(scratch.data()) + number_words();
    table.begins = table.columns + in.room;
    table.units = table.begins + rows * (shape.column_blocks + 1);
    table.slices = table.units + shape.column_blocks;
    table.wide = table.slices + shape.column_blocks;
    table.position = reinterpret_cast<std::uint16_t*>(table.wide + 1);
    table.held = held;
    return table;
  }
  /// The pieces of a group, those of several slots only if it is not heavy.
  KOKKOS_INLINE_FUNCTION void group(const member& team, std::int64_t g) const {
    const Rows of = rows_of(g);
    const bool heavy = in.heavy.has(of.count);
    const Table table = table_of(team, !heavy && of.count <= in.room);
    read(team, of, table);
    write(team, of, table);
    team.team_barrier();
    const bool wide = *table.wide != 0;
    if (wide && !heavy) write_wide(team, of, table, 0, of.count);
    if (!table.held || in.slots.data() == nullptr) return;
    if (wide) team.team_barrier();
    for (int i = team.team_rank(); i < of.count; i += team.team_size()) {
      in.slots(of.first + i) = table.columns[i];
    }
  }
  /// Of a stored number.
  KOKKOS_INLINE_FUNCTION int bytes() const { return numbers ? static_cast<int>(sizeof(Number)) : in.to.value_bytes; }
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
    for (int b = rank; b < shape.column_blocks; b += stride) {
      table.units[b] = in.to.units(of.cell + b);
      table.slices[b] = in.to.first_slice((of.cell + b) * widths);
    }
    for (int r = rank; r < rows; r += stride) table.begins[r] = in.offsets(of.group * (rows + 1) + r);
    if (rank == 0) *table.wide = 0;
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

  KOKKOS_INLINE_FUNCTION static std::uint32_t length(const Table& table, int i) {
    return table.begins[rows + i] - table.begins[i];
  }
  /// Whether piece i has one slot.
  KOKKOS_INLINE_FUNCTION static bool single(const Table& table, int i) {
    return length(table, i) - 1 < std::uint32_t{CellsLayout::max_steps};
  }
  KOKKOS_INLINE_FUNCTION std::uint32_t word(const Table& table, int i) const {
    return single(table, i) ? in.to.word(table.slices[i / rows], 0, table.position[i]) : 0;
  }
  /// Pieces of one slot.
  KOKKOS_INLINE_FUNCTION void write(const member& team, const Rows& of, const Table& table) const {
    const int stride = team.team_size(), all = rows * in.to.shape.column_blocks;
    int i = team.team_rank();
    std::uint32_t here = i < all ? word(table, i) : 0;
    for (; i < all; i += stride) {
      const std::uint32_t next = i + stride < all ? word(table, i + stride) : 0;
      if (single(table, i)) {
        const int b = i / rows;
        const CellsPiece piece(table.units[b], here, table.position[i], 0);
        *piece.place(in.to.packets) = static_cast<std::uint16_t>(of.own + i % rows);
        steps(of, table, piece, table.begins[i], static_cast<int>(length(table, i)),
              static_cast<std::uint32_t>(b) * block_of.width);
      } else if (length(table, i) > 0) {
        *table.wide = 1;
      }
      here = next;
    }
  }
  /// Columns and numbers of a piece of one slot, and what pads it. @param first  entry; @param base  column of the
  /// column block
  KOKKOS_INLINE_FUNCTION void steps(const Rows& of, const Table& table, const CellsPiece& piece, std::uint32_t first,
                                    int length, std::uint32_t base) const {
    std::uint16_t* place = piece.place(in.to.packets);
    std::uint32_t slot = piece.slot(bytes());
    for (int step = 0; step < length; ++step, slot += CellsLayout::slots) {
      place += CellsLayout::slots;
      const std::uint32_t i = first + static_cast<std::uint32_t>(step);
      const std::uint32_t column = table.held ? table.columns[i] : static_cast<std::uint32_t>(in.columns(of.first + i));
      *place = static_cast<std::uint16_t>(column - base);
      if constexpr (numbers) {
        reinterpret_cast<Number*>(in.to.packets)[slot] = table.held ? table.numbers[i] : values(of.first + i);
      }
      keep(of, table, i, slot);
    }
    piece.pad(in.to.packets, length, block_of.width, bytes());
  }
  KOKKOS_INLINE_FUNCTION void keep(const Rows& of, const Table& table, std::uint32_t i, std::uint32_t slot) const {
    if (in.slots.data() == nullptr) return;
    if (table.held) {
      table.columns[i] = slot;
    } else {
      in.slots(of.first + i) = slot;
    }
  }

  /// Of entries [first, end) those of pieces of several slots: threads take them of all rows, one by one.
  KOKKOS_INLINE_FUNCTION void write_wide(const member& team, const Rows& of, const Table& table, int first,
                                         int end) const {
    const int stride = team.team_size();
    for (int i = first + team.team_rank(); i < end; i += unrolled * stride) {
      std::uint32_t column[unrolled];  // from memory: some in scratch are slots now
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        const int at = i + u * stride < end ? i + u * stride : i;
        column[u] = static_cast<std::uint32_t>(in.columns(of.first + at));
      }
      TESSERA_UNROLL
      for (int u = 0; u < unrolled; ++u) {
        if (i + u * stride < end) entry(of, table, static_cast<std::uint32_t>(i + u * stride), column[u]);
      }
    }
  }
  /// The row that entry i is of.
  KOKKOS_INLINE_FUNCTION static int row_of(const Table& table, std::uint32_t i) {
    int low = 0;
    for (int step = rows / 2; step > 0; step /= 2) {
      if (table.begins[low + step] <= i) low += step;
    }
    return low;
  }
  /// An entry, if its piece has several slots. Pieces may be cut.
  KOKKOS_INLINE_FUNCTION void entry(const Rows& of, const Table& table, std::uint32_t i, std::uint32_t column) const {
    const CellsShape& shape = in.to.shape;
    const int b = block_of(column), r = row_of(table, i), piece_of = b * rows + r;
    if (single(table, piece_of)) return;
    const int in_piece = static_cast<int>(i - table.begins[piece_of]), part = in_piece / CellsLayout::longest;
    const int k = in_piece % CellsLayout::longest;
    const int left = static_cast<int>(length(table, piece_of)) - part * CellsLayout::longest;
    const int entries = left < CellsLayout::longest ? left : CellsLayout::longest;
    const int log = CellsLayout::log_slots(entries);
    const int v = part == 0 ? of.own + r : in.cut_first(of.place(r)) + part - 1;
    const std::int64_t cell = of.cell + b;
    const int position = part == 0 ? table.position[piece_of] : in.to.position(cell * shape.places() + v);
    const std::uint32_t first = in.to.first_slice(cell * widths + log);
    const CellsPiece piece(table.units[b], in.to.word(first, log, position), position, log);
    std::uint16_t* const place = piece.place(in.to.packets);
    const auto at = static_cast<std::uint32_t>(piece.behind(k));
    const std::uint32_t slot = piece.slot(bytes()) + at;
    const std::uint32_t in_block = column - static_cast<std::uint32_t>(b) * block_of.width;
    place[CellsLayout::slots + at] = static_cast<std::uint16_t>(in_block);
    if constexpr (numbers) reinterpret_cast<Number*>(in.to.packets)[slot] = values(of.first + i);
    keep(of, table, i, slot);
    if (k < 1 << log) place[k] = static_cast<std::uint16_t>(v);
    if (k + 1 == entries) piece.pad(in.to.packets, entries, block_of.width, bytes());
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
  const auto teams = in.heavy.teams + static_cast<int>(in.to.shape.all_places() / CellsLayout::row_group);
  Kokkos::parallel_for("Tessera::convert[cells] slots",
                       Policy(space, teams, Compat::team_size<Exec>(in.threads))
                           .set_scratch_size(f.level, Kokkos::PerTeam(f.scratch_bytes())),
                       f);
}

}  // namespace Impl
}  // namespace Tessera

#endif
