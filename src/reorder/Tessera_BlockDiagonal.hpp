// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_BLOCK_DIAGONAL_HPP
#define TESSERA_REORDER_BLOCK_DIAGONAL_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_SegmentedSort.hpp"

/// \file
/// Many small matrices as one, so that one plan and one launch serve all of them.

namespace Tessera {

/// diag(A_0, A_1, ...) in CSR with its own arrays. Block k has rows first_row[k] ... first_row[k+1] - 1, which are also
/// its rows of C in C := A B, and columns first_col[k] ... first_col[k+1] - 1, which are its rows of B. Its values are
/// the elements first_entry[k] ... first_entry[k+1] - 1 of all: the place of new ones for update_values.
template <class Csr>
struct BlockDiagonal {
  using device = typename Csr::device_type;                                       ///< where the arrays are
  Kokkos::View<typename Csr::size_type*, Kokkos::LayoutLeft, device> row_map;     ///< rows + 1
  Kokkos::View<typename Csr::ordinal_type*, Kokkos::LayoutLeft, device> entries;  ///< columns
  Kokkos::View<typename Csr::value_type*, Kokkos::LayoutLeft, device> values;     ///< as many
  typename Csr::ordinal_type rows = 0;                                            ///< of all blocks
  typename Csr::ordinal_type cols = 0;                                            ///< of all blocks
  std::vector<std::int64_t> first_row;    ///< of each block, and the number of rows
  std::vector<std::int64_t> first_col;    ///< of each block, and the number of columns
  std::vector<std::int64_t> first_entry;  ///< of each block, and the number of entries

  /// The same as plans take it; keeps the arrays alive.
  Csr view() const { return csr_view(rows, cols, row_map, entries, values); }
};

namespace Impl {

template <class Csr>
struct BlockDiagonalFunctors {
  using offset = typename Csr::size_type;
  using ordinal = typename Csr::ordinal_type;
  struct Block {
    const offset* row_map;
    const ordinal* entries;
    const typename Csr::value_type* values;
    std::int64_t first_row, first_col, first_entry;
  };
  using Blocks = Kokkos::View<Block*, Kokkos::LayoutLeft, typename Csr::device_type>;
  using Result = BlockDiagonal<Csr>;

  struct FirstRow {
    Blocks blocks;
    KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t k) const { return blocks(k).first_row; }
  };
  struct FirstEntry {
    Blocks blocks;
    KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t k) const { return blocks(k).first_entry; }
  };
  struct Rows {
    Blocks blocks;
    std::int64_t count, rows, nnz;
    decltype(Result::row_map) row_map;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      if (row == rows) {
        row_map(row) = static_cast<offset>(nnz);
        return;
      }
      const Block& b = blocks(segment_of(FirstRow{blocks}, count, row));
      row_map(row) = static_cast<offset>(b.row_map[row - b.first_row] + static_cast<offset>(b.first_entry));
    }
  };
  struct Entries {
    Blocks blocks;
    std::int64_t count;
    decltype(Result::entries) entries;
    decltype(Result::values) values;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const Block& b = blocks(segment_of(FirstEntry{blocks}, count, i));
      const std::int64_t from = i - b.first_entry;
      entries(i) = static_cast<ordinal>(b.entries[from] + static_cast<ordinal>(b.first_col));
      values(i) = b.values[from];
    }
  };
};

}  // namespace Impl

