// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_COMPACT_B_HPP
#define TESSERA_INTERFACE_COMPACT_B_HPP

#include <cstdint>

#include "backends/interface/Tessera_Aligned.hpp"
#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"

/// \file
/// B (of SDDMM: Y) in TF32 at 20 bits per element. Where rows of B are fetched many times, fetching them is what a
/// product waits for, and a request for TF32 allows elements of 19 bits: sign, 8 of the exponent, 10 of the mantissa.
/// So one pass over B rounds it to nearest into a copy of 5/8 of its size, which all fetches read.
///
/// First the upper halves of all elements, row by row, then the next four bits of each, two elements per byte, the
/// first one's in the byte's high half; rows of both are padded with zeros to whole groups. (Side by side, a row would
/// begin at any multiple of 16 bytes and touch more cache lines.)

namespace Tessera {

struct CompactB {
  static constexpr int group = 8;  ///< elements: 16 bytes of upper halves, 4 of lower bits
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
  /// Element i, as a permutation of bytes and a mask: three bytes of it are whole, the lowest one is not used. Not
  /// Exact: without the mask, for units that look at TF32's bits alone.
  template <bool Exact = true>
  TESSERA_FUNCTION static float get(const Group& g, int i) {
    const std::uint32_t lower = i & 1 ? g.lower << 4 : g.lower;
#if defined(__CUDA_ARCH__)
    const std::uint32_t bytes = __byte_perm(lower, g.upper[i / 2], (i & 1 ? 0x7600u : 0x5400u) | (i / 2) << 4);
#else
    const std::uint32_t bytes = (g.upper[i / 2] >> (i & 1) * 16) << 16 | (lower >> i / 2 * 8 & 0xffu) << 8;
#endif
    return Impl::float_from_bits(Exact ? bytes & 0xfffff000u : bytes);
  }
};

/// A copy to be made of rows x columns numbers, of several matrices side by side: their rows follow each other in the
/// copy.
///
/// A group has consecutive columns (across == 0), as products by rows read them; or, for matrix units, of 32 columns
/// those that lane q of four reads as two words of four numbers in a matrix that is no copy: 4 q + i and 16 + 4 q + i.
/// Rows are then whole multiples of 32 columns; of `across` such multiples that follow each other a lane's lower bits
/// lie side by side, so that they are one load.
struct CompactCopy {
  const float* from = nullptr;
  std::int64_t ld = 0, head = 0;  ///< elements from row to row, and from matrix to matrix
  bool whole_words = true;        ///< whether rows begin at multiples of 16 bytes
  std::int64_t rows = 0, columns = 0, heads = 1;
  void* to = nullptr;
  int across = 0;

  TESSERA_FUNCTION static constexpr std::int64_t groups(std::int64_t columns, int across) {
    return across == 0 ? CompactB::groups(columns) : (columns + 31) / 32 * 4;
  }
  TESSERA_FUNCTION std::int64_t groups() const { return groups(columns, across); }
  TESSERA_FUNCTION std::int64_t lower() const { return heads * rows * groups() * 16; }
  /// Of rows of whole multiples of 32 columns; kernels count their groups in 32 bits.
  static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t columns) {
    return rows * groups(columns, 1) * 20;
  }
  static constexpr bool fits(std::int64_t rows, std::int64_t columns) {
    return rows * groups(columns, 1) < std::int64_t{1} << 31;
  }

  /// Where half h of group g begins, and its lower bits' place in the row.
  TESSERA_FUNCTION std::int64_t column(std::int64_t g, int h) const {
    return across == 0 ? g * CompactB::group + 4 * h : g / 4 * 32 + 16 * h + g % 4 * 4;
  }
  TESSERA_FUNCTION std::int64_t place(std::int64_t g) const {
    if (across <= 1) return g;
    const std::int64_t in_turn = g & (4 * across - 1);  // `across` is 2 or 4
    return g - in_turn + (in_turn & 3) * across + (in_turn >> 2);
  }

  /// Writes group `g` of row `row` of matrix `h`: what one thread does.
  TESSERA_FUNCTION void write(std::int64_t h, std::int64_t row, std::int64_t g) const {
    struct alignas(16) Four {
      float v[4];
    };
    CompactB::Group group{};
    TESSERA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const std::int64_t first = column(g, half), left = columns - first;
      const float* const at = from + (h * head + row * ld + first);
      if (left >= 4 && whole_words) {
        expect_aligned(at, sizeof(Four));
        const Four four = *reinterpret_cast<const Four*>(at);
        TESSERA_UNROLL
        for (int j = 0; j < 4; ++j) CompactB::add(group, 4 * half + j, four.v[j]);
      } else {
        TESSERA_UNROLL
        for (int j = 0; j < 4; ++j) {
          if (j < left) CompactB::add(group, 4 * half + j, at[j]);
        }
      }
    }
    struct alignas(16) Upper {
      std::uint32_t w[4];
    };
    char* const copy = static_cast<char*>(to);
    const std::int64_t begin = (h * rows + row) * groups();
    expect_aligned(copy, sizeof(Upper));
    *reinterpret_cast<Upper*>(copy +
                              (begin + g) * 16) = {{group.upper[0], group.upper[1], group.upper[2], group.upper[3]}};
    *reinterpret_cast<std::uint32_t*>(copy + lower() + (begin + place(g)) * 4) = group.lower;
  }
};

}  // namespace Tessera

#endif
