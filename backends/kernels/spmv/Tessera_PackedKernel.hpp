// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_PACKED_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/kernels/spmv/Tessera_PackedChunks.hpp"
#include "backends/kernels/spmv/Tessera_PackedDiagonals.hpp"
#include "backends/kernels/spmv/Tessera_PackedGather.hpp"
#include "backends/kernels/spmv/Tessera_PackedShort.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y in packed slices (Tessera_PackedLayout.hpp), one slice per wave. The same text on devices
/// and on hosts. Everything up to the sum of a lane is straight-line code with predicated loads: all loads of a batch
/// are issued before the first of them is needed, and indices stay packed until their gather. A branch or an early
/// unpacking would make each load wait for the one before (perf_test/notes/spmv-packed.md).
///
/// Bytes that a launch must move: the packets, 16 per slice, x and y once. No matrix instruction: an entry costs one
/// gather of x, and that, not the multiplication, is what there is too little of.

namespace Tessera {

/// Tuning: a PackedKernelTuning.
template <class Types, class Wave, class Gather, class Tuning>
class PackedKernel {
 public:
  using Value = typename Types::Value;
  using Sum = typename Types::Sum;

  TESSERA_FUNCTION static PackedSlice load_slice(const SpmvPackedArgs& args, std::uint32_t index) {
    if constexpr (Tuning::even) return packed_even_slice(args, index);
    const Word word = Wave::template load<streaming>(reinterpret_cast<const Word*>(args.slices) + index);
    PackedSlice slice;
    __builtin_memcpy(&slice, &word, sizeof(slice));
    return slice;
  }

  /// Two slices, at once if they are alike.
  TESSERA_FUNCTION static void run_two(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                       const PackedSlice& s, const PackedSlice& next) {
    if (Short::takes(s, next)) {
      const PackedSlice both[2] = {s, next};
      return Short::run(w, args, gather, both);
    }
    run(w, args, gather, s);
    run(w, args, gather, next);
  }

  TESSERA_FUNCTION static void run(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                   const PackedSlice& s) {
    if constexpr (Tuning::exact > 0 && Types::storage == PackedStorage::Full && columns == 1) {
      if (Short::takes(s)) {
        const PackedSlice one[1] = {s};
        return Short::run(w, args, gather, one);
      }
    }
    const PackedKernel kernel(w, args, gather, s);
    if constexpr (Tuning::even && Tuning::diagonals) {
      if (Tuning::slices > 1 || s.steps() - 1 < packed_most_short_diagonals) {
        return PackedDiagonalKernel<Types, Wave, Gather, Tuning>::run(w, args, gather, s);
      }
      return kernel.template slice<1, PackedDiagonals>();
    }
    if constexpr (Tuning::even) {
      return s.index() == PackedIndex16 ? kernel.template slice<1, PackedIndex16>()
                                        : kernel.template slice<1, PackedIndex24>();
    }
    if constexpr (Tuning::diagonals) {
      if (s.index() == PackedDiagonals) return kernel.template slice<1, PackedDiagonals>();
    }
    if (s.index() == PackedEmpty) return kernel.empty();
    // Few slices differ in this from their neighbours; the branches are uniform over the wave.
    if constexpr (Tuning::groups) {
      if (s.group() == 2) return kernel.template grouped<2>();
      if (s.group() == 3) return kernel.template grouped<3>();
    }
    if (s.index() == PackedIndexFree) return kernel.template slice<1, PackedIndexFree>();
    kernel.template grouped<1>();
  }

 private:
  using Chunks = PackedChunks<Types, Tuning>;
  using Short = PackedShortKernel<Types, Wave, Gather, Tuning>;
  static constexpr int lanes = Wave::lanes, value_bytes = Chunks::value_bytes, chunk = Chunks::chunk;
  static constexpr int columns = Tuning::columns;
  static constexpr bool streaming = Tuning::streaming;

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  template <int N, int Group, int Index>
  using Chunk = typename Chunks::template Chunk<N, Group, Index>;
  template <int Group>
  using Sums = typename Chunks::template Sums<Group>;
  template <int Index>
  using Low = typename Chunks::template Low<Index>;
  template <int Index>
  static constexpr bool no_indices = Chunks::template no_indices<Index>;
  template <int Index>
  static constexpr std::uint32_t padding = Chunks::template padding<Index>;
  /// What a lane needs to address its entries.
  struct Lane {
    const unsigned char *values, *low, *high;
    std::int64_t column;  // what its indices count from
    std::uint32_t mask;   // index-free: steps in which the row has an entry
    int lane;
  };

