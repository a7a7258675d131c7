// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_WINDOW_BLOCKS_HPP
#define TESSERA_FORMATS_WINDOWS_WINDOW_BLOCKS_HPP

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "backends/interface/Tessera_SddmmKernels.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"

/// \file
/// A sparsity pattern for matrix units: windows of rows, cut into blocks of as many column vectors as an instruction
/// takes.

namespace Tessera {
namespace Experimental {

/// Windows of height * shape.rows rows. The distinct columns of a window, ascending, fill blocks of shape.vectors, the
/// last one with fewer. Of each row of a block a word of bits says in which column vectors it has an entry, and a
/// number where its first one stands in CSR. A row that repeats a column makes the window repeat it.
///
/// Bytes: blocks (8 + 4 vectors + 8 window rows); where rows are unsorted 4 nnz more.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct WindowBlocks {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::shared_ptr<void> storage;

  SddmmShape shape;
  int height = 1;  ///< instructions that a window is high
  Precision precision = Precision::FP16;
  std::int64_t rows = 0, cols = 0, nnz = 0, windows = 0, blocks = 0;
  std::int64_t column_vectors = 0;  ///< distinct columns of the windows, summed: rows of Y fetched per apply
  View<SddmmBlock> block;           ///< neighbouring windows in turns
  View<SddmmBlockRow> block_rows;   ///< [block][row of the window]
  View<std::int32_t> columns;       ///< window after window, of whole blocks; shared ones without gaps
  View<std::uint32_t> entry_at;     ///< entry in ascending columns -> entry in CSR; empty: the same
  View<std::int32_t> row_order;     ///< row at each place in the windows; empty: the same
  bool shared = false;              ///< columns and row_order are those of another format

  int window_rows() const { return height * shape.rows; }
  std::size_t format_bytes() const {
    const std::size_t own = shared ? 0 : columns.extent(0) + row_order.extent(0);
    return sizeof(SddmmBlock) * block.extent(0) + sizeof(SddmmBlockRow) * block_rows.extent(0) +
           4 * (own + entry_at.extent(0));
  }

  /// The kernel's arguments; dense operands left open.
  SddmmWindowArgs arguments() const {
    SddmmWindowArgs a;
    a.precision = precision;
    a.window_rows = window_rows();
    a.rows = rows;
    a.cols = cols;
    a.blocks = blocks;
    a.block = block.data();
    a.block_rows = block_rows.data();
    a.columns = columns.data();
    a.row_order = row_order.extent(0) > 0 ? row_order.data() : nullptr;
    a.entry_at = entry_at.extent(0) > 0 ? entry_at.data() : nullptr;
    return a;
  }
};

}  // namespace Experimental

namespace Impl {

/// Over the windows: their blocks at their places in the list. Windows has windows, depth (of a block), first_block(w)
/// over windows + 1, vectors(w) and first_column_vector(w), the place of its columns.
template <class Windows, class Memory>
struct ListWindowBlocks {
  template <class T>
  using View = typename Arena<Memory>::template View<T>;
  Windows of;
  View<SddmmBlock> block;
  View<std::uint32_t> place;  ///< in the list, of blocks window after window

  KOKKOS_INLINE_FUNCTION std::uint32_t blocks_of(std::int64_t w) const {
    return w < of.windows ? of.first_block(w + 1) - of.first_block(w) : 0;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w) const {
    constexpr int turns = SddmmBlock::side_by_side;
    const std::int64_t first = w / turns * turns;
    std::uint32_t left = of.vectors(w);
    for (std::uint32_t u = 0; left > 0; ++u) {
      std::uint32_t at = of.first_block(first);
      for (int j = 0; j < turns; ++j) {
        const std::uint32_t other = blocks_of(first + j);
        at += other < u ? other : u;
        if (first + j < w && other > u) ++at;
      }
      const std::uint32_t count = left < of.depth ? left : of.depth;
      block(at) = {static_cast<std::uint32_t>(w) | (count - 1) << SddmmBlock::window_bits,
                   of.first_column_vector(w) + u * of.depth};
      place(of.first_block(w) + u) = at;
      left -= count;
    }
  }
};

template <class Memory>
struct ClearBlockRows {
  typename Arena<Memory>::template View<SddmmBlockRow> rows;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { rows(i) = {0, 0}; }
};

template <class Pattern>
struct WindowBlockFunctors {
  using Base = typename WindowFunctors<Pattern>::Base;
  template <class T>
  using View = typename WindowFunctors<Pattern>::template View<T>;

  /// Windows of the union of rows.
  struct Windows : Base {
    explicit Windows(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION std::uint32_t vectors(std::int64_t w) const {
      return this->leaders(this->begin(this->first_row(w + 1))) - this->leaders(this->begin(this->first_row(w)));
    }
  };

