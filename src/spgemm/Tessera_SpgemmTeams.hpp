// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_TEAMS_HPP
#define TESSERA_SPGEMM_SPGEMM_TEAMS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "spgemm/Tessera_SpgemmBins.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"

/// \file
/// Rows of C = A B by Kokkos teams, with scratch that a device has beside its multiprocessors. Columns come first, in
/// tables or, of large rows, in windows of bits; then numbers, each added at the place of its column. A thread of a
/// team has a row, its vector lanes take the entries of a row of B. Rows of B follow one another, and no row of B has a
/// column twice (else a thread has one lane), so that the products of an entry are added in the order of A's row
/// without atomics: the same bits as on hosts.

namespace Tessera {
namespace Impl {

/// Entries of A that the lanes of a thread looked up side by side: where the rows of B begin, how many of their entries
/// count, and A's numbers.
template <class Csr>
struct SpgemmBatch {
  using Offset = typename Csr::size_type;
  using Scalar = typename Csr::value_type;
  Scalar* a;
  Offset* begin;
  std::int32_t* count;
  /// An even number of elements, so that each array is aligned.
  KOKKOS_INLINE_FUNCTION static constexpr int room(int lanes) { return (lanes + 1) / 2 * 2; }
  static constexpr std::size_t bytes(int lanes) {
    return static_cast<std::size_t>(room(lanes)) * (sizeof(Scalar) + sizeof(Offset) + sizeof(std::int32_t));
  }
  KOKKOS_INLINE_FUNCTION SpgemmBatch(char* scratch, int lanes)
      : a(reinterpret_cast<Scalar*>(scratch)),
        begin(reinterpret_cast<Offset*>(a + room(lanes))),
        count(reinterpret_cast<std::int32_t*>(begin + room(lanes))) {}
};

/// What the kernels share: several rows per team, with scratch of `row_bytes` for each.
template <class Exec, class Csr>
struct SpgemmTeam {
  using Ordinal = typename Csr::ordinal_type;
  using Scalar = typename Csr::value_type;
  using Offset = typename Csr::size_type;
  using Batch = SpgemmBatch<Csr>;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  CsrArrays<Csr> A, B;
  const std::int32_t* row = nullptr;
  std::int64_t rows = 0;
  int lanes = 1, per_team = 1, row_bytes = 0;

  SpgemmTeam(const CsrArrays<Csr>& a, const CsrArrays<Csr>& b) : A(a), B(b) {}
  template <class T>
  KOKKOS_INLINE_FUNCTION static T* scratch(const Member& team, std::int64_t elements) {
    return static_cast<T*>(team.team_scratch(0).get_shmem(static_cast<std::ptrdiff_t>(elements * sizeof(T))));
  }
  /// f(place in the list, scratch) for the rows of a team.
  template <class F>
  KOKKOS_INLINE_FUNCTION void each_row(const Member& team, const F& f) const {
    char* const all = scratch<char>(team, std::int64_t{row_bytes} * per_team);
    const std::int64_t first = std::int64_t{team.league_rank()} * per_team;
    const int n = rows - first < per_team ? static_cast<int>(rows - first) : per_team;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n),
                         [&](const int i) { f(first + i, all + std::int64_t{row_bytes} * i); });
  }
  /// look(entry of A, of the batch) by lane, then f(entry of the batch) one after the other, for a row of A.
  template <class Look, class F>
  KOKKOS_INLINE_FUNCTION void each_entry(const Member& team, std::int64_t own, const Look& look, const F& f) const {
    const std::int64_t end = row_begin(A, own + 1);
    for (std::int64_t e = row_begin(A, own); e < end; e += lanes) {
      const int n = end - e < lanes ? static_cast<int>(end - e) : lanes;
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n), [&](const int t) { look(e + t, t); });
      for (int t = 0; t < n; ++t) f(t);
    }
  }
};

