// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// tessera_bench_mpi: a distributed product by Tpetra's own matrix and by Tessera's operator, side by side, with
// communication and computation apart. One run is one number of processes; strong scaling keeps the whole matrix, weak
// scaling what each process has.
//
//   mpiexec -n P tessera_bench_mpi --mode strong --points 64 --columns 1,4
//   mpiexec -n P tessera_bench_mpi --mode strong --matrix FILE.mtx.gz
//   mpiexec -n P tessera_bench_mpi --mode weak --points 48
//   mpiexec -n P tessera_bench_mpi --points 48 --halo       numbers sent in FP64, FP32 and BF16: bytes, times, errors

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "adapters/Tessera_TpetraMatrixMarket.hpp"
#include "adapters/Tessera_TpetraOperator.hpp"
#include "mpi/Tessera_BenchMpiMatrix.hpp"

namespace {

using namespace Tessera::Bench;

struct Options {
  std::string mode = "strong", matrix, values = "random";
  GO points = 64;
  std::vector<int> columns{1};
  int repeat = 15;
  double least_time = 0.01;
  bool no_overlap = false, halo = false;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double largest_of_all(const Comm& comm, double mine) {
  double all = mine;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MAX, mine, Teuchos::outArg(all));
  return all;
}
double sum_of_all(const Comm& comm, double mine) {
  double all = mine;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_SUM, mine, Teuchos::outArg(all));
  return all;
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

double least(const std::vector<double>& v) { return v.empty() ? 0 : *std::min_element(v.begin(), v.end()); }

/// Time of one call, of the slowest process: batches of `calls` between barriers.
class Timer {
 public:
  Timer(const Comm& comm, std::function<void()> f, double least_time) : comm_(comm), f_(std::move(f)) {
    f_();
    comm_->barrier();
    const double begin = seconds();
    f_();
    const double once = largest_of_all(comm_, seconds() - begin);
    calls_ = std::max(1, static_cast<int>(std::ceil(least_time / std::max(once, 1e-7))));
  }
  void run() {
    Kokkos::fence();
    comm_->barrier();
    const double begin = seconds();
    for (int i = 0; i < calls_; ++i) f_();
    Kokkos::fence();
    times_.push_back(largest_of_all(comm_, seconds() - begin) / calls_);
  }
  /// Of all batches.
  template <class Statistic>
  double microseconds(const Statistic& of) const {
    return 1e6 * of(times_);
  }

