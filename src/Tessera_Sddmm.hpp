// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_HPP
#define TESSERA_SDDMM_HPP

#include <cstdint>
#include <memory>

#include "Tessera_CsrPlan.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Statistics.hpp"
#include "sddmm/Tessera_SddmmInstances.hpp"
#include "sddmm/Tessera_SddmmInto.hpp"

namespace Tessera {

/// Sampled dense-dense matrix multiplication for repeated use of one sparsity pattern: for every entry (i, j) of S,
///
///     P_ij := alpha <X_i, Y_j> [* S_ij] + beta P_ij
///
/// with rows X_i of X (m x K) and Y_j of Y (n x K), S m x n, any K >= 0. P has one number per entry, in the order of
/// S's entries; it may be the values of a CrsMatrix with S's pattern, and so go into SpmvPlan, SpmmPlan or their
/// update_values. S_ij enters with SddmmOptions::scale_by_values only.
///
/// Precision (of X and Y; the numbers of S may be of any type):
///
///     FP64        X, Y double    sums double   P double
///     FP32        X, Y float     sums float    P float
///     TF32        X, Y float     sums float    P float             only where asked for; rounds X and Y to 10 bits of
///                                                                  mantissa on matrix units, is FP32 by Rows
///     FP16_FP32   X, Y half_t    sums float    P float or half_t
///     BF16_FP32   as FP16 with bhalf_t
///
/// FP32 panels on NVIDIA's units multiply in two parts of TF32, three products, from K = 30 on: there sums err by no
/// more than FP32 arithmetic may, (K + 2) 2^-24 of <|X_i|, |Y_j|>. Fewer products are summed entry by entry. A 16-bit P
/// is rounded once, at the store.
///
/// Bytes: m K v + n K v + nnz (4 + p) at least, with v bytes per element of X and Y and p of P (2 p where beta != 0);
/// from the caches nnz K v by Rows, and by Panels (column vectors of windows) K v. Time O(nnz K).
///
/// Set-up: Rows 8 bytes per 32 entries, O(rows + nnz) work, one wait. Panels O(nnz) work, some waits for sizes. Csr
/// nothing. Deterministic: bitwise the same result for the same plan options, device, layouts and inputs.
///
/// Scratch (copies of X and Y whose rows are not contiguous words of sixteen bytes, and of Y in TF32) grows at the
/// first apply that needs more, and is kept. Rows reads contiguous rows that are no such words where they lie, unless
/// many entries share each. Thread safety as SpmmPlan. Destroying a plan that has memory on a device
/// waits for it.
///
/// Panels, FlashSparse: Shi et al., "FlashSparse", PPoPP'25, section 4 (swap and transpose), with other loads
/// (backends/kernels/sddmm/Tessera_SddmmWindowKernel.hpp says which). Bsmr: BSMR-SDDMM, with clusters by signatures and
/// columns weighed one by one (sddmm/Tessera_SddmmBsmrEngine.hpp says what differs); two launches per apply, set-up
/// O(nnz) work and the order of rows (reorder::clustered_rows), some waits.
template <class Csr>
class SddmmPlan : public CsrPlan<Csr, Impl::SddmmOperation> {
  using Base = CsrPlan<Csr, Impl::SddmmOperation>;
  using Base::body_, Base::csr_;

 public:
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run

  /// Analyses on `space`. Returns when all sizes are known; the last kernel may still be in flight there. S is trusted:
  /// run validate() on matrices from outside first. Arrays of managed Views stay alive with the plan; those of
  /// unmanaged ones must outlive it.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw DeviceError, OutOfMemory  out of memory of a device, of the host
  SddmmPlan(const execution_space& space, const Csr& S, const SddmmOptions& options = {})
      : Base(space, S, BodyOptions{options}) {}
  /// FlashSparse on the windows of an SpmmPlan by FlashSparse of the same pattern, in A's backend: columns and order of
  /// rows stay where A has them, and live as long as either plan. Adds 8 bytes per block and 8 per row of a block;
  /// O(nnz log windows) work and one wait instead of a conversion.
  /// @param options  algorithm Auto or FlashSparse; backend and window_height are A's
  /// @throw StalePlan  A has other pattern arrays
  /// @throw NotSupported  A is not by FlashSparse, padded, of rows whose columns do not ascend, was made with updatable
  ///        = false, or has windows that an SDDMM instruction of this precision does not fit
  /// @throw InvalidArgument, DeviceError
  template <class SpmmPlanType>
  SddmmPlan(const execution_space& space, const Csr& S, const SpmmPlanType& A, const SddmmOptions& options)
      : Base(space, S, Impl::with_windows_of(S, A, options)) {}

