// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_MPI_MATRIX_HPP
#define TESSERA_BENCH_MPI_MATRIX_HPP

#include <Tpetra_CrsMatrix.hpp>

/// \file
/// Distributed matrices of the benchmark.

namespace Tessera {
namespace Bench {

using Map = Tpetra::Map<>;
using LO = Map::local_ordinal_type;
using GO = Map::global_ordinal_type;
using Node = Map::node_type;
using Matrix = Tpetra::CrsMatrix<double, LO, GO, Node>;
using Vectors = Tpetra::MultiVector<double, LO, GO, Node>;
using MatrixPointer = Teuchos::RCP<Matrix>;
using Comm = Teuchos::RCP<const Teuchos::Comm<int>>;

/// 27-point stencil on a grid cut into blocks, as cubic as the number of processes allows; unknowns are numbered block
/// by block. Rows are diagonally dominant.
/// @param points      in each direction: of the whole grid, or of each block
/// @param each_block  weak scaling
/// @param random      off-diagonal numbers in (-1.5, -0.5) that depend on the edge only, so that A is symmetric; else
/// -1
MatrixPointer stencil27(GO points, bool each_block, bool random, const Comm& comm);

/// The same pattern with magnitudes.
MatrixPointer with_absolute_numbers(const Matrix& A);

}  // namespace Bench
}  // namespace Tessera

#endif