/// diag(A_0, A_1, ...): rows, columns and entries of the blocks in their order, shifted by those of the blocks before.
/// Blocks of any shape, also without rows, columns or entries; no block gives a 0 x 0 matrix. The blocks are copied on
/// the device, whatever number of them: two kernels, O((rows + nnz) log(blocks)) work, and 48 bytes per block that come
/// from the host. Waits. Deterministic. The blocks are trusted: run validate() on matrices from outside first.
///
///     const auto batch = block_diagonal(space, blocks);
///     const SpmmPlan plan(space, batch.view());
///     plan.apply(space, B, C);  // B and C: those of the blocks, stacked
///
/// @param blocks  std::vector of CsrView
/// @throw NotSupported  more than 2^31 - 1 rows or columns in all, more than the ordinal type holds, or more entries
///        than the offset type does
template <class Exec, class Scalar, class Ordinal, class Offset, class Device>
BlockDiagonal<CsrView<Scalar, Ordinal, Offset, Device>> block_diagonal(
    const Exec& space, const std::vector<CsrView<Scalar, Ordinal, Offset, Device>>& blocks) {
  using Csr = CsrView<Scalar, Ordinal, Offset, Device>;
  using F = Impl::BlockDiagonalFunctors<Csr>;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const Compat::ScopedRegion region("Tessera::block_diagonal");
  BlockDiagonal<Csr> A;
  std::vector<typename F::Block> host;
  host.reserve(blocks.size());
  std::uint64_t rows = 0, cols = 0, nnz = 0;
  for (const Csr& b : blocks) {
    host.push_back({b.row_map().data(), b.entries().data(), b.values().data(), static_cast<std::int64_t>(rows),
                    static_cast<std::int64_t>(cols), static_cast<std::int64_t>(nnz)});
    A.first_row.push_back(static_cast<std::int64_t>(rows));
    A.first_col.push_back(static_cast<std::int64_t>(cols));
    A.first_entry.push_back(static_cast<std::int64_t>(nnz));
    rows += static_cast<std::uint64_t>(b.rows());
    cols += static_cast<std::uint64_t>(b.cols());
    nnz += b.nnz();
  }
  constexpr auto of_csr = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  constexpr auto most = std::min(of_csr, static_cast<std::uint64_t>(std::numeric_limits<Ordinal>::max()));
  constexpr auto most_entries = static_cast<std::uint64_t>(std::numeric_limits<Offset>::max());
  Impl::require<NotSupported>(rows <= most && cols <= most, [&] {
    return "block_diagonal: " + std::to_string(blocks.size()) + " blocks have " + std::to_string(rows) + " rows and " +
           std::to_string(cols) + " columns together, the ordinal type holds " + std::to_string(most) +
           "; make several batches";
  });
  Impl::require<NotSupported>(nnz <= most_entries, [&] {
    return "block_diagonal: " + std::to_string(blocks.size()) + " blocks have " + std::to_string(nnz) +
           " entries together, the offset type holds " + std::to_string(most_entries) +
           "; make several batches or use a wider one";
  });
  A.first_row.push_back(static_cast<std::int64_t>(rows));
  A.first_col.push_back(static_cast<std::int64_t>(cols));
  A.first_entry.push_back(static_cast<std::int64_t>(nnz));
  A.rows = static_cast<Ordinal>(rows);
  A.cols = static_cast<Ordinal>(cols);
  A.row_map = Compat::allocate<decltype(A.row_map)>(space, "Tessera::block_diagonal::row_map", rows + 1);
  A.entries = Compat::allocate<decltype(A.entries)>(space, "Tessera::block_diagonal::entries", nnz);
  A.values = Compat::allocate<decltype(A.values)>(space, "Tessera::block_diagonal::values", nnz);
  const auto count = static_cast<std::int64_t>(host.size());
  const auto device = Compat::allocate<typename F::Blocks>(space, "Tessera::block_diagonal::blocks", host.size());
  using Host = Kokkos::View<const typename F::Block*, Kokkos::LayoutLeft, Kokkos::HostSpace,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if (count > 0) Kokkos::deep_copy(space, device, Host(host.data(), host.size()));
  Kokkos::parallel_for(
      "Tessera::block_diagonal rows", Policy(space, 0, static_cast<std::int64_t>(rows) + 1),
      typename F::Rows{device, count, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(nnz), A.row_map});
  Kokkos::parallel_for("Tessera::block_diagonal entries", Policy(space, 0, static_cast<std::int64_t>(nnz)),
                       typename F::Entries{device, count, A.entries, A.values});
  Compat::fence(space, "Tessera::block_diagonal");  // the table of blocks is released here
  return A;
}

}  // namespace Tessera

#endif
