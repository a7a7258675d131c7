// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CSR_VIEW_HPP
#define TESSERA_CSR_VIEW_HPP

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "Tessera_Compat.hpp"
#include "Tessera_Error.hpp"
#include "Tessera_Types.hpp"

namespace Tessera {

/// Sparse matrix in compressed rows: three const Views and two sizes. Row i holds entries row_map(i) ...
/// row_map(i+1)-1. Columns inside a row may be unsorted and may repeat (repeated entries add up in every product).
///
/// As everywhere in Kokkos, a View that owns its memory keeps it alive: the arrays of managed Views live as long as the
/// view, its copies and every plan made of it. What unmanaged Views point to is the caller's care, as long as these
/// live.
///
/// @tparam Scalar   double, float, half_t or bhalf_t.
/// @tparam Ordinal  signed or unsigned integer; the number of columns must be below 2^31.
/// @tparam Offset   any integer of at least 32 bits (int, unsigned, std::int64_t, size_t): consumed as it is; unsigned
///                  ones of 32 bits count up to 2^32 - 1 entries.
/// @tparam Device   Kokkos::Device<ExecutionSpace, MemorySpace>.
template <class Scalar, class Ordinal, class Offset, class Device>
class CsrView {
 public:
  static_assert(Impl::ScalarTraits<Scalar>::supported,
                "Tessera::CsrView: Scalar must be double, float, Tessera::half_t or Tessera::bhalf_t");
  static_assert(std::is_integral_v<Ordinal> && std::is_integral_v<Offset> && sizeof(Offset) >= 4,
                "Tessera::CsrView: Ordinal and Offset must be integers, Offset of 32 bits or more");
  using value_type = Scalar;                                 ///< of the entries
  using ordinal_type = Ordinal;                              ///< of rows and columns
  using size_type = Offset;                                  ///< of offsets
  using device_type = Device;                                ///< where the arrays lie
  using execution_space = typename Device::execution_space;  ///< where plans run
  using memory_space = typename Device::memory_space;        ///< where the arrays lie
  /// rows + 1 offsets.
  using row_map_type = Kokkos::View<const Offset*, Kokkos::LayoutLeft, Device>;
  /// The columns.
  using entries_type = Kokkos::View<const Ordinal*, Kokkos::LayoutLeft, Device>;
  /// The numbers.
  using values_type = Kokkos::View<const Scalar*, Kokkos::LayoutLeft, Device>;

  CsrView() = default;

  /// @throw InvalidArgument  negative or too large sizes
  /// @throw DimensionMismatch  row_map must have rows + 1 elements (or none, if rows is 0), values as many as entries
  CsrView(Ordinal rows, Ordinal cols, const row_map_type& row_map, const entries_type& entries,
          const values_type& values)
      : rows_(rows), cols_(cols), row_map_(row_map), entries_(entries), values_(values) {
    if constexpr (std::is_signed_v<Ordinal>) {
      Impl::require<InvalidArgument>(rows >= 0 && cols >= 0, [&] {
        return "CSR sizes must not be negative: " + std::to_string(rows) + " x " + std::to_string(cols);
      });
    }
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
    Impl::require<InvalidArgument>(
        static_cast<std::uint64_t>(rows) <= limit && static_cast<std::uint64_t>(cols) <= limit, [&] {
          return "CSR sizes above 2^31 - 1 are not supported: " + std::to_string(rows) + " x " + std::to_string(cols);
        });
    Impl::require<DimensionMismatch>(
        row_map.extent(0) == static_cast<std::size_t>(rows) + 1 || (rows == 0 && row_map.extent(0) == 0), [&] {
          return "row_map has " + std::to_string(row_map.extent(0)) + " elements, " + std::to_string(rows) +
                 " rows need " + std::to_string(static_cast<std::size_t>(rows) + 1);
        });
    Impl::require<DimensionMismatch>(entries.extent(0) == values.extent(0), [&] {
      return "entries has " + std::to_string(entries.extent(0)) + " elements, values has " +
             std::to_string(values.extent(0));
    });
    Impl::require<InvalidArgument>(
        entries.extent(0) <= static_cast<std::uint64_t>(std::numeric_limits<Offset>::max()),
        [&] { return std::to_string(entries.extent(0)) + " entries do not fit the offset type of row_map"; });
    Impl::require<InvalidArgument>(
        (rows == 0 || row_map.data() != nullptr) &&
            (entries.extent(0) == 0 || (entries.data() != nullptr && values.data() != nullptr)),
        [] { return std::string("CSR arrays must not be null"); });
  }

