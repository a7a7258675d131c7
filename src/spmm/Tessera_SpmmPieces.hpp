// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_PIECES_HPP
#define TESSERA_SPMM_SPMM_PIECES_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "core/Tessera_Arena.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_TeamSort.hpp"

/// \file
/// Rows of A cut into pieces of at most so many entries. A piece of a row of several pieces writes its sums to scratch,
/// and a second kernel adds a row's sums in a fixed order.

namespace Tessera {
namespace Impl {

using RowPiece = SpmmRowPiece;

/// How rows are cut: into pieces of `most` entries, if some row has more than `tolerated`.
struct PieceBounds {
  std::int64_t most, tolerated;
};

/// What kernels see: table == nullptr means that piece p is row p.
template <class Sum>
struct RowPieces {
  const RowPiece* table = nullptr;
  std::int64_t count = 0;
  const SpmmSplit* splits = nullptr;
  std::int64_t split_count = 0;
  Sum* partials = nullptr;  ///< [partial][column]
  std::int64_t partial_ld = 0;

  template <class Offset>
  struct Range {
    Offset first, last;
    std::int64_t row, partial;
  };
  template <class Csr>
  KOKKOS_INLINE_FUNCTION Range<typename Csr::size_type> range(const Csr& A, std::int64_t p) const {
    using Offset = typename Csr::size_type;
    if (table == nullptr) return {A.row_map()(p), A.row_map()(p + 1), p, -1};
    const RowPiece piece = table[p];
    const std::uint64_t first = piece.packed >> RowPiece::length_bits;
    const std::uint64_t length = piece.packed & static_cast<std::uint64_t>(RowPiece::most_entries);
    return {static_cast<Offset>(first), static_cast<Offset>(first + length), piece.row, piece.partial};
  }
};

template <class Sum>
RowPieces<Sum> whole_rows(std::int64_t rows) {
  RowPieces<Sum> pieces;
  pieces.count = rows;
  return pieces;
}

/// The table of a matrix; empty if no row is longer than the bound.
template <class MemorySpace>
struct PieceTable {
  template <class T>
  using View = typename Arena<MemorySpace>::template View<T>;
  std::shared_ptr<void> storage;
  View<RowPiece> pieces;
  View<SpmmSplit> splits;
  std::int64_t partial_count = 0, longest = 0;
  std::int64_t most_pieces = 1;  ///< that a row has
  bool spread = false;           ///< whether pieces are sorted for SpreadRowsKernel
  SpmmSpread items;              ///< how
  View<std::uint32_t> arrivals;  ///< of split rows, arrival_tiles of each

  /// Tiles of columns for which a row that is split has counters.
  static constexpr std::int64_t arrival_tiles = 32;

  std::size_t bytes() const {
    return sizeof(RowPiece) * pieces.extent(0) + sizeof(SpmmSplit) * splits.extent(0) + 4 * arrivals.extent(0);
  }
};

template <class Csr>
struct PieceFunctors {
  using offset = typename Csr::size_type;
  using Memory = typename Csr::memory_space;
  template <class T>
  using View = typename Arena<Memory>::template View<T>;
  struct Counts {
    std::int64_t pieces, partials, splits;
  };

