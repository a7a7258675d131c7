// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_CHOICE_HPP
#define TESSERA_SPGEMM_SPGEMM_CHOICE_HPP

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "features/Tessera_SpgemmFeatureVector.hpp"
#include "features/Tessera_SpgemmFeatures.hpp"
#include "features/Tessera_SpgemmNet.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"
#include "spgemm/Tessera_SpgemmTrees.hpp"

/// \file
/// What Auto takes for C = A B by features of A and B; whether there is memory for it is the plan's matter.

namespace Tessera {
namespace Impl {

/// Finds features when they are asked for, and then all of the same kind.
template <class Pattern>
class SpgemmFeatureSource {
 public:
  using Exec = typename Pattern::execution_space;
  SpgemmFeatureSource(const Exec& space, const Pattern& A, const Pattern& B, std::int64_t products,
                      const KernelTable* pool)
      : space_(space),
        A_(A),
        B_(B),
        products_(products),
        sample_(std::min(spgemm_sample, std::max<std::int64_t>(512, products / 16))),
        pool_(pool),
        a_(spgemm_sizes(A)),
        b_(spgemm_sizes(B)) {}

  double operator()(int feature) {
    const int of_one = feature < 2 * SpgemmFeaturesOfMatrix ? feature % SpgemmFeaturesOfMatrix : feature;
    switch (of_one) {
      case SpgemmLongest:
      case SpgemmShortest:
      case SpgemmVariance:
      case SpgemmCv:
      case SpgemmEllFill:
      case SpgemmEllWork:
        find_lengths();
        break;
      case SpgemmDiagonalCount:
      case SpgemmDiagonalRatio:
      case SpgemmDiaFill:
      case SpgemmDiaWork:
        find_diagonals();
        break;
      case SpgemmCompression:
        find_compression();
        break;
      default:
        break;
    }
    return vector()[static_cast<std::size_t>(feature)];
  }
  /// Without a look at the matrices: formats are out of the question.
  double of_sizes(int feature) const {
    if (feature == SpgemmDiaWork || feature == SpgemmEllWork) return std::numeric_limits<double>::infinity();
    return vector()[static_cast<std::size_t>(feature)];
  }
  SpgemmFeatureVector all() {
    find_lengths();
    find_diagonals();
    find_compression();
    return vector();
  }

 private:
  SpgemmFeatureVector vector() const { return spgemm_feature_vector(a_, b_, products_, compression_); }
  template <class F>
  void find(bool& found, const F& f) {
    if (found) return;
    found = true;
    f();
  }
  void find_lengths() {
    find(lengths_, [this] {
      spgemm_add_lengths(space_, A_, a_);
      if (!same_pattern(A_, B_)) return spgemm_add_lengths(space_, B_, b_);
      b_.longest = a_.longest;
      b_.shortest = a_.shortest;
      b_.variance = a_.variance;
    });
  }
  void find_diagonals() {
    find(diagonals_, [this] {
      spgemm_add_diagonals(space_, A_, DiagonalsCounted::Sample, a_, pool_, sample_);
      if (!same_pattern(A_, B_)) return spgemm_add_diagonals(space_, B_, DiagonalsCounted::Sample, b_, pool_, sample_);
      b_.diagonals = a_.diagonals;
    });
  }
  void find_compression() {
    find(compressed_, [this] { compression_ = spgemm_pattern_compression(space_, A_, B_, pool_); });
  }

