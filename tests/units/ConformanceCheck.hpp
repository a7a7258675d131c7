// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TESTS_CONFORMANCE_CHECK_HPP
#define TESSERA_TESTS_CONFORMANCE_CHECK_HPP

#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "backends/units/Tessera_Conformance.hpp"
#include "units/AtomFixture.hpp"

/// \file
/// Runs products through somebody's matrix unit and compares every raw accumulator register with the emulation's. The
/// somebody is a device (tests/device) or, so that the check itself is checked, a host unit with a fault (tests/units).

namespace Tessera {
namespace Testing {

/// Status launch(const char* atom, const ConformanceArgs&).
template <class Atom, class Launch>
std::string registers_of(const std::vector<Product<Atom>>& products, Launch&& launch,
                         std::vector<typename Atom::Accumulator>& registers) {
  std::vector<typename Atom::Operand> a, b;
  std::vector<typename Atom::Accumulator> c;
  for (const Product<Atom>& p : products) {
    a.insert(a.end(), p.a.begin(), p.a.end());
    b.insert(b.end(), p.b.begin(), p.b.end());
    c.insert(c.end(), p.c.begin(), p.c.end());
  }
  registers.assign(products.size() * Atom::lanes * Atom::c_registers,
                   std::numeric_limits<typename Atom::Accumulator>::quiet_NaN());
  ConformanceArgs args;
  args.a = a.data();
  args.b = b.data();
  args.c = c.data();
  args.registers = registers.data();
  args.cases = static_cast<int>(products.size());
  const Status status = launch(Atom::name, args);
  return status.ok() ? std::string() : std::string(status.message);
}

/// A unit on the host as a launch.
template <class Unit>
Status host_conformance(const char*, const ConformanceArgs& args) {
  using Atom = typename Unit::Atom;
  const HostWave<Atom::lanes> wave;
  for (int i = 0; i < args.cases; ++i) {
    conformance_case<Unit>(
        wave, static_cast<const typename Atom::Operand*>(args.a) + i * (Atom::m * Atom::k),
        static_cast<const typename Atom::Operand*>(args.b) + i * (Atom::k * Atom::n),
        static_cast<const typename Atom::Accumulator*>(args.c) + i * (Atom::m * Atom::n),
        static_cast<typename Atom::Accumulator*>(args.registers) + i * (Atom::lanes * Atom::c_registers));
  }
  return {};
}

/// Compares with tolerance(case, row, col); empty, or where the first difference is. A register that differs in value
/// only by the sign of a zero agrees: the order of additions inside a matrix unit is not specified.
template <class Atom, class Launch, class Expected, class Tolerance>
std::string compare(const std::vector<Product<Atom>>& products, Launch&& launch, Expected expected,
                    Tolerance tolerance) {
  std::vector<typename Atom::Accumulator> actual;
  const std::string error = registers_of<Atom>(products, launch, actual);
  if (!error.empty()) return error;
  std::size_t at = 0;
  for (std::size_t p = 0; p < products.size(); ++p) {
    for (int lane = 0; lane < Atom::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i, ++at) {
        const Coord c = Atom::c_coord(lane, i);
        const double wanted = expected(p, at, c.row, c.col);
        if (!(std::fabs(static_cast<double>(actual[at]) - wanted) <= tolerance(p, c.row, c.col))) {
          std::ostringstream text;
          text.precision(17);
          text << Atom::name << ", product " << p << ": lane " << lane << " register " << i << " (row " << c.row
               << ", column " << c.col << ") holds " << actual[at] << ", expected " << wanted;
          return text.str();
        }
      }
    }
  }
  return {};
}

/// A = v e_i e_k^T, B = w e_k e_j^T for all i, j, k: exactly one accumulator changes, and which one names the element
/// that each operand register holds. The values tell every (i, k) and every j apart, so that no two mistakes can hide
/// each other; all are whole numbers up to 256, exact in every operand type.
template <class Atom>
std::vector<Product<Atom>> one_hot_products() {
  static_assert(Atom::m * Atom::k <= 256, "values of A must stay exact in bfloat16");
  std::vector<Product<Atom>> products;
  for (int i = 0; i < Atom::m; ++i) {
    for (int k = 0; k < Atom::k; ++k) {
      for (int j = 0; j < Atom::n; ++j) {
        products.emplace_back();
        products.back().a[i * Atom::k + k] = typename Atom::Operand(static_cast<float>(1 + i * Atom::k + k));
        products.back().b[k * Atom::n + j] = typename Atom::Operand(static_cast<float>(1 + j));
      }
    }
  }
  return products;
}

/// Empty if the unit behind `launch` is the atom, otherwise the first contradiction.
template <class Atom, class Launch>
std::string check_conformance(Launch&& launch) {
  const auto exact = [](std::size_t, int, int) { return 0.0; };
  const auto with_emulated = [&](const std::vector<Product<Atom>>& products) {
    std::vector<typename Atom::Accumulator> registers;
    registers_of<Atom>(products, host_conformance<Emulated<Atom>>, registers);
    return compare<Atom>(
        products, launch, [&](std::size_t, std::size_t at, int, int) { return static_cast<double>(registers[at]); },
        exact);
  };
  std::string fault = with_emulated(one_hot_products<Atom>());
  if (!fault.empty()) return "one-hot: " + fault;

  std::mt19937 engine(20240607);
  std::vector<Product<Atom>> products(64);
  std::uniform_int_distribution<int> integer(-8, 8);
  for (auto& p : products) p.fill([&] { return integer(engine); });
  fault = with_emulated(products);
  if (!fault.empty()) return "integers: " + fault;

  // Away from subnormals of binary16, which gfx90a flushes.
  std::uniform_real_distribution<double> real(0.25, 2.0);
  std::vector<std::vector<double>> result(products.size()), magnitude(products.size());
  for (std::size_t p = 0; p < products.size(); ++p) {
    products[p].fill([&] { return (engine() & 1u ? 1 : -1) * real(engine); });
    dense(products[p], result[p], magnitude[p]);
  }
  // Matrix units may truncate where a host rounds: 2 u a term of the sum, relative to the sum of magnitudes.
  const double u = std::numeric_limits<typename Atom::Accumulator>::epsilon() / 2;
  fault = compare<Atom>(
      products, launch, [&](std::size_t p, std::size_t, int row, int col) { return result[p][row * Atom::n + col]; },
      [&](std::size_t p, int row, int col) { return 2 * (Atom::k + 1) * u * magnitude[p][row * Atom::n + col]; });
  return fault.empty() ? fault : "reals: " + fault;
}

}  // namespace Testing
}  // namespace Tessera

#endif
