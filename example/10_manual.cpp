// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The fragments of example/manual, compiled and run. cmake/check_manual.py compares the pages with the examples.

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "Tessera.hpp"

#ifndef TESSERA_EXAMPLE_DATA
#define TESSERA_EXAMPLE_DATA "example/data"
#endif

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Memory = Exec::memory_space;
using Csr = Tessera::CsrView<double, int, int, Exec::device_type>;
using Vector = Kokkos::View<double*, Exec>;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;

/// A pattern of a file with small whole numbers, whose sums are exact in any order.
Csr whole_numbers(const Exec& space, const std::string& file) {
  auto host = Tessera::io::read_matrix_market<double, int, int>(file);  // arrays on the host
  for (std::size_t i = 0; i < host.values.size(); ++i) host.values[i] = static_cast<double>(i % 7) - 3;
  return Tessera::to_device(space, host);  // arrays where `space` runs, which live as long as A and its plans
}

/// Largest difference of two vectors.
struct Difference {
  Vector a, b;
  KOKKOS_INLINE_FUNCTION void operator()(int i, double& most) const {
    const double d = a(i) < b(i) ? b(i) - a(i) : a(i) - b(i);
    most = most < d ? d : most;
  }
};
double difference(const Vector& a, const Vector& b) {
  double most = 0;
  Kokkos::parallel_reduce("difference", Kokkos::RangePolicy<Exec>(0, static_cast<int>(a.extent(0))), Difference{a, b},
                          Kokkos::Max<double>(most));
  return most;
}

bool right = true;
void expect(bool condition, const char* what) {
  if (!condition) std::printf("WRONG: %s\n", what);
  right = right && condition;
}

// ---- choosing-an-algorithm.md

void choose(const Exec& space, const Csr& A, const Vector& x, const Vector& y) {
  Tessera::SpmvPlan plan(space, A);
  const Tessera::Statistics s = plan.statistics();
  std::cout << s.algorithm << " on " << s.backend << ": " << s.why << "\n";
  Tessera::print_statistics(s, std::cout);        // everything, as a table
  std::cout << Tessera::to_json(s) << std::endl;  // the same for programs

  Tessera::SpmvOptions options;
  options.selection = Tessera::Selection::Measure;
  Tessera::SpmvPlan measured(space, A, options);
  std::cout << measured.statistics().why << "\n";

  Tessera::SpmvOptions forced;
  forced.algorithm = Tessera::SpmvAlgorithm::Csr5;
  forced.fallback = false;  // an exception instead of another algorithm
  Tessera::SpmvPlan csr5(space, A, forced);

  const Vector y5("y5", y.extent(0));
  plan.apply(space, x, y);
  csr5.apply(space, x, y5);
  expect(csr5.statistics().algorithm == "csr5" && difference(y, y5) == 0, "CSR5 gives the same");
}

/// One block of side 2 per block row, and x = 1.
void blocks(const Exec& space) {
  const int block_rows = 3, block_cols = 3;
  Kokkos::View<int*, Exec> row_map("row_map", block_rows + 1), block_columns("block_columns", 3);
  Vector values("values", 3 * 4), x("x", 6), y("y", 6);
  Kokkos::deep_copy(values, 1.0);
  Kokkos::deep_copy(x, 1.0);
  const auto offsets = Kokkos::create_mirror_view(row_map);
  for (int i = 0; i <= block_rows; ++i) offsets(i) = i;
  Kokkos::deep_copy(row_map, offsets);

  const auto A = Tessera::bsr_view(block_rows, block_cols, 2, row_map, block_columns, values);
  Tessera::SpmvPlan plan(space, A);
  plan.apply(space, x, y);

  space.fence();
  const Vector two("two", 6);
  Kokkos::deep_copy(two, 2.0);
  expect(plan.statistics().algorithm == "bsr" && difference(y, two) == 0, "blocks");
}

// ---- memory-and-workspaces.md

void memory(const Exec& space, const Csr& A, const Vector& x, const Vector& y) {
  Tessera::SpmvOptions options;
  options.algorithm = Tessera::SpmvAlgorithm::Csr5;
  const std::size_t bytes = Tessera::SpmvPlan(space, A, options).workspace_bytes();

  const Kokkos::View<char*, Memory> scratch("scratch", bytes);
  options.workspace = {scratch.data(), bytes};
  Tessera::SpmvPlan plan(space, A, options);  // allocates no scratch of its own
  plan.apply(space, x, y);

  const Vector own("own", y.extent(0));
  options.workspace = {};
  Tessera::SpmvPlan(space, A, options).apply(space, x, own);
  space.fence();
  expect(difference(y, own) == 0, "a workspace changes nothing");
  expect(bytes == 0 || plan.workspace_bytes() == bytes, "workspace_bytes");
}

// ---- porting-from-cusparse.md

void port(const Exec& space, const Csr& A, const Vector& x, const Vector& y) {
  Tessera::SpmvOptions options;
  options.prepare_transpose = true;  // builds a plan of the transpose as well
  Tessera::SpmvPlan plan(space, A, options);
  plan.apply(space, Tessera::Op::Trans, 1.0, x, 0.0, y);  // y = A^T x
  Tessera::spmv(space, plan, "T", 1.0, x, 0.0, y);        // the same, with Kokkos Kernels' mode

  Tessera::spmv(space, "N", 1.0, A, x, 0.0, y);  // without a plan: straight from CSR

  const int n = 32;
  const Matrix B("B", A.cols(), n), C("C", A.rows(), n);
  Tessera::SpmmOptions spmm_options;
  spmm_options.num_columns_hint = n;
  Tessera::SpmmPlan product(space, A, spmm_options);
  product.apply(space, Tessera::Op::NoTrans, 1.0, B, 0.0, C);

  const std::vector<Csr> blocks{A, A, A};
  const auto batch = Tessera::block_diagonal(space, blocks);
  Tessera::SpmmPlan batched(space, batch.view(), spmm_options);
  const Matrix Bs("Bs", batch.view().cols(), n), Cs("Cs", batch.view().rows(), n);
  batched.apply(space, Bs, Cs);
  space.fence();
  expect(Cs.extent(0) == 3 * C.extent(0), "a batch is a block-diagonal matrix");
}

// ---- precision.md

void precision(const Exec& space, const Csr& A) {
  Tessera::SpmvOptions options;
  options.compute = Tessera::ComputeType::FP16_FP32;  // rounds A once, here; x is half_t, sums are float
  Tessera::SpmvPlan plan(space, A, options);
  const Kokkos::View<Tessera::half_t*, Exec> x("x", A.cols());
  const Kokkos::View<float*, Exec> y("y", A.rows());
  plan.apply(space, x, y);
  space.fence();
  expect(plan.statistics().compute == "fp16", "a narrower precision");
}

void run() {
  const Exec space;
  const Csr A = whole_numbers(space, TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz");
  const Vector x("x", A.cols()), y("y", A.rows());
  Kokkos::deep_copy(x, 1.0);
  choose(space, A, x, y);
  blocks(space);
  memory(space, A, x, y);
  port(space, A, x, y);
  precision(space, A);
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  try {
    run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    right = false;
  }
  Kokkos::finalize();
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
