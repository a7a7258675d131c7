// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Orders of rows for windows, and SpMM plans that use them: nobody may see it in the result.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reorder/ReorderFixture.hpp"
#include "reorder/Tessera_RowClusters.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// Blocks of `height` equal rows of `width` neighbouring columns.
Pattern blocks_of_rows(int blocks, int height, int width) {
  Pattern p;
  p.rows = static_cast<std::int64_t>(blocks) * height;
  p.cols = static_cast<std::int64_t>(blocks) * width;
  p.row_map.push_back(0);
  for (int i = 0; i < blocks * height; ++i) {
    for (int k = 0; k < width; ++k) p.entries.push_back(i / height * width + k);
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
}
Pattern rows_in_order(const Pattern& p, const std::vector<int>& order) {
  Pattern q;
  q.rows = p.rows;
  q.cols = p.cols;
  q.row_map.push_back(0);
  for (const int row : order) {
    q.entries.insert(q.entries.end(), p.entries.begin() + p.row_map[static_cast<std::size_t>(row)],
                     p.entries.begin() + p.row_map[static_cast<std::size_t>(row) + 1]);
    q.row_map.push_back(static_cast<std::int64_t>(q.entries.size()));
  }
  return q;
}
Pattern shuffled_rows(const Pattern& p, std::uint64_t seed = 3) {
  return rows_in_order(p, shuffled(static_cast<int>(p.rows), seed));
}
/// Every row with a column of its own before all others, in the rows' order: first columns then say nothing of the
/// rest.
Pattern marked_rows(const Pattern& p) {
  Pattern q;
  q.rows = p.rows;
  q.cols = p.rows + p.cols;
  q.row_map.push_back(0);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    q.entries.push_back(static_cast<int>(i));
    for (std::int64_t k = p.row_map[i]; k < p.row_map[i + 1]; ++k) {
      q.entries.push_back(static_cast<int>(p.rows) + p.entries[static_cast<std::size_t>(k)]);
    }
    q.row_map.push_back(static_cast<std::int64_t>(q.entries.size()));
  }
  return q;
}
/// Columns of rows the other way round, and the first one of each row twice.
Pattern unsorted_and_repeated(const Pattern& p) {
  Pattern q;
  q.rows = p.rows;
  q.cols = p.cols;
  q.row_map.push_back(0);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const auto begin = p.entries.begin() + p.row_map[i], end = p.entries.begin() + p.row_map[i + 1];
    q.entries.insert(q.entries.end(), std::make_reverse_iterator(end), std::make_reverse_iterator(begin));
    if (begin != end) q.entries.push_back(*begin);
    q.row_map.push_back(static_cast<std::int64_t>(q.entries.size()));
  }
  return q;
}
std::vector<Pattern> cases() {
  std::vector<Pattern> all;
  for (const std::string& spec : shapes()) all.push_back(generate(spec));
  all.push_back(shuffled_rows(generate("stencil2d:nx=37:ny=29")));
  all.push_back(unsorted_and_repeated(generate("every_length:longest=90:cols=131")));
  all.push_back(unsorted_and_repeated(generate("dense_row:others=1")));
  return all;
}
/// Different columns summed over windows.
std::int64_t fetched(const Pattern& p, const std::vector<int>& order, int height) {
  std::int64_t sum = 0;
  for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(height)) {
    std::set<int> columns;
    for (std::size_t i = first; i < std::min(order.size(), first + static_cast<std::size_t>(height)); ++i) {
      columns.insert(p.entries.begin() + p.row_map[static_cast<std::size_t>(order[i])],
                     p.entries.begin() + p.row_map[static_cast<std::size_t>(order[i]) + 1]);
    }
    sum += static_cast<std::int64_t>(columns.size());
  }
  return sum;
}
std::int64_t heaviest(const Pattern& p, const std::vector<int>& order, int height) {
  std::int64_t most = 0, sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    sum = (i % static_cast<std::size_t>(height) == 0 ? 0 : sum) + p.row_map[row + 1] - p.row_map[row];
    most = std::max(most, sum);
  }
  return most;
}
std::vector<int> natural(const Pattern& p) {
  std::vector<int> order(static_cast<std::size_t>(p.rows));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

using Device = DeviceMatrix<Exec, UsualScalar>;
Device device_of(const Pattern& p) { return Device(make_matrix<UsualScalar>(p, Data::Integers, 1)); }
std::vector<int> clustered(const Pattern& p) { return to_host(reorder::clustered_rows(Exec(), device_of(p).view())); }
std::vector<int> nearest(const Pattern& p) { return to_host(reorder::nearest_rows(Exec(), device_of(p).view())); }

TEST(RowClusters, ScatteredNumbersComeBack) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    for (const std::uint32_t n : {i, i << 12, ~i}) {
      const std::uint32_t h = Impl::ScatteredNumber::of(n, 0x3C6EF372u);
      ASSERT_EQ(Impl::ScatteredNumber::back(h, 0x3C6EF372u), n);
    }
    seen.insert(Impl::ScatteredNumber::of(i, 0xA54FF53Au));
  }
  EXPECT_EQ(seen.size(), 20000u);
}

