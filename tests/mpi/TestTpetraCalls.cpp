// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// New numbers for an operator, and calls that cannot be right: each has to throw the same on every process.

#include "mpi/MpiFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

const GO nx = 19, ny = 13, n = nx * ny;

MapPointer map(Spread spread, GO size = n) { return make_map(comm(), size, spread); }
MatrixPointer square(Spread spread) {
  const auto m = map(spread);
  return make_matrix(m, m, m, laplacian(nx, ny, 0.25));
}
TpetraOptions with_transpose() {
  TpetraOptions options;
  options.spmv.prepare_transpose = true;
  return options;
}

TEST(TpetraUpdate, TakesNewNumbers) {
  for (const auto spread : {Spread::Blocks, Spread::Cyclic, Spread::FirstOnly, Spread::LastEmpty}) {
    for (const auto algorithm : {SpmvAlgorithm::Auto, SpmvAlgorithm::Csr, SpmvAlgorithm::Csr5, SpmvAlgorithm::Dasp}) {
      const auto A = square(spread);
      TpetraOptions options = with_transpose();
      options.spmv.algorithm = algorithm;
      Operator op(A, options);
      Vectors X(op.getDomainMap(), 3), Y(op.getRangeMap(), 3), Y0(op.getRangeMap(), 3);
      fill(X, 1);
      fill(Y0, 2);
      op.apply(X, Y);  // so that a plan for several columns exists
      for (int step = 0; step < 3; ++step) {
        A->resumeFill();
        {
          const auto values = A->getLocalMatrixHost().values;
          for (std::size_t k = 0; k < values.extent(0); ++k) {
            values(k) = number(Data::Real, static_cast<std::uint64_t>(step) + 50, k);
          }
        }
        A->fillComplete(A->getDomainMap(), A->getRangeMap());
        op.update_values();
        const Judge judge(A);
        for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
          Tpetra::deep_copy(Y, Y0);
          op.apply(X, Y, mode, 2.5, -1);
          EXPECT_LE(judge.worst(X, Y, mode, 2.5, -1, Y0), 1) << "step " << step << ", mode " << mode;
          Tpetra::deep_copy(Y, Y0);
          const auto x = X.getVector(1);
          const auto y = Y.getVectorNonConst(1);
          op.apply(*x, *y, mode, 2.5, -1);
          EXPECT_LE(judge.worst(*x, *y, mode, 2.5, -1, *Y0.getVector(1)), 1) << "step " << step << ", mode " << mode;
        }
      }
    }
  }
}

TEST(TpetraUpdate, TakesNewNumbersInNarrowTypes) {
  const auto A = square(Spread::Blocks);
  TpetraOptions options;
  options.spmv.compute = ComputeType::FP32;
  Operator op(A, options);
  Vectors X(op.getDomainMap(), 5), Y(op.getRangeMap(), 5);
  fill(X, 1);
  op.apply(X, Y);  // several columns have a plan of their own, which is made here
  A->resumeFill();
  A->scale(3.0);
  A->fillComplete(A->getDomainMap(), A->getRangeMap());
  op.update_values();
  const Narrow narrow{2.1 * std::ldexp(1.0, -24), 0, std::ldexp(1.0, -24)};
  for (const std::size_t columns : {1, 3, 5}) {
    const auto from = X.subView(Teuchos::Range1D(0, static_cast<int>(columns) - 1));
    const auto to = Y.subViewNonConst(Teuchos::Range1D(0, static_cast<int>(columns) - 1));
    op.apply(*from, *to);
    EXPECT_LE(Judge(A).worst(*from, *to, Teuchos::NO_TRANS, 1, 0, *to, narrow), 1) << columns << " columns";
  }
}

TEST(TpetraUpdate, RefusesAnotherGraph) {
  const auto m = map(Spread::Blocks);
  const auto A = square(Spread::Blocks);
  Operator op(A);
  op.update_values();  // nothing has changed
  A->resumeFill();
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [&] { op.update_values(); })) << "not fill complete";
  // What of its graph a filled matrix can still change: the maps.
  A->fillComplete(map(Spread::Cyclic), m);
  if (comm()->getSize() > 1) {
    EXPECT_TRUE(throws_everywhere<StalePlan>(comm(), [&] { op.update_values(); })) << "another domain map";
  } else {
    op.update_values();  // the same map, as another object
  }
}

TEST(TpetraUpdate, ComparesPatternsInOtherArrays) {
  // As after a fillComplete() that packed the graph anew.
  const Kokkos::DefaultHostExecutionSpace space;
  const auto A = make_matrix<double, std::size_t>("uniform:rows=50:cols=40", Data::Real, 1);
  auto same = A, columns = A, offsets = A;
  columns.entries[17] = (columns.entries[17] + 1) % A.cols;
  ++offsets.row_map[20];
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const DeviceMatrix<Exec, double, std::size_t> a(A), b(same), c(columns), d(offsets);
  EXPECT_TRUE(Impl::same_pattern(space, a.view(), b.view()));
  EXPECT_FALSE(Impl::same_pattern(space, a.view(), c.view()));
  EXPECT_FALSE(Impl::same_pattern(space, a.view(), d.view()));
}

TEST(TpetraUpdate, RefusesWhereItWasNotAskedFor) {
  const auto A = square(Spread::Blocks);
  TpetraOptions options;
  options.spmv.updatable = false;
  Operator op(A, options);
  EXPECT_TRUE(throws_everywhere<StalePlan>(comm(), [&] { op.update_values(); }));
}