  Exec space_;
  Pattern A_, B_;
  std::int64_t products_;
  std::int64_t sample_;  ///< costs less than a tenth of the product
  const KernelTable* pool_;
  SpgemmFeatures a_, b_;
  double compression_ = 1;
  bool lengths_ = false, diagonals_ = false, compressed_ = false;
};

struct SpgemmVerdict {
  SpgemmAlgorithm algorithm = SpgemmAlgorithm::Auto;
  std::string why;
  std::int64_t longest = 0;  ///< row of A, which Ell has to know
  /// Pairs of diagonals above which it is not Dia after all: they were counted in a sample.
  double most_pairs = std::numeric_limits<double>::infinity();
};

/// From the first node on. Says which features decided. @param work  is set to the most that DIA work may be
template <class Feature>
SpgemmVerdict spgemm_walk(const SpgemmTreeNode* tree, Feature&& feature, double& work) {
  SpgemmVerdict verdict;
  const SpgemmTreeNode* node = tree;
  while (node->feature >= 0) {
    const double value = feature(node->feature);
    const bool below = value <= node->threshold;
    if (below && node->feature == SpgemmDiaWork) work = std::min(work, node->threshold);
    char text[100];
    std::snprintf(text, sizeof(text), "%s%s %.3g %s %.3g", verdict.why.empty() ? " by " : ", ",
                  spgemm_feature_names[node->feature], value, below ? "<=" : ">", node->threshold);
    verdict.why += text;
    node = tree + (below ? node->below : node->above);
  }
  verdict.algorithm = node->algorithm;
  verdict.why = to_string(node->algorithm) + verdict.why;
  return verdict;
}

template <class Pattern>
SpgemmVerdict spgemm_by_net(SpgemmFeatureSource<Pattern>& source, const typename Pattern::execution_space& space,
                            const Pattern& A, const Pattern& B, const KernelTable* pool) {
  const SpgemmNetWeights& net = spgemm_net_host;
  const auto levels_a = spgemm_image_levels(spgemm_pattern_image(space, A, pool).density);
  std::vector<unsigned char> other;
  const bool same = same_pattern(A, B);
  if (!same) other = spgemm_image_levels(spgemm_pattern_image(space, B, pool).density);
  const auto shares = spgemm_net(net, levels_a, same ? levels_a : other, source.all());
  const auto best = std::max_element(shares.begin(), shares.end()) - shares.begin();
  std::string why = std::string(net.names[best]) + " by MatNet, which gives";
  for (int m = 0; m < net.methods; ++m) {
    char text[60];
    std::snprintf(text, sizeof(text), "%s %s %.2f", m == 0 ? "" : ",", net.names[m],
                  static_cast<double>(shares[static_cast<std::size_t>(m)]));
    why += text;
  }
  SpgemmVerdict verdict;
  verdict.algorithm = parse_spgemm_algorithm(net.names[best]);
  verdict.why = why;
  return verdict;
}

/// Reads a sample of both; MatNet the row maps as well. Less than a tenth of a product (perf_test/notes/spgemm.md).
/// @param pool  of memory
template <class Pattern, class Exec>
SpgemmVerdict spgemm_decide(const Exec& space, const Pattern& A, const Pattern& B, std::int64_t products,
                            SpgemmModel model, const KernelTable* pool) {
  constexpr bool host = Compat::is_host_v<Exec>;
  SpgemmVerdict verdict;
  SpgemmFeatureSource<Pattern> source(space, A, B, products, pool);
  double work = std::numeric_limits<double>::infinity();
  if (host && model == SpgemmModel::MatNet && products >= spgemm_least_for_net) {
    verdict = spgemm_by_net(source, space, A, B, pool);
    work = 4 * source(SpgemmDiaWork) + 1;  // far more than the sample's
  } else {
    const bool few = products < spgemm_least_products;
    const auto feature = [&](int f) { return few ? source.of_sizes(f) : source(f); };
    verdict = spgemm_walk(host ? spgemm_tree_host : spgemm_tree_device, feature, work);
    if (few) verdict.why += ", too few products for a look at diagonals";
  }
  verdict.most_pairs = work * static_cast<double>(products) / std::max(1.0, static_cast<double>(A.rows()));
  if (verdict.algorithm == SpgemmAlgorithm::Ell) verdict.longest = static_cast<std::int64_t>(source(SpgemmLongest));
  return verdict;
}

}  // namespace Impl
}  // namespace Tessera

#endif
