// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_NUMBERS_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_NUMBERS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmWave.hpp"

/// \file
/// Numbers of rows of C whose columns are known: sums lie in memory of the wave, by column where these are near each
/// other, else by place among the columns. Products are added in the order of A's row, without atomics.

namespace Tessera {

/// Columns of a row, or of a part of one, and where they come from and go to.
template <class Value>
struct SpgemmStretch {
  const std::int32_t* known;
  std::int32_t* columns;  ///< null: they are there
  Value* values;
  std::int32_t n, low, high;

  /// @param part  of rows in parts  @param each  entries of a part
  TESSERA_FUNCTION static SpgemmStretch of(const SpgemmArgs& args, std::int32_t row, std::int32_t part,
                                           std::int64_t each) {
    const SpgemmOffsets row_map{args.row_map, args.wide};
    const std::int64_t skipped = part * each;
    const std::int64_t to = row_map(row) + skipped, left = row_map(row + 1) - to;
    SpgemmStretch s;
    s.n = static_cast<std::int32_t>(left < each ? left : each);
    s.known = args.known != nullptr ? args.known + args.place(row) + skipped : args.columns + to;
    s.columns = args.known != nullptr ? args.columns + to : nullptr;
    s.values = static_cast<Value*>(args.values) + to;
    s.low = s.known[0];
    s.high = s.known[s.n - 1];
    return s;
  }
  TESSERA_FUNCTION std::int64_t width() const { return std::int64_t{high} - low + 1; }
};

/// The place of a column that is among n ascending ones.
TESSERA_FUNCTION int spgemm_place(const std::int32_t* column, int n, std::int32_t wanted) {
  int first = 0;
  for (int length = n; length > 1;) {
    const int half = length / 2;
    if (column[first + half] <= wanted) first += half;
    length -= half;
  }
  return first;
}

/// What of a row of B may be of columns [low, high]; a few entries on either side may be of others. Both ends at once,
/// so that loads are under way side by side, until few are left; while they ask for one entry, it is loaded once, as
/// lanes' loads are far from each other.
TESSERA_FUNCTION SpgemmPiece spgemm_narrowed(const std::int32_t* columns, const SpgemmPiece& piece, std::int32_t low,
                                             std::int32_t high) {
  constexpr std::int32_t few = 4;
  // Columns before `below` are below low, those from `above` on are above high.
  std::int32_t below = 0, not_below = piece.count, not_above = 0, above = piece.count;
  while (not_below - below > few || above - not_above > few) {
    const std::int32_t l = (below + not_below) / 2, h = (not_above + above) / 2;
    const bool low_end = not_below - below > few, high_end = above - not_above > few;
    const bool once = low_end && l == h;
    std::int32_t at_l = 0, own_h = 0;
    if (low_end) at_l = columns[l];
    if (high_end && !once) own_h = columns[h];
    const std::int32_t at_h = once ? at_l : own_h;
    if (low_end && at_l < low) below = l + 1;
    if (low_end && at_l >= low) not_below = l;
    if (high_end && at_h > high) above = h;
    if (high_end && at_h <= high) not_above = h + 1;
  }
  // Most pieces of a row of A with many entries have nothing in the part.
  if (above <= below) return {piece.begin, 0};
  const std::int32_t first = columns[below], last = columns[above - 1];
  if (last < low || first > high) return {piece.begin, 0};
  return {piece.begin + below, above - below};
}

/// add(lane) for lanes with a slot (>= 0): those of one slot in turn. The others' slots are of no other lane.
template <class Wave, class Add>
TESSERA_FUNCTION void spgemm_add_in_turn(const Wave& wave, const typename Wave::template Varying<std::int32_t>& slot,
                                         const Add& add) {
  typename Wave::template Varying<typename Wave::Mask> same;
  wave.same(same, slot);
  for (int turn = 0;; ++turn) {
    typename Wave::template Varying<bool> waits;
    wave.each([&](int lane) {
      const int own = Wave::rank(same(lane), lane);
      if (slot(lane) >= 0 && own == turn) add(lane);
      waits(lane) = slot(lane) >= 0 && own > turn;
    });
    if (wave.ballot(waits) == 0) break;
    wave.converge();
  }
}

/// Rows of up to `Holds` entries, a team of 2^Shift lanes per row.
template <class Wave, class Value, int Shift, int Holds>
class SpgemmWholeRowsKernel {
 public:
  static constexpr int lanes = 1 << Shift;
  static constexpr int rows = Wave::lanes / lanes;  ///< of a wave
  static constexpr int row_bytes = Holds * static_cast<int>(sizeof(Value) + sizeof(std::int32_t));
  static constexpr int bytes = rows * row_bytes;
  static constexpr int most_width = row_bytes / static_cast<int>(sizeof(Value));  ///< of sums by column