  TESSERA_FUNCTION PackedKernel(const Wave& w, const SpmvPackedArgs& args, const Gather& gather, const PackedSlice& s)
      : w_(w), p_(args), gather_(gather), s_(s) {}

  template <int Group>
  TESSERA_FUNCTION void grouped() const {
    switch (s_.index()) {
      case PackedIndex8:
        return slice<Group, PackedIndex8>();
      case PackedIndex16:
        return slice<Group, PackedIndex16>();
      case PackedIndex24:
        return slice<Group, PackedIndex24>();
      default:
        return slice<Group, PackedIndex32>();
    }
  }

  template <int Group, int Index>
  TESSERA_FUNCTION void slice() const {
    const int log_lanes = s_.log_lanes();
    const unsigned char* const base = p_.packets + static_cast<std::size_t>(s_.packet) * packed_unit;
    // As PackedPacket has them, of a kind of slice that the code knows: half the arithmetic.
    const std::uint32_t slots = static_cast<std::uint32_t>(s_.steps()) * lanes, indices = slots * (Group * value_bytes);
    const std::uint32_t ids = indices + slots * (Index + 1);
    Varying<std::int32_t> row;
    Varying<Sums<Group>> sums;
    w_.each([&](int lane) {
      // The row first: asked for now, needed last.
      const int q = lane >> log_lanes;
      row(lane) = s_.row + q * Group;
      std::uint32_t id[1];
      if constexpr (Tuning::straight_ids && !no_indices<Index>) {
        Wave::template load_if<streaming, 2>(base + ids + 2 * q, s_.has_ids() && q < s_.units(),
                                             static_cast<unsigned>(q * Group), id);
        row(lane) = s_.row + static_cast<std::int32_t>(id[0] & 0xffffu);
      } else if (!no_indices<Index> && s_.has_ids()) {
        Wave::template load_if<streaming, 2>(base + ids + 2 * q, q < s_.units(), 0u, id);
        row(lane) = s_.row + static_cast<std::int32_t>(id[0] & 0xffffu);
      }
      Lane at;
      at.lane = lane;
      at.values = base;
      at.low = base + indices;
      at.high = at.low + (Index == PackedIndexFree ? PackedPacket::round_up(static_cast<std::size_t>(s_.steps()) * 4)
                                                   : std::size_t{slots} * 2);
      at.column = no_indices<Index> ? row(lane) : static_cast<std::int64_t>(s_.column);
      at.mask = 0;
      if (Index == PackedIndexFree) {
        std::uint32_t mask[1] = {lane < s_.units() ? ~0u : 0u};
        if (s_.masked()) Wave::template load_if<streaming, 4>(at.high + 4 * lane, true, 0u, mask);
        at.mask = mask[0];
      }
      lane_sums<Group, Index>(at, sums(lane));
    });
    for (int distance = 1; distance < (1 << log_lanes); distance *= 2) {
      TESSERA_UNROLL
      for (int r = 0; r < Group; ++r) {
        TESSERA_UNROLL
        for (int j = 0; j < columns; ++j) {
          Varying<Sum> own, other;
          w_.each([&](int lane) { own(lane) = sums(lane).sum[r][j]; });
          w_.shuffle(other, own, [=](int lane) { return lane ^ distance; });
          w_.each([&](int lane) { sums(lane).sum[r][j] += other(lane); });
        }
      }
    }
    if (Group == 1 && !no_indices<Index> && s_.part()) return finish_part(sums);
    w_.each([&](int lane) {
      if ((lane & ((1 << log_lanes) - 1)) != 0 || (lane >> log_lanes) >= s_.units()) return;
      TESSERA_UNROLL
      for (int r = 0; r < Group; ++r) store(row(lane) + r, sums(lane).sum[r]);
    });
  }

