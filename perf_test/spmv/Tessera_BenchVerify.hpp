// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_VERIFY_HPP
#define TESSERA_BENCH_VERIFY_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "Tessera_Types.hpp"
#include "driver/Tessera_BenchVerdict.hpp"

namespace Tessera {
namespace Bench {

/// The right answer for one matrix in one precision: long double sums over the very operands the kernels get.
class SpmvVerifier {
 public:
  /// @param values, x  as rounded to `operands`, the type of the matrix and x   @param y  as rounded to `result`, its
  ///                   type
  void set(const std::vector<std::int64_t>& row_map, const std::vector<int>& entries, const std::vector<double>& values,
           double alpha, const std::vector<double>& x, double beta, const std::vector<double>& y, ElementType operands,
           ElementType result);

  Verdict check(const std::vector<double>& y) const;

 private:
  double bound(std::size_t row) const;
  double row_error(double y, std::size_t row) const;

  ElementType operands_ = ElementType::Double, result_ = ElementType::Double;
  std::vector<double> expected_, magnitude_, length_;
};

}  // namespace Bench
}  // namespace Tessera

#endif
