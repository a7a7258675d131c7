// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_WEIGHTS_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_WEIGHTS_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"

/// \file
/// Weights of a softmax: their exponentials, their range in 16 bits, and the way from the registers in which a unit
/// leaves scores to those in which it takes weights.

namespace Tessera {

/// 2^x; subnormal results may be zero.
TESSERA_FUNCTION float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
/// Neither infinite nor undefined.
TESSERA_FUNCTION bool is_finite(float x) { return (Impl::float_bits(x) & 0x7f800000u) != 0x7f800000u; }

/// Weights are 2^(score - reference). The reference of a row follows its largest score loosely: it moves only when a
/// weight would be above 2^most, and then so that the largest one is 2^first, which a row's largest weight so never is
/// below. FP16 has its range used: a weight is rounded to a multiple of 2^-24, 2^-31 of the largest one. BF16 has more
/// range than weights have, and numbers near its end, whose weights are therefore at most 1.
template <class Operand>
struct WeightRange {
  static constexpr bool narrow = std::is_same<Operand, half_t>::value;
  static constexpr float most = narrow ? 15 : 0, first = narrow ? 7 : -8;
};

/// Two numbers rounded to 16 bits, the first in the low half.
template <class T>
TESSERA_FUNCTION std::uint32_t rounded_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t word;
  if constexpr (std::is_same<T, half_t>::value) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
#else
  return T(low).bits | static_cast<std::uint32_t>(T(high).bits) << 16;
#endif
}

/// Scores are an accumulator of column vectors x rows of the window, weights a right operand of the same shape. The
/// order of the column vectors in that operand is free as long as the left operand shares it: slot j of a lane (of
/// PanelShape::slots) is column vector vector_of(lane, j).
///
/// AMD: a lane's accumulator is its operand. NVIDIA: lane (g, t) has column vectors g and g + 8 of rows 2t and 2t + 1,
/// and needs four column vectors of row g. Each word of two weights of a row, g and g + 8, is needed by one lane: they
/// change places in two shuffles, in each of which every lane gives one word and gets one.
template <class Atom>
struct WeightSlots {
  static constexpr bool nvidia = Atom::layout == AccumulatorLayout::NvidiaPairs;
  static_assert(Atom::m == 16 && Atom::k == 16 && sizeof(typename Atom::Operand) == 2, "16-bit shapes");

  TESSERA_FUNCTION static constexpr int vector_of(int lane, int j) {
    return nvidia ? 2 * (lane % 4) + j / 2 + 8 * (j % 2) : 4 * (lane / 16) + j;
  }
  /// to[j] := columns[vector_of(lane, j)], of columns at a multiple of 16 bytes.
  TESSERA_FUNCTION static void load_columns(const std::int32_t* columns, int lane, std::uint32_t* to) {
    struct alignas(8) Two {
      std::uint32_t c[2];
    };
    const int apart = nvidia ? 8 : 2;  // neighbours first, first + 1 and first + apart, first + apart + 1
    const auto* const from = reinterpret_cast<const Two*>(columns + vector_of(lane, 0));
    const Two low = from[0], high = from[apart / 2];
    TESSERA_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int place = vector_of(0, j);
      to[j] = place < apart ? low.c[place % 2] : high.c[place % 2];
    }
  }
  /// Where the accumulator has the score of a column vector and a row of the window.
  TESSERA_FUNCTION static constexpr int lane_of(int vector, int row) {
    return nvidia ? vector % 8 * 4 + row / 2 : vector / 4 * 16 + row;
  }
  TESSERA_FUNCTION static constexpr int register_of(int vector, int row) {
    return nvidia ? vector / 8 * 2 + row % 2 : vector % 4;
  }
  static constexpr bool consistent() {
    for (int vector = 0; vector < Atom::m; ++vector) {
      for (int row = 0; row < Atom::n; ++row) {
        const Coord at = Atom::c_coord(lane_of(vector, row), register_of(vector, row));
        if (at.row != vector || at.col != row) return false;
      }
    }
    return true;
  }

  /// weights: a lane's, in the order of its accumulator.
  template <class Wave, class VaryingFloats, class VaryingB>
  TESSERA_FUNCTION static void to_operand(const Wave& wave, const VaryingFloats& weights, VaryingB& operand) {
    using T = typename Atom::Operand;
    using Words = typename Wave::template Varying<std::uint32_t>;
    if constexpr (nvidia) {
      Words a, b;
      wave.each([&](int lane) {
        const auto& w = weights(lane).r;
        const std::uint32_t even = rounded_pair<T>(w[0], w[2]), odd = rounded_pair<T>(w[1], w[3]);
        const bool turned = (lane / 4 & 1) != 0;
        a(lane) = turned ? odd : even;
        b(lane) = turned ? even : odd;
      });
      wave.shuffle(a, a, [](int lane) { return 4 * (2 * (lane % 4) + (lane / 4 & 1)) + lane / 8; });
      wave.shuffle(b, b, [](int lane) { return 4 * (2 * (lane % 4) + 1 - (lane / 4 & 1)) + lane / 8; });
      wave.each([&](int lane) {
        const bool turned = (lane / 4 & 1) != 0;
        const std::uint32_t two[2] = {turned ? b(lane) : a(lane), turned ? a(lane) : b(lane)};
        __builtin_memcpy(operand(lane).r, two, sizeof(two));
      });
    } else {
      wave.each([&](int lane) {
        const auto& w = weights(lane).r;
        const std::uint32_t two[2] = {rounded_pair<T>(w[0], w[1]), rounded_pair<T>(w[2], w[3])};
        __builtin_memcpy(operand(lane).r, two, sizeof(two));
      });
    }
  }
};

}  // namespace Tessera

#endif
