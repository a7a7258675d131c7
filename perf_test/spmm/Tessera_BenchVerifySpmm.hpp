// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_VERIFY_SPMM_HPP
#define TESSERA_BENCH_VERIFY_SPMM_HPP

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/Tessera_BenchOperands.hpp"
#include "driver/Tessera_BenchVerdict.hpp"

/// \file
/// Dense operands and the check of C, where the operands are: a case of 2 M rows and 256 columns has half a billion
/// elements. One thread per element of C, a plain loop over the row of A in double; nothing is shared with any kernel.

namespace Tessera {
namespace Bench {

/// Which operand a seed is for.
enum class DenseRole : std::uint64_t { B = 0x42, C = 0x43 };
inline std::uint64_t dense_seed(std::uint64_t seed, DenseRole role) {
  return seed ^ (static_cast<std::uint64_t>(role) << 56);
}

/// V(i, j) := uniform_value(seed, i, j), or not a number everywhere. Enqueued.
void fill_dense(const Exec& space, const DenseElements& V, std::uint64_t seed, bool poisoned = false);

/// The same numbers on the host, column by column, before any type rounds them.
std::vector<double> seeded_dense(std::int64_t rows, std::int64_t columns, std::uint64_t seed);

/// Unit roundoffs a result may show: of the rounding of operands inside a product, of the sums, of C.
struct SpmmRounding {
  double operands = 0;       ///< relative error of a product by rounding its operands
  double sums = 0;           ///< the kernel's and, as it sums in double, the reference's
  double tiny = 0;           ///< error of one rounding below the normal range of the sums
  double store = 0;          ///< of C where it is narrower than the sums
  double store_tiny = 0;     ///< the same below its normal range
  double operand_floor = 0;  ///< see Reference::spmv

  /// @param operand  type of A and B as stored   @param result  of C   @param kernel  as the record names it
  static SpmmRounding of(Precision precision, ElementType operand, ElementType result, const std::string& kernel);
};

/// Error over bound of one number in a result of this type; infinity for what no bound allows.
KOKKOS_INLINE_FUNCTION double error_ratio(double actual, double expected, double bound, ElementType type) {
  if (expected != expected) return actual != actual ? 0 : HUGE_VAL;
  if (actual != actual) return HUGE_VAL;
  if (expected - expected != 0) return actual == expected ? 0 : HUGE_VAL;
  if (actual - actual != 0) {
    // Right where something inside the bound overflows in the type of the result.
    return rounded(actual > 0 ? expected + bound : expected - bound, type) == actual ? 0 : HUGE_VAL;
  }
  const double error = actual < expected ? expected - actual : actual - expected;
  return error == 0 ? 0 : error / bound;
}

/// The error of every element of C over its bound. With k entries in row i, magnitude m = |alpha| (|A||B|)_ij +
/// |beta C0_ij| and u the unit roundoffs of the kernel's sums and of double together (Reference::spmv_bound has the
/// derivation):
///
///     |C - ref| <= (2 (k + 4) u + operands) m + store |ref| + (k + 4) tiny + store_tiny
///
/// @param first  C before the product, in the places of C; without data: what fill_dense makes of `seed`
Verdict check_spmm(const SpmmOperands& operands, const DenseElements& first, std::uint64_t seed,
                   const SpmmRounding& rounding);

}  // namespace Bench
}  // namespace Tessera

#endif
