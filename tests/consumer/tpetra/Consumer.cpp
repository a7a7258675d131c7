// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What a project that asks for Tessera's component Tpetra can count on.

#include <Tpetra_Core.hpp>
#include <cstdio>

#include "adapters/Tessera_TpetraOperator.hpp"

int main(int argc, char* argv[]) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  using Matrix = Tpetra::CrsMatrix<double>;
  using GO = Matrix::global_ordinal_type;
  const auto map = Teuchos::rcp(new Matrix::map_type(10, 0, Tpetra::getDefaultComm()));
  const auto A = Teuchos::rcp(new Matrix(map, 1));
  for (GO i = map->getMinGlobalIndex(); i <= map->getMaxGlobalIndex(); ++i) {
    A->insertGlobalValues(i, Teuchos::tuple<GO>(i), Teuchos::tuple<double>(2.0));
  }
  A->fillComplete();
  Tpetra::MultiVector<double> x(map, 1), y(map, 1);
  x.putScalar(1.5);
  Tessera::tpetra_operator(A)->apply(x, y);
  const double sum = y.getVector(0)->norm1();
  std::printf("sum %g\n", sum);
  return sum == 30 ? 0 : 1;
}
