// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_HPP
#define TESSERA_ATTENTION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "Tessera_CsrPlan.hpp"
#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_RowSoftmax.hpp"
#include "Tessera_Statistics.hpp"
#include "attention/Tessera_AttentionCalls.hpp"
#include "attention/Tessera_AttentionInstances.hpp"

namespace Tessera {

/// Attention on a sparse pattern, forward and backward, for repeated use of the pattern A (m x n):
///
///     S_ij := scale <Q_i, K_j> [+ A_ij] [* A_ij] for the entries (i, j) of A,   P := softmax of the rows of S,
///     O := P V
///
/// with Q m x d, K n x d, V n x e, O m x e, any d and e from 0 on; entries that repeat count twice. A_ij enters as
/// AttentionOptions::values says. A row without entries gives a row of zeros.
///
/// Precision: Q, K, V, O, their gradients and A have one type, double, float, half_t or bhalf_t; scores, softmax and
/// sums are double if that is double, else float, and so is the log-sum-exp. float may be multiplied in TF32
/// (AttentionOptions::compute), on matrix units alone; Rows and backward multiply it in FP32 all the same. 16-bit
/// results are rounded once, at the store. Softmax takes the largest score of a row off its scores first: scores of any
/// size are safe. (Kernels of backends, which count in binary logarithms, may take those beyond 2e38, in double 6e307,
/// for infinite.) A bias of -inf masks its entry, as a score of -inf does; a row that is all masked gives zeros. A
/// score of zero is a score. NaN, and a score of +inf, make the row of O NaN that they belong to and no other; Fused
/// does not even read K_j and V_j of a masked entry (Chain multiplies them by 0).
///
/// Bytes, per head, with s per element: Q, K, V and O once, (d + e) s per row and per column, 4 per entry and the row
/// map, and from the caches (d + e) s per entry. backward reads Q, K, V, O, dO and writes dQ, dK, dV once, and from the
/// caches (d + e) s per entry in each of its two passes; nothing is kept of the forward pass but O and the log-sum-exp.
/// Time O(nnz (d + e)). What Chain and matrix units need besides, also for set-up, and how units round:
/// AttentionAlgorithm.
///
/// Set-up: Auto looks at a sample of rows (O(m) work, one wait; hosts also at 16,384 entries); prepare_backward adds
/// the transposed pattern, O(nnz log(longest column)) work, some waits, nnz (sizeof offset + 4) bytes. Deterministic:
/// bitwise the same result for the same plan options, device, layouts and inputs, by Fused and backward for every
/// number of threads; no floating-point atomics: dK and dV are summed by rows of the transposed pattern. Scratch
/// (copies of operands whose rows are not contiguous, the scores of Chain, sums of pieces of long rows, a number per
/// row for backward) grows at the first call that needs more, and is kept; thread safety as SpmmPlan. Destroying a plan
/// that has memory on a device waits for it.
template <class Csr>
class AttentionPlan : public CsrPlan<Csr, Impl::AttentionOperation> {
  using Base = CsrPlan<Csr, Impl::AttentionOperation>;
  using Base::body_, Base::csr_;

 public:
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run
  using typename Base::value_type;
  /// Of the log-sum-exp.
  using sum_type = std::conditional_t<std::is_same_v<value_type, double>, double, float>;

  /// Chooses and prepares on `space`. A is trusted: run validate() on matrices from outside first. Arrays of managed
  /// Views stay alive with the plan; those of unmanaged ones must outlive it.
  /// @throw NotCompiled, NotSupported (among others TF32 without units), InvalidArgument  before any kernel is launched
  /// @throw DeviceError, OutOfMemory  out of memory of a device, of the host
  AttentionPlan(const execution_space& space, const Csr& A, const AttentionOptions& options = {})
      : Base(space, A, options) {
    if (!options.prepare_backward) return;
    backward_ = std::make_unique<Backward>(space, Impl::plan_matrix(A), Operation::units_of(body_->engine()),
                                           Operation::shares_of(body_->engine()),
                                           Impl::attention_rows_backend<Matrix>(options.backend), body_->options());
  }

  /// O := softmax(...) V, and the log-sum-exp of the scores of each row (-inf for a row of zeros), which backward
  /// needs. Q(m, d), K(n, d), V(n, e), O(m, e), lse(m) of sum_type; or a batch of heads on the same pattern, Q(h, m,
  /// d), ..., lse(h, m); each of any layout (sub-views). O and lse overlap nothing else. scale is a host scalar,
  /// usually 1 / sqrt(d). Asynchronous on `space`: Fused one launch (one more per head for each operand whose rows are
  /// not contiguous, and per 512 columns of V; on units and by Rows one more where windows are split or rows are
  /// cut, and two for all copies of contiguous rows that kernels do not take where they lie), Chain two and one per
  /// head at least. No allocation and no wait once an apply of the same shapes and layouts was made.
  /// @throw DimensionMismatch, InvalidArgument (overlap, null pointer), WorkspaceTooSmall, DeviceError
  template <class Q, class K, class V, class O, class L>
  void apply(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
             const L& lse) const {
    const auto in = Impl::attention_input(csr_, q, k, v);
    body_->apply(space, Op::NoTrans, scale, in, 0.0, Impl::attention_output<Csr>(in, q, o, lse));
  }
  /// The same without the log-sum-exp.
  template <class Q, class K, class V, class O>
  void apply(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o) const {
    const auto in = Impl::attention_input(csr_, q, k, v);
    body_->apply(space, Op::NoTrans, scale, in, 0.0, Impl::attention_output<Csr>(in, o));
  }

