// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every call that must be refused, in one table: which exception, which numbers its message carries, and that the
// result vector is as it was. TESSERA_PRINT_MESSAGES=1 prints the table.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "Tessera_Config.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Spmv.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

struct BadCall {
  std::string name;
  ErrorCode code;
  std::vector<std::string> parts;  // of the message
  std::function<void()> call;
};

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "InvalidArgument";
    case ErrorCode::DimensionMismatch:
      return "DimensionMismatch";
    case ErrorCode::NotSupported:
      return "NotSupported";
    case ErrorCode::NotCompiled:
      return "NotCompiled";
    case ErrorCode::StalePlan:
      return "StalePlan";
    case ErrorCode::WorkspaceTooSmall:
      return "WorkspaceTooSmall";
    case ErrorCode::OutOfMemory:
      return "OutOfMemory";
    case ErrorCode::DeviceError:
      return "DeviceError";
    case ErrorCode::FileError:
      return "FileError";
  }
  return "?";
}

/// A small matrix with all classes of rows in every type, and vectors for it.
class BadCalls : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  template <class T>
  using Vector = DeviceVector<Exec, T>;
  template <class T>
  using Matrix = DeviceMatrix<Exec, T>;
  template <class T>
  using Plan = SpmvPlan<typename Matrix<T>::Csr>;

  static SpmvOptions dasp() {
    SpmvOptions o;
    o.algorithm = SpmvAlgorithm::Dasp;
    o.backend = Backend::EmulatedNvidia;
    return o;
  }
  static SpmvOptions packed() {
    SpmvOptions o = dasp();
    o.algorithm = SpmvAlgorithm::PackedSlices;
    return o;
  }
  template <class T>
  void add_plan(const std::string& name, ErrorCode code, std::vector<std::string> parts, const Matrix<T>& A,
                const std::function<void(SpmvOptions&)>& change) {
    calls.push_back({name, code, std::move(parts), [&A, change] {
                       SpmvOptions o = dasp();
                       change(o);
                       Plan<T>(Exec(), A.view(), o);
                     }});
  }
  void add(const std::string& name, ErrorCode code, std::vector<std::string> parts, std::function<void()> call) {
    calls.push_back({name, code, std::move(parts), std::move(call)});
  }

  void add_views();
  void add_plans();
  void add_applies();
  void add_updates();
  void add_names();

  Pattern pattern = all_classes(2000, 20, 2001);
  Matrix<double> A{make_matrix<double>(pattern, Data::Integers, 1)};
  Matrix<float> F{make_matrix<float>(pattern, Data::Integers, 1)};
  Matrix<half_t> H{make_matrix<half_t>(pattern, Data::Integers, 1)};
  Matrix<double> other{make_matrix<double>(pattern, Data::Integers, 2)};
  std::size_t rows = static_cast<std::size_t>(A.rows), cols = static_cast<std::size_t>(A.cols);
  Vector<double> x = to_device<Exec>(std::vector<double>(cols, 1)), y = to_device<Exec>(std::vector<double>(rows, 77));
  Vector<float> xf = to_device<Exec>(std::vector<float>(cols, 1));
  Vector<half_t> xh = to_device<Exec>(std::vector<half_t>(cols, half_t(1.0f)));
  Vector<double> square = to_device<Exec>(std::vector<double>(4, 77));
  Plan<double> plan{Exec(), A.view(), dasp()};
  Plan<double> packed_plan{Exec(), A.view(), packed()};
  Plan<half_t> half_plan{Exec(), H.view(), dasp()};
  Matrix<double> small{make_matrix<double>("dense:rows=4:cols=4", Data::Integers, 1)};
  Plan<double> small_plan{Exec(), small.view(), dasp()};
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(100000);
  std::vector<BadCall> calls;
};

