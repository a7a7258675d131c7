// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// TpetraOperator::apply against the apply of Tpetra's own matrix, on maps of every kind.

#include "mpi/MpiFixture.hpp"

namespace Tessera {
namespace Testing {
namespace {

struct Case {
  std::string name;
  MatrixPointer A;
};

std::vector<Case> cases() {
  const Comm comm = Tpetra::getDefaultComm();
  const auto map = [&](GO n, Spread s) { return make_map(comm, n, s); };
  const GO nx = 23, ny = 17, n = nx * ny, rows = 150, cols = 90;
  const auto blocks = map(n, Spread::Blocks), cyclic = map(n, Spread::Cyclic), back = map(n, Spread::Backwards);
  const auto skewed = laplacian(nx, ny, 0.375);
  std::vector<Case> all;
  all.push_back({"Laplacian", make_matrix(blocks, blocks, blocks, laplacian(nx, ny))});
  all.push_back({"random rectangular", make_matrix(map(rows, Spread::Blocks), map(cols, Spread::Blocks),
                                                   map(rows, Spread::Blocks), random_rows(cols, 1))});
  all.push_back({"random, wide", make_matrix(map(cols, Spread::Blocks), map(rows, Spread::Cyclic),
                                             map(cols, Spread::Blocks), random_rows(rows, 2))});
  const auto first = map(n, Spread::FirstOnly), last = map(n, Spread::LastEmpty);
  all.push_back({"everything on one process", make_matrix(first, first, first, skewed)});
  all.push_back({"an empty process", make_matrix(last, last, last, skewed)});
  all.push_back({"rows on one process, domain spread", make_matrix(first, blocks, first, skewed)});
  all.push_back({"cyclic", make_matrix(cyclic, cyclic, cyclic, skewed)});
  all.push_back({"cyclic domain", make_matrix(blocks, cyclic, blocks, skewed)});
  all.push_back({"falling domain", make_matrix(blocks, back, blocks, skewed)});
  all.push_back({"range is not the row map", make_matrix(cyclic, blocks, blocks, skewed)});
  all.push_back({"three maps", make_matrix(back, cyclic, last, skewed)});
  all.push_back({"rows on two processes", make_matrix(map(n, Spread::Overlapping), blocks, blocks, skewed)});
  // Every column on every process, falling: others' columns and ones without entries among them.
  std::vector<GO> every;
  for (GO i = n; i > 0; --i) every.push_back(i - 1);
  const MapPointer columns =
      Teuchos::rcp(new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                           Teuchos::ArrayView<const GO>(every.data(), static_cast<int>(every.size())), 0, comm));
  // Tpetra wants received columns after owned ones only when it makes the map itself.
  all.push_back({"overlapping column map", make_matrix(blocks, blocks, blocks, skewed, columns)});
  all.push_back({"no entries", make_matrix(blocks, blocks, blocks, [](GO) { return std::vector<Entry>(); })});
  const MapPointer local = Teuchos::rcp(new Map(n, 0, comm, Tpetra::LocallyReplicated));
  all.push_back({"replicated domain", make_matrix(blocks, local, blocks, skewed)});
  all.push_back({"replicated range", make_matrix(blocks, blocks, local, skewed)});
  return all;
}

struct Scaling {
  double alpha, beta;
};
const Scaling scalings[] = {{1, 0}, {-1, 0}, {2.5, 0}, {1, 1}, {-1, 2.5}, {2.5, -1}, {0, 0}, {0, 2.5}, {0, 1}};

TEST(TpetraApply, AgreesWithTpetra) {
  for (const Case& c : cases()) {
    const Judge judge(c.A);
    for (const bool overlap : {true, false}) {
      TpetraOptions options;
      options.overlap = overlap;
      options.spmv.prepare_transpose = true;
      const Operator op(c.A, options);
      EXPECT_TRUE(op.hasTransposeApply());
      for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS, Teuchos::CONJ_TRANS}) {
        if (!overlap && mode == Teuchos::CONJ_TRANS) continue;
        const bool plain = mode == Teuchos::NO_TRANS;
        for (const std::size_t columns : {1, 3, 8}) {
          Vectors X(plain ? op.getDomainMap() : op.getRangeMap(), columns);
          Vectors Y0(plain ? op.getRangeMap() : op.getDomainMap(), columns), Y(Y0.getMap(), columns);
          fill(X, 3);
          fill(Y0, 4);
          for (const Scaling s : scalings) {
            // What is overwritten must not be read.
            if (s.beta == 0) {
              Y.putScalar(std::nan(""));
            } else {
              Tpetra::deep_copy(Y, Y0);
            }
            op.apply(X, Y, mode, s.alpha, s.beta);
            EXPECT_LE(judge.worst(X, Y, mode, s.alpha, s.beta, Y0), 1)
                << c.name << ", mode " << mode << ", " << columns << " columns, alpha " << s.alpha << ", beta "
                << s.beta << ", overlap " << overlap;
          }
        }
      }
    }
  }
}

