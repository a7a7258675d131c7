// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Y copied in TF32 at 20 bits per element: on NVIDIA's units results have the bits that they have without the copy,
// whatever K, layouts, heads and scaling; on AMD's, which multiply TF32 in FP32, those of a Y that was rounded before.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "SddmmOperands.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Suite = SddmmSuite<Exec, float>;

Suite copying(Backend backend, Tf32Copy copy, SddmmAlgorithm algorithm = SddmmAlgorithm::Panels, int height = 1) {
  Suite suite(backend, algorithm, ComputeType::TF32);
  suite.options.tf32_copy = copy;
  suite.options.window_height = height;
  return suite;
}
Pattern mixed() { return generate("every_length:longest=70:cols=90"); }

/// Numbers of which TF32 does not have all bits.
Suite::Operands operands(const HostMatrix<float>& A, int inner) {
  return {numbers<float>(std::int64_t{A.rows} * inner, Data::Real, 41),
          numbers<float>(std::int64_t{A.cols} * inner, Data::Real, 42), numbers<float>(A.nnz(), Data::Real, 43)};
}
/// Without alpha, beta and S in every form.
template <class F>
void each_scaling(const F& f) {
  for (const bool scaled : {false, true}) {
    for (const Scaling s : {Scaling{1, 0}, Scaling{2.5, -1}}) f(scaled, s);
  }
}

/// The products of two plans of the same matrix have the same bits; undefined ones may have any of NaN's.
template <class Form>
void expect_same(const Suite& one, const Suite& other, const HostMatrix<float>& A, int inner, Scaling s,
                 const Suite::Operands& o, const Suite::Operands& of_other) {
  const Suite::Device device(A);
  const Suite::Plan a(Exec(), device.view(), one.options), b(Exec(), device.view(), other.options);
  const auto x = one.product<Form>(a, A, inner, s, o), y = other.product<Form>(b, A, inner, s, of_other);
  for (std::size_t e = 0; e < x.size(); ++e) {
    const bool same = std::memcmp(&x[e], &y[e], sizeof(float)) == 0 || (std::isnan(x[e]) && std::isnan(y[e]));
    ASSERT_TRUE(same) << "entry " << e << ": " << std::hexfloat << x[e] << " and " << y[e];
  }
}
template <class Form>
void expect_same(const Suite& one, const Suite& other, const HostMatrix<float>& A, int inner, Scaling s,
                 const Suite::Operands& o) {
  expect_same<Form>(one, other, A, inner, s, o, o);
}

TEST(SddmmCopy, HasTheBitsOfTheProductWithout) {
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  int turn = 0;
  for (const int height : {1, 2}) {
    for (const int inner : all_inner()) {
      each_scaling([&](bool scaled, Scaling s) {
        SCOPED_TRACE("K = " + std::to_string(inner) + ", windows of " + std::to_string(height) + ", scaled " +
                     std::to_string(scaled) + ", beta " + std::to_string(s.beta));
        Suite one = copying(Backend::EmulatedNvidia, Tf32Copy::Always, SddmmAlgorithm::Panels, height), other = one;
        one.options.scale_by_values = other.options.scale_by_values = scaled;
        other.options.tf32_copy = Tf32Copy::Never;
        const auto o = operands(A, inner);
        ++turn;  // with sanitizers each meets one way to lie, the next one another
        if (!fewer_cases || turn % 3 == 0) expect_same<InPlace>(one, other, A, inner, s, o);
        if (!fewer_cases || turn % 3 == 1) expect_same<AcrossRows>(one, other, A, inner, s, o);
        if (!fewer_cases || turn % 3 == 2) expect_same<Unaligned>(one, other, A, inner, s, o);
      });
    }
  }
}
// Rows of X and of the copy of a whole number of tiles, in one piece and in several.
TEST(SddmmCopy, HasTheBitsForLongRows) {
  const auto A = make_matrix<float>("rmat:scale=7:degree=6", Data::Real, 11);
  for (const int height : {1, 2}) {
    for (const int inner : {32, 48, 96, 160, 192, 256, 384, 512}) {
      SCOPED_TRACE("K = " + std::to_string(inner) + ", windows of " + std::to_string(height));
      const Suite one = copying(Backend::EmulatedNvidia, Tf32Copy::Always, SddmmAlgorithm::Panels, height),
                  other = copying(Backend::EmulatedNvidia, Tf32Copy::Never, SddmmAlgorithm::Panels, height);
      expect_same<InPlace>(one, other, A, inner, {}, operands(A, inner));
    }
  }
}
TEST(SddmmCopy, KeepsInfiniteAndUndefinedNumbersWithTheirEntries) {
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  const Suite one = copying(Backend::EmulatedNvidia, Tf32Copy::Always),
              other = copying(Backend::EmulatedNvidia, Tf32Copy::Never);
  for (const int inner : {16, 33, 64, 128}) {
    auto o = operands(A, inner);
    const float bad[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf(""),
                         3e38f, 1e-42f};
    for (std::size_t i = 0; i < 5; ++i) {
      o.y[(7 * i + 1) * static_cast<std::size_t>(inner) + i % static_cast<std::size_t>(inner)] = bad[i];
    }
    expect_same<InPlace>(one, other, A, inner, {}, o);
    bad_numbers(one, mixed(), inner);
  }
}
TEST(SddmmCopy, OfFlashSparse) {
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  for (const int inner : {31, 64, 128}) {
    expect_same<AcrossRows>(copying(Backend::EmulatedNvidia, Tf32Copy::Always, SddmmAlgorithm::FlashSparse, 0),
                            copying(Backend::EmulatedNvidia, Tf32Copy::Never, SddmmAlgorithm::FlashSparse, 0), A, inner,
                            {2.5, -1}, operands(A, inner));
  }
}
TEST(SddmmCopy, OnAmdIsAProductOfRoundedNumbers) {
  if (!emulates(Backend::EmulatedAmd)) GTEST_SKIP() << "not emulated here";
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  for (const int height : {1, 2}) {
    for (const int inner : {1, 17, 64, 100, 128, 257}) {
      SCOPED_TRACE("K = " + std::to_string(inner) + ", windows of " + std::to_string(height));
      const auto o = operands(A, inner);
      auto rounded = o;
      for (float& v : rounded.y) v = round_to_tf32(v);
      expect_same<InPlace>(copying(Backend::EmulatedAmd, Tf32Copy::Always, SddmmAlgorithm::Panels, height),
                           copying(Backend::EmulatedAmd, Tf32Copy::Never, SddmmAlgorithm::Panels, height), A, inner, {},
                           o, rounded);
    }
  }
}
TEST(SddmmCopy, OfEveryLayoutAndOfHeads) {
  for (const Backend backend : emulated_backends()) {
    const Suite suite = copying(backend, Tf32Copy::Always);
    every_layout(suite, mixed(), {20, 32});
    for (const int inner : {13, 64}) every_batch_layout(suite, mixed(), inner, 3);
  }
}