/// The columns of rows that a table holds: counted, or in order in C.
template <class Exec, class Csr>
struct SpgemmTableRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Batch, typename Base::Member, typename Base::Offset, typename Base::Ordinal;
  static constexpr Ordinal none = static_cast<Ordinal>(-1);
  int room;                    ///< slots of a table, at most
  const std::int64_t* before;  ///< products of all rows before each
  std::int32_t* count;         ///< not null: rows are counted
  const Offset* row_map;       ///< else of C
  Ordinal* columns;

  explicit SpgemmTableRows(const Base& base) : Base(base) {}
  static std::size_t bytes(int slots, int lanes) {
    return Batch::bytes(lanes) + static_cast<std::size_t>(slots) * sizeof(Ordinal);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    this->each_row(team, [&](const std::int64_t i, char* const scratch) {
      const Batch batch(scratch, this->lanes);
      auto* const table = reinterpret_cast<Ordinal*>(batch.count + Batch::room(this->lanes));
      const auto own = static_cast<std::int64_t>(this->row[i]);
      if (count != nullptr) {
        const int slots = slots_for(before[own + 1] - before[own]);
        collect(team, batch, table, slots, own);
        int used = 0;
        Kokkos::parallel_reduce(
            Kokkos::ThreadVectorRange(team, slots), [&](const int s, int& sum) { sum += table[s] != none; }, used);
        Kokkos::single(Kokkos::PerThread(team), [&]() { count[own] = used; });
      } else {
        const auto to = static_cast<std::int64_t>(row_map[own]);
        const int slots = slots_for(static_cast<std::int64_t>(row_map[own + 1]) - to);
        collect(team, batch, table, slots, own);
        write(team, table, slots, columns + to);
      }
    });
  }

 private:
  /// A power of two, a quarter of them free.
  KOKKOS_INLINE_FUNCTION int slots_for(std::int64_t entries) const {
    int slots = 8;
    while (slots < room && slots / 4 * 3 < entries) slots *= 2;
    return slots;
  }
  KOKKOS_INLINE_FUNCTION void collect(const Member& team, const Batch& batch, Ordinal* table, int slots,
                                      std::int64_t own) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, slots), [&](const int s) { table[s] = none; });
    this->each_entry(
        team, own,
        [&](const std::int64_t e, const int t) {
          const auto k = static_cast<std::int64_t>(this->A.entries()(e));
          const std::int64_t from = row_begin(this->B, k);
          batch.begin[t] = static_cast<Offset>(from);
          batch.count[t] = static_cast<std::int32_t>(row_begin(this->B, k + 1) - from);
        },
        [&](const int t) {
          const auto* const columns_of_b = this->B.entries().data() + batch.begin[t];
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, batch.count[t]),
                               [&](const int i) { insert(table, slots, columns_of_b[i]); });
        });
  }
  KOKKOS_INLINE_FUNCTION void insert(Ordinal* table, int slots, Ordinal column) const {
    const std::uint32_t last = static_cast<std::uint32_t>(slots) - 1;
    // Neighbouring columns in neighbouring slots, and columns that are a power of two apart not in one.
    const auto key = static_cast<std::uint32_t>(column);
    for (std::uint32_t s = key + (key >> 11) * 0x9e3779b1u;; ++s) {
      Ordinal* const slot = table + (s & last);
      const Ordinal there = *slot != none ? *slot : Kokkos::atomic_compare_exchange(slot, none, column);
      if (there == none || there == column) return;
    }
  }
  /// Each column goes behind the smaller ones, which are counted: all lanes read the same slot, and none waits for
  /// another.
  KOKKOS_INLINE_FUNCTION void write(const Member& team, const Ordinal* table, int slots, Ordinal* to) const {
    using Key = std::make_unsigned_t<Ordinal>;  // free slots are larger than any column
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, slots), [&](const int s) {
      const Ordinal own = table[s];
      if (own == none) return;
      int smaller = 0;
      for (int i = 0; i < slots; ++i) smaller += static_cast<Key>(table[i]) < static_cast<Key>(own);
      to[smaller] = own;
    });
  }
};

