// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUTTING_UNIT_HPP
#define TESSERA_CUTTING_UNIT_HPP

#include <algorithm>
#include <cmath>

#include "units/AtomFixture.hpp"

namespace Tessera {
namespace Testing {

/// NVIDIA's units at their worst, which is V100's way; later ones keep no less. Four products and C are aligned to the
/// largest of them, of which they keep what is not below 2^-23, and what a float does not hold of the sum is cut.
template <class Atom_>
struct CuttingUnit {
  using Atom = Atom_;

  template <class Wave, class VaryingC, class VaryingA, class VaryingB>
  static void mma(const Wave&, VaryingC& c, const VaryingA& a, const VaryingB& b) {
    Product<Atom> p;
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::a_registers; ++i) {
        const Coord at = Atom::a_coord(lane, i);
        p.a[at.row * Atom::k + at.col] = operand_value<Atom>(a(lane).r[i]);
      }
      for (int i = 0; i < Atom::b_registers; ++i) {
        const Coord at = Atom::b_coord(lane, i);
        p.b[at.row * Atom::n + at.col] = operand_value<Atom>(b(lane).r[i]);
      }
    }
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i) {
        for (int k = 0; k < Atom::k; k += 4) c(lane).r[i] = four_more(p, Atom::c_coord(lane, i), k, c(lane).r[i]);
      }
    }
  }

 private:
  static double cut(double x, int exponent) {
    const double unit = std::ldexp(1.0, exponent - 23);
    return std::trunc(x / unit) * unit;
  }
  static float four_more(const Product<Atom>& p, Coord at, int first, float c) {
    double terms[5] = {c};
    int largest = c != 0 ? std::ilogb(c) : -1000;
    for (int j = 0; j < 4; ++j) {
      const double left = p.a[at.row * Atom::k + first + j], right = p.b[(first + j) * Atom::n + at.col];
      terms[j + 1] = left * right;
      if (terms[j + 1] != 0) largest = std::max(largest, std::ilogb(left) + std::ilogb(right));
    }
    double sum = 0;
    for (const double term : terms) sum += cut(term, largest);
    return sum == 0 ? 0.0f : static_cast<float>(cut(sum, std::ilogb(sum)));
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
