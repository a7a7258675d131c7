// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TESTS_ATOM_FIXTURE_HPP
#define TESSERA_TESTS_ATOM_FIXTURE_HPP

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// What the tests of atoms share: lists of atoms and one product in matrix coordinates.

namespace Tessera {
namespace Testing {

using NvidiaAtoms = testing::Types<Sm80_M8N8K4_F64, Sm90_M16N8K8_F64, Sm80_M16N8K4_F32_TF32, Sm80_M16N8K8_F32_TF32,
                                   Sm80_M16N8K8_F32_TF32Cut, Sm80_M16N8K8_F32_F16, Sm80_M16N8K8_F32_BF16,
                                   Sm80_M16N8K16_F32_F16, Sm80_M16N8K16_F32_BF16>;
using AmdAtoms =
    testing::Types<Gfx90a_M16N16K4_F64, Gfx90a_M16N16K4_F32, Gfx90a_M16N16K16_F32_F16, Gfx90a_M16N16K16_F32_BF16>;
using AllAtoms = testing::Types<Sm80_M8N8K4_F64, Sm90_M16N8K8_F64, Sm80_M16N8K4_F32_TF32, Sm80_M16N8K8_F32_TF32,
                                Sm80_M16N8K8_F32_TF32Cut, Sm80_M16N8K8_F32_F16, Sm80_M16N8K8_F32_BF16,
                                Sm80_M16N8K16_F32_F16, Sm80_M16N8K16_F32_BF16, Gfx90a_M16N16K4_F64, Gfx90a_M16N16K4_F32,
                                Gfx90a_M16N16K16_F32_F16, Gfx90a_M16N16K16_F32_BF16>;

/// The atom's name instead of a number in the names of typed tests.
struct AtomName {
  template <class Atom>
  static std::string GetName(int) {
    return Atom::name;
  }
};

/// A value of an operand as a double: what the type holds, rounding of TF32 not applied.
template <class Operand>
double plain(Operand value) {
  if constexpr (std::is_same_v<Operand, double>) {
    return value;
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

/// Operands and accumulator of one product, row-major.
template <class Atom>
struct Product {
  std::vector<typename Atom::Operand> a, b;
  std::vector<typename Atom::Accumulator> c;

  Product() : a(std::size_t{Atom::m} * Atom::k), b(std::size_t{Atom::k} * Atom::n), c(std::size_t{Atom::m} * Atom::n) {
    for (auto& v : a) v = typename Atom::Operand(0.0f);
    for (auto& v : b) v = typename Atom::Operand(0.0f);
  }
  /// Fills all three with next().
  template <class Next>
  void fill(Next next) {
    for (auto& v : a) v = typename Atom::Operand(static_cast<float>(next()));
    for (auto& v : b) v = typename Atom::Operand(static_cast<float>(next()));
    for (auto& v : c) v = static_cast<typename Atom::Accumulator>(next());
  }
};

/// TF32 by exact arithmetic instead of bits: a multiple of the 11-bit significand's unit, the nearest one (ties away)
/// or the next one towards zero.
inline double tf32(double value, OperandRounding rounding = OperandRounding::Tf32Nearest) {
  if (value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 11);
  return (rounding == OperandRounding::Tf32Cut ? std::trunc(value / unit) : std::round(value / unit)) * unit;
}
template <class Atom>
double operand(typename Atom::Operand value) {
  return Atom::rounding == OperandRounding::None ? plain(value) : tf32(plain(value), Atom::rounding);
}

/// A B + C in long double, and |A| |B| + |C| for bounds.
template <class Atom>
void dense(const Product<Atom>& p, std::vector<double>& result, std::vector<double>& magnitude) {
  result.assign(p.c.size(), 0);
  magnitude.assign(p.c.size(), 0);
  for (int row = 0; row < Atom::m; ++row) {
    for (int col = 0; col < Atom::n; ++col) {
      const std::size_t at = static_cast<std::size_t>(row * Atom::n + col);
      long double sum = p.c[at], size = std::fabs(static_cast<double>(p.c[at]));
      for (int k = 0; k < Atom::k; ++k) {
        const long double term = static_cast<long double>(operand<Atom>(p.a[row * Atom::k + k])) *
                                 static_cast<long double>(operand<Atom>(p.b[k * Atom::n + col]));
        sum += term;
        size += term < 0 ? -term : term;
      }
      result[at] = static_cast<double>(sum);
      magnitude[at] = static_cast<double>(size);
    }
  }
}

}  // namespace Testing
}  // namespace Tessera

#endif
