// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_MERGE_HPP
#define TESSERA_SPGEMM_SPGEMM_MERGE_HPP

#include <algorithm>

#include "core/Tessera_PlanScratch.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"

namespace Tessera {
namespace Impl {

/// Merges the rows of B with a heap of their next columns: scratch of the entries of a row of A, O(products log
/// entries) [Azad et al., SISC 2016].
template <class Csr>
class SpgemmHeap {
 public:
  using Matrices = SpgemmMatrices<Csr>;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;

  SpgemmHeap(ScratchLayout& scratch, const SpgemmSizes& sizes)
      : heap_(scratch.take<Node>(sizes.entries)), run_(scratch.take<Run>(sizes.entries)) {}

  void prepare_count() {}
  void prepare_sums() {}

  std::int64_t count(const Matrices& m, std::int64_t row) {
    std::int64_t n = 0;
    merge(m, row, [&](Ordinal, bool next, std::int64_t, std::int64_t) { n += next; });
    return n;
  }
  std::int64_t fill(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    const Ordinal* const begin = columns;
    merge(m, row, [&](Ordinal column, bool next, std::int64_t e, std::int64_t t) {
      if (next) {
        *columns++ = column;
        *values++ = 0;
      }
      values[-1] += m.A.values()(e) * m.B.values()(t);
    });
    return columns - begin;
  }
  void update(const Matrices& m, std::int64_t row, const Ordinal*, std::int64_t, Scalar* values) {
    merge(m, row, [&](Ordinal, bool next, std::int64_t e, std::int64_t t) {
      if (next) *values++ = 0;
      values[-1] += m.A.values()(e) * m.B.values()(t);
    });
  }

 private:
  /// Column above, run below: runs of one column come in the order of A's entries.
  using Node = std::uint64_t;
  struct Run {
    std::int64_t at, end, entry;
  };
  static Node node(Ordinal column, std::int64_t run) {
    return static_cast<Node>(column) << 32 | static_cast<Node>(run);
  }
  /// f(column, whether it is another one than before, entry of A, entry of B), by columns.
  template <class F>
  void merge(const Matrices& m, std::int64_t row, const F& f) {
    const auto later = [](Node a, Node b) { return a > b; };
    std::int64_t runs = 0;
    m.each_row_of_b(row, [&](std::int64_t first, std::int64_t last, std::int64_t e) {
      run_[runs] = {first, last, e};
      heap_[runs] = node(m.B.entries()(first), runs);
      ++runs;
    });
    std::make_heap(heap_, heap_ + runs, later);
    std::int64_t before = -1;
    while (runs > 0) {
      const Node top = heap_[0];
      const auto column = static_cast<Ordinal>(top >> 32);
      Run& run = run_[top & 0xFFFFFFFFu];
      f(column, static_cast<std::int64_t>(column) != before, run.entry, run.at);
      before = static_cast<std::int64_t>(column);
      if (++run.at < run.end) {
        sink(node(m.B.entries()(run.at), static_cast<std::int64_t>(top & 0xFFFFFFFFu)), runs);
      } else {
        --runs;
        if (runs > 0) sink(heap_[runs], runs);
      }
    }
  }
  /// In place of the first one.
  void sink(Node given, std::int64_t n) {
    std::int64_t at = 0;
    for (std::int64_t child = 1; child < n; child = 2 * at + 1) {
      if (child + 1 < n && heap_[child + 1] < heap_[child]) ++child;
      if (given <= heap_[child]) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = given;
  }

  Node* heap_;
  Run* run_;
};

/// All products of a row as coordinates, sorted by column, equal columns added: what outer products of A's columns and
/// B's rows give, row by row.
template <class Csr>
class SpgemmCoo {
 public:
  using Matrices = SpgemmMatrices<Csr>;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;

  SpgemmCoo(ScratchLayout& scratch, const SpgemmSizes& sizes)
      : keys_(scratch.take<std::uint64_t>(sizes.products)), products_(scratch.take<Scalar>(sizes.products)) {}

  void prepare_count() {}
  void prepare_sums() {}

  std::int64_t count(const Matrices& m, std::int64_t row) {
    std::uint64_t n = 0;
    m.each_column(row, [&](Ordinal column) { keys_[n++] = static_cast<std::uint64_t>(column); });
    std::sort(keys_, keys_ + n);
    return std::unique(keys_, keys_ + n) - keys_;
  }
  std::int64_t fill(const Matrices& m, std::int64_t row, Ordinal* columns, Scalar* values) {
    const Ordinal* const begin = columns;
    add(
        m, row, [&](Ordinal column) { *columns++ = column; }, values);
    return columns - begin;
  }
  void update(const Matrices& m, std::int64_t row, const Ordinal*, std::int64_t, Scalar* values) {
    add(
        m, row, [](Ordinal) {}, values);
  }

 private:
  template <class F>
  void add(const Matrices& m, std::int64_t row, const F& f, Scalar* values) {
    std::uint64_t n = 0;
    m.each_product(row, [&](Ordinal column, Scalar product) {
      keys_[n] = static_cast<std::uint64_t>(column) << 32 | n;
      products_[n++] = product;
    });
    std::sort(keys_, keys_ + n);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (i == 0 || keys_[i] >> 32 != keys_[i - 1] >> 32) {
        f(static_cast<Ordinal>(keys_[i] >> 32));
        *values++ = 0;
      }
      values[-1] += products_[keys_[i] & 0xFFFFFFFFu];
    }
  }

  std::uint64_t* keys_;
  Scalar* products_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
