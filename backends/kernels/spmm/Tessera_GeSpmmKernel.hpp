// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_GESPMM_KERNEL_HPP
#define TESSERA_KERNELS_SPMM_GESPMM_KERNEL_HPP

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/kernels/spmm/Tessera_RowsOfB.hpp"
#include "backends/kernels/spmm/Tessera_SpmmRun.hpp"
#include "backends/kernels/spmm/Tessera_SpmmStore.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// C := alpha A B + beta C from compressed rows, without matrix instructions: for matrices whose neighbouring rows
/// share few columns, where a row of B is fetched about once per entry however it is done [GE-SpMM, Huang et al.,
/// SC'20].
///
/// A *team* of 2^shift lanes takes an item, a row or a piece of a long one [RoDe, Pang et al., PPoPP'24], and reads
/// rows of B in words of sixteen bytes: whole lines, no shuffles. Rows that begin anywhere are read in narrower words,
/// of so many bytes as they are aligned to. Column and value of an entry reach the team in one broadcast load each.
/// Sums of pieces are added by a second launch, in a fixed order.
///
/// A *walk* says how many words of a row of B a lane takes and how many entries are under way at once. All hold about
/// the same registers, but for Ahead and Dealt; which is fastest depends on the rows (perf_test/notes/spmm-rows.md):
///
///     Pairs   2 words, 2 entries     short rows, and longer ones where rows of B are long: an entry's column and value
///                                    are read once for twice the columns; what later rows need of A is asked for ahead
///     Quads   1 word,  4 entries     short rows that would leave the device idle otherwise
///     Octets  1 word,  8 entries     long rows, and matrices whose long rows are cut. In 40 registers some four rows
///                                    of B are under way, and waves are many
///     Ahead   1 word,  8 entries     the same in 64 registers: eight rows of B are under way, and the columns of the
///                                    next eight. Where the longest rows decide how long a small product takes, and for
///                                    long rows if rows of B have 256 bytes
///     Dealt   1 word,  8 entries     of cut rows in 16 bits, where a team has four lanes: each of them reads columns
///                                    and values of two entries, and shuffles deal them out, since broadcast loads,
///                                    eight lines each, would take more of the first-level cache's time than rows of B
///     Shared  1 word,  4 entries     the teams of a wave share an item, each takes every other group of four entries,
///                                    and their sums meet by shuffles: very long rows, or too few of them. In tiles of
///                                    128 bytes where rows of B are used many times
///
///     Split   1 word,  8 entries     in narrow words, of which a row of B has one or two, and of B in columns: as many
///                                    teams share an item as it asks for, and take its entries in turns, so that they
///                                    read A side by side
///
/// In narrow words Octets, Shared, Split and Pairs, of four words.

namespace Tessera {

template <class Value_, class Sum_, class B_ = RowsOfB<Value_>>
struct GeSpmmTypes {
  using Value = Value_;  ///< of A
  using Sum = Sum_;
  using B = B_;
};

enum class RowsWalk { Pairs, Quads, Octets, Shared, Ahead, Dealt, Split };

/// Whether 32 bits count the entries, a group of them beyond the last one included.
inline bool gespmm_narrow(const GeSpmmArgs& args) { return args.nnz < (std::int64_t{1} << 31) - 1024; }

/// Columns up to which tiles of B may be narrower than 512 bytes: a grid has 65,535 of them.
constexpr std::int64_t gespmm_narrow_columns = 65536;

/// What no launcher can do: bytes between rows of B are 32-bit numbers, and a grid has 65,535 tiles of at least
/// 512 bytes.
inline Status gespmm_check(const GeSpmmArgs& args) {
  constexpr std::int64_t most_apart = (std::int64_t{1} << 28) - 1;
  const std::int64_t most_columns = std::int64_t{65535} * (args.precision == Precision::FP64 ? 64 : 128);
  if (!args.in_columns && args.dense.ldb > most_apart)
    return {"spmm[gespmm]: rows of B lie 2^28 elements apart or more"};
  if (args.dense.columns > most_columns) {
    return {"spmm[gespmm]: more than 8,388,480 columns (FP64: 4,194,240); use several products"};
  }
  return {};
}

/// How many items the device works on at once, and about how many entries these have; 0: all of them, or unknown.
struct GeSpmmAhead {
  std::int32_t items = 0, entries = 0;
};

/// Index: of entries, 32 bits where they suffice. State of the loop is kept small on purpose: registers decide how many
/// waves hide the latency of gathers (perf_test/notes/spmm-rows.md).
template <class Types_, class Wave_, class Index, RowsWalk Walk>
struct GeSpmmKernel {
  using Types = Types_;
  using Wave = Wave_;
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;
  using B = typename Types::B;
  static constexpr bool shared = Walk == RowsWalk::Shared, split = Walk == RowsWalk::Split;
  static constexpr int width = B::columns;                             ///< columns of a word
  static constexpr int words = Walk == RowsWalk::Pairs ? B::pair : 1;  ///< a lane's, 2^shift words apart
  static constexpr bool dealt = Walk == RowsWalk::Dealt, deep = dealt || Walk == RowsWalk::Ahead;
  /// Entries at once.
  static constexpr int batch = Walk == RowsWalk::Pairs                     ? 2
                               : B::in_columns                             ? 16 / width
                               : deep || split || Walk == RowsWalk::Octets ? 8
                                                                           : 4;