  /// Sizes of the matrix.
  KOKKOS_INLINE_FUNCTION Ordinal rows() const noexcept { return rows_; }
  /// See rows().
  KOKKOS_INLINE_FUNCTION Ordinal cols() const noexcept { return cols_; }
  /// Length of entries, which must equal row_map(rows) (validate() checks it).
  KOKKOS_INLINE_FUNCTION std::size_t nnz() const noexcept { return entries_.extent(0); }
  /// Where each row begins, and the end.
  KOKKOS_INLINE_FUNCTION const row_map_type& row_map() const noexcept { return row_map_; }
  /// Columns, row by row.
  KOKKOS_INLINE_FUNCTION const entries_type& entries() const noexcept { return entries_; }
  /// Numbers, in the order of the columns.
  KOKKOS_INLINE_FUNCTION const values_type& values() const noexcept { return values_; }

 private:
  Ordinal rows_ = 0, cols_ = 0;
  row_map_type row_map_;
  entries_type entries_;
  values_type values_;
};

namespace Impl {
template <class T>
struct IsCsrView : std::false_type {};
template <class S, class O, class F, class D>
struct IsCsrView<CsrView<S, O, F, D>> : std::true_type {};
}  // namespace Impl

namespace Impl {
/// A rank-1 View of unit stride as To, which shares its ownership.
template <class To, class From>
To plain_view(const From& from) {
  // A single element has any stride, which Kokkos does not assign to a layout of unit stride.
  if (from.extent(0) <= 1 && from.stride(0) != 1) return To(from.data(), from.extent(0));
  return To(from);
}

/// What csr_view() and bsr_view() require of the three arrays. @throw InvalidArgument
template <class RowMap, class Entries, class Values>
void check_csr_arrays(const char* function, const RowMap& row_map, const Entries& entries, const Values& values) {
  static_assert(Compat::is_view_v<RowMap> && Compat::is_view_v<Entries> && Compat::is_view_v<Values>,
                "Tessera::csr_view, bsr_view: row_map, entries and values must be Kokkos Views");
  static_assert(
      Compat::view_rank<RowMap> == 1 && Compat::view_rank<Entries> == 1 && Compat::view_rank<Values> == 1 &&
          std::is_same_v<typename RowMap::memory_space, typename Entries::memory_space> &&
          std::is_same_v<typename RowMap::memory_space, typename Values::memory_space>,
      "Tessera::csr_view, bsr_view: row_map, entries and values must have rank 1 and live in one memory space");
  const auto contiguous = [](const auto& view) { return view.extent(0) <= 1 || view.stride(0) == 1; };
  require<InvalidArgument>(contiguous(row_map) && contiguous(entries) && contiguous(values), [&] {
    return std::string(function) + ": row_map, entries and values must have unit stride; copy strided Views first";
  });
}
}  // namespace Impl

/// From three rank-1 Views. No copy, no allocation, no kernel. Managed Views are kept alive by the result.
template <class RowMap, class Entries, class Values>
auto csr_view(typename Entries::non_const_value_type rows, typename Entries::non_const_value_type cols,
              const RowMap& row_map, const Entries& entries, const Values& values) {
  Impl::check_csr_arrays("csr_view", row_map, entries, values);
  using Result = CsrView<typename Values::non_const_value_type, typename Entries::non_const_value_type,
                         typename RowMap::non_const_value_type, typename Values::device_type>;
  return Result(rows, cols, Impl::plain_view<typename Result::row_map_type>(row_map),
                Impl::plain_view<typename Result::entries_type>(entries),
                Impl::plain_view<typename Result::values_type>(values));
}

/// From any matrix that exposes graph.row_map, graph.entries, values, numRows() and numCols():
/// KokkosSparse::CrsMatrix of every version from 3.4 to 5. No copy.
template <class CrsMatrix, class = decltype(std::declval<const CrsMatrix&>().graph.row_map)>
auto csr_view(const CrsMatrix& A) {
  return csr_view(A.numRows(), A.numCols(), A.graph.row_map, A.graph.entries, A.values);
}

/// What validate() found.
struct CsrReport {
  bool valid = true;             ///< plans may be made of it
  std::string fault;             ///< empty if valid; else the first kind of fault with its place
  long long duplicate_rows = 0;  ///< rows with adjacent equal columns (legal)
  long long unsorted_rows = 0;   ///< rows whose columns are not ascending (legal)
};

namespace Impl {
/// First row with a fault, as rows * kind + row would not fit: one minimum per kind.
template <class Csr>
struct ValidateFunctor {
  using value_type = long long;
  Csr A;
  Kokkos::View<long long*, typename Csr::device_type> found;  // 0: row_map, 1: column range, 2: duplicates, 3: unsorted

