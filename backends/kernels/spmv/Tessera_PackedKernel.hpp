// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_KERNEL_HPP
#define TESSERA_KERNELS_SPMV_PACKED_KERNEL_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/kernels/spmv/Tessera_PackedDiagonals.hpp"
#include "backends/kernels/spmv/Tessera_PackedGather.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// y := alpha A x + beta y in packed slices (Tessera_PackedLayout.hpp), one slice per wave. The same text on devices
/// and on hosts. Everything up to the sum of a lane is straight-line code with predicated loads: all loads of a batch
/// are issued before the first of them is needed, and indices stay packed until their gather. A branch or an early
/// unpacking would make each load wait for the one before (perf_test/notes/spmv-packed.md). Slices of few steps have
/// code of their own for each number of them: there instructions, not bytes, are what most time goes into.
///
/// Bytes that a launch must move: the packets, 16 per slice, x and y once. No matrix instruction: an entry costs one
/// gather of x, and that, not the multiplication, is what there is too little of.

namespace Tessera {

/// What a kernel over packed slices is compiled for.
struct PackedKernelTuning {
  static constexpr int batch = 2;              ///< chunks that a lane has in flight
  static constexpr int columns = 1;            ///< vectors, the last of which may be absent
  static constexpr bool streaming = true;      ///< matrix loads pass the first-level cache by
  static constexpr bool groups = true;         ///< whether there are slices of grouped rows (their sums need registers)
  static constexpr bool even = false;          ///< whether slices are even, with indices of 16 or 24 bits
  static constexpr bool diagonals = false;     ///< whether slices may be of few diagonals; with `even`: whether all are
  static constexpr int slices = 1;             ///< that a wave takes, adjacent ones; more: of few diagonals alone
  static constexpr int exact = 0;              ///< steps up to which slices have code of their own
  static constexpr bool exact_free = false;    ///< whether index-free ones have, too
  static constexpr bool straight_ids = false;  ///< row ids without a branch, which would wait for them
};

/// Tuning: a PackedKernelTuning.
template <class Types, class Wave, class Gather, class Tuning>
class PackedKernel {
 public:
  using Value = typename Types::Value;
  using Stored = typename Types::Stored;
  using Sum = typename Types::Sum;

  TESSERA_FUNCTION static PackedSlice load_slice(const SpmvPackedArgs& args, std::uint32_t index) {
    if constexpr (Tuning::even) return packed_even_slice(args, index);
    const Word word = Wave::template load<streaming>(reinterpret_cast<const Word*>(args.slices) + index);
    PackedSlice slice;
    __builtin_memcpy(&slice, &word, sizeof(slice));
    return slice;
  }

  TESSERA_FUNCTION static void run(const Wave& w, const SpmvPackedArgs& args, const Gather& gather,
                                   const PackedSlice& s) {
    const PackedKernel kernel(w, args, gather, s);
    if constexpr (Tuning::exact > 0 && Types::storage == PackedStorage::Full && columns == 1) {
      if (s.steps() - 1 < Tuning::exact && s.steps() > 0 && !s.part() && s.group() == 1 &&
          (Tuning::exact_free || s.index() != PackedIndexFree)) {
        return kernel.exact();
      }
    }
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
  static constexpr int lanes = Wave::lanes, value_bytes = Types::value_bytes;
  static constexpr int chunk = value_bytes == 8 ? 2 : 4;
  static constexpr int columns = Tuning::columns;
  static constexpr bool stored = value_bytes > 0, streaming = Tuning::streaming;

  template <class T>
  using Varying = typename Wave::template Varying<T>;
  template <int Index>
  using Low = std::conditional_t<
      Index == PackedIndex8, std::uint8_t,
      std::conditional_t<Index == PackedIndex16 || Index == PackedIndex24, std::uint16_t, std::uint32_t>>;

  /// Whether a packet names columns without an index per entry.
  template <int Index>
  static constexpr bool no_indices = Index == PackedIndexFree || Index == PackedDiagonals;

  template <int N, int Group, int Index>
  struct Chunk {
    Packed<std::conditional_t<stored, Stored, std::uint8_t>, N> value[stored ? Group : 1];
    Packed<Low<Index>, N> low;
    Packed<std::uint8_t, N> high;  // 24-bit indices only
    Value x[N][columns];

    TESSERA_FUNCTION std::uint32_t index(int n) const {
      std::uint32_t index = low.get(n);
      if constexpr (Index == PackedIndex24) index |= static_cast<std::uint32_t>(high.get(n)) << 16;
      return index;
    }
  };
  template <int Index>
  static constexpr std::uint32_t padding = Index == PackedIndex8    ? 0xffu
                                           : Index == PackedIndex16 ? 0xffffu
                                           : Index == PackedIndex24 ? 0xffffffu
                                                                    : 0xffffffffu;
  template <int Group>
  struct Sums {
    Sum sum[Group][columns];
  };

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
    TESSERA_UNROLL
    for (int j = 0; j < columns; ++j) {
      Varying<Sum> sum;
      w_.each([&](int lane) {
        sum(lane) = Sum(0);
        for (std::uint32_t i = static_cast<std::uint32_t>(lane); i < part.count; i += lanes) {
          sum(lane) += Wave::read_published(partials + i * columns + j);
        }
      });
      whole[j] = w_.sum(sum);
    }
    w_.each([&](int lane) {
      if (lane == 0) store(part.row, whole);
    });
  }

