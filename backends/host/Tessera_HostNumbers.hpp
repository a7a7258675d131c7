// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HOST_HOST_NUMBERS_HPP
#define TESSERA_HOST_HOST_NUMBERS_HPP

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/interface/Tessera_HostHalf.hpp"

/// \file
/// Vectors of 16 bytes, and numbers of every type as the kernels of hosts add them.

#if !defined(__CUDACC__) && !defined(__HIPCC__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12))
#define TESSERA_HOST_VECTORS 1
#else
#define TESSERA_HOST_VECTORS 0
#endif
#if TESSERA_HOST_VECTORS && defined(__x86_64__)
#include <emmintrin.h>
#endif
// With sanitizers, or not optimised, calls stay calls: inlined, they take a minute to compile.
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define TESSERA_HOST_INLINE inline __attribute__((always_inline))
#define TESSERA_HOST_LAMBDA __attribute__((always_inline))
#else
#define TESSERA_HOST_INLINE inline
#define TESSERA_HOST_LAMBDA
#endif

namespace Tessera {
namespace Impl {

template <class Narrow>
struct HostNumbers;

/// 16 bytes of float or double.
template <class T>
struct HostVector {
  static constexpr int width = 16 / static_cast<int>(sizeof(T));
#if TESSERA_HOST_VECTORS
  typedef T Native __attribute__((vector_size(16)));
  Native v;

  TESSERA_HOST_INLINE static HostVector load(const T* p) {
    HostVector r;
    std::memcpy(&r.v, p, 16);
    return r;
  }
  template <class F>
  TESSERA_HOST_INLINE static HostVector make(F&& f) {
    if constexpr (width == 2) {
      return {Native{f(0), f(1)}};
    } else {
      return {Native{f(0), f(1), f(2), f(3)}};
    }
  }
  TESSERA_HOST_INLINE HostVector times(T factor) const { return {v * factor}; }
  TESSERA_HOST_INLINE void add_product(HostVector a, HostVector b) { v += a.v * b.v; }
  TESSERA_HOST_INLINE void add(HostVector a) { v += a.v; }
  /// Sums of neighbours: those of a, then those of b.
  TESSERA_HOST_INLINE static HostVector pairs(HostVector a, HostVector b) {
    if constexpr (width == 2) {
      return {__builtin_shufflevector(a.v, b.v, 0, 2) + __builtin_shufflevector(a.v, b.v, 1, 3)};
    } else {
      return {__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6) + __builtin_shufflevector(a.v, b.v, 1, 3, 5, 7)};
    }
  }
#else
  T v[width];

