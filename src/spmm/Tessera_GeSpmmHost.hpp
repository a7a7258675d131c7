// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_HOST_HPP
#define TESSERA_SPMM_GE_SPMM_HOST_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/Tessera_ColumnReads.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_HostLanes.hpp"
#include "core/Tessera_HostNarrow.hpp"
#include "core/Tessera_Shares.hpp"
#include "spmm/Tessera_LengthOrder.hpp"
#include "spmm/Tessera_SpmmPieces.hpp"

/// \file
/// C := alpha A B + beta C on CPUs: for each row, the sums of a tile of columns stay in registers while the row's
/// entries go by.

namespace Tessera {
namespace Impl {

template <class Csr, class BT, class CT>
struct GeSpmmHostFunctor {
  using Sum = AccumulatorOf<typename Csr::value_type, BT, CT>;
  using offset = typename Csr::size_type;
  using Range = typename RowPieces<Sum>::template Range<offset>;
  static constexpr int most_vectors = 8;
  static constexpr int few_columns = 9;  ///< at once where rows of B are not contiguous
  /// Whether numbers of 16 bits are involved. AVX2 converts them, also so few that they do not fill its vectors.
  static constexpr bool narrow = sizeof(typename Csr::value_type) == 2 || sizeof(BT) == 2 || sizeof(CT) == 2;
  /// Whether columns of B that lie apart may be multiplied one after the other: to widen their numbers takes vectors.
  static constexpr bool column_by_column =
      std::is_same_v<Sum, float> && sizeof(typename Csr::value_type) == 2 && sizeof(BT) == 2;
  /// Whether there are vectors of two sums, for two columns and three.
  static constexpr bool pairs = std::is_same_v<Sum, float> && !narrow;
  /// Whether A and B have such numbers, and vectors of Isa bytes come with instructions that widen some at a time.
  template <int Isa>
  static constexpr bool by_vectors =
      std::is_same_v<Sum, float>&& host_widens_vectors<typename Csr::value_type, Isa>&& host_widens_vectors<BT, Isa>;
  static constexpr int most_rows = 32;  ///< of a tile: if rows of C are not contiguous, whole lines are written

  Csr A;
  Dense<const BT> b;
  Dense<CT> c;
  Sum alpha, beta;
  RowPieces<Sum> pieces;
  Shares shares;
  int vector_bytes;  ///< 8 (`pairs`), 16, 32 or 64
  bool avx2;         ///< whether the CPU has vectors of more than 16 bytes
  bool whole;        ///< whether rows of B are contiguous and fill a vector
  bool long_rows;    ///< sums of their own pay: one sum waits four cycles for each addition, but short rows overlap
  const std::int32_t* order = nullptr;  ///< of whole rows, one number by one (LengthOrder); null: as they are
  // Rows in one piece whose columns are taken in blocks (GeSpmmBlocksFunctor): of one block.
  const offset* map;      ///< row r has entries [map[r], map[r + next])
  std::int64_t next = 1;  ///< 1 where rows are taken whole
  bool adds = false;      ///< whether C has sums of other blocks, and rows that have nothing here are left out

  KOKKOS_FORCEINLINE_FUNCTION Range range(std::int64_t p) const {
    return pieces.table == nullptr ? Range{map[p], map[p + next], p, -1} : pieces.range(A, p);
  }
  /// Work: the entries, and one more per row. Pieces are as many for each share.
  std::int64_t begin_of(std::int64_t share) const {
    if (pieces.table != nullptr) return Shares::cut(shares.items, share, shares.count);
    return shares.begin(share, [&](std::int64_t row) { return static_cast<std::int64_t>(A.row_map()(row)) + row; });
  }

  /// Loops are compiled for both: to ask in each row costs short rows a third of their time.
  template <bool InOrder>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_at(std::int64_t place) const {
    return InOrder ? order[place] : place;
  }

