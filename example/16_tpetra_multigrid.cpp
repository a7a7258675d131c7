// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Conjugate gradients with MueLu's smoothed aggregation, on a Laplacian of a cube and on a stiffness matrix: first as
// Trilinos does it, then with Tessera's products in the solver and, on every level of the same hierarchy, in residuals,
// smoothers, restriction and prolongation.
//
//   mpiexec -n 2 16_tpetra_multigrid [POINTS of an edge of the cube [SOLVES, of which the fastest counts]]

#include <BelosLinearProblem.hpp>
#include <BelosPseudoBlockCGSolMgr.hpp>
#include <BelosTpetraAdapter.hpp>
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <MueLu_Ifpack2Smoother.hpp>
#include <MueLu_TrilinosSmoother.hpp>
#include <Teuchos_Time.hpp>
#include <Tpetra_Core.hpp>
#include <Xpetra_CrsMatrixWrap.hpp>
#include <Xpetra_TpetraCrsMatrix.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "adapters/Tessera_TpetraMatrixMarket.hpp"
#include "adapters/Tessera_TpetraRowMatrix.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Teuchos::RCP;
using Teuchos::rcp;
using Teuchos::rcp_dynamic_cast;
using Matrix = Tpetra::CrsMatrix<double>;
using LO = Matrix::local_ordinal_type;
using GO = Matrix::global_ordinal_type;
using Node = Matrix::node_type;
using Vector = Tpetra::MultiVector<double>;
using Operator = Tpetra::Operator<double>;
using RowMatrix = Tpetra::RowMatrix<double>;
using TesseraOperator = Tessera::TpetraOperator<double, LO, GO, Node>;
using Hierarchy = MueLu::Hierarchy<double, LO, GO, Node>;
using XMatrix = Xpetra::Matrix<double, LO, GO, Node>;
using XVector = Xpetra::MultiVector<double, LO, GO, Node>;
using Smoother = MueLu::SmootherBase<double, LO, GO, Node>;

/// A matrix of a level: MueLu's, but for its products.
class LevelMatrix : public Xpetra::TpetraCrsMatrix<double, LO, GO, Node> {
  using Base = Xpetra::TpetraCrsMatrix<double, LO, GO, Node>;

 public:
  LevelMatrix(const RCP<Matrix>& A, const RCP<const TesseraOperator>& op) : Base(A), operator_(op) {}
  using Base::apply;
  void apply(const XVector& X, XVector& Y, Teuchos::ETransp mode, double alpha, double beta) const override {
    operator_->apply(Xpetra::toTpetra(X), Xpetra::toTpetra(Y), mode, alpha, beta);
  }
  void residual(const XVector& X, const XVector& B, XVector& R) const override {
    Tpetra::deep_copy(Xpetra::toTpetra(R), Xpetra::toTpetra(B));
    operator_->apply(Xpetra::toTpetra(X), Xpetra::toTpetra(R), Teuchos::NO_TRANS, -1.0, 1.0);
  }

 private:
  RCP<const TesseraOperator> operator_;
};

/// The level's matrix of this name with Tessera's products. @return its operator
RCP<TesseraOperator> replace_matrix(MueLu::Level& level, const char* name) {
  const auto A = MueLu::Utilities<double, LO, GO, Node>::Op2NonConstTpetraCrs(level.Get<RCP<XMatrix>>(name));
  const auto op = Tessera::tpetra_operator(A);
  const RCP<Xpetra::CrsMatrix<double, LO, GO, Node>> products = rcp(new LevelMatrix(A, op));
  const RCP<XMatrix> wrapped = rcp(new Xpetra::CrsMatrixWrap<double, LO, GO, Node>(products));
  level.Set(name, wrapped);
  return op;
}

/// The level's Ifpack2 smoother goes on with another matrix; its parameters, with MueLu's eigenvalue, stay.
void replace_smoother(MueLu::Level& level, const char* name, const RCP<const RowMatrix>& rows) {
  if (!level.IsAvailable(name)) return;
  const auto kept = level.Get<RCP<Smoother>>(name);
  const auto outer = rcp_dynamic_cast<MueLu::TrilinosSmoother<double, LO, GO, Node>>(kept);
  const RCP<Smoother> inner = outer.is_null() ? kept : RCP<Smoother>(outer->getSmoother());
  const auto ifpack = rcp_dynamic_cast<MueLu::Ifpack2Smoother<double, LO, GO, Node>>(inner, true);
  const auto preconditioner = ifpack->getPreconditioner();
  rcp_dynamic_cast<Ifpack2::Details::CanChangeMatrix<RowMatrix>>(preconditioner, true)->setMatrix(rows);
  preconditioner->initialize();
  preconditioner->compute();
}

/// Every product of the hierarchy becomes Tessera's. @return the operator of the finest level
RCP<TesseraOperator> use_tessera(Hierarchy& hierarchy) {
  RCP<TesseraOperator> finest;
  for (int l = 0; l < hierarchy.GetNumLevels(); ++l) {
    MueLu::Level& level = *hierarchy.GetLevel(l);
    const auto op = replace_matrix(level, "A");
    if (l == 0) {
      finest = op;
    } else {
      replace_matrix(level, "P");
      replace_matrix(level, "R");
    }
    const auto rows = Tessera::tpetra_row_matrix(op);
    replace_smoother(level, "PreSmoother", rows);
    replace_smoother(level, "PostSmoother", rows);
  }
  return finest;
}

