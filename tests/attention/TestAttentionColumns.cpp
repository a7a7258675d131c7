// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention with columns of 64 bits, which no kernel of a backend reads as they are.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "Tessera_Attention.hpp"

namespace Tessera {
namespace Testing {
namespace AttentionOfColumns {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::Device<Exec, Exec::memory_space>;
template <class T>
using Dense = Kokkos::View<T**, Kokkos::LayoutRight, Device>;

constexpr int rows = 40, cols = 23, width = 8;

/// Row i has 1, 2 or 4 columns.
std::vector<int> columns_of(int row) {
  std::vector<int> columns;
  for (int k = 0; k < 1 << row % 3; ++k) columns.push_back((5 * row + 7 * k) % cols);
  return columns;
}

template <class T>
auto matrix() {
  std::size_t nnz = 0;
  for (int row = 0; row < rows; ++row) nnz += columns_of(row).size();
  const Kokkos::View<int*, Device> row_map("row_map", rows + 1);
  const Kokkos::View<std::int64_t*, Device> entries("entries", nnz);
  for (int row = 0, at = 0; row < rows; ++row) {
    for (const int column : columns_of(row)) entries(at++) = column;
    row_map(row + 1) = at;
  }
  return csr_view(std::int64_t{rows}, std::int64_t{cols}, row_map, entries, Kokkos::View<T*, Device>("values", nnz));
}
template <class T>
Dense<T> whole_numbers(int m, int seed) {
  const Dense<T> d("dense", m, width);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < width; ++j) d(i, j) = static_cast<T>((seed * i + 3 * j) % 7 - 3);
  }
  return d;
}

/// Q of zeros: all scores of a row are 0, its weights 1 / entries, O the mean of the rows of V.
template <class T>
void means(const AttentionOptions& options) {
  const Exec space;
  const auto A = matrix<T>();
  const Dense<T> Q("Q", rows, width), K = whole_numbers<T>(cols, 5), V = whole_numbers<T>(cols, 4),
                                      G = whole_numbers<T>(rows, 11);
  const Dense<T> O("O", rows, width), dQ("dQ", rows, width), dK("dK", cols, width), dV("dV", cols, width);
  const Kokkos::View<T*, Device> lse("lse", rows);
  const AttentionPlan plan(space, A, options);
  plan.apply(space, 1.0, Q, K, V, O, lse);
  plan.backward(space, 1.0, Q, K, V, O, lse, G, dQ, dK, dV);
  // The log-sum-exp is below 2, and of it and of the exponential some units in the last place may be wrong.
  const double bound = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  std::vector<double> wanted(cols * width, 0), size(cols * width, 0);
  for (int row = 0; row < rows; ++row) {
    const auto columns = columns_of(row);
    const double weight = 1.0 / static_cast<double>(columns.size());
    for (int j = 0; j < width; ++j) {
      double mean = 0, of_sizes = 0;
      for (const int column : columns) {
        mean += weight * static_cast<double>(V(column, j));
        of_sizes += weight * std::abs(static_cast<double>(V(column, j)));
        wanted[column * width + j] += weight * static_cast<double>(G(row, j));
        size[column * width + j] += weight * std::abs(static_cast<double>(G(row, j)));
      }
      EXPECT_NEAR(static_cast<double>(O(row, j)), mean, bound * of_sizes) << "O, row " << row;
    }
  }
  for (int column = 0; column < cols; ++column) {
    for (int j = 0; j < width; ++j) {
      EXPECT_NEAR(static_cast<double>(dV(column, j)), wanted[column * width + j], bound * size[column * width + j])
          << "dV, row " << column;
    }
  }
}

TEST(AttentionColumns, Of64Bits) {
  for (const Backend backend : {Backend::Auto, Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
    for (const auto algorithm :
         {AttentionAlgorithm::Auto, AttentionAlgorithm::Fused, AttentionAlgorithm::Rows, AttentionAlgorithm::Chain}) {
      SCOPED_TRACE(std::string(to_string(backend)) + ", " + to_string(algorithm));
      AttentionOptions options;
      options.algorithm = algorithm;
      options.backend = backend;
      options.prepare_backward = true;
      options.dimension_hint = width;
      means<double>(options);
#ifndef TESSERA_TEST_BESIDE_SANITIZED  // whole plans of attention, SDDMM and SpMM more
      means<float>(options);
#endif
    }
  }
}

TEST(AttentionColumns, RowsSaysWhatItReads) {
  AttentionOptions options;
  options.algorithm = AttentionAlgorithm::Rows;
  options.backend = Backend::EmulatedNvidia;
  options.fallback = false;
  EXPECT_THROW(AttentionPlan(Exec(), matrix<double>(), options), NotSupported);
}

}  // namespace AttentionOfColumns
}  // namespace Testing
}  // namespace Tessera
