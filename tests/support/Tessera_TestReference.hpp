// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_REFERENCE_HPP
#define TESSERA_TEST_REFERENCE_HPP

#include <cstddef>
#include <cstdint>

/// \file
/// What tests take long for by themselves: the plain loops of Tessera_Reference.hpp and numbers, on arrays of double.
/// Compiled optimised and without sanitizers whatever the tests are (tests/CMakeLists.txt): no test reads beyond its
/// own arrays to find that a kernel does not. Neither Kokkos nor anything that tests and library both have is included.

namespace Tessera {
namespace Testing {

/// What numbers of a test look like. Integers lie in [-4, 4]: every product and sum of a test is exact in float, so
/// results must be equal. Real: [-1, 1). Magnitudes: ten binary orders, which every type down to half_t can hold.
enum class Data { Integers, Real, Magnitudes };

/// The `i`-th number of a seed: counter-based, so that it depends on nothing else.
double number(Data data, std::uint64_t seed, std::uint64_t i);
/// The first n of them.
void fill_numbers(double* to, std::size_t n, Data data, std::uint64_t seed);

/// Reference::spmv.
void reference_spmv(std::int64_t rows, const std::size_t* row_map, const int* entries, const double* values,
                    double alpha, const double* x, double beta, double* y, double* magnitude, double operand_floor);
/// Reference::sddmm, of X and Y row by row.
void reference_sddmm(std::int64_t rows, std::int64_t inner, const std::size_t* row_map, const int* entries,
                     const double* scale, double alpha, const double* x, const double* y, double beta, double* p,
                     double* magnitude, double operand_floor);

/// The first row from `row` on, or `rows`, that is not plainly right: whose magnitude is below `largest_magnitude` and
/// whose number is the wanted one or, unless `exact`, within Reference::spmv_bound.
struct PlainBound {
  bool exact;
  double unit, y_roundoff, tiny, largest_magnitude;
};
std::size_t first_in_doubt(std::size_t row, std::size_t rows, const PlainBound& bound, const std::size_t* row_map,
                           const double* wanted, const double* magnitude, const double* got);

}  // namespace Testing
}  // namespace Tessera

#endif
