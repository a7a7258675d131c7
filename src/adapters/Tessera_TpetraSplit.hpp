// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_SPLIT_HPP
#define TESSERA_ADAPTERS_TPETRA_SPLIT_HPP

#include <cstdint>

#include "Tessera_CsrView.hpp"

/// \file
/// The matrix of a process as A_owned + A_halo: columns that the process owns, numbered as in the domain map, and
/// columns that it receives, numbered as they arrive. A_halo keeps only the rows that have such columns. Both keep the
/// order of the rows, and of the entries inside a row.

namespace Tessera {
namespace Impl {

/// Arrays of one part; row_map and values may be those of the matrix itself.
template <class Csr>
struct SplitPart {
  using device = typename Csr::device_type;
  using Offsets = Kokkos::View<typename Csr::size_type*, Kokkos::LayoutLeft, device>;
  using Ordinals = Kokkos::View<typename Csr::ordinal_type*, Kokkos::LayoutLeft, device>;
  using Values = Kokkos::View<typename Csr::value_type*, Kokkos::LayoutLeft, device>;
  Offsets row_map;
  Ordinals entries;
  Values values;
  typename Csr::ordinal_type rows = 0, cols = 0;

  Csr view() const { return csr_view(rows, cols, row_map, entries, values); }
};

/// place(c): >= 0 the owned column that local column c is, otherwise -1 - (halo column).
template <class Csr>
struct SplitFunctors {
  using Part = SplitPart<Csr>;
  using offset = typename Csr::size_type;
  using ordinal = typename Csr::ordinal_type;
  using Ordinals = typename Part::Ordinals;
  using Offsets = typename Part::Offsets;

  /// Of each row: owned entries, others, and whether there are others.
  struct Count {
    Csr A;
    Ordinals place;
    Offsets owned, halo, boundary;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      offset here = 0;
      for (offset k = A.row_map()(i); k < A.row_map()(i + 1); ++k) here += place(A.entries()(k)) >= 0 ? 1 : 0;
      owned(i) = here;
      halo(i) = A.row_map()(i + 1) - A.row_map()(i) - here;
      boundary(i) = halo(i) > 0 ? 1 : 0;
    }
  };
  /// Counts of rows to sums before rows; one place behind the last row.
  struct Scan {
    Offsets counts;
    std::int64_t rows;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, offset& sum, const bool final) const {
      const offset n = i < rows ? counts(i) : offset(0);
      if (final) counts(i) = sum;
      sum += n;
    }
  };
  /// Entries of both parts, the row map of A_halo and the rows it stands for.
  struct Fill {
    Csr A;
    Ordinals place;
    Offsets owned_before, halo_before, rows_before;
    Part owned, halo;
    Ordinals boundary;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      offset to_owned = owned_before(i), to_halo = halo_before(i);
      const bool at_boundary = halo_before(i + 1) > to_halo;
      if (at_boundary) {
        boundary(rows_before(i)) = static_cast<ordinal>(i);
        halo.row_map(rows_before(i) + 1) = halo_before(i + 1);  // the first is 0 from the start
      }
      for (offset k = A.row_map()(i); k < A.row_map()(i + 1); ++k) {
        const ordinal p = place(A.entries()(k));
        if (p >= 0) {
          owned.entries(to_owned++) = p;
        } else {
          halo.entries(to_halo++) = -1 - p;
        }
      }
    }
  };
  /// Numbers of both parts.
  struct FillValues {
    Csr A;
    Ordinals place;
    Offsets owned_before;
    Part owned, halo;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      offset to_owned = owned_before(i), to_halo = A.row_map()(i) - to_owned;
      for (offset k = A.row_map()(i); k < A.row_map()(i + 1); ++k) {
        if (place(A.entries()(k)) >= 0) {
          owned.values(to_owned++) = A.values()(k);
        } else {
          halo.values(to_halo++) = A.values()(k);
        }
      }
    }
  };
  /// Only the columns' numbers change.
  struct Renumber {
    Csr A;
    Ordinals place, to;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k) const { to(k) = place(A.entries()(k)); }
  };
  /// Number of entries or offsets in which two patterns of the same size differ.
  struct Differences {
    Csr A, B;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k, std::int64_t& found) const {
      if (k < static_cast<std::int64_t>(A.nnz()) && A.entries()(k) != B.entries()(k)) ++found;
      if (k <= static_cast<std::int64_t>(A.rows()) && A.rows() > 0 && A.row_map()(k) != B.row_map()(k)) ++found;
    }
  };
};

