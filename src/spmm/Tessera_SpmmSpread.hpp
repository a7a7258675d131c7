// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_SPREAD_HPP
#define TESSERA_SPMM_SPMM_SPREAD_HPP

#include <cstdint>
#include <memory>

#include "spmm/Tessera_SpmmPieces.hpp"

/// \file
/// Rows of A as items that are spread over teams of lanes: sorted by class of length (SpmmSpread), longest first, each
/// class in the order of its rows. Very long rows are cut into pieces of about the same length.

namespace Tessera {
namespace Impl {

template <class Csr>
struct SpreadFunctors {
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  template <class T>
  using View = typename Arena<Memory>::template View<T>;
  static constexpr int classes = SpmmSpread::classes, cut = classes - 1;
  static constexpr int sort_window = 1024;

  /// Pieces of a row of so many entries.
  KOKKOS_INLINE_FUNCTION static std::int64_t pieces_of(std::int64_t entries, const PieceBounds& bounds) {
    return entries > bounds.tolerated ? (entries + bounds.most - 1) / bounds.most : 1;
  }
  KOKKOS_INLINE_FUNCTION static int class_of(const RowPiece& piece) {
    if (piece.partial >= 0) return cut;
    const auto length = static_cast<std::int64_t>(piece.packed & static_cast<std::uint64_t>(RowPiece::most_entries));
    int c = 0;
    while (c < cut - 1 && (std::int64_t{1} << c) < length) ++c;
    return c;
  }

  /// Pieces of cut rows before each row (low half), and cut rows (high half).
  struct CutRows {
    Csr A;
    PieceBounds bounds;
    std::int64_t rows;
    View<std::uint64_t> before;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::uint64_t& sum, const bool final) const {
      if (final) before(row) = sum;
      if (row == rows) return;
      const std::int64_t n = pieces_of(PieceFunctors<Csr>::length(A, row), bounds);
      if (n > 1) sum += static_cast<std::uint64_t>(n) + (std::uint64_t{1} << 32);
    }
  };
  /// before: of CutRows, or empty: no row is cut.
  struct Fill {
    Csr A;
    PieceBounds bounds;
    View<std::uint64_t> before;
    View<RowPiece> pieces;
    View<SpmmSplit> splits;
    View<std::uint32_t> arrivals;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      const std::int64_t entries = PieceFunctors<Csr>::length(A, row);
      const auto first = static_cast<std::uint64_t>(A.row_map()(row));
      const std::int64_t n = before.extent(0) > 0 ? pieces_of(entries, bounds) : 1;
      const std::uint64_t place = before.extent(0) > 0 ? before(row) : 0;
      const auto partial = static_cast<std::int64_t>(place & 0xffffffffu),
                 split = static_cast<std::int64_t>(place >> 32);
      if (n == 1) {
        pieces(row + partial - split) = {(first << RowPiece::length_bits) | static_cast<std::uint64_t>(entries),
                                         static_cast<std::int32_t>(row), -1};
        return;
      }
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t begin = entries * k / n, end = entries * (k + 1) / n;
        pieces(row + partial - split + k) = {((first + static_cast<std::uint64_t>(begin)) << RowPiece::length_bits) |
                                                 static_cast<std::uint64_t>(end - begin),
                                             static_cast<std::int32_t>(split), static_cast<std::int32_t>(partial + k)};
      }
      splits(split) = {static_cast<std::int32_t>(row), static_cast<std::int32_t>(partial),
                       static_cast<std::int32_t>(n)};
      constexpr std::int64_t tiles = PieceTable<Memory>::arrival_tiles;
      for (std::int64_t t = 0; t < tiles; ++t) arrivals(split * tiles + t) = 0;
    }
  };
  /// Sorts inside sort windows, and counts the classes of each: counts(c * windows + window), the last class first.
  struct Sort {
    using Keys =
        Kokkos::View<std::uint32_t*, typename Exec::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    View<RowPiece> from, to;
    View<std::int32_t> counts;
    std::int64_t windows;
    KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
      const Keys keys(team.team_scratch(0), sort_window);
      const std::int64_t window = team.league_rank(), first = window * sort_window,
                         left = static_cast<std::int64_t>(from.extent(0)) - first;
      const int count = left < sort_window ? static_cast<int>(left) : sort_window;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, sort_window), [&](const int i) {
        keys(i) = i < count ? static_cast<std::uint32_t>((cut - class_of(from(first + i))) * sort_window + i)
                            : ~std::uint32_t{0};
      });
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, classes),
                           [&](const int c) { counts(c * windows + window) = 0; });
      team.team_barrier();
      team_sort(team, keys, sort_window);
      const auto class_at = [&](const int i) { return i < count ? static_cast<int>(keys(i) / sort_window) : classes; };
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const int i) {
        to(first + i) = from(first + static_cast<int>(keys(i) % sort_window));
        // The last one of a class knows how many there are, once it knows the first.
        if (class_at(i + 1) == class_at(i)) return;
        int begin = 0;
        for (int step = sort_window / 2; step > 0; step /= 2) {
          if (begin + step <= i && class_at(begin + step - 1) < class_at(i)) begin += step;
        }
        counts(class_at(i) * windows + window) = i + 1 - begin;
      });
    }
  };
  struct Places {
    View<std::int32_t> counts, before;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int32_t& sum, const bool final) const {
      if (final) before(i) = sum;
      if (i < static_cast<std::int64_t>(counts.extent(0))) sum += counts(i);
    }
  };
  /// Of each sort window, behind those of the windows before it.
  struct Merge {
    View<RowPiece> from, to;
    View<std::int32_t> counts, before;
    std::int64_t windows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t window = i / sort_window;
      const int c = cut - class_of(from(i));
      std::int64_t rank = i - window * sort_window;
      for (int other = 0; other < c; ++other) rank -= counts(other * windows + window);
      to(before(c * windows + window) + rank) = from(i);
    }
  };
  struct Totals {
    View<std::int32_t> before;
    View<SpmmSpread> items;
    std::int64_t windows;
    KOKKOS_INLINE_FUNCTION void operator()(const int c) const {
      items(0).counts[cut - c] = before((c + 1) * windows) - before(c * windows);
    }
  };
};

