// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// A sparse product of matrices of Kokkos Kernels in two phases, and again with other numbers in the same graphs.
// Checks that C x is A (B x), which is exact for the integers in these matrices.
// example/manual/porting-from-kokkos-kernels.md explains the differences.

#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>
#include <adapters/Tessera_KokkosSparseSpgemm.hpp>
#include <cstdio>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
using Matrix = KokkosSparse::CrsMatrix<double, int, Device, void, std::size_t>;
using Vector = Kokkos::View<double*, Device>;

/// The Laplacian of a ring of n points: 2 on the diagonal, -1 for both neighbours.
Matrix ring(int n) {
  const auto entries = static_cast<std::size_t>(3 * n);
  const Matrix::row_map_type::non_const_type row_map("row_map", static_cast<std::size_t>(n) + 1);
  const Matrix::index_type columns("columns", entries);
  const Matrix::values_type values("values", entries);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 3; ++k) {
      columns(3 * i + k) = (i + k - 1 + n) % n;
      values(3 * i + k) = k == 1 ? 2 : -1;
    }
    row_map(i + 1) = static_cast<std::size_t>(3 * i + 3);
  }
  return Matrix("ring", n, n, entries, values, row_map, columns);
}

/// Whether C x = A (B x), by Kokkos Kernels.
bool is_product(const Matrix& C, const Matrix& A, const Matrix& B) {
  const Vector x("x", B.numCols()), Bx("B x", B.numRows()), ABx("A B x", A.numRows()), Cx("C x", C.numRows());
  for (int j = 0; j < B.numCols(); ++j) x(j) = j % 17 - 8;
  KokkosSparse::spmv("N", 1.0, B, x, 0.0, Bx);
  KokkosSparse::spmv("N", 1.0, A, Bx, 0.0, ABx);
  KokkosSparse::spmv("N", 1.0, C, x, 0.0, Cx);
  for (int i = 0; i < C.numRows(); ++i) {
    if (Cx(i) != ABx(i)) return false;
  }
  return true;
}

int run() {
  const Matrix A = ring(100000), B = ring(100000);
  Matrix C;

  Tessera::SpgemmHandle<Matrix> handle;
  Tessera::spgemm_symbolic(handle, A, false, B, false, C);
  Tessera::spgemm_numeric(handle, A, false, B, false, C);
  bool right = is_product(C, A, B);

  for (std::size_t e = 0; e < A.values.extent(0); ++e) A.values(e) *= static_cast<double>(e % 5);
  Tessera::spgemm_numeric(handle, A, false, B, false, C);  // C's columns stay
  right = right && is_product(C, A, B);

  right = right && is_product(Tessera::spgemm(A, false, B, false), A, B);  // both phases in one call
  std::printf("%d x %d, %zu entries, by %s: %s\n", C.numRows(), C.numCols(), static_cast<std::size_t>(C.nnz()),
              handle.statistics().algorithm.c_str(), right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  const int status = run();
  Kokkos::finalize();
  return status;
}
