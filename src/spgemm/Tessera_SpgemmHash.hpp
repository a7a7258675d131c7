// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_HASH_HPP
#define TESSERA_SPGEMM_SPGEMM_HASH_HPP

#include <algorithm>

#include "core/Tessera_PlanScratch.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"

namespace Tessera {
namespace Impl {

/// A hash table of the columns of a row, at most half full, with linear probing [Nagasaka et al., ICPP'18 Workshops].
/// Each row uses as much of it as its products may need, so that short rows stay in the nearest cache.
template <class Csr>
class SpgemmHash {
 public:
  using Matrices = SpgemmMatrices<Csr>;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;

  SpgemmHash(ScratchLayout& scratch, const SpgemmSizes& sizes) : cols_(sizes.cols), most_(sizes.products) {
    const std::int64_t capacity = std::int64_t{1} << bits_for(sizes.products);
    keys_ = scratch.take<std::uint32_t>(capacity);
    sums_ = scratch.take<Scalar>(capacity);
    used_ = scratch.take<std::uint32_t>(capacity / 2);
  }

  void prepare_count() { prepare_sums(); }
  /// Keys are zero before and after every row.
  void prepare_sums() { std::fill_n(keys_, std::int64_t{1} << bits_for(most_), 0); }

  std::int64_t count(const Matrices& m, std::int64_t row) {
    start(m.products(row));
    m.each_column(row, [&](Ordinal column) { slot_of(column); });
    clear();
    return n_;
  }
  std::int64_t fill(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    start(m.products(row));
    m.each_product(row, [&](Ordinal column, Scalar product) {
      const std::int64_t before = n_;
      const std::size_t slot = slot_of(column);
      if (n_ > before) sums_[slot] = 0;
      sums_[slot] += product;
    });
    for (std::int64_t i = 0; i < n_; ++i) columns[i] = static_cast<Ordinal>(keys_[used_[i]] - 1);
    sort(columns, n_);
    for (std::int64_t i = 0; i < n_; ++i) values[i] = sums_[slot_of(columns[i])];
    clear();
    return n_;
  }
  void update(const Matrices& m, std::int64_t row, const Ordinal* columns, std::int64_t n, Scalar* values) {
    start(m.products(row));
    for (std::int64_t i = 0; i < n; ++i) sums_[slot_of(columns[i])] = 0;
    m.each_product(row, [&](Ordinal column, Scalar product) { sums_[slot_of(column)] += product; });
    for (std::int64_t i = 0; i < n; ++i) values[i] = sums_[slot_of(columns[i])];
    clear();
  }

 private:
  /// log2 of the slots for so many products.
  int bits_for(std::int64_t products) const {
    const std::int64_t most = 2 * std::min(products, cols_);
    int bits = 4;
    while ((std::int64_t{1} << bits) < most) ++bits;
    return bits;
  }
  void start(std::int64_t products) {
    shift_ = 64 - bits_for(products);
    n_ = 0;
  }
  /// Where a column is, or is from now on.
  std::size_t slot_of(Ordinal column) {
    const auto key = static_cast<std::uint32_t>(column) + 1;
    const std::size_t mask = (std::size_t{1} << (64 - shift_)) - 1;
    std::size_t slot = (key * std::uint64_t{0x9E3779B97F4A7C15}) >> shift_;  // golden ratio: neighbours far apart
    while (keys_[slot] != key) {
      if (keys_[slot] == 0) {
        keys_[slot] = key;
        used_[n_++] = static_cast<std::uint32_t>(slot);
        break;
      }
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  void clear() {
    for (std::int64_t i = 0; i < n_; ++i) keys_[used_[i]] = 0;
  }
  static void sort(Ordinal* columns, std::int64_t n) {
    if (n > 24) return std::sort(columns, columns + n);
    for (std::int64_t i = 1; i < n; ++i) {
      const Ordinal column = columns[i];
      std::int64_t at = i;
      for (; at > 0 && columns[at - 1] > column; --at) columns[at] = columns[at - 1];
      columns[at] = column;
    }
  }

  std::int64_t cols_, most_, n_ = 0;
  int shift_ = 60;
  std::uint32_t* keys_;  ///< column + 1; 0: none
  Scalar* sums_;
  std::uint32_t* used_;  ///< slots
};

}  // namespace Impl
}  // namespace Tessera

#endif
