// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_UNIFORM_HPP
#define TESSERA_BENCH_UNIFORM_HPP

#include <cstdint>

#include "backends/interface/Tessera_Macros.hpp"

namespace Tessera {
namespace Bench {

/// Reproducible number for a place, uniform in [-1, 1) in steps of 2^-52: the hash of io::pattern_value, on devices
/// too, where operands with many columns are made. Negative columns are free for other purposes.
TESSERA_FUNCTION double uniform_value(std::uint64_t seed, std::int64_t row, std::int64_t col) {
  // Three rounds of the splitmix64 finaliser, one per argument.
  std::uint64_t hash = 0;
  const std::uint64_t arguments[3] = {seed, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col)};
  for (const std::uint64_t argument : arguments) {
    std::uint64_t z = (hash ^ argument) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    hash = z ^ (z >> 31);
  }
  return static_cast<double>(hash >> 11) / 4503599627370496.0 - 1;
}

}  // namespace Bench
}  // namespace Tessera

#endif
