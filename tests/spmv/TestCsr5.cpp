// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The CSR5 product against plain loops: the kernels of the execution space and, on hosts, those for devices too.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/csr5/Tessera_ToCsr5.hpp"
#include "spmv/Tessera_Csr5Spmv.hpp"
#include "support/Tessera_BadNumbers.hpp"
#include "support/Tessera_Csr5Cases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

template <class Scalar_, class Offset_>
struct Csr5Types {
  using Scalar = Scalar_;
  using Offset = Offset_;
};

template <class T>
class Csr5Spmv : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Scalar = typename T::Scalar;
  using Matrix = HostMatrix<Scalar, typename T::Offset>;
  using Device = DeviceMatrix<Exec, Scalar, typename T::Offset>;
  using Format = Csr5<Scalar, typename Exec::memory_space>;
  using Sum = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

  /// Lanes and entries of a tile; 0: what to_csr5 chooses.
  struct Size {
    int omega, sigma;
  };
  /// On hosts 4 and 8 lanes are the host kernels, the others those for devices.
  static std::vector<Size> sizes() { return {{0, 0}, {4, 3}, {8, 5}, {2, 1}, {32, 7}, {32, 32}, {64, 4}}; }
  static std::string name(Size s) { return "omega " + std::to_string(s.omega) + ", sigma " + std::to_string(s.sigma); }

  static Format format(const Device& A, Size size) {
    Csr5Options o;
    o.sigma = size.sigma;
    return size.omega == 0 ? to_csr5(Exec(), A.view(), o) : Impl::csr5_build(Exec(), A.view(), size.omega, o, nullptr);
  }
  template <class Form, class X, class Y>
  static std::vector<Y> product(const Format& f, Scaling s, const std::vector<X>& x, const std::vector<Y>& y0) {
    const GuardedVector<Exec, X, typename Form::layout> dx(x, std::nan(""));
    const GuardedVector<Exec, Y, typename Form::layout> dy(y0, 77);
    const Exec space;
    Impl::csr5_spmv(space, s.alpha, f, dx.column(), s.beta, dy.column());
    space.fence();
    EXPECT_TRUE(dy.intact()) << "something beside y was written";
    return dy.read();
  }
  template <class Form>
  static void expect(const Format& f, const Matrix& A, Data data, Scaling s = {}) {
    const auto x = numbers<Scalar>(A.cols, data, 21);
    const auto y = numbers<Scalar>(A.rows, data, 22);
    EXPECT_TRUE(agrees<Sum>(A, s, x, y, product<Form>(f, s, x, y), data == Data::Integers));
  }
  static void expect_pattern(const Pattern& p, Size size) {
    SCOPED_TRACE(name(size));
    for (const Data data : {Data::Integers, Data::Real, Data::Magnitudes}) {
      const auto A = make_matrix<Scalar, typename T::Offset>(p, data, 5);
      const Device device(A);
      const Format f = format(device, size);
      expect<Contiguous>(f, A, data);
      expect<Strided>(f, A, data, {2.5, -1});
    }
  }
};
// Every scalar and every offset.
using AllCsr5Types = ::testing::Types<Csr5Types<double, std::size_t>, Csr5Types<float, std::int64_t>,
                                      Csr5Types<half_t, int>, Csr5Types<bhalf_t, int>>;
TYPED_TEST_SUITE(Csr5Spmv, AllCsr5Types);

TYPED_TEST(Csr5Spmv, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    const Pattern p = generate(spec);
    for (const auto size : this->sizes()) this->expect_pattern(p, size);
  }
}

