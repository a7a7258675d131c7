// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// C = op(A) op(B) through Kokkos Kernels' calls: every transposition against plain loops, new numbers, refusals.

#include "adapters/KokkosSparseFixture.hpp"
#include "adapters/Tessera_KokkosSparseSpgemm.hpp"
#include "support/Tessera_TestSpgemm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class U>
class KokkosSparseSpgemm : public ::testing::Test {
 protected:
  using Scalar = typename U::scalar;
  using Offset = typename U::offset;
  using Matrix = KokkosSparse::CrsMatrix<Scalar, int, DeviceOf<Exec>, void, Offset>;
  using Host = HostMatrix<Scalar, Offset>;

  static Host matrix(const std::string& spec, std::uint64_t seed) {
    return make_matrix<Scalar, Offset>(generate(spec), Data::Integers, seed);
  }
  static void expect_c(const Host& A, const Host& B, const Matrix& C) {
    EXPECT_EQ(C.numRows(), A.rows);
    EXPECT_EQ(C.numCols(), B.cols);
    const auto values = to_host(C.values);
    expect_product(
        A, B, SpgemmResult<Scalar, Offset>{to_host(C.graph.row_map), to_host(C.graph.entries), values, values}, true);
  }
};
using Types = ::testing::Types<TypesOf<double, int, int>, TypesOf<double, int, std::size_t>, TypesOf<float, int, int>>;
TYPED_TEST_SUITE(KokkosSparseSpgemm, Types);

TYPED_TEST(KokkosSparseSpgemm, EveryTransposition) {
  using Matrix = typename TestFixture::Matrix;
  const auto A = TestFixture::matrix("uniform:rows=70:cols=30:per_row=4", 1), at = transposed(A);
  const auto B = TestFixture::matrix("uniform:rows=30:cols=50:per_row=3", 2), bt = transposed(B);
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const auto mine = their_matrix<Matrix>(a ? at : A), other = their_matrix<Matrix>(b ? bt : B);
      TestFixture::expect_c(A, B, Tessera::spgemm(mine, a, other, b));
    }
  }
}

// The numeric phase again: numbers changed in place, and numbers in another array.
TYPED_TEST(KokkosSparseSpgemm, NewNumbers) {
  using Matrix = typename TestFixture::Matrix;
  const auto A = TestFixture::matrix("stencil2d:nx=9:ny=7", 1), next = TestFixture::matrix("stencil2d:nx=9:ny=7", 3);
  for (const bool transpose : {false, true}) {
    const auto mine = their_matrix<Matrix>(A);
    SpgemmHandle<Matrix> handle;
    Matrix C;
    spgemm_symbolic(Exec(), handle, mine, transpose, mine, false, C);
    spgemm_numeric(Exec(), handle, mine, transpose, mine, false, C);
    TestFixture::expect_c(transpose ? transposed(A) : A, A, C);
    const auto columns = C.graph.entries.data();
    Kokkos::deep_copy(mine.values, to_device<Exec>(next.values));
    spgemm_numeric(handle, mine, transpose, mine, false, C);
    TestFixture::expect_c(transpose ? transposed(next) : next, next, C);
    EXPECT_EQ(C.graph.entries.data(), columns);
    const Matrix moved("moved", mine.numRows(), mine.numCols(), mine.nnz(), to_device<Exec>(A.values),
                       mine.graph.row_map, mine.graph.entries);
    spgemm_numeric(handle, moved, transpose, moved, false, C);
    TestFixture::expect_c(transpose ? transposed(A) : A, A, C);
    // Another C, whose columns nobody has written.
    Matrix fresh("fresh", C.numRows(), C.numCols(), C.nnz(), typename Matrix::values_type("values", C.nnz()),
                 C.graph.row_map, typename Matrix::index_type("columns", C.nnz()));
    spgemm_numeric(handle, mine, transpose, mine, false, fresh);
    TestFixture::expect_c(transpose ? transposed(next) : next, next, fresh);
    spgemm_numeric(handle, moved, transpose, moved, false, C);
    TestFixture::expect_c(transpose ? transposed(A) : A, A, C);
    // The first numeric phase with numbers in other arrays than the symbolic one saw.
    spgemm_symbolic(handle, moved, transpose, moved, false, C);
    spgemm_numeric(handle, mine, transpose, mine, false, C);
    TestFixture::expect_c(transpose ? transposed(next) : next, next, C);
  }
}

TYPED_TEST(KokkosSparseSpgemm, BadCalls) {
  using Matrix = typename TestFixture::Matrix;
  const auto A = TestFixture::matrix("uniform:rows=7:cols=5:per_row=2", 1);
  const auto mine = their_matrix<Matrix>(A), same = their_matrix<Matrix>(A);
  SpgemmHandle<Matrix> handle;
  Matrix C;
  EXPECT_THROW(handle.statistics(), StalePlan);
  EXPECT_THROW(spgemm_numeric(handle, mine, false, mine, true, C), StalePlan);
  EXPECT_THROW(spgemm_symbolic(handle, mine, false, mine, false, C), DimensionMismatch);
  EXPECT_EQ(C.numRows(), 0);
  spgemm_symbolic(handle, mine, false, mine, true, C);
  EXPECT_THROW(spgemm_numeric(handle, mine, false, same, true, C), StalePlan) << "another graph";
  EXPECT_THROW(spgemm_numeric(handle, mine, true, mine, false, C), StalePlan) << "other transposes";
  spgemm_numeric(handle, mine, false, mine, true, C);
  EXPECT_EQ(handle.statistics().operation, "spgemm");
  TestFixture::expect_c(A, transposed(A), C);
}

}  // namespace Testing
}  // namespace Tessera
