// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_DIA_HPP
#define TESSERA_SPGEMM_SPGEMM_DIA_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/Tessera_Arena.hpp"
#include "core/Tessera_HugePages.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// SpgemmAlgorithm::Dia, on any execution space: A and B by diagonals, a number and a bit per row. The offsets of a
/// diagonal a of A and a diagonal b of B add up to that of a diagonal of C, to which a_i b_(i + offset of a) belongs
/// [Xie et al., "IA-SpGEMM", PPoPP'19]. C is not stored by diagonals: a host sums 64 rows of a diagonal of C, a device
/// one, and writes them to their places in C's rows. Diagonals of A follow one another in each sum, which is the order
/// of A's row. Bits, and not numbers, say what is an entry.

namespace Tessera {
namespace Impl {

/// A bit per row; a type that devices have atomics for.
using SpgemmDiaWord = unsigned long long;

/// Rows that a thread takes together.
template <class Csr>
constexpr int spgemm_dia_rows = Compat::is_host_v<typename Csr::execution_space> ? 64 : 1;

/// A matrix by diagonals.
template <class Csr>
struct SpgemmDiagonals {
  std::int64_t rows = 0, stride = 0;  ///< stride: slots of a diagonal
  std::int64_t count = 0;
  const std::int64_t* offset = nullptr;  ///< column - row, ascending
  SpgemmDiaWord* bits = nullptr;         ///< per diagonal a word for each 64 rows, one of zeros before and one behind
  /// The number of row i on diagonal d is values[d * stride + i], 0 where no entry is. 64 zeros before and behind all.
  typename Csr::value_type* values = nullptr;

  KOKKOS_INLINE_FUNCTION std::int64_t words() const { return stride / 64 + 2; }
  /// Whether `row` and the 63 after it have entries on a diagonal; row > -64, and not behind the last one.
  KOKKOS_INLINE_FUNCTION SpgemmDiaWord entries_from(std::int64_t diagonal, std::int64_t row) const {
    const auto at = static_cast<std::uint64_t>(row + 64);
    const SpgemmDiaWord* const word = bits + diagonal * words() + at / 64;
    const auto shift = static_cast<int>(at % 64);
    return word[0] >> shift | word[1] << 1 << (63 - shift);
  }
};

/// The diagonals that a matrix has, marked; counts what is out of order in its rows. A row like the one above marks
/// nothing new.
template <class Csr>
struct SpgemmMarkDiagonals {
  CsrArrays<Csr> M;
  std::uint32_t* marks;
  KOKKOS_INLINE_FUNCTION bool is_like(std::int64_t first, std::int64_t last, std::int64_t above) const {
    if (first - above != last - first) return false;
    for (std::int64_t e = first; e < last; ++e) {
      if (M.entries()(e) - M.entries()(e - (first - above)) != 1) return false;
    }
    return true;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& disorder) const {
    const std::int64_t first = row_begin(M, row), last = row_begin(M, row + 1);
    if (row > 0 && is_like(first, last, row_begin(M, row - 1))) return;
    for (std::int64_t e = first; e < last; ++e) {
      if (e > first && M.entries()(e) <= M.entries()(e - 1)) ++disorder;
      const std::int64_t at = static_cast<std::int64_t>(M.entries()(e)) - row + static_cast<std::int64_t>(M.rows()) - 1;
      const std::uint32_t bit = std::uint32_t{1} << at % 32;
      if ((marks[at / 32] & bit) == 0) Kokkos::atomic_or(marks + at / 32, bit);
    }
  }
};
/// Their offsets, over the words of marks.
struct SpgemmListDiagonals {
  using value_type = std::int64_t;
  const std::uint32_t* marks;
  std::int64_t rows;
  std::int64_t* offset;  ///< null: they are counted
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w, std::int64_t& sum, const bool final) const {
    std::int64_t at = sum;
    for (std::uint32_t left = marks[w]; final && offset != nullptr && left != 0; left &= left - 1) {
      offset[at++] = 32 * w + spgemm_bits((left & (0u - left)) - 1) - (rows - 1);
    }
    sum += spgemm_bits(marks[w]);
  }
};

/// The bits of a matrix, which are zero before.
template <class Csr>
struct SpgemmFillBits {
  CsrArrays<Csr> M;
  SpgemmDiagonals<Csr> to;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t block) const {
    constexpr int rows_per = spgemm_dia_rows<Csr>;
    const std::int64_t end = (block + 1) * rows_per < to.rows ? (block + 1) * rows_per : to.rows;
    for (std::int64_t row = block * rows_per; row < end; ++row) {
      std::int64_t d = 0;
      for (std::int64_t e = row_begin(M, row); e < row_begin(M, row + 1); ++e, ++d) {
        while (to.offset[d] != static_cast<std::int64_t>(M.entries()(e)) - row) ++d;
        SpgemmDiaWord* const word = to.bits + d * to.words() + row / 64 + 1;
        const SpgemmDiaWord bit = SpgemmDiaWord{1} << row % 64;
        if (rows_per == 64) {
          *word |= bit;  // of this thread alone
        } else {
          Kokkos::atomic_or(word, bit);
        }
      }
    }
  }
};
/// The numbers of a matrix, over the slots of a diagonal.
template <class Csr>
struct SpgemmFillDiagonals {
  CsrArrays<Csr> M;
  SpgemmDiagonals<Csr> to;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    if (row < 64) to.values[row - 64] = to.values[to.count * to.stride + row] = 0;
    std::int64_t e = row < to.rows ? row_begin(M, row) : 0;
    const std::int64_t last = row < to.rows ? row_begin(M, row + 1) : 0;
    auto* const slot = to.values + row;
    if (last - e == to.count) {
      for (std::int64_t d = 0; d < to.count; ++d) slot[d * to.stride] = M.values()(e + d);
      return;
    }
    for (std::int64_t d = 0; d < to.count; ++d) {
      const bool here = e < last && static_cast<std::int64_t>(M.entries()(e)) - row == to.offset[d];
      slot[d * to.stride] = here ? M.values()(e) : 0;
      e += here;
    }
  }
};