  /// Items that a wave takes, and columns of its tile.
  static std::int64_t items(const GeSpmmArgs& args) {
    return split ? Wave::lanes >> (args.shift + args.log2_teams) : shared ? 1 : Wave::lanes >> args.shift;
  }
  static std::int32_t tile_columns(const GeSpmmArgs& args) { return (words * width) << args.shift; }

  template <class T>
  using Varying = typename Wave::template Varying<T>;

  struct Sums {
    Sum s[words][width];
  };

  /// Items from first_item on (Shared: this one), columns from first_column on.
  TESSERA_FUNCTION static void run(const Wave& wave, const GeSpmmArgs& args, std::int64_t first_item,
                                   std::int32_t first_column, GeSpmmAhead ahead = {}) {
    if constexpr (split) {
      run_split(wave, args, first_item, first_column);
    } else if constexpr (shared) {
      run_shared(wave, args, first_item, first_column);
    } else if constexpr (dealt) {
      run_dealt(wave, args, first_item, first_column);
    } else {
      wave.each([&](int lane) {
        const std::int64_t index = first_item + (lane >> args.shift);
        const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * width;
        if (index >= args.count || column >= args.dense.columns) return;
        const Item item = item_at(args, index);
        if constexpr (Walk == RowsWalk::Pairs || Walk == RowsWalk::Octets) prefetch(args, lane, index, item, ahead);
        Sums sums{};
        Index i = item.begin;
        if constexpr (Walk == RowsWalk::Ahead) {
          i = add_ahead(args, i, item.end, column, sums);
        } else {
          for (; i + batch <= item.end; i += batch) add_entries<batch>(args, i, column, sums);
        }
        if constexpr (batch == 8) {
          // One by one, up to seven entries would wait for each other.
          if (item.end - i >= 4) {
            add_entries<4>(args, i, column, sums);
            i += 4;
          }
          if (item.end - i >= 2) {
            add_entries<2>(args, i, column, sums);
            i += 2;
          }
        }
        for (; i < item.end; ++i) add_entries<1>(args, i, column, sums);
        store(args, item, column, sums);
      });
    }
  }

 private:
  struct Item {
    Index begin, end;
    std::int32_t row, partial;
  };
  TESSERA_FUNCTION static Item item_at(const GeSpmmArgs& args, std::int64_t index) {
    if (args.table != nullptr) {
      const SpmmRowPiece p = args.table[index];
      const auto begin = static_cast<Index>(p.packed >> SpmmRowPiece::length_bits);
      return {begin, begin + static_cast<Index>(p.packed & SpmmRowPiece::most_entries), p.row, p.partial};
    }
    const auto row = static_cast<std::int32_t>(index);
    if (args.offset_bytes == 8) {
      const auto* offsets = static_cast<const std::int64_t*>(args.row_map) + index;
      return {static_cast<Index>(offsets[0]), static_cast<Index>(offsets[1]), row, -1};
    }
    const auto* offsets = static_cast<const std::uint32_t*>(args.row_map) + index;
    return {static_cast<Index>(offsets[0]), static_cast<Index>(offsets[1]), row, -1};
  }

