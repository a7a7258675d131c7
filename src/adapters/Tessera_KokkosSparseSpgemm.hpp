// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_KOKKOS_SPARSE_SPGEMM_HPP
#define TESSERA_ADAPTERS_KOKKOS_SPARSE_SPGEMM_HPP

#include <optional>
#include <string>

#include "Tessera_Spgemm.hpp"
#include "adapters/Tessera_KokkosSparseMatrix.hpp"

/// \file
/// The sparse product of Kokkos Kernels (tested: 3.4) with the namespace changed. The handle is Tessera's own, made
/// where Kokkos Kernels calls create_spgemm_handle():
///
///     Tessera::SpgemmHandle<Matrix> handle;
///     Tessera::spgemm_symbolic([space,] handle, A, transA, B, transB, C);    // C: its rows; columns not written yet
///     Tessera::spgemm_numeric([space,] handle, A, transA, B, transB, C);     // columns and numbers
///     ... new numbers in A.values or B.values ...
///     Tessera::spgemm_numeric([space,] handle, A, transA, B, transB, C);     // numbers alone, if C is the same
///
///     C = Tessera::spgemm(A, transA, B, transB);                             // both at once
///
/// A, B, C    KokkosSparse::CrsMatrix of one type, of double or float; Tpetra's local matrices are such. C becomes a
///            matrix with arrays of its own; its columns ascend, which Kokkos Kernels' do not.
/// transA,    whether A (B) is transposed, which Kokkos Kernels 3.4 refuses. The symbolic phase writes transposes
/// transB     out, the numeric one gives them new numbers.
/// Time, memory, determinism, precision: those of SpgemmPlan.

namespace Tessera {

/// Keeps what the phases of one product share. The counterpart of KokkosKernelsHandle's spgemm handle. It holds the
/// Views of A and B, and of C's columns; unmanaged ones are the caller's to keep.
/// @tparam Matrix  KokkosSparse::CrsMatrix of double or float
template <class Matrix>
class SpgemmHandle {
  static_assert(Impl::IsPointMatrix<Matrix>::value,
                "Tessera::SpgemmHandle: the template argument must be a KokkosSparse::CrsMatrix");
  using Types = Impl::MatrixTypes<Matrix>;

 public:
  using matrix_type = Matrix;  ///< of Kokkos Kernels
  /// Of the plans.
  using csr_type =
      CsrView<typename Types::scalar, typename Types::ordinal, typename Types::offset, typename Types::device>;
  using execution_space = typename csr_type::execution_space;  ///< where they run

  SpgemmHandle() = default;
  /// For its plans.
  explicit SpgemmHandle(const SpgemmOptions& options) : options_(options) {}

  /// See spgemm_symbolic(). Waits. @throw DimensionMismatch, NotSupported, OutOfMemory, DeviceError  as spgemm(); C is
  /// as it was
  void symbolic(const execution_space& space, const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b,
                Matrix& C) {
    plan_.reset();
    filled_ = false;
    columns_ = {};
    a_ = Operand(space, A, transpose_a);
    b_ = Operand(space, B, transpose_b);
    plan_.emplace(space, a_.view(), b_.view(), options_);
    const auto m = static_cast<std::size_t>(plan_->rows());
    const auto row_map = Impl::allocate_large<typename Matrix::row_map_type::non_const_type>("C row_map", m + 1);
    const auto nnz = static_cast<std::size_t>(plan_->symbolic(space, row_map));
    const auto entries = Impl::allocate_large<typename Matrix::index_type>("C entries", nnz);
    const auto values = Impl::allocate_large<typename Matrix::values_type>("C values", nnz);
    C = Matrix("C", plan_->rows(), plan_->cols(), static_cast<typename Types::offset>(nnz), values, row_map, entries);
  }
  /// See spgemm_numeric(). Waits. @throw StalePlan  before symbolic(); other graphs or other transposes than there
  /// @throw DimensionMismatch, OutOfMemory, DeviceError  as spgemm_numeric()
  void numeric(const execution_space& space, const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b,
               const Matrix& C) {
    Impl::require<StalePlan>(plan_ && a_.same(A, transpose_a) && b_.same(B, transpose_b), [] {
      return std::string("spgemm_numeric: spgemm_symbolic has to come first, with the same graphs and transposes");
    });
    a_.update(space, A);
    b_.update(space, B);
    const bool same = filled_ && columns_.data() == C.graph.entries.data();
    if (!same) plan_->numeric(space, C.graph.row_map, C.graph.entries, C.values);
    // The first time only for numbers in other arrays than symbolic() saw.
    if (filled_ || a_.moved() || b_.moved()) {
      plan_->update_values(space, a_.view(), b_.view(), C.graph.row_map, C.graph.entries, C.values);
    }
    filled_ = true;
    columns_ = C.graph.entries;
  }

