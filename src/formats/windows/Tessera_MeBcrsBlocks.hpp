// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_ME_BCRS_BLOCKS_HPP
#define TESSERA_FORMATS_WINDOWS_ME_BCRS_BLOCKS_HPP

#include <string>
#include <utility>

#include "core/Tessera_SegmentedSort.hpp"
#include "formats/windows/Tessera_MeBcrs.hpp"
#include "formats/windows/Tessera_WindowBlocks.hpp"

/// \file
/// The windows of an ME-BCRS as blocks for SDDMM: its columns are used where they lie.

namespace Tessera {
namespace Impl {

template <class Memory>
struct MeBcrsBlockFunctors {
  template <class T>
  using View = typename Arena<Memory>::template View<T>;

  struct Windows {
    View<std::int32_t> row_pointers;
    View<std::uint32_t> first_block_of;  ///< windows + 1
    std::int64_t windows;
    std::uint32_t depth;
    KOKKOS_INLINE_FUNCTION std::uint32_t first_column_vector(std::int64_t w) const {
      return static_cast<std::uint32_t>(row_pointers(w));
    }
    KOKKOS_INLINE_FUNCTION std::uint32_t first_block(std::int64_t w) const { return first_block_of(w); }
    KOKKOS_INLINE_FUNCTION std::uint32_t vectors(std::int64_t w) const {
      return w < windows ? first_column_vector(w + 1) - first_column_vector(w) : 0;
    }
  };

  /// Prefix sums of the windows' blocks. Over windows + 1.
  struct Count {
    using value_type = std::uint32_t;
    Windows of;
    View<std::uint32_t> total;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w, std::uint32_t& sum, const bool final) const {
      if (final) {
        of.first_block_of(w) = sum;
        if (w == of.windows) total(0) = sum;
      }
      sum += (of.vectors(w) + of.depth - 1) / of.depth;
    }
  };

  /// Over the entries in CSR order: where their numbers stand in the ME-BCRS says which bits are theirs.
  struct Bits {
    Windows of;
    View<std::uint64_t> entry_slot;
    std::uint32_t height, narrow;  ///< of windows; column vectors of the ME-BCRS's blocks
    View<SddmmBlockRow> rows;
    View<std::uint32_t> place;

