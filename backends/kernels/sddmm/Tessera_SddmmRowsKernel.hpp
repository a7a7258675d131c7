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
/// A *team* of 2^Shift lanes takes a run of consecutive entries, a batch of them at once; the runs of a wave's teams
/// are a *part*. A lane reads some words of sixteen bytes of each entry's row of Y, all of the batch before the first
/// is used, and adds up its share of each sum; the shares meet by shuffles in which the entries of the batch go to
/// different lanes. The words of X stay in registers from entry to entry and are read where a row begins. Columns of a
/// wave's next part are under way while it multiplies.
///
/// These kernels are bounded by what the caches deliver and, where rows of Y are short, by the number of instructions:
/// hence addresses as a base and a distance, the case P := alpha sum apart, and one test per part for the end of the
/// entries (perf_test/notes/sddmm.md).

namespace Tessera {

/// Words of a row: those that a team takes at once; fewer, but more than if lanes had a word less each, so that only
/// the last word of a lane may be missing; a multiple of a team's; or any number.
enum class SddmmRowLength { Tile, Part, Tiles, Any };

/// A team of 2^Shift lanes, each with Words words of a row at once, Batch entries at once. Bytes: of a word.
template <int Shift_, int Words_, int Batch_, SddmmRowLength Length_, int Bytes_ = 16>
struct SddmmRowsShape {
  static constexpr int shift = Shift_, words = Words_, batch = Batch_, bytes = Bytes_;
  static constexpr SddmmRowLength length = Length_;
};

template <class Head_, class Wave_, class Shape>
class SddmmRowsKernel {
 public:
  using Head = Head_;
  using Wave = Wave_;
  using Value = typename Head::Value;
  using Sum = typename Head::Sum;
  static constexpr int batch = Shape::batch;                    ///< entries of a team at once
  static constexpr int words_under_way = batch * Shape::words;  ///< of a lane
  static constexpr int lanes = 1 << Shape::shift;               ///< of a team
  static constexpr int tile = lanes * Shape::words;             ///< words of a row at once
  static constexpr int passes = 2;                              ///< batches of a run
  static constexpr int run_entries = passes * batch;
  static constexpr int entries = Wave::lanes / lanes * run_entries;  ///< of a part
  /// Of four waves each, that a multiprocessor holds (NVIDIA): bounds the registers. Measured.
  static constexpr bool at_once = Shape::length == SddmmRowLength::Tile || Shape::length == SddmmRowLength::Part;
  static constexpr int thread_blocks = words_under_way > 4 || !at_once ? 5 : Shape::words == 1 ? 6 : 8;
  static_assert(SddmmGroup::entries % run_entries == 0, "a run lies in one group");

