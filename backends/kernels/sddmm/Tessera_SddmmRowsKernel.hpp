// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SDDMM_SDDMM_ROWS_KERNEL_HPP
#define TESSERA_KERNELS_SDDMM_SDDMM_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/sddmm/Tessera_SddmmStore.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// P := alpha (X Y^T on a pattern) [* S] + beta P entry by entry, without matrix instructions: for matrices whose
/// neighbouring rows share few columns.
///
/// No entry's result depends on another's, so entries are dealt out in equal numbers, whatever their rows: no row is
/// long or short, and none is cut. Which row an entry belongs to is said by a bit per entry and eight bytes per 32 of
/// them (SddmmGroup), known without a search and without waiting for the row map.
///
/// A *team* of 2^Shift lanes takes a run of consecutive entries, a batch of them at once. A lane reads some words of
/// sixteen bytes of each one's row of Y, all of the batch before the first is used, and adds up its share of each sum;
/// the shares meet by shuffles in which the entries of the batch go to different lanes. The words of X stay in
/// registers from entry to entry and are read where a row begins: these kernels are bounded by what the first-level
/// cache delivers and by the number of instructions (perf_test/notes/sddmm.md).

namespace Tessera {

/// Words: that a lane has under way of a row at once. Exact: rows have whole tiles of words.
template <class Head_, class Wave_, int Shift, int Words, bool Exact>
class SddmmRowsKernel {
 public:
  using Head = Head_;
  using Wave = Wave_;
  using Value = typename Head::Value;
  using Sum = typename Head::Sum;
  static constexpr int batch = 8 / Words;                      ///< entries of a team at once
  static constexpr int lanes = 1 << Shift;                     ///< of a team
  static constexpr int tile = lanes * Words;                   ///< words of a row at once
  static constexpr int entries = Wave::lanes / lanes * batch;  ///< of a wave at once
  static_assert(SddmmGroup::entries % batch == 0, "a batch lies in one group");

