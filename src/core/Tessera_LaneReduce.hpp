// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_LANE_REDUCE_HPP
#define TESSERA_CORE_LANE_REDUCE_HPP

#include <cstdint>

#include "Tessera_Compat.hpp"

/// \file
/// Sums and bounds of 32-bit numbers over the vector lanes of a Kokkos thread. On NVIDIA devices each is one
/// instruction of a wave or a part of it; Kokkos' own are shuffles of any type, some 30 instructions.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TESSERA_WAVE_REDUCES 1
#else
#define TESSERA_WAVE_REDUCES 0
#endif

namespace Tessera {
namespace Impl {

/// Lanes: vector length of the team, 1 on hosts. Functions are called by all lanes of a thread, which all get the
/// result; f(n) is called once for each n < count.
template <int Lanes>
struct LaneReduce {
  template <class Member, class F>
  KOKKOS_INLINE_FUNCTION static std::uint32_t sum(const Member& team, int count, const F& f) {
    std::uint32_t all = 0;
    const auto join = [&](const int n, std::uint32_t& own) { own += f(n); };
#if TESSERA_WAVE_REDUCES
    if constexpr (Lanes > 1) {
      each(count, all, join);
      return __reduce_add_sync(mask(), all);
    }
#endif
    Kokkos::parallel_reduce(Kokkos::ThreadVectorRange(team, count), join, all);
    return all;
  }
  template <class Member, class F>
  KOKKOS_INLINE_FUNCTION static std::uint32_t greatest(const Member& team, int count, const F& f) {
    std::uint32_t all = 0;
    const auto join = [&](const int n, std::uint32_t& own) {
      const std::uint32_t here = f(n);
      own = own < here ? here : own;
    };
#if TESSERA_WAVE_REDUCES
    if constexpr (Lanes > 1) {
      each(count, all, join);
      return __reduce_max_sync(mask(), all);
    }
#endif
    Kokkos::parallel_reduce(Kokkos::ThreadVectorRange(team, count), join, Kokkos::Max<std::uint32_t>(all));
    return all;
  }
  /// All ones where count is 0.
  template <class Member, class F>
  KOKKOS_INLINE_FUNCTION static std::uint32_t least(const Member& team, int count, const F& f) {
    return ~greatest(team, count, [&](const int n) { return ~f(n); });
  }
  /// f(n, range) widens range, which begins empty: min_val above max_val.
  template <class Member, class F>
  KOKKOS_INLINE_FUNCTION static Kokkos::MinMaxScalar<std::uint32_t> range(const Member& team, int count, const F& f) {
    Kokkos::MinMaxScalar<std::uint32_t> all;
#if TESSERA_WAVE_REDUCES
    if constexpr (Lanes > 1) {
      all.min_val = ~0u;
      all.max_val = 0;
      each(count, all, f);
      all.min_val = __reduce_min_sync(mask(), all.min_val);
      all.max_val = __reduce_max_sync(mask(), all.max_val);
      return all;
    }
#endif
    Kokkos::parallel_reduce(Kokkos::ThreadVectorRange(team, count), f, Kokkos::MinMax<std::uint32_t>(all));
    return all;
  }
  /// f(n, own) adds to own, whose 32-bit numbers are number(0), ..., number(Value::numbers - 1). @tparam Reducer  of
  /// Kokkos, for Value
  template <class Reducer, class Member, class F>
  KOKKOS_INLINE_FUNCTION static typename Reducer::value_type sums(const Member& team, int count, const F& f) {
    using Value = typename Reducer::value_type;
    Value all{};
#if TESSERA_WAVE_REDUCES
    if constexpr (Lanes > 1) {
      each(count, all, f);
      for (int n = 0; n < Value::numbers; ++n) all.number(n) = __reduce_add_sync(mask(), all.number(n));
      return all;
    }
#endif
    Kokkos::parallel_reduce(Kokkos::ThreadVectorRange(team, count), f, Reducer(all));
    return all;
  }

 private:
#if TESSERA_WAVE_REDUCES
  /// Lanes of the wave that are this thread's.
  __device__ __forceinline__ static unsigned mask() {
    if constexpr (Lanes == 32) return ~0u;
    return ((1u << (Lanes & 31)) - 1) << (threadIdx.y * Lanes & 31);
  }
  template <class T, class F>
  __device__ __forceinline__ static void each(int count, T& own, const F& f) {
    for (int n = static_cast<int>(threadIdx.x); n < count; n += Lanes) f(n, own);
  }
#endif
};

}  // namespace Impl
}  // namespace Tessera

#undef TESSERA_WAVE_REDUCES

#endif
