// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_HPP
#define TESSERA_ATTENTION_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_RowSoftmax.hpp"
#include "Tessera_Statistics.hpp"
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
/// sums are double if that is double, else float, and so is the log-sum-exp. 16-bit results are rounded once, at the
/// store. Softmax takes the largest score of a row off its scores first: scores of any size are safe. A bias of -inf
/// masks its entry, as a score of -inf does; a row that is all masked gives zeros. A score of zero is a score. NaN, and
/// a score of +inf, make the row of O NaN that they belong to and no other; Fused does not even read K_j and V_j of a
/// masked entry (Chain multiplies them by 0).
///
/// Fused of a backend (16-bit types, columns of Q and V that are multiples of 8 up to 256; all else goes to the
/// portable kernel, in any call): windows of rows on matrix units. Weights are rounded to the operands' type before
/// they multiply V, and are not where they are summed: O errs by another unit roundoff of sum_j P_ij |V_j|; in FP16
/// weights below 2^-31 of the row's largest one may be 0, so that an infinite V_j of such an entry gives NaN. Other
/// rows never see it: windows where V is not finite are done again row by row. backward goes there too, for columns up
/// to 128 (64 where windows are of 16 rows): P_ij and dS_ij are rounded to the operands' type before they multiply; in
/// FP16 P below 2^-39, and dS below 2^-32 of the largest one of its row (dK: column), may be 0.
///
/// Bytes, per head, with s per element: Q, K, V and O once, (d + e) s per row and per column, 4 per entry and the row
/// map, and from the caches (d + e) s per entry. Chain adds 5 passes over the scores, 20 bytes per entry (FP64: 40),
/// and their memory, for as many heads at once as have up to 2^24 scores. On units a row of K and of V is fetched once
/// per column vector of a window of 8 or 16 rows, which has 8 or 12 bytes of the pattern (blocks rounded up); scratch
/// is O(rows of split windows) forward and backward. backward reads Q, K, V, O, dO and writes dQ, dK, dV once, and from
/// the caches (d + e) s per entry in each of its two passes; nothing is kept of the forward pass but O and the
/// log-sum-exp. Time O(nnz (d + e)).
///
/// Set-up: Auto looks at a sample of rows (O(m) work, one wait); Fused nothing, on units windows of the pattern, made
/// on the device (Experimental::SplitWindows: O(nnz log(longest row)) work, one wait); Chain that of its SDDMM and SpMM
/// plans; prepare_backward adds the transposed pattern, O(nnz log(longest column)) work, some waits, nnz (sizeof offset
/// + 4) bytes, and on units its windows, as those of the pattern (with values 4 bytes per entry more). Deterministic:
/// bitwise the same result for the same plan options, device, layouts and inputs, by Fused and backward for every
/// number of threads; no floating-point atomics: dK and dV are summed by rows of the transposed pattern.
///
/// Scratch (copies of operands whose rows are not contiguous, the scores of Chain, a number per row for backward) grows
/// at the first call that needs more, and is kept; thread safety as SpmmPlan.
///
/// Running maximum and sum: Milakov & Gimelshein, arXiv:1805.02867, Dao et al., "FlashAttention", NeurIPS'22 (backward
/// by recomputation, too); on sparse patterns: Fused3S, ICS'25.
template <class Csr>
class AttentionPlan {
  static_assert(Impl::IsCsrView<Csr>::value,
                "Tessera::AttentionPlan: the template argument must be a Tessera::CsrView");

 public:
  using csr_type = Csr;                                   ///< the pattern, and bias or scale of its entries
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run
  using memory_space = typename Csr::memory_space;        ///< where all operands lie
  using value_type = typename Csr::value_type;            ///< of all operands
  using sum_type = Impl::AttentionSum<value_type>;        ///< of the log-sum-exp: double or float