  KOKKOS_INLINE_FUNCTION static std::int64_t length(const Csr& A, std::int64_t row) {
    return static_cast<std::int64_t>(A.row_map()(row + 1)) - static_cast<std::int64_t>(A.row_map()(row));
  }
  struct Longest {
    Csr A;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& longest) const {
      const std::int64_t n = length(A, row);
      if (n > longest) longest = n;
    }
  };
  /// Exclusive sums of one of the three counts at every row; three scans of plain integers, since structs in scans
  /// differ between versions of Kokkos.
  template <int which>
  struct Scan {
    Csr A;
    std::int64_t most, rows;
    View<Counts> at;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
      if (final) {
        if (which == 0) at(row).pieces = sum;
        if (which == 1) at(row).partials = sum;
        if (which == 2) at(row).splits = sum;
      }
      if (row == rows) return;
      const std::int64_t n = (length(A, row) + most - 1) / most;
      sum += which == 0 ? (n > 1 ? n : 1) : which == 1 ? (n > 1 ? n : 0) : (n > 1 ? 1 : 0);
    }
  };
  /// How many pieces before each one are long (low half), and how many of middle length (high half): those come first,
  /// so that no long piece begins when the others are about to end. most == 0: long are those of cut rows, others are
  /// all alike.
  struct Classes {
    View<RowPiece> pieces;
    std::int64_t most;
    View<std::uint64_t> before;
    KOKKOS_INLINE_FUNCTION static int of(const RowPiece& piece, std::int64_t most) {
      if (most == 0) return piece.partial >= 0 ? 0 : 2;
      const auto length = static_cast<std::int64_t>(piece.packed & static_cast<std::uint64_t>(RowPiece::most_entries));
      return 2 * length > most ? 0 : 8 * length > most ? 1 : 2;
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::uint64_t& sum, const bool final) const {
      if (final) before(i) = sum;
      if (i == static_cast<std::int64_t>(pieces.extent(0))) return;
      const int c = of(pieces(i), most);
      sum += c == 0 ? std::uint64_t{1} : c == 1 ? std::uint64_t{1} << 32 : std::uint64_t{0};
    }
  };
  /// Classes one after another, each in its order.
  struct Partition {
    View<RowPiece> from, to;
    std::int64_t most;
    View<std::uint64_t> before;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::uint64_t own = before(i), total = before(static_cast<std::int64_t>(from.extent(0)));
      const auto low = [](std::uint64_t n) { return static_cast<std::int64_t>(n & 0xffffffffu); };
      const auto high = [](std::uint64_t n) { return static_cast<std::int64_t>(n >> 32); };
      const int c = Classes::of(from(i), most);
      to(c == 0   ? low(own)
         : c == 1 ? low(total) + high(own)
                  : low(total) + high(total) + i - low(own) - high(own)) = from(i);
    }
  };
  /// Longest first, by whole fours of entries (a batch of the kernel), else in their order.
  struct SortByLength {
    static constexpr int sort_window = 1024;
    using Exec = typename Csr::execution_space;
    using Keys =
        Kokkos::View<std::uint32_t*, typename Exec::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    View<RowPiece> from, to;
    KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
      const Keys keys(team.team_scratch(0), sort_window);
      const std::int64_t first = std::int64_t{team.league_rank()} * sort_window,
                         left = static_cast<std::int64_t>(from.extent(0)) - first;
      const int count = left < sort_window ? static_cast<int>(left) : sort_window;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, sort_window), [&](const int i) {
        if (i >= count) {
          keys(i) = ~std::uint32_t{0};
          return;
        }
        const std::uint64_t steps = (from(first + i).packed & static_cast<std::uint64_t>(RowPiece::most_entries)) / 4;
        const auto rank = static_cast<std::uint32_t>(steps < 4095 ? 4095 - steps : 0);
        keys(i) = rank * sort_window + static_cast<std::uint32_t>(i);
      });
      team.team_barrier();
      team_sort(team, keys, sort_window);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count),
                           [&](const int i) { to(first + i) = from(first + static_cast<int>(keys(i) % sort_window)); });
    }
  };
  struct Fill {
    Csr A;
    std::int64_t most;
    View<Counts> at;
    View<RowPiece> pieces;
    View<SpmmSplit> splits;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      const Counts place = at(row);
      const std::int64_t entries = length(A, row), count = at(row + 1).pieces - place.pieces;
      const bool split = at(row + 1).splits > place.splits;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t left = entries - k * most, n = left < most ? left : most;
        const auto first = static_cast<std::uint64_t>(static_cast<std::int64_t>(A.row_map()(row)) + k * most);
        pieces(place.pieces + k) = {(first << RowPiece::length_bits) | static_cast<std::uint64_t>(n),
                                    static_cast<std::int32_t>(row),
                                    split ? static_cast<std::int32_t>(place.partials + k) : -1};
      }
      if (split) {
        splits(place.splits) = {static_cast<std::int32_t>(row), static_cast<std::int32_t>(place.partials),
                                static_cast<std::int32_t>(count)};
      }
    }
  };
};

