// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

/// \file
/// tessera_bench: times operations on matrices, beside other libraries, and verifies every result.

#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "Tessera_BenchCli.hpp"
#include "Tessera_BenchContext.hpp"
#include "Tessera_BenchMatrix.hpp"
#include "Tessera_BenchRead.hpp"
#include "Tessera_BenchReport.hpp"
#include "Tessera_BenchSpmv.hpp"
#include "Tessera_Compat.hpp"

namespace Tessera {
namespace Bench {
namespace {

void bench_matrix(const BenchOptions& options, std::size_t index, Report& report) {
  const std::string& spec = options.matrices[index];
  report.start_matrix(matrix_name(spec), index);
  const BenchMatrix matrix = load_matrix(spec, options.seed);
  report.describe_matrix(matrix.csr.rows, matrix.csr.cols, matrix.nnz(), matrix.seeded_values);
  const std::vector<double> x = load_vector(options.x, matrix.csr.cols, options.seed, VectorRole::X);
  std::vector<double> y;
  if (options.beta != 0) y = load_vector(options.y, matrix.csr.rows, options.seed, VectorRole::Y);
  if (!options.write_operands.empty()) write_operands(options, matrix, x, y);
  bench_spmv(SpmvJob{options, matrix, x, y, report});
  report.end_matrix();
}

Exit bench_matrices(const BenchOptions& options) {
  Report report(options, make_context(options));
  for (std::size_t i = 0; i < options.matrices.size(); ++i) {
    try {
      bench_matrix(options, i, report);
    } catch (const BenchError& e) {
      report.note(e.what(), e.status());
    } catch (const std::bad_alloc&) {
      report.note(options.matrices[i] + ": not enough memory", ExitFailure);
    }
  }
  return report.finish();
}

/// Kokkos may know options with its prefix only; others have the same names as ours.
Exit run(int argc, char** argv) {
  std::vector<char*> ours, theirs = {argv[0]};
  for (int i = 0; i < argc; ++i) (std::strncmp(argv[i], "--kokkos", 8) == 0 ? theirs : ours).push_back(argv[i]);
  int our_count = static_cast<int>(ours.size()), their_count = static_cast<int>(theirs.size());
  ours.push_back(nullptr);
  theirs.push_back(nullptr);
  try {
    const auto options = parse_command_line(our_count, ours.data());
    if (!options) return ExitVerified;
    if (options->op == "read") return bench_read(*options);
    const std::string missing = missing_device();
    if (!missing.empty()) throw BenchError(ExitNotSupported, missing);
    Kokkos::initialize(their_count, theirs.data());
    Exit status = ExitFailure;
    try {
      status = bench_matrices(*options);
    } catch (...) {
      Kokkos::finalize();
      throw;
    }
    Kokkos::finalize();
    return status;
  } catch (const BenchError& e) {
    std::fprintf(stderr, "tessera_bench: %s\n", e.what());
    return e.status();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tessera_bench: %s\n", e.what());
    return ExitFailure;
  }
}

}  // namespace
}  // namespace Bench
}  // namespace Tessera

int main(int argc, char** argv) { return Tessera::Bench::run(argc, argv); }
