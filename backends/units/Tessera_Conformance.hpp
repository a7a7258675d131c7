// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_CONFORMANCE_HPP
#define TESSERA_UNITS_CONFORMANCE_HPP

#include <cstddef>

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/units/Tessera_Atom.hpp"

/// \file
/// Does a device's matrix instruction use the layout its atom claims? The coordinate maps are facts taken from manuals;
/// only the device can confirm them. A backend runs single products and hands back the raw accumulator registers; the
/// tests compare them with the emulation's. Used by tests only.

namespace Tessera {

/// One product on a wave: gathers A (m x k), B (k x n) and C (m x n), row-major, through the atom's maps, runs the
/// instruction and stores the accumulator registers as [lane][register]. The same text runs on devices and hosts.
template <class Unit, class Wave>
TESSERA_FUNCTION void conformance_case(const Wave& w, const typename Unit::Atom::Operand* a,
                                       const typename Unit::Atom::Operand* b, const typename Unit::Atom::Accumulator* c,
                                       typename Unit::Atom::Accumulator* registers) {
  using Atom = typename Unit::Atom;
  typename Wave::template Varying<AFragment<Atom>> left;
  typename Wave::template Varying<BFragment<Atom>> right;
  typename Wave::template Varying<CFragment<Atom>> sum;
  w.each([&](int lane) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::a_registers; ++i) {
      const Coord at = Atom::a_coord(lane, i);
      left(lane).r[i] = a[at.row * Atom::k + at.col];
    }
    TESSERA_UNROLL
    for (int i = 0; i < Atom::b_registers; ++i) {
      const Coord at = Atom::b_coord(lane, i);
      right(lane).r[i] = b[at.row * Atom::n + at.col];
    }
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) {
      const Coord at = Atom::c_coord(lane, i);
      sum(lane).r[i] = c[at.row * Atom::n + at.col];
    }
  });
  Unit::mma(w, sum, left, right);
  w.each([&](int lane) {
    TESSERA_UNROLL
    for (int i = 0; i < Atom::c_registers; ++i) registers[lane * Atom::c_registers + i] = sum(lane).r[i];
  });
}

/// The operands of `cases` products, one after another, in host memory.
struct ConformanceArgs {
  const void* a = nullptr;    ///< cases x m x k operands
  const void* b = nullptr;    ///< cases x k x n operands
  const void* c = nullptr;    ///< cases x m x n accumulators
  void* registers = nullptr;  ///< result: cases x lanes x c_registers accumulators
  int cases = 0;
};

/// Bytes of each array of ConformanceArgs.
struct ConformanceSizes {
  std::size_t a, b, c, registers;
};
template <class Atom>
constexpr ConformanceSizes conformance_sizes(int cases) {
  const auto n = static_cast<std::size_t>(cases);
  return {n * Atom::m * Atom::k * sizeof(typename Atom::Operand),
          n * Atom::k * Atom::n * sizeof(typename Atom::Operand),
          n * Atom::m * Atom::n * sizeof(typename Atom::Accumulator),
          n * Atom::lanes * Atom::c_registers * sizeof(typename Atom::Accumulator)};
}

/// Runs the products of the atom of this name on the current device and waits for them.
Status cuda_conformance(const char* atom, const ConformanceArgs& args) noexcept;
Status hip_conformance(const char* atom, const ConformanceArgs& args) noexcept;

}  // namespace Tessera

#endif