  KOKKOS_INLINE_FUNCTION void operator()(const long long row) const {
    const auto begin = A.row_map()(row), end = A.row_map()(row + 1);
    const auto outside = [&](const auto at) { return static_cast<unsigned long long>(at) > A.nnz(); };  // negative, too
    if (end < begin || outside(begin) || outside(end) || (row == 0 && begin != 0)) {
      Kokkos::atomic_fetch_min(&found(0), row);
      return;
    }
    bool repeats = false, descends = false;
    for (auto i = begin; i < end; ++i) {
      const auto column = A.entries()(i);
      if (!(column < A.cols()) || column + 1 < 1) Kokkos::atomic_fetch_min(&found(1), row);
      if (i > begin) {
        repeats = repeats || column == A.entries()(i - 1);
        descends = descends || column < A.entries()(i - 1);
      }
    }
    if (repeats) Kokkos::atomic_fetch_add(&found(2), 1LL);
    if (descends) Kokkos::atomic_fetch_add(&found(3), 1LL);
  }
};
}  // namespace Impl

/// Checks a CSR matrix on its device: row_map starts at 0, does not descend and ends at nnz; columns lie in range.
/// O(rows + nnz), reads 4..12 bytes per entry, one kernel and two copies to the host (it waits). Never throws for a bad
/// matrix: the report says what is wrong and where.
template <class Exec, class Scalar, class Ordinal, class Offset, class Device>
CsrReport validate(const Exec& space, const CsrView<Scalar, Ordinal, Offset, Device>& A) {
  using Csr = CsrView<Scalar, Ordinal, Offset, Device>;
  CsrReport report;
  const auto rows = static_cast<long long>(A.rows());
  Kokkos::View<long long*, Device> found("Tessera::validate", 4);
  auto host = Kokkos::create_mirror_view(found);
  host(0) = host(1) = rows;
  host(2) = host(3) = 0;
  Kokkos::deep_copy(space, found, host);
  if (rows > 0) {
    Kokkos::parallel_for("Tessera::validate", Kokkos::RangePolicy<Exec>(space, 0, rows),
                         Impl::ValidateFunctor<Csr>{A, found});
  }
  Kokkos::deep_copy(space, host, found);
  auto last = Kokkos::View<Offset, Kokkos::HostSpace>("last");
  if (rows > 0) Kokkos::deep_copy(space, last, Kokkos::subview(A.row_map(), static_cast<std::size_t>(rows)));
  Compat::fence(space, "Tessera::validate");
  report.duplicate_rows = host(2);
  report.unsorted_rows = host(3);
  if (host(0) < rows) {
    report.fault = "row_map is not ascending from 0 within " + std::to_string(A.nnz()) + " entries at row " +
                   std::to_string(host(0));
  } else if (rows > 0 && static_cast<unsigned long long>(last()) != A.nnz()) {
    report.fault = "row_map ends at " + std::to_string(last()) + ", there are " + std::to_string(A.nnz()) + " entries";
  } else if (rows == 0 && A.nnz() != 0) {
    report.fault = "no rows, but " + std::to_string(A.nnz()) + " entries";
  } else if (host(1) < rows) {
    report.fault = "a column outside [0, " + std::to_string(A.cols()) + ") in row " + std::to_string(host(1));
  }
  report.valid = report.fault.empty();
  return report;
}

}  // namespace Tessera

#endif
