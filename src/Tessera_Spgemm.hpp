// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_HPP
#define TESSERA_SPGEMM_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"
#include "Tessera_Statistics.hpp"
#include "core/Tessera_HugePages.hpp"
#include "core/Tessera_KeptArrays.hpp"
#include "spgemm/Tessera_SpgemmCalls.hpp"
#include "spgemm/Tessera_SpgemmInstances.hpp"

namespace Tessera {

/// Sparse matrix product C := A B with A m x k, B k x n, in two phases, as Kokkos Kernels and cuSPARSE have it:
///
///     SpgemmPlan<Csr> plan(space, A, B);
///     View<Offset*> row_map("row_map", A.rows() + 1);
///     const std::int64_t nnz = plan.symbolic(space, row_map);
///     View<Ordinal*> entries("entries", nnz);  View<Scalar*> values("values", nnz);
///     plan.numeric(space, row_map, entries, values);
///     plan.update_values(space, A, B, row_map, entries, values);   // later, with other numbers
///
/// or in one call: C = spgemm(space, A, B). FP64 and FP32, sums in the same precision; offsets of 32 and 64 bits.
/// Columns of C ascend in every row, without copies; an entry whose products cancel stays. Those of A and B may be
/// unsorted and may repeat (Heap wants those of B in order; Dia wants all of them in order, without copies). On hosts
/// every algorithm; on other spaces Binned, Dia and Ell (SpgemmAlgorithm).
///
/// Deterministic: the products of an entry are added in the order of A's row and then of B's, so that the number of
/// threads does not show; nor does the algorithm where the compiler does not fuse multiplications with additions. Where
/// A has few, very long rows (of hundreds of entries in the mean), or a few of thousands of entries among others that
/// are done long before, backends add within pieces of a row first, the same on every device. An infinite or undefined
/// number reaches only entries with a product of it.
///
/// Time O(products + rows) for each phase. Memory: 8 bytes per row of C, and scratch. What each algorithm needs
/// besides, of both, is with SpgemmAlgorithm; workspace_bytes() has the sum of the threads' scratch, formats, and the
/// most that Binned will have at once. SpgemmOptions::max_workspace_bytes keeps it lower by fewer threads; Dia
/// and Ell refuse. Scratch is allocated by the first phase, formats by the plan, and kept. (With matrices of one
/// pattern, or one matrix twice, formats are shared.)
///
/// Phases of one plan must not run at the same time. They return when they are done, so that each may have another
/// execution space instance; numbers of A and B that were enqueued on other instances must be there before. Destroying
/// a plan that has memory on a device waits for it.
///
/// Rows by Gustavson, TOMS 1978; methods: Xie et al., "IA-SpGEMM", PPoPP'19, section 2.
template <class Csr>
class SpgemmPlan {
  static_assert(Impl::IsCsrView<Csr>::value, "Tessera::SpgemmPlan: the template argument must be a Tessera::CsrView");
  static_assert(std::is_floating_point_v<typename Csr::value_type>,
                "Tessera::SpgemmPlan: matrices of double or float are multiplied");

 public:
  using csr_type = Csr;                                   ///< of A, B and C
  using execution_space = typename Csr::execution_space;  ///< where the phases run
  using memory_space = typename Csr::memory_space;        ///< where the arrays lie
  using value_type = typename Csr::value_type;            ///< of the entries
  using ordinal_type = typename Csr::ordinal_type;        ///< of columns
  using size_type = typename Csr::size_type;              ///< of offsets

  /// Counts products and chooses (SpgemmModel; less than a tenth of a product). The matrices are trusted: run
  /// validate() on those from outside first. Arrays of managed Views stay alive with the plan; those of unmanaged ones
  /// must outlive it. Work O(nnz(A) + nnz(B) + m).
  /// @throw DimensionMismatch  A has not as many columns as B has rows
  /// @throw NotSupported  another algorithm than Binned, Dia or Ell where no host is, than Binned with a backend of
  ///        devices, unsorted B (Heap), A or B with unsorted or repeated columns (Dia), more scratch or formats than
  ///        max_workspace_bytes; all but Binned say how many bytes they need
  /// @throw OutOfMemory, DeviceError  no room for what the plan keeps
  SpgemmPlan(const execution_space& space, const Csr& A, const Csr& B, const SpgemmOptions& options = {})
      : SpgemmPlan(space, A, B, options, false) {}
  /// Plans can be moved and not copied.
  SpgemmPlan(SpgemmPlan&&) noexcept = default;
  /// See SpgemmPlan(SpgemmPlan&&).
  SpgemmPlan& operator=(SpgemmPlan&&) noexcept = default;
  SpgemmPlan(const SpgemmPlan&) = delete;
  SpgemmPlan& operator=(const SpgemmPlan&) = delete;

