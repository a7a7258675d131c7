// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_HPP
#define TESSERA_SPMM_GE_SPMM_HPP

#include <cstdint>

#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_Pattern.hpp"
#include "spmm/Tessera_GeSpmmHostLaunch.hpp"
#include "spmm/Tessera_SpmmPieces.hpp"

/// \file
/// C := alpha A B + beta C straight from CSR, in Kokkos, on every back end [GE-SpMM: Huang et al., SC'20]; long rows
/// may be cut into pieces [RoDe: Pang et al., PPoPP'24].
///
/// Devices: flat lanes. A thread has 16 bytes of a row of C's width (a chunk) and a row or piece of A; neighbouring
/// threads have neighbouring chunks of the same row, so that they load the same columns and values of A at once and
/// together gather whole rows of B. GE-SpMM stages A in shared memory for that; a load that all lanes of a row share
/// costs one transaction and needs no barriers. Hosts: one thread per range of rows, vectors over columns.
///
/// Bytes: nnz (v + 4) + nnz N b (from the caches, as far as rows of B repeat) + rows (offset + N c); one launch, two
/// where rows are split; deterministic (entries of a row in order, pieces of a row in order).

namespace Tessera {
namespace Impl {

/// So many elements in one load.
template <class T, int N>
struct alignas(N * sizeof(T)) DenseChunk {
  T e[N];
};

/// V: columns of a chunk; more than 1 needs B with aligned() rows.
template <class Csr, class BT, class CT, int V>
struct GeSpmmFunctor {
  using Sum = AccumulatorOf<typename Csr::value_type, BT, CT>;
  using offset = typename Csr::size_type;
  static constexpr int store_width = V * sizeof(CT) <= 16 ? V : 16 / static_cast<int>(sizeof(CT));

  Csr A;
  Dense<const BT> b;
  Dense<CT> c;
  Sum alpha, beta;
  RowPieces<Sum> pieces;
  int shift;         ///< log2 of the chunks of a column tile
  bool wide_stores;  ///< C has aligned() rows

  template <int Width>
  KOKKOS_INLINE_FUNCTION void add(Sum (&sum)[V], Sum a, const DenseChunk<BT, Width>& x) const {
    TESSERA_UNROLL
    for (int j = 0; j < Width; ++j) sum[j] += a * widen<Sum>(x.e[j]);
  }
  KOKKOS_INLINE_FUNCTION Sum value(offset i) const { return widen<Sum>(A.values()(i)); }

  /// A whole chunk: four entries at once, so that four gathers are in flight.
  KOKKOS_INLINE_FUNCTION void whole(Sum (&sum)[V], offset i, offset last, std::int64_t column) const {
    using Chunk = DenseChunk<BT, V>;
    const BT* const from = b.data + column * b.column_stride;
    const auto chunk = [&](typename Csr::ordinal_type row) -> const Chunk& {
      return *reinterpret_cast<const Chunk*>(from + static_cast<std::int64_t>(row) * b.row_stride);
    };
    for (; i + 4 <= last; i += 4) {
      typename Csr::ordinal_type row[4];
      Sum a[4];
      Chunk x[4];
      TESSERA_UNROLL
      for (int k = 0; k < 4; ++k) row[k] = A.entries()(i + static_cast<offset>(k));
      TESSERA_UNROLL
      for (int k = 0; k < 4; ++k) a[k] = value(i + static_cast<offset>(k));
      TESSERA_UNROLL
      for (int k = 0; k < 4; ++k) x[k] = chunk(row[k]);
      TESSERA_UNROLL
      for (int k = 0; k < 4; ++k) add(sum, a[k], x[k]);
    }
    for (; i < last; ++i) add(sum, value(i), chunk(A.entries()(i)));
  }
  /// The first `width` columns of a chunk that B's row does not fill.
  KOKKOS_INLINE_FUNCTION void part(Sum (&sum)[V], offset i, offset last, std::int64_t column, int width) const {
    for (; i < last; ++i) {
      const BT* const from = b.at(static_cast<std::int64_t>(A.entries()(i)), column);
      const Sum a = value(i);
      TESSERA_UNROLL
      for (int j = 0; j < V; ++j) {
        if (j < width) sum[j] += a * widen<Sum>(from[j * b.column_stride]);
      }
    }
  }
  KOKKOS_INLINE_FUNCTION void store(const Sum (&sum)[V], std::int64_t row, std::int64_t column, int width) const {
    if (wide_stores && width == V) {
      using Chunk = DenseChunk<CT, store_width>;
      TESSERA_UNROLL
      for (int begin = 0; begin < V; begin += store_width) {
        Chunk* const to = reinterpret_cast<Chunk*>(c.at(row, column + begin));
        Chunk chunk;
        if (beta != Sum(0)) chunk = *to;
        TESSERA_UNROLL
        for (int j = 0; j < store_width; ++j) store_scaled(&chunk.e[j], alpha, sum[begin + j], beta);
        *to = chunk;
      }
      return;
    }
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) {
      if (j < width) store_scaled(c.at(row, column + j), alpha, sum[j], beta);
    }
  }

