// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Products with block matrices on hosts: plain cases first, then the emulated kernels and the host's against plain
// loops.

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/Tessera_TestBsr.hpp"
#include "support/Tessera_TestCases.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Numbers = std::vector<double>;

std::vector<Backend> host_backends() {
  std::vector<Backend> all = emulated_backends();
  all.push_back(Backend::Auto);
  return all;
}

//     [ 1 2 | . . | 5 6 ]
// A = [ 3 4 | . . | 7 8 ]    two rows and three columns of blocks of side 2
//     [ . . | 1 0 | . . ]
//     [ . . | 0 2 | . . ]
class BsrPlain : public ::testing::TestWithParam<Backend> {
 protected:
  SpmvOptions options() const {
    SpmvOptions o;
    o.backend = GetParam();
    o.prepare_transpose = true;
    return o;
  }
  DeviceVector<Exec, int> row_map = to_device<Exec>(std::vector<int>{0, 2, 3}),
                          columns = to_device<Exec>(std::vector<int>{0, 2, 1});
  DeviceVector<Exec, double> values = to_device<Exec>(Numbers{1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 2});
  DeviceVector<Exec, double> x = to_device<Exec>(Numbers{1, 2, 3, 4, 5, 6});
};

TEST_P(BsrPlain, Products) {
  const auto A = bsr_view(2, 3, 2, row_map, columns, values);
  const SpmvPlan plan(Exec(), A, options());
  const auto y = to_device<Exec>(Numbers(4, std::numeric_limits<double>::quiet_NaN()));
  plan.apply(Exec(), x, y);
  Exec().fence();
  EXPECT_EQ(to_host(y), (Numbers{66, 94, 3, 8}));
  plan.apply(Exec(), Op::NoTrans, 2, x, -1, y);  // y = 2 A x - y
  Exec().fence();
  EXPECT_EQ(to_host(y), (Numbers{66, 94, 3, 8}));
  const auto z = to_device<Exec>(Numbers(6, 1)), u = to_device<Exec>(Numbers{1, 2, 3, 4});
  plan.apply(Exec(), Op::Trans, 1, u, 10, z);
  Exec().fence();
  EXPECT_EQ(to_host(z), (Numbers{17, 20, 13, 18, 29, 32}));
}

TEST_P(BsrPlain, Statistics) {
  const auto A = bsr_view(2, 3, 2, row_map, columns, values);
  const SpmvPlan plan(Exec(), A, options());
  const Tessera::Statistics s = plan.statistics();
  EXPECT_EQ(s.algorithm, "bsr");
  EXPECT_EQ(s.rows, 4);
  EXPECT_EQ(s.cols, 6);
  EXPECT_EQ(s.nnz, 12);
  EXPECT_EQ(s.stored, 12);
  EXPECT_EQ(s.format_bytes, 3u * 4 + 3 * 4 + 12 * 8);  // of BSR: nothing beside it
  EXPECT_EQ(s.csr_bytes, 5u * 4 + 12 * 12);
  EXPECT_EQ(plan.format_bytes(), 0u);
  EXPECT_EQ(plan.workspace_bytes(), 0u);
  EXPECT_EQ(plan.options().algorithm, SpmvAlgorithm::Bsr);
  EXPECT_TRUE(s.transpose_prepared);
}

// Numbers that are changed in place are the plan's at once, but for the transpose.
TEST_P(BsrPlain, NothingIsCopied) {
  const auto A = bsr_view(2, 3, 2, row_map, columns, values);
  const SpmvPlan plan(Exec(), A, options());
  copy_to(Numbers(12, 1), values);
  const DeviceVector<Exec, double> y("y", 4);
  plan.apply(Exec(), x, y);
  Exec().fence();
  EXPECT_EQ(to_host(y), (Numbers{14, 14, 7, 7}));
}

