// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_GESPMM_DISPATCH_HPP
#define TESSERA_KERNELS_SPMM_GESPMM_DISPATCH_HPP

#include <algorithm>
#include <cstdint>

#include "backends/kernels/spmm/Tessera_GeSpmmKernel.hpp"

/// \file
/// Which kernel of GeSpmm a product takes: its walk, its tiles, and how it stores C (perf_test/notes/spmm-rows.md).

namespace Tessera {

/// Whether a product is made in tiles of 128 bytes: long rows, or pieces of them, that use each row of B many times.
/// The caches then hold four times as many of B's rows, and four teams share the reading of A, which is repeated. But
/// pieces of rows that share columns with their neighbours find rows of B in the first-level cache as it is.
inline bool rows_in_narrow_tiles(const GeSpmmArgs& args) {
  const bool pieces = args.table != nullptr && !args.local;
  const bool lengthy = args.nnz >= (pieces ? 64 : 200) * args.count;
  if (!lengthy || args.dense.columns > gespmm_narrow_columns) return false;
  // Pieces of a few very long rows that use B less often: if it does not stay in the last cache as a whole.
  const std::int64_t b = args.cols * args.dense.columns * bytes_of(args.precision);
  const bool beyond = pieces && args.cache_bytes > 0 && 10 * b > 9 * args.cache_bytes;
  return args.nnz >= (beyond ? 4 : 16) * args.cols;
}

/// Whether a walk asks for A ahead: short rows in pairs, and of matrices whose long rows are cut rows of a few entries;
/// teams of four lanes have too many rows under way for more than six.
template <class Kernel>
bool rows_ask_ahead(const GeSpmmArgs& args) {
  if (args.table == nullptr) return Kernel::words == 2;
  return args.nnz >= (Kernel::width == 8 ? 1 : 4) * args.count && args.nnz <= (args.shift > 2 ? 11 : 6) * args.count;
}

/// Whether the longest pieces decide how long a product takes, so that it needs no more waves: by the bytes of rows of
/// B that it reads, less of them where pieces are short.
template <class B>
bool rows_are_few(const GeSpmmArgs& args) {
  const std::int64_t row = B::bytes(args.dense.columns), mega = 1000000;
  const std::int64_t most = args.nnz >= 12 * args.count ? 176 : row <= 64 ? 100 : 50;
  return args.table != nullptr && !args.local && args.nnz * row <= most * mega;
}

/// Whether rows reach so far in B that what they use does not wait in the last cache until later rows use it again, in
/// tiles of so many bytes of a row of B: in a cache of 60 MB, planes of 17 MB waited and of 19 MB did not. Of matrices
/// whose long rows were cut, popular rows of B wait; and rows that share columns find them nearer.
inline bool rows_reach_far(const GeSpmmArgs& args, std::int64_t bytes) {
  const bool known = args.table == nullptr && !args.local && args.cache_bytes > 0;
  return known && 32 * args.reach * bytes > 9 * args.cache_bytes;
}
/// Whether narrower tiles may help: all of B does not wait either, and there are not too many of them.
inline bool rows_reach_beyond(const GeSpmmArgs& args, std::int64_t bytes) {
  const bool all = 16 * args.cols * bytes <= 9 * args.cache_bytes;
  return rows_reach_far(args, bytes) && !all && args.dense.columns <= gespmm_narrow_columns;
}

/// Whether C is to leave the last cache first: B stays there if C does not take its place, and both do not, or hardly
/// (perf_test/notes/spmm-rows.md, "C out of the way of B").
inline bool rows_let_c_pass(const GeSpmmArgs& args) {
  const SpmmDense& d = args.dense;
  const std::int64_t c_bytes = d.c_type == ElementType::Double ? 8 : d.c_type == ElementType::Float ? 4 : 2;
  const std::int64_t b = args.cols * d.columns * bytes_of(args.precision), c = args.rows * d.columns * c_bytes;
  return 4 * b <= 3 * args.cache_bytes && 5 * (b + c) >= 2 * args.cache_bytes && args.cache_bytes > 0;
}

/// Whether rows are stored without a look at each word: in FP32, where short ones gain by it, and not of a table.
template <class Types>
bool rows_store_plain(const GeSpmmArgs& args) {
  const SpmmDense& d = args.dense;
  const bool aligned = reinterpret_cast<std::uintptr_t>(d.c) % 16 == 0 && d.ldc % 4 == 0;
  return sizeof(typename Types::Value) == 4 && args.table == nullptr && aligned && d.beta == 0 &&
         d.columns % Types::B::columns == 0;
}

/// Whether whole rows of many entries, in teams of sixteen lanes of which a device has half at once, fill it once and
/// leave a rest that then has it almost for itself.
template <class B>
bool rows_leave_a_rest(const GeSpmmArgs& args, std::int64_t words, std::int64_t lanes) {
  const std::int64_t rounds_of_lanes = 32 * args.count * ((words + 15) / 16);
  return B::columns <= 4 && args.table == nullptr && rounds_of_lanes > lanes && 2 * rounds_of_lanes < 3 * lanes;
}

/// Whether teams that each take a row of A would read columns and values far apart, a line for each of them, so that
/// these take longer than the rows of B: four teams and more, rows that have four entries for each, or nearly. In 16
/// bits rows must differ in length, too: then a wave waits for its longest. And not where neighbouring rows of a large
/// matrix share columns, so that teams read the same rows of B.
template <class B>
bool teams_read_apart(const GeSpmmArgs& args, std::int64_t teams) {
  const std::int64_t nnz = args.nnz, count = args.count;
  const bool together = args.local && nnz > 4000000 && args.longest * count < 3 * nnz;
  const bool enough = teams >= 4 && 2 * nnz >= 7 * teams * count && !together;
  if (B::element_bytes > 2) return enough && nnz >= (teams > 4 ? 40 : 50) * count;
  return enough && nnz >= 96 * count && args.longest * count >= 2 * nnz && args.table == nullptr;
}

/// The walk for a product (perf_test/notes/spmm-rows.md). lanes: of the whole device.
template <class B>
RowsWalk rows_walk(const GeSpmmArgs& args, int wave, std::int64_t lanes) {
  const std::int64_t words = (args.dense.columns + B::columns - 1) / B::columns;
  if (rows_in_narrow_tiles(args)) {
    const bool often = args.nnz >= 16 * args.cols && !rows_reach_beyond(args, B::bytes(args.dense.columns));
    const bool whole = words > 8 && words <= (B::columns == 2 ? 32 : 16);
    return B::narrows && often && whole && !rows_leave_a_rest<B>(args, words, lanes) ? RowsWalk::Ahead
                                                                                     : RowsWalk::Shared;
  }
  int shift = 0;
  while ((1 << shift) < wave && (1 << shift) < words) ++shift;
  const std::int64_t teams = wave >> shift, count = args.count, nnz = args.nnz;
  if (teams > 1 && (nnz >= 200 * count || (3 * (count << shift) < 2 * lanes && nnz >= 4 * teams * count))) {
    return RowsWalk::Shared;
  }
  if (B::narrows && teams_read_apart<B>(args, teams)) return RowsWalk::Shared;
  const bool cut = args.table != nullptr, fills = count * words >= 3 * lanes, wide = B::columns <= 4;
  if (B::narrows && cut && !args.local && !wide && shift == 2 && nnz >= 6 * count) return RowsWalk::Dealt;
  if (B::narrows && words > 2 && rows_are_few<B>(args)) return RowsWalk::Ahead;
  const bool pairs = wide && words >= 8 && (args.local || nnz * B::bytes(args.dense.columns) > 110000000);
  const bool brief = cut ? nnz <= 6 * count && pairs : nnz <= 7 * count;
  if (brief) return fills ? RowsWalk::Pairs : cut ? RowsWalk::Octets : RowsWalk::Quads;
  // Where rows of B are long, reading A half as often is worth more than eight rows of B under way.
  const bool near = !rows_reach_far(args, std::min<std::int64_t>(B::bytes(args.dense.columns), 512));
  const bool some = !cut && !args.local && wide && words >= 16 && 2 * nnz >= 17 * count && nnz <= 32 * count;
  const bool many = (!cut || args.local) && words >= (wide ? 32 : 64) && nnz <= 128 * count;
  if (fills && near && (some || many)) return RowsWalk::Pairs;
  // Half of the lanes have 64 registers; a second round would cost more than these save, but of long rows in FP32.
  const std::int64_t tiles = (words + (1 << shift) - 1) >> shift;
  const bool rounds = args.local && B::columns == 4 && nnz >= 32 * count;
  return B::narrows && 2 * (count << shift) * tiles <= (rounds ? 3 : 1) * lanes ? RowsWalk::Ahead : RowsWalk::Octets;
}

/// The walk where rows of B are read in words of less than sixteen bytes, and log2 of the teams that share an item.
struct NarrowWalk {
  RowsWalk walk;
  int log2_teams;
};
inline int rounded_log2(std::int64_t n) {
  int log = 0;
  while ((std::int64_t{1} << log) < n) ++log;
  return log;
}
/// Whether all teams of a wave share an item of rows of so many words: long rows, or too few of them.
inline bool teams_together(const GeSpmmArgs& args, std::int64_t words, int wave, std::int64_t lanes) {
  const int most = rounded_log2(wave), shift = std::min(most, rounded_log2(words)), all = most - shift;
  const bool few = 3 * (args.count << shift) < 2 * lanes && args.nnz >= (std::int64_t{4} << all) * args.count;
  return all > 0 && (args.nnz >= 200 * args.count || few);
}
/// Whether rows of B of one word of sixteen bytes, or less, are read in words of eight instead: teams of one lane would
/// each read a row of A, and in narrow words several take its entries in turns (RowsWalk::Split).
inline bool rows_take_turns(const GeSpmmArgs& args) {
  const std::int64_t entries = args.precision == Precision::FP64 ? 12 : args.precision == Precision::FP32 ? 28 : 0;
  const bool one_word = args.dense.columns * bytes_of(args.precision) <= 16 && args.word_bytes == 16;
  return entries > 0 && one_word && args.spread == nullptr && args.nnz >= entries * args.count;
}
/// log2 of the teams that take the entries of an item in turns (RowsWalk::Split): one or two lanes would read rows of A
/// far apart, so up to eight entries for each.
inline int log2_teams_in_turns(const GeSpmmArgs& args, std::int64_t words, int wave, std::int64_t lanes) {
  const int all = std::max(0, rounded_log2(wave) - rounded_log2(words));
  const std::int64_t each = 8 * args.count;
  const int asked = args.nnz < 12 * args.count ? 0 : rounded_log2((args.nnz + each - 1) / each);
  return teams_together(args, words, wave, lanes) ? all : std::min(all, asked);
}
template <class B>
NarrowWalk rows_walk_in_narrow_words(const GeSpmmArgs& args, int wave, std::int64_t lanes) {
  const std::int64_t words = (args.dense.columns + B::columns - 1) / B::columns, count = args.count, nnz = args.nnz;
  if (words <= 2) {
    const int log2_teams = log2_teams_in_turns(args, words, wave, lanes);
    return {log2_teams > 0 ? RowsWalk::Split : RowsWalk::Octets, log2_teams};
  }
  const bool apart = words <= 8 && teams_read_apart<B>(args, wave >> rounded_log2(words));
  if (apart || teams_together(args, words, wave, lanes)) return {RowsWalk::Shared, 0};
  // Four words per lane where rows are short, or else many lanes have none; as long as a device has enough to do.
  const int fewer = std::min(rounded_log2(wave), rounded_log2((words + B::pair - 1) / B::pair));
  const bool fills = 4 * (count << fewer) >= 3 * lanes, brief = args.table == nullptr && nnz <= 10 * count;
  const bool wide = words > 16 && (fills || words > 1024 || (words > 64 && nnz > 100 * count));
  return {wide || brief ? RowsWalk::Pairs : RowsWalk::Octets, 0};
}

/// log2 of a team's lanes: as many as the columns of B need, at most 32 (512 bytes of a row of B, or 1,024 in pairs).
/// Rows that reach too far for that: 8, if they are long enough to pay for reading A more often, else as many as let
/// planes of a mesh wait, if any do.
template <class Kernel>
int gespmm_shift(const GeSpmmArgs& args) {
  const auto beyond = [&](int shift) {
    const std::int64_t tile = (Kernel::words * Kernel::width) << shift;
    return rows_reach_beyond(args, Kernel::B::bytes(std::min(tile, args.dense.columns)));
  };
  constexpr bool whole = Kernel::B::whole;
  int most = 5;
  if (whole && Kernel::shared && rows_in_narrow_tiles(args)) most = 3;
  if (Kernel::deep && rows_in_narrow_tiles(args)) most = 4;
  if (Kernel::batch == 8 && Kernel::B::narrows && beyond(5)) most = 3;
  if (whole && Kernel::words == 2 && !beyond(3)) {
    while (beyond(most)) --most;
  }
  int shift = 0;
  while (shift < most && (1 << shift) < Kernel::Wave::lanes &&
         (std::int64_t{Kernel::words * Kernel::width} << shift) < args.dense.columns) {
    ++shift;
  }
  return shift;
}

/// Calls with(the kernel of a walk); some exist for whole words of B alone, some for narrower ones.
template <class Types, class Wave, bool EveryWalk, class With>
void gespmm_with_walk(RowsWalk walk, const With& with) {
  constexpr bool whole = Types::B::whole;
  if constexpr (EveryWalk) {
    if (walk == RowsWalk::Pairs) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Pairs>{});
    if (walk == RowsWalk::Shared) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Shared>{});
  }
  if constexpr (EveryWalk && !whole) {
    if (walk == RowsWalk::Split) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Split>{});
  }
  if constexpr (EveryWalk && whole) {
    if (walk == RowsWalk::Quads) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Quads>{});
  }
  if constexpr (EveryWalk && whole && Types::B::narrows) {
    if (walk == RowsWalk::Ahead) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Ahead>{});
    if constexpr (Types::B::columns == 8) {
      if (walk == RowsWalk::Dealt) return with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Dealt>{});
    }
  }
  with(GeSpmmKernel<Types, Wave, std::int32_t, RowsWalk::Octets>{});
}

