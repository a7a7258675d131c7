// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_EXPONENTIAL_HPP
#define TESSERA_CORE_EXPONENTIAL_HPP

#include <cstdint>
#include <cstring>
#include <limits>

#include "Tessera_Compat.hpp"

/// \file
/// e^x for the numbers of a row: arithmetic without branches or calls, so that compilers make vectors of loops over it.

namespace Tessera {
namespace Impl {

/// x - n ln 2 is summed as a polynomial of Taylor's, 2^n is put into the exponent. `shift` is 1.5 times the weight of
/// the last bit of a number: added and taken off again it rounds to whole numbers, and leaves n in the low bits.
template <class T>
struct ExponentialFacts;
template <>
struct ExponentialFacts<float> {
  using Bits = std::uint32_t;
  static constexpr float shift = 12582912.0f, log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f,
                         least = -87.33654f, most = 88.37626f, infinity = std::numeric_limits<float>::infinity();
  static constexpr int mantissa = 23, bias = 127, degree = 7;
};
template <>
struct ExponentialFacts<double> {
  using Bits = std::uint64_t;
  static constexpr double shift = 6755399441055744.0, log2_e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-1,
                          ln2_low = 1.90821492927058770002e-10, least = -708.39641853226408, most = 709.43613930310414,
                          infinity = std::numeric_limits<double>::infinity();
  static constexpr int mantissa = 52, bias = 1023, degree = 13;
};

/// e^x within 2 units in the last place; 0 where that is below the least normal number, infinite from half the largest
/// power of 2 on (2^127.5 of float: softmax has x <= 0), NaN of NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T exponential(const T x) {
  using F = ExponentialFacts<T>;
  // Not from n!, since constant arrays have no address on devices.
  constexpr T inverse[14] = {T(1),
                             T(1),
                             T(0.5),
                             T(1.0 / 6),
                             T(1.0 / 24),
                             T(1.0 / 120),
                             T(1.0 / 720),
                             T(1.0 / 5040),
                             T(1.0 / 40320),
                             T(1.0 / 362880),
                             T(1.0 / 3628800),
                             T(1.0 / 39916800),
                             T(1.0 / 479001600),
                             T(1.0 / 6227020800)};
  const T shifted = x * T(F::log2_e) + T(F::shift);
  const T n = shifted - T(F::shift);
  const T rest = (x - n * T(F::ln2_high)) - n * T(F::ln2_low);
  T sum = inverse[F::degree];
  for (int k = F::degree - 1; k >= 0; --k) sum = sum * rest + inverse[k];
  typename F::Bits bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + F::bias) << F::mantissa;
  T power;
  memcpy(&power, &bits, sizeof(power));
  const T value = sum * power;
  return x < T(F::least) ? T(0) : x > T(F::most) ? T(F::infinity) : value;
}

}  // namespace Impl
}  // namespace Tessera

#endif