TEST(RowClusters, NearestIsAStableSortByFirstColumn) {
  for (const Pattern& p : cases()) {
    std::vector<int> first(static_cast<std::size_t>(p.rows)), expected = natural(p);
    for (std::int64_t i = 0; i < p.rows; ++i) {
      int least = std::numeric_limits<int>::max();
      for (auto k = p.row_map[i]; k < p.row_map[i + 1]; ++k) least = std::min(least, p.entries[k]);
      first[static_cast<std::size_t>(i)] = least;
    }
    std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return first[a] < first[b]; });
    EXPECT_EQ(nearest(p), expected) << p.rows << " x " << p.cols;
  }
}

/// By signatures of column blocks, as clustered_rows says.
std::vector<int> by_formula(const Pattern& p, int block) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::vector<Key> keys;
  for (std::int64_t i = 0; i < p.rows; ++i) {
    Key key{~0u, ~0u, ~0u};
    std::uint32_t one = ~0u, two = ~0u;
    for (auto k = p.row_map[i]; k < p.row_map[i + 1]; ++k) {
      const auto c = static_cast<std::uint32_t>(p.entries[k]), b = static_cast<std::uint32_t>(p.entries[k] / block);
      const std::uint32_t h = Impl::ScatteredNumber::of(b, 0x3C6EF372u), g = Impl::ScatteredNumber::of(b, 0xA54FF53Au);
      if (h <= one) one = h, std::get<0>(key) = b;
      if (g <= two) two = g, std::get<1>(key) = b;
      std::get<2>(key) = std::min(std::get<2>(key), c);
    }
    keys.push_back(key);
  }
  std::vector<int> order = natural(p);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}
std::vector<int> clustered(const Pattern& p, const reorder::ClusteredRowsOptions& options) {
  return to_host(reorder::clustered_rows(Exec(), device_of(p).view(), options));
}

TEST(RowClusters, ClustersAreThoseOfTheFormula) {
  for (const Pattern& p : cases()) {
    const std::vector<int> order = clustered(p);
    EXPECT_EQ(order, by_formula(p, 1)) << p.rows << " x " << p.cols;
    EXPECT_EQ(order, clustered(p));
    for (const int block : {1, 3, 16, 1000000}) {
      EXPECT_EQ(clustered(p, {block, 0}), by_formula(p, block)) << p.rows << " x " << p.cols << ", blocks of " << block;
    }
  }
}

/// The share of 16 signatures that rows a and b have in common.
double estimate(const Pattern& p, int a, int b, int block) {
  int equal = 0;
  for (std::uint32_t k = 0; k < 16; ++k) {
    std::uint32_t least[2] = {~0u, ~0u};
    for (const int side : {0, 1}) {
      const int row = side == 0 ? a : b;
      for (auto e = p.row_map[row]; e < p.row_map[row + 1]; ++e) {
        const auto what = static_cast<std::uint32_t>(p.entries[static_cast<std::size_t>(e)] / block);
        least[side] = std::min(least[side], Impl::ScatteredNumber::of(what, 0x1F83D9ABu + 0x5BE0CD19u * k));
      }
    }
    equal += least[0] == least[1];
  }
  return equal / 16.0;
}