  /// Over the entries: each sets its bit; the first one of its row in the block says where it stands.
  struct Bits : Base {
    template <class T>
    using View = typename WindowFunctors<Pattern>::template View<T>;
    View<SddmmBlockRow> rows;
    View<std::uint32_t> place;  ///< in the list, of blocks window after window; empty: the same
    explicit Bits(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION std::uint32_t vector(std::uint32_t p) const { return this->column_vector(this->leader(p)); }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto p = static_cast<std::uint32_t>(i);
      const std::uint32_t v = vector(p), u = v / this->depth;
      const auto r = static_cast<std::uint32_t>(this->row(p));
      const std::uint32_t at = place.extent(0) > 0 ? place(u) : u;
      SddmmBlockRow& to = rows(std::int64_t{at} * this->height + r % this->height);
      Kokkos::atomic_fetch_or(&to.bits, std::uint32_t{1} << (v - u * this->depth));
      if (p == this->begin(r) || vector(p - 1) / this->depth != u) to.begin = p;
    }
  };
  template <class Origin>
  struct CopyOrigin {
    Origin from;
    View<std::uint32_t> to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = static_cast<std::uint32_t>(from(i)); }
  };
};

/// WindowBlocks or SplitWindows of A, without blocks as yet.
template <class Format, class Pattern, class Shape>
Format empty_windows(const Pattern& A, const Shape& shape, int height, Precision precision) {
  Format f;
  f.shape = shape;
  f.height = height;
  f.precision = precision;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  f.windows = (f.rows + f.window_rows() - 1) / f.window_rows();
  return f;
}

/// Fills f.block_rows, and f.entry_at where it is. @param place  as WindowBlockFunctors::Bits has it
template <class Pattern, class Exec, class Format, class Place>
void set_window_bits(const Exec& space, const std::string& name, const WindowUnion<Pattern>& u, const Format& f,
                     const Place& place) {
  using F = WindowBlockFunctors<Pattern>;
  using Union = WindowUnion<Pattern>;
  Kokkos::parallel_for(name + " clear", Union::range(space, static_cast<std::int64_t>(f.block_rows.extent(0))),
                       ClearBlockRows<typename Pattern::memory_space>{f.block_rows});
  typename F::Bits bits(u.base);
  bits.rows = f.block_rows;
  bits.place = place;
  Kokkos::parallel_for(name + " bits", Union::range(space, f.nnz), bits);
  if (f.entry_at.extent(0) == 0) return;
  using Origin = std::decay_t<decltype(u.origin)>;
  Kokkos::parallel_for(name + " order of entries", Union::range(space, f.nnz),
                       typename F::template CopyOrigin<Origin>{u.origin, f.entry_at});
}

/// @throw NotSupported  2^32 - 1 entries or more, 2^28 windows or more
template <class Pattern>
void check_window_sizes(const Pattern& A, int window_rows) {
  const std::int64_t windows = (static_cast<std::int64_t>(A.rows()) + window_rows - 1) / window_rows;
  const bool fits = A.nnz() < std::numeric_limits<std::uint32_t>::max() && windows < SddmmBlock::most_windows;
  require<NotSupported>(fits, [&] {
    return "sddmm[panels]: " + std::to_string(A.nnz()) + " entries in " + std::to_string(windows) +
           " windows; fewer than 2^32 - 1 and 2^28 are supported: use SddmmAlgorithm::Rows";
  });
}

/// Work O(nnz window rows log(longest row)), one thread per entry; temporary memory and waits of WindowUnion. The last
/// kernels may still be in flight on `space`.
/// @param height  instructions that a window is high: 1 or 2
/// @throw NotSupported  2^32 - 1 entries or column vectors or more, 2^28 windows or more; DeviceError
template <class Pattern, class Exec>
Experimental::WindowBlocks<typename Pattern::memory_space> window_blocks(const Exec& space, const Pattern& A,
                                                                         const SddmmShape& shape, int height,
                                                                         Precision precision,
                                                                         const KernelTable* backend) {
  using F = WindowBlockFunctors<Pattern>;
  using Memory = typename Pattern::memory_space;
  using Union = WindowUnion<Pattern>;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  auto f = empty_windows<Experimental::WindowBlocks<Memory>>(A, shape, height, precision);
  check_window_sizes(A, f.window_rows());
  if (f.nnz == 0) return f;
  const Union u(space, A, f.window_rows(), shape.vectors, true, 0, {}, backend);
  f.column_vectors = u.column_vectors();
  f.blocks = u.blocks();
  const auto blocks = static_cast<std::size_t>(f.blocks), vectors = blocks * static_cast<std::size_t>(shape.vectors);
  const std::size_t rows = blocks * static_cast<std::size_t>(f.window_rows());
  require<NotSupported>(vectors < most, [&] {
    return "sddmm[panels]: " + std::to_string(vectors) +
           " column vectors in whole blocks; fewer than 2^32 - 1 are supported: use SddmmAlgorithm::Rows";
  });
  f.storage = Arena<Memory>::make(space, backend, "Tessera::window blocks", Lifetime::Plan, [&](Arena<Memory>& arena) {
    f.block = arena.template take<SddmmBlock>(blocks);
    f.block_rows = arena.template take<SddmmBlockRow>(rows);
    f.columns = arena.template take<std::int32_t>(vectors);
    f.entry_at = arena.template take<std::uint32_t>(u.origin.extent(0));
  });
  typename F::template View<std::uint32_t> place;
  const auto temporary =
      Arena<Memory>::make(space, backend, "Tessera::window blocks::place", Lifetime::Temporary,
                          [&](Arena<Memory>& arena) { place = arena.template take<std::uint32_t>(blocks); });
  u.write_columns(space, f.columns);
  using Windows = typename F::Windows;
  Kokkos::parallel_for("Tessera::sddmm[panels] list", Union::range(space, f.windows),
                       ListWindowBlocks<Windows, Memory>{Windows(u.base), f.block, place});
  set_window_bits(space, "Tessera::sddmm[panels]", u, f, place);
  // Without a pool of the backend `place` is a View, which must not go before the kernel has read it.
  if (backend == nullptr || backend->runtime.allocate == nullptr) Compat::fence(space, "Tessera::window blocks");
  return f;
}

}  // namespace Impl
}  // namespace Tessera

#endif
