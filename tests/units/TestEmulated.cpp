// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The emulated matrix instruction of every atom against a dense product.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backends/units/Tessera_SplitUnit.hpp"
#include "units/AtomFixture.hpp"
#include "units/CuttingUnit.hpp"

namespace Tessera {
namespace Testing {
namespace {

/// Runs the instruction on registers that are filled and read through the coordinate maps.
template <class Atom, class Unit = Emulated<Atom>>
std::vector<typename Atom::Accumulator> emulate(const Product<Atom>& p) {
  const HostWave<Atom::lanes> wave;
  typename HostWave<Atom::lanes>::template Varying<AFragment<Atom>> a;
  typename HostWave<Atom::lanes>::template Varying<BFragment<Atom>> b;
  typename HostWave<Atom::lanes>::template Varying<CFragment<Atom>> c;
  for (int lane = 0; lane < Atom::lanes; ++lane) {
    for (int i = 0; i < Atom::a_registers; ++i) {
      const Coord at = Atom::a_coord(lane, i);
      a(lane).r[i] = p.a[at.row * Atom::k + at.col];
    }
    for (int i = 0; i < Atom::b_registers; ++i) {
      const Coord at = Atom::b_coord(lane, i);
      b(lane).r[i] = p.b[at.row * Atom::n + at.col];
    }
    for (int i = 0; i < Atom::c_registers; ++i) {
      const Coord at = Atom::c_coord(lane, i);
      c(lane).r[i] = p.c[at.row * Atom::n + at.col];
    }
  }
  Unit::mma(wave, c, a, b);
  std::vector<typename Atom::Accumulator> result(p.c.size());
  for (int lane = 0; lane < Atom::lanes; ++lane) {
    for (int i = 0; i < Atom::c_registers; ++i) {
      const Coord at = Atom::c_coord(lane, i);
      result[at.row * Atom::n + at.col] = c(lane).r[i];
    }
  }
  return result;
}

template <class Atom>
class EmulatedAtom : public testing::Test {};
TYPED_TEST_SUITE(EmulatedAtom, AllAtoms, AtomName);

TYPED_TEST(EmulatedAtom, IntegersAreExact) {
  using Atom = TypeParam;
  std::mt19937 engine(1);
  std::uniform_int_distribution<int> integer(-100, 100);
  std::vector<double> wanted, magnitude;
  for (int trial = 0; trial < 20; ++trial) {
    Product<Atom> p;
    p.fill([&] { return integer(engine); });
    dense(p, wanted, magnitude);
    const auto actual = emulate(p);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(static_cast<double>(actual[i]), wanted[i]) << "element " << i;
    }
  }
}

TYPED_TEST(EmulatedAtom, RealsStayWithinTheBoundOfTheAccumulator) {
  using Atom = TypeParam;
  std::mt19937 engine(2);
  std::uniform_real_distribution<double> real(-1, 1);
  const double u = std::numeric_limits<typename Atom::Accumulator>::epsilon() / 2;
  std::vector<double> wanted, magnitude;
  bool rounded = false;
  for (int trial = 0; trial < 20; ++trial) {
    Product<Atom> p;
    p.fill([&] { return real(engine); });
    dense(p, wanted, magnitude);
    const auto actual = emulate(p);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double error = std::fabs(static_cast<double>(actual[i]) - wanted[i]);
      // k rounded products and k rounded sums.
      ASSERT_LE(error, (2 * Atom::k + 1) * u * magnitude[i]) << "element " << i;
      rounded = rounded || error > 0;
    }
  }
  EXPECT_TRUE(rounded) << "sums in a wider type than the instruction's would hide errors";
}

TYPED_TEST(EmulatedAtom, OneHotOperandsHitOneElement) {
  using Atom = TypeParam;
  for (int i = 0; i < Atom::m; ++i) {
    for (int k = 0; k < Atom::k; ++k) {
      for (int j = 0; j < Atom::n; ++j) {
        Product<Atom> p;
        p.a[i * Atom::k + k] = typename Atom::Operand(3.0f);
        p.b[k * Atom::n + j] = typename Atom::Operand(5.0f);
        const auto actual = emulate(p);
        for (int e = 0; e < Atom::m * Atom::n; ++e) ASSERT_EQ(actual[e], e == i * Atom::n + j ? 15 : 0);
      }
    }
  }
}

/// Sixteen-bit operands enter as they are: every finite value times one, subnormals included.
template <class Atom>
void expect_exact_operands() {
  for (unsigned first = 0; first < 65536; first += Atom::m * Atom::k) {
    Product<Atom> p;
    for (int i = 0; i < Atom::m * Atom::k; ++i) {
      const auto bits = static_cast<std::uint16_t>(first + static_cast<unsigned>(i));
      std::memcpy(&p.a[i], &bits, sizeof(bits));
      if (!std::isfinite(static_cast<float>(p.a[i]))) p.a[i] = typename Atom::Operand(0.0f);
    }
    for (int column = 0; column < Atom::k; ++column) {  // picks out a column of A
      Product<Atom> q = p;
      q.b[column * Atom::n + column % Atom::n] = typename Atom::Operand(1.0f);
      const auto actual = emulate(q);
      for (int row = 0; row < Atom::m; ++row) {
        ASSERT_EQ(actual[row * Atom::n + column % Atom::n], static_cast<float>(p.a[row * Atom::k + column]));
      }
    }
  }
}
TEST(EmulatedOperands, HalvesAreExact) {
  expect_exact_operands<Sm80_M16N8K8_F32_F16>();
  expect_exact_operands<Gfx90a_M16N16K16_F32_F16>();
}
TEST(EmulatedOperands, BfloatsAreExact) {
  expect_exact_operands<Sm80_M16N8K16_F32_BF16>();
  expect_exact_operands<Gfx90a_M16N16K16_F32_BF16>();
}

/// One product of two floats, the others zero.
template <class Atom>
float single_product(float left, float right) {
  Product<Atom> p;
  p.a[0] = left;
  p.b[0] = right;
  return emulate(p)[0];
}

template <class Atom>
void expect_tf32_operands() {
  const float ulp = 1.0f / 1024;  // of the 10-bit mantissa at 1
  // Below, at and above the middle of 1 and 1 + ulp; the middle goes away from zero.
  EXPECT_EQ(single_product<Atom>(1 + ulp * 0.49f, 1), 1);
  EXPECT_EQ(single_product<Atom>(1 + ulp * 0.5f, 1), 1 + ulp);
  EXPECT_EQ(single_product<Atom>(1 + ulp * 0.51f, 1), 1 + ulp);
  EXPECT_EQ(single_product<Atom>(-1 - ulp * 0.5f, 1), -1 - ulp);
  EXPECT_EQ(single_product<Atom>(1, 1 + ulp * 1.5f), 1 + 2 * ulp);
  EXPECT_EQ(single_product<Atom>(1 + ulp * 2.5f, 1), 1 + 3 * ulp);
  // Both factors rounded, the product in binary32: (1 + ulp)^2 = 1 + 2 ulp + ulp^2 fits.
  EXPECT_EQ(single_product<Atom>(1 + ulp * 0.5f, 1 + ulp * 0.5f), (1 + ulp) * (1 + ulp));
  // Only operands are rounded, not what is in the accumulator.
  Product<Atom> p;
  p.c[0] = 1 + ulp / 8;
  EXPECT_EQ(emulate(p)[0], 1 + ulp / 8);
}
TEST(EmulatedOperands, Tf32AtomsRoundOperandsToTenBits) {
  expect_tf32_operands<Sm80_M16N8K4_F32_TF32>();
  expect_tf32_operands<Sm80_M16N8K8_F32_TF32>();
}
TEST(EmulatedOperands, Tf32CutDropsWhatIsBeyondTenBits) {
  using Atom = Sm80_M16N8K8_F32_TF32Cut;
  const float ulp = 1.0f / 1024;
  EXPECT_EQ(single_product<Atom>(1 + ulp * 0.99f, 1), 1);
  EXPECT_EQ(single_product<Atom>(1, -1 - ulp * 1.99f), -1 - ulp);
}

using Split = Sm80_M16N8K8_F32_3xTF32;
std::vector<float> split_product(const Product<Split>& p) { return emulate<Split, UnitOf<Emulated, Split>::type>(p); }

/// A number of which two parts of TF32 leave out most: 12 bits that are left of it are nearly all set, the last one
/// among them, at the smallest magnitude.
template <class Engine>
float of_worst_parts(Engine& engine, bool signs, int exponents) {
  const int least = static_cast<int>(engine() % 8), exponent = static_cast<int>(engine() % 1000) % exponents;
  const float magnitude = std::ldexp(1 + static_cast<float>(4095 - 2 * least) * 0x1p-23f, exponent);
  return signs && engine() % 2 != 0 ? -magnitude : magnitude;
}
/// Largest error of sums of `count` products by this unit, in u of their magnitudes.
template <class Unit>
double worst_of_parts(int count, bool signs, int exponents) {
  std::mt19937 engine(7);
  double worst = 0;
  for (int n = 0; n < 20; ++n) {
    Product<Split> p;
    for (int k = 0; k < count; ++k) {
      for (int row = 0; row < Split::m; ++row) p.a[row * Split::k + k] = of_worst_parts(engine, signs, exponents);
      for (int col = 0; col < Split::n; ++col) p.b[k * Split::n + col] = of_worst_parts(engine, signs, exponents);
    }
    std::vector<double> result, magnitude;
    dense(p, result, magnitude);
    const std::vector<float> got = emulate<Split, Unit>(p);
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - result[i]) / magnitude[i] * 0x1p24);
    }
  }
  return worst;
}
// What is left out is 8 u of a product, nearly reached. Sums: a rounding per term, or what CuttingUnit cuts, twice in
// an instruction and 2 u for each product (perf_test/notes/precision.md).
TEST(EmulatedOperands, SplitUnitLeavesOutEightRoundings) {
  using Rounding = UnitOf<Emulated, Split>::type;
  using Cutting = UnitOf<CuttingUnit, Split>::type;
  EXPECT_GT(worst_of_parts<Rounding>(1, false, 1), 7.9);
  for (const bool signs : {false, true}) {
    for (const int exponents : {1, 12, 24}) {
      for (int count = 1; count <= Split::k; ++count) {
        EXPECT_LE(worst_of_parts<Rounding>(count, signs, exponents), 8.1 + count + 1) << count << ' ' << exponents;
        EXPECT_LE(worst_of_parts<Cutting>(count, signs, exponents), 8.1 + 2 * (count + 2)) << count << ' ' << exponents;
      }
    }
  }
}

