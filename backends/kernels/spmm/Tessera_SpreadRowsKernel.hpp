// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_SPREAD_ROWS_KERNEL_HPP
#define TESSERA_KERNELS_SPMM_SPREAD_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spmm/Tessera_GeSpmmKernel.hpp"
#include "backends/kernels/spmm/Tessera_SpmmPartials.hpp"

/// \file
/// C := alpha A B + beta C from compressed rows of small matrices, which leave most of a device idle: what counts is
/// how often a lane waits for memory in a row. Items (rows, or pieces of very long ones) are sorted by length; an item
/// gets a power of two of teams, so many that each has about eight entries, all under way at once. Teams of an item
/// lie side by side: their sums meet by shuffles inside a wave, and in shared memory inside a thread block. The pieces
/// of a row are added by the last thread block of the row to arrive, in the order of the pieces, within the launch.
/// Where rows of B are read in one or two narrow words, or lie in columns, teams of an item take its entries in turns,
/// so that they read A side by side.

namespace Tessera {

/// Which teams have which items. Level l: items of 2^l teams each; those of the highest level come first, so that the
/// teams of an item begin at a multiple of their number.
struct SpreadLevels {
  static constexpr int count = 9;
  std::int32_t first_team[count] = {}, first_item[count] = {};
  std::int32_t teams = 0;  ///< of all items

  struct Place {
    std::int32_t item;
    int rank, level;  ///< of the team in the item
  };
  TESSERA_FUNCTION Place at(std::int32_t team) const {
    std::int32_t first = first_team[count - 1], item = first_item[count - 1];
    int level = count - 1;
    TESSERA_UNROLL
    for (int l = count - 2; l >= 0; --l) {
      if (team < first_team[l]) continue;
      level = l;
      first = first_team[l];
      item = first_item[l];
    }
    return {item + ((team - first) >> level), (team - first) & ((1 << level) - 1), level};
  }
};

/// log2_entries: of what a team takes of a row at least; of a piece it takes eight entries, or more where that is
/// beyond the highest level (`most`), or fewer where it is below `least`.
inline SpreadLevels spread_levels(const SpmmSpread& items, int log2_entries, int least, int most) {
  SpreadLevels levels;
  std::int32_t counts[SpreadLevels::count] = {};
  for (int c = 0; c < SpmmSpread::classes; ++c) {
    const bool pieces = c == SpmmSpread::classes - 1;
    const int level = pieces ? items.log2_piece - 3 : c - log2_entries, lowest = pieces ? least : 0;
    counts[level < lowest ? lowest : level < most ? level : most] += items.counts[c];
  }
  std::int32_t item = 0;
  for (int l = SpreadLevels::count - 1; l >= 0; --l) {
    levels.first_team[l] = levels.teams;
    levels.first_item[l] = item;
    levels.teams += counts[l] << l;
    item += counts[l];
  }
  return levels;
}

/// Words: of a lane, 2^shift words apart. InTurns: teams take entries in turns.
template <class Types_, class Wave_, int Words = 1, bool InTurns = false>
struct SpreadRowsKernel {
  using Types = Types_;
  using Wave = Wave_;
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;
  using B = typename Types::B;
  static constexpr int width = B::columns;  ///< of a word
  /// Whether a lane has one element of a row of B: it then needs few registers.
  static constexpr bool single = InTurns && !B::in_columns && width == 1 && sizeof(Value) < 8;
  static constexpr int batch = Words == 1 ? 8 : 4;  ///< entries at once
  static constexpr int log2_lanes = Wave::lanes == 64 ? 6 : 5;

  struct alignas(16) Sums {
    Sum s[Words][width];
  };
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  static constexpr int shared_bytes(int threads) { return threads * static_cast<int>(sizeof(Sums)); }

  /// Adds up the items of a wave's teams, the first of which is `first_team`, in columns from first_column on. Sums of
  /// items that the wave has whole go to C, others to met, which belongs to the wave.
  TESSERA_FUNCTION static void add(const Wave& wave, const GeSpmmArgs& args, const SpreadLevels& levels,
                                   std::int32_t first_team, std::int32_t first_column, Sums* met) {
    const int shift = args.shift, log2_teams = log2_lanes - shift;
    if (first_team >= levels.teams) return;
    Varying<Sums> sums;
    Varying<typename SpreadLevels::Place> place;
    wave.each([&](int lane) {
      sums(lane) = Sums{};
      const std::int32_t team = first_team + (lane >> shift);
      place(lane) = levels.at(team);
      const std::int32_t column = column_of(args, lane, first_column);
      if (team >= levels.teams) place(lane).item = -1;
      if (place(lane).item < 0 || column >= args.dense.columns) return;
      const SpmmRowPiece item = args.table[place(lane).item];
      const auto begin = static_cast<std::int32_t>(item.packed >> SpmmRowPiece::length_bits);
      const std::int32_t end = begin + static_cast<std::int32_t>(item.packed & SpmmRowPiece::most_entries);
      const typename B::Place b = B::place(args.dense, column);
      const int level = place(lane).level, first = (InTurns ? 1 : batch) * place(lane).rank;
      for (std::int32_t i = begin + first; i < end; i += batch << level) {
        add_entries(args, b, i, InTurns ? level : 0, end - i, column, sums(lane));
      }
    });
    const int level = levels.at(first_team).level;  // the highest of the wave
    for (int l = 0; l < log2_teams && l < level; ++l) {
      TESSERA_UNROLL
      for (int n = 0; n < Words * width; ++n) {
        const int k = n / width, v = n % width;
        Varying<Sum> own, other;
        wave.each([&](int lane) { own(lane) = sums(lane).s[k][v]; });
        wave.shuffle(other, own, [=](int lane) { return lane ^ (1 << (shift + l)); });
        wave.each([&](int lane) { sums(lane).s[k][v] += l < place(lane).level ? other(lane) : Sum(0); });
      }
    }
    wave.each([&](int lane) {
      const std::int32_t column = column_of(args, lane, first_column);
      if (place(lane).item < 0 || column >= args.dense.columns) return;
      if (place(lane).level > log2_teams) {
        if (lane >> shift == 0) met[lane] = sums(lane);
      } else if (place(lane).rank == 0) {
        store(args, args.table[place(lane).item].row, column, sums(lane));
      }
    });
  }

