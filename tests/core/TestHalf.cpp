// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The 16-bit types and the rounding of TF32 against arithmetic that shares nothing with them: a value is scaled to
// whole units in the last place, rounded by nearbyint and scaled back, exactly. Where the compiler has _Float16,
// against that too.

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "backends/interface/Tessera_Half.hpp"

namespace Tessera {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Binary16 {
  using Type = half_t;
  static constexpr int mantissa = 10, least_exponent = -14;
  static constexpr double largest = 65504;
  static constexpr std::uint16_t infinite = 0x7c00, quiet = 0x0200;
};
struct Bfloat16 {
  using Type = bhalf_t;
  static constexpr int mantissa = 7, least_exponent = -126;
  static constexpr double largest = 0x1.fep127;
  static constexpr std::uint16_t infinite = 0x7f80, quiet = 0x0040;
};

/// The nearest number of the format, ties to even.
template <class Format>
double nearest(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), Format::least_exponent) - Format::mantissa;
  // Far below the smallest number the scaled value itself is not exact, but then it is far below one half, too.
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  return std::fabs(rounded) > Format::largest ? std::copysign(infinity, value) : std::copysign(rounded, value);
}

/// What a bit pattern means, from the definition of the format.
template <class Format>
double meaning(std::uint16_t bits) {
  const double sign = bits & 0x8000u ? -1 : 1;
  const int fraction = bits & ((1 << Format::mantissa) - 1), exponent = (bits & 0x7fff) >> Format::mantissa;
  if ((bits & 0x7fff) > Format::infinite) return std::numeric_limits<double>::quiet_NaN();
  if ((bits & 0x7fff) == Format::infinite) return sign * infinity;
  if (exponent == 0) return sign * std::ldexp(fraction, Format::least_exponent - Format::mantissa);
  return sign *
         std::ldexp(fraction + (1 << Format::mantissa), exponent - 1 + Format::least_exponent - Format::mantissa);
}

template <class Format>
typename Format::Type from_pattern(unsigned pattern) {
  typename Format::Type value;
  value.bits = static_cast<std::uint16_t>(pattern);
  return value;
}

/// Value and sign, also of zeros.
template <class Real>
bool identical(Real a, Real b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

template <class Format>
class HalfTest : public testing::Test {};
using Formats = testing::Types<Binary16, Bfloat16>;
TYPED_TEST_SUITE(HalfTest, Formats);

TYPED_TEST(HalfTest, EveryPatternMeansWhatTheFormatSays) {
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    const double wanted = meaning<TypeParam>(static_cast<std::uint16_t>(pattern));
    const float actual = static_cast<float>(from_pattern<TypeParam>(pattern));
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(actual)) << std::hex << pattern;
    } else {
      ASSERT_TRUE(identical(static_cast<double>(actual), wanted)) << std::hex << pattern;
    }
  }
}

TYPED_TEST(HalfTest, EveryPatternSurvivesTheWayThroughFloatAndDouble) {
  using Type = typename TypeParam::Type;
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    const float value = static_cast<float>(from_pattern<TypeParam>(pattern));
    // A signalling NaN comes back quiet, everything else as it was, signs and payloads included.
    const unsigned wanted = pattern | ((pattern & 0x7fff) > TypeParam::infinite ? TypeParam::quiet : 0u);
    ASSERT_EQ(Type(value).bits, wanted);
    if (!std::isnan(value)) {
      ASSERT_EQ(Type(static_cast<double>(value)).bits, wanted);
    }
  }
}

template <class Format, class Real>
void expect_rounded(Real value) {
  const double actual = static_cast<double>(static_cast<float>(typename Format::Type(value)));
  const double wanted = nearest<Format>(static_cast<double>(value));
  ASSERT_TRUE(identical(actual, wanted)) << std::hexfloat << value << " became " << actual << " instead of " << wanted;
}

