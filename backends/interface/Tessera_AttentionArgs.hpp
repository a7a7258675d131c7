// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_ATTENTION_ARGS_HPP
#define TESSERA_INTERFACE_ATTENTION_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_SddmmArgs.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"

/// \file
/// What crosses from the Kokkos side to a backend for O := softmax(scale Q K^T on a pattern) V.

namespace Tessera {

/// The dense operands of the pattern's type. Rows of Q, K, V and O are contiguous whole words of sixteen bytes, from a
/// multiple of sixteen bytes on. Heads share the pattern, side by side in one launch.
struct AttentionDense {
  const void* q = nullptr;  ///< m x d
  const void* k = nullptr;  ///< n x d
  const void* v = nullptr;  ///< n x e
  void* o = nullptr;        ///< m x e
  std::int64_t d = 0, e = 0;
  std::int64_t ldq = 0, ldk = 0, ldv = 0, ldo = 0;  ///< elements from row to row
  std::int64_t heads = 1;
  std::int64_t q_head = 0, k_head = 0, v_head = 0, o_head = 0;  ///< elements from head to head
  void* lse = nullptr;                     ///< log-sum-exp per row, float, of FP64 double; null: not wanted
  std::int64_t lse_row = 1, lse_head = 0;  ///< elements from row to row, from head to head
  const void* bias = nullptr;              ///< added to the scores, per entry in CSR order
  const void* factor = nullptr;            ///< the scores are multiplied by; not both
  double scale = 1;                        ///< of every score
};

/// Windows of rows, whose blocks follow each other, those of parts too. A block has `vectors` columns, those beyond the
/// window's last one repeat a column of the window, and a word of bits per row says in which of them the row has an
/// entry.
struct AttentionArgs {
  Precision precision = Precision::FP16;
  int window_rows = 0;  ///< of the instruction, or twice as many
  std::int64_t rows = 0, windows = 0, blocks = 0;
  const std::uint32_t* first_block = nullptr;  ///< windows + 1
  const SddmmBlockRow* block_rows = nullptr;   ///< [block][row of the window]
  const std::int32_t* columns = nullptr;       ///< [block][vector]
  const std::uint32_t* entry_at = nullptr;     ///< place in CSR of each entry as the blocks count them; null: the same
  const SpmmPart* parts = nullptr;             ///< null: every window is one part; else its first_block counts over all
  std::int64_t part_count = 0;                 ///< = windows if parts is null
  std::int64_t parts_per_wave = 0;             ///< neighbouring ones; 0: as the backend sees fit
  const SpmmSplit* splits = nullptr;           ///< windows of several parts
  std::int64_t split_count = 0, partial_count = 0;
  float* partials = nullptr;  ///< [head][partial][row of the window][AttentionPartials::row_size(e)]
  AttentionDense dense;
};

/// Compressed rows, or pieces of long ones, in their order. A *share* is what a team of lanes takes: neighbouring
/// pieces of about as many entries as those of other shares.
struct AttentionRowsArgs {
  Precision precision = Precision::FP32;  ///< or FP64; TF32 is multiplied in FP32
  std::int64_t rows = 0, nnz = 0;
  const void* row_map = nullptr;  ///< rows + 1 offsets
  int offset_bytes = 4;           ///< 4 or 8; signed or not: none is negative
  const std::int32_t* columns = nullptr;
  const SpmmRowPiece* table = nullptr;    ///< null: piece p is row p
  const std::uint32_t* shares = nullptr;  ///< first piece of each share, and the number of pieces
  std::int64_t share_count = 0;
  const SpmmSplit* splits = nullptr;  ///< rows of several pieces
  std::int64_t split_count = 0, partial_count = 0;
  void* partials = nullptr;  ///< [head][partial][AttentionPartials::row_size(e)], of the type of the sums
  AttentionDense dense;
};

/// What a part leaves of a row: e sums of weighted rows of V, then the binary logarithm that all weights were divided
/// by and the sum of the weights.
struct AttentionPartials {
  TESSERA_FUNCTION static std::int64_t row_size(std::int64_t e) { return e + 4; }
};

/// Of a row of the pattern: its log-sum-exp as a binary logarithm, and <dO_i, O_i>.
template <class Sum>
struct alignas(2 * sizeof(Sum)) AttentionFactsOf {
  Sum lse, delta;
};
using AttentionRowFacts = AttentionFactsOf<float>;

/// What the gradients need besides AttentionDense, of which all is read, o and lse too. Rows of dense operands as
/// there.
struct AttentionGradientArgs {
  bool by_columns = false;
  const void* d_o = nullptr;                                       ///< m x e
  void* d_first = nullptr;                                         ///< dQ, m x d, or dK, n x d
  void* d_second = nullptr;                                        ///< by columns dV, n x e
  std::int64_t ld_d_o = 0, ld_d_first = 0, ld_d_second = 0;        ///< elements from row to row
  std::int64_t d_o_head = 0, d_first_head = 0, d_second_head = 0;  ///< elements from head to head
  void* facts = nullptr;                                           ///< AttentionFactsOf: [head][row of the pattern]
  std::int64_t pattern_rows = 0;
  void* d_values = nullptr;  ///< by rows: gradients of bias or factor, per entry in CSR order; null: not wanted
  std::int64_t d_values_stride = 1, d_values_head = 0;  ///< elements from entry to entry, from head to head
};

/// One pass of the gradients: dQ by windows of rows, which also writes `facts`; then dK and dV by windows of the
/// transposed pattern, whose `entry_at` names entries of the pattern itself. What parts of split windows leave of a
/// row: d sums, by columns e more.
struct AttentionBackwardArgs : AttentionGradientArgs {
  AttentionArgs windows;

  TESSERA_FUNCTION const AttentionDense& dense() const { return windows.dense; }
};

/// The same by compressed rows, and by those of the transposed pattern, whose entries are numbers `source` of the
/// pattern itself.
struct AttentionRowsBackwardArgs : AttentionGradientArgs {
  AttentionRowsArgs pattern;
  const void* source = nullptr;  ///< offsets as in row_map; null: the same

  TESSERA_FUNCTION const AttentionDense& dense() const { return pattern.dense; }
};

}  // namespace Tessera

#endif
