// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SpMM on hosts with columns of A, and so rows of B, in blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spmm/Tessera_GeSpmm.hpp"
#include "spmm/Tessera_GeSpmmBlocks.hpp"
#include "spmm/Tessera_SpmmBlockCost.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using BlockHost = Kokkos::DefaultHostExecutionSpace;

Impl::ColumnReuse reuse_of(const std::string& spec) {
  const HostMatrix<UsualScalar> A = make_matrix<UsualScalar>(spec, Data::Real, 1);
  const DeviceMatrix<BlockHost, UsualScalar> device(A);
  return Impl::ColumnReuse(BlockHost(), device.view());
}

TEST(SpmmBlocks, ReuseOfKnownColumns) {
  // All of 512 columns, one after the other, again and again: a cache that holds fewer has lost each of them.
  const Impl::ColumnReuse around = reuse_of("dense:rows=64:cols=512");
  EXPECT_EQ(around.columns_of(256), 256);
  EXPECT_EQ(around.columns_of(4096), 512);
  EXPECT_EQ(around.columns_of(64 * 512), 512);
  EXPECT_EQ(around.misses(400), 1);
  EXPECT_EQ(around.misses(513), 1 / 64.0);
  // No column twice.
  const Impl::ColumnReuse once = reuse_of("dense:rows=1:cols=8192");
  EXPECT_EQ(once.columns_of(1000), 1000);
  EXPECT_EQ(once.columns_of(8192), 8192);
  EXPECT_EQ(once.misses(20), 1);
  EXPECT_EQ(once.misses(1e9), 1);
  EXPECT_TRUE(reuse_of("diagonal:rows=8192:cols=8192").along_diagonals());
  // Fewer entries than samples.
  const Impl::ColumnReuse few = reuse_of("dense:rows=1:cols=5");
  EXPECT_EQ(few.columns_of(5), 0);
  EXPECT_EQ(few.misses(3), 0);
}

TEST(SpmmBlocks, ReuseCountsEveryColumn) {
  const HostMatrix<UsualScalar> A =
      make_matrix<UsualScalar>("community:n=900:edges=8000:alpha=0.4:local=0.5:size=90:seed=3", Data::Real, 1);
  const DeviceMatrix<BlockHost, UsualScalar> device(A);
  const Impl::ColumnReuse reuse(BlockHost(), device.view());
  const auto each = static_cast<std::int64_t>(A.entries.size()) / 8;
  for (const int joined : {1, 2, 4, 8}) {
    double columns = 0;
    for (int k = 0; k < 8; k += joined) {
      const auto from = A.entries.begin() + k * each;
      columns += static_cast<double>(std::set<int>(from, from + joined * each).size());
    }
    EXPECT_DOUBLE_EQ(reuse.columns_of(static_cast<double>(joined * each)), columns * joined / 8) << joined;
  }
  double before = 1;
  for (const double held : {8, 64, 256, 512, 800}) {
    EXPECT_LE(reuse.misses(held), before) << held;
    before = reuse.misses(held);
  }
}

TEST(SpmmBlocks, WhereTheyPay) {
  const auto blocks_of = [](const Impl::ColumnReuse& reuse, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                            std::int64_t row_bytes, std::int64_t threads) {
    const Impl::SpmmBlockCost cost{rows, nnz, cols, row_bytes, row_bytes, threads};
    return cost.may_pay() ? cost.best(reuse) : 0;
  };
  const Impl::ColumnReuse all_over = reuse_of("uniform:rows=2000:cols=40000:per_row=200:exact=1:seed=5");
  for (const std::int64_t row_bytes : {128, 256, 512}) {
    const int blocks = blocks_of(all_over, 2000, 40000, 400000, row_bytes, 2);
    EXPECT_GE(blocks, 2) << row_bytes;
    EXPECT_LE(blocks, 64) << row_bytes;
  }
  EXPECT_EQ(blocks_of(all_over, 2000, 40000, 400000, 256, 64), 1) << "no thread uses a row of B twice";
  EXPECT_EQ(blocks_of(all_over, 2000, 40000, 400000, 32, 2), 0) << "B stays in the caches";
  const Impl::ColumnReuse near = reuse_of("diagonals:n=40000:count=21");
  EXPECT_TRUE(near.along_diagonals());
  EXPECT_FALSE(all_over.along_diagonals());
  for (const std::int64_t row_bytes : {128, 512, 2048}) {
    EXPECT_EQ(blocks_of(near, 40000, 40000, 40000 * 21, row_bytes, 2), 1) << "prefetchers follow diagonals";
  }
  EXPECT_EQ(blocks_of(all_over, 100000, 40000, 400000, 512, 2), 0) << "short rows";
}