void BadCalls::add_views() {
  const auto view = [this](int r, int c, std::size_t maps, std::size_t entries, std::size_t values) {
    return [this, r, c, maps, entries, values] {
      const auto first = [](const auto& v, std::size_t n) {
        return Kokkos::subview(v, std::make_pair(std::size_t{0}, n));
      };
      csr_view(r, c, first(A.row_map, maps), first(A.entries, entries), first(A.values, values));
    };
  };
  add("csr_view(rows = -1, ...)", ErrorCode::InvalidArgument, {"negative", "-1"}, view(-1, 5, 1, 3, 3));
  add("csr_view(rows = 5, row_map of 5)", ErrorCode::DimensionMismatch, {"5 elements", "need 6"}, view(5, 5, 5, 3, 3));
  add("csr_view(entries of 3, values of 2)", ErrorCode::DimensionMismatch, {"3 elements", "has 2"},
      view(2, 5, 3, 3, 2));
  add("csr_view(cols = 2^31, 64-bit ordinals)", ErrorCode::InvalidArgument, {"2147483648", "2^31 - 1"}, [] {
    const Kokkos::View<int*, Kokkos::HostSpace> row_map("row_map", 2);
    const Kokkos::View<std::int64_t*, Kokkos::HostSpace> entries("entries", 0);
    const Kokkos::View<double*, Kokkos::HostSpace> values("values", 0);
    csr_view(1, std::int64_t{1} << 31, row_map, entries, values);
  });
  add("csr_view(values = null)", ErrorCode::InvalidArgument, {"null"}, [this] {
    using Null = Kokkos::View<const double*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    csr_view(A.rows, A.cols, A.row_map, A.entries, Null(nullptr, A.entries.extent(0)));
  });
  add("csr_view(values of stride 2)", ErrorCode::InvalidArgument, {"stride"}, [this] {
    const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> two("two", A.values.extent(0), 2);
    csr_view(A.rows, A.cols, A.row_map, A.entries, Kokkos::subview(two, Kokkos::ALL(), 1));
  });
  add("csr_view(3,000,000,000 entries, int offsets)", ErrorCode::InvalidArgument, {"3000000000", "offset"}, [] {
    static int one[2] = {};
    using Ints = Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    using Floats = Kokkos::View<const float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const std::size_t many = 3000000000u;
    csr_view(1, 1, Ints(one, 2), Ints(one, many), Floats(reinterpret_cast<const float*>(one), many));
  });
}

void BadCalls::add_plans() {
#ifdef TESSERA_HAVE_CUDA
  const ErrorCode no_cuda = ErrorCode::NotSupported;  // there is no device, or the matrix is on the host
  const std::vector<std::string> cuda_parts = {"cuda"};
#else
  const ErrorCode no_cuda = ErrorCode::NotCompiled;
  const std::vector<std::string> cuda_parts = {"cuda", "Tessera_ENABLE_CUDA=ON"};
#endif
#ifdef TESSERA_HAVE_HIP
  const ErrorCode no_hip = ErrorCode::NotSupported;
  const std::vector<std::string> hip_parts = {"hip"};
#else
  const ErrorCode no_hip = ErrorCode::NotCompiled;
  const std::vector<std::string> hip_parts = {"hip", "Tessera_ENABLE_HIP=ON"};
#endif
  add_plan("plan(backend = Cuda) of a host matrix", no_cuda, cuda_parts, A,
           [](SpmvOptions& o) { o.backend = Backend::Cuda; });
  add_plan("plan(backend = Hip) of a host matrix", no_hip, hip_parts, A,
           [](SpmvOptions& o) { o.backend = Backend::Hip; });
  add_plan("plan(float, Dasp, fallback = false)", ErrorCode::NotSupported, {"fp32", "fallback = false"}, F,
           [](SpmvOptions& o) { o.fallback = false; });
  add_plan("plan(Dasp on Kokkos, fallback = false)", ErrorCode::NotSupported, {"Kokkos", "fallback = false"}, A,
           [](SpmvOptions& o) { o.backend = Backend::Kokkos, o.fallback = false; });
  add_plan("plan(Dasp on Reference, fallback = false)", ErrorCode::NotSupported, {"plain loops", "fallback = false"}, A,
           [](SpmvOptions& o) { o.backend = Backend::Reference, o.fallback = false; });
  add_plan("plan(double, compute = TF32)", ErrorCode::NotSupported, {"tf32", "fp64"}, A,
           [](SpmvOptions& o) { o.compute = ComputeType::TF32; });
  add_plan("plan(double, compute = FP32, Csr)", ErrorCode::NotSupported, {"fp64", "fp32"}, A, [](SpmvOptions& o) {
    o.compute = ComputeType::FP32, o.algorithm = SpmvAlgorithm::Csr, o.backend = Backend::Auto;
  });
  add_plan("plan(dasp.max_medium_length = 256)", ErrorCode::InvalidArgument, {"[4, 255]", "256"}, A,
           [](SpmvOptions& o) { o.dasp.max_medium_length = 256; });
  add_plan("plan(dasp.threshold = 0)", ErrorCode::InvalidArgument, {"(0, 1]"}, A,
           [](SpmvOptions& o) { o.dasp.threshold = 0; });
  add_plan("plan(dasp.min_pairs = -1)", ErrorCode::InvalidArgument, {"min_pairs", "-1"}, A,
           [](SpmvOptions& o) { o.dasp.min_pairs = -1; });
  const auto add_packed = [&](const std::string& what, std::vector<std::string> parts, const auto& change) {
    add_plan("plan(packed." + what + ")", ErrorCode::InvalidArgument, std::move(parts), A, [=](SpmvOptions& o) {
      o = packed();
      change(o.packed);
    });
  };
  add_packed("max_steps = 64", {"[0, 63]", "64"}, [](PackedOptions& o) { o.max_steps = 64; });
  add_packed("split_steps = -1", {"[0, 63]", "-1"}, [](PackedOptions& o) { o.split_steps = -1; });
  add_packed("window = 5", {"[12, 4092]", "5"}, [](PackedOptions& o) { o.window = 5; });
  add_packed("hubs = 65537", {"[-1, 65536]", "65537"}, [](PackedOptions& o) { o.hubs = 65537; });
  add_packed("column_blocks = 129", {"[-1, 128]", "129"}, [](PackedOptions& o) { o.column_blocks = 129; });
  add_packed("cells = 65", {"[-1, 64]", "65"}, [](PackedOptions& o) { o.cells = 65; });
  add_packed("natural_padding = -1", {"negative", "-1"}, [](PackedOptions& o) { o.natural_padding = -1; });
  add_plan("plan(float, PackedSlices, compute = TF32)", ErrorCode::NotSupported, {"tf32", "fp32"}, F,
           [](SpmvOptions& o) { o = packed(), o.compute = ComputeType::TF32; });
  add_plan("plan(double, Csr5, compute = FP32)", ErrorCode::NotSupported, {"fp64", "fp32"}, A, [](SpmvOptions& o) {
    o.algorithm = SpmvAlgorithm::Csr5, o.compute = ComputeType::FP32, o.backend = Backend::Auto;
  });
  const std::size_t need = plan.workspace_bytes();
  add_plan("plan(workspace of workspace_bytes() - 1)", ErrorCode::WorkspaceTooSmall,
           {std::to_string(need), std::to_string(need - 1)}, A, [this, need](SpmvOptions& o) {
             o.workspace = {memory.data(), need - 1};
           });
  add_plan("plan(workspace aligned to 1 byte)", ErrorCode::InvalidArgument, {"16 bytes"}, A, [this](SpmvOptions& o) {
    o.workspace = {reinterpret_cast<char*>(memory.data()) + 1, 8 * memory.size() - 1};
  });
  add_plan("plan(workspace = null of 800000 bytes)", ErrorCode::InvalidArgument, {"null"}, A, [](SpmvOptions& o) {
    o.workspace = {nullptr, 800000};
  });
}