TEST(RowClusters, RowsThatAreLikeNoNeighbourStandBehind) {
  std::vector<Pattern> all = cases();
  all.push_back(shuffled_rows(generate("fem:nx=4:ny=3:nz=3:cavities=1")));
  bool moved = false;
  for (const Pattern& p : all) {
    for (const int block : {1, 16}) {
      const std::vector<int> before = by_formula(p, block);
      for (const double least : {0.05, 0.5, 1.0}) {
        std::vector<int> expected, behind;
        for (std::size_t i = 0; i < before.size(); ++i) {
          const int row = before[i];
          const bool empty = p.row_map[row] == p.row_map[row + 1];
          const bool left = i > 0 && estimate(p, before[i - 1], row, block) >= least;
          const bool right = i + 1 < before.size() && estimate(p, row, before[i + 1], block) >= least;
          (!empty && (left || right) ? expected : behind).push_back(row);
        }
        moved = moved || (!expected.empty() && !behind.empty());
        expected.insert(expected.end(), behind.begin(), behind.end());
        EXPECT_EQ(clustered(p, {block, least}), expected)
            << p.rows << " x " << p.cols << ", " << block << ", " << least;
      }
    }
  }
  EXPECT_TRUE(moved) << "the test's own patterns";
}

// What the least similarity is for: families of equal rows, between which rows stand that are like none. These have one
// column of a family, so that signatures alone put some of them into its windows.
TEST(RowClusters, LoneRowsLeaveTheWindowsOfClusters) {
  constexpr int families = 24, members = 8, lone = 96;
  const Pattern tidy = pattern_of_rows(families * members + lone, 4000, [](std::int64_t i, std::vector<int>& to) {
    const auto family = static_cast<int>(i < families * members ? i / members : i % families);
    if (i < families * members) {
      for (int k = 0; k < 9; ++k) to.push_back(40 * family + 3 * k);
    } else {
      to.push_back(40 * family + 3 * static_cast<int>(i % 9));
      for (int k = 0; k < 2; ++k) to.push_back(1000 + 20 * static_cast<int>(i - families * members) + 5 * k);
    }
  });
  const std::vector<int> mixing = shuffled(static_cast<int>(tidy.rows), 5);
  const Pattern p = rows_in_order(tidy, mixing);
  const auto first_rows_are_families = [&](const std::vector<int>& order) {
    return std::all_of(order.begin(), order.begin() + families * members,
                       [&](int row) { return mixing[static_cast<std::size_t>(row)] < families * members; });
  };
  const std::vector<int> plain = clustered(p), apart = clustered(p, {1, 0.9});
  EXPECT_FALSE(first_rows_are_families(plain));
  EXPECT_TRUE(first_rows_are_families(apart));
  // Families are then the windows, each with its 9 columns.
  const std::vector<int> ahead(apart.begin(), apart.begin() + families * members);
  EXPECT_EQ(fetched(p, ahead, members), families * 9);
  EXPECT_LT(fetched(p, apart, members), fetched(p, plain, members));
}

TEST(RowClusters, RefuseOptionsOutOfRange) {
  const Device A = device_of(generate("diagonal"));
  for (const reorder::ClusteredRowsOptions& o :
       {reorder::ClusteredRowsOptions{0, 0}, {-1, 0}, {1, -0.1}, {1, 1.1}, {1, std::nan("")}}) {
    EXPECT_THROW(reorder::clustered_rows(Exec(), A.view(), o), InvalidArgument);
  }
}

TEST(RowClusters, ShuffledBlocksComeTogether) {
  for (const int height : {8, 16, 24}) {
    const Pattern p = shuffled_rows(blocks_of_rows(64, height, 11));
    const std::int64_t before = fetched(p, natural(p), 8), after = fetched(p, clustered(p), 8);
    EXPECT_EQ(after, 64 * (height / 8) * 11);
    EXPECT_GE(before, 2 * after);
  }
  const Pattern mesh = shuffled_rows(generate("fem:nx=7:ny=6:nz=5:cavities=1"));
  EXPECT_GE(fetched(mesh, natural(mesh), 8), 2 * fetched(mesh, clustered(mesh), 8));
  EXPECT_GE(fetched(mesh, natural(mesh), 8), 2 * fetched(mesh, nearest(mesh), 8));
}