/// The columns of large rows: a team marks bits of a window of columns, counts or writes those that are set, and goes
/// on to the next window.
template <class Exec, class Csr>
struct SpgemmWindowRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Member, typename Base::Offset, typename Base::Ordinal;
  static constexpr int most_words = 6144;                      ///< of a window
  static constexpr std::size_t sums_bytes = 64 * sizeof(int);  ///< a sum per thread of a team, of at most 64
  std::int64_t cols;
  int words;            ///< of a window
  bool sorted;          ///< columns of B's rows ascend
  std::int32_t* count;  ///< as SpgemmTableRows
  const Offset* row_map;
  Ordinal* columns;

  explicit SpgemmWindowRows(const Base& base) : Base(base) {}

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    std::uint32_t* const bits = Base::template scratch<std::uint32_t>(team, words);
    int* const of_thread = Base::template scratch<int>(team, team.team_size());
    const auto own = static_cast<std::int64_t>(this->row[team.league_rank()]);
    std::int64_t found = 0, low = 0, end_column = cols;
    if (sorted) range(team, own, low, end_column);
    for (std::int64_t first = low; first < end_column; first += 32 * std::int64_t{words}) {
      const std::int64_t left = (end_column - first + 31) / 32;
      const int n = left < words ? static_cast<int>(left) : words;
      mark(team, bits, n, own, first);
      const int each = (n + team.team_size() - 1) / team.team_size(), begin = each * team.team_rank();
      const int mine = n - begin < each ? (n > begin ? n - begin : 0) : each;
      int used = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, mine), [&](const int w, int& sum) { sum += spgemm_bits(bits[begin + w]); },
          used);
      Kokkos::single(Kokkos::PerThread(team), [&]() { of_thread[team.team_rank()] = used; });
      team.team_barrier();
      int before = 0, all = 0;
      for (int t = 0; t < team.team_size(); ++t) {
        if (t < team.team_rank()) before += of_thread[t];
        all += of_thread[t];
      }
      if (count == nullptr) {
        write(team, bits + begin, mine, first + 32 * begin,
              columns + static_cast<std::int64_t>(row_map[own]) + found + before);
      }
      found += all;
      team.team_barrier();  // before the window is cleared
    }
    if (count != nullptr) {
      Kokkos::single(Kokkos::PerTeam(team), [&]() { count[own] = static_cast<std::int32_t>(found); });
    }
  }

 private:
  /// The columns of n words from `first` on.
  KOKKOS_INLINE_FUNCTION void write(const Member& team, const std::uint32_t* bits, int n, std::int64_t first,
                                    Ordinal* to) const {
    Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, n), [&](const int w, int& sum, const bool final) {
      std::uint32_t left = bits[w];
      for (int at = sum; final && left != 0; ++at, left &= left - 1) {
        to[at] = static_cast<Ordinal>(first + 32 * w + spgemm_bits((left & (0u - left)) - 1));
      }
      sum += spgemm_bits(bits[w]);
    });
  }
  /// Columns of a row: from `low`, a multiple of 32, to before `end`.
  KOKKOS_INLINE_FUNCTION void range(const Member& team, std::int64_t own, std::int64_t& low, std::int64_t& end) const {
    const std::int64_t from = row_begin(this->A, own);
    const auto entries = static_cast<int>(row_begin(this->A, own + 1) - from);
    std::int64_t least = cols, most = -1;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, entries),
        [&](const int e, std::int64_t& lower) {
          const auto k = static_cast<std::int64_t>(this->A.entries()(from + e));
          const std::int64_t b = row_begin(this->B, k);
          if (b == row_begin(this->B, k + 1)) return;
          const auto column = static_cast<std::int64_t>(this->B.entries()(b));
          if (column < lower) lower = column;
        },
        Kokkos::Min<std::int64_t>(least));
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, entries),
        [&](const int e, std::int64_t& higher) {
          const auto k = static_cast<std::int64_t>(this->A.entries()(from + e));
          const std::int64_t last = row_begin(this->B, k + 1);
          if (last == row_begin(this->B, k)) return;
          const auto column = static_cast<std::int64_t>(this->B.entries()(last - 1));
          if (column > higher) higher = column;
        },
        Kokkos::Max<std::int64_t>(most));
    low = least / 32 * 32;
    end = most + 1;
  }
  KOKKOS_INLINE_FUNCTION void mark(const Member& team, std::uint32_t* bits, int n, std::int64_t own,
                                   std::int64_t first) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n), [&](const int w) { bits[w] = 0; });
    team.team_barrier();
    const std::int64_t from = row_begin(this->A, own);
    const auto entries = static_cast<int>(row_begin(this->A, own + 1) - from);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, entries), [&](const int e) {
      const auto k = static_cast<std::int64_t>(this->A.entries()(from + e));
      const std::int64_t b = row_begin(this->B, k);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(row_begin(this->B, k + 1) - b)),
                           [&](const int t) {
                             const std::int64_t at = static_cast<std::int64_t>(this->B.entries()(b + t)) - first;
                             if (at < 0 || at >= 32 * std::int64_t{n}) return;
                             // Neighbours share words: most bits are set by then, and lanes would queue for the word.
                             // A bit that is not seen yet is set once more.
                             const std::uint32_t bit = std::uint32_t{1} << at % 32;
                             if ((bits[at / 32] & bit) == 0) Kokkos::atomic_or(bits + at / 32, bit);
                           });
    });
    team.team_barrier();
  }
};

