// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The products of a hierarchy, A P and R (A P) on two levels: every process multiplies its local matrices, with the
// rows of the second factor that it needs brought to it, and has to get the rows of Tpetra::MatrixMatrix::Multiply. All
// numbers are small multiples of powers of two, so that both are exact.

#include <TpetraExt_MatrixMatrix.hpp>
#include <map>

#include "adapters/Tessera_KokkosSparseSpgemm.hpp"
#include "mpi/MpiFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Columns = std::map<GO, double>;

/// Point i takes from coarse point i / 2, and half of the next one where i is odd.
Row prolongator(GO coarse) {
  return [=](GO i) {
    std::vector<Entry> entries{{i / 2, 1.0}};
    if (i % 2 == 1 && i / 2 + 1 < coarse) entries.push_back({i / 2 + 1, 0.5});
    return entries;
  };
}
/// Its transpose.
Row restriction(GO fine) {
  return [=](GO j) {
    std::vector<Entry> entries{{2 * j, 1.0}};
    if (2 * j + 1 < fine) entries.push_back({2 * j + 1, 1.0});
    if (j > 0) entries.push_back({2 * j - 1, 0.5});
    return entries;
  };
}

/// Rows of a local matrix by global columns, read on the host.
template <class Local>
std::vector<Columns> rows_of(const Local& C, const Map& names) {
  const auto row_map = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C.graph.row_map);
  const auto entries = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C.graph.entries);
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C.values);
  std::vector<Columns> rows(static_cast<std::size_t>(C.numRows()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (auto e = row_map(i); e < row_map(i + 1); ++e) rows[i].emplace(names.getGlobalElement(entries(e)), values(e));
  }
  return rows;
}

/// Rows of the second factor in the order of the first one's columns.
Teuchos::RCP<const Matrix> rows_for(const MatrixPointer& first, const MatrixPointer& second) {
  const auto importer = first->getGraph()->getImporter();
  if (importer.is_null()) return second;
  return Tpetra::importAndFillCompleteCrsMatrix<Matrix>(second, *importer, second->getDomainMap(),
                                                        second->getRangeMap());
}

/// @return Tpetra's product, with which the local one was compared
MatrixPointer expect_product(const MatrixPointer& first, const MatrixPointer& second) {
  const auto C = Teuchos::rcp(new Matrix(first->getRowMap(), 0));
  Tpetra::MatrixMatrix::Multiply(*first, false, *second, false, *C);
  const auto rows = rows_for(first, second);
  const auto mine = Tessera::spgemm(Compat::local_matrix(*first), false, Compat::local_matrix(*rows), false);
  const auto theirs = Compat::local_matrix(*C);
  // As many entries, too: a column that stands twice would be one of a map.
  EXPECT_TRUE(everywhere(first->getComm(), mine.nnz() == theirs.nnz() &&
                                               rows_of(mine, *rows->getColMap()) == rows_of(theirs, *C->getColMap())));
  return C;
}

TEST(TpetraSpgemm, ProductsOfAHierarchy) {
  for (const auto spread : {Spread::Blocks, Spread::Cyclic, Spread::Backwards, Spread::FirstOnly, Spread::LastEmpty}) {
    SCOPED_TRACE(static_cast<int>(spread));
    const GO nx = 19, ny = 13;
    GO fine = nx * ny;
    const auto comm = Tpetra::getDefaultComm();
    auto map = make_map(comm, fine, spread);
    auto A = make_matrix(map, map, map, laplacian(nx, ny, 0.5));
    for (int level = 0; level < 2; ++level) {
      const GO coarse = (fine + 1) / 2;
      const auto coarse_map = make_map(comm, coarse, spread);
      const auto P = make_matrix(map, coarse_map, map, prolongator(coarse));
      const auto R = make_matrix(coarse_map, map, coarse_map, restriction(fine));
      A = expect_product(R, expect_product(A, P));
      map = coarse_map;
      fine = coarse;
    }
    // What was compared is not next to nothing.
    EXPECT_GT(A->getGlobalNumEntries(), static_cast<Tpetra::global_size_t>(fine));
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
