// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_LONE_ROWS_HPP
#define TESSERA_REORDER_LONE_ROWS_HPP

#include <cstdint>

#include "Tessera_Compat.hpp"
#include "core/Tessera_SegmentedSort.hpp"

/// \file
/// Which rows of an order are like a neighbour, by signatures of their columns.

namespace Tessera {
namespace reorder {

/// Parameters of clustered_rows.
struct ClusteredRowsOptions {
  int block = 1;                ///< columns of a column block
  double least_similarity = 0;  ///< of a row and a neighbour in the order, or the row stands behind: 0 ... 1
};

}  // namespace reorder

namespace Impl {

/// A permutation of 32-bit numbers that scatters neighbours, and its inverse. The low bits of the product know nothing
/// of the high bits of the number; minima are decided by the high ones, into which everything flows.
class ScatteredNumber {
 public:
  KOKKOS_INLINE_FUNCTION static std::uint32_t of(std::uint32_t number, std::uint32_t seed) {
    std::uint32_t h = (number ^ seed) * odd;
    h ^= h >> 16;
    h *= other_odd;
    return h ^ h >> 16;
  }
  KOKKOS_INLINE_FUNCTION static std::uint32_t back(std::uint32_t h, std::uint32_t seed) {
    h ^= h >> 16;
    h *= inverse(other_odd);
    h ^= h >> 16;
    return (h * inverse(odd)) ^ seed;
  }

 private:
  static constexpr std::uint32_t odd = 0x9E3779B1u, other_odd = 0x85EBCA77u;
  /// Modulo 2^32 of an odd number, by Newton's iteration: 3, 6, 12, 24, 48 right bits.
  KOKKOS_INLINE_FUNCTION static constexpr std::uint32_t inverse(std::uint32_t a) {
    std::uint32_t x = a;
    for (int i = 0; i < 4; ++i) x *= 2u - a * x;
    return x;
  }
};

/// Columns in blocks.
KOKKOS_INLINE_FUNCTION std::uint32_t column_block(std::uint32_t column, int width) {
  return width > 1 ? column / static_cast<std::uint32_t>(width) : column;
}

template <class Csr>
struct LoneRowFunctors {
  using Device = typename Csr::device_type;
  using Words = Kokkos::View<std::uint32_t*, Kokkos::LayoutLeft, Device>;
  using Order = Kokkos::View<std::int32_t*, Kokkos::LayoutLeft, Device>;
  static constexpr int signatures = 16, share = 32;
  static constexpr std::uint32_t none = ~0u;
  KOKKOS_INLINE_FUNCTION static std::uint32_t seed(int k) {
    return 0x1F83D9ABu + 0x5BE0CD19u * static_cast<std::uint32_t>(k);
  }

  /// Signature k of row r at r signatures + k; over shares of entries, however long rows are.
  struct Sign {
    Csr A;
    std::int64_t rows, nnz;
    Words words;
    int block;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t begin = i / signatures * share, end = begin + share < nnz ? begin + share : nnz;
      const int k = static_cast<int>(i % signatures);
      std::int64_t row = segment_of(A.row_map(), rows, begin);
      for (std::int64_t p = begin; p < end;) {
        const auto row_end = static_cast<std::int64_t>(A.row_map()(row + 1)), stop = row_end < end ? row_end : end;
        std::uint32_t least = none;
        for (; p < stop; ++p) {
          const std::uint32_t what = column_block(static_cast<std::uint32_t>(A.entries()(p)), block);
          const std::uint32_t h = ScatteredNumber::of(what, seed(k));
          least = h < least ? h : least;
        }
        Kokkos::atomic_fetch_min(&words(row * signatures + k), least);
        // The next row mostly; there may be any number of empty ones between.
        if (p < end && static_cast<std::int64_t>(A.row_map()(++row + 1)) <= p) row = segment_of(A.row_map(), rows, p);
      }
    }
  };

  /// Rows before each place that are like a neighbour.
  struct Place {
    using value_type = std::int64_t;
    Csr A;
    Words words;
    Order from;
    std::int64_t rows;
    double least;
    Kokkos::View<std::int64_t*, Kokkos::LayoutLeft, Device> before;

    KOKKOS_INLINE_FUNCTION bool alike(std::int64_t a, std::int64_t b) const {
      int equal = 0;
      for (int k = 0; k < signatures; ++k) {
        equal += words(std::int64_t{from(a)} * signatures + k) == words(std::int64_t{from(b)} * signatures + k);
      }
      return equal >= least * signatures;
    }
    KOKKOS_INLINE_FUNCTION bool stays(std::int64_t i) const {
      const std::int64_t row = from(i);
      if (A.row_map()(row + 1) == A.row_map()(row)) return false;  // empty rows are last and remain so
      return (i > 0 && alike(i - 1, i)) || (i + 1 < rows && alike(i, i + 1));
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& sum, const bool final) const {
      if (final) before(i) = sum;
      if (i < rows && stays(i)) ++sum;
    }
  };
  struct Move {
    Order from, to;
    std::int64_t rows;
    Kokkos::View<std::int64_t*, Kokkos::LayoutLeft, Device> before;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t earlier = before(i), all = before(rows);
      to(before(i + 1) > earlier ? earlier : all + i - earlier) = from(i);
    }
  };
};

/// `order`, with the rows that are like neither neighbour in it behind all others. What clustered_rows says of its
/// least similarity.
template <class Exec, class Csr, class Order>
Order lone_rows_last(const Exec& space, const Csr& A, const Order& order,
                     const reorder::ClusteredRowsOptions& options) {
  using F = LoneRowFunctors<Csr>;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
  if (rows == 0 || nnz == 0) return order;
  const auto count = static_cast<std::size_t>(rows);
  const auto words =
      Compat::allocate<typename F::Words>(space, "Tessera::row order::signatures", count * F::signatures);
  const auto to = Compat::allocate<Order>(space, "Tessera::row order::lone rows", count);
  const auto before = Compat::allocate<decltype(F::Move::before)>(space, "Tessera::row order::before", count + 1);
  Kokkos::deep_copy(space, words, F::none);
  Kokkos::parallel_for("Tessera::reorder[clustered rows] signatures",
                       Policy(space, 0, (nnz + F::share - 1) / F::share * F::signatures),
                       typename F::Sign{A, rows, nnz, words, options.block});
  Kokkos::parallel_scan("Tessera::reorder[clustered rows] like a neighbour", Policy(space, 0, rows + 1),
                        typename F::Place{A, words, order, rows, options.least_similarity, before});
  Kokkos::parallel_for("Tessera::reorder[clustered rows] lone rows", Policy(space, 0, rows),
                       typename F::Move{order, to, rows, before});
  Compat::fence(space, "Tessera::reorder[clustered rows]");  // arrays of this function are released here
  return to;
}

}  // namespace Impl
}  // namespace Tessera

#endif
