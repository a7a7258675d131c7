// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention calls that must be refused: which exception, what its message says, and that results are as they were. What
// Auto takes, and what a plan says of itself.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "attention/AttentionSuite.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

class BadAttentionCalls : public ::testing::Test {
 protected:
  using Dense = Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  using Batch = Kokkos::View<double***, Kokkos::LayoutRight, DeviceOf<Exec>>;
  using Vector = DeviceVector<Exec, double>;
  using Matrix = DeviceMatrix<Exec, double, int>;
  using Plan = AttentionPlan<Matrix::Csr>;

  template <class Error>
  void expect(const std::vector<std::string>& parts, const std::function<void()>& call) {
    Kokkos::deep_copy(o, 7);
    Kokkos::deep_copy(lse, 7);
    Kokkos::deep_copy(d_q, 7);
    try {
      call();
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what() << " has no '" << part << "'";
      }
    }
    for (std::size_t i = 0; i < rows; ++i) {
      EXPECT_TRUE(o(i, 0) == 7 && lse(i) == 7 && d_q(i, 0) == 7) << "a result was written";
    }
  }
  static AttentionOptions with(AttentionValues values, bool backward) {
    AttentionOptions options;
    options.values = values;
    options.prepare_backward = backward;
    return options;
  }

  Pattern pattern = pattern_of_lengths({3, 0, 7, 1, 40, 2, 2, 2, 5, 9, 1}, 29);
  Matrix A{make_matrix<double, int>(pattern, Data::Integers, 1)};
  static constexpr std::size_t rows = 11, cols = 29, nnz = 72;
  Dense q{"q", rows, 5}, k{"k", cols, 5}, v{"v", cols, 6}, o{"o", rows, 6}, d_o{"d_o", rows, 6};
  Dense d_q{"d_q", rows, 5}, d_k{"d_k", cols, 5}, d_v{"d_v", cols, 6};
  Vector lse{"lse", rows}, d_values{"d_values", nnz};
  Plan plan{Exec(), A.view(), with(AttentionValues::None, true)};
};

