// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SPGEMM_ARGS_HPP
#define TESSERA_INTERFACE_SPGEMM_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// What crosses from the Kokkos side to a backend for C := A B. Rows of C are independent of each other, and are worked
/// on by size: first those that a bound says, to find their columns, then those that are known, to sum their numbers.

namespace Tessera {

/// Offsets of 32 or 64 bits, signed or not: none is negative.
struct SpgemmOffsets {
  const void* of = nullptr;
  bool wide = false;

  TESSERA_FUNCTION std::int64_t operator()(std::int64_t row) const {
    return wide ? static_cast<const std::int64_t*>(of)[row] : static_cast<const std::uint32_t*>(of)[row];
  }
};

struct SpgemmMatrix {
  std::int64_t rows = 0, nnz = 0;
  SpgemmOffsets row_map;
  const std::int32_t* columns = nullptr;
  const void* values = nullptr;
};

/// How the columns of a row are found: in a table (kinds 0 to 4, by bound), or by a bit per column between its first
/// and its last, by a small or a large thread block, or, if there are many entries of A
/// to look at, by one with the most memory, in few windows.
struct SpgemmRowKinds {
  static constexpr int tables = 5, narrow = tables, wide = tables + 1, vast = tables + 2, empty = tables + 3,
                       count = empty;
  TESSERA_FUNCTION static constexpr int slots(int kind) { return 32 << kind; }
  /// A quarter of the slots is free, so that a search meets a free one soon.
  TESSERA_FUNCTION static constexpr int holds(int kind) { return slots(kind) / 4 * 3; }
  /// @param of_a  entries of A's row  @param products  of the row  @param width  columns from its first to its last
  TESSERA_FUNCTION static int of(std::int64_t of_a, std::int64_t products, std::int64_t width) {
    if (products == 0) return empty;
    const std::int64_t bound = products < width ? products : width;
    const bool few_words = width <= 8192 && products > holds(1);
    for (int kind = 0; kind < tables && !few_words; ++kind) {
      if (bound <= holds(kind)) return kind;
    }
    if (width <= narrow_columns && products <= narrow_products) return narrow;
    return width <= wide_columns || of_a < least_vast ? wide : vast;
  }
  static constexpr int narrow_columns = 65536, narrow_products = 16384, wide_columns = 262144, least_vast = 1024;
};

/// How the numbers of a row are summed: rows 0 to 2 as a whole, large ones in parts, a wave each, those of very many
/// entries of A in larger ones, a thread block each. Of windows on matrix units, small and large, the first row is
/// listed.
struct SpgemmRowSizes {
  static constexpr int whole = 3, large = whole, shared = whole + 1, small_window = whole + 2, large_window = whole + 3,
                       empty = whole + 4, count = empty;
  static constexpr std::int64_t whole_products = 32768, whole_of_a = 512, few_of_a = 128, half_wave = 16,
                                part_entries = 512, part_products = 8192, least_part = 64, least_small_part = 32;
  TESSERA_FUNCTION static constexpr int holds(int size) { return 32 << 2 * size; }
  /// @param kind  of the row: many products take many lanes, however few entries they end in
  /// @param of_a  entries of A's row, which a wave goes through one after the other in a row as a whole: not many, and
  /// few only where they name rows of B for at least half of its lanes
  /// @param long_rows  those of B have enough entries for all lanes of a wave
  TESSERA_FUNCTION static int of(std::int64_t entries, std::int64_t products, int kind, std::int64_t of_a,
                                 bool long_rows) {
    if (entries == 0) return empty;
    for (int size = kind < 2 ? 0 : kind < 4 ? 1 : 2; size < (long_rows ? whole : whole - 1); ++size) {
      if (size + 1 == whole && (of_a > whole_of_a || (of_a > few_of_a && products < of_a * half_wave))) break;
      if (entries <= holds(size) && products <= whole_products) return size;
    }
    return large;
  }
  /// Entries of each part of a large row but the last: as many as fit, fewer where a wave would have many products of
  /// them, which it adds one after the other. Sums do not depend on it.
  /// @param small  products of a part where a device has more waves than such parts; part_products: it does not. Parts
  /// so small look at no more entries of A than they multiply.
  TESSERA_FUNCTION static std::int64_t each_part(std::int64_t entries, std::int64_t products, std::int64_t of_a,
                                                 std::int64_t small) {
    std::int64_t parts = (entries + part_entries - 1) / part_entries;
    parts = at_least(parts, products / part_products, entries / least_part);
    if (small < part_products) {
      const std::int64_t least = small / 128 > least_small_part ? small / 128 : least_small_part;
      parts = at_least(parts, products / small, entries / least < products / of_a ? entries / least : products / of_a);
    }
    return (entries + parts - 1) / parts;
  }
  /// Whether a large row's parts have so few products each that they would look at entries of A more often than
  /// multiply.
  TESSERA_FUNCTION static bool is_shared(std::int64_t entries_of_a, std::int64_t parts, std::int64_t products) {
    return entries_of_a >= least_shared && entries_of_a * parts > products;
  }
  static constexpr std::int64_t least_shared = 1024;
  /// Never more of all rows, of which `rows` may be large.
  /// @param small  see each_part()
  static std::int64_t most_parts(std::int64_t entries, std::int64_t products, std::int64_t rows, std::int64_t small) {
    return entries / part_entries + products / small + 2 * rows;
  }