void BadCalls::add_applies() {
  add("apply, x one short", ErrorCode::DimensionMismatch, {std::to_string(cols - 1), std::to_string(cols)},
      [this] { plan.apply(Exec(), Kokkos::subview(x, std::make_pair(std::size_t{0}, cols - 1)), y); });
  add("apply, y one short", ErrorCode::DimensionMismatch, {std::to_string(rows - 1), std::to_string(rows)},
      [this] { plan.apply(Exec(), x, Kokkos::subview(y, std::make_pair(std::size_t{0}, rows - 1))); });
  add("apply, x(cols, 2) and y(rows, 3)", ErrorCode::DimensionMismatch, {"x 2", "x 3"}, [this] {
    plan.apply(Exec(), Kokkos::View<double**, Kokkos::LayoutLeft, DeviceOf<Exec>>("x", cols, 2),
               Kokkos::View<double**, Kokkos::LayoutLeft, DeviceOf<Exec>>("y", rows, 3));
  });
  add("apply, x and y the same array", ErrorCode::InvalidArgument, {"overlap"},
      [this] { small_plan.apply(Exec(), square, square); });
  using RowMajor = Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  add("apply, y one row below x in the same column", ErrorCode::InvalidArgument, {"overlap"}, [this] {
    const RowMajor parent("parent", 5, 2);
    small_plan.apply(Exec(), Kokkos::subview(parent, std::make_pair(0, 4), 1),
                     Kokkos::subview(parent, std::make_pair(1, 5), 1));
  });
  add("apply, x and y of two columns, one of them the same", ErrorCode::InvalidArgument, {"overlap"}, [this] {
    const RowMajor parent("parent", 4, 3);
    small_plan.apply(Exec(), Kokkos::subview(parent, Kokkos::ALL(), std::make_pair(0, 2)),
                     Kokkos::subview(parent, Kokkos::ALL(), std::make_pair(1, 3)));
  });
  using Null = Kokkos::View<double*, DeviceOf<Exec>, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  add("apply, x = null", ErrorCode::InvalidArgument, {"x has elements", "null"},
      [this] { plan.apply(Exec(), Null(nullptr, cols), y); });
  add("apply, y = null", ErrorCode::InvalidArgument, {"y has elements", "null"},
      [this] { plan.apply(Exec(), x, Null(nullptr, rows)); });
  add("apply, Dasp in fp64 with x of float", ErrorCode::NotSupported, {"fp64", "float", "SpmvAlgorithm::Csr"},
      [this] { plan.apply(Exec(), xf, y); });
  add("apply, PackedSlices in fp64 with x of float", ErrorCode::NotSupported, {"packed", "fp64", "float"},
      [this] { packed_plan.apply(Exec(), xf, y); });
  add("apply, PackedSlices, alpha = 0, with x of float", ErrorCode::NotSupported, {"packed", "fp64", "float"},
      [this] { packed_plan.apply(Exec(), Op::NoTrans, 0, xf, 1, y); });
  add("apply, Dasp in fp16 with y of double", ErrorCode::NotSupported, {"fp16", "double", "SpmvAlgorithm::Csr"},
      [this] { half_plan.apply(Exec(), xh, y); });
  add("apply, Op::Trans without prepare_transpose", ErrorCode::NotSupported, {"prepare_transpose"},
      [this] { plan.apply(Exec(), Op::Trans, 1, y, 0, x); });
  add("spmv(\"X\", ...)", ErrorCode::InvalidArgument, {"'X'", "N", "T"},
      [this] { spmv(Exec(), "X", 1, A.view(), x, 0, y); });
}