  /// Entries [first, first + passes * entries).
  TESSERA_FUNCTION static void run(const Wave& wave, const SddmmRowsArgs& args, std::int64_t first, int passes,
                                   std::int64_t head_index) {
    const Head head(args.dense, head_index);
    Varying<std::int64_t> begin;
    Varying<Place> next;
    Varying<Kept> kept;
    wave.each([&](int lane) {
      begin(lane) = first + (lane >> Shift) * batch * passes;
      next(lane) = place_of(args, begin(lane));
      kept(lane).row = -1;
    });
    for (int pass = 0; pass < passes; ++pass) {
      const Varying<Place> place = next;
      if (pass + 1 < passes) {  // columns of the next entries are under way while rows of Y are
        wave.each([&](int lane) { next(lane) = place_of(args, begin(lane) + batch); });
      }
      Varying<bool> mixed;
      wave.each([&](int lane) { mixed(lane) = place(lane).starts != 0; });
      Varying<Sums> sums;
      if (wave.ballot(mixed) == 0) {
        wave.each([&](int lane) { sums(lane) = products<false>(args, head, place(lane), kept(lane), lane); });
      } else {
        wave.each([&](int lane) { sums(lane) = products<true>(args, head, place(lane), kept(lane), lane); });
      }
      gather<batch, lanes / 2>(wave, sums);
      wave.each([&](int lane) {
        store(args, head, begin(lane), sums(lane), lane);
        begin(lane) += batch;
      });
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using RowWord = Packed<Value, Head::width>;
  struct Sums {
    Sum s[batch];
  };
  static constexpr int vector = batch < 4 ? batch : 4;  ///< columns of one load
  struct alignas(4 * vector) ColumnWord {
    std::int32_t v[vector];
  };
  /// Words of the row of X of the last entry; row: as groups count, -1: none.
  struct Kept {
    RowWord x[Words];
    std::int32_t row;
  };

  /// A team's entries. Those beyond the last one are the last one again.
  struct Place {
    std::int32_t row, column[batch];
    std::uint32_t starts;  ///< bit b: entry b begins a row, and is not the first of the batch
  };
  TESSERA_FUNCTION static Place place_of(const SddmmRowsArgs& args, std::int64_t begin) {
    Place place;
    const std::int64_t last = args.nnz - 1;
    if (begin > last) begin = last;
    const SddmmGroup group = args.groups[begin / SddmmGroup::entries];
    const int at = static_cast<int>(begin % SddmmGroup::entries);
    const int left = last - begin < batch - 1 ? static_cast<int>(last - begin) : batch - 1;
    if (left == batch - 1 && args.aligned) {
      TESSERA_UNROLL
      for (int b = 0; b < batch; b += vector) {
        const auto columns = Wave::template load<false>(reinterpret_cast<const ColumnWord*>(args.columns + begin + b));
        TESSERA_UNROLL
        for (int i = 0; i < vector; ++i) place.column[b + i] = columns.v[i];
      }
    } else {
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) place.column[b] = args.columns[begin + (b < left ? b : left)];
    }
    place.row = group.row + count_bits(group.starts & ((std::uint32_t{2} << at) - 1));
    place.starts = group.starts >> at & ((std::uint32_t{2} << left) - 2);
    return place;
  }
  TESSERA_FUNCTION static std::int32_t row_of(const SddmmRowsArgs& args, const Place& place, int b) {
    const std::int32_t row = place.row + count_bits(place.starts & ((std::uint32_t{2} << b) - 1));
    return args.row_of != nullptr ? args.row_of[row] : row;
  }

  /// A lane's shares of the sums. Mixed: the batch may have entries of several rows.
  template <bool Mixed>
  TESSERA_FUNCTION static Sums products(const SddmmRowsArgs& args, const Head& head, const Place& place, Kept& kept,
                                        int lane) {
    const int own = lane & (lanes - 1), words = static_cast<int>(args.dense.words);
    Sums sums{};
    for (int begin = 0; begin < words; begin += tile) {
      RowWord x[batch][Words], y[batch][Words];
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) load(head.y(place.column[b]), begin + own, words, y[b]);
      if (place.row != kept.row || words > tile) load(head.x(row_of(args, place, 0)), begin + own, words, kept.x);
      // Most of these end in the first-level cache; to choose which are needed takes longer.
      TESSERA_UNROLL
      for (int b = 1; Mixed && b < batch; ++b) load(head.x(row_of(args, place, b)), begin + own, words, x[b]);
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) multiply(Mixed && b > 0 ? x[b] : kept.x, y[b], sums.s[b]);
      TESSERA_UNROLL
      for (int w = 0; Mixed && w < Words; ++w) kept.x[w] = x[batch - 1][w];
    }
    kept.row = place.row + (Mixed ? count_bits(place.starts) : 0);
    return sums;
  }
  TESSERA_FUNCTION static void multiply(const RowWord (&x)[Words], const RowWord (&y)[Words], Sum& sum) {
    TESSERA_UNROLL
    for (int w = 0; w < Words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < Head::width; ++i) sum += static_cast<Sum>(x[w].get(i)) * static_cast<Sum>(y[w].get(i));
    }
  }
  TESSERA_FUNCTION static void load(const char* row, int begin, int words, RowWord (&to)[Words]) {
    TESSERA_UNROLL
    for (int w = 0; w < Words; ++w) {
      sddmm_load<Exact, Wave>(row + begin * 16 + w * lanes * 16, begin + w * lanes < words, to[w]);
    }
  }

  /// Adds up shares over the lanes at `Distance`, half of it and so on. While a lane has several sums, it keeps half of
  /// them, those of the upper half where it is the upper lane, and gives the others away.
  template <int Count, int Distance>
  TESSERA_FUNCTION static void gather(const Wave& wave, Varying<Sums>& sums) {
    if constexpr (Distance > 0) {
      constexpr int kept = Count > 1 ? Count / 2 : 1;
      TESSERA_UNROLL
      for (int i = 0; i < kept; ++i) {
        Varying<Sum> given, taken;
        wave.each([&](int lane) {
          const bool upper = (lane & Distance) != 0;
          given(lane) = Count > 1 && !upper ? sums(lane).s[i + kept * (Count > 1)] : sums(lane).s[i];
          if (Count > 1 && upper) sums(lane).s[i] = sums(lane).s[i + kept * (Count > 1)];
        });
        wave.shuffle(taken, given, [](int lane) { return lane ^ Distance; });
        wave.each([&](int lane) { sums(lane).s[i] += taken(lane); });
      }
      gather<kept, Distance / 2>(wave, sums);
    }
  }

  /// The entries whose sums a lane has in the end: with more lanes than entries the first lane of several.
  TESSERA_FUNCTION static void store(const SddmmRowsArgs& args, const Head& head, std::int64_t begin, const Sums& sums,
                                     int lane) {
    constexpr int kept = batch > lanes ? batch / lanes : 1, sharing = lanes > batch ? lanes / batch : 1;
    const int own = lane & (lanes - 1);
    if (own % sharing != 0) return;
    const std::int64_t entry = begin + own / sharing * kept;
    std::int64_t at[kept];
    TESSERA_UNROLL
    for (int i = 0; i < kept; ++i) {
      at[i] = entry + i;
      if (args.entry_at != nullptr && at[i] < args.nnz) at[i] = args.entry_at[at[i]];
    }
    TESSERA_UNROLL
    for (int i = 0; i < kept; ++i) {
      if (entry + i >= args.nnz) continue;
      if (head.plain()) {
        head.store_plain(at[i], sums.s[i]);
      } else {
        head.store(at[i], sums.s[i]);
      }
    }
  }
};

/// Calls run(kernel) with the kernel for rows of so many words: lanes with several words each need fewer shuffles per
/// entry, and a team takes all of a row at once while it can, so that X stays (perf_test/notes/sddmm.md).
template <class Head, class Wave, class Run>
auto sddmm_rows_dispatch(std::int64_t words, const Run& run) {
  if (words == 4) return run(SddmmRowsKernel<Head, Wave, 2, 1, true>{});
  if (words == 8) return run(SddmmRowsKernel<Head, Wave, 2, 2, true>{});
  if (words == 16) return run(SddmmRowsKernel<Head, Wave, 2, 4, true>{});
  if (words == 32) return run(SddmmRowsKernel<Head, Wave, 3, 4, true>{});
  if (words == 64) return run(SddmmRowsKernel<Head, Wave, 4, 4, true>{});
  if (words % 128 == 0) return run(SddmmRowsKernel<Head, Wave, 5, 4, true>{});
  if (words <= 2) return run(SddmmRowsKernel<Head, Wave, 1, 1, false>{});
  if (words <= 16) return run(SddmmRowsKernel<Head, Wave, 3, 2, false>{});
  if (words <= 64) return run(SddmmRowsKernel<Head, Wave, 4, 4, false>{});
  return run(SddmmRowsKernel<Head, Wave, 5, 4, false>{});
}

}  // namespace Tessera

#endif