  TESSERA_HOST_INLINE static HostVector load(const T* p) {
    HostVector r;
    for (int i = 0; i < width; ++i) r.v[i] = p[i];
    return r;
  }
  template <class F>
  TESSERA_HOST_INLINE static HostVector make(F&& f) {
    HostVector r;
    for (int i = 0; i < width; ++i) r.v[i] = f(i);
    return r;
  }
  TESSERA_HOST_INLINE HostVector times(T factor) const {
    return make([&](int i) TESSERA_HOST_LAMBDA { return v[i] * factor; });
  }
  TESSERA_HOST_INLINE void add_product(HostVector a, HostVector b) {
    for (int i = 0; i < width; ++i) v[i] += a.v[i] * b.v[i];
  }
  TESSERA_HOST_INLINE void add(HostVector a) {
    for (int i = 0; i < width; ++i) v[i] += a.v[i];
  }
  TESSERA_HOST_INLINE static HostVector pairs(HostVector a, HostVector b) {
    HostVector r;
    for (int i = 0; i < width / 2; ++i) {
      r.v[i] = a.v[2 * i] + a.v[2 * i + 1];
      r.v[width / 2 + i] = b.v[2 * i] + b.v[2 * i + 1];
    }
    return r;
  }
#endif
  TESSERA_HOST_INLINE static HostVector zero() {
    return make([](int) TESSERA_HOST_LAMBDA { return T(0); });
  }
  template <class Narrow>
  TESSERA_HOST_INLINE static HostVector load(const Narrow* p) {
    return HostNumbers<Narrow>::load(p);
  }
  /// The numbers f(0), f(1), ... of this type or of 16 bits.
  template <class F>
  TESSERA_HOST_INLINE static HostVector gather(F&& f) {
    using Number = std::decay_t<decltype(f(0))>;
    if constexpr (std::is_same_v<Number, T>) {
      return make(std::forward<F>(f));
    } else {
      return HostNumbers<Number>::gather(std::forward<F>(f));
    }
  }
  template <class Narrow>
  TESSERA_HOST_INLINE void store(Narrow* p) const {
    HostNumbers<Narrow>::store(p, *this);
  }
};

/// Numbers as a kernel adds them. Half without branches: those would be mispredicted, and vectorised by nobody.
template <class Sum, class T>
TESSERA_HOST_INLINE Sum host_number(const T& value) {
  if constexpr (std::is_same_v<T, half_t>) {
    const std::uint32_t magnitude = (value.bits & 0x7fffu) << 13u;
    const float small = float_from_bits(magnitude + 0x38800000u) - float_from_bits(0x38800000u);
    const std::uint32_t top = magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u;
    const std::uint32_t bits = magnitude < 0x00800000u ? float_bits(small) : magnitude + top;
    return static_cast<Sum>(float_from_bits(bits | static_cast<std::uint32_t>(value.bits & 0x8000u) << 16u));
  } else if constexpr (std::is_same_v<T, bhalf_t>) {
    return static_cast<Sum>(float_from_bhalf_bits(value.bits));
  } else {
    return static_cast<Sum>(value);
  }
}

/// Four numbers of 16 bits as floats. half_t: by F16C's instructions, where host_has_fast_half().
template <class Narrow>
struct HostNumbers {
  using Vector = HostVector<float>;
  static constexpr bool is_half = std::is_same_v<Narrow, half_t>;

#if TESSERA_HOST_VECTORS && defined(__x86_64__)
  template <int Lanes>
  static constexpr bool transposes = sizeof(Narrow) == 2 && Lanes == 8;
  /// to[4 l + s]: number l of row s.
  TESSERA_HOST_INLINE static void transpose(Narrow* to, const Narrow* a, const Narrow* b, const Narrow* c,
                                            const Narrow* d) {
    const auto row = [](const Narrow* p)
                         TESSERA_HOST_LAMBDA { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
    const __m128i ra = row(a), rb = row(b), rc = row(c), rd = row(d);
    const __m128i ab = _mm_unpacklo_epi16(ra, rb), cd = _mm_unpacklo_epi16(rc, rd);
    const __m128i high_ab = _mm_unpackhi_epi16(ra, rb), high_cd = _mm_unpackhi_epi16(rc, rd);
    __m128i* const out = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(out, _mm_unpacklo_epi32(ab, cd));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi32(ab, cd));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi32(high_ab, high_cd));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi32(high_ab, high_cd));
  }
  TESSERA_HOST_INLINE static Vector load(const Narrow* p) {
    Vector r;
    if constexpr (is_half) {
      F16c<4>::widen(r.v, p);
    } else {
      r.v = reinterpret_cast<Vector::Native>(
          _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    return r;
  }
  /// One insertion for each number: compilers put them together in integer registers, at three times the cost.
  template <class F>
  TESSERA_HOST_INLINE static Vector gather(F&& f) {
    Vector r;
    if constexpr (is_half) {
      __m128i bits = _mm_cvtsi32_si128(f(0).bits);
      bits = _mm_insert_epi16(bits, f(1).bits, 1);
      bits = _mm_insert_epi16(bits, f(2).bits, 2);
      f16c_widen_low(r.v, reinterpret_cast<F16cWords>(_mm_insert_epi16(bits, f(3).bits, 3)));
    } else {
      __m128i bits = _mm_insert_epi16(_mm_setzero_si128(), f(0).bits, 1);
      bits = _mm_insert_epi16(bits, f(1).bits, 3);
      bits = _mm_insert_epi16(bits, f(2).bits, 5);
      r.v = reinterpret_cast<Vector::Native>(_mm_insert_epi16(bits, f(3).bits, 7));
    }
    return r;
  }
  TESSERA_HOST_INLINE static void store(Narrow* p, const Vector& from) {
    if constexpr (is_half) {
      F16c<4>::narrow(p, from.v);
    } else {
      typedef std::uint32_t Bits __attribute__((vector_size(16)));
      const Bits bits = reinterpret_cast<Bits>(from.v), nan = bits >> 16 | 0x40u;
      const Bits number = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
      const Bits none = reinterpret_cast<Bits>((bits & 0x7fffffffu) > 0x7f800000u);
      const Bits narrow = (nan & none) | (number & ~none);
      for (int i = 0; i < 4; ++i) p[i].bits = static_cast<std::uint16_t>(narrow[i]);
    }
  }
#else
  template <int Lanes>
  static constexpr bool transposes = false;
  TESSERA_HOST_INLINE static Vector load(const Narrow* p) {
    return gather([&](int i) TESSERA_HOST_LAMBDA { return p[i]; });
  }
  template <class F>
  TESSERA_HOST_INLINE static Vector gather(F&& f) {
    return Vector::make([&](int i) TESSERA_HOST_LAMBDA { return host_number<float>(f(i)); });
  }
  TESSERA_HOST_INLINE static void store(Narrow* p, const Vector& from) {
    for (int i = 0; i < 4; ++i) p[i] = Narrow(from.v[i]);
  }
#endif
};

/// Whether vectors of half_t are compiled in, and whether this CPU has them. Elsewhere numbers are widened one by one,
/// which no unrolling hides.
constexpr bool host_vectors_of_half = TESSERA_HOST_VECTORS != 0 && TESSERA_HOST_F16C != 0;
inline bool host_has_fast_half() { return host_vectors_of_half && host_has_f16c(); }

/// x[i], or a zero for !on. No branch, as that would be mispredicted, and no use of x[i], which may be infinite or lie
/// outside x.
template <class Value>
TESSERA_HOST_INLINE Value host_select(const Value* x, std::ptrdiff_t i, bool on) {
  static constexpr Value zero{};
  const auto mask = std::uintptr_t{0} - static_cast<std::uintptr_t>(on);
  const auto here = reinterpret_cast<std::uintptr_t>(x) + static_cast<std::uintptr_t>(i) * sizeof(Value);
  const auto there = reinterpret_cast<std::uintptr_t>(&zero);
  return *reinterpret_cast<const Value*>((here & mask) | (there & ~mask));
}

}  // namespace Impl
}  // namespace Tessera

#endif
