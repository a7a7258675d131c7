// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_ATOMS_AMD_HPP
#define TESSERA_UNITS_ATOMS_AMD_HPP

#include "backends/units/Tessera_AtomsNvidia.hpp"

/// \file
/// The MFMA shapes Tessera uses (CDNA2, wave of 64). With r = lane % 16 and q = lane / 16 the layouts follow AMD's
/// "CDNA2 Instruction Set Architecture" (chapter on matrix fused multiply-add) and AMD's matrix instruction calculator;
/// rocWMMA states the same independently (a vector width of 1 for double accumulators on gfx9, of 4 otherwise).

namespace Tessera {

/// v_mfma_f64_16x16x4: A(row,k) = (r, q); B(k,col) = (q, r); C(row,col) = (4i+q, r).
struct Gfx90a_M16N16K4_F64 {
  using Operand = double;
  using Accumulator = double;
  static constexpr const char* name = "Gfx90a_M16N16K4_F64";
  static constexpr int m = 16, n = 16, k = 4, lanes = 64, a_registers = 1, b_registers = 1, c_registers = 4;
  static constexpr OperandRounding rounding = OperandRounding::None;
  static constexpr AccumulatorLayout layout = AccumulatorLayout::AmdInterleaved;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int) { return {lane % 16, lane / 16}; }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int) { return {lane / 16, lane % 16}; }
  TESSERA_FUNCTION static constexpr Coord c_coord(int lane, int i) { return {4 * i + lane / 16, lane % 16}; }
};

namespace Impl {
/// The shapes with 32-bit accumulators: C(row,col) = (4q+i, r).
struct Gfx90a_M16N16 {
  using Accumulator = float;
  static constexpr int m = 16, n = 16, lanes = 64, c_registers = 4;
  static constexpr OperandRounding rounding = OperandRounding::None;
  static constexpr AccumulatorLayout layout = AccumulatorLayout::AmdQuads;
  TESSERA_FUNCTION static constexpr Coord c_coord(int lane, int i) { return {4 * (lane / 16) + i, lane % 16}; }
};
struct Gfx90a_M16N16K16_16Bit : Gfx90a_M16N16 {
  static constexpr int k = 16, a_registers = 4, b_registers = 4;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int i) { return {lane % 16, 4 * (lane / 16) + i}; }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int i) { return {4 * (lane / 16) + i, lane % 16}; }
};
}  // namespace Impl

/// v_mfma_f32_16x16x4: A(row,k) = (r, q); B(k,col) = (q, r).
struct Gfx90a_M16N16K4_F32 : Impl::Gfx90a_M16N16 {
  using Operand = float;
  static constexpr const char* name = "Gfx90a_M16N16K4_F32";
  static constexpr int k = 4, a_registers = 1, b_registers = 1;
  TESSERA_FUNCTION static constexpr Coord a_coord(int lane, int) { return {lane % 16, lane / 16}; }
  TESSERA_FUNCTION static constexpr Coord b_coord(int lane, int) { return {lane / 16, lane % 16}; }
};

/// v_mfma_f32_16x16x16_f16 / _bf16_1k: A(row,k) = (r, 4q+i); B(k,col) = (4q+i, r).
struct Gfx90a_M16N16K16_F32_F16 : Impl::Gfx90a_M16N16K16_16Bit {
  using Operand = half_t;
  static constexpr const char* name = "Gfx90a_M16N16K16_F32_F16";
};
struct Gfx90a_M16N16K16_F32_BF16 : Impl::Gfx90a_M16N16K16_16Bit {
  using Operand = bhalf_t;
  static constexpr const char* name = "Gfx90a_M16N16K16_F32_BF16";
};

static_assert(is_bijection<Gfx90a_M16N16K4_F64>(), "");
static_assert(is_bijection<Gfx90a_M16N16K4_F32>(), "");
static_assert(is_bijection<Gfx90a_M16N16K16_F32_F16>(), "");
static_assert(is_bijection<Gfx90a_M16N16K16_F32_BF16>(), "");

}  // namespace Tessera

#endif
