// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REFERENCE_REFERENCE_SPGEMM_HPP
#define TESSERA_REFERENCE_REFERENCE_SPGEMM_HPP

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

/// \file
/// The oracle of sparse matrix products.

namespace Tessera {
namespace Reference {

/// An entry of C.
struct SpgemmEntry {
  long double sum = 0;
  double magnitude = 0;       ///< of its products, added
  std::int64_t products = 0;  ///< that it is the sum of
};

/// How far a number may be from an entry: k products in a precision of unit roundoff u, each rounded and added in any
/// order, err by k u / (1 - k u) times their magnitudes [Higham, Accuracy and Stability of Numerical Algorithms,
/// section 3.1]; those of the entry itself in long double likewise. tiny: the least number above 0.
inline double spgemm_bound(const SpgemmEntry& entry, double u, double tiny) {
  const auto k = static_cast<double>(entry.products),
             v = static_cast<double>(std::numeric_limits<long double>::epsilon()) / 2;
  return (k * u / (1 - k * u) + k * v / (1 - k * v)) * entry.magnitude + k * tiny;
}

/// Row i of C = A B, by columns; an entry for every column that has a product.
template <class RowMap, class Entries, class Values>
std::map<std::int64_t, SpgemmEntry> spgemm_row(std::int64_t i, const RowMap& a_rows, const Entries& a_columns,
                                               const Values& a, const RowMap& b_rows, const Entries& b_columns,
                                               const Values& b) {
  std::map<std::int64_t, SpgemmEntry> row;
  for (auto e = a_rows[i]; e < a_rows[i + 1]; ++e) {
    for (auto t = b_rows[a_columns[e]]; t < b_rows[a_columns[e] + 1]; ++t) {
      const long double product =
          static_cast<long double>(static_cast<double>(a[e])) * static_cast<long double>(static_cast<double>(b[t]));
      SpgemmEntry& entry = row[static_cast<std::int64_t>(b_columns[t])];
      entry.sum += product;
      entry.magnitude += static_cast<double>(std::fabs(product));
      ++entry.products;
    }
  }
  return row;
}

}  // namespace Reference
}  // namespace Tessera

#endif
