// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_ATTENTION_ATTENTION_WEIGHTS_HPP
#define TESSERA_KERNELS_ATTENTION_ATTENTION_WEIGHTS_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/kernels/attention/Tessera_AttentionHead.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_PanelShape.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"

/// \file
/// Weights of a softmax: their exponentials, their range in the type of operands, and the way from the registers in
/// which a unit leaves scores to those in which it takes weights.

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
TESSERA_FUNCTION double power_of_two(double x) { return std::exp2(x); }
/// Neither infinite nor undefined.
TESSERA_FUNCTION bool is_finite(float x) { return (Impl::float_bits(x) & 0x7f800000u) != 0x7f800000u; }

/// Weights are 2^(score - reference). The reference of a row follows its largest score loosely: it moves only when a
/// weight would be above 2^most, and then so that the largest one is 2^first, which a row's largest weight so never is
/// below. FP16 has its range used: a weight is rounded to a multiple of 2^-24, 2^-31 of the largest one. BF16 and
/// FP32 have more range than weights have, and numbers near its end, whose weights are therefore at most 1.
template <class Operand>
struct WeightRange {
  static constexpr bool narrow = std::is_same<Operand, half_t>::value;
  static constexpr float most = narrow ? 15 : 0, first = narrow ? 7 : -8;
};

/// Two numbers rounded to 16 bits, the first in the low half.
template <class T>
TESSERA_FUNCTION std::uint32_t rounded_pair(float low, float high) {
  static_assert(sizeof(T) == 2, "two to a word");
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

/// Two numbers of an operand as registers hold them.
template <class T>
struct WeightPair {
  static constexpr int words = static_cast<int>(sizeof(T)) / 2;
  std::uint32_t w[words];

  TESSERA_FUNCTION static WeightPair of(float first, float second) {
    WeightPair pair;
    if constexpr (words == 1) {
      pair.w[0] = rounded_pair<T>(first, second);
    } else {
      pair.w[0] = Impl::float_bits(first);
      pair.w[1] = Impl::float_bits(second);
    }
    return pair;
  }
};

/// Sums of a row times `factor`, rounded and stored, 4, 8 or 16 bytes at a multiple of so many.
template <class Operand, int Width>
TESSERA_FUNCTION void attention_store_rounded(void* to, const float (&sums)[Width], float factor) {
  WeightPair<Operand> rounded[Width / 2];
  TESSERA_UNROLL
  for (int v = 0; v < Width; v += 2) rounded[v / 2] = WeightPair<Operand>::of(sums[v] * factor, sums[v + 1] * factor);
  attention_store<static_cast<int>(sizeof(rounded))>(to, rounded);
}

/// The right operands of a block's weighted sums: slot after slot, those of one instruction after the other.
template <class Atom>
struct WeightOperands {
  static constexpr int slots = Atom::m * Atom::n / Atom::lanes, steps = Atom::m / Atom::k;
  typename Atom::Operand r[slots];

  TESSERA_FUNCTION BFragment<Atom> step(int index) const {
    BFragment<Atom> b;
    __builtin_memcpy(b.r, r + index * Atom::b_registers, sizeof(b.r));
    return b;
  }
};

/// Scores are an accumulator of column vectors x rows of the window, weights right operands of the same shape: one of
/// 16 column vectors, or several of fewer. The order of the column vectors in them is free as long as the left operands
/// share it: slot j of a lane (of PanelShape::slots) is column vector vector_of(lane, j).
///
/// AMD: a lane's accumulator is its operand. NVIDIA: lane (g, t) has column vectors g and g + 8 of rows 2t and 2t + 1,
/// and needs four column vectors of row g. The two weights of a row, g and g + 8, are needed by one lane: such pairs
/// change places in two shuffles (of FP32 two each), in each of which every lane gives one word and gets one.
template <class Atom>
struct WeightSlots {
  static constexpr bool nvidia = Atom::layout == AccumulatorLayout::NvidiaPairs;
  using Operands = WeightOperands<Atom>;
  static_assert(Atom::m == 16 && Atom::k * Operands::steps == 16, "whole instructions over 16 column vectors");
  static_assert(Operands::slots == 4 && Atom::b_registers * Operands::steps == 4, "a slot per weight");

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
  template <class Wave, class VaryingFloats, class VaryingOperands>
  TESSERA_FUNCTION static void to_operand(const Wave& wave, const VaryingFloats& weights, VaryingOperands& operand) {
    using Pair = WeightPair<typename Atom::Operand>;
    if constexpr (nvidia) {
      typename Wave::template Varying<std::uint32_t> a[Pair::words], b[Pair::words];
      wave.each([&](int lane) {
        const auto& w = weights(lane).r;
        const Pair even = Pair::of(w[0], w[2]), odd = Pair::of(w[1], w[3]);
        const bool turned = (lane / 4 & 1) != 0;
        TESSERA_UNROLL
        for (int n = 0; n < Pair::words; ++n) {
          a[n](lane) = turned ? odd.w[n] : even.w[n];
          b[n](lane) = turned ? even.w[n] : odd.w[n];
        }
      });
      TESSERA_UNROLL
      for (int n = 0; n < Pair::words; ++n) {
        wave.shuffle(a[n], a[n], [](int lane) { return 4 * (2 * (lane % 4) + (lane / 4 & 1)) + lane / 8; });
        wave.shuffle(b[n], b[n], [](int lane) { return 4 * (2 * (lane % 4) + 1 - (lane / 4 & 1)) + lane / 8; });
      }
      wave.each([&](int lane) {
        const bool turned = (lane / 4 & 1) != 0;
        Pair two[2];
        TESSERA_UNROLL
        for (int n = 0; n < Pair::words; ++n) {
          two[0].w[n] = turned ? b[n](lane) : a[n](lane);
          two[1].w[n] = turned ? a[n](lane) : b[n](lane);
        }
        __builtin_memcpy(operand(lane).r, two, sizeof(two));
      });
    } else {
      wave.each([&](int lane) {
        const auto& w = weights(lane).r;
        const Pair two[2] = {Pair::of(w[0], w[1]), Pair::of(w[2], w[3])};
        __builtin_memcpy(operand(lane).r, two, sizeof(two));
      });
    }
  }
};

}  // namespace Tessera

#endif