// Where all windows are looked at and none is heavy, the sample is the count.
TEST(RowClusters, CountOfFetchedRows) {
  for (const Pattern& p : cases()) {
    if (p.entries.empty()) continue;
    const Device A = device_of(p);
    const auto order = reorder::clustered_rows(Exec(), A.view());
    for (const int height : {8, 16}) {
      const double own = Impl::fetched_share(Exec(), A.view(), height, {}, nullptr),
                   other = Impl::fetched_share(Exec(), A.view(), height, order, nullptr);
      const auto nnz = static_cast<double>(p.entries.size());
      const double tolerance =
          heaviest(p, natural(p), height) > 1024 || heaviest(p, to_host(order), height) > 1024 ? 0.1 : 1e-12;
      EXPECT_NEAR(own, static_cast<double>(fetched(p, natural(p), height)) / nnz, tolerance) << p.rows;
      EXPECT_NEAR(other, static_cast<double>(fetched(p, to_host(order), height)) / nnz, tolerance) << p.rows;
    }
  }
}

TEST(RowClusters, AutoTakesClustersWhereTheySave) {
  const auto chosen = [](const Pattern& p, RowReordering wanted) {
    return Impl::choose_row_order(Exec(), device_of(p).view(), 8, wanted, nullptr);
  };
  const Pattern blocks = blocks_of_rows(64, 8, 11), mixed = shuffled_rows(blocks);
  // First columns serve as well as clusters, and are preferred; where they say nothing, clusters are taken.
  EXPECT_EQ(to_host(chosen(mixed, RowReordering::Auto).order), nearest(mixed));
  const Pattern marked = marked_rows(mixed);
  const auto by_cluster = chosen(marked, RowReordering::Auto);
  EXPECT_EQ(to_host(by_cluster.order), clustered(marked)) << by_cluster.note;
  EXPECT_NE(by_cluster.note.find("rows clustered:"), std::string::npos) << by_cluster.note;
  for (const Pattern& p : {blocks, generate("stencil2d:nx=61:ny=53"), generate("diagonal"), generate("dense"),
                           generate("empty"), generate("empty:rows=0:cols=5"), generate("dense:rows=3:cols=4001"),
                           generate("fem:nx=7:ny=6:nz=5:cavities=1")}) {
    const auto r = chosen(p, RowReordering::Auto);
    EXPECT_EQ(r.order.extent(0), 0u) << r.note;
    EXPECT_EQ(r.note.find("rows in their own order"), 0u) << r.note;
  }
  EXPECT_EQ(chosen(mixed, RowReordering::None).order.extent(0), 0u);
  EXPECT_EQ(chosen(mixed, RowReordering::None).note, "");
  EXPECT_EQ(to_host(chosen(blocks, RowReordering::Nearest).order), natural(blocks));
  EXPECT_EQ(to_host(chosen(mixed, RowReordering::Clusters).order), clustered(mixed));
}