/// Calls run(kernel, args with the shift set) with the kernel for a product.
/// EveryWalk: or one for all. narrow: entries are counted in 32 bits.
template <class Types, class Wave, bool EveryWalk = true, class Run>
void gespmm_dispatch(GeSpmmArgs args, std::int64_t lanes, bool narrow, const Run& run) {
  args.dense.passing = rows_let_c_pass(args);
  args.dense.plain = rows_store_plain<Types>(args);
  const auto with = [&](auto kernel) {
    using Kernel = decltype(kernel);
    args.shift = gespmm_shift<Kernel>(args);
    run(kernel, args);
  };
  constexpr bool whole = Types::B::whole;
  if (!narrow) return with(GeSpmmKernel < Types, Wave, std::int64_t, whole ? RowsWalk::Quads : RowsWalk::Pairs > {});
  RowsWalk walk = RowsWalk::Octets;
  if constexpr (EveryWalk && whole) {
    walk = rows_walk<typename Types::B>(args, Wave::lanes, lanes);
  } else if constexpr (EveryWalk) {
    const NarrowWalk found = rows_walk_in_narrow_words<typename Types::B>(args, Wave::lanes, lanes);
    args.log2_teams = found.log2_teams;
    walk = found.walk;
  }
  gespmm_with_walk<Types, Wave, EveryWalk>(walk, with);
}

}  // namespace Tessera

#endif