/// Waits once for the classes, and once more where a row is cut. O(rows) work; 16 bytes per item, and for a while 17
/// more, and 8 per row where rows are cut.
/// @param longest  no row has more entries
template <class Exec, class Csr>
PieceTable<typename Csr::memory_space> spread_rows(const Exec& space, const Csr& A, const PieceBounds& bounds,
                                                   std::int64_t longest, const KernelTable* backend) {
  using F = SpreadFunctors<Csr>;
  using Memory = typename Csr::memory_space;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  PieceTable<Memory> table;
  const auto rows = static_cast<std::int64_t>(A.rows());
  std::int64_t partials = 0, splits = 0;
  typename F::template View<std::uint64_t> before;
  std::shared_ptr<void> cuts;
  if (longest > bounds.tolerated) {
    cuts = Arena<Memory>::make(space, backend, "Tessera::spmm::cut rows", Lifetime::Temporary, [&](auto& arena) {
      before = arena.template take<std::uint64_t>(static_cast<std::size_t>(rows) + 1);
    });
    Kokkos::parallel_scan("Tessera::spmm[gespmm] cut rows", Policy(space, 0, rows + 1),
                          typename F::CutRows{A, bounds, rows, before});
    std::uint64_t total = 0;
    fetch(space, backend, "Tessera::spmm[gespmm] sizes", total,
          typename F::template View<std::uint64_t>(before.data() + rows, 1));
    partials = static_cast<std::int64_t>(total & 0xffffffffu);
    splits = static_cast<std::int64_t>(total >> 32);
  }
  const std::int64_t count = rows + partials - splits, windows = (count + F::sort_window - 1) / F::sort_window;
  table.storage = Arena<Memory>::make(space, backend, "Tessera::spmm::pieces", Lifetime::Plan, [&](auto& arena) {
    table.pieces = arena.template take<RowPiece>(static_cast<std::size_t>(count));
    table.splits = arena.template take<SpmmSplit>(static_cast<std::size_t>(splits));
    table.arrivals = arena.template take<std::uint32_t>(static_cast<std::size_t>(splits * table.arrival_tiles));
  });
  typename F::template View<RowPiece> unsorted, sorted;
  typename F::template View<std::int32_t> counts, places;
  typename F::template View<SpmmSpread> items;
  const auto temporary =
      Arena<Memory>::make(space, backend, "Tessera::spmm::unsorted pieces", Lifetime::Temporary, [&](auto& arena) {
        unsorted = arena.template take<RowPiece>(static_cast<std::size_t>(count));
        sorted = arena.template take<RowPiece>(static_cast<std::size_t>(count));
        counts = arena.template take<std::int32_t>(static_cast<std::size_t>(F::classes * windows));
        places = arena.template take<std::int32_t>(static_cast<std::size_t>(F::classes * windows + 1));
        items = arena.template take<SpmmSpread>(1);
      });
  Kokkos::parallel_for("Tessera::spmm[gespmm] fill pieces", Policy(space, 0, rows),
                       typename F::Fill{A, bounds, before, unsorted, table.splits, table.arrivals});
  Kokkos::TeamPolicy<Exec> policy(space, static_cast<int>(windows), Compat::team_size<Exec>(256));
  policy.set_scratch_size(0, Kokkos::PerTeam(F::Sort::Keys::shmem_size(F::sort_window)));
  Kokkos::parallel_for("Tessera::spmm[gespmm] sort pieces", policy,
                       typename F::Sort{unsorted, sorted, counts, windows});
  Kokkos::parallel_scan("Tessera::spmm[gespmm] places of pieces", Policy(space, 0, F::classes * windows + 1),
                        typename F::Places{counts, places});
  Kokkos::parallel_for("Tessera::spmm[gespmm] merge pieces", Policy(space, 0, count),
                       typename F::Merge{sorted, table.pieces, counts, places, windows});
  Kokkos::parallel_for("Tessera::spmm[gespmm] classes of pieces", Kokkos::RangePolicy<Exec>(space, 0, F::classes),
                       typename F::Totals{places, items, windows});
  fetch(space, backend, "Tessera::spmm[gespmm] classes", table.items, items);
  table.items.log2_piece = 0;  // the kernel has set the counts alone
  while ((std::int64_t{1} << table.items.log2_piece) < bounds.most) ++table.items.log2_piece;
  table.longest = longest;
  table.partial_count = partials;
  table.most_pieces = partials > 0 ? (longest + bounds.most - 1) / bounds.most : 1;
  table.spread = true;
  return table;
}

}  // namespace Impl
}  // namespace Tessera

#endif