template <class Suite_>
class ReorderedSpmm : public ::testing::Test {
 protected:
  using Suite = Suite_;
  /// Emulated units of these types: panels, and FlashSparse where it has kernels.
  template <class F>
  static void units(const F& f) {
    constexpr Backend backend = Backend::EmulatedNvidia;
    constexpr bool floats = std::is_same_v<typename Suite::AType, float>;
    for (const SpmmAlgorithm algorithm : {SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse}) {
      if (algorithm == SpmmAlgorithm::FlashSparse ? std::is_same_v<typename Suite::AType, double> : floats) continue;
      SCOPED_TRACE(to_string(algorithm));
      Suite suite{backend, algorithm, floats ? ComputeType::TF32 : ComputeType::Auto};
      f(suite);
    }
  }
  static void each(void (*f)(Suite&)) {
    units([&](Suite& suite) {
      for (const RowReordering r : {RowReordering::Auto, RowReordering::Nearest, RowReordering::Clusters}) {
        SCOPED_TRACE("reordering " + std::to_string(static_cast<int>(r)));
        suite.options.reordering = r;
        f(suite);
      }
    });
  }
  static Pattern mixed() { return shuffled_rows(generate("every_length:longest=70:cols=90")); }
  static Pattern blocks() { return shuffled_rows(blocks_of_rows(20, 16, 11)); }
  /// What a plan says of itself, and its vectors.
  static std::tuple<Statistics, long long> plan_of(const Suite& suite, const Pattern& p) {
    const typename Suite::Device device(suite.matrix(p, Data::Integers, 1));
    const Statistics s = typename Suite::Plan(Exec(), device.view(), suite.options).statistics();
    const auto vectors =
        std::find_if(s.classes.begin(), s.classes.end(), [](const ClassShare& c) { return c.name == "vectors"; });
    return {s, vectors == s.classes.end() ? -1 : vectors->rows};
  }
};

#ifdef TESSERA_TEST_FEWER_TYPES
using ReorderedSuites = ::testing::Types<SpmmSuite<Exec, half_t>>;
#else
using ReorderedSuites = ::testing::Types<SpmmSuite<Exec, double>, SpmmSuite<Exec, half_t>, SpmmSuite<Exec, float>>;
#endif
TYPED_TEST_SUITE(ReorderedSpmm, ReorderedSuites);

TYPED_TEST(ReorderedSpmm, EveryShape) {
  this->units([](TypeParam& suite) {
    suite.options.reordering = RowReordering::Clusters;
    suite.every_shape({9});
  });
}
TYPED_TEST(ReorderedSpmm, Widths) {
  this->each([](TypeParam& suite) {
    suite.every_width(TestFixture::mixed(), {1, 33});
    suite.every_width(TestFixture::blocks(), {20});
  });
}
TYPED_TEST(ReorderedSpmm, SplitWindows) {
  this->each([](TypeParam& suite) {
    suite.options.panels.max_blocks = 1;
    suite.options.flash.max_blocks = 1;
    suite.every_width(TestFixture::mixed(), {20});
    suite.every_scaling(TestFixture::blocks(), 5);
  });
}
TYPED_TEST(ReorderedSpmm, TransposedProductAndNewValues) {
  this->each([](TypeParam& suite) {
    suite.transposed_product_and_new_values(TestFixture::mixed(), 13);
    suite.transposed_product_and_new_values(TestFixture::blocks(), 13);
  });
}
TYPED_TEST(ReorderedSpmm, Deterministic) {
  this->each([](TypeParam& suite) { suite.deterministic(TestFixture::mixed(), 12); });
}
TYPED_TEST(ReorderedSpmm, NoAllocation) {
  this->each([](TypeParam& suite) { suite.no_allocation(TestFixture::blocks(), 12); });
}
TYPED_TEST(ReorderedSpmm, StatisticsSayWhatWasDone) {
  const auto reordered = [](const Statistics& s) {
    return std::any_of(s.classes.begin(), s.classes.end(),
                       [](const ClassShare& c) { return c.name == "rows reordered"; });
  };
  this->units([&](TypeParam& suite) {
    const auto [none, vectors] = this->plan_of(suite, this->blocks());
    EXPECT_FALSE(reordered(none));
    suite.options.reordering = RowReordering::Auto;
    const auto [chosen, fewer] = this->plan_of(suite, this->blocks());
    EXPECT_TRUE(reordered(chosen));
    EXPECT_NE(chosen.why.find("rows by first column:"), std::string::npos) << chosen.why;
    EXPECT_GE(vectors, 2 * fewer);
    const auto [band, band_vectors] = this->plan_of(suite, generate("stencil2d:nx=61:ny=53"));
    EXPECT_FALSE(reordered(band));
    EXPECT_GT(band_vectors, 0);
    EXPECT_NE(band.why.find("rows in their own order:"), std::string::npos) << band.why;
  });
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
