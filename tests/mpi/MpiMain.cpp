// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The main of the tests with several processes: MPI and Kokkos live for as long as the tests run, process 0 speaks, and
// every process ends with the worst status of all. Tests compare on all processes and then assert what all agree on, so
// that none leaves another waiting.

#include <gtest/gtest.h>

#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Core.hpp>

int main(int argc, char* argv[]) {
  testing::InitGoogleTest(&argc, argv);
  Tpetra::ScopeGuard scope(&argc, &argv);
  const auto comm = Tpetra::getDefaultComm();
  if (comm->getRank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  const int mine = RUN_ALL_TESTS();
  int worst = mine;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MAX, mine, Teuchos::outArg(worst));
  return worst;
}
