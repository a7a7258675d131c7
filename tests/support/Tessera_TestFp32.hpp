// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_FP32_HPP
#define TESSERA_TEST_FP32_HPP

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// Whether SpMM in FP32 errs by no more than FP32 arithmetic, (k + 2) 2^-24 of the magnitudes of k products.

namespace Tessera {
namespace Testing {

/// Rows of few and of many entries side by side, in windows that share all columns, none, or some at random.
inline Pattern rows_for_parts() {
  const std::vector<int> lengths = {1, 2, 100, 3, 13, 30, 14, 26, 27, 0, 200, 24, 31};
  const auto count = static_cast<std::int64_t>(lengths.size());
  return pattern_of_rows(9 * count, 2000, [&](std::int64_t i, std::vector<int>& to) {
    const int k = lengths[static_cast<std::size_t>(i % count)], kind = static_cast<int>(i / count % 3);
    std::mt19937 engine(static_cast<std::uint32_t>(i));
    std::set<int> columns;
    for (int j = 0; static_cast<int>(columns.size()) < k; ++j) {
      columns.insert(kind == 0   ? j
                     : kind == 1 ? static_cast<int>((9 * j + i) % 2000)
                                 : static_cast<int>(engine() % static_cast<unsigned>(2 * k + 16)));
    }
    to.insert(to.end(), columns.begin(), columns.end());
  });
}

/// product(A, B, columns) gives C := A B, all row by row.
template <class Product>
void expect_fp32_bound(const Pattern& p, int columns, const Product& product) {
  HostMatrix<float> A = make_matrix<float>(p, Data::Integers, 1);
  std::vector<float> b(static_cast<std::size_t>(A.cols) * static_cast<std::size_t>(columns));
  for (const bool signs : {false, true}) {
    worst_for_parts(A.values.data(), A.values.size(), signs, 1);
    worst_for_parts(b.data(), b.size(), signs, 2);
    const std::vector<float> c = product(A, b, columns);
    double worst = 0;
    std::string where;
    for (int i = 0; i < A.rows; ++i) {
      const auto k = static_cast<double>(A.length(i));
      for (int j = 0; j < columns; ++j) {
        long double sum = 0, size = 0;
        for (auto e = A.row_map[static_cast<std::size_t>(i)]; e < A.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
          const auto at = static_cast<std::size_t>(e);
          const long double term =
              static_cast<long double>(A.values[at]) * b[static_cast<std::size_t>(A.entries[at] * columns + j)];
          sum += term;
          size += std::fabs(term);
        }
        const long double got = c[static_cast<std::size_t>(i * columns + j)], error = std::fabs(got - sum);
        const double share = size == 0 ? (error == 0 ? 0 : 2) : static_cast<double>(error / size * 0x1p24L) / (k + 2);
        if (!(share <= worst)) {
          worst = share;
          where = "row " + std::to_string(i) + " of " + std::to_string(A.length(i)) + " entries, column " +
                  std::to_string(j);
        }
      }
    }
    EXPECT_LE(worst, 1) << "of (k + 2) u; " << where << (signs ? ", signs" : "");
  }
}

}  // namespace Testing
}  // namespace Tessera

#endif
