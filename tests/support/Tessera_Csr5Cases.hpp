// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CSR5_CASES_HPP
#define TESSERA_CSR5_CASES_HPP

#include <vector>

#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Patterns for the tests of CSR5.

namespace Tessera {
namespace Testing {

/// Rows that begin, end or are missing at the borders of tiles and lanes, or go on through many tiles.
inline std::vector<Pattern> csr5_border_cases(int omega, int sigma) {
  const int tile = omega * sigma, lane = sigma;
  std::vector<std::vector<int>> lengths = {
      {tile},
      {tile, tile, tile},
      {tile - 1, 1},
      {tile - 1, 1, tile + 1, tile - 1},
      {tile - 1, 2, tile},
      {1, tile, tile, tile},
      {2 * tile},
      {3 * tile, 1},
      {3 * tile + 1},
      {1, 3 * tile, 1},
      {1, 3 * tile - 1, tile},
      {0, tile},
      {tile, 0},
      {0, 0, tile, 0, 0, tile, 0, 0},
      {tile, 0, 0, 0, 1},
      {tile - 1, 0, 0, 1, 0, tile, 0},
      {0, 2 * tile + 1, 0, tile - 1, 0, 0, 5 * tile, 0},
      {1, 0, tile - 2, 0, 1, 0, tile, 0, 0, 2},
      {0, 0, 0, 1},
      {1, 0, 0, 0},
      {0, 0, 0},
      {lane, lane, 0, lane, 2 * lane, 0, tile, lane + 1, 0, tile - 1},
      {100 * tile, 0, 1},
      {tile / 2, 100 * tile, 0, tile / 2, 66 * tile, 1, 65 * tile, tile - 1, 64 * tile, 1},
      {65 * tile, 65 * tile + 1, 64 * tile, 64 * tile - 1},
      std::vector<int>(static_cast<std::size_t>(3 * tile + 1), 1)};
  std::vector<int> gaps;
  for (int i = 0; i < 4 * tile; ++i) gaps.push_back(i % 3 == 0 ? 2 : 0);
  lengths.push_back(gaps);
  std::vector<Pattern> all;
  for (const std::vector<int>& l : lengths) all.push_back(pattern_of_lengths(l, 97));
  return all;
}

}  // namespace Testing
}  // namespace Tessera

#endif
