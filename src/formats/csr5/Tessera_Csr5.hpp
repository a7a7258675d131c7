// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_CSR5_CSR5_HPP
#define TESSERA_FORMATS_CSR5_CSR5_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Tessera_Compat.hpp"
#include "Tessera_Options.hpp"

/// \file
/// The CSR5 format [Liu & Vinter, "CSR5: An Efficient Storage Format for Cross-Platform Sparse Matrix-Vector
/// Multiplication", ICS'15, section 3] as plain Views.

namespace Tessera {
namespace Experimental {

/// Sizes of a tile and of the fields of its descriptor. Lane i of tile t holds the entries
/// t omega sigma + i sigma + j, j < sigma, of the CSR order. Experimental: see Csr5Pattern.
struct Csr5Shape {
  static constexpr std::uint32_t row_mask = 0x7fffffffu;    ///< of a tile_ptr: row of the first entry
  static constexpr std::uint32_t empty_mask = 0x80000000u;  ///< of a tile_ptr: the tile passes over empty rows
  static constexpr int max_sigma = 32;

  int omega = 0;       ///< lanes, a power of two
  int sigma = 0;       ///< entries per lane
  int y_bits = 0;      ///< of y_offset
  int lane_bits = 0;   ///< of seg_offset: log2(omega)
  int packets = 0;     ///< words of a lane's descriptor: 1 or 2
  int first_bits = 0;  ///< row-start flags in the first word

  Csr5Shape() = default;
  Csr5Shape(int lanes, int entries) : omega(lanes), sigma(entries) {
    while ((1 << lane_bits) < omega) ++lane_bits;
    while ((1 << y_bits) < omega * sigma) ++y_bits;
    packets = (y_bits + lane_bits + sigma + 31) / 32;
    first_bits = 32 - y_bits - lane_bits;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t tile() const { return static_cast<std::int64_t>(omega) * sigma; }
  /// Where word w of a lane's descriptor stands.
  KOKKOS_INLINE_FUNCTION std::int64_t word(std::int64_t t, int w, int lane) const {
    return (t * packets + w) * omega + lane;
  }
  /// Row starts of a lane, slot 0 in the highest bit.
  KOKKOS_INLINE_FUNCTION std::uint32_t flags(const std::uint32_t* desc, std::int64_t t, int lane) const {
    const std::uint32_t first = desc[word(t, 0, lane)] << (32 - first_bits);
    return packets == 1 ? first : first | desc[word(t, 1, lane)] >> first_bits;
  }
  /// Row starts in the lanes before this one, the tile's first slot not counted.
  KOKKOS_INLINE_FUNCTION std::uint32_t y_offset(std::uint32_t first_word) const { return first_word >> (32 - y_bits); }
  /// Lanes that follow this one without a row start.
  KOKKOS_INLINE_FUNCTION int seg_offset(std::uint32_t first_word) const {
    return static_cast<int>((first_word << y_bits) >> (32 - lane_bits));
  }
};

/// What kernels read: pointers into a Csr5, which must live on.
template <class Scalar>
struct Csr5Data {
  Csr5Shape shape;
  std::int64_t rows = 0, nnz = 0, tiles = 0, full = 0, tail_rows = 0, empty_rows = 0;
  const Scalar* values = nullptr;
  const std::int32_t* columns = nullptr;
  const std::uint32_t *tile_ptr = nullptr, *tile_desc = nullptr, *empty_ptr = nullptr;
  const std::int32_t* empty_offset = nullptr;
  const std::uint32_t *carry_end = nullptr, *long_spans = nullptr, *tail_begin = nullptr;
  const std::int32_t *tail_row = nullptr, *empty_row = nullptr;
  void* carries = nullptr;
};

/// The entries in CSR order are cut into tiles of omega lanes by sigma entries, whatever the rows are. In a full tile
/// slot j of lane i stands at j omega + i; the last tile, if not full, stays as it is in CSR (the tail).
///
/// Descriptor of a lane, `packets` words (word w of lane i of tile t at (t packets + w) omega + i), from the highest
/// bit: y_offset | seg_offset | one flag per slot, continued in the second word. A flag says that a row starts in the
/// slot; the flag of a tile's first slot is stored as it is and taken as set where segments are counted. The s-th
/// segment (s >= 1) of a tile belongs to row tile_row + s, or tile_row + 1 + empty_offset(empty_ptr(t) + s - 1) where
/// the tile passes over empty rows; segment 0 belongs to tile_row.
///
/// Beyond the paper, all of it so that each element of y is written once and in a fixed order: carry_end names the
/// tiles that a row goes on through, empty_row the rows that no tile meets, tail_row and tail_begin the rows of the
/// tail.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct Csr5Pattern {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Storage = std::shared_ptr<void>;
  using memory_space = MemorySpace;

