// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_SPLIT_WINDOWS_HPP
#define TESSERA_FORMATS_WINDOWS_SPLIT_WINDOWS_HPP

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "formats/windows/Tessera_WindowBlocks.hpp"

/// \file
/// A sparsity pattern for attention on matrix units: windows of rows whose blocks follow each other, as one wave keeps
/// a running maximum and sums of all of a window; windows of many blocks are split into parts.

namespace Tessera {
namespace Experimental {

/// Windows of height * shape.rows rows. The distinct columns of a window, ascending, fill blocks of shape.vectors;
/// those left over of the last one repeat the window's last column, so that rows of K and V can be read without asking.
/// Bits and places of entries as in WindowBlocks. A row that repeats a column makes the window repeat it.
///
/// Bytes: blocks (4 vectors + 8 window rows) + 4 (windows + 1) + 16 parts; where rows are unsorted 4 nnz more.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct SplitWindows {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::shared_ptr<void> storage;

  AttentionShape shape;
  int height = 1;  ///< instructions that a window is high
  Precision precision = Precision::FP16;
  std::int64_t rows = 0, cols = 0, nnz = 0, windows = 0, blocks = 0;
  std::int64_t column_vectors = 0;  ///< distinct columns of the windows, summed: rows of K and of V fetched per head
  std::int64_t partial_count = 0;   ///< parts of split windows
  View<std::uint32_t> first_block;  ///< windows + 1
  View<SddmmBlockRow> block_rows;   ///< [block][row of the window]
  View<std::int32_t> columns;       ///< [block][vector]
  View<std::uint32_t> entry_at;     ///< entry in ascending columns -> entry in CSR; empty: the same
  View<SpmmPart> parts;             ///< empty: every window is one part
  View<SpmmSplit> splits;

  int window_rows() const { return height * shape.rows; }
  std::size_t format_bytes() const {
    return 4 * (first_block.extent(0) + columns.extent(0) + entry_at.extent(0)) +
           sizeof(SddmmBlockRow) * block_rows.extent(0) + sizeof(SpmmPart) * parts.extent(0) +
           sizeof(SpmmSplit) * splits.extent(0);
  }

  /// The kernel's arguments; dense operands and scratch left open.
  AttentionArgs arguments() const {
    AttentionArgs a;
    a.precision = precision;
    a.window_rows = window_rows();
    a.rows = rows;
    a.windows = windows;
    a.blocks = blocks;
    a.first_block = first_block.data();
    a.block_rows = block_rows.data();
    a.columns = columns.data();
    a.entry_at = entry_at.extent(0) > 0 ? entry_at.data() : nullptr;
    a.parts = parts.extent(0) > 0 ? parts.data() : nullptr;
    a.part_count = parts.extent(0) > 0 ? static_cast<std::int64_t>(parts.extent(0)) : windows;
    a.splits = splits.data();
    a.split_count = static_cast<std::int64_t>(splits.extent(0));
    a.partial_count = partial_count;
    return a;
  }
};

}  // namespace Experimental

namespace Impl {

/// Over the windows: what is left over of a window's last block repeats its last column.
template <class Windows, class Memory>
struct RepeatLastColumn {
  Windows of;
  typename Arena<Memory>::template View<std::int32_t> columns;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w) const {
    const std::int64_t first = of.first_column_vector(w), end = std::int64_t{of.first_block(w + 1)} * of.depth;
    const std::int64_t last = first + of.vectors(w);
    for (std::int64_t at = last; at < end; ++at) columns(at) = columns(last - 1);
  }
};

/// Rows, entries and windows that 32 bits hold. @throw NotSupported
template <class Pattern>
void check_split_window_sizes(const Pattern& A) {
  constexpr std::int64_t rows = std::numeric_limits<std::int32_t>::max();
  require<NotSupported>(
      A.nnz() < std::numeric_limits<std::uint32_t>::max() && static_cast<std::int64_t>(A.rows()) < rows, [&] {
        return "attention[windows]: " + std::to_string(A.nnz()) + " entries in " + std::to_string(A.rows()) +
               " rows; fewer than 2^32 - 1 and 2^31 - 1 are supported: use Backend::Kokkos";
      });
}

/// Work O(nnz window rows log(longest row)), one thread per entry; temporary memory and waits of WindowUnion. The last
/// kernels may still be in flight on `space`.
/// @param height  instructions that a window is high: 1 or 2
/// @param max_blocks  of a part; 0: as spmm_part_bound says
/// @throw NotSupported  2^32 - 1 entries or column vectors or more; DeviceError
template <class Pattern, class Exec>
Experimental::SplitWindows<typename Pattern::memory_space> split_windows(const Exec& space, const Pattern& A,
                                                                         const AttentionShape& shape, int height,
                                                                         Precision precision, int max_blocks,
                                                                         const KernelTable* backend) {
  using F = WindowBlockFunctors<Pattern>;
  using Memory = typename Pattern::memory_space;
  using Union = WindowUnion<Pattern>;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  auto f = empty_windows<Experimental::SplitWindows<Memory>>(A, shape, height, precision);
  check_split_window_sizes(A);
  const auto windows = static_cast<std::size_t>(f.windows);
  if (f.nnz == 0) {
    f.storage = Arena<Memory>::make(space, backend, "Tessera::split windows", Lifetime::Plan, [&](auto& arena) {
      f.first_block = arena.template take<std::uint32_t>(windows + 1);
    });
    Kokkos::deep_copy(space, f.first_block, 0u);
    return f;
  }
  const Union u(space, A, f.window_rows(), shape.vectors, true, max_blocks, {}, backend);
  f.column_vectors = u.column_vectors();
  f.blocks = u.blocks();
  f.partial_count = u.sizes.split.parts();
  const auto blocks = static_cast<std::size_t>(f.blocks), vectors = blocks * static_cast<std::size_t>(shape.vectors);
  const std::size_t rows = blocks * static_cast<std::size_t>(f.window_rows());
  require<NotSupported>(vectors < most, [&] {
    return "attention[windows]: " + std::to_string(vectors) +
           " column vectors in whole blocks; fewer than 2^32 - 1 are supported: use Backend::Kokkos";
  });
  f.storage = Arena<Memory>::make(space, backend, "Tessera::split windows", Lifetime::Plan, [&](auto& arena) {
    f.first_block = arena.template take<std::uint32_t>(windows + 1);
    f.block_rows = arena.template take<SddmmBlockRow>(rows);
    f.columns = arena.template take<std::int32_t>(vectors);
    f.entry_at = arena.template take<std::uint32_t>(u.origin.extent(0));
    f.parts = arena.template take<SpmmPart>(u.parts());
    f.splits = arena.template take<SpmmSplit>(u.splits());
  });
  u.write_columns(space, f.columns);
  using Windows = typename F::Windows;
  Kokkos::parallel_for("Tessera::attention[windows] repeat columns", Union::range(space, f.windows),
                       RepeatLastColumn<Windows, Memory>{Windows(u.base), f.columns});
  Kokkos::parallel_for("Tessera::attention[windows] first blocks", Union::range(space, f.windows + 1),
                       typename WindowFunctors<Pattern>::FirstBlocks{u.base.first_block, f.first_block});
  set_window_bits(space, "Tessera::attention[windows]", u, f, typename F::template View<std::uint32_t>());
  u.write_parts(space, false, f.parts, f.splits);
  return f;
}

}  // namespace Impl
}  // namespace Tessera

#endif
