// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_ATOM_HPP
#define TESSERA_UNITS_ATOM_HPP

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_Macros.hpp"

/// \file
/// An *atom* is data about one matrix instruction C(m,n) += A(m,k) B(k,n): its shape, its operand types and, for every
/// lane and register, which matrix element that register holds. The maps are constexpr, so that the same facts drive
/// the device kernels, the format builders, the host emulation and the proofs below.

namespace Tessera {

/// Row and column of a matrix element; for A (row, k), for B (k, column), for C (row, column).
struct Coord {
  int row, col;
};

/// Every (lane, register) pair of an operand covers each element exactly once.
template <int Rows, int Cols, int Lanes, int Registers>
constexpr bool covers_once(Coord (*coord)(int, int)) {
  if (Lanes * Registers != Rows * Cols) return false;
  bool seen[Rows * Cols] = {};
  for (int lane = 0; lane < Lanes; ++lane) {
    for (int i = 0; i < Registers; ++i) {
      const Coord c = coord(lane, i);
      if (c.row < 0 || c.row >= Rows || c.col < 0 || c.col >= Cols || seen[c.row * Cols + c.col]) return false;
      seen[c.row * Cols + c.col] = true;
    }
  }
  return true;
}

/// The proof each atom must pass: A, B and C are covered exactly once. (It proves coverage, not that the hardware uses
/// this layout: the device conformance test does that with one-hot operands.)
template <class Atom>
constexpr bool is_bijection() {
  return covers_once<Atom::m, Atom::k, Atom::lanes, Atom::a_registers>(&Atom::a_coord) &&
         covers_once<Atom::k, Atom::n, Atom::lanes, Atom::b_registers>(&Atom::b_coord) &&
         covers_once<Atom::m, Atom::n, Atom::lanes, Atom::c_registers>(&Atom::c_coord);
}

/// What one lane holds of each operand.
template <class Atom>
struct AFragment {
  typename Atom::Operand r[Atom::a_registers];
};
template <class Atom>
struct BFragment {
  typename Atom::Operand r[Atom::b_registers];
};
template <class Atom>
struct CFragment {
  typename Atom::Accumulator r[Atom::c_registers];
};

/// What a unit makes of an operand before it multiplies: nothing, or TF32, whose mantissa has 10 bits.
enum class OperandRounding { None, Tf32Nearest, Tf32Cut };

/// How an operand enters the product: 16-bit types exactly as floats, others as the atom says.
template <class Atom>
TESSERA_FUNCTION typename Atom::Accumulator operand_value(typename Atom::Operand value) {
  if constexpr (Atom::rounding == OperandRounding::Tf32Nearest) {
    return round_to_tf32(value);
  } else if constexpr (Atom::rounding == OperandRounding::Tf32Cut) {
    return cut_to_tf32(value);
  } else {
    return static_cast<typename Atom::Accumulator>(value);
  }
}

/// The matrix instruction on the host, lane by lane: gathers the lanes' registers through the coordinate maps,
/// multiplies with products and sums in the accumulator type in the order of k, scatters the result.
template <class Atom_>
struct Emulated {
  using Atom = Atom_;

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  static void mma(const Wave&, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    static_assert(Wave::lanes == Atom::lanes, "an atom runs on a wave of its own width");
    using Sum = typename Atom::Accumulator;
    Sum left[Atom::m][Atom::k], right[Atom::k][Atom::n];
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::a_registers; ++i) {
        const Coord at = Atom::a_coord(lane, i);
        left[at.row][at.col] = operand_value<Atom>(a(lane).r[i]);
      }
      for (int i = 0; i < Atom::b_registers; ++i) {
        const Coord at = Atom::b_coord(lane, i);
        right[at.row][at.col] = operand_value<Atom>(b(lane).r[i]);
      }
    }
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i) {
        const Coord at = Atom::c_coord(lane, i);
        Sum sum = c(lane).r[i];
        for (int k = 0; k < Atom::k; ++k) sum += left[at.row][k] * right[k][at.col];
        c(lane).r[i] = sum;
      }
    }
  }
};

}  // namespace Tessera

#endif
