// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Three Views -> plan -> y = A x. Solves nothing: it shows the least a program needs.

#include <cstdio>

#include "Tessera.hpp"

namespace {

using Exec = Kokkos::DefaultExecutionSpace;

// The second difference on n points, rows -1 2 -1, filled where the matrix will live.
struct SecondDifference {
  int n;
  Kokkos::View<int*, Exec> row_map, entries;
  Kokkos::View<double*, Exec> values;

  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    int at = row == 0 ? 0 : 3 * row - 1;
    row_map(row) = at;
    for (int column = row - 1; column <= row + 1; ++column) {
      if (column < 0 || column >= n) continue;
      entries(at) = column;
      values(at++) = column == row ? 2 : -1;
    }
    if (row == n - 1) row_map(n) = at;
  }
};

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int status = 0;
  {
    const int n = 1000;
    const Exec space;
    const SecondDifference fill{n, Kokkos::View<int*, Exec>("row_map", n + 1),
                                Kokkos::View<int*, Exec>("entries", 3 * n - 2),
                                Kokkos::View<double*, Exec>("values", 3 * n - 2)};
    Kokkos::parallel_for("second difference", Kokkos::RangePolicy<Exec>(space, 0, n), fill);

    const auto A = Tessera::csr_view(n, n, fill.row_map, fill.entries, fill.values);  // no copy
    const Tessera::CsrReport report = Tessera::validate(space, A);
    if (!report.valid) std::printf("bad matrix: %s\n", report.fault.c_str());

    Tessera::SpmvPlan plan(space, A);
    const Kokkos::View<double*, Exec> x("x", n), y("y", n);
    Kokkos::deep_copy(x, 1.0);
    plan.apply(space, x, y);  // asynchronous on `space`

    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    // A constant vector has no second difference but at the ends.
    bool right = result(0) == 1 && result(n - 1) == 1;
    for (int i = 1; i < n - 1; ++i) right = right && result(i) == 0;
    std::printf("y = A x with %s on %s: %s\n", Tessera::to_string(plan.options().algorithm),
                Tessera::to_string(plan.options().backend), right ? "right" : "WRONG");
    status = right ? 0 : 1;
  }
  Kokkos::finalize();
  return status;
}
