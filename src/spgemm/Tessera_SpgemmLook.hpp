// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_LOOK_HPP
#define TESSERA_SPGEMM_SPGEMM_LOOK_HPP

#include <algorithm>
#include <cstdint>

#include "Tessera_Compat.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// What every plan looks at: products per row, the order of B's columns, their words of 64.

namespace Tessera {
namespace Impl {

/// A first look at both matrices.
template <class Csr>
struct SpgemmLook {
  CsrArrays<Csr> A, B;
  std::int64_t* before;  ///< products of all rows of C before each
};
/// Products of each row, not summed yet, one place further; the most of a row, of C and of A.
template <class Csr>
struct SpgemmProducts : SpgemmLook<Csr> {
  explicit SpgemmProducts(const SpgemmLook<Csr>& look) : SpgemmLook<Csr>(look) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& products, std::int64_t& entries) const {
    const std::int64_t first = row_begin(this->A, row), last = row_begin(this->A, row + 1);
    std::int64_t sum = 0;
    for (std::int64_t e = first; e < last; ++e) {
      const auto k = static_cast<std::int64_t>(this->A.entries()(e));
      sum += row_begin(this->B, k + 1) - row_begin(this->B, k);
    }
    this->before[row + 1] = sum;
    if (row == 0) this->before[0] = 0;
    if (sum > products) products = sum;
    if (last - first > entries) entries = last - first;
  }
};
/// Their sums, in place.
struct SpgemmSumProducts {
  using value_type = std::int64_t;
  std::int64_t* before;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
    sum += before[row];
    if (final) before[row] = sum;
  }
};
/// Entries of B that descend or repeat the one before, and words of 64 columns that its rows go through: first as if
/// its entries were one row, a piece of them at a time (a loop that hosts vectorise, however short the rows are).
template <class Csr>
struct SpgemmOrder : SpgemmLook<Csr> {
  static constexpr std::int64_t piece = Compat::is_host_v<typename Csr::execution_space> ? 4096 : 1;
  std::int64_t nnz;
  SpgemmOrder(const SpgemmLook<Csr>& look, std::int64_t n) : SpgemmLook<Csr>(look), nnz(n) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t at, std::int64_t& descents, std::int64_t& copies,
                                         std::int64_t& words) const {
    const auto* const columns = this->B.entries().data();
    const std::int64_t end = (at + 1) * piece < nnz - 1 ? (at + 1) * piece : nnz - 1;
    int lower = 0, equal = 0, next = 0;
    for (std::int64_t t = at * piece; t < end; ++t) {
      const auto before = columns[t], column = columns[t + 1];
      lower += column < before;
      equal += column == before;
      next += column / 64 != before / 64;
    }
    descents += lower;
    copies += equal;
    words += next;
  }
};
/// Then what the first entries of its rows were not to be compared with is taken back.
template <class Csr>
struct SpgemmRowStarts : SpgemmLook<Csr> {
  explicit SpgemmRowStarts(const SpgemmLook<Csr>& look) : SpgemmLook<Csr>(look) {}
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& descents, std::int64_t& copies,
                                         std::int64_t& words) const {
    const std::int64_t first = row_begin(this->B, row);
    if (first == row_begin(this->B, row + 1)) return;
    ++words;
    if (first == 0) return;
    const auto before = this->B.entries()(first - 1), column = this->B.entries()(first);
    descents -= column < before;
    copies -= column == before;
    words -= column / 64 != before / 64;
  }
};
/// Both at once, for devices.
template <class Csr>
struct SpgemmOrderOfRows {
  SpgemmOrder<Csr> order;
  SpgemmRowStarts<Csr> starts;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t at, std::int64_t& descents, std::int64_t& copies,
                                         std::int64_t& words) const {
    if (at < order.nnz) order(at, descents, copies, words);
    if (at < static_cast<std::int64_t>(starts.B.rows())) starts(at, descents, copies, words);
  }
};
/// Whether columns of C's rows lie far apart in an array of all columns that no near cache holds: by the first and last
/// entries of B's rows, for a sample of rows, on hosts.
template <class Csr>
bool spgemm_scattered(const Csr& a, const Csr& b) {
  const CsrArrays<Csr> A(a), B(b);
  const auto rows = static_cast<std::int64_t>(a.rows()), cols = static_cast<std::int64_t>(b.cols());
  if (cols * std::int64_t{sizeof(typename Csr::value_type)} <= spgemm_near_bytes) return false;
  const std::int64_t sampled = std::min(rows, spgemm_sampled_rows);
  std::int64_t sum = 0;
  for (std::int64_t s = 0; s < sampled; ++s) {
    const std::int64_t row = rows / sampled * s;
    std::int64_t lowest = cols, highest = 0;
    for (std::int64_t e = row_begin(A, row); e < row_begin(A, row + 1); ++e) {
      const auto k = static_cast<std::int64_t>(A.entries()(e));
      const std::int64_t first = row_begin(B, k), last = row_begin(B, k + 1);
      if (first == last) continue;
      lowest = std::min<std::int64_t>(lowest, B.entries()(first));
      highest = std::max<std::int64_t>(highest, B.entries()(last - 1));
    }
    sum += std::max<std::int64_t>(highest - lowest, 0);
  }
  return sum > cols / spgemm_near_share * sampled;
}
/// Where each row's words begin, over the rows of B and one more; in the last pass also the words.
template <class Csr>
struct SpgemmMakeWords : SpgemmLook<Csr> {
  using value_type = std::int64_t;
  std::int64_t* first_word;
  std::uint32_t* word;
  std::uint64_t* bits;
  explicit SpgemmMakeWords(const SpgemmLook<Csr>& look) : SpgemmLook<Csr>(look) {}
  void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
    if (final) first_word[row] = sum;
    if (row >= static_cast<std::int64_t>(this->B.rows())) return;
    const std::int64_t first = row_begin(this->B, row), last = row_begin(this->B, row + 1);
    for (std::int64_t t = first; t < last; ++t) {
      const auto column = static_cast<std::uint32_t>(this->B.entries()(t));
      const bool next = t == first || column / 64 != static_cast<std::uint32_t>(this->B.entries()(t - 1)) / 64;
      sum += next;
      if (!final) continue;
      if (next) {
        word[sum - 1] = column / 64;
        bits[sum - 1] = 0;
      }
      bits[sum - 1] |= std::uint64_t{1} << column % 64;
    }
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
