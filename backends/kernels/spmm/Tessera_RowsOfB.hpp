// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_ROWS_OF_B_HPP
#define TESSERA_KERNELS_SPMM_ROWS_OF_B_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_CompactB.hpp"
#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// How kernels from compressed rows read rows of B: where these lie, from a compact copy, or in columns.

namespace Tessera {

/// B as the caller has it. What a lane reads of a row at once is a word: sixteen bytes, or fewer where rows are aligned
/// to fewer.
template <class Value, int Bytes = 16>
struct RowsOfB {
  static constexpr int element_bytes = static_cast<int>(sizeof(Value));
  static constexpr int columns = Bytes / element_bytes;  ///< of a word
  static constexpr bool in_columns = false;              ///< elements of a row lie side by side
  static constexpr bool whole = Bytes == 16;             ///< whether words are as wide as a lane's loads can be
  static constexpr bool narrows = whole;                 ///< whether rows that reach far are read in narrow tiles
  static constexpr int pair = whole ? 2 : 4;             ///< words that a lane has of Pairs
  using RowWord = Packed<Value, columns>;

  static constexpr std::int64_t bytes(std::int64_t n) { return n * std::int64_t{sizeof(Value)}; }
  /// Row 0 from a column on, and the bytes from row to row.
  struct Place {
    const char* at;
    std::int32_t row_bytes;
  };
  TESSERA_FUNCTION static Place place(const SpmmDense& d, std::int32_t column) {
    return {reinterpret_cast<const char*>(static_cast<const Value*>(d.b) + column),
            static_cast<std::int32_t>(d.ldb) * static_cast<std::int32_t>(sizeof(Value))};
  }
  /// For loops, in which compilers would hold row_bytes in 64 bits and multiply by that. In FP64 it did not pay.
  template <class Wave>
  TESSERA_FUNCTION static Place kept(Place p) {
    if constexpr (sizeof(Value) == 4) p.row_bytes = Wave::keep(p.row_bytes);
    return p;
  }
  /// The word `skip` words on, of any row.
  template <class Wave>
  TESSERA_FUNCTION static RowWord load(const Place& p, std::int32_t row, std::int32_t skip) {
    using Loaded = std::conditional_t<
        Bytes == 16, Word,
        std::conditional_t<Bytes == 8, std::uint64_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint16_t>>>;
    const char* at = p.at + std::int64_t{row} * p.row_bytes + skip * Bytes;
    const Loaded w = Wave::template load<false>(reinterpret_cast<const Loaded*>(at));
    RowWord x;
    if constexpr (Bytes == 2) {
      x.w[0] = w;
    } else {
      __builtin_memcpy(x.w, &w, Bytes);
    }
    return x;
  }
  /// The same, or zeros.
  template <class Wave>
  TESSERA_FUNCTION static RowWord load_if(const Place& p, std::int32_t row, bool on, std::int32_t skip = 0) {
    RowWord x;
    Wave::template load_if<false, Bytes>(p.at + std::int64_t{row} * p.row_bytes + skip * Bytes, on, 0, x.w);
    return x;
  }
  template <class Sum>
  TESSERA_FUNCTION static Sum get(const RowWord& x, int i) {
    return static_cast<Sum>(x.get(i));
  }
};

/// The compact copy (CompactB::dense): a word is a group, in two loads.
struct RowsOfCompactB {
  static constexpr int element_bytes = 4;
  static constexpr int columns = CompactB::group;
  static constexpr bool in_columns = false;
  static constexpr bool whole = true;
  static constexpr bool narrows = false;  // a row lies in two places, and lines of each are read in full
  static constexpr int pair = 2;
  using RowWord = CompactB::Group;

  static constexpr std::int64_t bytes(std::int64_t n) { return CompactB::bytes(1, n); }
  struct Place {
    const Word* upper;
    const std::uint32_t* lower;
    std::int32_t ldb;
  };
  template <class Wave>
  TESSERA_FUNCTION static Place kept(const Place& p) {
    return p;
  }
  TESSERA_FUNCTION static Place place(const SpmmDense& d, std::int32_t column) {
    const char* lower = static_cast<const char*>(d.b) + d.lower;
    return {static_cast<const Word*>(d.b) + column / columns,
            reinterpret_cast<const std::uint32_t*>(lower) + column / columns, static_cast<std::int32_t>(d.ldb)};
  }
  template <class Wave>
  TESSERA_FUNCTION static RowWord load(const Place& p, std::int32_t row, std::int32_t skip) {
    const std::int32_t group = row * p.ldb + skip;  // CompactB::fits: 32 bits count groups
    const Word w = Wave::template load<false>(p.upper + group);
    RowWord x;
    TESSERA_UNROLL
    for (int j = 0; j < 4; ++j) x.upper[j] = w.w[j];
    x.lower = Wave::template load<false>(p.lower + group);
    return x;
  }
  template <class Wave>
  TESSERA_FUNCTION static RowWord load_if(const Place& p, std::int32_t row, bool on, std::int32_t skip = 0) {
    RowWord x;
    Wave::template load_if<false, 16>(p.upper + row * p.ldb + skip, on, 0, x.upper);
    Wave::template load_if<false, 4>(p.lower + row * p.ldb + skip, on, 0, &x.lower);
    return x;
  }
  template <class Sum>
  TESSERA_FUNCTION static Sum get(const RowWord& x, int i) {
    return CompactB::get(x, i);
  }
};

/// B whose columns are contiguous (LayoutLeft). A word is `Columns` elements of a row, which lie a column apart.
template <class Value, int Columns>
struct ColumnsOfB {
  static constexpr int columns = Columns;
  static constexpr bool in_columns = true, whole = false, narrows = false;
  static constexpr int pair = 1;
  struct RowWord {
    Packed<Value, 1> element[Columns];
  };

  static constexpr std::int64_t bytes(std::int64_t n) { return n * std::int64_t{sizeof(Value)}; }
  /// Row 0 from a column on, the bytes from column to column, and how many columns there are from this one on.
  struct Place {
    const char* at;
    std::int64_t column_bytes;
    std::int32_t left;
  };
  TESSERA_FUNCTION static Place place(const SpmmDense& d, std::int32_t column) {
    return {reinterpret_cast<const char*>(static_cast<const Value*>(d.b) + column * d.ldb),
            d.ldb * std::int64_t{sizeof(Value)}, static_cast<std::int32_t>(d.columns) - column};
  }
  template <class Wave>
  TESSERA_FUNCTION static Place kept(const Place& p) {
    return p;
  }
  /// A row's elements, or zeros. What lies beyond the last column is the first one again, and nobody's. A lane has one
  /// word: it skips none.
  template <class Wave>
  TESSERA_FUNCTION static RowWord load_if(const Place& p, std::int32_t row, bool on, std::int32_t = 0) {
    constexpr int size = static_cast<int>(sizeof(Value));
    RowWord x;
    TESSERA_UNROLL
    for (int k = 0; k < Columns; ++k) {
      const char* const column = p.at + (k < p.left ? k * p.column_bytes : 0);
      Wave::template load_if<false, size>(column + std::int64_t{row} * size, on, 0, x.element[k].w);
    }
    return x;
  }
  template <class Sum>
  TESSERA_FUNCTION static Sum get(const RowWord& x, int i) {
    return static_cast<Sum>(x.element[i].get(0));
  }
};

}  // namespace Tessera

#endif
