// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_REGISTER_WORDS_HPP
#define TESSERA_UNITS_REGISTER_WORDS_HPP

#include <cstdint>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// Several numbers in the registers of a lane.

namespace Tessera {

TESSERA_FUNCTION int count_bits(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

/// N elements as they were loaded.
template <class T, int N>
struct Packed {
  static constexpr int bytes = N * static_cast<int>(sizeof(T));
  std::uint32_t w[(bytes + 3) / 4];

  TESSERA_FUNCTION T get(int n) const {
    T value;
    if constexpr (sizeof(T) == 8) {
      const std::uint64_t bits = w[2 * n] | static_cast<std::uint64_t>(w[2 * n + 1]) << 32;
      __builtin_memcpy(&value, &bits, 8);
    } else if constexpr (sizeof(T) == 4) {
      __builtin_memcpy(&value, &w[n], 4);
    } else if constexpr (sizeof(T) == 2) {
      const auto bits = static_cast<std::uint16_t>(w[n / 2] >> (16 * (n & 1)));
      __builtin_memcpy(&value, &bits, 2);
    } else {
      const auto bits = static_cast<std::uint8_t>(w[n / 4] >> (8 * (n & 3)));
      __builtin_memcpy(&value, &bits, 1);
    }
    return value;
  }
};

/// Element n of x, and of y in the high half: one permutation of bytes, where compilers make three instructions of two
/// extracted halves.
template <class T, int N>
TESSERA_FUNCTION std::uint32_t pair_of(const Packed<T, N>& x, const Packed<T, N>& y, int n) {
  static_assert(sizeof(T) == 2, "two to a word");
#if defined(__CUDA_ARCH__)
  return __byte_perm(x.w[n / 2], y.w[n / 2], n & 1 ? 0x7632 : 0x5410);
#else
  const int shift = 16 * (n & 1);
  return (x.w[n / 2] >> shift & 0xffffu) | y.w[n / 2] >> shift << 16;
#endif
}

}  // namespace Tessera

#endif
