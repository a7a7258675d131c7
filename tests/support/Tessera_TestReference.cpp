// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "support/Tessera_TestReference.hpp"

#include <cmath>

#include "backends/reference/Tessera_Reference.hpp"

namespace Tessera {
namespace Testing {

double number(Data data, std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15ull + i * 0xD1B54A32D192ED03ull + 0x632BE59BD9B4E019ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  const double unit = static_cast<double>(z >> 11) / 9007199254740992.0;
  if (data == Data::Integers) return static_cast<double>(z % 9) - 4;
  if (data == Data::Real) return 2 * unit - 1;
  const double magnitude = std::ldexp(1 + unit, static_cast<int>(z % 10) - 6);
  return (z >> 8) % 2 ? -magnitude : magnitude;
}
void fill_numbers(double* to, std::size_t n, Data data, std::uint64_t seed) {
  for (std::size_t i = 0; i < n; ++i) to[i] = number(data, seed, i);
}

void reference_spmv(std::int64_t rows, const std::size_t* row_map, const int* entries, const double* values,
                    double alpha, const double* x, double beta, double* y, double* magnitude, double operand_floor) {
  Reference::spmv(rows, row_map, entries, values, alpha, x, beta, y, magnitude, operand_floor);
}
void reference_sddmm(std::int64_t rows, std::int64_t inner, const std::size_t* row_map, const int* entries,
                     const double* scale, double alpha, const double* x, const double* y, double beta, double* p,
                     double* magnitude, double operand_floor) {
  const auto row_by_row = [inner](const double* all) {
    return [all, inner](std::int64_t i, std::int64_t k) { return all[i * inner + k]; };
  };
  Reference::sddmm(
      rows, inner, row_map, entries, scale, alpha, row_by_row(x), row_by_row(y), beta,
      [p](std::size_t e) -> double& { return p[e]; }, magnitude, operand_floor);
}

std::size_t first_in_doubt(std::size_t row, std::size_t rows, const PlainBound& b, const std::size_t* row_map,
                           const double* wanted, const double* magnitude, const double* got) {
  for (; row < rows; ++row) {
    if (!(magnitude[row] < b.largest_magnitude)) return row;
    if (got[row] == wanted[row]) continue;
    if (b.exact) return row;
    const auto length = static_cast<double>(row_map[row + 1] - row_map[row]);
    const double bound = Reference::spmv_bound(length, b.unit, magnitude[row], b.y_roundoff, wanted[row], b.tiny);
    if (!(std::fabs(got[row] - wanted[row]) <= bound)) return row;
  }
  return rows;
}

}  // namespace Testing
}  // namespace Tessera
