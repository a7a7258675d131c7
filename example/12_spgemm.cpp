// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The coarse matrix of a multigrid hierarchy, R A P, and again when the numbers of A have changed. A is the Laplacian
// of a line; pairs of its points are put together, which gives the Laplacian of half as many.

#include <Tessera_Spgemm.hpp>
#include <Tessera_ToDevice.hpp>
#include <cstdio>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Tessera::io::HostCsr<double, int, int>;

/// 2 on the diagonal, -1 beside it.
Host laplacian(int n) {
  Host A{n, n, {0}, {}, {}};
  for (int i = 0; i < n; ++i) {
    for (int j = i - 1; j <= i + 1; ++j) {
      if (j < 0 || j >= n) continue;
      A.entries.push_back(j);
      A.values.push_back(j == i ? 2 : -1);
    }
    A.row_map.push_back(static_cast<int>(A.entries.size()));
  }
  return A;
}
/// Point i belongs to aggregate i / 2; transposed: aggregate i has points 2 i and 2 i + 1.
Host prolongation(int n) {
  Host P{n, n / 2, {0}, {}, {}};
  for (int i = 0; i < n; ++i) {
    P.entries.push_back(i / 2);
    P.values.push_back(1);
    P.row_map.push_back(i + 1);
  }
  return P;
}
Host restriction(int n) {
  Host R{n / 2, n, {0}, {}, {}};
  for (int i = 0; i < n; ++i) {
    R.entries.push_back(i);
    R.values.push_back(1);
    if (i % 2 == 1) R.row_map.push_back(i + 1);
  }
  return R;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 0;
  {
    const int n = 100000;
    const Exec space;
    Host fine = laplacian(n);
    const auto A = Tessera::to_device(space, fine), P = Tessera::to_device(space, prolongation(n)),
               R = Tessera::to_device(space, restriction(n));
    using Matrix = Tessera::CsrView<double, int, int, Exec::device_type>;

    // The first product in one call.
    const Matrix AP = Tessera::spgemm(space, A, P);

    // The second one in two phases, so that its plan can be used again.
    Tessera::SpgemmPlan<Matrix> coarsen(space, R, AP);
    const Kokkos::View<int*, Exec> row_map("row_map", n / 2 + 1);
    const std::int64_t nnz = coarsen.symbolic(space, row_map);
    const Kokkos::View<int*, Exec> entries("entries", nnz);
    const Kokkos::View<double*, Exec> values("values", nnz);
    coarsen.numeric(space, row_map, entries, values);

    const Host wanted = laplacian(n / 2);
    bool right = nnz == static_cast<std::int64_t>(wanted.entries.size());
    for (std::size_t e = 0; right && e < wanted.entries.size(); ++e) {
      right = entries(e) == wanted.entries[e] && values(e) == wanted.values[e];
    }

    // Other numbers of A P in the same pattern: no columns are looked for.
    const Kokkos::View<double*, Exec> tripled("A P", AP.nnz());
    for (std::size_t e = 0; e < AP.nnz(); ++e) tripled(e) = 3 * AP.values()(e);
    const Matrix other = Tessera::csr_view(AP.rows(), AP.cols(), AP.row_map(), AP.entries(), tripled);
    coarsen.update_values(space, R, other, row_map, entries, values);
    for (std::size_t e = 0; right && e < wanted.entries.size(); ++e) right = values(e) == 3 * wanted.values[e];

    std::printf("R A P of a line of %d points by %s (%s): %s\n", n, Tessera::to_string(coarsen.options().algorithm),
                coarsen.statistics().why.c_str(), right ? "right" : "WRONG");
    status = right ? 0 : 1;
  }
  Kokkos::finalize();
  return status;
}
