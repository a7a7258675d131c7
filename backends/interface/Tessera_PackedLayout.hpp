// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_PACKED_LAYOUT_HPP
#define TESSERA_INTERFACE_PACKED_LAYOUT_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_SpmvArgs.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"

/// \file
/// The packed-slices format: where everything lies. Shared by the conversion, the wave kernel and the host kernel.
///
/// A *slice* is what one wave multiplies: `lanes` / T rows with T lanes per row, in steps of one entry per lane; entry
/// s * T + t of a row lies in step s of its lane t. T is chosen slice by slice, so that all slices take about as many
/// steps. A slice is a record of sixteen bytes and a *packet*:
///
///     values   steps x group x lanes entries, in chunks of `chunk` steps: a lane's entries of a chunk are adjacent
///     indices  the same for the columns, relative to the record's column (24 bits: a plane of 16 and one of 8), or for
///              an index-free slice one offset (column - row) per step and, where rows lack entries, a mask per lane;
///              of a matrix of few diagonals, which has one list of offsets, a word per step: lanes with an entry
///     row ids  16 bits per row, unless the rows are consecutive
///
/// The last steps (fewer than `chunk`) follow as chunks of half the size, a quarter, and so on. `group` rows with equal
/// columns may share one index list; their values follow each other in planes.
/// All ones in an index is padding: it reads no x, so an infinite x cannot reach a row that does not use it.
///
/// Where rows are sorted and many have no entry, these make slices of their own, of more rows than a wave has lanes and
/// of no step: PackedEmpty. Their packet holds row ids alone.

namespace Tessera {

/// How a slice names its columns.
enum PackedIndex : int {
  PackedIndex8,
  PackedIndex16,
  PackedIndex24,
  PackedIndex32,
  PackedIndexFree,
  PackedDiagonals,  ///< the offsets of all slices are SpmvPackedArgs::offsets
  PackedEmpty       ///< none of its rows has an entry
};

/// Diagonals that a matrix may have whose slices are named by them, and the most lanes of a wave: bits of a word.
constexpr int packed_most_diagonals = 32;
/// Up to so many of them a slice has code of its own for each number.
constexpr int packed_most_short_diagonals = 9;

/// How values are stored, without loss. Float: doubles that are exact in binary32. Integer: whole numbers of -128..127.
/// Dictionary: at most 256 different numbers. Constant: one number.
enum class PackedStorage : int { Full, Float, Integer, Dictionary, Constant };

/// Up to so many steps two slices with indices are multiplied at once.
constexpr int packed_most_paired_steps = 4;

/// Packets start at multiples of this many bytes.
constexpr std::uint32_t packed_unit = 32;

struct alignas(16) PackedSlice {
  std::uint32_t packet;  ///< of the packet, in units
  std::int32_t row;      ///< first row, or what row ids count from; of a part: which one
  std::uint32_t column;  ///< what indices count from; PackedEmpty: how many rows
  std::uint32_t packed;  ///< see the functions below

  TESSERA_FUNCTION int steps() const { return static_cast<int>(packed & 1023u); }
  TESSERA_FUNCTION int log_lanes() const { return static_cast<int>(packed >> 10 & 7u); }  ///< log2 of T
  TESSERA_FUNCTION int index() const { return static_cast<int>(packed >> 13 & 7u); }
  TESSERA_FUNCTION bool contiguous() const { return packed >> 16 & 1u; }
  TESSERA_FUNCTION bool part() const { return packed >> 17 & 1u; }    ///< of a row of several slices
  TESSERA_FUNCTION bool masked() const { return packed >> 18 & 1u; }  ///< index-free, some rows lack entries
  TESSERA_FUNCTION int group() const { return static_cast<int>(packed >> 19 & 3u) + 1; }
  /// Rows, or groups of rows, that have lanes: not of PackedEmpty.
  TESSERA_FUNCTION int units() const { return static_cast<int>(packed >> 21 & 63u) + 1; }
  /// Rows, or groups of rows, of any slice.
  TESSERA_FUNCTION int rows() const { return index() == PackedEmpty ? static_cast<int>(column) : units(); }
  /// Steps from the first on in which every lane has an entry, as far as known (hosts; 0 where the conversion did not
  /// count them). Kernels that test each index do not need it.
  TESSERA_FUNCTION int full_steps() const {
    const int others = static_cast<int>(packed >> 27);
    return others == 0 || others > steps() ? 0 : steps() - others + 1;
  }
  TESSERA_FUNCTION void set_full_steps(int full) {
    const int others = steps() - full + 1;
    packed = (packed & 0x07ffffffu) | static_cast<std::uint32_t>(others < 32 ? others : 0) << 27;
  }
  TESSERA_FUNCTION bool has_ids() const { return !contiguous() && !part(); }

