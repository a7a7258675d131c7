// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_PATTERN_HPP
#define TESSERA_CORE_PATTERN_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "Tessera_BsrView.hpp"
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
  using Pattern = PatternOf<Csr>;
  return Pattern(A.rows(), A.cols(), typename Pattern::row_map_type(A.row_map().data(), A.row_map().extent(0)),
                 typename Pattern::entries_type(A.entries().data(), A.nnz()));
}

/// Numbers of a matrix, not owned: all that a fill needs besides the pattern.
template <class Scalar, class Device>
using ValuesView = Kokkos::View<const Scalar*, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
template <class Csr>
using ValuesOf = ValuesView<typename Csr::value_type, typename Csr::device_type>;

/// The same sizes and the same arrays (not a comparison of their contents), whatever types the offsets have.
template <class A, class B>
bool same_pattern(const A& a, const B& b) noexcept {
  const auto same_place = [](const auto& left, const auto& right) {
    return static_cast<const void*>(left.data()) == static_cast<const void*>(right.data());
  };
  return static_cast<std::size_t>(a.rows()) == static_cast<std::size_t>(b.rows()) &&
         static_cast<std::size_t>(a.cols()) == static_cast<std::size_t>(b.cols()) && a.nnz() == b.nnz() &&
         same_place(a.row_map(), b.row_map()) && same_place(a.entries(), b.entries());
}

/// The same pattern with other numbers.
template <class Csr>
Csr with_values(const Csr& A, const typename Csr::values_type& values) {
  return Csr(A.rows(), A.cols(), A.row_map(), A.entries(), values);
}
template <class S, class O, class F, class D>
BsrView<S, O, F, D> with_values(const BsrView<S, O, F, D>& A, const typename BsrView<S, O, F, D>::values_type& values) {
  return {A.block_rows(), A.block_cols(), A.block(), A.row_map(), A.entries(), values, A.order()};
}

/// Of the three arrays.
template <class Csr>
std::size_t csr_bytes(const Csr& A) {
  return A.row_map().extent(0) * sizeof(typename Csr::size_type) +
         A.nnz() * (sizeof(typename Csr::ordinal_type) + sizeof(typename Csr::value_type));
}

/// Elements side by side, or a stride apart, as kernels take them. Constructing and copying a View checks its extents
/// and asks whether it owns: a good part of the time of a small product.
template <class T, bool Consecutive>
class Elements {
 public:
  using value_type = T;
  using non_const_value_type = std::remove_const_t<T>;

  Elements(T* data, std::int64_t size, std::int64_t stride = 1) : data_(data), size_(size), stride_(stride) {}
  KOKKOS_FORCEINLINE_FUNCTION T& operator()(std::int64_t i) const { return data_[Consecutive ? i : i * stride_]; }
  KOKKOS_FORCEINLINE_FUNCTION T* data() const { return data_; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t size() const { return size_; }
  std::int64_t stride() const { return stride_; }

 private:
  T* data_;
  std::int64_t size_, stride_;
};

/// A matrix as kernels of products take it: its arrays, not owned.
template <class Csr>
class CsrArrays {
 public:
  using value_type = typename Csr::value_type;
  using ordinal_type = typename Csr::ordinal_type;
  using size_type = typename Csr::size_type;
  using execution_space = typename Csr::execution_space;

  explicit CsrArrays(const Csr& A)
      : rows_(A.rows()),
        row_map_(A.row_map().data(), static_cast<std::int64_t>(A.row_map().extent(0))),
        entries_(A.entries().data(), static_cast<std::int64_t>(A.nnz())),
        values_(A.values().data(), static_cast<std::int64_t>(A.nnz())) {}

  KOKKOS_INLINE_FUNCTION ordinal_type rows() const { return rows_; }
  KOKKOS_INLINE_FUNCTION std::size_t nnz() const { return static_cast<std::size_t>(entries_.size()); }
  KOKKOS_INLINE_FUNCTION const Elements<const size_type, true>& row_map() const { return row_map_; }
  KOKKOS_INLINE_FUNCTION const Elements<const ordinal_type, true>& entries() const { return entries_; }
  KOKKOS_INLINE_FUNCTION const Elements<const value_type, true>& values() const { return values_; }

 private:
  ordinal_type rows_;
  Elements<const size_type, true> row_map_;
  Elements<const ordinal_type, true> entries_;
  Elements<const value_type, true> values_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
