// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_CHUNKS_HPP
#define TESSERA_KERNELS_SPMV_PACKED_CHUNKS_HPP

#include <cstdint>
#include <type_traits>

#include "backends/interface/Tessera_Half.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"

/// \file
/// What kernels over packed slices are compiled for, and what their lanes hold of a packet.

namespace Tessera {

/// What a kernel over packed slices is compiled for.
struct PackedKernelTuning {
  static constexpr int batch = 2;              ///< chunks that a lane has in flight
  static constexpr int columns = 1;            ///< vectors, the last of which may be absent
  static constexpr bool streaming = true;      ///< matrix loads pass the first-level cache by
  static constexpr bool groups = true;         ///< whether there are slices of grouped rows (their sums need registers)
  static constexpr bool even = false;          ///< whether slices are even, with indices of 16 or 24 bits
  static constexpr bool diagonals = false;     ///< whether slices may be of few diagonals; with `even`: whether all are
  static constexpr int slices = 1;             ///< that a wave takes, adjacent ones; more: of few diagonals, or steps
  static constexpr int exact = 0;              ///< steps up to which slices have code of their own
  static constexpr int two_steps = 0;          ///< and up to which two of them are taken at once, with `slices` = 2
  static constexpr bool exact_free = false;    ///< whether index-free ones have, too
  static constexpr bool straight_ids = false;  ///< row ids without a branch, which would wait for them
};

/// Entries of a lane in chunks, as they lie in a packet. Tuning: a PackedKernelTuning.
template <class Types, class Tuning>
struct PackedChunks {
  using Value = typename Types::Value;
  using Stored = typename Types::Stored;
  using Sum = typename Types::Sum;
  static constexpr int value_bytes = Types::value_bytes, chunk = value_bytes == 8 ? 2 : 4, columns = Tuning::columns;
  static constexpr bool stored = value_bytes > 0;

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

  template <int N, int Group, int Index>
  TESSERA_FUNCTION static void add(const SpmvPackedArgs& args, const Chunk<N, Group, Index>& c, Sums<Group>& sums,
                                   int lane = 0) {
    TESSERA_UNROLL
    for (int n = 0; n < N; ++n) {
      TESSERA_UNROLL
      for (int r = 0; r < Group; ++r) {
        Sum value;
        if constexpr (Types::storage == PackedStorage::Constant) {
          value = static_cast<Sum>(*static_cast<const Value*>(args.dictionary));
        } else if constexpr (Types::storage == PackedStorage::Dictionary) {
          value = static_cast<Sum>(static_cast<const Value*>(args.dictionary)[c.value[r].get(n)]);
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
};

}  // namespace Tessera

#endif