TEST(TpetraCalls, RefuseBrokenMatrices) {
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [] { Operator op{Teuchos::RCP<const Matrix>()}; }));
  const auto m = map(Spread::Blocks);
  const auto open = Teuchos::rcp(new Matrix(m, 1));
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [&] { Operator op(open); }));
}

TEST(TpetraCalls, RefuseOtherMaps) {
  const auto blocks = map(Spread::Blocks), cyclic = map(Spread::Cyclic), longer = map(Spread::Blocks, n + 1);
  const auto A = make_matrix(blocks, blocks, blocks, laplacian(nx, ny));
  const Operator op(A, with_transpose());
  const bool alone = comm()->getSize() == 1;
  const Vectors good(blocks, 2), other(cyclic, 2), large(longer, 2), three(blocks, 3);
  Vectors y_good(blocks, 2), y_other(cyclic, 2), y_large(longer, 2);
  for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    if (!alone) {
      EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] { op.apply(other, y_good, mode); }));
      EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] { op.apply(good, y_other, mode); }));
    }
    EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] { op.apply(large, y_good, mode); }));
    EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] { op.apply(good, y_large, mode); }));
    EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] { op.apply(three, y_good, mode); }));
  }
  // Another object that is the same map is welcome, and the operator still works after all that.
  Vectors X(map(Spread::Blocks), 2), Y(map(Spread::Blocks), 2);
  fill(X, 1);
  op.apply(X, Y);
  EXPECT_LE(Judge(A).worst(X, Y, Teuchos::NO_TRANS, 1, 0, Y), 1);
}

TEST(TpetraCalls, RefuseTransposesThatWereNotPrepared) {
  const auto A = square(Spread::Blocks);
  const Operator op(A);
  EXPECT_FALSE(op.hasTransposeApply());
  Vectors X(op.getRangeMap(), 1), Y(op.getDomainMap(), 1);
  Y.putScalar(7);
  EXPECT_TRUE(throws_everywhere<NotSupported>(comm(), [&] { op.apply(X, Y, Teuchos::TRANS); }));
  double largest = 0;
  Y.normInf(Teuchos::ArrayView<double>(&largest, 1));
  EXPECT_EQ(largest, 7) << "Y was written";
}

TEST(TpetraCalls, RefuseNumbersThatDoNotFit) {
  const auto A = square(Spread::Blocks);
  TpetraOptions options;
  options.spmv.compute = ComputeType::FP16_FP32;
  A->resumeFill();
  A->scale(65504.0 / 4);  // the largest is FP16's largest
  A->fillComplete(A->getDomainMap(), A->getRangeMap());
  Operator op(A, options);
  A->resumeFill();
  A->scale(1.001);
  A->fillComplete(A->getDomainMap(), A->getRangeMap());
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [&] { op.update_values(); }));
  EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [&] { Operator again(A, options); }));
  options.spmv.compute = ComputeType::BF16_FP32;
  Operator fits(A, options);
}

TEST(TpetraCalls, RefuseHaloesWithoutExponents) {
  const auto A = square(Spread::Blocks);
  for (const auto wire : {Precision::FP16, Precision::TF32}) {
    TpetraOptions options;
    options.halo_precision = wire;
    EXPECT_TRUE(throws_everywhere<InvalidArgument>(comm(), [&] { Operator op(A, options); })) << to_string(wire);
  }
  TpetraOptions options;
  options.halo_precision = Precision::FP64;  // that of the vectors
  const Operator op(A, options);
  Vectors X(op.getDomainMap(), 1), Y(op.getRangeMap(), 1);
  fill(X, 1);
  op.apply(X, Y);
  EXPECT_LE(Judge(A).worst(X, Y, Teuchos::NO_TRANS, 1, 0, Y), 1);
}

// How many columns a plan is made for: what was given, else what the first apply has.
TEST(TpetraCalls, KeepTheHintOfColumns) {
  EXPECT_EQ(TpetraOptions().spmm.num_columns_hint, 0);
  using Csr = Operator::csr_type;
  const Csr A = csr_view(Compat::local_matrix(*square(Spread::Blocks)));
  const Csr::execution_space space;
  const auto rows = static_cast<std::size_t>(A.rows()), cols = static_cast<std::size_t>(A.cols());
  const Kokkos::View<double**, Kokkos::LayoutLeft, Csr::device_type> x("x", cols, 3), y("y", rows, 3);
  for (const int given : {0, 7}) {
    TpetraOptions options;
    options.spmm.num_columns_hint = given;
    const Impl::TpetraProduct<Csr> product(space, A, options.spmv, options.spmm);
    product.apply(space, Op::NoTrans, 1, x, 0, y);
    ASSERT_TRUE(product.spmm());
    EXPECT_EQ(product.spmm()->options().num_columns_hint, given == 0 ? 3 : given);
  }
}

TEST(TpetraCalls, TakeNoColumns) {
  const auto A = square(Spread::Blocks);
  const auto X = Teuchos::rcp(new Vectors(A->getDomainMap(), 1));
  const Operator op(A);
  EXPECT_EQ(op.getDomainMap().get(), A->getDomainMap().get());
  EXPECT_EQ(op.getRangeMap().get(), A->getRangeMap().get());
  EXPECT_TRUE(throws_everywhere<DimensionMismatch>(comm(), [&] {
    Vectors Y(A->getRangeMap(), 4);
    op.apply(*X, Y);
  }));
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