  /// Chooses and prepares on `space`. A is trusted: run validate() on matrices from outside first. Arrays of managed
  /// Views stay alive with the plan; those of unmanaged ones must outlive it.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw DeviceError  out of device memory
  AttentionPlan(const execution_space& space, const Csr& A, const AttentionOptions& options = {})
      : csr_(A), body_(std::make_unique<Body>(space, Impl::plan_matrix(A), options)) {
    if (!options.prepare_backward) return;
    backward_ =
        std::make_unique<Backward>(space, Impl::plan_matrix(A), Operation::units_of(body_->engine()), body_->options());
  }
  /// Plans can be moved and not copied.
  AttentionPlan(AttentionPlan&&) noexcept = default;
  /// See AttentionPlan(AttentionPlan&&).
  AttentionPlan& operator=(AttentionPlan&&) noexcept = default;
  AttentionPlan(const AttentionPlan&) = delete;
  AttentionPlan& operator=(const AttentionPlan&) = delete;

  /// O := softmax(...) V, and the log-sum-exp of the scores of each row (-inf for a row of zeros), which backward
  /// needs. Q(m, d), K(n, d), V(n, e), O(m, e), lse(m) of sum_type; or a batch of heads on the same pattern, Q(h, m,
  /// d), ..., lse(h, m); each of any layout (sub-views). O and lse overlap nothing else. scale is a host scalar,
  /// usually 1 / sqrt(d). Asynchronous on `space`: Fused one launch (one more per head for each operand whose rows are
  /// not contiguous, and per 512 columns of V; on units one more where windows are split, and one per head for each
  /// operand whose rows do not begin at multiples of 16 bytes), Chain two and one per head at least. No allocation and
  /// no wait once an apply of the same shapes and layouts was made.
  /// @throw DimensionMismatch, InvalidArgument (overlap), WorkspaceTooSmall, DeviceError
  template <class Q, class K, class V, class O, class L>
  void apply(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
             const L& lse) const {
    Impl::check_attention_vectors<Csr, Q, sum_type, L>();
    const auto in = input(q, k, v);
    auto out = output(in, o);
    out.lse = Impl::batch_vector_of(lse);
    check_vector("the log-sum-exp", q, lse, out.lse, in.q.matrix.rows);
    Impl::require_apart_from("the log-sum-exp", out.lse, in.heads, in.q, in.k, in.v, out.o);
    body_->apply(space, Op::NoTrans, scale, in, 0.0, out);
  }
  /// The same without the log-sum-exp.
  template <class Q, class K, class V, class O>
  void apply(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o) const {
    const auto in = input(q, k, v);
    body_->apply(space, Op::NoTrans, scale, in, 0.0, output(in, o));
  }

  /// dQ, dK, dV and d_values from dO, the gradient by O: with P as above,
  ///
  ///     dV = P^T dO,   dS_ij = P_ij (<dO_i, V_j> - <dO_i, O_i>),   dQ = scale dS K,   dK = scale dS^T Q,
  ///
  /// (Scale: dS_ij A_ij for dS_ij in the last two) and d_values(nnz), or (h, nnz), in the order of A's entries: dS_ij
  /// for a bias, scale dS_ij <Q_i, K_j> for a scale; the sum over heads is the caller's. P is computed again from the
  /// log-sum-exp. Masked entries have gradient 0. Outputs are overwritten and overlap nothing. Two launches
  /// where Fused of a backend goes forward and takes the columns (one more for each of them where windows are split),
  /// else three of portable kernels; more for operands whose rows are not contiguous and, portable, per 512 columns.
  /// @param scale, q, k, v  those of apply   @param o, lse  its results
  /// @throw NotSupported  without AttentionOptions::prepare_backward
  /// @throw DimensionMismatch, InvalidArgument (overlap, d_values of values that are not used), DeviceError
  template <class Q, class K, class V, class O, class L, class DO, class DQ, class DK, class DV, class DA>
  void backward(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
                const L& lse, const DO& d_o, const DQ& d_q, const DK& d_k, const DV& d_v, const DA& d_values) const {
    Impl::check_attention_vectors<Csr, Q, value_type, DA>();
    const auto in = input(q, k, v);
    auto g = gradients(in, q, o, lse, d_o, d_q, d_k, d_v);
    Impl::require<InvalidArgument>(body_->options().values != AttentionValues::None, [] {
      return std::string("attention: the plan does not use the matrix's values, so they have no gradient");
    });
    g.d_values = Impl::batch_vector_of(d_values);
    check_vector("the gradient of values", q, d_values, g.d_values, static_cast<std::int64_t>(csr_.nnz()));
    Impl::require_apart_from("the gradient of values", g.d_values, in.heads, in.q, in.k, in.v, g.o, g.d_o, g.d_q, g.d_k,
                             g.d_v);
    launch(space, scale, in, g);
  }
  /// The same without the gradient of values.
  template <class Q, class K, class V, class O, class L, class DO, class DQ, class DK, class DV>
  void backward(const execution_space& space, double scale, const Q& q, const K& k, const V& v, const O& o,
                const L& lse, const DO& d_o, const DQ& d_q, const DK& d_k, const DV& d_v) const {
    const auto in = input(q, k, v);
    launch(space, scale, in, gradients(in, q, o, lse, d_o, d_q, d_k, d_v));
  }

