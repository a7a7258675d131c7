// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_TO_ME_BCRS_HPP
#define TESSERA_FORMATS_WINDOWS_TO_ME_BCRS_HPP

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "Tessera_Options.hpp"
#include "formats/windows/Tessera_MeBcrs.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"

namespace Tessera {
namespace Impl {

/// Puts entries into their slots.
template <class Pattern, class Values>
struct MeBcrsFillFunctor : WindowFunctors<Pattern>::Base {
  using Base = typename WindowFunctors<Pattern>::Base;
  template <class T>
  using View = typename WindowFunctors<Pattern>::template View<T>;
  Values from;
  View<typename Pattern::size_type> origin;  ///< empty: the same
  View<std::int32_t> row_pointers;
  View<std::uint64_t> entry_slot;  ///< empty: not wanted
  SpmmValueStore store;

  explicit MeBcrsFillFunctor(const Base& b) : Base(b) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
    const std::int32_t r = this->row(p);
    const std::uint32_t w = this->window_of(r), i = static_cast<std::uint32_t>(r) - w * this->height;
    const auto begin = static_cast<std::uint32_t>(row_pointers(w)),
               end = static_cast<std::uint32_t>(row_pointers(w + 1));
    const std::uint32_t j = this->column_vector(this->leader(p)) - begin, in_block = j % this->depth;
    const std::uint32_t first = begin + (j - in_block), width = end - first < this->depth ? end - first : this->depth;
    const std::int64_t slot = std::int64_t{first} * this->height + (i * width + in_block);
    const auto entry = origin.extent(0) > 0 ? static_cast<std::int64_t>(origin(p)) : p;
    store(slot, from(entry));
    if (entry_slot.extent(0) > 0) entry_slot(entry) = static_cast<std::uint64_t>(slot);
  }
};

/// A format without its numbers, and what their fill needs.
template <class Pattern>
struct MeBcrsPattern {
  Experimental::MeBcrs<typename Pattern::memory_space> format;
  std::optional<WindowUnion<Pattern>> windows;  ///< none where there are no entries
};

/// Everything of the conversion but the numbers; sizes and options of `f` are set.
template <class Pattern, class Exec>
MeBcrsPattern<Pattern> me_bcrs_pattern(const Exec& space, const Pattern& A,
                                       Experimental::MeBcrs<typename Pattern::memory_space> f, int max_blocks,
                                       bool updatable, const KernelTable* backend,
                                       const typename WindowFunctors<Pattern>::Order& row_order) {
  using F = WindowFunctors<Pattern>;
  using Arena = Impl::Arena<typename Pattern::memory_space>;
  using Union = WindowUnion<Pattern>;
  const auto windows = static_cast<std::size_t>(f.windows);
  const auto copy_order = [&] {
    if (f.row_order.extent(0) == 0) return;
    Kokkos::parallel_for("Tessera::convert[me-bcrs] order", Union::range(space, f.rows),
                         typename F::CopyOrder{row_order, f.row_order});
  };
  if (f.nnz == 0) {
    f.structure_storage = Arena::make(space, backend, "Tessera::me-bcrs", Lifetime::Plan, [&](Arena& arena) {
      f.row_pointers = arena.template take<std::int32_t>(windows + 1);
      f.row_order = arena.template take<std::int32_t>(row_order.extent(0));
    });
    Kokkos::deep_copy(space, f.row_pointers, 0);
    copy_order();
    return {f, std::nullopt};
  }
  const Union u(space, A, f.vector_length, f.depth, f.padded, max_blocks, row_order, backend);
  f.sorted = u.sorted;
  f.blocks = u.blocks();
  f.column_vectors = f.padded ? f.blocks * f.depth : u.column_vectors();
  f.partial_count = u.sizes.split.parts();
  require<NotSupported>(f.column_vectors <= std::numeric_limits<std::int32_t>::max(), [&] {
    return "ME-BCRS: " + std::to_string(f.column_vectors) + " column vectors, more than 2^31 - 1 are not supported";
  });
  f.structure_storage = Arena::make(space, backend, "Tessera::me-bcrs", Lifetime::Plan, [&](Arena& arena) {
    f.row_pointers = arena.template take<std::int32_t>(windows + 1);
    f.column_indices = arena.template take<std::int32_t>(static_cast<std::size_t>(f.column_vectors));
    f.row_order = arena.template take<std::int32_t>(row_order.extent(0));
    f.parts = arena.template take<SpmmPart>(u.parts());
    f.splits = arena.template take<SpmmSplit>(u.splits());
    f.entry_slot = arena.template take<std::uint64_t>(updatable ? A.nnz() : 0);
  });
  const std::size_t bytes = static_cast<std::size_t>(f.stored()) * static_cast<std::size_t>(f.value_bytes());
  f.value_storage = Arena::make(space, backend, "Tessera::me-bcrs::values", Lifetime::Plan,
                                [&](Arena& arena) { f.values = arena.template take<std::uint64_t>((bytes + 7) / 8); });
  copy_order();
  typename F::FirstVectors pointers(u.base);
  pointers.to = f.row_pointers;
  Kokkos::parallel_for("Tessera::convert[me-bcrs] row_pointers", Union::range(space, f.windows + 1), pointers);
  if (f.padded) Kokkos::deep_copy(space, f.column_indices, -1);
  Kokkos::deep_copy(space, f.values, std::uint64_t{0});
  u.write_columns(space, f.column_indices);
  u.write_parts(space, true, f.parts, f.splits);
  return {f, u};
}

}  // namespace Impl

