// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_REORDER_HPP
#define TESSERA_REORDER_REORDER_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_SegmentedSort.hpp"
#include "reorder/Tessera_CuthillMcKee.hpp"
#include "reorder/Tessera_Permutation.hpp"
#include "reorder/Tessera_SectorStatistics.hpp"

/// \file
/// Another order of rows and columns, for matrices whose products wait for gathers from x. Opt-in: no plan reorders by
/// itself.
///
///     auto p = reorder::rcm(space, A);                  // once for a pattern
///     auto B = reorder::permute_symmetric(space, A, p);  // B = P A P^T, its own arrays
///     SpmvPlan plan(space, B.view());
///     reorder::permute_vector(space, p, x, px);          // x' = P x
///     plan.apply(space, px, py);                         // y' = B x' = P (A x)
///     reorder::unpermute_vector(space, p, py, y);        // y = P^T y'
///
/// An iterative solver stays in the new order and moves its right-hand side and its solution only.
/// sector_statistics(space, A) and (space, B.view()) tell what was won; a matrix that came in a good order may lose.

namespace Tessera {
namespace reorder {

/// P A P^T in CSR with its own arrays, and for each entry the place it came from, so that new values need no new sort.
template <class Csr>
struct Permuted {
  using device = typename Csr::device_type;                                       ///< where the arrays are
  Kokkos::View<typename Csr::size_type*, Kokkos::LayoutLeft, device> row_map;     ///< rows + 1
  Kokkos::View<typename Csr::size_type*, Kokkos::LayoutLeft, device> source;      ///< place in A of each entry
  Kokkos::View<typename Csr::ordinal_type*, Kokkos::LayoutLeft, device> entries;  ///< columns
  Kokkos::View<typename Csr::value_type*, Kokkos::LayoutLeft, device> values;     ///< as many
  typename Csr::ordinal_type rows = 0;                                            ///< and columns

  /// The same as plans take it; keeps the arrays alive.
  Csr view() const { return csr_view(rows, rows, row_map, entries, values); }
};

namespace Impl {

/// Copies to another integer type.
template <class To, class From>
struct Convert {
  To to;
  From from;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    to(i) = static_cast<typename To::non_const_value_type>(from(i));
  }
};
/// The integers of a View as T, in host memory.
template <class T, class Exec, class From>
auto host_integers(const Exec& space, const From& from) {
  using To = Kokkos::View<T*, Kokkos::LayoutLeft, typename From::device_type>;
  auto to = Compat::allocate<To>(space, "Tessera::reorder::integers", from.extent(0));
  Kokkos::parallel_for("Tessera::reorder integers",
                       EntryPolicy<Exec>(space, 0, static_cast<std::int64_t>(from.extent(0))),
                       Convert<To, From>{to, from});
  Compat::fence(space, "Tessera::reorder integers");
  return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), to);
}

template <class Csr>
void require_square(const char* name, const Csr& A) {
  Tessera::Impl::require<DimensionMismatch>(A.rows() == A.cols(), [&] {
    return std::string(name) + ": one order for rows and columns needs a square matrix; A is " +
           std::to_string(A.rows()) + " x " + std::to_string(A.cols());
  });
}

template <class Csr, class Permutation>
struct PermuteFunctors {
  using Result = Permuted<Csr>;
  using offset = typename Csr::size_type;
  using ordinal = typename Csr::ordinal_type;
  using Sort = Tessera::Impl::SegmentedSort<typename Csr::device_type, ordinal, offset>;
  using Inverse =
      Kokkos::View<typename Permutation::non_const_value_type*, Kokkos::LayoutLeft, typename Permutation::device_type>;

