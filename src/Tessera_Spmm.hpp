// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_HPP
#define TESSERA_SPMM_HPP

#include <cstdint>
#include <memory>

#include "Tessera_CsrPlan.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_Statistics.hpp"
#include "spmm/Tessera_SpmmInstances.hpp"

namespace Tessera {

/// C := alpha op(A) B + beta C for repeated use of one sparsity pattern; op(A) is m x k, B k x n, C m x n, n >= 0.
///
/// Precision (rows: ComputeType; a narrower one than the matrix rounds A once, here):
///
///     FP64        A double            B double     sums double   C double
///     FP32        A float             B float      sums float    C float
///     TF32        A float             B float      sums float    C float              only where asked for
///     FP16_FP32   A rounded to half_t B half_t     sums float    C float or half_t
///     BF16_FP32   as FP16 with bhalf_t
///     mixed       any of double, float, half_t, bhalf_t for A, B and C: sums double as soon as one is double, else
///                 float. GeSpmm and Csr in the matrix's own precision, also under Auto (needs A's arrays from then on)
///
/// TF32 rounds both operands to 10 bits of mantissa on matrix units. By rows (GeSpmm, on devices and in emulation; also
/// under Auto, where they are faster) it is FP32 arithmetic, with B rounded to TF32 where that saves time
/// (GeSpmmOptions::tf32_copy). FP32 panels on NVIDIA's units multiply both operands in two parts of TF32, three
/// products; rows in which that might err by more than FP32 arithmetic, (k + 2) 2^-24 of |A| |B| for k entries, are
/// multiplied by rows beside them, in FP32. A 16-bit C is rounded once, at the store.
///
/// A batch of small matrices is one block-diagonal matrix: row maps and columns shifted by the rows and columns of
/// those before, B and C stacked; one plan and one launch then serve all of them.
///
/// Set-up: O(nnz) work on the execution space for Panels and FlashSparse, with a few waits for sizes; GeSpmm looks for
/// rows to split (O(rows), one wait; hosts with one thread: nothing), Csr does nothing. statistics() reports time,
/// memory, padding and launches per apply. Deterministic: bitwise the same result for the same plan options, device
/// (hosts: number of threads), layouts and inputs; no floating-point atomics.
///
/// Scratch (copies of operands whose layout a kernel does not take, of B in TF32, sums of split rows and windows) grows
/// at the first apply that needs more, and is kept. Thread safety: applies that need scratch, or on hosts look at A for
/// the first time (see apply()), share what they keep. A change of the
/// execution-space instance then waits for the previous one, which must still exist; two host threads must not apply
/// the plan at once; captured graphs replay behind the plan's back and must not run beside other applies. Before
/// capturing, apply once with the same shapes on the capturing instance. Destroying a plan that has memory on a device
/// waits for it.
///
/// FlashSparse: Shi et al., PPoPP'25. GeSpmm: Huang et al., SC'20, split rows as in RoDe: Pang et al., PPoPP'24.
template <class Csr>
class SpmmPlan : public CsrPlan<Csr, Impl::SpmmOperation> {
  using Base = CsrPlan<Csr, Impl::SpmmOperation>;
  using Base::body_, Base::csr_;

 public:
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run

  /// Analyses and converts on `space`. Returns when all sizes are known; the last kernel may still be in flight there.
  /// A is trusted: run validate() on matrices from outside first. Arrays of managed Views stay alive with the
  /// plan; those of unmanaged ones must outlive it with GeSpmm, Csr, mixed types and, under Auto, B and C in
  /// LayoutLeft, else the call.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw DeviceError, OutOfMemory  out of memory of a device, of the host
  SpmmPlan(const execution_space& space, const Csr& A, const SpmmOptions& options = {}) : Base(space, A, options) {}

