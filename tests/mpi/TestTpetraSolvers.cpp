// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Belos' solvers with Tessera's operator beside Tpetra's own matrix, preconditioned by Ifpack2: iterations, residuals
// and solutions.

#include <BelosLinearProblem.hpp>
#include <BelosPseudoBlockCGSolMgr.hpp>
#include <BelosPseudoBlockGmresSolMgr.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Ifpack2_Chebyshev.hpp>
#include <Ifpack2_Relaxation.hpp>
#include <MatrixMarket_Tpetra.hpp>
#include <map>

#include "adapters/Tessera_TpetraMatrixMarket.hpp"
#include "adapters/Tessera_TpetraRowMatrix.hpp"
#include "mpi/MpiFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Base = Tpetra::Operator<double, LO, GO, Node>;
using RowMatrix = Tpetra::RowMatrix<double, LO, GO, Node>;
using Problem = Belos::LinearProblem<double, Vectors, Base>;

enum class Method { Cg, Gmres };
enum class Preconditioner { None, Jacobi, Chebyshev };

using RowPointer = Teuchos::RCP<const RowMatrix>;

/// @param lambda  Chebyshev's largest eigenvalue: 0 to have it estimated, from random numbers, and written
Teuchos::RCP<Base> preconditioner(const RowPointer& rows, Preconditioner kind, double& lambda) {
  Teuchos::ParameterList list;
  if (kind == Preconditioner::Jacobi) {
    const auto M = Teuchos::rcp(new Ifpack2::Relaxation<RowMatrix>(rows));
    list.set("relaxation: type", "Jacobi");
    M->setParameters(list);
    M->initialize();
    M->compute();
    return M;
  }
  if (kind == Preconditioner::Chebyshev) {
    const auto M = Teuchos::rcp(new Ifpack2::Chebyshev<RowMatrix>(rows));
    list.set("chebyshev: degree", 3);
    list.set("chebyshev: ratio eigenvalue", 30.0);
    if (lambda > 0) list.set("chebyshev: max eigenvalue", lambda);
    M->setParameters(list);
    M->initialize();
    M->compute();
    lambda = M->getLambdaMaxForApply();
    return M;
  }
  return Teuchos::null;
}

struct Solution {
  int iterations = 0;
  bool converged = false;
  Vectors x;
};

Solution solve(const Teuchos::RCP<const Base>& A, const Teuchos::RCP<Base>& M, const Vectors& b, Method method,
               double tolerance) {
  const auto x = Teuchos::rcp(new Vectors(A->getDomainMap(), b.getNumVectors()));
  const auto problem = Teuchos::rcp(new Problem(A, x, Teuchos::rcpFromRef(b)));
  if (!M.is_null()) {
    if (method == Method::Cg) {
      problem->setLeftPrec(M);
    } else {
      problem->setRightPrec(M);
    }
  }
  problem->setProblem();
  const auto list = Teuchos::parameterList();
  list->set("Convergence Tolerance", tolerance);
  list->set("Maximum Iterations", 3000);
  list->set("Verbosity", static_cast<int>(Belos::Errors));
  Teuchos::RCP<Belos::SolverManager<double, Vectors, Base>> solver;
  if (method == Method::Cg) {
    solver = Teuchos::rcp(new Belos::PseudoBlockCGSolMgr<double, Vectors, Base>(problem, list));
  } else {
    list->set("Num Blocks", 150);
    list->set("Maximum Restarts", 20);
    solver = Teuchos::rcp(new Belos::PseudoBlockGmresSolMgr<double, Vectors, Base>(problem, list));
  }
  Solution s{0, false, Vectors(A->getDomainMap(), b.getNumVectors())};
  s.converged = solver->solve() == Belos::Converged;
  s.iterations = solver->getNumIters();
  Tpetra::deep_copy(s.x, *x);
  return s;
}