TEST_P(BsrPlain, OneCall) {
  const DeviceVector<Exec, double> y("y", 4), z("z", 6);
  spmv(Exec(), "N", 1, bsr_view(2, 3, 2, row_map, columns, values), x, 0, y);
  spmv(Exec(), "T", 1, bsr_view(2, 3, 2, row_map, columns, values), y, 0, z);
  Exec().fence();
  EXPECT_EQ(to_host(y), (Numbers{66, 94, 3, 8}));
  EXPECT_EQ(to_host(z), (Numbers{348, 508, 3, 16, 988, 1148}));
}

INSTANTIATE_TEST_SUITE_P(Hosts, BsrPlain, ::testing::ValuesIn(host_backends()), [](const auto& way) {
  std::string name = to_string(way.param);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

#ifndef TESSERA_TEST_FEWER_TYPES
// Vectors of another type, 64-bit columns, 16-bit numbers: row by row, in the widest type.
TEST(BsrTypes, AnyCombination) {
  const auto row_map = to_device<Exec>(std::vector<std::int64_t>{0, 2, 3});
  const auto columns = to_device<Exec>(std::vector<std::int64_t>{0, 2, 1});
  const auto narrow = to_device<Exec>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 2});
  const auto x = to_device<Exec>(Numbers{1, 2, 3, 4, 5, 6});
  const DeviceVector<Exec, double> y("y", 4);
  const SpmvPlan plan(Exec(), bsr_view(2, 3, 2, row_map, columns, narrow));
  plan.apply(Exec(), x, y);
  Exec().fence();
  EXPECT_EQ(to_host(y), (Numbers{66, 94, 3, 8}));
  std::vector<half_t> halves;
  for (const float v : to_host(narrow)) halves.push_back(half_t(v));
  SpmvOptions emulated;
  emulated.backend = Backend::EmulatedNvidia;
  const SpmvPlan other(Exec(), bsr_view(2, 3, 2, row_map, columns, to_device<Exec>(halves)), emulated);
  EXPECT_TRUE(other.statistics().fallback_taken);
  EXPECT_EQ(other.statistics().backend, "kokkos");
  const DeviceVector<Exec, double> z("z", 4);
  other.apply(Exec(), x, z);
  Exec().fence();
  EXPECT_EQ(to_host(z), (Numbers{66, 94, 3, 8}));
}
#endif

