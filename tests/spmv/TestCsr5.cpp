// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR5 with tiles of every size against plain loops: the kernels of the execution space and, on hosts, those for
// devices too. TestKokkosSpmv.cpp has its plans.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/Tessera_TestSpmv.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

using Exec = Kokkos::DefaultExecutionSpace;
using Memory = Exec::memory_space;

/// The format by itself, with the members of a plan.
template <class Scalar>
struct Csr5Tiles {
  using execution_space = Exec;
  Csr5<Scalar, Memory> format;

  template <class X, class Y>
  void apply(const Exec& space, Op, double alpha, const X& x, double beta, const Y& y) const {
    const typename X::const_type const_x = x;
    Impl::for_each_column(Impl::vectors_of(const_x), Impl::vectors_of(y), [&](const auto& from, const auto& to) {
      Impl::csr5_spmv(space, alpha, format, from, beta, to);
    });
  }
  std::size_t workspace_bytes() const { return format.workspace_bytes(); }
};

/// Lanes and entries of a tile; 0: what to_csr5 chooses. On hosts 4 and 8 lanes are the host kernels, the others those
/// for devices.
struct TileSize {
  int omega, sigma;
};
constexpr TileSize tile_sizes[] = {{0, 0}, {4, 3}, {8, 5}, {2, 1}, {32, 7}, {32, 32}, {64, 4}};

template <class Scalar>
class Csr5Suite : public SpmvSuite<Exec, Scalar, OffsetOf<Scalar>, Csr5Tiles<Scalar>, Scalar> {
 public:
  using Base = SpmvSuite<Exec, Scalar, OffsetOf<Scalar>, Csr5Tiles<Scalar>, Scalar>;
  explicit Csr5Suite(TileSize s) : Base(SpmvAlgorithm::Csr5, Backend::Kokkos), size(s) {
    this->data = {Data::Integers, Data::Real, Data::Magnitudes};
  }
  Csr5Tiles<Scalar> plan(const typename Base::Device& A, const SpmvOptions&) const override {
    Csr5Options o;
    o.sigma = size.sigma;
    return {size.omega == 0 ? to_csr5(Exec(), A.view(), o)
                            : Impl::csr5_build(Exec(), A.view(), size.omega, o, nullptr)};
  }
  using Base::plan;
  TileSize size;
};

