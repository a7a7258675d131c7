// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_SHORT_HPP
#define TESSERA_KERNELS_SPMV_PACKED_SHORT_HPP

#include <cstdint>

#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/kernels/spmv/Tessera_PackedChunks.hpp"
#include "backends/kernels/spmv/Tessera_PackedGather.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// Slices of few steps, with code of their own for each number of them: there instructions, not bytes, are what most
/// time goes into. No load and no gather but those that are needed, at constant distances from the packet. Where all
/// rows are that short a wave has too few bytes under way, so that it takes two slices, and asks for all of both before
/// it uses anything of the first.

namespace Tessera {

/// Slices that follow each other, one or two per wave.
template <class Types, class Wave, class Gather, class Tuning>
class PackedShortKernel {
 public:
  /// Whether there is code for this slice.
  TESSERA_FUNCTION static bool takes(const PackedSlice& s) {
    return s.steps() - 1 < Tuning::exact && s.steps() > 0 && !s.part() && s.group() == 1 &&
           (Tuning::exact_free || s.index() != PackedIndexFree);
  }
  /// Whether there is code for both at once.
  TESSERA_FUNCTION static bool takes(const PackedSlice& s, const PackedSlice& next) {
    constexpr std::uint32_t steps_and_index = 1023u | 7u << 13;
    return ((s.packed ^ next.packed) & steps_and_index) == 0 && s.steps() - 1 < Tuning::two_steps &&
           s.index() < PackedIndexFree && takes(s) && takes(next);
  }

  /// Slices for which there is code.
  template <int Count>
  TESSERA_FUNCTION static void run(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                   const PackedSlice (&s)[Count]) {
    const PackedShortKernel kernel(w, args, gather);
    Varying<std::int32_t> row[Count];
    Varying<Sum> sum[Count];
    switch (s[0].index()) {
      case PackedIndex8:
        kernel.template of_steps<PackedIndex8, 1>(s, row, sum);
        break;
      case PackedIndex16:
        kernel.template of_steps<PackedIndex16, 1>(s, row, sum);
        break;
      case PackedIndex24:
        kernel.template of_steps<PackedIndex24, 1>(s, row, sum);
        break;
      case PackedIndex32:
        kernel.template of_steps<PackedIndex32, 1>(s, row, sum);
        break;
      default:
        if constexpr (Tuning::exact_free && Count == 1) kernel.template of_steps<PackedIndexFree, 1>(s, row, sum);
    }
    TESSERA_UNROLL
    for (int k = 0; k < Count; ++k) kernel.finish(s[k], row[k], sum[k]);
  }

 private:
  using Chunks = PackedChunks<Types, Tuning>;
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;
  static constexpr int lanes = Wave::lanes, value_bytes = Chunks::value_bytes, chunk = Chunks::chunk;
  static constexpr bool streaming = Tuning::streaming;

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  template <int N, int Index>
  using Chunk = typename Chunks::template Chunk<N, 1, Index>;

  /// What a lane has of a slice.
  template <int Index, int Steps>
  struct Entries {
    static constexpr int whole = Steps / chunk, tail = whole * chunk, half_steps = Steps % chunk & chunk / 2;
    static constexpr bool has_last = chunk == 4 && Steps % 2 != 0;
    Chunk<chunk, Index> c[whole > 0 ? whole : 1];
    Chunk<chunk / 2, Index> half;
    Chunk<1, Index> last;
    std::uint32_t column, mask[1], id[1];
  };

  TESSERA_FUNCTION PackedShortKernel(const Wave& w, const SpmvPackedArgs& args, const Gather& gather)
      : w_(w), p_(args), gather_(gather) {}

  template <int Index, int Steps, int Count>
  TESSERA_FUNCTION void of_steps(const PackedSlice (&s)[Count], Varying<std::int32_t> (&row)[Count],
                                 Varying<Sum> (&sum)[Count]) const {
    if constexpr (Steps < (Count == 1 ? Tuning::exact : Tuning::two_steps)) {
      if (s[0].steps() != Steps) return of_steps<Index, Steps + 1>(s, row, sum);
    }
    w_.each([&](int lane) {
      Entries<Index, Steps> e[Count];
      TESSERA_UNROLL
      for (int k = 0; k < Count; ++k) load(s[k], lane, e[k]);
      TESSERA_UNROLL
      for (int k = 0; k < Count; ++k) gather(e[k]);
      TESSERA_UNROLL
      for (int k = 0; k < Count; ++k) sum[k](lane) = add(e[k]);
      TESSERA_UNROLL
      for (int k = 0; k < Count; ++k) row[k](lane) = s[k].row + static_cast<std::int32_t>(e[k].id[0] & 0xffffu);
    });
  }