    struct Slot {
      std::uint32_t block, row, vector;  ///< window after window; in the window; in the block
    };
    KOKKOS_INLINE_FUNCTION Slot slot_of(std::int64_t entry) const {
      const std::uint64_t slot = entry_slot(entry);
      // Slots of a block are those of its column vectors in another order.
      const std::int64_t w = segment_of(of.row_pointers, of.windows, static_cast<std::int64_t>(slot / height));
      const std::uint32_t begin = of.first_column_vector(w), vectors = of.vectors(w);
      const std::uint64_t in_window = slot - std::uint64_t{begin} * height;
      const auto first = static_cast<std::uint32_t>(in_window / (narrow * height)) * narrow;
      const std::uint32_t left = vectors - first, width = left < narrow ? left : narrow;
      const auto in_block = static_cast<std::uint32_t>(in_window - std::uint64_t{first} * height);
      const std::uint32_t vector = first + in_block % width;
      return {of.first_block(w) + vector / of.depth, in_block / width, vector % of.depth};
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      const Slot s = slot_of(p);
      SddmmBlockRow& to = rows(std::int64_t{place(s.block)} * height + s.row);
      Kokkos::atomic_fetch_or(&to.bits, std::uint32_t{1} << s.vector);
      const Slot before = p > 0 ? slot_of(p - 1) : Slot{~std::uint32_t{0}, 0, 0};
      if (before.block != s.block || before.row != s.row) to.begin = static_cast<std::uint32_t>(p);
    }
  };
};

/// What keeps the windows of an ME-BCRS from being blocks of such a shape; empty: nothing.
template <class Memory>
std::string why_no_blocks(const Experimental::MeBcrs<Memory>& f, const SddmmShape& shape) {
  if (f.padded) return "its blocks are padded (SR-BCRS)";
  if (!f.sorted) return "the columns of the matrix do not ascend in every row";
  if (f.nnz > 0 && f.entry_slot.extent(0) == 0) return "it was made with updatable = false";
  if (f.vector_length != shape.rows && f.vector_length != 2 * shape.rows) {
    return "its windows have " + std::to_string(f.vector_length) + " rows, an instruction of SDDMM takes " +
           std::to_string(shape.rows);
  }
  if (f.windows >= SddmmBlock::most_windows) return "it has 2^28 windows or more";
  return {};
}

/// Bytes: 8 per block and 8 per row of a block; columns and row order stay those of `f`, which are kept alive. Work
/// O(nnz log windows), one thread per entry; 4 (windows + blocks) bytes of temporary memory, one wait. The last kernels
/// may still be in flight on `space`.
/// @param f  why_no_blocks(f, shape) is empty
template <class Memory, class Exec>
Experimental::WindowBlocks<Memory> window_blocks_of(const Exec& space, const Experimental::MeBcrs<Memory>& f,
                                                    const SddmmShape& shape, Precision precision,
                                                    const KernelTable* backend) {
  using F = MeBcrsBlockFunctors<Memory>;
  using Windows = typename F::Windows;
  const auto range = [&](std::int64_t n) {
    return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n);
  };
  Experimental::WindowBlocks<Memory> b;
  b.shape = shape;
  b.height = f.vector_length / shape.rows;
  b.precision = precision;
  b.rows = f.rows;
  b.cols = f.cols;
  b.nnz = f.nnz;
  b.windows = f.windows;
  b.column_vectors = f.column_vectors;
  b.shared = true;
  if (f.nnz == 0) return b;
  typename F::template View<std::uint32_t> first_block, total, place;
  const auto sums =
      Arena<Memory>::make(space, backend, "Tessera::me-bcrs::blocks", Lifetime::Temporary, [&](Arena<Memory>& arena) {
        first_block = arena.template take<std::uint32_t>(static_cast<std::size_t>(f.windows) + 1);
        total = arena.template take<std::uint32_t>(1);
      });
  const Windows windows{f.row_pointers, first_block, f.windows, static_cast<std::uint32_t>(shape.vectors)};
  Kokkos::parallel_scan("Tessera::sddmm[flash] blocks", range(f.windows + 1), typename F::Count{windows, total});
  std::uint32_t blocks = 0;
  fetch(space, backend, "Tessera::sddmm[flash] blocks", blocks, total);
  b.blocks = blocks;
  const std::int64_t rows = b.blocks * b.window_rows();
  auto storage =
      Arena<Memory>::make(space, backend, "Tessera::window blocks", Lifetime::Plan, [&](Arena<Memory>& arena) {
        b.block = arena.template take<SddmmBlock>(blocks);
        b.block_rows = arena.template take<SddmmBlockRow>(static_cast<std::size_t>(rows));
      });
  b.storage = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(std::move(storage),
                                                                                        f.structure_storage);
  b.columns = f.column_indices;
  b.row_order = f.row_order;
  const auto places =
      Arena<Memory>::make(space, backend, "Tessera::window blocks::place", Lifetime::Temporary,
                          [&](Arena<Memory>& arena) { place = arena.template take<std::uint32_t>(blocks); });
  Kokkos::parallel_for("Tessera::sddmm[flash] list", range(f.windows),
                       ListWindowBlocks<Windows, Memory>{windows, b.block, place});
  Kokkos::parallel_for("Tessera::sddmm[flash] clear", range(rows), ClearBlockRows<Memory>{b.block_rows});
  Kokkos::parallel_for("Tessera::sddmm[flash] bits", range(f.nnz),
                       typename F::Bits{windows, f.entry_slot, static_cast<std::uint32_t>(f.vector_length),
                                        static_cast<std::uint32_t>(f.depth), b.block_rows, place});
  // Without a pool of the backend the temporary arrays are Views, which must not go before the kernels have read them.
  if (backend == nullptr || backend->runtime.allocate == nullptr) Compat::fence(space, "Tessera::window blocks");
  return b;
}

}  // namespace Impl
}  // namespace Tessera

#endif