  // ---- slices of few steps

  /// A slice whose number of steps the code knows: no load and no gather but those that are needed, at constant
  /// distances from the packet, and one end for all of them.
  TESSERA_FUNCTION void exact() const {
    Varying<std::int32_t> row;
    Varying<Sum> sum;
    switch (s_.index()) {
      case PackedIndex8:
        exact_steps<PackedIndex8, 1>(row, sum);
        break;
      case PackedIndex16:
        exact_steps<PackedIndex16, 1>(row, sum);
        break;
      case PackedIndex24:
        exact_steps<PackedIndex24, 1>(row, sum);
        break;
      case PackedIndex32:
        exact_steps<PackedIndex32, 1>(row, sum);
        break;
      default:
        if constexpr (Tuning::exact_free) exact_steps<PackedIndexFree, 1>(row, sum);
    }
    const int log_lanes = s_.log_lanes();
    for (int distance = 1; distance < (1 << log_lanes); distance *= 2) {
      Varying<Sum> other;
      w_.shuffle(other, sum, [=](int lane) { return lane ^ distance; });
      w_.each([&](int lane) { sum(lane) += other(lane); });
    }
    w_.each([&](int lane) {
      if ((lane & ((1 << log_lanes) - 1)) != 0 || (lane >> log_lanes) >= s_.units()) return;
      const Sum whole[1] = {sum(lane)};
      store(row(lane), whole);
    });
  }

  template <int Index, int Steps>
  TESSERA_FUNCTION void exact_steps(Varying<std::int32_t>& row, Varying<Sum>& sum) const {
    if constexpr (Steps < Tuning::exact) {
      if (s_.steps() != Steps) return exact_steps<Index, Steps + 1>(row, sum);
    }
    w_.each([&](int lane) { sum(lane) = exact_sum<Index, Steps>(lane, row(lane)); });
  }

