// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A Kokkos Kernels program and its port: the largest eigenvalue of a matrix by power iteration, in a time loop in which
// the matrix changes its numbers. Runs both, compares them, and ends with 1 if they disagree.
// example/manual/porting-from-kokkos-kernels.md explains the differences.
//
//   04_kokkos_kernels [FILE.mtx or FILE.mtx.gz]

#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>
#include <adapters/Tessera_KokkosSparse.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
using Matrix = KokkosSparse::CrsMatrix<double, int, Device, void, std::size_t>;
using Vector = Kokkos::View<double*, Device>;

struct SquaredNorm {
  Vector y;
  KOKKOS_INLINE_FUNCTION void operator()(int i, double& sum) const { sum += y(i) * y(i); }
};
/// to := factor from, or its magnitude.
struct Scale {
  Vector from, to;
  double factor;
  bool magnitude;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const double value = factor * from(i);
    to(i) = magnitude && value < 0 ? -value : value;
  }
};
void scale(const Vector& from, const Vector& to, double factor, bool magnitude = false) {
  Kokkos::parallel_for("scale", Kokkos::RangePolicy<Exec>(0, static_cast<int>(to.extent(0))),
                       Scale{from, to, factor, magnitude});
}

/// `iterations` times x := A x / |A x|; the last |A x| estimates the largest eigenvalue.
template <class Product>
double power_iteration(const Product& product, const Vector& x, const Vector& y, int iterations) {
  double norm = 0;
  for (int i = 0; i < iterations; ++i) {
    product(x, y);
    double squared = 0;
    Kokkos::parallel_reduce("norm", Kokkos::RangePolicy<Exec>(0, static_cast<int>(y.extent(0))), SquaredNorm{y},
                            squared);
    norm = std::sqrt(squared);
    scale(y, x, 1 / norm);
  }
  return norm;
}

/// Before.
double before(const Matrix& A, const Vector& x, const Vector& y) {
  const auto product = [&](const Vector& from, const Vector& to) { KokkosSparse::spmv("N", 1.0, A, from, 0.0, to); };
  return power_iteration(product, x, y, 30);
}

/// After: another namespace, and a handle that lives as long as the matrix.
double after(Tessera::SpmvHandle<Matrix>& handle, const Matrix& A, const Vector& x, const Vector& y) {
  const auto product = [&](const Vector& from, const Vector& to) {
    Tessera::spmv(&handle, "N", 1.0, A, from, 0.0, to);
  };
  return power_iteration(product, x, y, 30);
}

/// Largest |A x by Tessera - A x by Kokkos Kernels| in units of what rounding allows: two sums of k products in any
/// order differ by at most 4 (k + 4) u (|A||x|)_i, k the entries of row i and u the unit roundoff.
double disagreement(Tessera::SpmvHandle<Matrix>& handle, const Matrix& A, const Vector& x) {
  const Vector ours("ours", x.extent(0)), theirs("theirs", x.extent(0)), bound("bound", x.extent(0));
  const Vector magnitudes("magnitudes", A.values.extent(0)), abs_x("abs_x", x.extent(0));
  scale(A.values, magnitudes, 1, true);
  scale(x, abs_x, 1, true);
  const Matrix abs_A("abs_A", A.numRows(), A.numCols(), A.nnz(), magnitudes, A.graph.row_map, A.graph.entries);
  Tessera::spmv(&handle, "N", 1.0, A, x, 0.0, ours);
  KokkosSparse::spmv("N", 1.0, A, x, 0.0, theirs);
  KokkosSparse::spmv("N", 1.0, abs_A, abs_x, 0.0, bound);
  const auto copy = [](const auto& v) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), v); };
  const auto h_ours = copy(ours), h_theirs = copy(theirs), h_bound = copy(bound);
  const auto row_map = copy(A.graph.row_map);
  double worst = 0;
  for (int i = 0; i < A.numRows(); ++i) {
    const double length = static_cast<double>(row_map(i + 1) - row_map(i));
    const double allowed = 4 * (length + 4) * std::numeric_limits<double>::epsilon() / 2 * h_bound(i);
    const double error = std::fabs(h_ours(i) - h_theirs(i));
    const double units = error == 0 ? 0 : error / allowed;
    if (std::isnan(units)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, units);
  }
  return worst;
}

int run(const std::string& file) {
  const auto A = Tessera::io::read_crs_matrix<Matrix>(file);
  if (A.numRows() != A.numCols()) {
    std::fprintf(stderr, "%s: power iteration needs a square matrix, not %d x %d\n", file.c_str(), A.numRows(),
                 A.numCols());
    return 1;
  }
  std::printf("%s: %d rows, %zu entries\n", file.c_str(), A.numRows(), static_cast<std::size_t>(A.nnz()));
  const Vector x("x", A.numRows()), y("y", A.numRows());
  bool agree = true;

  Tessera::SpmvHandle<Matrix> handle;  // makes its plan at the first product
  for (int step = 0; step < 4; ++step) {
    if (step > 0) {
      scale(A.values, A.values, 0.75);  // the matrix of this step: new numbers, same graph
      handle.update_values(A);          // the one call that Kokkos Kernels has no counterpart of
    }
    Kokkos::deep_copy(x, 1.0);
    const double ours = after(handle, A, x, y);
    const double units = disagreement(handle, A, x);
    Kokkos::deep_copy(x, 1.0);
    const double theirs = before(A, x, y);
    std::printf("step %d: largest eigenvalue %.10e, by Kokkos Kernels %.10e; products differ by %.3f of the bound\n",
                step, ours, theirs, units);
    // Iterations contract what rounding adds, so the eigenvalues share all but the last digits.
    agree = agree && units <= 1 && std::fabs(ours - theirs) <= 1e-10 * std::fabs(theirs);
  }
  const auto statistics = handle.spmv_plan()->statistics();
  std::printf("one plan: %s on %s, made in %.2f ms\n%s\n", statistics.algorithm.c_str(), statistics.backend.c_str(),
              1e3 * statistics.setup_seconds, agree ? "right" : "WRONG");
  return agree ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 1;
  try {
    status = run(argc > 1 ? argv[1] : TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  Kokkos::finalize();
  return status;
}
