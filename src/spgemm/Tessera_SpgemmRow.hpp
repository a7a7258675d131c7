// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_ROW_HPP
#define TESSERA_SPGEMM_SPGEMM_ROW_HPP

#include <cstdint>

#include "core/Tessera_Pattern.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// A row of C = A B as all methods see it [Gustavson, TOMS 1978]: for every entry (i, k) of A's row the row k of B,
/// times a_ik. Methods sum the products of a column in this order, from 0 on, so that all of them give the same bits
/// where the compiler does not fuse multiplications with additions.

namespace Tessera {
namespace Impl {

/// What scratch depends on.
struct SpgemmSizes {
  std::int64_t cols = 0;      ///< of C
  std::int64_t products = 0;  ///< of the row with the most
  std::int64_t entries = 0;   ///< of the longest row of A
  bool scattered = false;     ///< columns of a row of C are far apart in a wide C, as far as a sample shows
};

/// The columns of B as words of 64 bits: of each row its words with an entry, ascending.
struct SpgemmWords {
  const std::int64_t* begin = nullptr;  ///< of each row; null: there are none
  const std::uint32_t* word = nullptr;
  const std::uint64_t* bits = nullptr;
};

/// How many are set.
KOKKOS_INLINE_FUNCTION int spgemm_bits(std::uint32_t word) {
  word -= word >> 1 & 0x55555555u;
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  return static_cast<int>(((word + (word >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

/// Where a row begins.
template <class Csr>
KOKKOS_INLINE_FUNCTION std::int64_t row_begin(const CsrArrays<Csr>& m, std::int64_t row) {
  return static_cast<std::int64_t>(m.row_map()(row));
}

template <class Csr>
struct SpgemmMatrices {
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;
  CsrArrays<Csr> A, B;
  bool sorted;                 ///< columns of B's rows ascend (copies of a column allowed)
  const std::int64_t* before;  ///< products of all rows before each; rows + 1
  SpgemmWords words;

  SpgemmMatrices(const Csr& a, const Csr& b, bool ascending, const std::int64_t* products_before, const SpgemmWords& w)
      : A(a), B(b), sorted(ascending), before(products_before), words(w) {}

  std::int64_t products(std::int64_t row) const { return before[row + 1] - before[row]; }
  /// f(first, end, e): the entries of B that A's entry e is multiplied with; not where there are none. Rows of B that
  /// come later, of this row and the next ones, are asked for ahead: where they are short and far apart, they are what
  /// takes the time.
  template <bool Numbers = true, class F>
  void each_row_of_b(std::int64_t row, const F& f) const {
    constexpr std::int64_t ahead = spgemm_rows_ahead;
    const std::int64_t end = row_begin(A, row + 1), all = A.entries().size();
    for (std::int64_t e = row_begin(A, row); e < end; ++e) {
      if (e + 2 * ahead < all) __builtin_prefetch(B.row_map().data() + A.entries()(e + 2 * ahead));
      if (e + ahead < all) {
        const std::int64_t later = row_begin(B, static_cast<std::int64_t>(A.entries()(e + ahead)));
        __builtin_prefetch(B.entries().data() + later);
        if (Numbers) __builtin_prefetch(B.values().data() + later);
      }
      const auto k = static_cast<std::int64_t>(A.entries()(e));
      const std::int64_t first = row_begin(B, k), last = row_begin(B, k + 1);
      if (first < last) f(first, last, e);
    }
  }
  /// f(first, end): the words of the rows of B that A's row names; not where there are none.
  template <class F>
  void each_row_of_words(std::int64_t row, const F& f) const {
    const std::int64_t end = row_begin(A, row + 1);
    for (std::int64_t e = row_begin(A, row); e < end; ++e) {
      const auto k = static_cast<std::int64_t>(A.entries()(e));
      if (words.begin[k] < words.begin[k + 1]) f(words.begin[k], words.begin[k + 1]);
    }
  }
  /// f(column) for all products.
  template <class F>
  void each_column(std::int64_t row, const F& f) const {
    each_row_of_b<false>(row, [&](std::int64_t first, std::int64_t last, std::int64_t) {
      for (std::int64_t t = first; t < last; ++t) f(B.entries()(t));
    });
  }
  /// f(column, product) for all of them.
  template <class F>
  void each_product(std::int64_t row, const F& f) const {
    each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      const Scalar a = A.values()(e);
      for (std::int64_t t = first; t < last; ++t) f(B.entries()(t), a * B.values()(t));
    });
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