  /// Whether items of the thread block whose first team this is are those of several waves.
  TESSERA_FUNCTION static bool meets(const GeSpmmArgs& args, const SpreadLevels& levels, std::int32_t first_team) {
    return first_team < levels.teams && levels.at(first_team).level > log2_lanes - args.shift;
  }

  /// The sums of an item of several waves, if this is its first wave. met: this wave's; that of the next wave is behind
  /// a wave's lanes. tile, tiles: of columns.
  TESSERA_FUNCTION static void finish(const Wave& wave, const GeSpmmArgs& args, const SpreadLevels& levels,
                                      std::int32_t first_team, std::int32_t first_column, const Sums* met,
                                      unsigned tile, unsigned tiles) {
    const int shift = args.shift, log2_teams = log2_lanes - shift;
    if (first_team >= levels.teams) return;
    const typename SpreadLevels::Place place = levels.at(first_team);
    if (place.level <= log2_teams || place.rank != 0) return;
    const SpmmRowPiece item = args.table[place.item];
    wave.each([&](int lane) {
      const std::int32_t column = column_of(args, lane, first_column);
      if (lane >> shift != 0 || column >= args.dense.columns) return;
      Sums sums = met[lane];
      for (int w = 1; w < 1 << (place.level - log2_teams); ++w) {
        const Sums& other = met[w * Wave::lanes + lane];
        TESSERA_UNROLL
        for (int n = 0; n < Words * width; ++n) sums.s[n / width][n % width] += other.s[n / width][n % width];
      }
      if (item.partial < 0) return store(args, item.row, column, sums);
      const SpmmTarget<Sum, Sum> target{static_cast<Sum*>(args.partials), args.partial_ld, args.dense.columns, Sum(1),
                                        Sum(0)};
      store_words(target, shift, item.partial, column, sums);
    });
    if (item.partial < 0 || args.arrivals == nullptr) return;
    wave.release();
    const auto pieces = static_cast<std::uint32_t>(args.splits[item.row].count);
    if (!wave.last_to_arrive(args.arrivals + static_cast<std::uint32_t>(item.row) * tiles + tile, pieces)) return;
    const std::int64_t end = first_column + (std::int64_t{Words * width} << shift);
    SpmmPartials<Value, Sum, Wave>::run_columns(wave, spmm_partial_rows(args), item.row, first_column, end);
  }

 private:
  TESSERA_FUNCTION static std::int32_t column_of(const GeSpmmArgs& args, int lane, std::int32_t first_column) {
    return first_column + (lane & ((1 << args.shift) - 1)) * width;
  }

  /// Up to `batch` entries from i on, 2^apart from each other, as far as they are among the next `left`. No branch, so
  /// that all are under way at once. A word beyond the last column is read as the first again.
  TESSERA_FUNCTION static void add_entries(const GeSpmmArgs& args, const typename B::Place& place, std::int32_t i,
                                           int apart, std::int32_t left, std::int32_t column, Sums& sums) {
    const typename B::Place b = B::template kept<Wave>(place);
    std::int32_t row[batch], hop[Words];
    Value a[batch];
    typename B::RowWord x[batch][Words];
    const std::int32_t* columns = args.columns + i;
    const Value* values = static_cast<const Value*>(args.values) + i;
    TESSERA_UNROLL
    for (int k = 0; k < Words; ++k) {
      hop[k] = k > 0 && column + k * (width << args.shift) < args.dense.columns ? k << args.shift : 0;
    }
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) row[u] = Wave::gather_if(columns + (u << apart), u << apart < left);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) a[u] = Wave::gather_if(values + (u << apart), u << apart < left);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) {
      TESSERA_UNROLL
      for (int k = 0; k < Words; ++k) x[u][k] = B::template load_if<Wave>(b, row[u], u << apart < left, hop[k]);
    }
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) {
      TESSERA_UNROLL
      for (int n = 0; n < Words * width; ++n) {
        sums.s[n / width][n % width] += static_cast<Sum>(a[u]) * B::template get<Sum>(x[u][n / width], n % width);
      }
    }
  }

  TESSERA_FUNCTION static void store(const GeSpmmArgs& args, std::int32_t row, std::int32_t column, const Sums& sums) {
    if constexpr (B::in_columns) return spmm_store_in_columns<Value>(args.dense, args.rows, row, column, sums.s[0]);
    spmm_to_c<Value, Sum>(args.dense, [&](const auto& target) { store_words(target, args.shift, row, column, sums); });
  }
  template <class Target>
  TESSERA_FUNCTION static void store_words(const Target& target, int shift, std::int32_t row, std::int32_t column,
                                           const Sums& sums) {
    TESSERA_UNROLL
    for (int k = 0; k < Words; ++k) spmm_store_run(target, row, column + k * (width << shift), sums.s[k]);
  }
};

}  // namespace Tessera

#endif
