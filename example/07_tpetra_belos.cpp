// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A distributed linear system by Belos' conjugate gradients, first with Tpetra's matrix as the operator, then with
// Tessera's: the change is the one line marked below. Then with Ifpack2's Chebyshev polynomial as the preconditioner,
// whose products are Tessera's, too. The matrix comes from a Matrix Market file and must be symmetric and positive
// definite.
//
//   mpiexec -n 2 07_tpetra_belos [FILE.mtx or FILE.mtx.gz [TOLERANCE]]

#include <BelosLinearProblem.hpp>
#include <BelosPseudoBlockCGSolMgr.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Ifpack2_Chebyshev.hpp>
#include <Ifpack2_Relaxation.hpp>
#include <Teuchos_Time.hpp>
#include <Tpetra_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "adapters/Tessera_TpetraMatrixMarket.hpp"
#include "adapters/Tessera_TpetraRowMatrix.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Matrix = Tpetra::CrsMatrix<double>;
using Vector = Tpetra::MultiVector<double>;
using Operator = Tpetra::Operator<double>;
using RowMatrix = Tpetra::RowMatrix<double>;

struct Outcome {
  bool converged;
  int iterations;
  double residual, seconds;
};

/// A x = b with A given as an operator; the residual is computed with the matrix.
Outcome solve(const char* name, const Teuchos::RCP<const Operator>& A, const Matrix& matrix,
              const Teuchos::RCP<Operator>& preconditioner, const Vector& b, double tolerance) {
  const auto x = Teuchos::rcp(new Vector(A->getDomainMap(), b.getNumVectors()));
  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vector, Operator>(A, x, Teuchos::rcpFromRef(b)));
  problem->setLeftPrec(preconditioner);
  problem->setProblem();
  const auto list = Teuchos::parameterList();
  list->set("Convergence Tolerance", tolerance);
  list->set("Maximum Iterations", 5000);
  Belos::PseudoBlockCGSolMgr<double, Vector, Operator> solver(problem, list);
  Teuchos::Time timer(name, true);
  const bool converged = solver.solve() == Belos::Converged;
  const double seconds = timer.stop();
  Vector r(b, Teuchos::Copy);
  matrix.apply(*x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  const double residual = r.getVector(0)->norm2() / b.getVector(0)->norm2();
  const Outcome outcome{converged, solver.getNumIters(), residual, seconds};
  if (matrix.getComm()->getRank() == 0) {
    std::printf("%-8s %5d iterations  |b - A x| / |b| = %.3e  %.4f s  %.1f us per iteration  %s\n", name,
                outcome.iterations, residual, seconds, 1e6 * seconds / outcome.iterations,
                converged ? "converged" : "NOT CONVERGED");
  }
  return outcome;
}

/// @param lambda  the largest eigenvalue of D^-1 A; 0 to have it estimated, from random numbers
Teuchos::RCP<Ifpack2::Chebyshev<RowMatrix>> chebyshev(const Teuchos::RCP<const RowMatrix>& A, double lambda) {
  const auto smoother = Teuchos::rcp(new Ifpack2::Chebyshev<RowMatrix>(A));
  Teuchos::ParameterList list;
  list.set("chebyshev: degree", 3);  // odd: positive definite even where lambda is an estimate from below
  list.set("chebyshev: ratio eigenvalue", 30.0);
  if (lambda > 0) list.set("chebyshev: max eigenvalue", lambda);
  smoother->setParameters(list);
  smoother->initialize();
  smoother->compute();
  return smoother;
}

int run(const std::string& file, double tolerance) {
  const auto comm = Tpetra::getDefaultComm();
  const Teuchos::RCP<Matrix> A = Tessera::io::read_tpetra_matrix<Matrix>(file, comm);
  const auto preconditioner = Teuchos::rcp(new Ifpack2::Relaxation<RowMatrix>(Teuchos::RCP<const RowMatrix>(A)));
  Teuchos::ParameterList list;
  list.set("relaxation: type", "Jacobi");
  preconditioner->setParameters(list);
  preconditioner->initialize();
  preconditioner->compute();

  Vector b(A->getRangeMap(), 1), ones(A->getDomainMap(), 1);
  ones.putScalar(1.0);
  A->apply(ones, b);
  if (comm->getRank() == 0) {
    std::printf("%s: %lld rows, %lld entries, %d processes\n", file.c_str(),
                static_cast<long long>(A->getGlobalNumRows()), static_cast<long long>(A->getGlobalNumEntries()),
                comm->getSize());
  }

  Teuchos::RCP<const Operator> op = A;
  const Outcome theirs = solve("Tpetra", op, *A, preconditioner, b, tolerance);
  op = Tessera::tpetra_operator(A);  // the one line
  const Outcome ours = solve("Tessera", op, *A, preconditioner, b, tolerance);

  const auto their_polynomial = chebyshev(A, 0);
  const auto rows = Tessera::tpetra_row_matrix(A);  // a Tpetra::RowMatrix, as Ifpack2 wants one
  const auto our_polynomial = chebyshev(rows, their_polynomial->getLambdaMaxForApply());
  if (comm->getRank() == 0) std::printf("with Chebyshev polynomials\n");
  const Outcome their_smoothed = solve("Tpetra", A, *A, their_polynomial, b, tolerance);
  const Outcome our_smoothed = solve("Tessera", rows, *A, our_polynomial, b, tolerance);

  const auto tessera =
      Teuchos::rcp_dynamic_cast<const Tessera::TpetraOperator<double, Matrix::local_ordinal_type,
                                                              Matrix::global_ordinal_type, Matrix::node_type>>(op,
                                                                                                               true);
  if (comm->getRank() == 0) Tessera::print_statistics(tessera->owned_plan(), std::cout);
  return theirs.converged && ours.converged && their_smoothed.converged && our_smoothed.converged ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  try {
    return run(argc > 1 ? argv[1] : TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz", argc > 2 ? std::atof(argv[2]) : 1e-10);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
