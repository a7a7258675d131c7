// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "support/Tessera_TestCheck.hpp"

#include "backends/reference/Tessera_Reference.hpp"

namespace Tessera {
namespace Testing {

namespace {

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b;
}

/// Whether nothing that row i is computed from is infinite or undefined.
bool finite_inputs(const WantedProduct& p, std::size_t i, const std::vector<double>& x, const std::vector<double>& y0) {
  bool finite = p.s.beta == 0 || std::isfinite(y0[i]);
  for (auto k = static_cast<std::size_t>(p.A.row_map[i]);
       p.s.alpha != 0 && k < static_cast<std::size_t>(p.A.row_map[i + 1]); ++k) {
    finite = finite && std::isfinite(p.A.values[k]) && std::isfinite(x[static_cast<std::size_t>(p.A.entries[k])]);
  }
  return finite;
}

}  // namespace

::testing::AssertionResult agrees(const WantedProduct& p, const std::vector<double>& x, const std::vector<double>& y0,
                                  const std::vector<double>& y) {
  const auto rows = static_cast<std::size_t>(p.A.rows);
  if (y.size() != rows) return ::testing::AssertionFailure() << "y has " << y.size() << " elements";
  std::vector<double> reference(y0.begin(), y0.begin() + p.A.rows), magnitude(rows);
  const std::size_t* const row_map = p.A.row_map.data();
  reference_spmv(p.A.rows, row_map, p.A.entries.data(), p.A.values.data(), p.s.alpha, x.data(), p.s.beta,
                 reference.data(), magnitude.data(), p.operand_floor);
  const PlainBound plain{p.exact, p.unit, p.y_roundoff, p.tiny, p.largest / 4};
  const auto next = [&](std::size_t row) {
    return first_in_doubt(row, rows, plain, row_map, reference.data(), magnitude.data(), y.data());
  };
  for (std::size_t i = next(0); i < rows; i = next(i + 1)) {
    const double got = y[i], length = static_cast<double>(p.A.length(static_cast<int>(i)));
    double wanted = reference[i], bound = 0;
    bool good;
    if (!(magnitude[i] < p.largest / 4)) {
      good = finite_inputs(p, i, x, y0) || same_class(wanted, got);
    } else if (p.exact) {
      wanted = p.store(wanted);
      good = wanted == got;
    } else {
      bound = Reference::spmv_bound(length, p.unit, magnitude[i], p.y_roundoff, wanted, p.tiny);
      good = std::fabs(got - wanted) <= bound;
    }
    if (!good) {
      return ::testing::AssertionFailure()
             << "row " << i << " of " << p.A.rows << " x " << p.A.cols << ", " << length << " entries, alpha "
             << p.s.alpha << ", beta " << p.s.beta << ": got " << got << ", wanted " << wanted << ", error "
             << got - wanted << ", allowed " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult agrees(const WantedProduct& p, std::int64_t columns, const std::vector<double>& b,
                                  const std::vector<double>& c0, const std::vector<double>& c) {
  const auto column_of = [columns](const std::vector<double>& all, std::int64_t rows, std::int64_t j) {
    std::vector<double> one(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i)
      one[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(i * columns + j)];
    return one;
  };
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto result = agrees(p, column_of(b, p.A.cols, j), column_of(c0, p.A.rows, j), column_of(c, p.A.rows, j));
    if (!result) {
      return ::testing::AssertionFailure() << "column " << j << " of " << columns << ": " << result.message();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace Testing
}  // namespace Tessera
