// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_COMPACT_B_HPP
#define TESSERA_INTERFACE_COMPACT_B_HPP

#include <cstdint>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"

/// \file
/// B in TF32 at 20 bits per element, for products by rows. Where rows of B are fetched many times, fetching them is
/// what such a product waits for, and a request for TF32 allows elements of 19 bits: sign, 8 of the exponent, 10 of the
/// mantissa. So one pass over B rounds it to nearest into a copy of 5/8 of its size, which all fetches read.
///
/// First the upper halves of all elements, row by row, then the next four bits of each, two elements per byte, an even
/// column's in the byte's high half; rows of both are padded with zeros to a multiple of 8 columns. (Side by side, a
/// row would begin at any multiple of 16 bytes and touch more cache lines.)

namespace Tessera {

struct CompactB {
  static constexpr int group = 8;  ///< columns: 16 bytes of upper halves, 4 of lower bits
  struct Group {
    std::uint32_t upper[4], lower;
  };

  TESSERA_FUNCTION static constexpr std::int64_t groups(std::int64_t columns) { return (columns + group - 1) / group; }
  static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t columns) { return rows * groups(columns) * 20; }

  /// Kernels count groups in 32 bits.
  static constexpr bool fits(std::int64_t rows, std::int64_t columns) {
    return rows * groups(columns) < std::int64_t{1} << 31;
  }

  /// The operands with the copy of B, which has so many rows, in its place: ldb counts groups, lower the bytes from the
  /// upper halves to the rest.
  static SpmmDense dense(SpmmDense d, std::int64_t rows, const void* copy) {
    d.b = copy;
    d.ldb = groups(d.columns);
    d.lower = rows * d.ldb * 16;
    return d;
  }

  TESSERA_FUNCTION static void add(Group& g, int i, float value) {
    std::uint32_t bits = Impl::float_bits(round_to_tf32(value));
    if (!(value == value)) bits |= 0x00400000u;  // what makes it no number may lie below the bits that are kept
    g.upper[i / 2] |= bits >> 16 << (i & 1) * 16;
    g.lower |= (bits >> 12 & 0xfu) << (i / 2 * 8 + (i & 1 ? 0 : 4));
  }
  /// Element i, as a permutation of bytes and a mask: three bytes of it are whole, the lowest one is not used.
  TESSERA_FUNCTION static float get(const Group& g, int i) {
    const std::uint32_t lower = i & 1 ? g.lower << 4 : g.lower;
#if defined(__CUDA_ARCH__)
    const std::uint32_t bytes = __byte_perm(lower, g.upper[i / 2], (i & 1 ? 0x7600u : 0x5400u) | (i / 2) << 4);
#else
    const std::uint32_t bytes = (g.upper[i / 2] >> (i & 1) * 16) << 16 | (lower >> i / 2 * 8 & 0xffu) << 8;
#endif
    return Impl::float_from_bits(bytes & 0xfffff000u);
  }
};

/// Writes group `g` of row `row` of B to its compact copy (`to`, as CompactB::dense gives it): what one thread does.
TESSERA_FUNCTION void compact_b_group(const SpmmDense& dense, const SpmmDense& to, std::int64_t row, std::int64_t g) {
  const std::int64_t column = g * CompactB::group;
  const float* from = static_cast<const float*>(dense.b) + (row * dense.ldb + column);
  CompactB::Group group{};
  const std::int64_t left = dense.columns - column;
  if (left >= CompactB::group) {
    struct alignas(16) Four {
      float v[4];
    };
    TESSERA_UNROLL
    for (int i = 0; i < CompactB::group; i += 4) {
      const Four four = *reinterpret_cast<const Four*>(from + i);
      TESSERA_UNROLL
      for (int j = 0; j < 4; ++j) CompactB::add(group, i + j, four.v[j]);
    }
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < CompactB::group; ++i) {
      if (i < left) CompactB::add(group, i, from[i]);
    }
  }
  struct alignas(16) Upper {
    std::uint32_t w[4];
  };
  char* const copy = static_cast<char*>(const_cast<void*>(to.b));
  const std::int64_t n = row * to.ldb + g;
  *reinterpret_cast<Upper*>(copy + n * 16) = {{group.upper[0], group.upper[1], group.upper[2], group.upper[3]}};
  *reinterpret_cast<std::uint32_t*>(copy + to.lower + n * 4) = group.lower;
}

}  // namespace Tessera

#endif