template <class Sort, class Exec, class Pieces>
void sort_pieces(const Exec& space, const Pieces& from, const Pieces& to) {
  const auto teams = static_cast<int>((from.extent(0) + Sort::sort_window - 1) / Sort::sort_window);
  Kokkos::TeamPolicy<Exec> policy(space, teams, Compat::team_size<Exec>(256));
  policy.set_scratch_size(0, Kokkos::PerTeam(Sort::Keys::shmem_size(Sort::sort_window)));
  Kokkos::parallel_for("Tessera::spmm[gespmm] sort pieces", policy, Sort{from, to});
}

/// Pieces, partial sums and split rows that are before each row; behind the last one all of them.
template <class Exec, class Csr>
void count_pieces(const Exec& space, const Csr& A, std::int64_t most,
                  const typename PieceFunctors<Csr>::template View<typename PieceFunctors<Csr>::Counts>& at) {
  using F = PieceFunctors<Csr>;
  const auto rows = static_cast<std::int64_t>(A.rows());
  const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> range(space, 0, rows + 1);
  Kokkos::parallel_scan("Tessera::spmm[gespmm] pieces", range, typename F::template Scan<0>{A, most, rows, at});
  Kokkos::parallel_scan("Tessera::spmm[gespmm] partial sums", range, typename F::template Scan<1>{A, most, rows, at});
  Kokkos::parallel_scan("Tessera::spmm[gespmm] split rows", range, typename F::template Scan<2>{A, most, rows, at});
}

/// Pieces by length inside sort windows; before that, with `partition`, those of more than `by_length` entries, or
/// those of cut rows (0), in front. @return memory that the kernels still read
template <class Exec, class Csr>
std::shared_ptr<void> fill_sorted_pieces(
    const Exec& space, const Csr& A, std::int64_t most,
    const typename PieceFunctors<Csr>::template View<typename PieceFunctors<Csr>::Counts>& at,
    const KernelTable* backend, bool partition, std::int64_t by_length, PieceTable<typename Csr::memory_space>& table) {
  using F = PieceFunctors<Csr>;
  using Memory = typename Csr::memory_space;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const std::size_t n = table.pieces.extent(0);
  const auto pieces = static_cast<std::int64_t>(n);
  typename F::template View<RowPiece> unsorted, partitioned;
  typename F::template View<std::uint64_t> before;
  auto temporary = Arena<Memory>::make(space, backend, "Tessera::spmm::unsorted pieces", Lifetime::Temporary,
                                       [&](Arena<Memory>& arena) {
                                         unsorted = arena.template take<RowPiece>(n);
                                         partitioned = arena.template take<RowPiece>(partition ? n : 0);
                                         before = arena.template take<std::uint64_t>(partition ? n + 1 : 0);
                                       });
  Kokkos::parallel_for("Tessera::spmm[gespmm] fill pieces", Policy(space, 0, static_cast<std::int64_t>(A.rows())),
                       typename F::Fill{A, most, at, unsorted, table.splits});
  if (partition) {
    Kokkos::parallel_scan("Tessera::spmm[gespmm] classes of pieces", Policy(space, 0, pieces + 1),
                          typename F::Classes{unsorted, by_length, before});
    Kokkos::parallel_for("Tessera::spmm[gespmm] partition pieces", Policy(space, 0, pieces),
                         typename F::Partition{unsorted, partitioned, by_length, before});
  }
  sort_pieces<typename F::SortByLength>(space, partition ? partitioned : unsorted, table.pieces);
  return temporary;
}

