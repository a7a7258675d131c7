// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_BLOCKS_HPP
#define TESSERA_CORE_BLOCKS_HPP

#include <cstdint>

#include "Tessera_BsrView.hpp"
#include "backends/interface/Tessera_BsrArgs.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_Transpose.hpp"

/// \file
/// Block matrices: where a number lies, A^T by blocks, and written out as compressed rows.

namespace Tessera {
namespace Impl {

/// A block matrix as kernels take it: its arrays, not owned.
template <class Bsr>
struct BsrArrays {
  using value_type = typename Bsr::value_type;
  using ordinal_type = typename Bsr::ordinal_type;
  using size_type = typename Bsr::size_type;

  std::int64_t block_rows, block;
  BlockOrder order;
  const size_type* row_map;
  const ordinal_type* entries;
  const value_type* values;

  explicit BsrArrays(const Bsr& A)
      : block_rows(static_cast<std::int64_t>(A.block_rows())),
        block(A.block()),
        order(A.order()),
        row_map(A.row_map().data()),
        entries(A.entries().data()),
        values(A.values().data()) {}

  KOKKOS_INLINE_FUNCTION std::int64_t first(std::int64_t block_row) const {
    return static_cast<std::int64_t>(row_map[block_row]);
  }
  /// Of the block row's numbers, counted from `first(block_row) * block * block`.
  KOKKOS_INLINE_FUNCTION BsrSteps steps(std::int64_t block_row) const {
    return BsrSteps::of(order, block, first(block_row + 1) - first(block_row));
  }
};

/// The block pattern, whose entries are blocks.
template <class Bsr>
using BlockPatternOf = CsrPattern<typename Bsr::ordinal_type, typename Bsr::size_type, typename Bsr::device_type>;
template <class Bsr>
BlockPatternOf<Bsr> block_pattern_of(const Bsr& A) {
  using Pattern = BlockPatternOf<Bsr>;
  return Pattern(A.block_rows(), A.block_cols(),
                 typename Pattern::row_map_type(A.row_map().data(), A.row_map().extent(0)),
                 typename Pattern::entries_type(A.entries().data(), A.blocks()));
}

/// One thread per number of A^T, so that neighbours write neighbours.
template <class Bsr, class Pattern, class Values>
struct TransposeBlocks {
  BsrArrays<Bsr> A;
  Pattern t;
  Values to;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t at) const {
    const std::int64_t b = A.block, k = at / (b * b), i = at % (b * b) / b, j = at % b;
    const auto from = static_cast<std::int64_t>(t.source(k)), row = static_cast<std::int64_t>(t.entries(k));
    const BsrSteps steps = A.steps(row);
    const std::int64_t first = A.first(row);
    to(at) = A.values[first * b * b + (from - first) * steps.block + j * steps.row + i * steps.column];
  }
};

/// Rows of the written-out matrix. Row i of block row r holds row i of its blocks from left to right. A vector of lanes
/// per block row writes its entries side by side. Without `entries` the values alone.
template <class Bsr>
struct ExpandBlocks {
  using Exec = typename Bsr::execution_space;
  using Device = typename Bsr::device_type;
  using Offset = typename Bsr::size_type;
  using Ordinal = typename Bsr::ordinal_type;

  BsrArrays<Bsr> A;
  Kokkos::View<Offset*, Kokkos::LayoutLeft, Device> row_map;
  Kokkos::View<Ordinal*, Kokkos::LayoutLeft, Device> entries;
  Kokkos::View<typename Bsr::value_type*, Kokkos::LayoutLeft, Device> values;
  int per_team = 1;

  KOKKOS_INLINE_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
    const std::int64_t top = std::int64_t{team.league_rank()} * per_team;
    const std::int64_t end = top + per_team < A.block_rows ? top + per_team : A.block_rows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, top, end), [&](const std::int64_t row) {
      const std::int64_t b = A.block, first = A.first(row), blocks = A.first(row + 1) - first;
      const BsrSteps steps = A.steps(row);
      const bool pattern = entries.data() != nullptr;
      for (std::int64_t i = 0; i < b; ++i) {
        const std::int64_t to = first * b * b + i * blocks * b;
        if (pattern) Kokkos::single(Kokkos::PerThread(team), [&]() { row_map(row * b + i) = static_cast<Offset>(to); });
        Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, blocks * b), [&](const std::int64_t at) {
          const std::int64_t k = at / b, j = at - k * b;
          values(to + at) = A.values[first * b * b + k * steps.block + i * steps.row + j * steps.column];
          if (pattern) {
            entries(to + at) = static_cast<Ordinal>(static_cast<std::int64_t>(A.entries[first + k]) * b + j);
          }
        });
      }
      if (pattern && row + 1 == A.block_rows) {
        Kokkos::single(Kokkos::PerThread(team),
                       [&]() { row_map(A.block_rows * b) = static_cast<Offset>((first + blocks) * b * b); });
      }
    });
  }
};

/// Runs ExpandBlocks into the arrays that `expand` has.
template <class Exec, class Bsr>
void expand_blocks(const Exec& space, ExpandBlocks<Bsr> expand) {
  if (expand.A.block_rows == 0) return;
  constexpr bool host = Compat::is_host_v<Exec>;
  expand.per_team = host ? 64 : 8;
  const std::int64_t teams = (expand.A.block_rows + expand.per_team - 1) / expand.per_team;
  Kokkos::parallel_for("Tessera::convert[blocks]",
                       Kokkos::TeamPolicy<Exec>(space, static_cast<int>(teams), host ? 1 : 8, host ? 1 : 32), expand);
}

}  // namespace Impl

/// A^T by blocks, RowMajor, with its own arrays.
template <class S, class O, class F, class D>
struct Transposed<BsrView<S, O, F, D>> {
  using Bsr = BsrView<S, O, F, D>;
  Impl::TransposedPattern<Impl::BlockPatternOf<Bsr>> pattern;
  Kokkos::View<S*, Kokkos::LayoutLeft, D> values;
  Bsr from;  ///< keeps the arrays that new values are read by

  Bsr view() const {
    return {from.block_cols(), from.block_rows(), from.block(), pattern.row_map, pattern.entries, values};
  }
};

/// New numbers for a transposed block matrix; one gather.
template <class Exec, class S, class O, class F, class D>
void update_transposed_values(const Exec& space, const Transposed<BsrView<S, O, F, D>>& t,
                              const typename BsrView<S, O, F, D>::values_type& values) {
  using Bsr = BsrView<S, O, F, D>;
  using Gather = Impl::TransposeBlocks<Bsr, decltype(t.pattern), decltype(t.values)>;
  const Impl::BsrArrays<Bsr> A(Impl::with_values(t.from, values));
  Kokkos::parallel_for(
      "Tessera::convert[transpose] blocks",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(values.extent(0))),
      Gather{A, t.pattern, t.values});
}

/// A^T by blocks. Deterministic; work and memory as of CSR (core/Tessera_Transpose.hpp), counted in blocks, and the
/// numbers again.
template <class Exec, class S, class O, class F, class D>
Transposed<BsrView<S, O, F, D>> transpose(const Exec& space, const BsrView<S, O, F, D>& A) {
  const Compat::ScopedRegion region("Tessera::convert[transpose]");
  Transposed<BsrView<S, O, F, D>> t;
  t.from = A;
  t.pattern = Impl::transposed_pattern(space, Impl::block_pattern_of(A));
  t.values = decltype(t.values)("Tessera::transpose::values", A.nnz());
  update_transposed_values(space, t, A.values());
  Compat::fence(space, "Tessera::convert[transpose]");
  return t;
}

}  // namespace Tessera

#endif
