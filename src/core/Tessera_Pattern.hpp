// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_PATTERN_HPP
#define TESSERA_CORE_PATTERN_HPP

#include "Tessera_CsrView.hpp"

namespace Tessera {
namespace Impl {

/// A sparse matrix without its numbers, not owned: what features, orders of rows and conversions look at, which are
/// therefore compiled once for all types of numbers.
template <class Ordinal, class Offset, class Device>
class CsrPattern {
 public:
  using ordinal_type = Ordinal;
  using size_type = Offset;
  using device_type = Device;
  using execution_space = typename Device::execution_space;
  using memory_space = typename Device::memory_space;
  using row_map_type = Kokkos::View<const Offset*, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using entries_type =
      Kokkos::View<const Ordinal*, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  CsrPattern() = default;
  CsrPattern(Ordinal rows, Ordinal cols, const row_map_type& row_map, const entries_type& entries)
      : rows_(rows), cols_(cols), row_map_(row_map), entries_(entries) {}

  KOKKOS_INLINE_FUNCTION Ordinal rows() const noexcept { return rows_; }
  KOKKOS_INLINE_FUNCTION Ordinal cols() const noexcept { return cols_; }
  KOKKOS_INLINE_FUNCTION std::size_t nnz() const noexcept { return entries_.extent(0); }
  KOKKOS_INLINE_FUNCTION const row_map_type& row_map() const noexcept { return row_map_; }
  KOKKOS_INLINE_FUNCTION const entries_type& entries() const noexcept { return entries_; }

 private:
  Ordinal rows_ = 0, cols_ = 0;
  row_map_type row_map_;
  entries_type entries_;
};

template <class Csr>
using PatternOf = CsrPattern<typename Csr::ordinal_type, typename Csr::size_type, typename Csr::device_type>;

template <class Csr>
PatternOf<Csr> pattern_of(const Csr& A) {
  return PatternOf<Csr>(A.rows(), A.cols(), A.row_map(), A.entries());
}

/// Numbers of a matrix, not owned: of which alone a fill depends.
template <class Scalar, class Device>
using ValuesView = Kokkos::View<const Scalar*, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
template <class Csr>
using ValuesOf = ValuesView<typename Csr::value_type, typename Csr::device_type>;

}  // namespace Impl
}  // namespace Tessera

#endif
