// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_TRANSPOSE_HPP
#define TESSERA_CORE_TRANSPOSE_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_Pattern.hpp"

namespace Tessera {

namespace Impl {

/// The pattern of A^T, and for each entry the place it came from, so that new values need no new analysis.
template <class Pattern>
struct TransposedPattern {
  using device = typename Pattern::device_type;
  Kokkos::View<typename Pattern::size_type*, Kokkos::LayoutLeft, device> row_map, source;
  Kokkos::View<typename Pattern::ordinal_type*, Kokkos::LayoutLeft, device> entries;
};

}  // namespace Impl

/// A^T in CSR with its own arrays.
template <class Csr>
struct Transposed {
  using device = typename Csr::device_type;
  Impl::TransposedPattern<Impl::PatternOf<Csr>> pattern;
  Kokkos::View<typename Csr::value_type*, Kokkos::LayoutLeft, device> values;
  typename Csr::ordinal_type rows = 0, cols = 0;

  Csr view() const { return csr_view(rows, cols, pattern.row_map, pattern.entries, values); }
};

namespace Impl {

template <class Pattern>
struct TransposeFunctors {
  using T = TransposedPattern<Pattern>;
  using offset = typename Pattern::size_type;
  using ordinal = typename Pattern::ordinal_type;

  struct Count {
    Pattern A;
    T t;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      Kokkos::atomic_add(&t.row_map(A.entries()(i)), offset(1));
    }
  };
  struct Scan {
    T t;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, offset& sum, const bool final) const {
      const offset n = i < rows ? t.row_map(i) : offset(0);
      if (final) t.row_map(i) = sum;
      sum += n;
    }
  };
  /// Places in an arbitrary order; Sort makes it the order of A.
  struct Place {
    Pattern A;
    T t;
    Kokkos::View<offset*, Kokkos::LayoutLeft, typename Pattern::device_type> next;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const ordinal column = A.entries()(i);
      t.source(t.row_map(column) + Kokkos::atomic_fetch_add(&next(column), offset(1))) = static_cast<offset>(i);
    }
  };
  /// Heap sort of a row's sources, in place; then the rows they belong to.
  struct Sort {
    Pattern A;
    T t;
    KOKKOS_INLINE_FUNCTION void sift(offset base, offset root, offset n) const {
      while (2 * root + 1 < n) {
        offset child = 2 * root + 1;
        if (child + 1 < n && t.source(base + child) < t.source(base + child + 1)) ++child;
        if (t.source(base + root) >= t.source(base + child)) return;
        swap(base + root, base + child);
        root = child;
      }
    }
    KOKKOS_INLINE_FUNCTION void swap(offset a, offset b) const {
      const offset v = t.source(a);
      t.source(a) = t.source(b);
      t.source(b) = v;
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
      const offset base = t.row_map(row), n = t.row_map(row + 1) - base;
      for (offset root = n / 2; root > 0; --root) sift(base, root - 1, n);
      for (offset end = n; end > 1; --end) {
        swap(base, base + end - 1);
        sift(base, 0, end - 1);
      }
      for (offset i = base; i < base + n; ++i) {
        offset low = 0, high = static_cast<offset>(A.rows());  // the row whose range holds the source
        while (high - low > 1) {
          const offset middle = low + (high - low) / 2;
          (A.row_map()(middle) <= t.source(i) ? low : high) = middle;
        }
        t.entries(i) = static_cast<ordinal>(low);
      }
    }
  };
};

template <class From, class To, class Source>
struct TransposeValues {
  From from;
  To to;
  Source source;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = from(source(i)); }
};

/// Compiled once per type of offsets.
template <class Pattern, class Exec>
TransposedPattern<Pattern> transposed_pattern(const Exec& space, const Pattern& A) {
  using F = TransposeFunctors<Pattern>;
  TransposedPattern<Pattern> t;
  const auto rows = static_cast<std::int64_t>(A.cols()), nnz = static_cast<std::int64_t>(A.nnz());
  t.row_map = decltype(t.row_map)("Tessera::transpose::row_map", static_cast<std::size_t>(rows) + 1);
  t.source = decltype(t.source)("Tessera::transpose::source", A.nnz());
  t.entries = decltype(t.entries)("Tessera::transpose::entries", A.nnz());
  decltype(t.row_map) next("Tessera::transpose::next", static_cast<std::size_t>(rows));
  Kokkos::parallel_for("Tessera::convert[transpose] count",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, nnz),
                       typename F::Count{A, t});
  Kokkos::parallel_scan("Tessera::convert[transpose] scan", Kokkos::RangePolicy<Exec>(space, 0, rows + 1),
                        typename F::Scan{t, rows});
  Kokkos::parallel_for("Tessera::convert[transpose] place",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, nnz),
                       typename F::Place{A, t, next});
  Kokkos::parallel_for("Tessera::convert[transpose] sort", Kokkos::RangePolicy<Exec>(space, 0, rows),
                       typename F::Sort{A, t});
  Compat::fence(space, "Tessera::convert[transpose]");  // `next` is released here
  return t;
}

}  // namespace Impl

/// New numbers for a transposed matrix; one gather.
template <class Exec, class Csr>
void update_transposed_values(const Exec& space, const Transposed<Csr>& t, const typename Csr::values_type& values) {
  using From = Impl::ValuesOf<Csr>;
  using Gather = Impl::TransposeValues<From, decltype(t.values), decltype(t.pattern.source)>;
  Kokkos::parallel_for(
      "Tessera::convert[transpose] values",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(values.extent(0))),
      Gather{From(values), t.values, t.pattern.source});
}

/// A^T. Deterministic: inside a row of A^T entries stand in the order of A. O(nnz log(longest column)) work, one
/// thread per column; 2 nnz offsets and the matrix again in memory.
template <class Exec, class Csr>
Transposed<Csr> transpose(const Exec& space, const Csr& A) {
  const Compat::ScopedRegion region("Tessera::convert[transpose]");
  Transposed<Csr> t;
  t.rows = A.cols();
  t.cols = A.rows();
  t.pattern = Impl::transposed_pattern(space, Impl::pattern_of(A));
  t.values = decltype(t.values)("Tessera::transpose::values", A.nnz());
  update_transposed_values(space, t, A.values());
  Compat::fence(space, "Tessera::convert[transpose]");  // A need not stay
  return t;
}

}  // namespace Tessera

#endif