/// Rows of more than `most` entries are cut, if one has more than `tolerated`. On devices and emulated ones, pieces are
/// sorted by length inside sort windows of a thousand, so that those of a wave take equally long. Before that, long
/// ones are moved to the front, unless it costs B its place in the caches: all of them where B stays there
/// (b_is_cached), else those of cut rows if they hold little of the matrix. Waits once for the longest row, and once
/// more where there is one to cut. O(rows) work; 16 bytes per piece, and for a while 24 bytes per row and 16 (40 where
/// long pieces are moved) per piece, only where a row is cut. in_order: pieces stay in the order of the rows.
template <class Exec, class Csr>
PieceTable<typename Csr::memory_space> cut_rows(const Exec& space, const Csr& A, std::int64_t most,
                                                std::int64_t tolerated, const KernelTable* backend, bool b_is_cached,
                                                bool in_order = false) {
  using F = PieceFunctors<Csr>;
  using Memory = typename Csr::memory_space;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  PieceTable<Memory> table;
  const auto rows = static_cast<std::int64_t>(A.rows());
  if (rows == 0) return table;
  Kokkos::parallel_reduce("Tessera::spmm[gespmm] longest row", Policy(space, 0, rows), typename F::Longest{A},
                          Kokkos::Max<std::int64_t>(table.longest));
  if (table.longest <= tolerated) return table;
  using Counts = typename F::Counts;
  typename F::template View<Counts> at;
  const auto counts = Arena<Memory>::make(
      space, backend, "Tessera::spmm::piece counts", Lifetime::Temporary,
      [&](Arena<Memory>& arena) { at = arena.template take<Counts>(static_cast<std::size_t>(rows) + 1); });
  count_pieces(space, A, most, at);
  Counts total{};
  using One = typename F::template View<Counts>;
  fetch(space, backend, "Tessera::spmm[gespmm] sizes", total, One(at.data() + rows, 1));
  require<NotSupported>(total.partials <= 2147483647, [&] {
    return "spmm: rows cut into " + std::to_string(total.partials) +
           " pieces, more than 2^31 - 1; raise GeSpmmOptions::max_piece";
  });
  table.storage =
      Arena<Memory>::make(space, backend, "Tessera::spmm::pieces", Lifetime::Plan, [&](Arena<Memory>& arena) {
        table.pieces = arena.template take<RowPiece>(static_cast<std::size_t>(total.pieces));
        table.splits = arena.template take<SpmmSplit>(static_cast<std::size_t>(total.splits));
      });
  table.partial_count = total.partials;
  table.most_pieces = (table.longest + most - 1) / most;
  const bool sort = !in_order && (!Compat::is_host_v<Exec> || (backend != nullptr && backend->spmm.gespmm != nullptr));
  std::shared_ptr<void> temporary;
  if (sort) {
    const bool partition = b_is_cached || 8 * total.partials * most <= static_cast<std::int64_t>(A.nnz());
    temporary = fill_sorted_pieces(space, A, most, at, backend, partition, b_is_cached ? most : 0, table);
  } else {
    Kokkos::parallel_for("Tessera::spmm[gespmm] fill pieces", Policy(space, 0, rows),
                         typename F::Fill{A, most, at, table.pieces, table.splits});
  }
  // Without a pool of the backend these are Views, which must not go before the kernels have read them.
  if (backend == nullptr || backend->runtime.allocate == nullptr) Compat::fence(space, "Tessera::spmm[gespmm] pieces");
  return table;
}

/// Sums of split rows, pieces in order.
template <class CT, class Sum>
struct FinishSplitRows {
  Dense<CT> c;
  Sum alpha, beta;
  RowPieces<Sum> pieces;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
    const std::int64_t split = n / c.columns, column = n - split * c.columns;
    const SpmmSplit row = pieces.splits[split];
    const Sum* from = pieces.partials + row.first * pieces.partial_ld + column;
    Sum sum = 0;
    for (std::int32_t k = 0; k < row.count; ++k, from += pieces.partial_ld) sum += *from;
    store_scaled(c.at(row.window, column), alpha, sum, beta);
  }
};
template <class Exec, class CT, class Sum>
void finish_split_rows(const Exec& space, double alpha, double beta, const Dense<CT>& c, const RowPieces<Sum>& pieces) {
  if (pieces.split_count == 0) return;
  Kokkos::parallel_for(
      "Tessera::spmm[gespmm] split rows",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, pieces.split_count * c.columns),
      FinishSplitRows<CT, Sum>{c, static_cast<Sum>(alpha), static_cast<Sum>(beta), pieces});
}

}  // namespace Impl
}  // namespace Tessera

#endif
