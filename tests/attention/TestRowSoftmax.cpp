// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// row_softmax and its gradient: against plain loops, layouts, types, masks, in place, teams, refusals.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "Tessera_RowSoftmax.hpp"
#include "sddmm/SddmmOperands.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Softmax of each row; `bound`: of the relative error of a result. Scores are exact, so that an exponential errs by
/// 4 u + u times the distance to the largest one, and a sum of n by n u; twice that for the quotient.
struct SoftmaxRows {
  std::vector<double> y, bound;
  SoftmaxRows(const Pattern& p, const std::vector<double>& x, double u) : y(x.size()), bound(x.size()) {
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const auto begin = static_cast<std::size_t>(p.row_map[i]), end = static_cast<std::size_t>(p.row_map[i + 1]);
      double m = -infinity;
      long double total = 0;
      for (std::size_t e = begin; e < end; ++e) m = std::max(m, x[e]);
      if (m == -infinity) continue;
      for (std::size_t e = begin; e < end; ++e) total += std::exp(static_cast<long double>(x[e]) - m);
      double furthest = 0;
      for (std::size_t e = begin; e < end; ++e) {
        y[e] = static_cast<double>(std::exp(static_cast<long double>(x[e]) - m) / total);
        if (x[e] > -infinity) furthest = std::max(furthest, m - x[e]);
      }
      for (std::size_t e = begin; e < end; ++e) {
        bound[e] = 2 * (8 + furthest + static_cast<double>(end - begin)) * u;
      }
    }
  }
};

template <class X, class Y>
void softmax(const char* shape, double size, int way) {
  SCOPED_TRACE(std::string(shape) + ", way " + std::to_string(way));
  using Sum = SumOf<X, Y>;
  const Pattern p = generate(shape);
  const auto A = make_matrix<float, int>(p, Data::Integers, 1);
  const DeviceMatrix<Exec, float, int> device(A);
  const std::int64_t nnz = A.nnz();
  auto x = numbers<X>(2 * nnz, Data::Real, 51);
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = as<X>(e % 7 == 3 ? -infinity : size * wide(x[e]));
  const auto steps = [&](int shift) -> Steps {
    if (way == 0) return {0, nnz, 0, 1};
    return (way + shift) % 2 == 0 ? Steps{1, 1, 0, 2} : Steps{2, 3 * nnz + 1, 0, 3};
  };
  const Scattered<Exec, X> from(x, 2, 1, nnz, steps(0), 77);
  const Scattered<Exec, Y> to(std::vector<Y>(x.size(), as<Y>(55)), 2, 1, nnz, steps(1), 77);
  const auto d_y = numbers<Y>(2 * nnz, Data::Real, 52);
  const Scattered<Exec, Y> gradient(d_y, 2, 1, nnz, steps(1), 77);
  row_softmax(Exec(), device.view(), from.vectors(), to.vectors());
  row_softmax_backward(Exec(), device.view(), to.vectors(), gradient.vectors(), gradient.vectors());
  Exec().fence();
  EXPECT_TRUE(to.intact() && gradient.intact());
  const auto y = to.read(), d_x = gradient.read();
  const double u = TypeFacts<Sum>::roundoff(), w = TypeFacts<Y>::roundoff();
  for (std::int64_t h = 0; h < 2; ++h) {
    const auto head = [&](const auto& v) {
      return wide(std::decay_t<decltype(v)>(v.begin() + h * nnz, v.begin() + (h + 1) * nnz));
    };
    const auto own = head(y), by_y = head(d_y), by_x = head(d_x);
    const SoftmaxRows wanted(p, head(x), u);
    for (std::int64_t i = 0; i < p.rows; ++i) {
      long double taken = 0, taken_size = 0;
      const auto begin = static_cast<std::size_t>(p.row_map[i]), end = static_cast<std::size_t>(p.row_map[i + 1]);
      for (std::size_t e = begin; e < end; ++e) {
        taken += static_cast<long double>(own[e]) * by_y[e];
        taken_size += std::abs(own[e] * by_y[e]);
      }
      for (std::size_t e = begin; e < end; ++e) {
        const double least = TypeFacts<Y>::tiny() + 1e-37;
        EXPECT_NEAR(own[e], wanted.y[e], (wanted.bound[e] + w) * wanted.y[e] + least) << e;
        // The gradient of the y that it gets: a sum of products, a difference and a product.
        const double value = static_cast<double>(own[e] * (by_y[e] - taken));
        const double off = static_cast<double>(
            own[e] * ((static_cast<double>(end - begin) + 4) * u * taken_size + 4 * u * std::abs(by_y[e])));
        EXPECT_NEAR(by_x[e], value, off + w * (std::abs(value) + off) + least) << e;
      }
    }
  }
}
template <class X, class Y>
void softmaxes() {
  for (const char* const shape :
       {"every_length:longest=70:cols=90", "empty", "empty:rows=0:cols=5", "dense:rows=2:cols=1001"}) {
    for (int way = 0; way < 3; ++way) softmax<X, Y>(shape, 3, way);
  }
  softmax<X, Y>("every_length:longest=70:cols=90", 10000, 0);
}
#ifndef TESSERA_TEST_FEWER_TYPES
TEST(RowSoftmax, InFp64) { softmaxes<double, double>(); }
#endif
TEST(RowSoftmax, InFp32) { softmaxes<float, float>(); }
TEST(RowSoftmax, InFp16) { softmaxes<half_t, half_t>(); }
TEST(RowSoftmax, ScoresOf32Bits) { softmaxes<float, bhalf_t>(); }

