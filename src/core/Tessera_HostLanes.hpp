// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_HOST_LANES_HPP
#define TESSERA_CORE_HOST_LANES_HPP

#include <cstdint>
#include <cstring>

#include "backends/interface/Tessera_HostHalf.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "core/Tessera_Accumulator.hpp"
#if TESSERA_HOST_F16C
#include <emmintrin.h>
#endif

/// \file
/// Vectors of sums on CPUs.

namespace Tessera {
namespace Impl {

// GCC's and Clang's vector types keep sums in registers for sure, where arrays of plain numbers may be kept in memory.
// nvcc and hipcc do not know them. On x86 each width is compiled for the instructions it needs, whatever the flags of
// the application, and chosen at run time.
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_HOST_VECTORS 1
#if defined(__x86_64__)
#define TESSERA_HOST_TARGET(names) __attribute__((target(names)))
#define TESSERA_HOST_HAS_TARGETS 1
#endif
#endif

/// Keeps a loop of hosts a function of its own, with registers of its own.
#if defined(__GNUC__)
#define TESSERA_HOST_NOINLINE __attribute__((noinline))
#else
#define TESSERA_HOST_NOINLINE
#endif

/// In a loop over the entries of a row: they are taken one by one. Compilers otherwise make the products of several
/// entries at once and add them in their order, one by one, which costs more than it saves, and most in short rows.
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_HOST_ONE_BY_ONE(i) asm("" : "+r"(i))
#else
#define TESSERA_HOST_ONE_BY_ONE(i) static_cast<void>(i)
#endif

/// Widest vectors, in bytes, that the CPU has registers for. Beyond 16 it also widens half_t by an instruction.
inline int host_vector_bytes() {
#ifdef TESSERA_HOST_HAS_TARGETS
  if (!host_has_f16c()) return 16;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    return 64;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 16;
}

#ifdef TESSERA_HOST_VECTORS
/// A vector of the bits of floats, made of 16-bit numbers, exactly, all lanes at once. (A macro, since GCC 12 converts
/// no vectors whose size depends on a template's argument.)
///
/// The exponents of half_t and float differ by 112 in their bias, which a multiplication corrects, of subnormal numbers
/// too; infinite and undefined numbers keep their mantissa. NaNs are not rounded to bhalf_t, but made quiet. In a
/// thread that takes subnormal numbers for zeros (DAZ, as -ffast-math sets it) those of half_t become zeros here: a
/// form without them would be four instructions more, of eight. F16C, which CPUs with wider vectors have, does not look
/// at DAZ.
template <int Bytes>
struct HostBits;
#define TESSERA_HOST_BITS(Bytes)                                                                         \
  template <>                                                                                            \
  struct HostBits<Bytes> {                                                                               \
    typedef std::uint16_t Narrow __attribute__((vector_size(Bytes / 2)));                                \
    typedef std::uint32_t Wide __attribute__((vector_size(Bytes)));                                      \
    typedef std::int32_t Ints __attribute__((vector_size(Bytes)));                                       \
    typedef float Floats __attribute__((vector_size(Bytes)));                                            \
    static KOKKOS_FORCEINLINE_FUNCTION void load(Wide& bits, const void* x) {                            \
      Narrow narrow;                                                                                     \
      std::memcpy(&narrow, x, sizeof(narrow));                                                           \
      bits = __builtin_convertvector(narrow, Wide);                                                      \
    }                                                                                                    \
    static KOKKOS_FORCEINLINE_FUNCTION void load_bhalf(Wide& bits, const void* x) {                      \
      load(bits, x);                                                                                     \
      bits <<= 16;                                                                                       \
    }                                                                                                    \
    static KOKKOS_FORCEINLINE_FUNCTION void load_half(Wide& bits, const void* x) {                       \
      load(bits, x);                                                                                     \
      const Wide sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;                      \
      const Wide special = reinterpret_cast<Wide>(magnitude >= 0x0f800000u) & 0x7f800000u;               \
      bits = reinterpret_cast<Wide>(reinterpret_cast<Floats>(magnitude) * 0x1p112f) | special | sign;    \
    }                                                                                                    \
    static KOKKOS_FORCEINLINE_FUNCTION void store_bhalf(void* to, const Wide& bits) {                    \
      const Wide none = reinterpret_cast<Wide>(reinterpret_cast<Ints>(bits & 0x7fffffffu) > 0x7f800000); \
      const Wide number = bits + ((0x7fffu + (bits >> 16 & 1u)) & ~none);                                \
      const Narrow narrow = __builtin_convertvector((number | (none & 0x400000u)) >> 16, Narrow);        \
      std::memcpy(to, &narrow, sizeof(narrow));                                                          \
    }                                                                                                    \
  };
TESSERA_HOST_BITS(16)
TESSERA_HOST_BITS(32)
TESSERA_HOST_BITS(64)
#undef TESSERA_HOST_BITS
#endif

/// Whether code for CPUs with vectors of so many bytes widens numbers T by F16C, or by AVX2, which every CPU with more
/// than 16 has.
template <class T, int Bytes>
constexpr bool host_by_f16c = TESSERA_HOST_F16C > 1 && Bytes > 16 && std::is_same_v<T, half_t>;
template <class T, int Bytes>
constexpr bool host_by_avx2 = TESSERA_HOST_F16C > 1 && Bytes > 16 && std::is_same_v<T, bhalf_t>;

/// One number, in code for vectors of so many bytes.
template <class Sum, int Bytes, class T>
KOKKOS_FORCEINLINE_FUNCTION Sum host_widen(const T& x) {
#if TESSERA_HOST_F16C
  if constexpr (host_by_f16c<T, Bytes>) return static_cast<Sum>(f16c_widen(x));
#endif
  return widen<Sum>(x);
}
template <class T, int Bytes, class Sum>
KOKKOS_FORCEINLINE_FUNCTION T host_round(Sum x) {
#if TESSERA_HOST_F16C
  if constexpr (host_by_f16c<T, Bytes> && std::is_same_v<Sum, float>) return f16c_narrow(x);
#endif
  return static_cast<T>(x);
}
/// store_scaled of one number.
template <int Bytes, class Y, class Sum>
KOKKOS_FORCEINLINE_FUNCTION void host_store_scaled(Y* y, Sum alpha, Sum sum, Sum beta) {
  *y = host_round<Y, Bytes>(beta == Sum(0) ? alpha * sum : scaled_sum(alpha, sum, beta, host_widen<Sum, Bytes>(*y)));
}

/// Columns of a copy in rows of `n` columns, zeros behind these, where what is summed beyond n need not be stored:
/// whole vectors of sums, and short rows in one line of the caches (perf_test/notes/hosts.md).
template <class Sum>
std::int64_t host_whole_columns(std::int64_t n) {
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(Sum));
  std::int64_t whole = 16;
  while (whole < bytes && whole < 64) whole *= 2;
  return (whole < bytes ? (bytes + 15) / 16 * 16 : whole) / static_cast<std::int64_t>(sizeof(Sum));
}

/// 64 bytes of zeros, then as many of ones: masks of the last lanes of a vector.
struct HostMasks {
  unsigned char bytes[128];
  constexpr HostMasks() : bytes{} {
    for (int i = 64; i < 128; ++i) bytes[i] = 0xff;
  }
};
inline constexpr HostMasks host_masks;

/// As many sums as fit a vector of so many bytes, by the instructions of CPUs with vectors of `Isa` bytes.
template <class Sum, int Bytes, int Isa = Bytes>
struct HostLanes {
  static constexpr int count = Bytes / static_cast<int>(sizeof(Sum));
#ifdef TESSERA_HOST_VECTORS
  typedef Sum type __attribute__((vector_size(Bytes)));
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void add(type& sum, Sum a, const BT* x) {
    type v;
    load(v, x);
    sum += a * v;
  }
  /// (Vectors are not returned: how that is done depends on the instructions a caller is compiled for.)
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void load(type& v, const BT* x) {
    if constexpr (std::is_same_v<BT, Sum>) {
      std::memcpy(&v, x, sizeof(v));
    } else if constexpr (sizeof(BT) == 2 && std::is_same_v<Sum, float>) {
#if TESSERA_HOST_F16C > 1
      if constexpr (host_by_f16c<BT, Isa>) return F16c<count>::widen(v, x);
      if constexpr (host_by_avx2<BT, Isa>) return F16c<count>::widen_bhalf(v, x);
#endif
      typename HostBits<Bytes>::Wide bits;
      if constexpr (std::is_same_v<BT, half_t>) {
        HostBits<Bytes>::load_half(bits, x);
      } else {
        HostBits<Bytes>::load_bhalf(bits, x);
      }
      std::memcpy(&v, &bits, sizeof(v));
    } else {
      Sum numbers[count];
      for (int j = 0; j < count; ++j) numbers[j] = widen<Sum>(x[j]);
      std::memcpy(&v, numbers, sizeof(v));
    }
  }
  /// Whether numbers T can be stored as below.
  template <class T>
  static constexpr bool can_store = std::is_same_v<Sum, float> && (std::is_same_v<T, bhalf_t> || host_by_f16c<T, Isa>);
  /// Each lane rounded as T rounds.
  template <class T>
  static KOKKOS_FORCEINLINE_FUNCTION void store(T* to, const type& v) {
    if constexpr (std::is_same_v<T, bhalf_t>) {
      typename HostBits<Bytes>::Wide bits;
      std::memcpy(&bits, &v, sizeof(bits));
      HostBits<Bytes>::store_bhalf(to, bits);
    } else {
#if TESSERA_HOST_F16C > 1
      F16c<count>::narrow(to, v);
#endif
    }
  }
  static KOKKOS_FORCEINLINE_FUNCTION void add_product(type& sum, const type& a, const type& b) { sum += a * b; }
  static KOKKOS_FORCEINLINE_FUNCTION void add(type& sum, const type& a) { sum += a; }
  static KOKKOS_FORCEINLINE_FUNCTION void scale(type& v, Sum factor) { v *= factor; }
  /// Ones for the last `lanes` of a vector, zeros before these.
  typedef std::uint64_t Mask __attribute__((vector_size(Bytes)));
  static KOKKOS_FORCEINLINE_FUNCTION void last_lanes(Mask& mask, std::int64_t lanes) {
    std::memcpy(&mask, host_masks.bytes + 64 - Bytes + lanes * static_cast<std::int64_t>(sizeof(Sum)), sizeof(mask));
  }
  /// Zeros where the mask has them, whatever stood there.
  static KOKKOS_FORCEINLINE_FUNCTION void keep(type& v, const Mask& mask) {
    v = reinterpret_cast<type>(reinterpret_cast<Mask>(v) & mask);
  }
#else
  struct type {
    Sum e[count];
  };
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void add(type& sum, Sum a, const BT* x) {
    for (int j = 0; j < count; ++j) sum.e[j] += a * widen<Sum>(x[j]);
  }
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void load(type& v, const BT* x) {
    for (int j = 0; j < count; ++j) v.e[j] = widen<Sum>(x[j]);
  }
  template <class T>
  static constexpr bool can_store = false;
  static KOKKOS_FORCEINLINE_FUNCTION void add(type& sum, const type& a) {
    for (int j = 0; j < count; ++j) sum.e[j] += a.e[j];
  }
  static KOKKOS_FORCEINLINE_FUNCTION void add_product(type& sum, const type& a, const type& b) {
    for (int j = 0; j < count; ++j) sum.e[j] += a.e[j] * b.e[j];
  }
  static KOKKOS_FORCEINLINE_FUNCTION void scale(type& v, Sum factor) {
    for (int j = 0; j < count; ++j) v.e[j] *= factor;
  }
  struct Mask {
    std::int64_t zeros;
  };
  static KOKKOS_FORCEINLINE_FUNCTION void last_lanes(Mask& mask, std::int64_t lanes) { mask.zeros = count - lanes; }
  static KOKKOS_FORCEINLINE_FUNCTION void keep(type& v, const Mask& mask) {
    for (int j = 0; j < count; ++j) v.e[j] = j < mask.zeros ? Sum(0) : v.e[j];
  }
#endif
#if TESSERA_HOST_F16C > 1
  /// The four numbers in the low half of a register. half_t: where host_by_f16c.
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void widen_words(type& v, const __m128i& words) {
    static_assert(Bytes == 16 && std::is_same_v<Sum, float>);
    if constexpr (std::is_same_v<BT, half_t>) {
      f16c_widen_low(v, reinterpret_cast<F16cWords>(words));
    } else {
      v = reinterpret_cast<type>(_mm_unpacklo_epi16(_mm_setzero_si128(), words));
    }
  }
  /// Four numbers of 16 bits from anywhere: an insertion for each, which compilers do not find.
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void gather(type& v, const BT& x0, const BT& x1, const BT& x2, const BT& x3) {
    __m128i words = _mm_cvtsi32_si128(x0.bits);
    words = _mm_insert_epi16(words, x1.bits, 1);
    words = _mm_insert_epi16(words, x2.bits, 2);
    widen_words<BT>(v, _mm_insert_epi16(words, x3.bits, 3));
  }
  /// Two neighbours, and two others behind them.
  template <class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void load_pairs(type& v, const BT* x, const BT* y) {
    std::int32_t a, b;
    std::memcpy(&a, x, sizeof(a));
    std::memcpy(&b, y, sizeof(b));
    widen_words<BT>(v, _mm_unpacklo_epi32(_mm_cvtsi32_si128(a), _mm_cvtsi32_si128(b)));
  }
#endif
  /// The first N < count numbers, zeros behind them. Nothing behind them is read.
  template <int N, class BT>
  static KOKKOS_FORCEINLINE_FUNCTION void load_first(type& v, const BT* x) {
    static_assert(N < count);
#ifdef TESSERA_HOST_VECTORS
    // By registers: a vector cannot be read from memory right after its parts were written.
    if constexpr (Bytes == 16 && sizeof(BT) == 2 && std::is_same_v<Sum, float>) {
#if TESSERA_HOST_F16C > 1
      if constexpr (host_by_f16c<BT, Isa> || std::is_same_v<BT, bhalf_t>) {
        __m128i words;
        if constexpr (N == 1) {
          words = _mm_cvtsi32_si128(x[0].bits);
        } else {
          std::int32_t pair;
          std::memcpy(&pair, x, sizeof(pair));
          words = _mm_cvtsi32_si128(pair);
          if constexpr (N == 3) words = _mm_insert_epi16(words, x[2].bits, 2);
        }
        return widen_words<BT>(v, words);
      }
#endif
      std::uint64_t bits = x[N - 1].bits;
      if constexpr (N > 1) {
        std::uint32_t pair;
        std::memcpy(&pair, x, sizeof(pair));
        bits = N > 2 ? bits << 32 | pair : pair;
      }
      typename HostBits<Bytes>::Wide wide;
      if constexpr (std::is_same_v<BT, half_t>) {
        HostBits<Bytes>::load_half(wide, &bits);
      } else {
        HostBits<Bytes>::load_bhalf(wide, &bits);
      }
      std::memcpy(&v, &wide, sizeof(v));
      return;
    }
    v = type{};
    for (int j = 0; j < N; ++j) v[j] = widen<Sum>(x[j]);
#else
    for (int j = 0; j < count; ++j) v.e[j] = j < N ? widen<Sum>(x[j]) : Sum(0);
#endif
  }
  /// Sum of all lanes, in a fixed order: halves are added until one lane is left.
  static KOKKOS_FORCEINLINE_FUNCTION Sum total(const type& v) {
#ifdef TESSERA_HOST_VECTORS
    // Halves as vectors of their own: through an array of lanes compilers add one by one, which for short products
    // takes longer than the products.
    if constexpr (Bytes > 16) {
      using Half = HostLanes<Sum, Bytes / 2>;
      typename Half::type low, high;
      std::memcpy(&low, &v, sizeof(low));
      std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
      low += high;
      return Half::total(low);
    } else if constexpr (count == 4) {
      return (v[0] + v[2]) + (v[1] + v[3]);
    } else {
      return v[0] + v[1];
    }
#else
    Sum e[count];
    std::memcpy(e, &v, sizeof(e));
    for (int n = count / 2; n > 0; n /= 2) {
      for (int j = 0; j < n; ++j) e[j] += e[j + n];
    }
    return e[0];
#endif
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
