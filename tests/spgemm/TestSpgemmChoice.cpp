// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Auto by its models: trees, the network, and what happens where there is no room for what they want.

#include <gtest/gtest.h>

#include <set>

#include "support/Tessera_TestSpgemm.hpp"
#include "support/Tessera_TestSpgemmNet.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

class SpgemmChoice : public ::testing::Test {
 protected:
  using Matrix = HostMatrix<double, int>;
  using Device = DeviceMatrix<Exec, double, int>;
  using Plan = SpgemmPlan<Device::Csr>;

  static Impl::SpgemmVerdict verdict(const Device& a, SpgemmModel model) {
    const auto A = Impl::pattern_of(a.view());
    const Plan plan(Exec(), a.view(), a.view(), SpgemmOptions());
    return Impl::spgemm_decide(Exec(), A, A, plan.products(), model, nullptr);
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  static constexpr const char* products[] = {"stencil2d:nx=90:ny=80",
                                             "stencil3d:nx=9:ny=8:nz=7:points=27",
                                             "diagonals:n=4000:count=9:reach=300:missing=0.4",
                                             "fem:nx=6:ny=5:nz=4",
                                             "rmat:scale=10:degree=8",
                                             "uniform:rows=3000:cols=3000:per_row=4",
                                             "random:rows=90000:cols=90000:mean=0.4:lengths=geometric",
                                             "dense:rows=162:cols=162"};
};
constexpr const char* SpgemmChoice::products[];

TEST_F(SpgemmChoice, ATreeIsWalkedAndSaysHow) {
  using Impl::SpgemmTreeNode;
  const SpgemmTreeNode tree[] = {{Impl::SpgemmDiaWork, 3.5, 1, 2, SpgemmAlgorithm::Auto},
                                 {-1, 0, 0, 0, SpgemmAlgorithm::Dia},
                                 {Impl::SpgemmCompression, 1.25, 3, 4, SpgemmAlgorithm::Auto},
                                 {-1, 0, 0, 0, SpgemmAlgorithm::Hash},
                                 {-1, 0, 0, 0, SpgemmAlgorithm::Spa}};
  std::set<int> asked;
  const auto with = [&](double work, double compression, double& most) {
    asked.clear();
    return Impl::spgemm_walk(
        tree,
        [&](int feature) {
          asked.insert(feature);
          return feature == Impl::SpgemmDiaWork ? work : compression;
        },
        most);
  };
  double most = 99;
  EXPECT_EQ(with(3.5, 1, most).algorithm, SpgemmAlgorithm::Dia) << "at most";
  EXPECT_EQ(most, 3.5);
  EXPECT_EQ(asked.count(Impl::SpgemmCompression), 0u) << "what is not asked for is not counted";
  most = 99;
  EXPECT_EQ(with(4, 1, most).algorithm, SpgemmAlgorithm::Hash);
  EXPECT_EQ(most, 99);
  EXPECT_EQ(with(4, 2, most).why, "spa by DIA work 4 > 3.5, compression 2 > 1.25");
}

TEST_F(SpgemmChoice, AutoIsWhatTheModelSays) {
  for (const SpgemmModel model : {SpgemmModel::Tree, SpgemmModel::MatNet}) {
    for (const char* spec : products) {
      SCOPED_TRACE(spec);
      const Device a(make_matrix<double, int>(spec, Data::Integers, 1));
      SpgemmOptions options;
      options.model = model;
      const Plan plan(Exec(), a.view(), a.view(), options);
      const Impl::SpgemmVerdict wanted = verdict(a, model);
      const std::string why = plan.statistics().why;
      EXPECT_TRUE(contains(why, wanted.why)) << why << "\nwithout\n" << wanted.why;
      if (!contains(why, "but")) {
        EXPECT_EQ(plan.options().algorithm, wanted.algorithm) << why;
      }
      EXPECT_EQ(contains(why, "MatNet"), model == SpgemmModel::MatNet && plan.products() >= Impl::spgemm_least_for_net);
    }
  }
}

TEST_F(SpgemmChoice, ProductsByMatNetAreRight) {
  SpgemmOptions options;
  options.model = SpgemmModel::MatNet;
  const auto A = make_matrix<double, int>("dense:rows=162:cols=162", Data::Integers, 1);
  const Device a(A);
  const std::string why = Plan(Exec(), a.view(), a.view(), options).statistics().why;
  EXPECT_TRUE(contains(why, "MatNet")) << why;
  expect_product(A, A, multiply<Exec>(A, A, options), true);
}

TEST_F(SpgemmChoice, FewProductsHaveNone) {
  const Device a(make_matrix<double, int>("stencil2d:nx=10:ny=10", Data::Integers, 1));
  EXPECT_TRUE(contains(Plan(Exec(), a.view(), a.view()).statistics().why, "too few"));
  // But sizes: an array of all columns of C takes longer than the sums.
  const Device left(make_matrix<double, int>("uniform:rows=40:cols=200:per_row=3", Data::Integers, 1));
  const Device right(make_matrix<double, int>("uniform:rows=200:cols=2000000:per_row=5", Data::Integers, 2));
  const Plan wide(Exec(), left.view(), right.view());
  EXPECT_LT(wide.workspace_bytes(), std::size_t{1} << 20) << wide.statistics().why;
}

// Whatever the model wants.
TEST_F(SpgemmChoice, ACapIsStronger) {
  for (const char* spec : products) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<double, int>(spec, Data::Integers, 1);
    const Device a(A);
    SpgemmOptions options;
    options.algorithm = SpgemmAlgorithm::Hash;
    const std::size_t each =
        Plan(Exec(), a.view(), a.view(), options).workspace_bytes() / static_cast<std::size_t>(Exec().concurrency());
    options.algorithm = SpgemmAlgorithm::Auto;
    options.max_workspace_bytes = std::max<std::size_t>(each, 16 * static_cast<std::size_t>(A.cols));
    const Plan plan(Exec(), a.view(), a.view(), options);
    EXPECT_LE(plan.workspace_bytes(), options.max_workspace_bytes);
  }
}