/// The numbers of rows or parts of rows whose columns are known: each thread has the sums of its part in scratch, by
/// column where the part's columns are near each other, else by place, which is searched for.
template <class Exec, class Csr>
struct SpgemmValueRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Batch, typename Base::Member, typename Base::Offset, typename Base::Ordinal,
      typename Base::Scalar;
  const SpgemmPart* part;  ///< null: whole rows
  int holds;               ///< entries of a part, at most
  bool sorted;             ///< columns of B's rows ascend
  const Offset* row_map;
  const Ordinal* columns;
  Scalar* values;

  explicit SpgemmValueRows(const Base& base) : Base(base) {}
  static std::size_t bytes(int holds, int lanes) {
    return Batch::bytes(lanes) + static_cast<std::size_t>(holds) * (sizeof(Ordinal) + sizeof(Scalar));
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    this->each_row(team, [&](const std::int64_t i, char* const scratch) {
      const SpgemmPart own = part != nullptr ? part[i] : SpgemmPart{this->row[i], 0};
      const std::int64_t to = static_cast<std::int64_t>(row_map[own.row]) + std::int64_t{own.part} * holds;
      const std::int64_t left = static_cast<std::int64_t>(row_map[own.row + 1]) - to;
      auto* const sum = reinterpret_cast<Scalar*>(scratch);
      run(team, own.row, to, left < holds ? static_cast<int>(left) : holds, sum,
          Batch(scratch + static_cast<std::size_t>(holds) * (sizeof(Ordinal) + sizeof(Scalar)), this->lanes));
    });
  }

 private:
  KOKKOS_INLINE_FUNCTION void run(const Member& team, std::int64_t own, std::int64_t to, int n, Scalar* sum,
                                  const Batch& batch) const {
    auto* const column = reinterpret_cast<Ordinal*>(sum + holds);
    const Ordinal low = columns[to], high = columns[to + n - 1];
    const std::int64_t width = static_cast<std::int64_t>(high) - low + 1;
    const bool by_column =
        width <= holds + holds * static_cast<int>(sizeof(Ordinal)) / static_cast<int>(sizeof(Scalar));
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, by_column ? static_cast<int>(width) : n), [&](const int s) {
      sum[s] = 0;
      if (!by_column) column[s] = columns[to + s];
    });
    this->each_entry(
        team, own,
        [&](const std::int64_t e, const int t) {
          const auto k = static_cast<std::int64_t>(this->A.entries()(e));
          std::int64_t b = row_begin(this->B, k), last = row_begin(this->B, k + 1);
          if (part != nullptr && sorted) {
            b = first_from(b, last, low);
            last = first_above(b, last, high);
          }
          batch.a[t] = this->A.values()(e);
          batch.begin[t] = static_cast<Offset>(b);
          batch.count[t] = static_cast<std::int32_t>(last - b);
        },
        [&](const int t) {
          const Scalar a = batch.a[t];
          const auto b = static_cast<std::int64_t>(batch.begin[t]);
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, batch.count[t]), [&](const int i) {
            const Ordinal c = this->B.entries()(b + i);
            if (c < low || c > high) return;
            sum[by_column ? static_cast<int>(c - low) : place_of(column, n, c)] += a * this->B.values()(b + i);
          });
        });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n), [&](const int s) {
      values[to + s] = sum[by_column ? static_cast<int>(columns[to + s] - low) : s];
    });
  }
  /// In [first, last) of B: where columns not below, or above one begin.
  KOKKOS_INLINE_FUNCTION std::int64_t first_from(std::int64_t first, std::int64_t last, Ordinal column) const {
    while (first < last) {
      const std::int64_t middle = first + (last - first) / 2;
      if (this->B.entries()(middle) < column) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t first_above(std::int64_t first, std::int64_t last, Ordinal column) const {
    while (first < last) {
      const std::int64_t middle = first + (last - first) / 2;
      if (column < this->B.entries()(middle)) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return first;
  }
  /// It is there.
  KOKKOS_INLINE_FUNCTION static int place_of(const Ordinal* column, int n, Ordinal c) {
    int first = 0;
    for (int last = n - 1; first < last;) {
      const int middle = (first + last) / 2;
      if (column[middle] < c) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
