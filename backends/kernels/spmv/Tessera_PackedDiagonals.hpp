// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_DIAGONALS_HPP
#define TESSERA_KERNELS_SPMV_PACKED_DIAGONALS_HPP

#include <cstdint>

#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/kernels/spmv/Tessera_PackedGather.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// Slices of few diagonals, one or two per wave. A slice is named by its number alone: its x and its packet are asked
/// for at the same time, and of two slices before anything of the first is used.

namespace Tessera {

/// Slices from `first` on, Tuning::slices or as many as there are, of one to `most_steps` steps.
template <class Types, class Wave, class Gather, class Tuning>
class PackedDiagonalKernel {
 public:
  static constexpr int most_steps = packed_most_short_diagonals;

  TESSERA_FUNCTION static void run(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                   const PackedSlice& first) {
    PackedDiagonalKernel(w, args, gather, first).template of_steps<1>();
  }

 private:
  using Value = typename Types::Value;
  using Stored = typename Types::Stored;
  using Sum = typename Types::Sum;
  static constexpr int lanes = Wave::lanes, value_bytes = Types::value_bytes, slices = Tuning::slices;
  static constexpr int chunk = value_bytes == 8 ? 2 : 4;
  static constexpr bool streaming = Tuning::streaming;
  static_assert(lanes > most_steps, "a lane per word");

  template <class T>
  using Varying = typename Wave::template Varying<T>;

  /// What a lane has of a slice: numbers in chunks as they lie in the packet, and x.
  template <int Steps>
  struct Entries {
    static constexpr int whole = Steps / chunk, tail = whole * chunk, half_steps = Steps % chunk & chunk / 2;
    static constexpr bool has_last = chunk == 4 && Steps % 2 != 0;
    Packed<Stored, chunk> values[whole > 0 ? whole : 1];
    Packed<Stored, chunk / 2> half;
    Packed<Stored, 1> last;
    Value x[Steps];

    TESSERA_FUNCTION Sum value(int step) const {
      if (step < tail) return static_cast<Sum>(values[step / chunk].get(step % chunk));
      if (step < tail + half_steps) return static_cast<Sum>(half.get(step - tail));
      return static_cast<Sum>(last.get(0));
    }
  };
  template <int Steps>
  struct Slices {
    Entries<Steps> of[slices];
  };
  struct Words {
    std::uint32_t of[slices];
  };

  TESSERA_FUNCTION PackedDiagonalKernel(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                        const PackedSlice& first)
      : w_(w), p_(args), gather_(gather), s_(first) {}

  template <int Steps>
  TESSERA_FUNCTION void of_steps() const {
    if constexpr (Steps < most_steps) {
      if (s_.steps() != Steps) return of_steps<Steps + 1>();
    }
    const std::int64_t first = s_.row;
    const bool inside = first + p_.least_offset >= 0 && first + (slices * lanes - 1) + p_.greatest_offset < p_.cols;
    Varying<Slices<Steps>> entries;
    Varying<Words> words;  // lane `step` has that of this step: which lanes have an entry; others have ones
    Varying<bool> full;
    w_.each([&](int lane) {
      TESSERA_UNROLL
      for (int k = 0; k < slices; ++k) load<Steps>(packet(k), lane, entries(lane).of[k], words(lane).of[k]);
      const auto row = static_cast<std::uint32_t>(s_.row + lane);
      if (inside) {
        TESSERA_UNROLL
        for (int k = 0; k < slices; ++k) gather<false>(row + k * lanes, entries(lane).of[k].x);
      } else {
        TESSERA_UNROLL
        for (int k = 0; k < slices; ++k) gather<true>(row + k * lanes, entries(lane).of[k].x);
      }
      std::uint32_t every = ~0u;
      TESSERA_UNROLL
      for (int k = 0; k < slices; ++k) every &= words(lane).of[k];
      full(lane) = every == ~0u;
    });
    if (w_.count(w_.ballot(full)) == lanes) {
      w_.each([&](int lane) {
        TESSERA_UNROLL
        for (int k = 0; k < slices; ++k) store(k * lanes + lane, sum<false>(entries(lane).of[k], 0));
      });
      return;
    }
    TESSERA_UNROLL
    for (int k = 0; k < slices; ++k) {
      Varying<std::uint32_t> own, other, mask;  // mask: steps in which the lane has an entry
      w_.each([&](int lane) { own(lane) = words(lane).of[k], mask(lane) = 0; });
      TESSERA_UNROLL
      for (int step = 0; step < Steps; ++step) {
        w_.shuffle(other, own, [=](int) { return step; });
        w_.each([&](int lane) { mask(lane) |= (other(lane) >> lane & 1u) << step; });
      }
      w_.each([&](int lane) { store(k * lanes + lane, sum<true>(entries(lane).of[k], mask(lane))); });
    }
  }