// Diagonals that a sample does not see: where they make DIA a bad choice, it is not taken.
TEST_F(SpgemmChoice, DiagonalsOutsideTheSampleCount) {
  const int n = 60000;
  const auto with_dense_place = [&](int from, int rows) {
    return pattern_of_rows(n, n, [=](std::int64_t i, std::vector<int>& to) {
      const int r = static_cast<int>(i);
      for (int j = std::max(0, r - 1); j <= std::min(n - 1, r + 1); ++j) to.push_back(j);
      if (r >= from && r < from + rows) to.push_back(r + 2 + 601 * (r - from));
    });
  };
  const Device clean(make_matrix<double, int>(with_dense_place(0, 0), Data::Integers, 1));
  ASSERT_EQ(verdict(clean, SpgemmModel::Tree).algorithm, SpgemmAlgorithm::Dia);
  EXPECT_EQ(Plan(Exec(), clean.view(), clean.view()).options().algorithm, SpgemmAlgorithm::Dia);
  // Pieces of the sample are 256 of every 2812 entries: rows 300 to 360 are entries 900 to 1140.
  const Device hidden(make_matrix<double, int>(with_dense_place(300, 60), Data::Integers, 1));
  ASSERT_EQ(verdict(hidden, SpgemmModel::Tree).algorithm, SpgemmAlgorithm::Dia) << "the sample saw them";
  const Plan plan(Exec(), hidden.view(), hidden.view());
  EXPECT_NE(plan.options().algorithm, SpgemmAlgorithm::Dia);
  EXPECT_TRUE(contains(plan.statistics().why, "63 diagonals of A")) << plan.statistics().why;
}

// What JAX gave when the network was trained. Its inputs were written with six digits; sums of at most 256 products
// have another order here, in five layers one after the other: 5 x 256 x 2^-24, and as much again by the inputs.
TEST_F(SpgemmChoice, TheNetworkGivesWhatItsTrainerGot) {
  for (const SpgemmNetCase& wanted : spgemm_net_cases) {
    SCOPED_TRACE(wanted.matrix);
    const Device a(make_matrix<double, int>(wanted.matrix, Data::Integers, 1));
    const auto f = spgemm_features(Exec(), a.view(), DiagonalsCounted::Few);
    const auto features = Impl::spgemm_feature_vector(f, f, Plan(Exec(), a.view(), a.view()).products(),
                                                      spgemm_compression(Exec(), a.view(), a.view()));
    const auto levels = Impl::spgemm_image_levels(spgemm_image(Exec(), a.view()).density);
    const auto shares = Impl::spgemm_net(Impl::spgemm_net_host, levels, levels, features);
    ASSERT_EQ(shares.size(), sizeof(wanted.shares) / sizeof(*wanted.shares));
    float sum = 0;
    for (std::size_t m = 0; m < shares.size(); ++m) {
      EXPECT_NEAR(shares[m], wanted.shares[m], 2 * 5 * 256 / 16777216.0) << m;
      sum += shares[m];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    // Two images, of which the second is another vector with the same numbers.
    const auto copy = levels;
    EXPECT_EQ(Impl::spgemm_net(Impl::spgemm_net_host, levels, copy, features), shares);
  }
}

}  // namespace Testing
}  // namespace Tessera