  /// Entries of a row in the new order.
  struct Length {
    Csr A;
    Permutation p;
    KOKKOS_INLINE_FUNCTION offset of(std::int64_t i) const { return A.row_map()(p(i) + 1) - A.row_map()(p(i)); }
  };
  struct Longest {
    Length length;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& longest) const {
      const auto n = static_cast<std::int64_t>(length.of(i));
      if (n > longest) longest = n;
    }
  };
  struct Scan {
    Length length;
    Result B;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, offset& sum, const bool final) const {
      if (final) B.row_map(i) = sum;
      if (i < rows) sum += length.of(i);
    }
  };
  /// Entries in the order of A's rows, with their new columns; the sort orders them.
  struct Entries {
    Csr A;
    Permutation p;
    Inverse inverse;
    Result B;
    Sort sort;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t row = Tessera::Impl::segment_of(B.row_map, rows, i);
      const offset from = A.row_map()(p(row)) + (static_cast<offset>(i) - B.row_map(row));
      sort.segments(i) = static_cast<std::int32_t>(row);
      sort.payload(i) = from;
      sort.keys(i) = static_cast<ordinal>(inverse(A.entries()(from)));
    }
  };
  struct Values {
    typename Csr::values_type from;
    Result B;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { B.values(i) = from(B.source(i)); }
  };
};

}  // namespace Impl

/// Whether rcm() exists in this build of the library (it uses Boost Graph: CMake option Tessera_ENABLE_BOOST).
inline bool has_rcm() noexcept { return Tessera::Impl::has_cuthill_mckee(); }

/// Reverse Cuthill-McKee order of a square matrix: p such that B = P A P^T, B(i,j) = A(p(i), p(j)), has its entries
/// near the diagonal, and neighbouring rows of B use neighbouring elements of x.
///
/// Works on the graph of A + A^T, so an unsymmetric pattern is welcome; values play no part. Each connected component
/// is numbered breadth first from a vertex far from its others (George and Liu's pseudo-peripheral search), neighbours
/// by ascending degree, and then reversed; components keep the order of their lowest rows, so that a diagonal matrix
/// stays as it is. A heuristic: bandwidth and traffic usually fall and may rise (see sector_statistics()).
///
/// The pattern is copied to the host, where one thread does the work: O(nnz log m) time for a longest row m, in a
/// handful of breadth-first searches, 3 to 4 times the memory of the columns. Deterministic: the order depends on the
/// pattern alone (ties in degree fall as std::sort leaves them, so another standard library may break them otherwise).
///
/// Sources: E. Cuthill, J. McKee, Reducing the bandwidth of sparse symmetric matrices, Proc. 24th ACM National
/// Conference, 1969, 157-172; A. George, Computer implementation of the finite element method, Stanford STAN-CS-71-208,
/// 1971 (the reversal). The search and the numbering are Boost Graph's cuthill_mckee_ordering (Boost Software License).
///
/// @return  p, in the memory of A: p(i) is the old number of the new row i; without elements if A has no rows
/// @throw DimensionMismatch  A is not square
/// @throw InvalidArgument  A is not a valid matrix (validate())
/// @throw NotSupported  the library was built without Boost
template <class Exec, class Scalar, class Ordinal, class Offset, class Device>
Kokkos::View<Ordinal*, Kokkos::LayoutLeft, Device> rcm(const Exec& space,
                                                       const CsrView<Scalar, Ordinal, Offset, Device>& A) {
  Impl::require_square("reorder::rcm", A);
  if (!has_rcm()) Tessera::Impl::reverse_cuthill_mckee(0, nullptr, nullptr);  // throws, with the way out
  Impl::require_valid(space, "reorder::rcm", A);
  const Compat::ScopedRegion region("Tessera::reorder[rcm]");
  const auto n = static_cast<std::size_t>(A.rows());
  const auto p =
      Compat::allocate_zeros<Kokkos::View<Ordinal*, Kokkos::LayoutLeft, Device>>("Tessera::reorder::permutation", n);
  if (n == 0) return p;
  const auto row_map = Impl::host_integers<std::int64_t>(space, A.row_map());
  const auto entries = Impl::host_integers<std::int32_t>(space, A.entries());
  const std::vector<std::int32_t> order =
      Tessera::Impl::reverse_cuthill_mckee(static_cast<std::int32_t>(n), row_map.data(), entries.data());
  const auto host = Kokkos::create_mirror_view(p);
  for (std::size_t i = 0; i < n; ++i) host(i) = static_cast<Ordinal>(order[i]);
  Kokkos::deep_copy(p, host);
  return p;
}

