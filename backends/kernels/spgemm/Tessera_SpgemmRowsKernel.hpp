// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_ROWS_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmWave.hpp"

/// \file
/// Rows of C by kind and by size, and where each begins. Twice the same two steps, with consecutive rows per thread
/// block: first each thread block adds up what its rows are (SpgemmTotals), then each adds up the totals of those
/// before it and gives its rows their places. Nothing is sorted, no order depends on which thread block comes first,
/// and no thread block waits for another.

namespace Tessera {

/// What the two stages see of a row.
struct SpgemmRowFacts {
  int kind;  ///< or size; those without entries are not counted
  std::int64_t entries, products = 0, parts = 0;
  int length = -1;  ///< of A's row, if it is very long: SpgemmTotals
};

/// First stage: kinds, by a look at A and the ends of B's rows.
template <class Wave>
class SpgemmLook {
 public:
  static constexpr bool looks = true;
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// Rows with very many entries of A, left to all waves of the thread block.
  struct Left {
    static constexpr int most = 16;
    static constexpr std::uint32_t none = 0xffffffffu;
    std::uint32_t row[most];
    /// @return whether there was room for it
    TESSERA_FUNCTION bool take(std::int64_t taken) {
      for (int i = 0; i < most; ++i) {
        if (Wave::claim(row + i, none, static_cast<std::uint32_t>(taken)) == none) return true;
      }
      return false;
    }
  };
  /// Of the entries of a row of A that a wave looked at.
  struct Reach {
    std::int64_t products = 0;
    std::int32_t low = INT32_MAX, high = -1;
    TESSERA_FUNCTION void add(const Reach& other) {
      products += other.products;
      low = other.low < low ? other.low : low;
      high = other.high > high ? other.high : high;
    }
  };

  /// Rows [first, first + lanes) as far as they are below `end`; those that are left count as empty here.
  TESSERA_FUNCTION static void facts(const Wave& wave, const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                     Left& left, Varying<SpgemmRowFacts>& facts) {
    Varying<Reach> reach;
    Varying<std::int64_t> from, to;
    Varying<bool> is_long, is_left;
    wave.each([&](int lane) {
      const std::int64_t row = first + lane;
      from(lane) = row < end ? args.A.row_map(row) : 0;
      to(lane) = row < end ? args.A.row_map(row + 1) : 0;
      is_left(lane) = to(lane) - from(lane) > very_long_row && left.take(row);
      is_long(lane) = to(lane) - from(lane) > long_row && !is_left(lane);
      reach(lane) = is_long(lane) || is_left(lane) ? Reach{} : reach_of(args, from(lane), to(lane), 1);
    });
    const auto long_rows = wave.ballot(is_long);
    for (int source = 0; long_rows != 0 && source < Wave::lanes; ++source) {
      if ((long_rows >> source & 1) == 0) continue;
      const std::int64_t begin = spgemm_lane(wave, from, source), last = spgemm_lane(wave, to, source);
      const Reach all = reach_of_wave(wave, args, begin, last, Wave::lanes);
      wave.each([&](int lane) {
        if (lane == source) reach(lane) = all;
      });
    }
    wave.each([&](int lane) {
      facts(lane) = {SpgemmRowKinds::empty, 0};
      if (first + lane < end && !is_left(lane)) facts(lane) = store(args, first + lane, reach(lane));
    });
  }
  /// A wave's lanes look at every `step`-th entry from `begin` on, side by side.
  TESSERA_FUNCTION static Reach reach_of_wave(const Wave& wave, const SpgemmArgs& args, std::int64_t begin,
                                              std::int64_t end, int step) {
    Varying<std::int64_t> products;
    Varying<std::int32_t> low, high;
    wave.each([&](int lane) {
      const Reach own = reach_of(args, begin + lane, end, step);
      products(lane) = own.products;
      low(lane) = own.low;
      high(lane) = own.high;
    });
    return {wave.sum(products), spgemm_extreme<true>(wave, low), spgemm_extreme<false>(wave, high)};
  }
  /// Again, from what facts() wrote.
  TESSERA_FUNCTION static SpgemmRowFacts read(const SpgemmArgs& args, std::int64_t row) {
    return {args.kind[row], args.bound[row]};
  }
  TESSERA_FUNCTION static void place(const SpgemmArgs& args, std::int64_t row, const SpgemmRowFacts& facts,
                                     std::int64_t entries, std::int64_t, std::int64_t place) {
    args.at[row] = entries;
    if (facts.kind < SpgemmRowKinds::count) args.order[place] = static_cast<std::int32_t>(row);
  }
  TESSERA_FUNCTION static bool fits(const SpgemmArgs&, std::int64_t) { return true; }
  TESSERA_FUNCTION static void finish(const SpgemmArgs&, std::int64_t) {}
  TESSERA_FUNCTION static SpgemmRowFacts store(const SpgemmArgs& args, std::int64_t row, const Reach& reach) {
    const std::int64_t width = std::int64_t{reach.high} - reach.low + 1;
    const std::int64_t of_a = args.A.row_map(row + 1) - args.A.row_map(row);
    SpgemmRowFacts facts{SpgemmRowKinds::of(of_a, reach.products, width), 0};
    // Of a B whose columns descend the width says nothing; that it does is found beside this.
    facts.entries = reach.products == 0 ? 0 : reach.products < width ? reach.products : width > 0 ? width : 0;
    facts.products = reach.products;
    for (int i = 0; i < SpgemmTotals::lengths && of_a >= SpgemmTotals::length(i); ++i) facts.length = i;
    args.kind[row] = static_cast<std::uint8_t>(facts.kind);
    args.low[row] = reach.low;
    args.high[row] = reach.high;
    args.bound[row] = static_cast<std::int32_t>(facts.entries);
    args.products[row] = static_cast<std::int32_t>(reach.products < INT32_MAX ? reach.products : INT32_MAX);
    if (facts.kind == SpgemmRowKinds::empty) args.count[row] = 0;
    return facts;
  }

