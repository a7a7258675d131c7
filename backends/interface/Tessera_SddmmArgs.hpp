// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_SDDMM_ARGS_HPP
#define TESSERA_INTERFACE_SDDMM_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// What crosses from the Kokkos side to a backend for P := alpha (X Y^T on a pattern) [* S] + beta P.

namespace Tessera {

/// Where in P the result of each entry in CSR order belongs: there, or at a place of its own, as in the values of a
/// format that was made of the same pattern.
struct SddmmSlots {
  const void* of = nullptr;  ///< places; null: those of CSR
  bool wide = false;         ///< places have 64 bits, else 32

  TESSERA_FUNCTION std::int64_t operator()(std::int64_t entry) const {
    if (of == nullptr) return entry;
    return wide ? static_cast<std::int64_t>(static_cast<const std::uint64_t*>(of)[entry])
                : static_cast<std::int64_t>(static_cast<const std::uint32_t*>(of)[entry]);
  }
};

/// The dense operands and the entries. Rows of X and Y are whole words of sixteen bytes, contiguous, from a multiple of
/// sixteen bytes on; where the inner dimension K is no whole number of words, they are filled up with zeros. Narrow
/// rows (SddmmKernels::narrow_rows) are whole words of word_bytes, which begin at multiples of as many. Heads are
/// products on the same pattern, side by side in one launch.
struct SddmmDense {
  const void* x = nullptr;      ///< m x K
  const void* y = nullptr;      ///< n x K
  const void* scale = nullptr;  ///< S: a number per entry in CSR order; null: none
  void* p = nullptr;            ///< a number per entry, where `slots` says
  SddmmSlots slots;
  std::int64_t ldx = 0, ldy = 0;  ///< elements from row to row
  std::int64_t words = 0;         ///< of a row of X and Y
  int word_bytes = 16;            ///< of a word: 16 or 8, of FP32 also 4
  std::int64_t heads = 1;
  std::int64_t x_head = 0, y_head = 0, p_head = 0;  ///< elements from head to head
  ElementType p_type = ElementType::Double;         ///< the operands', or float beside 16-bit ones
  ElementType scale_type = ElementType::Double;
  double alpha = 1, beta = 0;
  void* compact = nullptr;  ///< room for a copy of Y in TF32, of all heads; null: no copy. Windows use it
  std::int64_t lower = 0;   ///< of such a copy (CompactCopy), whose ldy and y_head count groups; set by the backend

  /// Whether P := alpha sums, in their type and in CSR order.
  bool plain(bool wide_operands) const {
    return scale == nullptr && slots.of == nullptr && beta == 0 && (wide_operands || p_type == ElementType::Float);
  }
};

/// Thirty-two consecutive entries and the rows that they belong to.
struct alignas(8) SddmmGroup {
  static constexpr int entries = 32;
  std::int32_t row;      ///< of the first entry, counted among the rows that have entries
  std::uint32_t starts;  ///< bit e: entry e is the first one of its row; bit 0 is not set
};

/// Entries by rows, whatever these are.
struct SddmmRowsArgs {
  Precision precision = Precision::FP32;
  std::int64_t rows = 0;  ///< that have entries
  std::int64_t nnz = 0;
  const std::int32_t* columns = nullptr;
  bool aligned = false;                     ///< columns begin at a multiple of sixteen bytes: set by the backend
  const SddmmGroup* groups = nullptr;       ///< one for every 32 entries, the last one for fewer
  const std::int32_t* row_of = nullptr;     ///< rows that have entries; null: all rows have
  const std::uint32_t* entry_at = nullptr;  ///< place in CSR of each entry; null: the same
  bool beside = false;                      ///< runs beside the launch before, a SddmmWindowArgs::with_next
  SddmmDense dense;
};

/// A block: column vectors of a window that one matrix instruction takes, one per instruction height of the window. The
/// list of blocks takes neighbouring windows in turns: first blocks of eight windows, their second ones and so on, so
/// that the waves of a thread block, which take neighbouring blocks, have windows of their own that use the same rows
/// of Y at about the same time.
struct alignas(8) SddmmBlock {
  static constexpr int side_by_side = 8;  ///< windows that take turns
  static constexpr int window_bits = 28;
  static constexpr std::int64_t most_windows = std::int64_t{1} << window_bits;
  std::uint32_t window;  ///< and above its bits, how many column vectors there are, less one
  std::uint32_t first;   ///< place of its first column vector among the columns

  TESSERA_FUNCTION std::uint32_t window_index() const { return window & ((std::uint32_t{1} << window_bits) - 1); }
  TESSERA_FUNCTION int count() const { return static_cast<int>(window >> window_bits) + 1; }
};

/// A row of a block: bit k is set where the row has an entry in column vector k; these entries are begin, begin + 1,
/// ...
struct alignas(8) SddmmBlockRow {
  std::uint32_t begin, bits;
};

/// Windows of rows for matrix units.
struct SddmmWindowArgs {
  Precision precision = Precision::FP16;
  int window_rows = 0;  ///< of the instruction, or twice as many
  std::int64_t rows = 0, blocks = 0;
  const SddmmBlock* block = nullptr;
  const SddmmBlockRow* block_rows = nullptr;  ///< [block][row of the window]
  const std::int32_t* columns = nullptr;      ///< of the column vectors
  const std::int32_t* row_order = nullptr;    ///< row of X at each place in the windows; null: the same
  const std::uint32_t* entry_at = nullptr;    ///< place in CSR of each entry as the blocks count them; null: the same
  std::int64_t blocks_per_wave = 1;           ///< set by the backend
  std::int64_t cols = 0;                      ///< rows of Y
  bool plain = false;                         ///< SddmmDense::plain, and no entry_at: set by the backend
  bool with_next = false;                     ///< the launch after this one may begin: other entries of the same P
  SddmmDense dense;
};

}  // namespace Tessera

#endif
