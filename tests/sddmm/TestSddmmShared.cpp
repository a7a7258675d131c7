// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM on the windows of an SpMM plan by FlashSparse, which are converted once.

#include <gtest/gtest.h>

#include <optional>

#include "Tessera_Spmm.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// Lengths from none to 70, and windows that are empty.
Pattern some_rows() { return generate("every_length:longest=70:cols=90"); }
/// Rows that repeat columns, in ascending order.
Pattern repeated_columns() {
  return pattern_of_rows(53, 40, [](std::int64_t i, std::vector<int>& to) {
    for (int j = static_cast<int>(i % 3); j < 40; j += 1 + static_cast<int>(i % 5)) {
      for (int copy = 0; copy <= (j + static_cast<int>(i)) % 3; ++copy) to.push_back(j);
    }
  });
}
Pattern nothing() {
  return pattern_of_rows(20, 9, [](std::int64_t, std::vector<int>&) {});
}

struct SharedCase {
  Backend backend;
  int vector_length;
  RowReordering order;
};
const SharedCase shared_cases[] = {{nvidia, 8, RowReordering::None},
                                   {nvidia, 16, RowReordering::None},
                                   {nvidia, 8, RowReordering::Clusters},
                                   {amd, 16, RowReordering::None},
                                   {amd, 16, RowReordering::Clusters}};

template <class T>
class SddmmShared : public ::testing::Test {
 protected:
  using Suite = SddmmSuite<Exec, T>;
  using Csr = typename Suite::Csr;
  /// FlashSparse has no products in FP32.
  static constexpr ComputeType compute = sizeof(T) == 4 ? ComputeType::TF32 : ComputeType::Auto;