/// Every boundary between two neighbours, the step to infinity included: the middle, its neighbours in Real, and a few
/// points further away; with both signs.
template <class Format, class Real>
void expect_rounded_at_boundaries() {
  const Real infinite = std::numeric_limits<Real>::infinity();
  for (unsigned pattern = 0; pattern < Format::infinite; ++pattern) {
    const double low = meaning<Format>(static_cast<std::uint16_t>(pattern));
    const double high = pattern + 1 == Format::infinite ? std::ldexp(1.0, 1 + std::ilogb(Format::largest))
                                                        : meaning<Format>(static_cast<std::uint16_t>(pattern + 1));
    const double exact_middle = low + (high - low) / 2;
    const Real middle = static_cast<Real>(exact_middle);
    ASSERT_EQ(static_cast<double>(middle), exact_middle);
    const Real points[] = {middle,
                           std::nextafter(middle, infinite),
                           std::nextafter(middle, -infinite),
                           static_cast<Real>(low + (high - low) * 0.25),
                           static_cast<Real>(low + (high - low) * 0.75),
                           static_cast<Real>(exact_middle + (high - low) * 0x1p-12),
                           static_cast<Real>(exact_middle - (high - low) * 0x1p-12)};
    for (const Real point : points) {
      expect_rounded<Format>(point);
      expect_rounded<Format>(-point);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}
TYPED_TEST(HalfTest, FloatsRoundCorrectlyAtEveryBoundary) { expect_rounded_at_boundaries<TypeParam, float>(); }
TYPED_TEST(HalfTest, DoublesRoundOnceAtEveryBoundary) { expect_rounded_at_boundaries<TypeParam, double>(); }

TYPED_TEST(HalfTest, TiesGoToEvenOnBothSides) {
  // The middle above an even pattern goes down, above an odd pattern up.
  for (unsigned pattern = 0; pattern + 1 < TypeParam::infinite; ++pattern) {
    const float low = static_cast<float>(from_pattern<TypeParam>(pattern));
    const double high = meaning<TypeParam>(static_cast<std::uint16_t>(pattern + 1));
    const double middle = low + (high - low) / 2;
    ASSERT_EQ((typename TypeParam::Type(middle).bits), pattern + (pattern & 1u));
    ASSERT_EQ((typename TypeParam::Type(static_cast<float>(middle)).bits), pattern + (pattern & 1u));
  }
}

TYPED_TEST(HalfTest, RandomBitPatternsOfFloatAndDouble) {
  std::mt19937_64 engine(6);
  for (int i = 0; i < 300000; ++i) {
    const std::uint64_t bits = engine();
    const auto low = static_cast<std::uint32_t>(bits);
    float single;
    double twice;
    std::memcpy(&single, &low, sizeof(single));
    std::memcpy(&twice, &bits, sizeof(twice));
    if (!std::isnan(single)) expect_rounded<TypeParam>(single);
    if (!std::isnan(twice)) expect_rounded<TypeParam>(twice);
    // Most doubles are out of the formats' range; these are in it.
    expect_rounded<TypeParam>(
        std::ldexp(1 + std::ldexp(static_cast<double>(bits >> 12), -52), static_cast<int>(bits % 64) - 40));
    ASSERT_FALSE(this->HasFatalFailure());
  }
}

TYPED_TEST(HalfTest, SpecialValues) {
  using Type = typename TypeParam::Type;
  EXPECT_EQ(Type(0.0f).bits, 0u);
  EXPECT_EQ(Type(-0.0f).bits, 0x8000u);
  EXPECT_EQ(Type(0.0).bits, 0u);
  EXPECT_EQ(Type(-0.0).bits, 0x8000u);
  for (const double v : {infinity, 1e300, DBL_MAX}) {
    EXPECT_EQ(Type(v).bits, TypeParam::infinite);
    EXPECT_EQ(Type(-v).bits, TypeParam::infinite | 0x8000u);
  }
  EXPECT_EQ(Type(std::numeric_limits<float>::infinity()).bits, TypeParam::infinite);
  // Too small for every format, with their signs.
  for (const double v : {1e-320, 1e-300, 0x1p-140}) {
    EXPECT_EQ(Type(v).bits, 0u);
    EXPECT_EQ(Type(-v).bits, 0x8000u);
  }
  EXPECT_EQ(Type(FLT_TRUE_MIN).bits, 0u);
  EXPECT_EQ(sizeof(Type), 2u);
}

TYPED_TEST(HalfTest, NotANumberStaysOne) {
  using Type = typename TypeParam::Type;
  std::mt19937 engine(7);
  for (int i = 0; i < 10000; ++i) {
    // Any payload, also those whose upper bits are all zero and those that signal.
    const std::uint32_t bits = 0x7f800000u | (engine() & 0x807fffffu) | (1u << (engine() % 23));
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    const unsigned result = Type(value).bits;
    ASSERT_GT(result & 0x7fffu, TypeParam::infinite) << std::hex << bits;
    ASSERT_EQ(result >> 15, bits >> 31);
    ASSERT_TRUE(std::isnan(static_cast<float>(Type(value))));
    ASSERT_TRUE(std::isnan(static_cast<float>(Type(static_cast<double>(value)))));
  }
}

TEST(Half, ThresholdOfOverflow) {
  EXPECT_EQ(half_t(65504.0f).bits, 0x7bffu);
  EXPECT_EQ(half_t(65519.996f).bits, 0x7bffu);
  EXPECT_EQ(half_t(65520.0f).bits, 0x7c00u);
  EXPECT_EQ(half_t(-65520.0f).bits, 0xfc00u);
  EXPECT_EQ(half_t(std::nextafter(65520.0, 0.0)).bits, 0x7bffu);
  EXPECT_EQ(half_t(65520.0).bits, 0x7c00u);
}

#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__)
std::uint16_t float16_bits(float value) {
  const auto converted = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &converted, sizeof(bits));
  return bits;
}
TEST(Half, AgreesWithTheCompilersFloat16) {
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    _Float16 value;
    std::memcpy(&value, &bits, sizeof(value));
    if (value != value) continue;
    ASSERT_TRUE(identical(static_cast<float>(value), static_cast<float>(from_pattern<Binary16>(pattern))));
  }
  // Every upper half of a float with the lower halves around a tie.
  for (unsigned upper = 0; upper < 65536; ++upper) {
    for (const unsigned lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x8000u, 0xf000u, 0xffffu}) {
      const std::uint32_t bits = upper << 16 | lower;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      if (std::isnan(value)) continue;
      ASSERT_EQ(half_t(value).bits, float16_bits(value)) << std::hexfloat << value;
    }
  }
}
TEST(Half, DoublesAgreeWithTheCompilersFloat16) {
  std::mt19937_64 engine(8);
  for (int i = 0; i < 200000; ++i) {
    // Mostly a tie of binary16 and a last bit that binary32 cannot hold: rounding twice would go wrong.
    const unsigned pattern = static_cast<unsigned>(engine() % 0x7c00);
    const double low = meaning<Binary16>(static_cast<std::uint16_t>(pattern));
    const double value = low + std::ldexp(1.0, std::max(std::ilogb(low == 0 ? 1e-9 : low), -14) - 11) +
                         std::ldexp(static_cast<double>(static_cast<int>(engine() % 3) - 1), -60);
    const auto converted = static_cast<_Float16>(value);
    std::uint16_t wanted;
    std::memcpy(&wanted, &converted, sizeof(wanted));
    ASSERT_EQ(half_t(value).bits, wanted) << std::hexfloat << value;
  }
}
#endif

