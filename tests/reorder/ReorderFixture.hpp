// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_REORDER_FIXTURE_HPP
#define TESSERA_TEST_REORDER_FIXTURE_HPP

#include <numeric>
#include <utility>
#include <vector>

#include "reorder/Tessera_Reorder.hpp"
#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace Testing {

/// A permutation of 0 ... n-1 that depends on the seed alone.
inline std::vector<int> shuffled(int n, std::uint64_t seed) {
  std::vector<int> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  for (int i = n - 1; i > 0; --i) {
    const double unit = (number(Data::Real, seed, static_cast<std::uint64_t>(i)) + 1) / 2;
    std::swap(p[i], p[static_cast<int>(unit * (i + 1))]);
  }
  return p;
}

}  // namespace Testing
}  // namespace Tessera

#endif