  /// dQ, dK, dV and d_values from dO, the gradient by O: with P as above,
  ///
  ///     dV = P^T dO,   dS_ij = P_ij (<dO_i, V_j> - <dO_i, O_i>),   dQ = scale dS K,   dK = scale dS^T Q,
  ///
  /// (Scale: dS_ij A_ij for dS_ij in the last two) and d_values(nnz), or (h, nnz), in the order of A's entries: dS_ij
  /// for a bias, scale dS_ij <Q_i, K_j> for a scale; the sum over heads is the caller's. P is computed again from the
  /// log-sum-exp L, whose rounding it errs by: 2^-24 |L| of itself (double: 2^-53), so that in FP32 gradients of scores
  /// of 10^5 keep two digits and those of 10^7 none, where O has all of its own. Masked entries have gradient 0.
  /// Outputs are overwritten and overlap nothing. Two launches where Fused of a backend goes forward in 16 bits and
  /// takes the columns, and where a backend has kernels by rows for float and double that take them (one more for each
  /// of them where windows are split or rows are cut), else three of portable kernels; more for copies, as apply, and,
  /// portable, per 512 columns.
  /// @param scale, q, k, v  those of apply   @param o, lse  its results
  /// @throw NotSupported  without AttentionOptions::prepare_backward
  /// @throw DimensionMismatch, InvalidArgument (overlap, null pointer, d_values of values that are not
  ///        used), DeviceError
  template <class Q, class K, class V, class O, class L, class DO, class DQ, class DK, class DV, class DA>
  void backward(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
                const L& lse, const DO& d_o, const DQ& d_q, const DK& d_k, const DV& d_v, const DA& d_values) const {
    const auto in = Impl::attention_input(csr_, q, k, v);
    auto g = Impl::attention_gradients<Csr>(backward_ != nullptr, in, q, o, lse, d_o, d_q, d_k, d_v);
    Impl::require<InvalidArgument>(body_->options().values != AttentionValues::None, [] {
      return std::string("attention: the plan does not use the matrix's values, so they have no gradient");
    });
    g.d_values = Impl::attention_gradient_of_values(csr_, in, g, q, d_values);
    launch(space, scale, in, g);
  }
  /// The same without the gradient of values.
  template <class Q, class K, class V, class O, class L, class DO, class DQ, class DK, class DV>
  void backward(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
                const L& lse, const DO& d_o, const DQ& d_q, const DK& d_k, const DV& d_v) const {
    const auto in = Impl::attention_input(csr_, q, k, v);
    launch(space, scale, in, Impl::attention_gradients<Csr>(backward_ != nullptr, in, q, o, lse, d_o, d_q, d_k, d_v));
  }

  /// Scratch that an apply of one head with so many columns of Q and V needs at most, whatever their layouts. (Chain:
  /// of any number of heads, of which it takes fewer at once in a workspace that has no room for more.)
  std::size_t workspace_bytes(std::int64_t columns) const { return body_->workspace_bytes(columns); }
  /// Device memory of formats and of the transposed pattern; scratch apart.
  std::size_t format_bytes() const { return Base::format_bytes() + (backward_ ? backward_->bytes() : 0); }
  /// What was chosen, why, and what it costs. Host work only.
  Statistics statistics() const {
    Statistics s = Base::statistics();
    s.transpose_prepared = backward_ != nullptr;
    if (!backward_) return s;
    s.map_bytes = backward_->bytes();
    backward_->describe(s);
    return s;
  }

 private:
  using Matrix = Impl::PlanMatrixOf<Csr>;
  using Operation = Impl::AttentionOperation<Matrix>;
  using Backward = Impl::AttentionBackward<Matrix>;
  using Input = Impl::AttentionInput<value_type>;

  void launch(const execution_space& space, double scale, const Input& in,
              const Impl::AttentionGradients<value_type>& g) const {
    if (in.heads == 0) return;
    backward_->apply(space, body_->csr(), body_->options().values, static_cast<sum_type>(scale), in, g);
  }

  std::unique_ptr<Backward> backward_;
};

/// One-shot O := softmax(scale Q K^T on A's pattern) V, by Fused. A is a CsrView or anything csr_view() accepts. Waits.
/// On hosts and for double there is no set-up. Where a device's backend has units for the type, every call makes their
/// windows of the pattern first: features of a sample, O(nnz log(longest row)) work, some waits, 8 or 12 bytes per
/// column vector. Keep a plan where a pattern comes again. Shapes and errors: AttentionPlan, its constructor and apply.
template <class Exec, class Matrix, class Q, class K, class V, class O>
void attention(const Exec& space, double scale, const Q& q, const K& k, const V& v, const Matrix& A, const O& o,
               AttentionValues values = AttentionValues::None) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    attention(space, scale, q, k, v, csr_view(A), o, values);
  } else {
    AttentionOptions options;
    options.algorithm = AttentionAlgorithm::Fused;  // Chain would make two plans

    if constexpr (Compat::is_view_v<Q> && Compat::is_view_v<V>) {  // else the plan says what is wrong
      const auto columns = std::max(q.extent(Compat::view_rank<Q> - 1), v.extent(Compat::view_rank<V> - 1));
      options.dimension_hint = static_cast<int>(std::min<std::size_t>(columns, 1 << 20));
    }
    options.values = values;
    AttentionPlan<Matrix>(space, A, options).apply(space, scale, q, k, v, o);
    Compat::fence(space, "Tessera::attention: scratch is released");
  }
}

}  // namespace Tessera

#endif
