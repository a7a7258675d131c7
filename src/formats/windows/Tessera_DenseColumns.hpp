// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_DENSE_COLUMNS_HPP
#define TESSERA_FORMATS_WINDOWS_DENSE_COLUMNS_HPP

#include <cstdint>
#include <memory>
#include <type_traits>

#include "formats/windows/Tessera_WindowUnion.hpp"

/// \file
/// A sparsity pattern in two: entries in columns that are dense in their window of rows, which matrix units take, and
/// all others [BSMR-SDDMM: columns of a panel of rows sorted by count].

namespace Tessera {
namespace Impl {

/// One of the two, a pattern of its own: rows stand in their order, columns ascend.
template <class Pattern>
struct PatternShare {
  template <class T>
  using View = typename Arena<typename Pattern::memory_space>::template View<T>;
  using Offset = typename Pattern::size_type;
  /// Kernels of backends take columns of 32 bits.
  using Ordinal =
      std::conditional_t<sizeof(typename Pattern::ordinal_type) == 4, typename Pattern::ordinal_type, std::int32_t>;
  using Narrow = CsrPattern<Ordinal, Offset, typename Pattern::device_type>;

  std::shared_ptr<void> map_storage, column_storage, place_storage;
  Ordinal rows = 0, cols = 0;
  View<Offset> row_map;
  View<Ordinal> columns;
  View<std::uint32_t> entry_at;  ///< of each entry: place in CSR

  template <class Exec>
  void allocate(const Exec& space, const Pattern& A, std::size_t entries, const KernelTable* backend) {
    using Arena = Impl::Arena<typename Pattern::memory_space>;
    rows = static_cast<Ordinal>(A.rows());
    cols = static_cast<Ordinal>(A.cols());
    map_storage = Arena::make(space, backend, "Tessera::dense columns::row_map", Lifetime::Plan, [&](Arena& arena) {
      row_map = arena.template take<Offset>(static_cast<std::size_t>(rows) + 1);
    });
    column_storage = Arena::make(space, backend, "Tessera::dense columns::columns", Lifetime::Plan,
                                 [&](Arena& arena) { columns = arena.template take<Ordinal>(entries); });
    place_storage = Arena::make(space, backend, "Tessera::dense columns::entry_at", Lifetime::Plan,
                                [&](Arena& arena) { entry_at = arena.template take<std::uint32_t>(entries); });
  }
  std::int64_t nnz() const { return static_cast<std::int64_t>(columns.extent(0)); }
  Narrow pattern() const {
    return Narrow(rows, cols, typename Narrow::row_map_type(row_map.data(), row_map.extent(0)),
                  typename Narrow::entries_type(columns.data(), columns.extent(0)));
  }
};

template <class Pattern>
struct DenseColumns {
  PatternShare<Pattern> dense, other;
  std::int64_t dense_columns = 0;  ///< of windows, summed
  double similarity = 1;           ///< of neighbouring rows: columns that both have / that either has
};

template <class Pattern>
struct DenseColumnFunctors {
  using Base = typename WindowFunctors<Pattern>::Base;
  using Ordinal = typename PatternShare<Pattern>::Ordinal;
  using Offset = typename Pattern::size_type;
  template <class T>
  using View = typename WindowFunctors<Pattern>::template View<T>;

  /// Entries of each column of a window.
  struct Count : Base {
    View<std::uint32_t> count;
    Count(const Base& b, const View<std::uint32_t>& c) : Base(b), count(c) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p) const {
      Kokkos::atomic_add(&count(this->leader(p)), std::uint32_t{1});
    }
  };
  /// Columns that rows share with those before them in their windows.
  struct Similarity : Base {
    explicit Similarity(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::uint64_t& shared) const {
      const auto p = static_cast<std::uint32_t>(i);
      const std::int32_t r = this->row(p);
      if (static_cast<std::uint32_t>(r) % this->height == 0) return;
      const std::uint32_t end = this->begin(r);
      const std::uint32_t at = this->lower_bound(this->begin(r - 1), end, this->columns(p));
      shared += at < end && this->columns(at) == this->columns(p);
    }
  };
  struct RowPairs : Base {
    explicit RowPairs(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r, std::uint64_t& both) const {
      if (static_cast<std::uint32_t>(r) % this->height != 0) both += this->begin(r + 1) - this->begin(r - 1);
    }
  };