class RowSoftmaxByHand : public ::testing::Test {
 protected:
  // Rows of 2, 0, 1 and 2 entries.
  DeviceMatrix<Exec, float, int> A{make_matrix<float, int>(pattern_of_lengths({2, 0, 1, 2}, 5), Data::Integers, 1)};
  DeviceVector<Exec, double> x = to_device<Exec>(std::vector<double>{0, std::log(3), -1000, 5000, 5000});
};
TEST_F(RowSoftmaxByHand, InPlace) {
  row_softmax(Exec(), A.view(), x, x);
  Exec().fence();
  const std::vector<double> wanted = {0.25, 0.75, 1, 0.5, 0.5};
  for (std::size_t e = 0; e < 5; ++e) EXPECT_NEAR(x(e), wanted[e], 1e-15) << e;
}
TEST_F(RowSoftmaxByHand, MaskedRowsAndNan) {
  x(0) = x(1) = -infinity;
  x(3) = std::nan("");
  row_softmax(Exec(), A.view(), x, x);
  Exec().fence();
  EXPECT_TRUE(x(0) == 0 && x(1) == 0 && x(2) == 1);
  EXPECT_TRUE(std::isnan(x(3)) && std::isnan(x(4)));
}
/// The kernels of devices, in teams of one thread with one lane.
TEST_F(RowSoftmaxByHand, Teams) {
  using Csr = DeviceMatrix<Exec, float, int>::Csr;
  using Forward = Impl::SoftmaxForward<Csr, double, double>;
  const Impl::BatchVector<double> all{x.data(), 5, 1, 5};
  Forward f{Impl::attention_items(A.view()), 1, {x.data(), 5, 1, 5}, all, nullptr, {}, Impl::Shares(), 16};
  Forward::Teams::run("forward", Exec(), f, 4, 0);
  const std::vector<double> wanted = {0.25, 0.75, 1, 0.5, 0.5}, by_x = {0.25 * -0.75, 0.75 * 0.25, 0, 0, 0};
  for (std::size_t e = 0; e < 5; ++e) EXPECT_NEAR(x(e), wanted[e], 1e-15) << e;
  const auto d = to_device<Exec>(std::vector<double>{0, 1, 1, 2, 2});
  using Backward = Impl::SoftmaxBackward<Csr, double, double>;
  Backward b{f.items, 1, {x.data(), 5, 1, 5}, {d.data(), 5, 1, 5}, {d.data(), 5, 1, 5}, Impl::Shares(), 16};
  Backward::Teams::run("backward", Exec(), b, 4, 0);
  for (std::size_t e = 0; e < 5; ++e) EXPECT_NEAR(d(e), by_x[e], 1e-15) << e;
}
TEST_F(RowSoftmaxByHand, BadCalls) {
  const DeviceVector<Exec, double> few("few", 4), y("y", 5);
  EXPECT_THROW(row_softmax(Exec(), A.view(), few, y), DimensionMismatch);
  EXPECT_THROW(row_softmax(Exec(), A.view(), x, few), DimensionMismatch);
  EXPECT_THROW(row_softmax_backward(Exec(), A.view(), x, few, y), DimensionMismatch);
  EXPECT_THROW(row_softmax_backward(Exec(), A.view(), x, y, few), DimensionMismatch);
  const Kokkos::View<double**, DeviceOf<Exec>> two("two", 2, 5), three("three", 3, 5);
  EXPECT_THROW(row_softmax(Exec(), A.view(), two, three), DimensionMismatch);
  try {
    row_softmax(Exec(), A.view(), x, few);
  } catch (const DimensionMismatch& e) {
    EXPECT_EQ(std::string(e.what()).find("Tessera: row_softmax: y has 4 numbers"), 0u) << e.what();
  }
}
// In place, or apart: numbers of two rows of one matrix are.
TEST_F(RowSoftmaxByHand, Overlap) {
  const DeviceVector<Exec, double> all("all", 11), d("d", 5);
  const auto from = [&](std::size_t first) { return Kokkos::subview(all, std::make_pair(first, first + 5)); };
  EXPECT_THROW(row_softmax(Exec(), A.view(), from(0), from(4)), InvalidArgument);
  EXPECT_NO_THROW(row_softmax(Exec(), A.view(), from(0), from(0)));
  EXPECT_NO_THROW(row_softmax(Exec(), A.view(), from(0), from(5)));
  EXPECT_THROW(row_softmax_backward(Exec(), A.view(), from(0), d, from(0)), InvalidArgument);
  EXPECT_THROW(row_softmax_backward(Exec(), A.view(), from(0), d, from(1)), InvalidArgument);
  EXPECT_THROW(row_softmax_backward(Exec(), A.view(), d, from(0), from(1)), InvalidArgument);
  EXPECT_NO_THROW(row_softmax_backward(Exec(), A.view(), d, from(0), from(0)));
  EXPECT_NO_THROW(row_softmax_backward(Exec(), A.view(), from(0), d, from(5)));
  // Other numbers in the same memory.
  const Kokkos::View<float*, DeviceOf<Exec>> narrow(reinterpret_cast<float*>(d.data()), 5);
  EXPECT_THROW(row_softmax(Exec(), A.view(), d, narrow), InvalidArgument);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> heads("heads", 2, 10);
  const auto columns = [&](std::size_t first) {
    return Kokkos::subview(heads, Kokkos::ALL(), std::make_pair(first, first + 5));
  };
  EXPECT_THROW(row_softmax(Exec(), A.view(), columns(0), columns(3)), InvalidArgument);
  EXPECT_NO_THROW(row_softmax(Exec(), A.view(), columns(0), columns(5)));
}

}  // namespace Testing
}  // namespace Tessera
