// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_BLOCKS_HPP
#define TESSERA_ADAPTERS_TPETRA_BLOCKS_HPP

#include <Tpetra_BlockCrsMatrix.hpp>
#include <Tpetra_BlockMultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <memory>
#include <string>

#include "Tessera_BsrSpmv.hpp"
#include "adapters/Tessera_TpetraCompat.hpp"
#include "adapters/Tessera_TpetraOperands.hpp"

namespace Tessera {

namespace Impl {
/// Of somebody else's array, which is not kept alive.
template <class View>
auto not_kept(const View& view) {
  return Kokkos::View<typename View::const_value_type*, typename View::device_type,
                      Kokkos::MemoryTraits<Kokkos::Unmanaged>>(view.data(), view.extent(0));
}
}  // namespace Impl

/// The blocks of this process: rows as in the row map, columns as in the column map. No copy; A's arrays must outlive
/// the view. Columns and numbers are not kept alive by it: where hosts cannot reach a device's memory Tpetra refuses
/// what reads or writes these on the host as long as somebody keeps them.
template <class Scalar, class LO, class GO, class Node>
auto bsr_view(const Tpetra::BlockCrsMatrix<Scalar, LO, GO, Node>& A) {
  const auto graph = A.getCrsGraph().getLocalGraphDevice();
  return bsr_view(static_cast<LO>(Compat::local_size(*A.getRowMap())),
                  static_cast<LO>(Compat::local_size(*A.getColMap())), static_cast<int>(A.getBlockSize()),
                  graph.row_map, Impl::not_kept(graph.entries), Impl::not_kept(A.getValuesDevice()));
}

/// Y := alpha A X + beta Y for a distributed Tpetra::BlockCrsMatrix, as a Tpetra::Operator. Each process multiplies its
/// blocks as they lie in A (SpmvPlan of a BsrView: no conversion, no memory beside A, numbers that change in A count at
/// once); the exchange is Tpetra's Import, by points, which ends before the product begins.
///
/// X and Y: multivectors on A's point maps, of any number of columns (one pass over the blocks per column), with
/// constant stride or not; X is copied first where it shares memory with Y. beta == 0 overwrites Y, NaN included.
/// Transposes are not offered, as by Tpetra's matrix. Deterministic for one distribution. apply is collective: its
/// arguments are refused on all processes or on none. Not for two host threads at once.
///
/// @tparam Scalar  double or float.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
class TpetraBlockOperator : public Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
 public:
  /// \name Types of Tpetra, and of the local matrix
  /// \{
  using matrix_type = Tpetra::BlockCrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>;    ///< that is applied
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;  ///< of X and Y
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;                          ///< of A
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;                    ///< of x
  using bsr_type = decltype(bsr_view(std::declval<const matrix_type&>()));                  ///< of the plan
  using execution_space = typename bsr_type::execution_space;                               ///< where it runs
  /// \}

  /// Collective. A is kept. Options: those of SpmvPlan of a BsrView, without a transpose.
  /// @throw InvalidArgument  A is null, or its range map is not its row map
  /// @throw NotCompiled, NotSupported  from the plan
  explicit TpetraBlockOperator(const Teuchos::RCP<const matrix_type>& A, SpmvOptions options = {}) : matrix_(A) {
    Impl::require<InvalidArgument>(!A.is_null(), [] { return std::string("TpetraBlockOperator: the matrix is null"); });
    Impl::require<InvalidArgument>(A->getCrsGraph().getExporter().is_null(), [] {
      return std::string("TpetraBlockOperator: the range map must be the row map");
    });
    domain_ = A->getDomainMap();
    range_ = A->getRangeMap();
    const auto& graph = A->getCrsGraph();
    if (!graph.getImporter().is_null()) {
      const auto side = static_cast<LocalOrdinal>(A->getBlockSize());
      column_map_ = Teuchos::rcp(new map_type(Blocks::makePointMap(*graph.getColMap(), side)));
      importer_ = Teuchos::rcp(new import_type(domain_, column_map_));
    }
    options.prepare_transpose = false;
    plan_ = std::make_unique<SpmvPlan<bsr_type>>(space_, bsr_view(*A), options);
  }

  /// Of X.
  Teuchos::RCP<const map_type> getDomainMap() const override { return domain_; }
  /// Of Y.
  Teuchos::RCP<const map_type> getRangeMap() const override { return range_; }
  /// False.
  bool hasTransposeApply() const override { return false; }

  /// Y := alpha A X + beta Y.
  /// @throw NotSupported  a transposed mode
  /// @throw DimensionMismatch  X or Y not on the maps (Map::isSameAs), or different numbers of columns
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const override {
    Impl::require<NotSupported>(mode == Teuchos::NO_TRANS,
                                [] { return std::string("TpetraBlockOperator::apply: transposes are not offered"); });
    constexpr auto who = "TpetraBlockOperator";
    Impl::check_map(who, "X", X, domain_, known_domain_);
    Impl::check_map(who, "Y", Y, range_, known_range_);
    Impl::check_columns(who, X, Y);
    const Compat::ScopedRegion region("Tessera::tpetra apply");
    if (!Y.isConstantStride()) {
      multivector_type copy(Y, Teuchos::Copy);
      apply(X, copy, mode, alpha, beta);
      Tpetra::deep_copy(Y, copy);
      return;
    }
    if (!X.isConstantStride() || Impl::share_memory(X, Y)) {
      return multiply(multivector_type(X, Teuchos::Copy), Y, alpha, beta);
    }
    multiply(X, Y, alpha, beta);
  }

  /// For statistics().
  const SpmvPlan<bsr_type>& plan() const noexcept { return *plan_; }

 private:
  using Blocks = Tpetra::BlockMultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

  void multiply(const multivector_type& X, multivector_type& Y, Scalar alpha, Scalar beta) const {
    if (importer_.is_null()) return local(X, Y, alpha, beta);
    if (columns_ == nullptr || columns_->getNumVectors() != X.getNumVectors()) {
      columns_ = std::make_unique<multivector_type>(column_map_, X.getNumVectors());
    }
    columns_->doImport(X, *importer_, Tpetra::INSERT);
    local(*columns_, Y, alpha, beta);
  }
  void local(const multivector_type& X, multivector_type& Y, Scalar alpha, Scalar beta) const {
    const auto x = Compat::read(X);
    matrix_->getValuesDevice();  // numbers that were changed on the host are copied to the device
    if (beta == Scalar(0)) {
      plan_->apply(space_, Op::NoTrans, alpha, x, 0, Compat::overwrite(Y));
    } else {
      plan_->apply(space_, Op::NoTrans, alpha, x, beta, Compat::read_write(Y));
    }
  }

  Teuchos::RCP<const matrix_type> matrix_;
  execution_space space_;
  std::unique_ptr<SpmvPlan<bsr_type>> plan_;
  Teuchos::RCP<const map_type> domain_, range_;  ///< of points
  mutable Teuchos::RCP<const map_type> known_domain_, known_range_;
  Teuchos::RCP<const map_type> column_map_;  ///< of points; null where nothing is received
  Teuchos::RCP<const import_type> importer_;
  mutable std::unique_ptr<multivector_type> columns_;  ///< X as the columns need it
};

}  // namespace Tessera

#endif