  /// That of slice k; the first one's again where there is none, which nobody uses.
  TESSERA_FUNCTION const unsigned char* packet(int k) const {
    const bool there = k == 0 || std::int64_t{s_.row} + k * lanes < p_.rows;
    const std::size_t at = static_cast<std::size_t>(s_.packet) + (there ? k : 0) * p_.even_slice.packet;
    return p_.packets + at * packed_unit;
  }

  template <int Steps>
  TESSERA_FUNCTION static void load(const unsigned char* base, int lane, Entries<Steps>& e, std::uint32_t& word) {
    using E = Entries<Steps>;
    std::uint32_t of_lane[1];
    Wave::template load_if<streaming, 4>(base + Steps * lanes * value_bytes + 4 * lane, lane < Steps, ~0u, of_lane);
    word = of_lane[0];
    TESSERA_UNROLL
    for (int u = 0; u < E::whole; ++u) load_values<chunk>(base, u * chunk, lane, e.values[u].w);
    if constexpr (E::half_steps > 0) load_values<chunk / 2>(base, E::tail, lane, e.half.w);
    if constexpr (E::has_last) load_values<1>(base, E::tail + E::half_steps, lane, e.last.w);
  }
  template <int N>
  TESSERA_FUNCTION static void load_values(const unsigned char* base, int step, int lane, std::uint32_t* w) {
    Wave::template load_written_if<streaming, N * value_bytes>(base + (step * lanes + lane * N) * value_bytes, true, 0u,
                                                               w);
  }

  /// x wherever an offset leads to a column; Checked: they may lead elsewhere.
  template <bool Checked, int Steps>
  TESSERA_FUNCTION void gather(std::uint32_t row, Value (&x)[Steps]) const {
    TESSERA_UNROLL
    for (int step = 0; step < Steps; ++step) {
      if constexpr (Checked) {
        const std::uint32_t there = row + static_cast<std::uint32_t>(p_.offsets[step]);
        x[step] = gather_(there, 0, there < static_cast<std::uint32_t>(p_.cols));
      } else {
        x[step] = gather_(std::int64_t{row} + p_.offsets[step], 0, true);
      }
    }
  }

  template <bool Masked, int Steps>
  TESSERA_FUNCTION static Sum sum(const Entries<Steps>& e, std::uint32_t mask) {
    Sum sum = Sum(0);
    TESSERA_UNROLL
    for (int step = 0; step < Steps; ++step) {
      Sum x = static_cast<Sum>(e.x[step]);
      if constexpr (Masked) x = (mask >> step & 1u) != 0 ? x : Sum(0);
      sum += e.value(step) * x;
    }
    return sum;
  }

  TESSERA_FUNCTION void store(int behind, Sum sum) const {
    const std::int64_t row = std::int64_t{s_.row} + behind;
    if (row < p_.rows) packed_store<Value>(p_, row * p_.y_stride, sum);
  }

  const Wave& w_;
  const SpmvPackedArgs& p_;
  const Gather& gather_;
  const PackedSlice& s_;
};

}  // namespace Tessera

#endif