 private:
  Comm comm_;
  std::function<void()> f_;
  int calls_ = 1;
  std::vector<double> times_;
};

/// Largest difference of two products as a share of |A||X|.
double largest_error(const Matrix& A, const Vectors& X, const Vectors& theirs, const Vectors& ours) {
  const auto absolute = with_absolute_numbers(A);
  Vectors size(ours.getMap(), ours.getNumVectors()), x(X, Teuchos::Copy);
  x.abs(X);
  absolute->apply(x, size);
  double worst = 0;
  for (std::size_t j = 0; j < ours.getNumVectors(); ++j) {
    const auto a = theirs.getVector(j)->getData(0), b = ours.getVector(j)->getData(0),
               s = size.getVector(j)->getData(0);
    for (int i = 0; i < a.size(); ++i) {
      const double error = std::fabs(a[i] - b[i]);
      // Not a number is no agreement.
      worst = std::max(worst, error == 0 ? 0 : error <= 1e3 * s[i] ? error / s[i] : 1e300);
    }
  }
  return largest_of_all(A.getComm(), worst);
}
/// Sums of products in double in any order err by (n + processes + 4) u |A||X|: of two, twice that, and as much again.
double rounding_bound(const Matrix& A) {
  const double terms = static_cast<double>(A.getGlobalMaxNumRowEntries()) + A.getComm()->getSize() + 4;
  return 2 * 2 * terms * 1.1102230246251565e-16;
}

/// @return whether both products agree
bool measure(const Options& o, const MatrixPointer& A, const Tessera::TpetraOperator<double, LO, GO, Node>& op,
             std::size_t columns) {
  const Comm comm = A->getComm();
  Vectors X(A->getDomainMap(), columns), theirs(A->getRangeMap(), columns), ours(A->getRangeMap(), columns);
  X.randomize();
  const auto importer = A->getGraph()->getImporter();
  Vectors X_columns(A->getColMap(), columns), rows(A->getRowMap(), columns);
  if (importer.is_null()) Tpetra::deep_copy(X_columns, X);

  Timer tpetra(
      comm, [&] { A->apply(X, theirs); }, o.least_time);
  Timer tessera(
      comm, [&] { op.apply(X, ours); }, o.least_time);
  Timer exchange(
      comm,
      [&] {
        if (!importer.is_null()) X_columns.doImport(X, *importer, Tpetra::INSERT);
      },
      o.least_time);
  Timer local(
      comm, [&] { A->localApply(X_columns, rows, Teuchos::NO_TRANS, 1.0, 0.0); }, o.least_time);
  std::vector<double> begin, interior, wait, boundary;
  Tessera::TpetraTimes ignored;
  op.apply_timed(ignored, X, ours);
  const int calls = std::max(1, static_cast<int>(std::ceil(o.least_time / std::max(ignored.total(), 1e-7))));
  const int agreed = static_cast<int>(largest_of_all(comm, calls));
  for (int r = 0; r < o.repeat; ++r) {
    tpetra.run();
    tessera.run();
    exchange.run();
    local.run();
    Tessera::TpetraTimes t;
    comm->barrier();
    for (int i = 0; i < agreed; ++i) op.apply_timed(t, X, ours);
    const auto record = [&](std::vector<double>& times, double total) {
      times.push_back(1e6 * largest_of_all(comm, total) / agreed);
    };
    record(begin, t.begin);
    record(interior, t.interior);
    record(wait, t.wait);
    record(boundary, t.boundary + t.combine);
  }
  A->apply(X, theirs);
  op.apply(X, ours);
  const bool right = largest_error(*A, X, theirs, ours) <= rounding_bound(*A);
  const double flops = 2.0 * static_cast<double>(A->getGlobalNumEntries()) * static_cast<double>(columns);
  const auto print = [&](const char* name, auto of) {
    std::printf("%9d %7d %-7s %10.1f %10.1f %7.2f %11.1f %10.1f %8.1f %10.1f %10.1f %10.1f %8.2f  %s\n",
                comm->getSize(), static_cast<int>(columns), name, tpetra.microseconds(of), tessera.microseconds(of),
                tpetra.microseconds(of) / tessera.microseconds(of), exchange.microseconds(of), local.microseconds(of),
                of(begin), of(interior), of(wait), of(boundary), flops / (1e3 * tessera.microseconds(of)),
                right ? "right" : "WRONG");
  };
  if (comm->getRank() == 0) {
    print("median", median);
    print("least", least);
  }
  return right;
}

/// The same product with numbers sent in several types: bytes, times, and errors against Tpetra's product.
/// @return whether all of them are within their bounds
bool measure_haloes(const Options& o, const MatrixPointer& A, std::size_t columns) {
  using Operator = Tessera::TpetraOperator<double, LO, GO, Node>;
  struct Variant {
    const char *product, *halo;
    Tessera::ComputeType compute;
    Tessera::Precision wire;
    double unit;  // of what is rounded, together
  };
  const double u32 = 5.9604644775390625e-8, terms = static_cast<double>(A->getGlobalMaxNumRowEntries()) + 4;
  const Variant variants[] = {
      {"fp64", "fp64", Tessera::ComputeType::Auto, Tessera::Precision::FP64, 0},
      {"fp64", "fp32", Tessera::ComputeType::Auto, Tessera::Precision::FP32, u32},
      {"fp64", "bf16", Tessera::ComputeType::Auto, Tessera::Precision::BF16, 0.00390625},
      {"fp32", "fp64", Tessera::ComputeType::FP32, Tessera::Precision::FP64, (2.1 + 2 * terms) * u32},
      {"fp32", "fp32", Tessera::ComputeType::FP32, Tessera::Precision::FP32, (3.2 + 2 * terms) * u32}};
  const Comm comm = A->getComm();
  Vectors X(A->getDomainMap(), columns), theirs(A->getRangeMap(), columns), ours(A->getRangeMap(), columns);
  X.randomize();
  A->apply(X, theirs);
  std::vector<Teuchos::RCP<Operator>> operators;
  std::vector<Timer> timers;
  for (const Variant& v : variants) {
    Tessera::TpetraOptions options;
    options.overlap = !o.no_overlap;
    options.spmv.compute = v.compute;
    options.halo_precision = v.wire;
    operators.push_back(Teuchos::rcp(new Operator(A, options)));
    const Operator* op = operators.back().get();
    timers.emplace_back(
        comm, [&X, &ours, op] { op->apply(X, ours); }, o.least_time);
  }
  std::vector<std::vector<double>> post(timers.size()), wait(timers.size());
  for (int r = 0; r < o.repeat; ++r) {
    for (std::size_t v = 0; v < timers.size(); ++v) {
      timers[v].run();
      Tessera::TpetraTimes t;
      comm->barrier();
      operators[v]->apply_timed(t, X, ours);
      post[v].push_back(1e6 * largest_of_all(comm, t.begin));
      wait[v].push_back(1e6 * largest_of_all(comm, t.wait));
    }
  }
  bool right = true;
  for (std::size_t v = 0; v < timers.size(); ++v) {
    operators[v]->apply(X, ours);
    const double error = largest_error(*A, X, theirs, ours);
    const bool within = error <= rounding_bound(*A) + 1.1 * variants[v].unit;
    const auto f = operators[v]->facts();
    const double bytes =
        sum_of_all(comm, static_cast<double>(f.send_elements) * f.halo_number_bytes * static_cast<double>(columns));
    if (comm->getRank() == 0) {
      std::printf("%9d %7d %8s %6s %12.0f %10.1f %10.1f %10.1f %10.1f %10.1e  %s\n", comm->getSize(),
                  static_cast<int>(columns), variants[v].product, variants[v].halo, bytes,
                  timers[v].microseconds(median), timers[v].microseconds(least), least(post[v]), least(wait[v]), error,
                  within ? "right" : "WRONG");
    }
    right = right && within;
  }
  return right;
}

bool run(const Options& o, const Comm& comm) {
  const MatrixPointer A = !o.matrix.empty() ? Tessera::io::read_tpetra_matrix<Matrix>(o.matrix, comm)
                                            : stencil27(o.points, o.mode == "weak", o.values == "random", comm);
  Tessera::TpetraOptions options;
  options.overlap = !o.no_overlap;
  comm->barrier();
  const double begin = seconds();
  const Tessera::TpetraOperator<double, LO, GO, Node> op(A, options);
  const double setup = largest_of_all(comm, seconds() - begin);
  const Tessera::TpetraFacts f = op.facts();
  const double most_halo = largest_of_all(comm, 8.0 * static_cast<double>(f.halo_columns));
  const double all_halo = sum_of_all(comm, 8.0 * static_cast<double>(f.halo_columns));
  const double most_neighbours = largest_of_all(comm, f.neighbours_from);
  const double boundary_rows = sum_of_all(comm, static_cast<double>(f.boundary_rows));
  const double halo_nnz = sum_of_all(comm, static_cast<double>(f.halo_nnz));
  if (comm->getRank() == 0) {
    std::printf("%s scaling, %d processes: %s, %lld rows, %lld entries\n", o.mode.c_str(), comm->getSize(),
                o.matrix.empty() ? "27-point stencil" : o.matrix.c_str(), static_cast<long long>(A->getGlobalNumRows()),
                static_cast<long long>(A->getGlobalNumEntries()));
    std::printf(
        "exchange per column: %.0f bytes in all, %.0f bytes from %.0f neighbours to one process at most; "
        "%.2f %% of rows and %.2f %% of entries are at boundaries\n",
        all_halo, most_halo, most_neighbours, 100 * boundary_rows / static_cast<double>(A->getGlobalNumRows()),
        100 * halo_nnz / static_cast<double>(A->getGlobalNumEntries()));
    std::printf("operator: set-up %.3f s, A_owned %s%s\n", setup, to_string(op.owned_plan().options().algorithm),
                options.overlap ? "" : ", exchange not overlapped");
    std::printf(
        "%d batches, microseconds of the slowest process; phases of Tessera's operator with a fence after each\n",
        o.repeat);
  }
  if (comm->getRank() == 0 && !o.halo) {
    std::printf("%9s %7s %-7s %10s %10s %7s %11s %10s %8s %10s %10s %10s %8s\n", "processes", "columns", "", "Tpetra",
                "Tessera", "ratio", "Tp. import", "Tp. local", "post", "interior", "wait", "boundary", "GFlop/s");
  }
  bool right = true;
  if (o.halo) {
    if (comm->getRank() == 0) {
      std::printf("%9s %7s %8s %6s %12s %10s %10s %10s %10s %10s\n", "processes", "columns", "product", "halo",
                  "bytes sent", "median", "least", "post", "wait", "error");
    }
    for (const int columns : o.columns) right = measure_haloes(o, A, static_cast<std::size_t>(columns)) && right;
    return right;
  }
  for (const int columns : o.columns) right = measure(o, A, op, static_cast<std::size_t>(columns)) && right;
  return right;
}

}  // namespace