  /// Asks for the part of A that the device needs in its next round: short rows wait for memory three times in a row,
  /// of which two waits, for bounds and entries, are then shorter. Where those entries lie is a guess: of a table,
  /// items are sorted by length 1,024 at a time, and all of these together ask for about what they need.
  TESSERA_FUNCTION static void prefetch(const GeSpmmArgs& args, int lane, std::int64_t index, const Item& item,
                                        GeSpmmAhead ahead) {
    const std::int64_t later = index + ahead.items, entry = std::int64_t{item.begin} + ahead.entries;
    const bool first = (lane & ((1 << args.shift) - 1)) == 0;
    if (!first || ahead.items == 0 || later >= args.count || entry >= args.nnz) return;
    if (args.table != nullptr) {
      Wave::prefetch(args.table + later);
    } else {
      Wave::prefetch(static_cast<const char*>(args.row_map) + later * args.offset_bytes);
    }
    Wave::prefetch(args.columns + entry);
    Wave::prefetch(static_cast<const Value*>(args.values) + entry);
  }

  /// Entries i .. i + N - 1. A lane's later words may lie beyond the last column: then it reads the first again.
  template <int N>
  TESSERA_FUNCTION static void add_entries(const GeSpmmArgs& args, Index i, std::int32_t column, Sums& sums) {
    const typename B::Place b = B::place(args.dense, column);
    std::int32_t hop[words];
    TESSERA_UNROLL
    for (int k = 0; k < words; ++k) {
      hop[k] = column + k * (width << args.shift) < args.dense.columns ? k << args.shift : 0;
    }
    std::int32_t row[N];
    Value a[N];
    typename B::RowWord x[N][words];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) row[u] = args.columns[i + u];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) a[u] = static_cast<const Value*>(args.values)[i + u];
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) {
      TESSERA_UNROLL
      for (int k = 0; k < words; ++k) x[u][k] = B::template load<Wave>(b, row[u], hop[k]);
    }
    TESSERA_UNROLL
    for (int u = 0; u < N; ++u) {
      TESSERA_UNROLL
      for (int k = 0; k < words; ++k) {
        TESSERA_UNROLL
        for (int v = 0; v < width; ++v) sums.s[k][v] += static_cast<Sum>(a[u]) * B::template get<Sum>(x[u][k], v);
      }
    }
  }

  /// Whole batches of entries i .. end - 1; returns the first entry that is left.
  TESSERA_FUNCTION static Index add_ahead(const GeSpmmArgs& args, Index i, Index end, std::int32_t column, Sums& sums) {
    if (i + batch > end) return i;
    const typename B::Place b = B::place(args.dense, column);
    std::int32_t row[batch];
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) row[u] = args.columns[i + u];
    for (; i + batch <= end; i += batch) {
      Value a[batch];
      typename B::RowWord x[batch];
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) x[u] = B::template load<Wave>(b, row[u], 0);
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) a[u] = static_cast<const Value*>(args.values)[i + u];
      if (i + 2 * batch <= end) {
        TESSERA_UNROLL
        for (int u = 0; u < batch; ++u) row[u] = args.columns[i + batch + u];
      }
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        TESSERA_UNROLL
        for (int v = 0; v < width; ++v) sums.s[0][v] += static_cast<Sum>(a[u]) * B::template get<Sum>(x[u], v);
      }
    }
    return i;
  }

  // ---- entries dealt out: teams of four lanes, each of which has entries l and l + 4 of eight

  struct Dealing {
    Item item;
    Index i;
    std::int32_t column;
    std::int32_t columns[2];  ///< of the lane's two entries
    Sum values[2];
  };
  TESSERA_FUNCTION static Dealing dealing(const GeSpmmArgs& args, std::int64_t index, std::int32_t column) {
    Dealing d{};
    if (index < args.count) d.item = item_at(args, index);
    d.i = d.item.begin;
    d.column = index < args.count ? column : static_cast<std::int32_t>(args.dense.columns);
    return d;
  }
  TESSERA_FUNCTION static void load_own(const GeSpmmArgs& args, int lane, Dealing& d) {
    TESSERA_UNROLL
    for (int own = 0; own < 2; ++own) {
      const Index at = d.i + (lane & 3) + 4 * own;
      d.columns[own] = Wave::gather_if(args.columns + at, at < d.item.end);
      d.values[own] = static_cast<Sum>(Wave::gather_if(static_cast<const Value*>(args.values) + at, at < d.item.end));
    }
  }
  /// What the lanes have that own the u-th entry of their teams.
  template <class T, class Get>
  TESSERA_FUNCTION static void deal(const Wave& wave, Varying<Dealing>& all, int u, const Get& get, Varying<T>& to) {
    Varying<T> own;
    wave.each([&](int lane) { own(lane) = get(all(lane))[u / 4]; });
    wave.shuffle(to, own, [=](int lane) { return (lane & ~3) + u % 4; });
  }
  TESSERA_FUNCTION static void run_dealt(const Wave& wave, const GeSpmmArgs& args, std::int64_t first_item,
                                         std::int32_t first_column) {
    Varying<Sums> sums;
    Varying<Dealing> all;
    wave.each([&](int lane) {
      sums(lane) = Sums{};
      all(lane) = dealing(args, first_item + lane / 4, first_column + lane % 4 * width);
    });
    for (;;) {
      Varying<bool> more;
      wave.each([&](int lane) { more(lane) = all(lane).i < all(lane).item.end; });
      if (wave.ballot(more) == 0) break;
      wave.each([&](int lane) { load_own(args, lane, all(lane)); });
      Varying<typename B::RowWord> x[batch];
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        Varying<std::int32_t> row;
        deal(
            wave, all, u, [](const Dealing& d) { return d.columns; }, row);
        wave.each([&](int lane) {
          const Dealing& d = all(lane);
          const bool on = d.i + u < d.item.end && d.column < args.dense.columns;
          x[u](lane) = B::template load_if<Wave>(B::place(args.dense, d.column), row(lane), on);
        });
      }
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) {
        Varying<Sum> a;
        deal(
            wave, all, u, [](const Dealing& d) { return d.values; }, a);
        wave.each([&](int lane) {
          TESSERA_UNROLL
          for (int v = 0; v < width; ++v) sums(lane).s[0][v] += a(lane) * B::template get<Sum>(x[u](lane), v);
        });
      }
      wave.each([&](int lane) { all(lane).i += batch; });
    }
    wave.each([&](int lane) {
      if (all(lane).column < args.dense.columns) store(args, all(lane).item, all(lane).column, sums(lane));
    });
  }

  /// Adds up the sums of teams that share an item, `farthest` lanes apart at first, `nearest` in the end.
  TESSERA_FUNCTION static void meet(const Wave& wave, Varying<Sums>& sums, int farthest, int nearest) {
    for (int distance = farthest; distance >= nearest; distance /= 2) {
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) {
        Varying<Sum> own, other;
        wave.each([&](int lane) { own(lane) = sums(lane).s[0][v]; });
        wave.shuffle(other, own, [=](int lane) { return lane ^ distance; });
        wave.each([&](int lane) { sums(lane).s[0][v] += other(lane); });
      }
    }
  }
  TESSERA_FUNCTION static void run_shared(const Wave& wave, const GeSpmmArgs& args, std::int64_t index,
                                          std::int32_t first_column) {
    if (index >= args.count) return;
    const Item item = item_at(args, index);
    Varying<Sums> sums;
    wave.each([&](int lane) {
      sums(lane) = Sums{};
      const int team = lane >> args.shift, teams = Wave::lanes >> args.shift;
      const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * width;
      if (column >= args.dense.columns) return;
      Index i = item.begin + batch * team;
      for (; i + batch <= item.end; i += batch * teams) add_entries<batch>(args, i, column, sums(lane));
      // What is left of the last group.
      i = item.begin + (item.end - item.begin) / batch * batch + team;
      for (; i < item.end; i += teams) add_entries<1>(args, i, column, sums(lane));
    });
    meet(wave, sums, Wave::lanes / 2, 1 << args.shift);
    wave.each([&](int lane) {
      const std::int32_t column = first_column + (lane & ((1 << args.shift) - 1)) * width;
      if (lane >> args.shift == 0 && column < args.dense.columns) store(args, item, column, sums(lane));
    });
  }

  // ---- an item for several teams, which take its entries in turns

  TESSERA_FUNCTION static void run_split(const Wave& wave, const GeSpmmArgs& args, std::int64_t first_item,
                                         std::int32_t first_column) {
    Varying<Sums> sums;
    Varying<Item> items;
    const int shift = B::in_columns ? 0 : args.shift, teams = 1 << args.log2_teams;
    const auto column_of = [=](int lane) { return first_column + (lane & ((1 << shift) - 1)) * width; };
    const auto team_of = [=](int lane) { return lane >> shift & (teams - 1); };
    wave.each([&](int lane) {
      sums(lane) = Sums{};
      Item& item = items(lane);
      item = Item{0, 0, -1, -1};
      const std::int64_t index = first_item + (lane >> (shift + args.log2_teams));
      if (index >= args.count || column_of(lane) >= args.dense.columns) return;
      item = item_at(args, index);
      for (Index i = item.begin + team_of(lane); i < item.end; i += batch * teams) {
        add_every(args, i, teams, item.end - i, column_of(lane), sums(lane));
      }
    });
    meet(wave, sums, teams << shift >> 1, 1 << shift);
    wave.each([&](int lane) {
      if (items(lane).row >= 0 && team_of(lane) == 0) store(args, items(lane), column_of(lane), sums(lane));
    });
  }
  /// Entries i, i + teams and so on, eight of them, as far as they are among the next `left`. No branch.
  TESSERA_FUNCTION static void add_every(const GeSpmmArgs& args, Index i, int teams, Index left, std::int32_t column,
                                         Sums& sums) {
    const typename B::Place b = B::place(args.dense, column);
    std::int32_t row[batch];
    Value a[batch];
    typename B::RowWord x[batch];
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) row[u] = Wave::gather_if(args.columns + i + u * teams, u * teams < left);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) {
      a[u] = Wave::gather_if(static_cast<const Value*>(args.values) + i + u * teams, u * teams < left);
    }
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) x[u] = B::template load_if<Wave>(b, row[u], u * teams < left);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) {
      TESSERA_UNROLL
      for (int v = 0; v < width; ++v) sums.s[0][v] += static_cast<Sum>(a[u]) * B::template get<Sum>(x[u], v);
    }
  }

  TESSERA_FUNCTION static void store(const GeSpmmArgs& args, const Item& item, std::int32_t column, const Sums& sums) {
    TESSERA_UNROLL
    for (int k = 0; k < words; ++k) {
      const std::int32_t at = column + k * (width << args.shift);
      if (k > 0 && at >= args.dense.columns) return;
      if (item.partial >= 0) {
        const SpmmTarget<Sum, Sum> target{static_cast<Sum*>(args.partials), args.partial_ld, args.dense.columns, Sum(1),
                                          Sum(0)};
        spmm_store_run(target, item.partial, at, sums.s[k]);
      } else if constexpr (B::in_columns) {
        spmm_store_in_columns<Value>(args.dense, args.rows, item.row, at, sums.s[k]);
      } else {
        spmm_to_c<Value, Sum>(args.dense, [&](const auto& target) {
          if (sizeof(Value) == 4 && args.dense.plain) {
            target.store_plain(std::int64_t{item.row} * target.ld + at, sums.s[k]);
          } else {
            spmm_store_run(target, item.row, at, sums.s[k]);
          }
        });
      }
    }
  }
};

}  // namespace Tessera

#endif
