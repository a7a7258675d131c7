// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// C = A B with a block of 32 vectors in 16-bit numbers and 32-bit sums: neighbours of a ring average their features,
// again and again with one plan; then new weights for the same graph.

#include <Tessera_Spmm.hpp>
#include <cstdio>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Half = Tessera::half_t;

/// Row i of the ring: nodes i - 1, i and i + 1.
struct Ring {
  int n;
  float own, other;  // weights
  Kokkos::View<int*, Exec> row_map, entries;
  Kokkos::View<Half*, Exec> values;

  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    for (int k = 0; k < 3; ++k) {
      entries(3 * row + k) = (row + n + k - 1) % n;
      values(3 * row + k) = Half(k == 1 ? own : other);
    }
    row_map(row) = 3 * row;
    if (row == n - 1) row_map(n) = 3 * n;
  }
};

/// Feature j of node i is j at even and -j at odd nodes.
struct Features {
  Kokkos::View<Half**, Kokkos::LayoutRight, Exec> B;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    for (int j = 0; j < static_cast<int>(B.extent(1)); ++j) B(i, j) = Half(i % 2 == 0 ? 1.0f * j : -1.0f * j);
  }
};

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 0;
  {
    const int n = 1000, features = 32;
    const Exec space;
    Ring ring{n,
              0.5f,
              0.25f,
              Kokkos::View<int*, Exec>("row_map", n + 1),
              Kokkos::View<int*, Exec>("entries", 3 * n),
              Kokkos::View<Half*, Exec>("values", 3 * n)};
    Kokkos::parallel_for("ring", Kokkos::RangePolicy<Exec>(space, 0, n), ring);
    const Kokkos::View<Half**, Kokkos::LayoutRight, Exec> B("B", n, features);
    const Kokkos::View<float**, Kokkos::LayoutRight, Exec> C("C", n, features);
    Kokkos::parallel_for("features", Kokkos::RangePolicy<Exec>(space, 0, n), Features{B});

    Tessera::SpmmOptions options;
    options.num_columns_hint = features;
    const auto A = Tessera::csr_view(n, n, ring.row_map, ring.entries, ring.values);
    Tessera::SpmmPlan plan(space, A, options);
    plan.apply(space, B, C);  // 0.5 x - 0.25 x - 0.25 x = 0
    const auto zero = Kokkos::create_mirror(C);
    Kokkos::deep_copy(zero, C);

    ring.own = 1;  // new weights
    Kokkos::parallel_for("ring", Kokkos::RangePolicy<Exec>(space, 0, n), ring);
    plan.update_values(space, A);
    plan.apply(space, Tessera::Op::NoTrans, 2.0, B, 1.0, C);  // 2 (1 - 0.5) x + 0
    const auto same = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C);

    bool right = true;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < features; ++j) {
        right = right && zero(i, j) == 0 && same(i, j) == (i % 2 == 0 ? 1.0f * j : -1.0f * j);
      }
    }
    std::printf("C = A B with %s on %s (%s): %s\n", Tessera::to_string(plan.options().algorithm),
                Tessera::to_string(plan.options().backend), plan.statistics().why.c_str(), right ? "right" : "WRONG");
    status = right ? 0 : 1;
  }
  Kokkos::finalize();
  return status;
}