  TESSERA_FUNCTION static std::uint32_t pack(int steps, int log_lanes, int index, bool contiguous, bool part,
                                             bool masked, int group, int rows) {
    return static_cast<std::uint32_t>(steps) | static_cast<std::uint32_t>(log_lanes) << 10 |
           static_cast<std::uint32_t>(index) << 13 | static_cast<std::uint32_t>(contiguous) << 16 |
           static_cast<std::uint32_t>(part) << 17 | static_cast<std::uint32_t>(masked) << 18 |
           static_cast<std::uint32_t>(group - 1) << 19 | static_cast<std::uint32_t>(rows - 1) << 21;
  }
};

/// One slice of a row that was cut into several.
struct alignas(16) PackedPart {
  std::int32_t row;
  std::uint32_t first;  ///< sums of the row's parts start here
  std::uint32_t count;  ///< parts of the row
  std::uint32_t which;  ///< this one
};

/// What one thread block multiplies of a matrix in column blocks: of the slices and parts of one column block those
/// of its rank. They read x at `columns` columns from `column` on, and nowhere else.
struct alignas(16) PackedShare {
  std::uint32_t column, columns;
  std::uint32_t first, last, part_first, part_last;  ///< slices [first, last) and [part_first, part_last)
  std::uint32_t rank, ranks;

  TESSERA_FUNCTION std::uint32_t count() const { return last - first + part_last - part_first; }
  TESSERA_FUNCTION std::uint32_t slice(std::uint32_t i) const {
    const std::uint32_t parts = part_last - part_first;
    return i < parts ? part_first + i : first + (i - parts);
  }
};

/// Column blocks that a matrix may have, and shares of x of one in cells.
constexpr int packed_max_blocks = 128, packed_max_cells = 64;

/// Offsets in a packet. value_bytes: of a stored value (0 for PackedStorage::Constant).
struct PackedPacket {
  int lanes, value_bytes, chunk;

  TESSERA_FUNCTION static constexpr int chunk_of(int value_bytes) { return value_bytes == 8 ? 2 : 4; }
  TESSERA_FUNCTION PackedPacket(int lanes_, int value_bytes_)
      : lanes(lanes_), value_bytes(value_bytes_), chunk(chunk_of(value_bytes_)) {}

  TESSERA_FUNCTION static std::size_t round_up(std::size_t bytes) {
    return (bytes + packed_unit - 1) / packed_unit * packed_unit;
  }
  TESSERA_FUNCTION static int index_bytes(int index) { return index >= PackedIndexFree ? 4 : index + 1; }

  TESSERA_FUNCTION std::size_t indices(const PackedSlice& s) const {
    return static_cast<std::size_t>(s.steps()) * s.group() * lanes * value_bytes;
  }
  /// The plane of the third byte of 24-bit indices; the masks of index-free slices.
  TESSERA_FUNCTION std::size_t high(const PackedSlice& s) const {
    return indices(s) + (s.index() == PackedIndexFree ? round_up(static_cast<std::size_t>(s.steps()) * 4)
                                                      : static_cast<std::size_t>(s.steps()) * lanes * 2);
  }
  TESSERA_FUNCTION std::size_t row_ids(const PackedSlice& s) const {
    if (s.index() == PackedIndexFree) return high(s) + (s.masked() ? static_cast<std::size_t>(lanes) * 4 : 0);
    if (s.index() == PackedDiagonals) return indices(s) + round_up(static_cast<std::size_t>(s.steps()) * 4);
    return indices(s) + static_cast<std::size_t>(s.steps()) * lanes * index_bytes(s.index());
  }
  TESSERA_FUNCTION std::size_t bytes(const PackedSlice& s) const {
    return round_up(row_ids(s) + (s.has_ids() ? static_cast<std::size_t>(s.rows()) * 2 : 0));
  }