  /// Sizes of C.
  ordinal_type rows() const noexcept { return A_.rows(); }
  /// See rows().
  ordinal_type cols() const noexcept { return B_.cols(); }
  /// Entries of C; -1 before symbolic(), and after one that threw.
  std::int64_t nnz() const noexcept { return body_->nnz(); }
  /// Multiplications of a phase.
  std::int64_t products() const noexcept { return body_->products(); }

  /// Writes the m + 1 offsets of C's rows. @return nnz(C)
  /// @throw DimensionMismatch  another extent  @throw InvalidArgument  null pointer, overlap with A or B
  /// @throw NotSupported  nnz(C) is above 2^31 - 1 and offsets have 32 bits, signed or not; row_map is as it was
  /// @throw OutOfMemory, DeviceError
  template <class RowMap>
  std::int64_t symbolic(const execution_space& space, const RowMap& row_map) {
    Impl::check_spgemm_array<Csr, size_type>("row_map", row_map, static_cast<std::size_t>(rows()) + 1);
    Impl::require_spgemm_apart("row_map", row_map, A_, B_);
    return body_->symbolic(space, reinterpret_cast<Offset*>(row_map.data()));
  }
  /// Writes the columns and numbers of C. @param row_map  as symbolic() wrote it
  /// @throw StalePlan  before symbolic()  @throw DimensionMismatch  other extents than m + 1, nnz(C), nnz(C)
  /// @throw InvalidArgument  null pointer, overlap of entries or values with each other, row_map, A or B
  /// @throw OutOfMemory, DeviceError
  template <class RowMap, class Entries, class Values>
  void numeric(const execution_space& space, const RowMap& row_map, const Entries& entries,
               const Values& values) const {
    check_arrays(row_map, entries, values);
    Impl::require_spgemm_apart("entries", entries, "row_map", row_map);
    Impl::require_spgemm_apart("entries", entries, A_, B_);
    check_values(A_, B_, row_map, entries, values);
    body_->numeric(space, reinterpret_cast<const Offset*>(row_map.data()), entries.data(), values.data());
  }
  /// The numbers of C for matrices of the same pattern; its columns stay. A and B take the place of the plan's.
  /// @param entries  as numeric() wrote them
  /// @throw StalePlan  before symbolic(); other pattern arrays  @throw DimensionMismatch
  /// @throw InvalidArgument  null pointer, overlap of values with row_map, entries, A or B
  /// @throw OutOfMemory, DeviceError  A and B are the plan's nevertheless
  template <class RowMap, class Entries, class Values>
  void update_values(const execution_space& space, const Csr& A, const Csr& B, const RowMap& row_map,
                     const Entries& entries, const Values& values) {
    check_arrays(row_map, entries, values);
    check_values(A, B, row_map, entries, values);
    body_->take(Impl::plan_matrix(A), Impl::plan_matrix(B));
    A_ = A;  // before anything else can throw: the body has their arrays now
    B_ = B;
    body_->update(space, reinterpret_cast<const Offset*>(row_map.data()), entries.data(), values.data());
  }

  /// Scratch that a phase takes at most, known as soon as the plan is there: no phase ever takes more, but the first
  /// update_values that brings two arrays of numbers to a plan by Dia or Ell which was made of one matrix twice, and
  /// which then takes those of B besides. Beside it are 8 bytes per row that the plan keeps and, of hosts' own methods,
  /// 4 per row while symbolic() counts.
  std::size_t workspace_bytes() const { return body_->workspace_bytes(); }
  /// With the algorithm as decided.
  const SpgemmOptions& options() const noexcept { return options_; }
  /// What was chosen, why, and what it costs; nnz is that of C, 0 before symbolic(). Host work only.
  Statistics statistics() const { return body_->statistics(); }

 private:
  friend struct Impl::SpgemmOnce;
  using Body = Impl::SpgemmBody<Impl::PlanMatrixOf<Csr>>;
  using Offset = typename Impl::PlanMatrixOf<Csr>::size_type;