  /// Columns [column, column + width) of C, of which the first `known` are stored already.
  struct Tile {
    std::int64_t column;
    int width, known;
  };
  /// Of a tile's columns those that C has: a copy of B may have zeros behind its own.
  KOKKOS_FORCEINLINE_FUNCTION int own(const Tile& tile) const {
    return static_cast<int>(std::min<std::int64_t>(tile.width, c.columns - tile.column));
  }
  /// n: numbers of a vector. Rows of B are contiguous and fill one.
  KOKKOS_FORCEINLINE_FUNCTION Tile tile_at(std::int64_t column, int n) const {
    const std::int64_t left = b.columns - column;
    if (left >= n) return {column, static_cast<int>(std::min<std::int64_t>(left, most_vectors * n)), 0};
    return {b.columns - n, n, static_cast<int>(n - left)};  // the last whole vector again
  }

  /// Sums of a tile of a vector's width or more in `Count` vectors; where the tile's width is no multiple of theirs,
  /// the last ones overlap.
  template <int Bytes, int Isa, int Count>
  struct Vectors {
    using Lanes = HostLanes<Sum, Bytes, Isa>;
    using Vector = typename Lanes::type;
    static constexpr int most_columns = Count * Lanes::count, bytes = Bytes, isa = Isa;
    const GeSpmmHostFunctor& f;
    const BT* from;
    int at[most_vectors];
    KOKKOS_FORCEINLINE_FUNCTION Vectors(const GeSpmmHostFunctor& functor, const Tile& tile)
        : f(functor), from(f.b.data + tile.column) {
      constexpr int n = Lanes::count;
      for (int k = 0; k < Count; ++k) at[k] = std::min(k * n, tile.width - n);
    }
    /// Whether results can be stored without a way through `out`.
    static constexpr bool direct = std::is_same_v<CT, Sum> || Lanes::template can_store<CT>;
    KOKKOS_FORCEINLINE_FUNCTION void scale(Vector& sum, const CT* to) const {
      Lanes::scale(sum, f.alpha);
      if (f.beta != Sum(0)) Lanes::add(sum, f.beta, to);
    }
    KOKKOS_FORCEINLINE_FUNCTION void store(CT* to, const Vector& sum) const {
      if constexpr (std::is_same_v<CT, Sum>) {
        std::memcpy(to, &sum, sizeof(sum));
      } else {
        Lanes::store(to, sum);
      }
    }
    /// To `out`, or scaled to `to` unless that is null.
    KOKKOS_FORCEINLINE_FUNCTION void operator()(const Range& r, Sum* out, CT* to) const {
      const auto* const values = f.A.values().data();
      const auto* const entries = f.A.entries().data();
      const std::int64_t stride = f.b.row_stride;
      Vector s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{};
      offset i = r.first;
      if constexpr (Count <= 2) {
        // Few sums would wait four cycles for each addition: two sets take turns. (In short rows without a loop of two
        // entries, or one set: rows overlap.)
        Vector t0{}, t1{};
        if (f.long_rows) {
          for (; i + 1 < r.last; i += 2) {
            const Sum a = host_widen<Sum, Isa>(values[i]), b = host_widen<Sum, Isa>(values[i + 1]);
            const BT* const x = from + static_cast<std::int64_t>(entries[i]) * stride;
            const BT* const y = from + static_cast<std::int64_t>(entries[i + 1]) * stride;
            Lanes::add(s0, a, x);
            if constexpr (Count > 1) Lanes::add(s1, a, x + at[1]);
            Lanes::add(t0, b, y);
            if constexpr (Count > 1) Lanes::add(t1, b, y + at[1]);
          }
        } else if constexpr (Count == 1) {
          for (; i < r.last; ++i) {
            Lanes::add(t0, host_widen<Sum, Isa>(values[i]), from + static_cast<std::int64_t>(entries[i]) * stride);
            const Vector sum = t0;
            t0 = s0;
            s0 = sum;
          }
        }
        for (; i < r.last; ++i) {
          const Sum a = host_widen<Sum, Isa>(values[i]);
          const BT* const x = from + static_cast<std::int64_t>(entries[i]) * stride;
          Lanes::add(s0, a, x);
          if constexpr (Count > 1) Lanes::add(s1, a, x + at[1]);
        }
        Lanes::add(s0, t0);
        if constexpr (Count > 1) Lanes::add(s1, t1);
      }
      for (; i < r.last; ++i) {
        const Sum a = host_widen<Sum, Isa>(values[i]);
        const BT* const x = from + static_cast<std::int64_t>(entries[i]) * stride;
        Lanes::add(s0, a, x);
        if constexpr (Count > 1) Lanes::add(s1, a, x + at[1]);
        if constexpr (Count > 2) Lanes::add(s2, a, x + at[2]);
        if constexpr (Count > 3) Lanes::add(s3, a, x + at[3]);
        if constexpr (Count > 4) {
          Lanes::add(s4, a, x + at[4]);
          Lanes::add(s5, a, x + at[5]);
        }
        if constexpr (Count > 6) {
          Lanes::add(s6, a, x + at[6]);
          Lanes::add(s7, a, x + at[7]);
        }
      }
      if constexpr (direct) {
        if (to != nullptr) {
          // Vectors overlap: all old numbers are read before any is written.
          scale(s0, to);
          if constexpr (Count > 1) scale(s1, to + at[1]);
          if constexpr (Count > 2) scale(s2, to + at[2]), scale(s3, to + at[3]);
          if constexpr (Count > 4) scale(s4, to + at[4]), scale(s5, to + at[5]);
          if constexpr (Count > 6) scale(s6, to + at[6]), scale(s7, to + at[7]);
          store(to, s0);
          if constexpr (Count > 1) store(to + at[1], s1);
          if constexpr (Count > 2) store(to + at[2], s2), store(to + at[3], s3);
          if constexpr (Count > 4) store(to + at[4], s4), store(to + at[5], s5);
          if constexpr (Count > 6) store(to + at[6], s6), store(to + at[7], s7);
          return;
        }
      }
      std::memcpy(out, &s0, sizeof(Vector));
      if constexpr (Count > 1) std::memcpy(out + at[1], &s1, sizeof(Vector));
      if constexpr (Count > 2) std::memcpy(out + at[2], &s2, sizeof(Vector));
      if constexpr (Count > 3) std::memcpy(out + at[3], &s3, sizeof(Vector));
      if constexpr (Count > 4) {
        std::memcpy(out + at[4], &s4, sizeof(Vector));
        std::memcpy(out + at[5], &s5, sizeof(Vector));
      }
      if constexpr (Count > 6) {
        std::memcpy(out + at[6], &s6, sizeof(Vector));
        std::memcpy(out + at[7], &s7, sizeof(Vector));
      }
    }
  };
  /// Sums of `Count` single columns of B, whatever its strides.
  template <int Isa, int Count>
  struct Singles {
    static constexpr int most_columns = Count, bytes = 0, isa = Isa;
    static constexpr bool direct = false;
    const GeSpmmHostFunctor& f;
    const BT* from;
    KOKKOS_FORCEINLINE_FUNCTION Singles(const GeSpmmHostFunctor& functor, const Tile& tile)
        : f(functor), from(f.b.data + tile.column * f.b.column_stride) {}
    KOKKOS_FORCEINLINE_FUNCTION void operator()(const Range& r, Sum* out, CT*) const {
      const auto* const values = f.A.values().data();
      const auto* const entries = f.A.entries().data();
      const std::int64_t stride = f.b.column_stride, row_stride = f.b.row_stride;
      const auto last = static_cast<std::int64_t>(r.last);
      auto i = static_cast<std::int64_t>(r.first);
      const auto entry = [&](Sum(&sums)[Count], std::int64_t at) {
        add(sums, host_widen<Sum, Isa>(values[at]), from + static_cast<std::int64_t>(entries[at]) * row_stride, stride,
            std::make_integer_sequence<int, Count>());
      };
      Sum all[Count] = {};
      if constexpr (Count <= 3) {
        if (f.long_rows) {
          Sum other[Count] = {};
          for (; i + 2 <= last; i += 2) {
            entry(all, i);
            entry(other, i + 1);
            TESSERA_HOST_ONE_BY_ONE(i);
          }
          for (int k = 0; k < Count; ++k) all[k] += other[k];
        }
      }
      for (; i < last; ++i) {
        entry(all, i);
        TESSERA_HOST_ONE_BY_ONE(i);
      }
      for (int k = 0; k < Count; ++k) out[k] = all[k];
    }
    template <int... J>
    KOKKOS_FORCEINLINE_FUNCTION static void add(Sum (&all)[Count], Sum a, const BT* x, std::int64_t stride,
                                                std::integer_sequence<int, J...>) {
      ((all[J] += a * host_widen<Sum, Isa>(x[J * stride])), ...);
    }
  };

