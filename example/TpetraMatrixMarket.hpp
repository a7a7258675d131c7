// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_EXAMPLE_TPETRA_MATRIX_MARKET_HPP
#define TESSERA_EXAMPLE_TPETRA_MATRIX_MARKET_HPP

#include <Tpetra_CrsMatrix.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "io/Tessera_MatrixMarket.hpp"

namespace Tessera {
namespace Example {

/// A Matrix Market file, also gzipped, as a distributed matrix in contiguous blocks of rows. Every process reads the
/// whole file and keeps its rows, which is what an example may do; Tpetra::MatrixMarket::Reader has one process read.
inline Teuchos::RCP<Tpetra::CrsMatrix<double>> read_tpetra_matrix(const std::string& file,
                                                                  const Teuchos::RCP<const Teuchos::Comm<int>>& comm) {
  using Matrix = Tpetra::CrsMatrix<double>;
  using Map = Tpetra::Map<>;
  using GO = Map::global_ordinal_type;
  const auto host = io::read_matrix_market<double>(file);
  const auto rows = Teuchos::rcp(new Map(static_cast<Tpetra::global_size_t>(host.rows), 0, comm));
  const auto domain = Teuchos::rcp(new Map(static_cast<Tpetra::global_size_t>(host.cols), 0, comm));
  std::size_t longest = 0;
  for (std::size_t i = 0; i + 1 < host.row_map.size(); ++i) {
    longest = std::max(longest, static_cast<std::size_t>(host.row_map[i + 1] - host.row_map[i]));
  }
  const auto A = Teuchos::rcp(new Matrix(rows, longest));
  for (GO row = rows->getMinGlobalIndex(); row <= rows->getMaxGlobalIndex(); ++row) {
    std::vector<GO> columns;
    std::vector<double> values;
    for (auto k = host.row_map[static_cast<std::size_t>(row)]; k < host.row_map[static_cast<std::size_t>(row) + 1];
         ++k) {
      columns.push_back(host.entries[static_cast<std::size_t>(k)]);
      values.push_back(host.values[static_cast<std::size_t>(k)]);
    }
    const auto n = static_cast<int>(columns.size());
    if (n > 0) {
      A->insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), n),
                            Teuchos::ArrayView<const double>(values.data(), n));
    }
  }
  A->fillComplete(domain, rows);
  return A;
}

}  // namespace Example
}  // namespace Tessera

#endif