template <class Scalar>
class Csr5Spmv : public ::testing::Test {
 protected:
  using Suite = Csr5Suite<Scalar>;
  static void each(void (*f)(Suite&)) {
    for (const TileSize size : tile_sizes) {
      SCOPED_TRACE("omega " + std::to_string(size.omega) + ", sigma " + std::to_string(size.sigma));
      Suite suite(size);
      f(suite);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Csr5Scalars = ::testing::Types<double, half_t>;
#elif defined(TESSERA_TEST_BESIDE_SANITIZED)
using Csr5Scalars = ::testing::Types<float, bhalf_t>;
#else
using Csr5Scalars = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(Csr5Spmv, Csr5Scalars);

TYPED_TEST(Csr5Spmv, EveryShape) { TESSERA_EACH(every_shape()); }
// Rows that begin, end or are missing at the borders of tiles and lanes.
TYPED_TEST(Csr5Spmv, RowsAtBorders) {
  this->each([](auto& suite) {
    const TileSize size = suite.size;
    if (size.omega == 0) return;
    const int tile = size.omega * size.sigma, lane = size.sigma;
    int index = 0;
    for (const Pattern& p : csr5_border_cases(size.omega, size.sigma)) {
      suite.expect_pattern(p, "case " + std::to_string(index++));
    }
    // Every pair of remainders: a first row of each length up to two tiles, then rows that drift against the lanes.
    if (tile > 64) return;
    for (int first = 0; first <= 2 * tile; ++first) {
      std::vector<int> lengths = {first, 0};
      for (int k = 0; k < 40; ++k) lengths.push_back((k * k + first) % (lane + 3) * (k % 7 == 0 ? tile / 2 : 1));
      suite.expect_pattern(pattern_of_lengths(lengths, 97), "first row " + std::to_string(first), {Data::Integers});
    }
  });
}
TYPED_TEST(Csr5Spmv, EveryScaling) { TESSERA_EACH(every_scaling()); }
TYPED_TEST(Csr5Spmv, UndefinedVectors) { TESSERA_EACH(undefined_vectors()); }
TYPED_TEST(Csr5Spmv, BadNeighbours) { TESSERA_EACH(bad_neighbours()); }
TYPED_TEST(Csr5Spmv, Deterministic) {
  this->each([](auto& suite) {
    suite.deterministic();
    suite.deterministic(generate("dense_row:others=1"));
  });
}
TYPED_TEST(Csr5Spmv, NewValues) {
  this->each([](auto& suite) {
    const Pattern p = generate("duplicates:rows=151:longest=400");
    const auto A = suite.matrix(p, Data::Integers, 5), B = suite.matrix(p, Data::Integers, 6);
    const DeviceMatrix<Exec, TypeParam> a(A), b(B);
    const auto f = suite.plan(a);
    suite.expect(f, A, Data::Integers);
    csr5_fill(Exec(), f.format, b.view().values());
    suite.expect(f, B, Data::Integers);
  });
}

#ifndef TESSERA_TEST_FEWER_TYPES
// Element types that differ, in the kernels for devices.
template <class A, class X, class Y>
void expect_mixed_tiles() {
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto matrix = make_matrix<A>(all_classes(600, 100), data, 5);
    const DeviceMatrix<Exec, A> device(matrix);
    const Csr5Tiles<A> f{Impl::csr5_build(Exec(), device.view(), 32, {}, nullptr)};
    const auto x = numbers<X>(matrix.cols, data, 6);
    const auto y = numbers<Y>(matrix.rows, data, 7);
    const auto dx = to_device<Exec>(x);
    for (const Scaling s : scalings()) {
      const auto dy = to_device<Exec>(y);
      Impl::csr5_spmv(Exec(), s.alpha, f.format, dx, s.beta, dy);
      Exec().fence();
      EXPECT_TRUE((agrees<SumOf<A, X, Y>>(matrix, s, x, y, to_host(dy), data == Data::Integers)));
    }
  }
}
TEST(MixedCsr5Spmv, FloatHalfBhalf) { expect_mixed_tiles<float, half_t, bhalf_t>(); }
TEST(MixedCsr5Spmv, HalfDoubleDouble) { expect_mixed_tiles<half_t, double, double>(); }
#endif

// No allocation, at most two launches; the caller's scratch serves as well as the format's own.
TEST(Csr5Apply, Economy) {
  const auto A = make_matrix<double, int>(all_classes(600, 100), Data::Integers, 5);
  const DeviceMatrix<Exec, double, int> device(A);
  auto f = to_csr5(Exec(), device.view());
  EXPECT_GT(f.format_bytes(), 12 * static_cast<std::size_t>(A.nnz()));
  EXPECT_LT(f.format_bytes(), 14 * static_cast<std::size_t>(A.nnz()));
  EXPECT_EQ(f.workspace_bytes(), sizeof(double) * static_cast<std::size_t>(f.tiles + f.full));
  const auto x = numbers<double>(A.cols, Data::Integers, 6), y = numbers<double>(A.rows, Data::Integers, 7);
  const auto dx = to_device<Exec>(x);
  const Kokkos::View<double*, DeviceOf<Exec>> workspace("workspace", f.workspace_bytes() / sizeof(double));
  const Exec space;
  for (const bool own : {true, false}) {
    if (!own) f.use_workspace(workspace.data());
    const auto dy = to_device<Exec>(y);
    Exec().fence();
    {
      const KokkosCounters counters;
      Impl::csr5_spmv(space, -1, f, dx, 2.5, dy);
      EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
      EXPECT_EQ(counters.kernels(), f.launches());
    }
    Exec().fence();
    EXPECT_TRUE(agrees<double>(A, {-1, 2.5}, x, y, to_host(dy), true));
  }
}

// Rows that end with their tiles need no second kernel and no scratch.
TEST(Csr5Apply, OneLaunch) {
  for (const std::string spec : {"diagonal:rows=5000:cols=5000", "dense:rows=1:cols=9"}) {
    const auto A = make_matrix<double, int>(spec, Data::Integers, 5);
    const DeviceMatrix<Exec, double, int> device(A);
    const auto f = to_csr5(Exec(), device.view());
    EXPECT_EQ(f.workspace_bytes(), 0u);
    EXPECT_EQ(f.launches(), 1);
    const auto x = numbers<double>(A.cols, Data::Integers, 6), y = numbers<double>(A.rows, Data::Integers, 7);
    const auto dx = to_device<Exec>(x), dy = to_device<Exec>(y);
    Exec().fence();
    {
      const KokkosCounters counters;
      Impl::csr5_spmv(Exec(), 1, f, dx, 1, dy);
      EXPECT_EQ(counters.kernels(), 1);
    }
    Exec().fence();
    EXPECT_TRUE(agrees<double>(A, {1, 1}, x, y, to_host(dy), true));
  }
}

}  // namespace Testing
}  // namespace Tessera