  /// Parts `part`, `part` + `stride` and so on below `end`.
  TESSERA_FUNCTION static void run(const Wave& wave, const SddmmRowsArgs& args, std::uint32_t part,
                                   std::uint32_t stride, std::uint32_t end, std::int64_t head_index) {
    const Head head(args.dense, head_index);
    const bool plain = head.plain() && args.entry_at == nullptr;
    const Result result{Wave::keep(head.sums()), Wave::keep(head.alpha()),
                        Wave::keep(static_cast<std::int32_t>(plain))};
    Varying<Lane> lane_of;
    Varying<Run> next;
    Varying<Kept> kept;
    wave.each([&](int lane) {
      const int own = lane & (lanes - 1);
      lane_of(lane) = {Wave::keep(head.x(0) + own * bytes), Wave::keep(head.y(0) + own * bytes)};
      next(lane) = run_of(args, part, lane);
      kept(lane).row = -1;
    });
    for (; part < end; part += stride) {
      Varying<Run> now = next;
      if (part + stride < end) {
        wave.each([&](int lane) { next(lane) = run_of(args, part + stride, lane); });
      }
      TESSERA_NO_UNROLL
      for (int first = 0; first < run_entries; first += batch) {
        Varying<bool> mixed;
        wave.each([&](int lane) { mixed(lane) = starts_within(now(lane)) != 0; });
        Varying<Sums> sums;
        if (wave.ballot(mixed) == 0) {
          wave.each(
              [&](int lane) { sums(lane) = products<false>(args, head, lane_of(lane), now(lane), kept(lane), lane); });
        } else {
          wave.each(
              [&](int lane) { sums(lane) = products<true>(args, head, lane_of(lane), now(lane), kept(lane), lane); });
        }
        gather<batch, lanes / 2>(wave, sums);
        wave.each([&](int lane) {
          store(args, head, result, part, first, now(lane).count, sums(lane), lane);
          advance(now(lane));
        });
      }
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  static constexpr int bytes = Shape::bytes, width = bytes / static_cast<int>(sizeof(Value));  ///< of a word
  using RowWord = Packed<Value, width>;
  struct Sums {
    Sum s[batch];
  };
  static constexpr int vector = run_entries < 4 ? run_entries : 4;  ///< columns of one load
  struct alignas(4 * vector) ColumnWord {
    std::int32_t v[vector];
  };
  struct Result {
    Sum* sums;
    Sum alpha;
    std::int32_t plain;  ///< P := alpha sum, in the sums' type and in the order of the entries
  };
  /// Rows 0 of X and Y, where a lane's words of them begin.
  struct Lane {
    const char* x;
    const char* y;
  };
  /// Words of the row of X of the last entry; row: as groups count, -1: none.
  struct Kept {
    RowWord x[Shape::words];
    std::int32_t row;
  };

  /// A team's entries in a part, the next batch first. Those beyond the last one of all have its column.
  struct Run {
    std::int32_t row;      ///< of the first, as groups count
    std::uint32_t starts;  ///< bit e: entry e begins a row, and is not the first of the run
    std::int32_t count;    ///< of the whole run
    std::int32_t column[run_entries];
  };
  TESSERA_FUNCTION static std::int64_t begin_of(std::uint32_t part, int lane) {
    return std::int64_t{part} * entries + (lane >> Shape::shift) * run_entries;
  }
  TESSERA_FUNCTION static Run run_of(const SddmmRowsArgs& args, std::uint32_t part, int lane) {
    Run run;
    std::int64_t begin = begin_of(part, lane);
    run.count = run_entries;
    if (std::int64_t{part} * entries + entries > args.nnz) {  // the last part of all
      const std::int64_t left = args.nnz - begin;
      run.count = left > run_entries ? run_entries : left > 0 ? static_cast<int>(left) : 0;
      if (left <= 0) begin = args.nnz - 1;
    }
    const auto entry = static_cast<std::uint64_t>(begin);
    const SddmmGroup group = args.groups[entry / SddmmGroup::entries];
    const int at = static_cast<int>(entry % SddmmGroup::entries);
    const std::int32_t* const columns = args.columns + begin;
    if (args.aligned && run.count == run_entries) {
      TESSERA_UNROLL
      for (int e = 0; e < run_entries; e += vector) {
        const auto word = Wave::template load<false>(reinterpret_cast<const ColumnWord*>(columns + e));
        TESSERA_UNROLL
        for (int i = 0; i < vector; ++i) run.column[e + i] = word.v[i];
      }
    } else {
      TESSERA_UNROLL
      for (int e = 0; e < run_entries; ++e)
        run.column[e] = columns[e < run.count ? e : run.count > 0 ? run.count - 1 : 0];
    }
    run.row = group.row + count_bits(group.starts & ((std::uint32_t{2} << at) - 1));
    run.starts = group.starts >> at & ((std::uint32_t{1} << run.count) - 1) & ~std::uint32_t{1};
    return run;
  }

  /// Of the run's next batch: which entries begin a row, from its second one on.
  TESSERA_FUNCTION static std::uint32_t starts_within(const Run& run) {
    return run.starts & ((std::uint32_t{1} << batch) - 2);
  }
  /// To the next batch. Registers move, so that one copy of the multiplications serves all batches, which is faster
  /// than a copy for each (perf_test/notes/sddmm.md).
  TESSERA_FUNCTION static void advance(Run& run) {
    run.row += count_bits(run.starts & ((std::uint32_t{2} << batch) - 2));
    run.starts >>= batch;
    TESSERA_UNROLL
    for (int e = 0; e + batch < run_entries; ++e) run.column[e] = run.column[e + batch];
  }

  /// A lane's shares of the sums of the run's next batch. Mixed: it may have entries of several rows.
  template <bool Mixed>
  TESSERA_FUNCTION static Sums products(const SddmmRowsArgs& args, const Head& head, const Lane& at, const Run& run,
                                        Kept& kept, int lane) {
    const int words = Shape::length == SddmmRowLength::Tile ? tile : static_cast<int>(args.dense.words);
    const int end = at_once ? tile : words;
    const int own = lane & (lanes - 1);
    const std::uint32_t starts = starts_within(run);
    const std::int32_t row = run.row;
    Sums sums{};
    for (int begin = 0; begin < end; begin += tile) {
      RowWord x[batch][Shape::words], y[batch][Shape::words];
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) load(at.y + head.y_distance(run.column[b]), begin, words, own, y[b]);
      if (row != kept.row || end > tile) load(at.x + x_distance(args, head, row), begin, words, own, kept.x);
      // Most of these end in the first-level cache; to choose which are needed takes longer.
      TESSERA_UNROLL
      for (int b = 1; Mixed && b < batch; ++b) {
        const std::int32_t here = row + count_bits(starts & ((std::uint32_t{2} << b) - 1));
        load(at.x + x_distance(args, head, here), begin, words, own, x[b]);
      }
      TESSERA_UNROLL
      for (int b = 0; b < batch; ++b) multiply(Mixed && b > 0 ? x[b] : kept.x, y[b], sums.s[b]);
      TESSERA_UNROLL
      for (int w = 0; Mixed && w < Shape::words; ++w) kept.x[w] = x[batch - 1][w];
    }
    kept.row = row + (Mixed ? count_bits(starts) : 0);
    return sums;
  }
  TESSERA_FUNCTION static std::int64_t x_distance(const SddmmRowsArgs& args, const Head& head, std::int32_t row) {
    return head.x_distance(args.row_of != nullptr ? args.row_of[row] : row);
  }
  TESSERA_FUNCTION static void multiply(const RowWord (&x)[Shape::words], const RowWord (&y)[Shape::words], Sum& sum) {
    TESSERA_UNROLL
    for (int w = 0; w < Shape::words; ++w) {
      TESSERA_UNROLL
      for (int i = 0; i < width; ++i) sum += static_cast<Sum>(x[w].get(i)) * static_cast<Sum>(y[w].get(i));
    }
  }
  /// Words of a row from word `begin` on; row: where the lane's words of it are.
  TESSERA_FUNCTION static void load(const char* row, int begin, int words, int own, RowWord (&to)[Shape::words]) {
    constexpr bool whole = Shape::length == SddmmRowLength::Tile || Shape::length == SddmmRowLength::Tiles;
    constexpr int exact = whole ? Shape::words : Shape::length == SddmmRowLength::Part ? Shape::words - 1 : 0;
    TESSERA_UNROLL
    for (int w = 0; w < exact; ++w) load_word<true>(row + (begin + w * lanes) * bytes, true, to[w]);
    TESSERA_UNROLL
    for (int w = exact; w < Shape::words; ++w) {
      load_word<false>(row + (begin + w * lanes) * bytes, begin + own + w * lanes < words, to[w]);
    }
  }
  template <bool Exact>
  TESSERA_FUNCTION static void load_word(const char* from, bool on, RowWord& to) {
    if constexpr (bytes == 16) {
      sddmm_load<Exact, Wave>(from, on, to);
    } else {
      Wave::template load_if<false, bytes>(from, Exact || on, 0, to.w);
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
          const Sum low = sums(lane).s[i], high = sums(lane).s[i + kept * (Count > 1)];
          given(lane) = Count > 1 && !upper ? high : low;
          sums(lane).s[i] = Count > 1 && upper ? high : low;
        });
        wave.shuffle(taken, given, [](int lane) { return lane ^ Distance; });
        wave.each([&](int lane) { sums(lane).s[i] += taken(lane); });
      }
      gather<kept, Distance / 2>(wave, sums);
    }
  }

  /// The entries whose sums a lane has in the end: with more lanes than entries the first lane of several.
  TESSERA_FUNCTION static void store(const SddmmRowsArgs& args, const Head& head, const Result& result,
                                     std::uint32_t part, int first, int count, const Sums& sums, int lane) {
    constexpr int kept = batch > lanes ? batch / lanes : 1, sharing = lanes > batch ? lanes / batch : 1;
    const int own = lane & (lanes - 1);
    if (own % sharing != 0) return;
    first += own / sharing * kept;
    const std::int64_t begin = begin_of(part, lane) + first;
    if (result.plain != 0) {
      TESSERA_UNROLL
      for (int i = 0; i < kept; ++i) {
        if (first + i < count) result.sums[begin + i] = result.alpha * sums.s[i];
      }
      return;
    }
    std::int64_t at[kept];
    TESSERA_UNROLL
    for (int i = 0; i < kept; ++i) {
      at[i] = begin + i;
      if (args.entry_at != nullptr && first + i < count) at[i] = args.entry_at[at[i]];
    }
    TESSERA_UNROLL
    for (int i = 0; i < kept; ++i) {
      if (first + i < count) head.store(at[i], sums.s[i]);
    }
  }
};