TEST(FloatToOdd, ExactValuesStayAndOthersBecomeOddNeighbours) {
  std::mt19937_64 engine(9);
  for (int i = 0; i < 200000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(engine())), static_cast<int>(engine() % 300) - 210);
    const float odd = Impl::float_to_odd(value);
    if (static_cast<double>(odd) == value) continue;
    ASSERT_EQ(Impl::float_bits(odd) & 1u, 1u) << std::hexfloat << value;
    // A neighbour: no float lies between the two.
    const float beyond =
        std::nextafter(odd, value > static_cast<double>(odd) ? std::numeric_limits<float>::infinity()
                                                             : -std::numeric_limits<float>::infinity());
    ASSERT_TRUE(value > static_cast<double>(odd) ? value < static_cast<double>(beyond)
                                                 : value > static_cast<double>(beyond));
  }
  EXPECT_EQ(Impl::float_to_odd(0.1f), 0.1f);
  EXPECT_EQ(Impl::float_to_odd(1e300), FLT_MAX);
  EXPECT_EQ(Impl::float_to_odd(-1e300), -FLT_MAX);
  EXPECT_EQ(Impl::float_to_odd(infinity), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Impl::float_to_odd(1e-300), FLT_TRUE_MIN);
  EXPECT_EQ(Impl::float_to_odd(-1e-300), -FLT_TRUE_MIN);
}

/// To 10 bits behind the leading one, ties away from zero.
float tf32(float value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), -126) - 10;
  return static_cast<float>(std::ldexp(std::round(std::ldexp(static_cast<double>(value), -exponent)), exponent));
}
TEST(RoundToTf32, EveryUpperPartWithEveryKindOfRest) {
  for (unsigned upper = 0; upper < (1u << 19); ++upper) {
    for (const unsigned rest : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu}) {
      const std::uint32_t bits = upper << 13 | rest;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(round_to_tf32(value)));
      } else {
        ASSERT_TRUE(identical(round_to_tf32(value), tf32(value))) << std::hexfloat << value;
      }
    }
  }
}
TEST(RoundToTf32, LiteralValues) {
  EXPECT_EQ(round_to_tf32(1.0f), 1.0f);
  EXPECT_EQ(round_to_tf32(0x1.002p0f), 0x1.004p0f);  // a tie goes away from zero
  EXPECT_EQ(round_to_tf32(-0x1.002p0f), -0x1.004p0f);
  EXPECT_EQ(round_to_tf32(0x1.001ffep0f), 1.0f);
  EXPECT_EQ(round_to_tf32(FLT_MAX), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(round_to_tf32(-0.0f)));
}

}  // namespace
}  // namespace Tessera
