// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_HIP_HIP_WAVE_HPP
#define TESSERA_HIP_HIP_WAVE_HPP

#include <hip/hip_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backends/units/Tessera_Wave.hpp"

/// \file
/// The wave concept (Tessera_Wave.hpp) on an AMD wavefront of 64 lanes. `Streaming` loads are non-temporal: they are
/// marked to be evicted first, so that the matrix, read once, leaves the caches to x.

namespace Tessera {

class HipWave {
 public:
  static constexpr int lanes = 64;
  using Mask = unsigned long long;

  template <class T>
  struct Varying {
    T own;
    __device__ __forceinline__ T& operator()(int) { return own; }
    __device__ __forceinline__ const T& operator()(int) const { return own; }
  };

  __device__ __forceinline__ HipWave() : lane_(static_cast<int>(threadIdx.x) & 63) {}

  template <class F>
  __device__ __forceinline__ void each(F&& f) const {
    f(lane_);
  }
  template <class T, class Source>
  __device__ __forceinline__ void shuffle(Varying<T>& out, const Varying<T>& in, Source&& source) const {
    out.own = __shfl(in.own, source(lane_), lanes);
  }
  __device__ __forceinline__ Mask ballot(const Varying<bool>& flag) const { return __ballot(flag.own); }
  __device__ __forceinline__ static int rank(Mask mask, int lane) { return __popcll(mask & ((Mask{1} << lane) - 1)); }
  __device__ __forceinline__ static int count(Mask mask) { return __popcll(mask); }

  /// A vote per bit: there is no instruction.
  __device__ __forceinline__ void same(Varying<Mask>& out, const Varying<std::int32_t>& v) const {
    out.own = ~Mask{0};
#pragma unroll
    for (int bit = 0; bit < 32; ++bit) {
      const bool set = (v.own >> bit & 1) != 0;
      const Mask votes = __ballot(set);
      out.own &= set ? votes : ~votes;
    }
  }
  __device__ __forceinline__ Mask any_bit(const Varying<Mask>& v) const {
    Mask mask = v.own;
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) mask |= __shfl_xor(mask, distance, lanes);
    return mask;
  }

