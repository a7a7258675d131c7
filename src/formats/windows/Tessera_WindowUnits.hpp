// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_WINDOW_UNITS_HPP
#define TESSERA_FORMATS_WINDOWS_WINDOW_UNITS_HPP

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "backends/interface/Tessera_SddmmKernels.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"

/// \file
/// A sparsity pattern for matrix units: windows of rows, cut into units of as many column vectors as an instruction
/// takes.

namespace Tessera {
namespace Experimental {

/// Windows of shape.rows rows. The distinct columns of a window, ascending, fill units of shape.vectors, the last one
/// with fewer. Of each row of a unit a word of bits says in which column vectors it has an entry, and a number where
/// its first one stands in CSR. A row that repeats a column makes the window repeat it.
///
/// Bytes: units (8 + 4 vectors + 8 rows); where rows are unsorted 4 nnz more.
///
/// Experimental: its names may change between minor versions.
template <class MemorySpace>
struct WindowUnits {
  template <class T>
  using View = Kokkos::View<T*, Kokkos::LayoutLeft, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  std::shared_ptr<void> storage;

  SddmmShape shape;
  Precision precision = Precision::FP16;
  std::int64_t rows = 0, cols = 0, nnz = 0, windows = 0, units = 0;
  std::int64_t column_vectors = 0;  ///< distinct columns of the windows, summed: rows of Y fetched an apply
  View<SddmmUnit> unit;
  View<SddmmUnitRow> unit_rows;  ///< [unit][row of the window]
  View<std::int32_t> columns;    ///< [unit][vector]
  View<std::uint32_t> entry_at;  ///< entry in ascending columns -> entry in CSR; empty: the same

  std::size_t format_bytes() const {
    return sizeof(SddmmUnit) * unit.extent(0) + sizeof(SddmmUnitRow) * unit_rows.extent(0) + 4 * columns.extent(0) +
           4 * entry_at.extent(0);
  }

  /// The kernel's arguments; dense operands left open.
  SddmmWindowArgs arguments() const {
    SddmmWindowArgs a;
    a.precision = precision;
    a.window_rows = shape.rows;
    a.rows = rows;
    a.units = units;
    a.unit = unit.data();
    a.unit_rows = unit_rows.data();
    a.columns = columns.data();
    a.entry_at = entry_at.extent(0) > 0 ? entry_at.data() : nullptr;
    return a;
  }
};

}  // namespace Experimental

namespace Impl {

template <class Pattern>
struct WindowUnitFunctors {
  using Base = typename WindowFunctors<Pattern>::Base;
  template <class T>
  using View = typename WindowFunctors<Pattern>::template View<T>;

  /// Over the windows.
  struct Units : Base {
    template <class T>
    using View = typename WindowFunctors<Pattern>::template View<T>;
    View<SddmmUnit> unit;
    explicit Units(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION std::uint32_t units_of(std::int64_t w) const {
      return w < this->windows ? this->first_block(w + 1) - this->first_block(w) : 0;
    }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t w) const {
      constexpr int turns = SddmmUnit::side_by_side;
      const std::int64_t first = w / turns * turns;
      std::uint32_t left =
          this->leaders(this->begin(this->first_row(w + 1))) - this->leaders(this->begin(this->first_row(w)));
      for (std::uint32_t u = 0; left > 0; ++u) {
        std::uint32_t at = this->first_block(first);
        for (int j = 0; j < turns; ++j) {
          const std::uint32_t other = units_of(first + j);
          at += other < u ? other : u;
          if (first + j < w && other > u) ++at;
        }
        const std::uint32_t count = left < this->depth ? left : this->depth;
        unit(at) = {static_cast<std::uint32_t>(w) | (count - 1) << SddmmUnit::window_bits, this->first_block(w) + u};
        left -= count;
      }
    }
  };

