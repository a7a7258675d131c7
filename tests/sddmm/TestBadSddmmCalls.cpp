// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// SDDMM calls that must be refused: which exception, what its message says, and that P is as it was.

#include <gtest/gtest.h>

#include <functional>

#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

class BadSddmmCalls : public ::testing::Test {
 protected:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  template <class T>
  using Dense = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;
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

TEST_F(BadSddmmCalls, Extents) {
  const Dense<double> short_y("y", cols - 1, 5), narrow_y("y", cols, 4);
  const DeviceVector<Exec, double> short_p("p", nnz - 1);
  expect<DimensionMismatch>({"11 x 29", "72", "28 x 5"}, [&] { plan.apply(Exec(), x, short_y, p); });
  expect<DimensionMismatch>({"29 x 4", "11 x 5"}, [&] { plan.apply(Exec(), x, narrow_y, p); });
  expect<DimensionMismatch>({"29 x 5"}, [&] { plan.apply(Exec(), y, x, p); });
  expect<DimensionMismatch>({"71"}, [&] { plan.apply(Exec(), x, y, short_p); });
  expect<DimensionMismatch>({"5 x 29"}, [&] { plan.apply(Exec(), Op::Trans, 1, x, y, 0, p); });
  const Kokkos::View<double***, Kokkos::LayoutRight, DeviceOf<Exec>> xs("x", 2, rows, 5), ys("y", 2, cols, 5);
  const Dense<double> three("p", 3, nnz);
  expect<DimensionMismatch>({"2 heads", "3"}, [&] { plan.apply(Exec(), Op::NoTrans, 1, xs, ys, 0, three); });
  const Kokkos::View<double***, Kokkos::LayoutRight, DeviceOf<Exec>> one_y("y", 1, cols, 5);
  const Dense<double> two("p", 2, nnz);
  expect<DimensionMismatch>({"2 heads", "1 of Y"}, [&] { plan.apply(Exec(), Op::NoTrans, 1, xs, one_y, 0, two); });
}
TEST_F(BadSddmmCalls, Overlap) {
  const Kokkos::View<double*, DeviceOf<Exec>> all("all", rows * 5 + nnz);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>, Kokkos::MemoryUnmanaged> front(all.data(), rows, 5);
  const auto inside = Kokkos::subview(all, std::make_pair(std::size_t{54}, 54 + nnz));
  expect<InvalidArgument>({"overlap"}, [&] { plan.apply(Exec(), front, y, inside); });
  const auto beside = Kokkos::subview(all, std::make_pair(std::size_t{55}, 55 + nnz));
  EXPECT_NO_THROW(plan.apply(Exec(), front, y, beside));
}
TEST_F(BadSddmmCalls, Null) {
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  using Null = Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>, Unmanaged>;
  const Kokkos::View<double*, DeviceOf<Exec>, Unmanaged> no_p(nullptr, nnz);
  expect<InvalidArgument>({"X has elements", "null"}, [&] { plan.apply(Exec(), Null(nullptr, rows, 5), y, p); });
  expect<InvalidArgument>({"Y has elements", "null"}, [&] { plan.apply(Exec(), x, Null(nullptr, cols, 5), p); });
  expect<InvalidArgument>({"P has elements", "null"}, [&] { plan.apply(Exec(), x, y, no_p); });
  Kokkos::deep_copy(p, 7);
  plan.apply(Exec(), Null(nullptr, rows, 0), Null(nullptr, cols, 0), p);  // no elements: sums of nothing
  for (std::size_t i = 0; i < nnz; ++i) EXPECT_EQ(p(i), 0);
}
TEST_F(BadSddmmCalls, Types) {
  const Plan<double> panels(Exec(), S.view(), with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia));
  const Dense<float> xf("x", rows, 5), yf("y", cols, 5);
  expect<NotSupported>({"panels", "fp64", "float"}, [&] { panels.apply(Exec(), xf, yf, p); });
  const Plan<float> narrow(Exec(), F.view(),
                           with(SddmmAlgorithm::Rows, Backend::EmulatedNvidia, ComputeType::FP16_FP32));
  expect<NotSupported>({"fp16", "float"}, [&] { narrow.apply(Exec(), xf, yf, p); });
}
TEST_F(BadSddmmCalls, Options) {
  SddmmOptions negative;
  negative.inner_hint = -1;
  expect<InvalidArgument>({"inner_hint", "-1"}, [&] { Plan<double>(Exec(), S.view(), negative); });
  expect<NotSupported>(
      {"tf32"}, [&] { Plan<float>(Exec(), F.view(), with(SddmmAlgorithm::Rows, Backend::Kokkos, ComputeType::TF32)); });
  expect<NotSupported>({"Panels", "fallback"},
                       [&] { Plan<double>(Exec(), S.view(), with(SddmmAlgorithm::Panels, Backend::Kokkos)); });
}
TEST_F(BadSddmmCalls, Updates) {
  SddmmOptions frozen;
  frozen.updatable = false;
  Plan<double> fixed(Exec(), S.view(), frozen);
  expect<StalePlan>({"updatable"}, [&] { fixed.update_values(Exec(), S.view().values()); });
  const DeviceVector<Exec, const double> few = DeviceVector<Exec, double>("few", nnz - 1);
  expect<StalePlan>({"72", "71"}, [&] { plan.update_values(Exec(), few); });
  const Matrix<double> other(make_matrix<double>(pattern, Data::Integers, 2));
  expect<StalePlan>({"pattern"}, [&] { plan.update_values(Exec(), other.view()); });
}
TEST_F(BadSddmmCalls, Workspaces) {
  SddmmOptions given = with(SddmmAlgorithm::Panels, Backend::EmulatedNvidia);
  alignas(16) char memory[256];
  given.workspace = {memory, sizeof(memory)};
  const Plan<double> small(Exec(), S.view(), given);
  expect<WorkspaceTooSmall>({"256"}, [&] { small.apply(Exec(), x, y, p); });
}

}  // namespace Testing
}  // namespace Tessera
