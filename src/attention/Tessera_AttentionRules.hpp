// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_RULES_HPP
#define TESSERA_ATTENTION_ATTENTION_RULES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "attention/Tessera_SelectAttention.hpp"
#include "features/Tessera_SpmmFeatures.hpp"

/// \file
/// The rules of Auto on hosts.

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

}  // namespace Impl
}  // namespace Tessera

#endif