  /// Over the entries: each sets its bit; the first one of its row in the unit says where it stands.
  struct Bits : Base {
    template <class T>
    using View = typename WindowFunctors<Pattern>::template View<T>;
    View<SddmmUnitRow> rows;
    explicit Bits(const Base& b) : Base(b) {}
    KOKKOS_INLINE_FUNCTION std::uint32_t vector(std::uint32_t p) const { return this->column_vector(this->leader(p)); }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const auto p = static_cast<std::uint32_t>(i);
      const std::uint32_t v = vector(p), u = v / this->depth;
      const auto r = static_cast<std::uint32_t>(this->row(p));
      SddmmUnitRow& to = rows(std::int64_t{u} * this->height + r % this->height);
      Kokkos::atomic_fetch_or(&to.bits, std::uint32_t{1} << (v - u * this->depth));
      if (p == this->begin(r) || vector(p - 1) / this->depth != u) to.begin = p;
    }
  };
  struct Clear {
    View<SddmmUnitRow> rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { rows(i) = {0, 0}; }
  };
  template <class Origin>
  struct CopyOrigin {
    Origin from;
    View<std::uint32_t> to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { to(i) = static_cast<std::uint32_t>(from(i)); }
  };
};

/// Work O(nnz shape.rows log(longest row)), one thread per entry; temporary memory and waits of WindowUnion. The last
/// kernels may still be in flight on `space`.
/// @throw NotSupported  2^32 - 1 entries or more, 2^28 windows or more; DeviceError
template <class Pattern, class Exec>
Experimental::WindowUnits<typename Pattern::memory_space> window_units(const Exec& space, const Pattern& A,
                                                                       const SddmmShape& shape, Precision precision,
                                                                       const KernelTable* backend) {
  using F = WindowUnitFunctors<Pattern>;
  using Memory = typename Pattern::memory_space;
  using Union = WindowUnion<Pattern>;
  Experimental::WindowUnits<Memory> f;
  f.shape = shape;
  f.precision = precision;
  f.rows = static_cast<std::int64_t>(A.rows());
  f.cols = static_cast<std::int64_t>(A.cols());
  f.nnz = static_cast<std::int64_t>(A.nnz());
  f.windows = (f.rows + shape.rows - 1) / shape.rows;
  require<NotSupported>(
      A.nnz() < std::numeric_limits<std::uint32_t>::max() && f.windows < SddmmUnit::most_windows, [&] {
        return "sddmm[panels]: " + std::to_string(A.nnz()) + " entries in " + std::to_string(f.windows) +
               " windows; fewer than 2^32 - 1 and 2^28 are supported: use SddmmAlgorithm::Rows";
      });
  if (f.nnz == 0) return f;
  const Union u(space, A, shape.rows, shape.vectors, true, 0, {}, backend);
  f.column_vectors = u.column_vectors();
  f.units = u.blocks();
  const auto units = static_cast<std::size_t>(f.units), rows = units * static_cast<std::size_t>(shape.rows);
  f.storage = Arena<Memory>::make(space, backend, "Tessera::window units", Lifetime::Plan, [&](Arena<Memory>& arena) {
    f.unit = arena.template take<SddmmUnit>(units);
    f.unit_rows = arena.template take<SddmmUnitRow>(rows);
    f.columns = arena.template take<std::int32_t>(units * static_cast<std::size_t>(shape.vectors));
    f.entry_at = arena.template take<std::uint32_t>(u.origin.extent(0));
  });
  u.write_columns(space, f.columns);
  typename F::Units list(u.base);
  list.unit = f.unit;
  Kokkos::parallel_for("Tessera::sddmm[panels] units", Union::range(space, f.windows), list);
  Kokkos::parallel_for("Tessera::sddmm[panels] clear", Union::range(space, static_cast<std::int64_t>(rows)),
                       typename F::Clear{f.unit_rows});
  typename F::Bits bits(u.base);
  bits.rows = f.unit_rows;
  Kokkos::parallel_for("Tessera::sddmm[panels] bits", Union::range(space, f.nnz), bits);
  if (f.entry_at.extent(0) > 0) {
    using Origin = std::decay_t<decltype(u.origin)>;
    Kokkos::parallel_for("Tessera::sddmm[panels] order of entries", Union::range(space, f.nnz),
                         typename F::template CopyOrigin<Origin>{u.origin, f.entry_at});
  }
  return f;
}

}  // namespace Impl
}  // namespace Tessera

#endif