/// A diagonal of A and one of B.
struct SpgemmDiaPair {
  std::int32_t a, b;
};
/// A diagonal of C: its pairs go from `first` to that of the next one, diagonals of A ascending.
struct SpgemmDiaSum {
  std::int64_t offset, first;
};

/// What counting and summing share.
template <class Csr>
struct SpgemmDiaRows {
  SpgemmDiagonals<Csr> A, B;
  const SpgemmDiaPair* pair = nullptr;
  const SpgemmDiaSum* diagonal = nullptr;  ///< of C, and one more
  std::int64_t diagonals = 0;

  static constexpr int rows_per = spgemm_dia_rows<Csr>;
  /// Of a word whose rows have all an entry.
  static constexpr SpgemmDiaWord all = rows_per == 64 ? ~SpgemmDiaWord{0} : SpgemmDiaWord{1};

  /// Which rows from `row` on have a product of these diagonals.
  KOKKOS_INLINE_FUNCTION SpgemmDiaWord products(const SpgemmDiaPair& p, std::int64_t row) const {
    const SpgemmDiaWord a = A.entries_from(p.a, row) & all;
    return a == 0 ? 0 : a & B.entries_from(p.b, row + A.offset[p.a]);
  }
};

/// Entries of C's rows.
template <class Csr>
struct SpgemmDiaCount : SpgemmDiaRows<Csr> {
  std::int32_t* count;
  SpgemmDiaCount(const SpgemmDiaRows<Csr>& rows, std::int32_t* counts) : SpgemmDiaRows<Csr>(rows), count(counts) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t block) const {
    constexpr int n = SpgemmDiaRows<Csr>::rows_per;
    const std::int64_t row = block * n;
    std::int32_t found[n] = {}, whole = 0;
    for (std::int64_t d = 0; d < this->diagonals; ++d) {
      SpgemmDiaWord any = 0;
      for (std::int64_t p = this->diagonal[d].first; p < this->diagonal[d + 1].first && any != this->all; ++p) {
        any |= this->products(this->pair[p], row);
      }
      if (any == this->all) {
        ++whole;
      } else if (any != 0) {
        for (int r = 0; r < n; ++r) found[r] += static_cast<std::int32_t>(any >> r & 1);
      }
    }
    for (int r = 0; r < n && row + r < this->A.rows; ++r) count[row + r] = whole + found[r];
  }
};