void BadCalls::add_updates() {
  const std::size_t nnz = A.values.extent(0);
  add("update_values, one number short", ErrorCode::StalePlan, {std::to_string(nnz), std::to_string(nnz - 1)},
      [this, nnz] { plan.update_values(Exec(), Kokkos::subview(A.values, std::make_pair(std::size_t{0}, nnz - 1))); });
  add("update_values, PackedSlices, one number short", ErrorCode::StalePlan,
      {std::to_string(nnz), std::to_string(nnz - 1)}, [this, nnz] {
        packed_plan.update_values(Exec(), Kokkos::subview(A.values, std::make_pair(std::size_t{0}, nnz - 1)));
      });
  add("update_values, matrix with another graph", ErrorCode::StalePlan, {"pattern"},
      [this] { plan.update_values(Exec(), other.view()); });
  add("update_values, updatable = false", ErrorCode::StalePlan, {"updatable = false"}, [this] {
    SpmvOptions o = dasp();
    o.updatable = false;
    Plan<double> fixed(Exec(), A.view(), o);
    fixed.update_values(Exec(), A.view());
  });
}

void BadCalls::add_names() {
  add("TESSERA_FORCE_BACKEND=abacus", ErrorCode::InvalidArgument, {"abacus", "emulated-nvidia"}, [this] {
    const Environment e("TESSERA_FORCE_BACKEND", "abacus");
    Plan<double>(Exec(), A.view(), {});
  });
  add("TESSERA_FORCE_ALGORITHM=magic", ErrorCode::InvalidArgument, {"magic", "dasp"}, [this] {
    const Environment e("TESSERA_FORCE_ALGORITHM", "magic");
    Plan<double>(Exec(), A.view(), {});
  });
  add("parse_precision(\"fp8\")", ErrorCode::InvalidArgument, {"fp8", "bf16"}, [] { parse_precision("fp8"); });
  add("kernel_table(Backend::Kokkos)", ErrorCode::InvalidArgument, {"kokkos"}, [] { kernel_table(Backend::Kokkos); });
}

TEST_F(BadCalls, AreRefusedWithNumbers) {
  ASSERT_GT(plan.workspace_bytes(), 1u);
  add_views();
  add_plans();
  add_applies();
  add_updates();
  add_names();
  ASSERT_GE(calls.size(), 20u);
  const char* asked = std::getenv("TESSERA_PRINT_MESSAGES");
  const bool print = asked != nullptr && std::string(asked) == "1";
  if (print) std::cout << "| call | exception | message |\n|---|---|---|\n";
  for (const BadCall& bad : calls) {
    SCOPED_TRACE(bad.name);
    try {
      bad.call();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      const std::string message = e.what();
      EXPECT_STREQ(name_of(e.code()), name_of(bad.code)) << message;
      for (const std::string& part : bad.parts) EXPECT_NE(message.find(part), std::string::npos) << message;
      if (print) std::cout << "| " << bad.name << " | " << name_of(e.code()) << " | " << message << " |\n";
    }
    EXPECT_EQ(to_host(y), std::vector<double>(rows, 77)) << "y was written";
    EXPECT_EQ(to_host(square), std::vector<double>(4, 77)) << "y was written";
  }
}

// The size that a refused workspace asks for is the one that works.
TEST_F(BadCalls, WorkspaceTooSmallCarriesTheSize) {
  SpmvOptions o = dasp();
  o.workspace = {memory.data(), 16};
  try {
    Plan<double>(Exec(), A.view(), o);
    FAIL() << "was accepted";
  } catch (const WorkspaceTooSmall& e) {
    EXPECT_EQ(e.required(), plan.workspace_bytes());
    EXPECT_EQ(e.given(), 16u);
  }
}

}  // namespace Testing
}  // namespace Tessera