  /// Rows at [first, first + rows) of those by size, as far as they are below `end`.
  TESSERA_FUNCTION static void run(const Wave& wave, const SpgemmArgs& args, std::int64_t first, std::int64_t end,
                                   char* memory) {
    Varying<Stretch> stretch;
    Varying<Span> span;
    wave.each([&](int lane) {
      const std::int64_t i = first + (lane >> Shift);
      span(lane) = {0, 0};
      stretch(lane) = {};
      if (i >= end) return;
      const std::int32_t row = args.sizes[i];
      span(lane) = {args.A.row_map(row), args.A.row_map(row + 1)};
      const Stretch s = stretch(lane) = Stretch::of(args, row, 0, Holds);
      auto* const sum = reinterpret_cast<Value*>(row_of(memory, lane));
      auto* const column = reinterpret_cast<std::int32_t*>(sum + Holds);
      const bool dense = s.width() <= most_width;
      const int sums = dense ? static_cast<int>(s.width()) : s.n;
      for (int j = Products::own(lane); j < sums; j += lanes) sum[j] = 0;
      for (int j = Products::own(lane); j < s.n; j += lanes) {
        const std::int32_t c = s.known[j];
        if (!dense) column[j] = c;
        if (s.columns != nullptr) s.columns[j] = c;
      }
    });
    wave.converge();
    Products::each(wave, args, span, [&](int lane, std::int32_t c, Value a, Value b) {
      const Stretch& s = stretch(lane);
      auto* const sum = reinterpret_cast<Value*>(row_of(memory, lane));
      const auto* const column = reinterpret_cast<const std::int32_t*>(sum + Holds);
      Value& to = sum[s.width() <= most_width ? c - s.low : spgemm_place(column, s.n, c)];
      to = Wave::add_product(a, b, to);
    });
    wave.each([&](int lane) {
      const Stretch& s = stretch(lane);
      const auto* const sum = reinterpret_cast<const Value*>(row_of(memory, lane));
      const bool dense = s.width() <= most_width;
      for (int j = Products::own(lane); j < s.n; j += lanes) s.values[j] = sum[dense ? s.known[j] - s.low : j];
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Stretch = SpgemmStretch<Value>;
  using Products = SpgemmTeamProducts<Wave, Value, Shift, true, true>;
  using Span = typename Products::Span;
  TESSERA_FUNCTION static char* row_of(char* memory, int lane) { return memory + (lane >> Shift) * row_bytes; }
};

/// Parts of large rows, a wave per part: the part's pieces of rows of B are laid end to end and dealt out to the lanes,
/// however short they are. Lanes with products of one entry of C add them in turn.
template <class Wave, class Value>
class SpgemmPartsKernel {
 public:
  static constexpr int holds = SpgemmRowSizes::part_entries;
  static constexpr int at_once = 4;  ///< times as many products as lanes are under way
  struct Memory {
    alignas(16) char sums[holds * (sizeof(Value) + sizeof(std::int32_t))];  ///< and columns or bits, if not by column
    std::int64_t shift[Wave::lanes];
    Value a[Wave::lanes];
    std::int32_t start[Wave::lanes];
  };
  static constexpr int bytes = static_cast<int>((sizeof(Memory) + 15) / 16 * 16);
  static constexpr int most_width =
      holds + holds * static_cast<int>(sizeof(std::int32_t)) / static_cast<int>(sizeof(Value));
  static constexpr int words = holds / 2;
  TESSERA_FUNCTION static Value* sum_of(Memory& memory) { return reinterpret_cast<Value*>(memory.sums); }
  /// Columns; or, by 32 of them, bits and, from `words` on, how many are set before.
  TESSERA_FUNCTION static std::int32_t* column_of(Memory& memory) {
    return reinterpret_cast<std::int32_t*>(sum_of(memory) + holds);
  }

  TESSERA_FUNCTION static void run(const Wave& wave, const SpgemmArgs& args, const SpgemmRowPart& part, char* bytes) {
    auto& memory = *reinterpret_cast<Memory*>(bytes);
    const std::int64_t entries = args.count[part.row];
    const std::int64_t each = spgemm_each_part(args, part.row, entries);
    const Stretch s = Stretch::of(args, part.row, part.part, each);
    const How how = s.width() <= most_width ? How::Column : s.width() <= 32 * words ? How::Bits : How::Place;
    prepare(wave, s, how, memory);
    const std::int64_t first = args.A.row_map(part.row), end = args.A.row_map(part.row + 1);
    const bool cut = entries > each;
    Varying<SpgemmPiece> piece;
    next_pieces(wave, args, first, end, piece);
    for (std::int64_t e = first; e < end; e += Wave::lanes) {
      int pieces = 0;
      const std::int32_t products = look(wave, args, s, cut, e, piece, memory, pieces);
      next_pieces(wave, args, e + Wave::lanes, end, piece);
      if (products > 0) add(wave, args, s, how, products, pieces, memory);
    }
    const Value* const sum = sum_of(memory);
    wave.each([&](int lane) {
      for (int j = lane; j < s.n; j += Wave::lanes) s.values[j] = sum[how == How::Column ? s.known[j] - s.low : j];
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Mask = typename Wave::Mask;
  using Stretch = SpgemmStretch<Value>;
  /// Where the sum of a column is: at the column, at the number of bits set before it, or to be searched for.
  enum class How { Column, Bits, Place };
  struct Product {
    Varying<std::int32_t> column;
    Varying<Value> a, b;
    bool conflicts;  ///< may be of one entry
  };

  TESSERA_FUNCTION static void prepare(const Wave& wave, const Stretch& s, How how, Memory& memory) {
    Value* const sum = sum_of(memory);
    std::int32_t* const column = column_of(memory);
    auto* const bits = reinterpret_cast<std::uint32_t*>(column);
    const int used = (static_cast<int>(how == How::Bits ? s.width() : 0) + 31) / 32;
    wave.each([&](int lane) {
      const int sums = how == How::Column ? static_cast<int>(s.width()) : s.n;
      for (int j = lane; j < sums; j += Wave::lanes) sum[j] = 0;  // by column it goes on over `column`
      for (int j = lane; j < used; j += Wave::lanes) bits[j] = 0;
    });
    wave.converge();
    wave.each([&](int lane) {
      for (int j = lane; j < s.n; j += Wave::lanes) {
        const std::int32_t c = s.known[j];
        if (s.columns != nullptr) s.columns[j] = c;
        if (how == How::Place) column[j] = c;
        if (how == How::Bits) Wave::set_bits(bits + (c - s.low) / 32, 1u << (c - s.low) % 32);
      }
    });
    wave.converge();
    std::int32_t all = 0;
    for (int j = 0; j < used; j += Wave::lanes) {
      Varying<std::int32_t> before;
      wave.each([&](int lane) { before(lane) = j + lane < used ? count_bits(bits[j + lane]) : 0; });
      spgemm_scan(wave, before);
      wave.each([&](int lane) {
        if (j + lane < used) column[words + j + lane] = all + before(lane) - count_bits(bits[j + lane]);
      });
      all += spgemm_lane(wave, before, Wave::lanes - 1);
    }
    wave.converge();
  }
  TESSERA_FUNCTION static void next_pieces(const Wave& wave, const SpgemmArgs& args, std::int64_t e, std::int64_t end,
                                           Varying<SpgemmPiece>& piece) {
    wave.each([&](int lane) { piece(lane) = e + lane < end ? spgemm_piece(args, e + lane) : SpgemmPiece{0, 0}; });
  }
  /// What of the rows of B that entries [e, e + lanes) of A name may be in the part: where each piece starts among the
  /// products of all, those without any left out. A few products on either side may be of other parts.
  TESSERA_FUNCTION static std::int32_t look(const Wave& wave, const SpgemmArgs& args, const Stretch& s, bool cut,
                                            std::int64_t e, Varying<SpgemmPiece>& piece, Memory& memory, int& pieces) {
    Varying<std::int32_t> sum;
    Varying<bool> is;
    wave.each([&](int lane) {
      if (cut) piece(lane) = spgemm_narrowed(args.B.columns + piece(lane).begin, piece(lane), s.low, s.high);
      sum(lane) = piece(lane).count;
      is(lane) = piece(lane).count > 0;
    });
    const Mask mask = wave.ballot(is);
    pieces = Wave::count(mask);
    spgemm_scan(wave, sum);
    wave.each([&](int lane) {
      if (!is(lane)) return;
      const int to = Wave::rank(mask, lane);
      const std::int32_t start = sum(lane) - piece(lane).count;
      memory.start[to] = start;
      memory.shift[to] = piece(lane).begin - start;
      memory.a[to] = static_cast<const Value*>(args.A.values)[e + lane];
    });
    wave.converge();
    return spgemm_lane(wave, sum, Wave::lanes - 1);
  }
  TESSERA_FUNCTION static void add(const Wave& wave, const SpgemmArgs& args, const Stretch& s, How how,
                                   std::int32_t products, int pieces, Memory& memory) {
    Varying<std::int32_t> start;
    wave.each([&](int lane) { start(lane) = lane < pieces ? memory.start[lane] : INT32_MAX; });
    Value* const sum = sum_of(memory);
    const std::int32_t* const column = column_of(memory);
    int started = 0;
    for (std::int32_t at = 0; at < products; at += at_once * Wave::lanes) {
      Product product[at_once];
      TESSERA_UNROLL
      for (int i = 0; i < at_once; ++i) {
        load(wave, args, start, at + i * Wave::lanes, products, started, memory, product[i]);
      }
      TESSERA_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (at + i * Wave::lanes >= products) break;
        Varying<std::int32_t> slot;
        wave.each([&](int lane) {
          const std::int32_t c = product[i].column(lane);
          const bool is = at + i * Wave::lanes + lane < products && c >= s.low && c <= s.high;
          slot(lane) = is ? slot_of(column, s, how, c) : -1 - lane;  // of no other
        });
        const auto add_one = [&](int lane) {
          Value& to = sum[slot(lane)];
          to = Wave::add_product(product[i].a(lane), product[i].b(lane), to);
        };
        if (product[i].conflicts) {
          spgemm_add_in_turn(wave, slot, add_one);
        } else {
          wave.each([&](int lane) {
            if (slot(lane) >= 0) add_one(lane);
          });
        }
        wave.converge();
      }
    }
  }
  /// Products at [at, at + lanes); those behind the last are the last. Nothing here waits for what is loaded, not even
  /// a comparison, so that all products that are under way are so side by side.
  /// @param started  pieces that start before them; after: with them
  TESSERA_FUNCTION static void load(const Wave& wave, const SpgemmArgs& args, const Varying<std::int32_t>& start,
                                    std::int32_t at, std::int32_t products, int& started, const Memory& memory,
                                    Product& p) {
    Varying<Mask> bit;
    wave.each([&](int lane) {
      const std::int32_t from = start(lane) - at;
      bit(lane) = from >= 0 && from < Wave::lanes ? Mask{1} << from : 0;
    });
    const Mask starts = wave.any_bit(bit);
    wave.each([&](int lane) {
      const std::int32_t own = at + lane < products ? at + lane : products - 1;
      const int piece = started + Wave::rank(starts, lane) + static_cast<int>(starts >> lane & 1) - 1;
      const std::int64_t entry = memory.shift[piece] + own;
      p.column(lane) = args.B.columns[entry];
      p.b(lane) = static_cast<const Value*>(args.B.values)[entry];
      p.a(lane) = memory.a[piece];
    });
    const int new_ones = Wave::count(starts);
    p.conflicts = new_ones > (starts & 1 ? 1 : 0);
    started += new_ones;
  }
  TESSERA_FUNCTION static std::int32_t slot_of(const std::int32_t* column, const Stretch& s, How how,
                                               std::int32_t wanted) {
    const std::int32_t at = wanted - s.low;
    if (how == How::Column) return at;
    if (how == How::Place) return spgemm_place(column, s.n, wanted);
    const auto bits = static_cast<std::uint32_t>(column[at / 32]);
    return column[words + at / 32] + count_bits(bits & ((1u << at % 32) - 1));
  }
};

}  // namespace Tessera

#endif