RCP<Matrix> laplacian(GO n, const RCP<const Teuchos::Comm<int>>& comm) {
  const auto map = rcp(new Tpetra::Map<>(static_cast<Tpetra::global_size_t>(n * n * n), 0, comm));
  const auto A = rcp(new Matrix(map, 7));
  for (std::size_t i = 0; i < Tessera::Compat::local_size(*map); ++i) {
    const GO row = map->getGlobalElement(static_cast<LO>(i)), x = row % n, y = row / n % n, z = row / n / n;
    std::vector<GO> columns{row};
    if (x > 0) columns.push_back(row - 1);
    if (x + 1 < n) columns.push_back(row + 1);
    if (y > 0) columns.push_back(row - n);
    if (y + 1 < n) columns.push_back(row + n);
    if (z > 0) columns.push_back(row - n * n);
    if (z + 1 < n) columns.push_back(row + n * n);
    std::vector<double> values(columns.size(), -1.0);
    values[0] = 6.0;
    const auto count = static_cast<int>(columns.size());
    A->insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), count),
                          Teuchos::ArrayView<const double>(values.data(), count));
  }
  A->fillComplete();
  return A;
}

struct Outcome {
  bool converged = false;
  int iterations = 0;
  double residual = 0, seconds = 0, cycle = 0;
};

/// A x = b with A given as an operator; the residual is computed with the matrix. Times are the least of several.
Outcome solve(const RCP<const Operator>& A, const Matrix& matrix, const RCP<Operator>& multigrid, const Vector& b,
              double tolerance, int solves) {
  Outcome outcome;
  Vector z(b, Teuchos::Copy);
  for (int s = 0; s < solves; ++s) {
    const auto x = rcp(new Vector(A->getDomainMap(), 1));
    const auto problem = rcp(new Belos::LinearProblem<double, Vector, Operator>(A, x, Teuchos::rcpFromRef(b)));
    problem->setLeftPrec(multigrid);
    problem->setProblem();
    const auto list = Teuchos::parameterList();
    list->set("Convergence Tolerance", tolerance);
    list->set("Maximum Iterations", 500);
    Belos::PseudoBlockCGSolMgr<double, Vector, Operator> solver(problem, list);
    Teuchos::Time timer("solve", true);
    outcome.converged = solver.solve() == Belos::Converged;
    const double seconds = timer.stop();
    outcome.seconds = s == 0 ? seconds : std::min(seconds, outcome.seconds);
    outcome.iterations = solver.getNumIters();
    Vector r(b, Teuchos::Copy);
    matrix.apply(*x, r, Teuchos::NO_TRANS, -1.0, 1.0);
    outcome.residual = r.getVector(0)->norm2() / b.getVector(0)->norm2();
    for (int k = 0; k < 20; ++k) {
      Teuchos::Time cycle("cycle", true);
      multigrid->apply(b, z);
      const double once = cycle.stop();
      outcome.cycle = s + k == 0 ? once : std::min(once, outcome.cycle);
    }
  }
  return outcome;
}

/// @param equations  unknowns of a point, which are aggregated together
bool compare(const std::string& name, const RCP<Matrix>& A, int equations, double tolerance, int solves) {
  Teuchos::ParameterList list;
  list.set("verbosity", "none");
  list.set("multigrid algorithm", "sa");
  list.set("number of equations", equations);
  list.set("coarse: max size", 200);
  // Chebyshev on the coarsest level as well: every product of a cycle is one of ours.
  for (const char* where : {"smoother", "coarse"}) {
    const std::string prefix = where;
    list.set(prefix + ": type", "CHEBYSHEV");
    Teuchos::ParameterList& chebyshev = list.sublist(prefix + ": params");
    chebyshev.set("chebyshev: degree", prefix == "coarse" ? 21 : 3);
    chebyshev.set("chebyshev: ratio eigenvalue", prefix == "coarse" ? 100.0 : 10.0);
  }
  const auto multigrid = MueLu::CreateTpetraPreconditioner(RCP<Operator>(A), list);

  Vector b(A->getRangeMap(), 1), ones(A->getDomainMap(), 1);
  ones.putScalar(1.0);
  A->apply(ones, b);
  const int levels = multigrid->GetHierarchy()->GetNumLevels();
  const Outcome theirs = solve(A, *A, multigrid, b, tolerance, solves);
  const auto finest = use_tessera(*multigrid->GetHierarchy());
  const Outcome ours = solve(finest, *A, multigrid, b, tolerance, solves);
  if (A->getComm()->getRank() == 0) {
    std::printf("%s: %lld rows, %lld entries, %d levels, %d processes\n", name.c_str(),
                static_cast<long long>(A->getGlobalNumRows()), static_cast<long long>(A->getGlobalNumEntries()), levels,
                A->getComm()->getSize());
    const auto print = [](const char* who, const Outcome& o) {
      std::printf("  %-8s %4d iterations  |b - A x| / |b| = %.3e  %.4f s  a cycle %.1f us  %s\n", who, o.iterations,
                  o.residual, o.seconds, 1e6 * o.cycle, o.converged ? "converged" : "NOT CONVERGED");
    };
    print("Trilinos", theirs);
    print("Tessera", ours);
  }
  return theirs.converged && ours.converged && std::abs(theirs.iterations - ours.iterations) <= 1;
}

int run(int points, int solves) {
  const auto comm = Tpetra::getDefaultComm();
  bool right = compare("Laplacian", laplacian(points, comm), 1, 1e-9, solves);
  const auto stiffness = Tessera::io::read_tpetra_matrix<Matrix>(TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz", comm);
  // Three displacements of a point, where no process cuts one apart.
  const bool whole = stiffness->getRowMap()->getMinGlobalIndex() % 3 == 0;
  int cut = whole ? 0 : 1, any = cut;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MAX, cut, Teuchos::outArg(any));
  right = compare("bcsstk16", stiffness, any == 0 ? 3 : 1, 1e-8, solves) && right;
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  try {
    return run(argc > 1 ? std::atoi(argv[1]) : 20, argc > 2 ? std::atoi(argv[2]) : 1);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
