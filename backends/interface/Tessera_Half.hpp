// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_HALF_HPP
#define TESSERA_INTERFACE_HALF_HPP

#include <cstdint>
#include <cstring>

#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// 16-bit storage types and the rounding of TF32, bit-exact on every compiler and device.
///
/// Conversions choose between results instead of branching: kernels inline hundreds of them into straight-line code,
/// where branches cost compilers minutes and devices their parallelism.

namespace Tessera {
namespace Impl {

TESSERA_FUNCTION std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TESSERA_FUNCTION float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Drops the low `shift` bits of a magnitude, rounding to nearest, ties to even: what carries is more than half, or
/// half and an odd number.
TESSERA_FUNCTION std::uint32_t round_shift(std::uint32_t magnitude, int shift) {
  return (magnitude + ((1u << (shift - 1)) - 1u) + (magnitude >> shift & 1u)) >> shift;
}

/// binary32 -> binary16. NaN stays NaN (quiet, top payload bits kept), overflow gives infinity.
TESSERA_FUNCTION std::uint16_t half_bits_from_float(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
#if defined(__CUDA_ARCH__)
  // One instruction, where what follows takes thirty; of a NaN it keeps no bits.
  std::uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
  return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? sign | nan : rounded);
#else
  const int exponent = static_cast<int>(magnitude >> 23);
  // Normal in binary16; a carry out of the mantissa correctly reaches infinity. Used from 2^-14 on only.
  const std::uint32_t normal = round_shift(magnitude - 0x38000000u, 13);
  // Subnormal; below half of the smallest one the 24 bits of the mantissa round to 0.
  const int shift = exponent >= 113 ? 14 : exponent < 102 ? 25 : 126 - exponent;
  const std::uint32_t subnormal = round_shift((magnitude & 0x7fffffu) | 0x800000u, shift);
  const std::uint32_t finite = magnitude >= 0x38800000u ? normal : subnormal;
  const std::uint32_t number = magnitude >= 0x47800000u ? 0x7c00u : finite;  // 65536 and above, infinity included
  return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000u ? nan : number));
#endif
}

/// binary64 -> binary32 rounded to odd: a further rounding to a narrower type then equals one rounding of the original.
TESSERA_FUNCTION float float_to_odd(double value) {
  float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  std::uint32_t bits = float_bits(nearest);
  const double magnitude = value < 0 ? -value : value;
  if ((back < 0 ? -back : back) > magnitude) --bits;  // towards zero; infinity becomes the largest finite number
  return float_from_bits(bits | 1u);
}

/// binary16 -> binary32, exact.
TESSERA_FUNCTION float float_from_half_bits(std::uint16_t half) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#elif defined(__HIP_DEVICE_COMPILE__)
  _Float16 value;
  __builtin_memcpy(&value, &half, sizeof(value));
  return static_cast<float>(value);
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000u;
  const std::uint32_t special = normal + 0x38000000u;  // exponent 255
  // Subnormal: mantissa * 2^-24 is exact in binary32.
  const std::uint32_t subnormal = float_bits(static_cast<float>(magnitude & 0x3ffu) * 5.9604644775390625e-8f);
  const std::uint32_t finite = magnitude < 0x400u ? subnormal : normal;
  return float_from_bits(sign | (magnitude >= 0x7c00u ? special : finite));
#endif
}

/// binary32 -> bfloat16. NaN stays NaN.
TESSERA_FUNCTION std::uint16_t bhalf_bits_from_float(float value) {
  const std::uint32_t bits = float_bits(value), nan = (bits >> 16) | 0x40u, number = round_shift(bits, 16);
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : number);
}

TESSERA_FUNCTION float float_from_bhalf_bits(std::uint16_t bhalf) {
  return float_from_bits(static_cast<std::uint32_t>(bhalf) << 16);
}

}  // namespace Impl

/// IEEE 754 binary16 in 16 bits on every platform, hosts included (Kokkos' own half_t is a float there).
/// Storage only: conversions round to nearest even, arithmetic happens in float. Layout-compatible with __half,
/// _Float16 and with Kokkos' half types where those are 16 bits wide.
struct half_t {
  std::uint16_t bits;  ///< as they lie in memory

  half_t() = default;
  /// Rounded to the nearest, ties to even.
  TESSERA_FUNCTION explicit half_t(float value) : bits(Impl::half_bits_from_float(value)) {}
  /// Rounded once.
  TESSERA_FUNCTION explicit half_t(double value) : bits(Impl::half_bits_from_float(Impl::float_to_odd(value))) {}
  /// Exact.
  TESSERA_FUNCTION operator float() const { return Impl::float_from_half_bits(bits); }
};

/// bfloat16 (8-bit exponent, 7-bit mantissa) in 16 bits; storage only, as half_t.
struct bhalf_t {
  std::uint16_t bits;  ///< as they lie in memory

  bhalf_t() = default;
  /// Rounded to the nearest, ties to even.
  TESSERA_FUNCTION explicit bhalf_t(float value) : bits(Impl::bhalf_bits_from_float(value)) {}
  /// Rounded once.
  TESSERA_FUNCTION explicit bhalf_t(double value) : bits(Impl::bhalf_bits_from_float(Impl::float_to_odd(value))) {}
  /// Exact.
  TESSERA_FUNCTION operator float() const { return Impl::float_from_bhalf_bits(bits); }
};

static_assert(sizeof(half_t) == 2 && sizeof(bhalf_t) == 2, "16-bit storage types must be 16 bits wide");

/// binary32 with the mantissa rounded to TF32's 10 bits: nearest, ties away from zero; NVIDIA devices from compute
/// capability 9.0 on take ties to even, which is one instruction there, the other way three.
TESSERA_FUNCTION float round_to_tf32(float value) {
#if defined(__CUDA_ARCH__)
  std::uint32_t rounded;
#if __CUDA_ARCH__ >= 900
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
#endif
  return Impl::float_from_bits(rounded);
#else
  const std::uint32_t bits = Impl::float_bits(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;  // infinity and NaN
  return Impl::float_from_bits((bits + 0x1000u) & 0xffffe000u);
#endif
}

/// binary32 with the mantissa cut off after TF32's 10 bits. NaN may become infinity, as in matrix units.
TESSERA_FUNCTION float cut_to_tf32(float value) { return Impl::float_from_bits(Impl::float_bits(value) & 0xffffe000u); }

}  // namespace Tessera

#endif