std::vector<double> norms(const Vectors& v) {
  std::vector<double> result(v.getNumVectors());
  v.norm2(Teuchos::ArrayView<double>(result.data(), static_cast<int>(result.size())));
  return result;
}
/// b - A x by Tpetra's matrix.
Vectors residual(const Matrix& A, const Vectors& x, const Vectors& b) {
  Vectors r(b, Teuchos::Copy);
  A.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  return r;
}
/// As Belos measures them: with a preconditioner on the left, norms of what it makes of v.
std::vector<double> measured(const Vectors& v, const Teuchos::RCP<Base>& left) {
  if (left.is_null()) return norms(v);
  Vectors z(v.getMap(), v.getNumVectors());
  left->apply(v, z);
  return norms(z);
}

/// Both solves reach the tolerance, by the residual of Tpetra's matrix. The products differ by the order of sums, so by
/// some u |A||x|: the residuals of the two solves part slowly, and one may pass the tolerance an iteration before the
/// other. Allowed are one iteration, or two in a hundred of long, ill-conditioned solves, whichever is more; the counts
/// are printed.
/// @param least  the least eigenvalue of A, if it is known: |x1 - x2| = |A^-1 (r2 - r1)| <= (|r1| + |r2|) / least
void compare(const std::string& name, const MatrixPointer& A, std::size_t columns, Method method, Preconditioner kind,
             double tolerance, double least) {
  Vectors b(A->getRangeMap(), columns), ones(A->getDomainMap(), columns);
  fill(ones, 11);
  A->apply(ones, b);
  // The same polynomial in both solves; on Tessera's side its products are Tessera's, too.
  double lambda = 0;
  const auto M = preconditioner(A, kind, lambda);
  const auto rows = tpetra_row_matrix(A);
  const Solution theirs = solve(A, M, b, method, tolerance);
  const Solution ours = solve(rows, preconditioner(rows, kind, lambda), b, method, tolerance);
  const std::string what = name + (method == Method::Cg ? ", CG" : ", GMRES") +
                           (kind == Preconditioner::None     ? ""
                            : kind == Preconditioner::Jacobi ? ", Jacobi"
                                                             : ", Chebyshev") +
                           ", " + std::to_string(columns) + " right-hand sides";
  if (A->getComm()->getRank() == 0) {
    std::printf("%s: %d iterations with Tpetra's operator, %d with Tessera's\n", what.c_str(), theirs.iterations,
                ours.iterations);
  }
  EXPECT_TRUE(theirs.converged) << what;
  EXPECT_TRUE(ours.converged) << what;
  EXPECT_GT(ours.iterations, 3) << what;
  EXPECT_LE(std::abs(ours.iterations - theirs.iterations), std::max(1, theirs.iterations / 50)) << what;
  const Vectors r_ours = residual(*A, ours.x, b), r_theirs = residual(*A, theirs.x, b);
  Vectors difference(ours.x, Teuchos::Copy);
  difference.update(-1, theirs.x, 1);
  const auto apart = norms(difference), size_ours = norms(r_ours), size_theirs = norms(r_theirs);
  // What the solver drove below the tolerance is its recurrence's residual. The true one differs by some u k |A| |x|
  // after k steps, 1e-13 |A| |x| here, which is below the tolerance times |b|: together at most twice that.
  const auto left = method == Method::Cg ? M : Teuchos::null;
  const auto reached = measured(r_ours, left), start = measured(b, left);
  for (std::size_t j = 0; j < columns; ++j) {
    EXPECT_LE(reached[j], 2 * tolerance * start[j]) << what;
    if (least > 0) {
      EXPECT_LE(apart[j], (size_ours[j] + size_theirs[j]) / least * (1 + 1e-6)) << what;
    }
  }
}

TEST(TpetraSolvers, LaplacianAsWithTpetra) {
  const GO nx = 40, ny = 30;
  const double pi = 3.14159265358979323846;
  const double least = 4 - 2 * std::cos(pi / (nx + 1)) - 2 * std::cos(pi / (ny + 1));
  for (const auto spread : {Spread::Blocks, Spread::Cyclic}) {
    const auto map = make_map(Tpetra::getDefaultComm(), nx * ny, spread);
    const auto A = make_matrix(map, map, map, laplacian(nx, ny));
    for (const auto method : {Method::Cg, Method::Gmres}) {
      for (const auto kind : {Preconditioner::None, Preconditioner::Jacobi, Preconditioner::Chebyshev}) {
        compare("Laplacian", A, 1, method, kind, 1e-9, least);
      }
    }
    compare("Laplacian", A, 3, Method::Cg, Preconditioner::Jacobi, 1e-9, least);
  }
}

