// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

/// \file
/// tessera_bench: times operations on matrices, beside other libraries, and verifies every result.

#include <new>

#include "driver/Tessera_BenchCase.hpp"
#include "driver/Tessera_BenchCli.hpp"
#include "driver/Tessera_BenchContext.hpp"
#include "driver/Tessera_BenchMain.hpp"
#include "driver/Tessera_BenchMatrix.hpp"
#include "driver/Tessera_BenchReport.hpp"

namespace Tessera {
namespace Bench {
namespace {

void bench_matrix(const BenchOptions& options, std::size_t index, Report& report) {
  const std::string& spec = options.matrices[index];
  report.start_matrix(matrix_name(spec), index);
  BenchMatrix matrix = load_matrix(spec, options.seed);
  report.describe_matrix(matrix.csr.rows, matrix.csr.cols, matrix.nnz(), matrix.seeded_values, pattern_class(matrix));
  const Operation& operation = find_operation(options.op);
  if (operation.uniform_values) make_values_uniform(matrix, options.seed);
  operation.run(Job{options, matrix, report});
  report.end_matrix();
}

Exit bench_matrices(const BenchOptions& options) {
  Report report(options, make_context(options), find_operation(options.op).columns);
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

Exit run(CommandLine& line) {
  const auto options = parse_command_line(line.argc(), line.argv());
  if (!options) return ExitVerified;
  const Operation& operation = find_operation(options->op);
  if (operation.read != nullptr) return operation.read(*options);
  const auto kokkos = line.start_kokkos();
  return bench_matrices(*options);
}

}  // namespace
}  // namespace Bench
}  // namespace Tessera

int main(int argc, char** argv) {
  return Tessera::Bench::run_program("tessera_bench", argc, argv, Tessera::Bench::run);
}