  /// Rows without entries: all ids of a lane are asked for before the first of them is needed.
  TESSERA_FUNCTION void empty() const {
    constexpr int batch = 4;
    const int rows = s_.rows();
    const unsigned char* const ids = p_.packets + static_cast<std::size_t>(s_.packet) * packed_unit;
    const bool has_ids = s_.has_ids();
    w_.each([&](int lane) {
      for (int first = lane; first < rows; first += batch * lanes) {
        std::uint32_t id[batch][1];
        TESSERA_UNROLL
        for (int n = 0; n < batch; ++n) {
          const int q = first + n * lanes;
          Wave::template load_if<streaming, 2>(ids + 2 * q, has_ids && q < rows, static_cast<unsigned>(q), id[n]);
        }
        const Sum none[columns] = {};
        TESSERA_UNROLL
        for (int n = 0; n < batch; ++n) {
          if (first + n * lanes < rows) store(s_.row + static_cast<std::int32_t>(id[n][0] & 0xffffu), none);
        }
      }
    });
  }

  /// The last part of a row to arrive adds the sums of all, in their order.
  template <int Group>
  TESSERA_FUNCTION void finish_part(Varying<Sums<Group>>& sums) const {
    PackedPart part;
    const Word word = Wave::template load<streaming>(reinterpret_cast<const Word*>(p_.parts) + s_.row);
    __builtin_memcpy(&part, &word, sizeof(part));
    Sum* const partials = static_cast<Sum*>(p_.partials) + static_cast<std::size_t>(part.first) * columns;
    TESSERA_UNROLL
    for (int j = 0; j < columns; ++j) {
      Varying<Sum> own;  // after the reduction every lane holds the part's sum
      w_.each([&](int lane) { own(lane) = sums(lane).sum[0][j]; });
      w_.publish(partials + part.which * columns + j, w_.first(own));
    }
    if (!w_.last_to_arrive(p_.arrivals + part.first, part.count)) return;
    Sum whole[columns];
    constexpr std::uint32_t batch = 8;
    TESSERA_UNROLL
    for (int j = 0; j < columns; ++j) {
      Varying<Sum> sum;
      w_.each([&](int lane) {
        sum(lane) = Sum(0);
        for (std::uint32_t first = static_cast<std::uint32_t>(lane); first < part.count; first += batch * lanes) {
          Sum others[batch];  // of a row of thousands of parts many are asked for at once, and added in their order
          TESSERA_UNROLL
          for (std::uint32_t n = 0; n < batch; ++n) {
            const std::uint32_t i = first + n * lanes;
            others[n] = i < part.count ? Wave::read_published(partials + i * columns + j) : Sum(0);
          }
          TESSERA_UNROLL
          for (std::uint32_t n = 0; n < batch; ++n) sum(lane) += others[n];
        }
      });
      whole[j] = w_.sum(sum);
    }
    w_.each([&](int lane) {
      if (lane == 0) store(part.row, whole);
    });
  }

  // ---- a lane's entries

