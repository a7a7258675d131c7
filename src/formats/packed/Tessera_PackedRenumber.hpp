// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_RENUMBER_HPP
#define TESSERA_FORMATS_PACKED_PACKED_RENUMBER_HPP

#include <cstdint>

#include "core/Tessera_Arena.hpp"
#include "formats/packed/Tessera_PackedHubs.hpp"
#include "formats/packed/Tessera_PackedRules.hpp"
#include "formats/packed/Tessera_PackedValues.hpp"

/// \file
/// Columns in the order of their use. A product copies x in this order, so that what most entries read lies in few
/// lines of the first level (perf_test/notes/spmv-classes.md).

namespace Tessera {
namespace Impl {

/// The place of each column in its class, and what the classes hold.
template <class Csr>
struct ColumnRankFunctor : PackedTypesOf<Csr> {
  using value_type = ColumnUse;
  static constexpr std::int64_t columns_of_item = 16;  // a scan moves 128 bytes per item
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> uses, place;
  View<ColumnUse> found;

  KOKKOS_INLINE_FUNCTION void init(ColumnUse& u) const {
    for (int i = 0; i < ColumnUse::classes; ++i) u.columns[i] = u.entries[i] = 0;
  }
  template <class A, class B>
  KOKKOS_INLINE_FUNCTION static void add(A& a, const B& b) {
    for (int i = 0; i < ColumnUse::classes; ++i) {
      a.columns[i] = a.columns[i] + b.columns[i], a.entries[i] = a.entries[i] + b.entries[i];
    }
  }
  KOKKOS_INLINE_FUNCTION void join(ColumnUse& a, const ColumnUse& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void join(volatile ColumnUse& a, const volatile ColumnUse& b) const { add(a, b); }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item, ColumnUse& sum, const bool final) const {
    const auto cols = static_cast<std::int64_t>(uses.extent(0));
    const std::int64_t first = item * columns_of_item, end = first + columns_of_item;
    for (std::int64_t c = first; c < end && c < cols; ++c) {
      const std::uint32_t here = uses(c);
      const int kind = ColumnUse::of(here);
      for (int i = 0; i < ColumnUse::classes; ++i) {  // no index that registers cannot have
        if (i != kind) continue;
        if (final) place(c) = sum.columns[i];
        sum.columns[i] += 1, sum.entries[i] += here;
      }
    }
    if (final && end >= cols) found(0) = sum;
  }
};

/// The place of each column behind those of the classes before its own.
template <class Csr>
struct ColumnOrderFunctor : PackedTypesOf<Csr> {
  template <class T>
  using View = typename PackedTypesOf<Csr>::template View<T>;
  View<std::uint32_t> uses, place, order;
  View<ColumnUse> found;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t c) const {
    const int kind = ColumnUse::of(uses(c));
    std::uint32_t at = place(c);
    for (int i = 0; i < kind; ++i) at += found(0).columns[i];
    place(c) = at;
    order(at) = static_cast<std::uint32_t>(c);
  }
};

template <class Pattern, class Exec>
struct PackedColumnOrder {
  using Memory = typename Pattern::memory_space;
  using Format = Experimental::PackedSlices<Memory>;
  template <class T>
  using View = typename Format::template View<T>;

  const Exec& space;
  const Pattern& A;
  const PackedNumbers<Memory>& numbers;
  const PackedOptions& o;
  const KernelTable* backend;

  /// Makes p.renumbered, unless values fit fewer bytes, which then save more, or the most used columns have too few
  /// entries for a copy of x to pay. One wait or two. Bytes: columns once, 12 per column. @param place  of each column
  void find(Format& p, View<std::uint32_t>& place, typename Format::Storage& scratch) const {
    const bool narrows = o.renumber != 1 && o.value_classes && numbers.precision() == p.precision;
    if (narrows && !packed_stays_full(space, backend, numbers)) return;
    const auto cols = static_cast<std::size_t>(p.cols);
    p.hub_storage =
        Arena<Memory>::make(space, backend, "Tessera::packed::columns", Lifetime::Plan,
                            [&](Arena<Memory>& arena) { p.hub_columns = arena.template take<std::uint32_t>(cols); });
    View<ColumnUse> found;
    View<std::uint32_t> uses;
    scratch =
        Arena<Memory>::make(space, backend, "Tessera::packed::scratch", Lifetime::Temporary, [&](Arena<Memory>& arena) {
          found = arena.template take<ColumnUse>(1);
          uses = arena.template take<std::uint32_t>(cols);
          place = arena.template take<std::uint32_t>(cols);
        });
    Kokkos::deep_copy(space, uses, 0u);
    count_column_uses(space, A, uses);
    ColumnRankFunctor<Pattern> rank;
    rank.uses = uses;
    rank.place = place;
    rank.found = found;
    constexpr std::int64_t each = ColumnRankFunctor<Pattern>::columns_of_item;
    Kokkos::parallel_scan("Tessera::convert[packed] column ranks",
                          Kokkos::RangePolicy<Exec>(space, 0, (p.cols + each - 1) / each), rank);
    ColumnOrderFunctor<Pattern> order;
    order.uses = uses;
    order.place = place;
    order.order = p.hub_columns;
    order.found = found;
    Kokkos::parallel_for("Tessera::convert[packed] column order", Kokkos::RangePolicy<Exec>(space, 0, p.cols), order);
    ColumnUse host{};
    fetch(space, backend, "Tessera::convert[packed] column uses", host, found);
    p.hub_share = packed_near_share(host, p.nnz, bytes_of(p.precision));
    p.renumbered = o.renumber == 1 || p.hub_share >= packed_least_near_share;
    if (p.renumbered) return;
    p.hub_columns = {};
    p.hub_storage.reset();
  }
};

}  // namespace Impl
}  // namespace Tessera

#endif
