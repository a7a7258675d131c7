// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The device conformance check (tests/device) on the host: the emulated unit passes, units with one fault do not.

#include "units/ConformanceCheck.hpp"

namespace Tessera {
namespace Testing {
namespace {

/// The atom with one operand's coordinates of two registers or lanes exchanged: what a wrong line of a table looks
/// like.
enum class Fault { LanesOfA, LanesOfB, LanesOfC, LastRegisterOfC, TransposedB };
template <class Atom_, Fault fault>
struct Faulty : Atom_ {
  static constexpr int swapped(int lane) { return lane == 5 ? 6 : lane == 6 ? 5 : lane; }
  static constexpr Coord a_coord(int lane, int i) {
    return Atom_::a_coord(fault == Fault::LanesOfA ? swapped(lane) : lane, i);
  }
  static constexpr Coord b_coord(int lane, int i) {
    const Coord c = Atom_::b_coord(fault == Fault::LanesOfB ? swapped(lane) : lane, i);
    if (fault == Fault::TransposedB && c.row < 4 && c.col < 4) return {c.col, c.row};
    return c;
  }
  static constexpr Coord c_coord(int lane, int i) {
    constexpr int last = Atom_::c_registers - 1;
    const int reg = fault == Fault::LastRegisterOfC && i >= last - 1 ? 2 * last - 1 - i : i;
    return Atom_::c_coord(fault == Fault::LanesOfC ? swapped(lane) : lane, reg);
  }
};

/// A unit whose hardware is `Wrong` while the kernel believes in Atom.
template <class Atom_, class Wrong>
struct FaultyUnit {
  using Atom = Atom_;
  template <class Wave, class C, class A, class B>
  static void mma(const Wave& w, C& c, const A& a, const B& b) {
    typename Wave::template Varying<CFragment<Wrong>> sum;
    typename Wave::template Varying<AFragment<Wrong>> left;
    typename Wave::template Varying<BFragment<Wrong>> right;
    for (int lane = 0; lane < Wave::lanes; ++lane) {
      for (int i = 0; i < Atom::a_registers; ++i) left(lane).r[i] = a(lane).r[i];
      for (int i = 0; i < Atom::b_registers; ++i) right(lane).r[i] = b(lane).r[i];
      for (int i = 0; i < Atom::c_registers; ++i) sum(lane).r[i] = c(lane).r[i];
    }
    Emulated<Wrong>::mma(w, sum, left, right);
    for (int lane = 0; lane < Wave::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i) c(lane).r[i] = sum(lane).r[i];
    }
  }
};

/// Forgets what the accumulator held.
template <class Atom_>
struct OverwritingUnit {
  using Atom = Atom_;
  template <class Wave, class C, class A, class B>
  static void mma(const Wave& w, C& c, const A& a, const B& b) {
    for (int lane = 0; lane < Wave::lanes; ++lane) {
      for (int i = 0; i < Atom::c_registers; ++i) c(lane).r[i] = 0;
    }
    Emulated<Atom>::mma(w, c, a, b);
  }
};

template <class Atom>
class ConformanceCheck : public testing::Test {};
TYPED_TEST_SUITE(ConformanceCheck, AllAtoms, AtomName);

TYPED_TEST(ConformanceCheck, EmulatedUnitPasses) {
  EXPECT_EQ(check_conformance<TypeParam>(host_conformance<Emulated<TypeParam>>), "");
}

template <class Atom, Fault fault>
std::string with_fault() {
  return check_conformance<Atom>(host_conformance<FaultyUnit<Atom, Faulty<Atom, fault>>>);
}

TYPED_TEST(ConformanceCheck, EveryWrongLayoutIsFoundByOneHotOperands) {
  for (const std::string& fault :
       {with_fault<TypeParam, Fault::LanesOfA>(), with_fault<TypeParam, Fault::LanesOfB>(),
        with_fault<TypeParam, Fault::LanesOfC>(), with_fault<TypeParam, Fault::LastRegisterOfC>(),
        with_fault<TypeParam, Fault::TransposedB>()}) {
    EXPECT_EQ(fault.substr(0, 8), "one-hot:") << fault;
  }
}

TYPED_TEST(ConformanceCheck, LostAccumulatorIsFound) {
  EXPECT_EQ(check_conformance<TypeParam>(host_conformance<OverwritingUnit<TypeParam>>).substr(0, 9), "integers:");
}

TYPED_TEST(ConformanceCheck, FailedLaunchIsReported) {
  const auto fails = [](const char*, const ConformanceArgs&) { return Status{"no device"}; };
  EXPECT_NE(check_conformance<TypeParam>(fails).find("no device"), std::string::npos);
}

TYPED_TEST(ConformanceCheck, OneHotProductsTellEveryElementApart) {
  const auto products = one_hot_products<TypeParam>();
  ASSERT_EQ(products.size(), std::size_t{TypeParam::m} * TypeParam::k * TypeParam::n);
  for (const auto& p : products) {
    int left = 0, right = 0;
    for (const auto v : p.a) left += plain(v) != 0;
    for (const auto v : p.b) right += plain(v) != 0;
    EXPECT_TRUE(left == 1 && right == 1);
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
