// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_ROW_MATRIX_HPP
#define TESSERA_ADAPTERS_TPETRA_ROW_MATRIX_HPP

#include <Tpetra_RowMatrix.hpp>
#include <string>

#include "adapters/Tessera_TpetraOperator.hpp"

namespace Tessera {

/// A Tpetra::CrsMatrix as a Tpetra::RowMatrix whose apply is a TpetraOperator's: for what asks for rows and a diagonal
/// and then multiplies again and again, as Ifpack2's Chebyshev and Jacobi and MueLu's smoothers do. Everything but
/// apply is forwarded to the matrix.
///
///     auto rows = Tessera::tpetra_row_matrix(A);
///     Ifpack2::Chebyshev<Tpetra::RowMatrix<double>> smoother(rows);
///
/// Who looks for a Tpetra::CrsMatrix behind a RowMatrix finds none: Ifpack2 then takes its path for row matrices, a
/// product and vector operations where it has a fused kernel for a CrsMatrix; its multithreaded Gauss-Seidel refuses.
/// Factorisations (ILUT, RILUK) and the serial Gauss-Seidel read rows and gain nothing.
///
/// Precision, asynchrony, determinism and costs of apply: TpetraOperator's. Rows and diagonal are the matrix's present
/// ones; after new numbers update_values() brings the products to them. The matrix is not changed through this class.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
class TpetraRowMatrix : public Tpetra::RowMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
  using Base = Tpetra::RowMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

 public:
  /// \name Types
  /// \{
  using operator_type = TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>;  ///< that multiplies
  using matrix_type = typename operator_type::matrix_type;                          ///< whose rows these are
  using multivector_type = typename operator_type::multivector_type;                ///< of X and Y
  using map_type = typename operator_type::map_type;                                ///< of A
  using vector_type = Tpetra::Vector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;    ///< of a diagonal
  using graph_type = Tpetra::RowGraph<LocalOrdinal, GlobalOrdinal, Node>;           ///< of A
  using global_indices = typename Base::nonconst_global_inds_host_view_type;        ///< of a row
  using local_indices = typename Base::nonconst_local_inds_host_view_type;          ///< of a row
  using numbers = typename Base::nonconst_values_host_view_type;                    ///< of a row
  using global_indices_view = typename Base::global_inds_host_view_type;            ///< of the matrix's memory
  using local_indices_view = typename Base::local_inds_host_view_type;              ///< of the matrix's memory
  using numbers_view = typename Base::values_host_view_type;                        ///< of the matrix's memory
  using global_size_t = Tpetra::global_size_t;                                      ///< of Tpetra
  /// \}

  /// Shares the plans of an operator. @throw InvalidArgument  it is null
  explicit TpetraRowMatrix(const Teuchos::RCP<operator_type>& op) : operator_(op) {
    Impl::require<InvalidArgument>(!op.is_null(), [] { return std::string("TpetraRowMatrix: the operator is null"); });
  }
  /// With an operator of its own. Collective; throws what TpetraOperator throws.
  explicit TpetraRowMatrix(const Teuchos::RCP<const matrix_type>& A, const TpetraOptions& options = {})
      : TpetraRowMatrix(Teuchos::rcp(new operator_type(A, options))) {}

  /// That multiplies. Its update_values is what this one's calls.
  const Teuchos::RCP<operator_type>& tessera_operator() const noexcept { return operator_; }
  /// See TpetraOperator::update_values.
  void update_values() { operator_->update_values(); }

  // Versions of Tpetra differ in what is virtual here and in what is deprecated, so that nothing is marked `override`.

  /// \name Tpetra::Operator
  /// \{
  Teuchos::RCP<const map_type> getDomainMap() const { return operator_->getDomainMap(); }  ///< of A
  Teuchos::RCP<const map_type> getRangeMap() const { return operator_->getRangeMap(); }    ///< of A
  bool hasTransposeApply() const { return operator_->hasTransposeApply(); }                ///< the operator's
  bool hasDiagonal() const { return true; }                                                ///< always
  /// See TpetraOperator::apply.
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const {
    operator_->apply(X, Y, mode, alpha, beta);
  }
  /// \}