  /// New numbers for the same pattern: no work, the plan keeps this view instead of the old one.
  /// @throw StalePlan  wrong number of values, or options.updatable was false
  void update_values(const execution_space& space, const typename Csr::values_type& values) {
    body_->update_values(space, values);
    csr_ = Csr(csr_.rows(), csr_.cols(), csr_.row_map(), csr_.entries(), values);
  }
  /// The same, with a check that A has the plan's pattern arrays. @throw StalePlan
  void update_values(const execution_space& space, const Csr& A) {
    body_->update_values(space, Impl::plan_matrix(A));
    csr_ = A;
  }

  /// Same sizes and the same row_map and entries arrays (not a comparison of their contents).
  bool matches(const Csr& A) const noexcept { return body_->matches(Impl::plan_matrix(A)); }

  /// Scratch that an apply of one head with so many columns of Q and V needs at most, whatever their layouts.
  std::size_t workspace_bytes(std::int64_t columns) const { return body_->workspace_bytes(columns); }
  /// Device memory of formats and of the transposed pattern; scratch apart.
  std::size_t format_bytes() const { return body_->format_bytes() + (backward_ ? backward_->bytes() : 0); }
  /// With algorithm and backend as decided.
  const AttentionOptions& options() const noexcept { return body_->options(); }
  /// What was chosen, why, and what it costs. Host work only.
  Statistics statistics() const {
    Statistics s = body_->statistics();
    s.transpose_prepared = backward_ != nullptr;
    if (!backward_) return s;
    s.map_bytes = backward_->bytes();
    backward_->describe(s);
    return s;
  }

 private:
  friend struct Impl::PlanAccess;
  using Matrix = Impl::PlanMatrixOf<Csr>;
  using Operation = Impl::AttentionOperation<Matrix>;
  using Body = Impl::PlanBody<Operation>;
  using Backward = Impl::AttentionBackward<Matrix>;
  using Input = Impl::AttentionInput<value_type>;