/// Blocks of boundary rows, added to or taken from a multivector. n: column * rows of the block + row.
template <class Csr>
struct BoundaryRows {
  using Scalar = typename Csr::value_type;
  using unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  using Block = Kokkos::View<Scalar**, Kokkos::LayoutLeft, typename Csr::device_type, unmanaged>;
  using ConstBlock = Kokkos::View<const Scalar**, Kokkos::LayoutLeft, typename Csr::device_type, unmanaged>;
  using Ordinals = typename SplitPart<Csr>::Ordinals;

  struct Add {
    Ordinals rows;
    ConstBlock from;
    Scalar* to;
    std::int64_t stride, count;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      const std::int64_t j = n / count, i = n - j * count;
      to[rows(i) + j * stride] += from(i, j);
    }
  };
  struct Take {
    Ordinals rows;
    const Scalar* from;
    std::int64_t stride;
    Block to;
    std::int64_t count;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t n) const {
      const std::int64_t j = n / count, i = n - j * count;
      to(i, j) = from[rows(i) + j * stride];
    }
  };
};

template <class Csr>
struct LargestNumber {
  typename Csr::values_type values;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, double& largest) const {
    const double v = fabs(static_cast<double>(values(i)));
    if (v > largest) largest = v;
  }
};

/// Whether two matrices have the same pattern: the same arrays, or arrays with the same contents (O(nnz), waits).
template <class Exec, class Csr>
bool same_pattern(const Exec& space, const Csr& A, const Csr& B) {
  if (A.rows() != B.rows() || A.cols() != B.cols() || A.nnz() != B.nnz()) return false;
  if (A.row_map().data() == B.row_map().data() && A.entries().data() == B.entries().data()) return true;
  std::int64_t found = 0;
  const auto n = static_cast<std::int64_t>(A.nnz()), rows = static_cast<std::int64_t>(A.rows()) + 1;
  Kokkos::parallel_reduce("Tessera::tpetra[pattern]",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, n > rows ? n : rows),
                          typename SplitFunctors<Csr>::Differences{A, B}, found);
  return found == 0;
}

/// A_owned and A_halo of a matrix, and their numbers when these change.
template <class Csr>
class TpetraSplit {
 public:
  using Exec = typename Csr::execution_space;
  using Functors = SplitFunctors<Csr>;
  using Part = SplitPart<Csr>;
  using Ordinals = typename Part::Ordinals;
  using Offsets = typename Part::Offsets;
  using ordinal = typename Csr::ordinal_type;

