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

KOKKOS_INLINE_FUNCTION int spgemm_bits(std::uint32_t word) {
  word -= word >> 1 & 0x55555555u;
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  return static_cast<int>(((word + (word >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

/// What the kernels share.
template <class Exec, class Csr>
struct SpgemmTeam {
  using Ordinal = typename Csr::ordinal_type;
  using Scalar = typename Csr::value_type;
  using Offset = typename Csr::size_type;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  CsrArrays<Csr> A, B;

  SpgemmTeam(const CsrArrays<Csr>& a, const CsrArrays<Csr>& b) : A(a), B(b) {}
  template <class T>
  KOKKOS_INLINE_FUNCTION static T* scratch(const Member& team, std::int64_t elements) {
    return static_cast<T*>(team.team_scratch(0).get_shmem(static_cast<std::ptrdiff_t>(elements * sizeof(T))));
  }
};

/// The columns of rows that a table holds: counted, or in order in C.
template <class Exec, class Csr>
struct SpgemmTableRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Member, typename Base::Offset, typename Base::Ordinal;
  static constexpr Ordinal none = static_cast<Ordinal>(-1);
  const std::int32_t* row;
  std::int64_t rows;
  int slots, per_team;    ///< of a table; rows of a team
  std::int32_t* count;    ///< not null: rows are counted
  const Offset* row_map;  ///< else of C
  Ordinal* columns;

  explicit SpgemmTableRows(const Base& base) : Base(base) {}
  static std::size_t bytes(int slots) { return static_cast<std::size_t>(slots) * sizeof(Ordinal); }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    Ordinal* const tables = Base::template scratch<Ordinal>(team, std::int64_t{slots} * per_team);
    const std::int64_t first = std::int64_t{team.league_rank()} * per_team;
    const int n = rows - first < per_team ? static_cast<int>(rows - first) : per_team;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) {
      Ordinal* const table = tables + std::int64_t{slots} * i;
      const auto own = static_cast<std::int64_t>(row[first + i]);
      collect(team, table, own);
      if (count != nullptr) {
        int used = 0;
        Kokkos::parallel_reduce(
            Kokkos::ThreadVectorRange(team, slots), [&](const int s, int& sum) { sum += table[s] != none; }, used);
        Kokkos::single(Kokkos::PerThread(team), [&]() { count[own] = used; });
      } else {
        sort(team, table);
        const auto to = static_cast<std::int64_t>(row_map[own]), end = static_cast<std::int64_t>(row_map[own + 1]);
        Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(end - to)),
                             [&](const int s) { columns[to + s] = table[s]; });
      }
    });
  }

 private:
  KOKKOS_INLINE_FUNCTION void collect(const Member& team, Ordinal* table, std::int64_t own) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, slots), [&](const int s) { table[s] = none; });
    const std::int64_t end = row_begin(this->A, own + 1);
    for (std::int64_t e = row_begin(this->A, own); e < end; ++e) {
      const auto k = static_cast<std::int64_t>(this->A.entries()(e));
      const std::int64_t from = row_begin(this->B, k);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(row_begin(this->B, k + 1) - from)),
                           [&](const int t) { insert(table, this->B.entries()(from + t)); });
    }
  }
  KOKKOS_INLINE_FUNCTION void insert(Ordinal* table, Ordinal column) const {
    const std::uint32_t last = static_cast<std::uint32_t>(slots) - 1;
    // Neighbouring columns in neighbouring slots, and columns that are a power of two apart not in one.
    const auto key = static_cast<std::uint32_t>(column);
    for (std::uint32_t s = key + (key >> 11) * 0x9e3779b1u;; ++s) {
      Ordinal* const slot = table + (s & last);
      const Ordinal there = *slot != none ? *slot : Kokkos::atomic_compare_exchange(slot, none, column);
      if (there == none || there == column) return;
    }
  }
  /// A bitonic network; free slots come last.
  KOKKOS_INLINE_FUNCTION void sort(const Member& team, Ordinal* table) const {
    using Key = std::make_unsigned_t<Ordinal>;
    for (int size = 2; size <= slots; size *= 2) {
      for (int distance = size / 2; distance > 0; distance /= 2) {
        Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, slots / 2), [&](const int pair) {
          const int i = pair / distance * 2 * distance + pair % distance, j = i + distance;
          const Ordinal a = table[i], b = table[j];
          if ((static_cast<Key>(a) > static_cast<Key>(b)) == ((i & size) == 0)) {
            table[i] = b;
            table[j] = a;
          }
        });
      }
    }
  }
};