  /// \name Shape, forwarded
  /// \{
  Teuchos::RCP<const Teuchos::Comm<int>> getComm() const { return A().getComm(); }                             ///< of A
  Teuchos::RCP<const map_type> getRowMap() const { return A().getRowMap(); }                                   ///< of A
  Teuchos::RCP<const map_type> getColMap() const { return A().getColMap(); }                                   ///< of A
  Teuchos::RCP<const graph_type> getGraph() const { return A().getGraph(); }                                   ///< of A
  global_size_t getGlobalNumRows() const { return A().getGlobalNumRows(); }                                    ///< of A
  global_size_t getGlobalNumCols() const { return A().getGlobalNumCols(); }                                    ///< of A
  global_size_t getGlobalNumEntries() const { return A().getGlobalNumEntries(); }                              ///< of A
  GlobalOrdinal getIndexBase() const { return A().getIndexBase(); }                                            ///< of A
  std::size_t getGlobalMaxNumRowEntries() const { return A().getGlobalMaxNumRowEntries(); }                    ///< of A
  std::size_t getNumEntriesInGlobalRow(GlobalOrdinal row) const { return A().getNumEntriesInGlobalRow(row); }  ///< of A
  std::size_t getNumEntriesInLocalRow(LocalOrdinal row) const { return A().getNumEntriesInLocalRow(row); }     ///< of A
  LocalOrdinal getBlockSize() const { return 1; }                                          ///< no blocks
  bool hasColMap() const { return A().hasColMap(); }                                       ///< of A
  bool isLocallyIndexed() const { return A().isLocallyIndexed(); }                         ///< of A
  bool isGloballyIndexed() const { return A().isGloballyIndexed(); }                       ///< of A
  bool isFillComplete() const { return A().isFillComplete(); }                             ///< of A
  bool supportsRowViews() const { return A().supportsRowViews(); }                         ///< of A
  std::size_t getLocalNumRows() const { return Compat::local_size(*A().getRowMap()); }     ///< of this process
  std::size_t getLocalNumCols() const { return Compat::local_size(*A().getColMap()); }     ///< of this process
  std::size_t getLocalNumEntries() const { return Compat::local_entries(A()); }            ///< of this process
  std::size_t getLocalMaxNumRowEntries() const { return Compat::local_longest_row(A()); }  ///< of this process
  /// \}
  /// \name The same in Trilinos 13
  /// \{
  std::size_t getNodeNumRows() const { return getLocalNumRows(); }                    ///< of this process
  std::size_t getNodeNumCols() const { return getLocalNumCols(); }                    ///< of this process
  std::size_t getNodeNumEntries() const { return getLocalNumEntries(); }              ///< of this process
  std::size_t getNodeMaxNumRowEntries() const { return getLocalMaxNumRowEntries(); }  ///< of this process
  /// \}

  /// \name Rows and diagonal, forwarded
  /// \{

  /// Of A.
  void getGlobalRowCopy(GlobalOrdinal row, global_indices& indices, numbers& values, std::size_t& count) const {
    A().getGlobalRowCopy(row, indices, values, count);
  }
  /// Of A.
  void getLocalRowCopy(LocalOrdinal row, local_indices& indices, numbers& values, std::size_t& count) const {
    A().getLocalRowCopy(row, indices, values, count);
  }
  /// Of A.
  void getGlobalRowView(GlobalOrdinal row, global_indices_view& indices, numbers_view& values) const {
    A().getGlobalRowView(row, indices, values);
  }
  /// Of A.
  void getLocalRowView(LocalOrdinal row, local_indices_view& indices, numbers_view& values) const {
    A().getLocalRowView(row, indices, values);
  }
#ifdef TPETRA_ENABLE_DEPRECATED_CODE
  // Pure in Tpetra 13, whose own matrix warns of them.
  /// Of A.
  void getGlobalRowCopy(GlobalOrdinal row, const Teuchos::ArrayView<GlobalOrdinal>& indices,
                        const Teuchos::ArrayView<Scalar>& values, std::size_t& count) const {
    base().getGlobalRowCopy(row, indices, values, count);
  }
  /// Of A.
  void getLocalRowCopy(LocalOrdinal row, const Teuchos::ArrayView<LocalOrdinal>& indices,
                       const Teuchos::ArrayView<Scalar>& values, std::size_t& count) const {
    base().getLocalRowCopy(row, indices, values, count);
  }
  /// Of A.
  void getGlobalRowView(GlobalOrdinal row, Teuchos::ArrayView<const GlobalOrdinal>& indices,
                        Teuchos::ArrayView<const Scalar>& values) const {
    base().getGlobalRowView(row, indices, values);
  }
  /// Of A.
  void getLocalRowView(LocalOrdinal row, Teuchos::ArrayView<const LocalOrdinal>& indices,
                       Teuchos::ArrayView<const Scalar>& values) const {
    base().getLocalRowView(row, indices, values);
  }
#endif
  /// Of A's present numbers.
  void getLocalDiagCopy(vector_type& diagonal) const { A().getLocalDiagCopy(diagonal); }
  /// Of A's present numbers. Collective.
  typename Base::mag_type getFrobeniusNorm() const { return A().getFrobeniusNorm(); }
  /// \}

  /// \name What would change the matrix
  /// \{

  /// @throw NotSupported  always: scale the matrix itself, then update_values()
  void leftScale(const vector_type&) { refuse("leftScale"); }
  /// See leftScale.
  void rightScale(const vector_type&) { refuse("rightScale"); }
  /// \}

  /// For messages.
  std::string description() const { return "Tessera::TpetraRowMatrix of " + A().description(); }

 private:
  const matrix_type& A() const { return *operator_->matrix(); }
#ifdef TPETRA_ENABLE_DEPRECATED_CODE
  const Base& base() const { return A(); }
#endif
  [[noreturn]] static void refuse(const char* what) {
    throw NotSupported(std::string("TpetraRowMatrix::") + what +
                       ": scale the Tpetra::CrsMatrix, then call update_values()");
  }

  Teuchos::RCP<operator_type> operator_;
};

/// The row matrix of an operator, whose plans it shares; of a matrix, with an operator of its own. Types are deduced:
/// `auto rows = Tessera::tpetra_row_matrix(A, options);`
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<TpetraRowMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>> tpetra_row_matrix(
    const Teuchos::RCP<TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& op) {
  return Teuchos::rcp(new TpetraRowMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>(op));
}
/// See above.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<TpetraRowMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>> tpetra_row_matrix(
    const Teuchos::RCP<Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& A,
    const TpetraOptions& options = {}) {
  return tpetra_row_matrix(tpetra_operator(A, options));
}

}  // namespace Tessera

#endif
