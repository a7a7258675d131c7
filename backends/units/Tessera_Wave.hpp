// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_UNITS_WAVE_HPP
#define TESSERA_UNITS_WAVE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/interface/Tessera_Aligned.hpp"

/// \file
/// A *wave* is who executes a fragment kernel: 32 or 64 lanes in lockstep. The concept, shared by HostWave, CudaWave
/// and HipWave:
///
///   lanes                              number of lanes
///   Mask                               unsigned type with a bit per lane
///   Varying<T> v;  v(lane)             one T per lane (device: one register; host: an array)
///   each(f)                            f(lane) for every lane (device: once, for the own lane)
///   shuffle(out, in, source)           out(lane) = in(source(lane))
///   ballot(flag)                       bit mask of the lanes whose Varying<bool> is set
///   rank(mask, lane)                   number of set bits below `lane`
///   count(mask)                        number of set bits
///   same(out, v)                       out(lane) = bit mask of the lanes that have the same 32-bit v
///   any_bit(v)                         the masks of all lanes in one
///   sum(v)                             sum over the lanes of v by xor-shuffles, the same in every lane, order fixed
///   first(v)                           v of the first lane, for values that are the same in all
///   load<Streaming>(p)                 *p; Streaming: data used once, kept out of the first-level cache where possible
///   prefetch(p)                        asks for the line at p in the second-level cache, where that can be asked
///   CacheHint, cache_hint(kept)        whether the second-level cache keeps what comes with it as it keeps all else,
///                                      or gives it up first; the same in all lanes
///   load_written(p)                    the Word at p, which the launch before wrote; such loads stay in their order
///   keep(v)                            v, which compilers then hold in registers rather than make it again: loads at
///                                      fixed distances from an address need no arithmetic
///   load_if<Streaming, Bytes>(p, on, fill, w)
///                                      w = the 1, 2, 4, 8 or 16 bytes at p if on, else words of `fill`; no branch
///   gather_if(p, on)                   *p if on, else zero; no branch; through the first-level cache
///   load_written_if, gather_written_if the same of memory that the launch before may be writing, where no branch and
///                                      no other load keeps them behind the wait for it
///   Memory, memory(pointer)            an address in memory of the wave alone, shared memory on devices
///   copy_async<Cached>(to, p, on)      starts copying the 16 bytes at p (zeros if not on) to memory of the wave
///   copy_part(to, p, bytes, hint)      the same for the first 4, 8, 12 or 16 of those bytes; zeros after them
///   copy_number<Bytes>(to, p)          the same for the 4, 8 or 16 bytes at p, aligned to as many
///   commit_copies(), wait_copies<N>()  closes a group of copies; waits until all but the last N groups have arrived
///   load_staged<Bytes>(from, w)        w = 1 to 16 bytes of what has arrived
///   claim(p, old, v)                   *p = v if *p was old; returns what it was; p in memory that waves share, as for
///   set_bits(p, v), add(p, v)          *p |= v, *p += v
///   add_product(a, b, sum)             sum + a b; in one rounding on devices, whatever surrounds it
///   converge()                         no lane goes on before all came here
///   publish(p, v)                      one lane stores v where other waves will read it
///   publish_to_host(p, v)              one thread stores v for the host to see, after all that it stored before
///   release()                          what any lane stored before is published by the arrival that follows; the last
///   to
///                                      arrive may then read it by any load but those for memory that no launch writes
///   last_to_arrive(counter, total)     true in the last of `total` waves to come here; everything published before by
///                                      the others is then visible to read_published; the counter is left at zero
///
/// Rules for kernels: lane-divergent code lives inside `each`; anything that crosses lanes goes through the wave; loops
/// around a matrix instruction are uniform over the wave; no thread index appears in shared code.

namespace Tessera {

/// Sixteen bytes, the widest load of a lane.
struct alignas(16) Word {
  std::uint32_t w[4];
};

/// A wave on the host: lanes run one after another between the points where the kernel crosses lanes. Waves of one
/// launch run one after another too.
template <int Lanes>
class HostWave {
 public:
  static constexpr int lanes = Lanes;
  using Mask = std::uint64_t;

  template <class T>
  class Varying {
   public:
    T& operator()(int lane) { return value_[lane]; }
    const T& operator()(int lane) const { return value_[lane]; }

   private:
    T value_[Lanes];
  };

  template <class F>
  void each(F&& f) const {
    for (int lane = 0; lane < Lanes; ++lane) f(lane);
  }

  template <class T, class Source>
  void shuffle(Varying<T>& out, const Varying<T>& in, Source&& source) const {
    const Varying<T> copy = in;  // out may be in
    for (int lane = 0; lane < Lanes; ++lane) out(lane) = copy(source(lane));
  }

