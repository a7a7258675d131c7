// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_SPLIT_UNIT_HPP
#define TESSERA_UNITS_SPLIT_UNIT_HPP

#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/units/Tessera_Atom.hpp"

/// \file
/// Products of FP32 numbers on units that multiply TF32.

namespace Tessera {

/// C += A B, each operand x = hi + lo + r with hi and lo of TF32's 11 bits: three products, lo hi + hi lo + hi hi, the
/// small ones first. hi is rounded to nearest, so 12 bits are left, |x - hi| <= 2^-11 |x|; the unit cuts the last of
/// them off where all 12 are in use, |r| <= 2^-23 |x|. What is left out, lo lo and what has an r, is at most 2^-22 +
/// 2^-22 of |a b|, which is 8 u with u = 2^-24, and nothing where both have 11 significant bits or one has 11 and the
/// other 22. Operands within 2^-12 of overflow, infinite ones and NaN make NaN; a lo below FP32's range is lost. How
/// far sums are from those of FP32 arithmetic: perf_test/notes/precision.md.
///
/// The three products of an instruction's depth are added up in the unit, which cuts sums, and then to C by additions,
/// which round: cut every time, the sum of a long row would drift towards zero. [Ootomo, Yokota, "Recovering single
/// precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", IJHPCA 2022]
/// @tparam Atom_  of float; Atom_::Part has the same registers
/// @tparam Unit  multiplies Atom_::Part, which cuts
template <class Atom_, class Unit>
struct SplitUnit {
  using Atom = Atom_;
  using Part = typename Atom::Part;
  static_assert(Part::rounding == OperandRounding::Tf32Cut, "hi is rounded here");

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  TESSERA_FUNCTION static void mma(const Wave& wave, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    typename Wave::template Varying<AFragment<Part>> a_hi, a_lo;
    typename Wave::template Varying<BFragment<Part>> b_hi, b_lo;
    wave.each([&](int lane) {
      split(a(lane).r, a_hi(lane).r, a_lo(lane).r);
      split(b(lane).r, b_hi(lane).r, b_lo(lane).r);
    });
    typename Wave::template Varying<CFragment<Atom>> sum;
    wave.each([&](int lane) { sum(lane) = CFragment<Atom>{}; });
    Unit::mma(wave, sum, a_lo, b_hi);
    Unit::mma(wave, sum, a_hi, b_lo);
    Unit::mma(wave, sum, a_hi, b_hi);
    wave.each([&](int lane) {
      TESSERA_UNROLL
      for (int i = 0; i < Atom::c_registers; ++i) c(lane).r[i] += sum(lane).r[i];
    });
  }

 private:
  template <int N>
  TESSERA_FUNCTION static void split(const float (&x)[N], float (&hi)[N], float (&lo)[N]) {
    TESSERA_UNROLL
    for (int i = 0; i < N; ++i) {
      hi[i] = round_to_tf32(x[i]);
      lo[i] = x[i] - hi[i];
    }
  }
};

/// Whether an atom's products are made in parts.
template <class Atom, class = void>
constexpr bool in_parts = false;
template <class Atom>
constexpr bool in_parts<Atom, std::void_t<typename Atom::Part>> = true;

/// Emulated or a device's unit for an atom: the unit itself, or three of its products.
template <template <class> class Unit, class Atom, class = void>
struct UnitOf {
  using type = Unit<Atom>;
};
template <template <class> class Unit, class Atom>
struct UnitOf<Unit, Atom, std::void_t<typename Atom::Part>> {
  using type = SplitUnit<Atom, Unit<typename Atom::Part>>;
};

}  // namespace Tessera

#endif
