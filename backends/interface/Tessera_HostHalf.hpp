// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_HOST_HALF_HPP
#define TESSERA_INTERFACE_HOST_HALF_HPP

#include <cstdint>

#include "backends/interface/Tessera_Half.hpp"

/// \file
/// half_t by the instructions of x86 CPUs (F16C: all since 2013), where those are there at run time, and bhalf_t by
/// those of AVX (16 bytes) and AVX2.
///
/// The instructions are named in assembly, not as intrinsics: a compiler takes intrinsics only in functions compiled
/// for F16C, and so neither in templates that are inlined into functions for several CPUs nor in files compiled for
/// all; and GCC 12 widens vectors of 16-bit numbers by halves, in four instructions for one. Results are those of
/// Tessera_Half.hpp, bit by bit, but that NaNs of half_t become quiet. Callers have asked host_has_f16c(), or for AVX2.

#if defined(__GNUC__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#include <cpuid.h>
#if defined(__clang__)
#define TESSERA_HOST_F16C 1  // four numbers; it allows wide operands only where a function's target has them
#else
#define TESSERA_HOST_F16C 2  // as many as vectors hold
#endif
#else
#define TESSERA_HOST_F16C 0
#endif

namespace Tessera {
namespace Impl {

#if TESSERA_HOST_F16C
inline bool host_has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 && __builtin_cpu_supports("avx");
  }();
  return has;
}

#define TESSERA_F16C_INLINE inline __attribute__((always_inline))

/// Four, eight or sixteen neighbours.
template <int Count>
struct F16c;
#define TESSERA_F16C(Count)                                                                              \
  template <>                                                                                            \
  struct F16c<Count> {                                                                                   \
    typedef float Floats __attribute__((vector_size(4 * Count)));                                        \
    typedef std::uint16_t Halves __attribute__((vector_size(2 * Count), aligned(2), may_alias));         \
    static TESSERA_F16C_INLINE void widen(Floats& to, const void* from) {                                \
      asm("vcvtph2ps %1, %0" : "=v"(to) : "m"(*static_cast<const Halves*>(from)));                       \
    }                                                                                                    \
    static TESSERA_F16C_INLINE void narrow(void* to, const Floats& from) {                               \
      asm("vcvtps2ph $0, %1, %0" : "=m"(*static_cast<Halves*>(to)) : "v"(from));                         \
    }                                                                                                    \
    static TESSERA_F16C_INLINE void widen_bhalf(Floats& to, const void* from) {                          \
      asm("vpmovzxwd %1, %0\n\tvpslld $16, %0, %0" : "=v"(to) : "m"(*static_cast<const Halves*>(from))); \
    }                                                                                                    \
  };
TESSERA_F16C(4)
#if TESSERA_HOST_F16C > 1
TESSERA_F16C(8)
TESSERA_F16C(16)
#endif
#undef TESSERA_F16C

/// Four numbers in the low half of a vector.
typedef long long F16cWords __attribute__((vector_size(16)));
TESSERA_F16C_INLINE void f16c_widen_low(F16c<4>::Floats& to, const F16cWords& from) {
  asm("vcvtph2ps %1, %0" : "=v"(to) : "v"(from));
}
TESSERA_F16C_INLINE void f16c_narrow_low(F16cWords& to, const F16c<4>::Floats& from) {
  asm("vcvtps2ph $0, %1, %0" : "=v"(to) : "v"(from));
}
TESSERA_F16C_INLINE float f16c_widen(half_t from) {
  float to;
  asm("vmovd %1, %0\n\tvcvtph2ps %0, %0" : "=x"(to) : "r"(static_cast<std::uint32_t>(from.bits)));
  return to;
}
TESSERA_F16C_INLINE half_t f16c_narrow(float from) {
  std::uint32_t bits;
  asm("vcvtps2ph $0, %1, %1\n\tvmovd %1, %0" : "=r"(bits), "+x"(from));
  half_t to;
  to.bits = static_cast<std::uint16_t>(bits);
  return to;
}
#else
inline bool host_has_f16c() { return false; }
#endif

}  // namespace Impl
}  // namespace Tessera

#endif