namespace Experimental {

/// Converts A, which is not changed and not kept, to ME-BCRS, or SR-BCRS if options.padded [Shi et al., PPoPP'25].
/// Columns of rows may be unsorted and may repeat; column vectors ascend by column in each window, copies of a column
/// in the order in which rows repeat it (the m-th entry of a column in a row stands in the m-th copy).
///
/// Bytes of the format: 4 (windows + 1) + column vectors (4 + vector_length v), v bytes per value; map of an updatable
/// format: 8 nnz. Work O(nnz vector_length log(longest row)), one thread per entry; 12.25 nnz bytes of temporary
/// memory, 28 nnz more where rows are unsorted or reordered; one wait, further ones for unsorted rows. Deterministic. A
/// is trusted: run validate() on matrices from outside first. The last kernels may still be in flight on `space`.
/// @param precision  of stored values, each rounded once; TF32: floats, which the kernel rounds
/// @param depth  column vectors of a block, 1 to 32: KernelTable::flash_depth
/// @param updatable  keep the map that update_me_bcrs needs
/// @param backend  whose memory pool to use, and for whose device windows are split; may be null
/// @param row_order  row at each place in the windows: a permutation (trusted); empty: natural order
/// @throw InvalidArgument  depth or options out of range
/// @throw DimensionMismatch  an order of another length
/// @throw NotSupported  2^32 - 1 entries or more, more than 2^31 - 1 column vectors (padding included)
/// @throw DeviceError  out of device memory
template <class Csr, class Exec>
MeBcrs<typename Csr::memory_space> to_me_bcrs(
    const Exec& space, const Csr& A, Precision precision, int depth, const FlashOptions& options = {},
    bool updatable = true, const KernelTable* backend = nullptr,
    const typename Impl::WindowFunctors<Csr>::Order& row_order = typename Impl::WindowFunctors<Csr>::Order()) {
  using Pattern = Impl::PatternOf<Csr>;
  const Compat::ScopedRegion region("Tessera::convert[me-bcrs]");
  Impl::require<InvalidArgument>(options.vector_length == 8 || options.vector_length == 16, [&] {
    return "FlashOptions::vector_length must be 8 or 16, is " + std::to_string(options.vector_length);
  });
  Impl::require<InvalidArgument>(depth >= 1 && depth <= 32, [&] {
    return "ME-BCRS: the column vectors of a block must lie in [1, 32], are " + std::to_string(depth);
  });
  Impl::require<InvalidArgument>(options.max_blocks >= 0, [&] {
    return "FlashOptions::max_blocks must not be negative, is " + std::to_string(options.max_blocks);
  });
  Impl::spmm_check_sizes(A, row_order, "ME-BCRS");
  MeBcrs<typename Csr::memory_space> f;
  f.precision = precision;
  f.vector_length = options.vector_length;
  f.depth = depth;
  f.padded = options.padded;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  f.windows = (f.rows + f.vector_length - 1) / f.vector_length;
  const auto made =
      Impl::me_bcrs_pattern(space, Impl::pattern_of(A), f, options.max_blocks, updatable, backend, row_order);
  if (!made.windows) return made.format;
  Impl::MeBcrsFillFunctor<Pattern, Impl::ValuesOf<Csr>> fill(made.windows->base);
  fill.from = A.values();
  fill.origin = made.windows->origin;
  fill.row_pointers = made.format.row_pointers;
  fill.entry_slot = made.format.entry_slot;
  fill.store = {made.format.values.data(), precision, made.format.marks_zeros};
  Kokkos::parallel_for("Tessera::convert[me-bcrs] fill", Impl::WindowUnion<Pattern>::range(space, made.format.nnz),
                       fill);
  return made.format;
}

/// New numbers for the same pattern. One kernel, nnz (8 + source + v) bytes, no allocation, no wait.
/// @param A  the matrix that was converted, or one of the same pattern: only its sizes are looked at
/// @param values  nnz numbers in CSR order
/// @throw DimensionMismatch  other sizes
/// @throw NotSupported  the format was built without its map
template <class Exec, class Memory, class Csr, class Values>
void update_me_bcrs(const Exec& space, const MeBcrs<Memory>& f, const Csr& A, const Values& values) {
  Impl::spmm_update(space, f, A, values, "update_me_bcrs");
}

}  // namespace Experimental
}  // namespace Tessera

#endif