/// Numbers of C, with their columns or without.
template <class Csr>
struct SpgemmDiaNumbers : SpgemmDiaRows<Csr> {
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;
  const Offset* row_map;
  Ordinal* columns;  ///< null: they stay
  Scalar* values;
  SpgemmDiaNumbers(const SpgemmDiaRows<Csr>& base, const Offset* rows, Ordinal* cols, Scalar* numbers)
      : SpgemmDiaRows<Csr>(base), row_map(rows), columns(cols), values(numbers) {}
  static constexpr int rows_per = SpgemmDiaRows<Csr>::rows_per;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t block) const {
    const std::int64_t row = block * rows_per;
    Offset next[rows_per] = {};
    for (int r = 0; r < rows_per && row + r < this->A.rows; ++r) next[r] = row_map[row + r];
    // Columns of these rows come to their places in steps; those of the next rows are asked for meanwhile.
    std::int64_t ahead = first_of_row(row + rows_per);
    const std::int64_t ahead_end = first_of_row(row + 2 * rows_per), each = (ahead_end - ahead) / (this->diagonals + 1);
    for (std::int64_t d = 0; d < this->diagonals; ++d) {
      if constexpr (rows_per > 1) {  // else half of the time is spent waiting for C's lines
        const std::int64_t end = d + 1 < this->diagonals ? ahead + each : ahead_end;
        for (; ahead < end; ahead += 8) {
          __builtin_prefetch(values + ahead, 1);
          if (columns != nullptr) __builtin_prefetch(columns + ahead, 1);
        }
      }
      Scalar sum[rows_per];
      const SpgemmDiaWord any = sum_up(this->diagonal[d].first, this->diagonal[d + 1].first, row, sum);
      if (any != 0) write(any, row + this->diagonal[d].offset, sum, next);
    }
  }

  KOKKOS_INLINE_FUNCTION std::int64_t first_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(row_map[row < this->A.rows ? row : this->A.rows]);
  }
  /// Where no entry is, a product of a zero is added, which changes no sum; but with an infinite or undefined factor,
  /// and then products of entries alone are added.
  KOKKOS_INLINE_FUNCTION SpgemmDiaWord sum_up(std::int64_t first, std::int64_t last, std::int64_t row,
                                              Scalar* sum) const {
    SpgemmDiaWord any = 0;
    bool gaps = false;
    for (std::int64_t p = first; p < last; ++p) {
      const SpgemmDiaWord own = this->products(this->pair[p], row);
      if (own == 0) continue;
      const Scalar *const a = first_of_a(p, row), *const b = first_of_b(p, row);
      if (any == 0) {
        for (int r = 0; r < rows_per; ++r) sum[r] = Scalar(0) + a[r] * b[r];  // no negative zeros
      } else {
        for (int r = 0; r < rows_per; ++r) sum[r] += a[r] * b[r];
      }
      any |= own;
      gaps = gaps || own != this->all;
    }
    if (!gaps) return any;
    int undefined = 0;
    for (int r = 0; r < rows_per; ++r) undefined += !(sum[r] - sum[r] == Scalar(0));
    if (undefined > 0) sum_entries(first, last, row, sum);
    return any;
  }
  KOKKOS_INLINE_FUNCTION void sum_entries(std::int64_t first, std::int64_t last, std::int64_t row, Scalar* sum) const {
    for (int r = 0; r < rows_per; ++r) sum[r] = 0;
    for (std::int64_t p = first; p < last; ++p) {
      const SpgemmDiaWord own = this->products(this->pair[p], row);
      if (own == 0) continue;
      const Scalar *const a = first_of_a(p, row), *const b = first_of_b(p, row);
      for (int r = 0; r < rows_per; ++r) {
        if ((own >> r & 1) != 0) sum[r] += a[r] * b[r];
      }
    }
  }
  KOKKOS_INLINE_FUNCTION const Scalar* first_of_a(std::int64_t p, std::int64_t row) const {
    return this->A.values + this->pair[p].a * this->A.stride + row;
  }
  KOKKOS_INLINE_FUNCTION const Scalar* first_of_b(std::int64_t p, std::int64_t row) const {
    return this->B.values + this->pair[p].b * this->B.stride + row + this->A.offset[this->pair[p].a];
  }
  KOKKOS_INLINE_FUNCTION void write(SpgemmDiaWord any, std::int64_t column, const Scalar* sum, Offset* next) const {
    for (int r = 0; r < rows_per; ++r) {
      if (any != this->all && (any >> r & 1) == 0) continue;
      if (columns != nullptr) columns[next[r]] = static_cast<Ordinal>(column + r);
      values[next[r]++] = sum[r];
    }
  }
};

