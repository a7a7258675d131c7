// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_KOKKOS_SPARSE_HANDLE_HPP
#define TESSERA_ADAPTERS_KOKKOS_SPARSE_HANDLE_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "Tessera_BsrSpmv.hpp"
#include "Tessera_Spmm.hpp"
#include "Tessera_Spmv.hpp"
#include "adapters/Tessera_KokkosSparseMatrix.hpp"

namespace Tessera {

/// Kokkos Kernels' choices, so that a handle's constructor ports unchanged. SPMV_FAST_SETUP: no conversion
/// (Reuse::Once). All others: Auto, which balances irregular rows by itself; there is no vendor library to avoid.
enum SPMVAlgorithm {
  SPMV_DEFAULT,
  SPMV_FAST_SETUP,
  SPMV_NATIVE,
  SPMV_MERGE_PATH,
  SPMV_NATIVE_MERGE_PATH,
  SPMV_BSR_V41,
  SPMV_BSR_V42,
  SPMV_BSR_TC
};

namespace Impl {

/// Only the first letter counts in Kokkos Kernels.
inline Op parse_letter(const char mode[]) {
  require<InvalidArgument>(mode != nullptr, [] { return std::string("spmv: mode is a null pointer"); });
  return parse_op(std::string(mode, mode[0] == '\0' ? 0 : 1));
}

/// Extents of y := op(A) x in the user's words, before anything is converted or transposed for it.
template <class Matrix, class X, class Y>
void check_product(Op op, const Matrix& A, const X& x, const Y& y) {
  static_assert(Compat::is_view_v<X> && Compat::is_view_v<Y>, "Tessera::spmv: x and y must be Kokkos Views");
  static_assert(
      (Compat::view_rank<X> == 1 || Compat::view_rank<X> == 2) && Compat::view_rank<X> == Compat::view_rank<Y>,
      "Tessera::spmv: x and y must both have rank 1 or both rank 2");
  std::int64_t block = 1;
  if constexpr (IsBlockMatrix<Matrix>::value) block = static_cast<std::int64_t>(A.blockDim());
  const auto rows = static_cast<std::int64_t>(A.numRows()), cols = static_cast<std::int64_t>(A.numCols());
  require<InvalidArgument>(cols >= 0 && block >= 1, [&] {
    return "spmv: sizes must not be negative, the side of blocks must be positive: A is " + std::to_string(rows) +
           " x " + std::to_string(cols) + ", blocks of side " + std::to_string(block);
  });
  const auto m = static_cast<std::size_t>((op == Op::NoTrans ? rows : cols) * block);
  const auto n = static_cast<std::size_t>((op == Op::NoTrans ? cols : rows) * block);
  std::size_t x_columns = 1, y_columns = 1;
  if constexpr (Compat::view_rank<X> == 2) x_columns = x.extent(1), y_columns = y.extent(1);
  require<DimensionMismatch>(x.extent(0) == n && y.extent(0) == m && x_columns == y_columns, [&] {
    const auto size = [](std::size_t a, std::size_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    return std::string("spmv: op(A) is ") + size(m, n) + (op == Op::NoTrans ? "" : " (A transposed)") + ", x is " +
           size(x.extent(0), x_columns) + ", y is " + size(y.extent(0), y_columns);
  });
}

}  // namespace Impl

/// Plans for one matrix of Kokkos Kernels, made when a call first needs them and kept: SpmvPlan for vectors, SpmmPlan
/// for matrices of more than one column, both again for A^T at the first T or H. The counterpart of
/// KokkosSparse::SPMVHandle; vectors of all types and layouts may share one handle.
///
///     Tessera::SpmvHandle<Matrix> handle;
///     Tessera::spmv(space, &handle, "N", alpha, A, x, beta, y);     // the first call analyses A
///     ... new numbers in A.values ...
///     handle.update_values(space, A);                               // Kokkos Kernels needs no such call
///
/// The handle holds A's Views: its arrays live until the handle goes, is reset or moves on by update_values (unmanaged
/// Views are the caller's to keep). Set-up and memory: those of the plans, for T and H the transpose. A block matrix is
/// multiplied with vectors as it lies, without set-up or memory; for matrices of more than one column it is written out
/// as compressed rows. Where a mode's plan exists, calls are asynchronous on `space`, allocate nothing
/// (SpMM: once shapes repeat) and can be captured in a graph.
/// Determinism, precision, thread safety: as SpmvPlan and SpmmPlan; the first call of a kind also changes the handle,
/// so that two host threads must not make calls at once.
///
/// @tparam Matrix  KokkosSparse::CrsMatrix, or a block matrix (BsrMatrix, 3.4's BlockCrsMatrix), of double or float.
template <class Matrix>
class SpmvHandle {
  static_assert(Impl::is_kokkos_sparse_v<Matrix>,
                "Tessera::SpmvHandle: the template argument must be a KokkosSparse::CrsMatrix or a block matrix");
  using Types = Impl::MatrixTypes<Matrix>;
  static constexpr bool blocks = Impl::IsBlockMatrix<Matrix>::value;