// Rows that begin, end or are missing at the borders of tiles and lanes.
TYPED_TEST(Csr5Spmv, RowsAtBorders) {
  for (const auto size : this->sizes()) {
    if (size.omega == 0) continue;
    const int tile = size.omega * size.sigma, lane = size.sigma;
    int index = 0;
    for (const Pattern& p : csr5_border_cases(size.omega, size.sigma)) {
      SCOPED_TRACE("case " + std::to_string(index++));
      this->expect_pattern(p, size);
    }
    // Every pair of remainders: a first row of each length up to two tiles, then rows that drift against the lanes.
    if (tile > 64) continue;
    for (int first = 0; first <= 2 * tile; ++first) {
      std::vector<int> lengths = {first, 0};
      for (int k = 0; k < 40; ++k) lengths.push_back((k * k + first) % (lane + 3) * (k % 7 == 0 ? tile / 2 : 1));
      const auto A = make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(
          pattern_of_lengths(lengths, 97), Data::Integers, 5);
      const typename TestFixture::Device device(A);
      this->template expect<Contiguous>(this->format(device, size), A, Data::Integers);
    }
  }
}

TYPED_TEST(Csr5Spmv, EveryScaling) {
  for (const auto size : this->sizes()) {
    SCOPED_TRACE(this->name(size));
    for (const Data data : {Data::Integers, Data::Magnitudes}) {
      const auto A =
          make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(all_classes(600, 100), data, 5);
      const typename TestFixture::Device device(A);
      const auto f = this->format(device, size);
      for (const Scaling s : scalings()) {
        this->template expect<Contiguous>(f, A, data, s);
        this->template expect<Strided>(f, A, data, s);
      }
    }
  }
}

// beta = 0 does not read y, alpha = 0 does not read x, and every element is written: those of empty rows too.
TYPED_TEST(Csr5Spmv, UndefinedVectors) {
  using Scalar = typename TypeParam::Scalar;
  using Sum = typename TestFixture::Sum;
  for (const auto size : this->sizes()) {
    SCOPED_TRACE(this->name(size));
    for (const std::string spec : {"", "empty", "dense_row:others=1", "web:n=3001:longest=900"}) {
      const Pattern p = spec.empty() ? all_classes(300, 50) : generate(spec);
      const auto A = make_matrix<Scalar, typename TypeParam::Offset>(p, Data::Integers, 5);
      const typename TestFixture::Device device(A);
      const auto f = this->format(device, size);
      const std::vector<Scalar> bad_x(static_cast<std::size_t>(A.cols), as<Scalar>(std::nan("")));
      const std::vector<Scalar> bad_y(static_cast<std::size_t>(A.rows), as<Scalar>(std::nan("")));
      const auto x = numbers<Scalar>(A.cols, Data::Integers, 6), y = numbers<Scalar>(A.rows, Data::Integers, 7);
      const auto check = [&](Scaling s, const std::vector<Scalar>& with_x, const std::vector<Scalar>& with_y) {
        const auto got = this->template product<Contiguous>(f, s, with_x, with_y);
        EXPECT_TRUE(agrees<Sum>(A, s, with_x, with_y, got, true));
      };
      check({-1, 0}, x, bad_y);
      check({0, 2.5}, bad_x, y);
      check({0, 0}, bad_x, bad_y);
    }
  }
}

// Infinite and undefined entries stay in their rows: every seventh row has one, and meets one in x.
TYPED_TEST(Csr5Spmv, BadNeighbours) {
  using Scalar = typename TypeParam::Scalar;
  using Sum = typename TestFixture::Sum;
  for (const auto size : this->sizes()) {
    SCOPED_TRACE(this->name(size));
    for (int shift = 0; shift < 7; ++shift) {
      auto A =
          make_matrix<Scalar, typename TypeParam::Offset>(on_odd_columns(all_classes(100, 150)), Data::Integers, 5);
      add_bad_rows(A, shift);
      const auto x = bad_at_even_columns<Scalar>(A.cols);
      const typename TestFixture::Device device(A);
      const auto y = numbers<Scalar>(A.rows, Data::Integers, 7);
      const auto got = this->template product<Strided>(this->format(device, size), {-1, 2.5}, x, y);
      EXPECT_TRUE(agrees<Sum>(A, {-1, 2.5}, x, y, got, true));
    }
  }
}

