// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FEATURES_SPGEMM_NET_HPP
#define TESSERA_FEATURES_SPGEMM_NET_HPP

#include <cstdint>
#include <vector>

#include "features/Tessera_SpgemmFeatureVector.hpp"

/// \file
/// MatNet [Xie et al., "IA-SpGEMM", PPoPP'19, section 4] in small: a branch of convolutions per density image, a dense
/// layer for the features, all of them to a softmax over the methods. Plain loops on the host, no Kokkos. What differs
/// from the paper: both branches have the same weights; 16 numbers of each go on, 32 there; filters 5 x 5 with a
/// distance of 4, then twice 3 x 3 (there 3 x 3, then twice 5 x 5 with a distance of 2); weights of 8 bits; images by
/// the roots of densities; features by their logarithms; trained for the expected regret. Makers of the weights:
/// cmake/train_spgemm.py.

namespace Tessera {
namespace Impl {

/// Of one layer: whole numbers and what they are multiples of.
struct SpgemmNetLayer {
  const std::int8_t* weights;
  float scale;
  const float* bias;
};
struct SpgemmNetWeights {
  SpgemmNetLayer convolution[3];         ///< weights in the order filter, channel, row, column
  SpgemmNetLayer image, features, last;  ///< weights in the order output, input
  const float* mean;                     ///< of the logarithms of the features
  const float* deviation;                ///< of them
  int methods;
  const char* const* names;  ///< of methods, as to_string(SpgemmAlgorithm)
};
/// The trained ones for hosts.
extern const SpgemmNetWeights spgemm_net_host;

/// What a branch sees of an image: of each cell the root of its density over that of the densest, as 0 to 15.
std::vector<unsigned char> spgemm_image_levels(const std::vector<float>& density);

/// The shares of the methods, which add up to 1. 1.3 million multiplications, half of them where both images are the
/// same vector.
std::vector<float> spgemm_net(const SpgemmNetWeights& net, const std::vector<unsigned char>& levels_a,
                              const std::vector<unsigned char>& levels_b, const SpgemmFeatureVector& features);

}  // namespace Impl
}  // namespace Tessera

#endif
