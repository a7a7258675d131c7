// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// More SDDMM calls that must be refused (TestBadSddmmCalls.cpp has the plain ones): heads, overlaps by one number,
// backends, workspaces. Nothing is written.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "Tessera_Config.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

class SddmmRefusals : public ::testing::Test {
 protected:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  template <class T>
  using Dense = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  using Batch = Kokkos::View<double***, Kokkos::LayoutRight, DeviceOf<Exec>>;
  template <class Data>
  using Unmanaged = Kokkos::View<Data, Kokkos::LayoutRight, DeviceOf<Exec>, Kokkos::MemoryUnmanaged>;
  template <class T>
  using Matrix = DeviceMatrix<Exec, T>;
  template <class T>
  using Plan = SddmmPlan<typename Matrix<T>::Csr>;

  template <class Error>
  void expect(const std::vector<std::string>& parts, const std::function<void()>& call) {
    Kokkos::deep_copy(p, 7);
    try {
      call();
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what() << " has no '" << part << "'";
      }
    }
    for (std::size_t i = 0; i < p.extent(0); ++i) EXPECT_EQ(p(i), 7) << "P was written";
  }
  /// Whether all numbers of a contiguous View are still 7.
  template <class View>
  static bool untouched(const View& view) {
    return std::all_of(view.data(), view.data() + view.span(), [](double number) { return number == 7; });
  }
  static SddmmOptions with(SddmmAlgorithm algorithm, Backend backend, ComputeType compute = ComputeType::Auto) {
    SddmmOptions o;
    o.algorithm = algorithm;
    o.backend = backend;
    o.compute = compute;
    o.fallback = false;
    return o;
  }

  Pattern pattern = pattern_of_lengths({3, 0, 7, 1, 40, 2, 2, 2, 5, 9, 1}, 29);
  Matrix<double> S{make_matrix<double>(pattern, Data::Integers, 1)};
  Matrix<float> F{make_matrix<float>(pattern, Data::Integers, 1)};
  static constexpr std::size_t rows = 11, cols = 29, nnz = 72;
  Dense<double> x{"x", rows, 5}, y{"y", cols, 5};
  DeviceVector<Exec, double> p{"p", nnz};
  Plan<double> plan{Exec(), S.view()};
};