TEST_F(BadAttentionCalls, Extents) {
  const Dense other("other", 28, 5), narrow("narrow", rows, 4), wide_o("o", rows, 7);
  const Vector few("few", rows - 1);
  expect<DimensionMismatch>({"Q is 28 x 5", "11 x 5"}, [&] { plan.apply(Exec(), 1, other, k, v, o); });
  expect<DimensionMismatch>({"K is 29 x 5", "29 x 4"}, [&] { plan.apply(Exec(), 1, narrow, k, v, o); });
  expect<DimensionMismatch>({"V is 28 x 5", "29 x 5"}, [&] { plan.apply(Exec(), 1, q, k, other, o); });
  expect<DimensionMismatch>({"O is 11 x 7", "11 x 6"}, [&] { plan.apply(Exec(), 1, q, k, v, wide_o); });
  expect<DimensionMismatch>({"log-sum-exp", "10", "11"}, [&] { plan.apply(Exec(), 1, q, k, v, o, few); });
  const auto back = [&](const Dense& dq, const Dense& dk, const Dense& dv) {
    plan.backward(Exec(), 1, q, k, v, o, lse, d_o, dq, dk, dv);
  };
  expect<DimensionMismatch>({"dQ is 29 x 5"}, [&] { back(d_k, d_k, d_v); });
  expect<DimensionMismatch>({"dK is 11 x 5"}, [&] { back(d_q, d_q, d_v); });
  expect<DimensionMismatch>({"dV is 29 x 5"}, [&] { back(d_q, d_k, d_k); });
}
TEST_F(BadAttentionCalls, Heads) {
  const Batch qs("q", 2, rows, 5), ks("k", 2, cols, 5), vs("v", 2, cols, 6), os("o", 2, rows, 6), one("k", 1, cols, 5);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> three("lse", 3, rows);
  expect<DimensionMismatch>({"K is 29 x 5 with 1 heads", "with 2"}, [&] { plan.apply(Exec(), 1, qs, one, vs, os); });
  expect<DimensionMismatch>({"log-sum-exp", "3 heads", "2"}, [&] { plan.apply(Exec(), 1, qs, ks, vs, os, three); });
  const Batch no_q("q", 0, rows, 5), no_k("k", 0, cols, 5), no_v("v", 0, cols, 6), no_o("o", 0, rows, 6);
  EXPECT_NO_THROW(plan.apply(Exec(), 1, no_q, no_k, no_v, no_o));
}
TEST_F(BadAttentionCalls, Overlap) {
  const Dense all("all", rows, 16);
  const auto columns = [&](int from, int to) { return Kokkos::subview(all, Kokkos::ALL(), std::make_pair(from, to)); };
  expect<InvalidArgument>({"O and Q overlap"}, [&] { plan.apply(Exec(), 1, columns(0, 5), k, v, columns(4, 10)); });
  EXPECT_NO_THROW(plan.apply(Exec(), 1, columns(0, 5), k, v, columns(5, 11)));
  expect<InvalidArgument>({"log-sum-exp", "overlap"},
                          [&] { plan.apply(Exec(), 1, q, k, v, o, Kokkos::subview(o, Kokkos::ALL(), 2)); });
  expect<InvalidArgument>({"dQ and an operand", "overlap"},
                          [&] { plan.backward(Exec(), 1, q, k, v, o, lse, d_o, q, d_k, d_v); });
  const Dense same("same", cols, 9);
  const auto left = Kokkos::subview(same, Kokkos::ALL(), std::make_pair(0, 5));
  const auto right = Kokkos::subview(same, Kokkos::ALL(), std::make_pair(3, 9));
  expect<InvalidArgument>({"dK and dV overlap"},
                          [&] { plan.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, left, right); });
  const Plan biased(Exec(), A.view(), with(AttentionValues::Bias, true));
  const Vector both("both", rows + nnz - 1);
  const auto first = Kokkos::subview(both, std::make_pair(std::size_t{0}, rows));
  const auto last = Kokkos::subview(both, std::make_pair(rows - 1, rows - 1 + nnz));
  expect<InvalidArgument>({"gradient of values and the log-sum-exp overlap"},
                          [&] { biased.backward(Exec(), 1, q, k, v, o, first, d_o, d_q, d_k, d_v, last); });
  const auto before = to_host(A.values);
  expect<InvalidArgument>({"gradient of values and the values overlap"},
                          [&] { biased.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, d_k, d_v, A.values); });
  EXPECT_EQ(to_host(A.values), before);
}
TEST_F(BadAttentionCalls, Null) {
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const auto null = [](std::size_t m, std::size_t n) {
    return Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>, Unmanaged>(nullptr, m, n);
  };
  const Kokkos::View<double*, DeviceOf<Exec>, Unmanaged> no_lse(nullptr, rows);
  expect<InvalidArgument>({"Q has elements", "null"}, [&] { plan.apply(Exec(), 1, null(rows, 5), k, v, o); });
  expect<InvalidArgument>({"V has elements", "null"}, [&] { plan.apply(Exec(), 1, q, k, null(cols, 6), o); });
  expect<InvalidArgument>({"O has elements", "null"}, [&] { plan.apply(Exec(), 1, q, k, v, null(rows, 6)); });
  expect<InvalidArgument>({"log-sum-exp has elements", "null"}, [&] { plan.apply(Exec(), 1, q, k, v, o, no_lse); });
  expect<InvalidArgument>({"dK has elements", "null"},
                          [&] { plan.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, null(cols, 5), d_v); });
}
TEST_F(BadAttentionCalls, BackwardAsPrepared) {
  const Plan forward(Exec(), A.view(), with(AttentionValues::Bias, false));
  expect<NotSupported>({"prepare_backward"}, [&] { forward.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, d_k, d_v); });
  expect<InvalidArgument>({"values", "no gradient"},
                          [&] { plan.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, d_k, d_v, d_values); });
  const Plan biased(Exec(), A.view(), with(AttentionValues::Bias, true));
  const Vector few("few", nnz - 1);
  expect<DimensionMismatch>({"gradient of values", "71", "72"},
                            [&] { biased.backward(Exec(), 1, q, k, v, o, lse, d_o, d_q, d_k, d_v, few); });
}
TEST_F(BadAttentionCalls, Options) {
  AttentionOptions options;
  options.dimension_hint = -1;
  expect<InvalidArgument>({"dimension_hint", "-1"}, [&] { Plan(Exec(), A.view(), options); });
  options = {};
  options.window_height = 3;
  expect<InvalidArgument>({"window_height", "3"}, [&] { Plan(Exec(), A.view(), options); });
  options = {};
  for (const ComputeType compute : {ComputeType::FP32, ComputeType::TF32, ComputeType::FP16_FP32}) {
    options.compute = compute;
    expect<NotSupported>({"fp64", "convert"}, [&] { Plan(Exec(), A.view(), options); });
  }
  options = {};
  options.algorithm = AttentionAlgorithm::Fused;
  options.backend = Backend::EmulatedNvidia;
  options.fallback = false;
  expect<NotSupported>({"Fused", "emulated-nvidia", "fallback"}, [&] { Plan(Exec(), A.view(), options); });
  options.fallback = true;
  const Statistics s = Plan(Exec(), A.view(), options).statistics();
  EXPECT_EQ(s.algorithm, "chain");
  EXPECT_TRUE(s.fallback_taken);
}
TEST_F(BadAttentionCalls, Updates) {
  AttentionOptions frozen;
  frozen.updatable = false;
  Plan fixed(Exec(), A.view(), frozen);
  expect<StalePlan>({"updatable"}, [&] { fixed.update_values(Exec(), A.view().values()); });
  const Matrix other(make_matrix<double, int>(pattern, Data::Integers, 2));
  expect<StalePlan>({"pattern"}, [&] { plan.update_values(Exec(), other.view()); });
}