  template <int Index, int Steps>
  TESSERA_FUNCTION void load(const PackedSlice& s, int lane, Entries<Index, Steps>& e) const {
    using E = Entries<Index, Steps>;
    constexpr std::uint32_t indices = Steps * lanes * value_bytes;
    const unsigned char* const base = p_.packets + static_cast<std::size_t>(s.packet) * packed_unit;
    load_chunks<Steps, E::whole, 0>(base, lane, e.c);
    if constexpr (E::half_steps > 0) load_chunks<Steps, 1, E::tail>(base, lane, &e.half);
    if constexpr (E::has_last) load_chunks<Steps, 1, E::tail + E::half_steps>(base, lane, &e.last);
    const int q = lane >> s.log_lanes();
    e.column = s.column, e.mask[0] = 0, e.id[0] = static_cast<std::uint32_t>(q);
    if constexpr (Index == PackedIndexFree) {
      constexpr std::uint32_t masks = indices + (Steps * 4 + packed_unit - 1) / packed_unit * packed_unit;
      Wave::template load_if<streaming, 4>(base + masks + 4 * lane, s.masked(), lane < s.units() ? ~0u : 0u, e.mask);
      e.column = static_cast<std::uint32_t>(s.row + q) + 0x80000000u;
    } else {
      Wave::template load_if<streaming, 2>(base + indices + Steps * lanes * (Index + 1) + 2 * q,
                                           !s.contiguous() && q < s.units(), static_cast<unsigned>(q), e.id);
    }
  }

  /// `Count` chunks from step `First` on of a slice of `Steps`.
  template <int Steps, int Count, int First, int N, int Index>
  TESSERA_FUNCTION static void load_chunks(const unsigned char* base, int lane, Chunk<N, Index>* c) {
    constexpr bool free = Chunks::template no_indices<Index>;
    constexpr int low_bytes = static_cast<int>(sizeof(typename Chunks::template Low<Index>)),
                  low_step = free ? 4 : lanes * low_bytes;
    constexpr std::uint32_t indices = Steps * lanes * value_bytes;
    if constexpr (Count > 0) {
      const auto* const low = Wave::keep(base + indices + First * low_step + (free ? 0 : lane * N * low_bytes));
      const auto* const values = Wave::keep(base + (First * lanes + lane * N) * value_bytes);
      TESSERA_UNROLL
      for (int u = 0; u < Count; ++u) {
        Wave::template load_if<streaming, N * low_bytes>(low + u * N * low_step, true, 0u, c[u].low.w);
      }
      if constexpr (Index == PackedIndex24) {
        const auto* const high = base + indices + Steps * lanes * 2 + First * lanes + lane * N;
        TESSERA_UNROLL
        for (int u = 0; u < Count; ++u) {
          Wave::template load_if<streaming, N>(high + u * N * lanes, true, 0u, c[u].high.w);
        }
      }
      TESSERA_UNROLL
      for (int u = 0; u < Count; ++u) {
        Wave::template load_if<streaming, N * value_bytes>(values + u * N * lanes * value_bytes, true, 0u,
                                                           c[u].value[0].w);
      }
    }
  }

  template <int Index, int Steps>
  TESSERA_FUNCTION void gather(Entries<Index, Steps>& e) const {
    using E = Entries<Index, Steps>;
    TESSERA_UNROLL
    for (int u = 0; u < E::whole; ++u) gather_chunk<Index>(e.column, e.mask[0], u * chunk, e.c[u]);
    if constexpr (E::half_steps > 0) gather_chunk<Index>(e.column, e.mask[0], E::tail, e.half);
    if constexpr (E::has_last) gather_chunk<Index>(e.column, e.mask[0], E::tail + E::half_steps, e.last);
  }
  /// Columns in 32 bits, which they fit: half the arithmetic of an address.
  template <int Index, int N>
  TESSERA_FUNCTION void gather_chunk(std::uint32_t first, std::uint32_t mask, int step, Chunk<N, Index>& c) const {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const std::uint32_t index = c.index(n);
      const bool on =
          Index == PackedIndexFree ? (mask >> (step + n) & 1u) != 0 : index != Chunks::template padding<Index>;
      const std::uint32_t column = first + index;
      c.x[n][0] = gather_(column, 0, on);
    }
  }

  template <int Index, int Steps>
  TESSERA_FUNCTION Sum add(const Entries<Index, Steps>& e) const {
    using E = Entries<Index, Steps>;
    typename Chunks::template Sums<1> sums;
    sums.sum[0][0] = Sum(0);
    TESSERA_UNROLL
    for (int u = 0; u < E::whole; ++u) Chunks::add(p_, e.c[u], sums);
    if constexpr (E::half_steps > 0) Chunks::add(p_, e.half, sums);
    if constexpr (E::has_last) Chunks::add(p_, e.last, sums);
    return sums.sum[0][0];
  }

  TESSERA_FUNCTION void finish(const PackedSlice& s, const Varying<std::int32_t>& row, Varying<Sum>& sum) const {
    const int log_lanes = s.log_lanes();
    for (int distance = 1; distance < (1 << log_lanes); distance *= 2) {
      Varying<Sum> other;
      w_.shuffle(other, sum, [=](int lane) { return lane ^ distance; });
      w_.each([&](int lane) { sum(lane) += other(lane); });
    }
    w_.each([&](int lane) {
      if ((lane & ((1 << log_lanes) - 1)) != 0 || (lane >> log_lanes) >= s.units()) return;
      packed_store<Value>(p_, std::int64_t{row(lane)} * p_.y_stride, sum(lane));
    });
  }

  const Wave& w_;
  const SpmvPackedArgs& p_;
  const Gather& gather_;
};

}  // namespace Tessera

#endif