  /// Dense entries before each; over the entries and one more.
  struct Before : Base {
    using value_type = std::uint32_t;
    View<std::uint32_t> count, before;
    std::uint32_t least;
    Before(const Base& b, const View<std::uint32_t>& c, const View<std::uint32_t>& to, std::uint32_t l)
        : Base(b), count(c), before(to), least(l) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p, std::uint32_t& sum, const bool final) const {
      if (final) before(p) = sum;
      if (p < this->nnz && count(this->leader(p)) >= least) ++sum;
    }
  };
  struct DenseLeaders : Base {
    View<std::uint32_t> count;
    std::uint32_t least;
    DenseLeaders(const Base& b, const View<std::uint32_t>& c, std::uint32_t l) : Base(b), count(c), least(l) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t p, std::uint64_t& columns) const {
      columns += this->leader(p) == static_cast<std::uint32_t>(p) && count(p) >= least;
    }
  };

  struct Maps : Base {
    View<std::uint32_t> before;
    View<Offset> dense, other;
    explicit Maps(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r) const {
      const std::uint32_t p = this->begin(r), d = before(p);
      dense(r) = static_cast<Offset>(d);
      other(r) = static_cast<Offset>(p - d);
    }
  };
  struct Entries : Base {
    View<std::uint32_t> before;
    View<Offset> origin;  ///< empty: the same
    View<Ordinal> dense, other;
    View<std::uint32_t> dense_at, other_at;
    explicit Entries(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto p = static_cast<std::uint32_t>(i);
      const std::uint32_t from = origin.extent(0) > 0 ? static_cast<std::uint32_t>(origin(p)) : p, d = before(p);
      if (before(p + 1) > d) {
        dense(d) = static_cast<Ordinal>(this->columns(p));
        dense_at(d) = from;
      } else {
        other(p - d) = static_cast<Ordinal>(this->columns(p));
        other_at(p - d) = from;
      }
    }
  };
  /// Places of rows become the rows.
  struct NameRows {
    typename WindowFunctors<Pattern>::Order order;
    View<std::int32_t> row_of;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { row_of(i) = order(row_of(i)); }
  };
};

/// Of rows that are neighbours in a window of u: columns that both have / columns that either has, pooled.
template <class Pattern, class Exec>
double row_similarity(const Exec& space, const WindowUnion<Pattern>& u) {
  using F = DenseColumnFunctors<Pattern>;
  using Union = WindowUnion<Pattern>;
  std::uint64_t shared = 0, both = 0;
  Kokkos::parallel_reduce("Tessera::dense columns similarity", Union::range(space, u.base.nnz),
                          typename F::Similarity(u.base), shared);
  Kokkos::parallel_reduce("Tessera::dense columns rows", Union::range(space, u.base.rows), typename F::RowPairs(u.base),
                          both);
  return both > shared ? static_cast<double>(shared) / static_cast<double>(both - shared) : 1;
}

/// Divides A, whose rows stand in `order` (empty: their own). A column with `least` entries or more in a window of
/// `height` rows is dense there; copies of a column that rows repeat are columns of their own. At least one entry,
/// fewer than 2^32 - 1.
///
/// Work O(nnz height log(longest row)), one thread per entry; 8 bytes per entry of temporary memory and that of
/// WindowUnion, whose waits and four more. Deterministic.
/// @throw DeviceError
template <class Pattern, class Exec>
DenseColumns<Pattern> divide_by_columns(const Exec& space, const Pattern& A, int height, int least,
                                        const typename WindowFunctors<Pattern>::Order& order,
                                        const KernelTable* backend) {
  using F = DenseColumnFunctors<Pattern>;
  using Memory = typename Pattern::memory_space;
  using Union = WindowUnion<Pattern>;
  using Arena = Impl::Arena<Memory>;
  const Union u(space, A, height, 16, true, 0, order, backend);
  const auto nnz = static_cast<std::size_t>(u.base.nnz);
  const auto limit = static_cast<std::uint32_t>(least);
  typename F::template View<std::uint32_t> count, before;
  const auto temporary = Arena::make(space, backend, "Tessera::dense columns", Lifetime::Temporary, [&](Arena& arena) {
    count = arena.template take<std::uint32_t>(nnz);
    before = arena.template take<std::uint32_t>(nnz + 1);
  });
  Kokkos::deep_copy(space, count, 0u);
  Kokkos::parallel_for("Tessera::dense columns count", Union::range(space, u.base.nnz),
                       typename F::Count(u.base, count));
  Kokkos::parallel_scan("Tessera::dense columns before", Union::range(space, u.base.nnz + 1),
                        typename F::Before(u.base, count, before, limit));
  std::uint64_t columns = 0;
  Kokkos::parallel_reduce("Tessera::dense columns number", Union::range(space, u.base.nnz),
                          typename F::DenseLeaders(u.base, count, limit), columns);
  std::uint32_t dense = 0;
  fetch(space, backend, "Tessera::dense columns", dense,
        typename F::template View<std::uint32_t>(before.data() + nnz, 1));

  DenseColumns<Pattern> result;
  result.dense_columns = static_cast<std::int64_t>(columns);
  result.similarity = row_similarity(space, u);
  result.dense.allocate(space, A, dense, backend);
  result.other.allocate(space, A, nnz - dense, backend);
  typename F::Maps maps(u.base);
  maps.before = before;
  maps.dense = result.dense.row_map;
  maps.other = result.other.row_map;
  Kokkos::parallel_for("Tessera::dense columns maps", Union::range(space, u.base.rows + 1), maps);
  typename F::Entries entries(u.base);
  entries.before = before;
  entries.origin = u.origin;
  entries.dense = result.dense.columns;
  entries.other = result.other.columns;
  entries.dense_at = result.dense.entry_at;
  entries.other_at = result.other.entry_at;
  Kokkos::parallel_for("Tessera::dense columns entries", Union::range(space, u.base.nnz), entries);
  // Without a pool of the backend temporary arrays are Views, which must not go before the kernels have read them.
  if (backend == nullptr || backend->runtime.allocate == nullptr) Compat::fence(space, "Tessera::dense columns");
  return result;
}

}  // namespace Impl
}  // namespace Tessera

#endif