// Columns of a row, each with its number.
std::map<GO, double> row_of(const Matrix& A, GO row) {
  const std::size_t length = A.getNumEntriesInGlobalRow(row);
  Matrix::nonconst_global_inds_host_view_type columns("columns", length);
  Matrix::nonconst_values_host_view_type values("values", length);
  std::size_t n = 0;
  A.getGlobalRowCopy(row, columns, values, n);
  std::map<GO, double> result;
  for (std::size_t k = 0; k < n; ++k) result[columns(k)] = values(k);
  return result;
}

TEST(TpetraRowMatrix, IsTheMatrixItWasMadeOf) {
  const auto comm = Tpetra::getDefaultComm();
  for (const auto spread : {Spread::Blocks, Spread::Backwards, Spread::FirstOnly}) {
    const auto map = make_map(comm, 23 * 9, spread);
    const auto A = make_matrix(map, map, map, laplacian(23, 9, 0.25));
    const auto shared = tpetra_operator(A);
    const auto made = tpetra_row_matrix(shared);
    EXPECT_EQ(made->tessera_operator().get(), shared.get());
    const RowMatrix &ours = *made, &theirs = *A;
    EXPECT_EQ(ours.getRowMap().get(), theirs.getRowMap().get());
    EXPECT_EQ(ours.getColMap().get(), theirs.getColMap().get());
    EXPECT_EQ(ours.getDomainMap().get(), theirs.getDomainMap().get());
    EXPECT_EQ(ours.getRangeMap().get(), theirs.getRangeMap().get());
    EXPECT_EQ(ours.getGraph().get(), theirs.getGraph().get());
    EXPECT_EQ(ours.getComm().get(), theirs.getComm().get());
    EXPECT_EQ(ours.getGlobalNumRows(), theirs.getGlobalNumRows());
    EXPECT_EQ(ours.getGlobalNumCols(), theirs.getGlobalNumCols());
    EXPECT_EQ(ours.getGlobalNumEntries(), theirs.getGlobalNumEntries());
    EXPECT_EQ(ours.getGlobalMaxNumRowEntries(), theirs.getGlobalMaxNumRowEntries());
    EXPECT_EQ(ours.getIndexBase(), theirs.getIndexBase());
    EXPECT_EQ(Compat::local_entries(ours), Compat::local_entries(theirs));
    EXPECT_EQ(Compat::local_longest_row(ours), Compat::local_longest_row(theirs));
    EXPECT_TRUE(ours.isFillComplete() && ours.isLocallyIndexed() && !ours.isGloballyIndexed() && ours.hasColMap());
    EXPECT_EQ(ours.supportsRowViews(), theirs.supportsRowViews());
    EXPECT_EQ(ours.getFrobeniusNorm(), theirs.getFrobeniusNorm());
    EXPECT_EQ(shared->getFrobeniusNorm(), theirs.getFrobeniusNorm());
    bool equal = true;
    RowMatrix::nonconst_local_inds_host_view_type columns("columns", 16);
    RowMatrix::nonconst_values_host_view_type values("values", 16);
    for (LO i = 0; i < static_cast<LO>(Compat::local_size(*map)); ++i) {
      RowMatrix::local_inds_host_view_type wanted_columns;
      RowMatrix::values_host_view_type wanted;
      std::size_t n = 0;
      theirs.getLocalRowView(i, wanted_columns, wanted);
      ours.getLocalRowCopy(i, columns, values, n);
      equal = equal && n == wanted.extent(0) && n == ours.getNumEntriesInLocalRow(i) &&
              n == ours.getNumEntriesInGlobalRow(map->getGlobalElement(i));
      for (std::size_t k = 0; equal && k < n; ++k) {
        equal = columns(k) == wanted_columns(k) && values(k) == wanted(k);
      }
      RowMatrix::local_inds_host_view_type seen_columns;
      RowMatrix::values_host_view_type seen;
      ours.getLocalRowView(i, seen_columns, seen);
      equal = equal && seen.data() == wanted.data() && seen_columns.data() == wanted_columns.data();
    }
    EXPECT_TRUE(everywhere(comm, equal));
    using Vector = Tpetra::Vector<double, LO, GO, Node>;
    Vector from_rows(map), from_operator(map);
    ours.getLocalDiagCopy(from_rows);
    shared->getLocalDiagCopy(from_operator);
    EXPECT_TRUE(shared->hasDiagonal() && made->hasDiagonal());
    Vector four(map);
    four.putScalar(4.0);
    EXPECT_EQ(largest_difference(from_rows, four), 0);
    EXPECT_EQ(largest_difference(from_operator, four), 0);
    EXPECT_TRUE(throws_everywhere<NotSupported>(comm, [&] { made->leftScale(four); }));
    EXPECT_TRUE(throws_everywhere<NotSupported>(comm, [&] { made->rightScale(four); }));
    EXPECT_EQ(largest_difference(from_rows, four), 0);
    // Tpetra's apply has other exceptions, so that this one is the operator's.
    const Vectors two(map, 2);
    Vectors three(map, 3);
    EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm, [&] { ours.apply(two, three); }));
  }
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(
      comm, [] { TpetraRowMatrix<double, LO, GO, Node> rows{Teuchos::RCP<Operator>()}; }));
}

