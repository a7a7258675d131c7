// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BSR_SPMV_HPP
#define TESSERA_BSR_SPMV_HPP

#include <memory>

#include "Tessera_BsrView.hpp"
#include "Tessera_Spmv.hpp"
#include "spmv/Tessera_BsrOperation.hpp"

namespace Tessera {

/// y := alpha op(A) x + beta y for a matrix of dense blocks, from the caller's arrays: nothing is converted or copied,
/// a plan owns no memory (but for op(A) = A^T), and its set-up reads nothing of the matrix.
///
///     auto A = Tessera::bsr_view(block_rows, block_cols, 3, row_map, block_columns, values);
///     Tessera::SpmvPlan plan(space, A);
///     plan.apply(space, x, y);                    // x[3 block_cols], y[3 block_rows]
///
/// Shapes: blocks of any side b >= 1 in every BlockOrder. On devices blocks of 2 to 8 are fast, up to 32 have the same
/// kernel; wider ones, 64-bit columns, 16-bit numbers and vectors of other types than A's are multiplied by one thread
/// per row. A block row belongs to one wave: matrices with a few block rows of 10^4 blocks or more are better off as a
/// CsrView.
/// Precision: of A. FP64 sums in double, FP32 in float; other types as SpmvAlgorithm::Csr.
/// Cost per apply: b^2 v + 4 bytes per block, an offset per block row, x and y once; one launch, no scratch.
/// Asynchronous, capturable in a graph, deterministic (bitwise the same result for the same device and inputs); plans
/// may be applied by several threads and instances at once.
/// Options: backend, fallback, updatable, prepare_transpose and packed.bypass count; others are for CsrViews.
template <class Scalar, class Ordinal, class Offset, class Device>
class SpmvPlan<BsrView<Scalar, Ordinal, Offset, Device>> {
 public:
  using bsr_type = BsrView<Scalar, Ordinal, Offset, Device>;   ///< the matrix
  using execution_space = typename bsr_type::execution_space;  ///< where plan and applies run
  using memory_space = typename bsr_type::memory_space;        ///< where x and y lie
  using value_type = Scalar;                                   ///< of the matrix

  /// Waits for nothing without prepare_transpose, which builds A^T by blocks (BSR's memory again, and two offsets per
  /// block). A is trusted. Arrays of managed Views stay alive with the plan; those of unmanaged ones must outlive it.
  /// @throw NotCompiled, NotSupported  before any kernel is launched
  SpmvPlan(const execution_space& space, const bsr_type& A, const SpmvOptions& options = {})
      : bsr_(A), body_(std::make_unique<Body>(space, A, options)) {}
  /// Plans can be moved and not copied.
  SpmvPlan(SpmvPlan&&) noexcept = default;
  /// See SpmvPlan(SpmvPlan&&).
  SpmvPlan& operator=(SpmvPlan&&) noexcept = default;
  SpmvPlan(const SpmvPlan&) = delete;
  SpmvPlan& operator=(const SpmvPlan&) = delete;

  /// Rank-1: x[cols], y[rows], counted in numbers. Rank-2: x(cols, k), y(rows, k), any layout: one launch per column.
  /// alpha and beta are host scalars. beta == 0 overwrites y, NaN included; alpha == 0 does not read x. x and y must
  /// not overlap.
  /// @throw DimensionMismatch, NotSupported (op without prepare_transpose), InvalidArgument (overlap, null
  ///        pointer), DeviceError
  template <class X, class Y>
  void apply(const execution_space& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    Impl::check_vectors<bsr_type, X, Y>();
    body_->require_op(op);
    Impl::check_extents(bsr_, op, x, y);
    const typename X::const_type const_x = x;
    body_->apply(space, op, alpha, Impl::vectors_of(const_x), beta, Impl::vectors_of(y));
  }
  /// y := A x.
  template <class X, class Y>
  void apply(const execution_space& space, const X& x, const Y& y) const {
    apply(space, Op::NoTrans, 1.0, x, 0.0, y);
  }

  /// New numbers for the same pattern: the plan reads this view from now on (numbers changed in place need no call, but
  /// for A^T). With a transpose one gather.
  /// @param values  b^2 numbers per block in the plan's BlockOrder
  /// @throw StalePlan  wrong number of values, or options.updatable was false
  void update_values(const execution_space& space, const typename bsr_type::values_type& values) {
    body_->update_values(space, values);
    bsr_ = Impl::with_values(bsr_, values);
  }
  /// The same, with a check that A has the plan's pattern arrays, side and order. @throw StalePlan
  void update_values(const execution_space& space, const bsr_type& A) {
    Impl::require<StalePlan>(matches(A), [] {
      return std::string(
          "update_values: the matrix has other sizes, blocks or pattern arrays than the plan was made for");
    });
    update_values(space, A.values());
  }

  /// Same sizes, blocks and order and the same row_map and entries arrays (not a comparison of their contents).
  bool matches(const bsr_type& A) const noexcept {
    return A.block() == bsr_.block() && A.order() == bsr_.order() && body_->matches(A);
  }

  /// 0.
  std::size_t workspace_bytes() const { return body_->workspace_bytes(1); }
  /// 0: formats are none; the arrays of A^T, if it was asked for, are not counted.
  std::size_t format_bytes() const { return body_->format_bytes(); }
  /// With algorithm and backend as decided.
  const SpmvOptions& options() const noexcept { return body_->options(); }
  /// Null: blocks are not looked at.
  const SpmvFeatures* features() const noexcept { return body_->features(); }
  /// What was chosen, why, and what it costs: format_bytes are those of BSR. Host work only.
  Statistics statistics() const { return body_->statistics(); }

 private:
  using Body = Impl::PlanBody<Impl::BsrOperation<bsr_type>>;

  bsr_type bsr_;
  std::unique_ptr<Body> body_;
};

/// One-shot y := alpha op(A) x + beta y for blocks. For "T" and "H" A is transposed first: keep a plan.
template <class Exec, class S, class O, class F, class D, class X, class Y>
void spmv(const Exec& space, const char mode[], double alpha, const BsrView<S, O, F, D>& A, const X& x, double beta,
          const Y& y) {
  SpmvOptions options;
  options.prepare_transpose = parse_op(mode) != Op::NoTrans;
  const SpmvPlan<BsrView<S, O, F, D>> plan(space, A, options);
  plan.apply(space, parse_op(mode), alpha, x, beta, y);
  if (options.prepare_transpose) Compat::fence(space, "Tessera::spmv: the transpose is released");
}

}  // namespace Tessera

#endif
