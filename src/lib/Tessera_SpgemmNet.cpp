// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spgemm/Tessera_SpgemmNet.hpp"

#include <algorithm>
#include <cmath>

namespace Tessera {
namespace Impl {

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

}  // namespace Impl
}  // namespace Tessera
