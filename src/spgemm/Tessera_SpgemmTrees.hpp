// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_TREES_HPP
#define TESSERA_SPGEMM_SPGEMM_TREES_HPP

#include "spgemm/Tessera_SpgemmOptions.hpp"

/// \file
/// Decision trees of Auto for hosts and for devices. The nodes are made by `cmake/train_spgemm.py tree --write` from
/// perf_test/results/spgemm-choice-*.csv; perf_test/notes/spgemm.md says how they were tested.

namespace Tessera {
namespace Impl {

/// A question, or, where feature is -1, an answer.
struct SpgemmTreeNode {
  int feature;  ///< of SpgemmFeature
  double threshold;
  int below, above;  ///< the next node where the feature is at most the threshold, and where not
  SpgemmAlgorithm algorithm;
};

// clang-format off
constexpr SpgemmTreeNode spgemm_tree_host[] = {
    // begin host
    {28, 2.313, 1, 4, SpgemmAlgorithm::Auto},  // DIA work
    {30, 0.000775, 2, 3, SpgemmAlgorithm::Auto},  // columns per product
    {-1, 0, 0, 0, SpgemmAlgorithm::Spa},
    {-1, 0, 0, 0, SpgemmAlgorithm::Dia},
    {30, 27.86, 5, 8, SpgemmAlgorithm::Auto},  // columns per product
    {31, 2.956, 6, 7, SpgemmAlgorithm::Auto},  // products per row
    {-1, 0, 0, 0, SpgemmAlgorithm::Hash},
    {-1, 0, 0, 0, SpgemmAlgorithm::Spa},
    {-1, 0, 0, 0, SpgemmAlgorithm::Hash},
    // end host
};
/// Binned alone: of 205 products Dia was the faster on one, by 5 %.
constexpr SpgemmTreeNode spgemm_tree_device[] = {
    // begin device
    {-1, 0, 0, 0, SpgemmAlgorithm::Binned},
    // end device
};
// clang-format on

}  // namespace Impl
}  // namespace Tessera

#endif