 public:
  using matrix_type = Matrix;  ///< of Kokkos Kernels
  /// Of the plans for several columns.
  using csr_type =
      CsrView<typename Types::scalar, typename Types::ordinal, typename Types::offset, typename Types::device>;
  /// Of the plans for vectors: a BsrView of block matrices.
  using view_type = std::conditional_t<blocks, Impl::BsrViewOf<Matrix>, csr_type>;
  using execution_space = typename csr_type::execution_space;  ///< where they run

  SpmvHandle() = default;
  /// Not explicit, as in Kokkos Kernels.
  SpmvHandle(SPMVAlgorithm algorithm) {
    if (algorithm == SPMV_FAST_SETUP) spmv_options_.reuse = spmm_options_.reuse = Reuse::Once;
  }
  /// prepare_transpose is ignored: transposes are made when needed.
  /// @throw InvalidArgument  options with a workspace, which several plans cannot share
  explicit SpmvHandle(const SpmvOptions& spmv, const SpmmOptions& spmm = {})
      : spmv_options_(spmv), spmm_options_(spmm), hint_given_(true) {
    Impl::require<InvalidArgument>(spmv.workspace.bytes == 0 && spmm.workspace.bytes == 0, [] {
      return std::string("SpmvHandle: a workspace serves one plan, a handle makes several; leave it out");
    });
    spmv_options_.prepare_transpose = spmm_options_.prepare_transpose = false;
  }
  /// Plans move with it.
  SpmvHandle(SpmvHandle&&) noexcept = default;
  /// Plans move with it.
  SpmvHandle& operator=(SpmvHandle&&) noexcept = default;
  SpmvHandle(const SpmvHandle&) = delete;
  SpmvHandle& operator=(const SpmvHandle&) = delete;

  /// y := alpha op(A) x + beta y: what spmv(space, &handle, ...) calls.
  /// @throw StalePlan  A has another graph than at the first call, or its values are another array than at the last
  ///        update_values (numbers changed in place cannot be seen: the plan keeps the old ones until update_values)
  /// @throw DimensionMismatch, InvalidArgument, NotSupported, OutOfMemory, DeviceError  as the plans. A first call that
  ///        throws leaves the handle without a matrix.
  template <class X, class Y>
  void apply(const execution_space& space, Op op, double alpha, const Matrix& A, const X& x, double beta, const Y& y) {
    Impl::check_product(op, A, x, y);
    require_same(A);
    if (matrix_) return multiply(space, op != Op::NoTrans, alpha, x, beta, y);
    adopt(A);
    or_forget([&] { multiply(space, op != Op::NoTrans, alpha, x, beta, y); });
  }

  /// New numbers for the same graph, in the same or another array: refreshes every plan there is, without analysis.
  /// Asynchronous on `space` but where SpmvPlan::update_values waits. Before the first call it does nothing.
  /// @throw StalePlan  another graph (sizes, number of entries, or arrays of row_map and entries; their contents are
  ///        not compared), or options.updatable was false
  /// @throw OutOfMemory, DeviceError  as the plans; the handle then forgets the matrix, as reset() does
  void update_values(const execution_space& space, const Matrix& A) {
    if (!matrix_) return;
    Impl::require<StalePlan>(same_graph(A), [&] { return stale("update_values", A); });
    for (const bool turned : {false, true}) {
      Impl::require<StalePlan>(
          (!spmv_[turned] || spmv_options_.updatable) && (!spmm_[turned] || spmm_options_.updatable),
          [] { return std::string("update_values: the handle's options say updatable = false"); });
    }
    Impl::require<DimensionMismatch>(A.values.extent(0) == matrix_->values.extent(0), [&] {
      return "update_values: A has " + std::to_string(A.values.extent(0)) + " values, the graph needs " +
             std::to_string(matrix_->values.extent(0));
    });
    adopt(A);
    or_forget([&] { update(space); });
  }
  /// The same on the default instance.
  void update_values(const Matrix& A) { update_values(execution_space(), A); }

  /// Forgets the matrix; the next call may bring another. Wait for calls in flight first.
  void reset() {
    for (const bool turned : {false, true}) spmv_[turned].reset(), spmm_[turned].reset();
    transposed_.reset();
    transposed_rows_.reset();
    expanded_.reset();
    matrix_.reset();
    view_ = view_type();
  }

  /// Whether a call with A would be refused as stale.
  bool matches(const Matrix& A) const noexcept {
    return !matrix_ || (same_graph(A) && A.values.data() == matrix_->values.data());
  }
  /// For statistics(); null until a call needed it. `turned`: the plan of A^T.
  const SpmvPlan<view_type>* spmv_plan(bool turned = false) const noexcept {
    return spmv_[turned] ? &*spmv_[turned] : nullptr;
  }
  /// Likewise for several columns.
  const SpmmPlan<csr_type>* spmm_plan(bool turned = false) const noexcept {
    return spmm_[turned] ? &*spmm_[turned] : nullptr;
  }

