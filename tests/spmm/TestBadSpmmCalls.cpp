// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every SpMM call that must be refused, in one table: which exception, which numbers its message carries, and that C is
// as it was. TESSERA_PRINT_MESSAGES=1 prints the table.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "Tessera_Config.hpp"
#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

struct BadSpmmCall {
  std::string name;
  ErrorCode code;
  std::vector<std::string> parts;  // of the message
  std::function<void()> call;
};

class BadSpmmCalls : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  template <class T, class Layout = Kokkos::LayoutRight>
  using Dense = Kokkos::View<T**, Layout, DeviceOf<Exec>>;
  template <class T>
  using Matrix = DeviceMatrix<Exec, T>;
  template <class T>
  using Plan = SpmmPlan<typename Matrix<T>::Csr>;

  static SpmmOptions with(SpmmAlgorithm algorithm, Backend backend, bool fallback = true) {
    SpmmOptions o;
    o.algorithm = algorithm;
    o.backend = backend;
    o.fallback = fallback;
    return o;
  }
  template <class T>
  void add_plan(const std::string& name, ErrorCode code, std::vector<std::string> parts, const Matrix<T>& A,
                const SpmmOptions& options) {
    calls.push_back({name, code, std::move(parts), [&A, options] { Plan<T>(Exec(), A.view(), options); }});
  }
  void add(const std::string& name, ErrorCode code, std::vector<std::string> parts, std::function<void()> call) {
    calls.push_back({name, code, std::move(parts), std::move(call)});
  }

  void add_plans();
  void add_applies();
  void add_workspaces();
  void add_updates();

  Pattern pattern = pattern_of_lengths({3, 0, 7, 1, 40, 2, 2, 2, 5, 9, 1}, 29);
  Matrix<double> A{make_matrix<double>(pattern, Data::Integers, 1)};
  Matrix<float> F{make_matrix<float>(pattern, Data::Integers, 1)};
  Matrix<half_t> H{make_matrix<half_t>(pattern, Data::Integers, 1)};
  Matrix<double> other{make_matrix<double>(pattern, Data::Integers, 2)};
  Matrix<double> square{make_matrix<double>("dense:rows=4:cols=4", Data::Integers, 1)};
  static constexpr std::size_t rows = 11, cols = 29, n = 5;
  Dense<double> b{"b", cols, n}, c{"c", rows, n}, both{"both", 8, 4};
  Dense<float> bf{"bf", cols, n}, cf{"cf", rows, n};
  Dense<half_t> bh{"bh", cols, n};
  Dense<double, Kokkos::LayoutLeft> left{"left", rows, n};
  SpmmOptions flash = with(SpmmAlgorithm::FlashSparse, Backend::EmulatedNvidia, false);
  Plan<double> plan{Exec(), A.view()};
  Plan<double> square_plan{Exec(), square.view()};
  Plan<half_t> flash_plan{Exec(), H.view(), flash};
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(10000);
  std::vector<BadSpmmCall> calls;
};