  /// X(m, K), Y(n, K) and P(nnz), or a batch of heads X(h, m, K), Y(h, n, K), P(h, nnz) on the same pattern in one
  /// launch; each of any layout (sub-views). With op_y = Op::Trans, Y is (K, n), of heads (h, K, n), as the second
  /// factor of a product X Y has it. P overlaps neither X nor Y. alpha and beta are host scalars; beta == 0 overwrites
  /// P, NaN included; alpha == 0 reads neither X nor Y. Asynchronous on `space`: one kernel launch (Bsmr: two), one
  /// more for X and for Y (for each of their heads) if their rows are not contiguous words of sixteen bytes (Rows: if
  /// they are not contiguous, or many entries share each), for Y if it is copied in TF32 (SddmmOptions::tf32_copy), and
  /// for P if it is not contiguous; on the Kokkos backend one launch per head. An infinite or undefined number in a row
  /// of X or Y reaches only the entries that use this row, which are finite, infinite or undefined as plain loops make
  /// them. No allocation and no wait once an apply of the same shapes and layouts was made; can be captured in a graph
  /// then.
  /// @throw DimensionMismatch, NotSupported (types, rows of 2^31 bytes or more on backends), InvalidArgument (overlap,
  ///        null pointer), WorkspaceTooSmall, DeviceError
  template <class X, class Y, class P>
  void apply(const execution_space& space, Op op_y, double alpha, const X& x, const Y& y, double beta,
             const P& p) const {
    Impl::check_sddmm_views<Csr, X, Y, P>();
    const auto in = Impl::sddmm_input(x, y, op_y);
    const auto out = Impl::sddmm_output(p);
    Impl::check_sddmm_extents(csr_, in, out);
    body_->apply(space, Op::NoTrans, alpha, in, beta, out);
  }
  /// P := <X_i, Y_j> [* S_ij], Y n x K.
  template <class X, class Y, class P>
  void apply(const execution_space& space, const X& x, const Y& y, const P& p) const {
    apply(space, Op::NoTrans, 1.0, x, y, 0.0, p);
  }

  /// A's numbers := alpha <X_i, Y_j> [* S_ij], written straight into the format of a plan that was made of the same
  /// pattern and multiplies next: an SpmmPlan by FlashSparse or Panels. One head; the same launches as apply, and no
  /// pass over the numbers between. Costs 4 bytes per entry (FlashSparse: 8) for the place of each number.
  /// @param A  SpmmPlan on this pattern; what it has of the numbers of its matrix is replaced, and products of types
  ///        that its format does not take (SpmmPlan: mixed) throw StalePlan until its next update_values
  /// @throw NotSupported  A keeps no numbers (GeSpmm, Csr: write them into its matrix), was made with updatable = false
  ///        or prepare_transpose, or holds another type than the elements of X or, for 16-bit ones, float
  /// @throw DimensionMismatch, StalePlan (A has other pattern arrays), WorkspaceTooSmall, DeviceError
  template <class X, class Y, class Plan>
  void apply_into(const execution_space& space, Op op_y, double alpha, const X& x, const Y& y, const Plan& A) const {
    Impl::sddmm_into<Csr>(csr_, *body_, space, op_y, alpha, x, y, A);
  }

  /// Scratch that an apply of this K and one head needs at most, whatever the layouts of X, Y and P.
  std::size_t workspace_bytes(std::int64_t inner) const { return body_->workspace_bytes(inner); }
  /// With algorithm and backend as decided.
  const SddmmOptions& options() const noexcept { return body_->options(); }
  /// What Auto saw of the matrix; null unless it had to look.
  const SpmmFeatures* features() const noexcept { return body_->features(); }

 private:
  using BodyOptions = Impl::SddmmBodyOptions<typename Csr::memory_space>;
};

/// One-shot P := alpha <X_i, Y_j> + beta P (Reuse::Once: straight from CSR). S is a CsrView or anything csr_view()
/// accepts; with scale_by_values, times S_ij. Shapes and errors: SddmmPlan::apply.
template <class Exec, class Matrix, class X, class Y, class P>
void sddmm(const Exec& space, double alpha, const X& x, const Y& y, const Matrix& S, double beta, const P& p,
           bool scale_by_values = false) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    sddmm(space, alpha, x, y, csr_view(S), beta, p, scale_by_values);
  } else {
    SddmmOptions options;
    options.reuse = Reuse::Once;
    options.scale_by_values = scale_by_values;
    SddmmPlan<Matrix>(space, S, options).apply(space, Op::NoTrans, alpha, x, y, beta, p);
  }
}

}  // namespace Tessera

#endif