/// Calls run(kernel) with the kernel for rows of so many words: lanes with several words each need fewer shuffles per
/// entry, and a team takes all of a row at once while it can, so that X stays (perf_test/notes/sddmm.md). A team has
/// the next number of words that the row fits in. Without EveryLength only four, from which the others differ in
/// numbers.
template <class Head, class Wave, bool EveryLength, class Run>
auto sddmm_rows_dispatch(std::int64_t words, const Run& run) {
  using Length = SddmmRowLength;
  const auto with = [&](auto shape) { return run(SddmmRowsKernel<Head, Wave, decltype(shape)>{}); };
  if constexpr (EveryLength) {
    const auto fitted = [&](auto part, auto tile) {
      return words == SddmmRowsKernel<Head, Wave, decltype(tile)>::tile ? with(tile) : with(part);
    };
    if (words <= 2) return fitted(SddmmRowsShape<1, 1, 4, Length::Part>{}, SddmmRowsShape<1, 1, 4, Length::Tile>{});
    if (words <= 4) return fitted(SddmmRowsShape<2, 1, 4, Length::Part>{}, SddmmRowsShape<2, 1, 4, Length::Tile>{});
    if (words <= 8) return fitted(SddmmRowsShape<2, 2, 2, Length::Part>{}, SddmmRowsShape<2, 2, 2, Length::Tile>{});
    if (words <= 12) return fitted(SddmmRowsShape<2, 3, 2, Length::Part>{}, SddmmRowsShape<2, 3, 2, Length::Tile>{});
    if (words <= 16) return fitted(SddmmRowsShape<2, 4, 2, Length::Part>{}, SddmmRowsShape<2, 4, 2, Length::Tile>{});
    if (words <= 24) return fitted(SddmmRowsShape<3, 3, 2, Length::Part>{}, SddmmRowsShape<3, 3, 2, Length::Tile>{});
    if (words <= 32) return fitted(SddmmRowsShape<3, 4, 2, Length::Part>{}, SddmmRowsShape<3, 4, 2, Length::Tile>{});
    if (words <= 48) return fitted(SddmmRowsShape<4, 3, 2, Length::Part>{}, SddmmRowsShape<4, 3, 2, Length::Tile>{});
    if (words <= 64) return fitted(SddmmRowsShape<4, 4, 2, Length::Part>{}, SddmmRowsShape<4, 4, 2, Length::Tile>{});
    if (words <= 96) return fitted(SddmmRowsShape<5, 3, 2, Length::Part>{}, SddmmRowsShape<5, 3, 2, Length::Tile>{});
    if (words <= 128) return fitted(SddmmRowsShape<5, 4, 2, Length::Part>{}, SddmmRowsShape<5, 4, 2, Length::Tile>{});
  } else {
    if (words == 16) return with(SddmmRowsShape<2, 4, 2, Length::Tile>{});
    if (words < 16) return with(SddmmRowsShape<3, 2, 2, Length::Any>{});
  }
  if (words % 128 == 0) return with(SddmmRowsShape<5, 4, 2, Length::Tiles>{});
  return with(SddmmRowsShape<5, 4, 2, Length::Any>{});
}

