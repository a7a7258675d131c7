// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_MATRIX_HPP
#define TESSERA_BENCH_MATRIX_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "driver/Tessera_BenchOptions.hpp"
#include "io/Tessera_MatrixMarket.hpp"

/// \file
/// Operands on the host: matrices from files and generators, vectors from files and seeds.

namespace Tessera {
namespace Bench {

/// Values in double; each precision rounds them once.
struct BenchMatrix {
  std::string name;  ///< of a file without folder and ending; the spec of a generator
  std::string spec;  ///< as on the command line
  io::HostCsr<double, int, std::int64_t> csr;
  bool seeded_values = false;

  std::int64_t nnz() const { return static_cast<std::int64_t>(csr.entries.size()); }
};

/// The name a matrix gets in tables: cheap, the matrix is not looked at.
std::string matrix_name(const std::string& spec);

/// Reads FILE or generates gen:NAME[:key=value...]. Pattern files and generators take io::pattern_value(seed, row,
/// col).
/// @throw BenchError  ExitUsage for a bad spec, ExitInput for a bad file
BenchMatrix load_matrix(const std::string& spec, std::uint64_t seed);

/// "mesh" or "graph", of the pattern alone: a mesh is square, its longest row has at most 8 times the mean, and 8 rows
/// that follow each other share columns (at least 1.25 entries a distinct column; at most about 4 million entries are
/// looked at). The rest, irregular matrices without a graph among them, is "graph". Empty without entries.
std::string pattern_class(const BenchMatrix& matrix);

/// Seeded values uniform in [-1, 1) instead of io::pattern_value(); a file's own are left alone.
void make_values_uniform(BenchMatrix& matrix, std::uint64_t seed);

enum class VectorRole : std::uint64_t { X = 0x78, Y = 0x79 };

/// The vector in `file`, or, if that is empty, `size` seeded numbers: both signs, magnitudes spread over [2^-3, 2^3),
/// eight significant bits, so that no precision has to round them.
std::vector<double> load_vector(const std::string& file, std::int64_t size, std::uint64_t seed, VectorRole role);

/// Power of two s such that s * values stay finite and do not all vanish in a type with this range; 1 if they do
/// anyway.
double fitting_scale(const std::vector<double>& values, Precision precision);

/// FILE with a suffix before its ending(s): y.mtx.gz and "a:b" give y_a_b.mtx.gz. An empty suffix leaves it alone.
std::string with_suffix(const std::string& file, const std::string& suffix);

/// A Matrix Market file as a dense matrix. @throw BenchError  ExitInput
io::HostDense<double> load_dense(const std::string& file);

struct DenseFile {
  std::string name;
  io::HostDense<double> dense;
};
/// DIR/A.mtx and the others; with the matrix's name as a suffix if there are several. @throw BenchError  ExitInput
void write_operands(const BenchOptions& options, const BenchMatrix& matrix, const std::vector<DenseFile>& others);

}  // namespace Bench
}  // namespace Tessera

#endif