  Mask ballot(const Varying<bool>& flag) const {
    Mask mask = 0;
    for (int lane = 0; lane < Lanes; ++lane) mask |= static_cast<Mask>(flag(lane)) << lane;
    return mask;
  }
  static int rank(Mask mask, int lane) { return count(mask & ((Mask{1} << lane) - 1)); }
  static int count(Mask mask) { return __builtin_popcountll(mask); }

  void same(Varying<Mask>& out, const Varying<std::int32_t>& v) const {
    for (int lane = 0; lane < Lanes; ++lane) {
      out(lane) = 0;
      for (int other = 0; other < Lanes; ++other) out(lane) |= static_cast<Mask>(v(other) == v(lane)) << other;
    }
  }
  Mask any_bit(const Varying<Mask>& v) const {
    Mask mask = 0;
    for (int lane = 0; lane < Lanes; ++lane) mask |= v(lane);
    return mask;
  }

  template <class T>
  T sum(const Varying<T>& v) const {
    Varying<T> total = v;
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
      Varying<T> other;
      shuffle(other, total, [=](int lane) { return lane ^ distance; });
      each([&](int lane) { total(lane) += other(lane); });
    }
    return total(0);
  }

  template <class T>
  static T first(const Varying<T>& v) {
    return v(0);
  }
  template <bool Streaming, class T>
  static T load(const T* p) {
    expect_aligned(p, alignof(T));
    return *p;
  }
  static void prefetch(const void*) {}
  struct CacheHint {};
  static CacheHint cache_hint(bool) { return {}; }
  static Word load_written(const Word* p) {
    expect_aligned(p, alignof(Word));
    Word w;
    std::memcpy(&w, p, sizeof(w));
    return w;
  }
  template <class T>
  static T keep(T v) {
    return v;
  }
  template <bool Streaming, int Bytes>
  static void load_if(const void* p, bool on, std::uint32_t fill, std::uint32_t* w) {
    for (int i = 0; i < (Bytes + 3) / 4; ++i) w[i] = fill;
    if (!on) return;
    expect_aligned(p, Bytes);
    std::memcpy(w, p, Bytes);
  }
  template <class T>
  static T gather_if(const T* p, bool on) {
    if (!on) return T{};
    expect_aligned(p, alignof(T));
    return *p;
  }
  template <bool Streaming, int Bytes>
  static void load_written_if(const void* p, bool on, std::uint32_t fill, std::uint32_t* w) {
    load_if<Streaming, Bytes>(p, on, fill, w);
  }
  template <class T>
  static T gather_written_if(const T* p, bool on) {
    return gather_if(p, on);
  }
  using Memory = char*;
  static Memory memory(char* p) { return p; }
  template <bool Cached>
  static void copy_async(Memory to, const void* p, bool on) {
    expect_aligned(to, 16);
    if (on) {
      expect_aligned(p, 16);
      std::memcpy(to, p, 16);
    } else {
      std::memset(to, 0, 16);
    }
  }
  static void copy_part(Memory to, const void* p, int bytes, CacheHint) {
    expect_aligned(to, 16);
    expect_aligned(p, 16);
    std::memset(to, 0, 16);
    std::memcpy(to, p, static_cast<std::size_t>(bytes));
  }
  template <int Bytes>
  static void copy_number(Memory to, const void* p) {
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "what devices copy");
    expect_aligned(to, Bytes);
    expect_aligned(p, Bytes);
    std::memcpy(to, p, Bytes);
  }
  static void commit_copies() {}
  template <int Pending>
  static void wait_copies() {}
  static std::uint32_t claim(std::uint32_t* p, std::uint32_t old, std::uint32_t value) {
    const std::uint32_t was = *p;
    if (was == old) *p = value;
    return was;
  }
  static void set_bits(std::uint32_t* p, std::uint32_t bits) { *p |= bits; }
  static void add(std::int64_t* p, std::int64_t value) { *p += value; }
  template <class T>
  static T add_product(T a, T b, T sum) {
    return sum + a * b;
  }
  static void converge() {}
  template <int Bytes>
  static void load_staged(const char* from, std::uint32_t* w) {
    expect_aligned(from, Bytes);
    if (Bytes < 4) w[0] = 0;
    std::memcpy(w, from, Bytes);
  }
  template <class T>
  void publish(T* p, T value) const {
    *p = value;
  }
  template <class T>
  static void publish_to_host(T* p, T value) {
    *p = value;
  }
  /// Counts arrivals at *counter: returns true for the last of `total` waves, and then resets the counter.
  bool last_to_arrive(std::uint32_t* counter, std::uint32_t total) const {
    if (++*counter < total) return false;
    *counter = 0;
    return true;
  }
  static void release() {}
  template <class T>
  static T read_published(const T* p) {
    return *p;
  }
};

}  // namespace Tessera

#endif