  /// Sums of two or three columns of 16 bits, neighbours in B, in a vector whose last places stay empty.
  template <int Isa, int Count>
  struct Few {
    using Lanes = HostLanes<Sum, 16, Isa>;
    using Vector = typename Lanes::type;
    static constexpr int most_columns = Lanes::count, bytes = 0, isa = Isa;
    static constexpr bool direct = std::is_same_v<CT, Sum> || Lanes::template can_store<CT>;
    const GeSpmmHostFunctor& f;
    KOKKOS_FORCEINLINE_FUNCTION Few(const GeSpmmHostFunctor& functor, const Tile&) : f(functor) {}
    KOKKOS_FORCEINLINE_FUNCTION void operator()(const Range& r, Sum* out, CT* to) const {
      Vector sum;
      host_narrow_rows<Isa, Count>(sum, f.A.values().data(), f.A.entries().data(), f.b.data, f.b.row_stride,
                                   static_cast<std::int64_t>(r.first), static_cast<std::int64_t>(r.last));
      if constexpr (direct) {
        if (to != nullptr) return store(to, sum);
      }
      std::memcpy(out, &sum, sizeof(sum));
    }
    KOKKOS_FORCEINLINE_FUNCTION void store(CT* to, Vector& sum) const {
      Lanes::scale(sum, f.alpha);
      if (f.beta != Sum(0)) {
        Vector old;
        Lanes::template load_first<Count>(old, to);
        Lanes::scale(old, f.beta);
        Lanes::add(sum, old);
      }
      CT rounded[Lanes::count];
      if constexpr (std::is_same_v<CT, Sum>) {
        std::memcpy(rounded, &sum, sizeof(sum));
      } else {
        Lanes::store(rounded, sum);
      }
      std::memcpy(to, rounded, Count * sizeof(CT));
    }
  };

