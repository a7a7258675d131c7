// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BAD_NUMBERS_HPP
#define TESSERA_BAD_NUMBERS_HPP

#include <cmath>
#include <limits>
#include <vector>

#include "support/Tessera_TestMatrix.hpp"

/// \file
/// Infinite and undefined numbers where a product must not meet them, or in some rows alone.

namespace Tessera {
namespace Testing {

inline double bad_number(std::size_t i) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return i % 3 == 0 ? std::nan("") : i % 3 == 1 ? infinity : -infinity;
}

/// The pattern on the odd columns alone: no row uses an even one, column 0 among them.
inline Pattern on_odd_columns(Pattern p) {
  for (int& column : p.entries) column = 2 * column + 1;
  p.cols = 2 * p.cols + 1;
  return p;
}
/// An x for it: integers, and bad numbers at the even columns.
template <class Scalar>
std::vector<Scalar> bad_at_even_columns(std::int64_t cols) {
  auto x = numbers<Scalar>(cols, Data::Integers, 6);
  for (std::size_t j = 0; j < x.size(); j += 2) x[j] = as<Scalar>(bad_number(j / 2));
  return x;
}
/// Every seventh row of a matrix on odd columns gets a bad value, another seventh meets one in bad_at_even_columns.
template <class Scalar, class Offset>
void add_bad_rows(HostMatrix<Scalar, Offset>& A, int shift) {
  for (int i = 0; i < A.rows; ++i) {
    if (A.length(i) == 0) continue;
    const auto at =
        static_cast<std::size_t>(static_cast<std::int64_t>(A.row_map[static_cast<std::size_t>(i)]) + i % A.length(i));
    if ((i + shift) % 7 == 0) A.values[at] = as<Scalar>(bad_number(static_cast<std::size_t>(i / 7)));
    if ((i + shift) % 7 == 3) --A.entries[at];
  }
}

}  // namespace Testing
}  // namespace Tessera

#endif