/// Both matrices by diagonals, and which of them meet.
template <class Csr>
class SpgemmDia {
 public:
  using Exec = typename Csr::execution_space;
  using Space = typename Csr::memory_space;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;

  SpgemmDia() = default;
  /// Counts the diagonals and, if there is room for them, finds where they have entries. Numbers come later.
  /// @param room  bytes, at most  @param pool  the backend whose memory it is, or null
  /// @throw NotSupported  A or B has rows with descending or repeated columns; they take more than `room`
  /// @param most_pairs  of a diagonal of A and one of B
  SpgemmDia(const Exec& space, const Csr& A, const Csr& B, std::size_t room, const KernelTable* pool,
            double most_pairs = std::numeric_limits<double>::infinity())
      : pool_(pool), shared_(same_pattern(A, B)) {
    {
      Marks a = mark(space, A, "A"), b = shared_ ? Marks() : mark(space, B, "B");
      rows_.A = sizes(A, a.diagonals);
      rows_.B = sizes(B, shared_ ? a.diagonals : b.diagonals);
      require_room(room, most_pairs);
      list(space, rows_.A, a, offsets_a_);
      if (!shared_) list(space, rows_.B, b, offsets_b_);
      if (shared_) rows_.B.offset = rows_.A.offset;
    }
    pair_up(space, static_cast<std::int64_t>(B.cols()));
    make_bits(space, A, rows_.A, bits_a_);
    if (!shared_) make_bits(space, B, rows_.B, bits_b_);
    if (shared_) rows_.B.bits = rows_.A.bits;
    make_values(space, rows_.A, values_a_);
    if (!one_matrix(A, B)) make_values(space, rows_.B, values_b_);
  }

  void count(const Exec& space, std::int32_t* counts) const {
    Kokkos::parallel_for("Tessera::spgemm symbolic", range(space, blocks(rows_.A.rows)),
                         SpgemmDiaCount<Csr>(rows_, counts));
  }
  /// @param columns  of C; null: they were written before
  void numeric(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, Ordinal* columns, Scalar* values) {
    fill(space, A, rows_.A);
    if (one_matrix(A, B)) {
      rows_.B.values = rows_.A.values;
    } else {
      make_values(space, rows_.B, values_b_);  // where the plan was made of one matrix
      fill(space, B, rows_.B);
    }
    Kokkos::parallel_for("Tessera::spgemm numeric", range(space, blocks(rows_.A.rows)),
                         SpgemmDiaNumbers<Csr>(rows_, row_map, columns, values));
  }
  /// Of formats and lists.
  std::size_t bytes() const { return bytes_; }
  std::string what() const {
    return std::to_string(rows_.A.count) + " diagonals of A times " + std::to_string(rows_.B.count) + " of B make " +
           std::to_string(rows_.diagonals) + " of C";
  }

 private:
  template <class T>
  using View = typename Arena<Space>::template View<T>;
  /// A matrix whose diagonals are marked.
  struct Marks {
    std::shared_ptr<void> storage;
    View<std::uint32_t> words;
    std::int64_t diagonals = 0;
  };

