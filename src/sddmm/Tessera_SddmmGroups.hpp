// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_GROUPS_HPP
#define TESSERA_SDDMM_SDDMM_GROUPS_HPP

#include <cstdint>
#include <memory>

#include "backends/interface/Tessera_SddmmArgs.hpp"
#include "core/Tessera_Arena.hpp"

/// \file
/// Which row each entry belongs to: eight bytes per 32 entries.

namespace Tessera {
namespace Impl {

template <class MemorySpace>
struct SddmmGroups {
  template <class T>
  using View = typename Arena<MemorySpace>::template View<T>;
  std::shared_ptr<void> storage, row_storage;
  View<SddmmGroup> groups;
  View<std::int32_t> row_of;  ///< rows with entries; empty: all have

  /// Rows that have entries, of so many.
  std::int64_t rows_of(std::int64_t rows) const {
    return row_of.extent(0) > 0 ? static_cast<std::int64_t>(row_of.extent(0)) : rows;
  }
  std::size_t bytes() const { return sizeof(SddmmGroup) * groups.extent(0) + 4 * row_of.extent(0); }
};

template <class Pattern>
struct SddmmGroupFunctors {
  template <class T>
  using View = typename Arena<typename Pattern::memory_space>::template View<T>;

  /// Rows that have entries, in a list; over rows + 1.
  struct List {
    using value_type = std::int32_t;
    Pattern A;
    std::int64_t rows;
    View<std::int32_t> before;  ///< how many of them stand before each row
    View<std::int32_t> row_of;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r, std::int32_t& sum, const bool final) const {
      if (final) before(r) = sum;
      if (r == rows || A.row_map()(r) == A.row_map()(r + 1)) return;
      if (final) row_of(sum) = static_cast<std::int32_t>(r);
      ++sum;
    }
  };

  /// Over the groups.
  struct Fill {
    Pattern A;
    std::int64_t rows, nnz;
    View<std::int32_t> before, row_of;  ///< empty: all rows have entries
    View<SddmmGroup> groups;
    KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t r) const {
      return static_cast<std::int64_t>(A.row_map()(r));
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t g) const {
      const std::int64_t first = g * SddmmGroup::entries;
      const std::int64_t last = first + SddmmGroup::entries < nnz ? first + SddmmGroup::entries : nnz;
      std::int64_t low = 0, high = rows;  // the last row that begins at `first` or before: it has entries
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        if (begin(middle) <= first) {
          low = middle;
        } else {
          high = middle;
        }
      }
      const bool listed = row_of.extent(0) > 0;
      std::int64_t place = listed ? before(low) : low;
      SddmmGroup group{static_cast<std::int32_t>(place), 0};
      for (;;) {
        const std::int64_t end = begin((listed ? row_of(place) : place) + 1);
        if (end >= last) break;
        group.starts |= std::uint32_t{1} << (end - first);
        ++place;
      }
      groups(g) = group;
    }
  };
};

/// O(rows + nnz / 32 log(rows)) work, one wait; 4 bytes per row of temporary memory.
template <class Pattern, class Exec>
SddmmGroups<typename Pattern::memory_space> sddmm_groups(const Exec& space, const Pattern& A,
                                                         const KernelTable* backend) {
  using F = SddmmGroupFunctors<Pattern>;
  using Memory = typename Pattern::memory_space;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  SddmmGroups<Memory> made;
  const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
  if (nnz == 0) return made;
  typename F::template View<std::int32_t> before, list;
  const auto temporary = Arena<Memory>::make(
      space, backend, "Tessera::sddmm::rows", Lifetime::Temporary,
      [&](Arena<Memory>& arena) { before = arena.template take<std::int32_t>(static_cast<std::size_t>(rows) + 1); });
  made.row_storage = Arena<Memory>::make(
      space, backend, "Tessera::sddmm::row_of", Lifetime::Plan,
      [&](Arena<Memory>& arena) { list = arena.template take<std::int32_t>(static_cast<std::size_t>(rows)); });
  Kokkos::parallel_scan("Tessera::sddmm[rows] rows with entries", Policy(space, 0, rows + 1),
                        typename F::List{A, rows, before, list});
  std::int32_t used = 0;
  using One = typename F::template View<std::int32_t>;
  fetch(space, backend, "Tessera::sddmm[rows] rows with entries", used, One(before.data() + rows, 1));
  if (used < rows) {
    made.row_of = One(list.data(), static_cast<std::size_t>(used));
  } else {
    made.row_storage.reset();
  }
  const std::int64_t groups = (nnz + SddmmGroup::entries - 1) / SddmmGroup::entries;
  made.storage = Arena<Memory>::make(space, backend, "Tessera::sddmm::groups", Lifetime::Plan, [&](auto& arena) {
    made.groups = arena.template take<SddmmGroup>(static_cast<std::size_t>(groups));
  });
  Kokkos::parallel_for("Tessera::sddmm[rows] groups", Policy(space, 0, groups),
                       typename F::Fill{A, rows, nnz, before, made.row_of, made.groups});
  // Without a pool of the backend `before` is a View, which must not go before the kernel has read it.
  if (backend == nullptr || backend->runtime.allocate == nullptr) Compat::fence(space, "Tessera::sddmm[rows] groups");
  return made;
}

}  // namespace Impl
}  // namespace Tessera

#endif