/// The same for rows that are read in words of fewer bytes, since they do not lie at multiples of sixteen. Batches are
/// twice as large: of such words a lane has more under way in as many registers. Lanes next to each other read 64 bytes
/// where a row has as many, so that a load of a wave meets few lines. Without EveryLength only the kernel for any
/// number of words.
template <class Head, class Wave, bool EveryLength, int Bytes, class Run>
auto sddmm_narrow_rows_dispatch(std::int64_t words, const Run& run) {
  const auto with = [&](auto shape) { return run(SddmmRowsKernel<Head, Wave, decltype(shape)>{}); };
  constexpr SddmmRowLength part = SddmmRowLength::Part;
  if constexpr (EveryLength) {
    if (words <= 4) return with(SddmmRowsShape<2, 1, 4, part, Bytes>{});
    if (words <= 8) return with(SddmmRowsShape<3, 1, 4, part, Bytes>{});
    if constexpr (Bytes == 8) {
      if (words <= 16) return with(SddmmRowsShape<3, 2, 4, part, Bytes>{});
      if (words <= 24) return with(SddmmRowsShape<3, 3, 4, part, Bytes>{});
      if (words <= 32) return with(SddmmRowsShape<3, 4, 4, part, Bytes>{});
    } else {
      if (words <= 16) return with(SddmmRowsShape<4, 1, 4, part, Bytes>{});
    }
    if constexpr (Bytes == 4) {
      if (words <= 32) return with(SddmmRowsShape<4, 2, 4, part, Bytes>{});
    }
    if (words <= 48) return with(SddmmRowsShape<4, 3, 4, part, Bytes>{});
    if (words <= 64) return with(SddmmRowsShape<4, 4, 4, part, Bytes>{});
    if (words <= 96) return with(SddmmRowsShape<5, 3, 4, part, Bytes>{});
    if (words <= 128) return with(SddmmRowsShape<5, 4, 4, part, Bytes>{});
  }
  return with(SddmmRowsShape<5, 4, 4, SddmmRowLength::Any, Bytes>{});
}

}  // namespace Tessera

#endif