  static constexpr int long_span = 64;  ///< a row through more tiles is finished by a Kokkos team

  Storage storage, empty_storage, carry_storage;
  Csr5Shape shape;

  View<std::int32_t> columns;  ///< nnz

  View<std::uint32_t> tile_ptr;     // tiles + 1: row of the first entry, empty_mask; the last one is `rows`
  View<std::uint32_t> tile_desc;    // tiles * packets * omega; the tail's is read by the conversion and decoding only
  View<std::uint32_t> empty_ptr;    // tiles: first empty_offset of a tile that has them
  View<std::int32_t> empty_offset;  ///< row displacement of each segment but the first
  View<std::uint32_t> carry_end;    // full tiles: last tile of the row that starts here and goes on; 0: none
  View<std::uint32_t> long_spans;   // full tiles whose row goes on through more than long_span tiles
  View<std::int32_t> tail_row;      // rows of the tail
  View<std::uint32_t> tail_begin;   // and where in the tail they begin
  View<std::int32_t> empty_row;     // the empty rows
  View<double> carries;             // scratch: leading sum of each tile, trailing sum of each full tile

  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t tiles = 0;  ///< ceil(nnz / (omega sigma))
  std::int64_t full = 0;   ///< floor of the same
  std::int64_t spans = 0;  ///< rows that lie in several tiles

  /// Device memory of all but values and scratch.
  std::size_t pattern_bytes() const {
    return 4 * (columns.extent(0) + tile_ptr.extent(0) + tile_desc.extent(0) + empty_ptr.extent(0) +
                empty_offset.extent(0) + carry_end.extent(0) + long_spans.extent(0) + tail_row.extent(0) +
                tail_begin.extent(0) + empty_row.extent(0));
  }
  /// Two partial sums per tile; 0 if no row lies in several tiles.
  std::size_t workspace_bytes() const {
    return spans == 0 ? 0 : sizeof(double) * static_cast<std::size_t>(tiles + full);
  }
  /// Uses workspace_bytes() bytes of the caller's, aligned to 16, instead of its own scratch, which is released.
  /// Uninitialised memory will do.
  void use_workspace(void* data) {
    carry_storage.reset();
    carries = View<double>(static_cast<double*>(data), workspace_bytes() / sizeof(double));
  }
  /// Kernels of one product: the tiles, and the sums of rows that lie in several of them.
  int launches() const { return spans > 0 ? 2 : 1; }
};

/// See Csr5Pattern.
template <class Scalar, class MemorySpace>
struct Csr5 : Csr5Pattern<MemorySpace> {
  template <class T>
  using View = typename Csr5Pattern<MemorySpace>::template View<T>;
  using value_type = Scalar;

  View<Scalar> values;  ///< nnz

  /// Device memory of the format without its scratch.
  std::size_t format_bytes() const { return values.extent(0) * sizeof(Scalar) + this->pattern_bytes(); }

  Csr5Data<Scalar> data() const {
    Csr5Data<Scalar> d;
    d.shape = this->shape;
    d.rows = this->rows;
    d.nnz = this->nnz;
    d.tiles = this->tiles;
    d.full = this->full;
    d.tail_rows = static_cast<std::int64_t>(this->tail_row.extent(0));
    d.empty_rows = static_cast<std::int64_t>(this->empty_row.extent(0));
    d.values = values.data();
    d.columns = this->columns.data();
    d.tile_ptr = this->tile_ptr.data();
    d.tile_desc = this->tile_desc.data();
    d.empty_ptr = this->empty_ptr.data();
    d.empty_offset = this->empty_offset.data();
    d.carry_end = this->carry_end.data();
    d.long_spans = this->long_spans.data();
    d.tail_begin = this->tail_begin.data();
    d.tail_row = this->tail_row.data();
    d.empty_row = this->empty_row.data();
    d.carries = this->carries.data();
    return d;
  }
};

}  // namespace Experimental
}  // namespace Tessera

#endif