// Memory lies behind the heads that are missing, so that this test reads nobody else's where it is accepted.
TEST_F(SddmmRefusals, HeadsOfY) {
  const Batch xs("x", 3, rows, 5), all("y", 3, cols, 5);
  const Dense<double> to("p", 3, nnz);
  Kokkos::deep_copy(to, 7);
  for (const int heads : {0, 1, 2}) {
    SCOPED_TRACE(std::to_string(heads) + " heads of Y, 3 of X");
    const auto fewer = Kokkos::subview(all, std::make_pair(0, heads), Kokkos::ALL(), Kokkos::ALL());
    expect<DimensionMismatch>({"heads"}, [&] { plan.apply(Exec(), Op::NoTrans, 1, xs, fewer, 0, to); });
    EXPECT_TRUE(untouched(to)) << "P was written";
  }
}
// One number is shared: the last one of Y, or of the last head.
TEST_F(SddmmRefusals, OverlapWithYAndHeads) {
  const Kokkos::View<double*, DeviceOf<Exec>> all("all", cols * 5 + nnz), heads("heads", 2 * (rows * 5 + nnz));
  Kokkos::deep_copy(all, 7);
  Kokkos::deep_copy(heads, 7);
  const Unmanaged<double**> own_y(all.data(), cols, 5);
  const auto part = [&](std::size_t first) { return Kokkos::subview(all, std::make_pair(first, first + nnz)); };
  expect<InvalidArgument>({"overlap"}, [&] { plan.apply(Exec(), x, own_y, part(cols * 5 - 1)); });
  expect<InvalidArgument>({"overlap"}, [&] { plan.apply(Exec(), Op::NoTrans, 0, x, own_y, 1, part(0)); });
  const Unmanaged<double***> own_xs(heads.data(), 2, rows, 5);
  const Batch ys("y", 2, cols, 5);
  const auto parts = [&](std::size_t first) { return Unmanaged<double**>(heads.data() + first, 2, nnz); };
  expect<InvalidArgument>({"overlap"},
                          [&] { plan.apply(Exec(), Op::NoTrans, 1, own_xs, ys, 0, parts(rows * 10 - 1)); });
  EXPECT_TRUE(untouched(all) && untouched(heads)) << "P was written";
  EXPECT_NO_THROW(plan.apply(Exec(), x, own_y, part(cols * 5)));
  EXPECT_NO_THROW(plan.apply(Exec(), Op::NoTrans, 1, own_xs, ys, 0, parts(rows * 10)));
}
// What is accepted does not depend on alpha.
TEST_F(SddmmRefusals, TypesWhereNothingIsMultiplied) {
  const Plan<double> panels(Exec(), S.view(), with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia));
  const Dense<float> xf("x", rows, 5), yf("y", cols, 5);
  expect<NotSupported>({"fp64", "float"}, [&] { panels.apply(Exec(), Op::NoTrans, 0, xf, yf, 2, p); });
}
// Rows whose bytes the kernels of backends do not count. Nobody reads them: they are nowhere.
TEST_F(SddmmRefusals, RowsTooLongForBackends) {
  const Plan<double> panels(Exec(), S.view(), with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia));
  constexpr std::size_t inner = std::size_t{1} << 28;
  auto* const nowhere = reinterpret_cast<double*>(std::uintptr_t{1} << 56);
  const Unmanaged<double**> xs(nowhere, rows, inner), ys(nowhere + rows * inner, cols, inner);
  expect<NotSupported>({"268435456 elements", "Kokkos"}, [&] { panels.apply(Exec(), xs, ys, p); });
}
TEST_F(SddmmRefusals, Backends) {
#ifdef TESSERA_HAVE_CUDA
  using NoCuda = NotSupported;  // there is no device, or the matrix is on the host
#else
  using NoCuda = NotCompiled;
#endif
  expect<NoCuda>({"cuda"}, [&] { Plan<double>(Exec(), S.view(), with(SddmmAlgorithm::Auto, Backend::Cuda)); });
  expect<NotSupported>(
      {"tf32"}, [&] { Plan<float>(Exec(), F.view(), with(SddmmAlgorithm::Csr, Backend::Auto, ComputeType::TF32)); });
  expect<NotSupported>({"tf32"}, [&] {
    Plan<float>(Exec(), F.view(), with(SddmmAlgorithm::Auto, Backend::Reference, ComputeType::TF32));
  });
  expect<NotSupported>({"plain loops", "fallback"},
                       [&] { Plan<double>(Exec(), S.view(), with(SddmmAlgorithm::Panels, Backend::Reference)); });
}
TEST_F(SddmmRefusals, WorkspacesThatAreNone) {
  SddmmOptions given = with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia);
  alignas(16) char memory[256];
  given.workspace = {memory + 1, 128};
  expect<InvalidArgument>({"16 bytes"}, [&] { Plan<double>(Exec(), S.view(), given); });
  given.workspace = {nullptr, 128};
  expect<InvalidArgument>({"null"}, [&] { Plan<double>(Exec(), S.view(), given); });
}
// The size that a refused workspace asks for is one that works, and workspace_bytes() covers it.
TEST_F(SddmmRefusals, WorkspaceTooSmallCarriesTheSize) {
  const DeviceVector<Exec, std::uint64_t> memory("memory", 10000);
  SddmmOptions given = with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia);
  given.workspace = {memory.data(), 16};
  std::size_t need = 0;
  try {
    Plan<double>(Exec(), S.view(), given).apply(Exec(), x, y, p);
    FAIL() << "was accepted";
  } catch (const WorkspaceTooSmall& e) {
    need = e.required();
    EXPECT_EQ(e.given(), 16u);
  }
  ASSERT_LE(need, 8 * memory.extent(0)) << "the test's own memory";
  given.workspace.bytes = need;
  const Plan<double> enough(Exec(), S.view(), given);
  EXPECT_NO_THROW(enough.apply(Exec(), x, y, p));
  EXPECT_GE(enough.workspace_bytes(5), need);
}

}  // namespace Testing
}  // namespace Tessera