  template <class T>
  __device__ __forceinline__ T sum(const Varying<T>& v) const {
    T total = v.own;
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) total += __shfl_xor(total, distance, lanes);
    return total;
  }

  template <class T>
  __device__ __forceinline__ static T first(const Varying<T>& v) {
    return v.own;
  }
  template <bool Streaming, class T>
  __device__ __forceinline__ static T load(const T* p) {
    if constexpr (!Streaming) {
      return *p;
    } else if constexpr (sizeof(T) == 16) {
      return from_bits<T>(__builtin_nontemporal_load(reinterpret_cast<const Bits128*>(p)));
    } else if constexpr (sizeof(T) == 8) {
      return from_bits<T>(__builtin_nontemporal_load(reinterpret_cast<const unsigned long long*>(p)));
    } else if constexpr (sizeof(T) == 4) {
      return from_bits<T>(__builtin_nontemporal_load(reinterpret_cast<const unsigned*>(p)));
    } else if constexpr (sizeof(T) == 2) {
      return from_bits<T>(__builtin_nontemporal_load(reinterpret_cast<const unsigned short*>(p)));
    } else {
      static_assert(sizeof(T) == 1, "loads of 1, 2, 4, 8 or 16 bytes");
      return from_bits<T>(__builtin_nontemporal_load(reinterpret_cast<const unsigned char*>(p)));
    }
  }

  __device__ __forceinline__ static void prefetch(const void*) {}
  struct CacheHint {};
  __device__ __forceinline__ static CacheHint cache_hint(bool) { return {}; }
  __device__ __forceinline__ static Word load_written(const Word* p) { return *p; }
  template <class T>
  __device__ __forceinline__ static T keep(T v) {
    return v;
  }
  template <bool Streaming, int Bytes>
  __device__ __forceinline__ static void load_if(const void* p, bool on, std::uint32_t fill, std::uint32_t* w) {
    constexpr int words = (Bytes + 3) / 4;
    using Whole = std::conditional_t<
        Bytes == 16, Word,
        std::conditional_t<Bytes == 8, std::uint64_t,
                           std::conditional_t<Bytes == 4, std::uint32_t,
                                              std::conditional_t<Bytes == 2, std::uint16_t, std::uint8_t>>>>;
#pragma unroll
    for (int i = 0; i < words; ++i) w[i] = fill;
    if (on) {
      const Whole whole = load<Streaming>(static_cast<const Whole*>(p));
      __builtin_memcpy(w, &whole, sizeof(Whole));
    }
  }
  template <class T>
  __device__ __forceinline__ static T gather_if(const T* p, bool on) {
    T value{};
    if (on) value = *p;
    return value;
  }
  template <bool Streaming, int Bytes>
  __device__ __forceinline__ static void load_written_if(const void* p, bool on, std::uint32_t fill, std::uint32_t* w) {
    load_if<Streaming, Bytes>(p, on, fill, w);
  }
  template <class T>
  __device__ __forceinline__ static T gather_written_if(const T* p, bool on) {
    return gather_if(p, on);
  }

  // Memory of a wave in the local data share. Its accesses are executed in order; what is needed is that the compiler
  // leaves them so.
  using Memory = char*;
  __device__ __forceinline__ static Memory memory(char* shared) { return shared; }
  template <bool Cached>
  __device__ __forceinline__ static void copy_async(Memory to, const void* p, bool on) {
    Word word{};
    if (on) word = load<!Cached>(static_cast<const Word*>(p));
    *reinterpret_cast<Word*>(to) = word;
  }
  __device__ __forceinline__ static void copy_part(Memory to, const void* p, int bytes, CacheHint) {
    Word word{};
    if (bytes == 16) {
      word = load<true>(static_cast<const Word*>(p));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (4 * i < bytes) word.w[i] = load<true>(static_cast<const std::uint32_t*>(p) + i);
      }
    }
    *reinterpret_cast<Word*>(to) = word;
  }
  template <int Bytes>
  __device__ __forceinline__ static void copy_number(Memory to, const void* p) {
    __builtin_memcpy(__builtin_assume_aligned(to, Bytes), __builtin_assume_aligned(p, Bytes), Bytes);
  }
  __device__ __forceinline__ static void commit_copies() {}
  template <int Pending>
  __device__ __forceinline__ static void wait_copies() {
    converge();
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
  __device__ __forceinline__ static void converge() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
  template <int Bytes>
  __device__ __forceinline__ static void load_staged(const char* from, std::uint32_t* w) {
    if constexpr (Bytes >= 4) {
      __builtin_memcpy(w, __builtin_assume_aligned(from, Bytes), Bytes);
    } else if constexpr (Bytes == 2) {
      w[0] = *reinterpret_cast<const std::uint16_t*>(from);
    } else {
      w[0] = *reinterpret_cast<const std::uint8_t*>(from);
    }
  }

  // What crosses waves goes through relaxed atomics of the device's scope, so that no per-CU cache answers; the fences
  // order them.
  template <class T>
  __device__ __forceinline__ void publish(T* p, T value) const {
    if (lane_ == 0) {
      __hip_atomic_store(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      __threadfence();
    }
  }
  template <class T>
  __device__ __forceinline__ static void publish_to_host(T* p, T value) {
    __threadfence_system();
    __hip_atomic_store(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  __device__ __forceinline__ static void release() {
    __threadfence();
    converge();
  }
  __device__ __forceinline__ bool last_to_arrive(std::uint32_t* counter, std::uint32_t total) const {
    unsigned before = 0;
    if (lane_ == 0) before = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    before = static_cast<unsigned>(__builtin_amdgcn_readfirstlane(static_cast<int>(before)));
    if (before + 1 < total) return false;
    __threadfence();
    if (lane_ == 0) __hip_atomic_store(counter, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    return true;
  }
  template <class T>
  __device__ __forceinline__ static T read_published(const T* p) {
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }

 private:
  using Bits128 = unsigned __attribute__((ext_vector_type(4)));

  template <class T, class Bits>
  __device__ __forceinline__ static T from_bits(Bits bits) {
    T value;
    static_assert(sizeof(T) == sizeof(Bits), "same width");
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
  }

  int lane_;
};

}  // namespace Tessera

#endif
