// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_ATOMS_NVIDIA_HPP
#define TESSERA_UNITS_ATOMS_NVIDIA_HPP

#include "backends/units/Tessera_Atom.hpp"

/// \file
/// The `mma.sync` shapes Tessera uses. With g = lane / 4 and t = lane % 4 every layout is a line of the table in the
/// PTX ISA (section "Matrix fragments for mma.m8n8k4 / m16n8k4 / m16n8k8 / m16n8k16"); CuTe's MMA_Traits state the same
/// layouts independently (cute/atom/mma_traits_sm80.hpp).

namespace Tessera {

/// Where the accumulator of an atom lives; the DASP kernel reads its diagonal.
enum class AccumulatorLayout { NvidiaPairs, AmdInterleaved, AmdQuads };

/// A(row,k) = (g, t); B(k,col) = (t, g); C(row,col) = (g, 2t+i).
struct Sm80_M8N8K4_F64 {
  using Operand = double;
  using Accumulator = double;
  static constexpr const char* name = "Sm80_M8N8K4_F64";
  static constexpr int m = 8, n = 8, k = 4, lanes = 32, a_registers = 1, b_registers = 1, c_registers = 2;
  static constexpr OperandRounding rounding = OperandRounding::None;
  static constexpr AccumulatorLayout layout = AccumulatorLayout::NvidiaPairs;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int) { return {lane / 4, lane % 4}; }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int) { return {lane % 4, lane / 4}; }
  TESSERA_FUNCTION static constexpr Coord c_coord(int lane, int i) { return {lane / 4, 2 * (lane % 4) + i}; }
};

/// Four of them in one instruction of sm_90: C(row,col) = (g+8(i/2), 2t+i%2).
struct Sm90_M16N8K8_F64 {
  using Operand = double;
  using Accumulator = double;
  static constexpr const char* name = "Sm90_M16N8K8_F64";
  static constexpr int m = 16, n = 8, k = 8, lanes = 32, a_registers = 4, b_registers = 2, c_registers = 4;
  static constexpr OperandRounding rounding = OperandRounding::None;
  static constexpr AccumulatorLayout layout = AccumulatorLayout::NvidiaPairs;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) {
    return {lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)};
  }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int i) { return {lane % 4 + 4 * i, lane / 4}; }
  TESSERA_FUNCTION static constexpr Coord c_coord(int lane, int i) {
    return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
  }
};

namespace Impl {
/// The shapes with m = 16 and n = 8 share B's columns and the accumulator: C(row,col) = (g+8(i/2), 2t+i%2).
struct Sm80_M16N8 {
  using Accumulator = float;
  static constexpr int m = 16, n = 8, lanes = 32, c_registers = 4;
  static constexpr AccumulatorLayout layout = AccumulatorLayout::NvidiaPairs;
  TESSERA_FUNCTION static constexpr Coord c_coord(int lane, int i) {
    return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
  }
};
struct Sm80_M16N8K8_16Bit : Sm80_M16N8 {
  static constexpr int k = 8, a_registers = 4, b_registers = 2;
  static constexpr OperandRounding rounding = OperandRounding::None;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) {
    return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
  }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int i) { return {2 * (lane % 4) + i, lane / 4}; }
};
struct Sm80_M16N8K16_16Bit : Sm80_M16N8 {
  static constexpr int k = 16, a_registers = 8, b_registers = 4;
  static constexpr OperandRounding rounding = OperandRounding::None;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) {
    return {lane / 4 + 8 * ((i / 2) % 2), 2 * (lane % 4) + i % 2 + 8 * (i / 4)};
  }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int i) {
    return {2 * (lane % 4) + i % 2 + 8 * (i / 2), lane / 4};
  }
};
}  // namespace Impl

/// A(row,k) = (g+8i, t); B(k,col) = (t, g).
struct Sm80_M16N8K4_F32_TF32 : Impl::Sm80_M16N8 {
  using Operand = float;
  static constexpr const char* name = "Sm80_M16N8K4_F32_TF32";
  static constexpr int k = 4, a_registers = 2, b_registers = 1;
  static constexpr OperandRounding rounding = OperandRounding::Tf32Nearest;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) { return {lane / 4 + 8 * i, lane % 4}; }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int) { return {lane % 4, lane / 4}; }
};

/// A(row,k) = (g+8(i%2), t+4(i/2)); B(k,col) = (t+4i, g).
struct Sm80_M16N8K8_F32_TF32 : Impl::Sm80_M16N8 {
  using Operand = float;
  static constexpr const char* name = "Sm80_M16N8K8_F32_TF32";
  static constexpr int k = 8, a_registers = 4, b_registers = 2;
  static constexpr OperandRounding rounding = OperandRounding::Tf32Nearest;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) {
    return {lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)};
  }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int i) { return {lane % 4 + 4 * i, lane / 4}; }
};

/// The same instruction given numbers of binary32, whose last 13 bits it does not look at.
struct Sm80_M16N8K8_F32_TF32Cut : Sm80_M16N8K8_F32_TF32 {
  static constexpr const char* name = "Sm80_M16N8K8_F32_TF32Cut";
  static constexpr OperandRounding rounding = OperandRounding::Tf32Cut;
};

/// The same registers, multiplied in FP32 by three of these instructions: Tessera_SplitUnit.hpp.
struct Sm80_M16N8K8_F32_3xTF32 : Sm80_M16N8K8_F32_TF32 {
  using Part = Sm80_M16N8K8_F32_TF32Cut;
  static constexpr const char* name = "Sm80_M16N8K8_F32_3xTF32";
  static constexpr OperandRounding rounding = OperandRounding::None;
};

/// A(row,k) = (g+8(i/2), 2t+i%2); B(k,col) = (2t+i, g).
struct Sm80_M16N8K8_F32_F16 : Impl::Sm80_M16N8K8_16Bit {
  using Operand = half_t;
  static constexpr const char* name = "Sm80_M16N8K8_F32_F16";
};
struct Sm80_M16N8K8_F32_BF16 : Impl::Sm80_M16N8K8_16Bit {
  using Operand = bhalf_t;
  static constexpr const char* name = "Sm80_M16N8K8_F32_BF16";
};

/// A(row,k) = (g+8((i/2)%2), 2t+i%2+8(i/4)); B(k,col) = (2t+i%2+8(i/2), g).
struct Sm80_M16N8K16_F32_F16 : Impl::Sm80_M16N8K16_16Bit {
  using Operand = half_t;
  static constexpr const char* name = "Sm80_M16N8K16_F32_F16";
};
struct Sm80_M16N8K16_F32_BF16 : Impl::Sm80_M16N8K16_16Bit {
  using Operand = bhalf_t;
  static constexpr const char* name = "Sm80_M16N8K16_F32_BF16";
};

static_assert(is_bijection<Sm80_M8N8K4_F64>(), "");
static_assert(is_bijection<Sm90_M16N8K8_F64>(), "");
static_assert(is_bijection<Sm80_M16N8K4_F32_TF32>(), "");
static_assert(is_bijection<Sm80_M16N8K8_F32_TF32>(), "");
static_assert(is_bijection<Sm80_M16N8K8_F32_TF32Cut>() && is_bijection<Sm80_M16N8K8_F32_3xTF32>(), "");
static_assert(is_bijection<Sm80_M16N8K8_F32_F16>(), "");
static_assert(is_bijection<Sm80_M16N8K8_F32_BF16>(), "");
static_assert(is_bijection<Sm80_M16N8K16_F32_F16>(), "");
static_assert(is_bijection<Sm80_M16N8K16_F32_BF16>(), "");

}  // namespace Tessera

#endif