  static SpmmOptions spmm(const SharedCase& c) {
    SpmmOptions options;
    options.algorithm = SpmmAlgorithm::FlashSparse;
    options.backend = c.backend;
    options.compute = compute;
    options.flash.vector_length = c.vector_length;
    options.reordering = c.order;
    options.fallback = false;
    return options;
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using SharedTypes = ::testing::Types<float, half_t>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using SharedTypes = ::testing::Types<bhalf_t>;
#else
using SharedTypes = ::testing::Types<float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(SddmmShared, SharedTypes);

// The SpMM plan may go before.
TYPED_TEST(SddmmShared, EveryInner) {
  for (const SharedCase& c : shared_cases) {
    if (!emulates(c.backend)) continue;
    SCOPED_TRACE(std::string(to_string(c.backend)) + ", windows of " + std::to_string(c.vector_length));
    const typename TestFixture::Suite suite(c.backend, SddmmAlgorithm::FlashSparse, TestFixture::compute);
    for (const Pattern& pattern : {some_rows(), repeated_columns(), nothing(), generate("rmat:scale=7:degree=9")}) {
      for (const Data data : {Data::Integers, Data::Real}) {
        const auto A = suite.matrix(pattern, data);
        const typename TestFixture::Suite::Device device(A);
        std::optional<SpmmPlan<typename TestFixture::Csr>> product;
        product.emplace(Exec(), device.view(), TestFixture::spmm(c));
        const typename TestFixture::Suite::Plan scores(Exec(), device.view(), *product, suite.options);
        product.reset();
        EXPECT_EQ(scores.options().algorithm, SddmmAlgorithm::FlashSparse);
        int turn = data == Data::Real;  // of shorter lists each k meets one layout with integers, the other with reals
        for (const int k : all_inner()) {
          const bool first = !shorter_lists || turn % 2 == 0, second = !shorter_lists || turn % 2 == 1;
          ++turn;
          if (first) suite.expect(scores, A, k, data);
          if (second) suite.template expect<AcrossRows>(scores, A, k, data, {-0.5, 1});
        }
      }
    }
  }
}

#ifndef TESSERA_TEST_FEWER_TYPES
// Row maps of 64 bits in both plans: exact on integers.
TEST(SddmmSharedPlans, OffsetsOf64Bits) {
  using Matrix = DeviceMatrix<Exec, float, std::size_t>;
  constexpr int inner = 20;
  const auto A = make_matrix<float, std::size_t>(some_rows(), Data::Integers, 1);
  const Matrix device(A);
  const auto x = numbers<float>(std::int64_t{A.rows} * inner, Data::Integers, 2),
             y = numbers<float>(std::int64_t{A.cols} * inner, Data::Integers, 3);
  const auto element = [](const std::vector<float>& v) {
    return [&v](std::int64_t i, std::int64_t k) { return v[static_cast<std::size_t>(i * inner + k)]; };
  };
  std::vector<double> wanted(static_cast<std::size_t>(A.nnz()));
  Reference::sddmm(A.rows, inner, A.row_map.data(), A.entries.data(), static_cast<const float*>(nullptr), 1.0,
                   element(x), element(y), 0.0, [&](auto e) -> double& { return wanted[static_cast<std::size_t>(e)]; });
  const Guarded<Exec, float, Kokkos::LayoutRight> dx(x, A.rows, inner, {}, std::nan("")),
      dy(y, A.cols, inner, {}, std::nan(""));
  for (const SharedCase& c : shared_cases) {
    if (!emulates(c.backend)) continue;
    SCOPED_TRACE(std::string(to_string(c.backend)) + ", windows of " + std::to_string(c.vector_length));
    SpmmOptions spmm;
    spmm.algorithm = SpmmAlgorithm::FlashSparse;
    spmm.backend = c.backend;
    spmm.compute = ComputeType::TF32;
    spmm.flash.vector_length = c.vector_length;
    spmm.reordering = c.order;
    const SpmmPlan<Matrix::Csr> product(Exec(), device.view(), spmm);
    SddmmOptions options;
    options.compute = ComputeType::TF32;
    const SddmmPlan<Matrix::Csr> scores(Exec(), device.view(), product, options);
    const DeviceVector<Exec, float> p("p", wanted.size());
    scores.apply(Exec(), dx.view(), dy.view(), p);
    Exec().fence();
    EXPECT_EQ(wide(to_host(p)), wanted);
  }
}
#endif

// Windows as a plan of its own makes them, bit for bit, in less memory.
TYPED_TEST(SddmmShared, SameBlocks) {
  const typename TestFixture::Suite suite(nvidia, SddmmAlgorithm::FlashSparse, TestFixture::compute);
  const auto A = suite.matrix(some_rows(), Data::Real);
  const typename TestFixture::Suite::Device device(A);
  const SpmmPlan<typename TestFixture::Csr> product(Exec(), device.view(), TestFixture::spmm(shared_cases[0]));
  using Blocks = Experimental::WindowBlocks<typename TestFixture::Csr::memory_space>;
  const typename TestFixture::Suite::Plan own(Exec(), device.view(), suite.options),
      shared(Exec(), device.view(), product, suite.options);
  const auto *const a = Impl::PlanAccess::format<Blocks>(own), *const b = Impl::PlanAccess::format<Blocks>(shared);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  ASSERT_EQ(a->blocks, b->blocks);
  EXPECT_EQ(a->column_vectors, b->column_vectors);
  EXPECT_LT(shared.format_bytes(), own.format_bytes());
  for (std::size_t u = 0; u < static_cast<std::size_t>(a->blocks); ++u) {
    ASSERT_EQ(a->block(u).window, b->block(u).window);
    for (int v = 0; v < a->block(u).count(); ++v) {
      ASSERT_EQ(a->columns(a->block(u).first + static_cast<std::size_t>(v)),
                b->columns(b->block(u).first + static_cast<std::size_t>(v)));
    }
    for (std::size_t r = 8 * u; r < 8 * u + 8; ++r) {
      ASSERT_EQ(a->block_rows(r).bits, b->block_rows(r).bits);
      if (a->block_rows(r).bits != 0) {
        ASSERT_EQ(a->block_rows(r).begin, b->block_rows(r).begin);
      }
    }
  }
}

template <class Error, class Make>
void expect_refusal(const char* text, const Make& make) {
  try {
    make();
    ADD_FAILURE() << "accepted: " << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(SddmmSharedPlans, Refusals) {
  using Suite = SddmmSuite<Exec, half_t>;
  using Spmm = SpmmPlan<Suite::Csr>;
  const Suite suite(nvidia, SddmmAlgorithm::FlashSparse);
  const auto A = suite.matrix(some_rows(), Data::Integers);
  const Suite::Device device(A), elsewhere(A);
  SpmmOptions flash;
  flash.algorithm = SpmmAlgorithm::FlashSparse;
  flash.backend = nvidia;
  const auto share = [&](const SpmmOptions& spmm, const SddmmOptions& options = {}) {
    Suite::Plan(Exec(), device.view(), Spmm(Exec(), device.view(), spmm), options);
  };
  share(flash);
  expect_refusal<StalePlan>("other pattern arrays", [&] {
    Suite::Plan(Exec(), device.view(), Spmm(Exec(), elsewhere.view(), flash), suite.options);
  });
  SpmmOptions other = flash;
  other.algorithm = SpmmAlgorithm::Panels;
  expect_refusal<NotSupported>("by panels, not by FlashSparse", [&] { share(other); });
  other = flash;
  other.updatable = false;
  expect_refusal<NotSupported>("updatable", [&] { share(other); });
  other = flash;
  other.flash.padded = true;
  expect_refusal<NotSupported>("padded", [&] { share(other); });
  SddmmOptions rows;
  rows.algorithm = SddmmAlgorithm::Rows;
  expect_refusal<InvalidArgument>("not rows", [&] { share(flash, rows); });
  const auto descending = suite.matrix(pattern_of_rows(9, 9,
                                                       [](std::int64_t, std::vector<int>& to) {
                                                         to.insert(to.end(), {7, 2});
                                                       }),
                                       Data::Integers);
  const Suite::Device down(descending);
  expect_refusal<NotSupported>("ascend",
                               [&] { Suite::Plan(Exec(), down.view(), Spmm(Exec(), down.view(), flash), {}); });
}

}  // namespace Testing
}  // namespace Tessera