TEST(TpetraApply, IsRepeatable) {
  for (const Case& c : cases()) {
    const Operator op(c.A);
    for (const std::size_t columns : {1, 5}) {
      Vectors X(op.getDomainMap(), columns), first(op.getRangeMap(), columns), again(op.getRangeMap(), columns);
      fill(X, 5);
      op.apply(X, first);
      op.apply(X, again);
      again.update(-1, first, 1);
      std::vector<double> norms(columns);
      again.normInf(Teuchos::ArrayView<double>(norms.data(), static_cast<int>(columns)));
      for (const double norm : norms) EXPECT_EQ(norm, 0) << c.name;
    }
  }
}

TEST(TpetraApply, TakesColumnsThatAreNotEvenlySpaced) {
  for (const Case& c : cases()) {
    const Judge judge(c.A);
    SpmvOptions options;
    options.prepare_transpose = true;
    const Operator op(c.A, options);
    for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      const bool plain = mode == Teuchos::NO_TRANS;
      const auto from = plain ? op.getDomainMap() : op.getRangeMap(), to = plain ? op.getRangeMap() : op.getDomainMap();
      Vectors wide_x(from, 6), wide_y(to, 6), wide_0(to, 6);
      fill(wide_x, 6);
      fill(wide_0, 7);
      Tpetra::deep_copy(wide_y, wide_0);
      const Teuchos::Array<std::size_t> some = Teuchos::tuple<std::size_t>(0, 2, 5);
      {
        const auto X = wide_x.subView(some());
        const auto Y = wide_y.subViewNonConst(some());
        const auto Y0 = wide_0.subView(some());
        ASSERT_FALSE(X->isConstantStride());
        op.apply(*X, *Y, mode, 2.5, -1);
        EXPECT_LE(judge.worst(*X, *Y, mode, 2.5, -1, *Y0), 1) << c.name;
      }
      for (const std::size_t beside : {1, 3, 4}) {
        const auto now = wide_y.getVector(beside)->getData(0), before = wide_0.getVector(beside)->getData(0);
        bool equal = true;
        for (int i = 0; i < now.size(); ++i) equal = equal && now[i] == before[i];
        EXPECT_TRUE(everywhere(c.A->getComm(), equal)) << c.name << ": column " << beside << " was written";
      }
    }
  }
}

TEST(TpetraApply, WorksInPlace) {
  for (const Case& c : cases()) {
    if (!c.A->getDomainMap()->isSameAs(*c.A->getRangeMap())) continue;
    const Judge judge(c.A);
    SpmvOptions options;
    options.prepare_transpose = true;
    const Operator op(c.A, options);
    for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const std::size_t columns : {1, 3}) {
        Vectors X(op.getDomainMap(), columns), old(op.getDomainMap(), columns);
        fill(X, 8);
        Tpetra::deep_copy(old, X);
        op.apply(X, X, mode, 2.5, -1);
        EXPECT_LE(judge.worst(old, X, mode, 2.5, -1, old), 1) << c.name;
        // Another object on the same memory.
        Tpetra::deep_copy(X, old);
        const auto view = X.subView(Teuchos::Range1D(0, static_cast<int>(columns) - 1));
        op.apply(*view, X, mode, 1, 0);
        EXPECT_LE(judge.worst(old, X, mode, 1, 0, old), 1) << c.name;
      }
    }
  }
}