 private:
  /// `parts`, or `wanted` of them as far as there may be `most`.
  TESSERA_FUNCTION static std::int64_t at_least(std::int64_t parts, std::int64_t wanted, std::int64_t most) {
    if (wanted > most) wanted = most;
    return parts > wanted ? parts : wanted;
  }
};

/// A part of a row of C: entries [part * each, (part + 1) * each) of it, as far as there are.
struct SpgemmRowPart {
  std::int32_t row, part;
};

/// Of all rows, or of those of a thread block.
struct SpgemmTotals {
  static constexpr int most_kinds = 8, lengths = 7;
  std::int64_t rows[most_kinds];  ///< of each kind, or size
  std::int64_t entries;           ///< bound of them, or of C
  std::int64_t products;
  std::int64_t parts;     ///< of large rows
  std::int64_t disorder;  ///< entries of B that do not ascend in their row
  /// Rows with this many entries of A and fewer than the next; rows of fewer are not counted.
  std::int64_t very_long[lengths];
  static constexpr int count = most_kinds + 4 + lengths;
  TESSERA_FUNCTION static constexpr std::int64_t length(int i) { return std::int64_t{2048} << i; }
};

/// What the host has to know of a stage. Where the runtime has mailboxes, it lies in one.
struct SpgemmAnswer {
  SpgemmTotals totals;
  std::int64_t number;  ///< of the question, written last
};

/// Which windows of rows go to matrix units: those whose rows of A fill at least `least_percent` of their union, whose
/// columns of A name rows of B with `least_products` per row of the window in the mean, and whose rows of C have at
/// most `most_entries`.
struct SpgemmWindowRule {
  std::int32_t least_percent = 0, least_products = 0, most_entries = 0;
};

struct SpgemmArgs {
  SpgemmMatrix A, B;
  bool fp64 = true;
  bool long_rows = false;                                   ///< see SpgemmRowSizes::of
  bool once = false;                                        ///< numbers of rows in tables are summed with their columns
  std::int64_t small_part = SpgemmRowSizes::part_products;  ///< see SpgemmRowSizes::each_part

  // Of each row of C.
  std::uint8_t* kind = nullptr;
  std::int32_t* low = nullptr;       ///< first column of it
  std::int32_t* high = nullptr;      ///< last column of it
  std::int32_t* bound = nullptr;     ///< of its entries
  std::int32_t* count = nullptr;     ///< its entries
  std::int32_t* products = nullptr;  ///< that they are sums of; 2^31 - 1: that many or more
  std::int64_t* at = nullptr;        ///< where it begins among the columns that are found
  std::int32_t* order = nullptr;     ///< rows by kind
  std::int32_t* sizes = nullptr;     ///< rows by size
  SpgemmRowPart* part = nullptr;     ///< of large rows; null: not wanted

  std::uint8_t* window = nullptr;  ///< per window of rows its size if it is for matrix units, else 0; null: none are
  int window_rows = 1;
  SpgemmWindowRule window_rule;

  std::int64_t thread_blocks = 1, rows_per_block = 0;  ///< that look at rows
  SpgemmTotals* partial = nullptr;                     ///< of each of these
  SpgemmAnswer* answer = nullptr;
  std::int64_t question = 0;  ///< number of the next answer

  SpgemmOffsets place;                  ///< where a row's columns are written: `at`, or row map of C
  std::int32_t* found = nullptr;        ///< columns; null: rows are counted
  void* found_values = nullptr;         ///< their numbers, if `once`
  const std::int32_t* known = nullptr;  ///< columns by `place`; null: they are in C

  void* row_map = nullptr;  ///< of C; null: entries are only counted
  bool wide = false;        ///< its offsets
  bool sized = false;       ///< it is there already, and says how many entries rows have
  std::int64_t before = 0;  ///< entries of rows of C before these, where only some rows are worked on
  std::int32_t* columns = nullptr;
  void* values = nullptr;
};

}  // namespace Tessera

#endif