  /// index = (column tile * pieces + piece) * chunks of a tile + chunk.
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t index) const {
    std::int64_t piece = index >> shift, column = (index & ((std::int64_t(1) << shift) - 1)) * V;
    for (; piece >= pieces.count; piece -= pieces.count) column += std::int64_t(V) << shift;  // few tiles: no division
    if (column >= b.columns) return;
    const int width = b.columns - column < V ? static_cast<int>(b.columns - column) : V;
    const auto range = pieces.range(A, piece);
    Sum sum[V];
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) sum[j] = Sum(0);
    if (width == V) {
      whole(sum, range.first, range.last, column);
    } else {
      part(sum, range.first, range.last, column, width);
    }
    if (range.partial < 0) return store(sum, range.row, column, width);
    Sum* const to = pieces.partials + range.partial * pieces.partial_ld + column;
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) {
      if (j < width) to[j] = sum[j];
    }
  }
};

/// Column tiles of at most so many chunks: a wave's worth.
constexpr int ge_spmm_most_chunks = 32;

template <int V, class Exec, class Csr, class BT, class CT, class Sum>
void ge_spmm_device(const Exec& space, double alpha, const Csr& A, const Dense<const BT>& b, double beta,
                    const Dense<CT>& c, const RowPieces<Sum>& pieces) {
  using Functor = GeSpmmFunctor<Csr, BT, CT, V>;
  Functor f{A, b, c, static_cast<Sum>(alpha), static_cast<Sum>(beta), pieces, 0, c.aligned()};
  const std::int64_t chunks = (b.columns + V - 1) / V;
  while ((1 << f.shift) < ge_spmm_most_chunks && (1 << f.shift) < chunks) ++f.shift;
  const std::int64_t tiles = (chunks + (std::int64_t(1) << f.shift) - 1) >> f.shift;
  Kokkos::parallel_for(
      "Tessera::spmm[gespmm]",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, (tiles * pieces.count) << f.shift), f);
}

/// B and C with any strides; not both empty. pieces: rows, or pieces of rows with room for their sums. order: of whole
/// rows, on hosts (LengthOrder::data()).
template <class Exec, class Csr, class BT, class CT, class Sum>
void ge_spmm(const Exec& space, double alpha, const Csr& matrix, const Dense<const BT>& b, double beta,
             const Dense<CT>& c, const RowPieces<Sum>& pieces, [[maybe_unused]] const std::int32_t* order = nullptr) {
  if (c.rows == 0 || c.columns == 0) return;
  const CsrArrays<Csr> A(matrix);
  if constexpr (Compat::is_host_v<Exec>) {
    ge_spmm_host(space, alpha, A, b, beta, c, pieces, order);
  } else if (b.aligned()) {
    ge_spmm_device<16 / static_cast<int>(sizeof(BT))>(space, alpha, A, b, beta, c, pieces);
  } else {
    ge_spmm_device<1>(space, alpha, A, b, beta, c, pieces);
  }
  finish_split_rows(space, alpha, beta, c, pieces);
}

}  // namespace Impl
}  // namespace Tessera

#endif