  SpgemmPlan(const execution_space& space, const Csr& A, const Csr& B, const SpgemmOptions& options, bool once)
      : A_(A),
        B_(B),
        options_(options),
        body_(std::make_unique<Body>(space, Impl::plan_matrix(A), Impl::plan_matrix(B), options, once)) {
    options_.algorithm = body_->algorithm();
  }
  template <class RowMap, class Entries, class Values>
  void check_arrays(const RowMap& row_map, const Entries& entries, const Values& values) const {
    Impl::require<StalePlan>(nnz() >= 0, [] { return std::string("spgemm: symbolic() has to come first"); });
    Impl::check_spgemm_array<Csr, size_type>("row_map", row_map, static_cast<std::size_t>(rows()) + 1);
    Impl::check_spgemm_array<Csr, ordinal_type>("entries", entries, static_cast<std::size_t>(nnz()));
    Impl::check_spgemm_array<Csr, value_type>("values", values, static_cast<std::size_t>(nnz()));
  }
  template <class RowMap, class Entries, class Values>
  void check_values(const Csr& A, const Csr& B, const RowMap& row_map, const Entries& entries,
                    const Values& values) const {
    Impl::require_spgemm_apart("values", values, "row_map or entries", row_map, entries);
    Impl::require_spgemm_apart("values", values, A, B);
  }

  Csr A_, B_;  ///< keep the caller's arrays alive
  SpgemmOptions options_;
  std::unique_ptr<Body> body_;
};

/// One-shot C = A B. A and B are CsrViews of one type, or anything csr_view() accepts; C owns its arrays.
/// Large arrays of C are asked for in huge pages on Linux hosts: new pages of 4 KiB can cost as much as the product.
/// Where one thread of a Linux host multiplies row by row, nothing is counted first: C's arrays are parts of larger
/// ones, with an entry per product, up to 4 GiB, of which only the pages that C fills are memory. If the address space
/// has no room for them, entries are counted. By a backend C's arrays are parts of up to 32 MiB for as many entries as
/// rows may have, min(products, columns from first to last), where that is enough, so that they are allocated beside
/// the search for columns. On devices these arrays are kept for later calls when C's last owner lets go of them
/// (SpgemmOptions::keep_memory). May be called from several threads at once.
/// @throw DimensionMismatch, NotSupported  @throw OutOfMemory  C does not fit; says how large it is
template <class Exec, class MatrixA, class MatrixB>
auto spgemm(const Exec& space, const MatrixA& A, const MatrixB& B, const SpgemmOptions& options = {}) {
  if constexpr (!Impl::IsCsrView<MatrixA>::value || !Impl::IsCsrView<MatrixB>::value) {
    const auto view = [](const auto& M) {
      if constexpr (Impl::IsCsrView<std::decay_t<decltype(M)>>::value) {
        return M;
      } else {
        return csr_view(M);
      }
    };
    return spgemm(space, view(A), view(B), options);
  } else {
    static_assert(std::is_same_v<MatrixA, MatrixB>, "Tessera::spgemm: A and B must have the same types");
    using Device = typename MatrixA::device_type;
    auto plan = Impl::SpgemmOnce::plan(space, A, B, options);
    const Impl::KeptArrays::Turn memory(Impl::SpgemmOnce::kept_bytes(plan));
    const auto make = [&](const char* name, auto element, std::size_t n) {
      return memory.take<Kokkos::View<decltype(element)*, Kokkos::LayoutLeft, Device>>(name, n);
    };
    const std::int64_t most = Impl::SpgemmOnce::start(plan, space);
    if (most >= 0) {
      const auto room = static_cast<std::size_t>(most);
      if constexpr (Compat::is_host_v<Exec>) {
        try {
          return Impl::SpgemmOnce::finish<MatrixA>(plan, space, room, make);
        } catch (const OutOfMemory&) {
          // Even what is not used may be refused on hosts. Then entries are counted first.
        }
      } else {
        return Impl::SpgemmOnce::finish<MatrixA>(plan, space, room, make);
      }
    }
    const auto row_map = make("C row_map", typename MatrixA::size_type(), static_cast<std::size_t>(A.rows()) + 1);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(space, row_map));
    const auto entries = make("C entries", typename MatrixA::ordinal_type(), nnz);
    const auto values = make("C values", typename MatrixA::value_type(), nnz);
    plan.numeric(space, row_map, entries, values);
    return MatrixA(A.rows(), B.cols(), row_map, entries, values);
  }
}

/// Releases the arrays that spgemm() kept (SpgemmOptions::keep_memory) and that no C owns any more; those of a C that
/// is there are no longer kept, but released with it. Kokkos::finalize does the same. Waits as a View of Kokkos does
/// when it is released.
inline void release_kept_memory() { Impl::KeptArrays::all().release(); }

/// Bytes of arrays that are kept for later calls and that no C owns.
inline std::size_t kept_memory_bytes() { return Impl::KeptArrays::all().unused_bytes(); }

}  // namespace Tessera

#endif