TYPED_TEST(Csr5Spmv, NewValues) {
  for (const auto size : this->sizes()) {
    SCOPED_TRACE(this->name(size));
    const Pattern p = generate("duplicates:rows=151:longest=400");
    const auto A = make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(p, Data::Integers, 5);
    const auto B = make_matrix<typename TypeParam::Scalar, typename TypeParam::Offset>(p, Data::Integers, 6);
    const typename TestFixture::Device a(A), b(B);
    const auto f = this->format(a, size);
    this->template expect<Contiguous>(f, A, Data::Integers);
    csr5_fill(typename TestFixture::Exec(), f, b.view().values());
    this->template expect<Contiguous>(f, B, Data::Integers);
  }
}

TYPED_TEST(Csr5Spmv, Deterministic) {
  using Scalar = typename TypeParam::Scalar;
  for (const auto size : this->sizes()) {
    SCOPED_TRACE(this->name(size));
    for (const std::string spec : {"circuit:n=5003:long_every=1000:long_min=800:long_max=2500", "dense_row:others=1"}) {
      const auto A = make_matrix<Scalar, typename TypeParam::Offset>(spec, Data::Magnitudes, 5);
      const typename TestFixture::Device device(A);
      const auto x = numbers<Scalar>(A.cols, Data::Magnitudes, 21), y = numbers<Scalar>(A.rows, Data::Magnitudes, 22);
      const auto f = this->format(device, size);
      const auto first = this->template product<Contiguous>(f, {2.5, -1}, x, y);
      for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(same_bits(this->template product<Contiguous>(f, {2.5, -1}, x, y), first));
        EXPECT_TRUE(same_bits(this->template product<Strided>(this->format(device, size), {2.5, -1}, x, y), first));
      }
    }
  }
}

/// Element types that differ: the widest one decides the sums.
template <class A_, class X_, class Y_>
struct Csr5Mixed {
  using A = A_;
  using X = X_;
  using Y = Y_;
};
template <class T>
class MixedCsr5Spmv : public ::testing::Test {};
using AllCsr5Mixed = ::testing::Types<Csr5Mixed<half_t, double, double>, Csr5Mixed<double, float, float>,
                                      Csr5Mixed<float, half_t, bhalf_t>, Csr5Mixed<half_t, half_t, float>>;
TYPED_TEST_SUITE(MixedCsr5Spmv, AllCsr5Mixed);

TYPED_TEST(MixedCsr5Spmv, AgreesWithPlainLoops) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using A = typename TypeParam::A;
  using X = typename TypeParam::X;
  using Y = typename TypeParam::Y;
  constexpr bool wide_sums = std::is_same_v<A, double> || std::is_same_v<X, double> || std::is_same_v<Y, double>;
  using Sum = std::conditional_t<wide_sums, double, float>;
  for (const Data data : {Data::Integers, Data::Magnitudes}) {
    const auto matrix = make_matrix<A>(all_classes(600, 100), data, 5);
    const DeviceMatrix<Exec, A> device(matrix);
    for (const int omega : {8, 32}) {
      const auto f = Impl::csr5_build(Exec(), device.view(), omega, {}, nullptr);
      const auto x = numbers<X>(matrix.cols, data, 6);
      const auto y = numbers<Y>(matrix.rows, data, 7);
      for (const Scaling s : scalings()) {
        const auto dx = to_device<Exec>(x);
        const auto dy = to_device<Exec>(y);
        Impl::csr5_spmv(Exec(), s.alpha, f, dx, s.beta, dy);
        Exec().fence();
        EXPECT_TRUE(agrees<Sum>(matrix, s, x, y, to_host(dy), data == Data::Integers));
      }
    }
  }
}

// No allocation, at most two launches; the caller's scratch serves as well as the format's own.
TEST(Csr5Apply, Economy) {
  using Exec = Kokkos::DefaultExecutionSpace;
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
  using Exec = Kokkos::DefaultExecutionSpace;
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