  TpetraSplit() = default;
  /// @param place     of each column, as in SplitFunctors
  /// @param identity  place(c) == c for every column: the matrix is A_owned as it is
  /// @param owned, received  columns of the parts
  TpetraSplit(const Exec& space, const Csr& A, const Ordinals& place, bool identity, ordinal owned, ordinal received)
      : place_(place) {
    const auto rows = static_cast<std::size_t>(A.rows());
    const auto policy = Kokkos::RangePolicy<Exec>(space, 0, static_cast<std::int64_t>(rows));
    owned_.rows = A.rows();
    owned_.cols = owned;
    halo_.cols = received;
    if (received == 0) {
      // Row map and numbers stay where they are, and the columns' numbers if they can.
      whole_ = true;
      if (identity) {
        view_ = csr_view(A.rows(), owned, A.row_map(), A.entries(), A.values());
      } else {
        owned_.entries = Compat::allocate<Ordinals>(space, "Tessera::tpetra::owned entries", A.nnz());
        Kokkos::parallel_for(
            "Tessera::tpetra[renumber]",
            Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(A.nnz())),
            typename Functors::Renumber{A, place, owned_.entries});
        view_ = csr_view(A.rows(), owned, A.row_map(), owned_.entries, A.values());
      }
      return;
    }
    owned_before_ = Offsets("Tessera::tpetra::owned row_map", rows + 1);
    const Offsets halo_before("Tessera::tpetra::halo offsets", rows + 1);
    const Offsets rows_before("Tessera::tpetra::boundary offsets", rows + 1);
    Kokkos::parallel_for("Tessera::tpetra[count]", policy,
                         typename Functors::Count{A, place, owned_before_, halo_before, rows_before});
    for (const Offsets& counts : {owned_before_, halo_before, rows_before}) {
      const auto n = static_cast<std::int64_t>(rows);
      Kokkos::parallel_scan("Tessera::tpetra[scan]", Kokkos::RangePolicy<Exec>(space, 0, n + 1),
                            typename Functors::Scan{counts, n});
    }
    const auto last = [&](const Offsets& offsets) {
      const Kokkos::View<typename Csr::size_type, Kokkos::HostSpace> value("Tessera::tpetra::size");
      Kokkos::deep_copy(space, value, Kokkos::subview(offsets, rows));
      Compat::fence(space, "Tessera::tpetra[sizes]");
      return static_cast<std::size_t>(value());
    };
    const std::size_t owned_nnz = last(owned_before_), halo_nnz = last(halo_before), halo_rows = last(rows_before);
    owned_.row_map = owned_before_;
    owned_.entries = Compat::allocate<Ordinals>(space, "Tessera::tpetra::owned entries", owned_nnz);
    owned_.values = Compat::allocate<typename Part::Values>(space, "Tessera::tpetra::owned values", owned_nnz);
    halo_.rows = static_cast<ordinal>(halo_rows);
    halo_.row_map = Offsets("Tessera::tpetra::halo row_map", halo_rows + 1);
    halo_.entries = Compat::allocate<Ordinals>(space, "Tessera::tpetra::halo entries", halo_nnz);
    halo_.values = Compat::allocate<typename Part::Values>(space, "Tessera::tpetra::halo values", halo_nnz);
    boundary_ = Compat::allocate<Ordinals>(space, "Tessera::tpetra::boundary rows", halo_rows);
    Kokkos::parallel_for(
        "Tessera::tpetra[split]", policy,
        typename Functors::Fill{A, place, owned_before_, halo_before, rows_before, owned_, halo_, boundary_});
    update(space, A);
    Compat::fence(space, "Tessera::tpetra[split]");  // the offsets are released here
    view_ = owned_.view();
  }

  /// New numbers of the same pattern. One kernel, or none where A_owned is the matrix.
  void update(const Exec& space, const Csr& A) {
    if (whole_) {
      view_ = Csr(view_.rows(), view_.cols(), view_.row_map(), view_.entries(), A.values());
    } else if (A.rows() > 0) {
      Kokkos::parallel_for("Tessera::tpetra[values]",
                           Kokkos::RangePolicy<Exec>(space, 0, static_cast<std::int64_t>(A.rows())),
                           typename Functors::FillValues{A, place_, owned_before_, owned_, halo_});
    }
  }

  /// A_owned: every row, columns of the domain map.
  const Csr& owned() const { return view_; }
  /// A_halo: row r is row boundary()(r) of the matrix. No rows where nothing is received.
  Csr halo() const { return halo_.view(); }
  const Ordinals& boundary() const { return boundary_; }

 private:
  Ordinals place_, boundary_;
  Offsets owned_before_;
  Part owned_, halo_;
  Csr view_;
  bool whole_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
