// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_SHARES_HPP
#define TESSERA_ATTENTION_ATTENTION_SHARES_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "spmm/Tessera_SpmmInstances.hpp"

/// \file
/// A pattern for attention by rows: its rows, long ones cut into pieces, and which neighbouring ones of them a team of
/// lanes takes.

namespace Tessera {
namespace Impl {

/// The first piece of every share: as if a piece had some entries more than it has, all shares have as many.
template <class Pattern>
struct ShareBegins {
  using Memory = typename Pattern::memory_space;
  template <class T>
  using View = typename Arena<Memory>::template View<T>;
  static constexpr std::int64_t per_piece = 2;  ///< what a row costs besides its entries, in entries
  Pattern A;
  View<RowPiece> pieces;  ///< empty: rows
  std::int64_t count, entries;
  View<std::uint32_t> begin;

  KOKKOS_INLINE_FUNCTION std::int64_t before(std::int64_t piece) const {
    const std::int64_t all = static_cast<std::int64_t>(A.nnz());
    if (piece == count) return all + per_piece * count;
    const std::int64_t first = pieces.extent(0) > 0
                                   ? static_cast<std::int64_t>(pieces(piece).packed >> RowPiece::length_bits)
                                   : static_cast<std::int64_t>(A.row_map()(piece));
    return first + per_piece * piece;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t share) const {
    std::int64_t low = 0, high = count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (before(middle) < share * entries) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    begin(share) = static_cast<std::uint32_t>(low);
  }
};

/// Whether kernels by rows can read the columns of a matrix.
template <class Csr>
inline constexpr bool attention_rows_read = sizeof(typename Csr::ordinal_type) == sizeof(std::int32_t);

/// Bytes: 4 per share, and where rows are cut 16 per piece and 12 per row that is.
template <class Memory>
struct AttentionShares {
  PieceTable<Memory> table;
  std::shared_ptr<void> storage;
  typename Arena<Memory>::template View<std::uint32_t> begin;  ///< shares + 1
  std::int64_t rows = 0, nnz = 0, shares = 0;

  std::size_t bytes() const { return table.bytes() + 4 * begin.extent(0); }

  /// The kernel's arguments; dense operands and scratch left open. A: the pattern that the shares are of.
  template <class Pattern>
  AttentionRowsArgs arguments(const Pattern& A, Precision precision) const {
    AttentionRowsArgs a;
    a.precision = precision;
    a.rows = rows;
    a.nnz = nnz;
    a.row_map = A.row_map().data();
    a.offset_bytes = static_cast<int>(sizeof(typename Pattern::size_type));
    a.columns = reinterpret_cast<const std::int32_t*>(A.entries().data());
    a.table = table.pieces.extent(0) > 0 ? table.pieces.data() : nullptr;
    a.shares = begin.data();
    a.share_count = shares;
    a.splits = table.splits.data();
    a.split_count = static_cast<std::int64_t>(table.splits.extent(0));
    a.partial_count = table.partial_count;
    return a;
  }
};

/// Entries of a share: as many as give every team of a device one, within bounds. A team has a lane per two words of
/// sixteen bytes of a row (perf_test/notes/attention.md).
inline std::int64_t attention_share_entries(std::int64_t nnz, std::int64_t rows, std::int64_t row_bytes) {
  constexpr std::int64_t lanes_at_once = 65536, least = 16, most = 128;
  const std::int64_t lanes = std::clamp<std::int64_t>(row_bytes / 32, 4, 32), teams = lanes_at_once / lanes;
  return std::clamp<std::int64_t>((nnz + 2 * rows) / teams, least, most);
}

/// One wait, one more where rows are cut; O(rows) work. The last kernels may still be in flight on `space`.
/// @param row_bytes  of a row of Q, usually
/// @throw NotSupported  2^32 - 16 entries or 2^31 pieces or more; DeviceError
template <class Exec, class Pattern>
AttentionShares<typename Pattern::memory_space> attention_shares(const Exec& space, const Pattern& A,
                                                                 std::int64_t row_bytes, const KernelTable* backend) {
  using Memory = typename Pattern::memory_space;
  using Begins = ShareBegins<Pattern>;
  AttentionShares<Memory> s;
  s.rows = static_cast<std::int64_t>(A.rows());
  s.nnz = static_cast<std::int64_t>(A.nnz());
  constexpr std::int64_t most_entries = std::numeric_limits<std::uint32_t>::max() - 16;
  require<NotSupported>(s.nnz < most_entries, [&] {
    return "attention[rows]: " + std::to_string(s.nnz) +
           " entries; fewer than 2^32 - 16 are supported: use "
           "Backend::Kokkos";
  });
  if (s.rows == 0) return s;
  const std::int64_t entries = attention_share_entries(s.nnz, s.rows, row_bytes);
  const std::int64_t most = std::max<std::int64_t>(entries, 32);
  s.table = cut_rows(space, A, most, 2 * most, backend, false, true);
  const std::int64_t pieces =
      s.table.pieces.extent(0) > 0 ? static_cast<std::int64_t>(s.table.pieces.extent(0)) : s.rows;
  s.shares = (s.nnz + Begins::per_piece * pieces + entries - 1) / entries;
  s.storage = Arena<Memory>::make(space, backend, "Tessera::attention::shares", Lifetime::Plan, [&](auto& arena) {
    s.begin = arena.template take<std::uint32_t>(static_cast<std::size_t>(s.shares) + 1);
  });
  Kokkos::parallel_for("Tessera::attention[rows] shares",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, s.shares + 1),
                       Begins{A, s.table.pieces, pieces, entries, s.begin});
  return s;
}

}  // namespace Impl
}  // namespace Tessera

#endif