/// New numbers for a permuted matrix of the same pattern; one gather, enqueued.
/// @throw DimensionMismatch  another number of values
template <class Exec, class Csr>
void update_permuted_values(const Exec& space, const Permuted<Csr>& B, const typename Csr::values_type& values) {
  Tessera::Impl::require<DimensionMismatch>(values.extent(0) == B.values.extent(0), [&] {
    return "reorder::update_permuted_values: " + std::to_string(values.extent(0)) + " values for " +
           std::to_string(B.values.extent(0)) + " entries";
  });
  using F = Impl::PermuteFunctors<Csr, decltype(B.entries)>;
  Kokkos::parallel_for("Tessera::reorder[permute] values",
                       Impl::EntryPolicy<Exec>(space, 0, static_cast<std::int64_t>(values.extent(0))),
                       typename F::Values{values, B});
}

/// B = P A P^T, that is B(i,j) = A(p(i), p(j)), as a new matrix on the same device; A stays as it is. Columns of a row
/// ascend; repeated entries stay, in the order of A.
///
/// All on the device: O(nnz log^2 m) work for a longest row m, in ceil(log2 m) + 8 kernels that all entries share, so
/// that a dense row holds nobody up. Beside the result, two columns, two offsets and an int per entry while it works.
/// Deterministic, bit for bit. Waits.
///
/// @param p  from rcm() or from anywhere: any integers, any layout, in memory that A's device can reach
/// @throw DimensionMismatch  A is not square, or p has not as many elements as A has rows
/// @throw InvalidArgument  p is no permutation of 0 ... n-1, or A is not a valid matrix (validate())
template <class Exec, class Scalar, class Ordinal, class Offset, class Device, class Permutation>
Permuted<CsrView<Scalar, Ordinal, Offset, Device>> permute_symmetric(const Exec& space,
                                                                     const CsrView<Scalar, Ordinal, Offset, Device>& A,
                                                                     const Permutation& p) {
  using Csr = CsrView<Scalar, Ordinal, Offset, Device>;
  using F = Impl::PermuteFunctors<Csr, Permutation>;
  using Policy = Impl::EntryPolicy<Exec>;
  static_assert(Compat::is_view_v<Permutation> && Compat::view_rank<Permutation> == 1 &&
                    std::is_integral_v<typename Permutation::non_const_value_type>,
                "Tessera::reorder::permute_symmetric: p must be a Kokkos View of integers of rank 1");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename Permutation::memory_space>::accessible,
                "Tessera::reorder::permute_symmetric: p must be accessible from the execution space");
  Impl::require_square("reorder::permute_symmetric", A);
  Tessera::Impl::require<DimensionMismatch>(p.extent(0) == static_cast<std::size_t>(A.rows()), [&] {
    return "reorder::permute_symmetric: A has " + std::to_string(A.rows()) + " rows, p has " +
           std::to_string(p.extent(0)) + " elements";
  });
  Impl::require_valid(space, "reorder::permute_symmetric", A);
  const typename F::Inverse inverse = reorder::inverse(space, p);
  const Compat::ScopedRegion region("Tessera::reorder[permute]");
  const auto rows = static_cast<std::int64_t>(A.rows()), nnz = static_cast<std::int64_t>(A.nnz());
  Permuted<Csr> B;
  B.rows = A.rows();
  B.row_map = Compat::allocate_zeros<decltype(B.row_map)>("Tessera::permuted::row_map", rows + 1);
  if (nnz == 0) return B;
  const typename F::Length length{A, p};
  std::int64_t longest = 0;
  Kokkos::parallel_reduce("Tessera::reorder[permute] longest row", Policy(space, 0, rows), typename F::Longest{length},
                          Kokkos::Max<std::int64_t>(longest));
  Kokkos::parallel_scan("Tessera::reorder[permute] row_map", Policy(space, 0, rows + 1),
                        typename F::Scan{length, B, rows});
  typename F::Sort sort(space, nnz, true);
  Kokkos::parallel_for("Tessera::reorder[permute] entries", Policy(space, 0, nnz),
                       typename F::Entries{A, p, inverse, B, sort, rows});
  Compat::fence(space, "Tessera::reorder[permute]");  // `longest` is read now
  sort.run(space, B.row_map, longest);
  B.entries = sort.keys;
  B.source = sort.payload;
  B.values = Compat::allocate<decltype(B.values)>(space, "Tessera::permuted::values", A.nnz());
  update_permuted_values(space, B, A.values());
  Compat::fence(space, "Tessera::reorder[permute]");  // what the sort kept is released here
  return B;
}

}  // namespace reorder
}  // namespace Tessera

#endif
