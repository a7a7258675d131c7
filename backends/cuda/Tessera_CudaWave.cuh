// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CUDA_CUDA_WAVE_HPP
#define TESSERA_CUDA_CUDA_WAVE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The wave concept (Tessera_Wave.hpp) on an NVIDIA warp. `Streaming` loads are non-coherent and do not allocate in L1,
/// so that the matrix, read once, leaves the L1 to x.

namespace Tessera {

class CudaWave {
 public:
  static constexpr int lanes = 32;
  using Mask = unsigned;
  static constexpr unsigned all = 0xffffffffu;

  template <class T>
  struct Varying {
    T own;
    __device__ __forceinline__ T& operator()(int) { return own; }
    __device__ __forceinline__ const T& operator()(int) const { return own; }
  };

  __device__ __forceinline__ CudaWave() : lane_(threadIdx.x & 31) {}

  template <class F>
  __device__ __forceinline__ void each(F&& f) const {
    f(lane_);
  }
  template <class T, class Source>
  __device__ __forceinline__ void shuffle(Varying<T>& out, const Varying<T>& in, Source&& source) const {
    out.own = __shfl_sync(all, in.own, source(lane_));
  }
  __device__ __forceinline__ Mask ballot(const Varying<bool>& flag) const { return __ballot_sync(all, flag.own); }
  __device__ __forceinline__ static int rank(Mask mask, int lane) { return __popc(mask & ((1u << lane) - 1u)); }
  __device__ __forceinline__ static int count(Mask mask) { return __popc(mask); }

  __device__ __forceinline__ void same(Varying<Mask>& out, const Varying<std::int32_t>& v) const {
    out.own = __match_any_sync(all, v.own);
  }
  __device__ __forceinline__ Mask any_bit(const Varying<Mask>& v) const { return __reduce_or_sync(all, v.own); }

  template <class T>
  __device__ __forceinline__ T sum(const Varying<T>& v) const {
    T total = v.own;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(all, total, distance);
    return total;
  }