template <class Scalar>
class Bsr : public ::testing::Test {
 public:
  template <class F>
  void each(const F& f) const {
    for (const Backend backend : host_backends()) {
      SCOPED_TRACE(to_string(backend));
      f(BsrSuite<Exec, Scalar>(backend));
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Scalars = ::testing::Types<double>;
#else
using Scalars = ::testing::Types<double, float>;
#endif
TYPED_TEST_SUITE(Bsr, Scalars);

TYPED_TEST(Bsr, EverySide) {
  this->each([](const auto& suite) { suite.every_side({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 31, 32}); });
}
TYPED_TEST(Bsr, ManyRows) {
  this->each([](const auto& suite) { suite.many_rows(40 * 7); });
}
TYPED_TEST(Bsr, LongRows) {
  this->each([](const auto& suite) {
    suite.long_rows(200, fewer_cases ? std::vector<int>{3, 4, 7, 8} : std::vector<int>{3, 4, 5, 6, 7, 8});
  });
}
TYPED_TEST(Bsr, CornerCases) {
  this->each([](const auto& suite) { suite.corner_cases(); });
}
TYPED_TEST(Bsr, BadNumbers) {
  this->each([](const auto& suite) { suite.bad_numbers(); });
}
TYPED_TEST(Bsr, NewValues) {
  this->each([](const auto& suite) { suite.new_values(); });
}
TYPED_TEST(Bsr, SeveralVectors) {
  this->each([](const auto& suite) { suite.several_vectors(); });
}
// Wider than a wave of any backend: hosts alone have a kernel, the others fall back.
TEST(BsrWide, Blocks) {
  BsrSuite<Exec, double> suite(Backend::Auto);
  suite.every_side({33, 40});
  const HostBlocks<double> blocks(block_pattern(5, 4, 3), 33, BlockOrder::RowMajor, Data::Integers, 5);
  const DeviceBlocks<Exec, double> device(blocks);
  SpmvOptions emulated;
  emulated.backend = Backend::EmulatedNvidia;
  emulated.prepare_transpose = true;
  const SpmvPlan plan(Exec(), device.view(), emulated);
  EXPECT_TRUE(plan.statistics().fallback_taken);
  suite.expect(plan, blocks, Data::Integers, 5, {2, 1});
  emulated.fallback = false;
  EXPECT_THROW((SpmvPlan(Exec(), device.view(), emulated)), NotSupported);
}

TEST(BsrViews, Refusals) {
  const auto row_map = to_device<Exec>(std::vector<int>{0, 2, 3}), columns = to_device<Exec>(std::vector<int>{0, 2, 1});
  const auto values = to_device<Exec>(Numbers(12, 1));
  const auto with = [&](int rows, int cols, int block, std::size_t count) {
    return bsr_view(rows, cols, block, row_map, columns, DeviceVector<Exec, double>(values.data(), count));
  };
  EXPECT_NO_THROW(with(2, 3, 2, 12));
  EXPECT_THROW(with(2, 3, 0, 12), InvalidArgument);
  EXPECT_THROW(with(2, 3, -2, 12), InvalidArgument);
  EXPECT_THROW(with(-2, 3, 2, 12), InvalidArgument);
  EXPECT_THROW(with(2, -3, 2, 12), InvalidArgument);
  EXPECT_THROW(with(2, 1 << 30, 2, 12), InvalidArgument);
  EXPECT_THROW(with(3, 3, 2, 12), DimensionMismatch);
  EXPECT_THROW(with(2, 3, 2, 11), DimensionMismatch);
  EXPECT_THROW(with(2, 3, 1, 12), DimensionMismatch);
}
TEST(BsrViews, RefusedProducts) {
  const auto row_map = to_device<Exec>(std::vector<int>{0, 2, 3}), columns = to_device<Exec>(std::vector<int>{0, 2, 1});
  const auto values = to_device<Exec>(Numbers(12, 1));
  const auto A = bsr_view(2, 3, 2, row_map, columns, values);
  SpmvPlan plan(Exec(), A);
  const auto x = to_device<Exec>(Numbers(6, 1)), y = to_device<Exec>(Numbers(4, 77));
  EXPECT_THROW(plan.apply(Exec(), y, x), DimensionMismatch);
  EXPECT_THROW(plan.apply(Exec(), Op::Trans, 1, y, 0, x), NotSupported);
  EXPECT_THROW(plan.apply(Exec(), x, DeviceVector<Exec, double>(x.data(), 4)), InvalidArgument);
  EXPECT_THROW(plan.update_values(Exec(), DeviceVector<Exec, double>(values.data(), 8)), StalePlan);
  EXPECT_THROW(plan.update_values(Exec(), bsr_view(2, 3, 2, row_map, columns, values, BlockOrder::ColumnMajor)),
               StalePlan);
  EXPECT_EQ(to_host(y), Numbers(4, 77));
  SpmvOptions options;
  options.fallback = false;
  options.algorithm = SpmvAlgorithm::PackedSlices;
  EXPECT_THROW(SpmvPlan(Exec(), A, options), NotSupported);
  options = {};
  options.compute = ComputeType::FP32;
  EXPECT_THROW(SpmvPlan(Exec(), A, options), NotSupported);
  options = {};
  options.updatable = false;
  SpmvPlan fixed(Exec(), A, options);
  EXPECT_THROW(fixed.update_values(Exec(), values), StalePlan);
  options = {};
  options.algorithm = SpmvAlgorithm::Bsr;
  options.fallback = false;
  const DeviceMatrix<Exec, double> csr(make_matrix<double>("stencil2d", Data::Real, 1));
  EXPECT_THROW((SpmvPlan<DeviceMatrix<Exec, double>::Csr>(Exec(), csr.view(), options)), NotSupported);
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