  template <int Index, int Steps>
  TESSERA_FUNCTION Sum exact_sum(int lane, std::int32_t& row) const {
    constexpr int whole = Steps / chunk, tail = whole * chunk, half_steps = Steps % chunk & chunk / 2;
    constexpr bool has_last = chunk == 4 && Steps % 2 != 0;
    constexpr std::uint32_t indices = Steps * lanes * value_bytes;
    const unsigned char* const base = p_.packets + static_cast<std::size_t>(s_.packet) * packed_unit;
    Chunk<chunk, 1, Index> c[whole > 0 ? whole : 1];
    Chunk<chunk / 2, 1, Index> half;
    Chunk<1, 1, Index> last;
    load_exact<Steps, whole, 0>(base, lane, c);
    if constexpr (half_steps > 0) load_exact<Steps, 1, tail>(base, lane, &half);
    if constexpr (has_last) load_exact<Steps, 1, tail + half_steps>(base, lane, &last);
    const int q = lane >> s_.log_lanes();
    std::uint32_t column = s_.column, mask[1] = {0}, id[1] = {static_cast<std::uint32_t>(q)};
    if constexpr (Index == PackedIndexFree) {
      constexpr std::uint32_t masks = indices + (Steps * 4 + packed_unit - 1) / packed_unit * packed_unit;
      Wave::template load_if<streaming, 4>(base + masks + 4 * lane, s_.masked(), lane < s_.units() ? ~0u : 0u, mask);
      column = static_cast<std::uint32_t>(s_.row + q) + 0x80000000u;
    } else {
      Wave::template load_if<streaming, 2>(base + indices + Steps * lanes * (Index + 1) + 2 * q,
                                           !s_.contiguous() && q < s_.units(), static_cast<unsigned>(q), id);
    }
    TESSERA_UNROLL
    for (int u = 0; u < whole; ++u) gather_exact<Index>(column, mask[0], u * chunk, c[u]);
    if constexpr (half_steps > 0) gather_exact<Index>(column, mask[0], tail, half);
    if constexpr (has_last) gather_exact<Index>(column, mask[0], tail + half_steps, last);
    Sums<1> sums;
    sums.sum[0][0] = Sum(0);
    TESSERA_UNROLL
    for (int u = 0; u < whole; ++u) add(c[u], sums);
    if constexpr (half_steps > 0) add(half, sums);
    if constexpr (has_last) add(last, sums);
    row = s_.row + static_cast<std::int32_t>(id[0] & 0xffffu);
    return sums.sum[0][0];
  }

  /// `Count` chunks from step `First` on of a slice of `Steps`.
  template <int Steps, int Count, int First, int N, int Index>
  TESSERA_FUNCTION static void load_exact(const unsigned char* base, int lane, Chunk<N, 1, Index>* c) {
    constexpr bool free = no_indices<Index>;
    constexpr int low_bytes = static_cast<int>(sizeof(Low<Index>)), low_step = free ? 4 : lanes * low_bytes;
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

  /// Columns in 32 bits, which they fit: half the arithmetic of an address.
  template <int Index, int N>
  TESSERA_FUNCTION void gather_exact(std::uint32_t first, std::uint32_t mask, int step, Chunk<N, 1, Index>& c) const {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      const std::uint32_t index = c.index(n);
      const bool on = Index == PackedIndexFree ? (mask >> (step + n) & 1u) != 0 : index != padding<Index>;
      const std::uint32_t column = first + index;
      c.x[n][0] = gather_(column, 0, on);
    }
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
    for (int u = 0; u < batch; ++u) add(c[u], sums, at.lane);
    for (int first = batch; first < whole; first += batch) {
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) load(at, (first + u) * chunk, first + u < whole, c[u]);
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) gather<Index>(at, (first + u) * chunk, c[u]);
      TESSERA_UNROLL
      for (int u = 0; u < batch; ++u) add(c[u], sums, at.lane);
    }
    add(half, sums, at.lane);
    if constexpr (chunk == 4) add(last, sums, at.lane);
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
    if constexpr (stored) {
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

  template <int N, int Group, int Index>
  TESSERA_FUNCTION void add(const Chunk<N, Group, Index>& c, Sums<Group>& sums, int lane = 0) const {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      TESSERA_UNROLL
      for (int r = 0; r < Group; ++r) {
        Sum value;
        if constexpr (Types::storage == PackedStorage::Constant) {
          value = static_cast<Sum>(*static_cast<const Value*>(p_.dictionary));
        } else if constexpr (Types::storage == PackedStorage::Dictionary) {
          value = static_cast<Sum>(static_cast<const Value*>(p_.dictionary)[c.value[r].get(n)]);
        } else {
          value = static_cast<Sum>(c.value[r].get(n));
        }
        TESSERA_UNROLL
        for (int j = 0; j < columns; ++j) {
          Sum x = static_cast<Sum>(c.x[n][j]);
          if constexpr (Index == PackedDiagonals) x = (c.low.get(n) >> lane & 1u) != 0 ? x : Sum(0);
          sums.sum[r][j] += value * x;
        }
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