void BadSpmmCalls::add_plans() {
#ifdef TESSERA_HAVE_CUDA
  const ErrorCode no_cuda = ErrorCode::NotSupported;  // there is no device, or the matrix is on the host
#else
  const ErrorCode no_cuda = ErrorCode::NotCompiled;
#endif
  add_plan("plan(backend = Cuda) of a host matrix", no_cuda, {"cuda"}, A, with(SpmmAlgorithm::Auto, Backend::Cuda));
  add_plan("plan(float, FlashSparse, fallback = false)", ErrorCode::NotSupported, {"fp32", "fallback = false"}, F,
           with(SpmmAlgorithm::FlashSparse, Backend::EmulatedNvidia, false));
  add_plan("plan(Panels on Kokkos, fallback = false)", ErrorCode::NotSupported, {"Kokkos", "fallback = false"}, A,
           with(SpmmAlgorithm::Panels, Backend::Kokkos, false));
  add_plan("plan(GeSpmm on Reference, fallback = false)", ErrorCode::NotSupported, {"plain loops", "fallback = false"},
           A, with(SpmmAlgorithm::GeSpmm, Backend::Reference, false));
  SpmmOptions o = with(SpmmAlgorithm::GeSpmm, Backend::Auto);
  o.compute = ComputeType::TF32;
  add_plan("plan(float, GeSpmm, compute = TF32)", ErrorCode::NotSupported, {"tf32", "ComputeType::FP32"}, F, o);
  o.backend = Backend::EmulatedNvidia;
  add_plan("plan(double, GeSpmm on matrix units, compute = TF32)", ErrorCode::NotSupported, {"tf32", "float"}, A, o);
  o.algorithm = SpmmAlgorithm::Csr;
  add_plan("plan(float, Csr, compute = TF32)", ErrorCode::NotSupported, {"plain CSR", "tf32"}, F, o);
  o.backend = Backend::Auto;
  o.compute = ComputeType::FP32;
  add_plan("plan(double, Csr, compute = FP32)", ErrorCode::NotSupported, {"fp64", "fp32", "GeSpmm"}, A, o);
  o = {};
  o.num_columns_hint = -3;
  add_plan("plan(num_columns_hint = -3)", ErrorCode::InvalidArgument, {"num_columns_hint", "-3"}, A, o);
  o = {};
  o.gespmm.max_piece = -1;
  add_plan("plan(gespmm.max_piece = -1)", ErrorCode::InvalidArgument, {"max_piece", "-1"}, A, o);
  o.gespmm.max_piece = 1 << 24;
  add_plan("plan(gespmm.max_piece = 2^24)", ErrorCode::InvalidArgument, {"max_piece", "16777215", "16777216"}, A, o);
  o = {};
  o.workspace = {reinterpret_cast<char*>(memory.data()) + 1, 1000};
  add_plan("plan(workspace aligned to 1 byte)", ErrorCode::InvalidArgument, {"16 bytes"}, A, o);
  o.workspace = {nullptr, 800000};
  add_plan("plan(workspace = null of 800000 bytes)", ErrorCode::InvalidArgument, {"null"}, A, o);
  add("TESSERA_FORCE_SPMM_ALGORITHM=dasp", ErrorCode::InvalidArgument, {"dasp", "SpMM algorithm", "gespmm", "panels"},
      [this] {
        const Environment e("TESSERA_FORCE_SPMM_ALGORITHM", "dasp");
        Plan<double>(Exec(), A.view());
      });
}

void BadSpmmCalls::add_applies() {
  const auto part = [](const auto& v, std::size_t r, std::size_t k) {
    return Kokkos::subview(v, std::make_pair(std::size_t{0}, r), std::make_pair(std::size_t{0}, k));
  };
  add("apply, B one row short", ErrorCode::DimensionMismatch, {"11 x 29", "28 x 5", "11 x 5"},
      [this, part] { plan.apply(Exec(), part(b, cols - 1, n), c); });
  add("apply, C one row short", ErrorCode::DimensionMismatch, {"11 x 29", "29 x 5", "10 x 5"},
      [this, part] { plan.apply(Exec(), b, part(c, rows - 1, n)); });
  add("apply, C one column short", ErrorCode::DimensionMismatch, {"29 x 5", "11 x 4"},
      [this, part] { plan.apply(Exec(), b, part(c, rows, n - 1)); });
  add("apply, B and C the same array", ErrorCode::InvalidArgument, {"overlap"}, [this, part] {
    const auto same = part(both, 4, 4);
    square_plan.apply(Exec(), same, same);
  });
  add("apply, B and C share a row", ErrorCode::InvalidArgument, {"overlap"}, [this, part] {
    const auto below = Kokkos::subview(both, std::make_pair(3, 7), Kokkos::ALL());
    square_plan.apply(Exec(), part(both, 4, 4), below);
  });
  using Null = Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  add("apply, B = null", ErrorCode::InvalidArgument, {"B has elements", "null"},
      [this] { plan.apply(Exec(), Null(nullptr, cols, n), c); });
  add("apply, C = null", ErrorCode::InvalidArgument, {"C has elements", "null"},
      [this] { plan.apply(Exec(), b, Null(nullptr, rows, n)); });
  add("apply, FlashSparse in fp16 with B of float", ErrorCode::NotSupported, {"fp16", "float", "half_t", "GeSpmm"},
      [this] { flash_plan.apply(Exec(), bf, cf); });
  add("apply, FlashSparse in fp16 with C of double", ErrorCode::NotSupported, {"fp16", "double", "GeSpmm"},
      [this] { flash_plan.apply(Exec(), bh, c); });
  add("apply, FlashSparse, alpha = 0, with C of double", ErrorCode::NotSupported, {"fp16", "double"},
      [this] { flash_plan.apply(Exec(), Op::NoTrans, 0, bh, 1, c); });
  add("apply, Op::Trans without prepare_transpose", ErrorCode::NotSupported, {"prepare_transpose"},
      [this] { plan.apply(Exec(), Op::Trans, 1, c, 0, b); });
  add("spmm(\"X\", ...)", ErrorCode::InvalidArgument, {"'X'", "N", "T"},
      [this] { spmm(Exec(), "X", 1, A.view(), b, 0, c); });
  add("spmm(plan, \"X\", ...)", ErrorCode::InvalidArgument, {"'X'", "N", "T"},
      [this] { spmm(Exec(), plan, "X", 1, b, 0, c); });
  add("apply, GeSpmm of a rounded matrix with B of double", ErrorCode::NotSupported, {"fp16", "double"}, [this] {
    SpmmOptions o = with(SpmmAlgorithm::GeSpmm, Backend::Auto);
    o.compute = ComputeType::FP16_FP32;
    Plan<double>(Exec(), A.view(), o).apply(Exec(), b, c);
  });
}