  /// Rank-2 B(k, n) and C(m, n), each LayoutRight, LayoutLeft or LayoutStride (sub-views); they must not overlap.
  /// alpha and beta are host scalars. beta == 0 overwrites C, NaN included; alpha == 0 does not read B; rows of B that
  /// A has no entry for enter no sum, and so an infinite or undefined number reaches those elements of C that plain
  /// loops would give it to (Panels and FlashSparse compute windows that met one a second time, entry by entry).
  /// Asynchronous on `space`: one kernel launch, two where rows or windows are split, one more for rows that FP32
  /// panels leave to rows, one more for each operand that has to be copied: B if its rows are not contiguous, or
  /// with Panels and FlashSparse not aligned to 16 bytes, B in TF32 (Tf32Copy), C if its rows are not contiguous (with
  /// GeSpmm on devices: where rows of A are uneven, or of 50 entries and more, or C is wide). B and C in LayoutLeft
  /// stay where they lie, with GeSpmm and under Auto, unless copies take less time. No allocation and no wait once an
  /// apply of the same shapes and layouts was made; can be captured in a graph then. (Hosts: the first with up to three
  /// columns may put short rows in the order of their lengths; the first with a B in rows of 2 MiB and more looks at
  /// A's columns, and may cut rows into blocks of them, 4 to 8 bytes per row and block. format_bytes() then counts
  /// these.)
  /// @throw DimensionMismatch, NotSupported (types, op without prepare_transpose), InvalidArgument (overlap, null
  ///        pointer), StalePlan (mixed types that go straight from CSR, after SddmmPlan::apply_into has replaced the
  ///        format's numbers and until update_values), WorkspaceTooSmall, DeviceError
  template <class B, class C>
  void apply(const execution_space& space, Op op, double alpha, const B& b, double beta, const C& c) const {
    Impl::check_dense<Csr, B, C>();
    body_->require_op(op);
    const typename B::const_type const_b = b;
    using Input = Impl::DenseInput<typename B::non_const_value_type>;
    const Input from{Impl::dense_of(const_b), static_cast<std::size_t>(b.span())};
    const auto to = Impl::dense_of(c);
    Impl::check_dense_extents(csr_, op, from.matrix, to);
    body_->apply(space, op, alpha, from, beta, to);
  }
  /// C := A B.
  template <class B, class C>
  void apply(const execution_space& space, const B& b, const C& c) const {
    apply(space, Op::NoTrans, 1.0, b, 0.0, c);
  }

  /// Scratch that applies to n columns need at most, whatever the layouts of B and C (operands that are taken where
  /// they lie need less; mixed element types with GeSpmm may copy a B of double). A transposed plan has its own, which
  /// is not counted here and not taken from SpmmOptions::workspace.
  std::size_t workspace_bytes(std::int64_t num_columns) const { return body_->workspace_bytes(num_columns); }
  /// What Auto saw of the matrix; null unless it had to look.
  const SpmmFeatures* features() const noexcept { return body_->features(); }
};

/// C := alpha op(A) B + beta C through a plan, in the argument order of KokkosSparse::spmv. mode: "N", "T", "C", "H".
/// Asynchronous as SpmmPlan::apply. @throw InvalidArgument  another mode; and as SpmmPlan::apply
template <class Exec, class Csr, class B, class C>
void spmm(const Exec& space, const SpmmPlan<Csr>& plan, const char mode[], double alpha, const B& b, double beta,
          const C& c) {
  plan.apply(space, parse_op(mode), alpha, b, beta, c);
}

/// One-shot C := alpha op(A) B + beta C (Reuse::Once: straight from CSR, no conversion). A is a CsrView or anything
/// csr_view() accepts. For "T" and "H" A is transposed first, which may cost more than the product, and the call
/// waits: keep a plan. Else it does not wait for the product.
/// @throw InvalidArgument  another mode; and as SpmmPlan, apply included
template <class Exec, class Matrix, class B, class C>
void spmm(const Exec& space, const char mode[], double alpha, const Matrix& A, const B& b, double beta, const C& c) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    spmm(space, mode, alpha, csr_view(A), b, beta, c);
  } else {
    SpmmOptions options;
    options.reuse = Reuse::Once;
    options.prepare_transpose = parse_op(mode) != Op::NoTrans;
    const SpmmPlan<Matrix> plan(space, A, options);
    plan.apply(space, parse_op(mode), alpha, b, beta, c);
    if (options.prepare_transpose) Compat::fence(space, "Tessera::spmm: the transpose is released");
  }
}

}  // namespace Tessera

#endif
