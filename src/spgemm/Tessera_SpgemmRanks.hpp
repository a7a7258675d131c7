// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_RANKS_HPP
#define TESSERA_SPGEMM_SPGEMM_RANKS_HPP

#include <cstdint>
#include <cstring>

#include "core/Tessera_HostLanes.hpp"

/// \file
/// Ranks of a few different columns: how many of them are smaller than each. n^2 comparisons, but several at once and
/// without a branch that depends on the columns, which for tens of columns is faster than a sort.

namespace Tessera {
namespace Impl {

/// Room that columns and ranks must have beside n: whole vectors are read and written.
constexpr int spgemm_rank_lanes = 8;

#ifdef TESSERA_HOST_VECTORS
template <int Bytes>
struct SpgemmRankLanes {
  typedef std::int32_t Vector __attribute__((vector_size(Bytes)));
};
#endif

template <int Bytes>
KOKKOS_FORCEINLINE_FUNCTION void spgemm_ranks_by(const std::int32_t* columns, int n, std::int32_t* ranks) {
#ifdef TESSERA_HOST_VECTORS
  using Vector = typename SpgemmRankLanes<Bytes>::Vector;
  constexpr int lanes = Bytes / 4;
  for (int first = 0; first < n; first += lanes) {
    Vector own, rank = {};
    std::memcpy(&own, columns + first, sizeof(own));
    for (int i = 0; i < n; ++i) rank -= columns[i] < own;  // true is -1
    std::memcpy(ranks + first, &rank, sizeof(rank));
  }
#else
  for (int first = 0; first < n; ++first) {
    ranks[first] = 0;
    for (int i = 0; i < n; ++i) ranks[first] += columns[i] < columns[first];
  }
#endif
}

#ifdef TESSERA_HOST_HAS_TARGETS
TESSERA_HOST_TARGET("avx2") inline void spgemm_ranks32(const std::int32_t* columns, int n, std::int32_t* ranks) {
  spgemm_ranks_by<32>(columns, n, ranks);
}
#endif

/// @param vector_bytes  of the CPU (host_vector_bytes)
/// @param columns, ranks  with room for spgemm_rank_lanes more, which is written
inline void spgemm_ranks(int vector_bytes, std::int32_t* columns, int n, std::int32_t* ranks) {
  std::memset(columns + n, 0, spgemm_rank_lanes * sizeof(*columns));
#ifdef TESSERA_HOST_HAS_TARGETS
  if (vector_bytes >= 32) return spgemm_ranks32(columns, n, ranks);
#endif
  (void)vector_bytes;
  spgemm_ranks_by<16>(columns, n, ranks);
}

}  // namespace Impl
}  // namespace Tessera

#endif