int main(int argc, char* argv[]) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  const Comm comm = Tpetra::getDefaultComm();
  Options o;
  CLI::App app("A distributed product by Tpetra's matrix and by Tessera's operator", "tessera_bench_mpi");
  app.add_option("--mode", o.mode, "strong: the matrix stays; weak: what a process has stays")
      ->check(CLI::IsMember({"strong", "weak"}));
  app.add_option("--matrix", o.matrix, "Matrix Market file, also gzipped (strong only); default: a 27-point stencil");
  app.add_option("--points", o.points, "points in each direction: of the grid (strong), of each process (weak)")
      ->check(CLI::Range(2, 4096));
  app.add_option("--values", o.values, "numbers of the stencil: random, or equal as a Laplacian's")
      ->check(CLI::IsMember({"random", "equal"}));
  app.add_option("--columns", o.columns, "columns of X, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--repeat", o.repeat, "batches of which the median is taken")->check(CLI::Range(1, 100000));
  app.add_option("--least-time", o.least_time, "seconds of a batch")->check(CLI::Range(1e-6, 60.0));
  app.add_flag("--no-overlap", o.no_overlap, "wait for the halo before any product");
  app.add_flag("--halo", o.halo, "numbers sent in several types instead, with bytes and errors (|A||x| = 1)");
  try {
    app.parse(argc, argv);
    if (o.mode == "weak" && !o.matrix.empty()) throw CLI::ValidationError("--matrix", "has no weak scaling");
  } catch (const CLI::ParseError& e) {
    return comm->getRank() == 0 ? app.exit(e) : e.get_exit_code();
  }
  try {
    return run(o, comm) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "process %d: %s\n", comm->getRank(), e.what());
    return 1;
  }
}
