// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// P := alpha <X_i, Y_j> [* A_ij] + beta P once, for a matrix of Kokkos Kernels, against plain loops.

#include "Tessera_Sddmm.hpp"
#include "adapters/KokkosSparseFixture.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

template <class U>
class KokkosSparseSddmm : public ::testing::Test {
 protected:
  using Exec = Kokkos::DefaultExecutionSpace;
  using Scalar = typename U::scalar;
  using Matrix = TheirMatrix<Scalar, typename U::ordinal, typename U::offset>;
  using Suite = SddmmSuite<Exec, Scalar>;
  template <class Layout>
  using Factor = Guarded<Exec, Scalar, Layout>;

  static Suite suite(bool scaled) {
    Suite s(Backend::Auto, SddmmAlgorithm::Csr);
    s.options.scale_by_values = scaled;
    return s;
  }
  template <class Layout>
  static void expect(const typename Suite::Matrix& A, const Matrix& theirs, int inner, Data data, Scaling s,
                     bool scaled) {
    SCOPED_TRACE("K = " + std::to_string(inner) + ", alpha " + std::to_string(s.alpha) + ", beta " +
                 std::to_string(s.beta) + (scaled ? ", scaled" : ""));
    const Suite mine = suite(scaled);
    auto o = mine.operands(A, inner, data);
    const Factor<Layout> x(o.x, A.rows, inner, {1, 1, 2, 3}, std::nan(""));
    const Factor<Layout> y(o.y, A.cols, inner, {2, 0, 1, 1}, std::nan(""));
    if (s.beta == 0) std::fill(o.p.begin(), o.p.end(), as<Scalar>(std::nan("")));  // is not read
    const auto p = to_device<Exec>(o.p);
    Tessera::sddmm(Exec(), s.alpha, x.view(), y.view(), theirs, s.beta, p, scaled);
    Exec().fence();
    mine.check(A, inner, s, o, to_host(p), data == Data::Integers);
  }
};
using SddmmTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<double, int, int>,
                                    TypesOf<float, int, std::size_t>, TypesOf<double, std::int64_t, int>>;
TYPED_TEST_SUITE(KokkosSparseSddmm, SddmmTypes);

TYPED_TEST(KokkosSparseSddmm, OnceForEveryScaling) {
  for (const Data data : {Data::Integers, Data::Real}) {
    const auto A = TestFixture::suite(false).matrix(generate("every_length:longest=40:cols=61"), data);
    const auto theirs = their_matrix<typename TestFixture::Matrix>(A);
    for (const bool scaled : {false, true}) {
      for (const int inner : {0, 1, 17}) {
        for (const Scaling s : scalings()) {
          TestFixture::template expect<Kokkos::LayoutRight>(A, theirs, inner, data, s, scaled);
          TestFixture::template expect<Kokkos::LayoutLeft>(A, theirs, inner, data, s, scaled);
        }
      }
    }
  }
}
TYPED_TEST(KokkosSparseSddmm, OnceForEveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    const auto A = TestFixture::suite(false).matrix(generate(spec), Data::Integers);
    const auto theirs = their_matrix<typename TestFixture::Matrix>(A);
    TestFixture::template expect<Kokkos::LayoutRight>(A, theirs, 5, Data::Integers, {2.5, -1}, true);
  }
}

// Scores as the numbers of the matrix, which multiplies next.
TYPED_TEST(KokkosSparseSddmm, IntoTheMatrixItself) {
  using Exec = typename TestFixture::Exec;
  using Scalar = typename TestFixture::Scalar;
  const auto suite = TestFixture::suite(false);
  auto A = suite.matrix(generate("stencil2d:nx=9:ny=7:points=9"), Data::Integers);
  const auto theirs = their_matrix<typename TestFixture::Matrix>(A);
  constexpr int inner = 6;
  auto o = suite.operands(A, inner, Data::Integers);
  const typename TestFixture::template Factor<Kokkos::LayoutRight> x(o.x, A.rows, inner, {}, std::nan(""));
  const typename TestFixture::template Factor<Kokkos::LayoutRight> y(o.y, A.cols, inner, {}, std::nan(""));
  const auto v = numbers<Scalar>(A.cols, Data::Integers, 7), before = numbers<Scalar>(A.rows, Data::Integers, 8);
  const auto from = to_device<Exec>(v), to = to_device<Exec>(before);
  Tessera::sddmm(Exec(), 1, x.view(), y.view(), theirs, 0, theirs.values);
  Tessera::spmv("N", 1, theirs, from, 2, to);
  Exec().fence();
  const auto scores = to_host(theirs.values);
  suite.check(A, inner, {1, 0}, o, scores, true);
  A.values = scores;
  EXPECT_TRUE(agrees<Scalar>(A, {1, 2}, v, before, to_host(to), true));
}

TYPED_TEST(KokkosSparseSddmm, WrongExtentsAreRefused) {
  using Exec = typename TestFixture::Exec;
  using Scalar = typename TestFixture::Scalar;
  const auto A = TestFixture::suite(false).matrix(generate("uniform:rows=20:cols=31:per_row=4"), Data::Integers);
  const auto theirs = their_matrix<typename TestFixture::Matrix>(A);
  const auto nnz = static_cast<std::size_t>(A.nnz());
  const auto factor = [](std::size_t rows, std::size_t inner) {
    return Kokkos::View<Scalar**, Kokkos::LayoutRight, DeviceOf<Exec>>("factor", rows, inner);
  };
  const auto p = to_device<Exec>(std::vector<Scalar>(nnz, 3));
  const auto call = [&](std::size_t m, std::size_t n, std::size_t of_x, std::size_t of_y, const auto& to) {
    Tessera::sddmm(Exec(), 1, factor(m, of_x), factor(n, of_y), theirs, 0, to);
  };
  EXPECT_THROW(call(31, 20, 4, 4, p), DimensionMismatch);
  EXPECT_THROW(call(20, 30, 4, 4, p), DimensionMismatch);
  EXPECT_THROW(call(20, 31, 4, 5, p), DimensionMismatch);
  EXPECT_THROW(call(20, 31, 4, 4, to_device<Exec>(std::vector<Scalar>(nnz - 1, 3))), DimensionMismatch);
  Exec().fence();
  EXPECT_EQ(to_host(p), std::vector<Scalar>(nnz, 3));
  EXPECT_NO_THROW(call(20, 31, 4, 4, p));
  Exec().fence();
  EXPECT_EQ(to_host(p), std::vector<Scalar>(nnz, 0));
}

}  // namespace Testing
}  // namespace Tessera