  /// As many neighbours as vectors of so many bytes hold, in 16 bits: rounded together. Returns how many.
  template <int Bytes, int Isa>
  KOKKOS_FORCEINLINE_FUNCTION int store_vectors(CT* to, const Sum* sum, int width) const {
    int j = 0;
    if constexpr (Bytes > 0) {
      using Lanes = HostLanes<Sum, Bytes, Isa>;
      if constexpr (Lanes::template can_store<CT>) {
        for (; j + Lanes::count <= width; j += Lanes::count) {
          typename Lanes::type v, old;
          Lanes::load(v, sum + j);
          v *= alpha;
          if (beta != Sum(0)) {
            Lanes::load(old, to + j);
            v += beta * old;
          }
          Lanes::store(to + j, v);
        }
      }
    }
    return j;
  }
  template <class Sums>
  KOKKOS_FORCEINLINE_FUNCTION void store_row(const Range& r, const Tile& tile, const Sum* sum) const {
    constexpr int Isa = Sums::isa, most = Sums::most_columns;
    const std::int64_t column = tile.column + tile.known;
    const int width = std::min(own(tile), most) - tile.known;  // never more, which the compiler cannot know
    sum += tile.known;
    if (r.partial >= 0) {
      std::copy(sum, sum + width, pieces.partials + r.partial * pieces.partial_ld + column);
      return;
    }
    CT* const to = c.at(r.row, column);
    const std::int64_t stride = c.column_stride;
    // Loops of their own for neighbours, with beta known: so they become vector instructions.
    if (stride != 1) {
      for (int j = 0; j < width; ++j) host_store_scaled<Isa>(to + j * stride, alpha, sum[j], beta);
      return;
    }
    int j = store_vectors<Sums::bytes, Isa>(to, sum, width);
    if (beta == Sum(0)) {
      for (; j < width; ++j) to[j] = host_round<CT, Isa>(alpha * sum[j]);
    } else {
      for (; j < width; ++j) to[j] = CT(scaled_sum(alpha, sum[j], beta, to[j]));
    }
  }

