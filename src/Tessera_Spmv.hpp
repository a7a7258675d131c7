// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_HPP
#define TESSERA_SPMV_HPP

#include <memory>

#include "Tessera_CsrPlan.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_Statistics.hpp"
#include "spmv/Tessera_SpmvInstances.hpp"

namespace Tessera {

/// y := alpha op(A) x + beta y for repeated use of one sparsity pattern.
///
/// Precision (rows: ComputeType; a narrower one than the matrix rounds A once, here):
///
///     FP64        A double            x double     sums double   y double              m8n8k4 / 16x16x4 f64
///     FP32        A float             x float      sums float    y float               packed slices, CSR5, Csr
///     mixed       A float or 16 bits  x, y double  sums double   Csr, also under Auto (needs A's arrays from then on);
///                 hosts under Auto: float with x, y double from packed slices, where Auto took these
///     FP16_FP32   A rounded to half_t x half_t     sums float    y float or half_t     m16n8k8 / 16x16x16 f16
///     BF16_FP32   as FP16 with bhalf_t
///
/// A 16-bit y is rounded once, at the store.
///
/// Set-up: O(nnz) work on the execution space. Waits: one for the features of the matrix, up to two for sizes, one
/// where hub columns or column blocks are considered; statistics() reports time, memory, padding and launches per
/// apply. Deterministic: bitwise the same result for the same plan options, device and inputs; no floating-point
/// atomics. Thread safety: applies of one plan whose workspace_bytes() is not 0 share scratch. A change of the
/// execution-space instance then waits for the previous one, which must still exist; two host threads must not apply
/// the plan at once; captured graphs replay behind the plan's back and must not run beside other applies. Before
/// capturing, apply once on the capturing instance. Destroying a plan that has memory on a device waits for it.
///
/// DASP: Lu & Liu, SC'23. CSR5: Liu & Vinter, ICS'15. CSR: a Kokkos team takes several rows.
template <class Csr>
class SpmvPlan : public CsrPlan<Csr, Impl::SpmvOperation> {
  using Base = CsrPlan<Csr, Impl::SpmvOperation>;
  using Base::body_, Base::csr_;

 public:
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run

  /// Analyses and converts on `space`. Returns when all sizes are known; the last kernel may still be in flight there.
  /// A is trusted: run validate() on matrices from outside first. Arrays of managed Views stay alive with the plan;
  /// those of unmanaged ones must outlive it with Csr, with mixed types and, on hosts under Auto, with several vectors,
  /// else the call.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw WorkspaceTooSmall  once the sizes are known; nothing of the caller has been written
  /// @throw DeviceError, OutOfMemory  out of memory of a device, of the host
  SpmvPlan(const execution_space& space, const Csr& A, const SpmvOptions& options = {}) : Base(space, A, options) {}

  /// Rank-1: x[cols], y[rows]. Rank-2: x(cols, k), y(rows, k), any layout, k >= 0: one launch per column, or with
  /// PackedSlices one for eight columns (unless values are in a class, columns are hubs or in column blocks). Hosts
  /// under Auto: as SpmmPlan with GeSpmm, straight from A's arrays, from two vectors on if the elements of a row of x
  /// are neighbours (LayoutRight), else from four on (three, or in 16 bits and in column blocks more, where that is
  /// faster). Sums then have another order than those of a vector alone; the first such product sets up what it needs,
  /// and the plan keeps it: pieces of long rows, a copy of x, an order of rows. Host threads that make such products at
  /// once take turns.
  /// alpha and beta are host scalars. beta == 0 overwrites y, NaN included; alpha == 0 does not read x. x and y must
  /// not overlap. Asynchronous on `space`: one kernel launch (two with CSR5, column blocks, or a copy of x at hub
  /// columns), no allocation, no wait; can be captured in a graph.
  /// @throw DimensionMismatch, NotSupported (types, op without prepare_transpose), InvalidArgument (overlap, null
  ///        pointer), DeviceError; OutOfMemory (several vectors on hosts)
  template <class X, class Y>
  void apply(const execution_space& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    Impl::check_vectors<Csr, X, Y>();
    body_->require_op(op);
    Impl::check_extents(csr_, op, x, y);
    const typename X::const_type const_x = x;
    body_->apply(space, op, alpha, Impl::vectors_of(const_x), beta, Impl::vectors_of(y));
  }
  /// y := A x.
  template <class X, class Y>
  void apply(const execution_space& space, const X& x, const Y& y) const {
    apply(space, Op::NoTrans, 1.0, x, 0.0, y);
  }

  /// Scratch that an apply of one vector needs: 0, or sums and counters for rows cut into several pieces, x at hub
  /// columns, sums of column blocks. A transposed plan has its own, which is not counted here and not taken from
  /// SpmvOptions::workspace.
  std::size_t workspace_bytes() const { return body_->workspace_bytes(1); }
  /// What Auto saw of the matrix; null unless it or the algorithm had to look.
  const SpmvFeatures* features() const noexcept { return body_->features(); }
};

/// y := alpha op(A) x + beta y through a plan, in the argument order of KokkosSparse::spmv. mode: "N", "T", "C", "H".
/// Asynchronous as SpmvPlan::apply. @throw InvalidArgument  another mode; and as SpmvPlan::apply
template <class Exec, class Csr, class X, class Y>
void spmv(const Exec& space, const SpmvPlan<Csr>& plan, const char mode[], double alpha, const X& x, double beta,
          const Y& y) {
  plan.apply(space, parse_op(mode), alpha, x, beta, y);
}

/// One-shot y := alpha op(A) x + beta y (Reuse::Once: straight from CSR, no conversion). A is a CsrView or anything
/// csr_view() accepts. For "T" and "H" A is transposed first, which costs far more than the product, and the call
/// waits: keep a plan. Else it does not wait for the product.
/// @throw InvalidArgument  another mode; and as SpmvPlan, apply included
template <class Exec, class Matrix, class X, class Y>
void spmv(const Exec& space, const char mode[], double alpha, const Matrix& A, const X& x, double beta, const Y& y) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    spmv(space, mode, alpha, csr_view(A), x, beta, y);
  } else {
    SpmvOptions options;
    options.reuse = Reuse::Once;
    options.prepare_transpose = parse_op(mode) != Op::NoTrans;
    const SpmvPlan<Matrix> plan(space, A, options);
    plan.apply(space, parse_op(mode), alpha, x, beta, y);
    if (options.prepare_transpose) Compat::fence(space, "Tessera::spmv: the transpose is released");
  }
}

}  // namespace Tessera

#endif
