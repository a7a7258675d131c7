// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_MATRIX_MARKET_HPP
#define TESSERA_ADAPTERS_TPETRA_MATRIX_MARKET_HPP

#include <Tpetra_CrsMatrix.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "adapters/Tessera_TpetraCompat.hpp"
#include "io/Tessera_MatrixMarket.hpp"

namespace Tessera {
namespace io {

/// A Matrix Market file, also gzipped, as a distributed matrix in contiguous blocks of rows, fill complete; its domain
/// map is contiguous, too. Collective. Every process reads the whole file and keeps its rows: O(nnz) time and memory on
/// each; Tpetra::MatrixMarket::Reader, for plain files, has one process read and send.
/// @tparam Matrix  Tpetra::CrsMatrix of double or float. Precision, errors and what is read: read_matrix_market.
template <class Matrix>
Teuchos::RCP<Matrix> read_tpetra_matrix(const std::string& path, const Teuchos::RCP<const Teuchos::Comm<int>>& comm,
                                        const MatrixMarketOptions& options = {}) {
  using Scalar = typename Matrix::scalar_type;
  using GO = typename Matrix::global_ordinal_type;
  using Map = Tpetra::Map<typename Matrix::local_ordinal_type, GO, typename Matrix::node_type>;
  const auto host = read_matrix_market<Scalar>(path, options);
  const auto rows = Teuchos::rcp(new Map(static_cast<Tpetra::global_size_t>(host.rows), 0, comm));
  const auto domain = Teuchos::rcp(new Map(static_cast<Tpetra::global_size_t>(host.cols), 0, comm));
  std::size_t longest = 0;
  for (std::size_t i = 0; i + 1 < host.row_map.size(); ++i) {
    longest = std::max(longest, static_cast<std::size_t>(host.row_map[i + 1] - host.row_map[i]));
  }
  const auto A = Teuchos::rcp(new Matrix(rows, longest));
  std::vector<GO> columns;
  for (std::size_t i = 0; i < Compat::local_size(*rows); ++i) {
    const GO row = rows->getGlobalElement(static_cast<typename Matrix::local_ordinal_type>(i));
    const auto begin = static_cast<std::size_t>(host.row_map[static_cast<std::size_t>(row)]),
               end = static_cast<std::size_t>(host.row_map[static_cast<std::size_t>(row) + 1]);
    if (begin == end) continue;
    columns.assign(host.entries.data() + begin, host.entries.data() + end);
    const auto n = static_cast<int>(end - begin);
    A->insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), n),
                          Teuchos::ArrayView<const Scalar>(host.values.data() + begin, n));
  }
  A->fillComplete(domain, rows);
  return A;
}

}  // namespace io
}  // namespace Tessera

#endif