/// The columns of large rows: a team marks bits of a window of columns, counts or writes those that are set, and goes
/// on to the next window.
template <class Exec, class Csr>
struct SpgemmWindowRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Member, typename Base::Offset, typename Base::Ordinal;
  static constexpr int words = 6144;  ///< of a window
  const std::int32_t* row;
  std::int64_t cols;
  bool sorted;          ///< columns of B's rows ascend
  std::int32_t* count;  ///< as SpgemmTableRows
  const Offset* row_map;
  Ordinal* columns;

  explicit SpgemmWindowRows(const Base& base) : Base(base) {}

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    std::uint32_t* const bits = Base::template scratch<std::uint32_t>(team, words);
    const auto own = static_cast<std::int64_t>(row[team.league_rank()]);
    std::int64_t found = 0, low = 0, end_column = cols;
    if (sorted) range(team, own, low, end_column);
    for (std::int64_t first = low; first < end_column; first += 32 * words) {
      mark(team, bits, own, first);
      const int each = (words + team.team_size() - 1) / team.team_size(), begin = each * team.team_rank();
      const int end = begin + each < words ? begin + each : words;
      int used = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, end > begin ? end - begin : 0),
          [&](const int w, int& sum) { sum += spgemm_bits(bits[begin + w]); }, used);
      int all = used;
      const int before = team.team_scan(used);
      team.team_reduce(Kokkos::Sum<int>(all));
      if (count == nullptr) {
        Ordinal* const to = columns + static_cast<std::int64_t>(row_map[own]) + found + before;
        Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, end > begin ? end - begin : 0), [&](const int w, int& sum,
                                                                                                  const bool final) {
          std::uint32_t left = bits[begin + w];
          for (int n = sum; final && left != 0; ++n, left &= left - 1) {
            to[n] = static_cast<Ordinal>(first + 32 * (begin + w) + spgemm_bits((left & (0u - left)) - 1));
          }
          sum += spgemm_bits(bits[begin + w]);
        });
      }
      found += all;
      team.team_barrier();  // before the window is cleared
    }
    if (count != nullptr) {
      Kokkos::single(Kokkos::PerTeam(team), [&]() { count[own] = static_cast<std::int32_t>(found); });
    }
  }

 private:
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
  KOKKOS_INLINE_FUNCTION void mark(const Member& team, std::uint32_t* bits, std::int64_t own,
                                   std::int64_t first) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{words}), [&](const int w) { bits[w] = 0; });
    team.team_barrier();
    const std::int64_t from = row_begin(this->A, own);
    const auto entries = static_cast<int>(row_begin(this->A, own + 1) - from);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, entries), [&](const int e) {
      const auto k = static_cast<std::int64_t>(this->A.entries()(from + e));
      const std::int64_t b = row_begin(this->B, k);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(row_begin(this->B, k + 1) - b)),
                           [&](const int t) {
                             const std::int64_t at = static_cast<std::int64_t>(this->B.entries()(b + t)) - first;
                             if (at < 0 || at >= 32 * words) return;
                             Kokkos::atomic_or(bits + at / 32, std::uint32_t{1} << at % 32);
                           });
    });
    team.team_barrier();
  }
};

/// The numbers of rows or parts of rows whose columns are known: each thread has columns and sums of its part in
/// scratch.
template <class Exec, class Csr>
struct SpgemmValueRows : SpgemmTeam<Exec, Csr> {
  using Base = SpgemmTeam<Exec, Csr>;
  using typename Base::Member, typename Base::Offset, typename Base::Ordinal, typename Base::Scalar;
  const std::int32_t* row;
  const SpgemmPart* part;  ///< null: whole rows
  std::int64_t rows;       ///< or parts
  int holds, per_team;     ///< entries of a part, at most
  bool sorted;             ///< columns of B's rows ascend
  const Offset* row_map;
  const Ordinal* columns;
  Scalar* values;

  explicit SpgemmValueRows(const Base& base) : Base(base) {}
  static std::size_t bytes(int holds) { return static_cast<std::size_t>(holds) * (sizeof(Ordinal) + sizeof(Scalar)); }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    Scalar* const all_sums = Base::template scratch<Scalar>(team, std::int64_t{holds} * per_team);
    Ordinal* const all_columns = Base::template scratch<Ordinal>(team, std::int64_t{holds} * per_team);
    const std::int64_t first = std::int64_t{team.league_rank()} * per_team;
    const int n = rows - first < per_team ? static_cast<int>(rows - first) : per_team;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) {
      const SpgemmPart own = part != nullptr ? part[first + i] : SpgemmPart{row[first + i], 0};
      const std::int64_t to = static_cast<std::int64_t>(row_map[own.row]) + std::int64_t{own.part} * holds;
      const std::int64_t left = static_cast<std::int64_t>(row_map[own.row + 1]) - to;
      run(team, own.row, to, left < holds ? static_cast<int>(left) : holds, all_columns + std::int64_t{holds} * i,
          all_sums + std::int64_t{holds} * i);
    });
  }

 private:
  KOKKOS_INLINE_FUNCTION void run(const Member& team, std::int64_t own, std::int64_t to, int n, Ordinal* column,
                                  Scalar* sum) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n), [&](const int s) {
      column[s] = columns[to + s];
      sum[s] = 0;
    });
    const Ordinal low = column[0], high = column[n - 1];
    const std::int64_t end = row_begin(this->A, own + 1);
    for (std::int64_t e = row_begin(this->A, own); e < end; ++e) {
      const auto k = static_cast<std::int64_t>(this->A.entries()(e));
      const Scalar a = this->A.values()(e);
      std::int64_t b = row_begin(this->B, k), last = row_begin(this->B, k + 1);
      if (part != nullptr && sorted) {
        b = first_from(b, last, low);
        last = first_above(b, last, high);
      }
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, static_cast<int>(last - b)), [&](const int t) {
        const Ordinal c = this->B.entries()(b + t);
        if (c < low || c > high) return;
        sum[place_of(column, n, c)] += a * this->B.values()(b + t);
      });
    }
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n), [&](const int s) { values[to + s] = sum[s]; });
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
