// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Distributed block matrices against Tpetra's own product; whole numbers, so that both are exact.

#include "adapters/Tessera_TpetraBlocks.hpp"
#include "mpi/MpiFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Blocks = Tpetra::BlockCrsMatrix<double, LO, GO, Node>;
using Graph = Tpetra::CrsGraph<LO, GO, Node>;
using BlockOperator = TpetraBlockOperator<double, LO, GO, Node>;

/// Five-point pattern of points, a dense block for each link.
Teuchos::RCP<Blocks> block_laplacian(GO nx, GO ny, int side, Spread spread) {
  const auto map = make_map(comm(), nx * ny, spread);
  const Teuchos::RCP<Graph> graph = Teuchos::rcp(new Graph(map, 5));
  const Row row = laplacian(nx, ny);
  for (std::size_t i = 0; i < Compat::local_size(*map); ++i) {
    const GO name = map->getGlobalElement(static_cast<LO>(i));
    std::vector<GO> names;
    for (const Entry& e : row(name)) names.push_back(e.column);
    graph->insertGlobalIndices(name, Teuchos::ArrayView<const GO>(names.data(), static_cast<int>(names.size())));
  }
  graph->fillComplete();
  const auto A = Teuchos::rcp(new Blocks(*graph, side));
  const auto local = graph->getLocalGraphHost();
  for (LO i = 0; i < static_cast<LO>(Compat::local_size(*map)); ++i) {
    for (auto k = local.row_map(i); k < local.row_map(i + 1); ++k) {
      const LO column = local.entries(k);
      const auto seed = static_cast<std::uint64_t>(map->getGlobalElement(i) * nx * ny) +
                        static_cast<std::uint64_t>(graph->getColMap()->getGlobalElement(column));
      const auto values = numbers<double>(side * side, Data::Integers, seed);
      A->replaceLocalValues(i, &column, values.data(), 1);
    }
  }
  return A;
}

void fill_whole(Vectors& v, std::uint64_t seed) {
  for (std::size_t j = 0; j < v.getNumVectors(); ++j) {
    for (std::size_t i = 0; i < v.getLocalLength(); ++i) {
      const auto name = static_cast<std::uint64_t>(v.getMap()->getGlobalElement(static_cast<LO>(i)));
      v.replaceLocalValue(static_cast<LO>(i), j, number(Data::Integers, seed + j, name));
    }
  }
}

TEST(TpetraBlocks, ProductsAreTpetras) {
  for (const auto spread : {Spread::Blocks, Spread::Cyclic, Spread::FirstOnly, Spread::LastEmpty}) {
    for (const int side : {1, 3, 4}) {
      const auto A = block_laplacian(9, 7, side, spread);
      const BlockOperator op(A);
      EXPECT_EQ(op.plan().statistics().algorithm, "bsr");
      for (const std::size_t columns : {1, 3}) {
        Vectors X(op.getDomainMap(), columns), Y(op.getRangeMap(), columns), wanted(op.getRangeMap(), columns);
        fill_whole(X, 1);
        fill_whole(Y, 20);
        Tpetra::deep_copy(wanted, Y);
        op.apply(X, Y, Teuchos::NO_TRANS, 2, -1);
        A->apply(X, wanted, Teuchos::NO_TRANS, 2, -1);
        wanted.update(-1, Y, 1);
        std::vector<double> largest(columns);
        wanted.normInf(Teuchos::ArrayView<double>(largest));
        for (const double difference : largest) EXPECT_EQ(difference, 0);
        // beta = 0 reads no Y.
        Y.putScalar(std::numeric_limits<double>::quiet_NaN());
        op.apply(X, Y);
        A->apply(X, wanted);
        wanted.update(-1, Y, 1);
        wanted.normInf(Teuchos::ArrayView<double>(largest));
        for (const double difference : largest) EXPECT_EQ(difference, 0);
      }
    }
  }
}

TEST(TpetraBlocks, NumbersThatChangeCountAtOnce) {
  const auto A = block_laplacian(6, 5, 2, Spread::Blocks);
  const BlockOperator op(A);
  Vectors X(op.getDomainMap(), 1), Y(op.getRangeMap(), 1), wanted(op.getRangeMap(), 1);
  fill_whole(X, 1);
  op.apply(X, Y);
  {
    const auto numbers = A->getValuesHostNonConst();
    for (std::size_t i = 0; i < numbers.extent(0); ++i) numbers(i) *= 3;
  }
  op.apply(X, wanted);
  wanted.update(-3, Y, 1);
  EXPECT_EQ(wanted.getVector(0)->normInf(), 0);
  EXPECT_GT(Y.getVector(0)->normInf(), 0);
}

// X is copied where it shares memory with Y, wherever each of them begins.
TEST(TpetraBlocks, ColumnsOfOneMultivectorMayOverlap) {
  const auto A = block_laplacian(9, 7, 3, Spread::Blocks);
  const BlockOperator op(A);
  for (const std::size_t x : {0, 1}) {
    Vectors V(op.getDomainMap(), 3), X(op.getDomainMap(), 2), wanted(op.getRangeMap(), 2);
    fill_whole(V, 1);
    Tpetra::deep_copy(X, *V.subView(Teuchos::Range1D(static_cast<int>(x), static_cast<int>(x + 1))));
    A->apply(X, wanted);
    const auto from = V.subView(Teuchos::Range1D(static_cast<int>(x), static_cast<int>(x + 1)));
    const auto to = V.subViewNonConst(Teuchos::Range1D(static_cast<int>(1 - x), static_cast<int>(2 - x)));
    op.apply(*from, *to);
    wanted.update(-1, *to, 1);
    std::vector<double> largest(2);
    wanted.normInf(Teuchos::ArrayView<double>(largest));
    for (const double difference : largest) EXPECT_EQ(difference, 0) << "X from column " << x;
  }
}

// A map that differs on two processes is refused on all: the others would wait for these in the exchange.
TEST(TpetraBlocks, AllProcessesRefuseAMap) {
  const auto A = block_laplacian(8, 8, 2, Spread::Blocks);
  const BlockOperator op(A);
  const int rank = comm()->getRank();
  if (comm()->getSize() < 2) return;
  const auto& right = *op.getDomainMap();
  const std::size_t mine = Compat::local_size(right) + (rank == 0 ? 2 : 0) - (rank == 1 ? 2 : 0);
  const MapPointer wrong = Teuchos::rcp(new Map(right.getGlobalNumElements(), mine, right.getIndexBase(), comm()));
  Vectors X(op.getDomainMap(), 1), Y(op.getRangeMap(), 1), other(wrong, 1);
  EXPECT_THROW(op.apply(other, Y), DimensionMismatch);
  EXPECT_THROW(op.apply(X, other), DimensionMismatch);
  op.apply(X, Y);
}

TEST(TpetraBlocks, Refusals) {
  const auto A = block_laplacian(5, 4, 2, Spread::Blocks);
  const BlockOperator op(A);
  Vectors X(op.getDomainMap(), 2), Y(op.getRangeMap(), 1);
  EXPECT_THROW(op.apply(X, Y), DimensionMismatch);
  Vectors Z(op.getRangeMap(), 2);
  EXPECT_THROW(op.apply(X, Z, Teuchos::TRANS), NotSupported);
  EXPECT_FALSE(op.hasTransposeApply());
  EXPECT_THROW(BlockOperator(Teuchos::null), InvalidArgument);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