TEST(TpetraApply, MultipliesInNarrowerTypes) {
  struct Type {
    ComputeType compute;
    double unit;
    double floor;  // of x: the least number after scaling, halved; of A none, its numbers are normal in every type
  };
  const Type types[] = {{ComputeType::FP32, std::ldexp(1.0, -24), 0},
                        {ComputeType::FP16_FP32, std::ldexp(1.0, -11), std::ldexp(1.0, -39)},
                        {ComputeType::BF16_FP32, std::ldexp(1.0, -8), 0}};
  for (const Case& c : cases()) {
    const Judge judge(c.A);
    for (const Type& type : types) {
      SpmvOptions options;
      options.compute = type.compute;
      options.prepare_transpose = true;
      const Operator op(c.A, options);
      // Both operands are rounded: (1 + u)^2 - 1, and the second-order term of the sum with the first.
      Narrow narrow;
      narrow.unit = 2.1 * type.unit;
      narrow.floor = type.floor;
      narrow.sum_unit = std::ldexp(1.0, -24);
      for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        const bool plain = mode == Teuchos::NO_TRANS;
        for (const std::size_t columns : {1, 3, 5}) {
          Vectors X(plain ? op.getDomainMap() : op.getRangeMap(), columns);
          Vectors Y0(plain ? op.getRangeMap() : op.getDomainMap(), columns), Y(Y0.getMap(), columns);
          fill(X, 9);
          fill(Y0, 10);
          // Far outside what FP16, and with the second column what float can hold.
          X.getVectorNonConst(0)->scale(1e30);
          if (columns > 1) X.getVectorNonConst(1)->scale(1e-200);
          for (const Scaling s : scalings) {
            if (s.beta == 0) {
              Y.putScalar(std::nan(""));
            } else {
              Tpetra::deep_copy(Y, Y0);
            }
            op.apply(X, Y, mode, s.alpha, s.beta);
            EXPECT_LE(judge.worst(X, Y, mode, s.alpha, s.beta, Y0, narrow), 1)
                << c.name << ", mode " << mode << ", compute " << static_cast<int>(type.compute) << ", " << columns
                << " columns, alpha " << s.alpha << ", beta " << s.beta;
          }
        }
      }
    }
  }
}

// What a narrow halo may change: rows with received columns, by u |A_halo||x|. (1 + u)(1 + 2.1 v) - 1 with u the halo's
// unit and v the product's is u + 2.1 v + 2.1 u v, of which the last is in the 1.1. Numbers are far from the ends of
// float's exponents.
TEST(TpetraApply, SendsNarrowNumbersWithinTheirBound) {
  const double u32 = std::ldexp(1.0, -24), u16 = std::ldexp(1.0, -8);
  struct Type {
    Precision wire;
    double unit;
    int bytes;
    ComputeType compute;
    Narrow product;
  };
  const Type types[] = {
      {Precision::FP32, u32, 4, ComputeType::Auto, {}},
      {Precision::BF16, u16, 2, ComputeType::Auto, {}},
      {Precision::FP32, u32, 4, ComputeType::FP32, {2.1 * u32, 0, u32}},
      {Precision::FP32, u32, 4, ComputeType::FP16_FP32, {2.1 * std::ldexp(1.0, -11), std::ldexp(1.0, -39), u32}}};
  for (const Case& c : cases()) {
    const Judge judge(c.A);
    for (const Type& type : types) {
      for (const bool overlap : {true, false}) {
        if (!overlap && &type != types) continue;
        TpetraOptions options;
        options.overlap = overlap;
        options.spmv.compute = type.compute;
        const Operator wide(c.A, options);
        options.halo_precision = type.wire;
        const Operator op(c.A, options);
        const bool exchanges = largest_of_all(c.A->getComm(), static_cast<double>(op.facts().halo_nnz)) > 0;
        if (exchanges) {
          EXPECT_EQ(op.facts().halo_number_bytes, type.bytes);
          EXPECT_EQ(wide.facts().halo_number_bytes, 8);
        }
        Narrow narrow = type.product;
        narrow.halo_unit = 1.1 * type.unit;
        for (const std::size_t columns : {1, 3}) {
          Vectors X(op.getDomainMap(), columns), Y0(op.getRangeMap(), columns), Y(op.getRangeMap(), columns),
              exact(op.getRangeMap(), columns);
          fill(X, 13);
          fill(Y0, 14);
          Tpetra::deep_copy(Y, Y0);
          Tpetra::deep_copy(exact, Y0);
          op.apply(X, Y, Teuchos::NO_TRANS, 2.5, -1);
          const std::string what = c.name + ", " + to_string(type.wire) + ", compute " +
                                   std::to_string(static_cast<int>(type.compute)) + ", " + std::to_string(columns) +
                                   " columns, overlap " + std::to_string(overlap);
          EXPECT_LE(judge.worst(X, Y, Teuchos::NO_TRANS, 2.5, -1, Y0, narrow), 1) << what;
          // They were rounded where anything is received, unless the product rounds as much.
          wide.apply(X, exact, Teuchos::NO_TRANS, 2.5, -1);
          if (exchanges && type.compute == ComputeType::Auto) {
            EXPECT_GT(largest_difference(Y, exact), 0) << what;
          }
        }
      }
    }
  }
}

