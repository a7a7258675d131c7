// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Iterative refinement: residuals and solution in FP64, the many products of the inner solves in a narrower type.
//
//   repeat: r = b - S x in FP64;  solve S d = r loosely by Belos' CG, its products in FP32, FP16 or BF16;  x = x + d
//
// S = D^(-1/2) A D^(-1/2) with D the diagonal of A: symmetric scaling brings the numbers of a stiffness matrix, which
// span ten orders, to at most 1, where FP16 holds them (Higham, Pranesh: Squeezing a matrix into half precision, 2019).
// Refinement converges where rounding A changes its inverse little; where the condition of S times the unit roundoff is
// above 1 it need not (Carson, Higham: SIAM J. Sci. Comput. 40, 2018), which the output then says.
//
//   mpiexec -n 2 08_mixed_precision_refinement [FILE.mtx or FILE.mtx.gz [TOLERANCE]]

#include <BelosLinearProblem.hpp>
#include <BelosPseudoBlockCGSolMgr.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Tpetra_Core.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "adapters/Tessera_TpetraMatrixMarket.hpp"
#include "adapters/Tessera_TpetraOperator.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Matrix = Tpetra::CrsMatrix<double>;
using Vectors = Tpetra::MultiVector<double>;
using Vector = Tpetra::Vector<double>;
using Operator = Tpetra::Operator<double>;

void scale_symmetrically(Matrix& A) {
  Vector d(A.getRowMap());
  A.getLocalDiagCopy(d);
  {
    const auto numbers = d.getDataNonConst();
    for (auto& v : numbers) v = 1 / std::sqrt(v);
  }
  A.leftScale(d);
  A.rightScale(d);
}

/// x := approximately A^-1 b, from zero. @return iterations
int inner_solve(const Teuchos::RCP<const Operator>& A, const Teuchos::RCP<Vectors>& x, const Vectors& b,
                double tolerance) {
  x->putScalar(0);
  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vectors, Operator>(A, x, Teuchos::rcpFromRef(b)));
  problem->setProblem();
  const auto list = Teuchos::parameterList();
  list->set("Convergence Tolerance", tolerance);
  list->set("Maximum Iterations", 1000);
  // In narrow types d'Ad may round to zero or below; what was reached until then is still a step.
  list->set("Assert Positive Definiteness", false);
  Belos::PseudoBlockCGSolMgr<double, Vectors, Operator> solver(problem, list);
  solver.solve();
  return solver.getNumIters();
}

struct Outcome {
  bool converged = false;
  int outer = 0, inner = 0;
};

/// S x = b to `tolerance` in FP64 with inner solves by `low`; `high` gives the residuals.
Outcome refine(const char* name, const Teuchos::RCP<const Operator>& low, const Operator& high, const Vectors& b,
               double tolerance) {
  const bool speaks = b.getMap()->getComm()->getRank() == 0;
  Vectors x(high.getDomainMap(), 1), r(b, Teuchos::Copy);
  const auto d = Teuchos::rcp(new Vectors(high.getDomainMap(), 1));
  const double size = b.getVector(0)->norm2();
  double before = size;
  Outcome outcome;
  for (; outcome.outer < 40; ++outcome.outer) {
    const int inner = inner_solve(low, d, r, 1e-3);
    outcome.inner += inner;
    x.update(1.0, *d, 1.0);
    Tpetra::deep_copy(r, b);
    high.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
    const double now = r.getVector(0)->norm2();
    if (speaks)
      std::printf("  %-5s step %2d: %4d inner iterations, |b - S x| / |b| = %.3e\n", name, outcome.outer + 1, inner,
                  now / size);
    outcome.converged = now <= tolerance * size;
    // Not a number, or no progress: another step would not help.
    if (outcome.converged || !(now < 0.9 * before)) break;
    before = now;
  }
  if (outcome.outer < 40) ++outcome.outer;
  if (speaks) {
    std::printf("%-5s %s after %d steps, %d products in %s\n", name,
                outcome.converged ? "converged" : "does NOT converge", outcome.outer, outcome.inner, name);
  }
  return outcome;
}

int run(const std::string& file, double tolerance) {
  const auto comm = Tpetra::getDefaultComm();
  const Teuchos::RCP<Matrix> S = Tessera::io::read_tpetra_matrix<Matrix>(file, comm);
  scale_symmetrically(*S);
  Vectors b(S->getRangeMap(), 1), ones(S->getDomainMap(), 1);
  ones.putScalar(1.0);
  S->apply(ones, b);
  const auto high = Tessera::tpetra_operator(S);
  if (comm->getRank() == 0) {
    std::printf("%s, scaled: %lld rows, %d processes, tolerance %.1e\n", file.c_str(),
                static_cast<long long>(S->getGlobalNumRows()), comm->getSize(), tolerance);
  }
  const Outcome fp64 = refine("fp64", high, *high, b, tolerance);
  bool all = fp64.converged;
  for (const auto compute :
       {Tessera::ComputeType::FP32, Tessera::ComputeType::FP16_FP32, Tessera::ComputeType::BF16_FP32}) {
    Tessera::TpetraOptions options;
    options.spmv.compute = compute;
    const Outcome outcome = refine(compute == Tessera::ComputeType::FP32        ? "fp32"
                                   : compute == Tessera::ComputeType::FP16_FP32 ? "fp16"
                                                                                : "bf16",
                                   Tessera::tpetra_operator(S, options), *high, b, tolerance);
    all = all && outcome.converged;
  }
  return all ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  try {
    return run(argc > 1 ? argv[1] : TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz", argc > 2 ? std::atof(argv[2]) : 1e-12);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