// No room for the copy is no error; the product is then made without, and has the same bits.
TEST(SddmmCopy, NeedsRoom) {
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  const Suite::Device device(A);
  Suite one = copying(Backend::EmulatedNvidia, Tf32Copy::Always);
  const Suite other = copying(Backend::EmulatedNvidia, Tf32Copy::Never);
  const std::size_t with = Suite::Plan(Exec(), device.view(), one.options).workspace_bytes(64),
                    without = Suite::Plan(Exec(), device.view(), other.options).workspace_bytes(64);
  EXPECT_GE(with, without + static_cast<std::size_t>(A.cols) * 64 * 20 / 8);
  const DeviceVector<Exec, std::uint64_t> memory("workspace", without / 8 + 1);
  one.options.workspace = {memory.data(), without};
  expect_same<AcrossRows>(one, other, A, 64, {2.5, -1}, operands(A, 64));
}

TEST(SddmmCopy, IsReported) {
  const auto A = make_matrix<float>(mixed(), Data::Real, 11);
  const Suite::Device device(A);
  for (const Tf32Copy copy : {Tf32Copy::Auto, Tf32Copy::Never, Tf32Copy::Always}) {
    const Suite suite = copying(Backend::EmulatedNvidia, copy);
    const Statistics s = Suite::Plan(Exec(), device.view(), suite.options).statistics();
    const bool copies = copy == Tf32Copy::Always;  // 35 entries per row of Y are too few for a K of 64, as it is told
    EXPECT_EQ(s.launches, copies ? 2 : 1);
    EXPECT_EQ(s.why.find("Y is copied") != std::string::npos, copies) << s.why;
  }
  Suite fp32 = copying(Backend::EmulatedNvidia, Tf32Copy::Always);
  fp32.options.compute = ComputeType::FP32;
  EXPECT_EQ(Suite::Plan(Exec(), device.view(), fp32.options).statistics().launches, 1);
}

// The more rows of Y are fetched, the sooner a copy pays; of Rows and Panels Auto then takes Panels sooner.
TEST(SddmmCopyRules, FollowTheUsesOfY) {
  SpmmFeatures f;
  f.rows = f.cols = 100000;
  f.g8 = 1.1;
  f.g16 = 1.2;
  for (const int inner : {16, 32, 64, 128, 256, 1024}) {
    SCOPED_TRACE("K = " + std::to_string(inner));
    bool copied = false, panels = false;
    for (const double mean : {1.0, 5.0, 10.0, 20.0, 50.0, 300.0}) {
      const double nnz = mean * 1e5;
      const bool now = Impl::sddmm_copies_y(inner, nnz, nnz / f.g8, 1e5);
      EXPECT_TRUE(now || !copied) << mean;
      EXPECT_TRUE(!now || inner >= 64);
      copied = now;
      f.nnz = static_cast<std::int64_t>(nnz);
      f.mean = mean;
      SddmmOptions options;
      options.inner_hint = inner;
      Impl::SddmmChoice choice;
      choice.precision = Precision::TF32;
      Impl::predict_sddmm(choice, f, options);
      const bool taken = choice.algorithm == SddmmAlgorithm::Panels;
      EXPECT_TRUE(taken || !panels) << mean;
      panels = taken;
      options.tf32_copy = Tf32Copy::Never;
      Impl::predict_sddmm(choice, f, options);
      EXPECT_TRUE(taken || choice.algorithm == SddmmAlgorithm::Rows) << "a copy is no reason against Panels";
    }
    EXPECT_EQ(copied, inner >= 64) << "300 entries per row of Y";
  }
  EXPECT_FALSE(Impl::sddmm_copies_y(128, 0, 0, 1e5));
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