void BadSpmmCalls::add_workspaces() {
  // Sums of pieces are needed; a copy of B is not.
  add("apply, GeSpmm, workspace of 16 bytes for the sums of split rows", ErrorCode::WorkspaceTooSmall, {"16 bytes"},
      [this] {
        SpmmOptions o;
        o.gespmm.max_piece = 8;
        o.workspace = {const_cast<std::uint64_t*>(memory.data()), 16};
        Plan<double>(Exec(), A.view(), o).apply(Exec(), b, c);
      });
  add("apply, FlashSparse, workspace of 256 bytes for a column-major C", ErrorCode::WorkspaceTooSmall, {"256 bytes"},
      [this] {
        SpmmOptions o = flash;
        o.workspace = {const_cast<std::uint64_t*>(memory.data()), 256};
        const Dense<float, Kokkos::LayoutLeft> to("to", rows, n);
        Plan<half_t>(Exec(), H.view(), o).apply(Exec(), bh, to);
      });
}

void BadSpmmCalls::add_updates() {
  const std::size_t nnz = A.values.extent(0);
  add("update_values, one number short", ErrorCode::StalePlan, {std::to_string(nnz), std::to_string(nnz - 1)},
      [this, nnz] { plan.update_values(Exec(), Kokkos::subview(A.values, std::make_pair(std::size_t{0}, nnz - 1))); });
  add("update_values, matrix with another graph", ErrorCode::StalePlan, {"pattern"},
      [this] { plan.update_values(Exec(), other.view()); });
  add("update_values, updatable = false", ErrorCode::StalePlan, {"updatable = false"}, [this] {
    SpmmOptions o = flash;
    o.updatable = false;
    Plan<half_t> fixed(Exec(), H.view(), o);
    fixed.update_values(Exec(), H.view());
  });
}

TEST_F(BadSpmmCalls, AreRefusedWithNumbers) {
  add_plans();
  add_applies();
  add_workspaces();
  add_updates();
  Kokkos::deep_copy(c, 77.0);
  Kokkos::deep_copy(cf, 77.0f);
  Kokkos::deep_copy(both, 77.0);
  const char* asked = std::getenv("TESSERA_PRINT_MESSAGES");
  const bool print = asked != nullptr && std::string(asked) == "1";
  if (print) std::cout << "| call | exception | message |\n|---|---|---|\n";
  for (const BadSpmmCall& bad : calls) {
    SCOPED_TRACE(bad.name);
    try {
      bad.call();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      const std::string message = e.what();
      EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(bad.code)) << message;
      for (const std::string& part : bad.parts) EXPECT_NE(message.find(part), std::string::npos) << message;
      if (print) std::cout << "| " << bad.name << " | " << static_cast<int>(e.code()) << " | " << message << " |\n";
    }
    const auto untouched = [](const auto& view) {
      for (std::size_t i = 0; i < view.extent(0); ++i) {
        for (std::size_t j = 0; j < view.extent(1); ++j) {
          if (view(i, j) != 77) return false;
        }
      }
      return true;
    };
    EXPECT_TRUE(untouched(c) && untouched(cf) && untouched(both)) << "C was written";
  }
}

// The size that a refused workspace asks for is one that works, and workspace_bytes() covers every layout.
TEST_F(BadSpmmCalls, WorkspaceTooSmallCarriesTheSize) {
  SpmmOptions o = flash;
  o.workspace = {memory.data(), 16};
  const Dense<float, Kokkos::LayoutLeft> to("to", rows, n);
  std::size_t need = 0;
  try {
    Plan<half_t>(Exec(), H.view(), o).apply(Exec(), bh, to);
    FAIL() << "was accepted";
  } catch (const WorkspaceTooSmall& e) {
    need = e.required();
    EXPECT_EQ(e.given(), 16u);
  }
  o.workspace.bytes = need;
  const Plan<half_t> enough(Exec(), H.view(), o);
  enough.apply(Exec(), bh, to);
  EXPECT_GE(enough.workspace_bytes(n), need);
}

}  // namespace Testing
}  // namespace Tessera