TEST(TpetraApply, SendsNarrowNumbersExactlyWhereTheyFit) {
  // Integers below 2^7 are numbers of bfloat16, so that nothing is rounded on the way.
  for (const Case& c : cases()) {
    for (const auto wire : {Precision::FP32, Precision::BF16}) {
      TpetraOptions options = {};
      options.spmv.prepare_transpose = true;
      const Operator wide(c.A, options);
      options.halo_precision = wire;
      const Operator op(c.A, options);
      for (const auto mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        const bool plain = mode == Teuchos::NO_TRANS;
        for (const std::size_t columns : {1, 5}) {
          Vectors X(plain ? op.getDomainMap() : op.getRangeMap(), columns);
          Vectors Y(plain ? op.getRangeMap() : op.getDomainMap(), columns), wanted(Y.getMap(), columns);
          fill(X, 15);
          // Transposed products are the same with any numbers.
          if (plain) {
            for (std::size_t j = 0; j < columns; ++j) {
              const auto column = X.getVectorNonConst(j);
              for (std::size_t i = 0; i < column->getLocalLength(); ++i) {
                const double value = std::floor(100 * column->getData(0)[static_cast<int>(i)]);
                column->replaceLocalValue(static_cast<LO>(i), value);
              }
            }
          }
          op.apply(X, Y, mode);
          wide.apply(X, wanted, mode);
          EXPECT_EQ(largest_difference(Y, wanted), 0) << c.name << ", " << to_string(wire) << ", mode " << mode;
        }
      }
    }
  }
}

TEST(TpetraApply, HasNoHaloOnOneProcess) {
  const Comm comm = Tpetra::getDefaultComm();
  const auto blocks = make_map(comm, 23 * 17, Spread::Blocks);
  const auto A = make_matrix(blocks, blocks, blocks, laplacian(23, 17));
  const Operator op(A);
  const TpetraFacts facts = op.facts();
  const bool alone = comm->getSize() == 1;
  EXPECT_TRUE(everywhere(comm, (op.halo_plan() == nullptr) == alone));
  EXPECT_TRUE(everywhere(comm, (facts.halo_columns == 0) == alone));
  EXPECT_TRUE(everywhere(
      comm, facts.owned_nnz + facts.halo_nnz == static_cast<long long>(A->getLocalMatrixHost().values.extent(0))));
  // Blocks of whole and broken grid lines: what a process needs from others lies within one line of its block.
  EXPECT_TRUE(everywhere(comm, facts.halo_columns <= 2 * 23 && facts.send_elements <= 2 * 2 * 23));
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