  template <class Q, class K, class V>
  Input input(const Q& q, const K& k, const V& v) const {
    Impl::check_attention_views<Csr, Q, K, V>();
    const auto rows = static_cast<std::int64_t>(csr_.rows()), cols = static_cast<std::int64_t>(csr_.cols());
    const Input in{Impl::dense_batch_of(typename Q::const_type(q)), Impl::dense_batch_of(typename K::const_type(k)),
                   Impl::dense_batch_of(typename V::const_type(v)), Impl::heads_of(q)};
    Impl::require_size("Q", in.q, rows, in.q.matrix.columns, in.heads, in.heads);
    Impl::require_size("K", in.k, cols, in.q.matrix.columns, Impl::heads_of(k), in.heads);
    Impl::require_size("V", in.v, cols, in.v.matrix.columns, Impl::heads_of(v), in.heads);
    return in;
  }
  template <class O>
  static Impl::AttentionOutput<value_type> output(const Input& in, const O& o) {
    Impl::check_attention_views<Csr, O>();
    static_assert(!std::is_const_v<typename O::value_type>, "Tessera::attention: O is written, it must not be const");
    const Impl::AttentionOutput<value_type> out{Impl::dense_batch_of(o)};
    Impl::require_size("O", out.o, in.q.matrix.rows, in.v.matrix.columns, Impl::heads_of(o), in.heads);
    Impl::require_apart("O and Q", out.o, in.q, in.heads);
    Impl::require_apart("O and K", out.o, in.k, in.heads);
    Impl::require_apart("O and V", out.o, in.v, in.heads);
    return out;
  }
  /// Vectors of one rank less than the operands.
  template <class Q, class L, class T>
  static void check_vector(const char* name, const Q& q, const L& view, const Impl::BatchVector<T>& v,
                           std::int64_t size) {
    const auto heads = static_cast<std::int64_t>(Compat::view_rank<L> == 2 ? view.extent(0) : 1);
    Impl::require_size(name, v, size, heads, Impl::heads_of(q));
  }
  template <class Q, class O, class L, class DO, class DQ, class DK, class DV>
  Impl::AttentionGradients<value_type> gradients(const Input& in, const Q& q, const O& o, const L& lse, const DO& d_o,
                                                 const DQ& d_q, const DK& d_k, const DV& d_v) const {
    Impl::check_attention_views<Csr, Q, O, DO, DQ, DK, DV>();
    Impl::check_attention_vectors<Csr, Q, sum_type, L>();
    Impl::require<NotSupported>(backward_ != nullptr, [] {
      return std::string("attention: backward needs AttentionOptions::prepare_backward = true when the plan is made");
    });
    const Impl::AttentionGradients<value_type> g{Impl::dense_batch_of(typename O::const_type(o)),
                                                 Impl::dense_batch_of(typename DO::const_type(d_o)),
                                                 Impl::batch_vector_of(typename L::const_type(lse)),
                                                 Impl::dense_batch_of(d_q),
                                                 Impl::dense_batch_of(d_k),
                                                 Impl::dense_batch_of(d_v)};
    const std::int64_t m = in.q.matrix.rows, n = in.k.matrix.rows, d = in.q.matrix.columns, e = in.v.matrix.columns;
    Impl::require_size("O", g.o, m, e, Impl::heads_of(o), in.heads);
    Impl::require_size("dO", g.d_o, m, e, Impl::heads_of(d_o), in.heads);
    Impl::require_size("dQ", g.d_q, m, d, Impl::heads_of(d_q), in.heads);
    Impl::require_size("dK", g.d_k, n, d, Impl::heads_of(d_k), in.heads);
    Impl::require_size("dV", g.d_v, n, e, Impl::heads_of(d_v), in.heads);
    check_vector("the log-sum-exp", q, lse, g.lse, m);
    Impl::require_gradients_apart(in, g);
    return g;
  }
  void launch(const execution_space& space, double scale, const Input& in,
              const Impl::AttentionGradients<value_type>& g) const {
    if (in.heads == 0) return;
    backward_->apply(space, body_->csr(), body_->options().values, static_cast<sum_type>(scale), in, g);
  }

  Csr csr_;  ///< keeps the caller's arrays alive
  std::unique_ptr<Body> body_;
  std::unique_ptr<Backward> backward_;
};

/// One-shot O := softmax(scale Q K^T on A's pattern) V. A is a CsrView or anything csr_view() accepts. Shapes and
/// errors: AttentionPlan::apply.
template <class Exec, class Matrix, class Q, class K, class V, class O>
void attention(const Exec& space, double scale, const Q& q, const K& k, const V& v, const Matrix& A, const O& o,
               AttentionValues values = AttentionValues::None) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    attention(space, scale, q, k, v, csr_view(A), o, values);
  } else {
    AttentionOptions options;
    options.algorithm = AttentionAlgorithm::Fused;  // needs no set-up
    options.values = values;
    AttentionPlan<Matrix>(space, A, options).apply(space, scale, q, k, v, o);
    Compat::fence(space, "Tessera::attention: scratch is released");
  }
}

}  // namespace Tessera

#endif
