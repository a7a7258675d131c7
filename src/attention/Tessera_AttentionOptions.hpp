// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_OPTIONS_HPP
#define TESSERA_ATTENTION_ATTENTION_OPTIONS_HPP

#include <string>

#include "Tessera_Options.hpp"

namespace Tessera {

/// Fused: one pass per row with a running maximum and sum, scores are never written. Chain: SDDMM into the values of
/// the pattern, softmax of rows, SpMM, each by its own plan. Auto takes the one that is predicted to be faster.
enum class AttentionAlgorithm { Auto, Fused, Chain };

/// What the numbers of the matrix are. None: they are not read. Bias: added to the scores, -inf masks an entry.
/// Scale: the scores are multiplied by them.
enum class AttentionValues { None, Bias, Scale };

/// What a caller may choose of an AttentionPlan; members that SddmmOptions has as well mean the same.
struct AttentionOptions {
  AttentionAlgorithm algorithm = AttentionAlgorithm::Auto;  ///< stronger than TESSERA_FORCE_ATTENTION_ALGORITHM
  Selection selection = Selection::Predict;                 ///< how Auto decides
  /// Whose fused kernel runs (16-bit types; Kokkos: the portable one, which takes all), or whose SDDMM and SpMM Chain
  /// multiplies by.
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
  }
  return "?";
}
/// See parse_spmv_algorithm.
inline AttentionAlgorithm parse_attention_algorithm(const std::string& name) {
  constexpr AttentionAlgorithm all[] = {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused, AttentionAlgorithm::Chain};
  return Impl::parse_enum(name, all, "attention algorithm");
}

}  // namespace Tessera

#endif
