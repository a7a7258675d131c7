// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "driver/Tessera_BenchMatrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "driver/Tessera_BenchUniform.hpp"
#include "matrices/Tessera_Generators.hpp"

namespace Tessera {
namespace Bench {
namespace {

bool is_generated(const std::string& spec) { return spec.rfind("gen:", 0) == 0; }

void generate_values(BenchMatrix& matrix, std::uint64_t seed) {
  auto& csr = matrix.csr;
  csr.values.resize(csr.entries.size());
  for (std::int64_t row = 0; row < csr.rows; ++row) {
    for (std::int64_t i = csr.row_map[row]; i < csr.row_map[row + 1]; ++i) {
      csr.values[i] = io::pattern_value(seed, row, csr.entries[i]);
    }
  }
  matrix.seeded_values = true;
}

/// Largest finite number and smallest normal number of the matrix's type.
struct Range {
  double largest, smallest;
};
Range range_of(Precision precision) {
  switch (precision) {
    case Precision::FP64:
      return {std::numeric_limits<double>::max(), std::numeric_limits<double>::min()};
    case Precision::FP16:
      return {65504.0, std::ldexp(1.0, -14)};
    case Precision::BF16:
      return {std::ldexp(1.9921875, 127), std::ldexp(1.0, -126)};
    default:
      return {std::numeric_limits<float>::max(), std::numeric_limits<float>::min()};
  }
}

}  // namespace

std::string matrix_name(const std::string& spec) {
  if (is_generated(spec)) return spec;
  std::string name = spec.substr(spec.rfind('/') + 1);
  for (const char* ending : {".gz", ".mtx"}) {
    const std::string e = ending;
    if (name.size() > e.size() && name.compare(name.size() - e.size(), e.size(), e) == 0) {
      name.resize(name.size() - e.size());
    }
  }
  return name;
}

BenchMatrix load_matrix(const std::string& spec, std::uint64_t seed) {
  BenchMatrix matrix;
  matrix.spec = spec;
  matrix.name = matrix_name(spec);
  if (is_generated(spec)) {
    try {
      Matrices::Pattern pattern = Matrices::generate(spec);
      if (pattern.rows > std::numeric_limits<int>::max() || pattern.cols > std::numeric_limits<int>::max()) {
        throw BenchError(ExitUsage, spec + ": more than 2^31 - 1 rows or columns");
      }
      matrix.csr.rows = static_cast<int>(pattern.rows);
      matrix.csr.cols = static_cast<int>(pattern.cols);
      matrix.csr.row_map = std::move(pattern.row_map);
      matrix.csr.entries = std::move(pattern.entries);
    } catch (const Error& e) {
      throw BenchError(ExitUsage, spec + ": " + e.what());
    }
    generate_values(matrix, seed);
    return matrix;
  }
  try {
    io::MatrixMarketOptions options;
    options.pattern_values_random = true;
    options.seed = seed;
    matrix.seeded_values = io::read_matrix_market_header(spec).field == io::MatrixMarketField::Pattern;
    matrix.csr = io::read_matrix_market<double, int, std::int64_t>(spec, options);
  } catch (const Error& e) {
    throw BenchError(ExitInput, e.what());
  }
  return matrix;
}

std::string pattern_class(const BenchMatrix& matrix) {
  const auto& csr = matrix.csr;
  if (csr.entries.empty()) return {};
  if (csr.rows != csr.cols) return "graph";
  std::int64_t longest = 0;
  for (int row = 0; row < csr.rows; ++row) longest = std::max(longest, csr.row_map[row + 1] - csr.row_map[row]);
  const double mean = static_cast<double>(matrix.nnz()) / csr.rows;
  if (static_cast<double>(longest) > 8 * mean) return "graph";
  constexpr int window = 8;
  constexpr std::int64_t enough = 4000000;
  const auto step = static_cast<std::int64_t>(window) * (1 + matrix.nnz() / enough);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(csr.cols), -1);
  std::int64_t entries = 0, distinct = 0;
  for (std::int64_t first = 0; first < csr.rows; first += step) {
    const std::int64_t end = csr.row_map[std::min<std::int64_t>(first + window, csr.rows)];
    for (std::int64_t k = csr.row_map[first]; k < end; ++k, ++entries) {
      std::int64_t& last = seen[csr.entries[k]];
      distinct += last != first;
      last = first;
    }
  }
  return static_cast<double>(entries) >= 1.25 * static_cast<double>(distinct) ? "mesh" : "graph";
}

void make_values_uniform(BenchMatrix& matrix, std::uint64_t seed) {
  if (!matrix.seeded_values) return;
  auto& csr = matrix.csr;
  for (std::int64_t row = 0; row < csr.rows; ++row) {
    for (std::int64_t i = csr.row_map[row]; i < csr.row_map[row + 1]; ++i) {
      csr.values[i] = uniform_value(seed, row, csr.entries[i]);
    }
  }
}

io::HostDense<double> load_dense(const std::string& file) {
  try {
    return io::read_matrix_market_dense<double>(file);
  } catch (const Error& e) {
    throw BenchError(ExitInput, e.what());
  }
}

std::vector<double> load_vector(const std::string& file, std::int64_t size, std::uint64_t seed, VectorRole role) {
  if (!file.empty()) {
    io::HostDense<double> dense = load_dense(file);
    if (static_cast<std::int64_t>(dense.values.size()) != size || (dense.rows != size && dense.cols != size)) {
      throw BenchError(ExitInput, file + ": " + std::to_string(dense.rows) + " x " + std::to_string(dense.cols) +
                                      " values, the matrix needs a vector of " + std::to_string(size));
    }
    return std::move(dense.values);
  }
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    // The twelve octaves of a pattern value, folded to six.
    int exponent = 0;
    const double significand = std::frexp(io::pattern_value(seed, i, -static_cast<std::int64_t>(role)), &exponent);
    values[i] = std::ldexp(significand, (exponent + 5) % 6 - 2);
  }
  return values;
}

double fitting_scale(const std::vector<double>& values, Precision precision) {
  double largest = 0;
  for (const double v : values) {
    if (std::isfinite(v)) largest = std::fmax(largest, std::fabs(v));
  }
  const Range range = range_of(precision);
  if (largest == 0 || (largest <= range.largest && largest >= range.smallest)) return 1;
  const int wanted = largest > range.largest ? std::ilogb(range.largest) - 1 : 0;
  return std::ldexp(1.0, wanted - std::ilogb(largest));
}

std::string with_suffix(const std::string& file, const std::string& suffix) {
  if (suffix.empty()) return file;
  std::string clean = "_" + suffix;
  for (char& c : clean) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  const std::size_t name = file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1;
  std::size_t ending = file.size();
  for (const char* e : {".gz", ".mtx"}) {
    const std::string text = e;
    if (ending > name + text.size() && file.compare(ending - text.size(), text.size(), text) == 0) {
      ending -= text.size();
    }
  }
  return file.substr(0, ending) + clean + file.substr(ending);
}

void write_operands(const BenchOptions& options, const BenchMatrix& matrix, const std::vector<DenseFile>& others) {
  const std::string suffix = options.matrices.size() > 1 ? matrix.name : std::string();
  const auto file = [&](const std::string& name) { return with_suffix(options.write_operands + "/" + name, suffix); };
  try {
    io::write_matrix_market(file("A.mtx"), matrix.csr);
    for (const DenseFile& other : others) io::write_matrix_market(file(other.name), other.dense);
  } catch (const Error& e) {
    throw BenchError(ExitInput, e.what());
  }
}

}  // namespace Bench
}  // namespace Tessera