 private:
  bool same_graph(const Matrix& A) const noexcept {
    bool same = true;
    if constexpr (blocks) same = A.blockDim() == matrix_->blockDim();
    return same && A.numRows() == matrix_->numRows() && A.numCols() == matrix_->numCols() &&
           A.graph.entries.extent(0) == matrix_->graph.entries.extent(0) &&
           A.graph.row_map.data() == matrix_->graph.row_map.data() &&
           A.graph.entries.data() == matrix_->graph.entries.data();
  }
  void require_same(const Matrix& A) const {
    if (!matrix_) return;
    Impl::require<StalePlan>(same_graph(A), [&] { return stale("spmv", A); });
    Impl::require<StalePlan>(A.values.data() == matrix_->values.data(), [] {
      return std::string("spmv: A.values is another array than the handle's; call handle.update_values(space, A)");
    });
  }
  std::string stale(const char* what, const Matrix& A) const {
    const auto text = [](const Matrix& M) {
      return std::to_string(M.numRows()) + " x " + std::to_string(M.numCols()) + ", " +
             std::to_string(M.graph.entries.extent(0)) + " entries";
    };
    return std::string(what) + ": the handle was made for another graph (" + text(*matrix_) + "; now " + text(A) +
           (text(*matrix_) == text(A) ? " in other arrays" : "") + "); call handle.reset() or use a second handle";
  }

  template <class X, class Y>
  void multiply(const execution_space& space, bool turned, double alpha, const X& x, double beta, const Y& y) {
    if constexpr (Compat::view_rank<X> == 2) {
      if (x.extent(1) != 1) {
        prepare_rows(space, turned);
        if (!spmm_[turned]) spmm_[turned].emplace(space, rows(turned), spmm_options_for(x.extent(1)));
        return spmm_[turned]->apply(space, Op::NoTrans, alpha, x, beta, y);
      }
    }
    if (turned && !transposed_) transposed_ = transpose(space, view_);
    if (!spmv_[turned]) spmv_[turned].emplace(space, operand(turned), spmv_options_);
    spmv_[turned]->apply(space, Op::NoTrans, alpha, x, beta, y);
  }
  /// The numbers of view_ to all that was made of it.
  void update(const execution_space& space) {
    if (transposed_) update_transposed_values(space, *transposed_, view_.values());
    if constexpr (blocks) {
      if (expanded_) Impl::write_out<false>(space, view_, nullptr, nullptr, expanded_->values);
      if (transposed_rows_) update_transposed_values(space, *transposed_rows_, csr_view(*expanded_).values());
    }
    for (const bool turned : {false, true}) {
      if (spmv_[turned]) spmv_[turned]->update_values(space, operand(turned).values());
      if (spmm_[turned]) spmm_[turned]->update_values(space, rows(turned).values());
    }
  }
  /// Otherwise plans of the matrix would be missing, or have other numbers than it.
  template <class F>
  void or_forget(const F& f) {
    try {
      f();
    } catch (...) {
      reset();
      throw;
    }
  }
  void adopt(const Matrix& A) {
    if constexpr (blocks) {
      view_ = bsr_view(A);
    } else {
      view_ = csr_view(A);
    }
    matrix_.emplace(A);
  }
  view_type operand(bool turned) const { return turned ? transposed_->view() : view_; }
  /// What rows() needs.
  void prepare_rows(const execution_space& space, bool turned) {
    if constexpr (blocks) {
      if (!expanded_) expanded_.emplace(to_crs_matrix(space, *matrix_));
      if (turned && !transposed_rows_) transposed_rows_ = transpose(space, csr_view(*expanded_));
    } else {
      if (turned && !transposed_) transposed_ = transpose(space, view_);
    }
  }
  /// A or A^T in compressed rows.
  csr_type rows(bool turned) const {
    if constexpr (blocks) {
      return turned ? transposed_rows_->view() : csr_type(csr_view(*expanded_));
    } else {
      return operand(turned);
    }
  }
  SpmmOptions spmm_options_for(std::size_t columns) const {
    SpmmOptions options = spmm_options_;
    constexpr auto limit = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (!hint_given_) options.num_columns_hint = static_cast<int>(std::clamp<std::size_t>(columns, 1, limit));
    return options;
  }

  SpmvOptions spmv_options_;
  SpmmOptions spmm_options_;
  bool hint_given_ = false;
  std::optional<Matrix> matrix_;  ///< keeps the arrays, so that no others take their addresses
  view_type view_;
  std::optional<Transposed<view_type>> transposed_;
  // A block matrix for several columns.
  std::optional<typename Types::crs_matrix> expanded_;
  std::optional<Transposed<csr_type>> transposed_rows_;
  std::optional<SpmvPlan<view_type>> spmv_[2];  ///< of A and of A^T
  std::optional<SpmmPlan<csr_type>> spmm_[2];
};

/// The name and the parameters that it has in Kokkos Kernels 4 and 5; one type for all vectors.
template <class Device, class Matrix, class X, class Y>
using SPMVHandle = SpmvHandle<Matrix>;

}  // namespace Tessera

#endif
