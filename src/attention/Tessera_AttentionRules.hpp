// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_RULES_HPP
#define TESSERA_ATTENTION_ATTENTION_RULES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "attention/Tessera_SelectAttention.hpp"
#include "backends/interface/Tessera_AttentionKernels.hpp"
#include "features/Tessera_SpmmFeatures.hpp"

/// \file
/// The rules of Auto on hosts, and of the backends' fused kernels.

namespace Tessera {
namespace Impl {

/// Bytes of K and V up to which Fused was the faster or as fast (perf_test/notes/attention.md): of the rows that a row
/// of the pattern reaches across, and of those that it uses. Fused reads K and V by turns, where Chain has first the
/// one and then the other to itself in the second-level cache and in what translates addresses (far), and in the
/// first-level cache for the next row (own).
constexpr double most_fused_far = 4e6, most_fused_own = 32e3;

/// Fills choice.candidates, best first, and decides. Costs are bytes over those of the rule. 16-bit operands were never
/// slower by Fused: Chain converts them twice, and its SpMM reads weights of 32 bits.
inline void predict_attention(AttentionChoice& c, const SpmmFeatures& f, int dimension, std::size_t element_bytes) {
  const double row = 2.0 * dimension * static_cast<double>(element_bytes), far = f.reach * row, own = f.mean * row;
  const double cost = element_bytes == 2 ? 0 : std::max(far / most_fused_far, own / most_fused_own);
  const Candidate<AttentionAlgorithm> fused{AttentionAlgorithm::Fused, cost}, chain{AttentionAlgorithm::Chain, 1};
  c.candidates = {fused, chain};
  if (cost > 1) std::swap(c.candidates[0], c.candidates[1]);
  c.algorithm = c.candidates[0].algorithm;
  char text[240];
  std::snprintf(
      text, sizeof(text),
      "%s for %d columns of %s: a row uses %.3g kB of K and V and reaches across %.3g MB (Fused up to %.3g kB and "
      "%.3g MB, and in 16 bits)",
      to_string(c.algorithm), dimension, to_string(c.precision), 1e-3 * own, 1e-6 * far, 1e-3 * most_fused_own,
      1e-6 * most_fused_far);
  c.why = text;
}

/// How much more entries a fetched row of K and V has to serve in windows of two instructions than in those of one for
/// them to be the faster: they halve the loads, and hold twice the sums (perf_test/notes/attention.md).
constexpr double least_attention_gain_of_height = 1.55;

/// Instructions that windows are high.
inline int attention_window_height(const AttentionShape& shape, const SpmmFeatures& f,
                                   const AttentionOptions& options) {
  if (options.window_height > 0) return options.window_height;
  const double one = shape.rows == 16 ? f.g16 : f.g8, two = shape.rows == 16 ? f.g32 : f.g16;
  return options.dimension_hint <= shape.most_columns_of_two && two >= least_attention_gain_of_height * one ? 2 : 1;
}

/// What one launch costs with its waits for memory, and how many bytes go by in a microsecond: rows that are gathered,
/// from caches; operands, from memory; scores that three kernels write and read. Of an H200, one head, 16 bits.
constexpr double attention_launch_us = 8, attention_gathered_per_us = 6.7e6, attention_once_per_us = 4e6,
                 attention_scores_per_us = 3.6e6;

/// How many times faster than Chain Fused must be predicted for Auto to take it. 16 bits: it was the faster one on all
/// that was measured. 32 bits: rows are twice as long and scores are not, so that it gains less; not measured yet.
constexpr double least_attention_gain_16_bits = 0, least_attention_gain_32_bits = 1.1;
/// What instructions cost per block of 16 column vectors and 64 columns, where they take longer than gathers do: of one
/// product, and of FP32 in three. By counts of instructions, not measured.
constexpr double attention_block_us = 0.3e-3, attention_block_in_parts_us = 0.7e-3;

/// Fills the costs of choice.candidates, if there is more than one: microseconds per head; and decides.
inline void predict_attention_on_units(AttentionChoice& c, const SpmmFeatures& f, const AttentionOptions& options,
                                       std::size_t element_bytes) {
  const double nnz = static_cast<double>(f.nnz),
               row = static_cast<double>(element_bytes) * static_cast<double>(options.dimension_hint);
  const double served = std::max(1.0, f.g16 >= least_attention_gain_of_height * f.g8 ? f.g16 : f.g8);
  const double once = 2 * static_cast<double>(f.rows + f.cols) * row / attention_once_per_us;
  // Gathers, or what is done with them; nearly full blocks.
  const double of_block = c.precision == Precision::FP32 ? attention_block_in_parts_us : attention_block_us;
  const auto gathered = [&](double g) {
    const double vectors = nnz / std::max(1.0, g);
    return std::max(2 * vectors * row / attention_gathered_per_us,
                    vectors / 16 * of_block * options.dimension_hint / 64);
  };
  const double fused = attention_launch_us + gathered(served) + once;
  const double chain = 2 * attention_launch_us + gathered(f.g8) + 1.2 * once + 20 * nnz / attention_scores_per_us;
  for (auto& candidate : c.candidates) {
    candidate.cost = candidate.algorithm == AttentionAlgorithm::Chain ? chain : fused;
  }
  const double wanted = element_bytes == 2 ? least_attention_gain_16_bits : least_attention_gain_32_bits;
  const bool turn = c.candidates.size() > 1 && chain < wanted * fused;
  char text[240];
  std::snprintf(text, sizeof(text),
                "; %d columns of %s, a fetched row of K and V serves %.2f entries: %.3g us per head predicted, %.3g us "
                "for a chain",
                options.dimension_hint, to_string(c.precision), served, fused, chain);
  c.why += text;
  if (!turn) return;
  std::swap(c.candidates[0], c.candidates[1]);
  c.algorithm = AttentionAlgorithm::Chain;
  std::snprintf(text, sizeof(text), ", too near for Fused (%.2f times as long are wanted)", wanted);
  c.why += text;
}

}  // namespace Impl
}  // namespace Tessera

#endif