  /// Pieces of neighbouring rows are apart in A, which prefetchers of CPUs do not follow.
  KOKKOS_FORCEINLINE_FUNCTION void ask_for(std::int64_t p) const {
#ifdef __GNUC__
    if (p >= pieces.count) return;
    constexpr auto line = static_cast<std::int64_t>(64 / sizeof(*A.values().data()));
    const auto at = static_cast<std::int64_t>(map[p]);
    __builtin_prefetch(A.values().data() + at);
    __builtin_prefetch(A.values().data() + std::min(at + line, static_cast<std::int64_t>(A.nnz())));
    __builtin_prefetch(A.entries().data() + at);
#endif
  }

  /// A tile of pieces [first, first + count).
  template <class Sums>
  KOKKOS_FORCEINLINE_FUNCTION void block(std::int64_t first, int count, const Tile& tile) const {
    const Sums sums(*this, tile);
    if (c.column_stride == 1 || pieces.table != nullptr) {
      const bool straight = Sums::direct && c.column_stride == 1 && tile.known == 0;
      Sum sum[Sums::most_columns] = {};
      for (int k = 0; k < count; ++k) {
        const Range r = range(first + k);
        if (next != 1) ask_for(first + k + 2);
        if (adds && r.first == r.last) continue;
        CT* const to = straight && r.partial < 0 ? c.at(r.row, tile.column) : nullptr;
        sums(r, sum, to);
        if (to != nullptr) continue;
        store_row<Sums>(r, tile, sum);
      }
      return;
    }
    Sum sum[most_rows][Sums::most_columns] = {};
    for (int k = 0; k < count; ++k) sums(range(first + k), sum[k], nullptr);
    for (int j = tile.known, width = own(tile); j < width; ++j) {
      CT* to = c.at(first, tile.column + j);
      for (int k = 0; k < count; ++k, to += c.row_stride) host_store_scaled<Sums::isa>(to, alpha, sum[k][j], beta);
    }
  }
  /// Entry i times the one column of B.
  template <int Isa, class Index>
  KOKKOS_FORCEINLINE_FUNCTION Sum product(Index i) const {
    return host_widen<Sum, Isa>(A.values().data()[i]) *
           host_widen<Sum, Isa>(b.data[static_cast<std::int64_t>(A.entries().data()[i]) * b.row_stride]);
  }
  /// One column, rows in one piece: four sums from `Long` entries on, as one would wait four cycles for each addition.
  /// In sums of float entries are taken one by one, and where C is overwritten there is no branch on beta: few branches
  /// per row are what short rows want. (In FP64 both depend on where the code lies: perf_test/notes/hosts.md.)
  template <int Isa, int Long, bool Overwrites, bool InOrder = false>
  KOKKOS_FORCEINLINE_FUNCTION void column_of(std::int64_t begin, std::int64_t end) const {
    using Index = std::conditional_t<sizeof(Sum) == 4, std::int64_t, offset>;
    const GeSpmmHostFunctor f = *this;  // a copy, which stays in registers
    const auto* const map = f.A.row_map().data();
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t row = f.template row_at<InOrder>(place);
      auto i = static_cast<Index>(map[row]);
      const auto last = static_cast<Index>(map[row + 1]);
      Sum s0(0);
      if (last - i >= Long) {
        Sum s1(0), s2(0), s3(0);
        for (; i + 4 <= last; i += 4) {
          s0 += f.template product<Isa>(i);
          s1 += f.template product<Isa>(i + 1);
          s2 += f.template product<Isa>(i + 2);
          s3 += f.template product<Isa>(i + 3);
          if constexpr (sizeof(Sum) == 4) TESSERA_HOST_ONE_BY_ONE(i);
        }
        s0 = (s0 + s1) + (s2 + s3);
      }
      for (; i < last; ++i) {
        s0 += f.template product<Isa>(i);
        if constexpr (sizeof(Sum) == 4) TESSERA_HOST_ONE_BY_ONE(i);
      }
      host_store_scaled<Isa>(f.c.at(row, 0), f.alpha, s0, Overwrites ? Sum(0) : f.beta);
    }
  }
  /// Whether entries are taken four at a time. Not where rows have hardly two, or are short and alike, as far as eight
  /// of them show: there a loop over the entries is never mispredicted.
  bool fours_pay() const {
    const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
    if (nnz >= 8 * rows || nnz < 2 * rows) return nnz >= 8 * rows;
    const auto* const map = A.row_map().data();
    const auto length = [&](std::int64_t k) {
      const std::int64_t row = Shares::cut(rows, 2 * k + 1, 16);
      return map[row + 1] - map[row];
    };
    for (std::int64_t k = 1; k < 8; ++k) {
      if (length(k) != length(0)) return true;
    }
    return false;
  }
  /// One column of 16 bits, of a matrix of such numbers, rows in one piece.
  template <int Isa, bool Overwrites>
  KOKKOS_FORCEINLINE_FUNCTION void narrow_column_of(std::int64_t begin, std::int64_t end) const {
    const GeSpmmHostFunctor f = *this;
    const auto* const map = f.A.row_map().data();
    const auto* const values = f.A.values().data();
    const auto* const entries = f.A.entries().data();
    for (std::int64_t row = begin; row < end; ++row) {
      typename HostLanes<Sum, 16, Isa>::type sum;
      host_narrow_dot<Isa>(sum, values, entries, f.b.data, f.b.row_stride, static_cast<std::int64_t>(map[row]),
                           static_cast<std::int64_t>(map[row + 1]));
      host_store_scaled<Isa>(f.c.at(row, 0), f.alpha, HostLanes<Sum, 16, Isa>::total(sum),
                             Overwrites ? Sum(0) : f.beta);
    }
  }
  template <int Isa>
  KOKKOS_FORCEINLINE_FUNCTION void column(std::int64_t begin, std::int64_t end, bool several = false) const {
    if constexpr (by_vectors<Isa>) {
      if (several || fours_pay()) {
        return beta == Sum(0) ? narrow_column_of<Isa, true>(begin, end) : narrow_column_of<Isa, false>(begin, end);
      }
    }
    if (order != nullptr) return column_of<Isa, 64, false, true>(begin, end);
    if constexpr (sizeof(Sum) == 4) {
      if (beta == Sum(0)) {
        return long_rows ? column_of<Isa, 8, true>(begin, end) : column_of<Isa, 64, true>(begin, end);
      }
    }
    column_of<Isa, 8, false>(begin, end);
  }
  /// Columns that lie apart, one after the other, some rows at a time so that these stay in the second cache.
  template <int Isa>
  KOKKOS_FORCEINLINE_FUNCTION void columns(std::int64_t begin, std::int64_t end) const {
    if (b.columns == 1) return column<Isa>(begin, end);
    constexpr std::int64_t some = 4096;
    for (std::int64_t first = begin; first < end; first += some) {
      GeSpmmHostFunctor f = *this;
      f.b.columns = f.c.columns = 1;
      for (std::int64_t j = 0; j < b.columns; ++j) {
        f.b.data = b.at(0, j);
        f.c.data = c.at(0, j);
        f.template column<Isa>(first, std::min(first + some, end), true);
      }
    }
  }
  template <int Bytes, int Isa = Bytes>
  KOKKOS_FORCEINLINE_FUNCTION void run(std::int64_t begin, std::int64_t end) const {
    constexpr int n = HostLanes<Sum, Bytes, Isa>::count;
    // Tiles of a row one after the other, so that a row of B is read at once; rows of a tile where that is the same, or
    // where C wants it.
    const int rows = c.column_stride == 1 && b.columns > most_vectors * n ? 1 : most_rows;
    for (std::int64_t p = begin; p < end; p += rows) {
      const int count = static_cast<int>(std::min<std::int64_t>(rows, end - p));
      for (std::int64_t column = 0; column < b.columns;) {
        const Tile tile = tile_at(column, n);
        const int wide = (tile.width + n - 1) / n;
        if (wide == 1) {
          block<Vectors<Bytes, Isa, 1>>(p, count, tile);
        } else if (Bytes < Isa || wide == 2) {  // fewer columns than the CPU's vectors hold
          block<Vectors<Bytes, Isa, 2>>(p, count, tile);
        } else if constexpr (Bytes == Isa) {
          if (wide > 6) {
            block<Vectors<Bytes, Isa, 8>>(p, count, tile);
          } else if (wide > 4) {
            block<Vectors<Bytes, Isa, 6>>(p, count, tile);
          } else {
            block<Vectors<Bytes, Isa, 4>>(p, count, tile);
          }
        }
        column = tile.column + tile.width;
      }
    }
  }
  /// Columns of B that lie apart, or fewer than a vector holds. More than some are read for many rows at a time, whose
  /// entries stay in the second cache: CPUs follow few columns at once.
  template <int Isa>
  KOKKOS_FORCEINLINE_FUNCTION void singles(std::int64_t begin, std::int64_t end) const {
    const std::int64_t mean = static_cast<std::int64_t>(A.nnz()) / std::max<std::int64_t>(pieces.count, 1);
    const std::int64_t most = std::clamp<std::int64_t>(256 / (mean + 1), 1, 32) * most_rows;
    for (std::int64_t first = begin; first < end; first += most) {
      const std::int64_t last = std::min(first + most, end);
      for (std::int64_t column = 0; column < b.columns;) {
        const std::int64_t left = b.columns - column;
        const Tile tile{column, static_cast<int>(left <= few_columns ? left : std::min<std::int64_t>(left - 4, 8)), 0};
        for (std::int64_t p = first; p < last; p += most_rows) {
          const int count = static_cast<int>(std::min<std::int64_t>(most_rows, last - p));
          singles_of<Isa>(p, count, tile, std::make_integer_sequence<int, few_columns>());
        }
        column += tile.width;
      }
    }
  }
  template <int Isa, int... Less>
  KOKKOS_FORCEINLINE_FUNCTION void singles_of(std::int64_t first, int count, const Tile& tile,
                                              std::integer_sequence<int, Less...>) const {
    if constexpr (by_vectors<Isa>) {
      if (b.column_stride == 1 && tile.width == 2) return block<Few<Isa, 2>>(first, count, tile);
      if (b.column_stride == 1 && tile.width == 3) return block<Few<Isa, 3>>(first, count, tile);
    }
    // Who has copied B may have filled its rows up with columns that C has not.
    if (pieces.table == nullptr && own(tile) == tile.width) {
      ((tile.width == Less + 1 ? whole_rows<Isa, Less + 1>(first, count, tile) : void()), ...);
    } else {
      ((tile.width == Less + 1 ? block<Singles<Isa, Less + 1>>(first, count, tile) : void()), ...);
    }
  }
  /// Single columns of rows in one piece: sums go from registers to C.
  template <int Isa, int Count>
  KOKKOS_FORCEINLINE_FUNCTION void whole_rows(std::int64_t first, int count, const Tile& tile) const {
    constexpr bool orders = Count <= LengthOrder::most_columns;
    if (orders && order != nullptr) return rows_of_singles<Isa, Count, orders>(first, count, tile);
    rows_of_singles<Isa, Count, false>(first, count, tile);
  }
  template <int Isa, int Count, bool InOrder>
  KOKKOS_FORCEINLINE_FUNCTION void rows_of_singles(std::int64_t first, int count, const Tile& tile) const {
    const Singles<Isa, Count> sums(*this, tile);
    const std::int64_t stride = c.column_stride;
    const Sum scale = alpha, scale_old = beta;  // stores cannot change these
    for (std::int64_t place = first; place < first + count; ++place) {
      const std::int64_t row = row_at<InOrder>(place);
      Sum sum[Count];
      sums(pieces.range(A, row), sum, nullptr);
      CT* const to = c.at(row, tile.column);
      if (scale_old == Sum(0)) {
        for (int j = 0; j < Count; ++j) to[j * stride] = host_round<CT, Isa>(scale * sum[j]);
      } else {
        for (int j = 0; j < Count; ++j) host_store_scaled<Isa>(to + j * stride, scale, sum[j], scale_old);
      }
    }
  }

#ifdef TESSERA_HOST_HAS_TARGETS
  TESSERA_HOST_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
  void run64(std::int64_t begin, std::int64_t end) const { run<64>(begin, end); }
  TESSERA_HOST_TARGET("avx2,fma") void run32(std::int64_t begin, std::int64_t end) const { run<32>(begin, end); }
  TESSERA_HOST_TARGET("avx2,fma") void run16(std::int64_t begin, std::int64_t end) const { run<16, 32>(begin, end); }
  TESSERA_HOST_TARGET("avx2,fma") void run8(std::int64_t begin, std::int64_t end) const {
    if constexpr (pairs) run<8, 32>(begin, end);
  }
  TESSERA_HOST_TARGET("avx2,fma") void singles32(std::int64_t begin, std::int64_t end) const {
    singles<32>(begin, end);
  }
  TESSERA_HOST_TARGET("avx2,fma") void column32(std::int64_t begin, std::int64_t end) const { columns<32>(begin, end); }
#endif
  // Functions of their own, with registers of their own.
  TESSERA_HOST_NOINLINE void singles_plain(std::int64_t begin, std::int64_t end) const { singles<16>(begin, end); }
  TESSERA_HOST_NOINLINE void column_plain(std::int64_t begin, std::int64_t end) const { columns<16>(begin, end); }
  /// Pieces [begin, end).
  void multiply(std::int64_t begin, std::int64_t end) const {
    const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
    const bool each = column_by_column && b.column_stride != 1 && ColumnReads::one_after_other(rows, nnz, b.columns);
    const bool one = (b.columns == 1 || each) && pieces.table == nullptr;
#ifdef TESSERA_HOST_HAS_TARGETS
    if (!whole && avx2) return one ? column32(begin, end) : singles32(begin, end);
#endif
    if (one) return column_plain(begin, end);
    if (!whole) return singles_plain(begin, end);
#ifdef TESSERA_HOST_HAS_TARGETS
    if (vector_bytes == 64) return run64(begin, end);
    if (vector_bytes == 32) return run32(begin, end);
    if constexpr (pairs) {
      if (vector_bytes == 8) return run8(begin, end);
    }
    if (avx2) return run16(begin, end);
#endif
    run<16>(begin, end);
  }
  void operator()(const std::int64_t share) const { multiply(begin_of(share), begin_of(share + 1)); }
};

}  // namespace Impl
}  // namespace Tessera

#endif