  template <int Group, int Index>
  TESSERA_FUNCTION void lane_sums(const Lane& at, Sums<Group>& sums) const {
    const int steps = s_.steps(), whole = steps / chunk, rest = steps % chunk, tail = whole * chunk;
    TESSERA_UNROLL
    for (int r = 0; r < Group; ++r) {
      TESSERA_UNROLL
      for (int j = 0; j < columns; ++j) sums.sum[r][j] = Sum(0);
    }
    Chunk<chunk / 2, Group, Index> half;
    Chunk<1, Group, Index> last;
    const bool has_half = (rest & (chunk / 2)) != 0, has_last = chunk == 4 && (rest & 1) != 0;
    const int half_steps = has_half ? chunk / 2 : 0;
    load(at, tail, has_half, half);
    if constexpr (chunk == 4) load(at, tail + half_steps, has_last, last);
    constexpr int batch = Group == 1              ? Tuning::batch
                          : Tuning::batch / 2 > 0 ? Tuning::batch / 2
                                                  : 1;  // groups hold more values per step
    Chunk<chunk, Group, Index> c[batch];
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) load(at, u * chunk, u < whole, c[u]);
    gather<Index>(at, tail, half);
    if constexpr (chunk == 4) gather<Index>(at, tail + half_steps, last);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) gather<Index>(at, u * chunk, c[u]);
    TESSERA_UNROLL
    for (int u = 0; u < batch; ++u) Chunks::add(p_, c[u], sums, at.lane);
    for (int first = batch; first < whole; first += batch) {
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) load(at, (first + u) * chunk, first + u < whole, c[u]);
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) gather<Index>(at, (first + u) * chunk, c[u]);
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) Chunks::add(p_, c[u], sums, at.lane);
    }
    Chunks::add(p_, half, sums, at.lane);
    if constexpr (chunk == 4) Chunks::add(p_, last, sums, at.lane);
  }

  template <int N, int Group, int Index>
  TESSERA_FUNCTION static void load(const Lane& at, int step, bool on, Chunk<N, Group, Index>& c) {
    constexpr int low_bytes = static_cast<int>(sizeof(Low<Index>));
    // Without indices there is one word per step, which all lanes read.
    const std::size_t low = no_indices<Index> ? static_cast<std::size_t>(step) * 4
                                              : (static_cast<std::size_t>(step) * lanes + at.lane * N) * low_bytes;
    Wave::template load_if<streaming, N * low_bytes>(at.low + low, on, Index == PackedDiagonals ? 0u : ~0u, c.low.w);
    if constexpr (Index == PackedIndex24) {
      Wave::template load_if<streaming, N>(at.high + static_cast<std::size_t>(step) * lanes + at.lane * N, on, ~0u,
                                           c.high.w);
    }
    if constexpr (Chunks::stored) {
      const unsigned char* const v =
          at.values + (static_cast<std::size_t>(step) * Group * lanes + at.lane * N) * value_bytes;
      TESSERA_UNROLL
      for (int r = 0; r < Group; ++r) {
        if constexpr (Tuning::even && Tuning::diagonals) {
          Wave::template load_written_if<streaming, N * value_bytes>(v, on, 0u, c.value[r].w);
        } else {
          Wave::template load_if<streaming, N * value_bytes>(v + r * (N * lanes * value_bytes), on, 0u, c.value[r].w);
        }
      }
    }
  }

  template <int Index, int N, int Group>
  TESSERA_FUNCTION void gather(const Lane& at, int step, Chunk<N, Group, Index>& c) const {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const std::uint32_t index = c.index(n);
      bool on = index != padding<Index>;
      std::int64_t column = at.column;
      if constexpr (Index == PackedDiagonals) {
        // Where x lies is known from the row, so that nothing waits for the packet; what is not an entry is not used.
        const std::uint32_t there =
            static_cast<std::uint32_t>(at.column) + static_cast<std::uint32_t>(p_.offsets[step + n]);
        on = step + n < s_.steps() && there < static_cast<std::uint32_t>(p_.cols);
        column = there;
      } else if constexpr (Index == PackedIndexFree) {
        on = on && (at.mask >> ((step + n) & 31) & 1u) != 0;
        column += static_cast<std::int32_t>(index ^ 0x80000000u);
      } else {
        column += index;
      }
      TESSERA_UNROLL
      for (int j = 0; j < columns; ++j) {
        c.x[n][j] = gather_(column, j, on && (columns == 1 || j < p_.columns));
      }
    }
  }

  TESSERA_FUNCTION void store(std::int64_t row, const Sum (&sum)[columns]) const {
    TESSERA_UNROLL
    for (int j = 0; j < columns; ++j) {
      if (columns > 1 && j >= p_.columns) break;
      packed_store<Value>(p_, row * p_.y_stride + j * p_.y_column_stride, sum[j]);
    }
  }

  const Wave& w_;
  const SpmvPackedArgs& p_;
  const Gather& gather_;
  const PackedSlice& s_;
};

}  // namespace Tessera

#endif