  /// First step and number of steps of the chunk that holds `step`.
  TESSERA_FUNCTION void find_chunk(int steps, int step, int& first, int& size) const {
    size = chunk;
    first = step / chunk * chunk;
    if (first + chunk <= steps) return;
    for (size = chunk / 2; size > 0; size /= 2) {
      if (((steps % chunk) & size) == 0) continue;
      if (step < first + size) return;
      first += size;
    }
  }
  /// Element (not byte) at which entry (step, lane) of plane `plane` of `planes` lies.
  TESSERA_FUNCTION std::size_t element(int steps, int step, int lane, int plane, int planes) const {
    int first, size;
    find_chunk(steps, step, first, size);
    return (static_cast<std::size_t>(first) * planes + static_cast<std::size_t>(plane) * size) * lanes +
           static_cast<std::size_t>(lane) * size + (step - first);
  }
};

/// Types of a kernel: what x holds, what sums are kept in, how values are stored.
template <class Value_, PackedStorage Storage>
struct PackedTypes {
  using Value = Value_;
  using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  static constexpr PackedStorage storage = Storage;
  using Stored = std::conditional_t<
      Storage == PackedStorage::Full, Value,
      std::conditional_t<Storage == PackedStorage::Float, float,
                         std::conditional_t<Storage == PackedStorage::Integer, std::int8_t, std::uint8_t>>>;
  static constexpr int value_bytes = Storage == PackedStorage::Constant ? 0 : static_cast<int>(sizeof(Stored));
};

/// How a launch divides the device; measured, and a matter of speed alone. ShortSlices: most slices have at most five
/// steps. IndexFree: most are index-free with more. WideBlocks: large matrices whose x has no locality, where many
/// neighbouring slices should share a first-level cache. Even: all slices are alike but for their rows and contents, so
/// that nothing waits for a record (SpmvPackedArgs::even_slice).
enum class PackedVariant : int { General, ShortSlices, IndexFree, WideBlocks, Even, Diagonals };

/// y := alpha A x + beta y in packed slices; `columns` vectors at once (Tessera_PackedCheck.hpp says when several).
struct SpmvPackedArgs {
  Precision precision = Precision::FP64;
  PackedStorage storage = PackedStorage::Full;
  const PackedSlice* slices = nullptr;
  std::uint32_t slice_count = 0;
  const unsigned char* packets = nullptr;
  const PackedPart* parts = nullptr;
  const void* dictionary = nullptr;            ///< 256 numbers of the matrix's type; Constant: one
  const std::uint32_t* hub_columns = nullptr;  ///< columns that indices below `hubs` stand for; others count from it
  std::uint32_t hubs = 0;
  bool renumbered = false;                         ///< all columns are hubs, in the order of their use; x is copied so
  bool streaming = true;                           ///< load the matrix past the first-level cache
  PackedVariant variant = PackedVariant::General;  ///< General where slices are grouped
  bool eight_waves = false;                        ///< eight waves per thread block: for many slices of few steps
  bool pairs = false;                              ///< Diagonals, few of them, ShortSlices: a wave takes two slices
  /// Even, Diagonals: what slice 0 is, and by how much packets and rows of the next lie behind.
  PackedSlice even_slice{};
  /// Diagonals: column - row of each step; beyond the last one of chunks that are asked for and not used.
  std::int32_t offsets[packed_most_diagonals + 8] = {};
  std::int32_t least_offset = 0, greatest_offset = 0;
  std::int64_t cols = 0;
  // Scratch for rows of several parts: `columns` sums per part, one counter per part (zero between applies).
  void* partials = nullptr;
  std::uint32_t* arrivals = nullptr;
  // Column blocks: row `block * rows + r` of a slice or part is row r in that block. Its sum goes to block_sums, and a
  // second launch adds the blocks of a row.
  int blocks = 1;
  std::int64_t rows = 0;
  std::uint32_t block_columns = 0, share_count = 0;
  const PackedShare* shares = nullptr;
  void* block_sums = nullptr;
  void* hub_copy = nullptr;  ///< x at the hub columns is first copied here; null: kept in shared memory instead
  // The vectors.
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t x_stride = 1, y_stride = 1, x_column_stride = 0, y_column_stride = 0;
  int columns = 1;
  ElementType y_type = ElementType::Double;
  double alpha = 1, beta = 0;
  float single_alpha = 1, single_beta = 0;  ///< the same; launchers round, so that lanes need not
};

/// Slice `index` of a matrix whose slices are even.
TESSERA_FUNCTION PackedSlice packed_even_slice(const SpmvPackedArgs& args, std::uint32_t index) {
  PackedSlice s = args.even_slice;
  const std::int64_t row = std::int64_t{index} * s.row, left = args.rows - row;
  s.packet *= index;
  s.row = static_cast<std::int32_t>(row);
  if (left < s.rows()) s.packed -= static_cast<std::uint32_t>(s.rows() - left) << 21;
  return s;
}

/// The arguments of the first launch of a product in column blocks: the sum of row i to block_sums[i].
inline SpmvPackedArgs packed_block_args(SpmvPackedArgs args) {
  args.y = args.block_sums;
  args.y_type = args.precision == Precision::FP64 ? ElementType::Double : ElementType::Float;
  args.y_stride = 1;
  args.alpha = 1;
  args.beta = 0;
  return args;
}

/// The second launch: y at one row from the sums of its blocks, in their order.
template <class Value>
TESSERA_FUNCTION void packed_add_blocks(const SpmvPackedArgs& args, std::int64_t row) {
  using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  const Sum* const sums = static_cast<const Sum*>(args.block_sums);
  Sum sum = 0;
  for (int block = 0; block < args.blocks; ++block) sum += sums[block * args.rows + row];
  store_result<Value>(args, row * args.y_stride, sum);
}

/// Vectors one pass over the matrix can take.
constexpr int packed_max_columns = 8;

}  // namespace Tessera

#endif