/// Long rows all over the columns, empty ones, a few short ones; not in order if `shuffled`.
HostMatrix<UsualScalar> rows_all_over(int rows, int cols, bool shuffled) {
  Pattern p;
  p.rows = rows, p.cols = cols;
  p.row_map.push_back(0);
  std::uint32_t state = 1;
  for (int i = 0; i < rows; ++i) {
    const int length = i % 7 == 3 ? 0 : i % 5 == 1 ? i % 4 : 60 + i % 30;
    std::set<int> columns;
    while (static_cast<int>(columns.size()) < length) {
      state = state * 1664525u + 1013904223u;
      columns.insert(static_cast<int>((state >> 8) % static_cast<std::uint32_t>(cols)));
    }
    if (shuffled) {
      p.entries.insert(p.entries.end(), columns.rbegin(), columns.rend());
    } else {
      p.entries.insert(p.entries.end(), columns.begin(), columns.end());
    }
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return make_matrix<UsualScalar>(p, Data::Real, 1);
}

// Each entry is in one block, in that of its column where columns ascend; fewer blocks are joined ones.
TEST(SpmmBlocks, CutsOfRows) {
  const HostMatrix<UsualScalar> A = rows_all_over(61, 700, false);
  const DeviceMatrix<BlockHost, UsualScalar> device(A);
  const Impl::ColumnCuts<DeviceMatrix<BlockHost, UsualScalar>::Csr> cuts(BlockHost(), device.view(), 16);
  EXPECT_EQ(cuts.bytes(), 17 * 61 * sizeof(A.row_map[0]));
  for (const int blocks : {1, 2, 8, 16}) {
    for (int row = 0; row < A.rows; ++row) {
      auto next = A.row_map[static_cast<std::size_t>(row)];
      for (int k = 0; k < blocks; ++k) {
        const auto* const at = cuts.of_block(k, blocks) + row;
        ASSERT_EQ(at[0], next);
        next = at[cuts.distance(blocks)];
        for (auto i = at[0]; i < next; ++i) {
          const int column = A.entries[static_cast<std::size_t>(i)];
          ASSERT_GE(column, 700 * k / blocks);
          ASSERT_LT(column, 700 * (k + 1) / blocks);
        }
      }
      ASSERT_EQ(next, A.row_map[static_cast<std::size_t>(row + 1)]);
    }
  }
}

// Whatever the number of blocks: widths of one vector, of several, and of more than a tile, that overlap or not; C in
// rows and in columns, overwritten or not.
TEST(SpmmBlocks, AgreeWithPlainLoops) {
  for (const bool shuffled : {false, true}) {
    const HostMatrix<UsualScalar> A = rows_all_over(151, 700, shuffled);
    const DeviceMatrix<BlockHost, UsualScalar> device(A);
    const Impl::ColumnCuts<DeviceMatrix<BlockHost, UsualScalar>::Csr> cuts(BlockHost(), device.view(), 64);
    for (const int n : {16, 33, 64, 150}) {
      const auto b = numbers<UsualScalar>(std::int64_t{A.cols} * n, Data::Real, 2),
                 c = numbers<UsualScalar>(std::int64_t{A.rows} * n, Data::Real, 3);
      const Impl::Dense<const UsualScalar> rows_of_b{b.data(), A.cols, n, n, 1};
      for (const int blocks : {2, 8, 64}) {
        for (const double beta : {0.0, -2.0}) {
          for (const bool in_rows : {true, false}) {
            SCOPED_TRACE(std::to_string(n) + " columns, " + std::to_string(blocks) + " blocks");
            std::vector<UsualScalar> got(c.size());
            const Impl::Dense<UsualScalar> to{got.data(), A.rows, n, in_rows ? n : 1, in_rows ? 1 : A.rows};
            for (int i = 0; i < A.rows; ++i) {
              for (int j = 0; j < n; ++j) {
                *to.at(i, j) = beta == 0 ? UsualScalar(NAN) : c[static_cast<std::size_t>(i * n + j)];
              }
            }
            Impl::ge_spmm_blocks(BlockHost(), 2.5, device.view(), rows_of_b, beta, to,
                                 Impl::whole_rows<UsualScalar>(A.rows), cuts, blocks);
            std::vector<UsualScalar> result;
            for (int i = 0; i < A.rows; ++i) {
              for (int j = 0; j < n; ++j) result.push_back(*to.at(i, j));
            }
            EXPECT_TRUE(agrees_dense<UsualScalar>(A, n, {2.5, beta}, b, c, result, false));
          }
        }
      }
    }
  }
}

// 16 bits with C in FP32: whole numbers, whose sums are exact in any order.
TEST(SpmmBlocks, SumsOf16Bits) {
  constexpr int n = 72;
  const HostMatrix<half_t> A = make_matrix<half_t>("uniform:rows=90:cols=500:per_row=70:exact=0:seed=7",  //
                                                   Data::Integers, 1);
  const DeviceMatrix<BlockHost, half_t> device(A);
  const Impl::ColumnCuts<DeviceMatrix<BlockHost, half_t>::Csr> cuts(BlockHost(), device.view(), 8);
  const auto b = numbers<half_t>(std::int64_t{A.cols} * n, Data::Integers, 2);
  const auto c = numbers<float>(std::int64_t{A.rows} * n, Data::Integers, 3);
  std::vector<float> got = c;
  Impl::ge_spmm_blocks(BlockHost(), 2.0, device.view(), Impl::Dense<const half_t>{b.data(), A.cols, n, n, 1}, -1.0,
                       Impl::Dense<float>{got.data(), A.rows, n, n, 1}, Impl::whole_rows<float>(A.rows), cuts, 8);
  EXPECT_TRUE(agrees_dense<float>(A, n, {2, -1}, b, c, got, true));
}

// A plan finds out for itself, also for several widths in turn, and goes on with new values.
TEST(SpmmBlocks, PlansTakeThem) {
  constexpr int wide = 256 / sizeof(UsualScalar);
  HostMatrix<UsualScalar> A = make_matrix<UsualScalar>("uniform:rows=600:cols=40000:per_row=300:exact=0:seed=5",  //
                                                       Data::Real, 1);
  const DeviceMatrix<BlockHost, UsualScalar> device(A);
  SpmmOptions o;
  o.algorithm = SpmmAlgorithm::GeSpmm;
  o.backend = Backend::Kokkos;
  SpmmPlan<DeviceMatrix<BlockHost, UsualScalar>::Csr> plan(BlockHost(), device.view(), o);
  const std::size_t before = plan.format_bytes();
  const auto expect = [&](int n, bool blocks) {
    SCOPED_TRACE(std::to_string(n) + " columns");
    const auto b = numbers<UsualScalar>(std::int64_t{A.cols} * n, Data::Real, 2),
               c = numbers<UsualScalar>(std::int64_t{A.rows} * n, Data::Real, 3);
    Kokkos::View<UsualScalar**, Kokkos::LayoutRight, BlockHost> from("b", A.cols, n), to("c", A.rows, n);
    std::copy(b.begin(), b.end(), from.data());
    for (const double beta : {0.0, -2.0}) {
      const Scaling scaling{2.5, beta};
      std::copy(c.begin(), c.end(), to.data());
      {
        const KokkosCounters counters;
        plan.apply(BlockHost(), Op::NoTrans, scaling.alpha, from, beta, to);
        if (BlockHost().concurrency() <= 4) {  // of more, each would fetch most of B for itself
          EXPECT_EQ(std::string(counters.last_kernel()) == "Tessera::spmm[gespmm, blocks of B]", blocks)
              << counters.last_kernel();
        }
      }
      const std::vector<UsualScalar> got(to.data(), to.data() + c.size());
      EXPECT_TRUE(agrees_dense<UsualScalar>(A, n, scaling, b, c, got, false));
    }
  };
  expect(3, false);
  EXPECT_EQ(plan.format_bytes(), before);
  expect(wide, true);
  if (BlockHost().concurrency() <= 4) {
    EXPECT_GT(plan.format_bytes(), before);
  }
  expect(2 * wide, true);
  expect(wide, true);
  for (auto& value : A.values) value = UsualScalar(2) * value;
  const DeviceMatrix<BlockHost, UsualScalar> other(A);
  plan.update_values(BlockHost(), other.view().values());
  expect(wide, true);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