// Every number is a small multiple of a power of two and every product and sum exact, so that the two smoothers have to
// agree bit by bit, before and after new numbers.
TEST(TpetraRowMatrix, RelaxesAsTheMatrixDoes) {
  const auto comm = Tpetra::getDefaultComm();
  for (const auto spread : {Spread::Blocks, Spread::Cyclic}) {
    const auto map = make_map(comm, 23 * 9, spread);
    const auto A = make_matrix(map, map, map, laplacian(23, 9, 0.25));
    const auto rows = tpetra_row_matrix(A);
    Vectors B(map, 3);
    for (std::size_t j = 0; j < 3; ++j) {
      for (LO i = 0; i < static_cast<LO>(Compat::local_size(*map)); ++i) {
        B.replaceLocalValue(i, j, static_cast<double>((map->getGlobalElement(i) * 7 + static_cast<GO>(j)) % 13 - 6));
      }
    }
    for (int step = 0; step < 2; ++step) {
      for (const char* type : {"Jacobi", "Richardson"}) {
        const auto smooth = [&](const RowPointer& matrix) {
          Ifpack2::Relaxation<RowMatrix> M(matrix);
          Teuchos::ParameterList list;
          list.set("relaxation: type", type);
          list.set("relaxation: sweeps", 4);
          list.set("relaxation: damping factor", 0.125);
          M.setParameters(list);
          M.initialize();
          M.compute();
          Vectors X(map, 3);
          M.apply(B, X);
          return X;
        };
        const Vectors theirs = smooth(A), ours = smooth(rows);
        EXPECT_EQ(largest_difference(ours, theirs), 0) << type << ", step " << step;
        EXPECT_GT(largest_difference(ours, B), 0) << type;
      }
      A->resumeFill();
      A->scale(2.0);
      A->fillComplete(A->getDomainMap(), A->getRangeMap());
      rows->update_values();
    }
  }
}