TEST(EmulatedOperands, SplitUnitMultipliesFloats) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> real(-2, 2);
  const double u = std::ldexp(1.0, -24);
  for (int n = 0; n < 200; ++n) {
    Product<Split> p;
    p.fill([&] { return real(engine); });
    std::vector<double> result, magnitude;
    dense(p, result, magnitude);
    const std::vector<float> got = split_product(p);
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Products 8 u, and a rounding of each sum.
      EXPECT_LE(std::fabs(static_cast<double>(got[i]) - result[i]), (8.1 + Split::k + 2) * u * magnitude[i]);
    }
  }
}
// TF32 itself errs by 2^-12 here: one product, exact where one factor has 11 significant bits and the other 22.
TEST(EmulatedOperands, SplitUnitIsExactForShortNumbers) {
  std::mt19937 engine(8);
  std::uniform_int_distribution<int> eleven(-2047, 2047), twenty_two(-(1 << 22) + 1, (1 << 22) - 1);
  for (int n = 0; n < 1000; ++n) {
    Product<Split> p;
    const int x = eleven(engine) % 4, y = twenty_two(engine);  // products of at most 24 bits
    p.a[0] = static_cast<float>(x);
    p.b[0] = static_cast<float>(y);
    EXPECT_EQ(split_product(p)[0], static_cast<float>(x * y)) << x << ' ' << y;
    p.a[0] = static_cast<float>(eleven(engine));
    p.b[0] = static_cast<float>(eleven(engine));
    EXPECT_EQ(split_product(p)[0], p.a[0] * p.b[0]);
  }
}
// Added one by one to 2^24, ones would all be lost.
TEST(EmulatedOperands, SplitUnitAddsSumsToC) {
  Product<Split> p;
  p.fill([] { return 1; });
  for (float& c : p.c) c = 0x1p24f;
  for (const float c : split_product(p)) EXPECT_EQ(c, 0x1p24f + Split::k);
}
TEST(EmulatedOperands, SplitUnitOfWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Product<Split> p;
    p.a[0] = bad;
    p.b[0] = 1;
    const std::vector<float> got = split_product(p);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[8], 0);  // the next row
  }
}
TEST(EmulatedOperands, Fp32AtomKeepsEveryBit) {
  const float value = 1 + std::numeric_limits<float>::epsilon();
  EXPECT_EQ(single_product<Gfx90a_M16N16K4_F32>(value, 1), value);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
