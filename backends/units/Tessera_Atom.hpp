// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_ATOM_HPP
#define TESSERA_UNITS_ATOM_HPP

#include <cstring>

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

#if defined(__clang__) && !defined(__HIPCC__)
#define TESSERA_EMULATED_PRODUCT __attribute__((no_sanitize("address", "undefined")))
#elif defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_EMULATED_PRODUCT __attribute__((no_sanitize("address", "undefined"), optimize("tree-vectorize")))
#else
#define TESSERA_EMULATED_PRODUCT
#endif

/// Where the elements of an operand lie that all lanes hold, lane by lane: numbers in a matrix stored by rows.
template <int Lanes, int Registers>
struct Places {
  int at[Lanes * Registers];

  constexpr Places(Coord (*coord)(int, int), int cols) : at() {
    for (int e = 0; e < Lanes * Registers; ++e) {
      const Coord place = coord(e / Registers, e % Registers);
      at[e] = place.row * cols + place.col;
    }
  }
};

/// The matrix instruction on the host, lane by lane: gathers the lanes' registers through the coordinate maps,
/// multiplies with products and sums in the accumulator type in the order of k, scatters the result.
template <class Atom_>
struct Emulated {
  using Atom = Atom_;

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  static void mma(const Wave&, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    static_assert(Wave::lanes == Atom::lanes, "an atom runs on a wave of its own width");
    Registers r;
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::a_registers; ++i) {
        r.a[lane * Atom::a_registers + i] = operand_value<Atom>(a(lane).r[i]);
      }
      for (int i = 0; i < Atom::b_registers; ++i) {
        r.b[lane * Atom::b_registers + i] = operand_value<Atom>(b(lane).r[i]);
      }
      std::memcpy(r.c + lane * Atom::c_registers, c(lane).r, sizeof(c(lane).r));
    }
    multiply(r);
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      std::memcpy(c(lane).r, r.c + lane * Atom::c_registers, sizeof(c(lane).r));
    }
  }

 private:
  using Sum = typename Atom::Accumulator;
  struct Registers {
    Sum a[Atom::m * Atom::k], b[Atom::k * Atom::n], c[Atom::m * Atom::n];
  };

  /// By rows of C, which g++ makes vector instructions of even where all else is compiled at -O1; without sanitizers,
  /// which would take most of an emulated kernel's time: is_bijection proves that all places lie in the matrices.
  TESSERA_EMULATED_PRODUCT static void multiply(Registers& r) {
    static_assert(is_bijection<Atom>(), "places in the matrices");
    static constexpr Places<Atom::lanes, Atom::a_registers> a_places(&Atom::a_coord, Atom::k);
    static constexpr Places<Atom::lanes, Atom::b_registers> b_places(&Atom::b_coord, Atom::n);
    static constexpr Places<Atom::lanes, Atom::c_registers> c_places(&Atom::c_coord, Atom::n);
    Registers by_rows;
    for (int e = 0; e < Atom::m * Atom::k; ++e) by_rows.a[a_places.at[e]] = r.a[e];
    for (int e = 0; e < Atom::k * Atom::n; ++e) by_rows.b[b_places.at[e]] = r.b[e];
    for (int e = 0; e < Atom::m * Atom::n; ++e) by_rows.c[c_places.at[e]] = r.c[e];
    for (int row = 0; row < Atom::m; ++row) {
      Sum sums[Atom::n];
      for (int col = 0; col < Atom::n; ++col) sums[col] = by_rows.c[row * Atom::n + col];
      for (int k = 0; k < Atom::k; ++k) {
        const Sum left = by_rows.a[row * Atom::k + k];
        for (int col = 0; col < Atom::n; ++col) sums[col] += left * by_rows.b[k * Atom::n + col];
      }
      for (int col = 0; col < Atom::n; ++col) by_rows.c[row * Atom::n + col] = sums[col];
    }
    for (int e = 0; e < Atom::m * Atom::n; ++e) r.c[e] = by_rows.c[c_places.at[e]];
  }
};

}  // namespace Tessera

#endif