 private:
  /// Of A: longer ones are looked at by all lanes of a wave, or by all waves of a thread block.
  static constexpr std::int64_t long_row = 64, very_long_row = 2048;
  TESSERA_FUNCTION static Reach reach_of(const SpgemmArgs& args, std::int64_t from, std::int64_t to, int step) {
    constexpr int at_once = 4;
    Reach reach;
    std::int64_t e = from;
    if (args.B.nnz > 0) {
      for (; e + (at_once - 1) * step < to; e += at_once * step) add_entries<at_once>(args, e, step, reach);
      for (; e < to; e += step) add_entries<1>(args, e, step, reach);
    }
    return reach;
  }
  /// An entry takes three loads, one after the other: those of several are under way side by side, without a branch in
  /// between. B has entries.
  template <int AtOnce>
  TESSERA_FUNCTION static void add_entries(const SpgemmArgs& args, std::int64_t e, int step, Reach& reach) {
    SpgemmPiece piece[AtOnce];
    std::int32_t low[AtOnce], high[AtOnce];
    TESSERA_UNROLL
    for (int i = 0; i < AtOnce; ++i) piece[i] = spgemm_piece(args, e + i * step);
    TESSERA_UNROLL
    for (int i = 0; i < AtOnce; ++i) {
      const bool is = piece[i].count > 0;  // else any entry that is there
      low[i] = args.B.columns[is ? piece[i].begin : 0];
      high[i] = args.B.columns[is ? piece[i].begin + piece[i].count - 1 : 0];
    }
    TESSERA_UNROLL
    for (int i = 0; i < AtOnce; ++i) {
      if (piece[i].count > 0) reach.add({piece[i].count, low[i], high[i]});
    }
  }
};

/// Second stage: sizes, when rows are counted.
template <class Wave>
class SpgemmCounted {
 public:
  static constexpr bool looks = false;
  using Left = typename SpgemmLook<Wave>::Left;  ///< of which it has no use
  TESSERA_FUNCTION static void facts(const Wave& wave, const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                     Left&, typename Wave::template Varying<SpgemmRowFacts>& facts) {
    wave.each([&](int lane) {
      facts(lane) = {SpgemmRowSizes::empty, 0};
      if (first + lane < end) facts(lane) = read(args, first + lane);
    });
  }
  TESSERA_FUNCTION static SpgemmRowFacts read(const SpgemmArgs& args, std::int64_t row) {
    const SpgemmOffsets row_map{args.row_map, args.wide};
    SpgemmRowFacts facts{SpgemmRowSizes::empty, args.sized ? row_map(row + 1) - row_map(row) : args.count[row]};
    const int kind = args.kind[row];
    const std::int64_t of_a = args.A.row_map(row + 1) - args.A.row_map(row);
    if (!args.once || kind >= SpgemmRowKinds::tables) {
      facts.kind = SpgemmRowSizes::of(facts.entries, args.products[row], kind, of_a, args.long_rows);
    }
    const int window = args.window != nullptr ? args.window[row / args.window_rows] : 0;
    if (window != 0) facts.kind = row % args.window_rows == 0 ? window : SpgemmRowSizes::empty;
    if (facts.kind == SpgemmRowSizes::large) {
      const std::int64_t each = spgemm_each_part(args, row, facts.entries);
      facts.parts = (facts.entries + each - 1) / each;
      if (SpgemmRowSizes::is_shared(of_a, facts.parts, args.products[row])) {
        facts.kind = SpgemmRowSizes::shared;
        facts.parts = 0;
      }
    }
    return facts;
  }
  TESSERA_FUNCTION static void place(const SpgemmArgs& args, std::int64_t row, const SpgemmRowFacts& facts,
                                     std::int64_t entries, std::int64_t parts, std::int64_t place) {
    write(args, row, entries);
    if (args.sized) args.count[row] = static_cast<std::int32_t>(facts.entries);
    if (facts.kind < SpgemmRowSizes::count) args.sizes[place] = static_cast<std::int32_t>(row);
    for (std::int64_t p = 0; args.part != nullptr && p < facts.parts; ++p) {
      args.part[parts + p] = {static_cast<std::int32_t>(row), static_cast<std::int32_t>(p)};
    }
  }
  /// Else the row map stays as it is.
  TESSERA_FUNCTION static bool fits(const SpgemmArgs& args, std::int64_t entries) {
    return args.wide || args.sized || args.before + entries <= INT32_MAX;
  }
  TESSERA_FUNCTION static void finish(const SpgemmArgs& args, std::int64_t entries) {
    write(args, args.A.rows, entries);
  }

