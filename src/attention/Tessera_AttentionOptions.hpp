// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_OPTIONS_HPP
#define TESSERA_ATTENTION_ATTENTION_OPTIONS_HPP

#include <string>

#include "Tessera_Options.hpp"

namespace Tessera {

/// Fused: one pass per row with a running maximum and sum, scores are never written; where a backend has units for the
/// type, by windows of rows on them. Rows: the same pass by a backend of devices row by row, on ordinary arithmetic.
/// Chain: SDDMM into the values of the pattern, softmax of rows, SpMM, each by its own plan. Auto takes the one that is
/// predicted to be fastest.
///
/// Chain moves the scores five times, 20 bytes per entry (FP64: 40), and keeps those of as many heads at once as have
/// up to 2^24; its set-up is that of its SDDMM and SpMM plans. The portable Fused has none but, on hosts, a look at the
/// lengths of rows, O(m): those of more than 2,048 entries are pieces, each of which leaves e + 2 sums in scratch (e
/// columns of V; backward d, and d + e of a long column) that a second kernel adds in order, whatever the number of
/// threads.
///
/// Fused of a backend (types of 16 and 32 bits, up to 256 columns of Q and V; all else goes to the portable kernel, in
/// any call): windows of rows on matrix units. Rows of Q, K, V and O are read and written where they lie if they are
/// contiguous, of a multiple of 4 columns (16-bit types: of 8), and begin at multiples of 16 bytes; others go through
/// copies in scratch, made by one launch before the kernel and one after it. Weights are rounded to the operands' type
/// before they multiply V, and are not where they are summed: O errs by another unit roundoff of sum_j P_ij |V_j|; in
/// FP16 weights below 2^-31 of the row's largest one may be 0, so that an infinite V_j of such an entry gives NaN.
/// Other rows never see it: windows where V is not finite are done again row by row. backward of 16-bit types goes
/// there too, for columns up to 128 (64 where windows are of 16 rows): P_ij and dS_ij are rounded to the operands' type
/// before they multiply; in FP16 P below 2^-39, and dS below 2^-32 of the largest one of its row (dK: column), may be
/// 0.
///
/// FP32 there: on NVIDIA's units, which have none, in three products of TF32 (example/manual/precision.md), where Q has
/// 32 columns or more and else portable; the bound of an inner product stays that of FP32 arithmetic, (d + 2) 2^-24 of
/// its magnitudes, and what sums of weighted rows err by more, 19 2^-24, is less than exponentials do. AMD's units
/// have FP32. AttentionOptions::compute = TF32 rounds Q, K, V and weights to 11 bits as they are multiplied (AMD:
/// FP32), by Fused and in the plans of Chain; a score errs by 2^-10 of its magnitudes more. Calls that go by rows or to
/// the portable kernel, and backward, are FP32 then as well. Windows of 16 rows (NVIDIA) take up to 64 columns of 32
/// bits.
///
/// Rows (float and double, matrices with columns of 32 bits; up to 512 columns of Q and V, of double 256; all else goes
/// to the portable kernel, in any call; rows that are no whole words of sixteen bytes through copies) multiplies and
/// adds in the operands' type, TF32 in FP32. A row of K and one of V are fetched per entry, a team of 4 to 32 lanes
/// takes pieces of rows with about as many entries as others do; rows of more than twice as many as a piece are cut,
/// into pieces whose sums a second launch adds in a fixed order. Set-up: O(rows) work, one wait, two where rows are
/// cut; 4 bytes per share of 16 to 128 entries, and where rows are cut 16 per piece. Scratch: d + 4 numbers per piece
/// of a cut row and head. backward of float and double goes by rows whatever algorithm goes forward, where the backend
/// has such kernels and they take the columns; so it is of TF32, in FP32.
///
/// On units a row of K and of V is fetched once per column vector of a window of 8 or 16 rows, which has 8 or 12 bytes
/// of the pattern (blocks rounded up); scratch is O(rows of split windows) forward and backward. Windows are made on
/// the device (Experimental::SplitWindows: O(nnz log(longest row)) work, one wait), for backward those of the
/// transposed pattern as well (with values 4 bytes per entry more).
///
/// Running maximum and sum: Milakov & Gimelshein, arXiv:1805.02867, Dao et al., "FlashAttention", NeurIPS'22 (backward
/// by recomputation, too); on sparse patterns: Fused3S, ICS'25.
enum class AttentionAlgorithm { Auto, Fused, Chain, Rows };

/// What the numbers of the matrix are. None: they are not read. Bias: added to the scores, -inf masks an entry.
/// Scale: the scores are multiplied by them.
enum class AttentionValues { None, Bias, Scale };

/// What a caller may choose of an AttentionPlan; members that SddmmOptions has as well mean the same.
struct AttentionOptions {
  AttentionAlgorithm algorithm = AttentionAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_ATTENTION_ALGORITHM
  Selection selection = Selection::Predict;                 ///< how Auto decides
  ComputeType compute = ComputeType::Auto;                  ///< Auto: the precision of the matrix; else TF32 of float
  /// Whose fused kernel runs (Fused: all types but double, Rows: float and double; Kokkos: the portable one, which
  /// takes all), or whose SDDMM and SpMM Chain multiplies by.
  Backend backend = Backend::Auto;
  AttentionValues values = AttentionValues::None;  ///< what the numbers of the matrix are
  bool prepare_backward = false;                   ///< backward may be called: keeps the transposed pattern
  int dimension_hint = 64;                         ///< columns that Q, K and V of a head will mostly have
  int window_height = 0;                           ///< of Fused on units: 1 or 2 instructions; 0: the pattern decides
  bool updatable = true;                           ///< update_values may be called
  bool fallback = true;                            ///< false: NotSupported instead of another algorithm
  Workspace workspace{};  ///< instead of forward scratch of the plan's own (the plans of Chain have theirs)
};

/// See to_string(SpmvAlgorithm).
inline const char* to_string(AttentionAlgorithm a) {
  switch (a) {
    case AttentionAlgorithm::Auto:
      return "auto";
    case AttentionAlgorithm::Fused:
      return "fused";
    case AttentionAlgorithm::Chain:
      return "chain";
    case AttentionAlgorithm::Rows:
      return "rows";
  }
  return "?";
}
/// See parse_spmv_algorithm.
inline AttentionAlgorithm parse_attention_algorithm(const std::string& name) {
  constexpr AttentionAlgorithm all[] = {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused, AttentionAlgorithm::Chain,
                                        AttentionAlgorithm::Rows};
  return Impl::parse_enum(name, all, "attention algorithm");
}

}  // namespace Tessera

#endif
