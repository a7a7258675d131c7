// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The same product by Kokkos Kernels, where the build has it.

#include <gtest/gtest.h>

#include "Tessera_Config.hpp"
#ifdef TESSERA_HAVE_KOKKOSKERNELS

#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>

#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestShapes.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar>
class AgainstKokkosKernels : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  // 64-bit offsets: no instantiation of Kokkos Kernels' library is needed, its headers do.
  using Theirs = KokkosSparse::CrsMatrix<Scalar, int, DeviceOf<Exec>, void, std::int64_t>;

  static void expect(const std::string& spec) {
    SCOPED_TRACE(spec);
    const auto A = make_matrix<Scalar>(spec, Data::Integers, 5);
    const DeviceMatrix<Exec, Scalar> device(A);
    const typename Theirs::row_map_type::non_const_type row_map("row_map", A.row_map.size());
    const typename Theirs::index_type::non_const_type entries("entries", A.entries.size());
    const typename Theirs::values_type::non_const_type values("values", A.values.size());
    copy_to(A.row_map, row_map);
    copy_to(A.entries, entries);
    copy_to(A.values, values);
    const Theirs theirs("theirs", A.rows, A.cols, A.nnz(), values, row_map, entries);
    const auto x = numbers<Scalar>(A.cols, Data::Integers, 6), y = numbers<Scalar>(A.rows, Data::Integers, 7);
    const auto dx = to_device<Exec>(x), mine = to_device<Exec>(y), other = to_device<Exec>(y);
    KokkosSparse::spmv("N", Scalar(2.5), theirs, dx, Scalar(-1), other);
    // Qualified: later versions have a KokkosSparse::spmv of this form, which their matrix would bring in.
    Tessera::spmv(Exec(), "N", 2.5, theirs, dx, -1, mine);  // through csr_view() of their matrix
    Exec().fence();
    EXPECT_EQ(to_host(mine), to_host(other));
    EXPECT_TRUE(agrees<Scalar>(A, {2.5, -1}, x, y, to_host(mine), true));
  }
};
using KernelScalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(AgainstKokkosKernels, KernelScalars);

TYPED_TEST(AgainstKokkosKernels, EveryShape) {
  for (const std::string& spec : shapes()) this->expect(spec);
}

}  // namespace Testing
}  // namespace Tessera

#else

TEST(AgainstKokkosKernels, EveryShape) { GTEST_SKIP() << "this build has no Kokkos Kernels"; }

#endif