 private:
  TESSERA_FUNCTION static void write(const SpgemmArgs& args, std::int64_t row, std::int64_t offset) {
    if (args.sized || args.row_map == nullptr) return;
    if (args.wide) {
      static_cast<std::int64_t*>(args.row_map)[row] = args.before + offset;
    } else {
      static_cast<std::uint32_t*>(args.row_map)[row] = static_cast<std::uint32_t>(args.before + offset);
    }
  }
};

/// First step of a stage.
template <class Wave, class Stage, int Waves>
class SpgemmTallyKernel {
 public:
  using Look = SpgemmLook<Wave>;
  struct Memory {
    SpgemmTotals totals;
    typename Look::Reach reach[Waves];  ///< of a row that is left
    typename Look::Left left;
  };
  static constexpr int bytes = static_cast<int>(sizeof(Memory));

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args) {
    auto& memory = *reinterpret_cast<Memory*>(thread_block.memory());
    SpgemmTotals& totals = memory.totals;
    auto* const sum = reinterpret_cast<std::int64_t*>(&totals);
    thread_block.each_thread([&](unsigned thread) {
      if (thread < SpgemmTotals::count) sum[thread] = 0;
      if (thread < Look::Left::most) memory.left.row[thread] = Look::Left::none;
    });
    thread_block.synchronize();
    const std::int64_t begin = thread_block.index() * args.rows_per_block, left = args.A.rows - begin;
    const std::int64_t end = begin + (left < args.rows_per_block ? left : args.rows_per_block);
    thread_block.each_wave([&](unsigned in_thread_block) {
      const Wave wave;
      // Few rows are dealt out to all waves of the thread block.
      const std::int64_t each = args.rows_per_block < Waves * Wave::lanes ? args.rows_per_block / Waves : Wave::lanes;
      for (std::int64_t first = begin + in_thread_block * each; first < end; first += Waves * each) {
        typename Wave::template Varying<SpgemmRowFacts> facts;
        Stage::facts(wave, args, first, first + each < end ? first + each : end, memory.left, facts);
        add(wave, facts, totals);
      }
      if (Stage::looks) {
        add_disorder(wave, args, thread_block.index(), in_thread_block, totals);
      }
    });
    thread_block.synchronize();
    if (Stage::looks) look_at_left(thread_block, args, memory);
    thread_block.each_thread([&](unsigned thread) {
      if (thread < SpgemmTotals::count) {
        reinterpret_cast<std::int64_t*>(args.partial + thread_block.index())[thread] = sum[thread];
      }
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// Rows that waves left, one after the other by all of them.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void look_at_left(const ThreadBlock& thread_block, const SpgemmArgs& args, Memory& memory) {
    for (int i = 0; i < Look::Left::most; ++i) {
      const std::uint32_t row = memory.left.row[i];
      if (row == Look::Left::none) return;
      thread_block.each_wave([&](unsigned in_thread_block) {
        const Wave wave;
        const std::int64_t from = args.A.row_map(row) + in_thread_block * Wave::lanes, to = args.A.row_map(row + 1);
        const typename Look::Reach reach = Look::reach_of_wave(wave, args, from, to, Waves * Wave::lanes);
        wave.each([&](int lane) {
          if (lane == 0) memory.reach[in_thread_block] = reach;
        });
      });
      thread_block.synchronize();
      thread_block.each_wave([&](unsigned in_thread_block) {
        if (in_thread_block != 0) return;
        const Wave wave;
        Varying<SpgemmRowFacts> facts;
        wave.each([&](int lane) {
          facts(lane) = {SpgemmRowKinds::empty, 0};
          if (lane != 0) return;
          typename Look::Reach all;
          for (int w = 0; w < Waves; ++w) all.add(memory.reach[w]);
          facts(lane) = Look::store(args, row, all);
        });
        add(wave, facts, memory.totals);
      });
      thread_block.synchronize();
    }
  }
  TESSERA_FUNCTION static void add(const Wave& wave, const Varying<SpgemmRowFacts>& facts, SpgemmTotals& totals) {
    for (int kind = 0; kind < (Stage::looks ? SpgemmRowKinds::count : SpgemmRowSizes::count); ++kind) {
      Varying<bool> is;
      wave.each([&](int lane) { is(lane) = facts(lane).kind == kind; });
      const std::int64_t n = Wave::count(wave.ballot(is));
      if (n > 0) add_once(wave, &totals.rows[kind], n);
    }
    Varying<std::int64_t> v;
    wave.each([&](int lane) { v(lane) = facts(lane).entries; });
    add_once(wave, &totals.entries, wave.sum(v));
    wave.each([&](int lane) { v(lane) = Stage::looks ? facts(lane).products : facts(lane).parts; });
    add_once(wave, Stage::looks ? &totals.products : &totals.parts, wave.sum(v));
    if (!Stage::looks) return;
    Varying<bool> is;
    wave.each([&](int lane) { is(lane) = facts(lane).length >= 0; });
    if (wave.ballot(is) == 0) return;
    for (int i = 0; i < SpgemmTotals::lengths; ++i) {
      wave.each([&](int lane) { is(lane) = facts(lane).length == i; });
      add_once(wave, &totals.very_long[i], Wave::count(wave.ballot(is)));
    }
  }
  TESSERA_FUNCTION static void add_once(const Wave& wave, std::int64_t* sum, std::int64_t n) {
    wave.each([&](int lane) {
      if (lane == 0 && n != 0) Wave::add(sum, n);
    });
  }
  /// B's entries that are not above the one before, as if all were of one row; then what the first entries of its rows
  /// were not to be compared with is taken back.
  TESSERA_FUNCTION static void add_disorder(const Wave& wave, const SpgemmArgs& args, std::int64_t index,
                                            unsigned in_thread_block, SpgemmTotals& totals) {
    const auto* const columns = args.B.columns;
    const std::int64_t entries = (args.B.nnz + args.thread_blocks - 1) / args.thread_blocks;
    const std::int64_t rows = (args.B.rows + args.thread_blocks - 1) / args.thread_blocks;
    const auto share = [&](std::int64_t each, std::int64_t all) {
      return (index + 1) * each < all ? (index + 1) * each : all;
    };
    Varying<std::int64_t> found;
    wave.each([&](int lane) {
      const std::int64_t thread = in_thread_block * Wave::lanes + lane;
      std::int64_t n = 0;
      const std::int64_t last = share(entries, args.B.nnz - 1);
      TESSERA_UNROLL_4
      for (std::int64_t e = index * entries + thread; e < last; e += Waves * Wave::lanes) {
        n += columns[e + 1] <= columns[e];
      }
      for (std::int64_t r = index * rows + thread; r < share(rows, args.B.rows); r += Waves * Wave::lanes) {
        const std::int64_t first = args.B.row_map(r);
        if (first > 0 && first < args.B.row_map(r + 1)) n -= columns[first] <= columns[first - 1];
      }
      found(lane) = n;
    });
    add_once(wave, &totals.disorder, wave.sum(found));
  }
};

/// Second step of a stage.
template <class Wave, class Stage, int Waves>
class SpgemmPlaceKernel {
 public:
  static constexpr int kinds = SpgemmTotals::most_kinds;
  struct Memory {
    std::int64_t before[SpgemmTotals::count], all[SpgemmTotals::count];
    std::int64_t entries[Waves], parts[Waves];  ///< of each wave
    std::int64_t rows[kinds][Waves];
  };
  static constexpr int bytes = static_cast<int>(sizeof(Memory));

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args) {
    auto& memory = *reinterpret_cast<Memory*>(thread_block.memory());
    sum_totals(thread_block, args, memory);
    auto& before = reinterpret_cast<SpgemmTotals&>(memory.before);
    const auto& all = reinterpret_cast<const SpgemmTotals&>(memory.all);
    if (!Stage::fits(args, all.entries)) return;
    if (thread_block.index() + 1 == thread_block.thread_blocks()) {
      thread_block.each_thread([&](unsigned thread) {
        if (thread == 0) Stage::finish(args, all.entries);
      });
    }
    const std::int64_t begin = thread_block.index() * args.rows_per_block, left = args.A.rows - begin;
    const std::int64_t end = begin + (left < args.rows_per_block ? left : args.rows_per_block);
    for (std::int64_t tile = begin; tile < end; tile += Waves * Wave::lanes) {
      thread_block.each_wave([&](unsigned in_thread_block) {
        count(args, tile + in_thread_block * Wave::lanes, end, in_thread_block, memory);
      });
      thread_block.synchronize();
      thread_block.each_wave([&](unsigned in_thread_block) {
        place(args, tile + in_thread_block * Wave::lanes, end, in_thread_block, memory);
      });
      thread_block.synchronize();
      thread_block.each_thread([&](unsigned thread) {
        for (int w = 0; w < Waves; ++w) {
          if (thread < kinds) before.rows[thread] += memory.rows[thread][w];
          if (thread == kinds) before.entries += memory.entries[w];
          if (thread == kinds + 1) before.parts += memory.parts[w];
        }
      });
      thread_block.synchronize();
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// Of thread blocks before this one, and of all.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void sum_totals(const ThreadBlock& thread_block, const SpgemmArgs& args, Memory& memory) {
    constexpr int n = SpgemmTotals::count, groups = Waves * Wave::lanes / n;
    thread_block.each_thread([&](unsigned thread) {
      if (thread < n) memory.before[thread] = memory.all[thread] = 0;
    });
    thread_block.synchronize();
    thread_block.each_thread([&](unsigned thread) {
      const unsigned which = thread % n;
      if (thread >= groups * n) return;
      std::int64_t before = 0, all = 0;
      TESSERA_UNROLL_4
      for (std::int64_t i = thread / n; i < args.thread_blocks; i += groups) {
        const std::int64_t v = reinterpret_cast<const std::int64_t*>(args.partial + i)[which];
        all += v;
        if (i < thread_block.index()) before += v;
      }
      Wave::add(&memory.before[which], before);
      Wave::add(&memory.all[which], all);
    });
    thread_block.synchronize();
    if (thread_block.index() != 0) return;
    thread_block.each_thread([&](unsigned thread) {
      if (thread != 0) return;  // by one thread, so that the number comes last
      auto* const totals = reinterpret_cast<std::int64_t*>(&args.answer->totals);
      for (int which = 0; which < n; ++which) totals[which] = memory.all[which];
      Wave::publish_to_host(&args.answer->number, args.question);
    });
  }
  TESSERA_FUNCTION static SpgemmRowFacts read(const SpgemmArgs& args, std::int64_t row, std::int64_t end) {
    return row < end ? Stage::read(args, row) : SpgemmRowFacts{kinds, 0};
  }
  TESSERA_FUNCTION static void count(const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                     unsigned in_thread_block, Memory& memory) {
    const Wave wave;
    Varying<std::int64_t> entries, parts;
    Varying<int> kind;
    wave.each([&](int lane) {
      const SpgemmRowFacts facts = read(args, first + lane, end);
      entries(lane) = facts.entries;
      parts(lane) = facts.parts;
      kind(lane) = facts.kind;
    });
    const std::int64_t n = wave.sum(entries), p = wave.sum(parts);
    for (int k = 0; k < kinds; ++k) {
      Varying<bool> is;
      wave.each([&](int lane) { is(lane) = kind(lane) == k; });
      const std::int64_t rows = Wave::count(wave.ballot(is));
      wave.each([&](int lane) {
        if (lane == 0) memory.rows[k][in_thread_block] = rows;
      });
    }
    wave.each([&](int lane) {
      if (lane == 0) memory.entries[in_thread_block] = n;
      if (lane == 0) memory.parts[in_thread_block] = p;
    });
  }
  TESSERA_FUNCTION static void place(const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                     unsigned in_thread_block, const Memory& memory) {
    const Wave wave;
    const auto& before = reinterpret_cast<const SpgemmTotals&>(memory.before);
    const auto& all = reinterpret_cast<const SpgemmTotals&>(memory.all);
    Varying<SpgemmRowFacts> facts;
    Varying<std::int64_t> entries, parts, place;
    std::int64_t entries_before = before.entries, parts_before = before.parts, segment = 0;
    for (unsigned w = 0; w < in_thread_block; ++w) {
      entries_before += memory.entries[w];
      parts_before += memory.parts[w];
    }
    wave.each([&](int lane) {
      facts(lane) = read(args, first + lane, end);
      entries(lane) = facts(lane).entries;
      parts(lane) = facts(lane).parts;
      place(lane) = 0;
    });
    spgemm_scan(wave, entries);
    spgemm_scan(wave, parts);
    for (int k = 0; k < kinds; ++k) {
      Varying<bool> is;
      wave.each([&](int lane) { is(lane) = facts(lane).kind == k; });
      const auto mask = wave.ballot(is);
      std::int64_t at = segment + before.rows[k];
      for (unsigned w = 0; w < in_thread_block; ++w) at += memory.rows[k][w];
      wave.each([&](int lane) {
        if (is(lane)) place(lane) = at + Wave::rank(mask, lane);
      });
      segment += all.rows[k];
    }
    wave.each([&](int lane) {
      if (first + lane >= end) return;
      Stage::place(args, first + lane, facts(lane), entries_before + entries(lane) - facts(lane).entries,
                   parts_before + parts(lane) - facts(lane).parts, place(lane));
    });
  }
};

}  // namespace Tessera

#endif