  /// Of the last symbolic(). @throw StalePlan  there was none
  Statistics statistics() const {
    Impl::require<StalePlan>(plan_.has_value(), [] { return std::string("SpgemmHandle: no symbolic phase yet"); });
    return plan_->statistics();
  }

 private:
  class Operand {
   public:
    Operand() = default;
    Operand(const execution_space& space, const Matrix& matrix, bool transpose) : given_(csr_view(matrix)) {
      if (transpose) transposed_ = Tessera::transpose(space, given_);
    }
    csr_type view() const { return transposed_ ? transposed_->view() : given_; }
    bool same(const Matrix& matrix, bool transpose) const {
      return transpose == transposed_.has_value() && Impl::same_pattern(csr_view(matrix), given_);
    }
    void update(const execution_space& space, const Matrix& matrix) {
      const csr_type now = csr_view(matrix);
      moved_ = !transposed_ && now.values().data() != given_.values().data();
      given_ = now;
      if (transposed_) update_transposed_values(space, *transposed_, given_.values());
    }
    bool moved() const { return moved_; }

   private:
    csr_type given_;
    std::optional<Transposed<csr_type>> transposed_;
    bool moved_ = false;
  };

  SpgemmOptions options_;
  Operand a_, b_;
  std::optional<SpgemmPlan<csr_type>> plan_;
  bool filled_ = false;
  typename Matrix::index_type columns_;  // the last written: held, so that no other C has their address
};

/// Finds how many entries the rows of C = op(A) op(B) have, and gives C arrays for them. Waits; what is enqueued on
/// other instances and writes A or B must be done before.
/// @throw DimensionMismatch, NotSupported, OutOfMemory, DeviceError  as SpgemmPlan; C is as it was
template <class Matrix>
void spgemm_symbolic(const typename SpgemmHandle<Matrix>::execution_space& space, SpgemmHandle<Matrix>& handle,
                     const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b, Matrix& C) {
  handle.symbolic(space, A, transpose_a, B, transpose_b, C);
}
/// spgemm_symbolic(space, ...) in the default instance: waits, throws the same.
template <class Matrix>
void spgemm_symbolic(SpgemmHandle<Matrix>& handle, const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b,
                     Matrix& C) {
  handle.symbolic({}, A, transpose_a, B, transpose_b, C);
}
/// Writes C's columns, the first time, and its numbers. Waits; the instance may be another than that of the symbolic
/// phase.
/// @throw StalePlan  before spgemm_symbolic(); other graphs or other transposes than there
/// @throw DimensionMismatch  C has other extents than it got there  @throw OutOfMemory, DeviceError
template <class Matrix>
void spgemm_numeric(const typename SpgemmHandle<Matrix>::execution_space& space, SpgemmHandle<Matrix>& handle,
                    const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b, Matrix& C) {
  handle.numeric(space, A, transpose_a, B, transpose_b, C);
}
/// spgemm_numeric(space, ...) in the default instance: waits, throws the same.
template <class Matrix>
void spgemm_numeric(SpgemmHandle<Matrix>& handle, const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b,
                    Matrix& C) {
  handle.numeric({}, A, transpose_a, B, transpose_b, C);
}
/// op(A) op(B) in one call, in the default instance. Waits.
/// @throw DimensionMismatch, NotSupported, OutOfMemory, DeviceError  as spgemm_symbolic()
template <class Matrix, std::enable_if_t<Impl::IsPointMatrix<Matrix>::value, int> = 0>
Matrix spgemm(const Matrix& A, bool transpose_a, const Matrix& B, bool transpose_b) {
  SpgemmHandle<Matrix> handle;
  Matrix C;
  handle.symbolic({}, A, transpose_a, B, transpose_b, C);
  handle.numeric({}, A, transpose_a, B, transpose_b, C);
  return C;
}

}  // namespace Tessera

#endif
