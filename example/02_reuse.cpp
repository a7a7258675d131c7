// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// One pattern, many matrices: a time loop whose matrix changes its numbers only. The plan analyses the pattern once and
// takes new values with update_values. The matrix comes from a Matrix Market file.
//
//   02_reuse [FILE.mtx or FILE.mtx.gz]

#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "Tessera.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Exec = Kokkos::DefaultExecutionSpace;

struct Scale {
  Kokkos::View<double*, Exec> values;
  double factor;
  KOKKOS_INLINE_FUNCTION void operator()(long i) const { values(i) *= factor; }
};

int run(const std::string& file) {
  const Exec space;
  const auto A = Tessera::to_device(space, Tessera::io::read_matrix_market<double>(file));
  const Kokkos::View<double*, Exec> values("values of the next step", A.nnz());
  Kokkos::deep_copy(values, A.values());

  // DASP on every machine: on hosts its matrix-unit kernels run emulated, which is for checking, not for speed.
  Tessera::SpmvOptions options;
  options.algorithm = Tessera::SpmvAlgorithm::Dasp;
  Tessera::SpmvPlan plan(space, A, options);

  const Kokkos::View<double*, Exec> x("x", A.cols()), y("y", A.rows());
  Kokkos::deep_copy(x, 1.0);
  double first = 0, last = 0;
  for (int step = 0; step < 4; ++step) {
    plan.apply(space, Tessera::Op::NoTrans, 1.0, x, 0.0, y);
    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    last = 0;
    for (std::size_t i = 0; i < result.extent(0); ++i) last = std::fmax(last, std::fabs(result(i)));
    if (step == 0) first = last;
    std::printf("step %d: max |A x| = %.6e\n", step, last);
    // The matrix of the next step: half of this one. The same pattern, new numbers.
    Kokkos::parallel_for("scale", Kokkos::RangePolicy<Exec>(space, 0, static_cast<long>(A.nnz())), Scale{values, 0.5});
    plan.update_values(space, values);
  }
  const bool right = last == first / 8;  // three halvings, exact in binary arithmetic
  Tessera::print_statistics(plan.statistics(), std::cout);
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
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
