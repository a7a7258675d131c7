// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Greedy clustering of rows: the published procedure, and the order it gives to plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "reorder/ReorderFixture.hpp"
#include "reorder/Tessera_GreedyRows.hpp"
#include "reorder/Tessera_RowClusters.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// The procedure with full vectors of counts, as the paper writes it down.
struct PlainGreedy {
  std::vector<std::int32_t> order;
  std::int64_t clusters = 0;

  PlainGreedy(const HostMatrix<double>& A, int width, double least) {
    const std::size_t blocks = static_cast<std::size_t>(A.cols / width) + 1;
    std::vector<std::vector<double>> counts(static_cast<std::size_t>(A.rows), std::vector<double>(blocks, 0));
    std::vector<double> dispersion(counts.size(), 0);
    std::vector<std::int32_t> rows;
    for (std::size_t r = 0; r < counts.size(); ++r) {
      for (auto e = A.row_map[r]; e < A.row_map[r + 1]; ++e) {
        counts[r][static_cast<std::size_t>(A.entries[static_cast<std::size_t>(e)] / width)] += 1;
      }
      double used = 0;
      for (const double c : counts[r]) {
        used += c > 0;
        dispersion[r] += c > 0 ? width - c : 0;
      }
      dispersion[r] += std::accumulate(counts[r].begin(), counts[r].end(), 0.0) * used;
      if (used > 0) rows.push_back(static_cast<std::int32_t>(r));
    }
    std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
      return dispersion[static_cast<std::size_t>(a)] < dispersion[static_cast<std::size_t>(b)];
    });
    std::vector<bool> taken(counts.size(), false);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto first = static_cast<std::size_t>(rows[i]);
      if (taken[first]) continue;
      ++clusters;
      std::vector<double> sum = counts[first];
      order.push_back(rows[i]);
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        const auto r = static_cast<std::size_t>(rows[j]);
        if (taken[r] || similarity(sum, counts[r]) <= least) continue;
        taken[r] = true;
        order.push_back(rows[j]);
        std::transform(sum.begin(), sum.end(), counts[r].begin(), sum.begin(), std::plus<>());
      }
    }
    for (std::int32_t r = 0; r < A.rows; ++r) {
      if (A.row_map[static_cast<std::size_t>(r)] == A.row_map[static_cast<std::size_t>(r) + 1]) order.push_back(r);
    }
  }
  static double similarity(const std::vector<double>& a, const std::vector<double>& b) {
    const auto norm = [](const std::vector<double>& v) {
      return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    };
    const double na = norm(a), nb = norm(b);
    double least = 0, most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      least += std::min(a[i] / na, b[i] / nb);
      most += std::max(a[i] / na, b[i] / nb);
    }
    return least / most;
  }
};

TEST(GreedyRows, TwoKindsOfRows) {
  // Rows 0, 2, 4 use columns 0 to 3, rows 1 and 3 columns 40 to 43; row 5 is empty.
  const Pattern p = pattern_of_rows(6, 48, [](std::int64_t i, std::vector<int>& to) {
    for (int k = 0; i < 5 && k < 4; ++k) to.push_back(static_cast<int>(i % 2) * 40 + k);
  });
  const DeviceMatrix<Exec, double> device(make_matrix<double>(p, Data::Integers, 1));
  const reorder::GreedyRows found = reorder::greedy_rows(device.view());
  EXPECT_EQ(found.order, (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(found.clusters, 2);
  EXPECT_DOUBLE_EQ(found.similarity, 1);
}

TEST(GreedyRows, ThePublishedProcedure) {
  for (const char* spec : {"rmat:scale=8:degree=6", "every_length:longest=40:cols=90", "stencil2d:nx=17:ny=13"}) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<double>(generate(spec), Data::Integers, 1);
    const DeviceMatrix<Exec, double> device(A);
    for (const int width : {1, 16, 23}) {
      for (const double least : {0.0, 0.31, 0.7, 1.0}) {
        const reorder::GreedyRows found = reorder::greedy_rows(device.view(), {width, least});
        const PlainGreedy plain(A, width, least);
        EXPECT_EQ(found.order, plain.order) << width << ", " << least;
        EXPECT_EQ(found.clusters, plain.clusters);
        EXPECT_GE(found.similarity, least);
      }
    }
  }
}

TEST(GreedyRows, EmptyMatrices) {
  const DeviceMatrix<Exec, double> none(
      make_matrix<double>(pattern_of_rows(3, 2, [](auto, auto&) {}), Data::Integers, 1));
  EXPECT_EQ(reorder::greedy_rows(none.view()).order, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(reorder::greedy_rows(none.view()).clusters, 0);
  EXPECT_THROW(reorder::greedy_rows(none.view(), {0, 0.3}), InvalidArgument);
  EXPECT_THROW(reorder::greedy_rows(none.view(), {16, -0.1}), InvalidArgument);
  EXPECT_THROW(reorder::greedy_rows(none.view(), {16, 1.1}), InvalidArgument);
}

// Signatures, which take a device microseconds, against the exact clusters: fetched rows of B in windows of 16 rows of
// a mesh whose rows came in any order. They save at least three quarters of what greedy clusters do.
TEST(GreedyRows, SignaturesDoNearlyAsWell) {
  const Pattern mesh = generate("block_grid:nx=9:ny=8:nodes=504:dof=3:missing=8:seed=0");
  std::vector<int> order = shuffled(static_cast<int>(mesh.rows), 7);
  const Pattern mixed = pattern_of_rows(mesh.rows, mesh.cols, [&](std::int64_t i, std::vector<int>& to) {
    const auto r = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    to.insert(to.end(), mesh.entries.begin() + mesh.row_map[r], mesh.entries.begin() + mesh.row_map[r + 1]);
  });
  const DeviceMatrix<Exec, double> device(make_matrix<double>(mixed, Data::Integers, 1));
  const auto A = Impl::pattern_of(device.view());
  const auto fetched = [&](RowReordering wanted) {
    return Impl::fetched_share(Exec(), A, 16, Impl::choose_row_order(Exec(), A, 16, wanted, nullptr).order, nullptr);
  };
  const double natural = fetched(RowReordering::None), greedy = fetched(RowReordering::Greedy),
               signatures = fetched(RowReordering::Clusters);
  EXPECT_LT(greedy, 0.7 * natural);
  EXPECT_LE(natural - greedy, (natural - signatures) / 0.75) << natural << ", " << greedy << ", " << signatures;
}

// A plan may ask for the order, and says what it found; C is in the caller's.
TEST(GreedyRows, InAPlan) {
  SpmmSuite<Exec, double> suite{Backend::EmulatedNvidia, SpmmAlgorithm::Panels};
  suite.options.reordering = RowReordering::Greedy;
  const auto A = suite.matrix(generate("rmat:scale=8:degree=6"), Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const SpmmPlan<DeviceMatrix<Exec, double>::Csr> plan(Exec(), device.view(), suite.options);
  EXPECT_NE(plan.statistics().why.find("greedy clusters"), std::string::npos) << plan.statistics().why;
  suite.expect(plan, A, 9, Data::Integers);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