class AttentionChoices : public BadAttentionCalls {
 protected:
  Statistics of(const AttentionOptions& options) { return Plan(Exec(), A.view(), options).statistics(); }
  ~AttentionChoices() override { unsetenv("TESSERA_FORCE_ATTENTION_ALGORITHM"); }
};
TEST_F(AttentionChoices, HostsFuseWhatIsNear) {
  const Statistics s = of({});
  EXPECT_EQ(s.operation, "attention");
  EXPECT_EQ(s.algorithm, "fused");
  EXPECT_EQ(s.backend, "kokkos");
  EXPECT_FALSE(s.transpose_prepared);
  EXPECT_FALSE(s.why.empty());
}
/// Rows that use or reach across more of K and V than caches keep go by Chain, unless operands are of 16 bits.
TEST(AttentionRules, WhatCachesDoNotKeepGoesByChain) {
  SpmmFeatures f;
  f.rows = f.cols = 1000000;
  for (const double reach : {10.0, 1000.0, 1e6}) {
    for (const double mean : {5.0, 500.0}) {
      for (const std::size_t bytes : {2, 4, 8}) {
        f.reach = reach;
        f.mean = mean;
        Impl::AttentionChoice choice;
        Impl::predict_attention(choice, f, 64, bytes);
        const bool far = (reach == 1e6 || mean == 500) && bytes > 2;
        EXPECT_EQ(choice.algorithm, far ? AttentionAlgorithm::Chain : AttentionAlgorithm::Fused)
            << reach << ' ' << mean << ' ' << bytes;
        ASSERT_EQ(choice.candidates.size(), 2u);
        EXPECT_EQ(choice.candidates[0].algorithm, choice.algorithm);
        EXPECT_LE(choice.candidates[0].cost, choice.candidates[1].cost);
      }
    }
  }
}
/// Consecutive entries that name rows all over a large K and V go by Chain, also where each row has but one entry, and
/// 16-bit operands; so does, but in 16 bits, a row that is most of the work, which reads all of K and V.
TEST(AttentionRules, WhatIsScatteredOrOneRowGoesByChain) {
  SpmmFeatures f;
  f.rows = f.nnz = 200000;
  f.cols = 300000;
  f.reach = f.mean = 1;
  const auto chosen = [&f](std::size_t bytes, bool scattered) {
    Impl::AttentionChoice choice;
    Impl::predict_attention(choice, f, 64, bytes, scattered);
    return choice.algorithm;
  };
  for (const std::size_t bytes : {2, 4, 8}) {
    f.longest = 1;
    EXPECT_EQ(chosen(bytes, false), AttentionAlgorithm::Fused) << bytes;
    EXPECT_EQ(chosen(bytes, true), AttentionAlgorithm::Chain) << bytes;
    f.longest = 200000;  // as much as all others
    EXPECT_EQ(chosen(bytes, false), AttentionAlgorithm::Fused) << bytes;
    f.longest = 200001;
    EXPECT_EQ(chosen(bytes, false), bytes == 2 ? AttentionAlgorithm::Fused : AttentionAlgorithm::Chain) << bytes;
  }
}
/// What consecutive entries name tells a diagonal from rows of one entry in any column; a small K and V is near.
TEST_F(AttentionChoices, ScatteredIsWhatEntriesNameAllOver) {
  constexpr std::int64_t n = 20000;
  const auto chosen = [](std::int64_t step, std::int64_t columns) {
    const Pattern p = pattern_of_rows(n, columns, [&](std::int64_t row, std::vector<int>& to) {
      to.push_back(static_cast<int>(step * row % columns));
    });
    const Matrix other(make_matrix<double, int>(p, Data::Integers, 1));
    const Plan plan(Exec(), other.view());
    EXPECT_EQ(Impl::scattered_over_operands(other.view(), 64), plan.statistics().algorithm == "chain");
    return plan.statistics().algorithm;
  };
  EXPECT_EQ(chosen(1, n), "fused");
  EXPECT_EQ(chosen(7919, n), "chain");
  EXPECT_EQ(chosen(7919, 3000), "fused");  // 3.1 MB of K and V
}
// Long rows of K and V hide what scores cost the chain. 16 bits are fused in any case.
TEST(AttentionRules, UnitsOf32BitsWantAGain) {
  SpmmFeatures f;
  f.rows = f.cols = 100000;
  f.g8 = f.g16 = 1;
  const auto chosen = [&f](std::int64_t nnz, int columns, Precision precision) {
    Impl::AttentionChoice choice;
    choice.precision = precision;
    choice.algorithm = AttentionAlgorithm::Fused;
    choice.candidates = {{AttentionAlgorithm::Fused, 1}, {AttentionAlgorithm::Chain, 2}};
    AttentionOptions options;
    options.dimension_hint = columns;
    f.nnz = static_cast<decltype(f.nnz)>(nnz);
    Impl::predict_attention_on_units(choice, f, options, precision == Precision::FP16 ? 2 : 4);
    EXPECT_EQ(choice.candidates[0].algorithm, choice.algorithm);
    return choice.algorithm;
  };
  for (const Precision p : {Precision::FP32, Precision::TF32}) {
    EXPECT_EQ(chosen(100000000, 128, p), AttentionAlgorithm::Chain);
    EXPECT_EQ(chosen(10000000, 64, p), AttentionAlgorithm::Chain);
    EXPECT_EQ(chosen(1000000, 64, p), AttentionAlgorithm::Fused);
    EXPECT_EQ(chosen(500000, 32, p), AttentionAlgorithm::Fused);
  }
  EXPECT_EQ(chosen(100000000, 128, Precision::FP16), AttentionAlgorithm::Fused);
}
// Windows that share nothing go by rows; those that share much are fused; long rows of FP64 go by Chain.
TEST(AttentionRules, RowsWhereNothingIsShared) {
  SpmmFeatures f;
  f.rows = f.cols = 100000;
  f.nnz = 1600000;
  const auto chosen = [&f](double shared, int columns, Precision precision, std::size_t bytes) {
    f.g8 = f.g16 = shared;
    Impl::AttentionChoice choice;
    choice.precision = precision;
    choice.candidates = {{AttentionAlgorithm::Chain, 1}, {AttentionAlgorithm::Rows, 2}};
    if (bytes == 4) choice.candidates.push_back({AttentionAlgorithm::Fused, 3});
    AttentionOptions options;
    options.dimension_hint = columns;
    Impl::predict_attention_on_units(choice, f, options, bytes);
    EXPECT_EQ(choice.candidates[0].algorithm, choice.algorithm);
    return choice.algorithm;
  };
  EXPECT_EQ(chosen(1, 64, Precision::FP32, 4), AttentionAlgorithm::Rows);
  EXPECT_EQ(chosen(8, 64, Precision::FP32, 4), AttentionAlgorithm::Fused);
  EXPECT_EQ(chosen(1, 32, Precision::FP64, 8), AttentionAlgorithm::Rows);
  EXPECT_EQ(chosen(8, 32, Precision::FP64, 8), AttentionAlgorithm::Chain);
  f.nnz = 16000000;
  EXPECT_EQ(chosen(1, 128, Precision::FP64, 8), AttentionAlgorithm::Chain);
  f.longest = 100000;
  EXPECT_EQ(chosen(1, 128, Precision::FP64, 8), AttentionAlgorithm::Rows);
  f.nnz = 1600000;
  EXPECT_EQ(chosen(1, 64, Precision::FP32, 4), AttentionAlgorithm::Fused);
}
TEST_F(AttentionChoices, BackwardKeepsTheTransposedPattern) {
  const Statistics s = of(with(AttentionValues::None, true));
  EXPECT_TRUE(s.transpose_prepared);
  EXPECT_EQ(s.map_bytes, (cols + 1) * 4 + nnz * 8);
}
TEST_F(AttentionChoices, EnvironmentAsksOptionsAreStronger) {
  setenv("TESSERA_FORCE_ATTENTION_ALGORITHM", "chain", 1);
  EXPECT_EQ(of({}).algorithm, "chain");
  AttentionOptions options;
  options.algorithm = AttentionAlgorithm::Fused;
  EXPECT_EQ(of(options).algorithm, "fused");
  setenv("TESSERA_FORCE_ATTENTION_ALGORITHM", "nonsense", 1);
  EXPECT_THROW(of({}), InvalidArgument);
}
TEST_F(AttentionChoices, MeasuredChoiceSaysWhatItMeasured) {
  AttentionOptions options;
  options.selection = Selection::Measure;
  const Statistics s = of(options);
  EXPECT_NE(s.why.find("measured"), std::string::npos) << s.why;
  EXPECT_NE(s.why.find("fused"), std::string::npos) << s.why;
  EXPECT_NE(s.why.find("chain"), std::string::npos) << s.why;
}
TEST_F(AttentionChoices, OneShot) {
  Kokkos::deep_copy(q, 0.5);
  Kokkos::deep_copy(v, 3);
  Kokkos::deep_copy(o, 7);
  attention(Exec(), 1, q, k, v, A.view(), o);
  for (std::size_t i = 0; i < rows; ++i) EXPECT_NEAR(o(i, 4), i == 1 ? 0 : 3, 1e-14) << i;
}

}  // namespace Testing
}  // namespace Tessera
