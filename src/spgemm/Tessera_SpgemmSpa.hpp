// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_SPA_HPP
#define TESSERA_SPGEMM_SPGEMM_SPA_HPP

#include <algorithm>
#include <utility>

#include "core/Tessera_PlanScratch.hpp"
#include "spgemm/Tessera_SpgemmRanks.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

namespace Tessera {
namespace Impl {

/// Sparse accumulator [Gilbert, Moler, Schreiber, SIMAX 1992]: a sum per column of C, and bits that say which columns
/// a row has. A bit more per 64 of these words says which words are not zero, so that the columns are found in
/// ascending order without a sort. Where rows of B have several columns per word, words are marked instead of columns.
/// Counting needs no order: the last row that had a column is noted in place of its sum. Rows of some tens of products
/// list their columns when they meet them first, by bits and without a branch, and rank the list. Rows of fewer
/// products, whose columns are far apart in an array that no near cache holds, are sorted without it.
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
        cols_(sizes.cols),
        few_(sizes.scattered ? spgemm_few_products : 0) {}

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
  std::int64_t fill(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    const std::int64_t products = m.products(row);
    if (products <= few_) {
      return fill_few(
          m, row, [&](Ordinal column) { *columns++ = column; }, values);
    }
    return products <= short_ ? fill_short(m, row, columns, values) : fill_long(m, row, columns, values);
  }
  void update(const Matrices& m, std::int64_t row, const Ordinal* columns, std::int64_t n, Scalar* values) {
    if (m.products(row) <= few_) {
      fill_few(
          m, row, [](Ordinal) {}, values);
      return;
    }
    sum_up(m, row);
    for (std::int64_t i = 0; i < n; ++i) values[i] = std::exchange(sums_[columns[i]], Scalar(0));
  }

 private:
  struct Range {
    std::int64_t first, last;  ///< of upper_
    void extend(std::int64_t from, std::int64_t to) {
      first = std::min(first, from);
      last = std::max(last, to);
    }
  };
  Range no_words() const { return {cols_ / 4096, 0}; }

  // Loops over products are functions of their own: together they have more addresses than a CPU has registers.

  TESSERA_HOST_NOINLINE void sum_up(const Matrices& m, std::int64_t row) {
    Scalar* const sums = sums_;
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      const Scalar a = m.A.values()(e);
      const Ordinal* const columns = m.B.entries().data();
      const Scalar* const values = m.B.values().data();
      for (std::int64_t t = first; t < last; ++t) sums[static_cast<std::uint32_t>(columns[t])] += a * values[t];
    });
  }
  /// Words are listed when they get their first bit, which needs no branch.
  TESSERA_HOST_NOINLINE Range sum_and_mark(const Matrices& m, std::int64_t row) {
    Scalar* const sums = sums_;
    std::uint64_t* const words = words_;
    std::uint32_t* const touched = touched_;
    std::int64_t n = 0;
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      const Scalar a = m.A.values()(e);
      const Ordinal* const columns = m.B.entries().data();
      const Scalar* const values = m.B.values().data();
      for (std::int64_t t = first; t < last; ++t) {
        const auto column = static_cast<std::uint32_t>(columns[t]);
        const std::uint64_t old = words[column / 64];
        words[column / 64] = old | std::uint64_t{1} << column % 64;
        touched[n] = column / 64;
        n += old == 0;
        sums[column] += a * values[t];
      }
    });
    Range marked = no_words();
    for (std::int64_t i = 0; i < n; ++i) {
      marked.extend(touched[i] / 64, touched[i] / 64);
      upper_[touched[i] / 64] |= std::uint64_t{1} << touched[i] % 64;
    }
    return marked;
  }
  TESSERA_HOST_NOINLINE Range mark_words(const Matrices& m, std::int64_t row) {
    Range marked = no_words();
    m.each_row_of_words(row, [&](std::int64_t first, std::int64_t last) {
      marked.extend(m.words.word[first] / 64, m.words.word[last - 1] / 64);
      for (std::int64_t t = first; t < last; ++t) {
        const std::uint32_t word = m.words.word[t];
        const std::uint64_t old = words_[word];
        words_[word] = old | m.words.bits[t];
        if (old == 0) upper_[word / 64] |= std::uint64_t{1} << word % 64;
      }
    });
    return marked;
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
    m.each_row_of_words(row, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) {
        const std::uint32_t word = m.words.word[t];
        const std::uint64_t old = words_[word];
        words_[word] = old | m.words.bits[t];
        touched_[touched] = word;
        touched += old == 0;
      }
    });
    for (std::int64_t i = 0; i < touched; ++i) n += __builtin_popcountll(std::exchange(words_[touched_[i]], 0));
    return n;
  }

  std::int64_t fill_long(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    const Ordinal* const begin = columns;
    if (m.words.begin != nullptr) sum_up(m, row);
    const Range marked = m.words.begin != nullptr ? mark_words(m, row) : sum_and_mark(m, row);
    for (std::int64_t u = marked.first; u <= marked.last; ++u) {
      for (std::uint64_t words = std::exchange(upper_[u], 0); words != 0; words &= words - 1) {
        const std::int64_t word = 64 * u + __builtin_ctzll(words);
        for (std::uint64_t bits = std::exchange(words_[word], 0); bits != 0; bits &= bits - 1) {
          const std::int64_t column = 64 * word + __builtin_ctzll(bits);
          *columns++ = static_cast<Ordinal>(column);
          *values++ = std::exchange(sums_[column], Scalar(0));
        }
      }
    }
    return columns - begin;
  }
  /// Bits of upper_ stay as they are, zero.
  TESSERA_HOST_NOINLINE std::int64_t fill_short(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    std::int32_t column[spgemm_short_products + spgemm_rank_lanes], rank[spgemm_short_products + spgemm_rank_lanes];
    int n = 0;
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      const Scalar a = m.A.values()(e);
      const Ordinal* const from = m.B.entries().data();
      const Scalar* const numbers = m.B.values().data();
      for (std::int64_t t = first; t < last; ++t) {
        const auto c = static_cast<std::uint32_t>(from[t]);
        const std::uint64_t bits = words_[c / 64];
        column[n] = static_cast<std::int32_t>(c);
        n += 1 ^ static_cast<int>(bits >> c % 64 & 1);
        words_[c / 64] = bits | std::uint64_t{1} << c % 64;
        sums_[c] += a * numbers[t];
      }
    });
    spgemm_ranks(vector_bytes_, column, n, rank);
    for (int i = 0; i < n; ++i) {
      words_[column[i] / 64] = 0;
      columns[rank[i]] = static_cast<Ordinal>(column[i]);
      values[rank[i]] = std::exchange(sums_[column[i]], Scalar(0));
    }
    return n;
  }

  /// Without the array of all columns: products sorted by counting how many stand before each, equal columns in the
  /// order of their products.
  template <class F>
  std::int64_t fill_few(const Matrices& m, std::int64_t row, const F& f, Scalar* values) {
    constexpr int most = spgemm_few_products;
    const Scalar* const begin = values;
    Ordinal column[most], sorted[most];
    Scalar product[most], in_order[most];
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
    return values - begin;
  }

  Scalar* sums_;
  std::uint64_t *words_, *upper_;
  std::uint32_t* touched_;  ///< words of a row, and room for one that is none
  std::int64_t cols_, few_;
  int vector_bytes_ = host_vector_bytes();
  std::int64_t short_ = vector_bytes_ >= 32 ? spgemm_short_products : spgemm_short_products / 2;
};

}  // namespace Impl
}  // namespace Tessera

#endif
