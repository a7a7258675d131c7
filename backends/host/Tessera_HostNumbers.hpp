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
  /// Number l of each row becomes vector l.
  TESSERA_HOST_INLINE static void transpose(HostVector (&v)[width]) {
    if constexpr (width == 2) {
      const HostVector first = v[0];
      v[0] = {__builtin_shufflevector(first.v, v[1].v, 0, 2)};
      v[1] = {__builtin_shufflevector(first.v, v[1].v, 1, 3)};
    } else {
      const Native ab = __builtin_shufflevector(v[0].v, v[1].v, 0, 4, 1, 5);
      const Native cd = __builtin_shufflevector(v[2].v, v[3].v, 0, 4, 1, 5);
      const Native high_ab = __builtin_shufflevector(v[0].v, v[1].v, 2, 6, 3, 7);
      const Native high_cd = __builtin_shufflevector(v[2].v, v[3].v, 2, 6, 3, 7);
      v[0] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5)};
      v[1] = {__builtin_shufflevector(ab, cd, 2, 3, 6, 7)};
      v[2] = {__builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5)};
      v[3] = {__builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7)};
    }
  }
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
    if constexpr (sizeof(T) == 8) {
      return widened(p);
    } else {
      return HostNumbers<Narrow>::load(p);
    }
  }
  /// Doubles of floats. By name, since compilers load both first, at the cost of another instruction.
  TESSERA_HOST_INLINE static HostVector widened(const float* p) {
#if TESSERA_HOST_VECTORS && defined(__x86_64__)
    struct Two {
      float numbers[2];
    };
    HostVector r;
#if defined(__AVX__)
    asm("vcvtps2pd %1, %0" : "=x"(r.v) : "m"(*reinterpret_cast<const Two*>(p)));
#else
    asm("cvtps2pd %1, %0" : "=x"(r.v) : "m"(*reinterpret_cast<const Two*>(p)));
#endif
    return r;
#else
    return make([&](int i) TESSERA_HOST_LAMBDA { return static_cast<T>(p[i]); });
#endif
  }
  /// The numbers f(0), f(1), ... of this type or of 16 bits.
  template <class F>
  TESSERA_HOST_INLINE static HostVector gather(F&& f) {
    using Number = std::decay_t<decltype(f(0))>;
#if TESSERA_HOST_VECTORS && defined(__x86_64__)
    // By name, since compilers may load both first, at the cost of another instruction.
    if constexpr (sizeof(T) == 8 && std::is_lvalue_reference_v<decltype(f(0))>) {
      const __m128d low = _mm_load_sd(&f(0));
      return {_mm_loadh_pd(low, &f(1))};
    }
#endif
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
  /// Rounded together, then number n to *to(n).
  template <class Narrow, class F>
  TESSERA_HOST_INLINE void scatter(F&& to) const {
    static_assert(sizeof(Narrow) == 2 && width == 4, "four numbers of 16 bits");
    std::uint64_t bits = HostNumbers<Narrow>::word(*this);
    for (int n = 0; n < width; ++n, bits >>= 16) to(n)->bits = static_cast<std::uint16_t>(bits);
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
      _mm_storel_epi64(reinterpret_cast<__m128i*>(p), rounded(from));
    }
  }
  /// The four numbers of 16 bits, the first one lowest.
  TESSERA_HOST_INLINE static std::uint64_t word(const Vector& from) {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(rounded(from)));
  }
  TESSERA_HOST_INLINE static __m128i rounded(const Vector& from) {
    if constexpr (is_half) {
      F16cWords words;
      f16c_narrow_low(words, from.v);
      return reinterpret_cast<__m128i>(words);
    } else {
      typedef std::uint32_t Bits __attribute__((vector_size(16)));
      typedef std::int32_t Ints __attribute__((vector_size(16)));
      const Bits bits = reinterpret_cast<Bits>(from.v);
      const Bits none = reinterpret_cast<Bits>(reinterpret_cast<Ints>(bits & 0x7fffffffu) > 0x7f800000);
      const Bits number = bits + ((0x7fffu + (bits >> 16 & 1u)) & ~none);  // NaNs as they are, but quiet
      // High halves as signed numbers, which are packed as they are.
      const __m128i high = _mm_srai_epi32(reinterpret_cast<__m128i>(number | (none & 0x400000u)), 16);
      return _mm_packs_epi32(high, high);
    }
  }
#else
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
  TESSERA_HOST_INLINE static std::uint64_t word(const Vector& from) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= std::uint64_t{Narrow(from.v[i]).bits} << (16 * i);
    return bits;
  }
#endif
};

/// The numbers of `lanes` neighbours in each of so many rows as a vector has places: lane(l) has those of neighbour l.
/// Rows are loaded whole and turned over in registers, at half the cost of gathering numbers or less.
template <class Value>
class HostTurned {
 public:
  using Vector = HostVector<Value>;
  static constexpr bool possible = TESSERA_HOST_VECTORS != 0;
  static constexpr int lanes = Vector::width;

  /// row(r): where row r begins.
  template <class Row>
  TESSERA_HOST_INLINE explicit HostTurned(Row&& row) {
    for (int r = 0; r < lanes; ++r) v_[r] = Vector::load(row(r));
#if TESSERA_HOST_VECTORS
    Vector::transpose(v_);
#endif
  }
  TESSERA_HOST_INLINE Vector lane(int l) const { return v_[l]; }

 private:
  Vector v_[lanes];
};
#if TESSERA_HOST_VECTORS && defined(__x86_64__)
template <class Narrow>
class HostTurned16 {
 public:
  using Vector = HostVector<float>;
  static constexpr bool possible = true;
  static constexpr int lanes = 8;

  template <class Row>
  TESSERA_HOST_INLINE explicit HostTurned16(Row&& row) {
    const auto load = [&](int r)
                          TESSERA_HOST_LAMBDA { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row(r))); };
    const __m128i a = load(0), b = load(1), c = load(2), d = load(3);
    const __m128i ab = _mm_unpacklo_epi16(a, b), cd = _mm_unpacklo_epi16(c, d);
    const __m128i high_ab = _mm_unpackhi_epi16(a, b), high_cd = _mm_unpackhi_epi16(c, d);
    pair_[0] = _mm_unpacklo_epi32(ab, cd);
    pair_[1] = _mm_unpackhi_epi32(ab, cd);
    pair_[2] = _mm_unpacklo_epi32(high_ab, high_cd);
    pair_[3] = _mm_unpackhi_epi32(high_ab, high_cd);
  }
  TESSERA_HOST_INLINE Vector lane(int l) const {
    Vector r;
    const __m128i words = pair_[l / 2];
    if constexpr (std::is_same_v<Narrow, half_t>) {
      f16c_widen_low(r.v, reinterpret_cast<F16cWords>(l % 2 == 0 ? words : _mm_unpackhi_epi64(words, words)));
    } else {
      const __m128i zero = _mm_setzero_si128();
      r.v = reinterpret_cast<Vector::Native>(l % 2 == 0 ? _mm_unpacklo_epi16(zero, words)
                                                        : _mm_unpackhi_epi16(zero, words));
    }
    return r;
  }

 private:
  __m128i pair_[4];
};
#else
template <class Narrow>
class HostTurned16 {
 public:
  static constexpr bool possible = false;
  static constexpr int lanes = 8;
};
#endif
template <>
class HostTurned<half_t> : public HostTurned16<half_t> {
 public:
  using HostTurned16::HostTurned16;
};
template <>
class HostTurned<bhalf_t> : public HostTurned16<bhalf_t> {
 public:
  using HostTurned16::HostTurned16;
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
