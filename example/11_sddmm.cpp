// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// P_ij = <X_i, X_j> for the edges (i, j) of a graph, and the result as the matrix of the next product: similar
// neighbours of a ring count more when its nodes average their features.

#include <Tessera_Sddmm.hpp>
#include <Tessera_Spmm.hpp>
#include <cstdio>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Dense = Kokkos::View<float**, Kokkos::LayoutRight, Exec>;

/// Row i of the ring: nodes i - 1 and i + 1, and feature k of node i.
struct Ring {
  int n;
  Kokkos::View<int*, Exec> row_map, entries;
  Dense X;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    entries(2 * i) = (i + n - 1) % n;
    entries(2 * i + 1) = (i + 1) % n;
    row_map(i) = 2 * i;
    if (i == n - 1) row_map(n) = 2 * n;
    for (int k = 0; k < static_cast<int>(X.extent(1)); ++k) X(i, k) = i % 4 < 2 ? 1.0f : -1.0f;
  }
};

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 0;
  {
    const int n = 1000, features = 32;
    const Exec space;
    const Ring ring{n, Kokkos::View<int*, Exec>("row_map", n + 1), Kokkos::View<int*, Exec>("entries", 2 * n),
                    Dense("X", n, features)};
    Kokkos::parallel_for("ring", Kokkos::RangePolicy<Exec>(space, 0, n), ring);
    const Kokkos::View<float*, Exec> P("P", 2 * n);
    const auto S = Tessera::csr_view(n, n, ring.row_map, ring.entries, P);

    Tessera::SddmmOptions options;
    options.inner_hint = features;
    const Tessera::SddmmPlan scores(space, S, options);
    scores.apply(space, Tessera::Op::NoTrans, 1.0 / features, ring.X, ring.X, 0.0, P);  // 1 if alike, else -1

    const Tessera::SpmmPlan average(space, S);  // its numbers are the scores
    const Dense C("C", n, features);
    average.apply(space, ring.X, C);  // one neighbour is alike: x, the other is not: -(-x)

    const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), ring.X);
    const auto c = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C);
    bool right = true;
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < features; ++k) right = right && c(i, k) == 2 * x(i, k);
    }
    std::printf("P = X X^T on a graph with %s on %s (%s): %s\n", Tessera::to_string(scores.options().algorithm),
                Tessera::to_string(scores.options().backend), scores.statistics().why.c_str(),
                right ? "right" : "WRONG");
    status = right ? 0 : 1;
  }
  Kokkos::finalize();
  return status;
}
