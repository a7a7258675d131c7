// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPGEMM_HPP
#define TESSERA_TEST_SPGEMM_HPP

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "Tessera_Spgemm.hpp"
#include "backends/reference/Tessera_ReferenceSpgemm.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SpGEMM algorithm must pass.

namespace Tessera {
namespace Testing {

inline const std::vector<SpgemmAlgorithm>& spgemm_algorithms() {
  static const std::vector<SpgemmAlgorithm> all = {SpgemmAlgorithm::Auto, SpgemmAlgorithm::Spa,
                                                   SpgemmAlgorithm::Hash, SpgemmAlgorithm::Heap,
                                                   SpgemmAlgorithm::Coo,  SpgemmAlgorithm::Binned};
  return all;
}

/// C as the phases wrote it.
template <class T, class Offset>
struct SpgemmResult {
  std::vector<Offset> row_map;
  std::vector<int> columns;
  std::vector<T> values, updated;  ///< of numeric() and of update_values()
};

/// Both phases and an update, into arrays that hold what nobody may leave there.
template <class Exec, class T, class Offset>
SpgemmResult<T, Offset> multiply(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B,
                                 const SpgemmOptions& options) {
  using Device = DeviceMatrix<Exec, T, Offset>;
  const Device a(A), b(B);
  const Exec space;
  SpgemmPlan<typename Device::Csr> plan(space, a.view(), b.view(), options);
  EXPECT_EQ(plan.nnz(), -1);
  const DeviceVector<Exec, Offset> row_map("row_map", static_cast<std::size_t>(A.rows) + 1);
  Kokkos::deep_copy(row_map, Offset(77));
  const auto nnz = static_cast<std::size_t>(plan.symbolic(space, row_map));
  EXPECT_EQ(plan.nnz(), static_cast<std::int64_t>(nnz));
  const DeviceVector<Exec, int> columns("columns", nnz);
  const DeviceVector<Exec, T> values("values", nnz), updated("updated", nnz);
  Kokkos::deep_copy(columns, -1);
  Kokkos::deep_copy(values, as<T>(std::nan("")));
  Kokkos::deep_copy(updated, as<T>(std::nan("")));
  plan.numeric(space, row_map, columns, values);
  plan.update_values(space, a.view(), b.view(), row_map, columns, updated);
  return {to_host(row_map), to_host(columns), to_host(values), to_host(updated)};
}

/// Columns ascend and are those that have a product; every number is within the bound of its sum, or equal.
template <class T, class Offset>
void expect_product(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B, const SpgemmResult<T, Offset>& C,
                    bool exact) {
  const double u = TypeFacts<T>::roundoff(), tiny = TypeFacts<T>::tiny();
  ASSERT_EQ(C.row_map.size(), static_cast<std::size_t>(A.rows) + 1);
  ASSERT_EQ(C.row_map[0], Offset(0));
  for (int i = 0; i < A.rows; ++i) {
    const auto wanted = Reference::spgemm_row(i, A.row_map.data(), A.entries.data(), A.values.data(), B.row_map.data(),
                                              B.entries.data(), B.values.data());
    auto e = static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(i)]);
    ASSERT_EQ(static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(i) + 1]), e + wanted.size()) << "row " << i;
    for (const auto& [column, entry] : wanted) {
      ASSERT_EQ(C.columns[e], column) << "row " << i;
      const long double found = wide(C.values[e]);
      if (exact || std::isnan(entry.sum)) {
        ASSERT_TRUE(found == entry.sum || (std::isnan(found) && std::isnan(entry.sum))) << i << ", " << column;
      } else {
        ASSERT_LE(std::fabs(found - entry.sum), Reference::spgemm_bound(entry, u, tiny)) << i << ", " << column;
      }
      ++e;
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(C.row_map.back()), C.columns.size());
  EXPECT_TRUE(same_bits(C.values, C.updated)) << "update_values";
}

}  // namespace Testing
}  // namespace Tessera

#endif