  template <class T>
  __device__ __forceinline__ static T first(const Varying<T>& v) {
    return v.own;
  }
  template <bool Streaming, class T>
  __device__ __forceinline__ static T load(const T* p) {
    if constexpr (!Streaming) {
      return load_cached(p);
    } else if constexpr (sizeof(T) == 16) {
      T v;
      unsigned* w = reinterpret_cast<unsigned*>(&v);
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "l"(p));
      return v;
    } else if constexpr (sizeof(T) == 8) {
      unsigned long long bits;
      asm volatile("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(bits) : "l"(p));
      return from_bits<T>(bits);
    } else if constexpr (sizeof(T) == 4) {
      unsigned bits;
      asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(bits) : "l"(p));
      return from_bits<T>(bits);
    } else if constexpr (sizeof(T) == 2) {
      unsigned short bits;
      asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(bits) : "l"(p));
      return from_bits<T>(bits);
    } else {
      return load_cached(p);
    }
  }

  __device__ __forceinline__ static void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
  // A policy of the second-level cache. The same in all lanes, it lies in uniform registers and costs loads nothing.
  using CacheHint = std::uint64_t;
  __device__ __forceinline__ static CacheHint cache_hint(bool kept) {
    CacheHint usual, first;
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(usual));
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    return kept ? usual : first;
  }
  // In assembly: the order of such loads is kept.
  __device__ __forceinline__ static Word load_written(const Word* p) {
    Word v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p)
                 : "memory");
    return v;
  }

  // What made the value is hidden from the compiler. Pointers are into global memory.
  template <class T>
  __device__ __forceinline__ static T keep(T v) {
    if constexpr (std::is_pointer_v<T>) {
      std::size_t at = __cvta_generic_to_global(v);
      asm volatile("" : "+l"(at));
      v = static_cast<T>(__cvta_global_to_generic(at));
    } else if constexpr (std::is_same_v<T, double>) {
      asm volatile("" : "+d"(v));
    } else if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(v));
    } else {
      static_assert(std::is_integral_v<T> && sizeof(T) == 4, "of one register, or an address");
      asm volatile("" : "+r"(v));
    }
    return v;
  }

  // Predicates inside the assembly: the compiler would make branches of conditional loads, and a branch waits.
  template <bool Streaming, int Bytes>
  __device__ __forceinline__ static void load_if(const void* p, bool on, unsigned fill, unsigned* w) {
    const int want = on;
    if constexpr (Bytes == 16 && Streaming) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %5, 0; mov.u32 %0, %6; mov.u32 %1, %6; mov.u32 %2, %6; mov.u32 %3, %6; "
          "@q ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];}"
          : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
          : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 16) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %5, 0; mov.u32 %0, %6; mov.u32 %1, %6; mov.u32 %2, %6; mov.u32 %3, %6; "
          "@q ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];}"
          : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
          : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 8 && Streaming) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %3, 0; mov.u32 %0, %4; mov.u32 %1, %4; "
          "@q ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];}"
          : "=&r"(w[0]), "=&r"(w[1])
          : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 8) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %3, 0; mov.u32 %0, %4; mov.u32 %1, %4; "
          "@q ld.global.nc.v2.u32 {%0,%1}, [%2];}"
          : "=&r"(w[0]), "=&r"(w[1])
          : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 4 && Streaming) {
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.nc.L1::no_allocate.u32 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 4) {
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.nc.u32 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 2 && Streaming) {
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.nc.L1::no_allocate.u16 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill));
    } else if constexpr (Bytes == 2) {
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.nc.u16 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill));
    } else {
      static_assert(Bytes == 1, "loads of 1, 2, 4, 8 or 16 bytes");
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.nc.L1::no_allocate.u8 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill));
    }
  }
  template <class T>
  __device__ __forceinline__ static T gather_if(const T* p, bool on) {
    const int want = on;
    T value;
    if constexpr (sizeof(T) == 8) {
      double d;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.f64 %0, 0d0000000000000000; @q ld.global.nc.f64 %0, [%1];}"
                   : "=&d"(d)
                   : "l"(p), "r"(want));
      __builtin_memcpy(&value, &d, 8);
    } else if constexpr (sizeof(T) == 4) {
      unsigned bits;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, 0; @q ld.global.nc.u32 %0, [%1];}"
                   : "=&r"(bits)
                   : "l"(p), "r"(want));
      __builtin_memcpy(&value, &bits, 4);
    } else {
      unsigned bits;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, 0; @q ld.global.nc.u16 %0, [%1];}"
                   : "=&r"(bits)
                   : "l"(p), "r"(want));
      const unsigned short low = static_cast<unsigned short>(bits);
      __builtin_memcpy(&value, &low, 2);
    }
    return value;
  }

  // The same of memory that a launch before may still be writing: loads that are not non-coherent stay behind the wait
  // for that launch, past which the assembler moves others where no branch is in between.
  template <bool Streaming, int Bytes>
  __device__ __forceinline__ static void load_written_if(const void* p, bool on, unsigned fill, unsigned* w) {
    const int want = on;
    if constexpr (Bytes == 16 && Streaming) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %5, 0; mov.u32 %0, %6; mov.u32 %1, %6; mov.u32 %2, %6; mov.u32 %3, %6; "
          "@q ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];}"
          : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
          : "l"(p), "r"(want), "r"(fill)
          : "memory");
    } else if constexpr (Bytes == 16) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %5, 0; mov.u32 %0, %6; mov.u32 %1, %6; mov.u32 %2, %6; mov.u32 %3, %6; "
          "@q ld.global.v4.u32 {%0,%1,%2,%3}, [%4];}"
          : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
          : "l"(p), "r"(want), "r"(fill)
          : "memory");
    } else if constexpr (Bytes == 8 && Streaming) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %3, 0; mov.u32 %0, %4; mov.u32 %1, %4; "
          "@q ld.global.L1::no_allocate.v2.u32 {%0,%1}, [%2];}"
          : "=&r"(w[0]), "=&r"(w[1])
          : "l"(p), "r"(want), "r"(fill)
          : "memory");
    } else if constexpr (Bytes == 8) {
      asm volatile(
          "{.reg .pred q; setp.ne.s32 q, %3, 0; mov.u32 %0, %4; mov.u32 %1, %4; "
          "@q ld.global.v2.u32 {%0,%1}, [%2];}"
          : "=&r"(w[0]), "=&r"(w[1])
          : "l"(p), "r"(want), "r"(fill)
          : "memory");
    } else if constexpr (Bytes == 4) {
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.L1::no_allocate.u32 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill)
                   : "memory");
    } else {
      static_assert(Bytes == 2, "loads of 2, 4, 8 or 16 bytes");
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, %3; @q ld.global.L1::no_allocate.u16 %0, [%1];}"
                   : "=&r"(w[0])
                   : "l"(p), "r"(want), "r"(fill)
                   : "memory");
    }
  }
  template <class T>
  __device__ __forceinline__ static T gather_written_if(const T* p, bool on) {
    const int want = on;
    T value;
    if constexpr (sizeof(T) == 8) {
      double d;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.f64 %0, 0d0000000000000000; @q ld.global.f64 %0, [%1];}"
                   : "=&d"(d)
                   : "l"(p), "r"(want)
                   : "memory");
      __builtin_memcpy(&value, &d, 8);
    } else if constexpr (sizeof(T) == 4) {
      unsigned bits;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, 0; @q ld.global.u32 %0, [%1];}"
                   : "=&r"(bits)
                   : "l"(p), "r"(want)
                   : "memory");
      __builtin_memcpy(&value, &bits, 4);
    } else {
      unsigned bits;
      asm volatile("{.reg .pred q; setp.ne.s32 q, %2, 0; mov.u32 %0, 0; @q ld.global.u16 %0, [%1];}"
                   : "=&r"(bits)
                   : "l"(p), "r"(want)
                   : "memory");
      const unsigned short low = static_cast<unsigned short>(bits);
      __builtin_memcpy(&value, &low, 2);
    }
    return value;
  }

  /// Shared memory by its own addresses: 32 bits are half the arithmetic.
  using Memory = std::uint32_t;
  __device__ __forceinline__ static Memory memory(char* shared) {
    return static_cast<Memory>(__cvta_generic_to_shared(shared));
  }
  template <bool Cached>
  __device__ __forceinline__ static void copy_async(Memory to, const void* p, bool on) {
    if constexpr (Cached) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(p), "r"(on ? 16 : 0) : "memory");
    } else {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(p), "r"(on ? 16 : 0) : "memory");
    }
  }
  __device__ __forceinline__ static void copy_part(Memory to, const void* p, int bytes, CacheHint hint) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(p), "r"(bytes),
                 "l"(hint)
                 : "memory");
  }
  template <int Bytes>
  __device__ __forceinline__ static void copy_number(Memory to, const void* p) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(p), "n"(Bytes) : "memory");
  }
  __device__ __forceinline__ static void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int Pending>
  __device__ __forceinline__ static void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
    __syncwarp();
  }
  __device__ __forceinline__ static std::uint32_t claim(std::uint32_t* p, std::uint32_t old, std::uint32_t value) {
    return atomicCAS(p, old, value);
  }
  __device__ __forceinline__ static void set_bits(std::uint32_t* p, std::uint32_t bits) { atomicOr(p, bits); }
  __device__ __forceinline__ static void add(std::int64_t* p, std::int64_t value) {
    atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(value));
  }
  __device__ __forceinline__ static double add_product(double a, double b, double sum) { return fma(a, b, sum); }
  __device__ __forceinline__ static float add_product(float a, float b, float sum) { return fmaf(a, b, sum); }
  __device__ __forceinline__ static void converge() { __syncwarp(); }
  template <int Bytes>
  __device__ __forceinline__ static void load_staged(Memory from, unsigned* w) {
    if constexpr (Bytes == 16) {
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"(from));
    } else if constexpr (Bytes == 8) {
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(from));
    } else if constexpr (Bytes == 4) {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w[0]) : "r"(from));
    } else if constexpr (Bytes == 2) {
      asm volatile("ld.shared.u16 %0, [%1];" : "=r"(w[0]) : "r"(from));
    } else {
      static_assert(Bytes == 1, "loads of 1, 2, 4, 8 or 16 bytes");
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(w[0]) : "r"(from));
    }
  }

  template <class T>
  __device__ __forceinline__ void publish(T* p, T value) const {
    if (lane_ == 0) {
      *reinterpret_cast<volatile T*>(p) = value;
      __threadfence();
    }
  }
  template <class T>
  __device__ __forceinline__ static void publish_to_host(T* p, T value) {
    __threadfence_system();
    *reinterpret_cast<volatile T*>(p) = value;
  }
  __device__ __forceinline__ static void release() {
    __threadfence();
    __syncwarp();
  }
  __device__ __forceinline__ bool last_to_arrive(std::uint32_t* counter, std::uint32_t total) const {
    unsigned before = 0;
    if (lane_ == 0) before = atomicAdd(counter, 1u);
    before = __shfl_sync(all, before, 0);
    if (before + 1 < total) return false;
    __threadfence();
    if (lane_ == 0) *reinterpret_cast<volatile std::uint32_t*>(counter) = 0;
    return true;
  }
  template <class T>
  __device__ __forceinline__ static T read_published(const T* p) {
    return *reinterpret_cast<const volatile T*>(p);
  }

 private:
  template <class T, class Bits>
  __device__ __forceinline__ static T from_bits(Bits bits) {
    T value;
    static_assert(sizeof(T) == sizeof(Bits), "same width");
    memcpy(&value, &bits, sizeof(T));
    return value;
  }
  /// Read-only load of any type through the ordinary path.
  template <class T>
  __device__ __forceinline__ static T load_cached(const T* p) {
    if constexpr (sizeof(T) == 16) {
      return from_bits<T>(__ldg(reinterpret_cast<const uint4*>(p)));
    } else {
      return *p;
    }
  }

  int lane_;
};

}  // namespace Tessera

#endif