// x is a sum of products along chains of at most `steps` residuals; a chain rounds at most (entries + 10) times a step,
// and the coefficients are Ifpack2's in both. So each x errs by at most gamma_n times what the same recurrence makes of
// magnitudes, with n = steps (entries + 10), and two of them differ by at most twice that.
TEST(TpetraRowMatrix, ChebyshevIsTheMatrixsOwn) {
  const auto comm = Tpetra::getDefaultComm();
  const int steps = 4;
  const double lambda = 2, ratio = 20, boost = 1.1;
  for (const auto spread : {Spread::Blocks, Spread::Cyclic}) {
    const auto map = make_map(comm, 23 * 9, spread);
    const auto A = make_matrix(map, map, map, laplacian(23, 9));
    const auto magnitudes = with_numbers(A, [](double v) { return std::fabs(v); });
    Vectors B(map, 2), W(map, 2), X(map, 2);
    fill(B, 21);
    const double low = lambda / ratio, high = boost * lambda, delta = 2 / (high - low), theta = (high + low) / 2;
    const double s = theta * delta;
    double rho = 1 / s;
    W.update(1 / theta / 4, absolute(B), 0);  // the diagonal is 4
    X.update(1, W, 0);
    for (int step = 1; step < steps; ++step) {
      const double next = 1 / (2 * s - rho);
      Vectors residual = absolute(B);
      magnitudes->apply(X, residual, Teuchos::NO_TRANS, 1, 1);
      W.update(2 * next * delta / 4, residual, next * rho);
      X.update(1, W, 1);
      rho = next;
    }
    const auto smooth = [&](const RowPointer& matrix) {
      Ifpack2::Chebyshev<RowMatrix> M(matrix);
      Teuchos::ParameterList list;
      list.set("chebyshev: degree", steps);
      list.set("chebyshev: max eigenvalue", lambda);
      list.set("chebyshev: ratio eigenvalue", ratio);
      list.set("chebyshev: boost factor", boost);
      M.setParameters(list);
      M.initialize();
      M.compute();
      Vectors x(map, 2);
      M.apply(B, x);
      return x;
    };
    const Vectors theirs = smooth(A), ours = smooth(tpetra_row_matrix(A));
    const double n = steps * (5 + 10), u = std::numeric_limits<double>::epsilon() / 2, gamma = n * u / (1 - n * u);
    bool within = true;
    for (std::size_t j = 0; j < 2; ++j) {
      const auto a = theirs.getVector(j)->getData(0), b = ours.getVector(j)->getData(0), m = X.getVector(j)->getData(0);
      for (int i = 0; i < a.size(); ++i) within = within && std::fabs(a[i] - b[i]) <= 2 * gamma * m[i];
    }
    EXPECT_TRUE(everywhere(comm, within));
  }
}

TEST(TpetraSolvers, FilesReadAsByTpetra) {
  const auto comm = Tpetra::getDefaultComm();
  const auto theirs = Tpetra::MatrixMarket::Reader<Matrix>::readSparseFile(TESSERA_TEST_MATRIX, comm);
  const auto ours = io::read_tpetra_matrix<Matrix>(TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz", comm);
  ASSERT_TRUE(ours->isFillComplete());
  ASSERT_EQ(ours->getGlobalNumEntries(), theirs->getGlobalNumEntries());
  ASSERT_TRUE(ours->getRowMap()->isSameAs(*theirs->getRowMap()));
  for (std::size_t i = 0; i < Compat::local_size(*ours->getRowMap()); ++i) {
    const GO row = ours->getRowMap()->getGlobalElement(static_cast<LO>(i));
    EXPECT_EQ(row_of(*ours, row), row_of(*theirs, row)) << row;
  }
}

TEST(TpetraSolvers, StiffnessMatrixAsWithTpetra) {
  const auto A = Tpetra::MatrixMarket::Reader<Matrix>::readSparseFile(TESSERA_TEST_MATRIX, Tpetra::getDefaultComm());
  ASSERT_EQ(A->getGlobalNumRows(), 4884u);
  compare("bcsstk16", A, 1, Method::Cg, Preconditioner::Jacobi, 1e-8, 0);
  compare("bcsstk16", A, 1, Method::Cg, Preconditioner::Chebyshev, 1e-8, 0);
  compare("bcsstk16", A, 3, Method::Cg, Preconditioner::Jacobi, 1e-8, 0);
  compare("bcsstk16", A, 1, Method::Gmres, Preconditioner::Chebyshev, 1e-6, 0);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
