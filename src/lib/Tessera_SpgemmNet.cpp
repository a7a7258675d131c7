// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "features/Tessera_SpgemmNet.hpp"

#include <algorithm>
#include <cmath>

namespace Tessera {
namespace Impl {
namespace {

/// Channels of side x side numbers.
struct Planes {
  int channels, side;
  std::vector<float> at;
  Planes(int c, int s) : channels(c), side(s), at(static_cast<std::size_t>(c * s * s), 0.0f) {}
  float* plane(int c) { return at.data() + c * side * side; }
  const float* plane(int c) const { return at.data() + c * side * side; }
};

/// Filters of width x width over zeros around the image, `distance` cells apart; then the largest of each 2 x 2, and
/// tanh of it (which ascends, so that the order of the two does not matter).
Planes convolve(const Planes& in, const SpgemmNetLayer& layer, int filters, int width, int distance) {
  const int side = in.side / distance, margin = width / 2;
  Planes out(filters, side / 2);
  std::vector<float> sums(static_cast<std::size_t>(side * side));
  const std::int8_t* weight = layer.weights;
  for (int f = 0; f < filters; ++f) {
    std::fill(sums.begin(), sums.end(), layer.bias[f]);
    for (int c = 0; c < in.channels; ++c) {
      for (int dy = -margin; dy < width - margin; ++dy) {
        for (int dx = -margin; dx < width - margin; ++dx) {
          const float w = layer.scale * static_cast<float>(*weight++);
          const auto first = [&](int d) { return std::max(0, (-d + distance - 1) / distance); };
          const auto last = [&](int d) { return std::min(side, (in.side - 1 - d) / distance + 1); };
          for (int y = first(dy); y < last(dy); ++y) {
            const float* const from = in.plane(c) + (y * distance + dy) * in.side + dx;
            float* const to = sums.data() + y * side;
            for (int x = first(dx); x < last(dx); ++x) to[x] += w * from[x * distance];
          }
        }
      }
    }
    float* const to = out.plane(f);
    for (int y = 0; y < side / 2; ++y) {
      for (int x = 0; x < side / 2; ++x) {
        const float* const four = sums.data() + 2 * y * side + 2 * x;
        to[y * (side / 2) + x] = std::tanh(std::max({four[0], four[1], four[side], four[side + 1]}));
      }
    }
  }
  return out;
}

std::vector<float> dense(const std::vector<float>& in, const SpgemmNetLayer& layer, int outputs) {
  std::vector<float> out(static_cast<std::size_t>(outputs));
  const std::int8_t* weight = layer.weights;
  for (int o = 0; o < outputs; ++o) {
    float sum = 0;
    for (const float x : in) sum += static_cast<float>(*weight++) * x;
    out[static_cast<std::size_t>(o)] = layer.scale * sum + layer.bias[o];
  }
  return out;
}
std::vector<float> tanh_of(std::vector<float> v) {
  for (float& x : v) x = std::tanh(x);
  return v;
}

std::vector<float> branch(const SpgemmNetWeights& net, const std::vector<unsigned char>& levels) {
  Planes image(1, 128);
  for (std::size_t i = 0; i < levels.size(); ++i) image.at[i] = static_cast<float>(levels[i]) / 15;
  const Planes first = convolve(image, net.convolution[0], 8, 5, 4);
  const Planes second = convolve(first, net.convolution[1], 16, 3, 1);
  return tanh_of(dense(convolve(second, net.convolution[2], 16, 3, 1).at, net.image, 16));
}

}  // namespace

std::vector<unsigned char> spgemm_image_levels(const std::vector<float>& density) {
  std::vector<unsigned char> levels(density.size(), 0);
  float densest = 0;
  for (const float d : density) densest = std::max(densest, d);
  if (densest <= 0) return levels;
  for (std::size_t i = 0; i < density.size(); ++i) {
    levels[i] = static_cast<unsigned char>(std::lround(15 * std::sqrt(density[i] / densest)));
  }
  return levels;
}

std::vector<float> spgemm_net(const SpgemmNetWeights& net, const std::vector<unsigned char>& levels_a,
                              const std::vector<unsigned char>& levels_b, const SpgemmFeatureVector& features) {
  std::vector<float> joined = branch(net, levels_a);
  const std::vector<float> b = &levels_a == &levels_b ? joined : branch(net, levels_b);
  joined.insert(joined.end(), b.begin(), b.end());
  std::vector<float> logarithms;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const auto logarithm = static_cast<float>(std::log2(std::max(features[i], 1e-9)));
    logarithms.push_back(std::min(4.0f, std::max(-4.0f, (logarithm - net.mean[i]) / net.deviation[i])));
  }
  const std::vector<float> f = tanh_of(dense(logarithms, net.features, 24));
  joined.insert(joined.end(), f.begin(), f.end());
  std::vector<float> out = dense(joined, net.last, net.methods);
  const float most = *std::max_element(out.begin(), out.end());
  float sum = 0;
  for (float& x : out) sum += x = std::exp(x - most);
  for (float& x : out) x /= sum;
  return out;
}

}  // namespace Impl
}  // namespace Tessera