  /// Whether B's numbers are A's.
  bool one_matrix(const Csr& A, const Csr& B) const { return shared_ && A.values().data() == B.values().data(); }
  static Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> range(const Exec& space, std::int64_t n) {
    return {space, 0, n};
  }
  static std::int64_t blocks(std::int64_t rows) { return (rows + spgemm_dia_rows<Csr> - 1) / spgemm_dia_rows<Csr>; }
  static SpgemmDiagonals<Csr> sizes(const Csr& M, std::int64_t diagonals) {
    SpgemmDiagonals<Csr> d;
    d.rows = static_cast<std::int64_t>(M.rows());
    d.stride = spgemm_diagonal_rows(d.rows);
    d.count = diagonals;
    return d;
  }
  /// An array that lives as long as the plan; in large pages on hosts.
  template <class T>
  T* take(const Exec& space, std::shared_ptr<void>& storage, std::int64_t n) {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    storage = Impl::allocate<Space>(space, pool_, "Tessera::spgemm diagonals", bytes, Lifetime::Plan);
    if (Compat::is_host_v<Exec>) prefer_huge_pages(storage.get(), bytes);
    bytes_ += bytes;
    return static_cast<T*>(storage.get());
  }

  Marks mark(const Exec& space, const Csr& M, const char* name) const {
    Marks m;
    const auto words = (static_cast<std::size_t>(M.rows()) + static_cast<std::size_t>(M.cols())) / 32 + 1;
    m.storage = Arena<Space>::make(space, pool_, "Tessera::spgemm diagonals", Lifetime::Temporary,
                                   [&](Arena<Space>& arena) { m.words = arena.template take<std::uint32_t>(words); });
    Kokkos::deep_copy(space, m.words, 0u);
    std::int64_t disorder = 0;
    Kokkos::parallel_reduce("Tessera::spgemm diagonals", range(space, static_cast<std::int64_t>(M.rows())),
                            SpgemmMarkDiagonals<Csr>{CsrArrays<Csr>(M), m.words.data()}, disorder);
    Kokkos::parallel_scan("Tessera::spgemm diagonals", range(space, static_cast<std::int64_t>(words)),
                          SpgemmListDiagonals{m.words.data(), static_cast<std::int64_t>(M.rows()), nullptr},
                          m.diagonals);
    Compat::fence(space, "Tessera::spgemm diagonals");
    require<NotSupported>(disorder == 0, [&] {
      return std::string("spgemm: columns of ") + name +
             " descend or repeat, and diagonals would add their products in another order: sort them, or use another "
             "algorithm than Dia";
    });
    return m;
  }
  void require_room(std::size_t room, double most_pairs) const {
    require<NotSupported>(static_cast<double>(rows_.A.count) * static_cast<double>(rows_.B.count) <= most_pairs, [&] {
      return "spgemm: " + std::to_string(rows_.A.count) + " diagonals of A and " + std::to_string(rows_.B.count) +
             " of B are too many for Dia to be worth while: use another algorithm";
    });
    const std::size_t needed =
        spgemm_dia_bytes(rows_.A.rows, rows_.A.count, rows_.B.rows, rows_.B.count, sizeof(Scalar));
    require<NotSupported>(needed <= room, [&] {
      return "spgemm: Dia needs " + std::to_string(needed) + " bytes for " + std::to_string(rows_.A.count) +
             " diagonals of A and " + std::to_string(rows_.B.count) + " of B, and may take " + std::to_string(room) +
             " (max_workspace_bytes, or four times A and B): use another algorithm";
    });
  }
  void list(const Exec& space, SpgemmDiagonals<Csr>& of, const Marks& marks, std::shared_ptr<void>& storage) {
    auto* const offset = take<std::int64_t>(space, storage, of.count);
    std::int64_t total = 0;
    Kokkos::parallel_scan("Tessera::spgemm diagonals", range(space, static_cast<std::int64_t>(marks.words.extent(0))),
                          SpgemmListDiagonals{marks.words.data(), of.rows, offset}, total);
    Compat::fence(space, "Tessera::spgemm diagonals");
    of.offset = offset;
  }
  template <class T>
  using Host = Kokkos::View<T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  std::vector<std::int64_t> offsets_of(const Exec& space, const SpgemmDiagonals<Csr>& of) const {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(of.count));
    Kokkos::deep_copy(space, Host<std::int64_t>(offsets.data(), offsets.size()),
                      View<const std::int64_t>(of.offset, offsets.size()));
    Compat::fence(space, "Tessera::spgemm diagonals");
    return offsets;
  }
  /// Pairs of diagonals by their sum, and in each sum by the diagonal of A. Those outside of C meet nowhere.
  void pair_up(const Exec& space, std::int64_t cols) {
    const std::vector<std::int64_t> a = offsets_of(space, rows_.A), b = shared_ ? a : offsets_of(space, rows_.B);
    std::vector<std::pair<std::int64_t, SpgemmDiaPair>> all;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b.size(); ++j) {
        if (a[i] + b[j] <= -rows_.A.rows || a[i] + b[j] >= cols) continue;
        all.push_back({a[i] + b[j], {static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)}});
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
      return x.first != y.first ? x.first < y.first : x.second.a < y.second.a;
    });
    std::vector<SpgemmDiaPair> pairs;
    std::vector<SpgemmDiaSum> sums;
    pairs.reserve(all.size());
    for (const auto& [offset, pair] : all) {
      if (sums.empty() || sums.back().offset != offset) {
        sums.push_back({offset, static_cast<std::int64_t>(pairs.size())});
      }
      pairs.push_back(pair);
    }
    rows_.diagonals = static_cast<std::int64_t>(sums.size());
    sums.push_back({0, static_cast<std::int64_t>(pairs.size())});
    rows_.pair = upload(space, pairs, pairs_);
    rows_.diagonal = upload(space, sums, sums_);
    Compat::fence(space, "Tessera::spgemm diagonals");  // the vectors go
  }
  template <class T>
  const T* upload(const Exec& space, std::vector<T>& from, std::shared_ptr<void>& storage) {
    T* const to = take<T>(space, storage, static_cast<std::int64_t>(from.size()));
    Kokkos::deep_copy(space, View<T>(to, from.size()), Host<T>(from.data(), from.size()));
    return to;
  }
  void make_bits(const Exec& space, const Csr& M, SpgemmDiagonals<Csr>& of, std::shared_ptr<void>& storage) {
    const std::int64_t n = of.count * of.words();
    of.bits = take<SpgemmDiaWord>(space, storage, n);
    Kokkos::deep_copy(space, View<SpgemmDiaWord>(of.bits, static_cast<std::size_t>(n)), SpgemmDiaWord{0});
    Kokkos::parallel_for("Tessera::spgemm diagonals", range(space, blocks(of.rows)),
                         SpgemmFillBits<Csr>{CsrArrays<Csr>(M), of});
  }
  void make_values(const Exec& space, SpgemmDiagonals<Csr>& of, std::shared_ptr<void>& storage) {
    if (storage == nullptr) take<Scalar>(space, storage, of.count * of.stride + 128);
    of.values = static_cast<Scalar*>(storage.get()) + 64;
  }
  static void fill(const Exec& space, const Csr& M, const SpgemmDiagonals<Csr>& to) {
    Kokkos::parallel_for("Tessera::spgemm fill", range(space, to.stride),
                         SpgemmFillDiagonals<Csr>{CsrArrays<Csr>(M), to});
  }

  SpgemmDiaRows<Csr> rows_;
  const KernelTable* pool_ = nullptr;
  bool shared_ = false;  ///< A and B have one pattern
  std::shared_ptr<void> offsets_a_, offsets_b_, bits_a_, bits_b_, values_a_, values_b_, pairs_, sums_;
  std::size_t bytes_ = 0;
};

}  // namespace Impl
}  // namespace Tessera

#endif
