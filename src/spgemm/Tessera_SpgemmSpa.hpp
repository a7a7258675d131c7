// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_SPA_HPP
#define TESSERA_SPGEMM_SPGEMM_SPA_HPP

#include <algorithm>
#include <utility>

#include "core/Tessera_PlanScratch.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

namespace Tessera {
namespace Impl {

/// Sparse accumulator [Gilbert, Moler, Schreiber, SIMAX 1992]: a sum per column of C, and bits that say which columns
/// a row has. A bit more per 64 of these words says which words are not zero, so that the columns are found in
/// ascending order without a sort. Where rows of B have several columns per word, words are marked instead of columns.
/// Counting needs no order: the last row that had a column is noted in place of its sum. Rows of few products are
/// sorted at once.
template <class Csr>
class SpgemmSpa {
 public:
  using Matrices = SpgemmMatrices<Csr>;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;

  SpgemmSpa(ScratchLayout& scratch, const SpgemmSizes& sizes)
      : sums_(scratch.take<Scalar>(sizes.cols)),
        words_(scratch.take<std::uint64_t>(sizes.cols / 64 + 1)),
        upper_(scratch.take<std::uint64_t>(sizes.cols / 4096 + 1)),
        touched_(scratch.take<std::uint32_t>(sizes.cols / 64 + 2)),
        cols_(sizes.cols) {}

  void prepare_count() {
    std::fill_n(last_row(), cols_, 0);
    std::fill_n(words_, cols_ / 64 + 1, 0);
  }
  /// Sums and bits are zero before and after every row.
  void prepare_sums() {
    std::fill_n(sums_, cols_, Scalar(0));
    std::fill_n(words_, cols_ / 64 + 1, 0);
    std::fill_n(upper_, cols_ / 4096 + 1, 0);
  }

  std::int64_t count(const Matrices& m, std::int64_t row) {
    return m.words.begin != nullptr ? count_words(m, row) : count_columns(m, row);
  }
  void fill(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    if (m.products(row) <= few) {
      return fill_few(
          m, row, [&](Ordinal column) { *columns++ = column; }, values);
    }
    Range range{m.sorted ? cols_ / 4096 : 0, m.sorted ? 0 : cols_ / 4096};
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      if (m.sorted) {
        range.first = std::min<std::int64_t>(range.first, m.B.entries()(first) / 4096);
        range.last = std::max<std::int64_t>(range.last, m.B.entries()(last - 1) / 4096);
      }
      if (m.words.begin != nullptr) return add<false>(m, first, last, e);
      add<true>(m, first, last, e);
    });
    if (m.words.begin != nullptr) {
      m.each_word_of_b(row, [&](std::uint32_t word, std::uint64_t bits) { mark(word, bits); });
    }
    for (std::int64_t u = range.first; u <= range.last; ++u) {
      for (std::uint64_t words = std::exchange(upper_[u], 0); words != 0; words &= words - 1) {
        const std::int64_t word = 64 * u + __builtin_ctzll(words);
        for (std::uint64_t bits = std::exchange(words_[word], 0); bits != 0; bits &= bits - 1) {
          const std::int64_t column = 64 * word + __builtin_ctzll(bits);
          *columns++ = static_cast<Ordinal>(column);
          *values++ = std::exchange(sums_[column], Scalar(0));
        }
      }
    }
  }
  void update(const Matrices& m, std::int64_t row, const Ordinal* columns, std::int64_t n, Scalar* values) {
    const auto no_columns = [](Ordinal) {};
    if (m.products(row) <= few) return fill_few(m, row, no_columns, values);
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) { add<false>(m, first, last, e); });
    for (std::int64_t i = 0; i < n; ++i) values[i] = std::exchange(sums_[columns[i]], Scalar(0));
  }

 private:
  static constexpr int few = spgemm_few_products;
  struct Range {
    std::int64_t first, last;  ///< of upper_
  };

  template <bool Mark>
  void add(const Matrices& m, std::int64_t first, std::int64_t last, std::int64_t e) {
    const Scalar a = m.A.values()(e);
    const Ordinal* const columns = m.B.entries().data();
    const Scalar* const values = m.B.values().data();
    for (std::int64_t t = first; t < last; ++t) {
      const auto column = static_cast<std::uint32_t>(columns[t]);
      if (Mark) mark(column / 64, std::uint64_t{1} << column % 64);
      sums_[column] += a * values[t];
    }
  }
  void mark(std::uint32_t word, std::uint64_t bits) {
    const std::uint64_t old = words_[word];
    words_[word] = old | bits;
    if (old == 0) upper_[word / 64] |= std::uint64_t{1} << word % 64;
  }

  /// While rows are counted: the last one, plus 1, that had each column, in place of its sum.
  std::int32_t* last_row() const { return reinterpret_cast<std::int32_t*>(sums_); }
  std::int64_t count_columns(const Matrices& m, std::int64_t row) {
    std::int32_t* const last = last_row();
    const auto own = static_cast<std::int32_t>(row + 1);
    std::int64_t n = 0;
    m.each_column(row, [&](Ordinal column) {
      n += last[column] != own;
      last[column] = own;
    });
    return n;
  }
  std::int64_t count_words(const Matrices& m, std::int64_t row) {
    std::int64_t touched = 0, n = 0;
    m.each_word_of_b(row, [&](std::uint32_t word, std::uint64_t bits) {
      const std::uint64_t old = words_[word];
      words_[word] = old | bits;
      touched_[touched] = word;
      touched += old == 0;
    });
    for (std::int64_t i = 0; i < touched; ++i) n += __builtin_popcountll(std::exchange(words_[touched_[i]], 0));
    return n;
  }

  /// Sorted by counting how many stand before each, equal columns in the order of their products.
  template <class F>
  void fill_few(const Matrices& m, std::int64_t row, const F& f, Scalar* values) {
    Ordinal column[few], sorted[few];
    Scalar product[few], in_order[few];
    int n = 0;
    m.each_product(row, [&](Ordinal c, Scalar p) {
      column[n] = c;
      product[n++] = p;
    });
    for (int i = 0; i < n; ++i) {
      int rank = 0;
      for (int j = 0; j < i; ++j) rank += column[j] <= column[i];
      for (int j = i + 1; j < n; ++j) rank += column[j] < column[i];
      sorted[rank] = column[i];
      in_order[rank] = product[i];
    }
    for (int i = 0; i < n; ++i) {
      if (i == 0 || sorted[i] != sorted[i - 1]) {
        f(sorted[i]);
        *values++ = 0;
      }
      values[-1] += in_order[i];
    }
  }

  Scalar* sums_;
  std::uint64_t *words_, *upper_;
  std::uint32_t* touched_;  ///< words of a row, and room for one that is none
  std::int64_t cols_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
